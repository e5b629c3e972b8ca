//===- TreePacking.cpp ----------------------------------------------------===//
#include "ncclx/Topology/TreePacking.h"
#include "LinearProgram.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

using namespace mlir::ncclx::topology;

namespace {
constexpr double unreachable = 1e200;
/// Columns are generated until the prices show that no packing is better by more than this.
constexpr double tolerance = 1e-3;
constexpr unsigned maxRounds = 200;
/// What few trees of one share may lose to many of several.
constexpr double evenTolerance = 4e-3;
/// Above, a linear program alone.
constexpr unsigned mostEvenMembers = 32;
/// Shares of trees along which sums are made.
constexpr unsigned maxInwardShares = 6;

using Matrix = std::vector<std::vector<double>>;

/// Parents of a least-cost arborescence (Chu and Liu, Edmonds): the cheapest arc into each vertex,
/// and where these form a cycle, the same with the cycle as one vertex.
std::vector<unsigned> arborescence(const Matrix &cost, unsigned root) {
  unsigned n = cost.size();
  std::vector<unsigned> parent(n, root);
  for (unsigned v = 0; v < n; ++v)
    for (unsigned u = 0; u < n && v != root; ++u)
      if (u != v && (parent[v] == v || cost[u][v] < cost[parent[v]][v]))
        parent[v] = u;
  // A vertex on a cycle, or n.
  std::vector<unsigned> seen(n, n);
  unsigned onCycle = n;
  for (unsigned v = 0; v < n && onCycle == n; ++v) {
    unsigned u = v;
    for (; u != root && seen[u] == n; u = parent[u])
      seen[u] = v;
    if (u != root && seen[u] == v)
      onCycle = u;
  }
  if (onCycle == n)
    return parent;
  std::vector<bool> inside(n, false);
  for (unsigned v = onCycle; !inside[v]; v = parent[v])
    inside[v] = true;
  std::vector<unsigned> outer; // number in the smaller graph -> vertex; the cycle is the last
  std::vector<unsigned> number(n);
  for (unsigned v = 0; v < n; ++v)
    if (!inside[v]) {
      number[v] = outer.size();
      outer.push_back(v);
    }
  unsigned m = outer.size();
  Matrix smaller(m + 1, std::vector<double>(m + 1, unreachable));
  std::vector<unsigned> enters(m, n), leaves(m, n);
  for (unsigned i = 0; i < m; ++i) {
    for (unsigned j = 0; j < m; ++j)
      smaller[i][j] = cost[outer[i]][outer[j]];
    for (unsigned v = 0; v < n; ++v) {
      if (!inside[v])
        continue;
      double in = cost[outer[i]][v] - cost[parent[v]][v], out = cost[v][outer[i]];
      if (enters[i] == n || in < smaller[i][m]) {
        smaller[i][m] = in;
        enters[i] = v;
      }
      if (leaves[i] == n || out < smaller[m][i]) {
        smaller[m][i] = out;
        leaves[i] = v;
      }
    }
  }
  std::vector<unsigned> found = arborescence(smaller, number[root]);
  for (unsigned i = 0; i < m; ++i)
    if (outer[i] != root)
      parent[outer[i]] = found[i] == m ? leaves[i] : outer[found[i]];
  unsigned from = found[m];
  parent[enters[from]] = outer[from];
  return parent;
}

class Packer {
public:
  Packer(ResourceModel &resources, llvm::ArrayRef<unsigned> group, bool inward);
  std::optional<TreePacking> run(unsigned maxShares);

private:
  struct Use {
    unsigned row;
    double perByte; ///< seconds of the resource
  };
  struct Tree {
    unsigned root;
    std::vector<unsigned> parent;
    std::vector<Use> uses;
    double amount = 0;
  };

  unsigned n;
  unsigned rows = 0;
  double unit = 0;                                 ///< seconds per byte that the program counts in
  std::vector<std::vector<std::vector<Use>>> edge; ///< from, to; empty: no route
  std::vector<Tree> trees;
  std::set<std::pair<unsigned, std::vector<unsigned>>> known;

