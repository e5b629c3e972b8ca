//===- DiagnoseTest.cpp - Injected faults are found and named ----------------------------===//
#include "ncclx/Overlap/Diagnose.h"
#include "Strategies.h"
#include "ncclx/Overlap/CostModel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace overlap_test;

namespace {

/// Two gathers, each beside a product, and a kernel in between; the spans are as promised.
struct Fixture {
  Contract contract = {{"all_gather.0", true, false, 100e-6, 100e-6, {1}},
                       {"matmul", false, true, 150e-6, 0, {}},
                       {"generic", false, false, 20e-6, 0, {}},
                       {"all_gather.1", true, false, 100e-6, 80e-6, {4}},
                       {"matmul", false, true, 80e-6, 0, {}}};
  std::vector<TraceSpan> spans = {{"all_gather.0", "all_gather.0", 0, 100e-6},
                                  {"matmul", "compute", 1e-6, 150e-6},
                                  {"generic", "compute", 151e-6, 20e-6},
                                  {"all_gather.1", "all_gather.1", 171e-6, 100e-6},
                                  {"matmul", "compute", 172e-6, 80e-6}};
  Diagnosis run() const { return diagnose(contract, spans, 0.05); }
};

TEST(OverlapDiagnose, AsPromised) {
  Diagnosis d = Fixture().run();
  EXPECT_TRUE(d.findings.empty());
  EXPECT_EQ(d.promised, 2u);
  EXPECT_EQ(d.kept, 2u);
  Fixture slow; // a machine of half the speed breaks no promise
  for (TraceSpan &span : slow.spans) {
    span.start *= 2;
    span.seconds *= 2;
  }
  EXPECT_TRUE(slow.run().findings.empty());
}

TEST(OverlapDiagnose, ExtraKernelIsNamed) {
  Fixture f;
  // Something that nobody promised keeps the second gather until its partner is nearly done.
  f.spans.insert(f.spans.begin() + 3, {"memset", "compute", 171e-6, 70e-6});
  f.spans[4].start = 241e-6;
  Diagnosis d = f.run();
  ASSERT_EQ(d.findings.size(), 1u);
  EXPECT_EQ(d.findings[0].kind, Finding::lost);
  EXPECT_EQ(d.findings[0].op, 3u);
  EXPECT_NE(d.findings[0].text.find("an op that is not in the contract, 'memset'"),
            std::string::npos)
      << d.findings[0].text;
  EXPECT_EQ(d.kept, 1u);
}

TEST(OverlapDiagnose, WaitsAreNamed) {
  Fixture f;
  f.spans[3].start = 252e-6; // behind its partner, as if it waited for it
  Diagnosis d = f.run();
  ASSERT_EQ(d.findings.size(), 1u);
  EXPECT_NE(d.findings[0].text.find("a wait for 'matmul'"), std::string::npos)
      << d.findings[0].text;
  Fixture late;
  late.spans[4].start = 400e-6; // its partner is late, behind nothing
  d = late.run();
  ASSERT_EQ(d.findings.size(), 1u);
  EXPECT_NE(d.findings[0].text.find("'matmul' began 229.0 us late"), std::string::npos)
      << d.findings[0].text;
}

TEST(OverlapDiagnose, HarmIsNamed) {
  Fixture f;
  f.spans[0].seconds = 290e-6; // 100 and 150 apart
  f.spans[1].seconds = 295e-6;
  for (size_t i = 2; i < 5; ++i)
    f.spans[i].start += 145e-6;
  Diagnosis d = f.run();
  ASSERT_EQ(d.findings.size(), 1u);
  EXPECT_EQ(d.findings[0].kind, Finding::harmful);
  EXPECT_EQ(d.findings[0].text,
            "harmful overlap: 'all_gather.0' and 'matmul' took 296.0 us together, "
            "apart they take 250.0 us");
}

// Where most ops are slowed down, the machine is not taken for a slower one: what ran alone says.
TEST(OverlapDiagnose, HarmOfAllPairsIsNamed) {
  Fixture f;
  f.spans = {{"all_gather.0", "all_gather.0", 0, 290e-6},
             {"matmul", "compute", 1e-6, 435e-6},
             {"generic", "compute", 437e-6, 20e-6},
             {"all_gather.1", "all_gather.1", 460e-6, 290e-6},
             {"matmul", "compute", 461e-6, 240e-6}};
  Diagnosis d = f.run();
  ASSERT_EQ(d.findings.size(), 2u);
  for (const Finding &finding : d.findings)
    EXPECT_EQ(finding.kind, Finding::harmful) << finding.text;
  EXPECT_EQ(d.kept, 0u);
}

TEST(OverlapDiagnose, OtherOpsAreNamed) {
  Fixture f;
  f.spans.pop_back();
  Diagnosis d = f.run();
  ASSERT_EQ(d.findings.size(), 1u);
  EXPECT_EQ(d.findings[0].kind, Finding::missing);
  EXPECT_EQ(d.findings[0].text, "the trace has 1 spans of 'matmul', the contract 2");
}

// A whole layer: what the model plays is what the contract says, and each gather that is held back
// is found.
TEST(OverlapDiagnose, EveryGatherOfALayer) {
  CostModel cost = machine("h100-mesh");
  Problem problem = cost.problem();
  addBackward(problem, cost, {llama70B, 4096, 4}, 2, {});
  for (Op &op : problem.ops) { // names as functions have them
    bool gather = op.name.find("AG") != std::string::npos;
    op.name = op.collective ? (gather ? "all_gather of" : "reduce_scatter of") : "k." + op.name;
  }
  Schedule schedule = solve(problem, serialSchedule(problem), {}).schedule;
  Timeline line = evaluate(problem, schedule);
  Contract contract = contractOf(problem, schedule, line);
  std::vector<TraceSpan> spans;
  size_t at = 0;
  for (Step step : schedule)
    if (step.kind != StepKind::await) {
      const Promise &promise = contract[at++];
      spans.push_back({promise.name, promise.collective ? promise.name : "compute",
                       line.begin[step.op], line.end[step.op] - line.begin[step.op]});
    }
  Diagnosis good = diagnose(contract, spans, 0.05);
  EXPECT_TRUE(good.findings.empty()) << good.findings[0].text;
  EXPECT_GE(good.promised, 10u);
  for (size_t i = 0; i < contract.size(); ++i) {
    if (!contract[i].collective || contract[i].beside.empty())
      continue;
    std::vector<TraceSpan> faulty = spans;
    faulty[i].start = 1; // long behind everything
    Diagnosis bad = diagnose(contract, faulty, 0.05);
    bool named = false;
    for (const Finding &finding : bad.findings)
      named |= finding.kind == Finding::lost && finding.op == i;
    EXPECT_TRUE(named) << contract[i].name;
  }
}

TEST(OverlapDiagnose, Kineto) {
  const char *gather = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage)";
  std::string events = R"({"ph": "M", "name": "process_name", "args": {"name": "python"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 900, "pid": 7, "tid": 1})";
  auto kernel = [&](const std::string &name, double ts, double dur) {
    events += fmt::format(R"(, {{"ph": "X", "cat": "kernel", "name": "{}", "ts": {}, "dur": {}}})",
                          name, ts, dur);
  };
  kernel(gather, 10, 100);
  kernel("sm90_xmma_gemm_bf16bf16", 11, 150);
  kernel("vectorized_elementwise", 161, 20);
  kernel("unroll_kernel", 181, 79);
  kernel("nvjet_tst_128x256", 182, 80);
  kernel(gather, 260, 100);
  TraceResult trace =
      readTrace("{\"schemaVersion\": 1, \"traceEvents\": [" + events + "]}", "k.json", 0);
  ASSERT_TRUE(trace.spans) << trace.error;
  Diagnosis d = diagnose(Fixture().contract, *trace.spans, 0.05);
  ASSERT_EQ(d.findings.size(), 1u);
  EXPECT_EQ(d.kept, 1u);
  EXPECT_NE(d.findings[0].text.find("an op that is not in the contract, 'unroll_kernel'"),
            std::string::npos)
      << d.findings[0].text;
}

