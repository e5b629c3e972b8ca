//===- SplitStages.cpp - Straight stages between decisions at run time -----===//
//
// Each block that StageBlocks makes is a stage. What one block defines and another uses lives in a
// state, as does each block argument, which the edges to its block fill.
//
//===----------------------------------------------------------------------===//

#include "SplitStages.h"
#include "StageBlocks.h"
#include "ncclx/NCCLX/Branches.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/NCCLX/Sizes.h"
#include "ncclx/Transforms/Communication.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// Whether what `value` is computed from has effects: then it is not known when a run starts.
bool isKnownLate(Value value) {
  llvm::SetVector<Operation *> sources;
  auto add = [&](Value v) {
    Operation *op = v.getDefiningOp();
    if (!op)
      op = v.getParentBlock()->getParentOp();
    if (!isa<FunctionOpInterface>(op))
      sources.insert(op);
  };
  add(value);
  for (size_t i = 0; i < sources.size(); ++i) {
    WalkResult walked = sources[i]->walk([&](Operation *op) {
      if (op->getNumRegions() == 0 && !isMemoryEffectFree(op))
        return WalkResult::interrupt();
      llvm::for_each(op->getOperands(), add);
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return true;
  }
  return false;
}

} // namespace

bool ncclx::needsStages(func::FuncOp function) {
  return function
      .walk([](Operation *op) {
        bool late = isa<AssumeUniformOp>(op);
        if (isa<scf::ForOp, scf::WhileOp>(op))
          late = holdsCommunication(op);
        else if (auto branch = dyn_cast<scf::IfOp>(op))
          late = holdsCommunication(op) && isKnownLate(branch.getCondition());
        else if (auto branch = dyn_cast<scf::IndexSwitchOp>(op))
          late = holdsCommunication(op) && isKnownLate(branch.getArg());
        return late ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {

/// What costs nothing to have again in each stage.
bool isCheap(Value value) {
  Operation *op = value.getDefiningOp();
  return op && (op->hasTrait<OpTrait::ConstantLike>() ||
                (isa<tensor::EmptyOp>(op) && op->getNumOperands() == 0));
}

std::string describe(Location loc) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto file = loc->findInstanceOf<FileLineColLoc>())
    os << file.getFilename().getValue() << ':' << file.getLine() << ':' << file.getColumn();
  return text;
}

class Stager {
public:
  explicit Stager(func::FuncOp function)
      : function(function), module(function->getParentOfType<ModuleOp>()),
        b(function.getContext()) {}

  LogicalResult run();

private:
  func::FuncOp function;
  ModuleOp module;
  OpBuilder b;

  SmallVector<Block *> blocks; ///< by number
  DenseMap<Block *, int64_t> numbers;
  DenseMap<Value, int64_t> states;
  int64_t numStates = 0;
  /// What a block writes: a value, its own or one to be had again, and the state.
  DenseMap<Block *, SmallVector<std::pair<Value, int64_t>>> written;
  std::vector<Stage> stages;
  SmallVector<OwningOpRef<func::FuncOp>> made;

  Block *homeOf(Value value) {
    return function.getBody().findAncestorBlockInRegion(*value.getParentBlock());
  }
  /// The tensor that holds a value between stages; null, and an error, where there is none.
  RankedTensorType boxOf(Value value);
  Value box(Value value, RankedTensorType type);
  Value unbox(Value boxed, Type type);
  LogicalResult assignStates();
  LogicalResult addState(Value value);
  FailureOr<int64_t> addWrite(Block *block, Value value);
  FailureOr<StageEdge> makeEdge(Block *block, Block *target, ValueRange operands);
  LogicalResult makeStage(Block *block);
  Value makeNext(Operation *terminator, IRMapping &map);
  void boxScalars(Block &body);
  func::FuncOp makeChooser();
};

} // namespace

//===--- states -----------------------------------------------------------===//

RankedTensorType Stager::boxOf(Value value) {
  Type type = value.getType();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && argument.getOwner()->isEntryBlock())
    if (argument.getOwner()->getParentOp() == function)
      return tensor; // the graph's, whatever it is
  if (type.isIndex())
    tensor = RankedTensorType::get({}, b.getI64Type());
  else if (type.isInteger(1))
    tensor = RankedTensorType::get({}, b.getI8Type());
  else if (type.isIntOrFloat())
    tensor = RankedTensorType::get({}, type);
  if (tensor && tensor.hasStaticShape() && isSupportedElementType(tensor.getElementType()))
    return tensor;
  InFlightDiagnostic diag = emitError(value.getLoc());
  diag << "this " << type << " is handed from one stage of '" << function.getSymName()
       << "' to another; expected a scalar or a tensor of static shape, of elements that "
          "collectives work on";
  if (function->hasAttr(kSizesAttrName))
    diag << " (sizes that are open are given before, by ncclx-specialize-sizes)";
  return {};
}

Value Stager::box(Value value, RankedTensorType type) {
  if (isa<RankedTensorType>(value.getType()))
    return value;
  Location loc = value.getLoc();
  if (value.getType().isIndex())
    value = arith::IndexCastOp::create(b, loc, type.getElementType(), value);
  else if (value.getType() != type.getElementType())
    value = arith::ExtUIOp::create(b, loc, type.getElementType(), value);
  return tensor::FromElementsOp::create(b, loc, type, value);
}

Value Stager::unbox(Value boxed, Type type) {
  if (isa<RankedTensorType>(type))
    return boxed;
  Location loc = boxed.getLoc();
  Value value = tensor::ExtractOp::create(b, loc, boxed, ValueRange());
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, value);
  if (value.getType() != type)
    return arith::TruncIOp::create(b, loc, type, value);
  return value;
}

