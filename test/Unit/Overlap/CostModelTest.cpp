//===- CostModelTest.cpp - Machine files, and the energy floor ---------------------===//
#include "Strategies.h"

#include <gtest/gtest.h>

using namespace overlap_test;

namespace {

TEST(OverlapCostModel, ShippedMachinesRead) {
  for (const char *name : {"h100-mesh", "h100-nvswitch", "h100-multimem", "h200"}) {
    CostModelResult result = readCostModelFile(std::string(NCCLX_MACHINES "/") + name + ".json");
    ASSERT_TRUE(result.model) << result.error;
    EXPECT_EQ(result.model->name, name);
    EXPECT_EQ(validate(result.model->problem()), std::nullopt);
  }
  EXPECT_NE(readCostModelFile("/nowhere.json").error.find("/nowhere.json: "), std::string::npos);
}

const char *small = R"({"format": "ncclx-machine", "version": 1, "name": "m",
 "sm": {"count": 100, "sharing": "static", "source": "s"},
 "memory": {"gb_per_s": 1000, "efficiency": 0.5, "source": "s"},
 "gemm": {"tflops": 100, "tile_m": 128, "tile_n": 256, "waves": true, "pj_per_flop": 1,
          "pj_measured_at_tflops": 50, "source": "s"},
 "attention": {"forward_tflops": 50, "backward_tflops": 40, "source": "s"},
 "engines": [{"name": "e", "collectives": ["all_gather"], "gb_per_s": 100, "base_us": 5,
              "per_peer_us": 1, "sms": 8, "hbm_per_byte": 2, "uses": {"link": 1}, "source": "s"}]})";

TEST(OverlapCostModel, Costs) {
  CostModelResult result = readCostModel(small, "m.json");
  ASSERT_TRUE(result.model) << result.error;
  const CostModel &m = *result.model;
  // 101 tiles are two waves of a tile each: 2 * 2 * 128 * 256 * 1000 flops at 1 Tflop/s an SM.
  Op two = m.gemm("g", 128, 101 * 256, 1000);
  EXPECT_EQ(two.tiles, 101);
  EXPECT_DOUBLE_EQ(two.seconds, 2 * 2.0 * 128 * 256 * 1000 / 1e12);
  EXPECT_TRUE(two.clocked);
  EXPECT_DOUBLE_EQ(two.joules, 2.0 * 128 * 101 * 256 * 1000 * 4e-12);
  // With k small it is bound by memory.
  EXPECT_FALSE(m.gemm("g", 12800, 25600, 1).clocked);
  EXPECT_DOUBLE_EQ(m.memory("n", 1e6).seconds, 2e-6);
  EXPECT_DOUBLE_EQ(m.attention("a", 1e9, 0, true).seconds, 25e-6);
  ASSERT_EQ(m.engine("reduce_scatter"), nullptr);
  Op c = m.collective("c", *m.engine("all_gather"), 4, wireBytes("all_gather", 4, 4e6));
  EXPECT_DOUBLE_EQ(c.seconds, 8e-6 + 30e-6);
  EXPECT_EQ(c.sms, 8);
  ASSERT_EQ(c.uses.size(), 2u);
  EXPECT_NEAR(c.uses[0].share, 30.0 / 38, 1e-12);
  EXPECT_NEAR(c.uses[1].share, 6e6 / 38e-6 / 1e12, 1e-12);
  EXPECT_EQ(m.collective("c", *m.engine("all_gather"), 1, 0).seconds, 0);
  EXPECT_EQ(wireBytes("all_reduce", 4, 4e6), 6e6);
  EXPECT_EQ(wireBytes("permute", 4, 4e6), 4e6);
}

