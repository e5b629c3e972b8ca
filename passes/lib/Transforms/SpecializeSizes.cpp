//===- SpecializeSizes.cpp - A graph of open sizes, for given ones ---------===//
//
// One walk in the order of the text: types become static where operands' have, and numbers that are
// computed of sizes become constants, so that every op finds its operands known. Types are set in
// place; the graph is whole again when the walk is over, and is verified then.
//
//===----------------------------------------------------------------------===//

#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/NCCLX/Sizes.h"
#include "ncclx/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <map>

namespace mlir::ncclx {
#define GEN_PASS_DEF_SPECIALIZESIZES
#include "ncclx/Transforms/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

bool isOpen(Type type) {
  if (auto future = dyn_cast<FutureType>(type))
    return isOpen(future.getValue());
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !tensor.hasStaticShape();
}

bool anyOpen(TypeRange types) { return llvm::any_of(types, isOpen); }

/// A function's arguments: their types, and their values where those are constant numbers.
using Signature = std::pair<SmallVector<Type>, SmallVector<Attribute>>;

class Specializer {
public:
  explicit Specializer(ModuleOp module);

  /// Sets the arguments' types, follows them through the body, and sets the results' types.
  LogicalResult specialize(func::FuncOp function, const Signature &arguments);
  /// Erases the private functions of open sizes that have no caller left.
  void dropUnused();

private:
  MLIRContext *context;
  ModuleOp module;
  SymbolTable symbols;
  FrozenRewritePatternSet cleanups;
  struct Copy {
    func::FuncOp function; ///< null while it is made
  };
  std::map<std::pair<Operation *, std::vector<const void *>>, Copy> copies;

  LogicalResult block(Block &block);
  LogicalResult op(Operation *op);
  LogicalResult regions(Operation *op);
  LogicalResult collective(CollectiveOpInterface op);
  /// The copy of a function of open sizes for these operands; null where it has none.
  FailureOr<func::FuncOp> calleeFor(Operation *call, FlatSymbolRefAttr callee, ValueRange operands);
  /// Where `values` is to be carried into `targets`: their types are those of the values.
  static void carry(ValueRange values, ValueRange targets) {
    for (auto [value, target] : llvm::zip_equal(values, targets))
      target.setType(value.getType());
  }
  template <typename Call> LogicalResult call(Call op, ValueRange operands) {
    FailureOr<func::FuncOp> callee = calleeFor(op, op.getCalleeAttr(), operands);
    if (failed(callee) || !*callee)
      return failure(failed(callee));
    op.setCallee(callee->getSymName());
    for (auto [result, type] : llvm::zip_equal(op->getResults(), callee->getResultTypes()))
      result.setType(type);
    return success();
  }
  bool foldNumbers(Operation *op);
  bool cleanUp(Operation *op);
};

Specializer::Specializer(ModuleOp module)
    : context(module.getContext()), module(module), symbols(module) {
  // The dialect's own way to make an op with constant sizes one with static ones.
  RewritePatternSet patterns(context);
  for (RegisteredOperationName name : context->getRegisteredOperations())
    if (name.getDialectNamespace() == tensor::TensorDialect::getDialectNamespace() ||
        name.getStringRef() == scf::IfOp::getOperationName())
      name.getCanonicalizationPatterns(patterns, context);
  cleanups = std::move(patterns);
}

/// Replaces an op whose results are numbers by constants, where they are.
bool Specializer::foldNumbers(Operation *op) {
  auto isNumber = [](Type type) { return type.isIntOrIndex(); };
  if (op->getNumResults() == 0 || !llvm::all_of(op->getResultTypes(), isNumber) ||
      op->hasTrait<OpTrait::ConstantLike>() || op->getNumRegions() || !isPure(op))
    return false;
  OpBuilder builder(op);
  SmallVector<Value> results;
  if (failed(builder.tryFold(op, results)) || results.size() != op->getNumResults())
    return false;
  op->replaceAllUsesWith(results);
  op->erase();
  return true;
}

/// Whether an op that takes sizes as numbers, of which some are constants now, was replaced by one
/// that has them in its type; or a branch by the side it takes.
bool Specializer::cleanUp(Operation *op) {
  auto isConstant = [](Value v) { return matchPattern(v, m_Constant()); };
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (!isConstant(branch.getCondition()))
      return false;
  } else if (!isa<tensor::TensorDialect>(op->getDialect()) ||
             !(isa<OffsetSizeAndStrideOpInterface>(op) || anyOpen(op->getResultTypes())) ||
             llvm::none_of(op->getOperands(),
                           [&](Value v) { return v.getType().isIndex() && isConstant(v); }))
    return false;
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) { // upstream does it behind casts alone
    SmallVector<OpFoldResult> sizes;
    SmallVector<int64_t> shape;
    for (OpFoldResult size : expand.getMixedOutputShape()) {
      std::optional<int64_t> known = getConstantIntValue(size);
      sizes.push_back(known ? OpFoldResult(Builder(context).getIndexAttr(*known)) : size);
      shape.push_back(known.value_or(ShapedType::kDynamic));
    }
    OpBuilder builder(op);
    op->replaceAllUsesWith(
        tensor::ExpandShapeOp::create(builder, op->getLoc(), expand.getResultType().clone(shape),
                                      expand.getSrc(), expand.getReassociationIndices(), sizes));
    op->erase();
    return true;
  }
  bool changed = false;
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingOps).enableConstantCSE(false);
  (void)applyOpPatternsGreedily(op, cleanups, config, &changed);
  return changed;
}

