//===- signal.cuh - Signals between blocks of several devices ---*- C++ -*-===//
#ifndef NCCLXRT_DEVICE_SIGNAL_CUH
#define NCCLXRT_DEVICE_SIGNAL_CUH

#include "ncclxrt/device/control.h"
#include "ncclxrt/device/memory.cuh"

namespace ncclxrt::device {

/// The first failure of a rank is told; its waits end, in kernels and in streams.
__device__ __forceinline__ void giveUp(Control *control, const Failure &failure) {
  if (atomicCAS_system(&control->failed, 0, 1) == 0) {
    control->failure = failure;
    __threadfence_system();
    atomicExch_system(&control->failed, 2);
  }
  atomicExch_system(&control->abort, 1);
}

/// The patience of one wait: asks for the time and for an abort only now and then, since both are
/// far away.
class Patience {
public:
  __device__ __forceinline__ Patience(const Guard &guard, uint32_t step, uint32_t peer)
      : guard(guard), step(step), peer(peer) {}

  /// False: give up. `expected` and `found` go into the report.
  __device__ __forceinline__ bool again(uint64_t expected, uint64_t found) {
    return (++polls & 1023) != 0 || stillGood(expected, found);
  }

private:
  const Guard &guard;
  uint32_t step, peer, polls = 0;
  uint64_t since = 0;

  __device__ __noinline__ bool stillGood(uint64_t expected, uint64_t found) {
    if (*reinterpret_cast<volatile uint32_t *>(&guard.control->abort))
      return false;
    uint64_t now = nowNs();
    if (!since)
      since = now;
    if (now - since < guard.timeoutNs)
      return true;
    giveUp(guard.control, {expected, found, step, peer, blockIdx.x, waitGaveUp});
    return false;
  }
};

/// One thread waits until *slot is at least `value`. False: given up.
template <Scope S = Scope::System>
__device__ __forceinline__ bool waitSlot(const uint64_t *slot, uint64_t value, const Guard &guard,
                                         uint32_t step, uint32_t peer) {
  Patience patience(guard, step, peer);
  for (uint64_t found; (found = loadAcquire<S>(slot)) < value;)
    if (!patience.again(value, found))
      return false;
  return true;
}

/// The same for a counter that a stream's write sets, compared in a circle.
__device__ __forceinline__ bool waitStreamSlot(const uint32_t *slot, uint32_t value,
                                               const Guard &guard, uint32_t step, uint32_t peer) {
  Patience patience(guard, step, peer);
  for (uint32_t found; int32_t((found = loadAcquire<Scope::System>(slot)) - value) < 0;)
    if (!patience.again(value, found))
      return false;
  return true;
}

/// A block's signal: whatever its threads did before is released with it. Thread t raises slot(t)
/// for t in [0, count) to `value`.
template <Scope S = Scope::System, class SlotOf>
__device__ __forceinline__ void signalFromBlock(int count, uint64_t value, SlotOf slotOf) {
  __syncthreads();
  for (int t = threadIdx.x; t < count; t += blockDim.x)
    if (uint64_t *slot = slotOf(t))
      storeRelease<S>(slot, value);
}

/// The same of a kernel that has done nothing yet: there is nothing to release. What earlier kernels
/// wrote was performed before this one was let go on (awaitEarlierKernels), in memory of this GPU,
/// which peers read where it lies. A release would cost each block a fence: 1.5 us of 132 blocks.
template <class SlotOf>
__device__ __forceinline__ void firstSignalFromBlock(int count, uint64_t value, SlotOf slotOf) {
  for (int t = threadIdx.x; t < count; t += blockDim.x)
    if (uint64_t *slot = slotOf(t))
      storeRelaxed(slot, value);
}

/// The same for a counter that several raise, or one more than once in a run.
template <Scope S = Scope::System> __device__ __forceinline__ void raiseFromBlock(uint64_t *slot) {
  __syncthreads();
  if (threadIdx.x == 0)
    addRelease<S>(slot, uint64_t(1));
}

/// A block's wait: thread t waits for slot(t) to reach `value`, then the block goes on. What was
/// released with the signals is visible to all of its threads.
template <Scope S = Scope::System, class SlotOf>
__device__ __forceinline__ void waitInBlock(int count, uint64_t value, const Guard &guard,
                                            uint32_t step, SlotOf slotOf) {
  for (int t = threadIdx.x; t < count; t += blockDim.x)
    if (const uint64_t *slot = slotOf(t))
      waitSlot<S>(slot, value, guard, step, t);
  __syncthreads();
}

/// The number of the run, counted on the device so that a captured graph counts on: every block has
/// a word of its own.
class Epoch {
public:
  __device__ __forceinline__ explicit Epoch(uint64_t *words)
      : word(words + blockIdx.x), run(*word + 1) {}
  /// From 1; no memory starts with it.
  __device__ __forceinline__ operator uint64_t() const { return run; }
  /// Every thread of the block calls it when it has read the number.
  __device__ __forceinline__ void end() {
    __syncthreads();
    if (threadIdx.x == 0)
      *word = run;
  }

private:
  uint64_t *word;
  uint64_t run;
};

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_SIGNAL_CUH
