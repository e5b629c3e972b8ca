//===- FlowSplitting.h - Many flows in one large network ---------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_FLOWSPLITTING_H
#define NCCLX_LIB_TOPOLOGY_FLOWSPLITTING_H

#include "InteriorPoint.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::ncclx::topology {

/// What a solution is worth: no time is below `bound`, and `routed` is enough.
struct FlowWorth {
  double bound, routed;
};

/// The program of solveFlows for networks that are too large for it, by operator splitting
/// (Douglas and Rachford): each of some hundred steps passes a few times over all flows, without a
/// matrix of arcs squared. `consider` is shown a solution every few steps and says what it is worth
/// once proved; its answers steer the search, and end it when the best bound and the best routing
/// are close, or after a fixed amount of work. (64 ranks of unequal amounts in a full mesh: 100 to
/// 700 steps, about a second, within 0.1 per cent.) False, and `consider` has seen nothing: too
/// large. Same input, same answer.
bool splitFlows(const FlowGraph &graph, llvm::ArrayRef<double> capacity,
                llvm::ArrayRef<SourceFlow> sources,
                llvm::function_ref<FlowWorth(const FlowSolution &)> consider);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_FLOWSPLITTING_H
