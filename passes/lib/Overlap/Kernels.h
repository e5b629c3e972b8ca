//===- Kernels.h - What blocks consist of, and what it costs --------------------*- C++ -*-===//
#ifndef NCCLX_LIB_OVERLAP_KERNELS_H
#define NCCLX_LIB_OVERLAP_KERNELS_H

#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Overlap/CostModel.h"
#include "ncclx/Transforms/Communication.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ncclx {

/// The functions with a body in which something does; passes may add others meanwhile.
SmallVector<func::FuncOp> communicatingFunctions(ModuleOp module);
/// The blocks of a loop or branch that communicates, each of which is a problem of its own; none of
/// any other op.
SmallVector<Block *> blocksIn(Operation *op);
/// How often such an op runs its blocks; once, where that is not known.
double timesOf(Operation *op);
/// The blocks of such a function that passes cut: its own, and those in it that communicate.
SmallVector<Block *> communicatingBlocks(func::FuncOp function);

/// Goes with its users wherever they go: it is no op of a problem.
bool isGlue(Operation *op);

/// A kernel's time and shares; nothing where they are not known.
std::optional<overlap::Op> costOf(Operation *op, const overlap::CostModel &cost);

/// What a collective takes; with a `fraction` of its bytes, one of several like it. Nothing where
/// no engine carries it.
std::optional<overlap::Op> costOfCollective(CollectiveOpInterface op,
                                            const overlap::CostModel &cost, double fraction = 1);

/// "all_gather of 16384 bytes", "linalg.matmul -> tensor<4x8xf32>": how remarks call it.
std::string describe(Operation *op);

/// Values that `op` and its regions use from outside.
SmallVector<Value> usedValues(Operation *op);

/// Of a tensor whose size is known; else 0.
int64_t bytesOf(Type type);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_OVERLAP_KERNELS_H