LogicalResult Specializer::block(Block &block) {
  Operation *before = nullptr;
  while (Operation *current = before ? before->getNextNode() : &block.front()) {
    if (foldNumbers(current) || cleanUp(current))
      continue; // what stands in its place is next
    auto cast = dyn_cast<tensor::CastOp>(current);
    if (cast && (isOpen(cast.getType()) || cast.getType() == cast.getSource().getType())) {
      cast.replaceAllUsesWith(cast.getSource());
      cast.erase();
      continue;
    }
    if (failed(op(current)))
      return failure();
    before = current;
    if (current == &block.back())
      break;
  }
  return success();
}

/// What follows from the input; the destination's shape, where there is one, says it all.
LogicalResult Specializer::collective(CollectiveOpInterface op) {
  Value result = op.getResult();
  if (!result || !isOpen(result.getType()))
    return success();
  if (op.getDest()) {
    result.setType(op.getDest().getType());
    return success();
  }
  Dataflow flow = op.getDataflow();
  ShapedType in = op.getInputType(), out = op.getOutputType();
  if (!in.hasStaticShape())
    return success(); // said at the end
  SmallVector<int64_t> shape(in.getShape());
  int64_t n = getGroupSize(op);
  if (flow.counts && out.isDynamicDim(*flow.outCut))
    return op->emitOpError("has counts, which do not say how many rows the result has: expected a "
                           "destination, into(...)");
  if (!flow.isCounted()) {
    if (flow.inCut)
      shape[*flow.inCut] =
          flow.outCut ? shape[*flow.inCut] / n : getShardSize(shape[*flow.inCut], n);
    if (flow.outCut && llvm::MulOverflow(shape[*flow.outCut], n, shape[*flow.outCut]))
      return op->emitOpError("gathers more than 2^63 rows");
    if (flow.inCut && flow.outCut && in.getDimSize(*flow.inCut) % n)
      return op->emitOpError("splits dimension ")
             << *flow.inCut << " of size " << in.getDimSize(*flow.inCut) << " among " << n
             << " members, which does not divide";
  }
  // What was known stays, so that the verifier compares.
  for (auto [size, known] : llvm::zip_equal(shape, out.getShape()))
    if (!ShapedType::isDynamic(known))
      size = known;
  result.setType(out.clone(shape));
  return success();
}

