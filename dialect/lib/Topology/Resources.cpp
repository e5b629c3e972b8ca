//===- Resources.cpp ------------------------------------------------------===//
#include "ncclx/Topology/Resources.h"
#include "CutGraph.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>
#include <fmt/format.h>
#include <numeric>

using namespace mlir::ncclx::topology;

/// 0: scale-up; 1: PCI and sockets; 2: NICs and the network; 3: host processes over TCP.
static unsigned tier(LinkKind kind) {
  switch (kind) {
  case LinkKind::nvlink:
  case LinkKind::xgmi:
  case LinkKind::die:
  case LinkKind::shm:
    return 0;
  case LinkKind::pci:
  case LinkKind::cpu:
  case LinkKind::c2c:
    return 1;
  case LinkKind::nic:
  case LinkKind::net:
    return 2;
  case LinkKind::tcp:
    return 3;
  }
  return 3;
}

ResourceModel::ResourceModel(const Topology &topology, Rate rate) : topo(topology), rate(rate) {
  buildGraph();
  buildRanks();
}

/// `name` without its digits.
static std::string withoutNumbers(llvm::StringRef name) {
  std::string kind;
  for (char c : name)
    if (c < '0' || c > '9')
      kind += c;
  return kind;
}

static std::string nameOf(const Topology &topo, std::pair<unsigned, bool> of) {
  const Node &node = topo.nodes[of.first];
  if (!of.second)
    return node.name;
  unsigned host = node.kind == NodeKind::net ? 0 : node.host;
  return host == 0 ? node.bundle : topo.hosts[host].name + "." + node.bundle;
}

std::string ResourceModel::name(unsigned resource) const {
  const Resource &of = list[resource];
  auto vertex = [&](unsigned v) { return nameOf(topo, vertexName[v]); };
  switch (of.kind) {
  case ResourceKind::link:
    return fmt::format("{}->{}", vertex(of.from), vertex(of.to));
  case ResourceKind::node:
    return vertex(of.from);
  case ResourceKind::hbm:
    return topo.rankNode(of.from).name + ".hbm";
  case ResourceKind::copyEngine:
    return fmt::format("{}.ce{}", topo.rankNode(of.from).name, of.to);
  case ResourceKind::compute:
    return topo.rankNode(of.from).kind == NodeKind::process
               ? topo.hosts[topo.rankNode(of.from).host].name + ".cores"
               : topo.rankNode(of.from).name + ".sms";
  }
  return "";
}

std::pair<unsigned, unsigned> ResourceModel::kindOfName(unsigned resource) const {
  const Resource &of = list[resource];
  constexpr unsigned none = ~0u, memory = none - 1;
  if (of.kind == ResourceKind::link)
    return {vertexKind[of.from], vertexKind[of.to]};
  if (of.kind == ResourceKind::node)
    return {vertexKind[of.from], none};
  return {vertexKind[group[topo.ranks[of.from]]], memory};
}

llvm::SmallVector<unsigned, 4> ResourceModel::linksOf(const Edge &edge) const {
  llvm::SmallVector<unsigned, 4> links = {edge.link};
  if (edge.others >= 0)
    links.append(moreLinks[edge.others].begin(), moreLinks[edge.others].end());
  return links;
}

Rational ResourceModel::latencyOf(const Edge &edge) const {
  Rational most = 0;
  for (unsigned link : linksOf(edge))
    if (most < topo.links[link].latencyNs)
      most = topo.links[link].latencyNs;
  return most;
}

