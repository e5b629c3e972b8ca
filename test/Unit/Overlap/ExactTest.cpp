//===- ExactTest.cpp - The list scheduler against the best schedule ----------------===//
#include "Bound.h"
#include "RandomProblem.h"
#include "ncclx/Overlap/Solve.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace mlir::ncclx::overlap;
using overlap_test::randomProblem;

namespace {

/// Every legal schedule, one after the other, by brute force.
void everySchedule(const Problem &problem, Schedule &prefix, double &best) {
  bool complete = true;
  for (unsigned op = 0; op < problem.ops.size(); ++op)
    for (StepKind kind : {StepKind::run, StepKind::start, StepKind::await}) {
      if ((kind == StepKind::run) == problem.ops[op].collective)
        continue;
      Step step{kind, op};
      if (std::find(prefix.begin(), prefix.end(), step) != prefix.end())
        continue;
      complete = false;
      prefix.push_back(step);
      std::optional<std::string> wrong = check(problem, prefix);
      if (!wrong || wrong->find("is never") != std::string::npos)
        everySchedule(problem, prefix, best);
      prefix.pop_back();
    }
  if (complete)
    best = std::min(best, evaluate(problem, prefix).seconds);
}

TEST(OverlapExact, AgreesWithBruteForce) {
  int seen = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Problem problem = randomProblem(seed, 5);
    Schedule serial = serialSchedule(problem), prefix;
    double best = 1;
    everySchedule(problem, prefix, best);
    std::optional<Schedule> exact = solveExactly(problem, serial, std::nullopt);
    ASSERT_TRUE(exact);
    EXPECT_EQ(check(problem, *exact), std::nullopt);
    // Under a cap the search finds the clock by halving.
    double tolerance = problem.power.capWatts > 0 ? 1e-3 : 1e-9;
    EXPECT_NEAR(evaluate(problem, *exact).seconds / best, 1, tolerance) << "seed " << seed;
    ++seen;
  }
  EXPECT_EQ(seen, 60);
}

TEST(OverlapExact, RefusesLargeProblems) {
  Problem problem;
  problem.ops.resize(33);
  EXPECT_FALSE(solveExactly(problem, serialSchedule(problem), std::nullopt));
  // 32 that need nothing have too many states: an end, no answer.
  problem.ops.resize(32);
  for (unsigned i = 0; i < problem.ops.size(); ++i) {
    problem.ops[i].seconds = 1e-6 * (1 + i);
    problem.ops[i].collective = i % 2;
    if (i > 0) // or the first order would be the best that there can be
      problem.ops[i].uses = {{0, 0.7}};
  }
  problem.resources = {"HBM"};
  EXPECT_FALSE(solveExactly(problem, serialSchedule(problem), std::nullopt));
}

/// 3 % on average, 10 % at the 95th percentile and, of these, at most.
void compare(uint64_t from, uint64_t to) {
  std::vector<double> ratios;
  for (uint64_t seed = from; seed < to; ++seed) {
    Problem problem = randomProblem(seed);
    ASSERT_EQ(validate(problem), std::nullopt);
    Schedule serial = serialSchedule(problem);
    // None, tight, or as much as it takes.
    std::optional<int64_t> budget;
    if (seed % 3)
      budget = seed % 3 == 1 ? 1 : peakBytes(problem, serial) / 4;
    SolveOptions options;
    options.memoryBudget = budget;
    options.margin = 0;
    options.effort = 100'000;
    Solution solution = solve(problem, serial, options);
    ASSERT_EQ(check(problem, solution.schedule), std::nullopt);
    if (budget) {
      ASSERT_LE(solution.peak, solution.peakBefore + *budget);
    }
    std::optional<Schedule> exact = solveExactly(problem, serial, budget);
    ASSERT_TRUE(exact);
    ASSERT_EQ(check(problem, *exact), std::nullopt);
    double best = evaluate(problem, *exact).seconds;
    if (budget) {
      ASSERT_LE(peakBytes(problem, *exact), solution.peakBefore + *budget);
    }
    double ratio = solution.timeline.seconds / best;
    if (ratio > 1.1)
      printf("seed %llu: %.1f %% above the best\n", (unsigned long long)seed, (ratio - 1) * 100);
    EXPECT_LE(overlap_test::leastSeconds(problem), best * (1 + 1e-9)) << "seed " << seed;
    EXPECT_GT(ratio, 1 - 2e-3) << "seed " << seed << ": better than the best";
    ratios.push_back(ratio);
  }
  std::sort(ratios.begin(), ratios.end());
  double mean = 0;
  for (double r : ratios)
    mean += r / ratios.size();
  double p95 = ratios[ratios.size() * 95 / 100];
  printf("%zu graphs: mean %.2f %%, 95th percentile %.2f %%, worst %.2f %%\n", ratios.size(),
         (mean - 1) * 100, (p95 - 1) * 100, (ratios.back() - 1) * 100);
  EXPECT_LE(mean, 1.03);
  EXPECT_LE(p95, 1.10);
  EXPECT_LE(ratios.back(), 1.10);
}

TEST(OverlapExact, ListSchedulerIsClose) { compare(1, 61); }
TEST(SlowOverlapExact, ListSchedulerIsClose500) { compare(1, 501); }

} // namespace
