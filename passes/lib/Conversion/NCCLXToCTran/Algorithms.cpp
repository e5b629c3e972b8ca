//===- Algorithms.cpp - What the built-in algorithms share ------------------------===//
#include "ListedEnds.h"

#include "ncclx/CTran/Access.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ctran;

int64_t CollectiveSpec::groupSize(ScheduleBuilder &s) const {
  int64_t n = 1;
  for (unsigned axis : axes)
    n *= s.size(axis);
  for (ArrayRef<int64_t> group : groups)
    n = std::max<int64_t>(n, group.size());
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

SmallVector<DimAttr> ctran::boundDims(ScheduleBuilder &s, ArrayRef<unsigned> axes) {
  SmallVector<DimAttr> dims;
  for (unsigned axis : axes)
    dims.push_back(s.boundDim(axis));
  return dims;
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
    number = s.mul(number, s.size(axis));
    number = s.add(number,
                   CoordValueOp::create(s.builder, s.loc, s.builder.getIndexType(), s.own(axis)));
  }
  return number;
}

SmallVector<SmallVector<int64_t>> ctran::groupsAlong(ScheduleBuilder &s, ArrayRef<unsigned> axes) {
  int64_t ranks = s.program.getNumRanks(), n = 1;
  for (unsigned axis : axes)
    n *= s.size(axis);
  SmallVector<SmallVector<int64_t>> groups;
  llvm::SmallDenseMap<int64_t, int64_t> numbers; // by the rank of a group's first member
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t first = rank, member = 0;
    for (unsigned axis : axes) {
      int64_t stride = 1;
      for (unsigned inner = axis + 1; inner < s.program.getGrid().size(); ++inner)
        stride *= s.size(inner);
      int64_t at = rank / stride % s.size(axis);
      member = member * s.size(axis) + at;
      first -= at * stride;
    }
    auto [it, isNew] = numbers.try_emplace(first, groups.size());
    if (isNew)
      groups.emplace_back(n);
    groups[it->second][member] = rank;
  }
  return groups;
}

SmallVector<Value> ctran::joined(ValueRange a, ValueRange b) {
  SmallVector<Value> out(a);
  for (Value v : b)
    if (!llvm::is_contained(out, v))
      out.push_back(v);
  return out;
}

Views ctran::makeViews(ScheduleBuilder &s, const CollectiveSpec &c, bool byNumber) {
  const ncclx::Dataflow &flow = c.flow;
  bool listed = !c.groups.empty();
  auto cut = [&](Value window, MemRefType type, int64_t dim) {
    int64_t n = c.groupSize(s), rows = type.getDimSize(dim);
    if (listed)
      return s.reindex(window, dim,
                       DimAttr::get(s.builder.getContext(), "", n, Cut::Chunked,
                                    std::max<int64_t>(1, llvm::divideCeil(rows, n))));
    return s.reindex(window, dim, chunkDims(s, c.axes, rows));
  };
  auto shard = [&](Value window, MemRefType whole, int64_t dim) {
    if (listed)
      return window;
    int64_t extent = whole.getDimSize(dim);
    return s.reindex(window, dim, chunkDims(s, c.axes, extent), /*resident=*/true, extent);
  };
  if (flow.inCut && flow.outCut)
    return {cut(c.in, c.inType, *flow.inCut), cut(c.out, c.outType, *flow.outCut)};
  if (flow.outCut)
    return {shard(c.in, c.outType, *flow.outCut), cut(c.out, c.outType, *flow.outCut)};
  if (flow.inCut)
    return {cut(c.in, c.inType, *flow.inCut), shard(c.out, c.inType, *flow.inCut)};
  if (!flow.combines || flow.route != ncclx::Dataflow::Route::All)
    return {c.in, c.out};
  SmallVector<DimAttr> dims;
  if (byNumber || listed)
    dims.push_back(s.freeDim(c.groupSize(s), flatGranule(c.inType)));
  else
    for (unsigned axis : c.axes)
      dims.push_back(s.boundDim(axis, Cut::Balanced, flatGranule(c.inType)));
  Value in = s.reindex(c.in, std::nullopt, dims);
  return {in, c.in == c.out ? in : s.reindex(c.out, std::nullopt, dims)};
}

/// Whether the views of `c` have the group's dimensions.
static bool areCut(const CollectiveSpec &c) {
  return c.flow.inCut || c.flow.outCut ||
         (c.flow.combines && c.flow.route == ncclx::Dataflow::Route::All);
}

Value ctran::inputBox(ScheduleBuilder &s, const CollectiveSpec &c, Value view, const Point &to,
                      Value size) {
  if (!areCut(c))
    return s.range(view);
  bool shard = c.flow.outCut && !c.flow.inCut;
  return s.range(view, shard ? ownPoint(s, c.axes) : pointOf(s, c.axes, to), size);
}

Value ctran::outputBox(ScheduleBuilder &s, const CollectiveSpec &c, Value view, const Point &at,
                       Value size) {
  if (!areCut(c))
    return s.range(view);
  return s.range(view, c.flow.outCut ? ownPoint(s, c.axes) : pointOf(s, c.axes, at), size);
}