void ResourceModel::buildGraph() {
  std::map<std::tuple<NodeKind, unsigned, std::string>, unsigned> bundles;
  for (unsigned i = 0; i < topo.nodes.size(); ++i) {
    const Node &node = topo.nodes[i];
    unsigned next = unsigned(vertexName.size());
    if (!node.bundle.empty()) {
      unsigned host = node.kind == NodeKind::net ? 0 : node.host;
      next = bundles.try_emplace({node.kind, host, node.bundle}, next).first->second;
    }
    group.push_back(next);
    if (next == vertexName.size())
      vertexName.push_back({i, !node.bundle.empty()});
  }
  size_t vertices = vertexName.size();
  llvm::StringMap<unsigned> kinds;
  for (const auto &of : vertexName) {
    std::string kind = withoutNumbers(nameOf(topo, of));
    vertexKind.push_back(kinds.try_emplace(kind, unsigned(kinds.size())).first->second);
  }
  vertexRank.assign(vertices, -1);
  throughResource.assign(vertices, -1);
  for (unsigned r = 0; r < topo.numRanks(); ++r)
    vertexRank[group[topo.ranks[r]]] = int(r);
  inNetwork.assign(vertices, true);
  for (unsigned i = 0; i < topo.nodes.size(); ++i)
    if (!topo.nodes[i].multicast || !topo.nodes[i].reduces)
      inNetwork[group[i]] = false;
  for (unsigned i = 0; i < topo.nodes.size(); ++i) {
    const Node &node = topo.nodes[i];
    if (node.throughput.isZero())
      continue;
    int &resource = throughResource[group[i]];
    if (resource < 0) {
      resource = int(list.size());
      list.push_back({ResourceKind::node, group[i], 0, 0});
    }
    list[resource].capacity += node.throughput;
  }
  firstEdge.assign(vertices + 1, 0);
  for (const Link &link : topo.links)
    if (group[link.from] != group[link.to])
      ++firstEdge[group[link.from] + 1];
  std::partial_sum(firstEdge.begin(), firstEdge.end(), firstEdge.begin());
  numEdges.assign(vertices, 0);
  edges.resize(firstEdge.back());
  list.reserve(list.size() + edges.size());
  // The number of an edge within those of its start: looked for, where they are few.
  constexpr unsigned few = 32;
  llvm::DenseMap<std::pair<uint64_t, unsigned>, unsigned> index;
  auto key = [](unsigned from, unsigned to, LinkKind kind) {
    return std::pair(uint64_t(from) << 32 | to, unsigned(kind));
  };
  auto numberOf = [&](unsigned from, unsigned to, LinkKind kind) {
    llvm::ArrayRef<Edge> known = out(from);
    if (known.size() < few)
      return unsigned(
          llvm::find_if(known,
                        [&](const Edge &edge) { return edge.to == to && edge.kind == kind; }) -
          known.begin());
    if (known.size() == few)
      for (unsigned i = 0; i < few; ++i)
        index.try_emplace(key(from, known[i].to, known[i].kind), i);
    return index.try_emplace(key(from, to, kind), unsigned(known.size())).first->second;
  };
  for (unsigned i = 0; i < topo.links.size(); ++i) {
    const Link &link = topo.links[i];
    unsigned from = group[link.from], to = group[link.to];
    if (from == to)
      continue;
    unsigned number = numberOf(from, to, link.kind);
    Edge &edge = edges[firstEdge[from] + number];
    if (number == numEdges[from]) {
      ++numEdges[from];
      edge = {to, unsigned(list.size()), link.kind, i};
      list.push_back({ResourceKind::link, from, to, link.bandwidth(rate)});
      continue;
    }
    if (edge.others < 0) {
      edge.others = int(moreLinks.size());
      moreLinks.emplace_back();
    }
    moreLinks[edge.others].push_back(i);
    list[edge.resource].capacity += link.bandwidth(rate);
  }
  marks.resize(vertices);
  fromStart.assign(vertices, ~0u);
  toGoal.assign(vertices, ~0u);
  firstInto.assign(vertices + 1, 0);
  for (unsigned v = 0; v < vertices; ++v)
    for (const Edge &edge : out(v))
      ++firstInto[edge.to + 1];
  std::partial_sum(firstInto.begin(), firstInto.end(), firstInto.begin());
  into.resize(firstInto.back());
  std::vector<unsigned> next(firstInto.begin(), firstInto.end() - 1);
  for (unsigned v = 0; v < vertices; ++v)
    for (const Edge &edge : out(v))
      into[next[edge.to]++] = {v, edge.kind};
}

