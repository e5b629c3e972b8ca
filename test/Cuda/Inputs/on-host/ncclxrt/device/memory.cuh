//===- memory.cuh - The device library's memory model, by atomics of C++ -*- C++ -*-===//
#ifndef NCCLXRT_DEVICE_MEMORY_CUH
#define NCCLXRT_DEVICE_MEMORY_CUH

#include "ncclxrt/device/partition.h"

#include <chrono>

namespace ncclxrt::device {

enum class Scope { Device, System };
struct alignas(16) Unit {
  uint64_t low, high;
};

template <Scope S, class Word> Word loadAcquire(const Word *p) {
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
template <Scope S, class Word> void storeRelease(Word *p, Word v) {
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
}
/// Threads are not kernels: what the others did is seen by those who acquire what this one has.
inline void storeRelaxed(uint64_t *p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
template <Scope S, class Word> void addRelease(Word *p, Word v) {
  __atomic_fetch_add(p, v, __ATOMIC_RELEASE);
}
inline void awaitEarlierKernels() {}
inline void releaseLaterKernels() {}
inline uint64_t nowNs() {
  return uint64_t(std::chrono::steady_clock::now().time_since_epoch().count());
}

} // namespace ncclxrt::device
#endif // NCCLXRT_DEVICE_MEMORY_CUH