/// How many operands of a branch select, and are not handed on.
static unsigned numDeciders(Operation *branch) {
  return isa<cf::CondBranchOp, cf::SwitchOp>(branch) ? 1 : 0;
}

/// Gives `value` a state, which its block writes where an op defines it.
LogicalResult Stager::addState(Value value) {
  if (states.contains(value))
    return success();
  if (!boxOf(value))
    return failure();
  states[value] = numStates;
  if (value.getDefiningOp())
    written[homeOf(value)].push_back({value, numStates});
  ++numStates;
  return success();
}

/// A state of the block's own, for a value that has none or is about to change.
FailureOr<int64_t> Stager::addWrite(Block *block, Value value) {
  if (!boxOf(value))
    return failure();
  for (auto [known, state] : written[block])
    if (known == value)
      return state;
  written[block].push_back({value, numStates});
  return numStates++;
}

LogicalResult Stager::assignStates() {
  for (BlockArgument argument : function.getArguments())
    states[argument] = numStates++;
  for (Block *block : llvm::drop_begin(blocks))
    for (BlockArgument argument : block->getArguments())
      if (!argument.use_empty() && failed(addState(argument)))
        return failure();
  for (Block *block : blocks) {
    WalkResult walked = block->walk([&](Operation *op) {
      // What branches hand on is looked at edge by edge.
      bool isBranch = op == block->getTerminator() && isa<BranchOpInterface>(op);
      for (Value operand :
           op->getOperands().take_front(isBranch ? numDeciders(op) : op->getNumOperands()))
        if (homeOf(operand) != block && !isCheap(operand) && failed(addState(operand)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
  }
  for (Block *block : blocks) {
    Stage &stage = stages.emplace_back();
    Operation *terminator = block->getTerminator();
    auto branch = dyn_cast<BranchOpInterface>(terminator);
    for (unsigned i = 0; branch && i < terminator->getNumSuccessors(); ++i) {
      FailureOr<StageEdge> edge = makeEdge(block, terminator->getSuccessor(i),
                                           branch.getSuccessorOperands(i).getForwardedOperands());
      if (failed(edge))
        return failure();
      assert(llvm::none_of(stage.edges, [&](StageEdge &e) { return e.target == edge->target; }) &&
             "structured control flow enters each region in one way");
      stage.edges.push_back(std::move(*edge));
    }
    if (AssumeUniformOp check = checkOf(block)) {
      FailureOr<int64_t> state = addWrite(block, check.getValue());
      if (failed(state))
        return failure();
      stage.agree = *state;
      stage.agreeAt = describe(check.getLoc());
    }
  }
  return success();
}

FailureOr<StageEdge> Stager::makeEdge(Block *block, Block *target, ValueRange operands) {
  StageEdge edge{numbers[target], {}};
  for (auto [argument, operand] : llvm::zip_equal(target->getArguments(), operands)) {
    if (argument.use_empty() || operand == argument)
      continue;
    bool changes = isa<BlockArgument>(operand) && operand.getParentBlock() == target;
    int64_t from;
    if (changes || isCheap(operand)) {
      FailureOr<int64_t> copy = addWrite(block, operand);
      if (failed(copy))
        return failure();
      from = *copy;
    } else if (failed(addState(operand))) {
      return failure();
    } else {
      from = states[operand];
    }
    edge.moves.push_back({from, states[argument]});
  }
  return edge;
}

//===--- functions --------------------------------------------------------===//

/// The number of the next stage.
Value Stager::makeNext(Operation *terminator, IRMapping &map) {
  Location loc = terminator->getLoc();
  auto number = [&](Block *target) -> Value {
    return arith::ConstantIntOp::create(b, loc, numbers[target], /*width=*/64);
  };
  if (auto branch = dyn_cast<cf::CondBranchOp>(terminator))
    return arith::SelectOp::create(b, loc, map.lookup(branch.getCondition()),
                                   number(branch.getTrueDest()), number(branch.getFalseDest()));
  auto table = dyn_cast<cf::SwitchOp>(terminator);
  if (!table)
    return number(terminator->getSuccessor(0));
  Value flag = map.lookup(table.getFlag()), next = number(table.getDefaultDestination());
  if (std::optional<DenseIntElementsAttr> values = table.getCaseValues())
    for (auto [value, target] :
         llvm::zip_equal(values->getValues<APInt>(), table.getCaseDestinations())) {
      Value known = arith::ConstantOp::create(b, loc, b.getIntegerAttr(flag.getType(), value));
      Value same = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, flag, known);
      next = arith::SelectOp::create(b, loc, same, number(target), next);
    }
  return next;
}

LogicalResult Stager::makeStage(Block *block) {
  Stage &stage = stages[numbers[block]];
  Operation *terminator = block->getTerminator();
  bool ends = stage.edges.empty();
  // What is read: values with a state that the block's ops, its condition and what it writes need.
  llvm::SetVector<Value> reads;
  llvm::SetVector<Value> again; // and what is had again
  auto need = [&](Value value) {
    if (homeOf(value) == block && (value.getDefiningOp() || value.getParentBlock() != block))
      return;
    if (isCheap(value))
      again.insert(value);
    else
      reads.insert(value);
  };
  for (Operation &op : block->without_terminator())
    op.walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), need); });
  llvm::for_each(terminator->getOperands().take_front(ends ? terminator->getNumOperands()
                                                           : numDeciders(terminator)),
                 need);
  for (auto [value, state] : written[block])
    need(value);

  SmallVector<Type> arguments, results;
  for (Value value : reads) {
    arguments.push_back(boxOf(value));
    stage.reads.push_back(states[value]);
  }
  if (ends)
    llvm::append_range(results, terminator->getOperandTypes());
  for (auto [value, state] : written[block]) {
    results.push_back(boxOf(value));
    stage.writes.push_back(state);
  }
  auto next = RankedTensorType::get({}, b.getI64Type());
  if (!ends)
    results.push_back(next);

  b.clearInsertionPoint();
  OwningOpRef<func::FuncOp> one = func::FuncOp::create(
      b, function.getLoc(), (function.getSymName() + "." + Twine(numbers[block])).str(),
      b.getFunctionType(arguments, results));
  b.setInsertionPointToStart(one->addEntryBlock());
  IRMapping map;
  for (auto [value, argument] : llvm::zip_equal(reads, one->getArguments()))
    map.map(value, unbox(argument, value.getType()));
  for (Value value : again)
    b.clone(*value.getDefiningOp(), map);
  for (Operation &op : block->without_terminator())
    if (!isa<AssumeUniformOp>(op))
      b.clone(op, map);
  SmallVector<Value> returned;
  if (ends)
    for (Value operand : terminator->getOperands())
      returned.push_back(map.lookup(operand));
  for (auto [value, state] : written[block])
    returned.push_back(box(map.lookup(value), boxOf(value)));
  if (!ends)
    returned.push_back(
        tensor::FromElementsOp::create(b, terminator->getLoc(), next, makeNext(terminator, map)));
  func::ReturnOp::create(b, terminator->getLoc(), returned);
  boxScalars(one->getBody().front());
  made.push_back(std::move(one));
  return success();
}

