//===- Measure.h - What this machine's cores, memory and sockets do ---------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_MEASURE_H
#define NCCLX_LIB_TOPOLOGY_MEASURE_H

#include <optional>

namespace mlir::ncclx::topology {

/// Copied bytes/s of `threads` threads together, each over a buffer that no cache holds.
double copyRate(unsigned threads);

/// FLOP/s of one core that multiplies and adds f32 vectors from its first-level cache, as plain
/// compiled C++ does it. Not the core's peak.
double multiplyRate();

/// A TCP connection of this machine with itself.
struct LoopbackRates {
  double bytesPerSec = 0; ///< one way, one thread at each end
  double seconds = 0;     ///< until a short message is read
};
/// Nothing where this machine has no loopback interface that answers within a second.
std::optional<LoopbackRates> loopbackRates();

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_MEASURE_H
