//===- CutGraph.cpp -------------------------------------------------------===//
#include "CutGraph.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <queue>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;
using Int = Rational::Int;

void FlowGraph::addArc(unsigned from, unsigned to, const Rational &capacity) {
  arcs.push_back({from, to, capacity, 0});
}

namespace {
/// Dinic's algorithm on integers.
class Dinic {
public:
  explicit Dinic(unsigned vertices) : heads(vertices), level(vertices), next(vertices) {}
  void add(unsigned from, unsigned to, Int capacity) {
    heads[from].push_back(edges.size());
    edges.push_back({to, capacity});
    heads[to].push_back(edges.size());
    edges.push_back({from, 0});
  }
  Int run(unsigned s, unsigned t) {
    Int total = 0;
    while (layer(s, t)) {
      std::fill(next.begin(), next.end(), 0);
      while (Int pushed = push(s, t))
        total += pushed;
    }
    return total;
  }
  /// After run(): can the residual graph still reach the vertex?
  [[nodiscard]] bool reached(unsigned v) const { return level[v] >= 0; }

private:
  struct Edge {
    unsigned to;
    Int residual;
  };
  bool layer(unsigned s, unsigned t) {
    std::fill(level.begin(), level.end(), -1);
    level[s] = 0;
    std::vector<unsigned> queue = {s};
    for (size_t i = 0; i < queue.size(); ++i)
      for (unsigned e : heads[queue[i]])
        if (edges[e].residual > 0 && level[edges[e].to] < 0) {
          level[edges[e].to] = level[queue[i]] + 1;
          queue.push_back(edges[e].to);
        }
    return level[t] >= 0;
  }
  /// One augmenting path, without recursion: paths may be long.
  Int push(unsigned s, unsigned t) {
    std::vector<unsigned> path;
    unsigned at = s;
    while (at != t) {
      if (next[at] < heads[at].size()) {
        const Edge &e = edges[heads[at][next[at]]];
        if (e.residual > 0 && level[e.to] == level[at] + 1) {
          path.push_back(heads[at][next[at]]);
          at = e.to;
        } else {
          ++next[at];
        }
        continue;
      }
      if (path.empty())
        return 0;
      at = edges[path.back() ^ 1].to;
      path.pop_back();
      ++next[at];
    }
    Int amount = edges[path.front()].residual;
    for (unsigned e : path)
      amount = std::min(amount, edges[e].residual);
    for (unsigned e : path) {
      edges[e].residual -= amount;
      edges[e ^ 1].residual += amount;
    }
    return amount;
  }
  std::vector<Edge> edges;
  std::vector<std::vector<unsigned>> heads;
  std::vector<int> level;
  std::vector<unsigned> next;
};

/// The least common multiple of `scale` and `den`, or 0 if it does not fit 62 bits.
Int common(Int scale, Int den) {
  Int a = scale, b = den;
  while (b != 0) {
    Int r = a % b;
    a = b;
    b = r;
  }
  Int factor = den / a;
  if (scale == 0 || factor > (Int(1) << 62) / scale)
    return 0;
  return scale * factor;
}
} // namespace

Rational FlowGraph::maxFlow(llvm::ArrayRef<Terminal> sources, llvm::ArrayRef<Terminal> sinks,
                            std::vector<bool> *sourceSide, bool reversed) const {
  Int scale = 1;
  Rational total = 0;
  auto count = [&](const Rational &capacity) {
    if (capacity.isValid())
      scale = common(scale, capacity.denominator());
    total += capacity;
  };
  for (const Arc &arc : arcs)
    count(arc.capacity);
  for (llvm::ArrayRef<Terminal> side : {sources, sinks})
    for (const Terminal &terminal : side)
      if (terminal.capacity)
        count(*terminal.capacity);
  // More than everything together is as good as unlimited.
  Rational unlimited = (total + Rational(1)) * Rational::make(scale, 1);
  if (scale == 0 || !unlimited.isValid() || unlimited > Rational::make(Int(1) << 120, 1))
    return Rational::invalid();
  auto scaled = [&](const Rational &capacity) {
    return capacity.numerator() * (scale / capacity.denominator());
  };
  Dinic dinic(size() + 2);
  unsigned s = size(), t = size() + 1;
  for (const Arc &arc : arcs) {
    if (reversed)
      dinic.add(arc.to, arc.from, scaled(arc.capacity));
    else
      dinic.add(arc.from, arc.to, scaled(arc.capacity));
  }
  Int infinite = unlimited.numerator();
  for (const Terminal &source : sources)
    dinic.add(s, source.vertex, source.capacity ? scaled(*source.capacity) : infinite);
  for (const Terminal &sink : sinks)
    dinic.add(sink.vertex, t, sink.capacity ? scaled(*sink.capacity) : infinite);
  Int value = dinic.run(s, t);
  if (sourceSide) {
    sourceSide->resize(size());
    for (unsigned v = 0; v < size(); ++v)
      (*sourceSide)[v] = dinic.reached(v);
  }
  return Rational::make(value, scale);
}

