//===- check.h - Whether every bit is right ---------------------*- C++ -*-===//
#ifndef NCCLX_TEST_BENCH_CUDA_CHECK_H
#define NCCLX_TEST_BENCH_CUDA_CHECK_H

#include "rank.h"

namespace bench {
struct CheckResult {
  int cases = 0, failed = 0;
};
/// Collective. `allTypes`: every type and operation once; `stress`: 1,000 runs back to back.
CheckResult checkAll(Rank &rank, bool allTypes, bool stress);
} // namespace bench

#endif // NCCLX_TEST_BENCH_CUDA_CHECK_H
