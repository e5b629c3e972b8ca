//===- Boxes.cpp - Boxes of tensors, and what ops read for them ----------------------===//
#include "Boxes.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::ncclx;

Box mlir::ncclx::boxOf(ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes) {
  Box box;
  for (auto [offset, size] : llvm::zip(offsets, sizes))
    box.push_back({offset, offset + size});
  return box;
}
Box mlir::ncclx::wholeOf(Value value) {
  Box box;
  for (int64_t size : cast<RankedTensorType>(value.getType()).getShape())
    box.push_back({0, size});
  return box;
}
Box mlir::ncclx::moved(Box box, ArrayRef<int64_t> by, int64_t sign) {
  for (auto [range, offset] : llvm::zip(box, by)) {
    range.low += sign * offset;
    range.high += sign * offset;
  }
  return box;
}
std::optional<Box> mlir::ncclx::intersection(const Box &a, const Box &b) {
  Box both;
  for (auto [x, y] : llvm::zip(a, b)) {
    both.push_back({std::max(x.low, y.low), std::min(x.high, y.high)});
    if (both.back().low >= both.back().high)
      return std::nullopt;
  }
  return both;
}
int64_t mlir::ncclx::volume(const Box &box) {
  int64_t product = 1;
  for (const Extent &range : box)
    product *= range.high - range.low;
  return product;
}
std::string mlir::ncclx::toString(const Box &box) {
  std::string text;
  for (const Extent &range : box)
    text += (text.empty() ? "" : "x") + std::to_string(range.high - range.low);
  return text;
}

SmallVector<int64_t> mlir::ncclx::offsetsOf(const Box &box) {
  return llvm::map_to_vector(box, [](const Extent &range) { return range.low; });
}

SmallVector<int64_t> mlir::ncclx::sizesOf(const Box &box) {
  return llvm::map_to_vector(box, [](const Extent &range) { return range.high - range.low; });
}

bool mlir::ncclx::isLocal(linalg::LinalgOp op) {
  if (isa<linalg::FillOp>(op) || op->getNumResults() != 1 || op.hasIndexSemantics() ||
      !op.hasPureTensorSemantics() || linalg::isaContractionOpInterface(op) ||
      llvm::any_of(op.getStaticLoopRanges(), ShapedType::isDynamic))
    return false;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  AffineMap out = op.getIndexingMapsArray().back();
  return out.isProjectedPermutation() &&
         llvm::none_of(captured, [](Value value) { return isa<ShapedType>(value.getType()); });
}
bool mlir::ncclx::isElementwise(Operation *op) {
  return op->getNumResults() == 1 && OpTrait::hasElementwiseMappableTraits(op) && isPure(op) &&
         isa<RankedTensorType>(op->getResult(0).getType());
}

/// Adds what an index of a map runs over; false where that is no box, or does not go with the
/// result's box as it stands.
static bool addRange(AffineExpr expr, const Box &loops, Extent &sum) {
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return number.getValue() == 0;
  int64_t factor = 1;
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr)) {
    if (expr.getKind() == AffineExprKind::Add)
      return addRange(binary.getLHS(), loops, sum) && addRange(binary.getRHS(), loops, sum);
    auto times = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (expr.getKind() != AffineExprKind::Mul || !times || times.getValue() < 1)
      return false;
    factor = times.getValue();
    expr = binary.getLHS();
  }
  auto dim = dyn_cast<AffineDimExpr>(expr);
  if (!dim)
    return false;
  const Extent &range = loops[dim.getPosition()];
  if (range.dim >= 0 && (sum.dim >= 0 || factor > 1))
    return false;
  sum.low += factor * range.low;
  sum.high += factor * (range.high - 1);
  sum.dim = std::max(sum.dim, range.dim);
  return true;
}

std::optional<Box> mlir::ncclx::readBy(linalg::LinalgOp op, unsigned operand, const Box &result) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  Box loops, read;
  for (int64_t size : op.getStaticLoopRanges())
    loops.push_back({0, size});
  for (auto [expr, range] : llvm::zip(maps.back().getResults(), result))
    loops[cast<AffineDimExpr>(expr).getPosition()] = range;
  for (AffineExpr expr : maps[operand].getResults()) {
    Extent sum{0, 1};
    if (!addRange(expr, loops, sum))
      return std::nullopt;
    read.push_back(sum);
  }
  return read;
}
