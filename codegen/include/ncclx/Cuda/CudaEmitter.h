//===- CudaEmitter.h - CUDA C++ for a program's sm lanes ----------------*- C++ -*-===//
#ifndef NCCLX_CUDA_CUDAEMITTER_H
#define NCCLX_CUDA_CUDAEMITTER_H

#include "mlir/IR/BuiltinOps.h"
#include "ncclx/CTran/CTran.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace mlir::ncclx {

struct CudaOptions {
  int64_t threads = 512;
  /// Blocks of a program whose ops name no block: only one whose blocks never meet takes more
  /// than 1. 0: as many as suit its messages, and threads likewise.
  int64_t blocks = 32;
  int64_t mostBlocks = 132; ///< that suit: the multiprocessors of a GPU
  /// The kernel notes when its ops begin and end (ncclxrt/device/timeline.cuh). Without, its text
  /// is the same but for those lines.
  bool timeline = false;
};

/// A program as one kernel: it takes one struct of 64-bit words, which are the addresses of each
/// window at each rank, those of each slot array at each rank, the address of one word a block
/// (0 at first), the guard (two words), and the rank. An array that there is none of has one entry.
/// With a timeline, the address of its words comes first; with sizes, the number by which a failure
/// names the first of them comes last.
struct CudaKernel {
  struct Window {
    ctran::WindowOp op;
    int64_t bytes, generations; ///< in memory: packets carry a flag beside each word
  };
  std::string name;   ///< an identifier
  std::string source; ///< device code alone, for nvcc and NVRTC
  std::string entry;
  int64_t ranks = 0, blocks = 1, threads = 0;
  SmallVector<Window> windows;
  SmallVector<int64_t> slotWords;
  struct Step {
    ctran::ScheduleOpInterface op;
    std::string label;
  };
  SmallVector<std::string> sizes; ///< that it reads: what each is called
  SmallVector<Step> steps;        ///< the ops, by the step that a wait names
  bool together = false;          ///< all blocks share every op; else each has its own
  /// With a timeline: the steps in the order in which a block does them, loops unrolled.
  SmallVector<unsigned> order;
};

/// The kernel of a program whose ops are all of sm lanes: compositions of ncclxrt/device/*.cuh,
/// which alone holds memory-model code. A loop over the lane index is the grid's blocks; inband
/// slots become packets. Fails with an error at the op that it does not lower.
FailureOr<CudaKernel> emitCudaKernel(ctran::ProgramOp program, const CudaOptions &options = {});

/// Prints that kernel, and a function that launches it.
LogicalResult emitCuda(ctran::ProgramOp program, raw_ostream &os, const CudaOptions &options = {});

} // namespace mlir::ncclx
#endif // NCCLX_CUDA_CUDAEMITTER_H
