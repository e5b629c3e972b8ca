//===- Reductions.h - The runtime's own kernels, as text ------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_CUDA_REDUCTIONS_H
#define NCCLXRT_LIB_CUDA_REDUCTIONS_H

#include "../Base.h"
#include "ncclxrt/cuda.h"

#include <set>
#include <string>
#include <utility>

namespace ncclxrt::cuda {

/// Kernels that add: operation (ncclxrtReduceKind_t, a sum divided, a sum scaled) and dtype.
using Reductions = std::set<std::pair<int, int>>;

/// The kernel that does `wanted`; fails for what no GPU does.
Status findReduction(const ncclxrtCudaReduction_t &wanted, std::pair<int, int> &reduction);

/// "ncclxrt_reduce_sum_f32".
std::string reductionName(std::pair<int, int> reduction);

/// CUDA C++ of those kernels, of the one that raises a counter of several writers, and of those
/// that read a size and copy as much.
std::string reductionSource(const Reductions &reductions);

} // namespace ncclxrt::cuda

#endif // NCCLXRT_LIB_CUDA_REDUCTIONS_H
