//===- Bounds.cpp - Lower bounds of collectives ---------------------------===//
//
// The cut bounds are exact maxima over all cuts, found by Newton's method on maximum flows: a cut
// that a flow fails to fill gives a smaller rate, until every flow fits. Each step is exact.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Topology/Bounds.h"
#include "ConcurrentFlow.h"
#include "CutGraph.h"
#include "DomainBounds.h"
#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <numeric>
#include <set>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;
using Terminal = FlowGraph::Terminal;
using Terminals = std::vector<Terminal>;

/// Above this many ranks only the cuts round domains are tried: n maximum flows take too long.
static constexpr int64_t mostFlows = 256;

static constexpr Collective allCollectives[] = {
    Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce,
    Collective::all_to_all, Collective::all_to_all_v,   Collective::broadcast,
    Collective::reduce,     Collective::scatter,        Collective::gather,
    Collective::permute};

llvm::StringRef topology::name(Collective collective) {
  switch (collective) {
  case Collective::all_gather:
    return "all_gather";
  case Collective::reduce_scatter:
    return "reduce_scatter";
  case Collective::all_reduce:
    return "all_reduce";
  case Collective::all_to_all:
    return "all_to_all";
  case Collective::all_to_all_v:
    return "all_to_all_v";
  case Collective::broadcast:
    return "broadcast";
  case Collective::reduce:
    return "reduce";
  case Collective::scatter:
    return "scatter";
  case Collective::gather:
    return "gather";
  case Collective::permute:
    return "permute";
  }
  return "?";
}

std::optional<Collective> topology::parseCollective(llvm::StringRef text) {
  for (Collective collective : allCollectives)
    if (name(collective) == text)
      return collective;
  return std::nullopt;
}

llvm::StringRef topology::name(LinkSet set) {
  switch (set) {
  case LinkSet::scaleUp:
    return "scale-up links";
  case LinkSet::scaleUpAndNics:
    return "scale-up links and NICs";
  case LinkSet::all:
    return "all links";
  }
  return "?";
}

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

LinkSet topology::linksFor(const Topology &topo, llvm::ArrayRef<unsigned> group, bool relays) {
  CutGraph scaleUp(topo, LinkSet::scaleUp, group, relays, Rate::raw);
  if (scaleUp.connected())
    return LinkSet::scaleUp;
  if (hostsJoined(topo, group, scaleUp) &&
      CutGraph(topo, LinkSet::scaleUpAndNics, group, relays, Rate::raw).connected())
    return LinkSet::scaleUpAndNics;
  return LinkSet::all;
}

