//===- StageBlocks.cpp - Structured control flow as the blocks of stages -----===//
//
// Upstream's patterns make blocks and branches of the control flow around collectives. What only
// blocks of their own could cut is put right here: checks end a block, blocks with one way out and
// in are one, and no future is in flight between two. The turns of a loop that carries futures
// become fewer and longer before, as few of them then end where a stage does.
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
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::ncclx;

AssumeUniformOp ncclx::checkOf(Block *block) {
  return dyn_cast_or_null<AssumeUniformOp>(block->getTerminator()->getPrevNode());
}

Operation *ncclx::endOf(Block *block) {
  if (AssumeUniformOp check = checkOf(block))
    return check;
  return block->getTerminator();
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

/// How many turns of a loop that carries futures are one stage, so that all but the last of them
/// are in flight from turn to turn. A turn of several stages is none.
static int64_t turnsInStage(scf::ForOp loop) {
  constexpr int64_t mostTurns = 4, mostStarts = 32; // what a stage may grow to
  int64_t starts = 0;
  for (Operation &op : *loop.getBody()) {
    if (isa<AssumeUniformOp>(op) ||
        (op.getNumRegions() && !isa<StartOp>(op) && holdsCommunication(&op)))
      return 1;
    starts += isa<StartOp>(op) || isCommunication(&op);
  }
  return std::min(mostTurns, mostStarts / std::max<int64_t>(1, starts));
}

/// One turn of `loop` behind another: gives what it yields.
static SmallVector<Value> cloneTurn(OpBuilder &b, scf::ForOp loop, Value number,
                                    ValueRange carried) {
  IRMapping map;
  map.map(loop.getInductionVar(), number);
  map.map(loop.getRegionIterArgs(), carried);
  for (Operation &op : loop.getBody()->without_terminator())
    b.clone(op, map);
  return llvm::map_to_vector(loop.getYieldedValues(),
                             [&](Value v) { return map.lookupOrDefault(v); });
}

/// `turns` turns become one of a loop before, which runs as often as they fit; the rest are left.
static void joinTurns(scf::ForOp loop, int64_t turns) {
  bool isCounted = !loop.getUnsignedCmp() && loop.getInductionVar().getType().isIndex() &&
                   getConstantIntValue(loop.getLowerBound()) == 0 &&
                   getConstantIntValue(loop.getStep()) == 1;
  if (!isCounted)
    loop = countIterations(loop); // by a number that is not negative, of an integer type or index
  else
    loop.setUpperBound([&] {
      OpBuilder b(loop);
      return arith::MaxSIOp::create(b, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound());
    }());
  Location loc = loop.getLoc();
  OpBuilder b(loop);
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc,
                                     b.getIntegerAttr(loop.getInductionVar().getType(), value));
  };
  Value each = number(turns);
  Value often = arith::DivUIOp::create(b, loc, loop.getUpperBound(), each);
  Value first = arith::MulIOp::create(b, loc, often, each);
  auto main = scf::ForOp::create(
      b, loc, loop.getLowerBound(), often, loop.getStep(), loop.getInitArgs(),
      [&](OpBuilder &inside, Location, Value i, ValueRange carried) {
        Value base = arith::MulIOp::create(inside, loc, i, each);
        SmallVector<Value> values(carried);
        for (int64_t turn = 0; turn < turns; ++turn) {
          Value offset =
              arith::ConstantOp::create(inside, loc, inside.getIntegerAttr(each.getType(), turn));
          values =
              cloneTurn(inside, loop, arith::AddIOp::create(inside, loc, base, offset), values);
        }
        scf::YieldOp::create(inside, loc, values);
      });
  loop.setLowerBound(first);
  loop.getInitArgsMutable().assign(main.getResults());
}

