//===- Tiers.cpp - Ranks in equal nested blocks ----------------------------===//
#include "ncclx/Topology/Tiers.h"
#include "llvm/ADT/STLExtras.h"

#include "llvm/ADT/DenseMap.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {

/// What stands at one place of the ways from rank 0 across a tier, and how many ranks share it.
struct Stage {
  std::set<unsigned> resources;
  double rate = 0; ///< of one rank
};

class Finder {
public:
  Finder(const Topology &topo, ResourceModel &model) : topo(topo), model(model) {}

  Tiers find() {
    bool several = cut();
    if (!several && !isFlat()) {
      if (tiers.list.size() > 1) // of blocks that an outer one does not hold whole
        tiers.list.clear();
      return std::move(tiers);
    }
    leastOfEachKind();
    for (size_t t = tiers.list.size(); t-- > 0;)
      if (!rate(t)) {
        tiers.list.clear();
        break;
      }
    return std::move(tiers);
  }

private:
  const Topology &topo;
  ResourceModel &model;
  Tiers tiers;
  struct Kind {
    double least = 0;
    int64_t count = 0;
  };
  /// Links and memories whose names differ in numbers alone.
  llvm::DenseMap<std::pair<unsigned, unsigned>, Kind> kinds;
  std::vector<std::pair<std::set<unsigned>, unsigned>> known; ///< resources of each port

  void leastOfEachKind() {
    for (unsigned i = 0; i < model.resources().size(); ++i) {
      const Resource &resource = model.resources()[i];
      if (resource.kind == ResourceKind::compute || resource.kind == ResourceKind::copyEngine)
        continue;
      Kind &kind = kinds[model.kindOfName(i)];
      double capacity = resource.capacity.toDouble();
      kind.least = kind.count++ ? std::min(kind.least, capacity) : capacity;
    }
  }
  bool cut();
  bool isFlat();
  bool rate(size_t t);
};

/// Blocks of hosts, racks, zones and data centres.
bool Finder::cut() {
  int64_t ranks = topo.numRanks();
  auto blocksBy = [&](auto key) -> int64_t { // ranks in each, 0: none, -1: unequal
    int64_t block = 0, begin = 0;
    std::set<std::string> seen;
    for (int64_t r = 0; r < ranks; ++r) {
      if (r > 0 && topo.rankNode(unsigned(r)).host == topo.rankNode(unsigned(r - 1)).host)
        continue;
      std::string mine = key(topo.rankNode(unsigned(r)).host);
      if (mine.empty())
        return 0;
      if (r == 0 || mine != key(topo.rankNode(unsigned(r - 1)).host)) {
        if (!seen.insert(mine).second || (block && r - begin != block))
          return -1;
        if (r > 0)
          block = r - begin;
        begin = r;
      }
    }
    return block && ranks - begin != block ? -1 : ranks - begin;
  };
  auto no = [&](std::string why) {
    tiers.why = std::move(why);
    return false;
  };
  std::vector<std::pair<const char *, int64_t>> blocks = {
      {"rank", 1},
      {"host", blocksBy([&](unsigned h) { return std::to_string(h); })},
      {"rack", blocksBy([&](unsigned h) { return topo.hosts[h].rack; })},
      {"zone", blocksBy([&](unsigned h) { return topo.hosts[h].zone; })},
      {"data centre", blocksBy([&](unsigned h) { return topo.hosts[h].dataCenter; })},
      {"", ranks}};
  int64_t below = 0;
  const char *inner = "";
  for (auto [name, size] : blocks) {
    if (size < 0)
      return no(fmt::format("its {}s hold different numbers of ranks, or ranks that do not follow "
                            "each other",
                            name));
    if (size == 0)
      continue;
    if (below && size % below)
      return no(
          fmt::format("a {} of {} ranks does not hold whole {}s of {}", name, size, inner, below));
    if (below && size > below)
      tiers.list.insert(tiers.list.begin(), {inner, size / below, below, 0, 0, {}});
    below = size;
    inner = name;
  }
  return tiers.list.size() > 1 || no("its ranks are on one host, or each on its own");
}

