//===- Replicate.cpp - One host, many times, and a network between --------===//
#include "ncclx/Topology/Make.h"
#include <algorithm>
#include <fmt/format.h>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

/// More nodes or links are refused: a file of a few lines must not take the machine's memory.
static constexpr uint64_t maxNodes = 1'000'000, maxLinks = 4'000'000;

static std::string checkReplication(const Topology &base, const Replication &spec) {
  if (base.hosts.size() != 1)
    return fmt::format("one host can be replicated, found {}", base.hosts.size());
  if (spec.hosts == 0)
    return "there must be at least one host";
  if (uint64_t(spec.hosts) * base.nodes.size() > maxNodes)
    return fmt::format("{} hosts of {} nodes are more than {} nodes", spec.hosts, base.nodes.size(),
                       maxNodes);
  if (uint64_t(spec.hosts) * base.links.size() > maxLinks)
    return fmt::format("{} hosts of {} links are more than {} links", spec.hosts, base.links.size(),
                       maxLinks);
  unsigned nets = std::count_if(base.nodes.begin(), base.nodes.end(),
                                [](const Node &n) { return n.kind == NodeKind::net; });
  if (!spec.network.empty() && nets != 1)
    return fmt::format("a tiered network takes the place of one 'net' node, found {}", nets);
  unsigned below = 1;
  for (const NetworkTier &tier : spec.network) {
    if (tier.hosts == 0 || tier.hosts % below != 0)
      return fmt::format("tier '{}' has {} hosts, which is no multiple of the {} of the tier below",
                         tier.tier, tier.hosts, below);
    if (!(tier.oversubscription > Rational(0)))
      return fmt::format("tier '{}' must have a positive oversubscription", tier.tier);
    below = tier.hosts;
  }
  return "";
}

namespace {
struct Replicator {
  const Topology &base;
  const Replication &spec;
  Topology topo;
  std::vector<unsigned> netNodes; ///< base node -> node, for what all hosts share

  unsigned addNet(std::string name) {
    Node node;
    node.kind = NodeKind::net;
    node.name = std::move(name);
    topo.nodes.push_back(std::move(node));
    return topo.nodes.size() - 1;
  }
  void addHost(unsigned index);
  void addTiers();
  unsigned tierSwitch(size_t tier, unsigned host) const {
    return tierStart[tier] + host / spec.network[tier].hosts;
  }
  std::vector<unsigned> tierStart; ///< first switch of each tier
};
} // namespace

/// Makes the switches of all tiers and the links between tiers. A switch's uplink carries what its
/// hosts' ports carry, divided by the oversubscription of every tier up to it.
void Replicator::addTiers() {
  Rates port{0, 0};
  for (const Link &link : base.links)
    if (base.nodes[link.to].kind == NodeKind::net) {
      port.raw += link.bandwidth(Rate::raw);
      port.payload += link.bandwidth(Rate::payload);
    }
  for (const NetworkTier &tier : spec.network) {
    tierStart.push_back(topo.nodes.size());
    unsigned count = (spec.hosts + tier.hosts - 1) / tier.hosts;
    for (unsigned i = 0; i < count; ++i)
      addNet(fmt::format("{}{}", tier.tier, i));
  }
  Rational factor = 1;
  int core = -1;
  for (size_t t = 0; t < spec.network.size(); ++t) {
    const NetworkTier &tier = spec.network[t];
    bool top = t + 1 == spec.network.size();
    unsigned count = (spec.hosts + tier.hosts - 1) / tier.hosts;
    if (top && count > 1)
      core = int(addNet("core"));
    factor = factor / tier.oversubscription;
    for (unsigned i = 0; i < count && (!top || core >= 0); ++i) {
      unsigned hosts = std::min(tier.hosts, spec.hosts - i * tier.hosts);
      unsigned below = tierStart[t] + i;
      unsigned above = top ? unsigned(core) : tierSwitch(t + 1, i * tier.hosts);
      Rational share = factor * Rational(int64_t(hosts));
      Link link{below,          above, LinkKind::net, 1, {port.raw * share, port.payload * share},
                tier.latencyNs, 0};
      topo.links.push_back(link);
      std::swap(link.from, link.to);
      topo.links.push_back(link);
    }
  }
}

void Replicator::addHost(unsigned index) {
  Host host = base.hosts[0];
  host.name = fmt::format("{}-{}", base.hosts[0].name, index);
  for (const NetworkTier &tier : spec.network) {
    std::string domain = fmt::format("{}{}", tier.tier, index / tier.hosts);
    if (tier.tier == "rack")
      host.rack = domain;
    else if (tier.tier == "zone")
      host.zone = domain;
    else if (tier.tier == "data_center")
      host.dataCenter = domain;
  }
  topo.hosts.push_back(std::move(host));
  std::vector<unsigned> at(base.nodes.size());
  for (unsigned i = 0; i < base.nodes.size(); ++i) {
    if (base.nodes[i].kind == NodeKind::net) {
      at[i] = spec.network.empty() ? netNodes[i] : tierSwitch(0, index);
      continue;
    }
    at[i] = topo.nodes.size();
    Node node = base.nodes[i];
    node.name = fmt::format("h{}.{}", index, node.name);
    node.host = index;
    topo.nodes.push_back(std::move(node));
  }
  for (Link link : base.links) {
    bool shared =
        base.nodes[link.from].kind == NodeKind::net && base.nodes[link.to].kind == NodeKind::net;
    if (shared && index > 0)
      continue;
    link.from = at[link.from];
    link.to = at[link.to];
    topo.links.push_back(link);
  }
  for (unsigned node : base.ranks)
    topo.ranks.push_back(at[node]);
}

std::optional<Topology> topology::replicateHosts(const Topology &base, const Replication &spec,
                                                 std::string &problem) {
  problem = checkReplication(base, spec);
  if (!problem.empty())
    return std::nullopt;
  Replicator work{base, spec, {}, {}, {}};
  work.topo.name = base.name;
  work.topo.models = base.models;
  // Large machines are made exactly as large as they are.
  work.topo.hosts.reserve(spec.hosts);
  work.topo.nodes.reserve(spec.hosts * base.nodes.size() + 1);
  work.topo.links.reserve(spec.hosts * base.links.size() + 1);
  work.topo.ranks.reserve(spec.hosts * base.ranks.size());
  if (spec.network.empty()) {
    work.netNodes.resize(base.nodes.size());
    for (unsigned i = 0; i < base.nodes.size(); ++i)
      if (base.nodes[i].kind == NodeKind::net)
        work.netNodes[i] = work.addNet(base.nodes[i].name);
  } else {
    work.addTiers();
  }
  for (unsigned h = 0; h < spec.hosts; ++h)
    work.addHost(h);
  return std::move(work.topo);
}
