//===- SpreadLoops.h - A function's iterations over threads -------------*- C++ -*-===//
#ifndef NCCLX_LIB_CUDA_SPREADLOOPS_H
#define NCCLX_LIB_CUDA_SPREADLOOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ncclx {

/// A function of this name is a barrier of the threads of a block.
inline constexpr char kBlockBarrier[] = "ncclx_block_barrier";

/// Gives `function` two arguments more, the thread's number and the number of threads, and each
/// thread its part of the work (ComputeToPtx.h); `blocks` and `threads` are what it is to be
/// launched with.
LogicalResult spreadLoops(func::FuncOp function, int64_t &blocks, int64_t &threads);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_CUDA_SPREADLOOPS_H
