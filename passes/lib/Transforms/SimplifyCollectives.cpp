//===- SimplifyCollectives.cpp - Collectives that mean the same and cost less ----===//
//
// One text runs on all ranks, so what goes here goes everywhere, and the collectives that stay keep
// one order. A pair that becomes one takes the place of the second.
//
//===----------------------------------------------------------------------===//

#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_SIMPLIFYCOLLECTIVES
#include "ncclx/Transforms/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;
using Route = Dataflow::Route;

namespace {

/// A collective on tensors that is not in flight, and that the compiler carries. Of open sizes it
/// is not known whether they are the same.
bool isPlain(CollectiveOpInterface op) {
  return op && !op.isBufferForm() && !op.isAsync() && !isa<StartOp>(op->getParentOp()) &&
         !op->hasAttr(NCCLXDialect::getScheduleAttrName()) && op.getInputType().hasStaticShape() &&
         op.getOutputType().hasStaticShape();
}

void say(Operation *op, StringRef what) {
  remark::passed(op->getLoc(),
                 remark::RemarkOpts::name("Simplified").category("ncclx-simplify-collectives"))
      << remark::add("{0} {1}", op->getName().stripDialect(), what);
}

/// The collective before `op` whose result is the input of `op` alone, in the same block and over
/// the same group, and that asks for no algorithm.
template <typename OpTy> OpTy pairedInput(CollectiveOpInterface op) {
  auto before = op.getInput().getDefiningOp<OpTy>();
  if (!before || !isPlain(cast<CollectiveOpInterface>(*before)) || op.getAlgorithm() ||
      before.getAlgorithm() || !before.getResult().hasOneUse() ||
      before->getBlock() != op->getBlock() || before.getGridAttr() != op.getGridAttr() ||
      before.getAxes() != op.getAxes() || before.getGroupsAttr() != op.getGroupsAttr())
    return nullptr;
  return before;
}

/// Does every element of the result come from some input? Behind counted rows it is zero.
bool fillsAll(CollectiveOpInterface op) {
  Dataflow flow = op.getDataflow();
  if (flow.sized || flow.fillsZeros())
    return false;
  if (!flow.counts)
    return true;
  auto counts = flow.counts.getValues<int64_t>();
  int64_t n = getGroupSize(op), rows = op.getOutputType().getDimSize(*flow.outCut);
  for (int64_t to = 0; to < n; ++to) {
    int64_t received = 0;
    for (int64_t from = 0; from < n; ++from)
      received += counts[from * n + to];
    if (received < rows)
      return false;
  }
  return true;
}

/// Does the order of the reduction say nothing about who holds what?
bool isFreeOrder(ReductionOrder order) {
  return order == ReductionOrder::Any || order == ReductionOrder::Rank;
}

struct GroupOfOne : OpInterfaceRewritePattern<CollectiveOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(CollectiveOpInterface op,
                                PatternRewriter &rewriter) const override {
    Dataflow flow = op.getDataflow();
    if (!isPlain(op) || getGroupSize(op) != 1 || op.getInputType() != op.getOutputType())
      return failure();
    bool isRooted = flow.route == Route::ToRoot; // the one member is the root
    auto permute = dyn_cast<PermuteOp>(*op);
    if (permute ? !permute.getSource(0, 1) : !isRooted && !fillsAll(op))
      return failure();
    if (flow.combines && op->hasAttr("scale"))
      return failure();
    say(op, "over a group of one is its input");
    rewriter.replaceOp(op, op.getInput());
    return success();
  }
};

struct MovedSplat : OpInterfaceRewritePattern<CollectiveOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(CollectiveOpInterface op,
                                PatternRewriter &rewriter) const override {
    DenseElementsAttr value;
    Dataflow flow = op.getDataflow();
    auto permute = dyn_cast<PermuteOp>(*op);
    bool everybodyGets = permute ? permute.getShift().has_value() : isPlain(op) && fillsAll(op);
    if (!isPlain(op) || flow.combines || !everybodyGets ||
        !matchPattern(op.getInput(), m_Constant(&value)) || !value.isSplat())
      return failure();
    say(op, "of a splat constant is one");
    auto type = cast<RankedTensorType>(op.getOutputType());
    Attribute splat = DenseElementsAttr::get(type, value.getSplatValue<Attribute>());
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, cast<TypedAttr>(splat));
    return success();
  }
};

