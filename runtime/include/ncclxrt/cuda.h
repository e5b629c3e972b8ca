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

/** Why the job that the ranks belong to has failed (a rank that died, for one), or NULL. The
 *  communicator's watchdog asks now and then, and ends its waits. Any thread. */
typedef const char *(*ncclxrtFailure_t)(void *context);

typedef struct ncclxrtCudaConfig {
  size_t struct_size;
  int32_t rank;
  int32_t nranks;
  int32_t device;     /**< Of this rank. */
  int32_t reserved;   /**< 0. */
  int64_t timeout_ms; /**< Longest that a wait may take. 0: 30000. */
  ncclxrtAllgather_t allgather;
  void *context;
  const char *driver;       /**< Library with the driver's functions. NULL: libcuda.so.1. */
  ncclxrtFailure_t failure; /**< NULL: nothing is known but by deadlines. Ranks that are processes
                                 of a job of ncclxrt/abi.h give ncclxrtCommAllgather, this one
                                 ncclxrtCommFailure, and as context the job's communicator. */
} ncclxrtCudaConfig_t;
#define NCCLXRT_CUDA_CONFIG_INIT {sizeof(ncclxrtCudaConfig_t), 0, 1, 0, 0, 0, 0, 0, 0, 0}

/** How many GPUs there are, and of the first the compute capability (90 is 9.0) and the name, cut
 * to `size`. `driver` as in ncclxrtCudaConfig_t. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaDevices(const char *driver, int32_t *count,
                                                  int32_t *architecture, char *name, size_t size);

/** Joins. Collective: every GPU must reach every other by load and store. On failure *comm is NULL.
 */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaInit(const ncclxrtCudaConfig_t *config,
                                               ncclxrtCudaComm_t *comm);
/** Frees everything made with the communicator. The caller's streams must have left its work; the
 *  other ranks must have left this one's memory (a barrier of the caller). Collective where ranks
 *  are processes, since nobody frees what another still maps; after a failure it waits for nobody.
 *  With a plan or a graph left it is refused. NULL is a no-op. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaDestroy(ncclxrtCudaComm_t comm);

/** Makes `bytes` of device memory of every rank reachable from every other. Collective. With
 * `memory` NULL it is allocated, zeroed; else it is the caller's (cudaMalloc, or a part of one),
 * which stays his to free after ncclxrtCudaDestroy. peers[r] is rank r's memory as this GPU sees
 * it; an array of nranks. The caller's may also be what he has made and mapped (cuMemCreate,
 * cuMemMap): ranks that are processes then pass it as a file, for which it was made to be shared so
 * (CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), over sockets of their network name space. */
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

/** The sentence of the first error, or of the last call that was refused and did nothing; with NULL
 * that of this thread's last failed ncclxrtCudaInit. Belongs to the calling thread until its next
 * call. Any thread. */
NCCLXRT_EXPORT const char *ncclxrtCudaLastError(ncclxrtCudaComm_t comm);

/** For callers that bring nothing of CUDA's: a stream, given back by ncclxrtCudaDestroy; a copy
 *  between any two places of host and devices; the end of all that a stream holds, and then what
 *  ncclxrtCudaQuery says. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaStream(ncclxrtCudaComm_t comm, void **stream);
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaCopy(ncclxrtCudaComm_t comm, void *stream, void *to,
                                               const void *from, size_t bytes);
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaSynchronize(ncclxrtCudaComm_t comm, void *stream);

typedef struct ncclxrtCudaGraph *ncclxrtCudaGraph_t; /**< Work of one stream, to be repeated. */

