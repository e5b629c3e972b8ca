//===- NCCLXOps.cpp - Effects, syntax and verifiers of the ops ------------===//

#include "Collectives.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ncclx;

using EffectInstance = MemoryEffects::EffectInstance;

//===--- Effects ----------------------------------------------------------===//

static void addCommunication(SmallVectorImpl<EffectInstance> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), Communication::get());
  effects.emplace_back(MemoryEffects::Write::get(), Communication::get());
}

static void addIfMemRef(OpOperand &operand, MemoryEffects::Effect *effect,
                        SmallVectorImpl<EffectInstance> &effects) {
  if (isa<BaseMemRefType>(operand.get().getType()))
    effects.emplace_back(effect, &operand);
}

void ncclx::getCollectiveEffects(CollectiveOpInterface op,
                                 SmallVectorImpl<EffectInstance> &effects) {
  addCommunication(effects);
  addIfMemRef(op->getOpOperand(0), MemoryEffects::Read::get(), effects);
  if (op.getSizes())
    addIfMemRef(op->getOpOperand(1), MemoryEffects::Read::get(), effects);
  for (OpOperand &dest : op.getDestMutable())
    addIfMemRef(dest, MemoryEffects::Write::get(), effects);
}

void BarrierOp::getEffects(SmallVectorImpl<EffectInstance> &effects) { addCommunication(effects); }

// A window's memory is reached by nothing but these ops: Communication stands for it.
static void getWindowEffects(Operation *op, MemoryEffects::Effect *onMemRef,
                             SmallVectorImpl<EffectInstance> &effects) {
  addCommunication(effects);
  for (OpOperand &operand : op->getOpOperands())
    addIfMemRef(operand, onMemRef, effects);
}
void WindowOp::getEffects(SmallVectorImpl<EffectInstance> &effects) {
  getWindowEffects(*this, MemoryEffects::Read::get(), effects);
}
void PutOp::getEffects(SmallVectorImpl<EffectInstance> &effects) {
  getWindowEffects(*this, MemoryEffects::Read::get(), effects);
}
void GetOp::getEffects(SmallVectorImpl<EffectInstance> &effects) {
  getWindowEffects(*this, MemoryEffects::Write::get(), effects);
}
void SignalOp::getEffects(SmallVectorImpl<EffectInstance> &effects) { addCommunication(effects); }
void WaitOp::getEffects(SmallVectorImpl<EffectInstance> &effects) { addCommunication(effects); }

/// A finish stands for whatever its collective did to the buffers while it was in flight.
static void getFinishEffects(Operation *op, SmallVectorImpl<EffectInstance> &effects) {
  addCommunication(effects);
  for (OpOperand &operand : op->getOpOperands()) {
    addIfMemRef(operand, MemoryEffects::Read::get(), effects);
    addIfMemRef(operand, MemoryEffects::Write::get(), effects);
  }
}

//===--- Syntax -----------------------------------------------------------===//

static ParseResult parseGridAxes(OpAsmParser &parser, ArrayAttr &axes, DenseI64ArrayAttr &sizes) {
  SmallVector<Attribute> names;
  SmallVector<int64_t> values;
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name) || parser.parseEqual() ||
        parser.parseInteger(values.emplace_back()))
      return failure();
    names.push_back(parser.getBuilder().getStringAttr(name));
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseAxis,
                                     " in the list of axes"))
    return failure();
  axes = parser.getBuilder().getArrayAttr(names);
  sizes = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

static void printGridAxes(OpAsmPrinter &printer, Operation *, ArrayAttr axes,
                          DenseI64ArrayAttr sizes) {
  printer << "[";
  llvm::interleaveComma(llvm::zip_equal(axes, sizes.asArrayRef()), printer, [&](auto axis) {
    printer << std::get<0>(axis) << " = " << std::get<1>(axis);
  });
  printer << "]";
}

/// `["x"]`, or ` groups [[0, 2], [1]]`.
static ParseResult parseGroup(OpAsmParser &parser, ArrayAttr &axes, ArrayAttr &groups) {
  Builder &builder = parser.getBuilder();
  axes = builder.getArrayAttr({});
  if (failed(parser.parseOptionalKeyword("groups")))
    return parser.parseAttribute(axes);
  SmallVector<Attribute> lists;
  auto parseRanks = [&]() -> ParseResult {
    SmallVector<int64_t> ranks;
    auto parseRank = [&]() { return parser.parseInteger(ranks.emplace_back()); };
    if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseRank,
                                       " in the list of ranks"))
      return failure();
    lists.push_back(builder.getDenseI64ArrayAttr(ranks));
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseRanks,
                                     " in the list of groups"))
    return failure();
  groups = builder.getArrayAttr(lists);
  return success();
}

