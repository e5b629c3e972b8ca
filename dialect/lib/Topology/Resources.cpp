//===- Resources.cpp ------------------------------------------------------===//
#include "ncclx/Topology/Resources.h"
#include "CutGraph.h"
#include <algorithm>
#include <fmt/format.h>

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

void ResourceModel::buildGraph() {
  std::map<std::tuple<NodeKind, unsigned, std::string>, unsigned> bundles;
  std::vector<std::string> names;
  for (const Node &node : topo.nodes) {
    if (node.bundle.empty()) {
      group.push_back(names.size());
      names.push_back(node.name);
      continue;
    }
    unsigned host = node.kind == NodeKind::net ? 0 : node.host;
    auto [it, added] = bundles.try_emplace({node.kind, host, node.bundle}, names.size());
    if (added)
      names.push_back(host == 0 ? node.bundle : topo.hosts[host].name + "." + node.bundle);
    group.push_back(it->second);
  }
  out.resize(names.size());
  vertexRank.assign(names.size(), -1);
  throughResource.assign(names.size(), -1);
  for (unsigned r = 0; r < topo.numRanks(); ++r)
    vertexRank[group[topo.ranks[r]]] = int(r);
  inNetwork.assign(names.size(), true);
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
      list.push_back({names[group[i]], ResourceKind::node, 0});
    }
    list[resource].capacity += node.throughput;
  }
  std::map<std::tuple<unsigned, unsigned, LinkKind>, unsigned> index; // -> edge within out[from]
  for (unsigned i = 0; i < topo.links.size(); ++i) {
    const Link &link = topo.links[i];
    unsigned from = group[link.from], to = group[link.to];
    if (from == to)
      continue;
    auto [it, added] = index.try_emplace({from, to, link.kind}, out[from].size());
    if (added) {
      out[from].push_back({to, unsigned(list.size()), link.kind, 0, 0, {}});
      list.push_back({fmt::format("{}->{}", names[from], names[to]), ResourceKind::link, 0});
    }
    Edge &edge = out[from][it->second];
    edge.bandwidth += link.bandwidth(rate);
    edge.latencyNs = std::max(edge.latencyNs, link.latencyNs,
                              [](const Rational &a, const Rational &b) { return a < b; });
    edge.links.push_back(i);
    list[edge.resource].capacity = edge.bandwidth;
  }
}

void ResourceModel::buildRanks() {
  std::vector<int> cores(topo.hosts.size(), -1);
  auto add = [&](std::string name, ResourceKind kind, const Rational &capacity) {
    list.push_back({std::move(name), kind, capacity});
    return unsigned(list.size()) - 1;
  };
  for (unsigned r = 0; r < topo.numRanks(); ++r) {
    const Node &node = topo.rankNode(r);
    RankResources use;
    unsigned vertex = group[topo.ranks[r]];
    if (node.kind == NodeKind::process) {
      const Host &host = topo.hosts[node.host];
      int &shared = cores[node.host];
      if (shared < 0)
        shared = int(add(host.name + ".cores", ResourceKind::compute,
                         Rational(int64_t(std::max(1u, host.cores)))));
      use.compute = unsigned(shared);
      use.units = 1;
      use.f32PerUnit = host.coreF32Flops;
      use.bf16PerUnit = host.coreBf16Flops;
      for (const Edge &edge : out[vertex])
        if ((edge.kind == LinkKind::shm || edge.kind == LinkKind::tcp) &&
            throughResource[edge.to] >= 0 && use.memory < 0) {
          use.memory = throughResource[edge.to];
          use.memoryPerByte = Rational::make(1, 2);
        }
    } else {
      GpuModel unknown;
      const GpuModel &model = node.model >= 0 ? topo.models[node.model] : unknown;
      use.units = int64_t(std::max(1u, model.sms));
      use.compute = add(node.name + ".sms", ResourceKind::compute, use.units);
      use.f32PerUnit = model.f32Flops / use.units;
      use.bf16PerUnit = model.bf16Flops / use.units;
      if (!model.hbmBytesPerSec.isZero()) {
        use.memory = int(add(node.name + ".hbm", ResourceKind::hbm, model.hbmBytesPerSec));
        use.memoryPerByte = 1;
      }
      Rational widest = 0;
      std::map<unsigned, Rational> byTier;
      for (const Edge &edge : out[vertex])
        byTier[tier(edge.kind)] += edge.bandwidth;
      for (const auto &[unused, sum] : byTier)
        if (sum > widest)
          widest = sum;
      for (unsigned i = 0; i < model.copyEngines; ++i)
        use.copyEngines.push_back(
            add(fmt::format("{}.ce{}", node.name, i), ResourceKind::copyEngine, widest));
      use.powerCapWatts = model.powerCapWatts;
    }
    perRank.push_back(std::move(use));
  }
}

