//===- Collectives.cpp - What the collectives demand ----------------------===//
//
// The constraints are numbered in dialect/SPEC.md.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"
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
  if (auto integer = dyn_cast<IntegerType>(type))
    return !integer.isSigned() && llvm::is_contained({8u, 16u, 32u, 64u}, integer.getWidth());
  return isa<Float32Type, Float64Type, BFloat16Type, Float16Type, Float8E4M3FNType, Float8E5M2Type>(
      type);
}

bool ncclx::accumulates(Type element, Type accumulate) {
  auto isUnsigned = [](Type type) { return type.isUnsignedInteger(); };
  return accumulate == element ||
         (isa<FloatType>(element) == isa<FloatType>(accumulate) &&
          isUnsigned(element) == isUnsigned(accumulate) && isSupportedElementType(accumulate) &&
          accumulate.getIntOrFloatBitWidth() > element.getIntOrFloatBitWidth());
}

bool ncclx::fitsBytes(ShapedType type) {
  int64_t bytes = 8;
  for (int64_t size : type.getShape())
    if (size != 0 && llvm::MulOverflow(bytes, size, bytes))
      return false;
  return true;
}

GridOp ncclx::lookupGrid(CollectiveOpInterface op) {
  return SymbolTable::lookupNearestSymbolFrom<GridOp>(op, op.getGridAttr());
}

/// The number of members of each group, once.
static llvm::SmallSetVector<int64_t, 1> groupSizes(CollectiveOpInterface op, GridOp grid) {
  llvm::SmallSetVector<int64_t, 1> sizes;
  if (ArrayAttr groups = op.getGroupsAttr())
    for (auto ranks : groups.getAsRange<DenseI64ArrayAttr>())
      sizes.insert(ranks.size());
  else
    sizes.insert(grid.getGroupSize(op.getAxes()));
  return sizes;
}

int64_t ncclx::getGroupSize(CollectiveOpInterface op) {
  return *llvm::max_element(groupSizes(op, lookupGrid(op)));
}

bool ncclx::haveOneSize(CollectiveOpInterface op) {
  return groupSizes(op, lookupGrid(op)).size() == 1;
}

std::optional<int64_t> ncclx::getRoot(CollectiveOpInterface op) {
  Dataflow flow = op.getDataflow();
  if (flow.root.empty())
    return std::nullopt;
  if (op.getGroupsAttr())
    return flow.root.front();
  GridOp grid = lookupGrid(op);
  int64_t member = 0;
  for (auto [axis, at] : llvm::zip_equal(op.getAxes().getAsValueRange<StringAttr>(), flow.root))
    member = member * *grid.getAxisSize(axis) + at;
  return member;
}

CollectiveOpInterface ncclx::cloneCollective(OpBuilder &builder, CollectiveOpInterface op,
                                             Value input, Value dest, bool async, Value sizes) {
  SmallVector<Type, 2> types;
  bool tensors = isa<RankedTensorType>(input.getType());
  if (tensors)
    types.push_back(op.getOutputType());
  if (async)
    types.push_back(TokenType::get(op.getContext()));
  OperationState state(op.getLoc(), op->getName(), input, types);
  if (sizes)
    state.addOperands(sizes);
  if (dest)
    state.addOperands(dest);
  // All of the op's own attributes, which differ from op to op, but for the number of results.
  NamedAttrList properties(cast<DictionaryAttr>(op->getPropertiesAsAttribute()));
  properties.set("resultSegmentSizes", builder.getDenseI32ArrayAttr({tensors, async}));
  if (properties.get("operandSegmentSizes"))
    properties.set("operandSegmentSizes",
                   builder.getDenseI32ArrayAttr({1, bool(sizes), bool(dest)}));
  state.propertiesAttr = properties.getDictionary(op.getContext());
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  return cast<CollectiveOpInterface>(builder.create(state));
}

//===--- Rules shared by the collectives ----------------------------------===//

/// collective C6 and C9, and barrier C1.
LogicalResult ncclx::verifyAxes(Operation *op, ArrayAttr axes, ArrayAttr groups) {
  if (groups && !axes.empty())
    return op->emitOpError("lists groups and axes, expected one of them");
  if (groups)
    return success();
  llvm::SmallSet<StringRef, 4> seen;
  for (StringRef axis : axes.getAsValueRange<StringAttr>())
    if (!seen.insert(axis).second)
      return op->emitOpError("lists axis \"") << axis << "\" twice";
  if (seen.empty())
    return op->emitOpError("needs at least one axis");
  return success();
}

