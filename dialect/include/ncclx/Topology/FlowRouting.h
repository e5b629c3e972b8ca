//===- FlowRouting.h - Ways of many amounts at once -------------*- C++ -*-===//
#ifndef NCCLX_TOPOLOGY_FLOWROUTING_H
#define NCCLX_TOPOLOGY_FLOWROUTING_H

#include "ncclx/Topology/Resources.h"
#include "llvm/ADT/ArrayRef.h"

namespace mlir::ncclx::topology {

/// A way on which some of what one member sends to another goes, from hand to hand.
struct RoutedPath {
  std::vector<unsigned> members; ///< sender, who passes it on, receiver; as indices into the group
  unsigned first = 0, share = 1; ///< shares [first, first + share) of the pair's amount

  unsigned from() const { return members.front(); }
  unsigned to() const { return members.back(); }
  unsigned hops() const { return unsigned(members.size()) - 1; }
};

struct Routing {
  std::vector<RoutedPath> paths; ///< by sender, receiver and first share
  unsigned shares = 1;           ///< of each pair's amount; its paths carry as many together
  unsigned depth = 0;            ///< hops of the longest path
  /// The busiest resource, all at once.
  double seconds = 0;
  /// What no routing between these members can beat, by the prices of the resources.
  double leastSeconds = 0;
};

constexpr unsigned maxRoutedShares = 48;

/// Moves `amounts[i * n + j]` bytes from member i to member j of a group of n (those of i = j stay)
/// over routes of ResourceModel, each with all that it holds, so that the busiest resource is done
/// as early as possible: a concurrent flow in whole shares, as few as come near to the optimum. A
/// share in turn looks for its cheapest way at prices that rise with the load of what all others
/// leave; the prices prove how near that is. Same input, same answer. std::nullopt where some
/// amount has no way, or the group has more than `maxRoutedMembers`.
std::optional<Routing> routeFlows(ResourceModel &resources, llvm::ArrayRef<unsigned> group,
                                  llvm::ArrayRef<uint64_t> amounts,
                                  unsigned maxShares = maxRoutedShares);
constexpr unsigned maxRoutedMembers = 64;

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOPOLOGY_FLOWROUTING_H
