//===- Passes.h - Passes on the ncclx dialect -------------------*- C++ -*-===//

#ifndef NCCLX_TRANSFORMS_PASSES_H
#define NCCLX_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir {
class OpPassManager;

namespace bufferization {
class BufferizationDialect;
} // namespace bufferization
namespace linalg {
class LinalgDialect;
} // namespace linalg
namespace shard {
class ShardDialect;
} // namespace shard
namespace scf {
class SCFDialect;
} // namespace scf
namespace arith {
class ArithDialect;
} // namespace arith
namespace memref {
class MemRefDialect;
} // namespace memref
namespace tensor {
class TensorDialect;
} // namespace tensor

namespace ncclx {

#define GEN_PASS_DECL
#include "ncclx/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "ncclx/Transforms/Passes.h.inc"

/// From a graph on tensors to the same graph on memrefs: verify, materialize destinations, expand
/// futures, bufferize, clean up, and verify between the levels. Registered as `ncclx-bufferize`.
void buildBufferizePipeline(OpPassManager &pm);

/// Registers `ncclx-bufferize`.
void registerBufferizePipeline();

} // namespace ncclx
} // namespace mlir

#endif // NCCLX_TRANSFORMS_PASSES_H
