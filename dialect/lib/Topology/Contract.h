//===- Contract.h - Graphs without what only passes on ----------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_CONTRACT_H
#define NCCLX_LIB_TOPOLOGY_CONTRACT_H

#include "ConcurrentFlow.h"

namespace mlir::ncclx::topology {

/// The same amounts through fewer vertices.
struct Contraction {
  FlowGraph graph;
  std::vector<Demand> demands;
  /// By arc of `graph`, the narrowest of the whole's arcs that it stands for.
  std::vector<unsigned> narrowest;
};

/// Leaves out dead ends, and vertices that only pass on between two neighbours (a NIC between a GPU
/// and the network): one arc each way, as wide as the narrowest, stands for the chain. Whatever
/// flows through one flows through the other in the same time.
Contraction contract(const FlowGraph &whole, llvm::ArrayRef<Demand> demands);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_CONTRACT_H
