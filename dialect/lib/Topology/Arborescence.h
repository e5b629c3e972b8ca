//===- Arborescence.h - Least-cost arborescences --------------------------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_ARBORESCENCE_H
#define NCCLX_LIB_TOPOLOGY_ARBORESCENCE_H

#include <vector>

namespace mlir::ncclx::topology {

using Matrix = std::vector<std::vector<double>>;
/// The cost of an arc that is not there.
constexpr double unreachable = 1e200;

/// Parents of a least-cost arborescence (Chu and Liu, Edmonds): the cheapest arc into each vertex,
/// and where these form a cycle, the same with the cycle as one vertex.
std::vector<unsigned> arborescence(const Matrix &cost, unsigned root);

} // namespace mlir::ncclx::topology
#endif // NCCLX_LIB_TOPOLOGY_ARBORESCENCE_H
