//===- Counts.cpp - all_to_all_v by a matrix of counts ---------------------------------------===//
#include "Counts.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ctran;

/// Units of a buffer that a proof takes in its stride.
static constexpr int64_t fewUnits = 1024;

CountedBlocks::CountedBlocks(ScheduleBuilder &s, const CollectiveSpec &c, bool cutFurther)
    : s(s), c(c), groups(c.groups.empty() ? groupsAlong(s, c.axes) : c.groups),
      places(this->s, groups), n(int64_t(groups.front().size())), dim(*c.flow.inCut),
      counts(c.flow.counts.getValues<int64_t>()) {
  for (int64_t count : counts)
    unit = std::gcd(unit, count);
  unit = std::max<int64_t>(1, unit);
  if (cutFurther) {
    int64_t most = std::max(c.inType.getDimSize(dim), c.outType.getDimSize(dim));
    int64_t pieces = 1;
    for (int64_t more = 2; more <= fewUnits && more * (most / unit) <= fewUnits; ++more)
      if (unit % more == 0)
        pieces = more;
    unit /= pieces;
  }
  for (int64_t to = 0; to < n; ++to)
    full &= landsAt(n, to) * unit == c.outType.getDimSize(dim);
  // One place more than there are, which is empty: so no interval is the whole dimension, which
  // would be another box.
  auto view = [&](Value window, MemRefType type) {
    return this->s.reindex(
        window, dim,
        DimAttr::get(s.builder.getContext(), "", unitsOf(type) + 1, Cut::Chunked, unit));
  };
  in = view(c.in, c.inType);
  out = view(c.out, c.outType);
}

int64_t CountedBlocks::sentFrom(int64_t from, int64_t to) const {
  int64_t place = 0;
  for (int64_t j = 0; j < to; ++j)
    place += rows(from, j);
  return place;
}

int64_t CountedBlocks::landsAt(int64_t from, int64_t to) const {
  int64_t place = 0;
  for (int64_t i = 0; i < from; ++i)
    place += rows(i, to);
  return place;
}

int64_t CountedBlocks::unitElements() const {
  int64_t elements = unit;
  for (auto [i, size] : llvm::enumerate(c.inType.getShape()))
    if (int64_t(i) != dim)
      elements *= size;
  return elements;
}

Value CountedBlocks::table(int64_t by, llvm::function_ref<int64_t(int64_t x, int64_t other)> f) {
  return places.number([&](int64_t rank) {
    int64_t own = places.place[rank];
    return f(own, (own + by + n) % n);
  });
}

Value CountedBlocks::rankOf(int64_t by) {
  if (!c.groups.empty())
    return places.number([&](int64_t rank) { return places.further(rank, by); });
  Members members(s, c.axes);
  return members.rank(members.plus(members.own(), s.constant((by + n) % n)));
}

std::function<Value(Value)> CountedBlocks::viewsAt(int64_t by) {
  if (c.groups.empty() && c.axes.size() == 1)
    return [this, peer = s.neighbour(c.axes.front(), (by + n) % n)](Value memory) {
      return s.at(memory, peer);
    };
  return [this, peer = rankOf(by)](Value memory) { return places.at(memory, peer); };
}

Value CountedBlocks::sent(int64_t by) {
  return s.interval(in, table(by, [&](int64_t x, int64_t to) { return sentFrom(x, to); }),
                    table(by, [&](int64_t x, int64_t to) { return rows(x, to); }));
}

Value CountedBlocks::landing(Value memory, int64_t by) {
  return s.interval(memory, table(by, [&](int64_t x, int64_t to) { return landsAt(x, to); }),
                    table(by, [&](int64_t x, int64_t to) { return rows(x, to); }));
}

void CountedBlocks::start() {
  // What nobody sends is zero.
  outFree = full ? c.outFree : SmallVector<Value>{c.zero(s, c.outFree)};
  given = s.source(s.range(in), c.name, rankOf(0), {}, c.inReady, places.axes);
}

Value CountedBlocks::keepOwn(ScheduleBuilder &keeper) {
  Value kept = keeper.copy(sent(0), landing(out, 0), Value(), joined(given, outFree),
                           keeper.controlLane(), "keep own");
  if (!full)
    return kept;
  // The place more is the output's, too: who takes the whole finds all of it written.
  return keeper.copy(s.range(in, s.constant(unitsOf(c.inType))),
                     s.range(out, s.constant(unitsOf(c.outType))), Value(), kept,
                     keeper.controlLane(), "nothing");
}

Value CountedBlocks::demand(ValueRange ready) {
  Value held = ready.back();
  for (int64_t by = 0; by < n; ++by) {
    // From the member that is `by` further back.
    auto at = [&](auto f) {
      return table(-by, [&](int64_t x, int64_t from) { return f(from, x); });
    };
    Value begin = at([&](int64_t from, int64_t to) { return sentFrom(from, to); });
    Value place = at([&](int64_t from, int64_t to) { return landsAt(from, to); });
    Value size = at([&](int64_t from, int64_t to) { return rows(from, to); });
    Value from = rankOf(-by);
    int64_t most = 0;
    for (int64_t x = 0; x < n; ++x)
      most = std::max(most, rows(x, (x + by) % n));
    held = s.loop(0, most, held, [&](Value row, Value before) {
      return s.branch(
          s.less(row, size),
          [&] {
            SmallVector<Value> after(ready);
            after.push_back(before);
            return s.sink(s.range(out, s.add(place, row)), c.name, {from, s.add(begin, row)}, {},
                          after, places.axes);
          },
          [&] { return before; });
    });
  }
  return held;
}

InFlight ctran::directCounts(ScheduleBuilder &s, const CollectiveSpec &c) {
  auto blocks = std::make_shared<CountedBlocks>(s, c, /*cutFurther=*/false);
  int64_t n = blocks->size();
  DimAttr distances = s.freeDim(n);
  Value rtr = s.slots(c.name + ".ready", distances, 1);
  Value data = s.slots(c.name + ".data", distances, 1);
  blocks->start();
  InFlight flight;
  for (int64_t by = 1; by < n; ++by)
    flight.others.push_back(
        s.ready(s.slot(blocks->viewsAt(-by)(rtr), s.constant(by)), blocks->outFree, "ready"));
  Value last = blocks->given;
  for (int64_t by = 1; by < n; ++by) {
    Value granted = s.awaitReady(s.slot(rtr, s.constant(by)), s.constant(1), last, "await ready");
    auto at = blocks->viewsAt(by);
    last = s.put(blocks->sent(by), blocks->landing(at(blocks->out), by),
                 s.slot(at(data), s.constant(by)), {blocks->given, granted}, "put");
    flight.inFree.push_back(last);
  }
  Value kept = blocks->keepOwn(s);
  flight.inFree.push_back(kept);
  flight.finish = [s, n, blocks, data, kept]() mutable -> SmallVector<Value> {
    SmallVector<Value> ready{kept};
    for (int64_t by = 1; by < n; ++by)
      ready.push_back(
          s.arrive(s.slot(data, s.constant(by)), s.constant(1), ready.back(), "await data"));
    ready.push_back(blocks->demand(ready));
    return ready;
  };
  return flight;
}