FailureOr<func::FuncOp> Specializer::calleeFor(Operation *call, FlatSymbolRefAttr name,
                                               ValueRange operands) {
  auto callee = symbols.lookup<func::FuncOp>(name.getAttr());
  if (!callee || !anyOpen(callee.getFunctionType().getInputs()))
    return func::FuncOp();
  if (callee->hasAttr(kSizesAttrName))
    return call->emitOpError("calls ") << name << ", which has " << kSizesAttrName
                                       << " of its own: only the function that is compiled may";
  Signature arguments{SmallVector<Type>(operands.getTypes()), {}};
  std::vector<const void *> key;
  for (Value operand : operands) {
    Attribute constant;
    if (operand.getType().isIntOrIndex())
      matchPattern(operand, m_Constant(&constant));
    arguments.second.push_back(constant);
    key.push_back(operand.getType().getAsOpaquePointer());
    key.push_back(constant.getAsOpaquePointer());
  }
  auto [it, isNew] = copies.try_emplace({callee, key}, Copy{});
  if (isNew) {
    func::FuncOp copy = callee.clone();
    copy.setPrivate();
    symbols.insert(copy, std::next(Block::iterator(callee))); // finds another name
    if (callee.isExternal()) {
      copy.setFunctionType(
          FunctionType::get(context, arguments.first, callee.getFunctionType().getResults()));
    } else if (failed(specialize(copy, arguments))) {
      return failure();
    }
    copies[{callee, key}].function = copy;
    return copy;
  }
  if (!it->second.function)
    return call->emitOpError("calls a function with open sizes that is being called already");
  return it->second.function;
}

LogicalResult Specializer::regions(Operation *op) {
  auto changes = [&](ValueRange carried, ValueRange expected) -> LogicalResult {
    for (auto [a, b] : llvm::zip_equal(carried, expected))
      if (a.getType() != b.getType())
        return op->emitOpError("gives a value whose size is not the same on every way: ")
               << b.getType() << " and " << a.getType();
    return success();
  };
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    carry(loop.getInitArgs(), loop.getRegionIterArgs());
    if (failed(block(*loop.getBody())) ||
        failed(changes(loop.getYieldedValues(), loop.getRegionIterArgs())))
      return failure();
    carry(loop.getInitArgs(), loop.getResults());
    return success();
  }
  if (auto loop = dyn_cast<scf::ForallOp>(op)) {
    carry(loop.getOutputs(), loop.getRegionIterArgs());
    carry(loop.getOutputs(), loop.getResults());
    return block(*loop.getBody());
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    carry(loop.getInits(), loop.getBeforeArguments());
    if (failed(block(*loop.getBeforeBody())))
      return failure();
    carry(loop.getConditionOp().getArgs(), loop.getAfterArguments());
    carry(loop.getConditionOp().getArgs(), loop.getResults());
    if (failed(block(*loop.getAfterBody())))
      return failure();
    return changes(loop.getYieldOp().getOperands(), loop.getBeforeArguments());
  }
  // One of the regions runs, or the only one does.
  bool first = true;
  for (Region &region : op->getRegions()) {
    if (region.empty())
      continue;
    if (!region.hasOneBlock())
      return op->emitOpError("has several blocks, through which sizes are not followed");
    if (failed(block(region.front())))
      return failure();
    ValueRange yielded = region.front().getTerminator()->getOperands();
    if (first)
      carry(yielded, op->getResults());
    else if (failed(changes(yielded, op->getResults())))
      return failure();
    first = false;
  }
  return success();
}

