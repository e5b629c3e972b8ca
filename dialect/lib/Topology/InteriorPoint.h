//===- InteriorPoint.h - Many flows in one network ---------------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_INTERIORPOINT_H
#define NCCLX_LIB_TOPOLOGY_INTERIORPOINT_H

#include "CutGraph.h"

namespace mlir::ncclx::topology {

/// One flow: from a vertex, so much to each vertex.
struct SourceFlow {
  unsigned from;
  std::vector<double> wanted; ///< by vertex; not negative, zero at `from`
};

struct FlowSolution {
  std::vector<double> flows;  ///< by source, then by arc
  std::vector<double> prices; ///< by arc; not negative
};

/// The least time in which all flows fit the arcs, and what each arc's capacity is worth, in
/// floating point: the caller proves what it needs. Mehrotra's predictor and corrector. All flows
/// share one network, so a step is one small matrix for each source and one of arcs squared (where
/// a simplex has a basis of sources times vertices): 64 sources in a torus take half a second.
/// std::nullopt: too large for about that time, or no answer. Same input, same answer.
std::optional<FlowSolution> solveFlows(const FlowGraph &graph, llvm::ArrayRef<double> capacity,
                                       llvm::ArrayRef<SourceFlow> sources);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_INTERIORPOINT_H