void ResourceModel::buildRanks() {
  std::vector<int> cores(topo.hosts.size(), -1);
  auto add = [&](ResourceKind kind, unsigned rank, const Rational &capacity, unsigned number = 0) {
    list.push_back({kind, rank, number, capacity});
    return unsigned(list.size()) - 1;
  };
  perRank.reserve(topo.numRanks());
  size_t more = 0; // at most
  for (const GpuModel &model : topo.models)
    more = std::max<size_t>(more, model.copyEngines);
  list.reserve(list.size() + topo.numRanks() * (more + 2));
  for (unsigned r = 0; r < topo.numRanks(); ++r) {
    const Node &node = topo.rankNode(r);
    RankResources use;
    unsigned vertex = group[topo.ranks[r]];
    if (node.kind == NodeKind::process) {
      const Host &host = topo.hosts[node.host];
      int &shared = cores[node.host];
      if (shared < 0)
        shared = int(add(ResourceKind::compute, r, Rational(int64_t(std::max(1u, host.cores)))));
      use.compute = unsigned(shared);
      use.units = 1;
      use.f32PerUnit = host.coreF32Flops;
      use.bf16PerUnit = host.coreBf16Flops;
      for (const Edge &edge : out(vertex))
        if ((edge.kind == LinkKind::shm || edge.kind == LinkKind::tcp) &&
            throughResource[edge.to] >= 0 && use.memory < 0) {
          use.memory = throughResource[edge.to];
          use.memoryPerByte = Rational::make(1, 2);
        }
    } else {
      GpuModel unknown;
      const GpuModel &model = node.model >= 0 ? topo.models[node.model] : unknown;
      use.units = int64_t(std::max(1u, model.sms));
      use.compute = add(ResourceKind::compute, r, use.units);
      use.f32PerUnit = model.f32Flops / use.units;
      use.bf16PerUnit = model.bf16Flops / use.units;
      if (!model.hbmBytesPerSec.isZero()) {
        use.memory = int(add(ResourceKind::hbm, r, model.hbmBytesPerSec));
        use.memoryPerByte = 1;
      }
      Rational widest = 0, byTier[4];
      for (const Edge &edge : out(vertex))
        byTier[tier(edge.kind)] += bandwidthOf(edge);
      for (const Rational &sum : byTier)
        if (sum > widest)
          widest = sum;
      for (unsigned i = 0; i < model.copyEngines; ++i)
        use.copyEngines.push_back(add(ResourceKind::copyEngine, r, widest, i));
      use.powerCapWatts = model.powerCapWatts;
      use.blockBytesPerSec = model.blockBytesPerSec;
    }
    perRank.push_back(std::move(use));
  }
}

/// What one transfer can carry over the planes of the bundles on its way: a maximum flow through
/// the original links of the path.
Rational ResourceModel::planeCap(const std::vector<const Edge *> &path) const {
  Rational least = bandwidthOf(*path.front());
  bool planes = false;
  for (const Edge *edge : path) {
    least = std::min(least, bandwidthOf(*edge),
                     [](const Rational &a, const Rational &b) { return a < b; });
    planes = planes || edge->others >= 0;
  }
  if (!planes)
    return least;
  FlowGraph graph;
  std::map<unsigned, unsigned> vertex;
  auto at = [&](unsigned node) {
    auto [it, added] = vertex.try_emplace(node, 0);
    if (added)
      it->second = graph.addVertex();
    return it->second;
  };
  for (const Edge *edge : path)
    for (unsigned l : linksOf(*edge)) {
      unsigned from = at(topo.links[l].from), to = at(topo.links[l].to);
      graph.addArc(from, to, topo.links[l].bandwidth(rate));
    }
  unsigned first = at(topo.links[path.front()->link].from);
  unsigned last = at(topo.links[path.back()->link].to);
  Rational flow = graph.maxFlow(FlowGraph::Terminal{first, std::nullopt},
                                FlowGraph::Terminal{last, std::nullopt});
  return flow.isValid() ? flow : least;
}

