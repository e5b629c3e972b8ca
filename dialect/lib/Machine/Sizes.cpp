//===- Sizes.cpp - Whether the two ends of a move hold the same bytes ----------===//
//
// The half of the layout lemma (S5, S6) that a single layout cannot answer: a box of one window is
// copied into a box of another, and both must be cut alike (constraint boxes C2).
//
//===----------------------------------------------------------------------===//

#include "Frame.h"

#include <fmt/format.h>

namespace mlir::ctran::machine {

namespace {

/// A box as its size depends on it.
struct Shape {
  const Space &space;
  llvm::SmallVector<Index, 6> path;
  Index first;
  int64_t count;

  Shape(const Space &space, const Access &access)
      : space(space), path(access.path.begin(), access.path.end()), first(access.first),
        count(access.count) {
    if (count == 1) {
      path.push_back(first);
      count = -1;
    } else if (count >= 0 && count == space.dims[path.size()].size) {
      count = -1;
    }
    // The whole of a resident space is the piece that the rank has.
    if (space.resident && path.empty() && count < 0)
      for (const Dim &dim : space.dims)
        path.push_back({true, *dim.axis, 0});
  }
  int64_t unit() const { return space.rows * space.unitBytes; }
};

bool sameIndex(const Index &a, const Index &b, const Dim &dim) {
  return a.own == b.own && a.axis == b.axis && (a.value - b.value) % dim.size == 0;
}

/// Are both cut in the same way from as much? Then they have one size, whatever the rank.
bool alike(const Shape &a, const Shape &b) {
  if (a.unit() != b.unit() || a.space.extent != b.space.extent || a.path.size() != b.path.size() ||
      a.count != b.count)
    return false;
  for (size_t i = 0; i < a.path.size(); ++i)
    if (!(a.space.dims[i].size == b.space.dims[i].size &&
          a.space.dims[i].partition == b.space.dims[i].partition &&
          a.space.dims[i].granule == b.space.dims[i].granule &&
          sameIndex(a.path[i], b.path[i], a.space.dims[i])))
      return false;
  if (a.count < 0)
    return true;
  const Dim &x = a.space.dims[a.path.size()], &y = b.space.dims[b.path.size()];
  return x.size == y.size && x.partition == y.partition && x.granule == y.granule &&
         sameIndex(a.first, b.first, x);
}

/// Bytes of the box on every rank, or -1 where they depend on the rank.
int64_t exactly(const Shape &shape) {
  int64_t extent = shape.space.extent;
  auto piece = [&](const Index &index, const Dim &dim) {
    int64_t begin = 0, end = extent / dim.size;
    if (extent % (dim.granule * dim.size) != 0) {
      if (index.own)
        return false;
      cut(dim.partition, extent, dim.size, dim.granule, index.value, begin, end);
    }
    extent = end - begin;
    return true;
  };
  for (size_t i = 0; i < shape.path.size(); ++i)
    if (!piece(shape.path[i], shape.space.dims[i]))
      return -1;
  if (shape.count < 0)
    return extent * shape.unit();
  const Dim &dim = shape.space.dims[shape.path.size()];
  if (extent % (dim.granule * dim.size) == 0)
    return extent / dim.size * shape.count * shape.unit();
  if (shape.first.own)
    return -1;
  int64_t begin = 0, end = 0, ignored;
  if (shape.count > 0) {
    cut(dim.partition, extent, dim.size, dim.granule, shape.first.value, begin, ignored);
    cut(dim.partition, extent, dim.size, dim.granule, shape.first.value + shape.count - 1, ignored,
        end);
  }
  return (end - begin) * shape.unit();
}

/// No rank has more bytes in the box.
int64_t atMost(const Shape &shape) {
  Space cut;
  size_t depth = shape.path.size() + (shape.count >= 0);
  cut.dims.assign(shape.space.dims.begin(), shape.space.dims.begin() + depth);
  cut.extent = shape.space.extent;
  return cut.residentWidth() * std::max<int64_t>(shape.count, 1) * shape.unit();
}

} // namespace

Resolve Frame::fits(const Access &from, const Access &to, uint32_t me, size_t below,
                    Fit &fit) const {
  const Window &source = schedule.windows[from.window], &dest = schedule.windows[to.window];
  Shape a(source.spaces[from.space], from), b(dest.spaces[to.space], to);
  fit = Fit::Equal;
  bool same = alike(a, b), byPiece = !same && below > 0 && a.count > 0 && a.count == b.count;
  // What is known by its pieces stays so only where the pieces are the same.
  for (size_t i = byPiece; i < below && (same || byPiece); ++i) {
    size_t x = a.path.size() + i, y = b.path.size() + i;
    if (x >= a.space.dims.size() || y >= b.space.dims.size() ||
        layoutOf(from.window, from.space, x) != layoutOf(to.window, to.space, y))
      same = byPiece = false;
  }
  if (same)
    return Resolve::Ok;
  auto number = [&](const Index &index) {
    int64_t n = index.own ? schedule.grid.sizes[index.axis] : 1;
    return index.own ? ((coordinate(me, index.axis) + index.value) % n + n) % n : index.value;
  };
  auto bytes = [&](const Shape &shape) {
    if (representative)
      return exactly(shape);
    std::vector<int64_t> path;
    for (const Index &index : shape.path)
      path.push_back(number(index));
    return shape.space.locate(path, shape.count < 0 ? 0 : number(shape.first), shape.count).bytes();
  };
  int64_t has = bytes(a), gets = bytes(b), pieces = byPiece ? a.count : 0;
  for (int64_t i = 0; i < pieces; ++i) {
    Shape x(a), y(b);
    x.count = y.count = -1;
    for (auto [shape, first] : {std::pair(&x, a.first), std::pair(&y, b.first)}) {
      first.value += i;
      shape->path.push_back(first);
    }
    has = bytes(x);
    gets = bytes(y);
    if (has < 0 || has != gets)
      byPiece = false;
  }
  if ((below == 0 || byPiece) && has >= 0 && has == gets)
    return Resolve::Ok;
  // A slot of scratch memory holds the largest box that may come; a smaller one uses its start.
  auto scratch = [](const Window &window) { return window.role == Window::Role::Scratch; };
  if (below == 0 && scratch(dest) && gets >= 0 && gets >= (has < 0 ? atMost(a) : has)) {
    fit = Fit::ToLarger;
    return Resolve::Ok;
  }
  if (below == 0 && scratch(source) && has >= 0 && has >= (gets < 0 ? atMost(b) : gets)) {
    fit = Fit::FromLarger;
    return Resolve::Ok;
  }
  bool depends = has < 0 || gets < 0;
  why =
      depends ? fmt::format("whether the boxes of '{}' and '{}' have one size depends on the rank",
                            source.name, dest.name)
      : has != gets
          ? fmt::format("moves {} bytes of '{}' into {} of '{}'", has, source.name, gets, dest.name)
          : fmt::format("moves pieces of '{}' into '{}', which is cut in another way", source.name,
                        dest.name);
  return depends ? Resolve::Asymmetric : Resolve::Invalid;
}

} // namespace mlir::ctran::machine
