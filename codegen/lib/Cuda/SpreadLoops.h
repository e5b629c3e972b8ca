//===- SpreadLoops.h - A function's iterations over threads -------------*- C++ -*-===//
#ifndef NCCLX_LIB_CUDA_SPREADLOOPS_H
#define NCCLX_LIB_CUDA_SPREADLOOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ncclx {

/// A function of this name is a barrier of the threads of a block.
inline constexpr char kBlockBarrier[] = "ncclx_block_barrier";

/// How a function is launched, and the memory that it keeps values of its own in.
struct SpreadKernel {
  int64_t blocks = 1, threads = 1, scratchBytes = 0;
  SmallVector<int64_t> scratchOffsets;
};

/// Gives each thread its part of the work (ComputeToPtx.h). `function` gets more arguments: what it
/// allocated, the thread's number and the number of threads.
LogicalResult spreadLoops(func::FuncOp function, SpreadKernel &kernel);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_CUDA_SPREADLOOPS_H
