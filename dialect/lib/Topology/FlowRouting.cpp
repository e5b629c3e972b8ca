//===- FlowRouting.cpp ----------------------------------------------------===//
#include "ncclx/Topology/FlowRouting.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <queue>

using namespace mlir::ncclx::topology;

namespace {
/// What few shares may lose to many.
constexpr double tolerance = 6e-3;
/// Edges looked at in all: about half a second.
constexpr double mostWork = 2e7;
/// Shares that change their way in a search: few pairs take more turns.
constexpr unsigned mostMoves = 28800, leastPasses = 120, mostPasses = 600;
/// Paths at most, of all pairs together: a schedule's text grows with them.
constexpr unsigned mostPaths = 6000;
/// How steeply prices rise with the load, at first and in the end.
constexpr double flat = 8, steep = 150;
/// An edge more costs so much of a full resource's price, at first much: of two ways, the shorter.
constexpr double leastHopPrice = 2e-3;

class FlowRouter {
public:
  FlowRouter(ResourceModel &resources, llvm::ArrayRef<unsigned> group,
             llvm::ArrayRef<uint64_t> amounts);
  std::optional<Routing> run(unsigned maxShares);

private:
  struct Use {
    unsigned row;
    double perByte; ///< of the slowest resource's
  };
  struct Edge {
    unsigned to;
    std::vector<Use> uses;
  };
  using Path = std::vector<unsigned>; ///< edges as positions in `out` of the member they leave
  struct Pair {
    unsigned from, to;
    double amount;
    std::vector<std::pair<Path, unsigned>> ways; ///< and their shares
  };

  void load(const Pair &pair, const Path &path, double shares);
  double costOf(const Edge &edge) const {
    double cost = 0;
    for (const Use &use : edge.uses)
      cost += prices[use.row] * use.perByte;
    return cost;
  }
  double costOf(const Pair &pair, const Path &path) const;
  /// The cheapest way, where `end` can be reached; without an end the distances alone.
  std::optional<Path> cheapest(unsigned from, unsigned end, double perHop);
  void setPrice(unsigned row) { prices[row] = std::exp(steepness * (loads[row] / goal - 1)); }
  double busiest() const { return *std::max_element(loads.begin(), loads.end()); }
  /// What no routing can beat at the prices of now.
  double bound();
  Routing result(unsigned shares, double seconds) const;
  /// Looks for a routing that takes no longer than `enough`, or near to what is possible; `best` is
  /// the best of all searches. False: some amount has no way.
  bool search(unsigned shares, double enough);
  void handOver(Pair &pair, double perHop);

  unsigned n, rows = 0;
  double unit = 0; ///< seconds per byte
  std::vector<std::vector<Edge>> out;
  std::vector<Pair> pairs;
  std::vector<double> loads, prices, distance;
  double goal = 1, steepness = 1, shareOf = 1, work = 0;
  std::optional<Routing> best;
  double least = 0; ///< what no routing can beat, as far as is known
};

FlowRouter::FlowRouter(ResourceModel &resources, llvm::ArrayRef<unsigned> group,
                       llvm::ArrayRef<uint64_t> amounts)
    : n(group.size()), out(n) {
  std::map<unsigned, unsigned> rowOf;
  for (unsigned u = 0; u < n; ++u)
    for (unsigned v = 0; v < n; ++v) {
      if (u == v)
        continue;
      if (uint64_t amount = amounts[size_t(u) * n + v])
        pairs.push_back({u, v, double(amount), {}});
      std::optional<Route> route = resources.route(group[u], group[v]);
      if (!route || route->cap.toDouble() <= 0)
        continue;
      Edge edge{v, {}};
      double slowest = 0;
      for (unsigned resource : route->resources) {
        auto [it, isNew] = rowOf.try_emplace(resource, rows);
        rows += isNew;
        double perByte = 1 / resources.resources()[resource].capacity.toDouble();
        slowest = std::max(slowest, perByte);
        edge.uses.push_back({it->second, perByte});
      }
      // Where a lone transfer is slower than all that it holds, the route is a resource itself.
      double alone = 1 / route->cap.toDouble();
      if (alone > slowest * (1 + 1e-9))
        edge.uses.push_back({rows++, alone});
      unit = std::max({unit, slowest, alone});
      out[u].push_back(std::move(edge));
    }
  for (std::vector<Edge> &edges : out)
    for (Edge &edge : edges)
      for (Use &use : edge.uses)
        use.perByte /= unit;
}

void FlowRouter::load(const Pair &pair, const Path &path, double shares) {
  unsigned at = pair.from;
  for (unsigned e : path) {
    const Edge &edge = out[at][e];
    for (const Use &use : edge.uses) {
      loads[use.row] += shares * shareOf * pair.amount * use.perByte;
      setPrice(use.row);
    }
    at = edge.to;
  }
}

double FlowRouter::costOf(const Pair &pair, const Path &path) const {
  double cost = 0;
  unsigned at = pair.from;
  for (unsigned e : path) {
    cost += costOf(out[at][e]);
    at = out[at][e].to;
  }
  return cost;
}

std::optional<FlowRouter::Path> FlowRouter::cheapest(unsigned from, unsigned end, double perHop) {
  constexpr double unreached = std::numeric_limits<double>::infinity();
  distance.assign(n, unreached);
  std::vector<std::pair<unsigned, unsigned>> via(n);
  using Entry = std::pair<double, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  distance[from] = 0;
  queue.push({0, from});
  while (!queue.empty()) {
    auto [d, v] = queue.top();
    queue.pop();
    if (d > distance[v])
      continue;
    if (v == end)
      break;
    work += double(out[v].size());
    for (unsigned e = 0; e < out[v].size(); ++e) {
      double next = d + costOf(out[v][e]) + perHop;
      if (unsigned to = out[v][e].to; next < distance[to]) {
        distance[to] = next;
        via[to] = {v, e};
        queue.push({next, to});
      }
    }
  }
  if (end == n || distance[end] == unreached)
    return std::nullopt;
  Path path;
  for (unsigned v = end; v != from; v = via[v].first)
    path.push_back(via[v].second);
  std::reverse(path.begin(), path.end());
  return path;
}

// Whoever carries a byte pays at least the distance between its ends, and all that can be paid in a
// second is the sum of the prices.
double FlowRouter::bound() {
  double paid = 0, all = 0;
  for (double price : prices)
    all += price;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (i == 0 || pairs[i].from != pairs[i - 1].from)
      cheapest(pairs[i].from, n, 0);
    paid += pairs[i].amount * distance[pairs[i].to];
  }
  return paid / all;
}

