//===- CudaSource.h - A schedule on GPUs as a C interface and C++ ---------*- C++ -*-===//
#ifndef NCCLX_CPP_CUDASOURCE_H
#define NCCLX_CPP_CUDASOURCE_H

#include "ncclx/Cpp/CppSource.h"
#include "ncclx/Cuda/ComputeToPtx.h"
#include "ncclx/Cuda/CudaEmitter.h"

namespace mlir::ncclx {

/// A module that was compiled ahead of time: ncclxrtCudaImage_t.
struct CudaImage {
  std::string key;
  int64_t architecture;
  std::string data;
};

/// What a schedule on GPUs has beside the function that enqueues it.
struct CudaParts {
  std::string module;                 ///< the graph's computation as PTX; empty without
  std::vector<ComputeKernel> kernels; ///< its entries
  const CudaKernel *whole = nullptr;  ///< the schedule is this kernel, and there is no function
  std::vector<CudaImage> images;      ///< none: kernels are compiled when a plan is prepared
  std::string manifest;               ///< JSON
};

/// Device memory of a rank's plan beside its inputs and outputs.
uint64_t cudaWorkspaceBytes(const HostPlan &plan, const CudaParts &parts);

/// The variable of image `index`: bytes, in an object that is linked with the source.
std::string cudaImageName(llvm::StringRef name, size_t index);

/// Prints the function that lowerToHost made for CUDA in `host` (null for a schedule that is one
/// kernel), and the tables, as the C interface `name`_prepare, _launch, _destroy, ... (what each
/// does is said in the header it prints). The same plan gives the same text.
FailureOr<CppSource> makeCudaSource(llvm::StringRef name, const HostPlan &plan, ModuleOp host,
                                    const CudaParts &parts);

} // namespace mlir::ncclx
#endif // NCCLX_CPP_CUDASOURCE_H
