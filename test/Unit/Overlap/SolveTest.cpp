//===- SolveTest.cpp - What is taken, what is refused, and why -----------------------===//
#include "ncclx/Overlap/Solve.h"

#include <gtest/gtest.h>

using namespace mlir::ncclx::overlap;

namespace {

constexpr double us = 1e-6;

/// A gather, and a kernel beside it.
Problem pair(double gather, double kernel, double sms = 0) {
  Problem problem;
  problem.resources = {"HBM"};
  problem.ops.resize(3);
  problem.ops[0].name = "gather";
  problem.ops[0].collective = true;
  problem.ops[0].seconds = gather;
  problem.ops[0].sms = sms;
  problem.ops[1].name = "free";
  problem.ops[1].seconds = kernel;
  problem.ops[1].clocked = true;
  problem.ops[1].tiles = 128;
  problem.ops[2].name = "user";
  problem.ops[2].seconds = 10 * us;
  problem.ops[2].clocked = true;
  problem.ops[2].tiles = 128;
  problem.ops[2].after = {0};
  return problem;
}

Exposure why(const Problem &problem, SolveOptions options = {}) {
  Schedule serial = serialSchedule(problem);
  Solution solution = solve(problem, serial, options);
  std::vector<Exposure> list = explain(problem, serial, solution, options);
  return list.empty() ? Exposure{} : list.front();
}

TEST(OverlapSolve, TakesWhatPays) {
  Problem problem = pair(50 * us, 100 * us);
  Schedule serial = serialSchedule(problem);
  Solution solution = solve(problem, serial, {});
  EXPECT_NEAR(solution.before, 160 * us, 1e-12);
  EXPECT_NEAR(solution.timeline.seconds, 110 * us, 1e-12);
  EXPECT_EQ(why(problem).reason, Reason::none);
  // Twice the same: the same schedule, bit for bit.
  EXPECT_EQ(fingerprint(solve(problem, serial, {}).schedule), fingerprint(solution.schedule));
}

TEST(OverlapSolve, RefusesUnderTheMargin) {
  // 2 us of 50 are hidden: 4 %.
  Problem problem = pair(50 * us, 2 * us);
  Schedule serial = serialSchedule(problem);
  Solution solution = solve(problem, serial, {});
  EXPECT_NEAR(solution.timeline.seconds, 62 * us, 1e-12);
  EXPECT_EQ(solution.refused, std::vector<unsigned>({0}));
  SolveOptions taking;
  taking.margin = 0.03;
  EXPECT_NEAR(solve(problem, serial, taking).timeline.seconds, 60 * us, 1e-12);
}

// One wave of 128 tiles becomes two beside 24 SMs: 200 us against 150 apart.
TEST(OverlapSolve, RefusesWhatHarms) {
  Problem problem = pair(50 * us, 100 * us, 24);
  problem.sharing = Sharing::fixed;
  Solution solution = solve(problem, serialSchedule(problem), {});
  EXPECT_NEAR(solution.timeline.seconds, 160 * us, 1e-12);
  Exposure e = why(problem);
  EXPECT_EQ(e.reason, Reason::sms);
  EXPECT_EQ(e.lift, "an engine that takes fewer than its 24 SMs");
}

TEST(OverlapSolve, ReasonDependency) {
  Problem problem = pair(50 * us, 100 * us);
  problem.ops[1].after = {0};
  EXPECT_EQ(why(problem).reason, Reason::dependency);
}

TEST(OverlapSolve, ReasonNoPartner) {
  Exposure e = why(pair(50 * us, 20 * us));
  EXPECT_EQ(e.reason, Reason::noPartner);
  EXPECT_EQ(e.lift, "30.0 us more of work that does not depend on it");
}

TEST(OverlapSolve, ReasonBudget) {
  Problem problem = pair(50 * us, 100 * us);
  // The reference runs the kernel first, and its input is gone before the gather comes.
  std::swap(problem.ops[0], problem.ops[1]);
  problem.ops[2].after = {1};
  problem.buffers = {{"input", 1000, std::nullopt, {0}, false}, {"gathered", 2000, 1, {2}, false}};
  SolveOptions options;
  options.memoryBudget = 500;
  Solution solution = solve(problem, serialSchedule(problem), options);
  EXPECT_LE(solution.peak, 2500);
  EXPECT_NEAR(solution.timeline.seconds, 160 * us, 1e-12);
  Exposure e = why(problem, options);
  EXPECT_EQ(e.reason, Reason::budget);
  EXPECT_EQ(e.lift, "0.0 MB of memory more than the budget");
  options.memoryBudget = 1000;
  EXPECT_NEAR(solve(problem, serialSchedule(problem), options).timeline.seconds, 110 * us, 1e-12);
  options.memoryBudget = 0;
  EXPECT_EQ(solve(problem, serialSchedule(problem), options).schedule, serialSchedule(problem));
}

TEST(OverlapSolve, ReasonHBM) {
  Problem problem = pair(50 * us, 100 * us);
  problem.ops[0].uses = {{0, 1}};
  problem.ops[1].uses = {{0, 1}};
  problem.ops[1].clocked = false;
  EXPECT_EQ(why(problem).reason, Reason::memoryBandwidth);
}

// At the cap time is energy: beside each other they take as long as apart.
TEST(OverlapSolve, ReasonPower) {
  Problem problem = pair(50 * us, 100 * us);
  problem.power = {100, 500, 1};
  problem.ops[0].joules = 50 * us * 310;
  problem.ops[1].joules = 100 * us * 440;
  problem.ops[2].joules = 10 * us * 440;
  EXPECT_EQ(why(problem).reason, Reason::power);
}

TEST(OverlapSolve, NamedPassesKeepTheirLimits) {
  Problem problem = pair(50 * us, 100 * us);
  Schedule serial = serialSchedule(problem);
  // Bulk: the kernel stands between the gather and its user.
  Schedule bulk = pairBulk(problem, serial, {});
  EXPECT_NEAR(evaluate(problem, bulk).seconds, 110 * us, 1e-12);
  SolveOptions none;
  none.memoryBudget = 0;
  EXPECT_EQ(pairBulk(problem, serial, none), serial);
  // A kernel that is no GEMM is no partner, nor one that gains too little.
  problem.ops[1].tiles = 0;
  EXPECT_EQ(pairBulk(problem, serial, {}), serial);
  problem = pair(50 * us, 2 * us);
  EXPECT_EQ(pairBulk(problem, serial, {}), serial);
}

/// A sink, what the gather gathers, the gather, its user.
Problem sinkFirst() {
  Problem problem = pair(50 * us, 100 * us);
  Op gather = problem.ops[0], sink = problem.ops[1], user = problem.ops[2], source = sink;
  source.name = "source";
  source.seconds = 1 * us;
  source.tiles = 0;
  gather.after = {1};
  user.after = {2};
  problem.ops = {sink, source, gather, user};
  return problem;
}

TEST(OverlapSolve, SinksMove) {
  Problem problem = sinkFirst();
  Schedule serial = serialSchedule(problem);
  EXPECT_EQ(pairBulk(problem, serial, {}), serial);
  Schedule moved = pairSinks(problem, serial, {});
  EXPECT_EQ(moved, Schedule({{StepKind::run, 1},
                             {StepKind::start, 2},
                             {StepKind::run, 0},
                             {StepKind::await, 2},
                             {StepKind::run, 3}}));
  SolveOptions none;
  none.memoryBudget = 0;
  EXPECT_EQ(pairSinks(problem, serial, none), serial);
}

// A gather of what is there from the start goes up over the sink, as far as memory allows.
TEST(OverlapSolve, Hoisting) {
  Problem problem = sinkFirst();
  problem.ops[2].after = {};
  Schedule serial = serialSchedule(problem);
  EXPECT_EQ(hoistStarts(problem, serial, {}), Schedule({{StepKind::start, 2},
                                                        {StepKind::run, 0},
                                                        {StepKind::run, 1},
                                                        {StepKind::await, 2},
                                                        {StepKind::run, 3}}));
  problem.buffers = {{"input", 1000, std::nullopt, {0}, false}, {"gathered", 2000, 2, {3}, false}};
  SolveOptions tight;
  tight.memoryBudget = 999;
  EXPECT_EQ(hoistStarts(problem, serial, tight), serial); // 1 us beside the source is too little
  problem.ops[1].seconds = 20 * us;
  EXPECT_EQ(hoistStarts(problem, serial, tight), Schedule({{StepKind::run, 0},
                                                           {StepKind::start, 2},
                                                           {StepKind::run, 1},
                                                           {StepKind::await, 2},
                                                           {StepKind::run, 3}}));
  tight.memoryBudget = 0;
  EXPECT_EQ(hoistStarts(problem, serial, tight), serial);
}

TEST(OverlapSolve, SinksThatStay) {
  Schedule serial = serialSchedule(sinkFirst());
  auto stays = [&](const Problem &problem) { EXPECT_EQ(pairSinks(problem, serial, {}), serial); };
  Problem problem = sinkFirst();
  problem.ops[2].after = {0, 1}; // the gather needs it
  stays(problem);
  problem = sinkFirst();
  problem.ops[3].after = {0, 2}; // its result is used
  stays(problem);
  problem = sinkFirst();
  problem.ops[2].fences = {0}; // a fence keeps it in front
  stays(problem);
  problem = sinkFirst();
  problem.ops[0].opaque = true;
  stays(problem);
  problem = sinkFirst();
  problem.ops[0].tiles = 0; // no GEMM
  stays(problem);
  problem = sinkFirst();
  problem.ops[0].seconds = 1 * us; // under the margin
  stays(problem);
  problem = sinkFirst();
  problem.buffers = {{"input", 1000, std::nullopt, {0}, false}, {"gathered", 2000, 2, {3}, false}};
  SolveOptions tight;
  tight.memoryBudget = 999;
  EXPECT_EQ(pairSinks(problem, serial, tight), serial);
  tight.memoryBudget = 1000;
  EXPECT_NE(pairSinks(problem, serial, tight), serial);
}

// Two sinks in front of two gathers: the first gather takes the nearer; the other sink would pass
// it.
TEST(OverlapSolve, SinksMoveNoFurtherThanAsked) {
  Problem one = sinkFirst(), problem = one;
  problem.ops = {one.ops[0], one.ops[0], one.ops[1], one.ops[2],
                 one.ops[3], one.ops[2], one.ops[3]};
  problem.ops[3].after = {2};
  problem.ops[4].after = {3};
  problem.ops[5].after = {4};
  problem.ops[6].after = {5};
  Schedule serial = serialSchedule(problem);
  EXPECT_NEAR(evaluate(problem, pairSinks(problem, serial, {}, 1)).totalExposed(), 50 * us, 1e-12);
  EXPECT_NEAR(evaluate(problem, pairSinks(problem, serial, {}, 2)).totalExposed(), 0, 1e-12);
}

} // namespace
