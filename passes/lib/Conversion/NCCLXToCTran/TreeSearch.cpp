//===- TreeSearch.cpp - Pieces and lanes with which trees are fastest ---------------------===//
#include "TreeSearch.h"
#include "Algorithms.h"
#include "TreeTime.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

using namespace mlir::ctran;
using mlir::ncclx::topology::PackedTree;
using mlir::ncclx::topology::TreePacking;

namespace {

/// Puts of one collective, on all ranks together: what is simulated and proved in about a second.
constexpr int64_t kMostPuts = 65536;
/// Puts of all plans that are tried: some tenths of a second.
constexpr int64_t kMostTried = 6 * kMostPuts;
/// Times what no trees can beat, for which no better plan is looked for.
constexpr double kGoodEnough = 1.01;

/// The ways between members that have something to do in a round.
struct Ways {
  int64_t all = 0;    ///< puts of all of them
  int64_t fewest = 0; ///< puts of one that is about as busy as the busiest
  explicit Ways(const TreePacking &packing);
};

Ways::Ways(const TreePacking &packing) {
  std::map<std::pair<unsigned, unsigned>, int64_t> puts;
  for (const PackedTree &tree : packing.trees)
    for (unsigned v = 0; v < std::max(tree.in.size(), tree.out.size()); ++v) {
      if (v == tree.root)
        continue;
      if (!tree.in.empty())
        ++puts[{v, tree.in[v]}];
      if (!tree.out.empty())
        ++puts[{tree.out[v], v}];
    }
  double longest = 0;
  auto secondsOf = [&](const auto &way) {
    return packing.edgeSeconds[way.first.first][way.first.second] * double(way.second);
  };
  for (const auto &way : puts) {
    longest = std::max(longest, secondsOf(way));
    all += way.second;
  }
  for (const auto &way : puts)
    if (secondsOf(way) >= 0.9 * longest)
      fewest = fewest ? std::min(fewest, way.second) : way.second;
}

/// The trees, each as often that every busy way has a put a round for each lane.
TreePacking withEnoughPuts(TreePacking packing, int64_t lanes) {
  int64_t times = llvm::divideCeil(lanes, std::min(lanes, Ways(packing).fewest));
  std::vector<PackedTree> trees;
  for (const PackedTree &tree : packing.trees)
    trees.insert(trees.end(), times, tree);
  packing.trees = std::move(trees);
  packing.shares *= unsigned(times);
  return packing;
}

/// Rounds that move each root's `bytes` (or all roots' together) about best. Deep trees are filled
/// and emptied the faster the shorter their puts are; but of short ones, more of those that share a
/// link are in their starts together. What both lose is least where the puts of one link take
/// together `window` seconds, shorter where pieces go up and down: measured on DGX-1, MI250 and a
/// torus by simulation.
double usualRounds(const TreePacking &packing, const Ways &ways, double bytes, int64_t lanes) {
  bool both = !packing.trees.front().in.empty() && !packing.trees.front().out.empty();
  double busy = bytes * packing.secondsPerByte;
  if (busy <= 0)
    return 1; // tensors without elements
  double window = (both ? 1 : 2) *
                  std::cbrt(10 * stepSeconds * stepSeconds * busy / std::max(1u, packing.depth));
  return busy * double(lanes) / (double(ways.fewest) * window);
}

class Searcher {
public:
  Searcher(const TreePacking &packing, const TreeCosts &costs, double bytes, TreeScratch scratch)
      : packing(packing), costs(costs), bytes(bytes), scratch(scratch) {}
  TreeChoice run();

private:
  /// What a choice decides.
  struct Setting {
    int64_t lanes;
    double scale; ///< of the usual rounds
    int64_t turns;
    double slack;
  };
  const TreePacking &packing;
  const TreeCosts &costs;
  double bytes;
  TreeScratch scratch;
  std::optional<TreeChoice> best;
  Setting of{4, 1, 3, 0}; ///< the best one
  int64_t tried = 0;

