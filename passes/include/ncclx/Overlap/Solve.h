//===- Solve.h - From a problem to a schedule -------------------------------*- C++ -*-===//
#ifndef NCCLX_OVERLAP_SOLVE_H
#define NCCLX_OVERLAP_SOLVE_H

#include "ncclx/Overlap/Timeline.h"

namespace mlir::ncclx::overlap {

struct SolveOptions {
  /// Memory beyond the peak of the schedule that is given; none: as much as it takes. 0 changes
  /// nothing.
  std::optional<int64_t> memoryBudget;
  /// An overlap must hide at least this part of its collective, or it is undone.
  double margin = 0.05;
  /// Steps that rules and improvement may simulate: the same on every machine, unlike time.
  uint64_t effort = 400'000;
  /// The list scheduler's rules to try, by number; empty: all of them that the effort allows.
  std::vector<unsigned> rules;
};

/// Why a collective's time shows.
enum class Reason { none, dependency, noPartner, budget, sms, memoryBandwidth, power, margin };
const char *toString(Reason reason);

struct Exposure {
  unsigned collective = 0;
  double seconds = 0;
  Reason reason = Reason::none;
  std::string lift; ///< what would hide it
};

struct Solution {
  Schedule schedule;
  Timeline timeline;
  int64_t peak = 0;              ///< bytes
  double before = 0;             ///< seconds of the schedule that was given
  int64_t peakBefore = 0;        ///< its peak
  unsigned rule = 0;             ///< of the list scheduler, that led to it
  std::vector<unsigned> refused; ///< collectives whose overlap would not pay
};

/// A list scheduler with several rules of priority, then moves of single steps: annealed where the
/// effort allows many of each, then while they help. The same schedule on every machine.
/// Never slower than `given`, never above the budget. `given` passes check().
Solution solve(const Problem &problem, const Schedule &given, const SolveOptions &options);

/// The best schedule there is, by exhaustive search that drops what another state is better than in
/// every respect. Nothing for problems of more than 32 ops, or of too many states: about 16 ops of
/// any kind, 32 of which most stand in chains. No margin: what helps at all is taken.
std::optional<Schedule> solveExactly(const Problem &problem, const Schedule &given,
                                     std::optional<int64_t> memoryBudget);

/// What runs again and again, in two stages: the ops in front of `cut` run for the iteration ahead,
/// beside those behind it. The kernel has those behind the cut first.
struct SteadyState {
  unsigned cut = 0;    ///< of the body's ops
  Problem kernel;      ///< what one iteration runs: the ops [cut, n), then [0, cut)
  Schedule schedule;   ///< of the kernel
  double seconds = 0;  ///< from one iteration to the next
  double before = 0;   ///< the same of the body as a block of its own
  int64_t carried = 0; ///< bytes that the stages hand on, which are there twice
  Floor floor;         ///< no two stages are faster, and why
};

/// Modulo scheduling in two stages. `carried`: an op of one iteration, and one of the next that
/// needs it. Every place between two ops is tried where the body is small, else a few. Nothing
/// where no cut is faster than the body as `given` and improved, or the budget allows none.
std::optional<SteadyState>
scheduleSteadyState(const Problem &body, const Schedule &given,
                    const std::vector<std::pair<unsigned, unsigned>> &carried,
                    const SolveOptions &options);

/// Undoes overlaps that gain less than the margin, the earliest first, until each that is left
/// gains it. Gives the collectives.
std::vector<unsigned> refuseUnderMargin(const Problem &problem, Schedule &schedule, double margin);

/// The named rewrites, each for one kind of overlap. Kernels keep their order but for the sinks
/// that pairSinks moves. What would exceed the budget, or gain less than the margin, is left; a
/// negative margin takes every pair there is.
///
/// Bulk: a collective that nothing hides runs beside the last GEMM between what it needs and what
/// needs it.
Schedule pairBulk(const Problem &problem, const Schedule &given, const SolveOptions &options);
/// AG-WGRAD: a GEMM that no op needs, and that is no collective's partner, is put off and runs
/// beside the next collective that has no partner and whose result is needed; `distance` of them on
/// at most.
Schedule pairSinks(const Problem &problem, const Schedule &given, const SolveOptions &options,
                   unsigned distance = 1);

/// A collective that nothing hides starts as early and is awaited as late as its edges allow; less
/// early where the budget wants it.
Schedule hoistStarts(const Problem &problem, const Schedule &given, const SolveOptions &options);

/// Each collective of `solution` that is exposed for more than the margin, with the reason: found
/// by solving again with one limit lifted.
std::vector<Exposure> explain(const Problem &problem, const Schedule &given,
                              const Solution &solution, const SolveOptions &options);

} // namespace mlir::ncclx::overlap
#endif // NCCLX_OVERLAP_SOLVE_H
