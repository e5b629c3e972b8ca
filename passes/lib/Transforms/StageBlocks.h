//===- StageBlocks.h - Structured control flow as the blocks of stages -*- C++ -*-===//
#ifndef NCCLX_LIB_TRANSFORMS_STAGEBLOCKS_H
#define NCCLX_LIB_TRANSFORMS_STAGEBLOCKS_H

#include "ncclx/NCCLX/AssumeUniform.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ncclx {

/// Makes blocks and branches of the control flow around collectives in `function`, each block a
/// stage: it ends where a check of what is assumed stands, and no future goes from one to another.
LogicalResult makeStageBlocks(func::FuncOp function);

/// Has each block that uses a window of another make one of its own, of what the blocks before it
/// have left there (StageWindows.cpp).
LogicalResult carryWindows(func::FuncOp function);

/// The check at the end of such a block, or null.
AssumeUniformOp checkOf(Block *block);

/// Where a stage ends: at its check, or its terminator.
Operation *endOf(Block *block);

} // namespace mlir::ncclx

#endif // NCCLX_LIB_TRANSFORMS_STAGEBLOCKS_H
