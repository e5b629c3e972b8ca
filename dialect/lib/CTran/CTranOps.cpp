//===- CTranOps.cpp - What the ops of ctran touch, and how they fold --------------===//
#include "Assembly.h"

#include "ncclx/CTran/CTran.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::ctran;

#define GET_OP_CLASSES
#include "ncclx/CTran/CTranOps.cpp.inc"

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;
using Accesses = SmallVectorImpl<BoxAccess>;

//===--- effects -------------------------------------------------------------------===//

/// The op has a place in the order of its rank.
static void orderEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), Order::get());
  effects.emplace_back(MemoryEffects::Write::get(), Order::get());
}

/// The op releases or acquires: it is ordered with every access to memory.
static void fenceEffects(Effects &effects) {
  orderEffects(effects);
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

static void boxEffects(MutableOperandRange reads, MutableOperandRange writes, Effects &effects) {
  orderEffects(effects);
  for (OpOperand &operand : reads)
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
  for (OpOperand &operand : writes)
    effects.emplace_back(MemoryEffects::Write::get(), &operand);
}

/// A slot raised on landing releases what the copy wrote.
static void notifyEffects(Value slot, Effects &effects) {
  if (!slot)
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

void CopyOp::getEffects(Effects &effects) {
  orderEffects(effects);
  effects.emplace_back(MemoryEffects::Read::get(), &getSourceMutable());
  for (OpOperand &operand : getDestsMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &operand);
  notifyEffects(getNotify(), effects);
}
void ReduceOp::getEffects(Effects &effects) {
  boxEffects(getSourcesMutable(), getDestsMutable(), effects);
  notifyEffects(getNotify(), effects);
}
void ComputeOp::getEffects(Effects &effects) {
  boxEffects(getReadsMutable(), getWritesMutable(), effects);
}
void SignalOp::getEffects(Effects &effects) { fenceEffects(effects); }
void WaitOp::getEffects(Effects &effects) { fenceEffects(effects); }
void FlushOp::getEffects(Effects &effects) { fenceEffects(effects); }
static void readEffects(OpOperand &box, Effects &effects) {
  orderEffects(effects);
  effects.emplace_back(MemoryEffects::Read::get(), &box);
}
void CountOp::getEffects(Effects &effects) { readEffects(getSourceMutable(), effects); }
void SourceOp::getEffects(Effects &effects) { readEffects(getRangeMutable(), effects); }
void SinkOp::getEffects(Effects &effects) { readEffects(getRangeMutable(), effects); }

//===--- ScheduleOpInterface --------------------------------------------------------===//

static void addAll(Accesses &accesses, ValueRange boxes, bool write) {
  for (Value box : boxes)
    accesses.push_back({box, write});
}

void CopyOp::getAccesses(Accesses &accesses) {
  accesses.push_back({getSource(), false});
  addAll(accesses, getDests(), true);
}
void ReduceOp::getAccesses(Accesses &accesses) {
  addAll(accesses, getSources(), false);
  addAll(accesses, getDests(), true);
}
void ComputeOp::getAccesses(Accesses &accesses) {
  addAll(accesses, getReads(), false);
  addAll(accesses, getWrites(), true);
}
void SignalOp::getAccesses(Accesses &) {}
void WaitOp::getAccesses(Accesses &) {}
void FlushOp::getAccesses(Accesses &) {}
void CountOp::getAccesses(Accesses &accesses) { accesses.push_back({getSource(), false}); }
void SourceOp::getAccesses(Accesses &accesses) { accesses.push_back({getRange(), false}); }
void SinkOp::getAccesses(Accesses &accesses) { accesses.push_back({getRange(), false}); }

Value CopyOp::getTouchedSlot() { return getNotify(); }
Value ReduceOp::getTouchedSlot() { return getNotify(); }
Value ComputeOp::getTouchedSlot() { return {}; }
Value SignalOp::getTouchedSlot() { return getSlot(); }
Value WaitOp::getTouchedSlot() { return getSlot(); }
Value FlushOp::getTouchedSlot() { return {}; }
Value CountOp::getTouchedSlot() { return {}; }
Value SourceOp::getTouchedSlot() { return {}; }
Value SinkOp::getTouchedSlot() { return {}; }

#define NCCLX_LANE_OP(Op)                                                                          \
  OperandRange Op::getAfterTokens() { return getAfter(); }                                         \
  Value Op::getDoneToken() { return getDone(); }                                                   \
  LaneKind Op::getLaneKind() { return getLane(); }                                                 \
  Value Op::getLaneIndexValue() { return getLaneIndex(); }
NCCLX_LANE_OP(CopyOp)
NCCLX_LANE_OP(ReduceOp)
NCCLX_LANE_OP(ComputeOp)
NCCLX_LANE_OP(SignalOp)
NCCLX_LANE_OP(WaitOp)
NCCLX_LANE_OP(FlushOp)
NCCLX_LANE_OP(CountOp)
NCCLX_LANE_OP(SourceOp)
NCCLX_LANE_OP(SinkOp)
#undef NCCLX_LANE_OP

//===--- structure -----------------------------------------------------------------===//

int64_t ProgramOp::getNumRanks() {
  int64_t ranks = 1;
  for (auto axis : getGrid().getAsRange<GridAxisAttr>())
    ranks *= axis.getSize();
  return ranks;
}

std::optional<unsigned> ProgramOp::getAxisIndex(StringRef name) {
  for (auto [i, axis] : llvm::enumerate(getGrid().getAsRange<GridAxisAttr>()))
    if (axis.getName() == name)
      return i;
  return std::nullopt;
}

int64_t ProgramOp::getAxisSize(unsigned axis) {
  return cast<GridAxisAttr>(getGrid()[axis]).getSize();
}

LogicalResult CoordOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                        ValueRange operands, DictionaryAttr attributes,
                                        OpaqueProperties properties, RegionRange regions,
                                        SmallVectorImpl<Type> &types) {
  Adaptor adaptor(operands, attributes, properties, regions);
  types.push_back(CoordType::get(context, adaptor.getAxis()));
  return success();
}

OpFoldResult ShiftOp::fold(FoldAdaptor adaptor) {
  if (auto amount = dyn_cast_if_present<IntegerAttr>(adaptor.getAmount()))
    if (amount.getValue().isZero())
      return getCoord();
  return {};
}

namespace {
/// A constant shift of a constant shift is one shift.
struct MergeShifts : OpRewritePattern<ShiftOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ShiftOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getCoord().getDefiningOp<ShiftOp>();
    APInt a, b;
    if (!inner || !matchPattern(op.getAmount(), m_ConstantInt(&a)) ||
        !matchPattern(inner.getAmount(), m_ConstantInt(&b)))
      return failure();
    bool overflow;
    APInt sum = a.sadd_ov(b, overflow);
    if (overflow)
      return failure();
    Value amount = arith::ConstantIndexOp::create(rewriter, op.getLoc(), sum.getSExtValue());
    rewriter.replaceOpWithNewOp<ShiftOp>(op, op.getType(), inner.getCoord(), amount);
    return success();
  }
};
} // namespace

void ShiftOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<MergeShifts>(context);
}
