//===- Exact.cpp - The best schedule of a small problem ----------------------------===//
//
// States after the same set of steps are compared: one that is no earlier, and whose collectives in
// flight have no less left, is dropped. The memory in use depends on the set of steps alone, so the
// budget needs no comparison. A bound (what is left cannot take less than its longest path, nor
// than all its kernels) drops states that cannot beat the best schedule known.
//
// Under a power cap the clock is one number for the whole schedule, and energy depends on the clock
// alone: the best clock is where the fastest schedule at that clock just draws the cap.
//
//===----------------------------------------------------------------------===//
#include "Greedy.h"
#include "ncclx/Overlap/Solve.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

using namespace mlir::ncclx::overlap;

namespace {

constexpr size_t mostOps = 32; // two bits of a key each
constexpr size_t mostStates = 400'000;

class Search {
public:
  Search(const Problem &problem, int64_t limit, double frequency)
      : problem(problem), graph(problem), limit(limit), frequency(frequency), n(problem.ops.size()),
        firstOfQueue(n) {
    for (unsigned i = 0; i < n; ++i) {
      firstOfQueue[i] = i;
      for (unsigned j = 0; j < i && problem.ops[i].collective; ++j)
        if (problem.ops[j].collective && problem.ops[j].queue == problem.ops[i].queue)
          firstOfQueue[i] = firstOfQueue[j];
    }
  }
  /// The best schedule that takes less than `bound`, if there is one, and the states are not too
  /// many.
  std::optional<Schedule> run(double bound);
  bool isTooLarge() const { return nodes.size() > mostStates; }

private:
  /// Two bits for each op: placed, complete.
  using Key = uint64_t;
  struct Node {
    Clock clock;
    int parent;
    Step step;
  };

  const Problem &problem;
  Graph graph;
  const int64_t limit;
  const double frequency;
  const size_t n;
  std::vector<unsigned> firstOfQueue; ///< of each collective: the first in its queue
  std::vector<Node> nodes;
  std::unordered_map<Key, std::vector<int>> level;
  std::vector<Key> order; ///< keys of the level, as they came
  double best = 0;

