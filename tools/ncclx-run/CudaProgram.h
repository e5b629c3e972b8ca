//===- CudaProgram.h - A compiled program on the GPUs of this machine --------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_RUN_CUDAPROGRAM_H
#define NCCLX_TOOLS_NCCLX_RUN_CUDAPROGRAM_H

#include "Execute.h"
#include "ncclx/Cuda/ComputeToPtx.h"
#include "ncclx/Cuda/CudaEmitter.h"

namespace mlir::ncclx {

/// Where the CUDA backend finds what; empty: the system's (ncclxrt/cuda.h).
struct CudaPaths {
  std::string driver, nvrtc, headers, cache, cublaslt;
};

/// The GPUs of this machine.
struct CudaDevices {
  int32_t count = 0, architecture = 90;
  std::string name;
  /// False: `error` says why they cannot be asked. `apart`: by a process that ends then, so that
  /// this one does not start the driver.
  bool find(const std::string &driver, bool apart, std::string &error);
};

/// Kernels of a program as PTX, and its code that enqueues.
struct CudaProgram {
  bool cublasLt = false; ///< products are left to that library
  std::string ptx;       ///< empty without kernels
  std::vector<ComputeKernel> kernels;
  std::optional<CudaKernel> whole; ///< the program is one kernel, and there is nothing else
  void *describe = nullptr;        ///< NAME_describe of CudaCarrier.h, which then tells all of this

  /// Lowers a proved compilation for streams.
  LogicalResult lower(Compilation &compilation, int32_t architecture);
  /// The same, compiled in this process.
  LogicalResult make(Compilation &compilation, int32_t architecture);
  /// The same as one kernel, of a written program whose ops are all of sm lanes.
  LogicalResult makeKernel(Compilation &compilation, int64_t blocks, bool timeline = false);
};

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_NCCLX_RUN_CUDAPROGRAM_H
