//===- memory.cuh - Loads, stores and fences, each of one scope -*- C++ -*-===//
//
// The only place of this library that speaks of the memory model. One function, one instruction;
// test/Cuda/ptx.test pins them.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_DEVICE_MEMORY_CUH
#define NCCLXRT_DEVICE_MEMORY_CUH

#include "ncclxrt/device/partition.h"

namespace ncclxrt::device {

/// Who is to see it: the threads of this device, or every device and the host.
enum class Scope { Device, System };

/// 16 bytes that are loaded and stored whole.
struct alignas(16) Unit {
  uint64_t low, high;
};

template <Scope S> __device__ __forceinline__ uint64_t loadAcquire(const uint64_t *p) {
  uint64_t v;
  if constexpr (S == Scope::System)
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  else
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}

template <Scope S> __device__ __forceinline__ uint32_t loadAcquire(const uint32_t *p) {
  uint32_t v;
  if constexpr (S == Scope::System)
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  else
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

/// Releases what this thread did, and what it has seen through a barrier of its block.
template <Scope S> __device__ __forceinline__ void storeRelease(uint64_t *p, uint64_t v) {
  if constexpr (S == Scope::System)
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
  else
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

/// Orders nothing.
__device__ __forceinline__ void storeRelaxed(uint64_t *p, uint64_t v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

/// Adds `v` and releases as storeRelease does.
template <Scope S> __device__ __forceinline__ void addRelease(uint32_t *p, uint32_t v) {
  if constexpr (S == Scope::System)
    asm volatile("red.release.sys.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
  else
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

template <Scope S> __device__ __forceinline__ void addRelease(uint64_t *p, uint64_t v) {
  if constexpr (S == Scope::System)
    asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
  else
    asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

template <Scope S> __device__ __forceinline__ void fence() {
  if constexpr (S == Scope::System)
    asm volatile("fence.acq_rel.sys;" ::: "memory");
  else
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/// A packet's unit: whole, seen by every device, and ordered after nothing.
__device__ __forceinline__ void storeUnit(void *p, Unit u) {
  asm volatile(
      "{ .reg .b128 t; mov.b128 t, {%1, %2}; st.relaxed.sys.global.b128 [%0], t; }" ::"l"(p),
      "l"(u.low), "l"(u.high)
      : "memory");
}
__device__ __forceinline__ Unit loadUnit(const void *p) {
  Unit u;
  asm volatile("{ .reg .b128 t; ld.relaxed.sys.global.b128 t, [%2]; mov.b128 {%0, %1}, t; }"
               : "=l"(u.low), "=l"(u.high)
               : "l"(p)
               : "memory");
  return u;
}

/// Waits until what this stream did before is complete and visible: a kernel that was launched as
/// a programmatic dependent may start early. Costs nothing in one that was not.
__device__ __forceinline__ void awaitEarlierKernels() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
/// Lets a programmatic dependent start once every block has come here or ended.
__device__ __forceinline__ void releaseLaterKernels() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/// Nanoseconds, comparable within one device.
__device__ __forceinline__ uint64_t nowNs() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_MEMORY_CUH
