//===- HloTensors.cpp - Elementwise ops and shapes as linalg and tensor ops -----------------===//
//
// What is elementwise over scalars alone becomes arithmetic on them, so that index computations
// are no kernels.
//
//===----------------------------------------------------------------------===//
#include "HloImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ncclx::hlo;
using utils::IteratorType;

LogicalResult Importer::arrays(const Scope &scope, const Instruction &op, size_t count) {
  if (op.operands.size() != count)
    return error(op) << "takes " << count << " operands, found " << op.operands.size();
  for (unsigned i = 0; i < count; ++i)
    if (!shapeOf(scope, op, i).array())
      return error(op) << "operand " << i << " is no array";
  if (!op.shape.array())
    return error(op) << "has an array for a result";
  return success();
}

std::optional<SmallVector<int64_t>> Importer::numbers(const Instruction &op,
                                                      StringRef attribute) const {
  std::optional<StringRef> text = op.find(attribute);
  return text ? readNumbers(*text) : std::nullopt;
}

Value Importer::empty(const Instruction &op, const Shape &shape) {
  return tensor::EmptyOp::create(b, at(op), shape.dims, typeOf(shape.element, context));
}

Value Importer::extract(Location loc, Value scalarTensor) {
  return tensor::ExtractOp::create(b, loc, scalarTensor, ValueRange());
}

Value Importer::mapElements(Location loc, Value tensor, Type element,
                            llvm::function_ref<Value(OpBuilder &, Value)> convert) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getRank() == 0)
    return tensor::FromElementsOp::create(b, loc, RankedTensorType::get({}, element),
                                          convert(b, extract(loc, tensor)));
  Value init = tensor::EmptyOp::create(b, loc, type.getShape(), element);
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<IteratorType> loops(type.getRank(), IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, init.getType(), tensor, init, {map, map}, loops,
                                   [&](OpBuilder &inner, Location, ValueRange arguments) {
                                     linalg::YieldOp::create(inner, loc,
                                                             convert(inner, arguments[0]));
                                   })
      .getResult(0);
}

FailureOr<Value> Importer::elementwise(Scope &scope, const Instruction &op) {
  // Scalars stand beside arrays in select and clamp.
  SmallVector<Element> elements;
  SmallVector<Value> operands;
  SmallVector<bool> scalar;
  bool mixes = op.is("select") || op.is("clamp");
  for (unsigned i = 0; i < op.operands.size(); ++i) {
    const Shape &shape = shapeOf(scope, op, i);
    bool isScalar = shape.array() && shape.dims.empty();
    if (!shape.array() || (shape.dims != op.shape.dims && !(mixes && isScalar)))
      return error(op) << "operand " << i << " has another shape than the result";
    elements.push_back(shape.element);
    operands.push_back(value(scope, op, i));
    scalar.push_back(isScalar);
  }
  Location loc = at(op);
  Type element = typeOf(op.shape.element, context);
  // Tried on scalars that nobody uses where the op is not known.
  OpBuilder::InsertionGuard guard(b);
  if (op.shape.dims.empty()) {
    Operation *before = b.getInsertionBlock()->empty() ? nullptr : &b.getInsertionBlock()->back();
    SmallVector<Value> scalars;
    for (Value operand : operands)
      scalars.push_back(extract(loc, operand));
    Value made = scalarOp(b, loc, op, elements, scalars);
    if (made)
      return Value(
          tensor::FromElementsOp::create(b, loc, RankedTensorType::get({}, element), made));
    while (!b.getInsertionBlock()->empty() && &b.getInsertionBlock()->back() != before)
      b.getInsertionBlock()->back().erase();
    return Value();
  }
  unsigned rank = op.shape.dims.size();
  SmallVector<AffineMap> maps;
  for (bool isScalar : scalar)
    maps.push_back(isScalar ? AffineMap::get(rank, 0, context) : b.getMultiDimIdentityMap(rank));
  maps.push_back(b.getMultiDimIdentityMap(rank));
  SmallVector<IteratorType> loops(rank, IteratorType::parallel);
  Value init = empty(op, op.shape);
  bool understood = true;
  auto generic = linalg::GenericOp::create(
      b, loc, init.getType(), operands, init, maps, loops,
      [&](OpBuilder &inner, Location, ValueRange arguments) {
        Value made = scalarOp(inner, loc, op, elements, arguments.drop_back());
        understood = static_cast<bool>(made);
        linalg::YieldOp::create(inner, loc, made ? made : arguments.back());
      });
  if (understood)
    return generic.getResult(0);
  generic.erase();
  init.getDefiningOp()->erase();
  return Value();
}

