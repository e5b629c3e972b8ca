//===- Driver.h - The CUDA driver, loaded at run time ------------*- C++ -*-===//
//
// The few types and functions of the driver's interface that the runtime calls, declared here as
// NVIDIA's cuda.h (12 and later) documents them: building needs no toolkit, and a test loads a
// library of its own in the driver's place. test/Cuda/driver.test holds them against cuda.h where
// there is one.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_LIB_CUDA_DRIVER_H
#define NCCLXRT_LIB_CUDA_DRIVER_H

#include <cstddef>
#include <cstdint>
#include <string>

struct CUstream_st;
struct CUevent_st;
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace ncclxrt::cuda {

using Address = unsigned long long;
using Stream = CUstream_st *;
using Event = CUevent_st *;
using Context = CUctx_st *;
using Module = CUmod_st *;
using Function = CUfunc_st *;
using Graph = CUgraph_st *;
using GraphExec = CUgraphExec_st *;

struct IpcHandle { // CUipcMemHandle
  char reserved[64];
};
struct Uuid { // CUuuid
  char bytes[16];
};
using MemoryHandle = unsigned long long; // CUmemGenericAllocationHandle
struct AccessDesc {                      // CUmemAccessDesc
  struct {
    int type, id;
  } location;
  int flags;
};
struct MemoryOp { // CUstreamBatchMemOpParams
  int kind, padding;
  Address at;
  uint64_t value;
  unsigned flags, more;
  uint64_t rest[2];
};
struct Copy2D { // CUDA_MEMCPY2D
  size_t fromX, fromY;
  int fromType;
  const void *fromHost;
  Address from;
  void *fromArray;
  size_t fromPitch;
  size_t toX, toY;
  int toType;
  void *toHost;
  Address to;
  void *toArray;
  size_t toPitch;
  size_t width, height;
};
struct LaunchAttribute { // CUlaunchAttribute, of which one kind is used here
  int id;
  int padding;
  int allowed; // of programmaticSerialization
  char rest[60];
};
struct LaunchConfig { // CUlaunchConfig
  unsigned blocks[3], threads[3], sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};

// Results and flags.
constexpr int success = 0, outOfMemory = 2, notReady = 600, alreadyEnabled = 704;
constexpr int unifiedMemory = 4;
constexpr int posixFile = 1, onDevice = 1, readAndWrite = 3; // of memory that is mapped
constexpr unsigned nonBlocking = 1, noTiming = 2, mappedHost = 2, lazyPeerAccess = 1,
                   withTiming = 0, recordInGraph = 1;
constexpr unsigned waitAtLeast = 0, writeDefault = 0;
constexpr int awaitOp = 4, writeOp = 5;        // of 64 bits
constexpr size_t mostMemoryOps = 256;          // in a batch
constexpr int bufferId = 7, deviceOrdinal = 9; // CU_POINTER_ATTRIBUTE_*
constexpr int captureOfThread = 1, programmaticSerialization = 6;
constexpr int multiprocessors = 16, capabilityMajor = 75, capabilityMinor = 76,
              has64BitStreamOps = 122;

/// Name of the member, of the function, and its arguments.
#define NCCLXRT_CUDA_DRIVER(F)                                                                     \
  F(init, cuInit, (unsigned))                                                                      \
  F(errorString, cuGetErrorString, (int, const char **))                                           \
  F(deviceCount, cuDeviceGetCount, (int *))                                                        \
  F(deviceGet, cuDeviceGet, (int *, int))                                                          \
  F(deviceName, cuDeviceGetName, (char *, int, int))                                               \
  F(deviceAttribute, cuDeviceGetAttribute, (int *, int, int))                                      \
  F(deviceUuid, cuDeviceGetUuid_v2, (Uuid *, int))                                                 \
  F(canAccessPeer, cuDeviceCanAccessPeer, (int *, int, int))                                       \
  F(retainContext, cuDevicePrimaryCtxRetain, (Context *, int))                                     \
  F(releaseContext, cuDevicePrimaryCtxRelease_v2, (int))                                           \
  F(setContext, cuCtxSetCurrent, (Context))                                                        \
  F(enablePeer, cuCtxEnablePeerAccess, (Context, unsigned))                                        \
  F(synchronizeContext, cuCtxSynchronize, ())                                                      \
  F(allocate, cuMemAlloc_v2, (Address *, size_t))                                                  \
  F(free, cuMemFree_v2, (Address))                                                                 \
  F(allocateHost, cuMemHostAlloc, (void **, size_t, unsigned))                                     \
  F(freeHost, cuMemFreeHost, (void *))                                                             \
  F(hostAddress, cuMemHostGetDevicePointer_v2, (Address *, void *, unsigned))                      \
  F(addressRange, cuMemGetAddressRange_v2, (Address *, size_t *, Address))                         \
  F(pointerAttribute, cuPointerGetAttribute, (void *, int, Address))                               \
  F(ipcHandle, cuIpcGetMemHandle, (IpcHandle *, Address))                                          \
  F(ipcOpen, cuIpcOpenMemHandle_v2, (Address *, IpcHandle, unsigned))                              \
  F(ipcClose, cuIpcCloseMemHandle, (Address))                                                      \
  F(retainHandle, cuMemRetainAllocationHandle, (MemoryHandle *, void *))                           \
  F(releaseHandle, cuMemRelease, (MemoryHandle))                                                   \
  F(exportHandle, cuMemExportToShareableHandle, (void *, MemoryHandle, int, unsigned long long))   \
  F(importHandle, cuMemImportFromShareableHandle, (MemoryHandle *, void *, int))                   \
  F(reserve, cuMemAddressReserve, (Address *, size_t, size_t, Address, unsigned long long))        \
  F(freeReserved, cuMemAddressFree, (Address, size_t))                                             \
  F(map, cuMemMap, (Address, size_t, size_t, MemoryHandle, unsigned long long))                    \
  F(unmap, cuMemUnmap, (Address, size_t))                                                          \
  F(setAccess, cuMemSetAccess, (Address, size_t, const AccessDesc *, size_t))                      \
  F(fill, cuMemsetD8Async, (Address, unsigned char, size_t, Stream))                               \
  F(copy, cuMemcpyAsync, (Address, Address, size_t, Stream))                                       \
  F(copy2D, cuMemcpy2DAsync_v2, (const Copy2D *, Stream))                                          \
  F(createStream, cuStreamCreate, (Stream *, unsigned))                                            \
  F(destroyStream, cuStreamDestroy_v2, (Stream))                                                   \
  F(synchronize, cuStreamSynchronize, (Stream))                                                    \
  F(streamContext, cuStreamGetCtx, (Stream, Context *))                                            \
  F(isCapturing, cuStreamIsCapturing, (Stream, int *))                                             \
  F(beginCapture, cuStreamBeginCapture_v2, (Stream, int))                                          \
  F(endCapture, cuStreamEndCapture, (Stream, Graph *))                                             \
  F(instantiate, cuGraphInstantiateWithFlags, (GraphExec *, Graph, unsigned long long))            \
  F(uploadGraph, cuGraphUpload, (GraphExec, Stream))                                               \
  F(launchGraph, cuGraphLaunch, (GraphExec, Stream))                                               \
  F(destroyGraph, cuGraphDestroy, (Graph))                                                         \
  F(destroyGraphExec, cuGraphExecDestroy, (GraphExec))                                             \
  F(waitEvent, cuStreamWaitEvent, (Stream, Event, unsigned))                                       \
  F(waitValue32, cuStreamWaitValue32_v2, (Stream, Address, uint32_t, unsigned))                    \
  F(writeValue32, cuStreamWriteValue32_v2, (Stream, Address, uint32_t, unsigned))                  \
  F(waitValue64, cuStreamWaitValue64_v2, (Stream, Address, uint64_t, unsigned))                    \
  F(writeValue64, cuStreamWriteValue64_v2, (Stream, Address, uint64_t, unsigned))                  \
  F(memoryOps, cuStreamBatchMemOp_v2, (Stream, unsigned, MemoryOp *, unsigned))                    \
  F(createEvent, cuEventCreate, (Event *, unsigned))                                               \
  F(destroyEvent, cuEventDestroy_v2, (Event))                                                      \
  F(record, cuEventRecord, (Event, Stream))                                                        \
  F(recordFlags, cuEventRecordWithFlags, (Event, Stream, unsigned))                                \
  F(queryEvent, cuEventQuery, (Event))                                                             \
  F(elapsed, cuEventElapsedTime, (float *, Event, Event))                                          \
  F(loadModule, cuModuleLoadData, (Module *, const void *))                                        \
  F(unloadModule, cuModuleUnload, (Module))                                                        \
  F(getFunction, cuModuleGetFunction, (Function *, Module, const char *))                          \
  F(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, Function, int, size_t))        \
  F(launchEx, cuLaunchKernelEx, (const LaunchConfig *, Function, void **, void **))                \
  F(launch, cuLaunchKernel,                                                                        \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream,       \
     void **, void **))

/// All of them; every one returns a CUresult.
struct Driver {
#define NCCLXRT_MEMBER(member, symbol, arguments) int(*member) arguments = nullptr;
  NCCLXRT_CUDA_DRIVER(NCCLXRT_MEMBER)
#undef NCCLXRT_MEMBER

  /// The driver in the library `path` (NULL: libcuda.so.1), initialised, or NULL and why. Loaded
  /// once a process for each path; stays. Any thread.
  static const Driver *load(const char *path, std::string &why);
  /// What a result means, as the driver says it.
  std::string text(int result) const;
};

/// dlopen() of a library that the user may have named; NULL and why.
void *openLibrary(const std::string &path, std::string &why);

} // namespace ncclxrt::cuda

#endif // NCCLXRT_LIB_CUDA_DRIVER_H
