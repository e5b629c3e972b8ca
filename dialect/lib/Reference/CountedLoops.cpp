//===- CountedLoops.cpp - Loops whose variable cannot wrap ------------------------------------===//
#include "ncclx/Reference/CountedLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

/// Whether the variable passes the upper bound before the last number of its type, and the number
/// of iterations follows from a difference that the type holds.
static bool isPlain(scf::ForOp loop) {
  Type type = loop.getInductionVar().getType();
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (loop.getUnsignedCmp() || width > 64)
    return false;
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> upper = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (!step || *step <= 0)
    return false;
  int64_t last = llvm::maxIntN(width), span;
  // Nobody takes the difference of bounds that are not constants.
  if (lower && upper && (llvm::SubOverflow(*upper, *lower, span) || span > last))
    return false;
  return *step == 1 || (upper && *upper <= last - (*step - 1));
}

scf::ForOp mlir::ncclx::countIterations(scf::ForOp loop) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound(), step = loop.getStep();
  Type type = lower.getType();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  };
  Value zero = number(0), one = number(1);
  // As many as (upper - lower - 1) / step + 1, which as unsigned numbers neither wrap.
  bool isUnsigned = loop.getUnsignedCmp();
  auto less = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::CmpIOp>(
        loc, isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt, x, y);
  };
  Value runs = b.createOrFold<arith::AndIOp>(loc, less(lower, upper), less(zero, step));
  Value by = b.createOrFold<arith::SelectOp>(loc, runs, step, one);
  Value span = b.createOrFold<arith::SubIOp>(loc, upper, lower);
  span = b.createOrFold<arith::SubIOp>(loc, span, one);
  Value count = b.createOrFold<arith::DivUIOp>(loc, span, by);
  count = b.createOrFold<arith::AddIOp>(loc, count, one);
  count = b.createOrFold<arith::SelectOp>(loc, runs, count, zero);
  if (auto integer = dyn_cast<IntegerType>(type); integer && integer.getWidth() <= 64)
    count = b.createOrFold<arith::IndexCastUIOp>(loc, b.getIndexType(), count);
  // What no signed number counts has no end that anybody waits for.
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (width >= 64)
    count = b.createOrFold<arith::MinUIOp>(
        loc, count,
        arith::ConstantOp::create(
            b, loc, b.getIntegerAttr(count.getType(), APInt::getSignedMaxValue(width))));
  Value first = arith::ConstantOp::create(b, loc, b.getIntegerAttr(count.getType(), 0));
  Value next = arith::ConstantOp::create(b, loc, b.getIntegerAttr(count.getType(), 1));
  auto counted = scf::ForOp::create(b, loc, first, count, next, loop.getInitArgs());
  counted->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  Block *body = counted.getBody();
  if (Operation *terminator = body->empty() ? nullptr : &body->back())
    terminator->erase();
  b.setInsertionPointToStart(body);
  Value at = counted.getInductionVar();
  if (at.getType() != type)
    at = b.createOrFold<arith::IndexCastUIOp>(loc, type, at);
  at = b.createOrFold<arith::AddIOp>(loc, lower, b.createOrFold<arith::MulIOp>(loc, at, by));
  loop.getInductionVar().replaceAllUsesWith(at);
  for (auto [old, now] : llvm::zip_equal(loop.getRegionIterArgs(), counted.getRegionIterArgs()))
    old.replaceAllUsesWith(now);
  body->getOperations().splice(body->end(), loop.getBody()->getOperations());
  loop.replaceAllUsesWith(counted.getResults());
  loop.erase();
  return counted;
}

void mlir::ncclx::countLoops(Operation *root) {
  SmallVector<scf::ForOp> loops;
  root->walk([&](scf::ForOp loop) {
    if (!isPlain(loop))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops)
    countIterations(loop);
}
