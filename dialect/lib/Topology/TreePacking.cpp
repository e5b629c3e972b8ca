//===- TreePacking.cpp - Trees of a linear program ----------------------------------===//
#include "Packer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

using namespace mlir::ncclx::topology;

namespace {
/// Columns are generated until the prices show that no packing is better by more than this.
constexpr double tolerance = 1e-3;
constexpr unsigned maxRounds = 200;
/// What few shares may lose to fractions.
constexpr double shareTolerance = 4e-3;
/// Shares that are tried: of each root, or more where all roots together then have no more than so
/// many; and of free roots together.
constexpr unsigned mostShares = 12, mostTrees = 192, mostFreeShares = 96;
/// Free roots' shares that are grown even where those of the linear program will do.
constexpr unsigned fewShares = 48;
/// Edges that are looked at in all of them together: all that 16 members ever need, some tenths of
/// a second.
constexpr double mostLooks = 45e6;
} // namespace

Packer::Packer(ResourceModel &resources, llvm::ArrayRef<unsigned> group, TreeFlow flow)
    : n(group.size()), flow(flow), latencies(n, std::vector<double>(n, 0)) {
  if (flow != TreeFlow::sum)
    ways.push_back(false);
  if (flow != TreeFlow::spread)
    ways.push_back(true);
  for (Edges &way : edges)
    way.assign(n, std::vector<std::vector<Use>>(n));
  std::map<unsigned, unsigned> numbers;
  auto use = [&](std::vector<Use> &uses, unsigned resource, double weight) {
    auto [it, isNew] = numbers.try_emplace(resource, rows);
    rows += isNew;
    double perByte = weight / resources.resources()[resource].capacity.toDouble();
    unit = std::max(unit, perByte);
    for (Use &known : uses)
      if (known.row == it->second) {
        known.perByte += perByte;
        return perByte;
      }
    uses.push_back({it->second, perByte});
    return perByte;
  };
  for (unsigned u = 0; u < n; ++u)
    for (unsigned v = 0; v < n; ++v) {
      if (u == v)
        continue;
      std::optional<Route> route = resources.route(group[u], group[v]);
      if (!route || route->cap.toDouble() <= 0 || !resources.route(group[v], group[u]))
        continue;
      latencies[u][v] = route->latencyNs.toDouble() * 1e-9;
      std::vector<Use> uses;
      double slowest = 0;
      for (unsigned resource : route->resources)
        slowest = std::max(slowest, use(uses, resource, 1));
      // Where a lone transfer is slower than all that it holds, the route is a resource itself.
      double alone = 1 / route->cap.toDouble();
      unit = std::max(unit, alone);
      if (alone > slowest * (1 + 1e-9))
        uses.push_back({rows++, alone});
      edges[false][u][v] = uses;
      // A sum reads what has come, and nearly as often the own contribution, and is written.
      if (const RankResources &at = resources.rank(group[v]); at.memory >= 0)
        use(uses, unsigned(at.memory), 3 * at.memoryPerByte.toDouble());
      edges[true][v][u] = std::move(uses);
    }
  for (Edges &way : edges)
    for (auto &from : way)
      for (auto &uses : from)
        for (Use &one : uses)
          one.perByte /= unit;
  quanta.assign(rows, -1);
  for (bool sums : ways)
    for (auto &from : edges[sums])
      for (auto &uses : from)
        for (const Use &one : uses)
          if (double &quantum = quanta[one.row]; quantum < 0)
            quantum = one.perByte;
          else if (std::abs(quantum - one.perByte) > 1e-9 * quantum)
            quantum = 0;
  for (bool sums : ways) {
    firstUse[sums].push_back(0);
    for (auto &from : edges[sums])
      for (auto &edge : from) {
        uses[sums].insert(uses[sums].end(), edge.begin(), edge.end());
        firstUse[sums].push_back(uses[sums].size());
      }
    always[sums].resize(n);
    for (unsigned v = 0; v < n; ++v) {
      std::vector<Use> &common = always[sums][v];
      bool isFirst = true;
      for (unsigned u = 0; u < n; ++u) {
        const std::vector<Use> &uses = edges[sums][u][v];
        if (uses.empty())
          continue;
        if (std::exchange(isFirst, false)) {
          common = uses;
          continue;
        }
        std::erase_if(common, [&](Use &one) {
          auto same = std::find_if(uses.begin(), uses.end(),
                                   [&](const Use &use) { return use.row == one.row; });
          if (same != uses.end())
            one.perByte = std::min(one.perByte, same->perByte);
          return same == uses.end();
        });
      }
    }
  }
}

std::vector<unsigned> mlir::ncclx::topology::depthsOf(unsigned root,
                                                      const std::vector<unsigned> &parent) {
  std::vector<unsigned> depth(parent.size(), 0);
  for (unsigned v = 0; v < parent.size(); ++v)
    for (unsigned u = v; u != root; u = parent[u])
      ++depth[v];
  return depth;
}