Value ctran::demandExchanged(ScheduleBuilder &s, const CollectiveSpec &c, Value out,
                             ValueRange ready) {
  if (!c.flow.inCut)
    return s.sink(s.range(out), c.name, {}, {}, ready);
  auto holds = [&](const Point &from, Value before) {
    SmallVector<Value> at = pointOf(s, c.axes, from), label = at;
    llvm::append_range(label, ownPoint(s, c.axes));
    return s.sink(s.range(out, at), c.name, label, {}, joined(ready, before));
  };
  Value peers = s.forEachPeer(c.axes, ready.front(),
                              [&](const Point &p, Value before) { return holds(p, before); });
  return holds(Point(), peers);
}

Value ctran::slotWindow(ScheduleBuilder &s, const CollectiveSpec &c, StringRef name, int64_t slots,
                        int64_t capacity) {
  Value window = s.scratch((c.name + "." + name).str(),
                           MemRefType::get({slots * capacity}, c.inType.getElementType()));
  return s.reindex(window, std::nullopt, s.freeDim(slots, std::max<int64_t>(1, capacity)));
}

Value ctran::memberWindow(ScheduleBuilder &s, const CollectiveSpec &c, int64_t capacity,
                          int64_t generations, StringRef number) {
  // Of packets, every piece starts on 64 bytes, so that one of 128 bytes with its flags does.
  int64_t line =
      s.carrier.oneKernel ? 64 / llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8) : 1;
  capacity = llvm::alignTo(std::max<int64_t>(1, capacity), line);
  int64_t granule = capacity;
  Value window = s.scratch((c.name + ".parts" + number).str(),
                           MemRefType::get({c.groupSize(s) * capacity}, c.inType.getElementType()),
                           generations);
  // An outer dimension cuts at multiples of what its inner ones hold together.
  SmallVector<DimAttr> dims;
  for (unsigned axis : llvm::reverse(c.axes)) {
    dims.push_back(s.boundDim(axis, Cut::Balanced, granule));
    granule *= s.size(axis);
  }
  std::reverse(dims.begin(), dims.end());
  if (!c.groups.empty())
    dims.push_back(s.freeDim(c.groupSize(s), capacity));
  return s.reindex(window, std::nullopt, dims);
}

int64_t ctran::capacityOf(ScheduleBuilder &s, const CollectiveSpec &c) {
  int64_t members = c.groupSize(s);
  if (c.flow.inCut)
    return pieceCapacity(c.inType, *c.flow.inCut, members, 1);
  if (c.flow.outCut)
    return pieceCapacity(c.outType, *c.flow.outCut, members, 1);
  if (areCut(c))
    return pieceCapacity(c.inType, std::nullopt, members, flatGranule(c.inType));
  return c.inType.getNumElements();
}

bool ctran::prescale(ScheduleBuilder &s, CollectiveSpec &c, Views &views, Value &start,
                     bool byNumber) {
  if (!c.combination.scale)
    return false;
  Combination scaled = {c.combination.kind, c.combination.accumulate, c.combination.scale};
  bool inPlace = c.in == c.out;
  Value in = views.in;
  c.in = s.scratch(c.name + ".scaled", c.inType);
  views.in = makeViews(s, c, byNumber).in;
  start = s.reduce(scaled, s.range(in), s.range(views.in), start, "scale");
  if (inPlace)
    c.outFree = joined(c.outFree, start);
  c.combination.scale = std::nullopt;
  return true;
}

//===--- members by number ------------------------------------------------------------------===//

Members::Members(ScheduleBuilder &s, ArrayRef<unsigned> axes) : s(s), axes(axes), n(1) {
  for (unsigned axis : axes)
    n *= s.size(axis);
  me = memberNumber(s, axes);
}

Members::Members(ScheduleBuilder &s, const CollectiveSpec &c) : Members(s, c.axes) {
  groups = c.groups;
  if (groups.empty())
    return;
  n = c.groupSize(s);
  Places p(s, groups);
  me = p.number([&](int64_t rank) { return p.place[rank]; });
}

Value Members::partner(ArrayRef<std::pair<int64_t, int64_t>> pairs) {
  Value result = s.constant(-1);
  for (auto [first, second] : pairs)
    result = arith::SelectOp::create(s.builder, s.loc, s.equal(me, s.constant(first)),
                                     s.constant(second), result);
  return result;
}

SmallVector<Value> Members::point(Value member) {
  if (!groups.empty())
    return {member};
  SmallVector<Value> at(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    at[i] = s.rem(member, s.size(axes[i]));
    member = s.div(member, s.size(axes[i]));
  }
  return at;
}

