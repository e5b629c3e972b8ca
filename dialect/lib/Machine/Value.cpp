//===- Value.cpp - What a box holds, symbolically -----------------------------===//

#include "Value.h"

#include "llvm/ADT/bit.h"
#include <bit>
#include <fmt/format.h>

namespace mlir::ctran::machine {

bool sameLabel(const Value &a, const Value &b) {
  return a.name == b.name && a.summed == b.summed && a.label == b.label;
}

static bool sameScale(const std::optional<double> &a, const std::optional<double> &b) {
  return a.has_value() == b.has_value() &&
         (!a || std::bit_cast<uint64_t>(*a) == std::bit_cast<uint64_t>(*b));
}

bool sameCombination(const Value &a, const Value &b) {
  return a.kind == b.kind && sameScale(a.scale, b.scale) && a.divide == b.divide;
}

bool sameValue(const Value &a, const Value &b) {
  return a.run == b.run && sameLabel(a, b) && a.contributors == b.contributors &&
         sameCombination(a, b);
}

static uint32_t arcDistance(uint32_t from, uint32_t to, uint32_t n) {
  return to >= from ? to - from : to + n - from;
}

/// Sizes of the summed axes, in order.
static llvm::SmallVector<uint32_t, 4> summedSizes(uint32_t summed, const Grid &grid) {
  llvm::SmallVector<uint32_t, 4> sizes;
  for (size_t axis = 0; axis < grid.sizes.size() && axis < 32; ++axis)
    if (summed >> axis & 1)
      sizes.push_back(static_cast<uint32_t>(grid.sizes[axis]));
  return sizes;
}

/// Joins two boxes that differ in one axis and touch there.
static bool joinBoxes(Arc *a, const Arc *b, llvm::ArrayRef<uint32_t> sizes) {
  size_t different = sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (a[i] == b[i])
      continue;
    if (different != sizes.size())
      return false;
    different = i;
  }
  if (different == sizes.size())
    return false;
  uint32_t n = sizes[different];
  Arc x = a[different], y = b[different];
  if (arcDistance(x.start, y.start, n) != x.length) {
    std::swap(x, y);
    if (arcDistance(x.start, y.start, n) != x.length)
      return false;
  }
  uint32_t length = x.length + y.length;
  a[different] = length < n ? Arc{x.start, length} : Arc{0, n};
  return true;
}

/// Disjoint union of two sets of boxes, joined to few boxes; false when they overlap.
static bool uniteContributors(llvm::SmallVectorImpl<Arc> &all, llvm::ArrayRef<Arc> more,
                              llvm::ArrayRef<uint32_t> sizes) {
  size_t k = sizes.size(), had = all.size();
  for (size_t y = 0; y < more.size(); y += k) {
    for (size_t x = 0; x < had; x += k) {
      bool overlap = true;
      for (size_t i = 0; i < k && overlap; ++i) {
        const Arc &a = all[x + i], &b = more[y + i];
        overlap = arcDistance(a.start, b.start, sizes[i]) < a.length ||
                  arcDistance(b.start, a.start, sizes[i]) < b.length;
      }
      if (overlap)
        return false;
    }
    all.append(more.begin() + y, more.begin() + y + k);
  }
  bool joined = true;
  while (joined) {
    joined = false;
    for (size_t x = 0; x < all.size() && !joined; x += k)
      for (size_t y = x + k; y < all.size() && !joined; y += k)
        if (joinBoxes(&all[x], &all[y], sizes)) {
          all.erase(all.begin() + y, all.begin() + y + k);
          joined = true;
        }
  }
  // Boxes that are apart and as many as all there are are all, which no two of them may show.
  uint64_t whole = 1, held = 0;
  for (uint32_t size : sizes)
    whole *= size;
  for (size_t x = 0; k && x < all.size(); x += k) {
    uint64_t volume = 1;
    for (size_t i = 0; i < k; ++i)
      volume *= all[x + i].length;
    held += volume;
  }
  if (all.size() > k && held == whole) {
    all.clear();
    for (uint32_t size : sizes)
      all.push_back({0, size});
  }
  // One order, so that equal sets compare equal.
  if (all.size() > k) {
    llvm::SmallVector<llvm::SmallVector<Arc, 4>, 8> boxes;
    for (size_t x = 0; x < all.size(); x += k)
      boxes.emplace_back(all.begin() + x, all.begin() + x + k);
    llvm::sort(boxes, [](const auto &a, const auto &b) {
      return std::lexicographical_compare(
          a.begin(), a.end(), b.begin(), b.end(), [](const Arc &p, const Arc &q) {
            return std::pair(p.start, p.length) < std::pair(q.start, q.length);
          });
    });
    all.clear();
    for (const auto &box : boxes)
      all.append(box.begin(), box.end());
  }
  return true;
}