LogicalResult Specializer::op(Operation *op) {
  if (isa<scf::ForOp, scf::ForallOp, scf::WhileOp, scf::IfOp, scf::IndexSwitchOp,
          scf::ExecuteRegionOp>(op))
    return regions(op);
  if (auto start = dyn_cast<StartOp>(op)) {
    if (failed(block(start.getBody().front())))
      return failure();
    start.getFuture().setType(
        FutureType::get(cast<RankedTensorType>(start.getCollective().getResult().getType())));
    return success();
  }
  if (auto exchange = dyn_cast<CollectiveOpInterface>(op))
    return collective(exchange);
  if (auto kernel = dyn_cast<func::CallOp>(op))
    return call(kernel, kernel.getOperands());
  if (auto kernel = dyn_cast<CallOp>(op))
    return call(kernel, kernel.getInputs());
  if (!anyOpen(op->getResultTypes()))
    return success();
  if (auto await = dyn_cast<AwaitOp>(op)) {
    RankedTensorType whole = cast<FutureType>(await.getFuture().getType()).getValue();
    await.getResult().setType(cast<RankedTensorType>(
        await.getChunk() ? getChunkType(whole, *await.getCount(), *await.getDim()) : whole));
    return success();
  }
  if (auto finish = dyn_cast<FinishOp>(op)) {
    finish.getResult().setType(cast<RankedTensorType>(finish.getInFlight().getType()));
    return success();
  }
  if (auto chunk = dyn_cast<FinishChunkOp>(op)) {
    auto whole = cast<ShapedType>(chunk.getInFlight().getType());
    chunk.getResult().setType(getChunkType(whole, chunk.getCount(), chunk.getDim()));
    return success();
  }
  if (auto dps = dyn_cast<DestinationStyleOpInterface>(op)) {
    for (OpResult result : op->getResults())
      result.setType(dps.getTiedOpOperand(result)->get().getType());
    return success();
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    collapse.getResult().setType(tensor::CollapseShapeOp::inferCollapsedType(
        collapse.getSrcType(), collapse.getReassociationMaps()));
    return success();
  }
  if (op->hasTrait<OpTrait::Elementwise>() || op->hasTrait<OpTrait::SameOperandsAndResultShape>()) {
    for (Value operand : op->getOperands())
      if (auto known = dyn_cast<RankedTensorType>(operand.getType());
          known && known.hasStaticShape()) {
        for (OpResult result : op->getResults())
          result.setType(cast<ShapedType>(result.getType()).clone(known.getShape()));
        break;
      }
    return success();
  }
  // Other ops say themselves what shape they give.
  auto shaped = dyn_cast<ReifyRankedShapedTypeOpInterface>(op);
  if (!shaped)
    return success();
  OpBuilder builder(op);
  ReifiedRankedShapedTypeDims dims;
  Operation *before = op->getPrevNode();
  if (succeeded(shaped.reifyResultShapes(builder, dims))) {
    // Its arithmetic stands in front of the op.
    for (Operation *made = before ? before->getNextNode() : &op->getBlock()->front(); made != op;) {
      Operation *next = made->getNextNode();
      SmallVector<Value> results;
      if (succeeded(builder.tryFold(made, results)) && results.size() == made->getNumResults()) {
        for (SmallVector<OpFoldResult> &list : dims)
          for (OpFoldResult &dim : list)
            if (auto value = dyn_cast<Value>(dim); value && value.getDefiningOp() == made)
              dim = results[cast<OpResult>(value).getResultNumber()];
        made->replaceAllUsesWith(results);
        made->erase();
      }
      made = next;
    }
    for (auto [result, list] : llvm::zip(op->getResults(), dims)) {
      SmallVector<int64_t> shape;
      for (OpFoldResult dim : list)
        shape.push_back(getConstantIntValue(dim).value_or(ShapedType::kDynamic));
      result.setType(cast<ShapedType>(result.getType()).clone(shape));
    }
  }
  return success();
}

LogicalResult Specializer::specialize(func::FuncOp function, const Signature &arguments) {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("needs a body of one block, through which sizes are followed");
  Block &body = function.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
    argument.setType(arguments.first[i]);
    function.removeArgAttr(i, kDimsAttrName);
    if (i < arguments.second.size() && arguments.second[i])
      argument.replaceAllUsesWith(arith::ConstantOp::create(builder, argument.getLoc(),
                                                            cast<TypedAttr>(arguments.second[i])));
  }
  function->removeAttr(kSizesAttrName);
  if (failed(block(body)))
    return failure();
  function.walk([](Operation *op) { // what was computed of sizes
    if (op->hasTrait<OpTrait::ConstantLike>() && op->use_empty())
      op->erase();
  });
  function.setFunctionType(
      FunctionType::get(context, arguments.first, body.getTerminator()->getOperandTypes()));
  return success();
}

