//===- InterpreterLowering.cpp - ncclx to memrefs and calls ---------------===//
//
// On tensors, asynchrony is dropped: a future is its value and an await is nothing, so
// bufferization is upstream's, with no buffer in flight. On memrefs a start does all the work, and
// a finish none.
//
//===----------------------------------------------------------------------===//
#include "InterpreterLowering.h"

#include "ncclx/NCCLX/AssumeUniform.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/NCCLX/Sizes.h"
#include "ncclx/Reference/CountedLoops.h"
#include "ncclx/Reference/HostCompute.h"
#include "ncclx/Reference/Interpreter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::reference;

void mlir::ncclx::registerInterpreterDialects(DialectRegistry &registry) {
  registerHostComputeDialects(registry);
  registry.insert<NCCLXDialect, bufferization::BufferizationDialect, tensor::TensorDialect>();
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(registry);
  cf::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
}

namespace {

/// Where an op stands, for a message at run time.
std::string describe(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "'" << op->getName() << "' (" << op->getLoc() << ")";
  return text;
}

template <typename OpTy> SmallVector<OpTy> collect(ModuleOp module) {
  SmallVector<OpTy> ops;
  module.walk([&](OpTy op) { ops.push_back(op); });
  return ops;
}

/// Replaces one dialect type by another everywhere.
template <typename From>
void replaceType(ModuleOp module, llvm::function_ref<Type(From)> replacement) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](From type) -> std::optional<Type> { return replacement(type); });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

class Lowering {
public:
  Lowering(ModuleOp module, int64_t ranks) : module(module), ranks(ranks) {}

  LogicalResult run(StringRef function);
  LoweredProgram program;

private:
  LogicalResult isolate(StringRef function);
  void exchangeAssumptions();
  LogicalResult addSites();
  Collective describeCollective(CollectiveOpInterface op, ArrayRef<int64_t> members);
  void simplifyTensors();
  LogicalResult bufferize();
  LogicalResult lowerBuffers();
  Value makeDense(ImplicitLocOpBuilder &b, Value memref);
  void buildEntry(ArrayRef<Type> inputs, ArrayRef<Type> results, StringRef function);
  Value takeChunk(ImplicitLocOpBuilder &b, Operation *op, Value whole, Value chunk, int64_t count,
                  int64_t dim, Type type);
  func::FuncOp declare(StringRef name, FunctionType type);
  void checkIndex(ImplicitLocOpBuilder &b, Value index, int64_t count, std::string text);
  void meet(ImplicitLocOpBuilder &b, Operation *op, Value from, Value sizes, Value to);

  ModuleOp module;
  int64_t ranks;
  static constexpr llvm::StringLiteral siteAttr = "ncclx_reference.site";
  /// Of a broadcast that stands for an op by which the ranks must agree: that op, for messages.
  static constexpr llvm::StringLiteral agreeAttr = "ncclx_reference.agree";
};

/// Keeps the function and what it names.
LogicalResult Lowering::isolate(StringRef function) {
  auto entry = module.lookupSymbol<func::FuncOp>(function);
  if (!entry || entry.isDeclaration())
    return module.emitError("has no function '") << function << "' with a body to interpret";
  for (func::FuncOp other : module.getOps<func::FuncOp>())
    other.setVisibility(other == entry ? SymbolTable::Visibility::Public
                                       : SymbolTable::Visibility::Private);
  PassManager manager(module.getContext());
  manager.addPass(createSymbolDCEPass());
  if (failed(manager.run(module)))
    return failure();
  llvm::append_range(program.types, entry.getArgumentTypes());
  llvm::append_range(program.types, entry.getResultTypes());
  program.numInputs = entry.getNumArguments();
  for (Type type : program.types) {
    auto shaped = dyn_cast<ShapedType>(type);
    if (shaped ? !shaped.hasStaticShape() : !type.isIntOrIndexOrFloat())
      return entry.emitOpError("must have arguments and results of static shape to be interpreted, "
                               "found ")
             << type;
  }
  for (auto type : llvm::make_filter_range(program.types, llvm::IsaPred<MemRefType>))
    if (!cast<MemRefType>(type).getLayout().isIdentity())
      return entry.emitOpError("must have memrefs of the identity layout to be interpreted, found ")
             << type;
  return success();
}

