/* ncclxrt/cuda.h - Memory, signals and patience of one rank on one GPU.
 *
 * Ranks are threads of one process, processes of one host, or a mixture; several may share a GPU.
 * No host thread stands on the critical path: kernels and streams do the waiting, and everything
 * that a schedule enqueues can be captured in a graph and replayed. The rules of ncclxrt/abi.h hold
 * here, too; a communicator is used by one thread at a time, but for ncclxrtCudaAbort and
 * ncclxrtCudaLastError.
 *
 * Pointers are device pointers, streams are cudaStream_t, both passed as void *, so that this
 * header needs no other.
 */
#ifndef NCCLXRT_CUDA_H
#define NCCLXRT_CUDA_H

#include "ncclxrt/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclxrtCudaComm *ncclxrtCudaComm_t; /**< One rank on one GPU. */

/** Gives every rank what every rank brought: `all` gets `nranks` pieces of `bytes`, in their order.
 *  Collective; 0 is success. The bootstrap's only duty. */
typedef int32_t (*ncclxrtAllgather_t)(void *context, const void *mine, size_t bytes, void *all);

typedef struct ncclxrtCudaConfig {
  size_t struct_size;
  int32_t rank;
  int32_t nranks;
  int32_t device;     /**< Of this rank. */
  int32_t reserved;   /**< 0. */
  int64_t timeout_ms; /**< Longest that a wait may take. 0: 30000. */
  ncclxrtAllgather_t allgather;
  void *context;
} ncclxrtCudaConfig_t;
#define NCCLXRT_CUDA_CONFIG_INIT {sizeof(ncclxrtCudaConfig_t), 0, 1, 0, 0, 0, 0, 0}

/** Joins. Collective: every GPU must reach every other by load and store. On failure *comm is NULL.
 */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaInit(const ncclxrtCudaConfig_t *config,
                                               ncclxrtCudaComm_t *comm);
/** Frees everything made with the communicator. The caller's streams must have left its work; the
 *  other ranks must have left this one's memory (a barrier of the caller). NULL is a no-op. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaDestroy(ncclxrtCudaComm_t comm);

/** Makes `bytes` of device memory of every rank reachable from every other. Collective. With
 * `memory` NULL it is allocated, zeroed; else it is the caller's (cudaMalloc, or a part of one),
 * which stays his to free after ncclxrtCudaDestroy. peers[r] is rank r's memory as this GPU sees
 * it; an array of nranks. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaWindow(ncclxrtCudaComm_t comm, void *memory, size_t bytes,
                                                 void **peers);

/** `count` counters of 32 bits on every rank, 0, for ncclxrtCudaSignal and ncclxrtCudaWait. As a
 *  window, but known to the watchdog. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaSlots(ncclxrtCudaComm_t comm, size_t count,
                                                uint32_t **peers);

/** What kernels are given (ncclxrt::device::Guard): the control block as the GPU sees it. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaGuard(ncclxrtCudaComm_t comm, void **control,
                                                uint64_t *timeout_ns);

/** The stream writes 1 to a slot, own or a peer's, after all it did before. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaSignal(ncclxrtCudaComm_t comm, void *stream,
                                                 uint32_t *slot);
/** The stream waits for `value` in an own slot (compared in a circle) and, with `consume`, writes 0
 *  there (dialect/SPEC.md, S33). */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaWait(ncclxrtCudaComm_t comm, void *stream, uint32_t *slot,
                                               uint32_t value, int32_t consume);

/** Starts a deadline: what the stream holds now must be done within the timeout, or the
 * communicator is aborted. For streams that wait by themselves; a kernel's wait has a deadline of
 * its own. After each launch of such a schedule, or of a graph that holds some; not while
 * capturing. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaWatch(ncclxrtCudaComm_t comm, void *stream);

/** Ends every wait of this rank, in kernels and in streams; outputs are undefined, and the
 *  communicator is good for nothing but destruction. Other ranks end by their own deadlines. The
 *  first reason wins. Any thread. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaAbort(ncclxrtCudaComm_t comm, const char *reason);

/** Success, or why the communicator has failed: a wait that gave up names its op, block and peer.
 * Any time. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaQuery(ncclxrtCudaComm_t comm);

/** The sentence of the first error; with NULL that of this thread's last failed ncclxrtCudaInit.
 *  Belongs to the calling thread until its next call. Any thread. */
NCCLXRT_EXPORT const char *ncclxrtCudaLastError(ncclxrtCudaComm_t comm);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* NCCLXRT_CUDA_H */
