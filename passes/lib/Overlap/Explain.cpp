//===- Explain.cpp - Why a collective's time shows -----------------------------------===//
//
// The reason is found by solving again with one limit lifted: what then hides the collective is
// what kept it exposed.
//
//===----------------------------------------------------------------------===//
#include "Greedy.h"
#include "ncclx/Overlap/Solve.h"

#include <algorithm>
#include <fmt/format.h>

using namespace mlir::ncclx::overlap;

const char *mlir::ncclx::overlap::toString(Reason reason) {
  switch (reason) {
  case Reason::none:
    return "none";
  case Reason::dependency:
    return "dependency";
  case Reason::noPartner:
    return "no partner";
  case Reason::budget:
    return "budget";
  case Reason::sms:
    return "SMs";
  case Reason::memoryBandwidth:
    return "HBM";
  case Reason::power:
    return "power";
  case Reason::margin:
    return "margin";
  }
  return "";
}

/// Whether some kernel that takes time neither precedes `op` nor needs it. Edges go forward in the
/// reference order, so that within a range of it paths are complete: the range grows until such a
/// kernel is in it.
static bool hasIndependentKernel(const Problem &problem, const Graph &graph, unsigned op) {
  const size_t n = problem.ops.size();
  for (size_t reach = 64;; reach *= 4) {
    size_t low = op > reach ? op - reach : 0, high = std::min(n, op + reach);
    std::vector<bool> related(high - low);
    related[op - low] = true;
    for (size_t i = op; i-- > low;) // what `op` needs
      for (unsigned next : graph.completeFor[i])
        if (next <= op && related[next - low])
          related[i - low] = true;
    for (size_t i = op + 1; i < high; ++i) // what needs it, and not what that needs
      for (unsigned need : graph.needs.complete[i])
        if (need >= op && related[need - low])
          related[i - low] = true;
    for (size_t i = low; i < high; ++i)
      if (!related[i - low] && !problem.ops[i].collective && problem.ops[i].seconds > 0)
        return true;
    if (low == 0 && high == n)
      return false;
  }
}

std::vector<Exposure> mlir::ncclx::overlap::explain(const Problem &problem, const Schedule &given,
                                                    const Solution &solution,
                                                    const SolveOptions &options) {
  std::vector<Exposure> list;
  for (unsigned i = 0; i < problem.ops.size(); ++i)
    if (solution.timeline.exposed[i] > options.margin * problem.ops[i].seconds &&
        problem.ops[i].collective)
      list.push_back({i, solution.timeline.exposed[i], Reason::none, ""});
  Graph graph(problem);
  for (Exposure &e : list)
    if (!hasIndependentKernel(problem, graph, e.collective)) {
      e.reason = Reason::dependency;
      e.lift = "every kernel precedes it or needs it: cut it, or a neighbour, into chunks";
    }

  auto lifted = [&](Reason reason, const Problem &other, const SolveOptions &with, auto lift) {
    if (std::none_of(list.begin(), list.end(),
                     [](const Exposure &e) { return e.reason == Reason::none; }))
      return;
    Solution better;
    if (problem.ops.size() > 2000) {
      // Of large problems what is lifted shows nearby, under the rule that led to the solution.
      SolveOptions quick = with;
      quick.rules = {0, solution.rule};
      quick.effort = 0;
      Problem fenced = other;
      fenceDeferral(fenced, 8);
      better = solve(fenced, given, quick);
    } else {
      better = solve(other, given, with);
    }
    for (Exposure &e : list)
      if (e.reason == Reason::none &&
          better.timeline.exposed[e.collective] <
              e.seconds - options.margin * problem.ops[e.collective].seconds) {
        e.reason = reason;
        e.lift = lift(e, better);
      }
  };
  SolveOptions unlimited = options;
  unlimited.memoryBudget.reset();
  if (options.memoryBudget)
    lifted(Reason::budget, problem, unlimited, [&](const Exposure &, const Solution &better) {
      return fmt::format("{:.1f} MB of memory more than the budget",
                         double(better.peak - solution.peakBefore - *options.memoryBudget) / 1e6);
    });
  Problem other = problem;
  bool takesSms = false, movesMemory = false;
  for (Op &op : other.ops) {
    takesSms |= op.collective && op.sms > 0;
    op.sms = 0;
  }
  if (takesSms)
    lifted(Reason::sms, other, options, [&](const Exposure &e, const Solution &) {
      return fmt::format("an engine that takes fewer than its {:.0f} SMs",
                         problem.ops[e.collective].sms);
    });
  other = problem;
  for (Op &op : other.ops)
    movesMemory |= std::erase_if(op.uses, [](const Use &use) { return use.resource == 0; }) > 0;
  if (movesMemory)
    lifted(Reason::memoryBandwidth, other, options, [&](const Exposure &, const Solution &) {
      return std::string("a partner that moves less memory");
    });
  other = problem;
  other.power.capWatts = 0;
  if (problem.power.capWatts > 0)
    lifted(Reason::power, other, options, [&](const Exposure &, const Solution &) {
      return fmt::format("more than {:.0f} W, or an engine with less energy a byte",
                         problem.power.capWatts);
    });
  SolveOptions any = options;
  any.margin = 0;
  if (!solution.refused.empty())
    lifted(Reason::margin, problem, any, [&](const Exposure &e, const Solution &) {
      return fmt::format("a margin below {:.0f} % of its {:.1f} us", options.margin * 100,
                         problem.ops[e.collective].seconds * 1e6);
    });
  for (Exposure &e : list)
    if (e.reason == Reason::none) {
      e.reason = Reason::noPartner;
      e.lift = fmt::format("{:.1f} us more of work that does not depend on it", e.seconds * 1e6);
    }
  return list;
}
