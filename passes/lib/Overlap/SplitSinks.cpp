//===- SplitSinks.cpp - Weight gradients in pieces ------------------------------------===//
//
// Card P3 of the survey: a piece is as long as the collective that it runs beside, and what is left
// is free for the next. Only dimensions of the result are cut, so that no sum changes.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Passes.h"

#include "MachinePass.h"
#include "Parts.h"

#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/Remarks.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_SPLITSINKS
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// Where to cut a product: loops [i * step, (i + 1) * step) of one dimension.
struct Cut {
  unsigned loop = 0;
  int64_t size = 0, step = 0;
  int64_t pieces() const { return llvm::divideCeil(uint64_t(size), uint64_t(step)); }
};

/// Whether the block needs a value at its end alone.
bool isSink(Value value) {
  llvm::SetVector<Operation *> users(value.getUsers().begin(), value.getUsers().end());
  for (size_t i = 0; i < users.size(); ++i) {
    if (users[i]->hasTrait<OpTrait::IsTerminator>())
      continue;
    if (!isGlue(users[i]))
      return false;
    users.insert(users[i]->getUsers().begin(), users[i]->getUsers().end());
  }
  return true;
}

/// The cut of a product into pieces of `seconds`, or why there is none.
std::optional<Cut> findCut(linalg::LinalgOp op, const overlap::CostModel &cost, double seconds,
                           std::string &why) {
  std::optional<overlap::Op> whole = costOf(op, cost);
  if (!whole) {
    why = "its size is not known";
    return std::nullopt;
  }
  double wanted = std::floor(whole->seconds / seconds);
  if (wanted < 2) {
    why = llvm::formatv("it takes {0:F1} us, and a piece {1:F1} us", whole->seconds * 1e6,
                        seconds * 1e6);
    return std::nullopt;
  }
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  std::optional<Cut> best;
  int64_t most = 1;
  for (auto [loop, size] : llvm::enumerate(op.getStaticLoopRanges())) {
    if (kinds[loop] != utils::IteratorType::parallel ||
        llvm::any_of(maps, [&](AffineMap map) { return failed(dimensionOf(map, loop)); }))
      continue;
    int64_t tile = maps[0].isFunctionOfDim(loop) ? cost.tileM : cost.tileN;
    int64_t tiles = llvm::divideCeil(uint64_t(size), uint64_t(tile));
    if (tiles <= most)
      continue;
    most = tiles;
    int64_t each = std::max<int64_t>(1, llvm::divideCeil(uint64_t(tiles), uint64_t(wanted)));
    best = Cut{unsigned(loop), size, each * tile};
  }
  if (!best || best->pieces() < 2) {
    why = llvm::formatv("no dimension of its result has two tiles of {0} x {1}", cost.tileM,
                        cost.tileN);
    return std::nullopt;
  }
  return best;
}

void split(linalg::LinalgOp op, const Cut &cut) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  unsigned outDim = **dimensionOf(maps.back(), cut.loop);
  Value whole = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  for (int64_t from = 0; from < cut.size; from += cut.step) {
    int64_t size = std::min(cut.step, cut.size - from);
    SmallVector<Value> operands;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      std::optional<unsigned> dim = *dimensionOf(maps[i], cut.loop);
      operands.push_back(dim ? takePart(b, loc, operand, *dim, from, size) : operand);
    }
    Operation *piece = clone(b, op, operands.back().getType(), operands);
    whole = putPart(b, loc, piece->getResult(0), whole, outDim, from);
  }
  op->getResult(0).replaceAllUsesWith(whole);
  op->erase();
}

struct SplitSinks : MachinePass<SplitSinks, ncclx::impl::SplitSinksBase<SplitSinks>> {
  using MachinePass::MachinePass;

  std::string wrongOption() {
    if (!(pieceMicroseconds > 0))
      return llvm::formatv("piece-us is above 0, found {0}", double(pieceMicroseconds));
    return "";
  }

  void run(func::FuncOp function, const overlap::CostModel &cost) {
    SmallVector<linalg::LinalgOp> sinks;
    function.walk([&](linalg::LinalgOp op) {
      if (linalg::isaContractionOpInterface(op) && op->getNumResults() == 1 &&
          op->getNumOperands() == 3 && isSink(op->getResult(0)))
        sinks.push_back(op);
    });
    auto named = [&](StringRef name) {
      return remark::RemarkOpts::name(name).category(getArgument()).function(function.getSymName());
    };
    for (linalg::LinalgOp op : sinks) {
      std::string why, name = describe(op);
      std::optional<Cut> cut = findCut(op, cost, pieceMicroseconds * 1e-6, why);
      if (!cut) {
        remark::missed(op->getLoc(), named("SinkWhole"))
            << remark::add("{0} stays whole", name) << remark::reason("{0}", why);
        continue;
      }
      remark::passed(op->getLoc(), named("SinkSplit"))
          << remark::add("{0} is cut into {1} pieces of {2} in loop {3} of {4}", name,
                         cut->pieces(), cut->step, cut->loop, cut->size);
      split(op, *cut);
    }
  }
};

} // namespace
