//===- TierTrees.cpp - Trees and ways along unequal tiers ------------------===//
//
// Greedy: whatever is to cross from one block into another takes, of all pairs of members that
// could carry it, the one that adds least to a high power of the loads, which is near to the least
// of the busiest. Data that is in a host is given to all of it in any case, so any of its members
// may send it on.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Topology/TierTrees.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <set>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {

/// Shares of each root, or of each pair, that are tried, and trees of a packing.
constexpr unsigned mostShares = 12, mostTrees = 192;
/// What more shares must win to be worth their pieces.
constexpr double worthIt = 0.995;

/// What is nested: the blocks of a tier, or, of a host, its members.
struct Block {
  std::vector<unsigned> members;
  std::vector<Block> parts; ///< none: a host
};

class ByTiers {
public:
  ByTiers(const Topology &topo, ResourceModel &resources, llvm::ArrayRef<unsigned> group,
          bool spreads, bool sums)
      : topo(topo), resources(resources), group(group), n(unsigned(group.size())), spreads(spreads),
        sums(sums) {}

  /// Why there is nothing that this can do.
  std::string prepare();
  TreePacking pack(TreeFlow flow);
  Routing route(llvm::ArrayRef<uint64_t> amounts, unsigned maxShares);
  bool failed() const { return stuck; }

private:
  struct Use {
    unsigned row;
    double perByte; ///< seconds
  };
  struct Way {
    bool exists = false;
    double latency = 0;
    std::vector<Use> uses;
  };
  struct Crossing {
    unsigned from, to;
  };
  struct Packed {
    std::vector<unsigned> roots;
    std::vector<std::vector<unsigned>> parents;
    double busiest = 0; ///< seconds, where each share is a byte
  };

  const Topology &topo;
  ResourceModel &resources;
  llvm::ArrayRef<unsigned> group;
  unsigned n;
  bool spreads, sums, stuck = false;
  Block all;
  std::vector<const std::vector<unsigned> *> hostOf; ///< by member: all of its host
  std::vector<int> rail;
  std::vector<Way> ways; ///< sender * n + receiver
  llvm::DenseMap<unsigned, unsigned> rows;
  std::vector<double> load; ///< seconds, by row
  double unit = 0;

  Block nested(std::vector<unsigned> members, unsigned level) const;
  void noteHosts(const Block &block);
  void measure();
  const Way &way(unsigned from, unsigned to) const { return ways[from * n + to]; }
  /// The way of data from a parent to its child, and of sums back.
  template <typename Do> void forEdge(unsigned parent, unsigned child, Do act) const {
    if (spreads)
      act(way(parent, child));
    if (sums)
      act(way(child, parent));
  }
  bool joined(unsigned parent, unsigned child) const {
    return way(parent, child).exists && way(child, parent).exists;
  }
  double added(const Way &way, double bytes) const;
  void put(const Way &way, double bytes) {
    for (const Use &use : way.uses)
      load[use.row] += use.perByte * bytes;
  }
  template <typename Cost>
  std::optional<Crossing> cheapest(llvm::ArrayRef<unsigned> from, llvm::ArrayRef<unsigned> to,
                                   Cost cost) const;
  void reach(const Block &block, unsigned holder, std::vector<unsigned> &parent);
  std::vector<unsigned> grow(unsigned root);
  double power() const;
  Packed packed(TreeFlow flow, unsigned shares);
  std::optional<Routing> routed(llvm::ArrayRef<uint64_t> amounts, unsigned shares);
  double busiest() const { return *std::max_element(load.begin(), load.end()); }
};

} // namespace

Block ByTiers::nested(std::vector<unsigned> members, unsigned level) const {
  if (level == 4)
    return {std::move(members), {}};
  auto key = [&](unsigned member) -> std::string {
    const Node &node = topo.rankNode(group[member]);
    const Host &host = topo.hosts[node.host];
    return level == 0   ? host.dataCenter
           : level == 1 ? host.zone
           : level == 2 ? host.rack
                        : std::to_string(node.host);
  };
  std::map<std::string, size_t> numbers;
  std::vector<std::vector<unsigned>> parts; // in the order of their first members
  for (unsigned member : members) {
    auto [it, isNew] = numbers.try_emplace(key(member), parts.size());
    if (isNew)
      parts.emplace_back();
    parts[it->second].push_back(member);
  }
  if (parts.size() == 1)
    return nested(std::move(members), level + 1);
  Block block{std::move(members), {}};
  for (std::vector<unsigned> &of : parts)
    block.parts.push_back(nested(std::move(of), level + 1));
  return block;
}

