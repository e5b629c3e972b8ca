//===- Flow.cpp - Where a future, a token or a tensor goes ----------------===//

#include "Flow.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::ncclx;

bool ncclx::holdsCommunication(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isCommunication(inner) || isa<StartOp, AwaitOp, FinishOp, FinishChunkOp>(inner)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

std::optional<SmallVector<Value>> ncclx::getForwarded(OpOperand &use) {
  Operation *owner = use.getOwner();
  unsigned index = use.getOperandNumber();
  if (auto loop = dyn_cast<scf::ForOp>(owner)) {
    if (index < loop.getNumControlOperands())
      return std::nullopt;
    return SmallVector<Value>{loop.getTiedLoopRegionIterArg(&use), loop.getTiedLoopResult(&use)};
  }
  if (auto loop = dyn_cast<scf::WhileOp>(owner))
    return SmallVector<Value>{loop.getBeforeArguments()[index]};
  if (auto condition = dyn_cast<scf::ConditionOp>(owner)) {
    if (index == 0)
      return std::nullopt;
    auto loop = cast<scf::WhileOp>(owner->getParentOp());
    return SmallVector<Value>{loop.getAfterArguments()[index - 1], loop.getResult(index - 1)};
  }
  if (isa<scf::YieldOp>(owner)) {
    Operation *parent = owner->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return SmallVector<Value>{loop.getRegionIterArg(index), loop.getResult(index)};
    if (auto loop = dyn_cast<scf::WhileOp>(parent))
      return SmallVector<Value>{loop.getBeforeArguments()[index]};
    if (isa<scf::IfOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(parent))
      return SmallVector<Value>{parent->getResult(index)};
  }
  return std::nullopt;
}

llvm::SetVector<Value> ncclx::getReached(Value root) {
  llvm::SetVector<Value> reached;
  reached.insert(root);
  for (size_t i = 0; i < reached.size(); ++i)
    for (OpOperand &use : reached[i].getUses())
      if (std::optional<SmallVector<Value>> next = getForwarded(use))
        reached.insert(next->begin(), next->end());
  return reached;
}

namespace {

/// Walks the blocks of one value's life in order.
class LifeWalk {
public:
  LifeWalk(Value value, StringRef what, StringRef taken,
           llvm::function_ref<Use(OpOperand &)> classify)
      : value(value), what(what), taken(taken), classify(classify) {}

  /// Sets `taker` to the op that takes the value in `block`. It is not null on entry where the
  /// value has been taken before.
  LogicalResult walk(Block &block, Operation *&taker) {
    for (Operation &op : block) {
      if (failed(visitOperands(op, taker)) || failed(visitRegions(op, taker)))
        return failure();
    }
    return success();
  }

private:
  LogicalResult visitOperands(Operation &op, Operation *&taker) {
    for (OpOperand &operand : op.getOpOperands()) {
      if (operand.get() != value)
        continue;
      Use use = classify(operand);
      if (use == Use::Illegal)
        return op.emitOpError("cannot use a ")
               << what << ": it can only be " << taken << " or carried by structured control flow";
      if (taker) {
        InFlightDiagnostic diag = op.emitOpError("uses a ")
                                  << what << " that has been " << taken << " or handed on before";
        diag.attachNote(taker->getLoc()) << "here";
        return diag;
      }
      if (use != Use::Chunk)
        taker = &op;
    }
    return success();
  }

  bool isUsedIn(Operation &op) {
    return llvm::any_of(value.getUsers(),
                        [&](Operation *user) { return op.isProperAncestor(user); });
  }

  LogicalResult visitRegions(Operation &op, Operation *&taker) {
    if (op.getNumRegions() == 0 || !isUsedIn(op))
      return success();
    bool choice = isa<scf::IfOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(op);
    if (!choice && !isa<scf::ForOp, scf::WhileOp>(op))
      return op.emitOpError("uses a ")
             << what << " in its region, which only scf.if, index_switch, "
             << "execute_region, for and while may";
    unsigned takers = 0;
    Operation *first = nullptr;
    for (Region &region : op.getRegions()) {
      Operation *inner = taker;
      for (Block &block : region) {
        if (!region.hasOneBlock())
          return op.emitOpError("uses a ") << what << " in unstructured control flow";
        if (failed(walk(block, inner)))
          return failure();
      }
      if (inner == taker)
        continue;
      ++takers;
      first = inner;
    }
    if (takers == 0)
      return success();
    if (choice && takers == op.getNumRegions()) {
      taker = &op;
      return success();
    }
    InFlightDiagnostic diag =
        op.emitOpError(choice ? "leaves a path on which a " : "may repeat or skip: a ")
        << what << (choice ? " is not " : " from outside it is ") << taken
        << (choice ? "" : " or handed on in it");
    diag.attachNote(first->getLoc()) << taken << " or handed on here";
    diag.attachNote(value.getLoc()) << "the " << what << " comes from here";
    return diag;
  }

  Value value;
  StringRef what, taken;
  llvm::function_ref<Use(OpOperand &)> classify;
};

} // namespace

LogicalResult ncclx::verifyTakenOnce(Value value, StringRef what, StringRef taken,
                                     llvm::function_ref<Use(OpOperand &)> classify) {
  Block *block = value.getParentBlock();
  if (!block->getParent()->hasOneBlock())
    return emitError(value.getLoc()) << "a " << what << " cannot live in unstructured control flow";
  Operation *taker = nullptr;
  if (failed(LifeWalk(value, what, taken, classify).walk(*block, taker)))
    return failure();
  if (!taker)
    return emitError(value.getLoc()) << "this " << what << " is never " << taken;
  return success();
}

Operation *ncclx::getTaker(Value value, Block &block,
                           llvm::function_ref<Use(OpOperand &)> classify) {
  for (Operation &op : block)
    for (OpOperand &use : value.getUses())
      if (classify(use) != Use::Chunk && op.isAncestor(use.getOwner()))
        return &op;
  return nullptr;
}

LogicalResult ncclx::verifyChunkOf(Operation *op, int64_t count, int64_t dim,
                                   CollectiveOpInterface collective) {
  int64_t members = getGroupSize(collective);
  std::optional<int64_t> cut = collective.getChunkDim();
  if (cut == dim && count == members && haveOneSize(collective))
    return success();
  InFlightDiagnostic diag = op->emitOpError();
  if (!cut)
    diag << "takes a chunk of '" << collective->getName()
         << "', whose result is not made of its members' slices";
  else if (!haveOneSize(collective))
    diag << "takes a chunk of a collective whose groups differ in size";
  else if (count != members)
    diag << "takes one of " << count << " chunks, but the group has " << members << " members";
  else
    diag << "takes chunks of dimension " << dim
         << ", but the collective puts them together in dimension " << *cut;
  diag.attachNote(collective.getLoc()) << "the collective";
  return diag;
}
