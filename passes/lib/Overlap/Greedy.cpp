//===- Greedy.cpp - One run of the list scheduler ----------------------------------===//
//
// Whatever is ready and longest from the end goes first. A kernel that waits for a collective
// leaves its place to others that do not: so kernels which nothing needs (weight gradients), being
// last in the order of paths, are kept until a collective has nothing else beside it.
//
//===----------------------------------------------------------------------===//
#include "Greedy.h"

#include <algorithm>
#include <limits>

using namespace mlir::ncclx::overlap;

Graph::Graph(const Problem &problem)
    : needs(needsOf(problem)), completeFor(problem.ops.size()), placedFor(problem.ops.size()),
      makes(problem.ops.size()), reads(problem.ops.size()) {
  for (unsigned i = 0; i < problem.ops.size(); ++i) {
    for (std::vector<unsigned> *list : {&needs.complete[i], &needs.placed[i]}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    for (unsigned j : needs.complete[i])
      completeFor[j].push_back(i);
    for (unsigned j : needs.placed[i])
      placedFor[j].push_back(i);
  }
  for (unsigned b = 0; b < problem.buffers.size(); ++b) {
    const Buffer &buffer = problem.buffers[b];
    if (buffer.producer)
      makes[*buffer.producer].push_back(b);
    std::vector<unsigned> users = buffer.users;
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    for (unsigned user : users)
      if (user != buffer.producer)
        reads[user].push_back(b);
  }
}

namespace {

class Greedy {
public:
  Greedy(const Problem &problem, const Graph &graph, int64_t limit, double frequency,
         const Rules &rules);
  std::optional<Schedule> run();

private:
  const Problem &problem;
  const Graph &graph;
  const Rules &rules;
  const int64_t limit;
  Clock clock;
  Schedule schedule;
  std::vector<double> path;      ///< seconds to the end
  std::vector<double> nearest;   ///< seconds to the start of a collective; of one, 0
  std::vector<unsigned> missing; ///< needs not yet there; of a kernel, collectives not started
  std::vector<unsigned> kernels, collectives; ///< nothing is missing, not placed
  std::vector<unsigned> started;              ///< not awaited
  std::vector<bool> complete, placed;
  std::vector<unsigned> uses; ///< of each buffer, ops that keep it alive
  int64_t alive = 0;
  size_t left;

  void satisfied(unsigned op);
  void finish(unsigned op);
  void place(unsigned op);
  void doRun(unsigned op);
  void doStart(unsigned op);
  void doAwait(unsigned op);
  void release(unsigned buffer);
  int64_t made(unsigned op) const;
  int64_t freed(unsigned op) const;
  bool fits(unsigned op) const { return alive + made(op) <= limit; }
  double wait(unsigned kernel) const;
  bool ahead(unsigned a, unsigned b) const {
    if (rules.first == Rules::First::nearest && nearest[a] != nearest[b])
      return nearest[a] < nearest[b];
    if (rules.first != Rules::First::reference && path[a] != path[b])
      return path[a] > path[b];
    return a < b;
  }
  bool awaitDone();
  bool startReady(bool forced = false);
  std::optional<unsigned> filler(double wait) const;
  bool runSomething();
};

Greedy::Greedy(const Problem &problem, const Graph &graph, int64_t limit, double frequency,
               const Rules &rules)
    : problem(problem), graph(graph), rules(rules), limit(limit), clock(problem, frequency),
      path(problem.ops.size()), nearest(problem.ops.size()), missing(problem.ops.size()),
      complete(problem.ops.size()), placed(problem.ops.size()), uses(problem.buffers.size()),
      left(problem.ops.size()) {
  for (size_t i = problem.ops.size(); i-- > 0;) {
    double behind = 0, near = std::numeric_limits<double>::infinity();
    for (unsigned j : graph.completeFor[i]) {
      behind = std::max(behind, path[j]);
      near = std::min(near, nearest[j]);
    }
    const Op &op = problem.ops[i];
    nearest[i] = op.collective ? 0 : near + op.seconds;
    path[i] = behind + op.seconds * (op.collective ? rules.pathWeight : 1);
  }
  for (unsigned i = 0; i < problem.ops.size(); ++i)
    for (unsigned b : graph.reads[i])
      ++uses[b];
  for (unsigned b = 0; b < problem.buffers.size(); ++b) {
    const Buffer &buffer = problem.buffers[b];
    uses[b] += buffer.producer.has_value() + buffer.escapes;
    if (!buffer.producer && uses[b] > 0)
      alive += buffer.bytes;
  }
  for (unsigned i = 0; i < problem.ops.size(); ++i) {
    missing[i] = graph.needs.complete[i].size() + graph.needs.placed[i].size();
    if (missing[i] == 0)
      (problem.ops[i].collective ? collectives : kernels).push_back(i);
  }
}

int64_t Greedy::made(unsigned op) const {
  int64_t bytes = 0;
  for (unsigned b : graph.makes[op])
    bytes += problem.buffers[b].bytes;
  return bytes;
}

int64_t Greedy::freed(unsigned op) const {
  int64_t bytes = 0;
  for (unsigned b : graph.reads[op])
    if (uses[b] == 1)
      bytes += problem.buffers[b].bytes;
  return bytes;
}

void Greedy::release(unsigned buffer) {
  if (--uses[buffer] == 0)
    alive -= problem.buffers[buffer].bytes;
}

void Greedy::satisfied(unsigned op) {
  if (--missing[op] == 0)
    (problem.ops[op].collective ? collectives : kernels).push_back(op);
}

void Greedy::place(unsigned op) {
  placed[op] = true;
  alive += made(op);
  for (unsigned next : graph.placedFor[op])
    satisfied(next);
  std::erase(problem.ops[op].collective ? collectives : kernels, op);
  --left;
}

void Greedy::finish(unsigned op) {
  complete[op] = true;
  for (unsigned b : graph.makes[op])
    release(b);
  for (unsigned b : graph.reads[op])
    release(b);
}

void Greedy::doStart(unsigned op) {
  schedule.push_back({StepKind::start, op});
  clock.start(op);
  place(op);
  started.push_back(op);
  for (unsigned next : graph.completeFor[op]) // a kernel may stand in line for it
    if (!problem.ops[next].collective)
      satisfied(next);
}

void Greedy::doAwait(unsigned op) {
  schedule.push_back({StepKind::await, op});
  clock.await(op);
  std::erase(started, op);
  finish(op);
  for (unsigned next : graph.completeFor[op])
    if (problem.ops[next].collective)
      satisfied(next);
}

void Greedy::doRun(unsigned op) {
  for (unsigned need : graph.needs.complete[op])
    if (!complete[need])
      doAwait(need);
  schedule.push_back({StepKind::run, op});
  clock.run(op);
  place(op);
  finish(op);
  for (unsigned next : graph.completeFor[op])
    satisfied(next);
}

double Greedy::wait(unsigned kernel) const {
  double longest = 0;
  for (unsigned need : graph.needs.complete[kernel])
    if (!complete[need])
      longest = std::max(longest, clock.rest(need));
  return longest;
}

/// Awaits what has ended by itself.
bool Greedy::awaitDone() {
  std::vector<unsigned> done;
  for (unsigned op : started)
    if (!clock.inFlight(op))
      done.push_back(op);
  for (unsigned op : done)
    doAwait(op);
  return !done.empty();
}

/// Starts what is ready; `forced`: whatever the rules say, but one.
bool Greedy::startReady(bool forced) {
  std::vector<unsigned> ready = collectives;
  std::sort(ready.begin(), ready.end(), [&](unsigned a, unsigned b) { return ahead(a, b); });
  bool any = false;
  for (unsigned op : ready) {
    bool busy = std::any_of(clock.flights.begin(), clock.flights.end(), [&](const auto &flight) {
      return problem.ops[flight.op].queue == problem.ops[op].queue;
    });
    bool held = rules.oneInQueue && busy;
    if (rules.polite) {
      std::optional<unsigned> urgent;
      for (unsigned kernel : kernels)
        if (!urgent || path[kernel] > path[*urgent])
          urgent = kernel;
      if (urgent && path[op] < path[*urgent])
        held |= busy || wait(*urgent) + nearest[*urgent] < problem.ops[op].seconds;
    }
    if ((held && !forced) || !fits(op))
      continue;
    doStart(op);
    if (forced)
      return true;
    any = true;
  }
  return any;
}

/// What to run for `wait` seconds; of those that hide as much, the one whose operands take most.
std::optional<unsigned> Greedy::filler(double wait) const {
  std::optional<unsigned> best;
  double bestHidden = -1;
  int64_t bestFreed = 0;
  for (unsigned op : kernels) {
    if (this->wait(op) > 0 || !fits(op))
      continue;
    double seconds = clock.secondsNow(op), hidden = std::min(seconds, wait);
    if (seconds > 0 && hidden / seconds < rules.usefulPart)
      continue;
    int64_t bytes = freed(op) - made(op);
    bool better = !best;
    if (best && rules.bestFit)
      better = hidden > bestHidden * (1 + 1e-9) ||
               (hidden > bestHidden * (1 - 1e-9) && bytes > bestFreed);
    else if (best)
      better = ahead(op, *best);
    if (better) {
      best = op;
      bestHidden = hidden;
      bestFreed = bytes;
    }
  }
  return best;
}

bool Greedy::runSomething() {
  std::optional<unsigned> free, blocked; // the first of each kind
  for (unsigned op : kernels) {
    if (!fits(op))
      continue;
    std::optional<unsigned> &first = wait(op) > 0 ? blocked : free;
    if (!first || ahead(op, *first))
      first = op;
  }
  if (blocked && (!free || ahead(*blocked, *free))) {
    std::optional<unsigned> other = filler(wait(*blocked));
    // With nothing to fill in, the kernel waits for what it needs; doRun awaits it.
    free = other ? other : blocked;
  }
  if (!free)
    return false;
  // Beside collectives that take its SMs it may take longer than behind them.
  double rest = 0;
  for (const Clock::Flight &flight : clock.flights)
    if (problem.ops[flight.op].sms > 0)
      rest = std::max(rest, clock.rest(flight.op));
  if (rest > 0) {
    Clock behind = clock;
    behind.flights.clear();
    if (clock.secondsNow(*free) > rest + behind.secondsNow(*free)) {
      std::vector<unsigned> inFlight;
      for (const Clock::Flight &flight : clock.flights)
        inFlight.push_back(flight.op);
      for (unsigned op : inFlight)
        doAwait(op);
      return true;
    }
  }
  doRun(*free);
  return true;
}

std::optional<Schedule> Greedy::run() {
  while (left > 0) {
    while (awaitDone() || startReady()) {
    }
    if (runSomething())
      continue;
    if (!started.empty())
      doAwait(started.front());
    else if (!startReady(/*forced=*/true))
      return std::nullopt; // nothing fits
  }
  while (!started.empty())
    doAwait(started.front());
  return std::move(schedule);
}

} // namespace

std::optional<Schedule> mlir::ncclx::overlap::listSchedule(const Problem &problem,
                                                           const Graph &graph, int64_t limit,
                                                           double frequency, const Rules &rules) {
  std::optional<Schedule> schedule = Greedy(problem, graph, limit, frequency, rules).run();
  if (schedule && peakBytes(problem, *schedule) > limit)
    return std::nullopt;
  return schedule;
}