void ByTiers::noteHosts(const Block &block) {
  for (const Block &part : block.parts)
    noteHosts(part);
  if (block.parts.empty())
    for (unsigned member : block.members)
      hostOf[member] = &block.members;
}

void ByTiers::measure() {
  ways.resize(size_t(n) * n);
  auto use = [&](std::vector<Use> &uses, unsigned resource, double weight) {
    double perByte = weight / resources.resources()[resource].capacity.toDouble();
    unsigned row = rows.try_emplace(resource, unsigned(rows.size())).first->second;
    unit = std::max(unit, perByte);
    for (Use &known : uses)
      if (known.row == row) {
        known.perByte += perByte;
        return;
      }
    uses.push_back({row, perByte});
  };
  for (unsigned u = 0; u < n; ++u)
    for (unsigned v = 0; v < n; ++v) {
      if (u == v)
        continue;
      std::optional<Route> found = resources.route(group[u], group[v]);
      if (!found || found->cap.isZero())
        continue;
      Way &way = ways[u * n + v];
      way.exists = true;
      way.latency = found->latencyNs.toDouble() * 1e-9;
      for (unsigned resource : found->resources)
        use(way.uses, resource, 1);
    }
  load.resize(rows.size(), 0);
}

std::string ByTiers::prepare() {
  if (n < 2 || n > maxTierMembers)
    return fmt::format("it is for 2 to {} members whose hosts are not alike, not {}",
                       maxTierMembers, n);
  std::vector<unsigned> members(n);
  std::iota(members.begin(), members.end(), 0u);
  all = nested(std::move(members), 0);
  hostOf.resize(n);
  noteHosts(all);
  if (all.parts.empty() ||
      llvm::all_of(hostOf, [](const std::vector<unsigned> *host) { return host->size() == 1; }))
    return "its ranks are on one host, or each on its own";
  std::vector<NearestPort> ports = nearestPorts(topo);
  for (unsigned rank : group)
    rail.push_back(ports[rank].rail);
  measure();
  return "";
}

double ByTiers::added(const Way &way, double bytes) const {
  double sum = 0;
  for (const Use &use : way.uses) {
    double before = load[use.row] / unit, after = before + use.perByte * bytes / unit;
    sum += std::pow(after, 8) - std::pow(before, 8);
  }
  return sum;
}

/// Of what costs the same, on one rail; and then without a step in between: who holds it is first
/// in `from`, and who gets it in `to`.
template <typename Cost>
std::optional<ByTiers::Crossing> ByTiers::cheapest(llvm::ArrayRef<unsigned> from,
                                                   llvm::ArrayRef<unsigned> to, Cost cost) const {
  std::optional<Crossing> best;
  double least = std::numeric_limits<double>::infinity();
  unsigned leastOther = 0;
  for (auto [i, x] : llvm::enumerate(from))
    for (auto [j, e] : llvm::enumerate(to)) {
      double price = cost(x, e);
      if (!std::isfinite(price))
        continue;
      unsigned other = (rail[x] == rail[e] ? 0 : 4) + (i > 0) + (j > 0);
      if (best &&
          (price > least * (1 + 1e-6) || (price > least * (1 - 1e-6) && other >= leastOther)))
        continue;
      best = {x, e};
      least = price;
      leastOther = other;
    }
  return best;
}

/// `holder`, a member of `block`, has the data: gives it to all others there.
void ByTiers::reach(const Block &block, unsigned holder, std::vector<unsigned> &parent) {
  auto give = [&](unsigned from, unsigned to) {
    parent[to] = from;
    forEdge(from, to, [&](const Way &way) { put(way, 1); });
  };
  if (block.parts.empty()) {
    for (unsigned member : block.members)
      if (member != holder && !joined(holder, member))
        stuck = true;
      else if (member != holder)
        give(holder, member);
    return;
  }
  // Who holds it first, as it sends soonest.
  std::vector<unsigned> from{holder};
  for (unsigned member : *hostOf[holder])
    if (member != holder)
      from.push_back(member);
  const Block *own = nullptr;
  for (const Block &part : block.parts) {
    if (llvm::is_contained(part.members, holder)) {
      own = &part;
      continue;
    }
    auto found = cheapest(from, part.members, [&](unsigned x, unsigned e) {
      if (!joined(x, e))
        return std::numeric_limits<double>::infinity();
      double price = 0;
      forEdge(x, e, [&](const Way &way) { price += added(way, 1); });
      return price;
    });
    if (!found) {
      stuck = true;
      return;
    }
    give(found->from, found->to);
    reach(part, found->to, parent);
  }
  reach(*own, holder, parent);
}

std::vector<unsigned> ByTiers::grow(unsigned root) {
  std::vector<unsigned> parent(n, root);
  reach(all, root, parent);
  return parent;
}

