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
};
/// `memoryBudget`: for a stack of four.
PerLayer perLayer(const CostModel &cost, const Case &c, Strategy strategy,
                  const BuildOptions &options = {},
                  std::optional<int64_t> memoryBudget = std::nullopt);

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
extern const std::vector<SurveyRow> surveyRows;   ///< the second table of 3.4
extern const std::vector<SurveyRow> unlistedRows; ///< what it leaves out

/// Reads examples/machines/NAME.json; throws where that fails.
CostModel machine(const std::string &name);

} // namespace overlap_test
#endif // NCCLX_TEST_UNIT_OVERLAP_STRATEGIES_H
