//===- Uniformity.cpp - What is the same on all ranks ---------------------===//

#include "Uniformity.h"
#include "ncclx/NCCLX/AssumeUniform.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/NCCLX/Sizes.h"

#include "mlir/Analysis/DataFlow/SparseAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::ncclx;

SmallVector<Value> ncclx::getDeciders(Operation *op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return {branch.getCondition()};
  if (auto branch = dyn_cast<scf::IndexSwitchOp>(op))
    return {branch.getArg()};
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()};
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return {loop.getConditionOp().getCondition()};
  return {};
}

namespace {

/// Uniform until something makes it differ: `cause`, or nothing where the difference arises.
class Variation : public dataflow::AbstractSparseLattice {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Variation)
  using AbstractSparseLattice::AbstractSparseLattice;

  bool varies() const { return differs; }
  Value getCause() const { return cause; }
  ChangeResult vary(Value because) {
    if (differs)
      return ChangeResult::NoChange;
    differs = true;
    cause = because;
    return ChangeResult::Change;
  }
  ChangeResult join(const AbstractSparseLattice &other) override {
    return static_cast<const Variation &>(other).differs
               ? vary(static_cast<const Variation &>(other).getAnchor())
               : ChangeResult::NoChange;
  }
  void print(raw_ostream &os) const override { os << (differs ? "varies" : "uniform"); }

private:
  bool differs = false;
  Value cause;
};

/// Structured control flow of which getDeciders says all; of the rest anything inside may decide.
bool isStructured(Operation *op) {
  return isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(op);
}

/// Whether every rank of the grid gets the same, whatever it brings: all inputs reach every member,
/// and all ranks are members of one group.
bool givesAllTheSame(CollectiveOpInterface op) {
  Dataflow flow = op.getDataflow();
  bool same = (flow.route == Dataflow::Route::All || flow.route == Dataflow::Route::FromRoot) &&
              !flow.inCut && !flow.isCounted();
  GridOp grid = lookupGrid(op);
  return same && grid && getGroupSize(op) == grid.getNumRanks();
}

/// The ranks agree on the sizes of arguments, whatever these hold.
bool isNamedSize(Operation *op) {
  auto dim = dyn_cast<tensor::DimOp>(op);
  auto argument = dim ? dyn_cast<BlockArgument>(dim.getSource()) : BlockArgument();
  if (!argument)
    return false;
  auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return function && function.getArgAttr(argument.getArgNumber(), kDimsAttrName);
}

class VariationAnalysis : public dataflow::SparseForwardDataFlowAnalysis<Variation> {
public:
  using SparseForwardDataFlowAnalysis::SparseForwardDataFlowAnalysis;

  LogicalResult visitOperation(Operation *op, ArrayRef<const Variation *> operands,
                               ArrayRef<Variation *> results) override {
    if (isa<AssumeUniformOp>(op))
      return success();
    if (auto collective = dyn_cast<CollectiveOpInterface>(op);
        collective && givesAllTheSame(collective))
      return success();
    // What has been started is the same where its collective's result is; what an await keeps is
    // not read.
    if (auto start = dyn_cast<StartOp>(op)) {
      Value started = start.getBody().front().getTerminator()->getOperand(0);
      join(results[0], *getLatticeElementFor(getProgramPointAfter(op), started));
      return success();
    }
    if (isa<AwaitOp, FinishOp, FinishChunkOp>(op)) {
      unsigned read = isa<AwaitOp>(op) ? 0 : 1;
      follow(operands[read], results);
      if (auto await = dyn_cast<AwaitOp>(op); await && await.getChunk())
        follow(operands[1], results);
      if (isa<FinishChunkOp>(op))
        follow(operands[2], results);
      return success();
    }
    bool hasRegions = op->getNumRegions() != 0;
    if (isa<tensor::EmptyOp>(op) || (!hasRegions && !isMemoryEffectFree(op))) {
      setAllToEntryStates({results.begin(), results.end()});
      return success();
    }
    // Sizes that all ranks agree on, and what is there only to be written, say nothing.
    auto structured = dyn_cast<linalg::LinalgOp>(op);
    for (auto [i, operand] : llvm::enumerate(operands))
      if (!(i == 0 && isNamedSize(op)) &&
          !(structured && !structured.payloadUsesValueFromOperand(&op->getOpOperand(i))))
        follow(operand, results);
    // Regions that are no control flow, say of linalg.generic: all that is read in them may matter.
    for (Region &region : op->getRegions())
      region.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          follow(getLatticeElementFor(getProgramPointAfter(op), operand), results);
      });
    return success();
  }

  void visitNonControlFlowArguments(Operation *op, const RegionSuccessor &,
                                    ArrayRef<Variation *> arguments, unsigned) override {
    if (arguments.empty() || isa<RegionBranchOpInterface>(op))
      return; // induction variables: the bounds decide
    ProgramPoint *here = getProgramPointBefore(arguments[0]->getAnchor().getParentBlock());
    bool oneEach = isa<linalg::LinalgOp>(op) && arguments.size() == op->getNumOperands();
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      follow(getLatticeElementFor(here, operand),
             oneEach ? arguments.slice(i, 1) : ArrayRef<Variation *>(arguments));
  }

  void visitCallableOperation(CallableOpInterface callable,
                              ArrayRef<dataflow::AbstractSparseLattice *> arguments) override {
    auto function = dyn_cast<FunctionOpInterface>(callable.getOperation());
    for (auto [i, argument] : llvm::enumerate(arguments))
      if (!function || !function.getArgAttr(i, NCCLXDialect::getUniformAttrName()))
        setToEntryState(static_cast<Variation *>(argument));
  }

  void setToEntryState(Variation *state) override {
    propagateIfChanged(state, state->vary(Value()));
  }