double ByTiers::power() const {
  double sum = 0;
  for (double one : load)
    sum += std::pow(one / unit, 8);
  return sum;
}

ByTiers::Packed ByTiers::packed(TreeFlow flow, unsigned shares) {
  load.assign(load.size(), 0);
  Packed result;
  if (flow != TreeFlow::sumAndSpread) {
    // All roots' first shares, then their second ones: so that they take turns.
    std::vector<std::vector<std::vector<unsigned>>> of(n);
    for (unsigned share = 0; share < shares; ++share)
      for (unsigned root = 0; root < n; ++root)
        of[root].push_back(grow(root));
    for (unsigned root = 0; root < n; ++root)
      for (std::vector<unsigned> &parent : of[root]) {
        result.roots.push_back(root);
        result.parents.push_back(std::move(parent));
      }
  } else {
    std::vector<unsigned> rooted(n, 0); // shares
    std::vector<std::pair<unsigned, std::vector<unsigned>>> of;
    for (unsigned share = 0; share < shares; ++share) {
      std::pair<unsigned, std::vector<unsigned>> best;
      std::vector<double> before = load, bestLoad;
      double least = std::numeric_limits<double>::infinity();
      for (unsigned member = 0; member < n; ++member) {
        const std::vector<unsigned> &host = *hostOf[member];
        if (host.front() != member)
          continue;
        unsigned root = *std::min_element(host.begin(), host.end(), [&](unsigned a, unsigned b) {
          return rooted[a] < rooted[b];
        });
        load = before;
        std::vector<unsigned> parent = grow(root);
        if (double now = power(); now < least * (1 - 1e-6)) {
          least = now;
          bestLoad = load;
          best = {root, std::move(parent)};
        }
      }
      load = std::move(bestLoad);
      ++rooted[best.first];
      of.push_back(std::move(best));
    }
    llvm::sort(of);
    for (auto &[root, parent] : of) {
      result.roots.push_back(root);
      result.parents.push_back(std::move(parent));
    }
  }
  result.busiest = busiest();
  return result;
}

TreePacking ByTiers::pack(TreeFlow flow) {
  bool isFree = flow == TreeFlow::sumAndSpread;
  Packed best;
  unsigned bestShares = 1;
  for (unsigned times = 1; times <= mostShares && !stuck; ++times) {
    unsigned shares = isFree ? times * n : times;
    if (times > 1 && times * n > mostTrees)
      break;
    Packed found = packed(flow, shares);
    if (times > 1 && found.busiest / shares > worthIt * best.busiest / bestShares)
      continue;
    best = std::move(found);
    bestShares = shares;
  }
  TreePacking result;
  if (stuck)
    return result;
  result.shares = bestShares;
  std::vector<std::set<std::pair<unsigned, unsigned>>> usersOf(load.size());
  std::vector<double> carried(load.size(), 0);
  for (auto [root, parent] : llvm::zip(best.roots, best.parents)) {
    PackedTree tree{root, {}, {}};
    if (sums)
      tree.in = parent;
    if (spreads)
      tree.out = parent;
    unsigned depth = 0;
    auto pass = [&](unsigned from, unsigned to) {
      for (const Use &use : way(from, to).uses) {
        usersOf[use.row].insert({from, to});
        carried[use.row] += use.perByte;
      }
    };
    for (unsigned v = 0; v < n; ++v) {
      unsigned steps = 0;
      for (unsigned u = v; u != root; u = parent[u])
        ++steps;
      depth = std::max(depth, steps);
      if (v != root && spreads)
        pass(parent[v], v);
      if (v != root && sums)
        pass(v, parent[v]);
    }
    result.depth = std::max(result.depth, depth * unsigned(sums + spreads));
    result.trees.push_back(std::move(tree));
  }
  result.secondsPerByte = *std::max_element(carried.begin(), carried.end()) / bestShares;
  result.edgeSeconds.assign(n, std::vector<double>(n, 0));
  result.latencies.assign(n, std::vector<double>(n, 0));
  for (unsigned u = 0; u < n; ++u)
    for (unsigned v = 0; v < n; ++v) {
      result.latencies[u][v] = way(u, v).latency;
      // Edges that share a resource share it evenly.
      for (const Use &use : way(u, v).uses)
        if (usersOf[use.row].contains({u, v}))
          result.edgeSeconds[u][v] =
              std::max(result.edgeSeconds[u][v], use.perByte * double(usersOf[use.row].size()));
    }
  return result;
}

