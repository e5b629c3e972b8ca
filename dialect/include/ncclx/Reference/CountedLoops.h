//===- CountedLoops.h - Loops whose variable cannot wrap ----------------*- C++ -*-===//
#ifndef NCCLX_REFERENCE_COUNTEDLOOPS_H
#define NCCLX_REFERENCE_COUNTEDLOOPS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::ncclx {

/// Has each scf.for in `root` whose variable might pass the last number of its type, before it is
/// compared with the bound, count its iterations instead, from 0 by ones. A loop runs for every
/// number from the lower bound by steps that is below the upper one; upstream's branches would wrap
/// there and go on, and upstream's number of iterations is of the difference in the loop's own type.
/// A step that is not positive has no iterations.
void countLoops(Operation *root);

/// The same of one loop, whatever its variable: gives the loop from 0 by ones in its place.
scf::ForOp countIterations(scf::ForOp loop);

} // namespace mlir::ncclx
#endif // NCCLX_REFERENCE_COUNTEDLOOPS_H
