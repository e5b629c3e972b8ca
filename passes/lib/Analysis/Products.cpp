//===- Products.cpp - Products of matrices among structured ops -----------------------===//
#include "ncclx/Analysis/Products.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::ncclx;

/// The argument of the body that `value` is, perhaps extended; null for anything else.
static BlockArgument argumentOf(Value value) {
  while (auto extended = value.getDefiningOp<arith::ExtFOp>())
    value = extended.getIn();
  return dyn_cast<BlockArgument>(value);
}

bool mlir::ncclx::isProduct(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return false;
  Block &body = *op.getBlock();
  auto sum = body.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!sum)
    return false;
  for (auto [held, added] :
       {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())}) {
    auto product = added.getDefiningOp<arith::MulFOp>();
    if (held != body.getArgument(2) || !product)
      continue;
    BlockArgument x = argumentOf(product.getLhs()), y = argumentOf(product.getRhs());
    if (x && y && x.getOwner() == &body && y.getOwner() == &body &&
        x.getArgNumber() + y.getArgNumber() == 1)
      return true;
  }
  return false;
}

std::optional<Scaling> mlir::ncclx::matchScaling(linalg::GenericOp op) {
  if (op.getNumDpsInputs() < 1 || op.getNumDpsInits() != 1 ||
      op.getNumParallelLoops() != op.getNumLoops())
    return std::nullopt;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (maps.front() != maps.back() || !maps.front().isPermutation())
    return std::nullopt;
  Block &body = *op.getBlock();
  Scaling scaling;
  // From the result back to the element.
  Value value = body.getTerminator()->getOperand(0);
  auto operandOf = [&](Value factor) -> OpOperand * {
    BlockArgument argument = argumentOf(factor);
    if (!argument || argument.getOwner() != &body || argument.getArgNumber() == 0 ||
        int64_t(argument.getArgNumber()) >= op.getNumDpsInputs() ||
        !maps[argument.getArgNumber()].isConstant())
      return nullptr;
    return op.getDpsInputOperand(argument.getArgNumber());
  };
  while (value != body.getArgument(0)) {
    if (auto rounded = value.getDefiningOp<arith::TruncFOp>()) {
      if (scaling.rounds || scaling.factor != 1 || !scaling.scalars.empty() || scaling.extends)
        return std::nullopt; // not at last
      scaling.rounds = true;
      value = rounded.getIn();
    } else if (auto extended = value.getDefiningOp<arith::ExtFOp>()) {
      scaling.extends = true;
      value = extended.getIn();
    } else if (auto product = value.getDefiningOp<arith::MulFOp>()) {
      if (scaling.extends)
        return std::nullopt; // rounded to the narrower type
      auto takeFactor = [&](Value factor) {
        FloatAttr constant;
        if (matchPattern(factor, m_Constant(&constant))) {
          scaling.factor *= constant.getValueAsDouble();
          return true;
        }
        OpOperand *operand = operandOf(factor);
        if (operand)
          scaling.scalars.push_back(operand);
        return operand != nullptr;
      };
      if (takeFactor(product.getRhs()))
        value = product.getLhs();
      else if (takeFactor(product.getLhs()))
        value = product.getRhs();
      else
        return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  return scaling;
}