bool topology::counts(LinkSet set, LinkKind kind) {
  return set != LinkSet::scaleUp || kind == LinkKind::nvlink || kind == LinkKind::xgmi ||
         kind == LinkKind::die || kind == LinkKind::shm;
}

CutGraph::CutGraph(const Topology &topo, LinkSet set, llvm::ArrayRef<unsigned> group, bool relays,
                   Rate rate) {
  // With NICs, the PCI tree is there twice, as the way up to a NIC and the way down from one, so
  // that it does not join GPUs that NVLink joins. (A wire used both ways then counts twice, which
  // only weakens the bound.)
  constexpr unsigned none = ~0u;
  bool twice = set == LinkSet::scaleUpAndNics;
  std::vector<bool> usable(topo.nodes.size());
  for (unsigned i = 0; i < topo.nodes.size(); ++i)
    usable[i] = topo.nodes[i].kind != NodeKind::gpu && topo.nodes[i].kind != NodeKind::process;
  for (unsigned r = 0; relays && r < topo.numRanks(); ++r)
    usable[topo.ranks[r]] = true;
  for (unsigned r : group)
    usable[topo.ranks[r]] = true;

  // Per node: where links arrive and where they leave, on the way up and on the way down.
  struct Ends {
    unsigned in, out;
  };
  std::vector<Ends> up(topo.nodes.size(), {none, none}), down(topo.nodes.size(), {none, none});
  auto make = [&](unsigned node) {
    Ends ends;
    ends.in = ends.out = graph.addVertex();
    if (!topo.nodes[node].throughput.isZero()) {
      ends.out = graph.addVertex();
      graph.addArc(ends.in, ends.out, topo.nodes[node].throughput);
    }
    return ends;
  };
  for (unsigned i = 0; i < topo.nodes.size(); ++i) {
    if (!usable[i])
      continue;
    NodeKind kind = topo.nodes[i].kind;
    bool passage = kind == NodeKind::pci || kind == NodeKind::cpu || kind == NodeKind::nic;
    up[i] = make(i);
    down[i] = twice && passage ? make(i) : up[i];
  }
  auto isUsed = [&](const Link &link) {
    return usable[link.from] && usable[link.to] && counts(set, link.kind);
  };
  graph.arcs.reserve(graph.arcs.size() + size_t(llvm::count_if(topo.links, isUsed)));
  for (const Link &link : topo.links) {
    if (!isUsed(link))
      continue;
    auto add = [&](unsigned from, unsigned to) {
      graph.addArc(from, to, link.bandwidth(rate));
      graph.arcs.back().latencyNs = link.latencyNs;
    };
    NodeKind from = topo.nodes[link.from].kind, to = topo.nodes[link.to].kind;
    bool fromNic = from == NodeKind::nic, toNic = to == NodeKind::nic;
    if (!twice || up[link.from].in == down[link.from].in) {
      // A GPU, switch or the network: goes up, except from the network, which comes down.
      bool descends = from == NodeKind::net && toNic;
      add(up[link.from].out, descends ? down[link.to].in : up[link.to].in);
    } else if (up[link.to].in == down[link.to].in) {
      // To the network only from the way up; to a GPU only from the way down.
      add(to == NodeKind::net ? up[link.from].out : down[link.from].out, up[link.to].in);
    } else if (fromNic && toNic) {
      add(up[link.from].out, down[link.to].in);
    } else {
      if (!fromNic) // within the tree, up to and including a NIC
        add(up[link.from].out, up[link.to].in);
      if (!toNic)
        add(down[link.from].out, down[link.to].in);
    }
  }
  for (unsigned r : group)
    member.push_back(up[topo.ranks[r]].in);

  capacityOut.resize(graph.size());
  capacityIn.resize(graph.size());
  for (const FlowGraph::Arc &arc : graph.arcs) {
    capacityOut[arc.from] += arc.capacity;
    capacityIn[arc.to] += arc.capacity;
  }

  // The one node behind every member, if it is narrow.
  int candidate = -1;
  for (const Link &link : topo.links) {
    if (!counts(set, link.kind))
      continue;
    for (auto [end, other] : {std::pair(link.from, link.to), std::pair(link.to, link.from)}) {
      NodeKind kind = topo.nodes[end].kind;
      if (!usable[end] || (kind != NodeKind::gpu && kind != NodeKind::process))
        continue;
      if (candidate == -1)
        candidate = int(other);
      else if (candidate != int(other))
        candidate = -2;
    }
  }
  if (candidate >= 0 && !topo.nodes[candidate].throughput.isZero() &&
      !topo.nodes[candidate].multicast)
    sharedNode = candidate;
}

