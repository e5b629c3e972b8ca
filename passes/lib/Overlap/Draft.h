//===- Draft.h - A schedule that is changed window by window ------------------*- C++ -*-===//
//
// Solvers try thousands of small changes. A change is timed from the state in front of it to where
// the device is again in a state that it was in before, at the same step: what follows takes as
// long as it did. So a try costs what it moves, not the whole schedule.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_OVERLAP_DRAFT_H
#define NCCLX_LIB_OVERLAP_DRAFT_H

#include "Greedy.h"

namespace mlir::ncclx::overlap {

class Draft {
public:
  /// `schedule` passes check(). The problem and the graph outlive this.
  Draft(const Problem &problem, const Graph &graph, Schedule schedule, double frequency);

  const Schedule &schedule() const { return steps; }
  double seconds() const { return total; }
  /// Most bytes at a time.
  int64_t peak() const;
  /// Where a step stands.
  size_t place(Step step) const {
    return step.kind == StepKind::await ? awaited[step.op] : placed[step.op];
  }

  /// Whether `window`, a reordering of the steps from `low` on, keeps every need.
  bool legal(size_t low, const Schedule &window) const;
  /// Whether memory then stays below `limit` bytes, if it does now.
  bool fits(size_t low, const Schedule &window, int64_t limit) const;
  /// Seconds that it adds (or, below 0, saves). Simulated steps are added to `cost`.
  double change(size_t low, const Schedule &window, uint64_t &cost) const;
  void apply(size_t low, const Schedule &window);

private:
  const Problem *problem;
  const Graph *graph;
  double frequency, total = 0;
  Schedule steps;
  std::vector<std::vector<Clock::Flight>>
      before;                ///< in flight in front of each step, and at the end
  std::vector<double> takes; ///< seconds of each step
  /// Of each op, its steps. A look at another order changes them for as long as it takes.
  mutable std::vector<size_t> placed, awaited;
  std::vector<int64_t> alive; ///< bytes during each step

  void play(Clock &clock, Step step) const;
  void stand(size_t low, const Step *order, size_t count) const;
  bool same(const std::vector<Clock::Flight> &a, const std::vector<Clock::Flight> &b) const;
  std::pair<size_t, size_t> lifetime(const Buffer &buffer) const;
  template <typename Visit> void visitBuffers(const Schedule &window, Visit visit) const;
};

/// Seconds of whole schedules under the power cap, from those of one at its clock and what they
/// change by with the clock: near that clock all schedules of a problem change alike.
class UnderCap {
public:
  UnderCap(const Problem &problem, const Schedule &schedule);
  /// The clock at which drafts are timed.
  double clock() const { return frequency; }
  /// Of a schedule that takes `more` seconds than the given one at that clock.
  double seconds(double more) const;

private:
  Power power;
  double frequency, here, slope = 0;
  double fixed = 0, squared = 0; ///< joules that do not, and do, depend on the clock
};

} // namespace mlir::ncclx::overlap
#endif // NCCLX_LIB_OVERLAP_DRAFT_H