TEST(OverlapDiagnose, WrongTraces) {
  for (const char *text : {"", "{", "17", "{}", "[]", R"([{"ph": "X", "ts": 1}])",
                           R"([{"ph": "X", "name": "a", "ts": 1, "dur": -1}])"}) {
    TraceResult trace = readTrace(text, "t.json", 0);
    EXPECT_FALSE(trace.spans) << text;
    EXPECT_EQ(trace.error.rfind("t.json: ", 0), 0u) << trace.error;
  }
}

TEST(OverlapDiagnose, RatesAreOfWhatRanAlone) {
  Fixture f;
  Rates none = f.run().rates; // both gathers and both products stand beside another
  EXPECT_FALSE(none.products);
  EXPECT_TRUE(none.collectives.empty());
  for (unsigned i = 0; i < f.spans.size(); ++i) {
    f.spans[i].start = i * 1e-3;
    f.spans[i].seconds *= f.spans[i].category == "compute" ? 1.25 : 3;
  }
  Rates rates = f.run().rates;
  ASSERT_TRUE(rates.products);
  EXPECT_NEAR(*rates.products, 1.25, 1e-9);
  ASSERT_EQ(rates.collectives.size(), 1u);
  EXPECT_NEAR(rates.collectives["all_gather"], 3, 1e-9);
}

