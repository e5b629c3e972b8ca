//===- Collectives.cpp - What the collectives demand ----------------------===//
//
// The constraints are numbered in dialect/SPEC.md.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ncclx;

int64_t ncclx::getShardSize(int64_t size, int64_t numMembers) {
  return size / numMembers + (size % numMembers != 0);
}

ShardRange ncclx::getShardRange(int64_t size, int64_t numMembers, int64_t member) {
  // member * shard cannot overflow where it matters: it is cut at size first.
  int64_t shard = getShardSize(size, numMembers);
  auto start = [&](int64_t m) { return shard == 0 || m > size / shard ? size : m * shard; };
  return {start(member), std::min(size, start(member + 1))};
}

int64_t ncclx::getPayloadBytes(ShapedType input, ShapedType output) {
  int64_t bits = input.getElementTypeBitWidth();
  return std::max(input.getNumElements(), output.getNumElements()) * bits / 8;
}

bool ncclx::isSupportedElementType(Type type) {
  return isa<Float32Type, Float64Type, BFloat16Type, Float16Type>(type) ||
         type.isSignlessInteger(32) || type.isSignlessInteger(64);
}

GridOp ncclx::lookupGrid(CollectiveOpInterface op) {
  return SymbolTable::lookupNearestSymbolFrom<GridOp>(op, op.getGridAttr());
}

int64_t ncclx::getGroupSize(CollectiveOpInterface op) {
  return lookupGrid(op).getGroupSize(op.getAxes());
}

CollectiveOpInterface ncclx::cloneCollective(OpBuilder &builder, CollectiveOpInterface op,
                                             Value input, Value dest, bool async) {
  SmallVector<Type, 2> types;
  bool tensors = isa<RankedTensorType>(input.getType());
  if (tensors)
    types.push_back(op.getOutputType());
  if (async)
    types.push_back(TokenType::get(op.getContext()));
  OperationState state(op.getLoc(), op->getName(), input, types);
  if (dest)
    state.addOperands(dest);
  // All of the op's own attributes, which differ from op to op, but for the number of results.
  NamedAttrList properties(cast<DictionaryAttr>(op->getPropertiesAsAttribute()));
  properties.set("resultSegmentSizes", builder.getDenseI32ArrayAttr({tensors, async}));
  state.propertiesAttr = properties.getDictionary(op.getContext());
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  return cast<CollectiveOpInterface>(builder.create(state));
}

//===--- Rules shared by the collectives ----------------------------------===//

/// collective C1 to C6 and C8 (SPEC.md).
static LogicalResult verifyCollective(CollectiveOpInterface op) {
  bool buffers = op.isBufferForm();
  auto formOf = [](Type type) { return isa<BaseMemRefType>(type) ? "a memref" : "a tensor"; };
  if (buffers && op.getResult())
    return op->emitOpError(
               "on memrefs writes its destination and has no result, but found one of type ")
           << op.getResult().getType();
  if (buffers && !op.getDest())
    return op->emitOpError("on memrefs needs a destination: into(...)");
  if (!buffers && !op.getResult())
    return op->emitOpError("on tensors needs a result");
  if (op.getDest() && isa<BaseMemRefType>(op.getDest().getType()) != buffers)
    return op->emitOpError("has ") << formOf(op.getInput().getType()) << " as input, but "
                                   << formOf(op.getDest().getType()) << " as destination";

  ShapedType in = op.getInputType(), out = op.getOutputType();
  for (ShapedType type : {in, out})
    if (!type.hasStaticShape())
      return op->emitOpError("needs static shapes, but found ") << type;
  for (ShapedType type : {in, out}) {
    int64_t bytes = 8;
    for (int64_t size : type.getShape())
      if (size != 0 && llvm::MulOverflow(bytes, size, bytes))
        return op->emitOpError("needs less than 2^63 bytes, but found ") << type;
  }
  if (!isSupportedElementType(in.getElementType()))
    return op->emitOpError("works on f32, f64, bf16, f16, i32 and i64, but the elements are ")
           << in.getElementType();
  if (in.getElementType() != out.getElementType())
    return op->emitOpError("keeps the element type ")
           << in.getElementType() << ", but the output has " << out.getElementType();
  if (!buffers && op.getDest() && op.getDest().getType() != op.getResult().getType())
    return op->emitOpError("has a result of type ")
           << op.getResult().getType() << ", but a destination of type " << op.getDest().getType();
  if (op.isAsync() && !op.getDest())
    return op->emitOpError("that is async needs a destination: into(...)");
  if (buffers && op.getDest() == op.getInput() && !isa<AllReduceOp>(op))
    return op->emitOpError("cannot work in place: its destination is its input");

  llvm::SmallSet<StringRef, 4> seen;
  for (StringRef axis : op.getAxes().getAsValueRange<StringAttr>())
    if (!seen.insert(axis).second)
      return op->emitOpError("lists axis \"") << axis << "\" twice";
  if (seen.empty())
    return op->emitOpError("needs at least one axis");
  return success();
}