/// An all_reduce in the place of `op` with the reduction of `before`.
template <typename OpTy>
void becomeAllReduce(CollectiveOpInterface op, OpTy before, PatternRewriter &rewriter) {
  say(op, "after a reduction is an all_reduce");
  auto whole =
      AllReduceOp::create(rewriter, op.getLoc(), Type(op.getOutputType()), Type(),
                          before.getInput(), before.getKindAttr(), before.getScaleAttr(),
                          before.getAccumulateAttr(), before.getOrderAttr(), op.getGridAttr(),
                          op.getAxes(), op.getGroupsAttr(), op.getDest(), AlgorithmAttr());
  rewriter.replaceOp(op, whole.getResult());
  rewriter.eraseOp(before);
}

struct ScatterThenGather : OpRewritePattern<AllGatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllGatherOp op, PatternRewriter &rewriter) const override {
    if (!isPlain(op))
      return failure();
    auto fits = [&](auto before) {
      return before && before.getDim() == op.getDim() &&
             before.getInput().getType() == op.getResult().getType();
    };
    if (auto before = pairedInput<ReduceScatterOp>(op);
        fits(before) && isFreeOrder(before.getOrder())) {
      becomeAllReduce(op, before, rewriter);
      return success();
    }
    auto before = pairedInput<ScatterOp>(op);
    if (!fits(before))
      return failure();
    say(op, "after a scatter is a broadcast");
    auto whole =
        BroadcastOp::create(rewriter, op.getLoc(), Type(op.getOutputType()), Type(),
                            before.getInput(), before.getRootAttr(), op.getGridAttr(), op.getAxes(),
                            op.getGroupsAttr(), op.getDest(), AlgorithmAttr());
    rewriter.replaceOp(op, whole.getResult());
    rewriter.eraseOp(before);
    return success();
  }
};

struct ReduceThenBroadcast : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    auto before = isPlain(op) ? pairedInput<ReduceOp>(op) : ReduceOp();
    if (!before || before.getRootAttr() != op.getRootAttr() || !isFreeOrder(before.getOrder()))
      return failure();
    becomeAllReduce(op, before, rewriter);
    return success();
  }
};

struct AddShifts : OpRewritePattern<PermuteOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PermuteOp op, PatternRewriter &rewriter) const override {
    auto before = isPlain(op) ? pairedInput<PermuteOp>(op) : PermuteOp();
    if (!before || !op.getShift() || !before.getShift() || !haveOneSize(op))
      return failure();
    say(op, "by a shift after another is one");
    int64_t n = getGroupSize(op), by = (*op.getShift() % n + *before.getShift() % n) % n;
    auto whole = PermuteOp::create(rewriter, op.getLoc(), Type(op.getOutputType()), Type(),
                                   before.getInput(), rewriter.getI64IntegerAttr(by),
                                   DenseI64ArrayAttr(), op.getGridAttr(), op.getAxes(),
                                   op.getGroupsAttr(), op.getDest(), AlgorithmAttr());
    rewriter.replaceOp(op, whole.getResult());
    rewriter.eraseOp(before);
    return success();
  }
};

struct SimplifyCollectives : ncclx::impl::SimplifyCollectivesBase<SimplifyCollectives> {
  using SimplifyCollectivesBase::SimplifyCollectivesBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<GroupOfOne, MovedSplat, ScatterThenGather, ReduceThenBroadcast, AddShifts>(
        &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      getOperation().emitError("simplifying collectives does not end");
      signalPassFailure();
    }
  }
};

} // namespace
