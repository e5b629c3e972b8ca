//===- ConcurrentFlow.h - Moving many amounts at once -----------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_CONCURRENTFLOW_H
#define NCCLX_LIB_TOPOLOGY_CONCURRENTFLOW_H

#include "CutGraph.h"

namespace mlir::ncclx::topology {

/// An amount to be moved from one vertex to another.
struct Demand {
  unsigned from, to;
  uint64_t amount;
};

/// Both halves of a proof: a routing, and lengths that no routing can beat.
struct ConcurrentFlow {
  /// By arc, whole numbers, not all zero. Any lengths give a valid bound, so they may come from
  /// floating point and the bound still be exact: amounts times distances, over capacities times
  /// lengths.
  std::vector<int64_t> lengths;
  /// The time a fractional routing takes that was found, and checked in whole numbers; invalid if
  /// the check overflowed. The optimum lies between the bound of `lengths` and this.
  Rational routed;
};

/// The least time in which all amounts move at once: by a linear program where that is small
/// enough, and then `lengths` and `routed` usually meet; else by an interior point or by operator
/// splitting, and then they leave a gap. Every demand must be routable; none has equal ends or is
/// zero. std::nullopt: too large.
std::optional<ConcurrentFlow> concurrentFlow(const FlowGraph &graph,
                                             llvm::ArrayRef<Demand> demands);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_CONCURRENTFLOW_H
