//===- FlowSplitting.h - Many flows in one large network ---------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_FLOWSPLITTING_H
#define NCCLX_LIB_TOPOLOGY_FLOWSPLITTING_H

#include "InteriorPoint.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::ncclx::topology {

/// The program of solveFlows for networks that are too large for it, by operator splitting
/// (Douglas and Rachford): each of some hundred steps passes a few times over all flows, without a
/// matrix of arcs squared. `boundOf` tells what prices prove: no time is below. The search ends
/// when the best bound and the best routing are within 0.1 per cent, later within 0.2, or after a
/// fixed amount of work. (64 ranks of unequal rates in a full mesh: 100 to 800 steps, half a
/// second.) std::nullopt: too large, or no answer. Same input, same answer.
std::optional<FlowSolution>
splitFlows(const FlowGraph &graph, llvm::ArrayRef<double> capacity,
           llvm::ArrayRef<SourceFlow> sources,
           llvm::function_ref<double(llvm::ArrayRef<double> prices)> boundOf);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_FLOWSPLITTING_H
