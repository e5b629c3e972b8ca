//===- StepsRewrite.cpp - Exchanges in steps, written down ---------------------------===//
#include "Parts.h"
#include "Steps.h"

#include "ncclx/Transforms/MemberNumber.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::ncclx;

Value Steps::permute(OpBuilder &b, Exchange &edge, Value value, const StepGroup &over,
                     int64_t shift) {
  CollectiveOpInterface op = edge.collective;
  return PermuteOp::create(b, op.getLoc(), value.getType(), Type(), value,
                           b.getI64IntegerAttr(shift), DenseI64ArrayAttr(), op.getGridAttr(),
                           over.axes, over.groups, Value(), AlgorithmAttr())
      .getResult();
}

/// This member's number in a group.
Value Steps::number(Exchange &edge, const StepGroup &of) {
  CollectiveOpInterface op = edge.collective;
  return memberNumber(op->getParentOfType<func::FuncOp>(), op.getLoc(), op.getGridAttr(), of.axes,
                      of.groups, of.size);
}

/// The tensor with its blocks turned by this member's number: block i is block i + sign * number
/// of `value`, in both groups.
Value Steps::rotate(OpBuilder &b, Exchange &edge, Value value, unsigned dim, int sign) {
  Location loc = edge.collective.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  Value mine = number(edge, inner), theirs = outer.size > 1 ? number(edge, outer) : Value();
  Value into = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto op = linalg::GenericOp::create(
      b, loc, type, ValueRange(), into, b.getMultiDimIdentityMap(type.getRank()), loops,
      [&](OpBuilder &b, Location loc, ValueRange) {
        auto constant = [&](int64_t v) -> Value {
          return arith::ConstantIndexOp::create(b, loc, v);
        };
        auto turn = [&](Value index, Value number, int64_t size) -> Value {
          Value at = tensor::ExtractOp::create(b, loc, number, constant(0));
          at = arith::IndexCastOp::create(b, loc, b.getIndexType(), at);
          if (sign < 0) // below `size`, and not negative
            at = arith::SubIOp::create(b, loc, constant(size), at);
          return arith::RemUIOp::create(b, loc, arith::AddIOp::create(b, loc, index, at),
                                        constant(size));
        };
        SmallVector<Value> at;
        for (int64_t d = 0; d < type.getRank(); ++d)
          at.push_back(linalg::IndexOp::create(b, loc, d));
        Value rows = constant(edge.shardRows()), last = constant(inner.size);
        Value block = arith::DivUIOp::create(b, loc, at[dim], rows);
        Value from = turn(arith::RemUIOp::create(b, loc, block, last), mine, inner.size);
        if (theirs) {
          Value o = turn(arith::DivUIOp::create(b, loc, block, last), theirs, outer.size);
          from = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, o, last), from);
        }
        Value row = arith::RemUIOp::create(b, loc, at[dim], rows);
        at[dim] = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, from, rows), row);
        Value element = tensor::ExtractOp::create(b, loc, value, at);
        linalg::YieldOp::create(b, loc, element);
      });
  return op.getResult(0);
}

void Steps::gather(Exchange &edge) {
  linalg::LinalgOp product = edge.product;
  OpBuilder b(product);
  Location loc = edge.collective.getLoc();
  int64_t c = edge.shardRows();
  Value shard = edge.collective.getInput(), whole = product->getOperand(2);
  auto shardType = cast<RankedTensorType>(shard.getType());
  // Products write into one tensor, the blocks in the order in which they are counted.
  auto compute = [&](Value blocks, int64_t from, int64_t count) {
    SmallVector<Value> operands(product->getOperands());
    operands[edge.operand] = blocks;
    operands[2] = takeSlice(b, loc, whole, edge.rows, from * c, count * c);
    Operation *part = clone(b, product, operands[2].getType(), operands);
    whole = putPart(b, loc, part->getResult(0), whole, edge.rows, from * c);
  };
  SmallVector<Step> steps = plan();
  SmallVector<Value> own = {shard};
  for (int64_t k = 1; k < outer.size; ++k)
    own.push_back(permute(b, edge, shard, outer, -k));
  for (int64_t k = 0; k < outer.size; ++k) {
    SmallVector<int64_t> shape(shardType.getShape());
    shape[edge.dim] = inner.size * c;
    Value stack;
    if (doubling && steps.size() > 1)
      stack =
          putPart(b, loc, own[k],
                  tensor::EmptyOp::create(b, loc, shape, shardType.getElementType()), edge.dim, 0);
    Value newest = own[k];
    int64_t at = k * inner.size, count = 1;
    for (auto [i, step] : llvm::enumerate(steps)) {
      Value sent = newest;
      if (doubling && step.have > 1)
        sent = takePart(b, loc, stack, edge.dim, 0, step.size * c);
      Value next = permute(b, edge, sent, inner, doubling ? -step.have : -1);
      compute(newest, at, count);
      at = k * inner.size + step.have;
      count = step.size;
      newest = next;
      if (doubling && i + 1 < steps.size())
        stack = putPart(b, loc, next, stack, edge.dim, step.have * c);
    }
    compute(newest, at, count);
  }
  Value result = rotate(b, edge, whole, edge.rows, -1);
  product->getResult(0).replaceAllUsesWith(result);
  product->erase();
  edge.collective->erase();
}

