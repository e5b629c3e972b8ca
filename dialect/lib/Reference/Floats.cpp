//===- Floats.cpp - What a float op means on the host ---------------------===//
//
// bf16 and f16 ops become extf, the op in f32, truncf: rounded after every op. For +, -, *, / and
// sqrt that is the correctly rounded result, as f32 has more than twice the digits plus two. Not by
// arith-emulate-unsupported-floats, whose truncf may be folded away.
//
//===----------------------------------------------------------------------===//
#include "HostLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace {

bool isHalf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isBF16() || element.isF16();
}

bool isByte(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
}

Type withElement(Type type, Type element) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    return shaped.clone(element);
  return element;
}

Value constant(ImplicitLocOpBuilder &b, Type type, int64_t value) {
  TypedAttr attr = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto shaped = dyn_cast<ShapedType>(type))
    attr = DenseElementsAttr::get(shaped, cast<Attribute>(attr));
  return arith::ConstantOp::create(b, attr);
}

/// f64 to the nearest bf16. By way of the nearest f32 it would round twice, so that way is rounded
/// to odd: toward zero, and the last bit set if anything was lost.
Value truncateDoubleToBF16(ImplicitLocOpBuilder &b, Value x) {
  Type f32 = withElement(x.getType(), b.getF32Type());
  Type i32 = withElement(x.getType(), b.getI32Type());
  Value nearest = arith::TruncFOp::create(b, f32, x);
  Value back = arith::ExtFOp::create(b, x.getType(), nearest);
  Value lost = arith::CmpFOp::create(b, arith::CmpFPredicate::ONE, back, x);
  Value away = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, math::AbsFOp::create(b, back),
                                     math::AbsFOp::create(b, x));
  Value one = constant(b, i32, 1);
  Value bits = arith::BitcastOp::create(b, i32, nearest);
  Value down = arith::SubIOp::create(b, bits, one);
  bits = arith::SelectOp::create(b, away, down, bits);
  Value odd = arith::OrIOp::create(b, bits, one);
  bits = arith::SelectOp::create(b, lost, odd, bits);
  return arith::TruncFOp::create(b, withElement(x.getType(), b.getBF16Type()),
                                 arith::BitcastOp::create(b, f32, bits));
}

/// An integer to the nearest f16 or bf16, through an f64 that holds it exactly.
Value convertInteger(ImplicitLocOpBuilder &b, Value x, Type to, bool isSigned) {
  Type f64 = withElement(x.getType(), b.getF64Type());
  if (getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth() > 53) {
    // Beyond 2^53 the low 12 bits only say whether something is there: neither format has bits
    // near them.
    Type type = x.getType();
    auto limit = [&](int64_t value) { return constant(b, type, value); };
    Value large = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, x, limit(int64_t(1) << 53));
    if (isSigned) {
      Value high = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, x, limit(int64_t(1) << 53));
      Value low =
          arith::CmpIOp::create(b, arith::CmpIPredicate::sle, x, limit(-(int64_t(1) << 53)));
      large = arith::OrIOp::create(b, high, low);
    }
    Value rest = arith::AndIOp::create(b, x, limit(0xfff));
    Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, rest, limit(0));
    Value sticky = arith::SelectOp::create(b, some, limit(0x800), limit(0));
    Value short53 =
        arith::OrIOp::create(b, arith::AndIOp::create(b, x, limit(~int64_t(0xfff))), sticky);
    x = arith::SelectOp::create(b, large, short53, x);
  }
  Value wide = isSigned ? arith::SIToFPOp::create(b, f64, x).getResult()
                        : arith::UIToFPOp::create(b, f64, x).getResult();
  if (getElementTypeOrSelf(to).isBF16())
    return truncateDoubleToBF16(b, wide);
  return arith::TruncFOp::create(b, to, wide);
}

