//===- Parts.cpp - Parts of tensors -------------------------------------------------===//
#include "Parts.h"

using namespace mlir;

Value mlir::ncclx::takePart(OpBuilder &b, Location loc, Value tensor, unsigned dim, int64_t from,
                            int64_t size) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  if (tensor.getDefiningOp<tensor::EmptyOp>())
    return tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>()) {
    Value into = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
    return linalg::FillOp::create(b, loc, fill.getInputs()[0], into).getResult(0);
  }
  return takeSlice(b, loc, tensor, dim, from, size);
}

Value mlir::ncclx::takeSlice(OpBuilder &b, Location loc, Value tensor, unsigned dim, int64_t from,
                             int64_t size) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)), sizes;
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  offsets[dim] = b.getIndexAttr(from);
  for (int64_t extent : shape)
    sizes.push_back(b.getIndexAttr(extent));
  return tensor::ExtractSliceOp::create(b, loc, tensor, offsets, sizes, strides);
}

Value mlir::ncclx::putPart(OpBuilder &b, Location loc, Value part, Value whole, unsigned dim,
                           int64_t from) {
  auto type = cast<RankedTensorType>(part.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)), sizes;
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  offsets[dim] = b.getIndexAttr(from);
  for (int64_t extent : type.getShape())
    sizes.push_back(b.getIndexAttr(extent));
  return tensor::InsertSliceOp::create(b, loc, part, whole, offsets, sizes, strides);
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
