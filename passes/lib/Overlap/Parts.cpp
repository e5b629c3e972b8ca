//===- Parts.cpp - Parts of tensors -------------------------------------------------===//
#include "Parts.h"

using namespace mlir;

Value mlir::ncclx::takeBox(OpBuilder &b, Location loc, Value tensor, ArrayRef<int64_t> offsets,
                           ArrayRef<int64_t> sizes) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getShape() == sizes)
    return tensor;
  if (tensor.getDefiningOp<tensor::EmptyOp>())
    return tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>()) {
    Value into = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
    return linalg::FillOp::create(b, loc, fill.getInputs()[0], into).getResult(0);
  }
  return sliceBox(b, loc, tensor, offsets, sizes);
}

Value mlir::ncclx::sliceBox(OpBuilder &b, Location loc, Value tensor, ArrayRef<int64_t> offsets,
                            ArrayRef<int64_t> sizes) {
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, tensor,
                                        getAsIndexOpFoldResult(b.getContext(), offsets),
                                        getAsIndexOpFoldResult(b.getContext(), sizes), strides);
}

Value mlir::ncclx::putBox(OpBuilder &b, Location loc, Value part, Value whole,
                          ArrayRef<int64_t> offsets) {
  ArrayRef<int64_t> sizes = cast<RankedTensorType>(part.getType()).getShape();
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, loc, part, whole,
                                       getAsIndexOpFoldResult(b.getContext(), offsets),
                                       getAsIndexOpFoldResult(b.getContext(), sizes), strides);
}

namespace {
/// Indices of one dimension, and all of the others.
struct Slab {
  SmallVector<int64_t> offsets, sizes;
  Slab(Value tensor, unsigned dim, int64_t from, int64_t size)
      : sizes(cast<RankedTensorType>(tensor.getType()).getShape()) {
    offsets.assign(sizes.size(), 0);
    offsets[dim] = from;
    sizes[dim] = size;
  }
};
} // namespace

Value mlir::ncclx::takePart(OpBuilder &b, Location loc, Value tensor, unsigned dim, int64_t from,
                            int64_t size) {
  Slab slab(tensor, dim, from, size);
  return takeBox(b, loc, tensor, slab.offsets, slab.sizes);
}

Value mlir::ncclx::takeSlice(OpBuilder &b, Location loc, Value tensor, unsigned dim, int64_t from,
                             int64_t size) {
  Slab slab(tensor, dim, from, size);
  return sliceBox(b, loc, tensor, slab.offsets, slab.sizes);
}

Value mlir::ncclx::putPart(OpBuilder &b, Location loc, Value part, Value whole, unsigned dim,
                           int64_t from) {
  return putBox(b, loc, part, whole, Slab(whole, dim, from, 0).offsets);
}

FailureOr<std::optional<unsigned>> mlir::ncclx::dimensionOf(AffineMap map, unsigned loop) {
  std::optional<unsigned> found;
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    if (!expr.isFunctionOfDim(loop))
      continue;
    if (found || !isa<AffineDimExpr>(expr))
      return failure();
    found = i;
  }
  return found;
}