/// An 8-bit float as a wider one, which is exact. f8E5M2 is the upper half of an f16; f8E4M3FN has
/// an f16's exponent but for the bias, so it is moved and multiplied, and its NaNs are put back.
Value extendByte(ImplicitLocOpBuilder &b, Value x, Type to) {
  Type from = x.getType(), i16 = withElement(from, b.getI16Type()),
       f16 = withElement(from, b.getF16Type()), f32 = withElement(from, b.getF32Type());
  Value bits = arith::BitcastOp::create(b, withElement(from, b.getI8Type()), x);
  bits = arith::ExtUIOp::create(b, i16, bits);
  auto half = [&](Value moved) -> Value {
    return arith::ExtFOp::create(b, f32, arith::BitcastOp::create(b, f16, moved).getResult());
  };
  Value wide;
  if (isa<Float8E5M2Type>(getElementTypeOrSelf(from))) {
    wide = half(arith::ShLIOp::create(b, bits, constant(b, i16, 8)));
  } else {
    Value magnitude = arith::AndIOp::create(b, bits, constant(b, i16, 0x7f));
    Value sign = arith::ShLIOp::create(b, arith::AndIOp::create(b, bits, constant(b, i16, 0x80)),
                                       constant(b, i16, 8));
    Value moved = arith::ShLIOp::create(b, magnitude, constant(b, i16, 7));
    auto number = [&](double value) -> Value {
      TypedAttr attr = b.getF32FloatAttr(float(value));
      if (auto shaped = dyn_cast<ShapedType>(f32))
        attr = DenseElementsAttr::get(shaped, cast<Attribute>(attr));
      return arith::ConstantOp::create(b, attr);
    };
    wide = arith::MulFOp::create(b, half(arith::OrIOp::create(b, moved, sign)), number(256));
    Value none = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, magnitude,
                                       constant(b, i16, 0x7f));
    wide = arith::SelectOp::create(b, none, number(std::numeric_limits<float>::quiet_NaN()), wide);
  }
  Type element = getElementTypeOrSelf(to);
  if (element.isF32())
    return wide;
  if (element.isF64())
    return arith::ExtFOp::create(b, to, wide);
  return arith::TruncFOp::create(b, to, wide);
}

/// The op on f32 between extf and truncf.
void widen(ImplicitLocOpBuilder &b, IRRewriter &rewriter, Operation *op) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    Type type = operand.getType();
    if (isHalf(type))
      operand = arith::ExtFOp::create(b, withElement(type, b.getF32Type()), operand);
    operands.push_back(operand);
  }
  SmallVector<Type> types;
  for (Type type : op->getResultTypes())
    types.push_back(isHalf(type) ? withElement(type, b.getF32Type()) : type);
  OperationState state(op->getLoc(), op->getName(), operands, types, op->getAttrs());
  Operation *wide = b.create(state);
  SmallVector<Value> results;
  for (auto [result, type] : llvm::zip(wide->getResults(), op->getResultTypes())) {
    Value value = result;
    if (isHalf(type))
      value = arith::TruncFOp::create(b, type, value);
    results.push_back(value);
  }
  rewriter.replaceOp(op, results);
}

LogicalResult legalizeHalf(IRRewriter &rewriter, Operation *op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  if (isa<arith::ConstantOp, arith::BitcastOp, arith::SelectOp>(op))
    return success();
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  if (isa<arith::ExtFOp>(op)) {
    if (getElementTypeOrSelf(to).isF64()) {
      Value single = arith::ExtFOp::create(b, withElement(to, b.getF32Type()), op->getOperand(0));
      rewriter.replaceOp(op, arith::ExtFOp::create(b, to, single));
    }
    return success();
  }
  if (isa<arith::TruncFOp>(op)) {
    if (getElementTypeOrSelf(from).isF64() && getElementTypeOrSelf(to).isBF16())
      rewriter.replaceOp(op, truncateDoubleToBF16(b, op->getOperand(0)));
    return success();
  }
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
    rewriter.replaceOp(op, convertInteger(b, op->getOperand(0), to, isa<arith::SIToFPOp>(op)));
    return success();
  }
  if (isa<arith::ScalingExtFOp, arith::ScalingTruncFOp>(op))
    return op->emitOpError("has no host lowering");
  widen(b, rewriter, op);
  return success();
}

