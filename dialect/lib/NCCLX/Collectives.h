//===- Collectives.h - Rules shared by the ops ------------------*- C++ -*-===//

#ifndef NCCLX_LIB_NCCLX_COLLECTIVES_H
#define NCCLX_LIB_NCCLX_COLLECTIVES_H

#include "ncclx/NCCLX/NCCLX.h"

namespace mlir::ncclx {

/// Communication is read and written; in memref form the input is read, the destination written.
void getCollectiveEffects(CollectiveOpInterface op,
                          SmallVectorImpl<MemoryEffects::EffectInstance> &effects);

/// collective C7, then the op's own rules on the number of members.
LogicalResult verifyCollectiveSymbols(CollectiveOpInterface op, SymbolTableCollection &tables);

/// `dim` must be one of the dimensions of `type`; `verb` says what the op does with it.
LogicalResult verifyDim(Operation *op, StringRef verb, int64_t dim, ShapedType type);

} // namespace mlir::ncclx

#endif // NCCLX_LIB_NCCLX_COLLECTIVES_H
