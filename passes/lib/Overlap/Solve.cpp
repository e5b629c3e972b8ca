//===- Solve.cpp - Rules, moves, and what does not pay --------------------------------===//
#include "ncclx/Overlap/Solve.h"
#include "Draft.h"

#include <algorithm>
#include <bit>
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

  /// Makes it faster.
  void improve(Schedule &schedule);
  /// Puts starts and sinks where they keep least memory alive, at no loss of time.
  void settle(Schedule &schedule);

private:
  const Problem &problem;
  const Graph &graph;
  const int64_t limit;
  int64_t beyond = 0; ///< bytes more than that, for the time being
  const double frequency;
  uint64_t effort; ///< steps that may be simulated

  struct Range {
    size_t low, high;
  };
  Range range(const Schedule &schedule, size_t at) const;
  struct Window {
    size_t low;
    Schedule order;
  };
  Window window(const Schedule &schedule, size_t from, size_t to) const;
  bool moves(Draft &draft, size_t from, size_t to, double most);
  void anneal(Draft &draft, uint64_t kept);
  void climb(Draft &draft);
};

/// Where the step at `at` may stand in place of another, the rest keeping its order; awaits of what
/// it needs go with it.
Improver::Range Improver::range(const Schedule &schedule, size_t at) const {
  Step step = schedule[at];
  unsigned op = step.op;
  auto contains = [](const std::vector<unsigned> &sorted, unsigned x) {
    return std::binary_search(sorted.begin(), sorted.end(), x);
  };
  size_t low = at, high = at;
  while (low > 0) {
    Step before = schedule[low - 1];
    if (before.op == op)
      break;
    if (step.kind != StepKind::await && before.kind != StepKind::await &&
        (contains(graph.needs.complete[op], before.op) ||
         contains(graph.needs.placed[op], before.op)))
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

/// The steps that change where the one at `from` moves to `to`, and with it the awaits of what it
/// needs: those that stand between, or, if it goes on, right in front of it.
Improver::Window Improver::window(const Schedule &schedule, size_t from, size_t to) const {
  const Step step = schedule[from];
  auto needs = [&](Step user, unsigned op) {
    const std::vector<unsigned> &all = graph.needs.complete[user.op];
    return user.kind != StepKind::await && std::binary_search(all.begin(), all.end(), op);
  };
  auto isIts = [&](Step s) { return s.kind == StepKind::await && needs(step, s.op); };
  size_t low = std::min(from, to);
  if (from < to)
    while (low > 0 && isIts(schedule[low - 1]) &&
           std::none_of(schedule.begin() + from + 1, schedule.begin() + to + 1,
                        [&](Step s) { return needs(s, schedule[low - 1].op); }))
      --low;
  Window result{low, {schedule.begin() + low, schedule.begin() + std::max(from, to) + 1}};
  Schedule &order = result.order;
  if (from < to) {
    std::rotate(order.begin(), order.begin() + (from + 1 - low), order.end());
  } else {
    std::rotate(order.begin(), order.end() - 1, order.end());
    std::stable_partition(order.begin(), order.end(), isIts);
  }
  return result;
}

/// Moves a step if that adds less than `most` seconds and memory allows it.
bool Improver::moves(Draft &draft, size_t from, size_t to, double most) {
  auto [low, order] = window(draft.schedule(), from, to);
  uint64_t cost = 1;
  bool better = draft.change(low, order, cost) < most && draft.fits(low, order, limit + beyond);
  effort -= std::min(effort, cost);
  if (better)
    draft.apply(low, order);
  return better;
}

void Improver::climb(Draft &draft) {
  for (bool better = true; better;) {
    better = false;
    for (size_t at = 0; at < draft.schedule().size(); ++at) {
      auto [low, high] = range(draft.schedule(), at);
      effort -= std::min<uint64_t>(effort, (high - low) / 16);
      for (size_t to = low; to <= high; ++to) {
        if (to == at)
          continue;
        if (effort == 0)
          return;
        if (moves(draft, at, to, -1e-9 * draft.seconds())) {
          better = true;
          break;
        }
      }
    }
  }
}

/// Where two chains run beside each other (a forward beside a backward), and device and queue are
/// both nearly full, hardly any single move is better at once: worse ones are taken, too, the less
/// of them the later. That takes many moves of each step, or it is only disturbed.
void Improver::improve(Schedule &schedule) {
  constexpr uint64_t enough = 400; // of each step
  Draft draft(problem, graph, schedule, frequency);
  if (effort > enough * schedule.size())
    anneal(draft, effort / 4);
  climb(draft);
  schedule = draft.schedule();
}

/// Leaves the best that it has seen, and `kept` of the effort. Where memory is tight, single moves
/// reach many an order only through others that need more: in the first quarter of every turn the
/// largest buffer's bytes more are allowed. What is kept fits; a turn that ends above begins again
/// with it.
void Improver::anneal(Draft &draft, uint64_t kept) {
  constexpr uint64_t turns = 16;
  const uint64_t all = effort - kept;
  int64_t largest = 0;
  for (const Buffer &buffer : problem.buffers)
    largest = std::max(largest, buffer.bytes);
  const bool tight = limit < std::numeric_limits<int64_t>::max() - largest;
  double mean = 0, kernels = 0, least = draft.seconds();
  for (const Op &op : problem.ops) {
    mean += op.seconds / double(problem.ops.size());
    if (!op.collective)
      kernels += op.clocked ? op.seconds / frequency : op.seconds;
  }
  Schedule best = draft.schedule();
  std::mt19937_64 random(1); // the same moves on every rank
  while (effort > kept && least > kernels * (1 + 1e-9)) {
    double left = double(effort - kept) / double(all);
    if (tight) {
      bool more = uint64_t((1 - left) * double(4 * turns)) % 4 == 0;
      if (more && beyond == 0 && draft.peak() > limit)
        draft = Draft(problem, graph, best, frequency);
      beyond = more ? largest : 0;
    }
    size_t at = random() % best.size();
    auto [low, high] = range(draft.schedule(), at);
    effort -= std::min<uint64_t>(effort, 1 + (high - low) / 16);
    if (low == high)
      continue;
    size_t to = low + random() % (high - low);
    to += to >= at;
    // Exponentially distributed, near enough: a logarithm is not the same on every rank.
    uint64_t drawn = random() | 1;
    int zeros = std::countl_zero(drawn);
    double heat = zeros + 2 - double(drawn << zeros) * 0x1p-63;
    // A third of an op's mean time, to begin with: much more undoes what the list rules found.
    if (moves(draft, at, to, mean / 3 * left * left * heat) &&
        draft.seconds() < least * (1 - 1e-9) && (!tight || draft.peak() <= limit)) {
      least = draft.seconds();
      best = draft.schedule();
    }
  }
  beyond = 0;
  draft = Draft(problem, graph, best, frequency);
}

void Improver::settle(Schedule &schedule) {
  Draft draft(problem, graph, schedule, frequency);
  const double most = draft.seconds() * (1 + 1e-9);
  // Kernels that nothing needs go as early as they lose nothing, the first of them first; starts as
  // late; awaits just before whoever needs them, since a prediction may be wrong.
  for (size_t at = 0; at < schedule.size(); ++at) {
    Step step = draft.schedule()[at];
    if (step.kind != StepKind::run || !graph.completeFor[step.op].empty())
      continue;
    for (size_t to = range(draft.schedule(), at).low; to < at && effort > 0; ++to)
      if (moves(draft, at, to, most - draft.seconds()))
        break;
  }
  for (size_t at = schedule.size(); at-- > 0;) {
    if (draft.schedule()[at].kind == StepKind::run)
      continue;
    for (size_t to = range(draft.schedule(), at).high; to > at && effort > 0; --to)
      if (moves(draft, at, to, most - draft.seconds()))
        break;
  }
  schedule = draft.schedule();
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
  constexpr int64_t all = std::numeric_limits<int64_t>::max();
  int64_t peak = peakBytes(problem, given), budget = options.memoryBudget.value_or(all);
  return budget < all - peak ? peak + budget : all;
}

Solution mlir::ncclx::overlap::solve(const Problem &problem, const Schedule &given,
                                     const SolveOptions &options) {
  Solution solution;
  Timeline before = evaluate(problem, given);
  solution.before = before.seconds;
  solution.peakBefore = peakBytes(problem, given);
  solution.schedule = given;
  if (options.memoryBudget != 0 && !given.empty()) {
    Graph graph(problem);
    const int64_t limit = limitOf(problem, given, options);
    double frequency = before.frequency, seconds = before.seconds;
    // The clock depends on the schedule: once more at the clock of the first answer.
    for (int round = 0; round < (problem.power.capWatts > 0 ? 2 : 1); ++round) {
      Schedule schedule = solution.schedule;
      double least = secondsAt(problem, schedule, frequency);
      const std::vector<Rules> all = allRules();
      uint64_t effort = options.effort;
      for (unsigned rule = 0; rule < all.size(); ++rule) {
        bool asked =
            std::find(options.rules.begin(), options.rules.end(), rule) != options.rules.end();
        if (options.rules.empty() ? rule > 0 && effort < schedule.size() : !asked)
          continue;
        effort -= std::min<uint64_t>(effort, schedule.size());
        std::optional<Schedule> found = listSchedule(problem, graph, limit, frequency, all[rule]);
        double time = found ? secondsAt(problem, *found, frequency) : least;
        if (time < least) {
          least = time;
          schedule = std::move(*found);
          solution.rule = rule;
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
  Graph graph(problem);
  const UnderCap cap(problem, schedule);
  Draft draft(problem, graph, schedule, cap.clock());
  const double start = draft.seconds();
  uint64_t cost = 0;
  // One collective after the other, the earliest first: its await moves to its start. What another
  // gained may then be gone: once more, until all that is left pays.
  for (bool again = true; again;) {
    again = false;
    for (size_t at = 0; at < draft.schedule().size(); ++at) {
      Step step = draft.schedule()[at];
      if (step.kind != StepKind::start)
        continue;
      size_t to = draft.place({StepKind::await, step.op});
      Schedule apart(draft.schedule().begin() + at, draft.schedule().begin() + to + 1);
      if (std::none_of(apart.begin(), apart.end(), [](Step s) { return s.kind == StepKind::run; }))
        continue;
      std::rotate(apart.begin() + 1, apart.end() - 1, apart.end());
      double now = draft.seconds() - start, more = draft.change(at, apart, cost);
      if (cap.seconds(now + more) - cap.seconds(now) >= margin * problem.ops[step.op].seconds)
        continue;
      draft.apply(at, apart);
      refused.push_back(step.op);
      again = true;
    }
  }
  schedule = draft.schedule();
  return refused;
}
