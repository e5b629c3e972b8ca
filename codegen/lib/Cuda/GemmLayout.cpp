//===- GemmLayout.cpp - Where matrices lie, in cuBLASLt's terms -----------------------===//
#include "GemmLayout.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <array>
#include <limits>

using namespace mlir;
using namespace mlir::ncclx;

std::optional<GemmPlace> mlir::ncclx::placeOf(Value memref) {
  if (auto subview = memref.getDefiningOp<memref::SubViewOp>()) {
    std::optional<GemmPlace> source = placeOf(subview.getSource());
    if (!source || ShapedType::isDynamicShape(subview.getStaticOffsets()) ||
        ShapedType::isDynamicShape(subview.getStaticSizes()) ||
        ShapedType::isDynamicShape(subview.getStaticStrides()))
      return std::nullopt;
    GemmPlace place{source->root, source->type, source->offset, {}, {}};
    llvm::SmallBitVector dropped = subview.getDroppedDims();
    for (unsigned d = 0; d < source->strides.size(); ++d) {
      place.offset += subview.getStaticOffsets()[d] * source->strides[d];
      if (dropped.test(d))
        continue;
      place.sizes.push_back(subview.getStaticSizes()[d]);
      place.strides.push_back(subview.getStaticStrides()[d] * source->strides[d]);
    }
    return place;
  }
  if (auto cast = memref.getDefiningOp<memref::CastOp>())
    return placeOf(cast.getSource());
  // What has other dimensions says itself how it lies, from the start of its buffer.
  Value root = memref;
  while (Operation *op = root.getDefiningOp()) {
    if (isa<memref::ExpandShapeOp, memref::CollapseShapeOp, memref::SubViewOp, memref::CastOp>(op))
      root = op->getOperand(0);
    else if (isa<memref::AllocOp>(op))
      break;
    else
      return std::nullopt;
  }
  auto type = dyn_cast<MemRefType>(memref.getType());
  GemmPlace place;
  if (!type || !type.hasStaticShape() || !isa<FloatType>(type.getElementType()) ||
      failed(type.getStridesAndOffset(place.strides, place.offset)) ||
      ShapedType::isDynamic(place.offset) || ShapedType::isDynamicShape(place.strides))
    return std::nullopt;
  place.root = root;
  place.type = type.getElementType();
  place.sizes.assign(type.getShape().begin(), type.getShape().end());
  return place;
}

namespace {
/// A dimension of the product: how far its steps are in each matrix; a, b, c, d.
struct Dim {
  int64_t size;
  std::array<std::optional<int64_t>, 4> strides;
};

/// A matrix by columns, or its transposed.
struct ByColumns {
  int64_t ld;
  bool transposed;
};
} // namespace

/// Two dimensions that every matrix has one behind the other are one.
static void merge(SmallVectorImpl<Dim> &dims) {
  llvm::erase_if(dims, [](const Dim &dim) { return dim.size == 1; });
  for (size_t i = 0; i < dims.size();) {
    auto follows = [&](const Dim &inner) {
      for (auto [far, near] : llvm::zip(dims[i].strides, inner.strides))
        if (far && *far != *near * inner.size)
          return false;
      return &inner != &dims[i];
    };
    auto *inner = llvm::find_if(dims, follows);
    if (inner == dims.end()) {
      ++i;
      continue;
    }
    inner->size *= dims[i].size;
    dims.erase(dims.begin() + i);
    i = 0;
  }
}

static std::optional<ByColumns> byColumns(const Dim &rows, const Dim &columns, int matrix) {
  int64_t down = rows.strides[matrix].value_or(1), along = columns.strides[matrix].value_or(1);
  auto fits = [](int64_t near, int64_t size, int64_t far, int64_t count) -> std::optional<int64_t> {
    int64_t least = std::max<int64_t>(1, size), ld = count <= 1 ? least : far;
    return (near == 1 || size <= 1) && ld >= least ? std::optional(ld) : std::nullopt;
  };
  if (auto ld = fits(down, rows.size, along, columns.size))
    return ByColumns{*ld, false};
  if (auto ld = fits(along, columns.size, down, rows.size))
    return ByColumns{*ld, true};
  return std::nullopt;
}