FailureOr<Value> Importer::broadcast(Scope &scope, const Instruction &op) {
  if (failed(arrays(scope, op, 1)))
    return failure();
  const Shape &from = shapeOf(scope, op, 0);
  std::optional<SmallVector<int64_t>> dims = numbers(op, "dimensions");
  if (!dims || dims->size() != from.dims.size() || !(from.element == op.shape.element))
    return error(op) << "needs a result dimension for each of the operand's in 'dimensions'";
  int64_t rank = op.shape.dims.size();
  SmallVector<AffineExpr> place;
  SmallVector<bool> used(rank);
  for (auto [i, dim] : llvm::enumerate(*dims)) {
    if (dim < 0 || dim >= rank || op.shape.dims[dim] != from.dims[i] || used[dim])
      return error(op) << "operand dimension " << i << " does not fit result dimension " << dim;
    used[dim] = true;
    place.push_back(b.getAffineDimExpr(dim));
  }
  Location loc = at(op);
  Value init = empty(op, op.shape);
  if (from.dims.empty())
    return linalg::FillOp::create(b, loc, extract(loc, value(scope, op, 0)), init).getResult(0);
  SmallVector<IteratorType> loops(rank, IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, init.getType(), value(scope, op, 0), init,
             {AffineMap::get(rank, 0, place, context), b.getMultiDimIdentityMap(rank)}, loops,
             [&](OpBuilder &inner, Location, ValueRange arguments) {
               linalg::YieldOp::create(inner, loc, arguments[0]);
             })
      .getResult(0);
}

FailureOr<Value> Importer::iota(const Instruction &op) {
  std::optional<SmallVector<int64_t>> dim = numbers(op, "iota_dimension");
  int64_t rank = op.shape.dims.size();
  if (!op.shape.array() || !dim || dim->size() != 1 || (*dim)[0] < 0 || (*dim)[0] >= rank)
    return error(op) << "needs a dimension of its result in 'iota_dimension'";
  Element element = op.shape.element;
  if (element.kind == Element::Complex || element.kind == Element::Predicate)
    return Value();
  Location loc = at(op);
  Value init = empty(op, op.shape);
  SmallVector<IteratorType> loops(rank, IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, init.getType(), ValueRange(), init, b.getMultiDimIdentityMap(rank), loops,
             [&](OpBuilder &inner, Location, ValueRange) {
               Value index = linalg::IndexOp::create(inner, loc, (*dim)[0]);
               bool isFloat = element.kind == Element::Float;
               Type type = isFloat ? Type(b.getI64Type()) : typeOf(element, context);
               Value number = arith::IndexCastOp::create(inner, loc, type, index);
               if (isFloat)
                 number = arith::SIToFPOp::create(inner, loc, typeOf(element, context), number);
               linalg::YieldOp::create(inner, loc, number);
             })
      .getResult(0);
}