/// An assumption is checked where all ranks meet for a broadcast of rank 0's value.
void Lowering::exchangeAssumptions() {
  SmallVector<AssumeUniformOp> ops = collect<AssumeUniformOp>(module);
  if (ops.empty())
    return;
  OpBuilder outside = OpBuilder::atBlockBegin(module.getBody());
  std::string grid = "ncclx_reference.all";
  while (module.lookupSymbol(grid))
    grid += "_";
  GridOp::create(outside, module.getLoc(), grid, outside.getStrArrayAttr({"all"}),
                 ArrayRef<int64_t>{ranks}, StringAttr());
  for (AssumeUniformOp op : ops) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    Value value = op.getValue();
    Type type = value.getType(), element = type;
    if (type.isIndex())
      value = arith::IndexCastOp::create(b, element = b.getI64Type(), value);
    else if (type.isInteger(1))
      value = arith::ExtUIOp::create(b, element = b.getI8Type(), value);
    auto boxed = RankedTensorType::get({}, element);
    OperationState state(op.getLoc(), BroadcastOp::getOperationName());
    state.addOperands(tensor::FromElementsOp::create(b, boxed, value).getResult());
    state.addTypes(boxed);
    state.addAttribute("root", b.getDenseI64ArrayAttr({0}));
    state.addAttribute("grid", FlatSymbolRefAttr::get(b.getContext(), grid));
    state.addAttribute("axes", b.getStrArrayAttr({"all"}));
    state.addAttribute("resultSegmentSizes", b.getDenseI32ArrayAttr({1, 0}));
    state.addAttribute(agreeAttr, b.getStringAttr(describe(op)));
    Value same = b.create(state)->getResult(0);
    value = tensor::ExtractOp::create(b, same, ValueRange());
    if (type.isIndex())
      value = arith::IndexCastOp::create(b, type, value);
    else if (type.isInteger(1))
      value = arith::TruncIOp::create(b, type, value);
    op.getResult().replaceAllUsesWith(value);
    op.erase();
  }
}

Element elementOf(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 8:
      return isUnsigned ? Element::U8 : Element::I8;
    case 16:
      return isUnsigned ? Element::U16 : Element::I16;
    case 32:
      return isUnsigned ? Element::U32 : Element::I32;
    default:
      return isUnsigned ? Element::U64 : Element::I64;
    }
  }
  return llvm::TypeSwitch<Type, Element>(type)
      .Case<Float64Type>([](Type) { return Element::F64; })
      .Case<Float32Type>([](Type) { return Element::F32; })
      .Case<Float16Type>([](Type) { return Element::F16; })
      .Case<BFloat16Type>([](Type) { return Element::BF16; })
      .Case<Float8E4M3FNType>([](Type) { return Element::E4M3; })
      .Default([](Type) { return Element::E5M2; });
}

Reduction reductionOf(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum:
    return Reduction::Sum;
  case ReductionKind::Min:
    return Reduction::Min;
  case ReductionKind::Max:
    return Reduction::Max;
  case ReductionKind::Prod:
    return Reduction::Prod;
  case ReductionKind::Avg:
    return Reduction::Avg;
  }
  llvm_unreachable("all kinds are handled");
}

/// `any` leaves the order open; here it is that of the members.
Order orderOf(ReductionOrder order) {
  switch (order) {
  case ReductionOrder::Any:
  case ReductionOrder::Rank:
    return Order::Member;
  case ReductionOrder::Ring:
    return Order::Ring;
  case ReductionOrder::Tree:
    return Order::Tree;
  }
  llvm_unreachable("all orders are handled");
}

Collective::Route routeOf(Dataflow::Route route) {
  switch (route) {
  case Dataflow::Route::All:
    return Collective::All;
  case Dataflow::Route::FromRoot:
    return Collective::FromRoot;
  case Dataflow::Route::ToRoot:
    return Collective::ToRoot;
  case Dataflow::Route::Listed:
    return Collective::Listed;
  }
  llvm_unreachable("all routes are handled");
}

