//===- Tolerance.h - How far products may be from the reference ---------------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_RUN_TOLERANCE_H
#define NCCLX_TOOLS_NCCLX_RUN_TOLERANCE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ncclx {

/// How far result `index` of a graph on tensors may be from the reference, relative to its largest
/// magnitude, where products add in another order. For each product that it depends on: a sum of K
/// terms, in whatever order, is within K u of the exact one (u the unit roundoff of the
/// accumulation type), so two are within 2 K u; with tf32 both factors are off by 2^-11 besides,
/// and of 8-bit floats each term, and the sum twice in 32, loses what is below 2^-13. For each op
/// that rounds to a narrower type 2 u of that: a value near a tie falls to the other side. 0 where
/// it depends on no product: then every bit is the reference's.
double productTolerance(func::FuncOp function, unsigned index);

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_NCCLX_RUN_TOLERANCE_H
