//===- Solve.cpp - Rules, moves, and what does not pay --------------------------------===//
#include "ncclx/Overlap/Solve.h"
#include "Greedy.h"

#include <algorithm>
#include <limits>
#include <random>

using namespace mlir::ncclx::overlap;

namespace {

/// Moves single steps of a schedule while that makes it faster.
class Improver {
public:
  Improver(const Problem &problem, const Graph &graph, int64_t limit, double frequency,
           uint64_t effort)
      : problem(problem), graph(graph), limit(limit), frequency(frequency), effort(effort) {}

  /// Climbs from `schedule`, and from disturbed copies of the best while effort is left.
  void improve(Schedule &schedule);
  /// Puts starts and sinks where they keep least memory alive, at no loss of time.
  void settle(Schedule &schedule);

private:
  const Problem &problem;
  const Graph &graph;
  const int64_t limit;
  const double frequency;
  uint64_t effort;

  bool pay(const Schedule &schedule) {
    uint64_t cost = schedule.size() + 1;
    if (effort < cost)
      return false;
    effort -= cost;
    return true;
  }
  struct Range {
    size_t low, high;
  };
  Range range(const Schedule &schedule, size_t at) const;
  static Schedule moved(const Schedule &schedule, size_t from, size_t to) {
    Schedule result = schedule;
    if (from < to)
      std::rotate(result.begin() + from, result.begin() + from + 1, result.begin() + to + 1);
    else
      std::rotate(result.begin() + to, result.begin() + from, result.begin() + from + 1);
    return result;
  }
  double climb(Schedule &schedule, double seconds);
};

/// Where the step at `at` may stand in place of another, the rest keeping its order.
Improver::Range Improver::range(const Schedule &schedule, size_t at) const {
  Step step = schedule[at];
  unsigned op = step.op;
  auto contains = [](const std::vector<unsigned> &sorted, unsigned x) {
    return std::binary_search(sorted.begin(), sorted.end(), x);
  };
  size_t low = at, high = at;
  while (low > 0) {
    Step before = schedule[low - 1];
    bool completes = before.kind != StepKind::start, places = before.kind != StepKind::await;
    if (before.op == op)
      break;
    if (step.kind != StepKind::await &&
        ((completes && contains(graph.needs.complete[op], before.op)) ||
         (places && contains(graph.needs.placed[op], before.op))))
      break;
    --low;
  }
  while (high + 1 < schedule.size()) {
    Step behind = schedule[high + 1];
    if (behind.op == op)
      break;
    bool places = behind.kind != StepKind::await;
    if (places &&
        ((step.kind != StepKind::start && contains(graph.needs.complete[behind.op], op)) ||
         (step.kind != StepKind::await && contains(graph.needs.placed[behind.op], op))))
      break;
    ++high;
  }
  return {low, high};
}

double Improver::climb(Schedule &schedule, double seconds) {
  for (bool better = true; better;) {
    better = false;
    for (size_t at = 0; at < schedule.size(); ++at) {
      auto [low, high] = range(schedule, at);
      for (size_t to = low; to <= high; ++to) {
        if (to == at)
          continue;
        if (!pay(schedule))
          return seconds;
        Schedule trial = moved(schedule, at, to);
        double time = secondsAt(problem, trial, frequency);
        if (time < seconds * (1 - 1e-9) && peakBytes(problem, trial) <= limit) {
          schedule = std::move(trial);
          seconds = time;
          better = true;
          break;
        }
      }
    }
  }
  return seconds;
}

void Improver::improve(Schedule &schedule) {
  double best = climb(schedule, secondsAt(problem, schedule, frequency));
  std::mt19937_64 random(1); // the same moves on every rank
  while (effort > 40 * schedule.size()) {
    Schedule trial = schedule;
    for (int i = 0; i < 4; ++i) {
      size_t at = random() % trial.size();
      auto [low, high] = range(trial, at);
      trial = moved(trial, at, low + random() % (high - low + 1));
    }
    if (!pay(trial))
      return;
    if (peakBytes(problem, trial) > limit)
      continue;
    double time = climb(trial, secondsAt(problem, trial, frequency));
    if (time <= best) { // as good is another place to start from
      best = time;
      schedule = std::move(trial);
    }
  }
}

void Improver::settle(Schedule &schedule) {
  double seconds = secondsAt(problem, schedule, frequency);
  auto keeps = [&](const Schedule &trial) {
    return pay(trial) && secondsAt(problem, trial, frequency) <= seconds * (1 + 1e-9) &&
           peakBytes(problem, trial) <= limit;
  };
  // Kernels that nothing needs go as early as they lose nothing, the first of them first; starts as
  // late; awaits just before whoever needs them, since a prediction may be wrong.
  for (size_t at = 0; at < schedule.size(); ++at) {
    if (schedule[at].kind != StepKind::run || !graph.completeFor[schedule[at].op].empty())
      continue;
    for (size_t to = range(schedule, at).low; to < at; ++to)
      if (Schedule trial = moved(schedule, at, to); keeps(trial)) {
        schedule = std::move(trial);
        break;
      }
  }
  for (size_t at = schedule.size(); at-- > 0;) {
    if (schedule[at].kind == StepKind::run)
      continue;
    for (size_t to = range(schedule, at).high; to > at; --to)
      if (Schedule trial = moved(schedule, at, to); keeps(trial)) {
        schedule = std::move(trial);
        break;
      }
  }
}

std::vector<Rules> allRules() {
  using First = Rules::First;
  std::vector<Rules> all;
  auto add = [&](First first, double weight, bool one, bool polite, double useful, bool fit) {
    all.push_back({first, weight, one, polite, useful, fit});
  };
  for (double useful : {0.0, 0.5, 0.9}) {
    for (double weight : {1.0, 2.0})
      for (bool one : {false, true})
        add(First::path, weight, one, false, useful, true);
    for (First first : {First::path, First::nearest})
      add(first, 1, false, true, useful, true);
    add(First::nearest, 1, false, false, useful, true);
  }
  for (First first : {First::path, First::reference, First::nearest})
    for (bool one : {false, true})
      add(first, 1, one, false, one ? 0.5 : 0, false);
  add(First::reference, 1, false, false, 0, true);
  add(First::nearest, 1, true, false, 0.5, true);
  return all;
}

} // namespace