Collective Lowering::describeCollective(CollectiveOpInterface op, ArrayRef<int64_t> members) {
  Dataflow flow = op.getDataflow();
  Collective result;
  result.route = routeOf(flow.route);
  result.element = elementOf(op.getElementType());
  llvm::append_range(result.inShape, op.getInputType().getShape());
  llvm::append_range(result.outShape, op.getOutputType().getShape());
  result.inCut = flow.inCut.value_or(-1);
  result.outCut = flow.outCut.value_or(-1);
  result.root = getRoot(op).value_or(0);
  if (flow.counts)
    llvm::append_range(result.counts, flow.counts.getValues<int64_t>());
  if (flow.sized)
    result.sizeBytes = cast<ShapedType>(op.getSizes().getType()).getElementTypeBitWidth() / 8;
  if (auto permute = dyn_cast<PermuteOp>(op.getOperation()))
    for (size_t member = 0; member < members.size(); ++member)
      result.sources.push_back(permute.getSource(member, members.size()).value_or(-1));
  result.combines = flow.combines;
  if (flow.combines) {
    result.reduction = reductionOf(op->getAttrOfType<ReductionKindAttr>("kind").getValue());
    if (auto scale = op->getAttrOfType<FloatAttr>("scale"))
      result.scale = scale.getValueAsDouble();
    result.accumulate = elementOf(op->getAttrOfType<TypeAttr>("accumulate").getValue());
    result.order = orderOf(op->getAttrOfType<ReductionOrderAttr>("order").getValue());
  }
  return result;
}

/// A put to a peer, which changes the window of those alone to whom something comes.
static Collective describePut(PutOp op, int64_t numMembers) {
  Collective result;
  auto type = cast<ShapedType>(op.getSource().getType());
  result.route = Collective::Listed;
  result.element = elementOf(type.getElementType());
  llvm::append_range(result.inShape, type.getShape());
  result.outShape = result.inShape;
  result.keeps = true;
  for (int64_t member = 0; member < numMembers; ++member)
    result.sources.push_back(PeerMap::of(op).getSource(member, numMembers).value_or(-1));
  return result;
}

/// One site for each collective and put, while it still has its tensor form and its place.
LogicalResult Lowering::addSites() {
  auto add = [&](Operation *op, auto named, GridOp grid) -> FailureOr<Site *> {
    if (grid.getNumRanks() != ranks) {
      InFlightDiagnostic diag = op->emitOpError("is over a grid of ")
                                << grid.getNumRanks() << " ranks, but " << ranks
                                << " are to be interpreted";
      diag.attachNote(grid.getLoc()) << "the grid is here";
      return diag;
    }
    op->setDiscardableAttr(
        siteAttr, IntegerAttr::get(IntegerType::get(op->getContext(), 64), program.sites.size()));
    Site &site = program.sites.emplace_back();
    auto agree = op->template getAttrOfType<StringAttr>(agreeAttr);
    site.agrees = static_cast<bool>(agree);
    site.name = agree ? agree.str() : describe(op);
    site.groupOf.assign(ranks, -1);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      if (site.groupOf[rank] >= 0)
        continue;
      SmallVector<int64_t> members = grid.getGroup(named.getAxes(), rank, named.getGroupsAttr());
      for (int64_t member : members)
        site.groupOf[member] = site.groups.size();
      site.groups.emplace_back(members.begin(), members.end());
    }
    return &site;
  };
  for (CollectiveOpInterface op : collect<CollectiveOpInterface>(module)) {
    FailureOr<Site *> site = add(op, op, lookupGrid(op));
    if (failed(site))
      return failure();
    for (const std::vector<int64_t> &members : (*site)->groups) {
      (*site)->collectives.push_back(describeCollective(op, members));
      if (haveOneSize(op))
        break;
    }
  }
  for (BarrierOp op : collect<BarrierOp>(module)) {
    auto grid = SymbolTable::lookupNearestSymbolFrom<GridOp>(op, op.getGridAttr());
    FailureOr<Site *> site = add(op, op, grid);
    if (failed(site))
      return failure();
    Collective &nothing = (*site)->collectives.emplace_back();
    nothing.inShape = nothing.outShape = {0};
  }
  for (WindowOp window : collect<WindowOp>(module)) {
    auto grid = SymbolTable::lookupNearestSymbolFrom<GridOp>(window, window.getGridAttr());
    for (Operation *user : window.getWindow().getUsers()) {
      auto put = dyn_cast<PutOp>(user);
      if (!put || PeerMap::of(put).isOwn())
        continue;
      FailureOr<Site *> site = add(put, window, grid);
      if (failed(site))
        return failure();
      for (const std::vector<int64_t> &members : (*site)->groups)
        (*site)->collectives.push_back(describePut(put, members.size()));
    }
  }
  for (PutOp put : collect<PutOp>(module))
    if (!PeerMap::of(put).isOwn() && !put->hasAttr(siteAttr))
      return put.emitOpError("writes a window that the function has not made itself");
  return success();
}