/// Hops of the shortest ways from `start` to `goal` by links of tiers up to `most`, or ~0u, found
/// from both ends: in a large machine all hosts are near the middle. `toGoal` says of each vertex
/// on one of them how far the goal is; `seen` are the vertices of which `fromStart` and `toGoal`
/// say something.
unsigned ResourceModel::meet(unsigned start, unsigned goal, unsigned most,
                             std::vector<unsigned> &seen) const {
  auto from = [&](unsigned v) {
    return llvm::ArrayRef(into).slice(firstInto[v], firstInto[v + 1] - firstInto[v]);
  };
  std::vector<unsigned> fore = {start}, back = {goal};
  fromStart[start] = toGoal[goal] = 0;
  seen = {start, goal};
  unsigned f = 0, b = 0;
  size_t foreWork = out(start).size(), backWork = from(goal).size();
  std::vector<unsigned> met;
  while (met.empty()) {
    if (fore.empty() || back.empty())
      return ~0u;
    bool ahead = foreWork <= backWork;
    std::vector<unsigned> &layer = ahead ? fore : back, &known = ahead ? fromStart : toGoal;
    const std::vector<unsigned> &others = ahead ? toGoal : fromStart;
    unsigned hops = ahead ? ++f : ++b;
    std::vector<unsigned> following;
    size_t work = 0;
    auto reach = [&](unsigned v, LinkKind kind) {
      // Never through another rank.
      if (tier(kind) > most || known[v] != ~0u || (vertexRank[v] >= 0 && v != start && v != goal))
        return;
      known[v] = hops;
      following.push_back(v);
      work += ahead ? out(v).size() : from(v).size();
      if (others[v] != ~0u)
        met.push_back(v);
      else
        seen.push_back(v);
    };
    for (unsigned v : layer)
      if (ahead)
        for (const Edge &edge : out(v))
          reach(edge.to, edge.kind);
      else
        for (auto [u, kind] : from(v))
          reach(u, kind);
    layer = std::move(following);
    (ahead ? foreWork : backWork) = work;
  }
  for (unsigned hops = f; hops-- > 0;) {
    std::vector<unsigned> before;
    for (unsigned v : met)
      for (auto [u, kind] : from(v))
        if (tier(kind) <= most && fromStart[u] == hops && toGoal[u] == ~0u) {
          toGoal[u] = f + b - hops;
          before.push_back(u);
        }
    met = std::move(before);
  }
  return f + b;
}

