//===- Algorithms.cpp - What the built-in algorithms share ------------------------===//
#include "Algorithms.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ctran;

int64_t CollectiveSpec::groupSize(ScheduleBuilder &s) const {
  int64_t n = 1;
  for (unsigned axis : axes)
    n *= s.size(axis);
  return n;
}

int64_t ctran::flatGranule(MemRefType type) {
  return std::max<int64_t>(1, 16 / llvm::divideCeil(type.getElementTypeBitWidth(), 8));
}

int64_t ctran::pieceCapacity(MemRefType type, std::optional<int64_t> dim, int64_t members,
                             int64_t granule) {
  if (!dim) {
    int64_t units = llvm::divideCeil(type.getNumElements(), granule);
    return llvm::divideCeil(units, members) * granule;
  }
  int64_t extent = type.getDimSize(*dim);
  int64_t others = 1;
  for (auto [i, size] : llvm::enumerate(type.getShape()))
    if (int64_t(i) != *dim)
      others *= size;
  return llvm::divideCeil(extent, members) * others;
}

// An outer dimension cuts at multiples of what its inner ones hold together, so that member m of
// the row-major group owns rows [m*c, (m+1)*c) whatever the number of axes.
SmallVector<DimAttr> ctran::chunkDims(ScheduleBuilder &s, ArrayRef<unsigned> axes, int64_t extent) {
  int64_t members = 1;
  for (unsigned axis : axes)
    members *= s.size(axis);
  int64_t below = std::max<int64_t>(1, llvm::divideCeil(extent, members));
  SmallVector<DimAttr> dims;
  for (unsigned axis : llvm::reverse(axes)) {
    dims.push_back(s.boundDim(axis, Cut::Chunked, below));
    below *= s.size(axis);
  }
  std::reverse(dims.begin(), dims.end());
  return dims;
}

SmallVector<Value> ctran::ownPoint(ScheduleBuilder &s, ArrayRef<unsigned> axes) {
  SmallVector<Value> point;
  for (unsigned axis : axes)
    point.push_back(s.own(axis));
  return point;
}

SmallVector<Value> ctran::pointOf(ScheduleBuilder &s, ArrayRef<unsigned> axes, const Point &point) {
  SmallVector<Value> out;
  for (unsigned axis : axes) {
    auto it = point.find(axis);
    out.push_back(it == point.end() ? s.own(axis) : it->second);
  }
  return out;
}

Value ctran::memberNumber(ScheduleBuilder &s, ArrayRef<unsigned> axes) {
  Value number = s.constant(0);
  for (unsigned axis : axes) {
    number = arith::MulIOp::create(s.builder, s.loc, number, s.constant(s.size(axis)));
    number = s.add(number,
                   CoordValueOp::create(s.builder, s.loc, s.builder.getIndexType(), s.own(axis)));
  }
  return number;
}

SmallVector<Value> ctran::joined(ValueRange a, ValueRange b) {
  SmallVector<Value> out(a);
  for (Value v : b)
    if (!llvm::is_contained(out, v))
      out.push_back(v);
  return out;
}

Views ctran::makeViews(ScheduleBuilder &s, const CollectiveSpec &c) {
  switch (c.kind) {
  case CollectiveSpec::Kind::AllGather: {
    int64_t extent = c.outType.getDimSize(c.dim);
    auto dims = chunkDims(s, c.axes, extent);
    return {s.reindex(c.in, c.dim, dims, /*resident=*/true, extent), s.reindex(c.out, c.dim, dims)};
  }
  case CollectiveSpec::Kind::ReduceScatter: {
    int64_t extent = c.inType.getDimSize(c.dim);
    auto dims = chunkDims(s, c.axes, extent);
    return {s.reindex(c.in, c.dim, dims), s.reindex(c.out, c.dim, dims, /*resident=*/true, extent)};
  }
  case CollectiveSpec::Kind::AllReduce: {
    SmallVector<DimAttr> dims;
    for (unsigned axis : c.axes)
      dims.push_back(s.boundDim(axis, Cut::Balanced, flatGranule(c.inType)));
    Value in = s.reindex(c.in, std::nullopt, dims);
    return {in, c.in == c.out ? in : s.reindex(c.out, std::nullopt, dims)};
  }
  case CollectiveSpec::Kind::AllToAll:
    return {s.reindex(c.in, c.dim, chunkDims(s, c.axes, c.inType.getDimSize(c.dim))),
            s.reindex(c.out, c.concatDim, chunkDims(s, c.axes, c.outType.getDimSize(c.concatDim)))};
  case CollectiveSpec::Kind::Permute:
    return {c.in, c.out};
  }
  llvm_unreachable("all kinds are handled");
}