func::FuncOp Lowering::declare(StringRef name, FunctionType type) {
  if (auto known = module.lookupSymbol<func::FuncOp>(name))
    return known;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  auto function = func::FuncOp::create(b, module.getLoc(), name, type);
  function.setPrivate();
  return function;
}

/// Ends the run with `text` where the index is not in [0, count).
void Lowering::checkIndex(ImplicitLocOpBuilder &b, Value index, int64_t count, std::string text) {
  auto i64 = [&](int64_t value) {
    return arith::ConstantIntOp::create(b, value, /*width=*/64).getResult();
  };
  func::FuncOp check = declare(
      chunkFunction, b.getFunctionType({b.getI64Type(), b.getI64Type(), b.getI64Type()}, {}));
  Value wide = arith::IndexCastOp::create(b, b.getI64Type(), index);
  func::CallOp::create(b, check, ValueRange{i64(program.chunks.size()), wide, i64(count)});
  program.chunks.push_back(std::move(text));
}

/// Members meet at the op's site, where `from` and `to` are what it reads and writes.
void Lowering::meet(ImplicitLocOpBuilder &b, Operation *op, Value from, Value sizes, Value to) {
  Type i64 = b.getI64Type();
  func::FuncOp callback = declare(collectiveFunction, b.getFunctionType({i64, i64, i64, i64}, {}));
  auto address = [&](Value memref) -> Value {
    if (!memref)
      return arith::ConstantIntOp::create(b, 0, /*width=*/64);
    Value pointer = memref::ExtractAlignedPointerAsIndexOp::create(b, memref);
    return arith::IndexCastOp::create(b, i64, pointer);
  };
  Value site = arith::ConstantOp::create(b, op->getAttrOfType<IntegerAttr>(siteAttr));
  func::CallOp::create(b, callback, ValueRange{site, address(from), address(sizes), address(to)});
}

/// Chunk `chunk` of `count`, a slice or a subview: rows [i*c, min((i+1)*c, N)) with c = ceil(N/n).
Value Lowering::takeChunk(ImplicitLocOpBuilder &b, Operation *op, Value whole, Value chunk,
                          int64_t count, int64_t dim, Type type) {
  auto index = [&](int64_t value) { return arith::ConstantIndexOp::create(b, value).getResult(); };
  checkIndex(b, chunk, count, "takes chunk {0} of {1} at " + describe(op));
  auto shaped = cast<ShapedType>(whole.getType());
  int64_t rows = shaped.getDimSize(dim), each = getShardSize(rows, count);
  SmallVector<OpFoldResult> offsets(shaped.getRank(), b.getIndexAttr(0)), sizes,
      strides(shaped.getRank(), b.getIndexAttr(1));
  for (int64_t size : shaped.getShape())
    sizes.push_back(b.getIndexAttr(size));
  Value start = arith::MulIOp::create(b, chunk, index(each));
  if (rows % count == 0) {
    sizes[dim] = b.getIndexAttr(each);
  } else {
    start = arith::MinSIOp::create(b, start, index(rows));
    Value end =
        arith::MinSIOp::create(b, arith::AddIOp::create(b, start, index(each)), index(rows));
    sizes[dim] = arith::SubIOp::create(b, end, start).getResult();
  }
  offsets[dim] = start;
  if (isa<RankedTensorType>(type))
    return tensor::ExtractSliceOp::create(b, cast<RankedTensorType>(type), whole, offsets, sizes,
                                          strides);
  return memref::SubViewOp::create(b, cast<MemRefType>(type), whole, offsets, sizes, strides);
}

