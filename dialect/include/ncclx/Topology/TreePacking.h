//===- TreePacking.h - Trees that share a machine's links -------*- C++ -*-===//
#ifndef NCCLX_TOPOLOGY_TREEPACKING_H
#define NCCLX_TOPOLOGY_TREEPACKING_H

#include "ncclx/Topology/FlowRouting.h"
#include "ncclx/Topology/Tiers.h"
#include "llvm/ADT/ArrayRef.h"
#include <map>
#include <memory>

namespace mlir::ncclx::topology {

/// What moves along a packing's trees.
enum class TreeFlow {
  spread,       ///< each root's data to all: all_gather
  sum,          ///< all members' contributions to each root: reduce_scatter
  sumAndSpread, ///< contributions to some root, and from there their sum to all: all_reduce
};

/// A way of one share of the data between the members of a group, who are named by their index.
struct PackedTree {
  unsigned root = 0;
  std::vector<unsigned> in;  ///< the parent to which each member's sum goes; empty: no sums
  std::vector<unsigned> out; ///< the parent from which each gets the data; empty: it stays there
};

struct TreePacking {
  std::vector<PackedTree> trees; ///< by root, who is its own parent; the same one may come again
  unsigned shares = 1; ///< trees of each root, which carry its data; of sumAndSpread of all roots
  unsigned depth = 0;  ///< edges of the longest way, to a root and from it
  /// Seconds for a byte of each root's data (of sumAndSpread of all data), all trees at once: the
  /// busiest resource.
  double secondsPerByte = 0;
  /// What no packing of trees can beat, by the prices of the linear program.
  double leastSecondsPerByte = 0;
  /// Seconds for a byte from one member to another while all that the trees use is in use; 0 where
  /// none goes that way.
  std::vector<std::vector<double>> edgeSeconds;
  std::vector<std::vector<double>> latencies; ///< seconds from one member to another
};

/// Packs trees so that data moves at the highest rate, the same for all roots, or where the roots
/// are free at the highest rate of all together: a linear program over trees, whose columns are
/// generated as least-cost arborescences at its prices; then few whole shares that come near it. An
/// edge is a route of ResourceModel, with all that it holds, and has a route back. std::nullopt
/// where some member cannot be reached, or the group has more than `maxTreeMembers`.
std::optional<TreePacking> packTrees(ResourceModel &resources, llvm::ArrayRef<unsigned> group,
                                     TreeFlow flow);
constexpr unsigned maxTreeMembers = 64;

/// Packings and routings of one topology, each made once. Belongs to one thread; the topology
/// outlives it.
class TreePacker {
public:
  TreePacker(const Topology &topology, Rate rate);
  unsigned numRanks() const { return ranks; }
  /// Copies that one rank starts at once: to each neighbour, and where there are few, as behind a
  /// switch, to some peers more, so that what is slow keeps no other waiting. One for a process,
  /// which copies by itself.
  unsigned copyLanes() const { return lanes; }
  /// Seconds that a sum takes for each byte that it reads or writes, on the slowest rank; 0 where
  /// copies stand still meanwhile.
  double sumSecondsPerByte();
  /// Of all its ranks.
  const Tiers &tiers();
  /// See ResourceModel.
  std::optional<CommonSwitch> commonSwitch(llvm::ArrayRef<unsigned> group) const {
    return resources().commonSwitch(group);
  }
  std::optional<Route> way(unsigned source, unsigned destination) {
    return resources().route(source, destination);
  }
  /// Null where packTrees has none.
  const TreePacking *pack(llvm::ArrayRef<unsigned> group, TreeFlow flow);
  /// Null where routeFlows has none.
  const Routing *route(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<uint64_t> amounts,
                       unsigned maxShares = maxRoutedShares);
  /// The same along tiers of unequal blocks (TierTrees.h); `why` says why null.
  const TreePacking *packByTiers(llvm::ArrayRef<unsigned> group, TreeFlow flow,
                                 std::string *why = nullptr);
  const Routing *routeByTiers(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<uint64_t> amounts,
                              unsigned maxShares, std::string *why = nullptr);

private:
  /// Made when it is first asked for: of a large machine it is large.
  ResourceModel &resources() const {
    if (!model)
      model.emplace(topology, rate);
    return *model;
  }

  const Topology &topology;
  Rate rate;
  std::optional<Tiers> theTiers;
  unsigned ranks, lanes = 1;
  std::optional<double> sums;
  mutable std::optional<ResourceModel> model;
  std::map<std::pair<std::vector<unsigned>, TreeFlow>, std::optional<TreePacking>> known;
  std::map<std::tuple<std::vector<unsigned>, std::vector<uint64_t>, unsigned>,
           std::optional<Routing>>
      routings;
  std::map<std::pair<std::vector<unsigned>, TreeFlow>,
           std::pair<std::optional<TreePacking>, std::string>>
      knownByTiers;
  std::map<std::tuple<std::vector<unsigned>, std::vector<uint64_t>, unsigned>,
           std::pair<std::optional<Routing>, std::string>>
      routingsByTiers;
};

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOPOLOGY_TREEPACKING_H