TEST(OverlapDiagnose, CorrectsTheMachineFile) {
  const char *text = R"({"format": "ncclx-machine", "version": 1, "name": "m", "comment": "kept",
    "sm": {"count": 132, "sharing": "static", "source": "s"},
    "memory": {"gb_per_s": 3000, "source": "s"},
    "gemm": {"tflops": 500, "pj_per_flop": 1, "source": "s"},
    "attention": {"forward_tflops": 500, "backward_tflops": 420, "source": "s"},
    "engines": [{"name": "a", "collectives": ["all_gather"], "gb_per_s": 300, "source": "s"},
                {"name": "b", "collectives": ["all_gather", "all_reduce"], "gb_per_s": 200,
                 "base_us": 8, "source": "s"}]})";
  Rates rates;
  EXPECT_EQ(correctMachine(text, "m.json", rates, "t").error,
            "nothing of the contract ran alone: no coefficient is known better");
  rates.products = 1.25;
  rates.collectives = {{"all_reduce", 2}};
  Corrected corrected = correctMachine(text, "m.json", rates, "trace t");
  ASSERT_TRUE(corrected.text) << corrected.error;
  CostModel before = *readCostModel(text, "m.json").model;
  CostModel after = *readCostModel(*corrected.text, "m.json").model;
  EXPECT_NEAR(after.gemmFlops, 400e12, 1e3);
  // What a product draws was measured at the rate that the file named.
  EXPECT_NEAR(after.gemmJoulesPerFlop, before.gemmJoulesPerFlop * 0.64, 1e-18);
  EXPECT_EQ(after.engines[0].bytesPerSecond, 300e9);
  EXPECT_NEAR(after.engines[1].bytesPerSecond, 100e9, 1);
  EXPECT_NEAR(after.engines[1].base, 16e-6, 1e-12);
  EXPECT_NE(corrected.text->find("s; times 1.25 by trace t"), std::string::npos);
  EXPECT_NE(corrected.text->find("kept"), std::string::npos);
  EXPECT_NE(correctMachine("{}", "m.json", rates, "t").error.find("m.json"), std::string::npos);
}

} // namespace