private:
  void follow(const Variation *from, ArrayRef<Variation *> to) {
    for (Variation *state : to)
      join(state, *from);
  }
};

/// What control flow carries differs as soon as a condition or a bound does.
class ControlAnalysis : public DataFlowAnalysis {
public:
  using DataFlowAnalysis::DataFlowAnalysis;

  LogicalResult initialize(Operation *top) override {
    WalkResult walked = top->walk([&](Operation *op) {
      // Which of several blocks is entered may differ; and a function that nobody calls is looked
      // at, too.
      for (Region &region : op->getRegions())
        for (Block &block : llvm::drop_begin(region))
          vary(block.getArguments(), Value());
      if (auto function = dyn_cast<FunctionOpInterface>(op); function && !function.isExternal()) {
        auto *live = getOrCreate<dataflow::Executable>(
            getProgramPointBefore(&function.getFunctionBody().front()));
        propagateIfChanged(live, live->setToLive());
      }
      if (isa<RegionBranchOpInterface>(op) && failed(visit(getProgramPointAfter(op))))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

  LogicalResult visit(ProgramPoint *point) override {
    Operation *op = point->getPrevOp();
    SmallVector<Value> deciders = getDeciders(op);
    if (!isStructured(op))
      op->walk([&](Operation *inner) { llvm::append_range(deciders, inner->getOperands()); });
    for (Value decider : deciders) {
      if (!getOrCreateFor<Variation>(point, decider)->varies())
        continue;
      vary(op->getResults(), decider);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          vary(block.getArguments(), decider);
    }
    return success();
  }

private:
  void vary(ValueRange values, Value cause) {
    for (Value value : values) {
      auto *state = getOrCreate<Variation>(value);
      propagateIfChanged(state, state->vary(cause));
    }
  }
};

} // namespace

Uniformity::Uniformity(Operation *root) {
  dataflow::loadBaselineAnalyses(solver);
  solver.load<ControlAnalysis>();
  solver.load<VariationAnalysis>();
  isKnown = succeeded(solver.initializeAndRun(root));
}

bool Uniformity::isUniform(Value value) const {
  const auto *state = solver.lookupState<Variation>(value);
  return isKnown && !(state && state->varies());
}

void Uniformity::explain(Value value, InFlightDiagnostic &diag) const {
  auto causeOf = [&](Value v) {
    const auto *state = solver.lookupState<Variation>(v);
    return state ? state->getCause() : Value();
  };
  while (Value cause = causeOf(value)) {
    Diagnostic &note = diag.attachNote(value.getLoc());
    if (auto argument = dyn_cast<BlockArgument>(value))
      note << "which is argument #" << argument.getArgNumber() << " of this '"
           << argument.getOwner()->getParentOp()->getName() << "'";
    else
      note << "which is a result of this '" << value.getDefiningOp()->getName() << "'";
    value = cause;
  }
  Diagnostic &note = diag.attachNote(value.getLoc());
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    note << "which is argument #" << argument.getArgNumber() << ", not marked {"
         << NCCLXDialect::getUniformAttrName() << "}";
    return;
  }
  Operation *op = value.getDefiningOp();
  note << "which is a result of this '" << op->getName() << "', and may differ between ranks";
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    if (GridOp grid = lookupGrid(collective); grid && getGroupSize(collective) < grid.getNumRanks())
      note << ": its group has " << getGroupSize(collective) << " of the " << grid.getNumRanks()
           << " ranks";
}
