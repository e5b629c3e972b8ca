//===- Bounds.cpp - Lower bounds of collectives ------------------------------===//
#include "ncclx/Topology/Bounds.h"
#include "Bounder.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

/// Do scale-up links join the members of each host, whichever way they point?
static bool hostsJoined(const Topology &topo, llvm::ArrayRef<unsigned> group,
                        const CutGraph &scaleUp) {
  std::vector<unsigned> parent(scaleUp.graph.size());
  for (unsigned v = 0; v < parent.size(); ++v)
    parent[v] = v;
  auto find = [&](unsigned v) {
    while (parent[v] != v)
      v = parent[v] = parent[parent[v]];
    return v;
  };
  for (const FlowGraph::Arc &arc : scaleUp.graph.arcs)
    parent[find(arc.from)] = find(arc.to);
  std::map<unsigned, unsigned> rootOfHost;
  for (unsigned i = 0; i < group.size(); ++i) {
    unsigned root = find(scaleUp.member[i]);
    if (rootOfHost.try_emplace(topo.rankNode(group[i]).host, root).first->second != root)
      return false;
  }
  return true;
}

/// The links that a bound counts, with their graph at `rate`, and whether they join the group.
static std::tuple<LinkSet, CutGraph, bool>
graphFor(const Topology &topo, llvm::ArrayRef<unsigned> group, bool relays, Rate rate) {
  bool joined = false;
  {
    CutGraph scaleUp(topo, LinkSet::scaleUp, group, relays, rate);
    if (scaleUp.connected())
      return {LinkSet::scaleUp, std::move(scaleUp), true};
    joined = hostsJoined(topo, group, scaleUp);
  }
  if (joined) {
    CutGraph withNics(topo, LinkSet::scaleUpAndNics, group, relays, rate);
    if (withNics.connected())
      return {LinkSet::scaleUpAndNics, std::move(withNics), true};
  }
  CutGraph all(topo, LinkSet::all, group, relays, rate);
  bool connected = all.connected();
  return {LinkSet::all, std::move(all), connected};
}

LinkSet topology::linksFor(const Topology &topo, llvm::ArrayRef<unsigned> group, bool relays) {
  return std::get<LinkSet>(graphFor(topo, group, relays, Rate::raw));
}

/// What queries of one group, relays and rate have in common.
struct BoundSolver::Shared {
  Shared(const Topology &topo, const BoundQuery &query, std::tuple<LinkSet, CutGraph, bool> &&graph)
      : group(query.group), relays(query.relays), rate(query.rate), set(std::get<0>(graph)),
        cuts(std::get<1>(std::move(graph))), connected(std::get<2>(graph)) {
    if (connected && group.size() > mostFlows)
      partitions = domainPartitions(topo, group, rate, set);
  }
  std::vector<unsigned> group;
  bool relays;
  Rate rate;
  LinkSet set;
  CutGraph cuts;
  bool connected;
  std::vector<Partition> partitions;                   ///< above `mostFlows` members
  std::vector<std::optional<Rational>> fromFirst = {}; ///< latencies, once they are known
};

std::string Bounder::rankList(const std::vector<unsigned> &indices) const {
  std::string text = indices.size() == 1 ? "rank" : "ranks";
  for (size_t i = 0; i < indices.size() && i < 8; ++i)
    text += fmt::format("{}{}", i == 0 ? " " : ", ", query.group[indices[i]]);
  if (indices.size() > 8)
    text += fmt::format(" and {} more", indices.size() - 8);
  return text;
}

void Bounder::add(Rational seconds, const char *argument, std::string detail, bool universal) {
  LowerBound bound;
  bound.seconds = seconds;
  bound.argument = argument;
  bound.detail = std::move(detail);
  bound.universal = universal;
  bound.links = set;
  bound.rate = query.rate;
  list.push_back(std::move(bound));
}

void Bounder::addUnreachable() {
  add(0, "unreachable", fmt::format("some ranks cannot be reached over {}", name(set).str()));
  list.back().unreachable = true;
}