/// collective C1 to C6 and C8 (SPEC.md).
static LogicalResult verifyForm(CollectiveOpInterface op) {
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
  for (ShapedType type : {in, out})
    if (!fitsBytes(type))
      return op->emitOpError("needs less than 2^63 bytes, but found ") << type;
  if (!isSupportedElementType(in.getElementType()))
    return op->emitOpError(
               "works on floats (f64, f32, f16, bf16, f8E4M3FN, f8E5M2) and on i8 to i64 and "
               "ui8 to ui64, but the elements are ")
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
  if (buffers && op.getDest() == op.getSizes())
    return op->emitOpError("cannot work in place: its destination is its sizes");

  return verifyAxes(op, op.getAxes(), op.getGroupsAttr());
}

/// collective C9: every rank of the grid is in one group.
static LogicalResult verifyGroups(Operation *op, GridOp grid, ArrayAttr groups) {
  int64_t ranks = grid.getNumRanks(), listed = 0;
  llvm::BitVector seen(ranks);
  for (auto group : groups.getAsRange<DenseI64ArrayAttr>()) {
    if (group.empty())
      return op->emitOpError("lists a group without ranks");
    for (int64_t rank : group.asArrayRef()) {
      bool isRank = rank >= 0 && rank < ranks;
      if (!isRank || seen[rank]) {
        InFlightDiagnostic diag = op->emitOpError("lists rank ") << rank;
        diag << (isRank ? " twice" : ", which is none");
        diag.attachNote(grid.getLoc()) << "the grid has " << ranks << " ranks";
        return diag;
      }
      seen.set(rank);
      ++listed;
    }
  }
  if (listed == ranks)
    return success();
  InFlightDiagnostic diag = op->emitOpError("lists no group for rank ")
                            << seen.find_first_unset() << ", expected every rank in one";
  diag.attachNote(grid.getLoc()) << "the grid has " << ranks << " ranks";
  return diag;
}

