//===- Problem.cpp - Legal schedules and their memory ------------------------===//
#include "ncclx/Overlap/Problem.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

using namespace mlir::ncclx::overlap;

Schedule mlir::ncclx::overlap::serialSchedule(const Problem &problem) {
  Schedule schedule;
  for (unsigned i = 0; i < problem.ops.size(); ++i) {
    if (!problem.ops[i].collective) {
      schedule.push_back({StepKind::run, i});
      continue;
    }
    schedule.push_back({StepKind::start, i});
    schedule.push_back({StepKind::await, i});
  }
  return schedule;
}

std::optional<std::string> mlir::ncclx::overlap::validate(const Problem &problem) {
  auto good = [](double x) { return std::isfinite(x) && x >= 0; };
  const size_t n = problem.ops.size();
  for (size_t i = 0; i < n; ++i) {
    const Op &op = problem.ops[i];
    if (!good(op.seconds) || !good(op.joules) || !good(op.sms) || op.tiles < 0)
      return fmt::format("op '{}': times, energies, SMs and tiles are finite and at least 0",
                         op.name);
    if (op.collective && op.sms >= problem.sms)
      return fmt::format("op '{}' takes {} SMs of {}: none is left beside it", op.name, op.sms,
                         problem.sms);
    if (op.partOf && (*op.partOf >= i || !op.collective || !problem.ops[*op.partOf].collective))
      return fmt::format(
          "op '{}' (number {}) is part of number {}, which is no collective before it", op.name, i,
          *op.partOf);
    for (const std::vector<unsigned> *list : {&op.after, &op.fences})
      for (unsigned j : *list)
        if (j >= i)
          return fmt::format("op '{}' (number {}) needs number {}, which does not stand before it",
                             op.name, i, j);
    for (const Use &use : op.uses)
      if (use.resource >= problem.resources.size() || !good(use.share) || use.share > 1)
        return fmt::format("op '{}' uses a share of {} of resource {}; there are {}, and a share "
                           "is at most 1",
                           op.name, use.share, use.resource, problem.resources.size());
  }
  for (const Buffer &buffer : problem.buffers) {
    if (buffer.bytes < 0)
      return fmt::format("buffer '{}' has {} bytes", buffer.name, buffer.bytes);
    if (buffer.producer && *buffer.producer >= n)
      return fmt::format("buffer '{}' is made by op {} of {}", buffer.name, *buffer.producer, n);
    for (unsigned user : buffer.users)
      if (user >= n)
        return fmt::format("buffer '{}' is used by op {} of {}", buffer.name, user, n);
  }
  const Power &power = problem.power;
  if (!good(power.idleWatts) || !good(power.capWatts) || !good(problem.sms) ||
      !(power.lowestClock > 0 && power.lowestClock <= 1))
    return "power and SMs are finite and at least 0, the lowest clock is in (0, 1]";
  if (power.capWatts > 0 && power.capWatts <= power.idleWatts)
    return fmt::format("a cap of {} W leaves nothing above the idle {} W", power.capWatts,
                       power.idleWatts);
  return std::nullopt;
}

Needs mlir::ncclx::overlap::needsOf(const Problem &problem) {
  Needs needs;
  needs.complete.resize(problem.ops.size());
  needs.placed.resize(problem.ops.size());
  std::optional<unsigned> opaque;
  for (unsigned i = 0; i < problem.ops.size(); ++i) {
    const Op &op = problem.ops[i];
    needs.complete[i] = op.after;
    needs.placed[i] = op.fences;
    if (opaque)
      needs.complete[i].push_back(*opaque);
    if (op.opaque) {
      for (unsigned j = opaque.value_or(0); j < i; ++j)
        needs.complete[i].push_back(j);
      opaque = i;
    }
  }
  return needs;
}

std::optional<std::string> mlir::ncclx::overlap::check(const Problem &problem,
                                                       const Schedule &schedule) {
  const size_t n = problem.ops.size();
  Needs needs = needsOf(problem);
  std::vector<bool> placed(n), complete(n);
  for (const Step &step : schedule) {
    if (step.op >= n)
      return fmt::format("step on op {} of {}", step.op, n);
    const Op &op = problem.ops[step.op];
    if (op.collective == (step.kind == StepKind::run))
      return fmt::format("'{}' is {}", op.name,
                         op.collective ? "a collective and does not run" : "no collective");
    if (step.kind == StepKind::await) {
      if (!placed[step.op] || complete[step.op])
        return fmt::format("'{}' is awaited {}", op.name,
                           complete[step.op] ? "twice" : "before it is started");
      complete[step.op] = true;
      continue;
    }
    if (placed[step.op])
      return fmt::format("'{}' stands twice", op.name);
    for (unsigned j : needs.complete[step.op])
      if (!complete[j])
        return fmt::format("'{}' starts before '{}', which it needs, is complete", op.name,
                           problem.ops[j].name);
    for (unsigned j : needs.placed[step.op])
      if (!placed[j])
        return fmt::format("'{}' stands before '{}', which a fence keeps in front of it", op.name,
                           problem.ops[j].name);
    placed[step.op] = true;
    complete[step.op] = !op.collective;
  }
  for (size_t i = 0; i < n; ++i)
    if (!complete[i])
      return fmt::format("'{}' is never {}", problem.ops[i].name,
                         placed[i] ? "awaited" : "reached");
  return std::nullopt;
}

int64_t mlir::ncclx::overlap::peakBytes(const Problem &problem, const Schedule &schedule) {
  std::vector<size_t> first(problem.ops.size()), last(problem.ops.size());
  for (size_t at = 0; at < schedule.size(); ++at) {
    if (schedule[at].kind != StepKind::await)
      first[schedule[at].op] = at;
    last[schedule[at].op] = at;
  }
  std::vector<int64_t> change(schedule.size() + 1);
  for (const Buffer &buffer : problem.buffers) {
    size_t from = buffer.producer ? first[*buffer.producer] : 0;
    size_t to = buffer.producer ? last[*buffer.producer] : 0;
    for (unsigned user : buffer.users)
      to = std::max(to, last[user]);
    change[from] += buffer.bytes;
    if (!buffer.escapes && to + 1 < change.size())
      change[to + 1] -= buffer.bytes;
  }
  int64_t alive = 0, peak = 0;
  for (int64_t by : change)
    peak = std::max(peak, alive += by);
  return peak;
}

void mlir::ncclx::overlap::fenceDeferral(Problem &problem, unsigned distance) {
  std::vector<unsigned> collectives;
  for (unsigned i = 0; i < problem.ops.size(); ++i)
    if (problem.ops[i].collective)
      collectives.push_back(i);
  auto next = collectives.begin();
  for (unsigned i = 0; i < problem.ops.size(); ++i) {
    while (next != collectives.end() && *next < i)
      ++next;
    if (!problem.ops[i].collective && collectives.end() - next > distance)
      problem.ops[next[distance]].fences.push_back(i);
    if (next - collectives.begin() > distance)
      problem.ops[i].fences.push_back(*(next - distance - 1));
  }
}

uint64_t mlir::ncclx::overlap::fingerprint(const Schedule &schedule) {
  uint64_t hash = 0xcbf29ce484222325; // FNV-1a
  for (const Step &step : schedule)
    for (uint64_t word : {uint64_t(step.kind), uint64_t(step.op)})
      hash = (hash ^ word) * 0x100000001b3;
  return hash;
}
