//===- data.h - Inputs with one exact answer --------------------*- C++ -*-===//
#ifndef NCCLX_TEST_BENCH_CUDA_DATA_H
#define NCCLX_TEST_BENCH_CUDA_DATA_H

#include "rank.h"

namespace bench {

constexpr unsigned char poison = 0xa5;

/// What an output must hold, in bytes.
struct Expect {
  bool reduces = false;
  int ranks = 1;
  ReduceOp op = ReduceOp::Sum;
  double scale = 1;
  const uint64_t *run = nullptr;
  int64_t first = 0; ///< position in the input of the output's first byte
  int source = -1;   ///< moved: whose input; -1: piece i is that of rank i
  int64_t piece = 1;
  bool flags = false; ///< 64-bit words that look like flags of packets
};

/// The input of `rank` in run *run, which lies on the device, so that all of this can be captured.
void fillInput(cudaStream_t s, Dtype dtype, void *to, int64_t bytes, int rank, const uint64_t *run,
               ReduceOp op, bool flags);
/// Counts wrong elements in *bad.
void checkOutput(cudaStream_t s, Dtype dtype, const void *out, int64_t bytes, Expect expect,
                 unsigned long long *bad);
/// Counts bytes that are not poison.
void checkUntouched(cudaStream_t s, const void *at, int64_t bytes, unsigned long long *bad);
void countRun(cudaStream_t s, uint64_t *run);
void delay(cudaStream_t s, const uint64_t *run, int rank, unsigned mostMicroseconds);
void launchNothing(cudaStream_t s, bool early);

} // namespace bench

#endif // NCCLX_TEST_BENCH_CUDA_DATA_H
