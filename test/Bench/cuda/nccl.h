//===- nccl.h - What a user would pick instead, loaded when there ---*- C++ -*-===//
#ifndef NCCLX_TEST_BENCH_CUDA_NCCL_H
#define NCCLX_TEST_BENCH_CUDA_NCCL_H

#include "rank.h"

namespace bench {

/// Three communicators of one rank: default, symmetric windows, zero-CTA (copy engines).
class Nccl {
public:
  static constexpr int modes = 3;
  static const char *modeName(int mode);
  /// Collective; false when the library is not there. `version` e.g. 22809.
  bool init(Rank &rank, int64_t maxBytes, int &version);
  void destroy();
  /// False when NCCL has no such call.
  bool launch(int mode, const Call &call, cudaStream_t stream);

private:
  Rank *rank = nullptr;
  void *comm[modes] = {};
  char *in = nullptr, *out = nullptr;
};

} // namespace bench

#endif // NCCLX_TEST_BENCH_CUDA_NCCL_H