Routing FlowRouter::result(unsigned shares, double seconds) const {
  Routing routing;
  routing.shares = shares;
  routing.seconds = seconds * unit;
  for (const Pair &pair : pairs) {
    unsigned first = 0;
    for (const auto &[path, share] : pair.ways) {
      RoutedPath routed{{pair.from}, first, share};
      for (unsigned e : path)
        routed.members.push_back(out[routed.members.back()][e].to);
      first += share;
      routing.depth = std::max(routing.depth, routed.hops());
      routing.paths.push_back(std::move(routed));
    }
  }
  return routing;
}

bool FlowRouter::search(unsigned shares, double enough) {
  shareOf = 1.0 / shares;
  loads.assign(rows, 0);
  prices.assign(rows, 1);
  goal = 1;
  steepness = 0;
  for (Pair &pair : pairs) {
    std::optional<Path> path = cheapest(pair.from, pair.to, 1);
    if (!path)
      return false;
    pair.ways = {{*path, shares}};
    load(pair, *path, shares);
  }
  unsigned passes =
      std::clamp<unsigned>(mostMoves / unsigned(pairs.size()), leastPasses, mostPasses);
  double reached = std::numeric_limits<double>::infinity();
  for (unsigned pass = 0, since = 0; pass <= passes && since <= passes / 3; ++pass, ++since) {
    double now = busiest();
    if (now < reached * (1 - 1e-6)) {
      reached = now;
      since = 0;
      if (!best || now * unit < best->seconds * (1 - 1e-6))
        best = result(shares, now);
    }
    goal = now;
    steepness = flat * std::pow(steep / flat, std::min(1.0, 1.6 * pass / passes));
    for (unsigned row = 0; row < rows; ++row)
      setPrice(row);
    if (pass % 4 == 0)
      least = std::max(least, bound());
    if (now <= std::max(enough, least * (1 + tolerance)) || work > mostWork)
      return true;
    double perHop = std::max(leastHopPrice, 0.2 * std::pow(0.8, pass));
    for (Pair &pair : pairs)
      handOver(pair, perHop);
  }
  return true;
}

/// The dearest way hands a share to the cheapest there is.
void FlowRouter::handOver(Pair &pair, double perHop) {
  size_t dearest = 0;
  double most = -1;
  for (size_t i = 0; i < pair.ways.size(); ++i)
    if (double cost = costOf(pair, pair.ways[i].first); cost > most) {
      most = cost;
      dearest = i;
    }
  Path before = pair.ways[dearest].first;
  load(pair, before, -1);
  Path path = *cheapest(pair.from, pair.to, perHop);
  load(pair, path, 1);
  if (path == before)
    return;
  if (--pair.ways[dearest].second == 0)
    pair.ways.erase(pair.ways.begin() + dearest);
  auto known = std::find_if(pair.ways.begin(), pair.ways.end(),
                            [&](const auto &way) { return way.first == path; });
  if (known != pair.ways.end())
    ++known->second;
  else
    pair.ways.push_back({std::move(path), 1});
}

std::optional<Routing> FlowRouter::run(unsigned maxShares) {
  if (pairs.empty())
    return Routing();
  maxShares = std::min(maxShares, std::max(1u, mostPaths / unsigned(pairs.size())));
  // Many shares show what is possible, and the fewest are taken that come near to it.
  if (!search(maxShares, 0))
    return std::nullopt;
  Routing most = *std::exchange(best, std::nullopt);
  double enough = most.seconds / unit * (1 + tolerance);
  for (unsigned shares = 1; shares < maxShares && work < mostWork; ++shares) {
    search(shares, enough);
    if (best->seconds <= enough * unit)
      break;
  }
  if (!best || best->seconds > most.seconds * (1 + tolerance))
    best = std::move(most);
  best->leastSeconds = least * unit;
  return best;
}
} // namespace

std::optional<Routing> mlir::ncclx::topology::routeFlows(ResourceModel &resources,
                                                         llvm::ArrayRef<unsigned> group,
                                                         llvm::ArrayRef<uint64_t> amounts,
                                                         unsigned maxShares) {
  if (group.empty() || group.size() > maxRoutedMembers)
    return std::nullopt;
  return FlowRouter(resources, group, amounts).run(maxShares);
}
