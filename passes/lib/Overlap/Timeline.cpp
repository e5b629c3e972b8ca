//===- Timeline.cpp - A schedule in time ----------------------------------------===//
//
// Rates: an op alone makes one second of progress a second. Beside others it is held back by the
// fullest of the resources it uses (capacity over the sum of the shares). SMs are apart, since a
// kernel takes all that are left: under Sharing::dynamic its rate is the part that is left, under
// Sharing::fixed its waves are counted on the SMs that it found free at its launch.
//
// Power: clocked ops run at 1/f of their speed at clock f and take f^2 of their energy (dynamic
// power goes with f * V^2, and V with f). The mean power of a schedule decides its clock.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Timeline.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir::ncclx::overlap;

/// What is left of a collective below this is rounding.
static constexpr double tiny = 1e-15;

Clock::Clock(const Problem &problem, double frequency) : problem(&problem), frequency(frequency) {}

bool Clock::heads(size_t flight) const {
  unsigned queue = problem->ops[flights[flight].op].queue;
  for (size_t i = 0; i < flight; ++i)
    if (problem->ops[flights[i].op].queue == queue)
      return false;
  return true;
}

bool Clock::inFlight(unsigned op) const {
  return std::any_of(flights.begin(), flights.end(), [&](const Flight &f) { return f.op == op; });
}

double Clock::rest(unsigned op) const {
  double sum = 0;
  for (const Flight &f : flights) {
    if (problem->ops[f.op].queue == problem->ops[op].queue)
      sum += f.rest;
    if (f.op == op)
      return sum;
  }
  return 0;
}

double Clock::secondsNow(unsigned op) const {
  const Op &kernel = problem->ops[op];
  double seconds = kernel.clocked ? kernel.seconds / frequency : kernel.seconds;
  if (problem->sharing != Sharing::fixed || !kernel.clocked)
    return seconds;
  double taken = 0; // the most that can run at once: one of each queue
  for (size_t i = 0; i < flights.size(); ++i) {
    if (!heads(i))
      continue;
    double most = 0;
    for (size_t j = i; j < flights.size(); ++j)
      if (problem->ops[flights[j].op].queue == problem->ops[flights[i].op].queue)
        most = std::max(most, problem->ops[flights[j].op].sms);
    taken += most;
  }
  double left = std::max(1.0, problem->sms - taken);
  if (kernel.tiles == 0)
    return seconds * problem->sms / left;
  double tiles = kernel.tiles;
  return seconds * std::ceil(tiles / std::floor(left)) / std::ceil(tiles / problem->sms);
}

void Clock::advance(std::optional<unsigned> kernel, double &left) {
  double full[16] = {}; // of each resource, the sum of shares
  assert(problem->resources.size() <= 16);
  double taken = 0;
  auto load = [&](const Op &op) {
    for (const Use &use : op.uses)
      full[use.resource] += use.share;
  };
  if (kernel)
    load(problem->ops[*kernel]);
  for (size_t i = 0; i < flights.size(); ++i)
    if (heads(i)) {
      load(problem->ops[flights[i].op]);
      taken += problem->ops[flights[i].op].sms;
    }
  auto rateOf = [&](const Op &op) {
    double rate = 1;
    for (const Use &use : op.uses)
      if (use.share > 0 && full[use.resource] > 1)
        rate = std::min(rate, 1 / full[use.resource]);
    return rate;
  };
  double kernelRate = kernel ? rateOf(problem->ops[*kernel]) : 0;
  if (kernel && problem->sharing == Sharing::dynamic && problem->ops[*kernel].clocked)
    kernelRate *= std::max(problem->sms - taken, 1.0) / problem->sms;

  double step = kernel ? left / kernelRate : std::numeric_limits<double>::infinity();
  std::vector<std::pair<size_t, double>> running;
  for (size_t i = 0; i < flights.size(); ++i)
    if (heads(i)) {
      double rate = rateOf(problem->ops[flights[i].op]);
      running.push_back({i, rate});
      step = std::min(step, flights[i].rest / rate);
    }
  now += step;
  if (kernel)
    left = std::max(0.0, left - step * kernelRate);
  for (auto [i, rate] : running) {
    flights[i].rest = std::max(0.0, flights[i].rest - step * rate);
    if (record && kernel && step > 0)
      record->beside.push_back({flights[i].op, *kernel, step});
    if (record && flights[i].rest <= tiny)
      record->end[flights[i].op] = now;
  }
  std::erase_if(flights, [&](const Flight &f) { return f.rest <= tiny; });
}

