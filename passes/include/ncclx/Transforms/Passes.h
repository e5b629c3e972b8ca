//===- Passes.h - Passes on the ncclx dialect -------------------*- C++ -*-===//

#ifndef NCCLX_TRANSFORMS_PASSES_H
#define NCCLX_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir {
class OpPassManager;

namespace bufferization {
class BufferizationDialect;
} // namespace bufferization
namespace scf {
class SCFDialect;
} // namespace scf
namespace arith {
class ArithDialect;
} // namespace arith
namespace memref {
class MemRefDialect;
} // namespace memref
namespace func {
class FuncOp;
} // namespace func
namespace tensor {
class TensorDialect;
} // namespace tensor

namespace ncclx {

#define GEN_PASS_DECL
#include "ncclx/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "ncclx/Transforms/Passes.h.inc"

/// Makes `function` one for the sizes that it leaves open: a value for each of getOpenSizes, in
/// that order. What it calls is copied where that is for other sizes.
LogicalResult specializeSizes(func::FuncOp function, ArrayRef<int64_t> sizes);

/// From a graph on tensors to the same graph on memrefs: verify, materialize destinations, expand
/// futures, bufferize, clean up, and verify between the levels. Registered as `ncclx-bufferize`.
void buildBufferizePipeline(OpPassManager &pm);

/// Registers `ncclx-bufferize`.
void registerBufferizePipeline();

} // namespace ncclx
} // namespace mlir

#endif // NCCLX_TRANSFORMS_PASSES_H
