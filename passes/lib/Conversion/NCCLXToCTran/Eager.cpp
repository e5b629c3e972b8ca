//===- Eager.cpp - One step, into scratch that is free without asking ------------------------===//
//
// A member puts its pieces into scratch memory of another and says so; the other takes them from
// there. One message in place of two and a copy more: for small sizes.
//
// Where each hears from all, nobody asks whether it may. The scratch has two generations: what a
// member puts in run e into the generation of run e - 2 comes after the other's signal of run e -
// 1, which comes after the other's exit of run e - 2. An all_reduce sends every element to everyone
// (one-shot). From or to a root, the receiver says when it has taken a piece, and a sender runs
// ahead by as many runs as there are generations. Each of these has its own counters, so that a
// sender does not touch what the receiver of an earlier run polls.
//
//===------------------------------------------------------------------------------------------===//
#include "Algorithms.h"

using namespace mlir;
using namespace mlir::ctran;
using Route = ncclx::Dataflow::Route;

int64_t ctran::eagerDepth(MemRefType type) {
  int64_t bytes = type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
  return std::clamp<int64_t>((int64_t(1) << 16) / std::max<int64_t>(bytes, 1), 2, 64);
}

static InFlight eagerFromRoot(ScheduleBuilder &s, const CollectiveSpec &c) {
  Views v = makeViews(s, c);
  Members members(s, c.axes);
  Value isRoot = s.equal(members.own(), s.constant(c.root));
  int64_t depth = eagerDepth(c.outType);
  Value part = s.scratch(c.name + ".part",
                         MemRefType::get({capacityOf(s, c)}, c.inType.getElementType()), depth);
  Value data = s.slots(c.name + ".data", {}, 1, depth);
  Value taken = s.slots(c.name + ".taken", boundDims(s, c.axes), 1, depth);
  Value start = sourceRooted(s, c, v, members);
  InFlight flight;
  Value sent = s.branch(
      isRoot,
      [&] {
        auto puts = s.forEachPeerInTurn(c.axes, start, [&](const Point &to, Value before) {
          Value free =
              s.awaitReady(s.slot(taken, pointOf(s, c.axes, to)), s.constant(0), {}, "await taken");
          return s.put(inputBox(s, c, v.in, to), s.range(s.at(part, to)), s.slot(s.at(data, to)),
                       {start, before, free}, "put");
        });
        return s.copy(inputBox(s, c, v.in, Point()), outputBox(s, c, v.out, Point()), Value(),
                      joined(joined(puts, start), c.outFree), s.controlLane(), "keep own");
      },
      [&] { return start; });
  flight.inFree = {sent};
  flight.finish = [s, c, v, part, data, taken, isRoot, sent]() mutable -> SmallVector<Value> {
    Members members(s, c.axes);
    Value here = s.branch(
        isRoot, [&] { return sent; },
        [&] {
          Value arrived = s.arrive(s.slot(data), s.constant(1), {}, "await data");
          Value home = s.copy(s.range(part), outputBox(s, c, v.out, Point()), Value(),
                              joined(arrived, c.outFree), s.controlLane(), "home");
          Value atRoot = members.at(taken, s.constant(c.root));
          return s.signal(s.slot(atRoot, ownPoint(s, c.axes)), home, s.controlLane(), "taken");
        });
    return {here, sent, demandRooted(s, c, v, members, {here, sent})};
  };
  return flight;
}

static InFlight eagerToRoot(ScheduleBuilder &s, const CollectiveSpec &c) {
  Views v = makeViews(s, c);
  Members members(s, c.axes);
  Value isRoot = s.equal(members.own(), s.constant(c.root));
  int64_t depth = eagerDepth(c.inType);
  Value parts = memberWindow(s, c, capacityOf(s, c), depth);
  Value data = s.slots(c.name + ".data", boundDims(s, c.axes), 1, depth);
  Value taken = s.slots(c.name + ".taken", {}, 1, depth);
  Value start = sourceRooted(s, c, v, members);
  InFlight flight;
  Value sent = s.branch(
      isRoot,
      [&] {
        SmallVector<Value> own = ownPoint(s, c.axes);
        return s.copy(inputBox(s, c, v.in, Point()),
                      c.flow.combines ? s.range(parts, own) : outputBox(s, c, v.out, Point()),
                      Value(), joined(start, c.outFree), s.controlLane(), "keep own");
      },
      [&] {
        SmallVector<Value> own = ownPoint(s, c.axes);
        Value free = s.awaitReady(s.slot(taken), s.constant(0), {}, "await taken");
        Value rank = members.rank(s.constant(c.root));
        return s.put(inputBox(s, c, v.in, Point()), s.range(members.atRank(parts, rank), own),
                     s.slot(members.atRank(data, rank), own), {start, free}, "put");
      });
  flight.inFree = {sent};
  flight.finish = [s, c, v, parts, data, taken, isRoot, sent]() mutable -> SmallVector<Value> {
    Members members(s, c.axes);
    Value done = finishAtRoot(s, c, isRoot, joined(c.outFree, sent), [&] {
      auto home = s.forEachPeerInTurn(c.axes, sent, [&](const Point &peer, Value before) {
        SmallVector<Value> from = pointOf(s, c.axes, peer);
        Value here = s.arrive(s.slot(data, from), s.constant(1), before, "await data");
        return c.flow.combines ? here
                               : s.copy(s.range(parts, from), s.range(v.out, from), Value(),
                                        joined(here, c.outFree), s.controlLane(), "home");
      });
      if (c.flow.combines)
        home = {s.reduce(c.combination, s.interval(parts, s.size(c.axes.front())), s.range(v.out),
                         joined(joined(home, sent), c.outFree), "reduce")};
      auto told = s.forEachPeerInTurn(c.axes, home.front(), [&](const Point &peer, Value) {
        return s.signal(s.slot(s.at(taken, peer)), home, s.controlLane(), "taken");
      });
      return demandRooted(s, c, v, members, joined(joined(home, sent), told));
    });
    return {done, sent};
  };
  return flight;
}

