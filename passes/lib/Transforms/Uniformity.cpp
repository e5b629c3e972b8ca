//===- Uniformity.cpp - What is the same on all ranks ---------------------===//

#include "Uniformity.h"
#include "Flow.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/NCCLX/Sizes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::ncclx;

static bool isStructured(Operation *op) {
  return isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(op);
}

/// Whether the results may differ although no operand does. What tensor.empty holds is undefined.
static bool isSource(Operation *op) {
  return !isStructured(op) && (!isMemoryEffectFree(op) || isa<tensor::EmptyOp>(op));
}

Uniformity::Uniformity(Operation *root) {
  root->walk([&](Operation *op) {
    if (auto function = dyn_cast<FunctionOpInterface>(op))
      for (auto [i, argument] : llvm::enumerate(function.getArguments()))
        if (!function.getArgAttr(i, NCCLXDialect::getUniformAttrName()))
          mark(argument, Value());
    // Blocks that a branch enters: which one is entered may differ.
    for (Region &region : op->getRegions())
      for (Block &block : llvm::drop_begin(region))
        markAll(block.getArguments(), Value());
    if (isSource(op))
      markAll(op->getResults(), Value());
  });
  while (!worklist.empty())
    for (OpOperand &use : worklist.pop_back_val().getUses())
      follow(use);
}

void Uniformity::mark(Value value, Value cause) {
  if (causes.try_emplace(value, cause).second)
    worklist.push_back(value);
}

void Uniformity::markAll(ValueRange values, Value cause) {
  for (Value value : values)
    mark(value, cause);
}

void Uniformity::follow(OpOperand &use) {
  Operation *op = use.getOwner();
  Value value = use.get();
  // The ranks agree on the sizes of arguments, whatever these hold.
  if (auto argument = dyn_cast<BlockArgument>(value); argument && isa<tensor::DimOp>(op))
    if (auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
        function && function.getArgAttr(argument.getArgNumber(), kDimsAttrName))
      return;
  if (std::optional<SmallVector<Value>> next = getForwarded(use))
    return markAll(*next, value);
  // A bound or a condition: what the op carries differs as soon as the number of rounds does.
  if (auto loop = dyn_cast<scf::ForOp>(op))
    markAll(loop.getBody()->getArguments(), value);
  if (isa<scf::ConditionOp>(op)) {
    auto loop = cast<scf::WhileOp>(op->getParentOp());
    markAll(loop.getBeforeArguments(), value);
    markAll(loop.getAfterArguments(), value);
    markAll(loop.getResults(), value);
  }
  markAll(op->getResults(), value);
  // The terminator of a region that is no control flow, say of linalg.generic.
  Operation *parent = op->getParentOp();
  if (op->hasTrait<OpTrait::IsTerminator>() && !isStructured(parent) &&
      !isa<FunctionOpInterface>(parent))
    markAll(parent->getResults(), value);
}

void Uniformity::explain(Value value, InFlightDiagnostic &diag) const {
  while (Value cause = causes.lookup(value)) {
    Diagnostic &note = diag.attachNote(value.getLoc());
    if (auto argument = dyn_cast<BlockArgument>(value))
      note << "which is argument #" << argument.getArgNumber() << " of this '"
           << argument.getOwner()->getParentOp()->getName() << "'";
    else
      note << "which is a result of this '" << value.getDefiningOp()->getName() << "'";
    value = cause;
  }
  Diagnostic &note = diag.attachNote(value.getLoc());
  if (auto argument = dyn_cast<BlockArgument>(value))
    note << "which is argument #" << argument.getArgNumber() << ", not marked {"
         << NCCLXDialect::getUniformAttrName() << "}";
  else
    note << "which is a result of this '" << value.getDefiningOp()->getName()
         << "', and may differ between ranks";
}
