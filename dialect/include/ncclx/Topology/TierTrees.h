//===- TierTrees.h - Trees and ways along unequal tiers ---------*- C++ -*-===//
#ifndef NCCLX_TOPOLOGY_TIERTREES_H
#define NCCLX_TOPOLOGY_TIERTREES_H

#include "ncclx/Topology/TreePacking.h"

namespace mlir::ncclx::topology {

/// Members of a group, trees of whom are written rank by rank.
constexpr unsigned maxTierMembers = 128;

/// Trees along nested blocks of hosts, racks, zones and data centres of any sizes: a root's data
/// enters every other block of the outermost tier once, by one member, goes from there into the
/// blocks of the next one, and so on, and within a host from one member to all. Who sends into a
/// block and who receives there are those whose links and ports have the least to carry, which are
/// on one rail where that costs nothing: so hosts share their load evenly, whatever they have of
/// ranks and ports, and a rank without a port is served by its neighbours. A sum goes the same way
/// back. Of sumAndSpread roots are where most is left. Same input, same answer.
/// std::nullopt where the group lies on one host, or each on its own, where some member cannot be
/// reached, or there are more than `maxTierMembers`; `why` says which.
std::optional<TreePacking> treesByTiers(const Topology &topology, ResourceModel &resources,
                                        llvm::ArrayRef<unsigned> group, TreeFlow flow,
                                        std::string *why = nullptr);

/// Ways of `amounts`, as routeFlows has them, in which what goes from one host to another passes
/// between two members on one rail, where there are such.
std::optional<Routing> routesByTiers(const Topology &topology, ResourceModel &resources,
                                     llvm::ArrayRef<unsigned> group,
                                     llvm::ArrayRef<uint64_t> amounts, unsigned maxShares,
                                     std::string *why = nullptr);

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOPOLOGY_TIERTREES_H
