//===- Report.cpp - What ncclx-run says at its end ------------------------------------------===//
#include "Report.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::ncclx;

static std::string bytesText(int64_t bytes) {
  static const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
  return text;
}

static auto microseconds(double seconds) { return llvm::format("%12.2f", seconds * 1e6); }

void Report::print(llvm::raw_ostream &os) const {
  os << "graph     " << graphFile << " @" << function << ", " << ranks << " ranks\n";
  if (!sizes.empty())
    os << "sizes     " << sizes << "\n";
  os << "target    " << topology << " (" << topology::name(rate) << " rates)\n";
  os << "proof     " << proof.str() << "\n";
  if (branches > 1)
    os << (staged ? "stages    " : "branches  ") << branches << ", each proved; predictions of the "
       << (staged ? "graph are of one play of " : "whole graph are of ") << slowest
       << ", the slowest\n";
  os << "memory    " << bytesText(inputBytes + outputBytes + scratchBytes)
     << " a rank at the peak: " << bytesText(inputBytes) << " inputs, " << bytesText(outputBytes)
     << " outputs, " << bytesText(scratchBytes) << " scratch\n\n";

  os << "On the target, predicted (us):\n";
  os << llvm::format("  %-18s %-9s %12s %12s %12s %7s %12s  %s\n", "collective", "algorithm",
                     "bytes", "alone", "bound", "ratio", "exposed", "bound by");
  for (auto [i, c] : llvm::enumerate(collectives)) {
    os << llvm::format("  %-18s %-9s %12lld ", c.graph.name.c_str(), c.graph.algorithm.c_str(),
                       (long long)c.graph.bytes)
       << microseconds(c.graph.aloneSeconds) << " " << microseconds(c.bound) << " ";
    if (c.bound > 0)
      os << llvm::format("%7.2f", c.graph.aloneSeconds / c.bound);
    else
      os << llvm::format("%7s", "-");
    os << " " << microseconds(target.exposed[i]) << "  " << c.argument << "\n";
  }
  os << "  whole graph " << llvm::format("%.2f", target.makespan * 1e6) << " us, of it compute "
     << llvm::format("%.2f", target.compute * 1e6) << " us\n\n";

  os << "On this machine (" << machine << (machineMeasured ? ", measured now" : "") << ", "
     << transport << "), predicted" << (hasRun() ? " and measured" : "") << " (us):\n";
  if (hasRun())
    os << llvm::format("  %-18s %12s %12s %7s\n", "", "predicted", "measured", "ratio");
  auto row = [&](StringRef name, double predictedSeconds, double measuredSeconds) {
    os << llvm::format("  %-18s ", name.str().c_str()) << microseconds(predictedSeconds);
    if (!hasRun()) {
      os << "\n";
      return;
    }
    os << " " << microseconds(measuredSeconds) << " ";
    if (predictedSeconds > 0)
      os << llvm::format("%7.2f\n", measuredSeconds / predictedSeconds);
    else
      os << llvm::format("%7s\n", "-");
  };
  if (!measured.exposed.empty()) { // GPUs tell the time of a whole run alone
    for (auto [i, c] : llvm::enumerate(collectives))
      row(c.graph.name, predicted.exposed[i], measured.exposed[i]);
    row("compute", predicted.compute, measured.compute);
  }
  row("whole graph", predicted.makespan, measured.makespan);
  if (clockErrorSeconds > 0)
    os << llvm::format("  (the clocks of two ranks in the timeline agree within %.2f us)\n",
                       clockErrorSeconds * 1e6);
  if (burstSeconds > 0)
    row("  back to back", predicted.makespan, burstSeconds);
  for (auto &[mode, seconds] : ncclSeconds)
    row("  NCCL " + mode, 0, seconds);
  if (graphSeconds > 0)
    row("  in a graph", predicted.makespan, graphSeconds);
  for (auto &[mode, seconds] : ncclGraphSeconds)
    row("  NCCL " + mode, 0, seconds);

  if (hasRun())
    os << "\nAgainst the reference interpreter:\n";
  for (const Output &output : outputs) {
    os << "  result " << output.index << " " << output.type << ": ";
    if (output.different)
      os << output.different << " of " << output.elements << " elements differ; "
         << output.firstDifference << "\n";
    else if (output.tolerance > 0)
      os << output.elements << " elements on " << ranks
         << llvm::format(" ranks, none off by more than %.3g of %.3g allowed\n", output.largest,
                         output.tolerance);
    else
      os << output.elements << " elements on " << ranks << " ranks, all bits equal\n";
    if (output.unspecified)
      os << "    " << output.unspecified << " more are padding, which is unspecified\n";
  }
  os << llvm::format(
      "\ncompiled in %.2f s, proved in %.3f s, made code in %.2f s, interpreted in %.2f s\n",
      compileSeconds, proveSeconds, jitSeconds, interpretSeconds);
}

