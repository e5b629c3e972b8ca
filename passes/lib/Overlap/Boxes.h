//===- Boxes.h - Boxes of tensors, and what ops read for them -------------------*- C++ -*-===//
#ifndef NCCLX_LIB_OVERLAP_BOXES_H
#define NCCLX_LIB_OVERLAP_BOXES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::ncclx {

/// Indices [low, high) of one dimension; or, of a box that is not known yet, those that lie by so
/// much beside the two ends of its dimension `dim`.
struct Extent {
  int64_t low = 0, high = 0;
  int dim = -1;
  bool operator==(const Extent &) const = default;
  auto operator<=>(const Extent &) const = default;
};
using Box = SmallVector<Extent>;

Box boxOf(ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes);
Box wholeOf(Value value);
Box moved(Box box, ArrayRef<int64_t> by, int64_t sign);
std::optional<Box> intersection(const Box &a, const Box &b);
int64_t volume(const Box &box);
SmallVector<int64_t> offsetsOf(const Box &box);
SmallVector<int64_t> sizesOf(const Box &box);
std::string toString(const Box &box); ///< "4x8"

/// Where an op inserts, or extracts: static, in steps of 1, of the same rank.
template <typename Op> std::optional<Box> placeOf(Op op) {
  if (op.getSourceType().getRank() != op.getType().getRank() ||
      ShapedType::isDynamicShape(op.getStaticOffsets()) ||
      ShapedType::isDynamicShape(op.getStaticSizes()) ||
      llvm::any_of(op.getStaticStrides(), [](int64_t stride) { return stride != 1; }))
    return std::nullopt;
  return boxOf(op.getStaticOffsets(), op.getStaticSizes());
}

/// An op of one result whose elements are made one by one, each from elements near it. Products
/// read whole rows: cutting them is for other passes.
bool isLocal(linalg::LinalgOp op);
bool isElementwise(Operation *op);

/// What of an operand a local op reads for a box of its result; nothing where that is no box.
std::optional<Box> readBy(linalg::LinalgOp op, unsigned operand, const Box &result);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_OVERLAP_BOXES_H