std::optional<Routing> ByTiers::routed(llvm::ArrayRef<uint64_t> amounts, unsigned shares) {
  load.assign(load.size(), 0);
  std::vector<std::map<std::vector<unsigned>, unsigned>> of(size_t(n) * n); ///< shares, by members
  for (unsigned share = 0; share < shares; ++share)
    for (unsigned by = 1; by < n; ++by)
      for (unsigned a = 0; a < n; ++a) {
        unsigned b = (a + by) % n;
        if (amounts[a * n + b] == 0)
          continue;
        double bytes = double(amounts[a * n + b]) / shares;
        auto first = [](unsigned member, const std::vector<unsigned> &host) {
          std::vector<unsigned> list{member};
          for (unsigned other : host)
            if (other != member)
              list.push_back(other);
          return list;
        };
        std::optional<Crossing> found = Crossing{a, b};
        if (hostOf[a] != hostOf[b])
          found = cheapest(first(a, *hostOf[a]), first(b, *hostOf[b]), [&](unsigned x, unsigned e) {
            if (!way(x, e).exists || (a != x && !way(a, x).exists) || (e != b && !way(e, b).exists))
              return std::numeric_limits<double>::infinity();
            return added(way(x, e), bytes) + (a != x ? added(way(a, x), bytes) : 0) +
                   (e != b ? added(way(e, b), bytes) : 0);
          });
        if (!found || !way(found->from, found->to).exists)
          return std::nullopt;
        std::vector<unsigned> members{a};
        for (unsigned next : {found->from, found->to, b})
          if (next != members.back()) {
            put(way(members.back(), next), bytes);
            members.push_back(next);
          }
        ++of[a * n + b][members];
      }
  Routing routing;
  routing.shares = shares;
  routing.seconds = busiest();
  for (const auto &pair : of) {
    unsigned from = 0;
    for (const auto &[members, share] : pair) {
      routing.depth = std::max(routing.depth, unsigned(members.size()) - 1);
      routing.paths.push_back({members, from, share});
      from += share;
    }
  }
  return routing;
}

Routing ByTiers::route(llvm::ArrayRef<uint64_t> amounts, unsigned maxShares) {
  Routing best;
  for (unsigned shares = 1; shares <= std::min(maxShares, mostShares); ++shares) {
    std::optional<Routing> found = routed(amounts, shares);
    if (!found) {
      stuck = true;
      break;
    }
    if (shares == 1 || found->seconds < worthIt * best.seconds)
      best = std::move(*found);
  }
  return best;
}

/// What `make` makes, unless there is a reason not to.
template <typename Make> static auto madeBy(ByTiers tiers, std::string *why, Make make) {
  std::string whyNot = tiers.prepare();
  std::optional<decltype(make(tiers))> made;
  if (whyNot.empty()) {
    made = make(tiers);
    if (tiers.failed()) {
      whyNot = "some member has no way to another";
      made = std::nullopt;
    }
  }
  if (why)
    *why = whyNot;
  return made;
}

std::optional<TreePacking> topology::treesByTiers(const Topology &topo, ResourceModel &resources,
                                                  llvm::ArrayRef<unsigned> group, TreeFlow flow,
                                                  std::string *why) {
  return madeBy(ByTiers(topo, resources, group, flow != TreeFlow::sum, flow != TreeFlow::spread),
                why, [&](ByTiers &tiers) { return tiers.pack(flow); });
}

std::optional<Routing> topology::routesByTiers(const Topology &topo, ResourceModel &resources,
                                               llvm::ArrayRef<unsigned> group,
                                               llvm::ArrayRef<uint64_t> amounts, unsigned maxShares,
                                               std::string *why) {
  return madeBy(ByTiers(topo, resources, group, true, false), why,
                [&](ByTiers &tiers) { return tiers.route(amounts, maxShares); });
}

const TreePacking *TreePacker::packByTiers(llvm::ArrayRef<unsigned> group, TreeFlow flow,
                                           std::string *why) {
  auto [it, isNew] = knownByTiers.try_emplace({group.vec(), flow});
  auto &[packing, whyNot] = it->second;
  if (isNew)
    packing = treesByTiers(topology, resources(), group, flow, &whyNot);
  if (why)
    *why = whyNot;
  return packing ? &*packing : nullptr;
}

const Routing *TreePacker::routeByTiers(llvm::ArrayRef<unsigned> group,
                                        llvm::ArrayRef<uint64_t> amounts, unsigned maxShares,
                                        std::string *why) {
  auto [it, isNew] = routingsByTiers.try_emplace({group.vec(), amounts.vec(), maxShares});
  auto &[routing, whyNot] = it->second;
  if (isNew)
    routing = routesByTiers(topology, resources(), group, amounts, maxShares, &whyNot);
  if (why)
    *why = whyNot;
  return routing ? &*routing : nullptr;
}
