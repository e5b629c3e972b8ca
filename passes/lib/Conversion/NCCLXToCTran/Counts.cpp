//===- Counts.cpp - all_to_all_v by a matrix of counts ---------------------------------------===//
//
// How many rows go from each to each, and where they stand, are tables by the own rank, one for
// each distance: the counts are data, and the text grows with them. Ranks differ, so the proof is
// of all ranks, row by row (or by the largest number of rows that divides all counts).
//
//===------------------------------------------------------------------------------------------===//
#include "Places.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ctran;

namespace {

/// The matrix, in units of rows that divide all of it.
class Counts {
public:
  Counts(DenseIntElementsAttr attr, int64_t n) : n(n), counts(attr.getValues<int64_t>()) {
    for (int64_t count : counts)
      unit = std::gcd(unit, count);
    unit = std::max<int64_t>(1, unit);
  }
  int64_t unit = 0;
  int64_t rows(int64_t from, int64_t to) const { return counts[from * n + to] / unit; }
  /// Where the rows stand in the sender's input and in the receiver's output.
  int64_t sentFrom(int64_t from, int64_t to) const {
    int64_t place = 0;
    for (int64_t j = 0; j < to; ++j)
      place += rows(from, j);
    return place;
  }
  int64_t received(int64_t to) const { return landsAt(n, to) * unit; }
  int64_t landsAt(int64_t from, int64_t to) const {
    int64_t place = 0;
    for (int64_t i = 0; i < from; ++i)
      place += rows(i, to);
    return place;
  }

private:
  int64_t n;
  SmallVector<int64_t> counts;
};

} // namespace

InFlight ctran::directCounts(ScheduleBuilder &s, const CollectiveSpec &c) {
  int64_t dim = *c.flow.inCut;
  auto groups = c.groups.empty() ? groupsAlong(s, c.axes) : c.groups;
  int64_t n = groups.front().size();
  Counts counts(c.flow.counts, n);
  // One place more than there are, which is empty: so no interval is the whole dimension, which
  // would be another box.
  auto view = [&](Value window, MemRefType type) {
    int64_t places = llvm::divideCeil(type.getDimSize(dim), counts.unit) + 1;
    return s.reindex(window, dim,
                     DimAttr::get(s.builder.getContext(), "", places, Cut::Chunked, counts.unit));
  };
  Value in = view(c.in, c.inType), out = view(c.out, c.outType);
  // A number that depends on the own member and, through it, on the one that is `by` further on.
  auto table = [n](const Places &p, int64_t by,
                   llvm::function_ref<int64_t(int64_t own, int64_t other)> f) {
    return p.number([&](int64_t rank) {
      int64_t own = p.place[rank];
      return f(own, (own + by + n) % n);
    });
  };
  auto rankOf = [c, n](const Places &p, int64_t by) {
    if (!c.groups.empty())
      return p.number([&](int64_t rank) { return p.further(rank, by); });
    Members members(p.s, c.axes);
    return members.rank(members.plus(members.own(), p.s.constant((by + n) % n)));
  };
  Places p(s, groups);
  // Views of several memories at the member that is `by` further on: along one axis, by a shift.
  auto viewsAt = [&](int64_t by) -> std::function<Value(Value memory)> {
    if (c.axes.size() == 1)
      return
          [&s, peer = s.neighbour(c.axes.front(), by)](Value memory) { return s.at(memory, peer); };
    return [&p, peer = rankOf(p, by)](Value memory) { return p.at(memory, peer); };
  };
  auto sent = [&](int64_t by) {
    return s.interval(in,
                      table(p, by, [&](int64_t x, int64_t to) { return counts.sentFrom(x, to); }),
                      table(p, by, [&](int64_t x, int64_t to) { return counts.rows(x, to); }));
  };
  auto landing = [&](Value memory, int64_t by) {
    return s.interval(memory,
                      table(p, by, [&](int64_t x, int64_t to) { return counts.landsAt(x, to); }),
                      table(p, by, [&](int64_t x, int64_t to) { return counts.rows(x, to); }));
  };
  // What nobody sends is zero.
  SmallVector<Value> outFree = c.outFree;
  bool full = true;
  for (int64_t to = 0; to < n; ++to)
    full &= counts.received(to) == c.outType.getDimSize(dim);
  if (!full)
    outFree = {c.zero(s, c.outFree)};
  DimAttr distances = s.freeDim(n);
  Value rtr = s.slots(c.name + ".ready", distances, 1);
  Value data = s.slots(c.name + ".data", distances, 1);
  Value start = s.source(s.range(in), c.name, rankOf(p, 0), {}, c.inReady, p.axes);
  InFlight flight;
  for (int64_t by = 1; by < n; ++by)
    flight.others.push_back(s.ready(s.slot(viewsAt(-by)(rtr), s.constant(by)), outFree, "ready"));
  Value last = start;
  for (int64_t by = 1; by < n; ++by) {
    Value granted = s.awaitReady(s.slot(rtr, s.constant(by)), s.constant(1), last, "await ready");
    auto at = viewsAt(by);
    last = s.put(sent(by), landing(at(out), by), s.slot(at(data), s.constant(by)), {start, granted},
                 "put");
    flight.inFree.push_back(last);
  }
  Value kept = s.copy(sent(0), landing(out, 0), Value(), joined(start, outFree), s.controlLane(),
                      "keep own");
  flight.inFree.push_back(kept);
  // The place more is the output's, too: who takes the whole finds all of it written.
  if (full) {
    auto nothing = [&](Value view, MemRefType type) {
      int64_t places = llvm::divideCeil(type.getDimSize(dim), counts.unit);
      return s.range(view, s.constant(places));
    };
    kept = s.copy(nothing(in, c.inType), nothing(out, c.outType), Value(), kept, s.controlLane(),
                  "nothing");
  }
  flight.finish = [s, c, groups, counts, table, rankOf, n, out, data,
                   kept]() mutable -> SmallVector<Value> {
    Places p(s, groups);
    SmallVector<Value> ready{kept};
    for (int64_t by = 1; by < n; ++by)
      ready.push_back(
          s.arrive(s.slot(data, s.constant(by)), s.constant(1), ready.back(), "await data"));
    Value held = ready.back();
    for (int64_t by = 0; by < n; ++by) {
      // From the member that is `by` further back.
      auto at = [&](auto f) {
        return table(p, -by, [&](int64_t x, int64_t from) { return f(from, x); });
      };
      Value begin = at([&](int64_t from, int64_t to) { return counts.sentFrom(from, to); });
      Value place = at([&](int64_t from, int64_t to) { return counts.landsAt(from, to); });
      Value rows = at([&](int64_t from, int64_t to) { return counts.rows(from, to); });
      Value from = rankOf(p, -by);
      int64_t most = 0;
      for (int64_t x = 0; x < n; ++x)
        most = std::max(most, counts.rows(x, (x + by) % n));
      held = s.loop(0, most, held, [&](Value row, Value before) {
        return s.branch(
            s.less(row, rows),
            [&] {
              SmallVector<Value> after(ready);
              after.push_back(before);
              return s.sink(s.range(out, s.add(place, row)), c.name, {from, s.add(begin, row)}, {},
                            after, p.axes);
            },
            [&] { return before; });
      });
    }
    ready.push_back(held);
    return ready;
  };
  return flight;
}
