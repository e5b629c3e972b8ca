//===- ImportShard.cpp - Upstream's shard dialect as ncclx
//--------------------------------------===//
//
// Collectives of `shard` are Pure: the generic passes may merge, drop and move them. So this stands
// in front of everything else.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Transforms/Passes.h"

#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Transforms/MemberNumber.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_IMPORTSHARD
#include "ncclx/Transforms/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

class Importer {
public:
  explicit Importer(Operation *op) : op(op), b(op), loc(op->getLoc()) {}

  LogicalResult run();

private:
  Operation *op;
  OpBuilder b;
  Location loc;
  FlatSymbolRefAttr grid;
  ArrayAttr axes;
  int64_t members = 1;

  LogicalResult group(shard::GridOp of, ArrayRef<int16_t> listed);
  std::optional<ReductionKind> kindOf(shard::ReductionKind kind);
  Value converted(Value input, Type element);
  Value slice(shard::AllSliceOp slice);
  template <typename Op> FailureOr<DenseI64ArrayAttr> rootOf(Op rooted) {
    if (!rooted.getRootDynamic().empty())
      return op->emitOpError("has a root that is known at run time only; expected a constant");
    return DenseI64ArrayAttr::get(op->getContext(), rooted.getRoot());
  }
};

StringAttr axisName(MLIRContext *context, int64_t axis) {
  return StringAttr::get(context, "x" + Twine(axis));
}

LogicalResult Importer::group(shard::GridOp of, ArrayRef<int16_t> listed) {
  SmallVector<Attribute> names;
  for (int16_t axis : listed) {
    names.push_back(axisName(op->getContext(), axis));
    members *= of.getShape()[axis];
  }
  grid = FlatSymbolRefAttr::get(of.getSymNameAttr());
  axes = b.getArrayAttr(names);
  return success();
}

std::optional<ReductionKind> Importer::kindOf(shard::ReductionKind kind) {
  switch (kind) {
  case shard::ReductionKind::Sum:
    return ReductionKind::Sum;
  case shard::ReductionKind::Max:
    return ReductionKind::Max;
  case shard::ReductionKind::Min:
    return ReductionKind::Min;
  case shard::ReductionKind::Product:
    return ReductionKind::Prod;
  case shard::ReductionKind::Average:
    return ReductionKind::Avg;
  default:
    return std::nullopt;
  }
}

/// The input in the type that is accumulated in: the result's. Null where no value keeps itself.
Value Importer::converted(Value input, Type element) {
  auto type = cast<RankedTensorType>(input.getType());
  Type from = type.getElementType();
  auto to = RankedTensorType::get(type.getShape(), element);
  if (from == element)
    return input;
  if (!accumulates(from, element))
    return {};
  if (isa<FloatType>(element))
    return arith::ExtFOp::create(b, loc, to, input);
  if (!from.isSignlessInteger())
    return {};
  return arith::ExtSIOp::create(b, loc, to, input);
}

/// This rank's part of a tensor: nothing travels but its number.
Value Importer::slice(shard::AllSliceOp slice) {
  auto type = cast<RankedTensorType>(slice.getResult().getType());
  int64_t dim = slice.getSliceAxis().getSExtValue();
  Value number = memberNumber(op->getParentOfType<func::FuncOp>(), loc, grid, axes, {}, members);
  Value into = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto made = linalg::GenericOp::create(
      b, loc, type, ValueRange(), into, b.getMultiDimIdentityMap(type.getRank()), loops,
      [&](OpBuilder &inner, Location, ValueRange) {
        Value zero = arith::ConstantIndexOp::create(inner, loc, 0);
        Value size = arith::ConstantIndexOp::create(inner, loc, type.getDimSize(dim));
        Value mine = tensor::ExtractOp::create(inner, loc, number, zero);
        mine = arith::IndexCastOp::create(inner, loc, inner.getIndexType(), mine);
        SmallVector<Value> at;
        for (int64_t d = 0; d < type.getRank(); ++d)
          at.push_back(linalg::IndexOp::create(inner, loc, d));
        at[dim] = arith::AddIOp::create(inner, loc, at[dim],
                                        arith::MulIOp::create(inner, loc, mine, size));
        Value element = tensor::ExtractOp::create(inner, loc, slice.getInput(), at);
        linalg::YieldOp::create(inner, loc, element);
      });
  return made.getResult(0);
}

