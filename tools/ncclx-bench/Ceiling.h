//===- Ceiling.h - What copy engines carry between GPUs ----------*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_BENCH_CEILING_H
#define NCCLX_TOOLS_NCCLX_BENCH_CEILING_H

#include <cstdint>
#include <optional>
#include <string>

namespace ncclx_bench {

/// Bytes a second from one GPU to the next: while all send, and while the first alone does.
struct Ceiling {
  double all = 0, one = 0;
};
/// Measured by copies of `bytes`, each rank on a GPU of its own; nothing, and `why`, where the
/// runtime fails. `driver` as in ncclxrtCudaConfig_t.
std::optional<Ceiling> measureCeiling(const std::string &driver, int nranks, int64_t bytes,
                                      std::string &why);

/// Seconds that the busiest direction of a collective takes at the ceiling; `bytes` of the whole.
double wireSeconds(const Ceiling &ceiling, int collective, int nranks, double bytes);

} // namespace ncclx_bench
#endif // NCCLX_TOOLS_NCCLX_BENCH_CEILING_H
