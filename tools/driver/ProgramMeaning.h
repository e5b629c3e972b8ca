//===- ProgramMeaning.h - The graph that a written schedule claims to carry -*- C++ -*-===//
#ifndef NCCLX_TOOLS_DRIVER_PROGRAMMEANING_H
#define NCCLX_TOOLS_DRIVER_PROGRAMMEANING_H

#include "ncclx/CTran/CTran.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::ncclx {

/// A module with the function `program`'s name on flat tensors, which does what the one entry of
/// the program's `collectives` says: an all_gather, reduce_scatter, all_reduce or all_to_all of
/// input 0 along dimension 0. Of a buffer that is changed in place a shard is the own part.
/// Reductions are those of the program's `reduce` ops, in rank order: inputs must have sums that no
/// order changes. Fails, with an error at the program, where it claims several collectives, another
/// kind, or has other inputs and outputs than that.
FailureOr<OwningOpRef<ModuleOp>> meaningOf(ctran::ProgramOp program);

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_DRIVER_PROGRAMMEANING_H