/// False where the tree is known, or uses a route that is not there.
bool Packer::add(unsigned root, bool sums, const std::vector<unsigned> &parent) {
  std::map<unsigned, double> uses;
  for (unsigned v = 0; v < n; ++v) {
    if (v == root)
      continue;
    if (parent[v] == v || edges[sums][parent[v]][v].empty())
      return false;
    for (const Use &use : edges[sums][parent[v]][v])
      uses[use.row] += use.perByte;
  }
  if (!known.insert({root, sums, parent}).second)
    return false;
  std::vector<unsigned> depths = depthsOf(root, parent);
  Tree tree{root, sums, parent, {}, *std::max_element(depths.begin(), depths.end())};
  for (auto [row, perByte] : uses)
    tree.uses.push_back({row, perByte});
  trees.push_back(std::move(tree));
  return true;
}

double Packer::costOf(bool sums, unsigned parent, unsigned child,
                      const std::vector<double> &prices) const {
  const unsigned *at = &firstUse[sums][parent * n + child];
  if (at[0] == at[1])
    return unreachable;
  double cost = 0;
  for (const Use *use = &uses[sums][at[0]], *end = use + (at[1] - at[0]); use != end; ++use)
    cost += prices[use->row] * use->perByte;
  return cost;
}

double Packer::costOf(unsigned root, bool sums, const std::vector<unsigned> &parent,
                      const std::vector<double> &prices) const {
  double cost = 0;
  for (unsigned v = 0; v < n; ++v)
    if (v != root)
      cost += costOf(sums, parent[v], v, prices);
  return cost;
}

std::vector<unsigned> Packer::cheapest(unsigned root, bool sums,
                                       const std::vector<double> &prices) const {
  Matrix costs(n, std::vector<double>(n, unreachable));
  for (unsigned u = 0; u < n; ++u)
    for (unsigned v = 0; v < n; ++v)
      costs[u][v] = costOf(sums, u, v, prices);
  return arborescence(costs, root);
}

/// Grown from the root, each time by the edge whose price and depth are least; an edge deeper costs
/// `depthPrice`. A member that cannot be reached is its own parent.
std::vector<unsigned> Packer::grown(unsigned root, bool sums, const std::vector<double> &prices,
                                    double depthPrice) const {
  std::vector<unsigned> parent(n), depth(n, 0);
  std::iota(parent.begin(), parent.end(), 0);
  std::vector<double> least(n, unreachable);
  std::vector<bool> inside(n, false);
  unsigned last = root;
  for (unsigned added = 1; added < n; ++added) {
    inside[last] = true;
    for (unsigned k = 1; k < n; ++k) {
      unsigned v = last + k < n ? last + k : last + k - n;
      if (inside[v])
        continue;
      double cost = depthPrice * (depth[last] + 1) + costOf(sums, last, v, prices);
      if (cost < least[v]) {
        least[v] = cost;
        parent[v] = last;
        depth[v] = depth[last] + 1;
      }
    }
    unsigned best = n;
    for (unsigned k = 1; k < n; ++k)
      if (unsigned v = root + k < n ? root + k : root + k - n;
          !inside[v] && (best == n || least[v] < least[best]))
        best = v;
    if (least[best] >= unreachable)
      return parent;
    last = best;
  }
  return parent;
}

/// Amounts by tree, then the common amount of the roots, or one for each where they are free: the
/// largest for which no resource takes more than 1.
LinearProgram Packer::program() const {
  LinearProgram program;
  unsigned amounts = isFree() ? n : 1;
  program.rows.assign(rows, {1, false});
  program.rows.resize(rows + 2 * n, {0, false});
  for (unsigned i = 0; i < trees.size(); ++i) {
    program.objective.push_back(0);
    for (const Use &use : trees[i].uses)
      program.entries.push_back({use.row, i, use.perByte});
    program.entries.push_back({rowOf(trees[i].root, trees[i].sums), i, -1});
  }
  unsigned first = trees.size();
  for (unsigned i = 0; i < amounts; ++i)
    program.objective.push_back(-1);
  for (unsigned root = 0; root < n; ++root)
    for (bool sums : ways)
      program.entries.push_back({rowOf(root, sums), first + root % amounts, 1});
  return program;
}

/// Adds trees that cost less than they are worth; false where there are none. `most` is what the
/// prices show that no packing can exceed.
bool Packer::generate(const LinearSolution &solution, double &most) {
  double prices = 0, all = 0, least = unreachable, highest = 0;
  for (unsigned row = 0; row < rows; ++row) {
    prices += solution.prices[row];
    highest = std::max(highest, solution.prices[row]);
  }
  bool added = false;
  for (unsigned root = 0; root < n; ++root) {
    double both = 0;
    for (bool sums : ways) {
      std::vector<unsigned> parent = cheapest(root, sums, solution.prices);
      double cost = costOf(root, sums, parent, solution.prices);
      both += cost;
      double worth = solution.prices[rowOf(root, sums)] * (1 - 1e-6);
      if (cost >= worth)
        continue;
      // A shallow one, if that will do.
      for (double depthPrice : {1.0, 0.3, 0.1, 0.03, 0.01, 0.001}) {
        std::vector<unsigned> other = grown(root, sums, solution.prices, depthPrice * highest);
        if (costOf(root, sums, other, solution.prices) < worth && add(root, sums, other)) {
          parent = std::move(other);
          added = true;
          break;
        }
      }
      added |= add(root, sums, parent);
    }
    all += both;
    least = std::min(least, both);
  }
  // Any packing pays for its trees at these prices, and has no more than all of them to spend.
  if (double cost = isFree() ? least : all; cost > 0 && prices / cost < most) {
    most = prices / cost;
    tightPrices.assign(solution.prices.begin(), solution.prices.begin() + rows);
    tightCost = cost;
  }
  return added;
}

