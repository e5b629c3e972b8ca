//===- Uniformity.h - What is the same on all ranks -------------*- C++ -*-===//

#ifndef NCCLX_LIB_TRANSFORMS_UNIFORMITY_H
#define NCCLX_LIB_TRANSFORMS_UNIFORMITY_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/ValueRange.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::ncclx {

/// Finds the values under `root` that may differ between ranks, by following them from where they
/// arise: arguments that are not marked `ncclx.uniform`, and results of ops that read memory.
/// Whatever is not reached is uniform.
class Uniformity {
public:
  explicit Uniformity(Operation *root);

  bool isUniform(Value value) const { return !causes.contains(value); }

  /// Attaches a note for each step from a value that is not uniform to where the difference arises.
  void explain(Value value, InFlightDiagnostic &diag) const;

private:
  void mark(Value value, Value cause);
  void markAll(ValueRange values, Value cause);
  void follow(OpOperand &use);

  /// What makes a value differ; null where the difference arises.
  llvm::DenseMap<Value, Value> causes;
  SmallVector<Value> worklist;
};

} // namespace mlir::ncclx

#endif // NCCLX_LIB_TRANSFORMS_UNIFORMITY_H
