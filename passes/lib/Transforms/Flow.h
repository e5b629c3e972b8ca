//===- Flow.h - Where a future, a token or a tensor goes --------*- C++ -*-===//
//
// Structured control flow (scf) hands values on: an init operand becomes a block
// argument, a yielded value a result. What is in flight may take no other way.
//
//===----------------------------------------------------------------------===//

#ifndef NCCLX_LIB_TRANSFORMS_FLOW_H
#define NCCLX_LIB_TRANSFORMS_FLOW_H

#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Transforms/Communication.h"

#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace mlir::ncclx {

/// The values that `use` becomes, or nothing if its owner does not hand it on.
std::optional<SmallVector<Value>> getForwarded(OpOperand &use);

/// `root` and all that it becomes, in the order found.
llvm::SetVector<Value> getReached(Value root);

/// What the user of a value in flight does with it.
enum class Use { Whole, Chunk, Forward, Illegal };

/// Checks that `value` is taken whole or handed on exactly once on every path, and its chunks
/// before. `what` is the noun of the messages, `taken` the participle ("future", "awaited").
LogicalResult verifyTakenOnce(Value value, StringRef what, StringRef taken,
                              llvm::function_ref<Use(OpOperand &)> classify);

/// The operation at which the life of `value`, which verifyTakenOnce accepted, ends in `block`: its
/// taker or an op whose every region takes it; null if `block` does not take it. Chunks do not
/// count.
Operation *getTaker(Value value, Block &block, llvm::function_ref<Use(OpOperand &)> classify);

/// Checks that `op` cuts its chunks as `collective` puts its result together.
LogicalResult verifyChunkOf(Operation *op, int64_t count, int64_t dim,
                            CollectiveOpInterface collective);

} // namespace mlir::ncclx

#endif // NCCLX_LIB_TRANSFORMS_FLOW_H
