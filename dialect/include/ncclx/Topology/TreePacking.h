//===- TreePacking.h - Trees that share a machine's links -------*- C++ -*-===//
#ifndef NCCLX_TOPOLOGY_TREEPACKING_H
#define NCCLX_TOPOLOGY_TREEPACKING_H

#include "ncclx/Topology/Tiers.h"
#include "llvm/ADT/ArrayRef.h"
#include <map>
#include <memory>

namespace mlir::ncclx::topology {

/// A tree between the members of a group along which a share of the root's data goes to all (or,
/// the other way round, all members' contributions to the root).
struct PackedTree {
  unsigned root = 0;            ///< as an index into the group, like all that follow
  unsigned share = 1;           ///< of TreePacking::shares
  std::vector<unsigned> parent; ///< of each member; the root's own is itself
  std::vector<unsigned> order;  ///< every member, parents before their children
};

struct TreePacking {
  std::vector<PackedTree> trees; ///< by root
  unsigned shares = 1;           ///< of each root's data; its trees carry as many together
  unsigned depth = 0;            ///< edges of the longest way from a root
  /// Seconds for a byte of each root's data, all trees at once: the busiest resource.
  double secondsPerByte = 0;
  /// What no packing of trees can beat, by the prices of the linear program.
  double leastSecondsPerByte = 0;
};

/// Packs trees of one root for each member so that all roots' data moves at the highest common
/// rate: a linear program over trees, whose columns are generated as least-cost arborescences at
/// its prices, its solution rounded to `maxShares` shares at most. An edge is a route of
/// ResourceModel, with all that it holds. With `inward`, data goes from the children to their
/// parents, and every edge has a route back, so that the trees serve both ways. std::nullopt where
/// some member cannot be reached, or the group has more than `maxTreeMembers`.
std::optional<TreePacking> packTrees(ResourceModel &resources, llvm::ArrayRef<unsigned> group,
                                     bool inward, unsigned maxShares = 48);
constexpr unsigned maxTreeMembers = 64;

/// Packings of one topology, each made once. Belongs to one thread; the topology outlives it.
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
  double sumSecondsPerByte() const { return sums; }
  /// Of all its ranks.
  const Tiers &tiers();
  /// Null where packTrees has none. Inward trees have few shares: each is summed by itself.
  const TreePacking *pack(llvm::ArrayRef<unsigned> group, bool inward);

private:
  const Topology &topology;
  std::optional<Tiers> theTiers;
  unsigned ranks, lanes = 1;
  double sums = 0;
  ResourceModel resources;
  std::map<std::pair<std::vector<unsigned>, bool>, std::optional<TreePacking>> known;
};

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOPOLOGY_TREEPACKING_H