/// What one transfer can carry over the planes of the bundles on its way: a maximum flow through
/// the original links of the path.
Rational ResourceModel::planeCap(const std::vector<const Edge *> &path) const {
  Rational least = path.front()->bandwidth;
  bool planes = false;
  for (const Edge *edge : path) {
    least = std::min(least, edge->bandwidth,
                     [](const Rational &a, const Rational &b) { return a < b; });
    planes = planes || edge->links.size() > 1;
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
    for (unsigned l : edge->links) {
      unsigned from = at(topo.links[l].from), to = at(topo.links[l].to);
      graph.addArc(from, to, topo.links[l].bandwidth(rate));
    }
  unsigned first = at(topo.links[path.front()->links.front()].from);
  unsigned last = at(topo.links[path.back()->links.front()].to);
  Rational flow = graph.maxFlow(FlowGraph::Terminal{first, std::nullopt},
                                FlowGraph::Terminal{last, std::nullopt});
  return flow.isValid() ? flow : least;
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
    // Breadth first, layer by layer; within a layer the widest way to each vertex wins.
    struct Mark {
      unsigned hops = ~0u;
      Rational width;
      unsigned previous = 0;
      const Edge *edge = nullptr;
    };
    std::vector<Mark> marks(out.size());
    marks[start].hops = 0;
    std::vector<unsigned> layer = {start};
    for (unsigned hops = 1; !layer.empty() && marks[goal].hops == ~0u; ++hops) {
      std::vector<unsigned> following;
      std::sort(layer.begin(), layer.end());
      for (unsigned v : layer) {
        if (v != start && vertexRank[v] >= 0)
          continue; // never through another rank
        for (const Edge &edge : out[v]) {
          Mark &mark = marks[edge.to];
          if (tier(edge.kind) > most || mark.hops < hops)
            continue;
          Rational width = edge.bandwidth;
          if (v != start && marks[v].width < width)
            width = marks[v].width;
          if (mark.hops == hops && !(mark.width < width))
            continue;
          if (mark.hops != hops)
            following.push_back(edge.to);
          mark = {hops, width, v, &edge};
        }
      }
      layer = std::move(following);
    }
    if (marks[goal].hops == ~0u)
      continue;
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
      route.latencyNs += edge->latencyNs;
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
    for (const Edge &edge : out[from])
      if (edge.to == to && tier(edge.kind) == 0 && (!widest || widest->bandwidth < edge.bandwidth))
        widest = &edge;
    return widest;
  };
  std::optional<CommonSwitch> best;
  for (unsigned vertex = 0; vertex < out.size(); ++vertex) {
    if (!inNetwork[vertex])
      continue;
    CommonSwitch found;
    for (unsigned rank : members) {
      unsigned at = group[topo.ranks[rank]];
      const Edge *up = edgeTo(at, vertex), *down = edgeTo(vertex, at);
      if (!up || !down)
        break;
      for (const Edge *edge : {up, down})
        if (found.cap.isZero() || edge->bandwidth < found.cap)
          found.cap = edge->bandwidth;
      if (found.latencyNs < up->latencyNs + down->latencyNs)
        found.latencyNs = up->latencyNs + down->latencyNs;
      found.up.push_back(up->resource);
      found.down.push_back(down->resource);
    }
    if (found.down.size() == members.size() && (!best || best->cap < found.cap))
      best = std::move(found);
  }
  return best;
}
