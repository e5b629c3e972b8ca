//===- TreeShares.cpp - Whole shares that come near a linear program ----------------===//
#include "Packer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir::ncclx::topology;

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
  for (unsigned pass = 0; pass < treePasses; ++pass) {
    // At first depth costs less from pass to pass, so that the first packing that does is a
    // shallow one; where none does, it costs next to nothing.
    unsigned turn = pass % (treePasses / 2);
    double steepness = std::min(40.0, 4.0 + 1.5 * turn);
    double depthPrice = pass < treePasses / 2 ? 2 * std::pow(0.75, turn) : 1e-3;
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