/** For the same callers: captures what the stream is given between the two calls, in the mode that
 *  leaves other threads alone; repeats it on any stream, with a deadline (ncclxrtCudaWatch). A
 * graph is destroyed when its last repetition is done, before what it uses. NULL is a no-op. Ranks
 * that share a GPU have all ended their captures before one of them launches. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaCaptureBegin(ncclxrtCudaComm_t comm, void *stream);
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaCaptureEnd(ncclxrtCudaComm_t comm, void *stream,
                                                     ncclxrtCudaGraph_t *graph);
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaGraphLaunch(ncclxrtCudaGraph_t graph, void *stream);
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaGraphDestroy(ncclxrtCudaGraph_t graph);

/* ------------------------------------------------------------------ programs on streams
 *
 * A compiled program (ncclxrt/abi.h, group B, here under the names ncclxrtCuda_*) enqueues instead
 * of doing: each lane is a stream, copies are those of the copy engines, signals and waits are
 * stream memory operations, reductions and computations kernels. No host thread is on the path.
 * Kernels are loaded when the plan is prepared; the process sets CUDA_MODULE_LOADING=EAGER before
 * its first call of CUDA, and CUDA_DEVICE_MAX_CONNECTIONS to 32: a stream that waits must not share
 * a queue of the hardware with one that it waits for.
 */

typedef struct ncclxrtCudaPlan *ncclxrtCudaPlan_t; /**< A program of one rank on one GPU. */

/** Matrices, by columns: the element at (row, column) of number `i` lies at the address of the
 * launch's `argument`, `offset` bytes and i * batch_stride + column * ld + row elements on. */
typedef struct ncclxrtCudaMatrix {
  int32_t argument;
  int32_t dtype;
  int32_t transposed;   /**< Of a and b: its rows are what is multiplied as columns. */
  int32_t scale;        /**< Of a and b, of 8-bit floats: the argument with an f32 that all elements
                             are multiplied with; -1: 1. */
  int64_t offset;       /**< Bytes. */
  int64_t scale_offset; /**< Bytes, from that argument. */
  int64_t ld;           /**< Elements. */
  int64_t batch_stride; /**< Elements; 0: one matrix for all. */
} ncclxrtCudaMatrix_t;

/** Products of matrices, d = alpha a b + beta c, where a is m x k and b is k x n, `batch` times.
 * `c` has the shape and the type of `d`, which may be the same memory. */
typedef struct ncclxrtCudaGemm {
  int64_t m, n, k, batch; /**< Any may be 0. */
  ncclxrtCudaMatrix_t a, b, c, d;
  double alpha, beta; /**< With a beta of 0 c is not read. */
  int32_t accumulate; /**< ncclxrtF32, or ncclxrtF64 of f64. */
  int32_t tf32;       /**< Not 0: factors of f32 may be rounded to 11 bits. */
  int32_t sms;        /**< It is to leave the GPU's other multiprocessors alone; 0: it takes all. */
  int32_t reserved;   /**< 0. */
} ncclxrtCudaGemm_t;

/** An entry of the plan's module, which takes so many addresses and, if it wants scratch memory,
 * the address of that. */
typedef struct ncclxrtCudaKernelDesc {
  const char *name;
  int32_t blocks, threads;
  int32_t num_arguments;
  int32_t reserved; /**< 0. */
  uint64_t scratch_bytes;
  const ncclxrtCudaGemm_t *gemm; /**< Not NULL: no entry, but this by cuBLASLt, in up to that much
                                      scratch memory, which all such share. */
} ncclxrtCudaKernelDesc_t;

/** A module that was compiled ahead of time: machine code of one architecture. */
typedef struct ncclxrtCudaImage {
  const char *key;      /**< ncclxrtCudaImageKey of its text. */
  int32_t architecture; /**< 90 is 9.0. */
  int32_t reserved;     /**< 0. */
  const void *data;
  size_t bytes;
} ncclxrtCudaImage_t;

/** A reduction that a program does, as ncclxrtCuda_reduce takes it. */
typedef struct ncclxrtCudaReduction {
  int32_t kind, dtype, acc_dtype;
  int32_t scaled;  /**< Not 0: each contribution is multiplied before it is added. */
  int32_t divided; /**< Not 0: the sum is divided. */
} ncclxrtCudaReduction_t;

/** Queues of a GPU's hardware, in each of which one stream can wait; and streams of a rank that are
 * no lanes: the one that its runs are given, and the communicator's own. */
enum { ncclxrtCudaQueues = 32, ncclxrtCudaOtherStreams = 2 };

