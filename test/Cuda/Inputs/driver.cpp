// What the runtime declares of the driver's interface is what cuda.h declares.
#include <cuda.h>

#include "cuda/Driver.h"

#include <type_traits>

// cuda.h's enums are ints, and its structs have names of their own.
template <class T> struct Plain {
  using type = std::conditional_t<std::is_enum_v<T>, int, T>;
};
template <class T> struct Plain<T *> {
  using type = std::conditional_t<std::is_enum_v<T>, int *, T *>;
};
template <> struct Plain<CUipcMemHandle *> {
  using type = ncclxrt::cuda::IpcHandle *;
};
template <> struct Plain<CUuuid *> {
  using type = ncclxrt::cuda::Uuid *;
};
template <> struct Plain<const CUDA_MEMCPY2D *> {
  using type = const ncclxrt::cuda::Copy2D *;
};
template <> struct Plain<const CUlaunchConfig *> {
  using type = const ncclxrt::cuda::LaunchConfig *;
};
template <> struct Plain<const CUmemAccessDesc *> {
  using type = const ncclxrt::cuda::AccessDesc *;
};
template <> struct Plain<CUstreamBatchMemOpParams *> {
  using type = ncclxrt::cuda::MemoryOp *;
};
template <> struct Plain<CUipcMemHandle> {
  using type = ncclxrt::cuda::IpcHandle;
};
template <class F> struct Signature;
template <class R, class... A> struct Signature<R(A...)> {
  using type = int (*)(typename Plain<A>::type...);
};
// Names without a version are macros for the newest one.
#undef cuDevicePrimaryCtxRelease
#define NCCLXRT_CHECK(member, symbol, arguments)                                                   \
  static_assert(                                                                                   \
      std::is_same_v<Signature<decltype(symbol)>::type, decltype(ncclxrt::cuda::Driver::member)>,  \
      #symbol);
NCCLXRT_CUDA_DRIVER(NCCLXRT_CHECK)

using namespace ncclxrt::cuda;
static_assert(sizeof(IpcHandle) == sizeof(CUipcMemHandle));
static_assert(sizeof(Copy2D) == sizeof(CUDA_MEMCPY2D) && sizeof(Uuid) == sizeof(CUuuid));
static_assert(offsetof(Copy2D, from) == offsetof(CUDA_MEMCPY2D, srcDevice));
static_assert(offsetof(Copy2D, toType) == offsetof(CUDA_MEMCPY2D, dstMemoryType));
static_assert(offsetof(Copy2D, toPitch) == offsetof(CUDA_MEMCPY2D, dstPitch));
static_assert(offsetof(Copy2D, height) == offsetof(CUDA_MEMCPY2D, Height));
static_assert(success == CUDA_SUCCESS && outOfMemory == CUDA_ERROR_OUT_OF_MEMORY &&
              notReady == CUDA_ERROR_NOT_READY &&
              alreadyEnabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
static_assert(unifiedMemory == CU_MEMORYTYPE_UNIFIED && nonBlocking == CU_STREAM_NON_BLOCKING &&
              noTiming == CU_EVENT_DISABLE_TIMING && withTiming == CU_EVENT_DEFAULT &&
              recordInGraph == CU_EVENT_RECORD_EXTERNAL &&
              mappedHost == CU_MEMHOSTALLOC_DEVICEMAP &&
              lazyPeerAccess == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS &&
              waitAtLeast == CU_STREAM_WAIT_VALUE_GEQ &&
              writeDefault == CU_STREAM_WRITE_VALUE_DEFAULT);
static_assert(awaitOp == CU_STREAM_MEM_OP_WAIT_VALUE_64 &&
              writeOp == CU_STREAM_MEM_OP_WRITE_VALUE_64 &&
              sizeof(MemoryOp) == sizeof(CUstreamBatchMemOpParams) &&
              offsetof(MemoryOp, at) == offsetof(CUstreamBatchMemOpParams, waitValue.address) &&
              offsetof(MemoryOp, value) == offsetof(CUstreamBatchMemOpParams, waitValue.value64) &&
              offsetof(MemoryOp, flags) == offsetof(CUstreamBatchMemOpParams, writeValue.flags));
static_assert(capabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              capabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR &&
              has64BitStreamOps == CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
static_assert(bufferId == CU_POINTER_ATTRIBUTE_BUFFER_ID &&
              deviceOrdinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(sizeof(AccessDesc) == sizeof(CUmemAccessDesc) &&
              offsetof(AccessDesc, flags) == offsetof(CUmemAccessDesc, flags) &&
              posixFile == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
              onDevice == CU_MEM_LOCATION_TYPE_DEVICE &&
              readAndWrite == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute) &&
              sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(LaunchAttribute, allowed) == offsetof(CUlaunchAttribute, value));
static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream) &&
              offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs) &&
              offsetof(LaunchConfig, numAttributes) == offsetof(CUlaunchConfig, numAttrs) &&
              offsetof(LaunchConfig, threads) == offsetof(CUlaunchConfig, blockDimX));
static_assert(captureOfThread == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
              programmaticSerialization == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
