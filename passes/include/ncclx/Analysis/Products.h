//===- Products.h - Products of matrices among structured ops ------------*- C++ -*-===//
#ifndef NCCLX_ANALYSIS_PRODUCTS_H
#define NCCLX_ANALYSIS_PRODUCTS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::ncclx {

/// Whether the op adds products of floats, out += in0 * in1, each perhaps extended first: a matmul,
/// batch_matmul, contract or generic, whatever its indexing maps are.
bool isProduct(linalg::LinalgOp op);

/// What an elementwise op does to each element of its first operand: it is extended, multiplied by
/// factors, and at last rounded to the result's type.
struct Scaling {
  double factor = 1;                ///< of the constants
  SmallVector<OpOperand *> scalars; ///< operands of one element each
  bool extends = false, rounds = false;
};

/// Null where it does anything else. Operand and result have the same elements in the same places.
std::optional<Scaling> matchScaling(linalg::GenericOp op);

} // namespace mlir::ncclx
#endif // NCCLX_ANALYSIS_PRODUCTS_H
