//===- ExpandFutures.cpp - A future becomes a tensor and a token ----------===//
//
// First every await names what its collective reads: directly where one value does
// for all paths, else the future's type is widened by the type of what is read, so
// that it is carried along. Then the types are converted one to many.
//
//===----------------------------------------------------------------------===//

#include "Flow.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Transforms/Passes.h"

#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_EXPANDFUTURES
#include "ncclx/Transforms/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// Futures that meet in some value, and the starts they come from.
struct Family {
  SmallVector<StartOp> starts;
  llvm::SetVector<Value> futures;
};

struct ExpandStart : OpConversionPattern<StartOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(StartOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    CollectiveOpInterface collective = op.getCollective();
    Value input = rewriter.getRemappedValue(collective.getInput());
    Value dest = rewriter.getRemappedValue(collective.getDest());
    auto type = cast<FutureType>(op.getFuture().getType());
    Value sizes = collective.getSizes();
    CollectiveOpInterface async =
        cloneCollective(rewriter, collective, input, dest, /*async=*/true,
                        sizes ? rewriter.getRemappedValue(sizes) : Value());
    SmallVector<Value> parts = {async.getResult(), async.getToken()};
    if (type.getReads())
      parts.push_back(input);
    rewriter.replaceOpWithMultiple(op, ArrayRef<ValueRange>{parts});
    return success();
  }
};

struct ExpandAwait : OpConversionPattern<AwaitOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(AwaitOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ValueRange parts = adaptor.getFuture();
    if (op.getChunk()) {
      rewriter.replaceOpWithNewOp<FinishChunkOp>(op, op.getType(), parts[1], parts[0],
                                                 adaptor.getChunk().front(), *op.getCount(),
                                                 *op.getDim());
      return success();
    }
    llvm::SetVector<Value> keeping;
    for (ValueRange kept : adaptor.getKeeping())
      keeping.insert(kept.begin(), kept.end());
    if (parts.size() == 3)
      keeping.insert(parts[2]);
    rewriter.replaceOpWithNewOp<FinishOp>(op, op.getType(), parts[1], parts[0],
                                          keeping.getArrayRef());
    return success();
  }
};

struct ExpandFutures : ncclx::impl::ExpandFuturesBase<ExpandFutures> {
  using ExpandFuturesBase::ExpandFuturesBase;

  void runOnOperation() override {
    for (Family &family : findFamilies())
      if (failed(completeKeeping(family)))
        return signalPassFailure();
    if (failed(convert()))
      signalPassFailure();
  }

private:
  SmallVector<Family> findFamilies();
  LogicalResult completeKeeping(Family &family);
  LogicalResult convert();
};

} // namespace

SmallVector<Family> ExpandFutures::findFamilies() {
  SmallVector<Family> families;
  getOperation().walk([&](StartOp start) {
    Family family = {{start}, getReached(start.getFuture())};
    // What a start reaches is closed under handing on, so families that meet become one.
    llvm::erase_if(families, [&](Family &other) {
      if (llvm::none_of(other.futures, [&](Value v) { return family.futures.contains(v); }))
        return false;
      family.starts.append(other.starts.begin(), other.starts.end());
      family.futures.insert(other.futures.begin(), other.futures.end());
      return true;
    });
    families.push_back(std::move(family));
  });
  return families;
}

LogicalResult ExpandFutures::completeKeeping(Family &family) {
  SmallVector<AwaitOp> awaits;
  for (Value future : family.futures)
    for (Operation *user : future.getUsers())
      if (auto await = dyn_cast<AwaitOp>(user); await && !await.getChunk())
        awaits.push_back(await);

  StartOp first = family.starts.front();
  Value input = first.getCollective().getInput();
  bool sameInput =
      llvm::all_of(family.starts, [&](StartOp s) { return s.getCollective().getInput() == input; });
  DominanceInfo dominance;
  if (sameInput &&
      llvm::all_of(awaits, [&](AwaitOp a) { return dominance.properlyDominates(input, a); })) {
    for (AwaitOp await : awaits)
      if (!llvm::is_contained(await.getKeeping(), input))
        await.getKeepingMutable().append(input);
    return success();
  }

  auto reads = cast<RankedTensorType>(input.getType());
  for (StartOp start : family.starts) {
    if (start.getCollective().getInput().getType() == reads)
      continue;
    InFlightDiagnostic diag = start.emitOpError("reads ")
                              << start.getCollective().getInput().getType()
                              << ", but its future meets one of a collective that reads " << reads;
    diag.attachNote(first.getLoc()) << "started here";
    return diag;
  }
  for (Value future : family.futures) {
    RankedTensorType value = cast<FutureType>(future.getType()).getValue();
    future.setType(FutureType::get(&getContext(), value, reads));
  }
  return success();
}

LogicalResult ExpandFutures::convert() {
  MLIRContext *context = &getContext();
  TypeConverter converter;
  converter.addConversion([](Type type) { return type; });
  converter.addConversion([=](FutureType type, SmallVectorImpl<Type> &parts) {
    parts.append({type.getValue(), TokenType::get(context)});
    if (type.getReads())
      parts.push_back(type.getReads());
    return success();
  });
  RewritePatternSet patterns(context);
  ConversionTarget target(*context);
  patterns.add<ExpandStart, ExpandAwait>(converter, context);
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns, target);
  target.addIllegalOp<StartOp, AwaitOp>();
  target.markUnknownOpDynamicallyLegal([&](Operation *op) { return converter.isLegal(op); });
  return applyFullConversion(getOperation(), target, std::move(patterns));
}
