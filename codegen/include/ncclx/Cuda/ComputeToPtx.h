//===- ComputeToPtx.h - Computation on memrefs as GPU kernels -----------*- C++ -*-===//
#ifndef NCCLX_CUDA_COMPUTETOPTX_H
#define NCCLX_CUDA_COMPUTETOPTX_H

#include "ncclx/Cuda/ComputeGemms.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mlir::ncclx {

/// A function that became one of these: a product for cuBLASLt, or an entry of the PTX, which takes
/// the address of each memref of its function, in order, and that of `scratchBytes` of memory, if
/// there are any.
struct ComputeKernel {
  std::string name;
  int64_t blocks = 1, threads = 1, arguments = 0, scratchBytes = 0;
  std::string refused;          ///< why a product is an entry, although cuBLASLt was asked for
  std::optional<CudaGemm> gemm; ///< no entry; `scratchBytes` is most of what it may take
};

/// Lowers the functions `names` of `module`, on static memrefs, by lowerComputeToLLVM to PTX for
/// compute capability `architecture` (90 is 9.0): the same operations as on the host, each rounded
/// alike, so the same bits. A function with one structured op spreads its parallel iterations over
/// blocks of threads; one with several over the threads of one block, which meet between them;
/// whatever else is in a function, one thread does all of it. Reductions stay in order. Fails, with
/// an error at the op, for memory whose size is not known or that a loop allocates. `module` is
/// consumed. With `cublasLt` products (findGemm) are left to that library, which adds in an order
/// of its own; a remark says of each whether it is. The PTX is empty where nothing else is left.
LogicalResult computeToPtx(ModuleOp module, ArrayRef<std::string> names, int architecture,
                           bool cublasLt, std::string &ptx, std::vector<ComputeKernel> &kernels);

} // namespace mlir::ncclx
#endif // NCCLX_CUDA_COMPUTETOPTX_H