/// A scalar that is used behind a collective or an await, which kernels do not reach across, goes
/// through a tensor.
void Stager::boxScalars(Block &body) {
  int64_t epoch = 0;
  DenseMap<Operation *, int64_t> epochs;
  for (Operation &op : body) {
    epochs[&op] = epoch;
    epoch += holdsCommunication(&op);
  }
  DenseMap<Value, Value> boxes;
  DenseMap<std::pair<Value, int64_t>, Value> again;
  for (Operation &op : llvm::make_early_inc_range(body))
    op.walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands()) {
        Value value = operand.get();
        Operation *def = value.getDefiningOp();
        if (!def || def->getBlock() != &body || !value.getType().isIntOrIndexOrFloat() ||
            isCheap(value) || !epochs.contains(def) || !epochs.contains(&op) ||
            epochs[def] == epochs[&op])
          continue;
        Value &boxed = boxes[value];
        if (!boxed) {
          b.setInsertionPointAfter(def);
          boxed = box(value, boxOf(value));
        }
        Value &taken = again[{value, epochs[&op]}];
        if (!taken) {
          b.setInsertionPoint(&op);
          taken = unbox(boxed, value.getType());
        }
        operand.set(taken);
      }
    });
}

/// Begins with the first stage.
func::FuncOp Stager::makeChooser() {
  Location loc = function.getLoc();
  auto number = RankedTensorType::get({}, b.getI64Type());
  b.clearInsertionPoint();
  auto chooser =
      func::FuncOp::create(b, loc, getChooserName(function.getSymName()),
                           b.getFunctionType(function.getArgumentTypes(), TypeRange(number)));
  b.setInsertionPointToStart(chooser.addEntryBlock());
  Value first = arith::ConstantIntOp::create(b, loc, 0, /*width=*/64);
  Value boxed = tensor::FromElementsOp::create(b, loc, number, first);
  func::ReturnOp::create(b, loc, boxed);
  return chooser;
}

