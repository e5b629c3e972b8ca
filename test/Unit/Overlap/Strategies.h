//===- Strategies.h - Exposed communication of a layer, by strategy ------------*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_OVERLAP_STRATEGIES_H
#define NCCLX_TEST_UNIT_OVERLAP_STRATEGIES_H

#include "Workloads.h"
#include "ncclx/Overlap/Solve.h"

#include <vector>

namespace overlap_test {

enum class Strategy {
  none,      ///< every collective is awaited where it starts
  bulk,      ///< pairBulk
  agWgrad,   ///< and pairSinks
  divisible, ///< the general scheduler on the backward, weight gradients in pieces
  fill,      ///< the same, and they may be kept for the next micro-batch's forward
  braid,     ///< the same, and that forward may run beside the backward
};
const char *toString(Strategy strategy);
inline const std::vector<Strategy> allStrategies = {Strategy::none,    Strategy::bulk,
                                                    Strategy::agWgrad, Strategy::divisible,
                                                    Strategy::fill,    Strategy::braid};

/// Of one layer, forward and backward, in the middle of a stack: the difference between stacks of
/// four and two layers, so that the ends do not count.
struct PerLayer {
  double exposed = 0, seconds = 0;
  double peakBytes = 0;
  /// leastExposed(); of the general scheduler's strategies alone.
  double least = 0;
  double whole = 0; ///< exposed of all four
};
/// Layers of a stack as one problem: the backward, then the forward of the next micro-batch, behind
/// it (`fill`) or beside it (`braid`); weight gradients in pieces or whole.
Problem stackOf(const CostModel &cost, const Case &c, Strategy strategy, int layers,
                BuildOptions options);
/// Both chains of a braid keep device and queue nearly full: that is the hardest to order.
inline constexpr uint64_t quickBraid = 1'600'000, thoroughBraid = 16 * quickBraid;
/// `memoryBudget`: for a stack of four. `braid`: the search's effort for one.
PerLayer perLayer(const CostModel &cost, const Case &c, Strategy strategy,
                  const BuildOptions &options = {},
                  std::optional<int64_t> memoryBudget = std::nullopt, uint64_t braid = quickBraid);

/// The general scheduler's choice where all refusals are on, no strategy named.
PerLayer general(const CostModel &cost, const Case &c, const BuildOptions &options);

/// A row of the survey's tables.
struct SurveyRow {
  const char *machine; ///< of examples/machines
  Model model;
  double tokens;
  int64_t t;
  double exposed[5]; ///< us: none, bulk, AG-WGRAD, liquid, forward fill; 0: not listed
};
/// The survey's figures by its own arithmetic. u is what a gather or scatter takes, s(k) the part
/// of it that a kernel k is too short for, W the time of all weight gradients, N what the backward
/// asks of them:
///
///   none   10 u                              6 in the backward, 4 in the forward
///   bulk   6 u + 2 s(fc1) + 2 s(qkv)         AG3, AG5 and the forward have no partner
///   AGW    bulk - 2 u + s(fc2) + s(o)
///   liquid 4 u + max(0, N - W)               N = 4 u + s(fc1) + s(qkv)
///   fill   max(0, 4 u - max(0, W - N))
///
/// The last is what the forward leaves exposed: where all weight gradients are spent (N > W) it
/// leaves out the N - W that the line above it has. Of a whole layer both stay exposed, unless AG6
/// runs beside more than its dgrad: then s(qkv) is hidden, and 8 u - W stays. Of 8B at t = 8, where
/// weight gradients are too short, no order of the survey's ops leaves less (leastSeconds): its
/// figure for forward fill is reached only where the forward may run beside the backward's other
/// kernels (`braid`).
struct SurveyArithmetic {
  double exposed[5]; ///< us
  double unspent;    ///< us: max(0, N - W)
};
SurveyArithmetic surveyArithmetic(const CostModel &cost, const Case &c);

extern const std::vector<SurveyRow> surveyRows;   ///< the second table of 3.4
extern const std::vector<SurveyRow> unlistedRows; ///< what it leaves out

/// Reads examples/machines/NAME.json; throws where that fails.
CostModel machine(const std::string &name);

} // namespace overlap_test
#endif // NCCLX_TEST_UNIT_OVERLAP_STRATEGIES_H
