//===- Switch.cpp - Through a switch that multicasts and reduces ---------------------------===//
//
// Each member takes its own piece of what a collective leaves: of an all_gather it sends it to all
// by one copy, of a reduce_scatter it asks the switch for its sum, and of an all_reduce it sends on
// to all what it has asked for, as it comes (two-shot). Nobody writes what another writes. Before,
// all must have come, as each reads or writes the memory of all; behind, all must have done it. A
// short all_reduce is one-shot: each asks for all of the sum, of copies in scratch memory that is
// free without asking, for the reason that Eager.cpp gives.
//
// Whoever sends to several at once tells each of them by a slot there of his own.
//
//===----------------------------------------------------------------------------------------===//
#include "Algorithms.h"

using namespace mlir;
using namespace mlir::ctran;

/// Tells all members that `before` is done, the own rank too, so that one wait is for all. Gives
/// the slots and the token.
static std::pair<Value, Value> tell(ScheduleBuilder &s, const CollectiveSpec &c, StringRef phase,
                                    ValueRange before) {
  SmallVector<Value> own = ownPoint(s, c.axes);
  Value here = s.slots((c.name + phase).str(), boundDims(s, c.axes), 1);
  Value told = s.forEachPeer(c.axes, before.front(), [&](const Point &peer, Value) {
    return s.signal(s.slot(s.at(here, peer), own), before, s.controlLane(), "tell");
  });
  return {here, s.signal(s.slot(here, own), joined(before, told), s.controlLane(), "told")};
}

/// Waits until all have told.
static Value hear(ScheduleBuilder &s, const CollectiveSpec &c, Value here, StringRef note) {
  return s.wait(s.slotInterval(here, s.size(c.axes.front())), s.constant(1), {}, s.controlLane(),
                note);
}

static Value meet(ScheduleBuilder &s, const CollectiveSpec &c, StringRef phase, ValueRange before) {
  return hear(s, c, tell(s, c, phase, before).first, "await all");
}

static InFlight gather(ScheduleBuilder &s, const CollectiveSpec &c) {
  Views v = makeViews(s, c);
  SmallVector<Value> own = ownPoint(s, c.axes);
  Value start = s.source(s.range(v.in, own), c.name, own, {}, c.inReady);
  Value come = meet(s, c, ".ready", c.outFree);
  Value sent = s.copy(s.range(v.in, own), s.range(s.members(v.out, c.axes), own), Value(),
                      {start, come}, s.copyLane(), "multicast");
  auto [data, told] = tell(s, c, ".data", sent);
  InFlight flight;
  flight.inFree = {sent};
  flight.others = {told};
  flight.finish = [s, c, v, data = data]() mutable -> SmallVector<Value> {
    Value ready = hear(s, c, data, "await data");
    return joined(ready, demandExchanged(s, c, v.out, ready));
  };
  return flight;
}

static InFlight broadcast(ScheduleBuilder &s, const CollectiveSpec &c) {
  Views v = makeViews(s, c);
  Members members(s, c.axes);
  Value isRoot = s.equal(members.own(), s.constant(c.root));
  Value rtr = s.slots(c.name + ".ready", boundDims(s, c.axes), 1),
        data = s.slots(c.name + ".data", {}, 1);
  Value start = sourceRooted(s, c, v, members);
  Value told = s.signal(s.slot(members.at(rtr, s.constant(c.root)), ownPoint(s, c.axes)), c.outFree,
                        s.controlLane(), "ready");
  Value sent = s.branch(
      isRoot,
      [&] {
        Value come = hear(s, c, rtr, "await all");
        Value copied = s.copy(s.range(v.in), s.range(s.members(v.out, c.axes)), Value(),
                              {start, come}, s.copyLane(), "multicast");
        return s.forEachPeer(c.axes, copied, [&](const Point &peer, Value) {
          return s.signal(s.slot(s.at(data, peer)), copied, s.controlLane(), "tell");
        });
      },
      [&] { return start; });
  InFlight flight;
  flight.inFree = {sent};
  flight.others = {told};
  flight.finish = [s, c, v, data, isRoot, sent]() mutable -> SmallVector<Value> {
    Value here = s.branch(
        isRoot, [&] { return sent; },
        [&] { return s.wait(s.slot(data), s.constant(1), {}, s.controlLane(), "await data"); });
    Members members(s, c.axes);
    return {here, sent, demandRooted(s, c, v, members, {here, sent})};
  };
  return flight;
}

/// reduce_scatter, and all_reduce in two shots, of which the second sends on what the first brings.
static InFlight inTwoShots(ScheduleBuilder &s, const CollectiveSpec &c) {
  Views v = makeViews(s, c);
  bool spreads = !c.flow.inCut;
  SmallVector<Value> own = ownPoint(s, c.axes);
  Value start = s.source(s.range(v.in), c.name, {}, c.axes, c.inReady);
  Value come = meet(s, c, ".ready", spreads ? joined(start, c.outFree) : SmallVector<Value>{start});
  Value dest = s.range(spreads ? s.members(v.out, c.axes) : v.out, own);
  Value sum = s.reduce(c.combination, s.range(s.members(v.in, c.axes), own), dest,
                       spreads ? SmallVector<Value>{come} : joined(come, c.outFree), "reduce");
  auto [over, told] = tell(s, c, ".done", sum);
  // On a lane of its own, as the input is free only then: what comes behind need not wait for it.
  Value done = s.onLane(s.carrier.lanes + 1, [&, over = over] {
    return hear(s, c, over, spreads ? "await data" : "await readers");
  });
  Value ready = spreads ? done : sum;
  InFlight flight;
  flight.inFree = {done};
  flight.others = {told, spreads ? s.sink(s.range(v.out), c.name, {}, c.axes, ready)
                                 : s.sink(s.range(v.out, own), c.name, own, c.axes, ready)};
  flight.finishWith({ready});
  return flight;
}

static InFlight inOneShot(ScheduleBuilder &s, const CollectiveSpec &c) {
  Value start = s.source(s.range(c.in), c.name, {}, c.axes, c.inReady);
  Value parts = s.scratch(c.name + ".parts", c.inType, 2);
  Value copied = s.copy(s.range(c.in), s.range(parts), Value(), start, s.copyLane(), "home");
  SmallVector<Value> outFree = c.in == c.out ? joined(c.outFree, copied) : c.outFree;
  auto [data, told] = tell(s, c, ".data", copied);
  InFlight flight;
  flight.inFree = {copied};
  flight.others = {told};
  flight.finish = [s, c, parts, outFree, data = data]() mutable -> SmallVector<Value> {
    Value here = hear(s, c, data, "await data");
    Value sum = s.reduce(c.combination, s.range(s.members(parts, c.axes)), s.range(c.out),
                         joined(here, outFree), "reduce");
    return {sum, s.sink(s.range(c.out), c.name, {}, c.axes, sum)};
  };
  return flight;
}

/// Is what one shot moves more than two over sooner than the step that it saves?
static bool isShort(ScheduleBuilder &s, const CollectiveSpec &c) {
  double bits = double(c.inType.getNumElements()) * c.inType.getElementTypeBitWidth();
  return bits / 8 * double(c.groupSize(s)) < stepSeconds * c.tiers.front().bytesPerSecond;
}

InFlight ctran::emitSwitch(ScheduleBuilder &s, const CollectiveSpec &c) {
  if (c.flow.route == ncclx::Dataflow::Route::FromRoot)
    return broadcast(s, c);
  if (!c.flow.combines)
    return gather(s, c);
  return !c.flow.inCut && isShort(s, c) ? inOneShot(s, c) : inTwoShots(s, c);
}