/// A number in another type, wider or narrower, of the same kind.
static Value converted(OpBuilder &b, Location loc, Value value, Type to) {
  if (value.getType() == to)
    return value;
  bool wider = to.getIntOrFloatBitWidth() > value.getType().getIntOrFloatBitWidth();
  if (isa<FloatType>(to))
    return wider ? Value(arith::ExtFOp::create(b, loc, to, value))
                 : Value(arith::TruncFOp::create(b, loc, to, value));
  return wider ? Value(arith::ExtSIOp::create(b, loc, to, value))
               : Value(arith::TruncIOp::create(b, loc, to, value));
}

static Value combined(OpBuilder &b, Location loc, ReductionKind kind, Value x, Value y) {
  bool isFloat = isa<FloatType>(x.getType());
  switch (kind) {
  case ReductionKind::Min:
    return isFloat ? Value(arith::MinimumFOp::create(b, loc, x, y))
                   : Value(arith::MinSIOp::create(b, loc, x, y));
  case ReductionKind::Max:
    return isFloat ? Value(arith::MaximumFOp::create(b, loc, x, y))
                   : Value(arith::MaxSIOp::create(b, loc, x, y));
  case ReductionKind::Prod:
    return isFloat ? Value(arith::MulFOp::create(b, loc, x, y))
                   : Value(arith::MulIOp::create(b, loc, x, y));
  default:
    return isFloat ? Value(arith::AddFOp::create(b, loc, x, y))
                   : Value(arith::AddIOp::create(b, loc, x, y));
  }
}

/// Tensors combined element by element, one after the other, in type `type`, and given as `result`;
/// a single one is only converted.
static Value combine(OpBuilder &b, Location loc, ReductionKind kind, ArrayRef<Value> tensors,
                     Type type, Type result) {
  auto shape = cast<RankedTensorType>(tensors[0].getType());
  if (tensors.size() == 1 && shape.getElementType() == result)
    return tensors[0];
  Value into = tensor::EmptyOp::create(b, loc, shape.getShape(), result);
  SmallVector<AffineMap> maps(tensors.size() + 1, b.getMultiDimIdentityMap(shape.getRank()));
  SmallVector<utils::IteratorType> loops(shape.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, into.getType(), tensors, into, maps, loops,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               Value sum = converted(b, loc, args[0], type);
               for (Value arg : args.slice(1, tensors.size() - 1))
                 sum = combined(b, loc, kind, sum, converted(b, loc, arg, type));
               linalg::YieldOp::create(b, loc, converted(b, loc, sum, result));
             })
      .getResult(0);
}

