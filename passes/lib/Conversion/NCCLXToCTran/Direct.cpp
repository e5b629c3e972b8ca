//===- Direct.cpp - Every member sends to every other in one step ------------------===//
//
// Schedules (a) and (e) of the ctran reference: a ready token from each receiver, one put to each,
// one wait for each. all_gather, all_to_all and permute are one exchange; reduce_scatter is an
// exchange into scratch and one reduction in member order; all_reduce is both, one after the other
// (two-shot).
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {

/// What moves in an exchange: the box of the own input that a member gets, and the box of that
/// member's output in which it arrives. Where sizes are known at run time only, of both the size
/// given.
struct Boxes {
  std::function<Value(const Point &peer, Value size)> source;
  std::function<Value(Value view, Value size)> dest; ///< in the view of its memory
  Value out;                                         ///< the view that members write
  bool keepsOwn = true;                              ///< the own piece is copied, too
  /// Reads the size of what a member gets: it, and its token. Null: all of the box.
  std::function<std::pair<Value, Value>(const Point &peer, ValueRange after)> size = nullptr;
};

/// An exchange of which only the arrivals are still to be awaited.
struct Exchange {
  SmallVector<unsigned> axes;
  Value data; ///< one slot for each member's piece
  bool keepsOwn;
  SmallVector<Value> sent; ///< the input has been read
  Value told;              ///< the last ready token has been sent
};

Exchange exchange(ScheduleBuilder &s, StringRef name, ArrayRef<unsigned> axes, const Boxes &boxes,
                  ValueRange inReady, ValueRange outFree) {
  SmallVector<DimAttr> dims = boundDims(s, axes);
  Value rtr = s.slots((name + ".ready").str(), dims, 1);
  Value data = s.slots((name + ".data").str(), dims, 1);
  Exchange e{SmallVector<unsigned>(axes), data, boxes.keepsOwn, {}, Value()};

  auto sizeFor = [&](const Point &peer, SmallVector<Value> &after) {
    if (!boxes.size)
      return Value();
    auto [size, read] = boxes.size(peer, inReady);
    after.push_back(read);
    return size;
  };
  // A loop's token covers its last iteration, and so the earlier ones on the same lane (S13).
  e.told = s.forEachPeer(axes, outFree.front(), [&](const Point &peer, Value) {
    return s.ready(s.slot(s.at(rtr, peer), ownPoint(s, axes)), outFree, "ready");
  });
  // Nothing orders copies to different peers, so they may be under way together.
  e.sent = s.forEachPeerInTurn(axes, inReady.front(), [&](const Point &peer, Value) {
    SmallVector<Value> after(inReady);
    after.push_back(
        s.awaitReady(s.slot(rtr, pointOf(s, axes, peer)), s.constant(1), {}, "await ready"));
    Value size = sizeFor(peer, after);
    return s.put(boxes.source(peer, size), boxes.dest(s.at(boxes.out, peer), size),
                 s.slot(s.at(data, peer), ownPoint(s, axes)), after, "put");
  });
  // The own piece last, as no peer waits for it. It raises a slot like any other, so that whoever
  // waits for a piece need not know whose it is.
  if (boxes.keepsOwn) {
    SmallVector<Value> after = joined(inReady, outFree);
    Value size = sizeFor(Point(), after);
    e.sent.push_back(s.onLane(s.carrier.lanes > 1 ? s.carrier.lanes : 0, [&] {
      Value kept = s.copy(boxes.source(Point(), size), boxes.dest(boxes.out, size), Value(), after,
                          s.controlLane(), "keep own");
      return s.signal(s.slot(data, ownPoint(s, axes)), kept, s.controlLane(), "kept own");
    }));
  }
  return e;
}

/// Waits for every piece.
Value arriveAll(ScheduleBuilder &s, const Exchange &e, Value start) {
  if (e.keepsOwn)
    return s.arrive(s.slotInterval(e.data, s.size(e.axes.front())), s.constant(1), {},
                    "await data");
  return s.forEachPeer(e.axes, start, [&](const Point &peer, Value) {
    return s.arrive(s.slot(e.data, pointOf(s, e.axes, peer)), s.constant(1), {}, "await data");
  });
}

/// Reduces every member's piece for this rank into `dest`: an exchange into scratch, then one
/// reduction in member order.
Value reduceScatter(ScheduleBuilder &s, const CollectiveSpec &c, Value in, Value dest,
                    int64_t capacity, Value start, InFlight &flight) {
  Value parts = memberWindow(s, c, capacity);
  Boxes boxes{[&](const Point &peer, Value) { return s.range(in, pointOf(s, c.axes, peer)); },
              [&](Value view, Value) { return s.range(view, ownPoint(s, c.axes)); }, parts};
  // Nobody but this collective touches the scratch: it is free when a run starts.
  Value entry = s.program.getEntry();
  Exchange e = exchange(s, c.name + ".rs", c.axes, boxes, start, entry);
  Value here = arriveAll(s, e, start);
  flight.inFree = e.sent;
  flight.others.push_back(e.told);
  return s.reduce(c.combination, s.interval(parts, s.size(c.axes.front())), dest,
                  joined(here, c.outFree), "reduce");
}

} // namespace

Value ctran::emitBarrier(ScheduleBuilder &s, StringRef name, ArrayRef<unsigned> axes,
                         ValueRange before) {
  Value here = s.slots(name, boundDims(s, axes), 1);
  Value told = s.forEachPeer(axes, before.front(), [&](const Point &peer, Value) {
    return s.signal(s.slot(s.at(here, peer), ownPoint(s, axes)), before, s.controlLane(), "here");
  });
  return s.forEachPeer(axes, told, [&](const Point &peer, Value last) {
    return s.wait(s.slot(here, pointOf(s, axes, peer)), s.constant(1), joined(told, last),
                  s.controlLane(), "await all");
  });
}