TreePacking Packer::packing(const Shares &of, unsigned shares) const {
  TreePacking packing;
  packing.shares = shares;
  packing.secondsPerByte = of.load / shares * unit;
  std::vector<double> perByte(rows, 0);
  std::vector<std::set<std::pair<unsigned, unsigned>>> usersOf(rows);
  for (size_t i = 0; i < of.roots.size(); ++i) {
    PackedTree tree{of.roots[i], {}, {}};
    unsigned depth = 0;
    for (bool sums : ways) {
      const std::vector<unsigned> &parent = of.parents[sums][i];
      (sums ? tree.in : tree.out) = parent;
      std::vector<unsigned> depths = depthsOf(tree.root, parent);
      depth += *std::max_element(depths.begin(), depths.end());
      for (unsigned v = 0; v < n; ++v)
        if (v != tree.root)
          for (const Use &use : edges[sums][parent[v]][v])
            usersOf[use.row].insert(sums ? std::pair(v, parent[v]) : std::pair(parent[v], v));
    }
    packing.depth = std::max(packing.depth, depth);
    packing.trees.push_back(std::move(tree));
  }
  packing.latencies = latencies;
  // Edges that share a resource share it evenly.
  packing.edgeSeconds.assign(n, std::vector<double>(n, 0));
  for (unsigned u = 0; u < n; ++u)
    for (unsigned v = 0; v < n; ++v)
      for (const Use &use : edges[false][u][v])
        if (usersOf[use.row].contains({u, v}))
          packing.edgeSeconds[u][v] =
              std::max(packing.edgeSeconds[u][v], use.perByte * usersOf[use.row].size() * unit);
  return packing;
}

std::optional<TreePacking> Packer::run() {
  std::vector<double> free(rows, 0);
  for (unsigned root = 0; root < n; ++root)
    for (bool sums : ways)
      if (!add(root, sums, grown(root, sums, free, 1)))
        return std::nullopt;
  double rate = 0, most = std::numeric_limits<double>::infinity();
  for (unsigned round = 0; round < maxRounds; ++round) {
    std::optional<LinearSolution> solution = solve(program());
    if (!solution)
      break;
    rate = 0;
    for (size_t i = trees.size(); i < solution->values.size(); ++i)
      rate += solution->values[i];
    for (size_t i = 0; i < trees.size(); ++i)
      trees[i].amount = solution->values[i];
    if (!generate(*solution, most) || rate >= most * (1 - tolerance))
      break;
  }
  if (!(rate > 0))
    return std::nullopt;
  Shares best;
  unsigned bestShares = 1;
  unsigned largest = isFree() ? mostFreeShares : std::max(mostShares, mostTrees / n);
  double looks = 0;
  for (unsigned shares = 1; shares <= largest; ++shares) {
    double least = leastLoad(rootsOf(shares), shares);
    if (least / shares >= best.load / bestShares * (1 - tolerance))
      continue; // no better, whatever the trees
    double goal = std::max(shares / rate * (1 + shareTolerance), least * (1 + 1e-9));
    Shares found = rounded(shares);
    looks += double(treePasses) * double(ways.size()) * double(found.roots.size()) * double(n) * n;
    if ((found.load > goal || shares * n <= fewShares) && (looks <= mostLooks || shares == 1))
      if (Shares other = regrown(shares, goal); other.load <= std::max(goal, found.load))
        found = std::move(other);
    if (found.load / shares < best.load / bestShares * (1 - tolerance)) {
      best = std::move(found);
      bestShares = shares;
    }
    if (best.load / bestShares * rate <= 1 + shareTolerance)
      break;
  }
  if (best.roots.size() <= mostTrees)
    flatten(best, std::max(best.load, bestShares / rate * (1 + shareTolerance)));
  TreePacking result = packing(best, bestShares);
  result.leastSecondsPerByte = std::isfinite(most) ? unit / most : 0;
  return result;
}

std::optional<TreePacking> mlir::ncclx::topology::packTrees(ResourceModel &resources,
                                                            llvm::ArrayRef<unsigned> group,
                                                            TreeFlow flow) {
  if (group.size() < 2 || group.size() > maxTreeMembers)
    return std::nullopt;
  return Packer(resources, group, flow).run();
}