void Clock::start(unsigned op) {
  double seconds = problem->ops[op].seconds;
  if (record)
    record->begin[op] = record->end[op] = now;
  if (seconds > tiny)
    flights.push_back({op, seconds});
}

double Clock::await(unsigned op) {
  double from = now, none = 0;
  while (inFlight(op))
    advance(std::nullopt, none);
  if (record)
    record->exposed[op] += now - from;
  return now - from;
}

void Clock::run(unsigned op) {
  if (record)
    record->begin[op] = now;
  double left = secondsNow(op);
  while (left > tiny)
    advance(op, left);
  if (record)
    record->end[op] = now;
}

static void play(Clock &clock, const Schedule &schedule) {
  for (const Step &step : schedule) {
    if (step.kind == StepKind::run)
      clock.run(step.op);
    else if (step.kind == StepKind::start)
      clock.start(step.op);
    else
      clock.await(step.op);
  }
}

double mlir::ncclx::overlap::secondsAt(const Problem &problem, const Schedule &schedule,
                                       double frequency) {
  Clock clock(problem, frequency);
  play(clock, schedule);
  return clock.now;
}

double mlir::ncclx::overlap::joulesAt(const Problem &problem, double frequency) {
  double sum = 0;
  for (const Op &op : problem.ops)
    sum += op.clocked ? op.joules * frequency * frequency : op.joules;
  return sum;
}

double mlir::ncclx::overlap::Timeline::totalExposed() const {
  return std::accumulate(exposed.begin(), exposed.end(), 0.0);
}

/// The highest clock at which `seconds(clock)` gives the power budget enough time.
template <typename Seconds> static double highestClock(const Problem &problem, Seconds seconds) {
  const Power &power = problem.power;
  auto fits = [&](double f) {
    return joulesAt(problem, f) <= (power.capWatts - power.idleWatts) * seconds(f);
  };
  if (power.capWatts <= 0 || fits(1))
    return 1;
  double low = power.lowestClock, high = 1;
  if (!fits(low))
    return low;
  for (int i = 0; i < 40 && high - low > 1e-9; ++i) {
    double middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

/// Time below which the power cap does not let a schedule come.
static double powerSeconds(const Problem &problem, double frequency) {
  const Power &power = problem.power;
  return power.capWatts <= 0 ? 0
                             : joulesAt(problem, frequency) / (power.capWatts - power.idleWatts);
}

Timeline mlir::ncclx::overlap::evaluate(const Problem &problem, const Schedule &schedule) {
  Timeline line;
  line.frequency = highestClock(problem, [&](double f) { return secondsAt(problem, schedule, f); });
  line.begin.resize(problem.ops.size());
  line.end.resize(problem.ops.size());
  line.exposed.resize(problem.ops.size());
  Clock clock(problem, line.frequency);
  clock.record = &line;
  play(clock, schedule);
  line.seconds = std::max(clock.now, powerSeconds(problem, line.frequency));
  line.joules = joulesAt(problem, line.frequency) + problem.power.idleWatts * line.seconds;
  return line;
}

Floor mlir::ncclx::overlap::floorOf(const Problem &problem) {
  // Each term alone at clock f; the longest of them at the clock that the cap allows.
  auto terms = [&](double f) {
    std::vector<std::pair<double, std::string>> all = {{0, "compute"}};
    std::vector<double> used(problem.resources.size());
    std::vector<std::pair<unsigned, double>> queues;
    for (const Op &op : problem.ops) {
      double seconds = op.clocked ? op.seconds / f : op.seconds;
      for (const Use &use : op.uses)
        used[use.resource] += use.share * op.seconds;
      if (!op.collective) {
        all[0].first += seconds;
        continue;
      }
      auto it = std::find_if(queues.begin(), queues.end(),
                             [&](const auto &q) { return q.first == op.queue; });
      if (it == queues.end())
        queues.push_back({op.queue, seconds});
      else
        it->second += seconds;
    }
    for (auto [queue, seconds] : queues)
      all.push_back({seconds, "queue " + std::to_string(queue)});
    for (size_t i = 0; i < used.size(); ++i)
      all.push_back({used[i], problem.resources[i]});
    return *std::max_element(all.begin(), all.end(),
                             [](const auto &a, const auto &b) { return a.first < b.first; });
  };
  double f = highestClock(problem, [&](double f) { return terms(f).first; });
  auto [seconds, limit] = terms(f);
  return {std::max(seconds, powerSeconds(problem, f)), f < 1 ? "power" : limit};
}