/// The tensor form without time: a future is its value from the start on. Calls become calls.
void Lowering::simplifyTensors() {
  replaceType<FutureType>(module, [](FutureType type) -> Type { return type.getValue(); });
  for (StartOp op : collect<StartOp>(module)) {
    Operation *collective = &op.getBody().front().front();
    collective->moveBefore(op);
    op->getResult(0).replaceAllUsesWith(collective->getResult(0));
    op.erase();
  }
  for (AwaitOp op : collect<AwaitOp>(module)) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    Value value = op->getOperand(0);
    if (op.getChunk())
      value = takeChunk(b, op, value, op.getChunk(), *op.getCount(), *op.getDim(),
                        op->getResult(0).getType());
    op->getResult(0).replaceAllUsesWith(value);
    op.erase();
  }
  for (ncclx::CallOp op : collect<ncclx::CallOp>(module)) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    SmallVector<Value> operands(op.getInputs());
    llvm::append_range(operands, op.getOuts());
    auto call = func::CallOp::create(b, op.getCallee(), op->getResultTypes(), operands);
    op->replaceAllUsesWith(call.getResults());
    op.erase();
  }
  for (CollectiveOpInterface op : collect<CollectiveOpInterface>(module)) {
    if (op.isBufferForm() || op.getDest())
      continue;
    ImplicitLocOpBuilder b(op.getLoc(), op);
    ShapedType type = op.getOutputType();
    Value empty = tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
    op.getDestMutable().assign(empty);
  }
  for (GetOp op : collect<GetOp>(module)) {
    if (op.getDest())
      continue;
    ImplicitLocOpBuilder b(op.getLoc(), op);
    ShapedType type = op.getBoxType();
    op.getDestMutable().assign(
        tensor::EmptyOp::create(b, type.getShape(), type.getElementType()).getResult());
  }
}

LogicalResult Lowering::bufferize() {
  bool tensors = llvm::any_of(program.types, llvm::IsaPred<TensorType>);
  module.walk([&](Operation *op) {
    tensors |= llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>);
  });
  if (tensors) {
    // Upstream bufferizes no elementwise arith or math on tensors.
    PassManager manager(module.getContext());
    manager.addPass(createConvertElementwiseToLinalgPass());
    if (failed(manager.run(module)))
      return failure();
    bufferization::OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.setFunctionBoundaryTypeConversion(bufferization::LayoutMapOption::IdentityLayoutMap);
    // A copy of a buffer in flight would be wrong elsewhere; here nothing is in flight.
    options.allowReturnAllocsFromLoops = true;
    bufferization::BufferizationState state;
    if (failed(bufferization::runOneShotModuleBufferize(module, options, state)))
      return failure();
  }
  // Upstream crashes on a buffer that is returned twice, since it cannot become two arguments: a
  // copy of it is returned in its second place.
  module.walk([](func::ReturnOp op) {
    llvm::SmallPtrSet<Value, 4> seen;
    OpBuilder builder(op);
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = dyn_cast<MemRefType>(operand.get().getType());
      if (!type || seen.insert(operand.get()).second || !type.hasStaticShape())
        continue;
      Value copy = memref::AllocOp::create(builder, op.getLoc(),
                                           MemRefType::get(type.getShape(), type.getElementType()));
      memref::CopyOp::create(builder, op.getLoc(), operand.get(), copy);
      operand.set(copy);
    }
  });
  bufferization::BufferResultsToOutParamsOpts results;
  results.hoistStaticAllocs = true;
  results.modifyPublicFunctions = true;
  return bufferization::promoteBufferResultsToOutParams(module, results);
}

/// An identity copy of a view, for the callback. Copied in even for a destination: what the
/// collective does not write stays.
Value Lowering::makeDense(ImplicitLocOpBuilder &b, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (type.getLayout().isIdentity())
    return memref;
  Value dense = memref::AllocOp::create(b, MemRefType::get(type.getShape(), type.getElementType()));
  memref::CopyOp::create(b, memref, dense);
  return dense;
}

/// On memrefs: a collective becomes a call, and everything about time goes.
LogicalResult Lowering::lowerBuffers() {
  for (FinishOp op : collect<FinishOp>(module))
    op.erase();
  for (FinishChunkOp op : collect<FinishChunkOp>(module)) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    Value view = takeChunk(b, op, op.getInFlight(), op.getChunk(), op.getCount(), op.getDim(),
                           op.getResult().getType());
    op.getResult().replaceAllUsesWith(view);
    op.erase();
  }
  for (CollectiveOpInterface op : collect<CollectiveOpInterface>(module)) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    auto site = op->getAttrOfType<IntegerAttr>(siteAttr);
    if (!site || !op.isBufferForm())
      return op->emitOpError("was not bufferized as the interpreter expects");
    // In place means in place: the two are one copy then.
    Value in = makeDense(b, op.getInput());
    Value out = op.getDest() == op.getInput() ? in : makeDense(b, op.getDest());
    Value sizes = op.getSizes() ? makeDense(b, op.getSizes()) : Value();
    meet(b, op, in, sizes, out);
    if (sizes != op.getSizes())
      memref::DeallocOp::create(b, sizes);
    if (out != op.getDest()) {
      memref::CopyOp::create(b, out, op.getDest());
      memref::DeallocOp::create(b, out);
    }
    if (in != op.getInput() && in != out)
      memref::DeallocOp::create(b, in);
    if (Value token = op.getToken()) {
      Value nothing = arith::ConstantIntOp::create(b, 0, /*width=*/32);
      token.replaceAllUsesWith(nothing);
    }
    op.erase();
  }
  for (BarrierOp op : collect<BarrierOp>(module)) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    meet(b, op, Value(), Value(), Value());
    op.erase();
  }
  replaceType<WindowType>(module, [](WindowType type) -> Type {
    return MemRefType::get(type.getValue().getShape(), type.getValue().getElementType());
  });
  lowerWindows(
      module,
      [&](ImplicitLocOpBuilder &b, Operation *op, Value index, int64_t count) {
        checkIndex(b, index, count, "is at place {0} of {1} at " + describe(op));
      },
      [&](ImplicitLocOpBuilder &b, Operation *op, Value from, Value to) {
        Value dense = makeDense(b, from);
        meet(b, op, dense, Value(), to);
        if (dense != from)
          memref::DeallocOp::create(b, dense);
      });
  for (GridOp op : collect<GridOp>(module))
    op.erase();
  replaceType<TokenType>(
      module, [](TokenType type) -> Type { return IntegerType::get(type.getContext(), 32); });
  return success();
}

