//===- SteadyTest.cpp - Several levels of parallelism at once, and loops in two stages ------===//
#include "Strategies.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace overlap_test;

namespace {

/// A GPU of a host with a link to its peers and one NIC; exchanges take 20 of its SMs, as in
/// DualPipe.
CostModel levels(double nicGBPerSecond, double capWatts) {
  std::string text = R"({"format": "ncclx-machine", "version": 1, "name": "levels",
    "sm": {"count": 132, "sharing": "dynamic", "source": "made up"},
    "memory": {"gb_per_s": 3350, "efficiency": 0.85, "pj_per_byte": 32, "source": "made up"},
    "gemm": {"tflops": 650, "pj_per_flop": 0.85, "source": "made up"},
    "attention": {"forward_tflops": 500, "backward_tflops": 420, "pj_per_flop": 1.2, "source": "made up"},
    "power": {"idle_w": 120, "cap_w": CAP, "lowest_clock": 0.5, "source": "made up"},
    "engines": [
      {"name": "tp", "collectives": ["all_gather", "reduce_scatter"], "gb_per_s": 300, "base_us": 10, "queue": 0,
       "hbm_per_byte": 2, "pj_per_byte": 268, "uses": {"link": 1, "copy engines": 1}, "source": "made up"},
      {"name": "ep", "collectives": ["all_to_all"], "gb_per_s": GBS, "base_us": 15, "sms": 20, "queue": 1,
       "hbm_per_byte": 3, "pj_per_byte": 800, "uses": {"NIC": 1}, "source": "made up"},
      {"name": "fsdp", "collectives": ["all_gather", "reduce_scatter"], "gb_per_s": GBS, "base_us": 30, "queue": 2,
       "hbm_per_byte": 3, "pj_per_byte": 800, "uses": {"NIC": 1}, "source": "made up"},
      {"name": "pp", "collectives": ["permute"], "gb_per_s": GBS, "base_us": 10, "queue": 3,
       "hbm_per_byte": 2, "pj_per_byte": 800, "uses": {"NIC": 1}, "source": "made up"}]})";
  auto put = [&](const char *word, double value) {
    for (size_t at; (at = text.find(word)) != std::string::npos;)
      text.replace(at, 3, std::to_string(value));
  };
  put("CAP", capWatts);
  put("GBS", nicGBPerSecond);
  CostModelResult result = readCostModel(text, "levels");
  EXPECT_TRUE(result.model.has_value()) << result.error;
  return *result.model;
}

struct Scheduled {
  Problem problem;
  Solution solution;
  Floor floor;
};
Scheduled schedule(const CostModel &cost, const Model &model) {
  Scheduled s{multiLevel(cost, {model, 4096, 4}, 2), {}, {}};
  EXPECT_EQ(validate(s.problem), std::nullopt);
  SolveOptions options;
  options.memoryBudget = int64_t(2) << 30;
  options.effort = 100'000;
  s.solution = solve(s.problem, serialSchedule(s.problem), options);
  s.floor = floorOf(s.problem);
  EXPECT_EQ(check(s.problem, s.solution.schedule), std::nullopt);
  EXPECT_LE(s.solution.peak, s.solution.peakBefore + *options.memoryBudget);
  EXPECT_GE(s.solution.timeline.seconds, s.floor.seconds * (1 - 1e-9));
  printf("%-14s: %.0f us one after the other, %.0f us scheduled, %.0f us at least by %s; %.0f us "
         "exposed, clock %.2f\n",
         model.name.c_str(), s.solution.before * 1e6, s.solution.timeline.seconds * 1e6,
         s.floor.seconds * 1e6, s.floor.limit.c_str(), s.solution.timeline.totalExposed() * 1e6,
         s.solution.timeline.frequency);
  return s;
}

// Gathers of tensor parallelism, exchanges of experts, weights and gradients of FSDP and sends of
// the pipeline are one problem; what saturates has a name.
TEST(OverlapLevels, WhatSaturatesIsNamed) {
  Scheduled compute = schedule(levels(400, 2000), mixtral8x7B);
  EXPECT_EQ(compute.floor.limit, "compute");
  Scheduled nic = schedule(levels(50, 2000), qwen30B);
  EXPECT_EQ(nic.floor.limit, "NIC");
  Scheduled power = schedule(levels(400, 600), mixtral8x7B);
  EXPECT_EQ(power.floor.limit, "power");
  // Near to what no schedule beats, where one thing limits it.
  EXPECT_LT(compute.solution.timeline.seconds, compute.floor.seconds * 1.15);
  for (const Scheduled *s : {&compute, &nic, &power})
    EXPECT_LT(s->solution.timeline.seconds, s->solution.before);
}

