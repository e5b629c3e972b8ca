//===- KnownFailuresTest.cpp - What went wrong elsewhere, by row of test/CASES.md -===//
#include "Strategies.h"

#include <gtest/gtest.h>

using namespace overlap_test;

namespace {

constexpr double us = 1e-6;

Problem twoQueues() {
  Problem problem;
  problem.resources = {"HBM"};
  return problem;
}

Op kernel(const char *name, double seconds, double hbm = 0) {
  Op op;
  op.name = name;
  op.seconds = seconds;
  op.tiles = 1000;
  op.clocked = hbm == 0;
  if (hbm > 0)
    op.uses = {{0, hbm}};
  return op;
}

Op collective(const char *name, double seconds, unsigned queue = 0, double hbm = 0) {
  Op op;
  op.name = name;
  op.collective = true;
  op.seconds = seconds;
  op.queue = queue;
  if (hbm > 0)
    op.uses = {{0, hbm}};
  return op;
}

// Overlap 15: collectives of one communicator are one stream; that they wait for each other shows.
TEST(KnownFailures, Overlap15_OneQueueIsOneAfterTheOther) {
  for (unsigned second : {0u, 1u}) {
    Problem problem = twoQueues();
    problem.ops = {collective("a", 100 * us, 0), collective("b", 100 * us, second),
                   kernel("k", 110 * us)};
    Schedule both = {{StepKind::start, 0},
                     {StepKind::start, 1},
                     {StepKind::run, 2},
                     {StepKind::await, 0},
                     {StepKind::await, 1}};
    Timeline line = evaluate(problem, both);
    EXPECT_NEAR(line.totalExposed(), second == 0 ? 90 * us : 0, 1e-9);
  }
}

// Peers 41, overlap 2: beside a kernel that is bound by memory a collective gains less than beside
// one that is not, and nothing where both want all of it.
TEST(KnownFailures, Peers41_MemoryBoundPartnersGainLess) {
  auto gain = [](double hbm) {
    Problem problem = twoQueues();
    problem.ops = {collective("c", 100 * us, 0, 0.6), kernel("k", 100 * us, hbm)};
    return evaluate(problem, serialSchedule(problem)).seconds -
           evaluate(problem, {{StepKind::start, 0}, {StepKind::run, 1}, {StepKind::await, 0}})
               .seconds;
  };
  EXPECT_NEAR(gain(0), 100 * us, 1e-9);
  EXPECT_LT(gain(0.9), gain(0.5));
  EXPECT_GE(gain(1), 0);
  Problem problem = twoQueues();
  problem.ops = {collective("c", 100 * us, 0, 1), kernel("norm", 100 * us, 1)};
  problem.ops[1].tiles = 0;
  Solution solution = solve(problem, serialSchedule(problem), {});
  EXPECT_EQ(solution.schedule, serialSchedule(problem)); // refused: it would gain nothing
}

// Overlap 7: groups of any size, whatever the model's sizes are divided into.
TEST(KnownFailures, Overlap07_AnyGroupSize) {
  CostModel cost = machine("h100-nvswitch");
  for (int64_t t : {1, 2, 3, 5, 6, 7, 8, 12}) {
    Problem problem = cost.problem();
    addBackward(problem, cost, {llama8B, 4096, t}, 2, {});
    ASSERT_EQ(validate(problem), std::nullopt) << t;
    SolveOptions options;
    options.effort = 5'000;
    Solution solution = solve(problem, serialSchedule(problem), options);
    EXPECT_EQ(check(problem, solution.schedule), std::nullopt) << t;
    EXPECT_LE(solution.timeline.seconds, solution.before) << t;
  }
}

// Overlap 20: long sequences are no other case.
TEST(KnownFailures, Overlap20_LongSequences) {
  CostModel cost = machine("h100-mesh");
  for (double tokens : {4096.0, 16384.0, 32768.0, 65536.0}) {
    Problem problem = cost.problem();
    BuildOptions pieces;
    pieces.pieceSeconds = 500e-6;
    addBackward(problem, cost, {llama8B, tokens, 4}, 1, pieces);
    SolveOptions options;
    options.effort = 5'000;
    Solution solution = solve(problem, serialSchedule(problem), options);
    EXPECT_EQ(check(problem, solution.schedule), std::nullopt) << tokens;
    EXPECT_LT(solution.timeline.totalExposed(),
              evaluate(problem, serialSchedule(problem)).totalExposed())
        << tokens;
  }
}

// Peers 24, overlap 5: groups that share ranks see one order of starts, the same on every call; a
// rank on which any two of different groups stood the other way round would have another
// fingerprint.
TEST(KnownFailures, Peers24_OneOrderOfStarts) {
  CostModel cost = machine("h100-nvswitch");
  Problem problem = cost.problem();
  addBackward(problem, cost, {llama8B, 4096, 4}, 2, {});
  for (unsigned i = 0; i < problem.ops.size(); ++i)
    problem.ops[i].queue = i % 3; // three communicators
  Schedule first = solve(problem, serialSchedule(problem), {}).schedule;
  ASSERT_EQ(check(problem, first), std::nullopt);
  EXPECT_EQ(fingerprint(first), fingerprint(solve(problem, serialSchedule(problem), {}).schedule));
  std::vector<size_t> starts;
  for (size_t i = 0; i < first.size(); ++i)
    if (first[i].kind == StepKind::start)
      starts.push_back(i);
  ASSERT_EQ(starts.size(), 12u);
  for (size_t i = 1; i < starts.size(); ++i) {
    Schedule other = first;
    std::swap(other[starts[i - 1]], other[starts[i]]);
    EXPECT_NE(fingerprint(other), fingerprint(first)) << i;
  }
}

} // namespace
