//===- Tolerance.cpp - How far products may be from the reference ------------------------===//
#include "Tolerance.h"

#include "ncclx/Analysis/Products.h"
#include "ncclx/NCCLX/Hints.h"
#include "ncclx/NCCLX/NCCLX.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ncclx;

/// The largest relative error of one rounding.
static double roundoff(FloatType type) { return std::ldexp(1.0, -int(type.getFPMantissaWidth())); }

namespace {
/// The ops that a value depends on.
struct Slice {
  llvm::SetVector<Operation *> ops;

  void add(Value value) {
    Operation *op = value.getDefiningOp();
    if (auto argument = dyn_cast<BlockArgument>(value)) // of a loop or branch: all of that
      op = argument.getOwner()->getParentOp();
    if (!op || isa<func::FuncOp>(op) || !ops.insert(op))
      return;
    for (Value operand : op->getOperands())
      add(operand);
    op->walk([&](Operation *inner) {
      if (inner != op && ops.insert(inner))
        for (Value operand : inner->getOperands())
          add(operand);
      if (auto call = dyn_cast<CallOpInterface>(inner))
        addCallee(call.resolveCallable());
      else if (auto kernel = dyn_cast<ncclx::CallOp>(inner))
        addCallee(SymbolTable::lookupNearestSymbolFrom(kernel, kernel.getCalleeAttr()));
    });
  }
  void addCallee(Operation *callee) {
    if (callee)
      callee->walk([&](Operation *inner) { ops.insert(inner); });
  }
};
} // namespace

/// Whether a factor of a product holds 8-bit floats, perhaps extended and scaled.
static bool isOfBytes(Value factor) {
  auto type = dyn_cast<ShapedType>(factor.getType());
  auto element = type ? dyn_cast<FloatType>(type.getElementType()) : FloatType();
  if (!element || element.getWidth() <= 8)
    return bool(element);
  auto scaling = factor.getDefiningOp<linalg::GenericOp>();
  return scaling && matchScaling(scaling) && isOfBytes(scaling.getDpsInputs().front());
}

double mlir::ncclx::productTolerance(func::FuncOp function, unsigned index) {
  Slice slice;
  slice.add(function.getBody().front().getTerminator()->getOperand(index));
  double products = 0, rounding = 0;
  for (Operation *op : slice.ops) {
    for (Value result : op->getResults()) {
      auto type = dyn_cast<TensorType>(result.getType());
      auto element = type ? dyn_cast<FloatType>(type.getElementType()) : FloatType();
      if (element && element.getWidth() < 32)
        rounding += 2 * roundoff(element);
    }
    auto structured = dyn_cast<linalg::LinalgOp>(op);
    if (!structured || !isProduct(structured))
      continue;
    double terms = 1;
    SmallVector<unsigned> reductions;
    structured.getReductionDims(reductions);
    for (unsigned dim : reductions)
      terms *= double(structured.getStaticLoopRanges()[dim]);
    auto sum = cast<FloatType>(getElementTypeOrSelf(structured.getDpsInits().front()));
    products += 2 * (terms + 1) * roundoff(sum);
    if (op->hasAttr(kAllowTf32AttrName))
      products += std::ldexp(1.0, -10);
    // Hopper's tensor cores align 32 products of 8-bit floats and the sum so far to the largest
    // exponent, and keep 13 bits behind the point of each, and of their sum.
    if (llvm::all_of(structured.getDpsInputs(), isOfBytes))
      products += std::ldexp(terms + 2 * std::ceil(terms / 32), -13);
  }
  return products == 0 ? 0 : products + rounding;
}