void Specializer::dropUnused() {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (function.isPrivate() && !function->hasAttr(kSizesAttrName) &&
          anyOpen(function.getArgumentTypes()) &&
          SymbolTable::symbolKnownUseEmpty(function, module)) {
        function.erase();
        changed = true;
      }
  }
}

/// What is left open has a size that is no function of the arguments' sizes.
LogicalResult verifyAllKnown(func::FuncOp function) {
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (isOpen(type))
      return function.emitOpError("result #")
             << i << " of type " << type << " has a size that does not follow from the arguments'";
  WalkResult walked = function.walk([](CollectiveOpInterface op) {
    for (ShapedType type : {op.getInputType(), op.getOutputType()})
      if (!type.hasStaticShape()) {
        op->emitOpError("has a size that does not follow from the arguments': ") << type;
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

struct SpecializeSizes : ncclx::impl::SpecializeSizesBase<SpecializeSizes> {
  using Base::Base;

  void runOnOperation() override {
    llvm::StringMap<int64_t> given;
    llvm::StringSet<> taken;
    for (StringRef text : sizes) {
      auto [name, value] = text.split('=');
      int64_t number = 0;
      if (name.empty() || value.getAsInteger(10, number) ||
          !given.try_emplace(name, number).second) {
        getOperation().emitError("sizes: '")
            << text << "' is not NAME=VALUE, or names a size again";
        return signalPassFailure();
      }
    }
    SmallVector<func::FuncOp> functions; // others may go on the way
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(kSizesAttrName))
        functions.push_back(function);
    for (func::FuncOp function : functions) {
      SmallVector<int64_t> values;
      for (const OpenSize &size : getOpenSizes(function)) {
        auto it = given.find(size.name);
        if (it == given.end()) {
          function.emitOpError("leaves size '")
              << size.name << "' (" << size.place() << ") open, but no value is given";
          return signalPassFailure();
        }
        taken.insert(size.name);
        values.push_back(it->second);
      }
      if (failed(specializeSizes(function, values)))
        return signalPassFailure();
    }
    for (const auto &size : given)
      if (!taken.contains(size.getKey())) {
        getOperation().emitError("sizes: no function leaves a size '") << size.getKey() << "' open";
        return signalPassFailure();
      }
  }
};

} // namespace

LogicalResult mlir::ncclx::specializeSizes(func::FuncOp function, ArrayRef<int64_t> values) {
  if (failed(verifyAllNamed(function)))
    return failure();
  SmallVector<OpenSize> open = getOpenSizes(function);
  assert(open.size() == values.size() && "a value for each size");
  Signature arguments{SmallVector<Type>(function.getArgumentTypes()), {}};
  for (auto [size, value] : llvm::zip_equal(open, values)) {
    if (!size.holds(value))
      return function.emitOpError("size '") << size.name << "' (" << size.place() << ") is "
                                            << value << ", expected " << size.range();
    for (OpenSize::Place place : size.places) {
      auto type = cast<RankedTensorType>(arguments.first[place.argument]);
      SmallVector<int64_t> shape(type.getShape());
      shape[place.dim] = value;
      arguments.first[place.argument] = type.clone(shape);
    }
  }
  if (open.empty())
    return success();
  auto module = function->getParentOfType<ModuleOp>();
  Specializer specializer(module);
  LogicalResult done = specializer.specialize(function, arguments);
  if (succeeded(done))
    specializer.dropUnused();
  if (succeeded(done) && succeeded(verify(module)) && succeeded(verifyAllKnown(function)))
    return success();
  return emitError(function.getLoc(), "the graph cannot be made for ") << sizesText(open, values);
}