  /// Bytes that a member has for parts and sums.
  double scratchOf(const TreeChoice &choice) const;
  TreeChoice planned(const TreePacking &trees, TreeCosts with, int64_t rounds,
                     int64_t buffers) const;
  bool isOver() const {
    return tried > kMostTried ||
           (best && best->seconds <= kGoodEnough * bytes * packing.leastSecondsPerByte);
  }
  void attempt(Setting setting);
};

double Searcher::scratchOf(const TreeChoice &choice) const {
  size_t n = choice.packing.edgeSeconds.size();
  std::vector<int64_t> parts(n, 0), sums(n, 0);
  for (const PackedTree &tree : choice.packing.trees) {
    std::vector<bool> adds(n, false);
    for (unsigned v = 0; v < tree.in.size(); ++v)
      if (v != tree.root) {
        ++parts[tree.in[v]];
        adds[tree.in[v]] = true;
      }
    for (unsigned v = 0; v < tree.in.size(); ++v)
      sums[v] += adds[v] && v != tree.root;
  }
  int64_t places =
      *std::max_element(parts.begin(), parts.end()) + *std::max_element(sums.begin(), sums.end());
  double unit = scratch.unitBytes;
  return double(places * choice.plan.buffers) * (std::floor(choice.pieceBytes / unit) + 1) * unit;
}

TreeChoice Searcher::planned(const TreePacking &trees, TreeCosts with, int64_t rounds,
                             int64_t buffers) const {
  TreeChoice choice;
  choice.packing = trees;
  auto cut = [&](int64_t into) {
    choice.rounds = into;
    with.pieceBytes = choice.pieceBytes = bytes / (double(trees.shares) * double(into));
    with.handOver = stepSeconds;
    // Of two parts, on average.
    with.sum = trees.trees.front().in.empty()
                   ? 0
                   : stepSeconds + 4 * with.pieceBytes * with.sumSecondsPerByte;
  };
  cut(rounds);
  choice.plan = planTrees(trees, with);
  // The next run finds each place of scratch memory where this one would.
  choice.plan.buffers = std::min({choice.plan.buffers, rounds, buffers});
  cut(int64_t(llvm::alignTo(rounds, choice.plan.buffers)));
  if (scratch.most >= 0 && scratchOf(choice) > double(scratch.most))
    return choice;
  choice.seconds = timeOf(trees, with, choice.plan, choice.rounds);
  return choice;
}

void Searcher::attempt(Setting setting) {
  if (isOver())
    return;
  TreeCosts with = costs;
  with.lanes = setting.lanes;
  with.turns = setting.turns;
  with.slack = setting.slack;
  TreePacking trees = withEnoughPuts(packing, setting.lanes);
  Ways ways(trees);
  int64_t most = std::max<int64_t>(1, kMostPuts / ways.all);
  int64_t rounds = std::clamp<int64_t>(
      int64_t(setting.scale * usualRounds(trees, ways, bytes, setting.lanes)), 1, most);
  int64_t buffers = std::numeric_limits<int64_t>::max();
  TreeChoice choice = planned(trees, with, rounds, buffers);
  // Under a limit of scratch memory: smaller pieces, and then room for fewer at once.
  while (choice.seconds == 0) {
    if (rounds < most && choice.pieceBytes > scratch.unitBytes)
      rounds = std::min(most, 2 * rounds);
    else if (choice.plan.buffers > 1)
      buffers = choice.plan.buffers - 1;
    else
      break; // who set the limit refuses it
    TreeChoice next = planned(trees, with, rounds, buffers);
    if (std::isinf(next.seconds))
      break;
    choice = std::move(next);
  }
  tried += choice.rounds * ways.all;
  bool fits = choice.seconds > 0;
  if (best && (best->seconds > 0 ? !fits || choice.seconds >= best->seconds : !fits))
    return;
  best = std::move(choice);
  of = setting;
}

TreeChoice Searcher::run() {
  for (double scale : {1.0, 1.4, 0.5, 2.0})
    for (int64_t lanes : {4, 8, 2})
      attempt({lanes, scale, 3, 0});
  Setting first = of;
  if (packing.trees.front().in.empty())
    for (int64_t turns : {5, 2})
      attempt({first.lanes, first.scale, turns, first.slack});
  attempt({first.lanes, first.scale, of.turns, 2});
  for (double by : {1.2, 0.8})
    attempt({first.lanes, by * first.scale, of.turns, of.slack});
  return std::move(*best);
}

} // namespace

TreeChoice mlir::ctran::searchTrees(const TreePacking &packing, const TreeCosts &costs,
                                    double bytes, TreeScratch scratch) {
  return Searcher(packing, costs, bytes, scratch).run();
}
