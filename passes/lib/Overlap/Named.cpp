//===- Named.cpp - Bulk and AG-WGRAD, by name -------------------------------------===//
//
// Cards P1 and P2 of the survey: what is ready at the same time runs at the same time; and a weight
// gradient that is ready earlier is put off until a gather has nothing else beside it.
//
//===----------------------------------------------------------------------===//
#include "Draft.h"
#include "ncclx/Overlap/Solve.h"

#include <algorithm>
#include <limits>

using namespace mlir::ncclx::overlap;

namespace {

class Pairing {
public:
  Pairing(const Problem &problem, const Schedule &given, const SolveOptions &options)
      : problem(problem), graph(problem), options(options), cap(problem, given),
        draft(problem, graph, given, cap.clock()), start(draft.seconds()),
        partner(problem.ops.size()) {
    limit = options.memoryBudget ? peakBytes(problem, given) + *options.memoryBudget
                                 : std::numeric_limits<int64_t>::max();
    for (const Beside &beside : evaluate(problem, given).beside)
      partner[beside.collective] = partner[beside.kernel] = true;
  }

  Schedule bulk() {
    for (unsigned op : lonely()) {
      auto [low, high] = around(op);
      for (size_t i = high; i-- > low;) {
        Step step = draft.schedule()[i];
        if (step.kind != StepKind::run || problem.ops[step.op].tiles == 0 || partner[step.op])
          continue;
        Schedule window = without(low, high, op);
        auto place = std::find(window.begin(), window.end(), step);
        place = window.insert(place, {StepKind::start, op});
        window.insert(place + 2, {StepKind::await, op});
        take(low, window, op, step.op);
        break;
      }
    }
    return draft.schedule();
  }

  Schedule hoist() {
    for (unsigned op : lonely()) {
      auto [low, high] = around(op);
      size_t at = draft.place({StepKind::start, op});
      for (size_t start = low; start <= at; ++start) {
        Schedule window = without(low, high, op);
        window.push_back({StepKind::await, op});
        window.insert(window.begin() + (start - low), {StepKind::start, op});
        if (take(low, window, op, op))
          break;
      }
    }
    return draft.schedule();
  }

  Schedule sinks(unsigned distance) {
    std::vector<unsigned> alone = lonely();
    std::erase_if(alone, [&](unsigned op) { return graph.completeFor[op].empty(); });
    for (size_t c = 0; c < alone.size(); ++c) {
      unsigned op = alone[c];
      size_t at = draft.place({StepKind::start, op});
      size_t low = c >= distance ? draft.place({StepKind::await, alone[c - distance]}) : 0;
      for (size_t i = at; i-- > low;) {
        Step step = draft.schedule()[i];
        if (step.kind != StepKind::run || problem.ops[step.op].tiles == 0 || partner[step.op] ||
            !graph.completeFor[step.op].empty())
          continue;
        Schedule window(draft.schedule().begin() + i, draft.schedule().begin() + at + 1);
        std::rotate(window.begin(), window.begin() + 1, window.end()); // behind the start
        if (draft.legal(i, window) && take(i, window, op, step.op))
          break;
      }
    }
    return draft.schedule();
  }

private:
  const Problem &problem;
  const Graph graph;
  const SolveOptions &options;
  const UnderCap cap;
  Draft draft;
  const double start;        ///< the seconds of what is given
  std::vector<bool> partner; ///< of each op, whether it has one
  int64_t limit;

  std::vector<unsigned> lonely() const {
    std::vector<unsigned> list;
    for (Step step : draft.schedule())
      if (step.kind == StepKind::start && !partner[step.op])
        list.push_back(step.op);
    return list;
  }
  /// The steps [low, high) between what the collective needs and what needs it, its own among them;
  /// no further than `reach` collectives: what is put off for longer holds its memory for longer.
  std::pair<size_t, size_t> around(unsigned op) const {
    constexpr int reach = 16;
    const Schedule &schedule = draft.schedule();
    size_t low = draft.place({StepKind::start, op}), high = draft.place({StepKind::await, op});
    for (int passed = 0; low > 0 && !completes(schedule[low - 1], op); --low)
      if (schedule[low - 1].kind == StepKind::start && ++passed > reach)
        break;
    for (int passed = 0; high < schedule.size() && !needs(schedule[high], op); ++high)
      if (schedule[high].kind == StepKind::start && ++passed > reach)
        break;
    return {low, high};
  }
  Schedule without(size_t low, size_t high, unsigned op) const {
    Schedule window(draft.schedule().begin() + low, draft.schedule().begin() + high);
    std::erase_if(window, [&](Step s) { return s.op == op; });
    return window;
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

  bool take(size_t low, const Schedule &window, unsigned op, unsigned kernel) {
    uint64_t cost = 0;
    double now = draft.seconds() - start;
    if (options.margin >= 0 &&
        cap.seconds(now) - cap.seconds(now + draft.change(low, window, cost)) <
            options.margin * problem.ops[op].seconds)
      return false;
    if (!draft.fits(low, window, limit))
      return false;
    draft.apply(low, window);
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