Value Members::rank(Value member) {
  if (!groups.empty()) {
    Places p(s, groups);
    int64_t number = *constantOf(member);
    return p.number([&](int64_t rank) { return p.groups[p.group[rank]][number]; });
  }
  SmallVector<Value> coordinates = point(member);
  Value rank = s.constant(0);
  for (unsigned axis = 0, e = s.program.getGrid().size(); axis != e; ++axis) {
    auto listed = llvm::find(axes, axis);
    Value c = listed == axes.end()
                  ? CoordValueOp::create(s.builder, s.loc, s.builder.getIndexType(), s.own(axis))
                        .getResult()
                  : coordinates[listed - axes.begin()];
    rank = s.add(s.mul(rank, s.size(axis)), c);
  }
  return rank;
}

Value Members::ahead(Value by) {
  if (groups.empty())
    return rank(plus(me, s.add(by, n)));
  return Places(s, groups).ahead(*constantOf(by));
}

Value Members::atRank(Value memory, Value rank) {
  return PeerViewOp::create(s.builder, s.loc, memory.getType(), memory, ValueRange(), rank);
}

Value Members::plus(Value member, Value by) { return s.rem(s.add(member, by), n); }
Value Members::minus(Value member, Value by) { return s.rem(s.sub(s.add(member, n), by), n); }

//===--- members round and round ------------------------------------------------------------===//

Cycle::Cycle(ScheduleBuilder &s, const CollectiveSpec &c) : s(s), c(c), n(c.groupSize(s)) {
  if (!c.groups.empty())
    listed = std::make_unique<ListedEnds>(s, c);
  else if (c.axes.size() > 1)
    numbers.emplace(s, c.axes);
  flat = numbers && c.flow.combines && !c.flow.inCut;
}

Cycle::~Cycle() = default;

SmallVector<Value> Cycle::own() {
  if (listed)
    return {listed->ownPlace()};
  return flat ? SmallVector<Value>{numbers->own()} : ownPoint(s, c.axes);
}

SmallVector<Value> Cycle::place(Value by) {
  if (listed)
    return {s.rem(s.add(s.add(listed->ownPlace(), by), n), n)};
  if (!numbers)
    return {s.shift(s.own(c.axes.front()), by)};
  Value number = numbers->plus(numbers->own(), s.add(by, n));
  return flat ? SmallVector<Value>{number} : numbers->point(number);
}

Cycle::Member Cycle::member(Value by) {
  Member result{place(by), Value()};
  if (listed)
    result.rank = listed->p.ahead(*constantOf(by));
  else if (numbers)
    result.rank = numbers->ahead(by);
  return result;
}

Value Cycle::at(Value memory, const Member &member) {
  if (member.rank)
    return PeerViewOp::create(s.builder, s.loc, memory.getType(), memory, ValueRange(),
                              member.rank);
  Point point;
  point[c.axes.front()] = member.place.front();
  return s.at(memory, point);
}

Views Cycle::views() { return makeViews(s, c, numbers.has_value()); }

Value Cycle::withOwnShard(Value view, llvm::function_ref<Value(Value)> write,
                          llvm::function_ref<Value()> otherwise) {
  return listed ? listed->withOwnShard(view, write, otherwise) : write(s.range(view, own()));
}

// Who has no shard brings nothing: a box of its output that has no rows.
Value Cycle::keepOwn(const Views &v, ValueRange after) {
  Value to = s.range(v.out, own());
  auto copy = [&](Value from) {
    return s.copy(from, to, Value(), after, s.controlLane(), "keep own");
  };
  return withOwnShard(v.in, copy, [&] { return copy(to); });
}

Value Cycle::copyOwn(const Views &v, Value to, ValueRange after) {
  auto copy = [&](Value own) { return s.copy(own, to, Value(), after, s.controlLane(), "own"); };
  return withOwnShard(v.in, copy, [&] { return copy(s.range(v.out, own())); });
}

SmallVector<Value> Cycle::fillPadding(ValueRange outFree) {
  return listed ? listed->fillPadding(outFree) : SmallVector<Value>(outFree);
}

bool Cycle::prescale(CollectiveSpec &c, Views &views, Value &start) {
  return ctran::prescale(s, c, views, start, numbers.has_value());
}

Value Cycle::say(Value in, ValueRange after) {
  if (listed)
    return listed->say(in, after);
  if (c.flow.combines)
    return s.source(s.range(in), c.name, {}, c.axes, after);
  if (c.flow.route == ncclx::Dataflow::Route::Listed)
    return s.source(s.range(in), c.name,
                    numbers ? numbers->point(numbers->own()) : ownPoint(s, c.axes), {}, after,
                    shared());
  return s.source(c.flow.inCut ? s.range(in) : s.range(in, own()), c.name, own(), {}, after);
}

Value Cycle::demand(Value out, ValueRange ready) {
  if (listed)
    return listed->demand(out, ready);
  if (c.flow.route == ncclx::Dataflow::Route::Listed)
    return s.sink(s.range(out), c.name, place(s.constant(-(c.shift % n))), {}, ready, shared());
  if (!c.flow.combines)
    return demandExchanged(s, c, out, ready);
  if (!c.flow.inCut)
    return s.sink(s.range(out), c.name, {}, c.axes, ready);
  return s.sink(s.range(out, own()), c.name, own(), c.axes, ready);
}