LogicalResult Importer::run() {
  auto gridName = op->getAttrOfType<FlatSymbolRefAttr>("grid");
  auto of = gridName ? SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(op, gridName)
                     : shard::GridOp();
  auto listed = op->getAttrOfType<DenseI16ArrayAttr>("grid_axes");
  if (!of || op->getNumResults() != 1 || op->getNumOperands() < 1)
    return op->emitOpError("has no counterpart in ncclx; shard modules are taken behind upstream's "
                           "shard-partition, collectives on tensors alone");
  for (Type type : {op->getOperand(0).getType(), op->getResult(0).getType()})
    if (auto tensor = dyn_cast<RankedTensorType>(type); !tensor || !tensor.hasStaticShape())
      return op->emitOpError("expected tensors of static shape, found ") << type;
  if (!op->getParentOfType<func::FuncOp>())
    return op->emitOpError("expected to stand in a func.func");
  if (failed(group(of, listed ? listed.asArrayRef() : ArrayRef<int16_t>())))
    return failure();
  Value input = op->getOperand(0);
  Type type = op->getResult(0).getType();
  Type element = cast<RankedTensorType>(type).getElementType();
  auto replace = [&](Value value) {
    op->replaceAllUsesWith(ValueRange(value));
    op->erase();
    return success();
  };
  auto order = ReductionOrderAttr::get(op->getContext(), ReductionOrder::Any);
  auto reduction = [&](shard::ReductionKind asked, ReductionKindAttr &kind) -> LogicalResult {
    std::optional<ReductionKind> known = kindOf(asked);
    if (!known)
      return op->emitOpError("reduces by ")
             << shard::stringifyReductionKind(asked) << ", which ncclx does not";
    kind = ReductionKindAttr::get(op->getContext(), *known);
    Value wide = converted(input, element);
    if (!wide)
      return op->emitOpError("accumulates ")
             << input.getType() << " in " << element << ", which is no wider type of its kind";
    input = wide;
    return success();
  };
  bool alone = listed == nullptr || listed.empty(); // a group of this rank
  if (alone) {
    shard::ReductionKind any = shard::ReductionKind::Sum;
    ReductionKindAttr ignored;
    if (failed(reduction(any, ignored)))
      return failure();
    return input.getType() == type
               ? replace(input)
               : op->emitOpError("over no axes has another shape than its input");
  }
  ReductionKindAttr kind;
  if (auto gather = dyn_cast<shard::AllGatherOp>(op))
    return replace(AllGatherOp::create(b, loc, type, Type(), input,
                                       b.getI64IntegerAttr(gather.getGatherAxis().getSExtValue()),
                                       grid, axes, ArrayAttr(), Value(), AlgorithmAttr())
                       .getResult());
  if (auto reduce = dyn_cast<shard::AllReduceOp>(op)) {
    if (failed(reduction(reduce.getReduction(), kind)))
      return failure();
    return replace(AllReduceOp::create(b, loc, type, Type(), input, kind, FloatAttr(),
                                       TypeAttr::get(element), order, grid, axes, ArrayAttr(),
                                       Value(), AlgorithmAttr())
                       .getResult());
  }
  if (auto scatter = dyn_cast<shard::ReduceScatterOp>(op)) {
    if (failed(reduction(scatter.getReduction(), kind)))
      return failure();
    return replace(
        ReduceScatterOp::create(b, loc, type, Type(), input,
                                b.getI64IntegerAttr(scatter.getScatterAxis().getSExtValue()), kind,
                                FloatAttr(), TypeAttr::get(element), order, grid, axes, ArrayAttr(),
                                Value(), AlgorithmAttr())
            .getResult());
  }
  if (auto exchange = dyn_cast<shard::AllToAllOp>(op))
    return replace(AllToAllOp::create(b, loc, type, Type(), input,
                                      b.getI64IntegerAttr(exchange.getSplitAxis().getSExtValue()),
                                      b.getI64IntegerAttr(exchange.getConcatAxis().getSExtValue()),
                                      grid, axes, ArrayAttr(), Value(), AlgorithmAttr())
                       .getResult());
  if (auto part = dyn_cast<shard::AllSliceOp>(op))
    return replace(slice(part));
  if (auto shift = dyn_cast<shard::ShiftOp>(op)) {
    int64_t axis = shift.getShiftAxis().getSExtValue(), n = of.getShape()[axis];
    int64_t by = shift.getOffset();
    DenseI64ArrayAttr pairs;
    if (!shift.getRotate()) { // what falls off goes nowhere
      SmallVector<int64_t> sends;
      for (int64_t i = 0; i < n; ++i)
        if (i + by >= 0 && i + by < n)
          sends.append({i, i + by});
      pairs = b.getDenseI64ArrayAttr(sends);
    }
    return replace(PermuteOp::create(b, loc, type, Type(), input,
                                     pairs ? IntegerAttr() : b.getI64IntegerAttr(by), pairs, grid,
                                     b.getArrayAttr(axisName(op->getContext(), axis)), ArrayAttr(),
                                     Value(), AlgorithmAttr())
                       .getResult());
  }
  auto rooted = [&](auto rootedOp, auto make) -> LogicalResult {
    auto root = rootOf(rootedOp);
    return failed(root) ? failure() : replace(make(*root));
  };
  if (auto broadcast = dyn_cast<shard::BroadcastOp>(op))
    return rooted(broadcast, [&](DenseI64ArrayAttr root) {
      return BroadcastOp::create(b, loc, type, Type(), input, root, grid, axes, ArrayAttr(),
                                 Value(), AlgorithmAttr())
          .getResult();
    });
  if (auto gather = dyn_cast<shard::GatherOp>(op))
    return rooted(gather, [&](DenseI64ArrayAttr root) {
      return GatherOp::create(b, loc, type, Type(), input,
                              b.getI64IntegerAttr(gather.getGatherAxis().getSExtValue()), root,
                              grid, axes, ArrayAttr(), Value(), AlgorithmAttr())
          .getResult();
    });
  if (auto scatter = dyn_cast<shard::ScatterOp>(op))
    return rooted(scatter, [&](DenseI64ArrayAttr root) {
      return ScatterOp::create(b, loc, type, Type(), input,
                               b.getI64IntegerAttr(scatter.getScatterAxis().getSExtValue()), root,
                               grid, axes, ArrayAttr(), Value(), AlgorithmAttr())
          .getResult();
    });
  if (auto reduce = dyn_cast<shard::ReduceOp>(op)) {
    if (failed(reduction(reduce.getReduction(), kind)))
      return failure();
    return rooted(reduce, [&](DenseI64ArrayAttr root) {
      return ReduceOp::create(b, loc, type, Type(), input, root, kind, FloatAttr(),
                              TypeAttr::get(element), order, grid, axes, ArrayAttr(), Value(),
                              AlgorithmAttr())
          .getResult();
    });
  }
  return op->emitOpError("has no counterpart in ncclx");
}

