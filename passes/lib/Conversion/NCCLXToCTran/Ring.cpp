//===- Ring.cpp - Each member sends to the next alone --------------------------------===//
//
// Schedule (b) of the ctran reference, round the members of the group. reduce_scatter: chunk k
// starts at member k+1 and collects one contribution a step until it reaches k; it travels through
// two scratch slots with a credit for each. all_gather: every chunk travels n-1 steps, straight
// between outputs.
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {

constexpr int64_t kScratchSlots = 2;

struct RingEnds {
  Value ready;               ///< the result of this phase is here
  SmallVector<Value> inFree; ///< the input has been read
  SmallVector<Value> others;
};

/// Reduces the input, cut among the members, so that the own chunk lies reduced in the output.
RingEnds ringReduceScatter(ScheduleBuilder &s, const CollectiveSpec &c, Cycle &ring, const Views &v,
                           int64_t capacity, Value start, ValueRange outFree) {
  int64_t n = ring.size(), slotsUsed = std::min(kScratchSlots, n - 1);
  Cycle::Member next = ring.member(1), previous = ring.member(-1);
  Value window = s.scratch(c.name + ".parts",
                           MemRefType::get({slotsUsed * capacity}, c.inType.getElementType()));
  DimAttr slotDim = s.freeDim(slotsUsed, std::max<int64_t>(1, capacity));
  Value parts = s.reindex(window, std::nullopt, slotDim);
  Value data = s.slots(c.name + ".rs.data", {}, n - 1);
  Value credit = s.slots(c.name + ".rs.credit", {}, n - 1);
  auto chunk = [&](Value k) { // chunk x - k of the own input
    return s.range(v.in, ring.place(s.sub(s.constant(0), k)));
  };
  auto part = [&](Value view, Value k) { // slot of the k-th transfer, k = 1, 2, ...
    return s.range(view, s.rem(s.sub(k, 1), slotsUsed));
  };
  // The k-th put carries chunk x-k to the next member's slot for it, once `credits` slots have been
  // freed in this run. A run starts in slot 0 whichever its last one ended in, so its first put
  // waits for all credits of the runs before: none in this one.
  auto send = [&](Value source, Value k, Value credits, ValueRange after) {
    Value granted = s.awaitReady(s.slot(credit), credits, after, "await credit");
    SmallVector<Value> all(after);
    all.push_back(granted);
    return s.put(source, part(ring.at(parts, next), k), s.slot(ring.at(data, next)), all,
                 "put part");
  };
  Value one = s.constant(1);
  Value sent = send(chunk(one), one, s.constant(0), start);
  // Receive k brings chunk x-k-1; add the own contribution and pass it on.
  sent = s.loop(1, n - 1, sent, [&](Value k, Value before) {
    Value here = s.arrive(s.slot(data), k, {}, "await part");
    Value sum = s.reduce(c.step(), {part(parts, k), chunk(s.add(k, 1))}, part(parts, k),
                         {here, start}, "add own");
    Value passed = send(part(parts, k), s.add(k, 1), s.sub(k, slotsUsed - 1), {sum});
    // The slot is free again when what was in it has been passed on. The token of the put before
    // this one keeps every put's completion on the way to the exit.
    return s.signal(s.slot(ring.at(credit, previous)), {passed, before}, s.controlLane(), "credit");
  });
  Value last = s.constant(n - 1);
  Value here = s.arrive(s.slot(data), last, {}, "await part");
  SmallVector<Value> after{here, start};
  llvm::append_range(after, outFree);
  auto addLast = [&](Value dest) {
    return s.reduce(c.lastStep(), {part(parts, last), chunk(s.constant(n))}, dest, after,
                    "add own");
  };
  Value sum = c.flow.inCut ? ring.withOwnShard(v.out, addLast, [&] { return here; })
                           : addLast(s.range(v.out, ring.own()));
  Value done = s.signal(s.slot(ring.at(credit, previous)), sum, s.controlLane(), "credit");
  return {sum, {sum, sent}, {done}};
}

/// Gathers `out`, cut among the members, whose own chunk is ready after `have`.
RingEnds ringAllGather(ScheduleBuilder &s, const CollectiveSpec &c, Cycle &ring, Value out,
                       Value have, ValueRange outFree) {
  int64_t n = ring.size();
  Cycle::Member next = ring.member(1), previous = ring.member(-1);
  Value rtr = s.slots(c.name + ".ag.ready", {}, 1);
  Value data = s.slots(c.name + ".ag.data", {}, n - 1);
  Value told = s.ready(s.slot(ring.at(rtr, previous)), outFree, "ready");
  Value granted = s.awaitReady(s.slot(rtr), s.constant(1), have, "await ready");
  Value got = s.loop(0, n - 1, have, [&](Value step, Value token) {
    SmallVector<Value> chunk = ring.place(s.sub(s.constant(0), step));
    Value put = s.put(s.range(out, chunk), s.range(ring.at(out, next), chunk),
                      s.slot(ring.at(data, next)), {token, granted}, "put");
    // After the put, so that its completion, too, reaches the exit.
    return s.arrive(s.slot(data), s.add(step, 1), put, "await data");
  });
  return {got, {}, {told, have}};
}

} // namespace