std::string mlir::ncclx::layOutGemm(linalg::LinalgOp op, const GemmPlace &a, const GemmPlace &b,
                                    const GemmPlace &c, const GemmPlace &d, CudaGemm &gemm) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<Dim> m, n, k, batch;
  const GemmPlace *places[] = {&a, &b, &c, &d};
  for (unsigned loop = 0; loop < maps[0].getNumDims(); ++loop) {
    Dim dim{ranges[loop], {}};
    for (int i = 0; i < 4; ++i)
      if (auto at = maps[std::min(i, 2)].getResultPosition(getAffineDimExpr(loop, op.getContext())))
        dim.strides[i] = places[i]->strides[*at];
    bool inA = dim.strides[0].has_value(), inB = dim.strides[1].has_value(),
         inC = dim.strides[2].has_value();
    if (inA + inB + inC < 2)
      return "a dimension of its iterations is in one matrix alone";
    (inA && inB && inC ? batch : inA && inC ? m : inB && inC ? n : k).push_back(dim);
  }
  auto total = [](ArrayRef<Dim> dims) {
    int64_t size = 1;
    for (const Dim &dim : dims)
      size *= dim.size;
    return size;
  };
  if (total(m) == 1 && total(n) == 1 && total(batch) > 1)
    return "it has neither rows nor columns, only a batch";
  if (total(batch) > std::numeric_limits<int32_t>::max())
    return "its batch is larger than cuBLASLt can count";
  auto setSizes = [&](int64_t m, int64_t n, int64_t k, int64_t batch) {
    gemm.m = m, gemm.n = n, gemm.k = k, gemm.batch = batch;
    gemm.a.ld = gemm.c.ld = gemm.d.ld = std::max<int64_t>(1, m);
    gemm.b.ld = std::max<int64_t>(1, k);
  };
  if (total(m) == 0 || total(n) == 0 || total(batch) == 0) { // however they lie
    setSizes(total(m), total(n), total(k), total(batch));
    return "";
  }
  for (SmallVectorImpl<Dim> *dims : {&m, &n, &k, &batch})
    merge(*dims);
  // Rows or columns that lie apart are a batch, in which the other factor is the same.
  for (auto [dims, other] : {std::pair(&m, 1), std::pair(&n, 0)})
    if (dims->size() == 2 && batch.empty()) {
      bool first = *dims->front().strides[3] > *dims->back().strides[3];
      Dim apart = first ? dims->front() : dims->back();
      dims->erase(first ? dims->begin() : dims->begin() + 1);
      apart.strides[other] = 0;
      batch.push_back(apart);
    }
  auto one = [&](SmallVectorImpl<Dim> &dims, Dim &only) {
    only = dims.empty() ? Dim{1, {}} : dims.front();
    return dims.size() <= 1;
  };
  bool nothing = total(k) == 0;
  if (nothing)
    k = {Dim{0, {}}};
  Dim rows, columns, sum, times;
  if (!one(m, rows) || !one(n, columns) || !one(k, sum) || !one(batch, times))
    return "a matrix lies in more dimensions than rows, columns and a batch";
  for (bool swapped : {true, false}) {
    const Dim &down = swapped ? columns : rows, &along = swapped ? rows : columns;
    int first = swapped ? 1 : 0, second = 1 - first;
    std::optional<ByColumns> to = byColumns(down, along, 3), from = byColumns(down, along, 2),
                             left = byColumns(down, sum, first),
                             right = byColumns(sum, along, second);
    if (!to || to->transposed || !from || from->transposed || (!nothing && (!left || !right)))
      continue;
    setSizes(down.size, along.size, sum.size, times.size);
    gemm.a.argument = first;
    gemm.c.ld = from->ld, gemm.d.ld = to->ld;
    if (!nothing) {
      gemm.a.ld = left->ld, gemm.a.transposed = left->transposed;
      gemm.b.ld = right->ld, gemm.b.transposed = right->transposed;
    }
    if (times.size != 1) {
      gemm.a.batchStride = *times.strides[first], gemm.b.batchStride = *times.strides[second];
      gemm.c.batchStride = *times.strides[2], gemm.d.batchStride = *times.strides[3];
    }
    return "";
  }
  return "no leading dimension tells how its matrices lie";
}