namespace {
/// Numbers of the arcs that leave (or, reversed, enter) each vertex, in their order, one list
/// behind the other.
class ArcsOf {
public:
  ArcsOf(const FlowGraph &graph, bool reversed)
      : first(graph.size() + 1, 0), numbers(graph.arcs.size()) {
    auto vertex = [&](const FlowGraph::Arc &arc) { return reversed ? arc.to : arc.from; };
    for (const FlowGraph::Arc &arc : graph.arcs)
      ++first[vertex(arc) + 1];
    for (unsigned v = 0; v < graph.size(); ++v)
      first[v + 1] += first[v];
    std::vector<unsigned> at(first.begin(), first.end() - 1);
    for (unsigned a = 0; a < graph.arcs.size(); ++a)
      numbers[at[vertex(graph.arcs[a])]++] = a;
  }
  llvm::ArrayRef<unsigned> operator[](unsigned vertex) const {
    return {numbers.data() + first[vertex], numbers.data() + first[vertex + 1]};
  }

private:
  std::vector<unsigned> first, numbers;
};
} // namespace

bool CutGraph::connected() const {
  for (bool reversed : {false, true}) {
    ArcsOf next(graph, reversed);
    std::vector<bool> seen(graph.size());
    std::vector<unsigned> stack = {member[0]};
    seen[member[0]] = true;
    while (!stack.empty()) {
      unsigned v = stack.back();
      stack.pop_back();
      for (unsigned a : next[v]) {
        unsigned w = reversed ? graph.arcs[a].from : graph.arcs[a].to;
        if (!seen[w]) {
          seen[w] = true;
          stack.push_back(w);
        }
      }
    }
    for (unsigned v : member)
      if (!seen[v])
        return false;
  }
  return true;
}

/// Dijkstra: the distance of each vertex from one; unset where none leads there. `lengths` by arc.
template <typename Length>
static std::vector<std::optional<Length>> shortest(const FlowGraph &graph, unsigned from,
                                                   llvm::ArrayRef<Length> lengths) {
  ArcsOf next(graph, /*reversed=*/false);
  std::vector<std::optional<Length>> best(graph.size());
  using Entry = std::pair<Length, unsigned>;
  auto later = [](const Entry &a, const Entry &b) { return a.first > b.first; };
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
  best[from] = Length(0);
  queue.push({Length(0), from});
  while (!queue.empty()) {
    auto [distance, v] = queue.top();
    queue.pop();
    if (distance > *best[v])
      continue;
    for (unsigned a : next[v]) {
      unsigned to = graph.arcs[a].to;
      Length through = distance + lengths[a];
      if (!best[to] || through < *best[to]) {
        best[to] = through;
        queue.push({through, to});
      }
    }
  }
  return best;
}

std::vector<std::optional<Rational>> CutGraph::latencies(unsigned from) const {
  // Mostly whole numbers of nanoseconds, of which no way has enough to overflow.
  constexpr int64_t longest = int64_t(1) << 32;
  bool whole = graph.arcs.size() < size_t(longest / 4) &&
               llvm::all_of(
                   graph.arcs,
                   [](const FlowGraph::Arc &arc) {
                     return arc.latencyNs.denominator() == 1 && arc.latencyNs.numerator() >= 0 &&
                            arc.latencyNs.numerator() < longest;
                   });
  if (!whole) {
    std::vector<Rational> lengths;
    for (const FlowGraph::Arc &arc : graph.arcs)
      lengths.push_back(arc.latencyNs);
    return shortest<Rational>(graph, member[from], lengths);
  }
  std::vector<int64_t> lengths;
  lengths.reserve(graph.arcs.size());
  for (const FlowGraph::Arc &arc : graph.arcs)
    lengths.push_back(int64_t(arc.latencyNs.numerator()));
  std::vector<std::optional<Rational>> found;
  found.reserve(graph.size());
  for (const std::optional<int64_t> &length : shortest<int64_t>(graph, member[from], lengths))
    found.push_back(length ? std::optional<Rational>(*length) : std::nullopt);
  return found;
}