ValueRef Values::filling(const ValueRef &value, bool fills) const {
  if (!value || value->startOnly != fills)
    return value;
  Value *out = new Value(*value);
  out->startOnly = !fills;
  return out;
}

ValueRef Values::child(const ValueRef &value, const Box &box, size_t depth, int64_t index) const {
  if (!value)
    return nullptr;
  Value *out = new Value(*value);
  const Dim &dim = frame.dims(box)[depth];
  if (value->startOnly)
    index = -1 - index; // a piece of the box, and of nothing that has a name
  out->label.push_back({frame.representative && dim.axis ? static_cast<int32_t>(*dim.axis) : -1,
                        frame.layoutOf(box.window, box.space, depth), index});
  return out;
}

ValueRef Values::shift(const ValueRef &value, uint32_t d) const {
  if (!value || d == 0)
    return value;
  Value *out = new Value(*value);
  const Grid &grid = frame.schedule.grid;
  for (Component &c : out->label)
    if (c.axis >= 0) {
      int64_t x = c.index - frame.coordinate(d, c.axis);
      c.index = x < 0 ? x + grid.sizes[c.axis] : x;
    }
  size_t i = 0, k = llvm::popcount(out->summed);
  while (i < out->contributors.size()) {
    for (unsigned axis = 0; k && axis < grid.sizes.size(); ++axis) {
      if (!(out->summed >> axis & 1))
        continue;
      Arc &arc = out->contributors[i++];
      uint32_t n = static_cast<uint32_t>(grid.sizes[axis]);
      if (arc.length < n)
        arc.start = arcDistance(static_cast<uint32_t>(frame.coordinate(d, axis)), arc.start, n);
    }
  }
  if (k && out->contributors.size() > k) { // keep the order canonical
    llvm::SmallVector<Arc, 8> arcs(out->contributors.begin(), out->contributors.end());
    out->contributors.clear();
    (void)uniteContributors(out->contributors, arcs, summedSizes(out->summed, grid));
  }
  return out;
}

ValueRef Values::scaled(const ValueRef &value, double by, std::string &why) const {
  if (value->summed == 0 || value->kind || value->scale || value->divide != 1) {
    why = fmt::format("scales {}, which is {}", describe(value),
                      value->summed == 0 ? "no contribution to a sum"
                                         : "no single, plain contribution");
    return nullptr;
  }
  Value *out = new Value(*value);
  out->scale = by;
  return out;
}

ValueRef Values::divided(const ValueRef &value, int64_t by, std::string &why) const {
  if (by == 1)
    return value;
  if (value->summed == 0 || value->kind.value_or(ReduceKind::Sum) != ReduceKind::Sum ||
      value->divide != 1) {
    why = fmt::format("divides {}, which is {}", describe(value),
                      value->divide != 1 ? "divided already" : "no sum");
    return nullptr;
  }
  Value *out = new Value(*value);
  out->divide = by;
  return out;
}

ValueRef Values::combined(const ValueRef &a, const ValueRef &b, ReduceKind kind,
                          std::string &why) const {
  if (a->run != b->run || !sameLabel(*a, *b)) {
    why = fmt::format("adds {} and {}", describe(a), describe(b));
    return nullptr;
  }
  if (a->summed == 0) {
    why = fmt::format("adds {}, which is no contribution to a sum", describe(a));
    return nullptr;
  }
  for (const ValueRef *side : {&a, &b})
    if ((*side)->kind.value_or(kind) != kind || (*side)->divide != 1 ||
        !sameScale(a->scale, b->scale)) {
      why = fmt::format("combines {} and {} by {}", describe(a), describe(b), toString(kind));
      return nullptr;
    }
  Value *out = new Value(*a);
  ValueRef owner(out);
  out->kind = kind;
  if (!uniteContributors(out->contributors, b->contributors,
                         summedSizes(a->summed, frame.schedule.grid))) {
    why = fmt::format("adds a contribution twice: {} and {}", describe(a), describe(b));
    return nullptr;
  }
  return owner;
}