/// void entry(void **buffers): loads each argument's address, or a scalar through it.
void Lowering::buildEntry(ArrayRef<Type> inputs, ArrayRef<Type> results, StringRef function) {
  auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(function);
  ImplicitLocOpBuilder b = ImplicitLocOpBuilder::atBlockEnd(callee.getLoc(), module.getBody());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  auto wrapper = LLVM::LLVMFuncOp::create(
      b, entryFunction,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer}));
  Block *body = wrapper.addEntryBlock(b);
  b.setInsertionPointToStart(body);
  auto bufferAt = [&](size_t i) -> Value {
    Value slot = LLVM::GEPOp::create(b, pointer, pointer, body->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    return LLVM::LoadOp::create(b, pointer, slot);
  };
  SmallVector<Value> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Value buffer = bufferAt(i);
    if (!isa<ShapedType>(inputs[i]))
      buffer = LLVM::LoadOp::create(b, callee.getFunctionType().getParamType(i), buffer);
    operands.push_back(buffer);
  }
  // Shaped results are parameters behind the arguments; scalars are returned.
  SmallVector<size_t> scalars;
  for (size_t i = 0; i < results.size(); ++i) {
    if (isa<ShapedType>(results[i]))
      operands.push_back(bufferAt(inputs.size() + i));
    else
      scalars.push_back(inputs.size() + i);
  }
  auto call = LLVM::CallOp::create(b, callee, operands);
  for (auto [i, slot] : llvm::enumerate(scalars)) {
    Value value = call.getResult();
    if (scalars.size() > 1)
      value = LLVM::ExtractValueOp::create(b, value, static_cast<int64_t>(i));
    LLVM::StoreOp::create(b, value, bufferAt(slot));
  }
  LLVM::ReturnOp::create(b, ValueRange());
}

LogicalResult Lowering::run(StringRef function) {
  if (failed(isolate(function)) || failed(answerGets(module)))
    return failure();
  countLoops(module);
  exchangeAssumptions();
  if (failed(addSites()))
    return failure();
  simplifyTensors();
  if (failed(bufferize()) || failed(lowerBuffers()) || failed(verify(module)) ||
      failed(lowerComputeToLLVM(module)))
    return failure();
  ArrayRef<Type> types = program.types;
  buildEntry(types.take_front(program.numInputs), types.drop_front(program.numInputs), function);
  return success();
}

} // namespace

FailureOr<LoweredProgram>
mlir::ncclx::reference::lowerForInterpreter(ModuleOp module, StringRef function, int64_t ranks) {
  if (failed(requireKnownSizes(module)))
    return failure();
  // The caller's context may have met none of these yet.
  DialectRegistry registry;
  registerInterpreterDialects(registry);
  module.getContext()->appendDialectRegistry(registry);
  module.getContext()
      ->loadDialect<NCCLXDialect, arith::ArithDialect, bufferization::BufferizationDialect,
                    func::FuncDialect, linalg::LinalgDialect, memref::MemRefDialect,
                    tensor::TensorDialect>();
  Lowering lowering(module, ranks);
  if (failed(lowering.run(function)))
    return failure();
  return std::move(lowering.program);
}
