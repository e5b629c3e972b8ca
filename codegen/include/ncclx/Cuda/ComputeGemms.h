//===- ComputeGemms.h - Kernels that are products of matrices ------------*- C++ -*-===//
#ifndef NCCLX_CUDA_COMPUTEGEMMS_H
#define NCCLX_CUDA_COMPUTEGEMMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>
#include <string>

namespace mlir::ncclx {

/// A product as cuBLASLt has it: ncclxrtCudaGemm_t (ncclxrt/cuda.h), of whose fields these have the
/// names and the meaning. Types are numbers of ncclxrt/abi.h.
struct CudaGemm {
  struct Matrix {
    int64_t argument = 0, dtype = 0, offset = 0, scale = -1, scaleOffset = 0, ld = 1,
            batchStride = 0;
    bool transposed = false;
  };
  int64_t m = 1, n = 1, k = 1, batch = 1;
  Matrix a, b, c, d;
  double alpha = 1, beta = 0;
  int64_t accumulate = 0, sms = 0;
  bool tf32 = false;
};

/// Most scratch memory that products take: what cuBLAS takes by itself on compute capability 9.0.
inline constexpr int64_t kGemmWorkspace = int64_t(32) << 20;

/// The product that is all that `function` does on its static memrefs: a structured op that adds
/// products (isProduct), of any layout that a leading dimension tells, its factors extended or
/// scaled by elementwise ops before, its result set to zero or a copy before, scaled or rounded
/// behind. Null, and `why`, for anything else and for types that cuBLASLt does not combine.
std::optional<CudaGemm> findGemm(func::FuncOp function, std::string &why);

} // namespace mlir::ncclx
#endif // NCCLX_CUDA_COMPUTEGEMMS_H
