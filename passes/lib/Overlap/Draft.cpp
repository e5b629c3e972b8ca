//===- Draft.cpp - A schedule that is changed window by window --------------------------===//
#include "Draft.h"

#include <algorithm>
#include <cmath>

using namespace mlir::ncclx::overlap;

Draft::Draft(const Problem &problem, const Graph &graph, Schedule schedule, double frequency)
    : problem(&problem), graph(&graph), frequency(frequency), steps(std::move(schedule)),
      before(steps.size() + 1), takes(steps.size()), placed(problem.ops.size()),
      awaited(problem.ops.size()), alive(steps.size() + 1) {
  Clock clock(problem, frequency);
  for (size_t i = 0; i < steps.size(); ++i) {
    (steps[i].kind == StepKind::await ? awaited : placed)[steps[i].op] = i;
    double from = clock.now;
    play(clock, steps[i]);
    takes[i] = clock.now - from;
    before[i + 1] = clock.flights;
  }
  total = clock.now;
  for (const Buffer &buffer : problem.buffers) {
    auto [from, to] = lifetime(buffer);
    alive[from] += buffer.bytes;
    alive[to] -= buffer.bytes;
  }
  for (size_t i = 1; i < alive.size(); ++i)
    alive[i] += alive[i - 1];
}

int64_t Draft::peak() const { return *std::max_element(alive.begin(), alive.end()); }

void Draft::play(Clock &clock, Step step) const {
  if (step.kind == StepKind::run)
    clock.run(step.op);
  else if (step.kind == StepKind::start)
    clock.start(step.op);
  else
    clock.await(step.op);
}

bool Draft::same(const std::vector<Clock::Flight> &a, const std::vector<Clock::Flight> &b) const {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [&](const auto &x, const auto &y) {
           return x.op == y.op && std::abs(x.rest - y.rest) <= 1e-12 * problem->ops[x.op].seconds;
         });
}

/// The steps from the first to behind the last in which a buffer is alive.
std::pair<size_t, size_t> Draft::lifetime(const Buffer &buffer) const {
  auto last = [&](unsigned op) { return problem->ops[op].collective ? awaited[op] : placed[op]; };
  size_t from = buffer.producer ? placed[*buffer.producer] : 0;
  if (buffer.escapes)
    return {from, steps.size()};
  size_t to = buffer.producer ? last(*buffer.producer) : 0;
  for (unsigned user : buffer.users)
    to = std::max(to, last(user));
  return {from, std::min(to + 1, steps.size())};
}

void Draft::stand(size_t low, const Step *order, size_t count) const {
  for (size_t i = 0; i < count; ++i)
    (order[i].kind == StepKind::await ? awaited : placed)[order[i].op] = low + i;
}

bool Draft::legal(size_t low, const Schedule &window) const {
  stand(low, window.data(), window.size());
  bool good = true;
  for (size_t i = 0; i < window.size() && good; ++i) {
    Step step = window[i];
    if (step.kind == StepKind::await) {
      good = placed[step.op] < low + i;
      continue;
    }
    for (unsigned need : graph->needs.complete[step.op])
      good &= (problem->ops[need].collective ? awaited[need] : placed[need]) < low + i;
    for (unsigned need : graph->needs.placed[step.op])
      good &= placed[need] < low + i;
  }
  stand(low, steps.data() + low, window.size());
  return good;
}

/// Calls visit for each buffer whose life may begin or end in the window, once.
template <typename Visit> void Draft::visitBuffers(const Schedule &window, Visit visit) const {
  std::vector<unsigned> buffers;
  for (Step step : window) {
    buffers.insert(buffers.end(), graph->makes[step.op].begin(), graph->makes[step.op].end());
    buffers.insert(buffers.end(), graph->reads[step.op].begin(), graph->reads[step.op].end());
  }
  std::sort(buffers.begin(), buffers.end());
  buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
  for (unsigned b : buffers)
    visit(problem->buffers[b]);
}

bool Draft::fits(size_t low, const Schedule &window, int64_t limit) const {
  const size_t high = low + window.size();
  std::vector<int64_t> delta(window.size() + 1);
  auto add = [&](const Buffer &buffer, int64_t sign) {
    auto [from, to] = lifetime(buffer);
    from = std::clamp(from, low, high);
    to = std::clamp(to, low, high);
    delta[from - low] += sign * buffer.bytes;
    delta[to - low] -= sign * buffer.bytes;
  };
  visitBuffers(window, [&](const Buffer &buffer) { add(buffer, -1); });
  stand(low, window.data(), window.size());
  visitBuffers(window, [&](const Buffer &buffer) { add(buffer, 1); });
  stand(low, steps.data() + low, window.size());
  int64_t more = 0;
  for (size_t i = 0; i < window.size(); ++i)
    if ((more += delta[i]) > 0 && alive[low + i] + more > limit)
      return false;
  return true;
}

double Draft::change(size_t low, const Schedule &window, uint64_t &cost) const {
  Clock clock(*problem, frequency);
  clock.flights = before[low];
  double was = 0;
  for (size_t i = 0; i < window.size(); ++i) {
    play(clock, window[i]);
    was += takes[low + i];
  }
  size_t at = low + window.size();
  cost += window.size();
  for (; at < steps.size() && !same(clock.flights, before[at]); ++at, ++cost) {
    play(clock, steps[at]);
    was += takes[at];
  }
  return clock.now - was;
}

void Draft::apply(size_t low, const Schedule &window) {
  const size_t high = low + window.size();
  auto add = [&](const Buffer &buffer, int64_t sign) {
    auto [from, to] = lifetime(buffer);
    for (size_t i = std::max(from, low); i < std::min(to, high); ++i)
      alive[i] += sign * buffer.bytes;
  };
  visitBuffers(window, [&](const Buffer &buffer) { add(buffer, -1); });
  std::copy(window.begin(), window.end(), steps.begin() + low);
  stand(low, window.data(), window.size());
  visitBuffers(window, [&](const Buffer &buffer) { add(buffer, 1); });
  Clock clock(*problem, frequency);
  clock.flights = before[low];
  for (size_t i = low; i < steps.size() && (i < high || !same(clock.flights, before[i])); ++i) {
    before[i] = clock.flights;
    double from = clock.now;
    play(clock, steps[i]);
    total += clock.now - from - takes[i];
    takes[i] = clock.now - from;
    if (i + 1 == steps.size())
      before[i + 1] = clock.flights;
  }
}

UnderCap::UnderCap(const Problem &problem, const Schedule &schedule)
    : power(problem.power), frequency(evaluate(problem, schedule).frequency),
      here(secondsAt(problem, schedule, frequency)) {
  if (double other = std::min(1.0, frequency * 1.02); other > frequency)
    slope = (secondsAt(problem, schedule, other) - here) / (other - frequency);
  for (const Op &op : problem.ops)
    (op.clocked ? squared : fixed) += op.joules;
}

double UnderCap::seconds(double more) const {
  const double watts = power.capWatts - power.idleWatts;
  auto at = [&](double f) { return here + more + (f - frequency) * slope; };
  auto needs = [&](double f) { return (fixed + squared * f * f) / watts; };
  if (power.capWatts <= 0 || needs(1) <= at(1))
    return at(1);
  double low = power.lowestClock, high = 1;
  if (needs(low) > at(low))
    return needs(low);
  for (int i = 0; i < 40; ++i) {
    double middle = (low + high) / 2;
    (needs(middle) <= at(middle) ? low : high) = middle;
  }
  return at(low);
}
