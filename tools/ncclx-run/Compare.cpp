//===- Compare.cpp - Outputs against the reference interpreter ---------------------------===//
#include "Compare.h"

#include "Tolerance.h"
#include "ncclx/Reference/Data.h"
#include "ncclx/Reference/Interpreter.h"

#include <cstring>

using namespace mlir;
using namespace mlir::ncclx;

/// Where a value of `bytes` lies in the input or output window of a written program: at its start,
/// or, where the window is larger, as the own shard.
static int64_t shardOffset(Compilation &compilation, int64_t rank, bool input, int64_t bytes) {
  for (const HostPlan::Window &window : compilation.plan().windows) {
    if (window.role == ctran::WindowRole::Scratch ||
        window.role == (input ? ctran::WindowRole::Output : ctran::WindowRole::Input))
      continue;
    return int64_t(window.bytes) == bytes ? 0 : compilation.memberOf(rank) * bytes;
  }
  return 0;
}

/// The part that a written program's input window holds of what it is filled with.
static void fillShard(Compilation &compilation, uint64_t seed, int64_t rank, int64_t argument,
                      int64_t bytes, void *data) {
  for (const HostPlan::Window &window : compilation.plan().windows) {
    if (window.argument != argument ||
        (window.role != ctran::WindowRole::Input && window.role != ctran::WindowRole::InOut))
      continue;
    std::vector<char> whole(window.bytes);
    fillInputs(seed, rank, argument, window.type, whole.data(), /*exact=*/true);
    memcpy(data, whole.data() + shardOffset(compilation, rank, true, bytes), bytes);
  }
}

bool mlir::ncclx::compareWithReference(Compilation &compilation, const Execution &execution,
                                       const ExecuteOptions &options, Report &report,
                                       std::string &error) {
  FailureOr<std::unique_ptr<Interpreter>> interpreter =
      Interpreter::create(compilation.graph(), compilation.function(), compilation.ranks());
  if (failed(interpreter)) {
    error = "the reference interpreter does not take the graph";
    return false;
  }
  ArrayRef<Type> types = (*interpreter)->getTypes();
  size_t inputs = (*interpreter)->getNumInputs();
  std::vector<std::vector<std::vector<uint8_t>>> storage(compilation.ranks());
  std::vector<std::vector<void *>> buffers(compilation.ranks());
  for (int64_t rank = 0; rank < compilation.ranks(); ++rank)
    for (auto [i, type] : llvm::enumerate(types)) {
      storage[rank].emplace_back(std::max<int64_t>(1, getDenseBytes(type)), 0xff);
      void *data = storage[rank].back().data();
      if (i < inputs && compilation.isProgram())
        fillShard(compilation, options.seed, rank, i, getDenseBytes(type), data);
      else if (i < inputs)
        fillArgument(options, options.seed, rank, i, type, data);
      buffers[rank].push_back(data);
    }
  if (llvm::Error failed = (*interpreter)->run(buffers)) {
    error = "the reference interpreter: " + llvm::toString(std::move(failed));
    return false;
  }
  auto function = compilation.graph().lookupSymbol<func::FuncOp>(compilation.function());
  for (size_t i = inputs; i < types.size(); ++i) {
    Report::Output output;
    output.index = i - inputs;
    double relative = options.reordered ? productTolerance(function, i - inputs) : 0;
    llvm::raw_string_ostream(output.type) << types[i];
    for (int64_t rank = 0; rank < compilation.ranks(); ++rank) {
      auto *found = static_cast<const char *>(execution.output(rank, i - inputs));
      if (compilation.isProgram())
        found += shardOffset(compilation, rank, false, getDenseBytes(types[i]));
      // Of whole numbers a product is exact, but for the sign of a zero.
      double tolerance =
          options.exact ? 0 : relative * largestMagnitude(types[i], buffers[rank][i]);
      Comparison c = compare(types[i], buffers[rank][i], found, relative > 0 ? tolerance : -1);
      output.elements += c.count;
      output.tolerance = std::max(output.tolerance, tolerance);
      output.largest = std::max(output.largest, c.largest);
      if (!c.equal() && output.firstDifference.empty())
        output.firstDifference = "rank " + std::to_string(rank) + ": " + c.describe(types[i]);
      output.different += c.different;
    }
    report.outputs.push_back(output);
  }
  return true;
}