FailureOr<Value> Importer::reshape(Scope &scope, const Instruction &op) {
  if (failed(arrays(scope, op, 1)))
    return failure();
  const Shape &from = shapeOf(scope, op, 0);
  if (op.is("bitcast") && from.dims != op.shape.dims &&
      !(from.rowMajor && op.shape.rowMajor && from.element.bits == op.shape.element.bits))
    return Value(); // depends on layouts
  if (op.is("bitcast") && !(from.element == op.shape.element))
    return Value();
  if (from.elements() != op.shape.elements() || !(from.element == op.shape.element))
    return error(op) << "result and operand differ in elements";
  Value tensor = value(scope, op, 0);
  if (from.dims == op.shape.dims)
    return tensor;
  Location loc = at(op);
  auto all = [](size_t rank) {
    SmallVector<ReassociationIndices> groups(1);
    groups[0].resize(rank);
    std::iota(groups[0].begin(), groups[0].end(), 0);
    return rank ? groups : SmallVector<ReassociationIndices>();
  };
  RankedTensorType to = typeOf(op.shape, context);
  if (op.shape.dims.empty())
    return Value(
        tensor::CollapseShapeOp::create(b, loc, to, tensor, SmallVector<ReassociationIndices>()));
  if (from.dims.empty())
    return Value(
        tensor::ExpandShapeOp::create(b, loc, to, tensor, SmallVector<ReassociationIndices>()));
  auto flat = RankedTensorType::get({from.elements()}, to.getElementType());
  if (from.dims.size() > 1)
    tensor = tensor::CollapseShapeOp::create(b, loc, flat, tensor, all(from.dims.size()));
  if (op.shape.dims.size() > 1)
    tensor = tensor::ExpandShapeOp::create(b, loc, to, tensor, all(op.shape.dims.size()));
  return tensor;
}

FailureOr<Value> Importer::transpose(Scope &scope, const Instruction &op) {
  if (failed(arrays(scope, op, 1)))
    return failure();
  const Shape &from = shapeOf(scope, op, 0);
  std::optional<SmallVector<int64_t>> dims = numbers(op, "dimensions");
  size_t rank = from.dims.size();
  SmallVector<int64_t> sorted = dims.value_or(SmallVector<int64_t>());
  llvm::sort(sorted);
  bool fits = dims && sorted.size() == rank && op.shape.dims.size() == rank &&
              from.element == op.shape.element;
  for (size_t i = 0; fits && i < rank; ++i)
    fits = sorted[i] == int64_t(i) && op.shape.dims[i] == from.dims[(*dims)[i]];
  if (!fits)
    return error(op) << "'dimensions' do not lead from the operand's shape to the result's";
  if (rank == 0)
    return value(scope, op, 0);
  return linalg::TransposeOp::create(b, at(op), value(scope, op, 0), empty(op, op.shape), *dims)
      ->getResult(0);
}

FailureOr<Value> Importer::slice(Scope &scope, const Instruction &op) {
  if (failed(arrays(scope, op, 1)))
    return failure();
  const Shape &from = shapeOf(scope, op, 0);
  StringRef text = op.find("slice").value_or("").trim();
  SmallVector<StringRef> parts;
  if (text.consume_front("{") && text.consume_back("}"))
    text.split(parts, ',', -1, /*KeepEmpty=*/false);
  if (parts.size() != from.dims.size() || op.shape.dims.size() != parts.size() ||
      !(from.element == op.shape.element))
    return error(op) << "needs a range '[from:to]' for each dimension in 'slice'";
  SmallVector<OpFoldResult> offsets, sizes, strides;
  for (auto [i, part] : llvm::enumerate(parts)) {
    SmallVector<StringRef> ends;
    part = part.trim();
    bool brackets = part.consume_front("[") && part.consume_back("]");
    part.split(ends, ':');
    int64_t low = 0, high = 0, stride = 1;
    if (!brackets || ends.size() < 2 || ends.size() > 3 || ends[0].trim().getAsInteger(10, low) ||
        ends[1].trim().getAsInteger(10, high) ||
        (ends.size() == 3 && ends[2].trim().getAsInteger(10, stride)))
      return error(op) << "expected a range '[from:to:step]', found '" << parts[i].trim() << "'";
    int64_t size = op.shape.dims[i];
    if (low < 0 || low > high || high > from.dims[i] || stride < 1 ||
        size != int64_t(llvm::divideCeil(uint64_t(high - low), uint64_t(stride))))
      return error(op) << "range " << low << ":" << high << ":" << stride << " of " << from.dims[i]
                       << " does not give " << size;
    offsets.push_back(b.getIndexAttr(low));
    sizes.push_back(b.getIndexAttr(size));
    strides.push_back(b.getIndexAttr(stride));
  }
  if (from.dims == op.shape.dims)
    return value(scope, op, 0);
  return Value(tensor::ExtractSliceOp::create(b, at(op), typeOf(op.shape, context),
                                              value(scope, op, 0), offsets, sizes, strides));
}

