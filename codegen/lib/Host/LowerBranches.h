//===- LowerBranches.h - Several programs as one plan ------------*- C++ -*-===//
#ifndef NCCLX_LIB_HOST_LOWERBRANCHES_H
#define NCCLX_LIB_HOST_LOWERBRANCHES_H

#include "ncclx/Host/HostPlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::ncclx {

/// The function `name` of a plan, with the builder in it.
func::FuncOp startFunction(OpBuilder &b, Location loc, ModuleOp target, StringRef name);

/// Of the programs' text and of the kernels that they call.
uint64_t hashOf(ArrayRef<ctran::ProgramOp> programs, const HostPlan &plan);

/// Writes one of a plan's programs where the builder stands in `function`, behind the status
/// `before`; gives the status behind it. Ops and collectives are named "program/name". `bound`:
/// windows that are the plan's of that number.
FailureOr<Value> lowerBranch(ctran::ProgramOp program, HostPlan &plan, OpBuilder &b,
                             func::FuncOp function, Value before,
                             const DenseMap<Operation *, int64_t> &bound);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_HOST_LOWERBRANCHES_H