  bool add(unsigned root, std::vector<unsigned> parent);
  std::vector<unsigned> cheapest(unsigned root, const std::vector<double> &prices,
                                 double *cost) const;
  std::vector<unsigned> shallow(unsigned root) const;
  double busiest(const std::vector<std::pair<const Tree *, double>> &amounts) const;
  TreePacking rounded(double rate, unsigned maxShares) const;
  std::vector<unsigned> grown(unsigned root, const std::vector<double> &prices,
                              double depthPrice) const;
  std::optional<TreePacking> even(double rate);
  void finish(TreePacking &packing) const;
};

Packer::Packer(ResourceModel &resources, llvm::ArrayRef<unsigned> group, bool inward)
    : n(group.size()), edge(n, std::vector<std::vector<Use>>(n)) {
  std::map<unsigned, unsigned> rowOf;
  for (unsigned u = 0; u < n; ++u)
    for (unsigned v = 0; v < n; ++v) {
      if (u == v)
        continue;
      std::optional<Route> route =
          inward ? resources.route(group[v], group[u]) : resources.route(group[u], group[v]);
      if (!route || route->cap.toDouble() <= 0 || (inward && !resources.route(group[u], group[v])))
        continue;
      double slowest = 0;
      for (unsigned resource : route->resources) {
        auto [it, isNew] = rowOf.try_emplace(resource, rows);
        rows += isNew;
        double perByte = 1 / resources.resources()[resource].capacity.toDouble();
        slowest = std::max(slowest, perByte);
        edge[u][v].push_back({it->second, perByte});
      }
      // Where a lone transfer is slower than all that it holds, the route is a resource itself.
      double alone = 1 / route->cap.toDouble();
      if (alone > slowest * (1 + 1e-9))
        edge[u][v].push_back({rows++, alone});
      unit = std::max({unit, slowest, alone});
    }
  for (auto &from : edge)
    for (auto &uses : from)
      for (Use &use : uses)
        use.perByte /= unit;
}

/// False where the tree is known, or uses a route that is not there.
bool Packer::add(unsigned root, std::vector<unsigned> parent) {
  Tree tree{root, parent, {}};
  std::map<unsigned, double> uses;
  for (unsigned v = 0; v < n; ++v) {
    if (v == root)
      continue;
    if (edge[parent[v]][v].empty())
      return false;
    for (const Use &use : edge[parent[v]][v])
      uses[use.row] += use.perByte;
  }
  if (!known.insert({root, parent}).second)
    return false;
  for (auto [row, perByte] : uses)
    tree.uses.push_back({row, perByte});
  trees.push_back(std::move(tree));
  return true;
}

std::vector<unsigned> Packer::cheapest(unsigned root, const std::vector<double> &prices,
                                       double *cost) const {
  Matrix costs(n, std::vector<double>(n, unreachable));
  for (unsigned u = 0; u < n; ++u)
    for (unsigned v = 0; v < n; ++v)
      if (!edge[u][v].empty()) {
        costs[u][v] = 0;
        for (const Use &use : edge[u][v])
          costs[u][v] += prices[use.row] * use.perByte;
      }
  std::vector<unsigned> parent = arborescence(costs, root);
  *cost = 0;
  for (unsigned v = 0; v < n; ++v)
    if (v != root)
      *cost += costs[parent[v]][v];
  return parent;
}

/// A tree of fewest hops, each member below the first that reaches it.
std::vector<unsigned> Packer::shallow(unsigned root) const {
  std::vector<unsigned> parent(n, n), queue{root};
  parent[root] = root;
  for (size_t i = 0; i < queue.size(); ++i)
    for (unsigned k = 1; k < n; ++k) {
      unsigned v = (queue[i] + k) % n;
      if (parent[v] == n && !edge[queue[i]][v].empty()) {
        parent[v] = queue[i];
        queue.push_back(v);
      }
    }
  return parent;
}

double Packer::busiest(const std::vector<std::pair<const Tree *, double>> &amounts) const {
  std::vector<double> load(rows, 0);
  for (auto [tree, amount] : amounts)
    for (const Use &use : tree->uses)
      load[use.row] += amount * use.perByte;
  return *std::max_element(load.begin(), load.end());
}

/// The amounts as whole shares: of all numbers of shares the fewest that lose next to nothing.
TreePacking Packer::rounded(double rate, unsigned maxShares) const {
  TreePacking best;
  double bestLoad = std::numeric_limits<double>::infinity();
  for (unsigned shares = 1; shares <= maxShares; ++shares) {
    std::vector<std::pair<const Tree *, double>> amounts;
    std::vector<std::pair<const Tree *, unsigned>> whole;
    for (unsigned root = 0; root < n; ++root) {
      std::vector<std::pair<const Tree *, double>> of;
      double all = 0;
      for (const Tree &tree : trees)
        if (tree.root == root && tree.amount > rate * 1e-6) {
          of.push_back({&tree, tree.amount});
          all += tree.amount;
        }
      unsigned left = shares;
      std::vector<std::pair<double, size_t>> rest; // largest remainders get what is left
      std::vector<unsigned> counts(of.size());
      for (size_t i = 0; i < of.size(); ++i) {
        double exact = of[i].second / all * shares;
        counts[i] = std::min<unsigned>(left, unsigned(exact + 1e-6));
        left -= counts[i];
        rest.push_back({counts[i] - exact, i});
      }
      std::sort(rest.begin(), rest.end());
      for (size_t k = 0; left > 0; ++k, --left)
        ++counts[rest[k % rest.size()].second];
      for (size_t i = 0; i < of.size(); ++i)
        if (counts[i]) {
          amounts.push_back({of[i].first, double(counts[i]) / shares});
          whole.push_back({of[i].first, counts[i]});
        }
    }
    double load = busiest(amounts);
    if (load > bestLoad * (1 - tolerance))
      continue;
    bestLoad = load;
    best.shares = shares;
    best.secondsPerByte = load * unit;
    best.trees.clear();
    for (auto [tree, count] : whole)
      best.trees.push_back({tree->root, count, tree->parent, {}});
    if (load * rate <= 1 + tolerance)
      break;
  }
  finish(best);
  return best;
}

void Packer::finish(TreePacking &packing) const {
  packing.depth = 0;
  for (PackedTree &tree : packing.trees) {
    std::vector<unsigned> depth(n, 0);
    tree.order = {tree.root};
    for (size_t i = 0; i < tree.order.size(); ++i)
      for (unsigned v = 0; v < n; ++v)
        if (v != tree.root && tree.parent[v] == tree.order[i]) {
          tree.order.push_back(v);
          depth[v] = depth[tree.order[i]] + 1;
          packing.depth = std::max(packing.depth, depth[v]);
        }
  }
}

/// Grown from the root, each time by the edge whose price and depth are least; an edge deeper costs
/// `depthPrice` of the highest price.
std::vector<unsigned> Packer::grown(unsigned root, const std::vector<double> &prices,
                                    double depthPrice) const {
  std::vector<unsigned> parent(n, root), depth(n, 0);
  std::vector<double> least(n, unreachable);
  std::vector<bool> inside(n, false);
  double most = *std::max_element(prices.begin(), prices.end());
  unsigned last = root;
  for (unsigned added = 1; added < n; ++added) {
    inside[last] = true;
    for (unsigned k = 1; k < n; ++k) {
      unsigned v = (last + k) % n;
      if (inside[v] || edge[last][v].empty())
        continue;
      double cost = depthPrice * most * (depth[last] + 1);
      for (const Use &use : edge[last][v])
        cost += prices[use.row] * use.perByte;
      if (cost < least[v]) {
        least[v] = cost;
        parent[v] = last;
        depth[v] = depth[last] + 1;
      }
    }
    unsigned best = n;
    for (unsigned k = 1; k < n; ++k)
      if (unsigned v = (root + k) % n; !inside[v] && (best == n || least[v] < least[best]))
        best = v;
    last = best;
  }
  return parent;
}

/// A few trees of one share for each root, as shallow as may be, where they come as near to the
/// highest rate as whole shares can: each in turn is grown anew at prices that rise with the load
/// of what all others leave.
std::optional<TreePacking> Packer::even(double rate) {
  constexpr unsigned mostEach = 6, passes = 70;
  std::optional<TreePacking> best;
  double bestLoad = std::numeric_limits<double>::infinity();
  for (unsigned each = 1; each <= mostEach; ++each) {
    std::vector<std::vector<unsigned>> parents(size_t(n) * each);
    std::vector<double> load(rows, 0), prices(rows);
    double goal = each / rate;
    auto put = [&](const std::vector<unsigned> &parent, double amount) {
      if (parent.empty())
        return;
      for (unsigned v = 0; v < n; ++v)
        if (parent[v] != v)
          for (const Use &use : edge[parent[v]][v])
            load[use.row] += amount * use.perByte;
    };
    for (unsigned pass = 0; pass < passes; ++pass) {
      // At first depth costs less from pass to pass, so that the first packing that does is a
      // shallow one; where none does, it costs next to nothing.
      unsigned turn = pass % (passes / 2);
      double steepness = std::min(40.0, 4.0 + 1.5 * turn);
      double depthPrice = pass < passes / 2 ? 2 * std::pow(0.75, turn) : 1e-3;
      for (size_t i = 0; i < parents.size(); ++i) {
        put(parents[i], -1);
        for (unsigned row = 0; row < rows; ++row)
          prices[row] = std::exp(steepness * (load[row] / goal - 1));
        parents[i] = grown(unsigned(i) / each, prices, depthPrice);
        put(parents[i], 1);
      }
      double busiest = *std::max_element(load.begin(), load.end()) / each;
      if (busiest >= bestLoad * (1 - tolerance))
        continue;
      bestLoad = busiest;
      best.emplace();
      best->shares = each;
      best->secondsPerByte = busiest * unit;
      for (size_t i = 0; i < parents.size(); ++i)
        best->trees.push_back({unsigned(i) / each, 1, parents[i], {}});
      if (busiest * rate <= 1 + evenTolerance)
        break;
    }
    if (bestLoad * rate <= 1 + evenTolerance)
      break;
  }
  if (best)
    finish(*best);
  return best;
}

std::optional<TreePacking> Packer::run(unsigned maxShares) {
  for (unsigned root = 0; root < n; ++root) {
    std::vector<unsigned> parent = shallow(root);
    if (std::find(parent.begin(), parent.end(), n) != parent.end())
      return std::nullopt;
    add(root, parent);
  }
  double rate = 0, most = std::numeric_limits<double>::infinity();
  for (unsigned round = 0; round < maxRounds; ++round) {
    // Most common rate x: sum of uses <= 1 by resource, x <= sum of amounts by root.
    LinearProgram program;
    program.rows.assign(rows, {1, false});
    program.rows.resize(rows + n, {0, false});
    for (unsigned i = 0; i < trees.size(); ++i) {
      program.objective.push_back(0);
      for (const Use &use : trees[i].uses)
        program.entries.push_back({use.row, i, use.perByte});
      program.entries.push_back({rows + trees[i].root, i, -1});
    }
    program.objective.push_back(-1);
    for (unsigned root = 0; root < n; ++root)
      program.entries.push_back({rows + root, unsigned(trees.size()), 1});
    std::optional<LinearSolution> solution = solve(program);
    if (!solution)
      break;
    rate = solution->values.back();
    for (unsigned i = 0; i < trees.size(); ++i)
      trees[i].amount = solution->values[i];
    double prices = 0, costs = 0;
    for (unsigned row = 0; row < rows; ++row)
      prices += solution->prices[row];
    bool added = false;
    for (unsigned root = 0; root < n; ++root) {
      double cost = 0;
      std::vector<unsigned> parent = cheapest(root, solution->prices, &cost);
      costs += cost;
      if (cost < solution->prices[rows + root] * (1 - 1e-9))
        added |= add(root, parent);
    }
    // Any packing pays for its trees at these prices, and has no more than all of them to spend.
    if (costs > 0)
      most = std::min(most, prices / costs);
    if (!added || rate >= most * (1 - tolerance))
      break;
  }
  if (!(rate > 0))
    return std::nullopt;
  TreePacking packing = rounded(rate, maxShares);
  if (n <= mostEvenMembers)
    if (std::optional<TreePacking> other = even(rate);
        other && other->secondsPerByte <= packing.secondsPerByte * (1 + evenTolerance))
      packing = std::move(*other);
  packing.leastSecondsPerByte = std::isfinite(most) ? unit / most : 0;
  return packing;
}
} // namespace