static int64_t limitOf(const Problem &problem, const Schedule &given, const SolveOptions &options) {
  return options.memoryBudget ? peakBytes(problem, given) + *options.memoryBudget
                              : std::numeric_limits<int64_t>::max();
}

Solution mlir::ncclx::overlap::solve(const Problem &problem, const Schedule &given,
                                     const SolveOptions &options) {
  Solution solution;
  Timeline before = evaluate(problem, given);
  solution.before = before.seconds;
  solution.peakBefore = peakBytes(problem, given);
  solution.schedule = given;
  if (options.memoryBudget != 0) {
    Graph graph(problem);
    const int64_t limit = limitOf(problem, given, options);
    double frequency = before.frequency, seconds = before.seconds;
    // The clock depends on the schedule: once more at the clock of the first answer.
    for (int round = 0; round < (problem.power.capWatts > 0 ? 2 : 1); ++round) {
      Schedule schedule = solution.schedule;
      double least = secondsAt(problem, schedule, frequency);
      for (const Rules &rules : allRules())
        if (std::optional<Schedule> found = listSchedule(problem, graph, limit, frequency, rules)) {
          double time = secondsAt(problem, *found, frequency);
          if (time < least) {
            least = time;
            schedule = std::move(*found);
          }
        }
      Improver(problem, graph, limit, frequency, options.effort / 2).improve(schedule);
      Improver(problem, graph, limit, frequency, options.effort / 2).settle(schedule);
      Timeline line = evaluate(problem, schedule);
      if (line.seconds < seconds) {
        seconds = line.seconds;
        solution.schedule = std::move(schedule);
      }
      frequency = evaluate(problem, solution.schedule).frequency;
    }
    solution.refused = refuseUnderMargin(problem, solution.schedule, options.margin);
    if (evaluate(problem, solution.schedule).seconds > before.seconds * (1 - 1e-9))
      solution.schedule = given;
  }
  solution.timeline = evaluate(problem, solution.schedule);
  solution.peak = peakBytes(problem, solution.schedule);
  return solution;
}

std::vector<unsigned> mlir::ncclx::overlap::refuseUnderMargin(const Problem &problem,
                                                              Schedule &schedule, double margin) {
  std::vector<unsigned> refused;
  if (margin <= 0)
    return refused;
  // One collective after the other, the earliest first: its await moves to its start.
  for (size_t at = 0; at < schedule.size(); ++at) {
    Step step = schedule[at];
    if (step.kind != StepKind::start || schedule[at + 1] == Step{StepKind::await, step.op})
      continue;
    auto awaited = std::find(schedule.begin() + at, schedule.end(), Step{StepKind::await, step.op});
    bool kernelBetween =
        std::any_of(schedule.begin() + at, awaited, [](Step s) { return s.kind == StepKind::run; });
    if (!kernelBetween)
      continue;
    Schedule apart = schedule;
    apart.erase(apart.begin() + (awaited - schedule.begin()));
    apart.insert(apart.begin() + at + 1, {StepKind::await, step.op});
    Timeline with = evaluate(problem, schedule), without = evaluate(problem, apart);
    if (without.seconds - with.seconds >= margin * problem.ops[step.op].seconds)
      continue;
    schedule = std::move(apart);
    refused.push_back(step.op);
  }
  return refused;
}