  static bool placed(Key key, unsigned op) { return key >> (2 * op) & 1; }
  static bool complete(Key key, unsigned op) { return key >> (2 * op) & 2; }
  bool ready(Key key, unsigned op) const;
  int64_t alive(Key key, std::optional<unsigned> starting) const;
  double bound(Key key, const Clock &clock) const;
  bool dominates(const Clock &a, const Clock &b) const;
  void add(Key key, Clock clock, int parent, Step step);
};

bool Search::ready(Key key, unsigned op) const {
  for (unsigned j : graph.needs.complete[op])
    if (!complete(key, j))
      return false;
  for (unsigned j : graph.needs.placed[op])
    if (!placed(key, j))
      return false;
  return true;
}

/// Bytes in use while `starting` runs or begins.
int64_t Search::alive(Key key, std::optional<unsigned> starting) const {
  int64_t bytes = 0;
  for (const Buffer &buffer : problem.buffers) {
    bool made = !buffer.producer || placed(key, *buffer.producer) || buffer.producer == starting;
    if (!made)
      continue;
    bool used = buffer.escapes || (buffer.producer && !complete(key, *buffer.producer));
    for (unsigned user : buffer.users)
      used |= !complete(key, user);
    if (used)
      bytes += buffer.bytes;
  }
  return bytes;
}

double Search::bound(Key key, const Clock &clock) const {
  double kernels = 0, latest = clock.now;
  double end[mostOps], queued[mostOps] = {}; // by the first op of a queue
  for (unsigned i = 0; i < n; ++i) {
    const Op &op = problem.ops[i];
    end[i] = clock.now;
    if (complete(key, i))
      continue;
    double seconds = op.clocked ? op.seconds / frequency : op.seconds;
    if (op.collective && !placed(key, i))
      queued[firstOfQueue[i]] += seconds;
    if (placed(key, i))
      end[i] += clock.rest(i);
    else {
      for (unsigned j : graph.needs.complete[i])
        end[i] = std::max(end[i], end[j]);
      end[i] += seconds;
      kernels += op.collective ? 0 : seconds;
    }
    latest = std::max(latest, end[i]);
  }
  for (const Clock::Flight &flight : clock.flights)
    queued[firstOfQueue[flight.op]] += flight.rest;
  for (double seconds : queued)
    latest = std::max(latest, clock.now + seconds);
  return std::max(latest, clock.now + kernels);
}

/// Time alone does not do: what is in flight longer may disturb more of what comes.
bool Search::dominates(const Clock &a, const Clock &b) const {
  if (a.now > b.now)
    return false;
  for (const Clock::Flight &flight : a.flights)
    if (a.rest(flight.op) > b.rest(flight.op))
      return false;
  return true;
}

void Search::add(Key key, Clock clock, int parent, Step step) {
  if (bound(key, clock) >= best)
    return;
  auto [it, isNew] = level.try_emplace(key);
  if (isNew)
    order.push_back(key);
  std::vector<int> &states = it->second;
  for (int other : states)
    if (dominates(nodes[other].clock, clock))
      return;
  std::erase_if(states, [&](int other) { return dominates(clock, nodes[other].clock); });
  states.push_back(int(nodes.size()));
  nodes.push_back({std::move(clock), parent, step});
}

std::optional<Schedule> Search::run(double upper) {
  best = upper;
  size_t steps = n;
  for (const Op &op : problem.ops)
    steps += op.collective;
  add(0, Clock(problem, frequency), -1, {});
  for (size_t done = 0; done < steps; ++done) {
    auto states = std::move(level);
    auto keys = std::move(order);
    level.clear();
    order.clear();
    for (Key key : keys)
      for (int from : states[key])
        for (unsigned op = 0; op < n && !isTooLarge(); ++op) {
          bool collective = problem.ops[op].collective;
          Clock clock = nodes[from].clock;
          if (placed(key, op)) {
            if (complete(key, op))
              continue;
            clock.await(op);
            add(key | Key(2) << (2 * op), clock, from, {StepKind::await, op});
          } else if (ready(key, op) && alive(key, op) <= limit) {
            if (collective)
              clock.start(op);
            else
              clock.run(op);
            add(key | Key(collective ? 1 : 3) << (2 * op), clock, from,
                {collective ? StepKind::start : StepKind::run, op});
          }
        }
  }
  if (isTooLarge())
    return std::nullopt;
  int last = -1;
  for (auto &[key, states] : level)
    for (int state : states)
      if (last < 0 || nodes[state].clock.now < nodes[last].clock.now)
        last = state;
  if (last < 0)
    return std::nullopt;
  Schedule schedule;
  for (int at = last; nodes[at].parent >= 0; at = nodes[at].parent)
    schedule.push_back(nodes[at].step);
  std::reverse(schedule.begin(), schedule.end());
  return schedule;
}

} // namespace

std::optional<Schedule> mlir::ncclx::overlap::solveExactly(const Problem &problem,
                                                           const Schedule &given,
                                                           std::optional<int64_t> memoryBudget) {
  if (problem.ops.size() > mostOps)
    return std::nullopt;
  if (memoryBudget == 0)
    return given;
  int64_t limit = memoryBudget ? peakBytes(problem, given) + *memoryBudget
                               : std::numeric_limits<int64_t>::max();
  bool tooLarge = false;
  auto atClock = [&](double frequency) {
    Search search(problem, limit, frequency);
    std::optional<Schedule> found = search.run(secondsAt(problem, given, frequency));
    tooLarge |= search.isTooLarge();
    return found.value_or(given);
  };
  Schedule best = atClock(1);
  if (tooLarge)
    return std::nullopt;
  const Power &power = problem.power;
  if (power.capWatts <= 0 || evaluate(problem, best).frequency >= 1)
    return best;
  double seconds = evaluate(problem, best).seconds;
  double low = power.lowestClock, high = 1;
  for (int i = 0; i < 16; ++i) {
    double middle = (low + high) / 2;
    Schedule schedule = atClock(middle);
    double time = secondsAt(problem, schedule, middle);
    bool fits = joulesAt(problem, middle) <= (power.capWatts - power.idleWatts) * time;
    (fits ? low : high) = middle;
    if (double s = evaluate(problem, schedule).seconds; s < seconds) {
      seconds = s;
      best = schedule;
    }
  }
  if (tooLarge)
    return std::nullopt;
  return best;
}
