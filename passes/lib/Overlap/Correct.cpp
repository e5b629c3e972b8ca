//===- Correct.cpp - Measured coefficients into a machine file ----------------------------===//
#include "ncclx/Overlap/CostModel.h"
#include "ncclx/Overlap/Diagnose.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <fmt/format.h>

using namespace mlir::ncclx::overlap;
using llvm::json::Object;

/// Sets `key` to `factor` times what it is, where it stands.
static void scale(Object &object, llvm::StringRef key, double factor) {
  if (std::optional<double> value = object.getNumber(key))
    object[key] = *value * factor;
}

static void cite(Object &object, double ratio, llvm::StringRef source) {
  object["source"] = fmt::format(
      "{}; times {:.4g} by {}", object.getString("source").value_or("").str(), ratio, source.str());
}

Corrected mlir::ncclx::overlap::correctMachine(llvm::StringRef text, llvm::StringRef fileName,
                                               const Rates &rates, llvm::StringRef source) {
  CostModelResult before = readCostModel(text, fileName);
  if (!before.model)
    return {std::nullopt, before.error};
  llvm::json::Value value = llvm::cantFail(llvm::json::parse(text));
  Object &root = *value.getAsObject();
  if (rates.products) {
    Object &gemm = *root.getObject("gemm");
    // Energy was measured where it was measured: at the flops of the file, if it names no others.
    if (gemm.getNumber("pj_per_flop") && !gemm.getNumber("pj_measured_at_tflops"))
      gemm["pj_measured_at_tflops"] = *gemm.getNumber("tflops");
    scale(gemm, "tflops", 1 / *rates.products);
    cite(gemm, *rates.products, source);
  }
  std::map<const Engine *, std::vector<double>> ratios;
  for (const auto &[kind, ratio] : rates.collectives)
    if (const Engine *engine = before.model->engine(kind))
      ratios[engine].push_back(ratio);
  for (auto &[engine, list] : ratios) {
    std::nth_element(list.begin(), list.begin() + list.size() / 2, list.end());
    double ratio = list[list.size() / 2];
    size_t place = engine - before.model->engines.data();
    Object &object = *(*root.getArray("engines"))[place].getAsObject();
    scale(object, "gb_per_s", 1 / ratio);
    scale(object, "base_us", ratio);
    scale(object, "per_peer_us", ratio);
    cite(object, ratio, source);
  }
  if (!rates.products && ratios.empty())
    return {std::nullopt, "nothing of the contract ran alone: no coefficient is known better"};
  std::string out = llvm::formatv("{0:2}\n", value);
  if (CostModelResult after = readCostModel(out, fileName); !after.model)
    return {std::nullopt, "what was measured is beyond what the file may say: " + after.error};
  return {std::move(out), ""};
}
