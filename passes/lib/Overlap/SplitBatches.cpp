//===- SplitBatches.cpp - One half's communication behind the other's computation
//--------------===//
//
// Card P10 of the survey (Domino, TokenWeave): a block's rows, tokens or samples, in two halves.
// What that costs (smaller products, weights read twice) and gains is told by the scheduler: both
// forms are scheduled by the model, and the halves are taken where they are faster by the margin.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Passes.h"

#include "FunctionProblem.h"
#include "Halves.h"
#include "MachinePass.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_SPLITBATCHES
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

struct SplitBatches : MachinePass<SplitBatches, ncclx::impl::SplitBatchesBase<SplitBatches>> {
  using MachinePass::MachinePass;

  std::string wrongOption() {
    if (rowsOfFirst < 0)
      return llvm::formatv("rows is at least 0, found {0}", int64_t(rowsOfFirst));
    return "";
  }

  void run(func::FuncOp function, const overlap::CostModel &cost) {
    for (unsigned i = 0, e = communicatingBlocks(function).size(); i < e; ++i)
      split(function, i, cost);
  }

  /// Decides on a copy, for one block of a function.
  void split(func::FuncOp function, unsigned index, const overlap::CostModel &cost) {
    Block &block = *communicatingBlocks(function)[index];
    auto named = [&](StringRef name) {
      return remark::RemarkOpts::name(name).category(getArgument()).function(function.getSymName());
    };
    Location loc = block.getParentOp()->getLoc();
    auto missed = [&](const std::string &why) {
      remark::missed(loc, named("BatchWhole")) << remark::reason("{0}", why);
    };
    std::string why;
    std::optional<Rows> rows = findRows(block, why);
    if (!rows)
      return missed(why);
    std::optional<Predicted> whole = predict(block, cost, why);
    if (!whole)
      return missed(why);
    double best = 0;
    int64_t first = 0;
    unsigned cut = 0;
    for (int64_t candidate :
         candidates(rows->extent, std::max<int64_t>(1, cost.tileM / rows->blocks), block)) {
      OpBuilder b(function);
      auto copy = cast<func::FuncOp>(b.clone(*function));
      Block &trial = *communicatingBlocks(copy)[index];
      std::string ignored;
      unsigned collectives = cutInHalves(trial, *findRows(trial, ignored), candidate);
      std::optional<Predicted> halves;
      if (collectives > 0)
        halves = predict(trial, cost, why);
      copy.erase();
      if (!halves)
        return missed(collectives ? why : "nothing that makes its rows can be done in halves");
      if (first && halves->seconds >= best)
        continue;
      best = halves->seconds;
      first = candidate;
      cut = collectives;
    }
    std::string gain = llvm::formatv(
        "{0:F1} us as {1} and {2} of {3} rows, {4:F1} us whole, {5:F1} us of collectives",
        best * 1e6, first, rows->extent - first, rows->extent, whole->seconds * 1e6,
        whole->communication * 1e6);
    if (whole->seconds - best < margin * whole->communication || whole->seconds <= best)
      return missed(gain);
    remark::passed(loc, named("BatchSplit"))
        << remark::add("{0} collectives are cut: {1}", cut, gain);
    cutInHalves(block, *rows, first);
    declareKernels(getOperation(), block);
  }

  /// Where to cut: in the middle, at whole tiles, a tile more or less: waves decide.
  SmallVector<int64_t> candidates(int64_t extent, int64_t tile, Block &block) {
    if (rowsOfFirst)
      return {std::clamp<int64_t>(rowsOfFirst, 1, extent - 1)};
    if (extent < 2 * tile)
      return {extent / 2};
    constexpr size_t many = 4096; // ops: one candidate takes seconds there
    int64_t middle = llvm::divideCeil(uint64_t(extent), uint64_t(2 * tile)) * tile;
    SmallVector<int64_t> list = {middle};
    if (block.getOperations().size() < many)
      for (int64_t other : {middle - tile, middle + tile})
        if (other > 0 && other < extent)
          list.push_back(other);
    if (middle >= extent)
      list = {extent / 2};
    return list;
  }
};

} // namespace