ResourceModel::Found ResourceModel::search(unsigned source, unsigned destination) const {
  Found found;
  const RankResources &from = perRank[source], &to = perRank[destination];
  if (source == destination) {
    found.reach = Reach::self;
    if (from.memory >= 0) {
      found.route.resources.push_back(unsigned(from.memory));
      found.route.cap = list[from.memory].capacity / (from.memoryPerByte * Rational(2));
    }
    return found;
  }
  unsigned start = group[topo.ranks[source]], goal = group[topo.ranks[destination]];
  for (unsigned most = 0; most <= 3; ++most) {
    std::vector<unsigned> layer = {start}, marked = {start}, seen;
    unsigned all = meet(start, goal, most, seen);
    llvm::scope_exit clear([&] {
      for (unsigned v : seen)
        fromStart[v] = toGoal[v] = ~0u;
      for (unsigned v : marked)
        marks[v].hops = ~0u;
    });
    if (all == ~0u)
      continue;
    // Of the shortest ways, layer by layer, the widest to each vertex.
    marks[start].hops = 0;
    for (unsigned hops = 1; hops <= all; ++hops) {
      std::vector<unsigned> following;
      std::sort(layer.begin(), layer.end());
      for (unsigned v : layer) {
        for (const Edge &edge : out(v)) {
          Mark &mark = marks[edge.to];
          if (tier(edge.kind) > most || toGoal[edge.to] != all - hops)
            continue;
          const Rational *width = &bandwidthOf(edge);
          if (v != start && marks[v].width < *width)
            width = &marks[v].width;
          if (mark.hops == hops && !(mark.width < *width))
            continue;
          if (mark.hops != hops)
            following.push_back(edge.to);
          mark = {hops, v, &edge, *width};
        }
      }
      marked.insert(marked.end(), following.begin(), following.end());
      layer = std::move(following);
    }
    std::vector<const Edge *> path;
    bool sockets = false;
    for (unsigned v = goal; v != start; v = marks[v].previous) {
      path.push_back(marks[v].edge);
      sockets = sockets || marks[v].edge->kind == LinkKind::cpu;
    }
    std::reverse(path.begin(), path.end());
    Route &route = found.route;
    route.cap = planeCap(path);
    auto hold = [&](int resource) {
      if (resource < 0 || std::find(route.resources.begin(), route.resources.end(),
                                    unsigned(resource)) != route.resources.end())
        return;
      route.resources.push_back(unsigned(resource));
      if (list[resource].capacity < route.cap)
        route.cap = list[resource].capacity;
    };
    hold(from.memory);
    for (const Edge *edge : path) {
      hold(int(edge->resource));
      route.latencyNs += latencyOf(*edge);
      hold(throughResource[edge->to]);
    }
    hold(to.memory);
    found.reach = most == 0   ? Reach::loadStore
                  : most == 1 ? (sockets ? Reach::copyEngine : Reach::loadStore)
                  : most == 2 ? Reach::put
                              : Reach::hostOnly;
    break;
  }
  return found;
}

const ResourceModel::Found &ResourceModel::find(unsigned source, unsigned destination) {
  auto [it, added] = cache.try_emplace({source, destination});
  if (added)
    it->second = search(source, destination);
  return it->second;
}

std::optional<Route> ResourceModel::route(unsigned source, unsigned destination) {
  const Found &found = find(source, destination);
  if (found.reach == Reach::none)
    return std::nullopt;
  return found.route;
}

Rational ResourceModel::bandwidth(unsigned source, unsigned destination) {
  return find(source, destination).route.cap;
}

std::optional<Rational> ResourceModel::latencyNs(unsigned source, unsigned destination) {
  const Found &found = find(source, destination);
  if (found.reach == Reach::none)
    return std::nullopt;
  return found.route.latencyNs;
}

Reach ResourceModel::reachability(unsigned source, unsigned destination) {
  return find(source, destination).reach;
}

std::optional<CommonSwitch> ResourceModel::commonSwitch(llvm::ArrayRef<unsigned> members) const {
  auto edgeTo = [&](unsigned from, unsigned to) -> const Edge * {
    const Edge *widest = nullptr;
    for (const Edge &edge : out(from))
      if (edge.to == to && tier(edge.kind) == 0 &&
          (!widest || bandwidthOf(*widest) < bandwidthOf(edge)))
        widest = &edge;
    return widest;
  };
  std::optional<CommonSwitch> best;
  for (unsigned vertex = 0; vertex < vertexName.size(); ++vertex) {
    if (!inNetwork[vertex])
      continue;
    CommonSwitch found;
    for (unsigned rank : members) {
      unsigned at = group[topo.ranks[rank]];
      const Edge *up = edgeTo(at, vertex), *down = edgeTo(vertex, at);
      if (!up || !down)
        break;
      for (const Edge *edge : {up, down})
        if (found.cap.isZero() || bandwidthOf(*edge) < found.cap)
          found.cap = bandwidthOf(*edge);
      if (Rational both = latencyOf(*up) + latencyOf(*down); found.latencyNs < both)
        found.latencyNs = both;
      found.up.push_back(up->resource);
      found.down.push_back(down->resource);
    }
    if (found.down.size() == members.size() && (!best || best->cap < found.cap))
      best = std::move(found);
  }
  return best;
}