/// collective C7, then the op's own rules on the number of members.
LogicalResult ncclx::verifyCollectiveSymbols(CollectiveOpInterface op,
                                             SymbolTableCollection &tables) {
  Operation *symbol = tables.lookupNearestSymbolFrom(op, op.getGridAttr());
  if (!symbol)
    return op->emitOpError("grid ") << op.getGridAttr() << " is not defined";
  auto grid = dyn_cast<GridOp>(symbol);
  if (!grid) {
    InFlightDiagnostic diag = op->emitOpError("needs an ncclx.grid, but ")
                              << op.getGridAttr() << " is a '" << symbol->getName() << "'";
    diag.attachNote(symbol->getLoc()) << "defined here";
    return diag;
  }
  for (StringRef axis : op.getAxes().getAsValueRange<StringAttr>())
    if (!grid.getAxisSize(axis)) {
      InFlightDiagnostic diag = op->emitOpError("grid ")
                                << op.getGridAttr() << " has no axis \"" << axis << "\"";
      diag.attachNote(grid.getLoc()) << "the grid's axes are " << grid.getAxes();
      return diag;
    }
  return op.verifyGroup(grid.getGroupSize(op.getAxes()));
}

LogicalResult ncclx::verifyDim(Operation *op, StringRef verb, int64_t dim, ShapedType type) {
  if (dim < 0 || dim >= type.getRank())
    return op->emitOpError(verb) << " dimension " << dim << ", but the operand has rank "
                                 << type.getRank();
  return success();
}

/// The shapes must be equal but for the dimensions in `except`.
static LogicalResult verifySameShape(CollectiveOpInterface op, ArrayRef<int64_t> except = {}) {
  ShapedType in = op.getInputType(), out = op.getOutputType();
  if (in.getRank() != out.getRank())
    return op->emitOpError("keeps the rank ")
           << in.getRank() << ", but the output has rank " << out.getRank();
  for (int64_t d = 0; d < in.getRank(); ++d)
    if (!llvm::is_contained(except, d) && in.getDimSize(d) != out.getDimSize(d))
      return op->emitOpError("keeps the size of dimension ")
             << d << ", expected " << in.getDimSize(d) << ", but the output has "
             << out.getDimSize(d);
  return success();
}

/// The shard must have ceil(whole / n) rows.
static LogicalResult verifyShard(CollectiveOpInterface op, int64_t dim, ShapedType shard,
                                 ShapedType whole, int64_t numMembers) {
  int64_t expected = getShardSize(whole.getDimSize(dim), numMembers);
  if (shard.getDimSize(dim) == expected)
    return success();
  InFlightDiagnostic diag = op->emitOpError("cuts dimension ")
                            << dim << " of size " << whole.getDimSize(dim) << " among "
                            << numMembers << " members, expected " << expected
                            << " rows each, but found " << shard.getDimSize(dim);
  diag.attachNote(lookupGrid(op).getLoc()) << "group size comes from this grid";
  return diag;
}

/// reduction C1: the accumulation type holds every value of the element type.
static LogicalResult verifyAccumulation(Operation *op, Type element, Type accumulate) {
  bool wider = isa<FloatType>(element) == isa<FloatType>(accumulate) &&
               isSupportedElementType(accumulate) &&
               accumulate.getIntOrFloatBitWidth() > element.getIntOrFloatBitWidth();
  if (accumulate == element || wider)
    return success();
  return op->emitOpError("accumulates elements of type ")
         << element << ", expected that type or a wider supported one of its kind, but found "
         << accumulate;
}

//===--- The collectives --------------------------------------------------===//

LogicalResult AllGatherOp::verify() {
  if (failed(verifyCollective(*this)) ||
      failed(verifyDim(*this, "gathers along", getDim(), getInputType())))
    return failure();
  return verifySameShape(*this, static_cast<int64_t>(getDim()));
}

