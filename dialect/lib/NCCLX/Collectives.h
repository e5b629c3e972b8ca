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

/// Whether a tensor of this static shape has less than 2^63 bytes, whatever its elements.
bool fitsBytes(ShapedType type);

/// peer C1 and C2: a shift or pairs, each member once. `mayBeOwn`: or neither.
LogicalResult verifyPeers(Operation *op, bool mayBeOwn);
/// peer C3: the pairs name members of a group of that many.
LogicalResult verifyMembers(Operation *op, int64_t numMembers);

} // namespace mlir::ncclx

#endif // NCCLX_LIB_NCCLX_COLLECTIVES_H
