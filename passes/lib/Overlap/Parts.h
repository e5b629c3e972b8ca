//===- Parts.h - Parts of tensors -----------------------------------------------*- C++ -*-===//
#ifndef NCCLX_LIB_OVERLAP_PARTS_H
#define NCCLX_LIB_OVERLAP_PARTS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::ncclx {

/// A box of a tensor. Of a fill or an empty tensor: a smaller one.
Value takeBox(OpBuilder &b, Location loc, Value tensor, ArrayRef<int64_t> offsets,
              ArrayRef<int64_t> sizes);

/// The same of any tensor, also where it is a fill: a part that what is put into it may stay in.
Value sliceBox(OpBuilder &b, Location loc, Value tensor, ArrayRef<int64_t> offsets,
               ArrayRef<int64_t> sizes);

/// `whole` with `part` at a place in it.
Value putBox(OpBuilder &b, Location loc, Value part, Value whole, ArrayRef<int64_t> offsets);

// The same of indices [from, from + size) of one dimension, and all of the others.
Value takePart(OpBuilder &b, Location loc, Value tensor, unsigned dim, int64_t from, int64_t size);
Value takeSlice(OpBuilder &b, Location loc, Value tensor, unsigned dim, int64_t from, int64_t size);
Value putPart(OpBuilder &b, Location loc, Value part, Value whole, unsigned dim, int64_t from);

/// The operand's dimension that a loop runs over; nothing where it runs over none. Fails where the
/// loop does not run over a dimension as it stands.
FailureOr<std::optional<unsigned>> dimensionOf(AffineMap map, unsigned loop);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_OVERLAP_PARTS_H