/// all_gather, all_to_all, and all_to_all_v with sizes: one exchange, straight into the outputs.
static InFlight directExchange(ScheduleBuilder &s, const CollectiveSpec &c, const Views &v) {
  bool shard = !c.flow.inCut;
  SmallVector<Value> own = ownPoint(s, c.axes);
  Value start = s.source(shard ? s.range(v.in, own) : s.range(v.in), c.name, own, {}, c.inReady);
  Boxes boxes{[&](const Point &peer, Value size) { return inputBox(s, c, v.in, peer, size); },
              [&](Value view, Value size) { return outputBox(s, c, view, Point(), size); }, v.out};
  SmallVector<Value> outFree = c.outFree;
  if (c.flow.sized) {
    int64_t members = c.groupSize(s), most = c.inType.getDimSize(*c.flow.inCut) / members;
    Value sizes = s.reindex(c.sizes, 0, chunkDims(s, c.axes, members));
    boxes.size = [&s, &c, sizes, most](const Point &peer, ValueRange after) {
      return s.count(s.range(sizes, pointOf(s, c.axes, peer)), most, after, "size");
    };
    outFree = {c.zero(s, c.outFree)}; // what nobody sends
  }
  Exchange e = exchange(s, c.name, c.axes, boxes, start, outFree);
  InFlight flight;
  flight.inFree = e.sent;
  flight.others.push_back(e.told);
  flight.chunk = [s, e](ArrayRef<int64_t> member) mutable {
    SmallVector<Value> at;
    for (int64_t i : member)
      at.push_back(s.constant(i));
    return s.arrive(s.slot(e.data, at), s.constant(1), {}, "await chunk");
  };
  flight.finish = [s, e, c, v, start]() mutable -> SmallVector<Value> {
    Value ready = arriveAll(s, e, start);
    return joined(ready, demandExchanged(s, c, v.out, ready));
  };
  return flight;
}

/// A permute by a shift.
static InFlight directShift(ScheduleBuilder &s, const CollectiveSpec &c, const Views &v) {
  unsigned axis = c.axes.front();
  int64_t n = s.size(axis), by = ((c.shift % n) + n) % n;
  Value start = s.source(s.range(v.in), c.name, ownPoint(s, c.axes), {}, c.inReady);
  Value rtr = s.slots(c.name + ".ready", {}, 1), data = s.slots(c.name + ".data", {}, 1);
  Point to = s.neighbour(axis, by), from = s.neighbour(axis, n - by);
  InFlight flight;
  flight.others.push_back(s.ready(s.slot(s.at(rtr, from)), c.outFree, "ready"));
  Value granted = s.awaitReady(s.slot(rtr), s.constant(1), {}, "await ready");
  flight.inFree = {s.put(s.range(v.in), s.range(s.at(v.out, to)), s.slot(s.at(data, to)),
                         {start, granted}, "put")};
  flight.finish = [s, c, v, data, from]() mutable -> SmallVector<Value> {
    Value ready = s.arrive(s.slot(data), s.constant(1), {}, "await data");
    return {ready, s.sink(s.range(v.out), c.name, pointOf(s, c.axes, from), {}, ready)};
  };
  return flight;
}

/// reduce_scatter and all_reduce.
static InFlight directReduction(ScheduleBuilder &s, const CollectiveSpec &c, const Views &v) {
  InFlight flight;
  SmallVector<Value> own = ownPoint(s, c.axes);
  Value start = s.source(s.range(v.in), c.name, {}, c.axes, c.inReady);
  // In place, the sum overwrites a piece that only this rank still needed, and peers' sums
  // overwrite pieces that have been sent to them: those puts must be complete first.
  Value sum = reduceScatter(s, c, v.in, s.range(v.out, own), capacityOf(s, c), start, flight);
  if (c.flow.inCut) {
    flight.others.push_back(s.sink(s.range(v.out, own), c.name, own, c.axes, sum));
    flight.finish = [sum]() -> SmallVector<Value> { return {sum}; };
    return flight;
  }
  auto ownBox = [&](Value view) { return s.range(view, ownPoint(s, c.axes)); };
  Boxes boxes{[&](const Point &, Value) { return ownBox(v.out); },
              [&](Value view, Value) { return ownBox(view); }, v.out, /*keepsOwn=*/false};
  Exchange e =
      exchange(s, c.name + ".ag", c.axes, boxes, sum,
               c.in == c.out ? joined(c.outFree, flight.inFree) : SmallVector<Value>(c.outFree));
  llvm::append_range(flight.others, e.sent);
  flight.others.push_back(e.told);
  flight.finish = [s, e, c, v, sum]() mutable -> SmallVector<Value> {
    SmallVector<Value> ready = joined(sum, arriveAll(s, e, sum));
    Value demanded = s.sink(s.range(v.out), c.name, {}, c.axes, ready);
    ready.push_back(demanded);
    return ready;
  };
  return flight;
}

InFlight ctran::emitDirect(ScheduleBuilder &s, const CollectiveSpec &c) {
  using Route = ncclx::Dataflow::Route;
  if (!c.groups.empty())
    return emitListed(s, c);
  if (c.flow.counts)
    return directCounts(s, c);
  if (c.flow.route == Route::FromRoot || c.flow.route == Route::ToRoot)
    return directRooted(s, c);
  if (c.flow.route == Route::Listed && c.zero)
    return permutePairs(s, c);
  Views v = makeViews(s, c);
  if (c.flow.route == Route::Listed)
    return directShift(s, c, v);
  return c.flow.combines ? directReduction(s, c, v) : directExchange(s, c, v);
}