static void printTiming(llvm::json::OStream &json, StringRef key, const Timing &timing,
                        const std::vector<CollectiveReport> &collectives) {
  json.attributeObject(key, [&] {
    json.attribute("makespan_us", timing.makespan * 1e6);
    json.attribute("compute_us", timing.compute * 1e6);
    json.attributeObject("exposed_us", [&] {
      for (auto [i, c] : llvm::enumerate(collectives))
        if (i < timing.exposed.size())
          json.attribute(c.graph.name, timing.exposed[i] * 1e6);
    });
  });
}

void Report::printJson(llvm::raw_ostream &os, const std::string &error) const {
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("schema", "ncclx-run/1");
    json.attribute("ok", error.empty());
    if (!error.empty())
      json.attribute("error", error);
    json.attribute("graph", graphFile);
    json.attribute("function", function);
    if (!sizes.empty())
      json.attribute("sizes", sizes);
    json.attribute("ranks", ranks);
    json.attribute("topology", topology);
    json.attribute("rate", topology::name(rate));
    json.attribute("transport", transport);
    if (branches > 1) {
      json.attribute(staged ? "stages" : "branches", int64_t(branches));
      json.attribute(staged ? "slowest_stage" : "slowest_branch", slowest);
    }
    json.attributeArray("collectives", [&] {
      for (const CollectiveReport &c : collectives)
        json.object([&] {
          json.attribute("name", c.graph.name);
          json.attribute("kind", c.graph.kind);
          json.attribute("algorithm", c.graph.algorithm);
          json.attribute("bytes", c.graph.bytes);
          json.attribute("group_size", int64_t(c.graph.group.size()));
          json.attribute("predicted_us", c.graph.aloneSeconds * 1e6);
          json.attribute("bound_us", c.bound * 1e6);
          json.attribute("bound_by", c.argument);
          if (c.bound > 0)
            json.attribute("ratio", c.graph.aloneSeconds / c.bound);
        });
    });
    json.attributeObject("proof", [&] {
      json.attribute("verdict", ctran::machine::toString(proof.verdict));
      json.attribute("text", proof.str());
      json.attribute("mode", proof.mode == ctran::machine::ProofMode::Representative
                                 ? "representative"
                                 : "all_ranks");
      json.attribute("processes", proof.processes);
      json.attribute("runs", proof.runs);
      json.attribute("events", proof.events);
    });
    json.attributeObject("memory", [&] {
      json.attribute("input_bytes", inputBytes);
      json.attribute("output_bytes", outputBytes);
      json.attribute("scratch_bytes", scratchBytes);
      json.attribute("peak_bytes", inputBytes + outputBytes + scratchBytes);
    });
    printTiming(json, "target", target, collectives);
    json.attributeObject("this_machine", [&] {
      json.attribute("name", machine);
      json.attribute("calibrated_now", machineMeasured);
      printTiming(json, "predicted", predicted, collectives);
      printTiming(json, "measured", measured, collectives);
      json.attributeArray("runs_us", [&] {
        for (double seconds : runSeconds)
          json.value(seconds * 1e6);
      });
      if (clockErrorSeconds > 0)
        json.attribute("clock_error_us", clockErrorSeconds * 1e6);
      if (burstSeconds > 0)
        json.attribute("burst_us", burstSeconds * 1e6);
      if (graphSeconds > 0)
        json.attribute("graph_us", graphSeconds * 1e6);
      auto byMode = [&](const char *key, auto &all) {
        if (!all.empty())
          json.attributeObject(key, [&] {
            for (auto &[mode, seconds] : all)
              json.attribute(mode, seconds * 1e6);
          });
      };
      byMode("nccl_us", ncclSeconds);
      byMode("nccl_graph_us", ncclGraphSeconds);
    });
    json.attributeArray("outputs", [&] {
      for (const Output &output : outputs)
        json.object([&] {
          json.attribute("index", output.index);
          json.attribute("type", output.type);
          json.attribute("elements", output.elements);
          json.attribute("different", output.different);
          json.attribute("unspecified", output.unspecified);
          if (output.tolerance > 0) {
            json.attribute("tolerance", output.tolerance);
            json.attribute("largest_difference", output.largest);
          }
          if (output.different)
            json.attribute("first_difference", output.firstDifference);
        });
    });
    json.attributeObject("seconds", [&] {
      json.attribute("compile", compileSeconds);
      json.attribute("prove", proveSeconds);
      json.attribute("generate", jitSeconds);
      json.attribute("interpret", interpretSeconds);
    });
  });
  os << "\n";
}
