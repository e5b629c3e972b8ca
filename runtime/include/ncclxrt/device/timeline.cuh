//===- timeline.cuh - When a kernel's ops begin and end ---------*- C++ -*-===//
#ifndef NCCLXRT_DEVICE_TIMELINE_CUH
#define NCCLXRT_DEVICE_TIMELINE_CUH

#include "ncclxrt/device/memory.cuh"

namespace ncclxrt::device {

/// Each block notes when it came to each of its ops and when its last warp left it, in nanoseconds
/// of the device: words[op][block][2], by the order in which it does them. Nothing is reset, since
/// a run's times are later than those before it, and nothing waits.
class Timeline {
public:
  __device__ __forceinline__ explicit Timeline(uint64_t *words)
      : at(words + 2 * int64_t(blockIdx.x)) {}
  __device__ __forceinline__ void begin() {
    if (threadIdx.x == 0)
      *at = nowNs();
  }
  __device__ __forceinline__ void end() {
    if (threadIdx.x % 32 == 0)
      atomicMax(reinterpret_cast<unsigned long long *>(at + 1), nowNs());
    at += 2 * int64_t(gridDim.x);
  }

  /// The next op was done together with the one before.
  __device__ __forceinline__ void again() {
    if (threadIdx.x == 0)
      *at = *(at - 2 * int64_t(gridDim.x));
    end();
  }

private:
  uint64_t *at;
};

/// For the host, to find out how its clock and the device's differ.
__device__ __forceinline__ void tellTimelineClock(uint64_t *to) {
  storeRelease<Scope::System>(to, nowNs());
}

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_TIMELINE_CUH