/// Writes `tensor` into `into` at constant places.
static Value insert(OpBuilder &b, Location loc, Value tensor, Value into, ArrayRef<int64_t> at) {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  for (auto [offset, size] : llvm::zip(at, cast<RankedTensorType>(tensor.getType()).getShape())) {
    offsets.push_back(b.getIndexAttr(offset));
    sizes.push_back(b.getIndexAttr(size));
    strides.push_back(b.getIndexAttr(1));
  }
  return tensor::InsertSliceOp::create(b, loc, tensor, into, offsets, sizes, strides);
}

FailureOr<Value> Importer::concatenate(Scope &scope, const Instruction &op) {
  if (failed(arrays(scope, op, op.operands.size())))
    return failure();
  std::optional<SmallVector<int64_t>> dims = numbers(op, "dimensions");
  int64_t rank = op.shape.dims.size();
  if (!dims || dims->size() != 1 || (*dims)[0] < 0 || (*dims)[0] >= rank || op.operands.empty())
    return error(op) << "needs operands and a dimension of its result in 'dimensions'";
  int64_t dim = (*dims)[0], at = 0;
  Value whole = empty(op, op.shape);
  for (unsigned i = 0; i < op.operands.size(); ++i) {
    Shape shape = shapeOf(scope, op, i);
    SmallVector<int64_t> offsets(rank);
    if (int64_t(shape.dims.size()) != rank)
      return error(op) << "operand " << i << " has another rank";
    offsets[dim] = at;
    at += shape.dims[dim];
    shape.dims[dim] = op.shape.dims[dim];
    if (!(shape == op.shape) || at > op.shape.dims[dim])
      return error(op) << "operand " << i << " does not fit the result";
    whole = insert(b, this->at(op), value(scope, op, i), whole, offsets);
  }
  if (at != op.shape.dims[dim])
    return error(op) << "operands have " << at << " rows of dimension " << dim << ", the result "
                     << op.shape.dims[dim];
  return whole;
}

FailureOr<Value> Importer::pad(Scope &scope, const Instruction &op) {
  if (failed(arrays(scope, op, 2)))
    return failure();
  const Shape &from = shapeOf(scope, op, 0), &with = shapeOf(scope, op, 1);
  SmallVector<StringRef> parts;
  op.find("padding").value_or("").split(parts, 'x', -1, /*KeepEmpty=*/false);
  size_t rank = from.dims.size();
  if (parts.size() != rank || op.shape.dims.size() != rank || !with.dims.empty() ||
      !(from.element == op.shape.element) || !(with.element == op.shape.element))
    return error(op) << "needs 'low_high' for each dimension in 'padding', and a scalar";
  SmallVector<int64_t> lows;
  bool plain = true;
  for (size_t i = 0; i < rank; ++i) {
    SmallVector<StringRef> ends;
    parts[i].split(ends, '_');
    int64_t low, high, interior = 0;
    if (ends.size() < 2 || ends.size() > 3 || ends[0].getAsInteger(10, low) ||
        ends[1].getAsInteger(10, high) || (ends.size() == 3 && ends[2].getAsInteger(10, interior)))
      return error(op) << "expected 'low_high_interior', found '" << parts[i] << "'";
    plain &= low >= 0 && high >= 0 && interior == 0;
    if (plain && (low > op.shape.dims[i] || high > op.shape.dims[i] ||
                  low + high != op.shape.dims[i] - from.dims[i]))
      return error(op) << "dimension " << i << " of " << from.dims[i] << " with " << parts[i]
                       << " does not give " << op.shape.dims[i];
    lows.push_back(low);
  }
  if (!plain)
    return Value(); // between elements, or cut
  Location loc = at(op);
  Value whole =
      linalg::FillOp::create(b, loc, extract(loc, value(scope, op, 1)), empty(op, op.shape))
          .getResult(0);
  return insert(b, loc, value(scope, op, 0), whole, lows);
}