LogicalResult dropFlags(Operation *op) {
  MLIRContext *context = op->getContext();
  if (auto fast = dyn_cast<arith::ArithFastMathInterface>(op))
    if (fast.getFastMathFlagsAttr())
      op->setAttr(fast.getFastMathAttrName(),
                  arith::FastMathFlagsAttr::get(context, arith::FastMathFlags::none));
  if (auto overflow = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op))
    if (overflow.getOverflowAttr())
      op->setAttr(overflow.getIntegerOverflowAttrName(),
                  arith::IntegerOverflowFlagsAttr::get(context, arith::IntegerOverflowFlags::none));
  if (auto rounding = dyn_cast<arith::ArithRoundingModeInterface>(op))
    if (auto mode = rounding.getRoundingModeAttr();
        mode && mode.getValue() != arith::RoundingMode::to_nearest_even)
      return op->emitOpError("host code rounds to nearest even, found rounding mode ") << mode;
  return success();
}

/// Applies patterns that are exact or deterministic, and nothing else: folding would evaluate math
/// functions with this machine's libm.
LogicalResult apply(ModuleOp module, RewritePatternSet &&patterns) {
  GreedyRewriteConfig config;
  config.enableFolding(false).enableConstantCSE(false);
  if (failed(applyPatternsGreedily(module, std::move(patterns), config)))
    return module.emitError("the expansion of float ops for the host did not end");
  return success();
}

} // namespace

LogicalResult mlir::ncclx::legalizeFloats(ModuleOp module) {
  MLIRContext *context = module.getContext();
  context->loadDialect<arith::ArithDialect, math::MathDialect>();
  IRRewriter rewriter(context);
  SmallVector<Operation *> halves, bytes;
  WalkResult flags = module.walk([&](Operation *op) {
    if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()))
      return WalkResult::advance();
    if (failed(dropFlags(op)))
      return WalkResult::interrupt();
    if (isa<arith::ExtFOp>(op) &&
        isa<Float8E5M2Type, Float8E4M3FNType>(getElementTypeOrSelf(op->getOperand(0)))) {
      bytes.push_back(op);
      return WalkResult::advance();
    }
    if ((llvm::any_of(op->getOperandTypes(), isByte) ||
         llvm::any_of(op->getResultTypes(), isByte)) &&
        !isa<arith::ConstantOp, arith::BitcastOp, arith::SelectOp>(op)) {
      op->emitOpError(
          "has no host form on 8-bit floats: they are moved and reduced by collectives, and "
          "extended, not computed with");
      return WalkResult::interrupt();
    }
    if (llvm::any_of(op->getOperandTypes(), isHalf) || llvm::any_of(op->getResultTypes(), isHalf))
      halves.push_back(op);
    return WalkResult::advance();
  });
  if (flags.wasInterrupted())
    return failure();
  for (Operation *op : bytes) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    rewriter.replaceOp(op, extendByte(b, op->getOperand(0), op->getResult(0).getType()));
  }
  for (Operation *op : halves)
    if (failed(legalizeHalf(rewriter, op)))
      return failure();

  RewritePatternSet functions(context);
  // Not fma, ceil, round and roundeven: those have exact instructions.
  math::populateExpansionPatterns(functions, {"rsqrt", "exp2", "powf", "fpowi", "tan", "sinh",
                                              "cosh", "asinh", "acosh", "atanh", "clampf"});
  populateMathPolynomialApproximationPatterns(functions, [](StringRef) { return true; });
  if (failed(apply(module, std::move(functions))))
    return failure();
  RewritePatternSet integers(context);
  arith::populateCeilFloorDivExpandOpsPatterns(integers);
  arith::populateExpandBFloat16Patterns(integers);
  if (failed(apply(module, std::move(integers))))
    return failure();

  WalkResult left = module.walk([](Operation *op) {
    if (isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
        !isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::CountLeadingZerosOp,
             math::CountTrailingZerosOp, math::CtPopOp, math::FloorOp, math::FmaOp, math::IsNaNOp,
             math::IsInfOp, math::IsFiniteOp, math::IsNormalOp, math::RoundOp, math::RoundEvenOp,
             math::SqrtOp, math::TruncOp>(op)) {
      op->emitOpError("has no host form that is the same on every machine for ")
          << op->getResult(0).getType();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(left.wasInterrupted());
}