/// collective C7 and barrier C1.
FailureOr<GridOp> ncclx::verifyGrid(Operation *op, FlatSymbolRefAttr name, ArrayAttr axes,
                                    ArrayAttr groups, SymbolTableCollection &tables) {
  Operation *symbol = tables.lookupNearestSymbolFrom(op, name);
  if (!symbol)
    return op->emitOpError("grid ") << name << " is not defined";
  auto grid = dyn_cast<GridOp>(symbol);
  if (!grid) {
    InFlightDiagnostic diag = op->emitOpError("needs an ncclx.grid, but ")
                              << name << " is a '" << symbol->getName() << "'";
    diag.attachNote(symbol->getLoc()) << "defined here";
    return diag;
  }
  for (StringRef axis : axes.getAsValueRange<StringAttr>())
    if (!grid.getAxisSize(axis)) {
      InFlightDiagnostic diag = op->emitOpError("grid ")
                                << name << " has no axis \"" << axis << "\"";
      diag.attachNote(grid.getLoc()) << "the grid's axes are " << grid.getAxes();
      return diag;
    }
  if (groups && failed(verifyGroups(op, grid, groups)))
    return failure();
  return grid;
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

/// reduction C1, C2 and C3.
static LogicalResult verifyReduction(Operation *op, Type element) {
  Type accumulate = op->getAttrOfType<TypeAttr>("accumulate").getValue();
  if (!accumulates(element, accumulate))
    return op->emitOpError("accumulates elements of type ")
           << element << ", expected that type or a wider supported one of its kind, but found "
           << accumulate;
  if (!op->hasAttr("scale"))
    return success();
  ReductionKind kind = op->getAttrOfType<ReductionKindAttr>("kind").getValue();
  if (kind != ReductionKind::Sum)
    return op->emitOpError("scales the operands of a sum only, but it is a ")
           << stringifyReductionKind(kind);
  if (!isa<FloatType>(element))
    return op->emitOpError("scales floats only, but the elements are ") << element;
  return success();
}

/// all_to_all_v C5, and C6 but for the number of sizes.
static LogicalResult verifySizes(AllToAllVOp op) {
  if (bool(op.getCountsAttr()) == bool(op.getSizes()))
    return op.emitOpError("needs either counts or sizes, but has ")
           << (op.getSizes() ? "both" : "neither");
  if (!op.getSizes())
    return success();
  auto type = cast<ShapedType>(op.getSizes().getType());
  Type element = type.getElementType();
  bool good = (element.isSignlessInteger(32) || element.isSignlessInteger(64)) &&
              type.getRank() == 1 && isa<BaseMemRefType>(type) == op.isBufferForm();
  if (good)
    return success();
  return op.emitOpError("needs sizes in a ")
         << (op.isBufferForm() ? "memref" : "tensor")
         << " of one dimension, of i32 or i64, but found " << type;
}

/// What does not depend on the number of members: the rules of the form, then those of the op.
LogicalResult ncclx::verifyCollective(CollectiveOpInterface op) {
  if (failed(verifyForm(op)))
    return failure();
  Dataflow flow = op.getDataflow();
  if (flow.combines && failed(verifyReduction(op, op.getElementType())))
    return failure();
  if (isa<PermuteOp>(*op) && failed(verifyPeers(op, /*mayBeOwn=*/false))) // permute C1, C2
    return failure();
  if (auto exchange = dyn_cast<AllToAllVOp>(*op); exchange && failed(verifySizes(exchange)))
    return failure();
  bool both = flow.inCut && flow.outCut;
  SmallVector<int64_t, 2> cut;
  for (auto [dim, verb] : {std::pair(flow.inCut, both ? "splits" : "scatters along"),
                           std::pair(flow.outCut, both ? "concatenates" : "gathers along")})
    if (dim) {
      if (failed(verifyDim(op, verb, *dim, op.getInputType())))
        return failure();
      cut.push_back(*dim);
    }
  if (bool rooted =
          flow.route == Dataflow::Route::FromRoot || flow.route == Dataflow::Route::ToRoot;
      rooted && flow.root.size() != (op.getGroupsAttr() ? 1 : op.getAxes().size())) // root C1
    return op->emitOpError("needs a root with one coordinate for each of ")
           << (op.getGroupsAttr() ? 1 : op.getAxes().size()) << " axes, but found "
           << flow.root.size();
  return verifySameShape(op, cut);
}

//===--- Rules on the number of members ------------------------------------===//

/// all_to_all C3 and C4.
static LogicalResult verifyExchange(CollectiveOpInterface op, int64_t split, int64_t concat,
                                    int64_t numMembers) {
  ShapedType in = op.getInputType(), out = op.getOutputType();
  if (in.getDimSize(split) % numMembers != 0)
    return op->emitOpError("splits dimension ")
           << split << " of size " << in.getDimSize(split) << " among " << numMembers
           << " members, which does not divide";
  SmallVector<int64_t> expected(in.getShape());
  expected[split] /= numMembers;
  if (llvm::MulOverflow(expected[concat], numMembers, expected[concat]))
    return op->emitOpError("concatenates dimension ") << concat << " to more than 2^63 rows";
  for (int64_t dim : {split, concat})
    if (out.getDimSize(dim) != expected[dim])
      return op->emitOpError("with ")
             << numMembers << " members gives dimension " << dim << " the size " << expected[dim]
             << ", but the output has " << out.getDimSize(dim);
  return success();
}

/// all_to_all_v C2 to C4.
static LogicalResult verifyCounts(CollectiveOpInterface op, const Dataflow &flow,
                                  int64_t numMembers) {
  auto type = cast<ShapedType>(flow.counts.getType());
  if (type.getRank() != 2 || type.getDimSize(0) != numMembers || type.getDimSize(1) != numMembers)
    return op->emitOpError("needs counts of ")
           << numMembers << "x" << numMembers << " members, but found " << type;
  SmallVector<int64_t> counts(flow.counts.getValues<int64_t>());
  SmallVector<int64_t> sent(numMembers), received(numMembers);
  for (int64_t i = 0; i < numMembers; ++i)
    for (int64_t j = 0; j < numMembers; ++j) {
      int64_t count = counts[i * numMembers + j];
      if (count < 0)
        return op->emitOpError("sends ") << count << " rows from member " << i << " to member " << j
                                         << ", expected at least 0";
      if (llvm::AddOverflow(sent[i], count, sent[i]) ||
          llvm::AddOverflow(received[j], count, received[j]))
        return op->emitOpError("has counts that add up to more than 2^63");
    }
  auto fits = [&](ArrayRef<int64_t> sums, ShapedType shape, StringRef what) -> LogicalResult {
    for (auto [member, sum] : llvm::enumerate(sums))
      if (sum > shape.getDimSize(*flow.inCut))
        return op->emitOpError() << what << sum << " rows at member " << member
                                 << ", but there are " << shape.getDimSize(*flow.inCut) << " in "
                                 << shape;
    return success();
  };
  return failure(failed(fits(sent, op.getInputType(), "sends ")) ||
                 failed(fits(received, op.getOutputType(), "receives ")));
}

/// all_to_all_v C6 and C7.
static LogicalResult verifyBlocks(CollectiveOpInterface op, int64_t dim, int64_t numMembers) {
  auto sizes = cast<ShapedType>(op.getSizes().getType());
  if (sizes.getDimSize(0) != numMembers)
    return op->emitOpError("needs one size for each of ")
           << numMembers << " members, but found " << sizes;
  int64_t in = op.getInputType().getDimSize(dim), out = op.getOutputType().getDimSize(dim);
  if (in == out && in % numMembers == 0)
    return success();
  return op->emitOpError("with sizes cuts dimension ")
         << dim << " of input and result into " << numMembers << " blocks of one size, but found "
         << in << " and " << out << " rows";
}

static LogicalResult verifyGroup(CollectiveOpInterface op, GridOp grid, int64_t numMembers) {
  Dataflow flow = op.getDataflow();
  auto axes = op.getAxes().getAsValueRange<StringAttr>();
  if (op.getGroupsAttr() && !flow.root.empty()) {
    if (flow.root[0] < 0 || flow.root[0] >= numMembers) // root C2
      return op->emitOpError("has member ")
             << flow.root[0] << " as its root, but a group has " << numMembers << " members";
  } else if (!flow.root.empty())
    for (auto [axis, at] : llvm::zip_equal(axes, flow.root))
      if (at < 0 || at >= *grid.getAxisSize(axis)) { // root C2
        InFlightDiagnostic diag = op->emitOpError("has its root at ")
                                  << at << " on axis \"" << axis << "\", which has size "
                                  << *grid.getAxisSize(axis);
        diag.attachNote(grid.getLoc()) << "the size comes from this grid";
        return diag;
      }
  if (flow.counts)
    return verifyCounts(op, flow, numMembers);
  if (flow.sized)
    return verifyBlocks(op, *flow.inCut, numMembers);
  if (flow.inCut && flow.outCut)
    return verifyExchange(op, *flow.inCut, *flow.outCut, numMembers);
  if (flow.inCut)
    return verifyShard(op, *flow.inCut, op.getOutputType(), op.getInputType(), numMembers);
  if (flow.outCut)
    return verifyShard(op, *flow.outCut, op.getInputType(), op.getOutputType(), numMembers);
  return verifyMembers(op, numMembers); // permute C3
}

/// collective C7, then the op's own rules on the group.
LogicalResult ncclx::verifyCollectiveSymbols(CollectiveOpInterface op,
                                             SymbolTableCollection &tables) {
  FailureOr<GridOp> grid =
      verifyGrid(op, op.getGridAttr(), op.getAxes(), op.getGroupsAttr(), tables);
  if (failed(grid))
    return failure();
  for (int64_t size : groupSizes(op, *grid))
    if (failed(verifyGroup(op, *grid, size)))
      return failure();
  auto schedule = op->getAttrOfType<FlatSymbolRefAttr>(NCCLXDialect::getScheduleAttrName());
  if (!schedule)
    return success();
  // The dialect of schedules is above this one: its op is known by name.
  Operation *symbol = tables.lookupNearestSymbolFrom(op, schedule);
  if (symbol && symbol->getName().getStringRef() == "ctran.program")
    return success();
  return op->emitOpError("names the schedule ") // schedule S2
         << schedule << ", which is no ctran.program of this module";
}

//===--- What each collective does ------------------------------------------===//

using Route = Dataflow::Route;

Dataflow AllGatherOp::getDataflow() { return {.outCut = getDim()}; }
Dataflow ReduceScatterOp::getDataflow() { return {.inCut = getDim(), .combines = true}; }
Dataflow AllReduceOp::getDataflow() { return {.combines = true}; }
Dataflow AllToAllOp::getDataflow() { return {.inCut = getSplit(), .outCut = getConcat()}; }
Dataflow AllToAllVOp::getDataflow() {
  return {.inCut = getDim(),
          .outCut = getDim(),
          .counts = cast_if_present<DenseIntElementsAttr>(getCountsAttr()),
          .sized = bool(getSizes())};
}
Dataflow PermuteOp::getDataflow() { return {.route = Route::Listed}; }
Dataflow BroadcastOp::getDataflow() { return {.route = Route::FromRoot, .root = getRoot()}; }
Dataflow ReduceOp::getDataflow() {
  return {.route = Route::ToRoot, .combines = true, .root = getRoot()};
}
Dataflow GatherOp::getDataflow() {
  return {.route = Route::ToRoot, .outCut = getDim(), .root = getRoot()};
}
Dataflow ScatterOp::getDataflow() {
  return {.route = Route::FromRoot, .inCut = getDim(), .root = getRoot()};
}

LogicalResult BarrierOp::verify() { return verifyAxes(*this, getAxes(), getGroupsAttr()); }
LogicalResult BarrierOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyGrid(*this, getGridAttr(), getAxes(), getGroupsAttr(), tables);
}

//===--- permute --------------------------------------------------------------===//

std::optional<int64_t> PermuteOp::getSource(int64_t member, int64_t numMembers) {
  return PeerMap::of(*this).getSource(member, numMembers);
}

std::optional<int64_t> PermuteOp::getTarget(int64_t member, int64_t numMembers) {
  return PeerMap::of(*this).getTarget(member, numMembers);
}