/// Places are clamped so that the slice lies in the array.
FailureOr<Value> Importer::dynamicSlice(Scope &scope, const Instruction &op, bool update) {
  if (failed(arrays(scope, op, op.operands.size())))
    return failure();
  size_t first = update ? 2 : 1;
  if (op.operands.size() < first)
    return error(op) << "takes " << first << " arrays and places, found " << op.operands.size();
  const Shape &whole = shapeOf(scope, op, 0), &part = update ? shapeOf(scope, op, 1) : op.shape;
  size_t rank = whole.dims.size(), places = op.operands.size() - first;
  bool vector = places == 1 && shapeOf(scope, op, first).dims.size() == 1; // an older form
  if (vector || (update && !(whole == op.shape)) || part.dims.size() != rank ||
      !(part.element == whole.element) || (!vector && places != rank))
    return vector ? FailureOr<Value>(Value())
                  : FailureOr<Value>(error(op) << "needs a place for each dimension, and a result "
                                                  "of the array's kind");
  Location loc = at(op);
  for (size_t i = 0; i < rank; ++i) {
    const Shape &place = shapeOf(scope, op, first + i);
    if (!place.dims.empty() ||
        (place.element.kind != Element::Signed && place.element.kind != Element::Unsigned))
      return error(op) << "place " << i << " is no whole number";
    if (part.dims[i] > whole.dims[i])
      return error(op) << "takes " << part.dims[i] << " of " << whole.dims[i] << " in dimension "
                       << i;
  }
  SmallVector<OpFoldResult> offsets, sizes, strides;
  for (size_t i = 0; i < rank; ++i) {
    sizes.push_back(b.getIndexAttr(part.dims[i]));
    strides.push_back(b.getIndexAttr(1));
    int64_t most = whole.dims[i] - part.dims[i];
    if (most == 0) {
      offsets.push_back(b.getIndexAttr(0));
      continue;
    }
    const Shape &place = shapeOf(scope, op, first + i);
    Value number = extract(loc, value(scope, op, first + i));
    Value index = place.element.kind == Element::Signed
                      ? arith::IndexCastOp::create(b, loc, b.getIndexType(), number).getResult()
                      : arith::IndexCastUIOp::create(b, loc, b.getIndexType(), number).getResult();
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value end = arith::ConstantIndexOp::create(b, loc, most);
    index = arith::MaxSIOp::create(b, loc, index, zero);
    offsets.push_back(arith::MinSIOp::create(b, loc, index, end).getResult());
  }
  if (update)
    return Value(tensor::InsertSliceOp::create(b, loc, value(scope, op, 1), value(scope, op, 0),
                                               offsets, sizes, strides));
  return Value(tensor::ExtractSliceOp::create(b, loc, typeOf(op.shape, context),
                                              value(scope, op, 0), offsets, sizes, strides));
}

FailureOr<Value> Importer::tensorOp(Scope &scope, const Instruction &op) {
  if (op.is("broadcast"))
    return broadcast(scope, op);
  if (op.is("iota"))
    return iota(op);
  if (op.is("reshape") || op.is("bitcast"))
    return reshape(scope, op);
  if (op.is("transpose"))
    return transpose(scope, op);
  if (op.is("slice"))
    return slice(scope, op);
  if (op.is("concatenate"))
    return concatenate(scope, op);
  if (op.is("pad"))
    return pad(scope, op);
  if (op.is("dynamic-slice"))
    return dynamicSlice(scope, op, false);
  if (op.is("dynamic-update-slice"))
    return dynamicSlice(scope, op, true);
  if (op.is("dot"))
    return dot(scope, op);
  return Value();
}
