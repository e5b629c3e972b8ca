//===- Counts.cpp - all_to_all_v by a matrix of counts ---------------------------------------===//
//
// How many rows go from each to each, and where they stand, are tables by coordinate, one for each
// distance: the counts are data, and the text grows with them. Ranks differ, so the proof is of all
// ranks, row by row (or by the largest number of rows that divides all counts).
//
//===------------------------------------------------------------------------------------------===//
#include "Algorithms.h"

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
  unsigned axis = c.axes.front();
  int64_t n = s.size(axis), dim = *c.flow.inCut;
  Counts counts(c.flow.counts, n);
  // One place more than there are, which is empty: so no interval is the whole dimension, which
  // would be another box.
  auto view = [&](Value window, MemRefType type) {
    int64_t places = llvm::divideCeil(type.getDimSize(dim), counts.unit) + 1;
    return s.reindex(window, dim,
                     DimAttr::get(s.builder.getContext(), "", places, Cut::Chunked, counts.unit));
  };
  Value in = view(c.in, c.inType), out = view(c.out, c.outType);
  // A number that depends on the own member x and, through it, on the one that is `by` further on.
  auto table = [s, axis, n](int64_t by,
                            llvm::function_ref<int64_t(int64_t x, int64_t other)> f) mutable {
    SmallVector<int64_t> values;
    for (int64_t x = 0; x < n; ++x)
      values.push_back(f(x, (x + by + n) % n));
    return TableOp::create(s.builder, s.loc, s.builder.getIndexType(), s.own(axis),
                           s.builder.getDenseI64ArrayAttr(values))
        .getResult();
  };
  auto sent = [&](int64_t by) {
    return s.interval(in, table(by, [&](int64_t x, int64_t to) { return counts.sentFrom(x, to); }),
                      table(by, [&](int64_t x, int64_t to) { return counts.rows(x, to); }));
  };
  auto landing = [&](Value memory, int64_t by) {
    return s.interval(memory,
                      table(by, [&](int64_t x, int64_t to) { return counts.landsAt(x, to); }),
                      table(by, [&](int64_t x, int64_t to) { return counts.rows(x, to); }));
  };
  // What nobody sends is zero.
  SmallVector<Value> outFree = c.outFree;
  bool full = true;
  for (int64_t to = 0; to < n; ++to)
    full &= counts.received(to) == c.outType.getDimSize(dim);
  if (!full)
    outFree = {c.zero(s, c.outFree)};
  Value rtr = s.slots(c.name + ".ready", s.boundDim(axis), 1);
  Value data = s.slots(c.name + ".data", s.boundDim(axis), 1);
  Members members(s, c.axes);
  Value start = s.source(s.range(in), c.name, members.point(members.own()), {}, c.inReady, c.axes);
  InFlight flight;
  flight.others.push_back(s.forEachPeer(c.axes, outFree.front(), [&](const Point &peer, Value) {
    return s.ready(s.slot(s.at(rtr, peer), s.own(axis)), outFree, "ready");
  }));
  Value last = start;
  for (int64_t by = 1; by < n; ++by) {
    Point to = s.neighbour(axis, by);
    Value granted = s.awaitReady(s.slot(rtr, to[axis]), s.constant(1), last, "await ready");
    last = s.put(sent(by), landing(s.at(out, to), by), s.slot(s.at(data, to), s.own(axis)),
                 {start, granted}, "put");
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
  flight.finish = [s, c, n, counts, table, out, data, kept]() mutable -> SmallVector<Value> {
    SmallVector<Value> ready{kept};
    ready.push_back(s.forEachPeer(c.axes, kept, [&](const Point &peer, Value before) {
      return s.arrive(s.slot(data, pointOf(s, c.axes, peer)), s.constant(1), before, "await data");
    }));
    Members members(s, c.axes);
    Value held = ready.back();
    for (int64_t by = 0; by < n; ++by) {
      // From the member that is `by` further back.
      auto at = [&](auto f) {
        return table(-by, [&](int64_t x, int64_t from) { return f(from, x); });
      };
      Value begin = at([&](int64_t from, int64_t to) { return counts.sentFrom(from, to); });
      Value place = at([&](int64_t from, int64_t to) { return counts.landsAt(from, to); });
      Value rows = at([&](int64_t from, int64_t to) { return counts.rows(from, to); });
      Value from = members.minus(members.own(), s.constant(by));
      int64_t most = 0;
      for (int64_t x = 0; x < n; ++x)
        most = std::max(most, counts.rows(x, (x + by) % n));
      held = s.loop(0, most, held, [&](Value row, Value before) {
        return s.branch(
            s.less(row, rows),
            [&] {
              SmallVector<Value> label = members.point(from);
              label.push_back(s.add(begin, row));
              SmallVector<Value> after(ready);
              after.push_back(before);
              return s.sink(s.range(out, s.add(place, row)), c.name, label, {}, after, c.axes);
            },
            [&] { return before; });
      });
    }
    ready.push_back(held);
    return ready;
  };
  return flight;
}