static void printGroup(OpAsmPrinter &printer, Operation *, ArrayAttr axes, ArrayAttr groups) {
  if (!groups) {
    printer << axes;
    return;
  }
  printer << " groups [";
  llvm::interleaveComma(groups.getAsRange<DenseI64ArrayAttr>(), printer,
                        [&](DenseI64ArrayAttr ranks) {
                          printer << "[";
                          llvm::interleaveComma(ranks.asArrayRef(), printer);
                          printer << "]";
                        });
  printer << "]";
}

static ParseResult parseAsync(OpAsmParser &parser, Type &token) {
  if (succeeded(parser.parseOptionalKeyword("async")))
    token = TokenType::get(parser.getContext());
  return success();
}

static void printAsync(OpAsmPrinter &printer, Operation *, Type token) {
  if (token)
    printer << " async";
}

/// What stands behind the word `shift` or `pairs`.
static ParseResult parseNamedMap(OpAsmParser &parser, StringRef word, IntegerAttr &shift,
                                 DenseI64ArrayAttr &pairs) {
  Builder &builder = parser.getBuilder();
  if (word == "shift") {
    int64_t value;
    if (parser.parseInteger(value))
      return failure();
    shift = builder.getI64IntegerAttr(value);
    return success();
  }
  SmallVector<int64_t> values;
  auto parsePair = [&]() -> ParseResult {
    return failure(parser.parseInteger(values.emplace_back()) || parser.parseArrow() ||
                   parser.parseInteger(values.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parsePair,
                                     " in the list of pairs"))
    return failure();
  pairs = builder.getDenseI64ArrayAttr(values);
  return success();
}

static ParseResult parsePermuteMap(OpAsmParser &parser, IntegerAttr &shift,
                                   DenseI64ArrayAttr &pairs) {
  if (succeeded(parser.parseOptionalKeyword("shift")))
    return parseNamedMap(parser, "shift", shift, pairs);
  return failure(parser.parseKeyword("pairs", " or 'shift'") ||
                 parseNamedMap(parser, "pairs", shift, pairs));
}

static void printPermuteMap(OpAsmPrinter &printer, Operation *, IntegerAttr shift,
                            DenseI64ArrayAttr pairs) {
  if (shift) {
    printer << "shift " << shift.getInt();
    return;
  }
  printer << "pairs [";
  ArrayRef<int64_t> values = pairs;
  for (size_t i = 0; i + 1 < values.size(); i += 2)
    printer << (i ? ", " : "") << values[i] << " -> " << values[i + 1];
  printer << "]";
}

/// ` shift 1`, ` pairs [0 -> 1]`, or nothing.
static ParseResult parsePeerMap(OpAsmParser &parser, IntegerAttr &shift, DenseI64ArrayAttr &pairs) {
  StringRef word;
  if (failed(parser.parseOptionalKeyword(&word, {"shift", "pairs"})))
    return success();
  return parseNamedMap(parser, word, shift, pairs);
}

static void printPeerMap(OpAsmPrinter &printer, Operation *op, IntegerAttr shift,
                         DenseI64ArrayAttr pairs) {
  if (!shift && !pairs)
    return;
  printer << " ";
  printPermuteMap(printer, op, shift, pairs);
}

#define GET_OP_CLASSES
#include "ncclx/NCCLX/NCCLXInterfaces.cpp.inc"
#include "ncclx/NCCLX/NCCLXOps.cpp.inc"

//===--- grid -------------------------------------------------------------===//

LogicalResult GridOp::verify() {
  if (getAxes().size() != getSizes().size())
    return emitOpError("needs one size for each axis, but has ")
           << getAxes().size() << " axes and " << getSizes().size() << " sizes";
  if (getAxes().empty())
    return emitOpError("needs at least one axis");
  llvm::SmallSet<StringRef, 4> seen;
  int64_t ranks = 1;
  for (auto [attr, size] : llvm::zip_equal(getAxes(), getSizes())) {
    StringRef name = cast<StringAttr>(attr).getValue();
    if (name.empty())
      return emitOpError("has an axis without a name");
    if (!seen.insert(name).second)
      return emitOpError("names axis \"") << name << "\" twice";
    if (size < 1)
      return emitOpError("needs sizes of at least 1, but axis \"") << name << "\" has " << size;
    if (llvm::MulOverflow(ranks, size, ranks) || ranks > (int64_t(1) << 31))
      return emitOpError("has more than 2^31 ranks");
  }
  return success();
}

int64_t GridOp::getNumRanks() {
  int64_t ranks = 1;
  for (int64_t size : getSizes())
    ranks *= size;
  return ranks;
}

std::optional<int64_t> GridOp::getAxisSize(StringRef axis) {
  for (auto [attr, size] : llvm::zip_equal(getAxes(), getSizes()))
    if (cast<StringAttr>(attr).getValue() == axis)
      return size;
  return std::nullopt;
}

int64_t GridOp::getGroupSize(ArrayAttr axes) {
  int64_t size = 1;
  for (StringRef axis : axes.getAsValueRange<StringAttr>())
    size *= *getAxisSize(axis);
  return size;
}

SmallVector<SmallVector<int64_t>> GridOp::getGroups(ArrayAttr axes, ArrayAttr groups) {
  SmallVector<SmallVector<int64_t>> all;
  if (groups) {
    for (auto ranks : groups.getAsRange<DenseI64ArrayAttr>())
      all.emplace_back(ranks.asArrayRef());
    return all;
  }
  llvm::BitVector seen(getNumRanks());
  for (int64_t rank = 0, e = getNumRanks(); rank < e; ++rank) {
    if (seen[rank])
      continue;
    all.push_back(getGroup(axes, rank));
    for (int64_t member : all.back())
      seen.set(member);
  }
  return all;
}

SmallVector<int64_t> GridOp::getGroup(ArrayAttr axes, int64_t rank, ArrayAttr groups) {
  if (groups) {
    for (auto ranks : groups.getAsRange<DenseI64ArrayAttr>())
      if (llvm::is_contained(ranks.asArrayRef(), rank))
        return SmallVector<int64_t>(ranks.asArrayRef());
    return {};
  }
  // The distance between neighbours on each axis; taking a listed axis to 0 gives the first member.
  llvm::StringMap<std::pair<int64_t, int64_t>> strideAndSize;
  int64_t stride = getNumRanks();
  for (auto [attr, size] : llvm::zip_equal(getAxes(), getSizes()))
    strideAndSize[cast<StringAttr>(attr).getValue()] = {stride /= size, size};
  int64_t first = rank;
  for (StringRef axis : axes.getAsValueRange<StringAttr>()) {
    auto [step, size] = strideAndSize[axis];
    first -= rank / step % size * step;
  }
  SmallVector<int64_t> members = {first};
  for (StringRef axis : axes.getAsValueRange<StringAttr>()) {
    auto [step, size] = strideAndSize[axis];
    SmallVector<int64_t> next;
    for (int64_t member : members)
      for (int64_t i = 0; i < size; ++i)
        next.push_back(member + i * step);
    members = std::move(next);
  }
  return members;
}

//===--- start, await, finish ---------------------------------------------===//

LogicalResult StartOp::verifyRegions() {
  Block &block = getBody().front();
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  auto collective = dyn_cast<CollectiveOpInterface>(&block.front());
  if (!yield || block.getOperations().size() != 2 || !collective || block.getNumArguments() ||
      yield.getValue() != collective.getResult())
    return emitOpError("must hold one collective and a yield of its result, nothing else");
  if (collective.isAsync())
    return emitOpError("starts a collective that is already async");
  if (cast<FutureType>(getFuture().getType()).getValue() != collective.getResult().getType())
    return emitOpError("has a future of ")
           << cast<FutureType>(getFuture().getType()).getValue()
           << ", but the collective's result is " << collective.getResult().getType();
  return success();
}

CollectiveOpInterface StartOp::getCollective() {
  return cast<CollectiveOpInterface>(&getBody().front().front());
}

Type ncclx::getChunkType(ShapedType whole, int64_t count, int64_t dim) {
  int64_t size = whole.getDimSize(dim);
  SmallVector<int64_t> shape(whole.getShape());
  shape[dim] = size % count == 0 ? size / count : ShapedType::kDynamic;
  if (isa<RankedTensorType>(whole))
    return whole.clone(shape);
  SmallVector<int64_t> offsets(shape.size(), 0), strides(shape.size(), 1);
  offsets[dim] = ShapedType::kDynamic;
  return memref::SubViewOp::inferResultType(cast<MemRefType>(whole), offsets, shape, strides);
}

/// chunk C2 to C5.
static LogicalResult verifyChunk(Operation *op, Value chunk, int64_t count, int64_t dim,
                                 ShapedType whole, Type result) {
  if (count < 1)
    return op->emitOpError("needs at least 1 chunk, but has ") << count;
  if (failed(verifyDim(op, "takes chunks of", dim, whole)))
    return failure();
  if (!whole.hasStaticShape())
    return op->emitOpError("needs a static shape to cut, but found ") << whole;
  if (APInt index; matchPattern(chunk, m_ConstantInt(&index)))
    if (index.isNegative() || index.sge(count))
      return op->emitOpError("takes chunk ") << index.getSExtValue() << ", but there are " << count;
  Type expected = getChunkType(whole, count, dim);
  if (result != expected)
    return op->emitOpError("takes a chunk of type ")
           << expected << ", but the result is " << result;
  return success();
}

void AwaitOp::getEffects(SmallVectorImpl<EffectInstance> &effects) { addCommunication(effects); }

LogicalResult AwaitOp::verify() {
  RankedTensorType value = cast<FutureType>(getFuture().getType()).getValue();
  if (!getChunk()) {
    if (getCount() || getDim())
      return emitOpError("gives the number of chunks or their dimension, but no chunk");
    if (getType() != value)
      return emitOpError("awaits a value of type ") << value << ", but the result is " << getType();
    return success();
  }
  if (!getCount() || !getDim())
    return emitOpError("of a chunk needs the number of chunks and their dimension");
  return verifyChunk(*this, getChunk(), *getCount(), *getDim(), value, getType());
}

void FinishOp::getEffects(SmallVectorImpl<EffectInstance> &effects) {
  getFinishEffects(*this, effects);
}

LogicalResult FinishOp::verify() {
  Type inFlight = getInFlight().getType();
  bool buffers = isa<BaseMemRefType>(inFlight);
  if (buffers && getResult())
    return emitOpError("on memrefs has no result, but found one of type ") << getResult().getType();
  if (!buffers && (!getResult() || getResult().getType() != inFlight))
    return emitOpError("needs a result of type ") << inFlight;
  for (Value kept : getKeeping())
    if (isa<BaseMemRefType>(kept.getType()) != buffers)
      return emitOpError("keeps ")
             << kept.getType() << " beside " << inFlight << ": expected all tensors or all memrefs";
  return success();
}

void FinishChunkOp::getEffects(SmallVectorImpl<EffectInstance> &effects) {
  getFinishEffects(*this, effects);
}

Value FinishChunkOp::getViewSource() { return getInFlight(); }

LogicalResult FinishChunkOp::verify() {
  return verifyChunk(*this, getChunk(), getCount(), getDim(),
                     cast<ShapedType>(getInFlight().getType()), getResult().getType());
}

//===--- call -------------------------------------------------------------===//

void CallOp::getEffects(SmallVectorImpl<EffectInstance> &effects) {
  // On tensors the kernel is a function of its operands: no effects.
  for (OpOperand &input : getInputsMutable())
    addIfMemRef(input, MemoryEffects::Read::get(), effects);
  for (OpOperand &out : getOutsMutable())
    addIfMemRef(out, MemoryEffects::Write::get(), effects);
}

LogicalResult CallOp::verify() {
  bool buffers = getNumResults() == 0;
  if (buffers && getOuts().empty())
    return emitOpError("needs results (on tensors) or outs (on memrefs)");
  if (!buffers && !getOuts().empty())
    return emitOpError("has results and outs, expected one of them");
  for (Type type : getInputs().getTypes()) {
    bool fits = type.isIntOrIndexOrFloat() ||
                (buffers ? isa<MemRefType>(type) : isa<RankedTensorType>(type));
    if (!fits)
      return emitOpError("takes scalars and ")
             << (buffers ? "memrefs" : "tensors") << ", but found " << type;
  }
  for (Type type : getResultTypes())
    if (!cast<ShapedType>(type).hasStaticShape())
      return emitOpError("needs results of static shape, but found ") << type;
  for (auto [name, value] :
       {std::pair("flops", getFlops()), std::pair("bytes", getBytes()), std::pair("sms", getSms())})
    if (static_cast<int64_t>(value) < 0)
      return emitOpError("declares ")
             << name << " = " << static_cast<int64_t>(value) << ", expected at least 0";
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &tables) {
  Operation *symbol = tables.lookupNearestSymbolFrom(*this, getCalleeAttr());
  if (!symbol)
    return emitOpError("callee ") << getCalleeAttr() << " is not defined";
  auto callee = dyn_cast<func::FuncOp>(symbol);
  if (!callee) {
    InFlightDiagnostic diag = emitOpError("needs a func.func, but ")
                              << getCalleeAttr() << " is another op";
    diag.attachNote(symbol->getLoc()) << "defined here";
    return diag;
  }
  SmallVector<Type> inputs(getInputs().getTypes());
  llvm::append_range(inputs, getOuts().getTypes());
  auto expected = FunctionType::get(getContext(), inputs, getResultTypes());
  if (callee.getFunctionType() == expected)
    return success();
  InFlightDiagnostic diag = emitOpError("calls a function of type ")
                            << expected << ", but " << getCalleeAttr() << " has type "
                            << callee.getFunctionType();
  diag.attachNote(callee.getLoc()) << "defined here";
  return diag;
}
