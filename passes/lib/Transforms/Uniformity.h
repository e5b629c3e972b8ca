//===- Uniformity.h - What is the same on all ranks -------------*- C++ -*-===//

#ifndef NCCLX_LIB_TRANSFORMS_UNIFORMITY_H
#define NCCLX_LIB_TRANSFORMS_UNIFORMITY_H

#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/IR/Diagnostics.h"

namespace mlir::ncclx {

/// The values that decide whether, or how often, the regions of structured control flow run.
SmallVector<Value> getDeciders(Operation *op);

/// Finds the values under `root` that may differ between ranks (SPEC.md, whole programs): a sparse
/// forward dataflow analysis, and beside it one for what control flow decides.
class Uniformity {
public:
  explicit Uniformity(Operation *root);

  bool isUniform(Value value) const;

  /// Attaches a note for each step from a value that is not uniform to where the difference arises.
  void explain(Value value, InFlightDiagnostic &diag) const;

private:
  DataFlowSolver solver;
  bool isKnown; ///< the solver has come to an end
};

} // namespace mlir::ncclx

#endif // NCCLX_LIB_TRANSFORMS_UNIFORMITY_H
