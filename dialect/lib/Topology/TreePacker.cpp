//===- TreePacker.cpp - Packings of one topology, each made once --------------------===//
#include "ncclx/Topology/TreePacking.h"

#include <algorithm>
#include <utility>

using namespace mlir::ncclx::topology;

TreePacker::TreePacker(const Topology &topology, Rate rate)
    : topology(topology), rate(rate), ranks(topology.numRanks()) {
  constexpr unsigned fewPeers = 8, mostLanes = 16;
  // From a node to a node, or to a bundle, whose numbers follow those of the nodes; once each.
  std::vector<std::pair<unsigned, size_t>> ways;
  std::map<std::string, size_t> bundles;
  for (const Link &link : topology.links) {
    if (link.kind != LinkKind::nvlink && link.kind != LinkKind::xgmi)
      continue;
    const Node &to = topology.nodes[link.to];
    size_t other = link.to;
    if (!to.bundle.empty())
      other = topology.nodes.size() + bundles.try_emplace(to.bundle, bundles.size()).first->second;
    ways.push_back({link.from, other});
  }
  std::sort(ways.begin(), ways.end());
  ways.erase(std::unique(ways.begin(), ways.end()), ways.end());
  std::vector<unsigned> neighbours(topology.nodes.size(), 0);
  for (auto [from, to] : ways)
    ++neighbours[from];
  for (unsigned rank = 0; rank < ranks; ++rank) {
    if (topology.rankNode(rank).kind != NodeKind::gpu)
      continue;
    unsigned joined = neighbours[topology.ranks[rank]];
    lanes = std::max({lanes, std::min(mostLanes, joined), std::min(fewPeers, ranks - 1)});
  }
}

double TreePacker::sumSecondsPerByte() {
  if (sums)
    return *sums;
  sums = 0;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    const RankResources &own = resources().rank(rank);
    if (topology.rankNode(rank).kind == NodeKind::gpu && own.memory >= 0)
      sums = std::max(*sums, own.memoryPerByte.toDouble() /
                                 resources().resources()[own.memory].capacity.toDouble());
  }
  return *sums;
}

const Tiers &TreePacker::tiers() {
  if (!theTiers)
    theTiers = findTiers(topology, resources());
  return *theTiers;
}

const TreePacking *TreePacker::pack(llvm::ArrayRef<unsigned> group, TreeFlow flow) {
  auto [it, isNew] = known.try_emplace({group.vec(), flow});
  if (isNew)
    it->second = packTrees(resources(), group, flow);
  return it->second ? &*it->second : nullptr;
}

const Routing *TreePacker::route(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<uint64_t> amounts,
                                 unsigned maxShares) {
  auto [it, isNew] = routings.try_emplace({group.vec(), amounts.vec(), maxShares});
  if (isNew)
    it->second = routeFlows(resources(), group, amounts, maxShares);
  return it->second ? &*it->second : nullptr;
}
