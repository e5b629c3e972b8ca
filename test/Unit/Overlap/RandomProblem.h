//===- RandomProblem.h - Small problems at random ------------------------------*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_OVERLAP_RANDOMPROBLEM_H
#define NCCLX_TEST_UNIT_OVERLAP_RANDOMPROBLEM_H

#include "ncclx/Overlap/Problem.h"

namespace overlap_test {

/// 4 to `mostOps` kernels and collectives with dependencies, buffers, shares of HBM and links, SMs
/// of either sharing, one or two queues, now and then a power cap, a fence or an opaque op. The
/// same problem for the same seed on every machine.
mlir::ncclx::overlap::Problem randomProblem(uint64_t seed, unsigned mostOps = 12);

} // namespace overlap_test
#endif // NCCLX_TEST_UNIT_OVERLAP_RANDOMPROBLEM_H
