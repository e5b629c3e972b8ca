//===- TreePacking.cpp ----------------------------------------------------===//
#include "ncclx/Topology/TreePacking.h"
#include "LinearProgram.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

using namespace mlir::ncclx::topology;

namespace {
constexpr double unreachable = 1e200;
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
/// Rounds in which every tree is grown anew.
constexpr unsigned passes = 70;
/// Edges that are looked at in all of them together: all that 16 members ever need, some tenths of
/// a second.
constexpr double mostLooks = 45e6;

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
  Packer(ResourceModel &resources, llvm::ArrayRef<unsigned> group, TreeFlow flow);
  std::optional<TreePacking> run();

private:
  struct Use {
    unsigned row;
    double perByte; ///< seconds of the resource
  };
  struct Tree {
    unsigned root;
    bool sums; ///< data goes to the root
    std::vector<unsigned> parent;
    std::vector<Use> uses;
    unsigned depth;
    double amount = 0;
  };
  using Edges = std::vector<std::vector<std::vector<Use>>>; ///< parent, child; empty: no route

  unsigned n;
  TreeFlow flow;
  std::vector<bool> ways; ///< of Tree::sums, those that the flow has
  unsigned rows = 0;
  double unit = 0;  ///< seconds per byte that the program counts in
  Matrix latencies; ///< seconds, by sender and receiver
  Edges edges[2];   ///< by Tree::sums
  /// The same one behind the other, by parent * n + child.
  std::vector<Use> uses[2];
  std::vector<unsigned> firstUse[2];
  /// By Tree::sums and member: what its edge to or from its parent takes, whatever the parent.
  std::vector<std::vector<Use>> always[2];
  /// What all uses of a resource by one edge are: its load is whole times that; 0: they differ.
  std::vector<double> quanta;
  /// Of the linear program's rows, and what a share (of fixed roots, of all of them) costs at
  /// least: those that show best what no packing can exceed.
  std::vector<double> tightPrices;
  double tightCost = 0;
  std::vector<Tree> trees;
  std::set<std::tuple<unsigned, bool, std::vector<unsigned>>> known;

  bool add(unsigned root, bool sums, const std::vector<unsigned> &parent);
  double costOf(bool sums, unsigned parent, unsigned child,
                const std::vector<double> &prices) const;
  double costOf(unsigned root, bool sums, const std::vector<unsigned> &parent,
                const std::vector<double> &prices) const;
  std::vector<unsigned> cheapest(unsigned root, bool sums, const std::vector<double> &prices) const;
  std::vector<unsigned> grown(unsigned root, bool sums, const std::vector<double> &prices,
                              double depthPrice) const;
  unsigned rowOf(unsigned root, bool sums) const { return rows + root * 2 + sums; }
  bool isFree() const { return flow == TreeFlow::sumAndSpread; }
  LinearProgram program() const;
  bool generate(const LinearSolution &solution, double &most);
  std::vector<unsigned> apportion(const std::vector<double> &amounts, unsigned shares) const;
  /// A tree of each way for each share.
  struct Shares {
    std::vector<unsigned> roots;
    std::vector<std::vector<unsigned>> parents[2];
    double load = unreachable; ///< of the busiest resource, where each share has 1
  };
  std::vector<unsigned> rootsOf(unsigned shares) const;
  double leastLoad(const std::vector<unsigned> &roots, unsigned shares) const;
  double busiest(const Shares &of) const;
  Shares rounded(unsigned shares) const;
  Shares regrown(unsigned shares, double goal) const;
  unsigned depthOf(const Shares &of, size_t share) const;
  void flatten(Shares &of, double goal) const;
  TreePacking packing(const Shares &of, unsigned shares) const;
};

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