typedef struct ncclxrtCudaPlanDesc {
  size_t struct_size;
  const ncclxrtPlanDesc_t *plan; /**< With a trace_capacity: a timeline (ncclxrtCudaPlanTrace). */
  const int64_t *slot_writers;   /**< Of each of its slot arrays: ranks that raise one counter. */
  void *const *memory;           /**< Of each of its windows: the caller's memory, as for
                                      ncclxrtCudaWindow, or NULL; NULL: all are allocated. */
  const char *module;            /**< PTX with the entries; NULL without. */
  const ncclxrtCudaKernelDesc_t *kernels;
  size_t num_kernels;
  int32_t one_stream;   /**< Not 0: all lanes on one stream; the program's serial form must hold.
                             So it is, too, where no streams are given and those of all ranks of a
                             GPU are more than ncclxrtCudaQueues. */
  int32_t ranks;        /**< That the program is made for; 0: any number. */
  const char *cache;    /**< Folder of compiled kernels of the runtime; NULL: none. */
  const char *nvrtc;    /**< Library that compiles them; NULL: libnvrtc.so of CUDA 13 or 12. */
  const char *headers;  /**< The toolkit's; NULL: /usr/local/cuda/include. */
  void *const *streams; /**< The caller's, of each lane (of all with one_stream), each for one lane,
                             which stay his to destroy after the plan; NULL: the plan's own. */
  const ncclxrtCudaReduction_t *reductions; /**< What the runtime's kernels do at least. */
  size_t num_reductions;
  const ncclxrtCudaImage_t *images; /**< Not empty: nothing is compiled, all kernels are here, or
                                         the plan is refused. Read while it is prepared. */
  size_t num_images;
  const char *cublaslt; /**< Library for products; NULL: libcublasLt.so of CUDA 13 or 12. */
} ncclxrtCudaPlanDesc_t;
#define NCCLXRT_CUDA_PLAN_DESC_INIT                                                                \
  {sizeof(ncclxrtCudaPlanDesc_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/** Makes windows and counters, checks the program by calling it once with nothing enqueued, and
 *  loads its kernels. Collective; an error of one rank is one of all. The memory is the
 *  communicator's. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaPlanPrepare(ncclxrtCudaComm_t comm,
                                                      const ncclxrtCudaPlanDesc_t *desc,
                                                      ncclxrtProgram_t program,
                                                      ncclxrtCudaPlan_t *plan);
/** This rank's device memory of one generation of a window. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaPlanBuffer(ncclxrtCudaPlan_t plan, size_t window,
                                                     int32_t generation, void **data,
                                                     size_t *bytes);
/** Enqueues one run behind what the stream holds, and the stream behind the run; with a deadline
 *  (ncclxrtCudaWatch). While the stream is captured, the run becomes part of the graph, on all
 * ranks alike. A replay cannot count: in a plan of ncclxrtCudaPlanPrepare waits leave their counters
 * at 0 where that keeps a run from the next one, and elsewhere it begins and ends with a meeting of
 * all ranks; so replays and other runs may follow each other in any order.
 */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaPlanRun(ncclxrtCudaPlan_t plan, void *stream);
/** When each op of the last run began and ended, of a plan that was prepared with a timeline, and
 * how wrong each time may be: one clock for all ranks of this machine (CLOCK_MONOTONIC).
 * `captured`: of the last run that was captured, as it was replayed last. Of a program that is one
 * kernel, `op` counts what a block does, `lane` is the block, and the last run is told whichever it
 * was. When that run and what was enqueued behind it are done; valid until the plan's next call. A
 * timeline adds no waits, but marks between ops: an event on a stream, two stores in a kernel.
 * Without, nothing is added. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaPlanTrace(ncclxrtCudaPlan_t plan, int32_t captured,
                                                    const ncclxrtTraceEvent_t **events,
                                                    size_t *count, int64_t *error_ns);
/** Waits until all that its runs have enqueued is done; after an abort, too, which ends their
 * waits. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaPlanWait(ncclxrtCudaPlan_t plan);
/** When its last run is done, and that of every other rank which this process has on the same GPU:
 *  giving back memory waits for all of a GPU's streams, and nobody can end their waits meanwhile.
 * NULL is a no-op. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaPlanDestroy(ncclxrtCudaPlan_t plan);

/** A program as one kernel (ncclx-translate --ctran-to-cuda without its launcher): device code
 * whose entry takes one struct of 64-bit words: the address of each window at each rank, of each
 * array of counters at each rank (an array that there is none of has one entry), of a word a block,
 * the guard, and the rank; with sizes one word more. */
typedef struct ncclxrtCudaKernelPlanDesc {
  size_t struct_size;
  const char *name;
  const char *source;
  const char *entry;
  int32_t blocks, threads;
  const uint64_t *windows; /**< Bytes of each, all generations. */
  void *const *memory;     /**< As in ncclxrtCudaPlanDesc_t. */
  size_t num_windows;
  const uint64_t *slots; /**< Words of each array, all generations. */
  size_t num_slots;
  const char *cache, *nvrtc, *headers; /**< As in ncclxrtCudaPlanDesc_t, and so are these: */
  const ncclxrtCudaImage_t *images;
  size_t num_images;
  int32_t ranks;
  int32_t timeline_ops; /**< Not 0: so many ops that a block does in a run. The entry's first word
                             is then the address of two words for each and each block
                             (ncclxrt/device/timeline.cuh), and the module has ncclxrt_clock, which
                             tells the time to an address. */
  const char *const *sizes; /**< What each size that the kernel reads is called when it is wrong:
                               its failure names the last word of the struct, and its place here. */
  size_t num_sizes;
} ncclxrtCudaKernelPlanDesc_t;
#define NCCLXRT_CUDA_KERNEL_PLAN_DESC_INIT                                                         \
  {sizeof(ncclxrtCudaKernelPlanDesc_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/** Makes windows and counters, compiles and loads the kernel. Collective, and compared between
 * ranks. Refused where the blocks of all ranks that share a GPU would not fit on it at once, since
 * they wait for each other. The plan is used as one of ncclxrtCudaPlanPrepare; a run is one launch,
 *  which can be captured, and its waits have deadlines of their own. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaKernelPrepare(ncclxrtCudaComm_t comm,
                                                        const ncclxrtCudaKernelPlanDesc_t *desc,
                                                        ncclxrtCudaPlan_t *plan);

/** A window of a plan that callers fill before a run, read after it, or both. */
typedef struct ncclxrtCudaBuffer {
  uint64_t window;
  int32_t in, out; /**< 0 or 1. */
} ncclxrtCudaBuffer_t;

/** ncclxrtCudaPlanRun on the caller's memory: `memory[i]`, of this rank's GPU, stands for
 * `buffers[i]`. Where it is NULL, or is the plan's own memory (ncclxrtCudaPlanBuffer), nothing is
 * copied; elsewhere the stream copies it in before the run and out of the plan's memory after it.
 * `memory` may be NULL. What is not memory, or a stream, of the rank's GPU is refused: then nothing
 * has been enqueued, and the communicator is as before. */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaPlanLaunch(ncclxrtCudaPlan_t plan, void *stream,
                                                     const ncclxrtCudaBuffer_t *buffers,
                                                     size_t num_buffers, void *const *memory);

/* ------------------------------------------------------------------ ahead of time
 *
 * What makes images, on a machine without a GPU. Any thread; what is given belongs to the calling
 * thread until its next call of the same function, and errors are told by
 * ncclxrtCudaLastError(NULL).
 */

/** Names an image: by its text (CUDA C++ or PTX), the architecture and the device library. */
NCCLXRT_EXPORT const char *ncclxrtCudaImageKey(const char *text, int32_t architecture);
/** The CUDA C++ of the runtime's own kernels that a program with these reductions needs; NULL for
 * one that no GPU does. A plan wants its image if its program reduces or raises by kernels. */
NCCLXRT_EXPORT const char *ncclxrtCudaReductionSource(const ncclxrtCudaReduction_t *reductions,
                                                      size_t num_reductions);
/** Compiles CUDA C++ as preparing a plan does. `nvrtc` and `headers` as in ncclxrtCudaPlanDesc_t.
 */
NCCLXRT_EXPORT ncclxrtResult_t ncclxrtCudaCompile(const char *source, int32_t architecture,
                                                  const char *nvrtc, const char *headers,
                                                  const void **image, size_t *bytes);

/** Group B: as the functions of ncclxrt/abi.h without `Cuda`. */
NCCLXRT_EXPORT int64_t ncclxrtCuda_rank(int64_t exec);
NCCLXRT_EXPORT int64_t ncclxrtCuda_run(int64_t exec);
NCCLXRT_EXPORT int32_t ncclxrtCuda_copy(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                        int64_t dst_window, int64_t dst_peer, int64_t dst_offset,
                                        int64_t dst_rows, int64_t dst_stride, int64_t dst_row_bytes,
                                        int64_t src_window, int64_t src_peer, int64_t src_offset,
                                        int64_t src_rows, int64_t src_stride, int64_t src_row_bytes,
                                        int64_t notify_slots, int64_t notify_peer,
                                        int64_t notify_index);
/** As ncclxrt_count, but it is the stream that reads the size when it comes to it: one that is out
 *  of range is then an error of this rank (ncclxrtCudaQuery), and nothing of it is copied. The host
 *  never knows it: ncclxrtCuda_size numbers the sizes of a run, which is what
 *  ncclxrtCuda_copy_sized takes. A program reads as many in each run. */
NCCLXRT_EXPORT int32_t ncclxrtCuda_count(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                         int64_t window, int64_t offset, int64_t bytes,
                                         int64_t max);
/** The number of the size that was read last. */
NCCLXRT_EXPORT int64_t ncclxrtCuda_size(int64_t exec);
/** A copy, by a kernel, of the first `size` units of each row; rows are those of whole boxes. In
 * own memory zeros follow, to the end of each row. */
NCCLXRT_EXPORT int32_t ncclxrtCuda_copy_sized(
    int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t dst_window, int64_t dst_peer,
    int64_t dst_offset, int64_t dst_rows, int64_t dst_stride, int64_t dst_row_bytes,
    int64_t src_window, int64_t src_peer, int64_t src_offset, int64_t src_rows, int64_t src_stride,
    int64_t src_row_bytes, int64_t notify_slots, int64_t notify_peer, int64_t notify_index,
    int64_t size, int64_t dst_unit, int64_t src_unit);
/** Floats of less than 32 bits are added in f32, all else in itself; a sum is scaled or divided. */
NCCLXRT_EXPORT int32_t ncclxrtCuda_reduce(
    int32_t status, int64_t exec, int64_t op, int64_t lane, int64_t kind, int64_t dtype,
    int64_t acc_dtype, int64_t scale, int64_t divisor, int64_t dst_window, int64_t dst_peer,
    int64_t dst_offset, int64_t dst_rows, int64_t dst_stride, int64_t dst_row_bytes,
    int64_t a_window, int64_t a_peer, int64_t a_offset, int64_t a_rows, int64_t a_stride,
    int64_t a_row_bytes, int64_t count, int64_t a_step, int64_t b_window, int64_t b_peer,
    int64_t b_offset, int64_t b_rows, int64_t b_stride, int64_t b_row_bytes);
NCCLXRT_EXPORT int32_t ncclxrtCuda_signal(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                          int64_t slots, int64_t peer, int64_t index);
NCCLXRT_EXPORT int32_t ncclxrtCuda_wait(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                        int64_t slots, int64_t index, int64_t count, int64_t value);
NCCLXRT_EXPORT int32_t ncclxrtCuda_flush(int32_t status, int64_t exec, int64_t op, int64_t lane);
/** The lane's next op comes after all that `other` has been given. */
NCCLXRT_EXPORT int32_t ncclxrtCuda_order(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                         int64_t other);
/** The next launch's next argument: the own memory of a window, of this run. */
NCCLXRT_EXPORT int32_t ncclxrtCuda_argument(int32_t status, int64_t exec, int64_t window);
/** Launches a kernel of the plan. */
NCCLXRT_EXPORT int32_t ncclxrtCuda_launch(int32_t status, int64_t exec, int64_t op, int64_t lane,
                                          int64_t kernel);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* NCCLXRT_CUDA_H */
