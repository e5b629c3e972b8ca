//===- HloProducts.cpp - Dots and reductions as linalg ops -----------------------------===//
//
// A dot adds in its result's type: HLO leaves the type open.
//
//===----------------------------------------------------------------------===//
#include "HloImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::hlo;
using utils::IteratorType;

/// The result has the batch dimensions, then what is left of the left operand, then of the right.
FailureOr<Value> Importer::dot(Scope &scope, const Instruction &op) {
  if (failed(arrays(scope, op, 2)))
    return failure();
  const Shape &left = shapeOf(scope, op, 0), &right = shapeOf(scope, op, 1);
  auto dims = [&](StringRef name) { return numbers(op, name).value_or(SmallVector<int64_t>()); };
  SmallVector<int64_t> lb = dims("lhs_batch_dims"), rb = dims("rhs_batch_dims");
  SmallVector<int64_t> lc = dims("lhs_contracting_dims"), rc = dims("rhs_contracting_dims");
  SmallVector<std::optional<unsigned>> l(left.dims.size()), r(right.dims.size()); // loops
  SmallVector<int64_t> loops;                                                     // their sizes
  SmallVector<IteratorType> kinds;
  SmallVector<AffineExpr> out;
  bool fits = lb.size() == rb.size() && lc.size() == rc.size();
  auto pair = [&](ArrayRef<int64_t> left_, ArrayRef<int64_t> right_, bool batch) {
    for (size_t i = 0; fits && i < left_.size(); ++i) {
      int64_t x = left_[i], y = right_[i];
      fits = x >= 0 && x < int64_t(l.size()) && y >= 0 && y < int64_t(r.size()) && !l[x] && !r[y] &&
             left.dims[x] == right.dims[y];
      if (!fits)
        return;
      l[x] = r[y] = loops.size();
      if (batch)
        out.push_back(b.getAffineDimExpr(loops.size()));
      kinds.push_back(batch ? IteratorType::parallel : IteratorType::reduction);
      loops.push_back(left.dims[x]);
    }
  };
  pair(lb, rb, true);
  if (!fits)
    return error(op) << "batch dimensions do not fit";
  auto rest = [&](SmallVector<std::optional<unsigned>> &of, const Shape &shape,
                  ArrayRef<int64_t> contracted) {
    for (size_t i = 0; i < of.size(); ++i) {
      if (of[i] || llvm::is_contained(contracted, int64_t(i)))
        continue;
      of[i] = loops.size();
      out.push_back(b.getAffineDimExpr(loops.size()));
      kinds.push_back(IteratorType::parallel);
      loops.push_back(shape.dims[i]);
    }
  };
  rest(l, left, lc);
  rest(r, right, rc);
  pair(lc, rc, false);
  fits &= out.size() == op.shape.dims.size();
  double flops = 2;
  for (auto [i, size] : llvm::enumerate(loops))
    flops *= double(size);
  for (size_t i = 0; fits && i < out.size(); ++i)
    fits = op.shape.dims[i] == loops[cast<AffineDimExpr>(out[i]).getPosition()];
  if (!fits)
    return error(op) << "contracting dimensions and the result's shape do not fit the operands";
  auto arithmetic = [](Element e) { return e.kind == Element::Float || e.kind == Element::Signed; };
  Element to = op.shape.element;
  bool sameKind = left.element.kind == to.kind && right.element.kind == to.kind;
  if (!arithmetic(to) || !sameKind || left.element.bits > to.bits || right.element.bits > to.bits ||
      (left.element.bits == to.bits && !(left.element == to)) ||
      (right.element.bits == to.bits && !(right.element == to)) || op.find("sparsity") ||
      kinds.empty())
    return Value();
  auto map = [&](ArrayRef<std::optional<unsigned>> of) {
    SmallVector<AffineExpr> places;
    for (std::optional<unsigned> loop : of)
      places.push_back(b.getAffineDimExpr(*loop));
    return AffineMap::get(loops.size(), 0, places, context);
  };
  Location loc = at(op);
  Type element = typeOf(to, context);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  Value init = linalg::FillOp::create(b, loc, zero, empty(op, op.shape)).getResult(0);
  report.flops += flops * times;
  bool isFloat = to.kind == Element::Float;
  // A generic op where the named one does not take it: without a contracted dimension, or with
  // batches alone.
  return linalg::GenericOp::create(
             b, loc, init.getType(), ValueRange{value(scope, op, 0), value(scope, op, 1)}, init,
             {map(l), map(r), AffineMap::get(loops.size(), 0, out, context)}, kinds,
             [&](OpBuilder &inner, Location, ValueRange arguments) {
               auto wide = [&](Value x) -> Value {
                 if (x.getType() == element)
                   return x;
                 return isFloat ? arith::ExtFOp::create(inner, loc, element, x).getResult()
                                : arith::ExtSIOp::create(inner, loc, element, x).getResult();
               };
               Value x = wide(arguments[0]), y = wide(arguments[1]), sum = arguments[2];
               if (isFloat)
                 sum = arith::AddFOp::create(inner, loc, sum,
                                             arith::MulFOp::create(inner, loc, x, y));
               else
                 sum = arith::AddIOp::create(inner, loc, sum,
                                             arith::MulIOp::create(inner, loc, x, y));
               linalg::YieldOp::create(inner, loc, sum);
             })
      .getResult(0);
}