LogicalResult Stager::run() {
  if (!function.getBody().hasOneBlock())
    return success(); // legality L1
  for (BlockArgument argument : function.getArguments())
    if (!isa<RankedTensorType>(argument.getType()))
      return function.emitOpError("takes ")
             << argument.getType() << " as argument #" << argument.getArgNumber()
             << "; a function that is split into stages takes tensors";
  if (failed(makeStageBlocks(function)))
    return failure();
  for (Block &block : function.getBody()) {
    numbers[&block] = blocks.size();
    blocks.push_back(&block);
  }
  if (blocks.size() == 1)
    return success();
  if (failed(assignStates()))
    return failure();
  for (Block *block : blocks)
    if (failed(makeStage(block)))
      return failure();
  made.push_back(makeChooser());
  func::FuncOp chooser = *made.back();
  SmallVector<Attribute> names, attrs;
  for (auto [stage, one] : llvm::zip(stages, made)) {
    names.push_back(FlatSymbolRefAttr::get(one->getSymNameAttr()));
    attrs.push_back(stage.toAttr(function.getContext()));
  }
  chooser->setAttr(branchesAttrName, b.getArrayAttr(names));
  chooser->setAttr(stagesAttrName, b.getArrayAttr(attrs));
  for (OwningOpRef<func::FuncOp> &one : made) {
    func::FuncOp inserted = one.release();
    if (SymbolTable::lookupSymbolIn(module, inserted.getSymNameAttr())) {
      InFlightDiagnostic diag =
          function.emitOpError("is split into stages, one of which is to be '")
          << inserted.getSymName() << "', but the module has another of that name";
      inserted.erase();
      return diag;
    }
    module.insert(function, inserted);
  }
  remark::passed(function.getLoc(),
                 remark::RemarkOpts::name("StagesSplit").category("ncclx-split-branches"))
      << remark::metric("Stages", int64_t(stages.size())) << remark::metric("States", numStates);
  function.erase();
  return success();
}

LogicalResult ncclx::splitIntoStages(func::FuncOp function) { return Stager(function).run(); }
