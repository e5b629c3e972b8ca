//===- TreeChoice.cpp - Pieces and their order along trees --------------------------------===//
#include "TreeChoice.h"
#include "Algorithms.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace mlir;
using namespace mlir::ctran;
using ncclx::TreeSetting;
using topology::PackedTree;
using topology::TreePacking;

namespace {

/// Puts of one collective, on all ranks together: what is simulated in about a second.
constexpr int64_t kMostPuts = 131072;
/// Of them those of one round, each of which is text of its own.
constexpr int64_t kMostInRound = 4096;

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

TreePacking copied(TreePacking packing, int64_t copies) {
  std::vector<PackedTree> trees;
  for (const PackedTree &tree : packing.trees)
    trees.insert(trees.end(), copies, tree);
  packing.trees = std::move(trees);
  packing.shares *= unsigned(copies);
  return packing;
}

class Chooser {
public:
  Chooser(const TreePacking &packing, const TreeCosts &costs, double bytes, TreeScratch scratch)
      : trees(packing), costs(costs), bytes(bytes), scratch(scratch) {}
  TreeChoice run(int64_t rounds, int64_t mostRounds);

private:
  const TreePacking &trees;
  TreeCosts costs;
  double bytes;
  TreeScratch scratch;

  /// Bytes that a member has for parts and sums.
  double scratchOf(const TreeChoice &choice) const;
  bool fits(const TreeChoice &choice) const {
    return scratch.most < 0 || scratchOf(choice) <= double(scratch.most);
  }
  TreeChoice planned(int64_t rounds, bool sparing) const;
};

double Chooser::scratchOf(const TreeChoice &choice) const {
  size_t n = trees.edgeSeconds.size();
  std::vector<int64_t> parts(n, 0), sums(n, 0);
  for (const PackedTree &tree : trees.trees) {
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

/// `sparing`: with no more room than the order of the puts needs.
TreeChoice Chooser::planned(int64_t rounds, bool sparing) const {
  TreeChoice choice;
  TreeCosts with = costs;
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
  if (sparing)
    choice.plan.buffers = choice.plan.leastBuffers;
  // The next run finds each place of scratch memory where this one would.
  choice.plan.buffers = std::min(choice.plan.buffers, rounds);
  cut(int64_t(llvm::alignTo(rounds, choice.plan.buffers)));
  return choice;
}

TreeChoice Chooser::run(int64_t rounds, int64_t mostRounds) {
  TreeChoice choice = planned(rounds, /*sparing=*/false);
  while (!fits(choice) && rounds < mostRounds && choice.pieceBytes > scratch.unitBytes) {
    rounds = std::min(mostRounds, 2 * rounds);
    choice = planned(rounds, /*sparing=*/false);
  }
  return fits(choice) ? choice : planned(rounds, /*sparing=*/true);
}

} // namespace

TreeSetting TreeSetting::of(DictionaryAttr hint) {
  TreeSetting setting;
  auto take = [&](StringRef word, int64_t &number) {
    if (auto said = hint.getAs<IntegerAttr>(word))
      number = said.getInt();
  };
  take("lanes", setting.lanes);
  take("rounds", setting.rounds);
  take("copies", setting.copies);
  take("turns", setting.turns);
  take("slack", setting.slack);
  return setting;
}

DictionaryAttr TreeSetting::hint(MLIRContext *context) const {
  Builder b(context);
  return b.getDictionaryAttr({b.getNamedAttr("lanes", b.getI64IntegerAttr(lanes)),
                              b.getNamedAttr("rounds", b.getI64IntegerAttr(rounds)),
                              b.getNamedAttr("copies", b.getI64IntegerAttr(copies)),
                              b.getNamedAttr("turns", b.getI64IntegerAttr(turns)),
                              b.getNamedAttr("slack", b.getI64IntegerAttr(slack))});
}

int64_t ncclx::treeCopies(const TreePacking &packing, const TreeSetting &setting) {
  Ways ways(packing);
  int64_t most = std::max<int64_t>(1, kMostInRound / ways.all);
  int64_t copies = setting.copies
                       ? setting.copies
                       : llvm::divideCeil(setting.lanes, std::min(setting.lanes, ways.fewest));
  return std::min(copies, most);
}

// Deep trees are filled and emptied the faster the shorter their puts are; but of short ones, more
// of those that share a link are in their starts together. What both lose is least where a put
// takes about `each` seconds, shorter where pieces go up and down: measured on DGX-1, MI250, MI300
// and a torus by simulation.
int64_t ncclx::usualTreeRounds(const TreePacking &packing, const TreeSetting &setting,
                               double bytes) {
  double busy = bytes * packing.secondsPerByte;
  if (busy <= 0)
    return 1; // tensors without elements
  Ways ways(packing);
  bool both = !packing.trees.front().in.empty() && !packing.trees.front().out.empty();
  double each = (both ? 0.5 : 1) *
                std::cbrt(10 * stepSeconds * stepSeconds * busy / std::max(1u, packing.depth));
  int64_t copies = treeCopies(packing, setting);
  int64_t most = std::max<int64_t>(1, kMostPuts / (copies * ways.all));
  return std::clamp<int64_t>(int64_t(busy / (double(copies * ways.fewest) * each)), 1, most);
}

TreeChoice ctran::chooseTrees(const TreePacking &packing, const TreeCosts &costs, double bytes,
                              const TreeSetting &setting, TreeScratch scratch) {
  TreeCosts with = costs;
  with.lanes = setting.lanes;
  with.turns = setting.turns;
  with.slack = double(setting.slack) / 100;
  TreePacking trees = copied(packing, ncclx::treeCopies(packing, setting));
  int64_t most = std::max<int64_t>(1, kMostPuts / Ways(trees).all);
  int64_t rounds = setting.rounds ? std::min(setting.rounds, most)
                                  : ncclx::usualTreeRounds(packing, setting, bytes);
  TreeChoice choice = Chooser(trees, with, bytes, scratch).run(rounds, most);
  choice.packing = std::move(trees);
  return choice;
}
