//===- Strategies.cpp - Exposed communication of a layer, by strategy ---------------===//
#include "Strategies.h"
#include "Bound.h"

#include <algorithm>
#include <stdexcept>

using namespace overlap_test;

const char *overlap_test::toString(Strategy strategy) {
  switch (strategy) {
  case Strategy::none:
    return "none";
  case Strategy::bulk:
    return "bulk";
  case Strategy::agWgrad:
    return "ag-wgrad";
  case Strategy::divisible:
    return "divisible";
  case Strategy::fill:
    return "forward-fill";
  case Strategy::braid:
    return "braid";
  }
  return "";
}

// K4 at t = 2 stands in the survey as "any": 611 to 2092 us, 60 and 40 % of it.
const std::vector<SurveyRow> overlap_test::surveyRows = {
    {"h100-mesh", llama8B, 4096, 4, {926, 582, 437, 370, 67}},
    {"h100-mesh", llama8B, 8192, 4, {1666, 1016, 744, 667, 0}},
    {"h100-mesh", llama70B, 4096, 4, {1666, 1000, 667, 667, 0}},
    {"h100-mesh", llama70B, 8192, 4, {3147, 1888, 1259, 1259, 0}},
    {"h100-mesh", llama8B, 4096, 2, {611, 611 * .6, 611 * .4, 611 * .4, 0}},
    {"h100-nvswitch", llama8B, 4096, 8, {1301, 961, 842, 787, 520}},
    {"h100-nvswitch", llama8B, 8192, 8, {2279, 1665, 1427, 1285, 912}},
    {"h100-nvswitch", llama70B, 4096, 8, {2279, 1559, 1226, 912, 571}},
    {"h100-nvswitch", llama70B, 8192, 8, {4237, 2861, 2226, 1695, 853}},
    {"h100-nvswitch", llama70B, 8192, 4, {3541, 2125, 1417, 1417, 0}},
};
const std::vector<SurveyRow> overlap_test::unlistedRows = {
    {"h100-mesh", llama8B, 8192, 2, {}},
    {"h100-mesh", llama70B, 4096, 2, {}},
    {"h100-mesh", llama70B, 8192, 2, {2092, 2092 * .6, 2092 * .4, 2092 * .4, 0}},
    {"h100-nvswitch", llama8B, 4096, 2, {}},
    {"h100-nvswitch", llama8B, 8192, 2, {}},
    {"h100-nvswitch", llama70B, 4096, 2, {}},
    {"h100-nvswitch", llama70B, 8192, 2, {}},
    {"h100-nvswitch", llama8B, 4096, 4, {}},
    {"h100-nvswitch", llama8B, 8192, 4, {}},
    {"h100-nvswitch", llama70B, 4096, 4, {}},
};

SurveyArithmetic overlap_test::surveyArithmetic(const CostModel &cost, const Case &c) {
  const Model &m = c.model;
  const double q = m.heads * m.headDim, kv = m.kvHeads * m.headDim;
  auto product = [&](double width) {
    return cost.gemm("", c.tokens, width / double(c.t), m.hidden).seconds * 1e6;
  };
  const double u = cost.collective("", *cost.engine("all_gather"), c.t,
                                   wireBytes("all_gather", c.t, c.tokens * m.hidden * 2))
                       .seconds *
                   1e6;
  const double qkv = product(q + 2 * kv), o = product(q), fc1 = product(2 * m.ffn),
               fc2 = product(m.ffn);
  auto shortOf = [&](double kernel) { return std::max(0.0, u - kernel); };
  const double bulk = 6 * u + 2 * shortOf(fc1) + 2 * shortOf(qkv);
  const double sinks = qkv + o + fc1 + fc2, need = 4 * u + shortOf(fc1) + shortOf(qkv);
  const double unspent = std::max(0.0, need - sinks);
  return {{10 * u, bulk, bulk - 2 * u + shortOf(fc2) + shortOf(o), 4 * u + unspent,
           std::max(0.0, 4 * u - std::max(0.0, sinks - need))},
          unspent};
}

