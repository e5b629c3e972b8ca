//===- CutSteps.h - Long programs as functions of bounded length -----------*- C++ -*-===//
#ifndef NCCLX_LIB_HOST_CUTSTEPS_H
#define NCCLX_LIB_HOST_CUTSTEPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ncclx {

/// Moves runs of calls out of long blocks of `function` into private functions before it, so that
/// compilers, whose time grows with the square of a block's length, take time that grows with the
/// program's.
void cutSteps(func::FuncOp function);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_HOST_CUTSTEPS_H