TEST(OverlapCostModel, ErrorsNameThePlace) {
  auto says = [](const std::string &from, const std::string &to, const char *what) {
    std::string text = small;
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    CostModelResult result = readCostModel(text, "m.json");
    EXPECT_FALSE(result.model);
    EXPECT_NE(result.error.find(what), std::string::npos) << result.error;
  };
  says("ncclx-machine", "x", "m.json: 'format' is 'ncclx-machine'");
  says("\"version\": 1", "\"version\": 2", "'version' is a number from 1 to 1, found 2");
  says("\"count\": 100", "\"count\": -1", "sm: 'count' is a number from 1 to 65536, found -1");
  says("\"static\"", "\"half\"", "sm: 'sharing' is 'static' or 'dynamic', found 'half'");
  says("\"efficiency\": 0.5", "\"speed\": 0.5", "memory: 'speed' is not known; known are: ");
  says("\"gb_per_s\": 1000", "\"gb_per_s\": true", "memory: 'gb_per_s' is a number");
  says("\"sms\": 8", "\"sms\": 100", "engines[0]: 'sms' is a number from 0 to 99, found 100");
  says("\"link\": 1", "\"link\": 2", "engines[0]: 'uses' says which share of 'link' is used");
  says(
      "\"all_gather\"", "\"all_gathr\"",
      "engines[0]: 'collectives' names what is no collective: 'all_gathr'; they are: all_gather, ");
  says("\"base_us\": 5", "\"base_us\": 1e999", "m.json: ");
  says(", \"source\": \"s\"},\n \"memory\"", "},\n \"memory\"",
       "sm: 'source' is a text, found nothing");
  says("{\"format\"", "[{\"format\"", "m.json: ");
  EXPECT_NE(readCostModel(std::string(100'000, '['), "m").error.find("more than 32 deep"),
            std::string::npos);
  EXPECT_NE(readCostModel("[]", "m").error.find("is an object"), std::string::npos);
}

/// A GEMM of 8192^3 and `count` gathers of 128 MiB between two H200s, in us.
double gemmAndGathers(const char *engineName, int count, bool beside) {
  CostModel cost = machine("h200");
  const Engine *engine = cost.engine("all_gather", engineName);
  Problem problem = cost.problem();
  problem.ops.push_back(cost.gemm("gemm", 8192, 8192, 8192));
  Schedule schedule;
  for (int i = 1; i <= count; ++i) {
    problem.ops.push_back(cost.collective("gather", *engine, 2, 128 << 20));
    schedule.push_back({StepKind::start, unsigned(i)});
    if (!beside)
      schedule.push_back({StepKind::await, unsigned(i)});
  }
  schedule.push_back({StepKind::run, 0});
  for (int i = 1; i <= count && beside; ++i)
    schedule.push_back({StepKind::await, unsigned(i)});
  EXPECT_EQ(check(problem, schedule), std::nullopt);
  double seconds = evaluate(problem, schedule).seconds;
  EXPECT_GE(seconds, floorOf(problem).seconds * (1 - 1e-9));
  return seconds * 1e6;
}

TEST(OverlapEnergy, SerialAndOverlappedRows) {
  struct {
    const char *engine;
    int count;
    bool beside;
    double measured, tolerance;
  } rows[] = {
      {"copy", 1, false, 1915, 0.03}, {"copy", 2, false, 2136, 0.03},
      {"copy", 1, true, 1707, 0.03},  {"copy", 2, true, 1720, 0.03},
      {"nccl", 1, false, 2105, 0.10}, {"nccl", 2, false, 2525, 0.10},
      {"nccl", 1, true, 2052, 0.10},  {"nccl", 2, true, 2434, 0.10},
  };
  for (const auto &row : rows) {
    double predicted = gemmAndGathers(row.engine, row.count, row.beside);
    printf("%-4s x%d %-10s measured %.0f predicted %.0f us (%+.1f %%)\n", row.engine, row.count,
           row.beside ? "overlapped" : "serial", row.measured, predicted,
           (predicted / row.measured - 1) * 100);
    EXPECT_NEAR(predicted / row.measured, 1, row.tolerance)
        << row.engine << " x" << row.count << (row.beside ? " overlapped" : " serial");
  }
  EXPECT_NEAR(gemmAndGathers("copy", 0, false), 1646, 0.01 * 1646);
}

} // namespace