CostModel overlap_test::machine(const std::string &name) {
  CostModelResult result = readCostModelFile(NCCLX_MACHINES "/" + name + ".json");
  if (!result.model)
    throw std::runtime_error(result.error);
  return *result.model;
}

namespace {

struct Stack {
  double exposed = 0, seconds = 0;
  int64_t peak = 0;
  double least = 0; ///< exposed
};

Stack measure(const Problem &problem, const Schedule &schedule) {
  if (std::optional<std::string> wrong = check(problem, schedule))
    throw std::runtime_error(*wrong);
  Timeline line = evaluate(problem, schedule);
  return {line.totalExposed(), line.seconds, peakBytes(problem, schedule)};
}

Stack stack(const CostModel &cost, const Case &c, Strategy strategy, BuildOptions options,
            int layers, SolveOptions solving) {
  bool cut = strategy >= Strategy::divisible;
  if (cut) // two pieces fill a slot
    options.pieceSeconds =
        cost.collective("", *cost.engine("all_gather", options.gather), c.t,
                        wireBytes("all_gather", c.t, c.tokens * c.model.hidden * 2))
            .seconds /
        2;
  if (cut && strategy != Strategy::divisible) {
    Problem both = stackOf(cost, c, strategy, layers, options);
    Stack found = measure(both, solve(both, serialSchedule(both), solving).schedule);
    found.least = leastExposed(both);
    return found;
  }
  Problem backward = cost.problem();
  addBackward(backward, cost, c, layers, options);
  Problem forward = cost.problem();
  addForward(forward, cost, c, layers, options);
  Schedule f = serialSchedule(forward), b = serialSchedule(backward);
  if (strategy == Strategy::divisible) {
    f = solve(forward, f, solving).schedule;
    b = solve(backward, b, solving).schedule;
  }
  if (strategy == Strategy::bulk || strategy == Strategy::agWgrad) {
    f = pairBulk(forward, f, solving);
    b = pairBulk(backward, b, solving);
  }
  if (strategy == Strategy::agWgrad)
    b = pairSinks(backward, b, solving);
  Stack one = measure(forward, f), two = measure(backward, b);
  Stack sum{one.exposed + two.exposed, one.seconds + two.seconds, std::max(one.peak, two.peak)};
  if (strategy == Strategy::divisible)
    sum.least = leastExposed(forward) + leastExposed(backward);
  return sum;
}

PerLayer difference(const Stack &four, const Stack &two) {
  return {(four.exposed - two.exposed) / 2, (four.seconds - two.seconds) / 2,
          double(four.peak - two.peak) / 2, (four.least - two.least) / 2, four.exposed};
}

} // namespace

Problem overlap_test::stackOf(const CostModel &cost, const Case &c, Strategy strategy, int layers,
                              BuildOptions options) {
  Problem problem = cost.problem();
  unsigned last = addBackward(problem, cost, c, layers, options);
  addForward(problem, cost, c, layers, options,
             strategy == Strategy::fill ? std::optional(last) : std::nullopt);
  return problem;
}

PerLayer overlap_test::perLayer(const CostModel &cost, const Case &c, Strategy strategy,
                                const BuildOptions &options, std::optional<int64_t> memoryBudget,
                                uint64_t braid) {
  SolveOptions solving;
  solving.memoryBudget = memoryBudget;
  solving.margin = -1; // what a strategy does is shown, good or bad
  solving.effort = strategy == Strategy::braid ? braid : 50'000;
  return difference(stack(cost, c, strategy, options, 4, solving),
                    stack(cost, c, strategy, options, 2, solving));
}

PerLayer overlap_test::general(const CostModel &cost, const Case &c, const BuildOptions &options) {
  auto run = [&](int layers) {
    Problem problem = cost.problem();
    unsigned last = addBackward(problem, cost, c, layers, options);
    addForward(problem, cost, c, layers, options, last);
    SolveOptions solving;
    solving.effort = 30'000;
    return measure(problem, solve(problem, serialSchedule(problem), solving).schedule);
  };
  return difference(run(4), run(2));
}
