//===- Collectives.h - Rules shared by the ops ------------------*- C++ -*-===//

#ifndef NCCLX_LIB_NCCLX_COLLECTIVES_H
#define NCCLX_LIB_NCCLX_COLLECTIVES_H

#include "ncclx/NCCLX/NCCLX.h"

namespace mlir::ncclx {

/// Communication is read and written; in memref form the input is read, the destination written.
void getCollectiveEffects(CollectiveOpInterface op,
                          SmallVectorImpl<MemoryEffects::EffectInstance> &effects);

/// Every rule on a collective that does not depend on its group.
LogicalResult verifyCollective(CollectiveOpInterface op);

/// An op's axes: at least one, none twice; or groups and no axes.
LogicalResult verifyAxes(Operation *op, ArrayAttr axes, ArrayAttr groups);

/// The grid that `name` is, if it has the axes, or if each of its ranks is in one of the groups.
FailureOr<GridOp> verifyGrid(Operation *op, FlatSymbolRefAttr name, ArrayAttr axes,
                             ArrayAttr groups, SymbolTableCollection &tables);

/// The grid and the axes that the op names, then its own rules on the group.
LogicalResult verifyCollectiveSymbols(CollectiveOpInterface op, SymbolTableCollection &tables);

/// `dim` must be one of the dimensions of `type`; `verb` says what the op does with it.
LogicalResult verifyDim(Operation *op, StringRef verb, int64_t dim, ShapedType type);

} // namespace mlir::ncclx

#endif // NCCLX_LIB_NCCLX_COLLECTIVES_H
