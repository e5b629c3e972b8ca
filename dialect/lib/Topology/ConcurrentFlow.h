//===- ConcurrentFlow.h - A near-optimal dual of concurrent flow ----------===//
#ifndef NCCLX_LIB_TOPOLOGY_CONCURRENTFLOW_H
#define NCCLX_LIB_TOPOLOGY_CONCURRENTFLOW_H

#include "CutGraph.h"

namespace mlir::ncclx::topology {

/// Link lengths found by multiplicative weights, and what they are worth.
struct ConcurrentMetric {
  /// By arc, whole numbers. Any lengths give a valid bound, so the search may be in floating point
  /// and the bound exact.
  std::vector<int64_t> lengths;
  /// Seconds in which fractional routing that was found moves one byte for each pair: the optimum
  /// is at most this.
  double routed = 0;
};

/// One byte from each first vertex to each second.
ConcurrentMetric concurrentMetric(const FlowGraph &graph,
                                  llvm::ArrayRef<std::pair<unsigned, unsigned>> pairs);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_CONCURRENTFLOW_H
