//===- Parts.h - Parts of tensors -----------------------------------------------*- C++ -*-===//
#ifndef NCCLX_LIB_OVERLAP_PARTS_H
#define NCCLX_LIB_OVERLAP_PARTS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::ncclx {

/// Indices [from, from + size) of one dimension. Of a fill or an empty tensor: a smaller one.
Value takePart(OpBuilder &b, Location loc, Value tensor, unsigned dim, int64_t from, int64_t size);

/// The same of any tensor, also where it is a fill: a part that what is put into it may stay in.
Value takeSlice(OpBuilder &b, Location loc, Value tensor, unsigned dim, int64_t from, int64_t size);

/// `whole` with `part` at `from` of one dimension.
Value putPart(OpBuilder &b, Location loc, Value part, Value whole, unsigned dim, int64_t from);

/// The operand's dimension that a loop runs over; nothing where it runs over none. Fails where the
/// loop does not run over a dimension as it stands.
FailureOr<std::optional<unsigned>> dimensionOf(AffineMap map, unsigned loop);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_OVERLAP_PARTS_H