InFlight ctran::emitRing(ScheduleBuilder &s, const CollectiveSpec &given) {
  CollectiveSpec c = given;
  if (c.groupSize(s) == 1)
    return emitDirect(s, c); // nobody to send to: one copy, or a reduction of one operand
  if (!c.haveOneSize())
    return emitBySize(s, c, emitRing);
  if (c.flow.route == ncclx::Dataflow::Route::Listed)
    return ringPermute(s, c);
  if (c.flow.route != ncclx::Dataflow::Route::All)
    return c.flow.inCut || c.flow.outCut ? emitShardChain(s, c) : emitChain(s, c);
  if (c.flow.counts)
    return ringCounts(s, c);
  if (c.flow.inCut && c.flow.outCut)
    return ringAllToAll(s, c);
  Cycle ring(s, c);
  Views v = ring.views();
  InFlight flight;
  Value start = ring.say(v.in, c.inReady);
  if (!c.flow.combines) {
    SmallVector<Value> outFree = ring.fillPadding(c.outFree);
    Value kept = ring.keepOwn(v, joined(start, outFree));
    RingEnds ag = ringAllGather(s, c, ring, v.out, kept, outFree);
    flight.inFree = {kept};
    flight.others = ag.others;
    Value demanded = ring.demand(v.out, {ag.ready, kept});
    // A ring moves only while somebody works it: all of its ops stand where it starts.
    flight.finishWith({ag.ready, kept, demanded});
    return flight;
  }
  bool scaled = ring.prescale(c, v, start);
  SmallVector<Value> outFree = ring.fillPadding(c.outFree);
  RingEnds rs = ringReduceScatter(s, c, ring, v, capacityOf(s, c), start, outFree);
  flight.inFree = rs.inFree;
  flight.others = rs.others;
  if (c.flow.inCut) {
    SmallVector<Value> ready =
        joined(rs.ready, ArrayRef(outFree).drop_front(c.outFree.size())); // padding is filled, too
    ready.push_back(ring.demand(v.out, ready));
    flight.finishWith(ready);
  } else {
    // In place, peers overwrite chunks that the own puts may still be reading: tell them only when
    // those are complete.
    RingEnds ag = ringAllGather(s, c, ring, v.out, rs.ready,
                                c.in == c.out ? joined(outFree, rs.inFree) : outFree);
    llvm::append_range(flight.others, ag.others);
    SmallVector<Value> ready{ag.ready, rs.ready};
    ready.push_back(ring.demand(v.out, ready));
    flight.finishWith(ready);
  }
  if (scaled) {
    llvm::append_range(flight.others, flight.inFree);
    flight.inFree = {start};
  }
  return flight;
}