/// What queries of one group, relays and rate have in common.
struct BoundSolver::Shared {
  Shared(const Topology &topo, const BoundQuery &query, LinkSet set)
      : group(query.group), relays(query.relays), rate(query.rate), set(set),
        cuts(topo, set, group, relays, rate), connected(cuts.connected()) {
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

namespace {
class Bounder {
public:
  Bounder(const Topology &topo, const BoundQuery &query, LinkSet set, const CutGraph &cuts,
          bool connected, llvm::ArrayRef<Partition> domains,
          std::vector<std::optional<Rational>> &fromFirst)
      : topo(topo), query(query), n(query.group.size()), size(toRational(query.bytes)),
        share(size / Rational(n)), set(set), cuts(cuts), connected(connected), domains(domains),
        fromFirst(fromFirst) {}
  std::vector<LowerBound> run();

private:
  static Rational toRational(uint64_t bytes) { return Rational::make(Rational::Int(bytes), 1); }
  Terminal whole(unsigned index) const { return {cuts.member[index], std::nullopt}; }
  std::string rankList(const std::vector<unsigned> &indices) const;
  std::string gigabytes(const Rational &rate) const {
    return fmt::format("{:.6g} GB/s", rate.toDouble() / 1e9);
  }
  void add(Rational seconds, const char *argument, std::string detail, bool universal = true);
  void addUnreachable();
  struct Cut {
    Rational rate; ///< of one share, bytes/s; zero: unreachable
    std::string detail;
  };
  Cut shareRate(bool reversed) const;
  Cut rootRate(bool reversed, bool split) const;
  void allToAll();
  void allReduce();
  void allReduceInNetwork();
  void permute();
  void latency();
  void exact();
  void sharedNode();
  /// What each member sends to each other, in units of `amountUnit`: all_to_all, all_to_all_v and a
  /// permute of known pairs. By index into the group; no member to itself.
  std::vector<Demand> demands() const;
  Rational amountUnit() const {
    return query.collective == Collective::all_to_all ? share
           : query.collective == Collective::permute  ? size
                                                      : Rational(1);
  }
  Rational dual(llvm::ArrayRef<int64_t> lengths, llvm::ArrayRef<Demand> moved) const;
  void concurrent(llvm::ArrayRef<Demand> moved);
  /// A partition of the group by a property of its ranks; empty if it has one part.
  std::vector<std::pair<std::string, std::vector<std::vector<unsigned>>>> partitions() const;
  std::vector<int> heaviest() const;
  Rational cutOut(const std::vector<unsigned> &part, bool reversed) const;

  const Topology &topo;
  const BoundQuery &query;
  int64_t n;
  Rational size, share;
  LinkSet set;
  const CutGraph &cuts;
  bool connected;
  llvm::ArrayRef<Partition> domains;
  std::vector<std::optional<Rational>> &fromFirst;
  std::vector<LowerBound> list;
};
} // namespace

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

/// all_gather (reversed: reduce_scatter): the largest rate x such that every member may inject x
/// and all n x arrive at any one. All cuts between some members and one left out.
Bounder::Cut Bounder::shareRate(bool reversed) const {
  Cut best;
  auto describe = [&](const std::vector<unsigned> &inside, const Rational &capacity) {
    std::vector<unsigned> outside;
    for (unsigned i = 0; i < n; ++i)
      if (!std::binary_search(inside.begin(), inside.end(), i))
        outside.push_back(i);
    best.detail =
        fmt::format("{} shares of {} must {} {} over {}", inside.size(), n,
                    reversed ? "come out of" : "reach", rankList(outside), gigabytes(capacity));
  };
  auto everyone = [&](unsigned but) {
    std::vector<unsigned> inside;
    for (unsigned i = 0; i < n; ++i)
      if (i != but)
        inside.push_back(i);
    return inside;
  };
  for (unsigned i = 0; i < n; ++i) {
    Rational port = reversed ? cuts.portOut(i) : cuts.portIn(i);
    Rational rate = port / Rational(n - 1);
    if (i == 0 || rate < best.rate) {
      best.rate = rate;
      describe(everyone(i), port);
    }
  }
  std::vector<bool> side;
  for (unsigned i = 0; i < n && best.rate > Rational(0); ++i) {
    while (true) {
      Terminals sources;
      for (unsigned j = 0; j < n; ++j)
        sources.push_back({cuts.member[j], best.rate});
      Rational flow = cuts.graph.maxFlow(sources, whole(i), &side, reversed);
      if (!(flow < best.rate * Rational(n)))
        break; // fits (or overflowed, and then the cut so far still holds)
      std::vector<unsigned> inside;
      for (unsigned j = 0; j < n; ++j)
        if (side[cuts.member[j]])
          inside.push_back(j);
      Rational capacity = flow - best.rate * Rational(n - int64_t(inside.size()));
      best.rate = capacity / Rational(int64_t(inside.size()));
      describe(inside, capacity);
      if (best.rate.isZero())
        break;
    }
  }
  return best;
}

/// From one root to all (reversed: to one root): whole buffers (broadcast), or `split`, a share
/// each (scatter).
Bounder::Cut Bounder::rootRate(bool reversed, bool split) const {
  Cut best;
  std::vector<bool> side;
  if (!split) {
    bool first = true;
    for (unsigned i = 0; i < n; ++i) {
      if (i == query.root)
        continue;
      Rational flow = cuts.graph.maxFlow(whole(query.root), whole(i), nullptr, reversed);
      if (flow.isValid() && (first || flow < best.rate)) {
        first = false;
        best = {flow,
                fmt::format("everything must {} rank {} over {}",
                            reversed ? "come out of" : "reach", query.group[i], gigabytes(flow))};
      }
    }
    return best;
  }
  Rational port = reversed ? cuts.portIn(query.root) : cuts.portOut(query.root);
  best = {port / Rational(n - 1),
          fmt::format("{} shares pass the root's {}", n - 1, gigabytes(port))};
  while (best.rate > Rational(0)) {
    Terminals sinks;
    for (unsigned i = 0; i < n; ++i)
      if (i != query.root)
        sinks.push_back({cuts.member[i], best.rate});
    Rational flow = cuts.graph.maxFlow(whole(query.root), sinks, &side, reversed);
    if (!(flow < best.rate * Rational(n - 1)))
      break;
    std::vector<unsigned> outside;
    for (unsigned i = 0; i < n; ++i)
      if (!side[cuts.member[i]])
        outside.push_back(i);
    int64_t inside = n - 1 - int64_t(outside.size());
    Rational capacity = flow - best.rate * Rational(inside);
    best = {capacity / Rational(int64_t(outside.size())),
            fmt::format("{} share(s) pass between the root and {} over {}", outside.size(),
                        rankList(outside), gigabytes(capacity))};
  }
  return best;
}

Rational Bounder::cutOut(const std::vector<unsigned> &part, bool reversed) const {
  Terminals sources, sinks;
  for (unsigned i = 0, p = 0; i < n; ++i) {
    bool inside = p < part.size() && part[p] == i;
    p += inside;
    (inside ? sources : sinks).push_back(whole(i));
  }
  return cuts.graph.maxFlow(sources, sinks, nullptr, reversed);
}

/// Of the members, joined again and again where direct links between two parts carry most, the
/// parts that must pass most among them for what leaves them all. Each by one of its members.
std::vector<int> Bounder::heaviest() const {
  std::vector<int> memberAt(cuts.graph.size(), -1), part(n), best;
  for (unsigned i = 0; i < n; ++i)
    memberAt[cuts.member[i]] = int(i);
  std::iota(part.begin(), part.end(), 0);
  best = part;
  std::vector<std::vector<double>> between(n, std::vector<double>(n, 0));
  double all = 0, most = 0;
  for (const FlowGraph::Arc &arc : cuts.graph.arcs)
    if (int from = memberAt[arc.from], to = memberAt[arc.to]; from >= 0 && to >= 0) {
      between[std::max(from, to)][std::min(from, to)] += arc.capacity.toDouble();
      all += arc.capacity.toDouble();
    }
  for (int64_t parts = n; parts > 1 && all > 0; --parts) {
    if (double(parts - 1) / all > most * (1 + 1e-9)) {
      most = double(parts - 1) / all;
      best = part;
    }
    int a = 1, b = 0;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < i; ++j)
        if (between[i][j] > between[a][b])
          std::tie(a, b) = std::pair(i, j);
    if (!(between[a][b] > 0))
      break;
    all -= between[a][b];
    between[a][b] = 0;
    for (int i = 0; i < n; ++i)
      if (i != a && i != b)
        between[std::max(i, b)][std::min(i, b)] +=
            std::exchange(between[std::max(i, a)][std::min(i, a)], 0);
    std::replace(part.begin(), part.end(), a, b);
  }
  return best;
}

std::vector<std::pair<std::string, std::vector<std::vector<unsigned>>>>
Bounder::partitions() const {
  std::vector<std::pair<std::string, std::vector<std::vector<unsigned>>>> result;
  auto by = [&](const char *what, auto key) {
    std::map<decltype(key(0u)), std::vector<unsigned>> parts;
    for (unsigned i = 0; i < n; ++i)
      parts[key(i)].push_back(i);
    if (parts.size() < 2 || (!result.empty() && parts.size() == result.back().second.size()))
      return;
    result.emplace_back(what, std::vector<std::vector<unsigned>>());
    for (auto &[unused, part] : parts)
      result.back().second.push_back(std::move(part));
  };
  auto host = [&](unsigned i) -> const Host & {
    return topo.hosts[topo.rankNode(query.group[i]).host];
  };
  by("rank", [&](unsigned i) { return i; });
  by("part", [&, part = heaviest()](unsigned i) { return part[i]; });
  by("host", [&](unsigned i) { return host(i).name; });
  by("rack",
     [&](unsigned i) { return std::tuple(host(i).dataCenter, host(i).zone, host(i).rack); });
  by("zone", [&](unsigned i) { return std::tuple(host(i).dataCenter, host(i).zone); });
  by("data centre", [&](unsigned i) { return host(i).dataCenter; });
  return result;
}

std::vector<Demand> Bounder::demands() const {
  std::vector<Demand> list;
  if (query.collective == Collective::permute) {
    for (auto [from, to] : query.pairs)
      if (from != to)
        list.push_back({from, to, 1});
    return list;
  }
  for (unsigned i = 0; i < n; ++i)
    for (unsigned j = 0; j < n; ++j) {
      uint64_t amount = query.collective == Collective::all_to_all ? 1 : query.counts[i * n + j];
      if (i != j && amount > 0)
        list.push_back({i, j, amount});
    }
  return list;
}

/// LP duality: whatever lengths the links have, bytes times distance is at most capacity times
/// length times time.
Rational Bounder::dual(llvm::ArrayRef<int64_t> lengths, llvm::ArrayRef<Demand> moved) const {
  CutGraph metric = cuts;
  Rational supply = 0, demand = 0;
  for (size_t a = 0; a < lengths.size(); ++a) {
    metric.graph.arcs[a].latencyNs = lengths[a];
    supply += metric.graph.arcs[a].capacity * Rational(lengths[a]);
  }
  for (size_t d = 0; d < moved.size();) { // one search for each run of equal sources
    auto ways = metric.latencies(moved[d].from);
    unsigned from = moved[d].from;
    for (; d < moved.size() && moved[d].from == from; ++d)
      demand += ways[metric.member[moved[d].to]].value_or(0) *
                Rational::make(Rational::Int(moved[d].amount), 1);
  }
  return demand * amountUnit() / supply;
}

void Bounder::concurrent(llvm::ArrayRef<Demand> moved) {
  std::vector<int64_t> equal(cuts.graph.arcs.size(), 1);
  add(dual(equal, moved), "distance", "bytes times shortest way fill every link");
  std::vector<Demand> ends;
  for (const Demand &demand : moved)
    ends.push_back({cuts.member[demand.from], cuts.member[demand.to], demand.amount});
  std::optional<ConcurrentFlow> flow = concurrentFlow(cuts.graph, ends);
  if (!flow)
    return;
  Rational bound = dual(flow->lengths, moved), routed = flow->routed * amountUnit();
  std::string known = "the routing found overflows the check";
  if (bound == routed)
    known = "a routing takes no longer: this is the optimum, checked exactly";
  else if (routed.isValid())
    known = fmt::format("a routing that takes {:.6g} us is known, {:.2g} % more",
                        routed.toDouble() * 1e6, (routed.toDouble() / bound.toDouble() - 1) * 100);
  add(bound, "concurrent flow", "bytes times weighted distance; " + known);
}

void Bounder::allToAll() {
  std::vector<Demand> moved = demands();
  if (moved.empty())
    return add(0, "nothing moves", "no member has bytes for another");
  // Cuts: each rank, each part of each partition, each half of the group in order.
  std::vector<std::pair<const char *, std::vector<unsigned>>> parts;
  for (const auto &[what, partition] : partitions())
    for (const std::vector<unsigned> &part : partition)
      parts.emplace_back(part.size() == 1 ? "port" : "cut", part);
  for (unsigned start = 0; n <= 64 && start < n / 2; ++start) {
    std::vector<unsigned> half;
    for (unsigned i = 0; i < n / 2; ++i)
      half.push_back(start + i);
    parts.emplace_back("cut", half);
  }
  for (const char *argument : {"port", "cut"}) {
    Rational worst = -1;
    std::string detail;
    for (const auto &[kind, part] : parts) {
      if (kind != llvm::StringRef(argument))
        continue;
      std::vector<bool> inside(n);
      for (unsigned i : part)
        inside[i] = true;
      for (bool reversed : {false, true}) {
        Rational crossing = 0;
        for (const Demand &demand : moved)
          if (inside[demand.from] != reversed && inside[demand.to] == reversed)
            crossing += Rational::make(Rational::Int(demand.amount), 1);
        Rational capacity = crossing.isZero() ? Rational(1) : cutOut(part, reversed);
        if (capacity.isZero())
          return addUnreachable();
        Rational seconds = amountUnit() * crossing / capacity;
        if (seconds > worst) {
          worst = seconds;
          detail = fmt::format("{} {} must {} {} over {}", crossing.str(),
                               query.collective == Collective::all_to_all ? "shares" : "bytes",
                               reversed ? "enter" : "leave", rankList(part), gigabytes(capacity));
        }
      }
    }
    if (worst >= Rational(0))
      add(worst, argument, detail);
  }
  concurrent(moved);
}

void Bounder::allReduceInNetwork() {
  Rational port = 0;
  for (unsigned i = 0; i < n; ++i)
    for (const Rational &side : {cuts.portOut(i), cuts.portIn(i)})
      if (port.isZero() || side < port)
        port = side;
  bool reduces = false;
  for (const Node &node : topo.nodes)
    reduces = reduces || (node.reduces && node.multicast);
  if (reduces && set == LinkSet::scaleUp)
    add((size + share) / port, "in-network reduction",
        fmt::format("each rank gives its buffer and its reduced share over {}", gigabytes(port)),
        false);
}

void Bounder::allReduce() {
  // The result depends on every member and must reach every member: S crosses every cut, both
  // ways. Any cut separates member 0 from some other.
  Rational least = 0;
  std::string detail;
  for (unsigned i = 1; i < n; ++i)
    for (bool reversed : {false, true}) {
      Rational flow = cuts.graph.maxFlow(whole(0), whole(i), nullptr, reversed);
      if (flow.isZero())
        return addUnreachable();
      if (detail.empty() || flow < least) {
        least = flow;
        detail = fmt::format("the buffer must pass between ranks {} and {} over {}", query.group[0],
                             query.group[i], gigabytes(flow));
      }
    }
  add(size / least, "cut", detail);
  if (query.inNetwork) {
    allReduceInNetwork();
  } else if (!query.relays) {
    // Gossip with combining and one-way messages takes 2(k-1) messages an element among k parts
    // (each other part's value must get in, each result out again), and each leaves some part.
    for (const auto &[what, partition] : partitions())
      for (bool reversed : {false, true}) {
        Rational capacity = 0;
        for (const std::vector<unsigned> &part : partition)
          capacity += cutOut(part, reversed);
        int64_t parts = partition.size();
        add(size * Rational(2 * (parts - 1)) / capacity, "volume",
            fmt::format("2 x {} buffers must {} the {} {}s, {} together", parts - 1,
                        reversed ? "enter" : "leave", parts, what, gigabytes(capacity)));
      }
  }
  Cut scatter = shareRate(true), gather = shareRate(false);
  add(share / scatter.rate + share / gather.rate, "reduce_scatter + all_gather",
      fmt::format("{}; {}", scatter.detail, gather.detail), false);
}

void Bounder::permute() {
  Rational worst = -1;
  std::string detail;
  if (query.pairs.empty()) {
    for (unsigned i = 0; i < n; ++i)
      for (bool reversed : {false, true}) {
        Rational capacity = reversed ? cuts.portIn(i) : cuts.portOut(i);
        if (capacity.isZero())
          return addUnreachable();
        if (size / capacity > worst) {
          worst = size / capacity;
          detail = fmt::format("the buffer must {} rank {} over {}", reversed ? "enter" : "leave",
                               query.group[i], gigabytes(capacity));
        }
      }
    return add(worst, "port", detail);
  }
  std::vector<Demand> moving = demands();
  for (auto [from, to, unused] : moving) {
    Rational flow = cuts.graph.maxFlow(whole(from), whole(to));
    if (flow.isZero())
      return addUnreachable();
    if (size / flow > worst) {
      worst = size / flow;
      detail = fmt::format("the buffer must pass from rank {} to rank {} over {}",
                           query.group[from], query.group[to], gigabytes(flow));
    }
  }
  if (moving.empty())
    return add(0, "nothing moves", "every rank keeps its buffer");
  add(worst, "cut", detail);
  concurrent(moving);
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
    LinkSet set = known.empty() ? linksFor(topo, query.group, query.relays) : known[0]->set;
    it = known.insert(it, std::make_unique<Shared>(topo, query, set));
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

std::string topology::checkQuery(const Topology &topo, const BoundQuery &query) {
  if (query.group.empty())
    return "the group is empty";
  std::set<unsigned> seen;
  for (unsigned r : query.group) {
    if (r >= topo.numRanks())
      return fmt::format("the group names rank {}, but the topology has {}", r, topo.numRanks());
    if (!seen.insert(r).second)
      return fmt::format("the group names rank {} twice", r);
  }
  if (query.root >= query.group.size())
    return fmt::format("the root is member {}, but the group has {}", query.root,
                       query.group.size());
  for (auto [from, to] : query.pairs)
    if (from >= query.group.size() || to >= query.group.size())
      return fmt::format("a pair names member {}, but the group has {}", std::max(from, to),
                         query.group.size());
  if (query.collective == Collective::all_to_all_v) {
    size_t members = query.group.size();
    if (query.counts.size() != members * members)
      return fmt::format("all_to_all_v among {} members needs {} x {} counts, found {}", members,
                         members, members, query.counts.size());
    Rational::Int total = 0;
    for (uint64_t count : query.counts)
      total += count;
    if (total > std::numeric_limits<int64_t>::max())
      return "the counts add up to more than 2^63 bytes";
  }
  return "";
}

uint64_t topology::largestTotal(llvm::ArrayRef<uint64_t> counts, unsigned members) {
  uint64_t largest = 0;
  for (unsigned i = 0; i < members; ++i) {
    uint64_t sent = 0, received = 0;
    for (unsigned j = 0; j < members; ++j) {
      sent += i == j ? 0 : counts[i * members + j];
      received += i == j ? 0 : counts[j * members + i];
    }
    largest = std::max({largest, sent, received});
  }
  return largest;
}

static Rational bytesOf(const BoundQuery &query) {
  return Rational::make(Rational::Int(query.bytes), 1);
}

Rational topology::algorithmBandwidth(const BoundQuery &query, const LowerBound &bound) {
  return bound.seconds.isZero() ? Rational(0) : bytesOf(query) / bound.seconds;
}

Rational topology::busBandwidth(const BoundQuery &query, const LowerBound &bound) {
  int64_t n = query.group.size();
  Rational factor = 1;
  switch (query.collective) {
  case Collective::all_reduce:
    factor = Rational::make(2 * (n - 1), n);
    break;
  case Collective::all_gather:
  case Collective::reduce_scatter:
  case Collective::all_to_all:
  case Collective::scatter:
  case Collective::gather:
    factor = Rational::make(n - 1, n);
    break;
  case Collective::broadcast:
  case Collective::reduce:
  case Collective::permute:
  case Collective::all_to_all_v:
    break;
  }
  return algorithmBandwidth(query, bound) * factor;
}