void Steps::reduce(Exchange &edge) {
  ReduceScatterOp scatter = reductionOf(edge);
  linalg::LinalgOp product = edge.product;
  OpBuilder b(scatter);
  Location loc = scatter.getLoc();
  int64_t c = edge.shardRows();
  Type type = scatter.getAccumulate(), element = edge.collective.getElementType();
  Value rows = rotate(b, edge, product->getOperand(edge.operand), edge.dim, 1);
  // Partial sums of some blocks, in the type that they are added in.
  auto compute = [&](int64_t from, int64_t count) {
    SmallVector<Value> operands(product->getOperands());
    operands[edge.operand] = takePart(b, loc, rows, edge.dim, from * c, count * c);
    operands[2] = takePart(b, loc, operands[2], edge.rows, from * c, count * c);
    Operation *part = clone(b, product, operands[2].getType(), operands);
    return combine(b, loc, scatter.getKind(), part->getResult(0), type, type);
  };
  auto add = [&](Value left, Value right) {
    return combine(b, loc, scatter.getKind(), {left, right}, type, type);
  };
  struct Received {
    Value sums; ///< of the blocks [from, from + count)
    int64_t from, count;
  };
  SmallVector<Step> steps = plan();
  SmallVector<Value> fromOthers;
  Value result;
  for (int64_t k = outer.size; k-- > 0;) {
    int64_t base = k * inner.size;
    SmallVector<Received> received;
    // Blocks [from, from + count), with what has come for them, in the order in which it came.
    auto sum = [&](int64_t from, int64_t count) {
      Value sums = compute(base + from, count);
      for (Received &r : received) {
        int64_t common = std::min(from + count, r.from + r.count) - from;
        if (common <= 0)
          continue;
        Value theirs = r.sums;
        if (r.count != common)
          theirs = takePart(b, loc, theirs, edge.rows, (from - r.from) * c, common * c);
        if (common == count) {
          sums = add(sums, theirs);
          continue;
        }
        Value mine = add(takePart(b, loc, sums, edge.rows, 0, common * c), theirs);
        sums = putPart(b, loc, mine, sums, edge.rows, 0);
      }
      return sums;
    };
    for (Step step : llvm::reverse(steps)) {
      Value sums = sum(step.have, step.size);
      Value came = permute(b, edge, sums, inner, doubling ? step.have : 1);
      if (!doubling) // they are of the one block in front of the one that was sent
        received.clear();
      received.push_back({came, doubling ? 0 : step.have - 1, step.size});
    }
    Value sums = sum(0, 1);
    if (k > 0) {
      fromOthers.push_back(permute(b, edge, sums, outer, k));
      continue;
    }
    for (Value theirs : fromOthers)
      sums = add(sums, theirs);
    result = combine(b, loc, scatter.getKind(), sums, type, element);
  }
  scatter.getResult().replaceAllUsesWith(result);
  scatter->erase();
  product->erase();
}

void Steps::reduceDirectly(Exchange &edge) {
  ReduceScatterOp scatter = reductionOf(edge);
  linalg::LinalgOp product = edge.product;
  OpBuilder b(scatter);
  Location loc = scatter.getLoc();
  const int64_t c = edge.shardRows(), n = inner.size;
  Type type = scatter.getAccumulate(), element = edge.collective.getElementType();
  Value rows = rotate(b, edge, product->getOperand(edge.operand), edge.dim, 1);
  // Block i is for the i-th member behind this one. Not converted before it is sent: what is added
  // is wider, and exact.
  auto compute = [&](int64_t i) {
    SmallVector<Value> operands(product->getOperands());
    operands[edge.operand] = takePart(b, loc, rows, edge.dim, i * c, c);
    operands[2] = takePart(b, loc, operands[2], edge.rows, i * c, c);
    return clone(b, product, operands[2].getType(), operands)->getResult(0);
  };
  SmallVector<Value> came(n); // from the i-th member behind this one
  for (int64_t i = n - 1; i > 0; --i)
    came[n - i] = permute(b, edge, compute(i), inner, i);
  came[0] = compute(0);
  if (scatter.getOrder() != ReductionOrder::Any) { // by the members' numbers
    SmallVector<int64_t> shape(cast<RankedTensorType>(came[0].getType()).getShape());
    shape[edge.rows] = n * c;
    Value stack = tensor::EmptyOp::create(b, loc, shape, element);
    for (int64_t i = 0; i < n; ++i)
      stack = putPart(b, loc, came[i], stack, edge.rows, i * c);
    stack = rotate(b, edge, stack, edge.rows, -1);
    for (int64_t i = 0; i < n; ++i)
      came[i] = takePart(b, loc, stack, edge.rows, i * c, c);
  }
  scatter.getResult().replaceAllUsesWith(combine(b, loc, scatter.getKind(), came, type, element));
  scatter->erase();
  product->erase();
}

void Steps::rewrite(Exchange &edge) {
  if (edge.isGather())
    gather(edge);
  else if (form == StepForm::direct)
    reduceDirectly(edge);
  else
    reduce(edge);
}