struct ImportShard : ncclx::impl::ImportShardBase<ImportShard> {
  using ImportShardBase::ImportShardBase;

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    SmallVector<shard::GridOp> grids;
    auto *dialect = getContext().getLoadedDialect<shard::ShardDialect>();
    getOperation().walk([&](Operation *op) {
      if (auto grid = dyn_cast<shard::GridOp>(op))
        grids.push_back(grid);
      else if (op->getDialect() == dialect)
        ops.push_back(op);
    });
    for (shard::GridOp grid : grids)
      if (llvm::any_of(grid.getShape(), [](int64_t size) { return size < 1; })) {
        grid.emitOpError("expected axes of constant size, of at least 1");
        return signalPassFailure();
      }
    for (Operation *op : ops)
      if (failed(Importer(op).run()))
        return signalPassFailure();
    for (shard::GridOp grid : grids) {
      OpBuilder b(grid);
      SmallVector<Attribute> names;
      for (int64_t axis = 0; axis < grid.getRank(); ++axis)
        names.push_back(axisName(&getContext(), axis));
      GridOp::create(b, grid.getLoc(), grid.getSymName(), b.getArrayAttr(names), grid.getShape(),
                     grid->getAttrOfType<StringAttr>(SymbolTable::getVisibilityAttrName()));
      grid.erase();
    }
  }
};

} // namespace
