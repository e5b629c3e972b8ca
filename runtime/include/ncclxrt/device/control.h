//===- control.h - How a rank's kernels are told to give up -----*- C++ -*-===//
#ifndef NCCLXRT_DEVICE_CONTROL_H
#define NCCLXRT_DEVICE_CONTROL_H

#include <cstdint>

namespace ncclxrt::device {

/// What a kernel has failed for.
enum FailureKind : uint32_t { waitGaveUp = 0, sizeOutOfRange = 1 };

/// Where a kernel failed, for the one line that the host prints.
struct Failure {
  uint64_t expected, found; ///< of a size the greatest, and what it is
  uint32_t step; ///< number of the op in its program; of a size the communicator's of its place
  uint32_t peer; ///< whose signal or packet did not come
  uint32_t block;
  uint32_t kind; ///< FailureKind
};

/// One a rank, in host memory that its device maps. Kernels and host write it; a wait reads `abort`
/// now and then, so that it ends soon after the word is set.
struct Control {
  uint32_t abort;  ///< not 0: leave every wait
  uint32_t failed; ///< 1: claimed by who fills `failure`; 2: filled
  Failure failure;
};

/// What every kernel of a rank is given.
struct Guard {
  Control *control;   ///< as the device sees it
  uint64_t timeoutNs; ///< longest that one wait may take
};

/// Added to the counter of a stream's wait to release it on abort: the wait compares in a circle,
/// so the value must lie ahead of any that it waits for, and by less than half of the circle.
constexpr uint32_t abortValue = 0x40000000;
constexpr uint64_t abortCount = uint64_t(1) << 62;

} // namespace ncclxrt::device

#endif // NCCLXRT_DEVICE_CONTROL_H