std::optional<TreePacking> mlir::ncclx::topology::packTrees(ResourceModel &resources,
                                                            llvm::ArrayRef<unsigned> group,
                                                            bool inward, unsigned maxShares) {
  if (group.size() < 2 || group.size() > maxTreeMembers)
    return std::nullopt;
  return Packer(resources, group, inward).run(maxShares);
}

TreePacker::TreePacker(const Topology &topology, Rate rate)
    : topology(topology), ranks(topology.numRanks()), resources(topology, rate) {
  constexpr unsigned fewPeers = 8, mostLanes = 16;
  std::map<unsigned, std::set<std::string>> neighbours;
  for (const Link &link : topology.links) {
    const Node &to = topology.nodes[link.to];
    if (link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi)
      neighbours[link.from].insert(to.bundle.empty() ? to.name : to.bundle);
  }
  for (unsigned rank = 0; rank < ranks; ++rank) {
    if (topology.rankNode(rank).kind != NodeKind::gpu)
      continue;
    unsigned joined = neighbours[topology.ranks[rank]].size();
    lanes = std::max({lanes, std::min(mostLanes, joined), std::min(fewPeers, ranks - 1)});
    if (const RankResources &own = resources.rank(rank); own.memory >= 0)
      sums = std::max(sums, own.memoryPerByte.toDouble() /
                                resources.resources()[own.memory].capacity.toDouble());
  }
}

const Tiers &TreePacker::tiers() {
  if (!theTiers)
    theTiers = findTiers(topology, resources);
  return *theTiers;
}

const TreePacking *TreePacker::pack(llvm::ArrayRef<unsigned> group, bool inward) {
  auto [it, isNew] = known.try_emplace({group.vec(), inward});
  if (isNew)
    it->second = inward ? packTrees(resources, group, true, maxInwardShares)
                        : packTrees(resources, group, false);
  return it->second ? &*it->second : nullptr;
}
