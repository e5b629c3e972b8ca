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

/// Does some collective leave rows of its result unspecified on some rank?
static bool leavesPadding(ModuleOp graph) {
  WalkResult walked = graph.walk([](CollectiveOpInterface op) {
    Dataflow flow = op.getDataflow();
    if (!flow.inCut || flow.outCut || flow.isCounted())
      return WalkResult::advance();
    for (ArrayRef<int64_t> group : lookupGrid(op).getGroups(op.getAxes(), op.getGroupsAttr()))
      if (op.getInputType().getDimSize(*flow.inCut) % int64_t(group.size()))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return walked.wasInterrupted();
}

/// What padding is filled with in turn: the extremes of every type, so that what depends on it
/// shows, be it by min or max.
static constexpr uint8_t fills[] = {0xff, 0x00, 0x7f, 0x80};

namespace {
/// One value of one rank, as each filling of padding gives it.
class Reference {
public:
  Reference(Type type) : bytes(getDenseBytes(type)) {
    auto shaped = dyn_cast<ShapedType>(type);
    int64_t elements = shaped ? shaped.getNumElements() : 1;
    width = elements ? std::max<int64_t>(1, bytes / elements) : 1;
  }
  void *fill(uint8_t byte) { return runs.emplace_back(std::max<int64_t>(1, bytes), byte).data(); }
  const uint8_t *data() const { return runs.front().data(); }
  /// `found`, with what is expected in the place of each element that is not the same in all; how
  /// many there are.
  int64_t dropUnspecified(std::vector<char> &found) const {
    int64_t count = 0;
    for (int64_t at = 0; at < bytes; at += width)
      if (llvm::any_of(ArrayRef(runs).drop_front(), [&](const std::vector<uint8_t> &run) {
            return memcmp(run.data() + at, data() + at, width) != 0;
          })) {
        memcpy(found.data() + at, data() + at, width);
        ++count;
      }
    return count;
  }

private:
  int64_t bytes, width;
  std::vector<std::vector<uint8_t>> runs;
};
} // namespace

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
  std::vector<std::vector<Reference>> references(compilation.ranks());
  for (std::vector<Reference> &values : references)
    values.assign(types.begin(), types.end());
  size_t count = leavesPadding(compilation.graph()) ? std::size(fills) : 1;
  for (uint8_t byte : ArrayRef(fills).take_front(count)) {
    std::vector<std::vector<void *>> buffers(compilation.ranks());
    for (int64_t rank = 0; rank < compilation.ranks(); ++rank)
      for (auto [i, type] : llvm::enumerate(types)) {
        void *data = references[rank][i].fill(byte);
        if (i < inputs && compilation.isProgram())
          fillShard(compilation, options.seed, rank, i, getDenseBytes(type), data);
        else if (i < inputs)
          fillArgument(options, options.seed, rank, i, type, data);
        buffers[rank].push_back(data);
      }
    if (llvm::Error failed = (*interpreter)->run(buffers, byte)) {
      error = "the reference interpreter: " + llvm::toString(std::move(failed));
      return false;
    }
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
      const Reference &expected = references[rank][i];
      std::vector<char> given(found, found + getDenseBytes(types[i]));
      int64_t unspecified = expected.dropUnspecified(given);
      given.resize(std::max<size_t>(1, given.size()));
      // Of whole numbers a product is exact, but for the sign of a zero.
      double tolerance = options.exact ? 0 : relative * largestMagnitude(types[i], expected.data());
      Comparison c =
          compare(types[i], expected.data(), given.data(), relative > 0 ? tolerance : -1);
      output.elements += c.count - unspecified;
      output.unspecified += unspecified;
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
