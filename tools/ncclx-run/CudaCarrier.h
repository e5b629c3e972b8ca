//===- CudaCarrier.h - A schedule on GPUs as files ----------------------------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_RUN_CUDACARRIER_H
#define NCCLX_TOOLS_NCCLX_RUN_CUDACARRIER_H

#include "CudaProgram.h"

#include <optional>

namespace mlir::ncclx {

/// How files for GPUs are made.
struct CudaFileOptions {
  std::string directory, name; ///< as in CppOptions
  /// Compute capabilities (90 is 9.0) that kernels are compiled for; empty: when a plan is
  /// prepared.
  std::vector<int32_t> architectures;
  std::optional<int64_t> kernelBlocks; ///< the schedule as one kernel; 0: as many as suit
  bool timeline = false;               ///< that kernel notes when its steps begin and end
  std::string nvrtc, headers;          ///< empty: those of the system (ncclxrt/cuda.h)
  std::string ptxas;                   ///< empty: on PATH or in /usr/local/cuda/bin
};

/// Lowers a proved compilation for GPUs and writes NAME.h, NAME.cpp, NAME.o (its compiled kernels),
/// NAME.json (the manifest), and to be read NAME.cu and NAME.ptx (what was compiled). Equal inputs
/// and compilers give equal bytes. `program` is what it was lowered to, `files` are the suffixes.
LogicalResult writeCuda(Compilation &compilation, const CudaFileOptions &options,
                        CudaProgram &program, std::vector<StringRef> &files);

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_NCCLX_RUN_CUDACARRIER_H
