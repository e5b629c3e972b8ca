//===- Bound.h - What no schedule of a problem is shorter than ------------------*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_OVERLAP_BOUND_H
#define NCCLX_TEST_UNIT_OVERLAP_BOUND_H

#include "ncclx/Overlap/Problem.h"

namespace overlap_test {

/// Seconds that every schedule takes, at the highest clock, whatever its memory. A kernel that a
/// collective needs, or that needs it, in any number of steps, does not run beside it; each second
/// of a kernel hides one second of one queue. The most that can be hidden so is a maximum flow from
/// the queue's collectives to kernels. Cutting a kernel into pieces changes nothing.
double leastSeconds(const mlir::ncclx::overlap::Problem &problem);
/// The same less all kernels: what of the collectives shows in every schedule, where nothing that
/// runs at once slows the other down.
double leastExposed(const mlir::ncclx::overlap::Problem &problem);

} // namespace overlap_test
#endif // NCCLX_TEST_UNIT_OVERLAP_BOUND_H
