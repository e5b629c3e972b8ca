//===- overlap_bench.cpp - Exposed communication of Llama layers ----------------------===//
//
// Prints what each strategy leaves exposed: overlap_bench [MACHINE...], machines of
// examples/machines; none: the rows of the survey's second table, those that it leaves out, and the
// measured H200. JSON lines on stdout, a table on stderr.
//
//===----------------------------------------------------------------------===//
#include "Strategies.h"

#include <fmt/format.h>

using namespace overlap_test;

namespace {

void row(const char *machineName, const CostModel &cost, const Case &c, const double *listed) {
  fmt::print(stderr, "{:<14} {:<4} {:>5} {}", machineName, c.model.name, c.tokens, c.t);
  std::string json =
      fmt::format(R"({{"bench": "overlap", "machine": "{}", "model": "{}", "tokens": {}, "t": {})",
                  machineName, c.model.name, c.tokens, c.t);
  double bulk = 0;
  for (Strategy strategy : allStrategies) {
    PerLayer layer = perLayer(cost, c, strategy, {}, std::nullopt, thoroughBraid);
    bool isGeneral = strategy >= Strategy::divisible;
    // The bound is one of kernels at the highest clock: below it more hides.
    bool isBound = isGeneral && cost.power.capWatts <= 0;
    if (strategy == Strategy::bulk)
      bulk = layer.seconds;
    std::string against;
    if (listed && listed[0] > 0 && strategy != Strategy::braid) {
      double want = listed[int(strategy)], got = layer.exposed * 1e6;
      against = want > 0 ? fmt::format("({:+.1f}%)", (got / want - 1) * 100) : fmt::format("(0)");
    }
    if (isBound)
      against += fmt::format(" >={:.0f}", layer.least * 1e6);
    fmt::print(stderr, " {:>7.0f}{:<{}}", layer.exposed * 1e6, against, isGeneral ? 16 : 9);
    std::string name = toString(strategy);
    json += fmt::format(R"(, "{}": {{"exposed_us": {:.1f}, "layer_us": {:.1f}{}{}}})", name,
                        layer.exposed * 1e6, layer.seconds * 1e6,
                        isBound ? fmt::format(R"(, "least_us": {:.1f})", layer.least * 1e6) : "",
                        bulk > 0 ? fmt::format(R"(, "against_bulk": {:.3f})", bulk / layer.seconds)
                                 : "");
  }
  fmt::print(stderr, "\n");
  fmt::print("{}}}\n", json);
  std::fflush(stdout);
}

/// The survey's first table: bulk against none and AG-WGRAD against bulk for collectives that take
/// SMs, kernels that leave them the SMs to their end, and kernels that take them back.
void engines(const char *machineName, const Model &model, double tokens, int64_t t) {
  fmt::print(stderr, "{:<14} {:<4} {:>5} {}", machineName, model.name, tokens, t);
  for (const char *engine : {"nccl-24", "nccl-16", "nccl-8", "nccl-4", "free"}) {
    for (Sharing sharing : {Sharing::fixed, Sharing::dynamic}) {
      CostModel cost = machine(machineName);
      cost.sharing = sharing;
      BuildOptions options{engine, engine, engine, 0};
      Case c{model, tokens, t};
      double none = perLayer(cost, c, Strategy::none, options).seconds;
      double bulk = perLayer(cost, c, Strategy::bulk, options).seconds;
      double sinks = perLayer(cost, c, Strategy::agWgrad, options).seconds;
      fmt::print(stderr, " {:.3f},{:.3f}{}", none / bulk, bulk / sinks,
                 sharing == Sharing::fixed ? " /" : " |");
      fmt::print(
          R"({{"bench": "overlap-sms", "machine": "{}", "model": "{}", "tokens": {}, "t": {}, "engine": "{}", "sharing": "{}", "bulk_against_none": {:.3f}, "ag_wgrad_against_bulk": {:.3f}}})"
          "\n",
          machineName, model.name, tokens, t, engine,
          sharing == Sharing::fixed ? "static" : "dynamic", none / bulk, bulk / sinks);
    }
  }
  fmt::print(stderr, "\n");
}

} // namespace

int main(int count, char **arguments) {
  try {
    fmt::print(stderr, "exposed us a layer (against the survey's figure)\n{:<27}", "");
    for (Strategy strategy : allStrategies)
      fmt::print(stderr, " {:>{}}", toString(strategy), strategy >= Strategy::divisible ? 23 : 16);
    fmt::print(stderr, "\n");
    std::vector<std::string> names(arguments + 1, arguments + count);
    if (names.empty()) {
      for (const auto *rows : {&surveyRows, &unlistedRows})
        for (const SurveyRow &r : *rows)
          row(r.machine, machine(r.machine), {r.model, r.tokens, r.t}, r.exposed);
      fmt::print(
          stderr,
          "\n>=: no order of these ops, however weight gradients are cut, leaves less (where "
          "nothing slows down what runs beside it).\nForward fill of 8B at t = 8: the "
          "survey's figures are of no schedule. Weight gradients are too short for the "
          "backward alone;\nit counts 4 u of the forward, and not what the backward then "
          "leaves (SlowOverlapLayer.ForwardFillOfShortWeightGradients).\nBraided, the "
          "forward beside the backward's other kernels, the layer leaves less than they "
          "say.\n\n");
      names = {"h200"};
    }
    for (const std::string &name : names)
      for (const Model &model : {llama8B, llama70B})
        for (double tokens : {4096.0, 8192.0})
          for (int64_t t : {2, 4, 8})
            row(name.c_str(), machine(name), {model, tokens, t}, nullptr);
    fmt::print(stderr,
               "\nbulk against none, AG-WGRAD against bulk: static / dynamic sharing, 24, 16, "
               "8, 4 and 0 SMs\n");
    for (const SurveyRow &r : surveyRows)
      if (count == 1 && r.t > 2)
        engines(r.machine, r.model, r.tokens, r.t);
  } catch (const std::exception &e) {
    fmt::print(stderr, "overlap_bench: {}\n", e.what());
    return 1;
  }
}