/// Has each rank one way out and one way in, its own, as wide and as long as those of all others?
bool Finder::isFlat() {
  constexpr unsigned mostRanks = 1024; // pairs of neighbours are routed
  unsigned ranks = topo.numRanks();
  if (tiers.list.size() != 1 || ranks > mostRanks)
    return false;
  std::set<unsigned> taken; // by one rank alone
  struct Way {
    unsigned out, in;
  };
  std::optional<Route> first;
  auto way = [&](unsigned from, unsigned to) -> std::optional<Way> {
    std::optional<Route> route = model.route(from, to);
    if (!route || topo.rankNode(from).kind != NodeKind::gpu)
      return std::nullopt;
    if (!first)
      first = route;
    std::vector<unsigned> links;
    for (unsigned resource : route->resources) {
      ResourceKind kind = model.resources()[resource].kind;
      if (kind == ResourceKind::link)
        links.push_back(resource);
      else if (kind != ResourceKind::hbm)
        return std::nullopt;
    }
    if (links.size() != 2 || route->latencyNs != first->latencyNs || route->cap != first->cap)
      return std::nullopt;
    return Way{links[0], links[1]};
  };
  for (unsigned r = 0; r < ranks; ++r) {
    std::optional<Way> next = way(r, (r + 1) % ranks), across = way(r, (r + ranks / 2) % ranks);
    if (!next || (ranks > 2 && (!across || across->out != next->out)))
      return false;
    if (!taken.insert(next->out).second || !taken.insert(next->in).second)
      return false;
    std::optional<Way> from = r ? way(0, r) : next, to = r ? way(r, 0) : next;
    if (r && (!from || !to || from->out != way(0, 1)->out || to->in != way(1, 0)->in))
      return false;
  }
  return true;
}

bool Finder::rate(size_t t) {
  Tier &tier = tiers.list[t];
  constexpr int64_t mostPartners = 8; // behind a switch one is as good as all
  std::vector<Stage> stages;
  auto holds = [&](int64_t from, int64_t to, unsigned resource) {
    std::optional<Route> route = model.route(unsigned(from), unsigned(to));
    return route && llvm::is_contained(route->resources, resource);
  };
  for (int64_t e = 1; e < tier.size && e <= mostPartners; ++e) {
    std::optional<Route> route = model.route(0, unsigned(e * tier.stride));
    if (!route || route->cap.isZero()) {
      tiers.why = fmt::format("nothing leads from rank 0 to rank {}", e * tier.stride);
      return false;
    }
    tier.latency = std::max(tier.latency, route->latencyNs.toDouble() * 1e-9);
    size_t place = 0;
    for (unsigned resource : route->resources) {
      const Resource &r = model.resources()[resource];
      Kind kind = kinds.lookup(model.kindOfName(resource));
      if (r.kind == ResourceKind::node)
        continue; // a host's memory, of all its processes
      if (r.kind == ResourceKind::hbm) {
        tiers.memory = tiers.memory > 0 ? std::min(tiers.memory, kind.least) : kind.least;
        continue;
      }
      if (stages.size() == place)
        stages.emplace_back();
      Stage &stage = stages[place++];
      if (!stage.resources.insert(resource).second)
        continue;
      double sharing = 1;
      for (size_t s = t + 1; s < tiers.list.size(); ++s)
        if (int64_t other = tiers.list[s].stride; holds(other, other + e * tier.stride, resource))
          sharing *= double(tiers.list[s].size);
      stage.rate += kind.least / sharing;
      if (place == 1 && sharing == 1 && kind.count < int64_t(topo.numRanks())) {
        tiers.why = fmt::format("not every rank has a link like '{}'", model.name(resource));
        return false;
      }
    }
  }
  // What an inner tier goes through too is its port; all else is one of this tier's own.
  tier.bytesPerSecond = std::numeric_limits<double>::infinity();
  double own = tier.bytesPerSecond;
  std::set<unsigned> mine;
  for (const Stage &stage : stages) {
    tier.bytesPerSecond = std::min(tier.bytesPerSecond, stage.rate);
    auto port = llvm::find_if(known, [&](const auto &entry) {
      return llvm::any_of(stage.resources, [&](unsigned r) { return entry.first.contains(r); });
    });
    if (port != known.end()) {
      if (!llvm::is_contained(tier.ports, port->second))
        tier.ports.push_back(port->second);
      continue;
    }
    own = std::min(own, stage.rate);
    mine.insert(stage.resources.begin(), stage.resources.end());
  }
  if (!mine.empty()) {
    tier.ports.push_back(unsigned(tiers.ports.size()));
    known.push_back({mine, unsigned(tiers.ports.size())});
    tiers.ports.push_back(own);
  }
  return true;
}

} // namespace

Tiers topology::findTiers(const Topology &topo, ResourceModel &resources) {
  return Finder(topo, resources).find();
}
