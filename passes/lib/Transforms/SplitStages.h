//===- SplitStages.h - Straight stages between decisions at run time -*- C++ -*-===//
#ifndef NCCLX_LIB_TRANSFORMS_SPLITSTAGES_H
#define NCCLX_LIB_TRANSFORMS_SPLITSTAGES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ncclx {

/// Whether the way through the collectives of `function` is known only on the way: it has loops
/// around them, branches on what has been communicated, or checks of what is assumed.
bool needsStages(func::FuncOp function);

/// Puts the stages of `function`, and what begins with the first, in its place (SPEC.md, stages).
LogicalResult splitIntoStages(func::FuncOp function);

} // namespace mlir::ncclx

#endif // NCCLX_LIB_TRANSFORMS_SPLITSTAGES_H
