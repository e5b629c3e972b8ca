//===- TreeTime.h - How long a plan of trees takes --------------------------*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_TREETIME_H
#define NCCLX_LIB_CONVERSION_TREETIME_H

#include "TreePlan.h"

namespace mlir::ctran {

/// Seconds until `rounds` rounds of a plan are over: what the machine's simulation of the schedule
/// finds, for a small part of its work. Puts of one way share what the packing gives it; ways do
/// not keep each other. Infinity where it never ends: with fewer buffers than the plan asks for,
/// puts may wait for each other's credits.
double timeOf(const ncclx::topology::TreePacking &packing, const TreeCosts &costs,
              const TreePlan &plan, int64_t rounds);

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_TREETIME_H