LogicalResult AllGatherOp::verifyGroup(int64_t numMembers) {
  return verifyShard(*this, getDim(), getInputType(), getOutputType(), numMembers);
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(verifyCollective(*this)) ||
      failed(verifyAccumulation(*this, getElementType(), getAccumulate())) ||
      failed(verifyDim(*this, "scatters along", getDim(), getInputType())))
    return failure();
  return verifySameShape(*this, static_cast<int64_t>(getDim()));
}

LogicalResult ReduceScatterOp::verifyGroup(int64_t numMembers) {
  return verifyShard(*this, getDim(), getOutputType(), getInputType(), numMembers);
}

LogicalResult AllReduceOp::verify() {
  if (failed(verifyCollective(*this)) ||
      failed(verifyAccumulation(*this, getElementType(), getAccumulate())))
    return failure();
  return verifySameShape(*this);
}

LogicalResult AllReduceOp::verifyGroup(int64_t) { return success(); }

LogicalResult AllToAllOp::verify() {
  if (failed(verifyCollective(*this)) ||
      failed(verifyDim(*this, "splits", getSplit(), getInputType())) ||
      failed(verifyDim(*this, "concatenates", getConcat(), getInputType())))
    return failure();
  return verifySameShape(*this,
                         {static_cast<int64_t>(getSplit()), static_cast<int64_t>(getConcat())});
}

LogicalResult AllToAllOp::verifyGroup(int64_t numMembers) {
  ShapedType in = getInputType(), out = getOutputType();
  int64_t split = getSplit(), concat = getConcat();
  if (in.getDimSize(split) % numMembers != 0)
    return emitOpError("splits dimension ")
           << split << " of size " << in.getDimSize(split) << " among " << numMembers
           << " members, which does not divide";
  SmallVector<int64_t> expected(in.getShape());
  expected[split] /= numMembers;
  if (llvm::MulOverflow(expected[concat], numMembers, expected[concat]))
    return emitOpError("concatenates dimension ") << concat << " to more than 2^63 rows";
  for (int64_t dim : {split, concat})
    if (out.getDimSize(dim) != expected[dim])
      return emitOpError("with ") << numMembers << " members gives dimension " << dim
                                  << " the size " << expected[dim] << ", but the output has "
                                  << out.getDimSize(dim);
  return success();
}

LogicalResult PermuteOp::verify() {
  if (failed(verifyCollective(*this)))
    return failure();
  if (getShift().has_value() == getPairs().has_value())
    return emitOpError("needs either a shift or pairs, but has ")
           << (getShift() ? "both" : "neither");
  if (getPairs()) {
    DenseI64ArrayAttr pairs = getPairsAttr();
    ArrayRef<int64_t> values = pairs;
    if (values.size() % 2)
      return emitOpError("needs a target for each source, but has ")
             << values.size() << " numbers in pairs";
    llvm::DenseSet<int64_t> sources, targets;
    for (size_t i = 0; i < values.size(); i += 2) {
      if (!sources.insert(values[i]).second)
        return emitOpError("names member ") << values[i] << " twice as a source";
      if (!targets.insert(values[i + 1]).second)
        return emitOpError("names member ") << values[i + 1] << " twice as a target";
    }
  }
  return verifySameShape(*this);
}

LogicalResult PermuteOp::verifyGroup(int64_t numMembers) {
  if (DenseI64ArrayAttr pairs = getPairsAttr())
    for (int64_t member : pairs.asArrayRef())
      if (member < 0 || member >= numMembers)
        return emitOpError("names member ")
               << member << ", but the group has " << numMembers << " members";
  return success();
}

/// The other side of `member`: pairs hold (source, target), `step` is the way a shift goes.
static std::optional<int64_t> otherSide(PermuteOp op, int64_t member, int64_t numMembers,
                                        bool toTarget) {
  if (std::optional<int64_t> shift = op.getShift()) {
    int64_t step = *shift % numMembers;
    return (member + (toTarget ? step : -step) + numMembers) % numMembers;
  }
  DenseI64ArrayAttr pairs = op.getPairsAttr();
  ArrayRef<int64_t> values = pairs;
  for (size_t i = 0; i < values.size(); i += 2)
    if (values[i + !toTarget] == member)
      return values[i + toTarget];
  return std::nullopt;
}

std::optional<int64_t> PermuteOp::getSource(int64_t member, int64_t numMembers) {
  return otherSide(*this, member, numMembers, /*toTarget=*/false);
}

std::optional<int64_t> PermuteOp::getTarget(int64_t member, int64_t numMembers) {
  return otherSide(*this, member, numMembers, /*toTarget=*/true);
}
