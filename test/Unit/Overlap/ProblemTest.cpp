//===- ProblemTest.cpp - Legality, memory, time --------------------------------------===//
#include "ncclx/Overlap/Solve.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir::ncclx::overlap;

namespace {

constexpr double us = 1e-6;

Op kernel(const char *name, double seconds, std::vector<unsigned> after = {}) {
  Op op;
  op.name = name;
  op.seconds = seconds;
  op.clocked = true;
  op.after = std::move(after);
  return op;
}
Op collective(const char *name, double seconds, std::vector<unsigned> after = {}, double sms = 0) {
  Op op = kernel(name, seconds, std::move(after));
  op.collective = true;
  op.clocked = false;
  op.sms = sms;
  return op;
}
Step run(unsigned op) { return {StepKind::run, op}; }
Step start(unsigned op) { return {StepKind::start, op}; }
Step await(unsigned op) { return {StepKind::await, op}; }

/// a, then c needs a, then b is free.
Problem three() {
  Problem problem;
  problem.ops = {kernel("a", 10 * us), collective("c", 30 * us, {0}), kernel("b", 20 * us)};
  return problem;
}

TEST(OverlapProblem, CheckNamesWhatIsWrong) {
  Problem problem = three();
  EXPECT_EQ(check(problem, serialSchedule(problem)), std::nullopt);
  EXPECT_EQ(check(problem, {run(0), start(1), run(2), await(1)}), std::nullopt);
  auto says = [&](const Schedule &schedule, const char *what) {
    std::optional<std::string> wrong = check(problem, schedule);
    ASSERT_TRUE(wrong);
    EXPECT_NE(wrong->find(what), std::string::npos) << *wrong;
  };
  says({start(1), run(0), await(1), run(2)}, "'c' starts before 'a', which it needs");
  says({run(0), await(1), start(1), run(2)}, "'c' is awaited before it is started");
  says({run(0), start(1), await(1), await(1), run(2)}, "'c' is awaited twice");
  says({run(0), start(1), run(2)}, "'c' is never awaited");
  says({run(0), run(2)}, "'c' is never reached");
  says({run(0), run(0)}, "'a' stands twice");
  says({run(0), run(1)}, "'c' is a collective and does not run");
  says({start(0)}, "'a' is no collective");
  says({run(7)}, "op 7 of 3");
  problem.ops[1].fences = {0};
  problem.ops[1].after = {};
  says({start(1), run(0), await(1), run(2)}, "'c' stands before 'a', which a fence");
}

TEST(OverlapProblem, NothingMovesAcrossAnOpaqueOp) {
  Problem problem;
  problem.ops = {collective("c", 30 * us), kernel("x", 1 * us), kernel("b", 20 * us)};
  problem.ops[1].opaque = true;
  EXPECT_EQ(check(problem, {start(0), await(0), run(1), run(2)}), std::nullopt);
  EXPECT_TRUE(check(problem, {start(0), run(1), await(0), run(2)}));
  EXPECT_TRUE(check(problem, {run(2), start(0), await(0), run(1)}));
  EXPECT_TRUE(check(problem, {start(0), await(0), run(2), run(1)}));
}

TEST(OverlapProblem, ValidateRefusesNonsense) {
  auto says = [](const Problem &problem, const char *what) {
    std::optional<std::string> wrong = validate(problem);
    ASSERT_TRUE(wrong) << what;
    EXPECT_NE(wrong->find(what), std::string::npos) << *wrong;
  };
  EXPECT_EQ(validate(three()), std::nullopt);
  Problem p = three();
  p.ops[0].seconds = -1;
  says(p, "op 'a': times");
  p = three();
  p.ops[0].after = {1};
  says(p, "does not stand before it");
  p = three();
  p.ops[1].sms = 132;
  says(p, "takes 132 SMs of 132");
  p = three();
  p.ops[0].uses = {{0, 0.5}};
  says(p, "uses a share of 0.5 of resource 0; there are 0");
  p = three();
  p.buffers = {{"x", 1, 9, {}, false}};
  says(p, "made by op 9 of 3");
  p = three();
  p.buffers = {{"x", -1, 0, {}, false}};
  says(p, "has -1 bytes");
  p = three();
  p.power = {100, 90, 0.5};
  says(p, "a cap of 90 W leaves nothing above the idle 100 W");
}

// What a collective reads and fills is in use from its start to its await.
TEST(OverlapProblem, PeakBytes) {
  Problem problem = three();
  problem.buffers = {{"a.out", 5, 0, {1}, false},
                     {"c.out", 7, 1, {}, false},
                     {"b.in", 11, std::nullopt, {2}, false},
                     {"b.out", 13, 2, {}, true}};
  EXPECT_EQ(peakBytes(problem, serialSchedule(problem)), 24); // a.out c.out b.in, or b.in b.out
  EXPECT_EQ(peakBytes(problem, {run(0), start(1), run(2), await(1)}), 36);
  EXPECT_EQ(peakBytes(problem, {run(2), run(0), start(1), await(1)}), 25);
}

TEST(OverlapTimeline, BesideAndExposed) {
  Problem problem = three();
  EXPECT_DOUBLE_EQ(evaluate(problem, serialSchedule(problem)).seconds, 60 * us);
  Timeline line = evaluate(problem, {run(0), start(1), run(2), await(1)});
  EXPECT_DOUBLE_EQ(line.seconds, 40 * us);
  EXPECT_NEAR(line.totalExposed(), 10 * us, 1e-12);
  ASSERT_EQ(line.beside.size(), 1u);
  EXPECT_EQ(line.beside[0].collective, 1u);
  EXPECT_EQ(line.beside[0].kernel, 2u);
  EXPECT_NEAR(line.beside[0].seconds, 20 * us, 1e-12);
}

// 512 tiles on 132 SMs are 4 waves, on 108 they are 5; 128 free SMs cost nothing.
TEST(OverlapTimeline, SharingOfSms) {
  Problem problem;
  problem.ops = {collective("c", 30 * us, {}, 24), kernel("g", 100 * us)};
  problem.ops[1].tiles = 512;
  Schedule both = {start(0), run(1), await(0)};
  problem.sharing = Sharing::fixed;
  EXPECT_NEAR(evaluate(problem, both).seconds, 125 * us, 1e-12);
  problem.ops[0].sms = 4;
  EXPECT_NEAR(evaluate(problem, both).seconds, 100 * us, 1e-12);
  problem.ops[0].sms = 24;
  problem.sharing = Sharing::dynamic;
  EXPECT_NEAR(evaluate(problem, both).seconds, 100 * us + 30 * us * 24 / 132, 1e-12);
  problem.ops[1].clocked = false; // bound by memory: SMs do not matter
  EXPECT_NEAR(evaluate(problem, both).seconds, 100 * us, 1e-12);
}

TEST(OverlapTimeline, SharesOfAResource) {
  Problem problem;
  problem.resources = {"HBM"};
  problem.ops = {collective("c", 100 * us), kernel("g", 100 * us)};
  problem.ops[0].uses = {{0, 0.5}};
  problem.ops[1].uses = {{0, 0.75}};
  Schedule both = {start(0), run(1), await(0)};
  EXPECT_NEAR(evaluate(problem, both).seconds, 125 * us, 1e-12);
  Floor floor = floorOf(problem);
  EXPECT_NEAR(floor.seconds, 125 * us, 1e-12);
  EXPECT_EQ(floor.limit, "HBM");
}

TEST(OverlapTimeline, QueuesAreInOrder) {
  Problem problem;
  problem.ops = {collective("c", 30 * us), collective("d", 50 * us), kernel("g", 10 * us)};
  Schedule all = {start(0), start(1), run(2), await(1), await(0)};
  EXPECT_NEAR(evaluate(problem, all).seconds, 80 * us, 1e-12);
  problem.ops[1].queue = 1;
  EXPECT_NEAR(evaluate(problem, all).seconds, 50 * us, 1e-12);
}

// At half the speed a kernel takes a quarter of its energy: 0.4 J at the highest clock against
// 300 W above idle gives t with 300 t = 0.4 (1e-3 / t)^2.
TEST(OverlapTimeline, PowerDecidesTheClock) {
  Problem problem;
  problem.ops = {kernel("g", 1e-3)};
  problem.ops[0].joules = 0.4;
  problem.power = {100, 400, 0.1};
  Timeline line = evaluate(problem, serialSchedule(problem));
  double expected = 1e-3 * std::cbrt(0.4 / (300 * 1e-3));
  EXPECT_NEAR(line.seconds, expected, 1e-9);
  EXPECT_NEAR(line.joules, 400 * expected, 1e-6);
  EXPECT_NEAR(line.frequency, 1e-3 / expected, 1e-6);
  EXPECT_EQ(floorOf(problem).limit, "power");
  problem.power.lowestClock = 0.99; // then there is nothing but to take longer
  EXPECT_NEAR(evaluate(problem, serialSchedule(problem)).seconds, 0.4 * .99 * .99 / 300, 1e-9);
}

TEST(OverlapProblem, FencesBoundDeferral) {
  Problem problem;
  problem.ops = {kernel("w", 1 * us)};
  for (int i = 0; i < 4; ++i)
    problem.ops.push_back(collective("c", 10 * us));
  fenceDeferral(problem, 2);
  EXPECT_EQ(problem.ops[2].fences, std::vector<unsigned>());
  EXPECT_EQ(problem.ops[3].fences, std::vector<unsigned>({0}));
  EXPECT_EQ(problem.ops[4].fences, std::vector<unsigned>({1})); // nor is it brought forward
  Schedule serial = serialSchedule(problem);
  EXPECT_EQ(fingerprint(serial), fingerprint(serial));
  EXPECT_NE(fingerprint(serial), fingerprint({}));
}

} // namespace
