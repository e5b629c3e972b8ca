//===- CudaEmitter.h - CUDA C++ for a program's sm lanes ----------------*- C++ -*-===//
#ifndef NCCLX_CUDA_CUDAEMITTER_H
#define NCCLX_CUDA_CUDAEMITTER_H

#include "mlir/IR/BuiltinOps.h"
#include "ncclx/CTran/CTran.h"

namespace mlir::ncclx {

struct CudaOptions {
  int64_t threads = 512;
  /// Blocks of a program whose ops name no block: only one whose blocks never meet takes more
  /// than 1.
  int64_t blocks = 32;
};

/// Prints a kernel, and a function that launches it, for a program whose ops are all of sm lanes:
/// compositions of ncclxrt/device/*.cuh, which alone holds memory-model code. A loop over the lane
/// index is the grid's blocks; inband slots become packets. Fails with an error at the op that it
/// does not lower.
LogicalResult emitCuda(ctran::ProgramOp program, raw_ostream &os, const CudaOptions &options = {});

} // namespace mlir::ncclx
#endif // NCCLX_CUDA_CUDAEMITTER_H
