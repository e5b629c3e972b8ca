//===- choose.h - Which kernel for which size -------------------*- C++ -*-===//
#ifndef NCCLX_TEST_BENCH_CUDA_CHOOSE_H
#define NCCLX_TEST_BENCH_CUDA_CHOOSE_H

#include "rank.h"

namespace bench {
/// What is timed by default: the best of the candidates on the card of *.jsonl.
Config choose(const Call &call, int ranks);
/// What `--tune` tries.
std::vector<Config> candidates(const Call &call, int ranks);
} // namespace bench

#endif // NCCLX_TEST_BENCH_CUDA_CHOOSE_H