static std::vector<unsigned> depthsOf(unsigned root, const std::vector<unsigned> &parent) {
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

/// Whole numbers that are as the amounts and add up to `shares`: largest remainders.
std::vector<unsigned> Packer::apportion(const std::vector<double> &amounts, unsigned shares) const {
  double all = std::accumulate(amounts.begin(), amounts.end(), 0.0);
  std::vector<unsigned> counts(amounts.size());
  std::vector<std::pair<double, size_t>> lost;
  unsigned left = shares;
  for (size_t i = 0; i < amounts.size(); ++i) {
    double exact = amounts[i] / all * shares;
    counts[i] = std::min(left, unsigned(exact + 1e-6));
    left -= counts[i];
    lost.push_back({counts[i] - exact, i});
  }
  std::sort(lost.begin(), lost.end());
  for (size_t i = 0; left > 0; ++i, --left)
    ++counts[lost[i % lost.size()].second];
  return counts;
}

/// The root of each share, ascending.
std::vector<unsigned> Packer::rootsOf(unsigned shares) const {
  std::vector<unsigned> counts(n, shares), roots;
  if (isFree()) {
    std::vector<double> amounts(n, 0);
    for (const Tree &tree : trees)
      if (tree.sums)
        amounts[tree.root] += tree.amount;
    counts = apportion(amounts, shares);
  }
  for (unsigned root = 0; root < n; ++root)
    roots.insert(roots.end(), counts[root], root);
  return roots;
}

/// What the busiest resource has at least, whatever the trees of these roots: each member but the
/// root has one edge; and trees are whole, so that at the prices above what resources can hold of
/// them must pay for all.
double Packer::leastLoad(const std::vector<unsigned> &roots, unsigned shares) const {
  std::vector<double> load(rows, 0);
  std::vector<unsigned> times(n, 0);
  for (unsigned root : roots)
    ++times[root];
  for (bool sums : ways)
    for (unsigned v = 0; v < n; ++v)
      for (const Use &use : always[sums][v])
        load[use.row] += use.perByte * double(roots.size() - times[v]);
  double least = *std::max_element(load.begin(), load.end());
  constexpr unsigned mostSteps = 1000;
  for (unsigned step = 0; step < mostSteps && !tightPrices.empty(); ++step) {
    double holds = 0, next = unreachable;
    for (unsigned row = 0; row < rows; ++row) {
      if (tightPrices[row] <= 0)
        continue;
      double quantum = quanta[row], whole = least;
      if (quantum > 0) {
        whole = std::floor(least / quantum + 1e-9) * quantum;
        next = std::min(next, whole + quantum);
      }
      holds += tightPrices[row] * whole;
    }
    double lacks = double(shares) * tightCost * (1 - 1e-9) - holds;
    if (lacks <= 0)
      return least;
    double prices = std::accumulate(tightPrices.begin(), tightPrices.end(), 0.0);
    least = next < unreachable ? std::max(next, double(shares) * tightCost / prices)
                               : double(shares) * tightCost / prices;
  }
  return least;
}

double Packer::busiest(const Shares &of) const {
  std::vector<double> load(rows, 0);
  for (bool sums : ways)
    for (const std::vector<unsigned> &parent : of.parents[sums])
      for (unsigned v = 0; v < n; ++v)
        if (parent[v] != v)
          for (const Use &use : edges[sums][parent[v]][v])
            load[use.row] += use.perByte;
  return *std::max_element(load.begin(), load.end());
}

/// The linear program's trees, as often as their amounts.
Packer::Shares Packer::rounded(unsigned shares) const {
  Shares found;
  found.roots = rootsOf(shares);
  for (bool sums : ways)
    for (size_t i = 0, end; i < found.roots.size(); i = end) {
      for (end = i; end < found.roots.size() && found.roots[end] == found.roots[i];)
        ++end;
      std::vector<const Tree *> of;
      std::vector<double> amounts;
      for (const Tree &tree : trees)
        if (tree.root == found.roots[i] && tree.sums == sums) {
          of.push_back(&tree);
          amounts.push_back(tree.amount + 1e-12);
        }
      std::vector<unsigned> counts = apportion(amounts, end - i);
      for (size_t k = 0; k < of.size(); ++k)
        found.parents[sums].insert(found.parents[sums].end(), counts[k], of[k]->parent);
    }
  found.load = busiest(found);
  return found;
}

/// Shallow trees, each in turn grown anew at prices that rise with the load of what all others
/// leave, until no resource has more than `goal`.
Packer::Shares Packer::regrown(unsigned shares, double goal) const {
  Shares now, best;
  now.roots = rootsOf(shares);
  for (bool sums : ways)
    now.parents[sums].resize(now.roots.size());
  std::vector<double> load(rows, 0), prices(rows);
  auto put = [&](bool sums, const std::vector<unsigned> &parent, double amount) {
    for (unsigned v = 0; v < parent.size(); ++v)
      if (parent[v] != v)
        for (const Use &use : edges[sums][parent[v]][v])
          load[use.row] += amount * use.perByte;
  };
  for (unsigned pass = 0; pass < passes; ++pass) {
    // At first depth costs less from pass to pass, so that the first packing that does is a
    // shallow one; where none does, it costs next to nothing.
    unsigned turn = pass % (passes / 2);
    double steepness = std::min(40.0, 4.0 + 1.5 * turn);
    double depthPrice = pass < passes / 2 ? 2 * std::pow(0.75, turn) : 1e-3;
    for (size_t i = 0; i < now.roots.size(); ++i)
      for (bool sums : ways) {
        put(sums, now.parents[sums][i], -1);
        double highest = 0;
        for (unsigned row = 0; row < rows; ++row) {
          prices[row] = std::exp(steepness * (load[row] / goal - 1));
          highest = std::max(highest, prices[row]);
        }
        now.parents[sums][i] = grown(now.roots[i], sums, prices, depthPrice * highest);
        put(sums, now.parents[sums][i], 1);
      }
    now.load = *std::max_element(load.begin(), load.end());
    if (now.load < best.load * (1 - 1e-9))
      best = now;
    if (best.load <= goal)
      break;
  }
  return best;
}

/// Edges of the longest way to the root of a share and from it.
unsigned Packer::depthOf(const Shares &of, size_t share) const {
  unsigned depth = 0;
  for (bool sums : ways) {
    std::vector<unsigned> depths = depthsOf(of.roots[share], of.parents[sums][share]);
    depth += *std::max_element(depths.begin(), depths.end());
  }
  return depth;
}

/// Grows the deepest trees anew, alone or together with those of some other share, as long as they
/// become shallower and no resource has more than `goal`.
void Packer::flatten(Shares &of, double goal) const {
  std::vector<double> load(rows, 0), prices(rows);
  auto put = [&](size_t share, double amount) {
    for (bool sums : ways) {
      const std::vector<unsigned> &parent = of.parents[sums][share];
      for (unsigned v = 0; v < n; ++v)
        if (parent[v] != v)
          for (const Use &use : edges[sums][parent[v]][v])
            load[use.row] += amount * use.perByte;
    }
  };
  for (size_t share = 0; share < of.roots.size(); ++share)
    put(share, 1);
  auto grow = [&](size_t share, double depthPrice) {
    for (bool sums : ways) {
      // Of what is nearly full the price is as high as all depth.
      double highest = 0;
      for (unsigned row = 0; row < rows; ++row) {
        prices[row] = std::exp(40 * (load[row] / goal - 1));
        highest = std::max(highest, prices[row]);
      }
      std::vector<unsigned> &parent = of.parents[sums][share];
      parent = grown(of.roots[share], sums, prices, depthPrice * highest);
      for (unsigned v = 0; v < n; ++v)
        if (parent[v] != v)
          for (const Use &use : edges[sums][parent[v]][v])
            load[use.row] += use.perByte;
    }
  };
  auto improve = [&](std::initializer_list<size_t> those, unsigned below) {
    std::vector<std::vector<unsigned>> before[2];
    std::vector<double> loadBefore = load;
    for (bool sums : ways)
      for (size_t share : those)
        before[sums].push_back(of.parents[sums][share]);
    for (double depthPrice : {1.0, 0.3, 0.1, 0.03}) {
      for (size_t share : those)
        put(share, -1);
      bool good = true;
      for (size_t share : those) {
        grow(share, depthPrice);
        good &= depthOf(of, share) < below;
      }
      if (good && *std::max_element(load.begin(), load.end()) <= goal)
        return true;
      for (bool sums : ways)
        for (size_t i = 0; size_t share : those)
          of.parents[sums][share] = before[sums][i++];
      load = loadBefore;
    }
    return false;
  };
  while (true) {
    std::vector<unsigned> depths(of.roots.size());
    for (size_t share = 0; share < depths.size(); ++share)
      depths[share] = depthOf(of, share);
    unsigned deepest = *std::max_element(depths.begin(), depths.end());
    for (size_t share = 0; share < depths.size(); ++share) {
      if (depths[share] < deepest)
        continue;
      bool done = improve({share}, deepest);
      for (size_t other = 0; other < depths.size() && !done; ++other)
        done = depths[other] < deepest && improve({share, other}, deepest);
      if (!done) {
        of.load = *std::max_element(load.begin(), load.end());
        return;
      }
    }
  }
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
    looks += double(passes) * double(ways.size()) * double(found.roots.size()) * double(n) * n;
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
} // namespace

std::optional<TreePacking> mlir::ncclx::topology::packTrees(ResourceModel &resources,
                                                            llvm::ArrayRef<unsigned> group,
                                                            TreeFlow flow) {
  if (group.size() < 2 || group.size() > maxTreeMembers)
    return std::nullopt;
  return Packer(resources, group, flow).run();
}

TreePacker::TreePacker(const Topology &topology, Rate rate)
    : topology(topology), rate(rate), ranks(topology.numRanks()) {
  constexpr unsigned fewPeers = 8, mostLanes = 16;
  // From a node to a node, or to a bundle, whose numbers follow those of the nodes; once each.
  std::vector<std::pair<unsigned, size_t>> ways;
  std::map<std::string, size_t> bundles;
  for (const Link &link : topology.links) {
    if (link.kind != LinkKind::nvlink && link.kind != LinkKind::xgmi)
      continue;
    const Node &to = topology.nodes[link.to];
    size_t other = link.to;
    if (!to.bundle.empty())
      other = topology.nodes.size() + bundles.try_emplace(to.bundle, bundles.size()).first->second;
    ways.push_back({link.from, other});
  }
  std::sort(ways.begin(), ways.end());
  ways.erase(std::unique(ways.begin(), ways.end()), ways.end());
  std::vector<unsigned> neighbours(topology.nodes.size(), 0);
  for (auto [from, to] : ways)
    ++neighbours[from];
  for (unsigned rank = 0; rank < ranks; ++rank) {
    if (topology.rankNode(rank).kind != NodeKind::gpu)
      continue;
    unsigned joined = neighbours[topology.ranks[rank]];
    lanes = std::max({lanes, std::min(mostLanes, joined), std::min(fewPeers, ranks - 1)});
  }
}

double TreePacker::sumSecondsPerByte() {
  if (sums)
    return *sums;
  sums = 0;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    const RankResources &own = resources().rank(rank);
    if (topology.rankNode(rank).kind == NodeKind::gpu && own.memory >= 0)
      sums = std::max(*sums, own.memoryPerByte.toDouble() /
                                 resources().resources()[own.memory].capacity.toDouble());
  }
  return *sums;
}

const Tiers &TreePacker::tiers() {
  if (!theTiers)
    theTiers = findTiers(topology, resources());
  return *theTiers;
}

const TreePacking *TreePacker::pack(llvm::ArrayRef<unsigned> group, TreeFlow flow) {
  auto [it, isNew] = known.try_emplace({group.vec(), flow});
  if (isNew)
    it->second = packTrees(resources(), group, flow);
  return it->second ? &*it->second : nullptr;
}

const Routing *TreePacker::route(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<uint64_t> amounts,
                                 unsigned maxShares) {
  auto [it, isNew] = routings.try_emplace({group.vec(), amounts.vec(), maxShares});
  if (isNew)
    it->second = routeFlows(resources(), group, amounts, maxShares);
  return it->second ? &*it->second : nullptr;
}
