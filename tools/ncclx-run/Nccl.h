//===- Nccl.h - The same collective by NCCL, by turns ------------------------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_RUN_NCCL_H
#define NCCLX_TOOLS_NCCLX_RUN_NCCL_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <memory>
#include <string>

namespace mlir::ncclx {

/// One collective over all ranks, as NCCL counts it.
struct NcclCall {
  /// "all_gather", "all_reduce" (a sum), "reduce_scatter", "all_to_all", "broadcast" from rank 0,
  /// or "permute" to the next rank, a send and a receive.
  std::string kind;
  int64_t bytes = 0; ///< of the larger of a rank's two buffers
  bool bf16 = false; ///< else f32

  /// Of Nccl::modes the first so many. A broadcast of 4 MiB with zero CTAs did not return (NCCL
  /// 2.28.3, test/Bench/cuda).
  int modes() const { return kind == "broadcast" ? 2 : 3; }
};

/// One rank's communicators, loaded at run time: default, symmetric windows, and zero CTAs.
class Nccl {
public:
  static constexpr int modes = 3;
  static const char *modeName(int mode);
  /// Whether this program was built with NCCL's header, and its library is there; else why not.
  static bool available(std::string &why);

  /// Collective; the rank's GPU is the calling thread's. `gather` hands every rank's bytes to all.
  /// "" or what failed.
  std::string join(int32_t rank, int32_t ranks, const NcclCall &call,
                   llvm::function_ref<bool(const void *, size_t, void *)> gather);
  std::string launch(int mode, void *stream);
  /// Gives everything back.
  void leave();
  Nccl();
  ~Nccl();

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_NCCLX_RUN_NCCL_H