void Bounder::latency() {
  // all-to-all knowledge: the longest of all shortest ways. For a root: those from it, or to it.
  Rational longest = 0;
  unsigned from = 0, to = 0;
  auto consider = [&](unsigned i, unsigned j, const std::vector<std::optional<Rational>> &ways) {
    const std::optional<Rational> &way = ways[cuts.member[j]];
    if (way && *way > longest) {
      longest = *way;
      from = i;
      to = j;
    }
  };
  bool rooted =
      query.collective == Collective::broadcast || query.collective == Collective::scatter;
  for (unsigned i = 0; i < n; ++i) {
    if (rooted && i != query.root)
      continue;
    if (n > mostFlows && !rooted && i > 0)
      continue; // any pair's way is a bound: those from one member will do
    if (i == 0 && fromFirst.empty())
      fromFirst = cuts.latencies(0);
    auto ways = i == 0 ? fromFirst : cuts.latencies(i);
    if (query.collective == Collective::reduce || query.collective == Collective::gather) {
      consider(i, query.root, ways);
    } else if (query.collective == Collective::permute) {
      for (auto [a, b] : query.pairs)
        if (a == i)
          consider(a, b, ways);
      if (query.pairs.empty() && n > 1) { // to the nearest
        unsigned nearest = i;
        for (unsigned j = 0; j < n; ++j)
          if (j != i && ways[cuts.member[j]] &&
              (nearest == i || *ways[cuts.member[j]] < *ways[cuts.member[nearest]]))
            nearest = j;
        consider(i, nearest, ways);
      }
    } else {
      for (unsigned j = 0; j < n; ++j)
        if (query.collective != Collective::all_to_all_v || query.counts[i * n + j] > 0)
          consider(i, j, ways);
    }
  }
  add(longest / Rational(1'000'000'000), "latency",
      fmt::format("rank {} is {} ns from rank {}", query.group[to], longest.toDouble(),
                  query.group[from]));
}

void Bounder::sharedNode() {
  if (cuts.sharedNode < 0 || query.inNetwork)
    return;
  Rational volume;
  switch (query.collective) {
  case Collective::all_gather:
  case Collective::reduce_scatter:
  case Collective::all_to_all:
  case Collective::broadcast:
  case Collective::reduce:
    volume = size * Rational(n - 1);
    break;
  case Collective::all_to_all_v:
    for (const Demand &demand : demands())
      volume += Rational::make(Rational::Int(demand.amount), 1);
    break;
  case Collective::all_reduce:
    volume = size * Rational(2 * (n - 1));
    break;
  case Collective::scatter:
  case Collective::gather:
    volume = share * Rational(n - 1);
    break;
  case Collective::permute: {
    int64_t moving = query.pairs.empty() ? n : 0;
    for (auto [from, to] : query.pairs)
      moving += from != to;
    volume = size * Rational(moving);
    break;
  }
  }
  const Node &node = topo.nodes[cuts.sharedNode];
  add(volume / node.throughput, "shared node",
      fmt::format("{:.6g} bytes pass '{}' at {}", volume.toDouble(), node.name,
                  gigabytes(node.throughput)));
}

std::vector<LowerBound> Bounder::run() {
  if (n == 1 || query.bytes == 0) {
    add(0, "nothing moves", n == 1 ? "the group has one rank" : "there are no bytes");
    return std::move(list);
  }
  if (!connected) {
    addUnreachable();
    return std::move(list);
  }
  if (n <= mostFlows)
    exact();
  else
    list = domainBounds(topo, query, set, domains);
  sharedNode();
  latency();
  // What overflowed says nothing.
  std::erase_if(list, [](const LowerBound &bound) { return !bound.seconds.isValid(); });
  // Largest first; equal ones keep their order. (A handful: insertion.)
  auto before = [](const LowerBound &a, const LowerBound &b) {
    return a.unreachable != b.unreachable ? a.unreachable : a.seconds > b.seconds;
  };
  for (auto it = list.begin(); it != list.end(); ++it)
    std::rotate(std::upper_bound(list.begin(), it, *it, before), it, it + 1);
  return std::move(list);
}

/// The arguments that need maximum flows.
void Bounder::exact() {
  bool reversed = query.collective == Collective::reduce_scatter ||
                  query.collective == Collective::reduce || query.collective == Collective::gather;
  switch (query.collective) {
  case Collective::all_gather:
  case Collective::reduce_scatter: {
    Cut cut = shareRate(reversed);
    add(share / cut.rate, "cut", cut.detail);
    break;
  }
  case Collective::broadcast:
  case Collective::reduce: {
    Cut cut = rootRate(reversed, false);
    add(size / cut.rate, "cut", cut.detail);
    break;
  }
  case Collective::scatter:
  case Collective::gather: {
    Cut cut = rootRate(reversed, true);
    add(share / cut.rate, "cut", cut.detail);
    break;
  }
  case Collective::all_reduce:
    allReduce();
    break;
  case Collective::all_to_all:
  case Collective::all_to_all_v:
    allToAll();
    break;
  case Collective::permute:
    permute();
    break;
  }
}

BoundSolver::BoundSolver(const Topology &topo) : topo(topo) {}
BoundSolver::~BoundSolver() = default;

std::vector<LowerBound> BoundSolver::bounds(const BoundQuery &query) {
  if (!known.empty() &&
      (known[0]->relays != query.relays || query.group != llvm::ArrayRef(known[0]->group)))
    known.clear();
  auto it = std::find_if(known.begin(), known.end(),
                         [&](const auto &shared) { return shared->rate == query.rate; });
  if (it == known.end()) {
    // At another rate the same links count.
    it = known.insert(it, std::make_unique<Shared>(
                              topo, query, graphFor(topo, query.group, query.relays, query.rate)));
  }
  Shared &shared = **it;
  return Bounder(topo, query, shared.set, shared.cuts, shared.connected, shared.partitions,
                 shared.fromFirst)
      .run();
}

std::vector<LowerBound> topology::bounds(const Topology &topo, const BoundQuery &query) {
  return BoundSolver(topo).bounds(query);
}

LowerBound topology::bound(const Topology &topo, const BoundQuery &query) {
  for (const LowerBound &candidate : bounds(topo, query))
    if (candidate.universal)
      return candidate;
  return {}; // not reached: the latency bound is universal
}
