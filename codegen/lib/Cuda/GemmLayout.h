//===- GemmLayout.h - Where matrices lie, in cuBLASLt's terms ------------*- C++ -*-===//
#ifndef NCCLX_LIB_CUDA_GEMMLAYOUT_H
#define NCCLX_LIB_CUDA_GEMMLAYOUT_H

#include "ncclx/Cuda/ComputeGemms.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::ncclx {

/// A box of a buffer, in elements.
struct GemmPlace {
  Value root; ///< an argument or an allocation
  Type type;  ///< of its elements
  int64_t offset = 0;
  SmallVector<int64_t> sizes, strides;
  bool operator==(const GemmPlace &) const = default;
};

/// Where a view lies in its buffer; null if that is not known here.
std::optional<GemmPlace> placeOf(Value memref);

/// Fills in sizes, leading dimensions, batch strides and transpositions of the product `op` of `a`
/// and `b`, added to `c` in `d`, by columns. The first factor is operand `gemm.a.argument` of the
/// op (0 or 1), the second the other. Or says why that cannot be.
std::string layOutGemm(linalg::LinalgOp op, const GemmPlace &a, const GemmPlace &b,
                       const GemmPlace &c, const GemmPlace &d, CudaGemm &gemm);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_CUDA_GEMMLAYOUT_H
