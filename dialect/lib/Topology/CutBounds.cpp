//===- CutBounds.cpp - What must cross a cut ---------------------------------===//
//
// The cut bounds are exact maxima over all cuts, found by Newton's method on maximum flows: a cut
// that a flow fails to fill gives a smaller rate, until every flow fits. Each step is exact.
//
//===----------------------------------------------------------------------===//
#include "Bounder.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

using namespace mlir::ncclx::topology;

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