/// No future is in flight between stages. So several turns of a loop that carries some become one
/// of another loop, and what is left over turns of the same as before.
static void joinTurns(func::FuncOp function) {
  SmallVector<scf::ForOp> loops; // inner ones first
  function.walk([&](scf::ForOp loop) {
    if (llvm::any_of(loop.getResultTypes(), llvm::IsaPred<FutureType>))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops) {
    int64_t turns = turnsInStage(loop);
    if (turns < 2) {
      remark::missed(loop.getLoc(),
                     remark::RemarkOpts::name("TurnsKept").category("ncclx-split-branches"))
          << remark::reason("a turn is several stages, or too long for two to be one: what it "
                            "carries in flight is awaited at its end");
      continue;
    }
    remark::passed(loop.getLoc(),
                   remark::RemarkOpts::name("TurnsJoined").category("ncclx-split-branches"))
        << remark::metric("Turns", turns);
    joinTurns(loop, turns);
  }
}

/// Whether nothing but awaits of its own block use the future.
static bool isAwaitedInStage(StartOp start) {
  return llvm::all_of(start.getFuture().getUsers(), [&](Operation *user) {
    return isa<AwaitOp>(user) && user->getBlock() == start->getBlock();
  });
}

/// The first await in the stage of the start, where one of them takes a chunk that does not come by
/// itself: its number is known on the way, or the algorithm brings all at once. Else null.
static Operation *firstOfWhole(StartOp start) {
  CollectiveOpInterface collective = start.getCollective();
  bool comesInChunks = collective.getAlgorithm().value_or(Algorithm::Direct) == Algorithm::Direct &&
                       !collective->hasAttr(NCCLXDialect::getScheduleAttrName());
  Operation *first = nullptr;
  bool needsWhole = false;
  for (Operation *user : start.getFuture().getUsers()) {
    auto await = dyn_cast<AwaitOp>(user);
    if (!await || await->getBlock() != start->getBlock())
      continue;
    needsWhole |= await.getChunk() && !(comesInChunks && getConstantIntValue(await.getChunk()));
    if (!first || await->isBeforeInBlock(first))
      first = await;
  }
  return needsWhole ? first : nullptr;
}

/// A chunk of what has been awaited as a whole.
static FailureOr<Value> sliceChunk(AwaitOp await, OpBuilder &b) {
  Location loc = await.getLoc();
  auto whole = cast<RankedTensorType>(await.getFuture().getType());
  int64_t dim = *await.getDim(), count = *await.getCount(), rows = whole.getDimSize(dim);
  if (rows % count != 0)
    return await.emitOpError("takes one of ")
           << count << " chunks of " << rows
           << " rows, where the whole is awaited first: they must be of one size";
  SmallVector<OpFoldResult> offsets(whole.getRank(), b.getIndexAttr(0)), sizes,
      strides(whole.getRank(), b.getIndexAttr(1));
  for (int64_t size : whole.getShape())
    sizes.push_back(b.getIndexAttr(size));
  Value each = arith::ConstantIndexOp::create(b, loc, rows / count);
  offsets[dim] = arith::MulIOp::create(b, loc, await.getChunk(), each).getResult();
  sizes[dim] = b.getIndexAttr(rows / count);
  return tensor::ExtractSliceOp::create(b, loc, cast<RankedTensorType>(await.getResult().getType()),
                                        await.getFuture(), offsets, sizes, strides)
      .getResult();
}

/// A future that would be in flight between stages is in flight to the end of its own, and a value
/// from there on, with all that it may be one of.
static LogicalResult awaitInStage(func::FuncOp function) {
  OpBuilder b(function.getContext());
  llvm::SmallPtrSet<Value, 8> kept;
  SmallVector<StartOp> starts;
  function.walk([&](StartOp start) {
    kept.insert(start.getFuture());
    starts.push_back(start);
  });
  for (StartOp start : starts) {
    Value future = start.getFuture();
    Operation *at = firstOfWhole(start);
    bool leaves = !isAwaitedInStage(start);
    if (!leaves && !at)
      continue;
    if (leaves)
      remark::missed(start.getLoc(),
                     remark::RemarkOpts::name("FutureAwaited").category("ncclx-split-branches"))
          << remark::reason(
                 "it would be in flight between stages: it is awaited where its own ends");
    bool all = at;
    if (!at)
      at = endOf(start->getBlock());
    b.setInsertionPoint(at);
    auto await = AwaitOp::create(b, start.getLoc(), cast<FutureType>(future.getType()).getValue(),
                                 future, Value(), IntegerAttr(), IntegerAttr(), ValueRange());
    future.replaceUsesWithIf(await.getResult(), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      bool isChunkHere = isa<AwaitOp>(user) && user->getBlock() == start->getBlock();
      return user != await && (all || !isChunkHere);
    });
  }
  function.walk([&](Operation *op) {
    auto open = [&](Value v) {
      if (auto future = dyn_cast<FutureType>(v.getType()); future && !kept.contains(v))
        v.setType(future.getValue());
    };
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), open);
    llvm::for_each(op->getResults(), open);
  });
  WalkResult walked = function.walk([&](AwaitOp await) {
    if (kept.contains(await.getFuture()))
      return WalkResult::advance();
    b.setInsertionPoint(await);
    FailureOr<Value> value = await.getFuture();
    if (await.getChunk())
      value = sliceChunk(await, b);
    if (failed(value))
      return WalkResult::interrupt();
    await.getResult().replaceAllUsesWith(*value);
    await.erase();
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
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
  joinTurns(function);
  if (failed(flatten(function)))
    return failure();
  endAtChecks(function);
  mergeBlocks(function);
  return success(succeeded(awaitInStage(function)) && succeeded(carryWindows(function)));
}
