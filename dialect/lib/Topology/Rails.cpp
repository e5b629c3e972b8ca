//===- Rails.cpp - The network port of each rank --------------------------===//
#include "ncclx/Topology/Resources.h"

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

std::vector<NearestPort> topology::nearestPorts(const Topology &topo) {
  std::vector<std::vector<unsigned>> out(topo.nodes.size());
  for (const Link &link : topo.links)
    if (link.kind == LinkKind::pci || link.kind == LinkKind::cpu || link.kind == LinkKind::nic ||
        link.kind == LinkKind::shm || link.kind == LinkKind::c2c)
      out[link.from].push_back(link.to);
  std::vector<int> number(topo.nodes.size(), -1);
  std::vector<unsigned> ports(topo.hosts.size());
  for (unsigned i = 0; i < topo.nodes.size(); ++i)
    if (topo.nodes[i].kind == NodeKind::nic)
      number[i] = int(ports[topo.nodes[i].host]++);
  std::vector<NearestPort> nearest(topo.numRanks());
  std::vector<unsigned> seenBy(topo.nodes.size(), ~0u);
  for (unsigned rank = 0; rank < topo.numRanks(); ++rank) {
    unsigned host = topo.rankNode(rank).host;
    std::vector<unsigned> layer = {topo.ranks[rank]};
    seenBy[layer[0]] = rank;
    while (!layer.empty() && nearest[rank].node < 0) {
      std::vector<unsigned> following;
      for (unsigned v : layer)
        for (unsigned w : out[v]) {
          const Node &node = topo.nodes[w];
          if (seenBy[w] == rank || node.kind == NodeKind::net || node.host != host)
            continue;
          seenBy[w] = rank;
          int &best = nearest[rank].node;
          if (node.kind == NodeKind::nic && (best < 0 || int(w) < best))
            best = int(w);
          if (node.kind != NodeKind::gpu && node.kind != NodeKind::process &&
              node.kind != NodeKind::nic)
            following.push_back(w);
        }
      layer = std::move(following);
    }
    if (nearest[rank].node >= 0)
      nearest[rank].rail = number[nearest[rank].node];
  }
  return nearest;
}