// No overlap stays that would not pay: undoing any one of them costs its margin.
TEST(OverlapLevels, WhatWouldNotPayIsRemoved) {
  for (double cap : {2000.0, 600.0}) {
    Scheduled s = schedule(levels(100, cap), mixtral8x7B);
    Schedule again = s.solution.schedule;
    EXPECT_TRUE(refuseUnderMargin(s.problem, again, SolveOptions().margin).empty());
    EXPECT_EQ(again, s.solution.schedule);
  }
  // Exchanges that take nearly all SMs slow down the shortest product by more than they all take:
  // whatever the search finds, beside them none runs.
  CostModel greedy = levels(1000, 2000);
  for (Engine &engine : greedy.engines)
    engine.sms = 131;
  greedy.sharing = Sharing::fixed;
  greedy.waves = true;
  Scheduled s = schedule(greedy, mixtral8x7B);
  double collectives = 0, least = 1;
  for (const Op &op : s.problem.ops) {
    if (op.collective)
      collectives += op.seconds;
    else if (op.clocked)
      least = std::min(
          least, op.seconds * (op.tiles == 0 ? 131 : op.tiles / std::ceil(op.tiles / 132.0) - 1));
  }
  ASSERT_GT(least, collectives);
  for (const Beside &b : s.solution.timeline.beside)
    EXPECT_FALSE(s.problem.ops[b.kernel].clocked && b.seconds > 1e-9)
        << s.problem.ops[b.kernel].name;
}

constexpr double us = 1e-6;

/// forward, exchange, backward, exchange: a chain, whose exchanges nothing in it hides.
Problem chain() {
  Problem problem;
  auto add = [&](const char *name, bool collective, std::vector<unsigned> after) {
    Op op;
    op.name = name;
    op.collective = collective;
    op.seconds = 100 * us;
    op.tiles = collective ? 0 : 1000;
    op.clocked = !collective;
    op.after = std::move(after);
    problem.ops.push_back(op);
    problem.buffers.push_back({name, 1000, unsigned(problem.ops.size() - 1), {}, false});
    for (unsigned j : problem.ops.back().after)
      problem.buffers[j].users.push_back(problem.ops.size() - 1);
  };
  add("forward", false, {});
  add("dispatch", true, {0});
  add("backward", false, {1});
  add("combine", true, {2});
  problem.buffers.back().escapes = true;
  return problem;
}

TEST(OverlapSteady, TwoStagesHideWhatOneCannot) {
  Problem body = chain();
  SolveOptions options;
  options.memoryBudget = 100'000;
  std::optional<SteadyState> state = scheduleSteadyState(body, serialSchedule(body), {}, options);
  ASSERT_TRUE(state);
  EXPECT_EQ(check(state->kernel, state->schedule), std::nullopt);
  EXPECT_NEAR(state->before, 400 * us, 1e-9);
  EXPECT_NEAR(state->seconds, 300 * us, 1e-9); // one exchange beside the other stage
  EXPECT_NEAR(state->floor.seconds, 200 * us, 1e-9);
  EXPECT_EQ(state->carried, 1000);
}

// What the next iteration's front needs of this one's rest stands in between.
TEST(OverlapSteady, CarriedEdgesHold) {
  Problem body = chain();
  SolveOptions options;
  EXPECT_FALSE(scheduleSteadyState(body, serialSchedule(body), {{3, 0}}, options));
  std::optional<SteadyState> state =
      scheduleSteadyState(body, serialSchedule(body), {{2, 0}}, options);
  ASSERT_TRUE(state); // forward behind backward, beside combine
  EXPECT_EQ(check(state->kernel, state->schedule), std::nullopt);
  EXPECT_NEAR(state->seconds, 300 * us, 1e-9);
}

TEST(OverlapSteady, BudgetAndOpaqueOpsRefuse) {
  Problem body = chain();
  SolveOptions options;
  options.memoryBudget = 0;
  EXPECT_FALSE(scheduleSteadyState(body, serialSchedule(body), {}, options));
  options.memoryBudget.reset();
  body.ops[2].opaque = true;
  EXPECT_FALSE(scheduleSteadyState(body, serialSchedule(body), {}, options));
}

TEST(OverlapSolve, NothingToDo) {
  Problem none;
  EXPECT_TRUE(solve(none, {}, {}).schedule.empty());
  EXPECT_FALSE(scheduleSteadyState(none, {}, {}, {}));
}

} // namespace