ValueRef Values::of(const ValueLabel &label, const Box &box, uint32_t me, int64_t run,
                    bool sink) const {
  const Grid &grid = frame.schedule.grid;
  Value *out = new Value();
  out->run = run;
  out->name = label.name;
  uint32_t mentioned = 0;
  for (unsigned axis : label.summed)
    out->summed |= 1u << axis;
  if (label.how) {
    out->kind = label.how->kind;
    out->scale = label.how->scale;
    out->divide = label.how->divide;
  }
  for (unsigned axis : label.shared)
    mentioned |= 1u << axis;
  for (const Index &index : label.path)
    if (index.own && index.axis < 32)
      mentioned |= 1u << index.axis;
  const std::vector<Dim> &dims =
      box.ownPiece ? frame.schedule.windows[box.window].spaces[box.residentSpace].dims
                   : frame.dims(box);
  for (size_t i = box.path.size(); i < dims.size(); ++i)
    if (dims[i].axis && *dims[i].axis < 32)
      mentioned |= 1u << *dims[i].axis;
  auto own = [&](unsigned axis, int64_t shift) {
    int64_t n = grid.sizes[axis];
    int64_t base = frame.representative ? 0 : frame.coordinate(me, axis);
    return Component{frame.representative ? static_cast<int32_t>(axis) : -1, 0,
                     ((base + shift) % n + n) % n};
  };
  for (unsigned axis = 0; axis < grid.sizes.size(); ++axis)
    if (axis >= 32 || !((mentioned | out->summed) >> axis & 1))
      out->label.push_back(own(axis, 0));
  for (const Index &index : label.path)
    out->label.push_back(index.own ? own(index.axis, index.value) : Component{-1, 0, index.value});
  if (box.ownPiece)
    for (const auto &[i, dim] : llvm::enumerate(dims)) {
      Component piece = own(*dim.axis, 0);
      piece.layout = frame.layoutOf(box.window, box.residentSpace, i);
      out->label.push_back(piece);
    }
  for (unsigned axis = 0; axis < grid.sizes.size() && axis < 32; ++axis)
    if (out->summed >> axis & 1) {
      uint32_t n = static_cast<uint32_t>(grid.sizes[axis]);
      uint32_t at = frame.representative ? 0 : static_cast<uint32_t>(frame.coordinate(me, axis));
      out->contributors.push_back(sink || n == 1 ? Arc{0, n} : Arc{at, 1});
    }
  return out;
}

ValueRef Values::term(int64_t id, uint32_t me, int64_t run) const {
  Value *out = new Value();
  out->run = run;
  out->name = -1 - id;
  if (frame.representative)
    for (unsigned axis = 0; axis < frame.schedule.grid.sizes.size(); ++axis)
      out->label.push_back({static_cast<int32_t>(axis), 0, 0});
  return out;
}

std::string Values::describe(const ValueRef &value) const {
  if (!value)
    return "nothing";
  const Schedule &schedule = frame.schedule;
  std::string out = value->name < 0 ? "a computed value" : schedule.valueNames[value->name];
  if (value->name >= 0 || value->label.size() > schedule.grid.sizes.size()) {
    out += "[";
    for (size_t i = 0; i < value->label.size(); ++i)
      out += fmt::format("{}{}{}", i ? ", " : "", value->label[i].axis >= 0 ? "own+" : "",
                         value->label[i].index);
    out += "]";
  }
  out += fmt::format(" of run {}", value->run);
  if (value->summed) {
    out += ", summed over";
    size_t k = llvm::popcount(value->summed);
    for (size_t i = 0; i < value->contributors.size(); i += k) {
      out += i ? " and " : " ";
      for (size_t j = 0; j < k; ++j) {
        const Arc &arc = value->contributors[i + j];
        out += fmt::format("{}{}{}..+{}", j ? "x" : "", frame.representative ? "own+" : "",
                           arc.start, arc.length);
      }
    }
    if (value->kind && *value->kind != ReduceKind::Sum)
      out += fmt::format(", by {}", toString(*value->kind));
    if (value->scale)
      out += fmt::format(", scaled by {}", *value->scale);
    if (value->divide != 1)
      out += fmt::format(", divided by {}", value->divide);
  }
  return out;
}

} // namespace mlir::ctran::machine