InFlight ctran::emitEager(ScheduleBuilder &s, const CollectiveSpec &c) {
  if (!c.haveOneSize())
    return emitBySize(s, c, emitEager);
  if (!c.groups.empty())
    return c.groupSize(s) > 1 ? eagerListed(s, c) : emitListed(s, c);
  if (c.flow.route == Route::FromRoot)
    return eagerFromRoot(s, c);
  if (c.flow.route == Route::ToRoot)
    return eagerToRoot(s, c);
  Views v = makeViews(s, c);
  bool whole = c.flow.combines && !c.flow.inCut, shard = !c.flow.inCut && !whole;
  SmallVector<Value> own = ownPoint(s, c.axes);
  Value start = c.flow.combines ? s.source(s.range(v.in), c.name, {}, c.axes, c.inReady)
                                : s.source(shard ? s.range(v.in, own) : s.range(v.in), c.name, own,
                                           {}, c.inReady);
  Value parts = memberWindow(s, c, whole ? c.inType.getNumElements() : capacityOf(s, c), 2);
  Value data = s.arrivals(c.name + ".data", boundDims(s, c.axes));
  auto piece = [&](const Point &to) { return whole ? s.range(v.in) : inputBox(s, c, v.in, to); };

  // Peers in turn on several lanes, the own piece on one besides: at once where it belongs, or
  // among those that are summed up.
  InFlight flight;
  flight.inFree = s.forEachPeerInTurn(c.axes, start, [&](const Point &peer, Value before) {
    return s.put(piece(peer), s.range(s.at(parts, peer), own), s.slot(s.at(data, peer), own),
                 {start, before}, "put");
  });
  int64_t besides = s.carrier.lanes > 1 ? s.carrier.lanes : 0;
  SmallVector<Value> outFree =
      joined(c.outFree, c.in == c.out ? flight.inFree : SmallVector<Value>());
  Value kept = s.onLane(besides, [&] {
    // Packets are a window's only writers, so the own one is a packet, too.
    if (c.flow.combines && s.carrier.oneKernel)
      return s.put(piece(Point()), s.range(s.at(parts, Point()), own),
                   s.slot(s.at(data, Point()), own), start, "keep own");
    if (!c.flow.combines)
      return s.copy(piece(Point()), s.range(v.out, own), Value(), joined(start, outFree),
                    s.controlLane(), "keep own");
    // It raises a slot like any other, so that whoever waits need not know whose a piece is.
    Value copied =
        s.copy(piece(Point()), s.range(parts, own), Value(), start, s.controlLane(), "keep own");
    return s.signal(s.slot(data, own), copied, s.controlLane(), "kept own");
  });
  flight.inFree.push_back(kept);

  flight.finish = [s, c, v, parts, data, kept, outFree]() mutable -> SmallVector<Value> {
    auto arrived = [&](ArrayRef<Value> from, ValueRange after) {
      return s.arrive(s.slot(data, from), s.constant(1), after, "await data");
    };
    if (!c.flow.combines) {
      auto home = s.forEachPeerInTurn(c.axes, kept, [&](const Point &peer, Value before) {
        SmallVector<Value> from = pointOf(s, c.axes, peer);
        Value here = arrived(from, before == kept ? ValueRange() : ValueRange(before));
        return s.copy(s.range(parts, from), s.range(v.out, from), Value(), joined(here, outFree),
                      s.controlLane(), "home");
      });
      SmallVector<Value> ready = joined(home, kept);
      return joined(ready, demandExchanged(s, c, v.out, ready));
    }
    Value here;
    SmallVector<Value> own = ownPoint(s, c.axes);
    if (s.carrier.oneKernel) { // packets are awaited one by one
      here = s.forEachPeer(c.axes, kept, [&](const Point &peer, Value before) {
        return arrived(pointOf(s, c.axes, peer), before);
      });
      here = arrived(own, here);
    } else {
      here =
          s.arrive(s.slotInterval(data, s.size(c.axes.front())), s.constant(1), {}, "await data");
    }
    bool cut = c.flow.inCut.has_value();
    Value dest = cut ? s.range(v.out, own) : s.range(v.out);
    Value sum = s.reduce(c.combination, s.interval(parts, s.size(c.axes.front())), dest,
                         joined({here, kept}, outFree), "reduce");
    Value demanded = s.sink(dest, c.name, cut ? ValueRange(own) : ValueRange(), c.axes, sum);
    return {sum, demanded};
  };
  return flight;
}
