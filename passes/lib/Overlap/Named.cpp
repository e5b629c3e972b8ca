//===- Named.cpp - Bulk and AG-WGRAD, by name -------------------------------------===//
//
// Cards P1 and P2 of the survey: what is ready at the same time runs at the same time; and a weight
// gradient that is ready earlier is put off until a gather has nothing else beside it.
//
//===----------------------------------------------------------------------===//
#include "Greedy.h"
#include "ncclx/Overlap/Solve.h"

#include <algorithm>
#include <limits>

using namespace mlir::ncclx::overlap;

namespace {

class Pairing {
public:
  Pairing(const Problem &problem, const Schedule &given, const SolveOptions &options)
      : problem(problem), graph(problem), options(options), schedule(given),
        partner(problem.ops.size()) {
    limit = options.memoryBudget ? peakBytes(problem, given) + *options.memoryBudget
                                 : std::numeric_limits<int64_t>::max();
    for (const Beside &beside : evaluate(problem, given).beside)
      partner[beside.collective] = partner[beside.kernel] = true;
  }

  Schedule bulk() {
    for (unsigned op : lonely()) {
      auto [low, high] = window(op);
      for (size_t i = high; i-- > low;) {
        unsigned kernel = schedule[i].op;
        if (schedule[i].kind != StepKind::run || problem.ops[kernel].tiles == 0 || partner[kernel])
          continue;
        Schedule trial = without(schedule, op);
        auto place = std::find(trial.begin(), trial.end(), Step{StepKind::run, kernel});
        place = trial.insert(place, {StepKind::start, op});
        trial.insert(place + 2, {StepKind::await, op});
        take(std::move(trial), op, kernel);
        break;
      }
    }
    return schedule;
  }

  Schedule hoist() {
    for (unsigned op : lonely()) {
      auto [low, high] = window(op);
      size_t at = find({StepKind::start, op});
      for (size_t start = low; start <= at; ++start) {
        Schedule trial = without(schedule, op);
        trial.insert(trial.begin() + (high - 2), {StepKind::await, op});
        trial.insert(trial.begin() + start, {StepKind::start, op});
        if (take(std::move(trial), op, op))
          break;
      }
    }
    return schedule;
  }

  Schedule sinks(unsigned distance) {
    std::vector<unsigned> alone = lonely();
    std::erase_if(alone, [&](unsigned op) { return graph.completeFor[op].empty(); });
    for (size_t c = 0; c < alone.size(); ++c) {
      unsigned op = alone[c];
      size_t at = find({StepKind::start, op});
      size_t low = c >= distance ? find({StepKind::await, alone[c - distance]}) : 0;
      for (size_t i = at; i-- > low;) {
        unsigned kernel = schedule[i].op;
        if (schedule[i].kind != StepKind::run || problem.ops[kernel].tiles == 0 ||
            partner[kernel] || !graph.completeFor[kernel].empty())
          continue;
        Schedule trial = schedule;
        trial.erase(trial.begin() + i);
        trial.insert(trial.begin() + at, {StepKind::run, kernel}); // behind the start
        if (take(std::move(trial), op, kernel))
          break;
      }
    }
    return schedule;
  }

private:
  const Problem &problem;
  const Graph graph;
  const SolveOptions &options;
  Schedule schedule;
  std::vector<bool> partner; ///< of each op, whether it has one
  int64_t limit;

  std::vector<unsigned> lonely() const {
    std::vector<unsigned> list;
    for (Step step : schedule)
      if (step.kind == StepKind::start && !partner[step.op])
        list.push_back(step.op);
    return list;
  }
  size_t find(Step step) const {
    return std::find(schedule.begin(), schedule.end(), step) - schedule.begin();
  }
  /// The steps [low, high) between what the collective needs and what needs it, its own among them.
  std::pair<size_t, size_t> window(unsigned op) const {
    size_t low = find({StepKind::start, op}), high = find({StepKind::await, op});
    while (low > 0 && !completes(schedule[low - 1], op))
      --low;
    while (high < schedule.size() && !needs(schedule[high], op))
      ++high;
    return {low, high};
  }
  static Schedule without(Schedule schedule, unsigned op) {
    std::erase_if(schedule, [&](Step s) { return s.op == op; });
    return schedule;
  }
  bool completes(Step step, unsigned op) const {
    const std::vector<unsigned> &complete = graph.needs.complete[op];
    const std::vector<unsigned> &placed = graph.needs.placed[op];
    return (step.kind != StepKind::start &&
            std::binary_search(complete.begin(), complete.end(), step.op)) ||
           (step.kind != StepKind::await &&
            std::binary_search(placed.begin(), placed.end(), step.op));
  }
  bool needs(Step step, unsigned op) const {
    return step.kind != StepKind::await && completes({StepKind::run, op}, step.op);
  }

  bool take(Schedule trial, unsigned op, unsigned kernel) {
    if (check(problem, trial) || peakBytes(problem, trial) > limit)
      return false;
    if (options.margin >= 0 &&
        evaluate(problem, schedule).seconds - evaluate(problem, trial).seconds <
            options.margin * problem.ops[op].seconds)
      return false;
    schedule = std::move(trial);
    partner[op] = partner[kernel] = true;
    return true;
  }
};

} // namespace

Schedule mlir::ncclx::overlap::pairBulk(const Problem &problem, const Schedule &given,
                                        const SolveOptions &options) {
  return options.memoryBudget == 0 ? given : Pairing(problem, given, options).bulk();
}

Schedule mlir::ncclx::overlap::hoistStarts(const Problem &problem, const Schedule &given,
                                           const SolveOptions &options) {
  return options.memoryBudget == 0 ? given : Pairing(problem, given, options).hoist();
}

Schedule mlir::ncclx::overlap::pairSinks(const Problem &problem, const Schedule &given,
                                         const SolveOptions &options, unsigned distance) {
  return options.memoryBudget == 0 ? given : Pairing(problem, given, options).sinks(distance);
}
