//===- StageBlocks.cpp - Structured control flow as the blocks of stages -----===//
//
// Upstream's patterns make blocks and branches of the control flow around collectives. What only
// blocks of their own could cut is put right here: checks end a block, blocks with one way out and
// in are one, and no future is in flight between two.
//
//===----------------------------------------------------------------------===//

#include "StageBlocks.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Reference/CountedLoops.h"
#include "ncclx/Transforms/Communication.h"

#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::ncclx;

AssumeUniformOp ncclx::checkOf(Block *block) {
  return dyn_cast_or_null<AssumeUniformOp>(block->getTerminator()->getPrevNode());
}

static LogicalResult flatten(func::FuncOp function) {
  countLoops(function);
  MLIRContext *context = function.getContext();
  ConversionTarget target(*context);
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  target.addDynamicallyLegalOp<scf::ForOp, scf::IfOp, scf::IndexSwitchOp, scf::WhileOp,
                               scf::ExecuteRegionOp>(
      [](Operation *op) { return !holdsCommunication(op); });
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  if (failed(applyPartialConversion(function, target, std::move(patterns))))
    return failure();
  WalkResult nested = function.walk([&](Operation *op) {
    if (!isCommunication(op) || op->getParentOp() == function || isa<StartOp>(op->getParentOp()))
      return WalkResult::advance();
    op->emitOpError("stands under ")
        << op->getParentOp()->getName() << ", which no stage can be cut out of";
    return WalkResult::interrupt();
  });
  return failure(nested.wasInterrupted());
}

/// Whether nothing but awaits of its own block use the future.
static bool isAwaitedInStage(StartOp start) {
  return llvm::all_of(start.getFuture().getUsers(), [&](Operation *user) {
    return isa<AwaitOp>(user) && user->getBlock() == start->getBlock();
  });
}

/// A future that would be in flight between stages is a value at once, with all that it may be one
/// of.
static LogicalResult awaitAtOnce(func::FuncOp function) {
  OpBuilder b(function.getContext());
  SmallVector<StartOp> starts;
  llvm::SmallPtrSet<Value, 8> kept;
  function.walk([&](StartOp start) {
    if (isAwaitedInStage(start)) {
      kept.insert(start.getFuture());
      return;
    }
    starts.push_back(start);
    remark::missed(start.getLoc(),
                   remark::RemarkOpts::name("FutureAwaited").category("ncclx-split-branches"))
        << remark::reason("it would be in flight between stages: it is awaited where it starts");
  });
  if (starts.empty())
    return success();
  auto isFuture = [](Value v) { return isa<FutureType>(v.getType()); };
  WalkResult walked = function.walk([&](Operation *op) {
    auto open = [&](Value v) {
      if (auto future = dyn_cast<FutureType>(v.getType()); future && !kept.contains(v))
        v.setType(future.getValue());
    };
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), open);
    auto await = dyn_cast<AwaitOp>(op);
    if (!await) {
      llvm::for_each(op->getResults(), open);
      return WalkResult::advance();
    }
    if (kept.contains(await.getFuture()))
      return WalkResult::advance();
    auto whole = cast<RankedTensorType>(
        isFuture(await.getFuture()) ? cast<FutureType>(await.getFuture().getType()).getValue()
                                    : await.getFuture().getType());
    b.setInsertionPoint(await);
    Value value = await.getFuture();
    if (await.getChunk()) {
      int64_t dim = *await.getDim(), count = *await.getCount(), rows = whole.getDimSize(dim);
      if (rows % count != 0) {
        await.emitOpError("takes one of ")
            << count << " chunks of " << rows << " rows between stages, which are awaited at once: "
            << "they must be of one size";
        return WalkResult::interrupt();
      }
      SmallVector<OpFoldResult> offsets(whole.getRank(), b.getIndexAttr(0)), sizes,
          strides(whole.getRank(), b.getIndexAttr(1));
      for (int64_t size : whole.getShape())
        sizes.push_back(b.getIndexAttr(size));
      Value each = arith::ConstantIndexOp::create(b, await.getLoc(), rows / count);
      offsets[dim] = arith::MulIOp::create(b, await.getLoc(), await.getChunk(), each).getResult();
      sizes[dim] = b.getIndexAttr(rows / count);
      value = tensor::ExtractSliceOp::create(b, await.getLoc(),
                                             cast<RankedTensorType>(await.getResult().getType()),
                                             value, offsets, sizes, strides);
    }
    await.getResult().replaceAllUsesWith(value);
    await.erase();
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  for (StartOp start : starts) {
    Operation *collective = start.getCollective();
    collective->moveBefore(start);
    start.getFuture().replaceAllUsesWith(collective->getResult(0));
    start.erase();
  }
  return success();
}

static void endAtChecks(func::FuncOp function) {
  OpBuilder b(function.getContext());
  SmallVector<AssumeUniformOp> ops(function.getOps<AssumeUniformOp>());
  for (AssumeUniformOp op : ops) {
    Block *rest = op->getBlock()->splitBlock(op->getNextNode());
    b.setInsertionPointAfter(op);
    cf::BranchOp::create(b, op.getLoc(), rest);
    op.getResult().replaceAllUsesWith(op.getValue());
  }
}

/// A block with one way out joins the one that it alone leads to.
static void mergeBlocks(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  for (Block *block = &function.getBody().front(); block;) {
    auto branch = dyn_cast<cf::BranchOp>(block->getTerminator());
    Block *next = branch ? branch.getDest() : nullptr;
    if (!next || checkOf(block) || next == block || next->getSinglePredecessor() != block) {
      block = block->getNextNode();
      continue;
    }
    SmallVector<Value> operands(branch.getDestOperands());
    rewriter.eraseOp(branch);
    rewriter.mergeBlocks(next, block, operands);
  }
}

LogicalResult ncclx::makeStageBlocks(func::FuncOp function) {
  if (failed(flatten(function)))
    return failure();
  endAtChecks(function);
  mergeBlocks(function);
  return awaitAtOnce(function);
}