SmallVector<Value> Importer::inlineScalars(OpBuilder &inner, Location loc,
                                           const Computation &computation, ValueRange arguments,
                                           unsigned deep) {
  SmallVector<SmallVector<Value>> values;
  for (const Instruction &op : computation.instructions) {
    SmallVector<Value> &result = values.emplace_back();
    if (op.is("tuple")) {
      for (unsigned operand : op.operands)
        result.append(values[operand]);
      continue;
    }
    if (!op.shape.array() || !op.shape.dims.empty())
      return {};
    if (op.is("parameter")) {
      unsigned number =
          llvm::find(computation.parameters, values.size() - 1) - computation.parameters.begin();
      if (number >= arguments.size() ||
          arguments[number].getType() != typeOf(op.shape.element, context))
        return {};
      result.push_back(arguments[number]);
      continue;
    }
    if (op.is("constant")) {
      std::string wrong;
      DenseElementsAttr literal = literalOf(op, context, wrong);
      if (!literal)
        return {};
      result.push_back(arith::ConstantOp::create(
          inner, loc, cast<TypedAttr>(literal.getSplatValue<Attribute>())));
      continue;
    }
    SmallVector<Element> elements;
    SmallVector<Value> operands;
    for (unsigned operand : op.operands) {
      if (values[operand].size() != 1)
        return {};
      elements.push_back(computation.instructions[operand].shape.element);
      operands.push_back(values[operand].front());
    }
    Value made = scalarOp(inner, loc, op, elements, operands);
    if (!made || made.getType() != typeOf(op.shape.element, context))
      return {};
    result.push_back(made);
  }
  return values[computation.root];
}

LogicalResult Importer::reduce(Scope &scope, const Instruction &op, SmallVector<Value> &results,
                               bool &understood) {
  understood = false;
  const Computation *body = callee(op, "to_apply");
  std::optional<SmallVector<int64_t>> dims = numbers(op, "dimensions");
  size_t count = op.operands.size() / 2;
  if (!body || !dims || count == 0 || op.operands.size() % 2 != 0)
    return error(op) << "needs arrays, as many scalars, 'dimensions' and 'to_apply'";
  ArrayRef<Shape> shapes = op.shape.tuple ? ArrayRef<Shape>(op.shape.parts) : ArrayRef(op.shape);
  const Shape &first = shapeOf(scope, op, 0);
  SmallVector<int64_t> kept(first.dims.begin(), first.dims.end());
  int64_t rank = kept.size();
  llvm::sort(*dims);
  dims->erase(llvm::unique(*dims), dims->end());
  if (!dims->empty() && (dims->front() < 0 || dims->back() >= rank))
    return error(op) << "'dimensions' are not all of the operand's";
  SmallVector<IteratorType> loops(rank, IteratorType::parallel);
  SmallVector<AffineExpr> out;
  SmallVector<int64_t> left;
  for (int64_t i = 0; i < rank; ++i) {
    if (llvm::is_contained(*dims, i)) {
      loops[i] = IteratorType::reduction;
      continue;
    }
    out.push_back(b.getAffineDimExpr(i));
    left.push_back(kept[i]);
  }
  if (shapes.size() != count)
    return error(op) << "has " << shapes.size() << " results for " << count << " arrays";
  for (size_t i = 0; i < count; ++i) {
    const Shape &array = shapeOf(scope, op, i), &start = shapeOf(scope, op, count + i);
    if (!array.array() || ArrayRef<int64_t>(array.dims) != ArrayRef<int64_t>(kept) ||
        !start.array() || !start.dims.empty() || !(start.element == array.element) ||
        !shapes[i].array() || ArrayRef<int64_t>(shapes[i].dims) != ArrayRef<int64_t>(left) ||
        !(shapes[i].element == array.element))
      return error(op) << "array, scalar and result " << i << " do not fit each other";
  }
  Location loc = at(op);
  SmallVector<Value> inputs, inits;
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(value(scope, op, i));
    inits.push_back(linalg::FillOp::create(b, loc, extract(loc, value(scope, op, count + i)),
                                           empty(op, shapes[i]))
                        .getResult(0));
  }
  if (rank == 0)
    return success(); // of scalars: opaque
  SmallVector<AffineMap> maps(count, b.getMultiDimIdentityMap(rank));
  maps.append(count, AffineMap::get(rank, 0, out, context));
  auto generic = linalg::GenericOp::create(
      b, loc, ValueRange(inits).getTypes(), inputs, inits, maps, loops,
      [&](OpBuilder &inner, Location, ValueRange arguments) {
        SmallVector<Value> all(arguments.drop_front(count));
        llvm::append_range(all, arguments.take_front(count));
        SmallVector<Value> made = inlineScalars(inner, loc, *body, all);
        understood = made.size() == count;
        for (size_t i = 0; understood && i < count; ++i)
          understood = made[i].getType() == arguments[count + i].getType();
        linalg::YieldOp::create(inner, loc,
                                understood ? ValueRange(made) : arguments.drop_front(count));
      });
  if (!understood) {
    generic.erase();
    return success();
  }
  report.flops += double(shapeOf(scope, op, 0).elements()) * double(count) * times;
  results.assign(generic.getResults().begin(), generic.getResults().end());
  return success();
}
