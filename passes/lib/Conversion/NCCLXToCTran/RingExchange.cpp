//===- RingExchange.cpp - all_to_all and permute by neighbours alone ------------------------===//
//
// For links that join neighbours only. Blocks travel hop by hop through scratch slots, which a
// credit frees once what they held has been sent on.
//
//===----------------------------------------------------------------------------===//
#include "Algorithms.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {
constexpr int64_t kSlots = 2;

/// Scratch of `slots` times `blocks` pieces of `capacity` elements.
Value stepSlots(ScheduleBuilder &s, const CollectiveSpec &c, int64_t slots, int64_t blocks,
                int64_t capacity) {
  int64_t piece = std::max<int64_t>(1, capacity);
  Value window = s.scratch(c.name + ".parts",
                           MemRefType::get({slots * blocks * capacity}, c.inType.getElementType()));
  return s.reindex(window, std::nullopt,
                   {s.freeDim(slots, blocks * piece), s.freeDim(blocks, piece)});
}
} // namespace

// In step s each member sends on, to its successor, the blocks of member x-s+1 that still have a
// way to go: the one for the successor itself straight to its place, the others (for members d
// further on, d > s) to scratch.
InFlight ctran::ringAllToAll(ScheduleBuilder &s, const CollectiveSpec &c) {
  Cycle ring(s, c);
  int64_t n = ring.size();
  Views v = ring.views();
  Cycle::Member next = ring.member(1), previous = ring.member(-1);
  int64_t capacity = capacityOf(s, c);
  Value parts = stepSlots(s, c, kSlots, n, capacity);
  Value rtr = s.slots(c.name + ".ready", {}, 1);
  Value data = s.slots(c.name + ".data", {}, n * (n - 1) / 2);
  Value credit = s.slots(c.name + ".credit", {}, n - 2);
  SmallVector<Value> own = ring.own();
  Value start = ring.say(v.in, c.inReady);
  InFlight flight;
  flight.others.push_back(s.ready(s.slot(ring.at(rtr, previous)), c.outFree, "ready"));
  Value kept = s.copy(s.range(v.in, own), s.range(v.out, own), Value(), joined(start, c.outFree),
                      s.controlLane(), "keep own");
  Value granted = s.awaitReady(s.slot(rtr), s.constant(1), start, "await ready");

  // Blocks that arrive up to and with step k: (n-1) + (n-2) + ... + (n-k).
  auto arrivals = [&](Value k) {
    Value twice = arith::MulIOp::create(s.builder, s.loc, k,
                                        s.sub(s.constant(2 * n - 1), k)); // k * (2n - 1 - k)
    return Value(arith::DivSIOp::create(s.builder, s.loc, twice, s.constant(2)));
  };
  auto step = [&](Value k, ValueRange after, llvm::function_ref<Value(Value d)> source) {
    SmallVector<Value> from = ring.place(s.sub(s.constant(1), k)); // whose blocks these are
    Value home = s.put(source(k), s.range(ring.at(v.out, next), from), s.slot(ring.at(data, next)),
                       after, "put home");
    return s.loop(s.add(k, 1), s.constant(n), home, [&](Value d, Value) {
      return s.put(source(d), s.range(ring.at(parts, next), {s.rem(k, kSlots), d}),
                   s.slot(ring.at(data, next)), after, "put on");
    });
  };
  Value one = s.constant(1);
  SmallVector<Value> first{start, granted};
  if (n > 2) // the slots that the runs before left behind
    first.push_back(s.awaitReady(s.slot(credit), s.constant(0), start, "await credit"));
  Value sent = step(one, first, [&](Value d) { return s.range(v.in, ring.place(d)); });
  flight.inFree = {kept, sent};
  Value passed = s.loop(2, n, sent, [&](Value k, Value before) {
    Value here = s.arrive(s.slot(data), arrivals(s.sub(k, 1)), before, "await blocks");
    // Step k writes the slots that the successor's step k-1 read: its (k-2)-th credit.
    Value free = s.awaitReady(s.slot(credit), s.sub(k, 2), {}, "await credit");
    Value on = step(k, {here, free, granted},
                    [&](Value d) { return s.range(parts, {s.rem(s.sub(k, 1), kSlots), d}); });
    return s.signal(s.slot(ring.at(credit, previous)), on, s.controlLane(), "credit");
  });
  flight.others.push_back(passed);
  Value here = s.arrive(s.slot(data), s.constant(n * (n - 1) / 2), passed, "await blocks");
  flight.finish = [s, c, v, here, kept]() mutable -> SmallVector<Value> {
    return {here, kept, Cycle(s, c).demand(v.out, here)};
  };
  return flight;
}

// The data of member x is at x + j after j hops, the shorter way round.
InFlight ctran::ringPermute(ScheduleBuilder &s, const CollectiveSpec &c) {
  Cycle ring(s, c);
  int64_t n = ring.size(), by = ((c.shift % n) + n) % n;
  int64_t hops = std::min(by, n - by), direction = by <= n - by ? 1 : -1;
  if (hops <= 1)
    return emitDirect(s, c);
  Cycle::Member next = ring.member(direction), previous = ring.member(-direction);
  int64_t slots = std::min(kSlots, hops - 1);
  Value parts = stepSlots(s, c, slots, 1, c.inType.getNumElements());
  Value rtr = s.slots(c.name + ".ready", {}, 1), data = s.slots(c.name + ".data", {}, hops);
  Value credit = s.slots(c.name + ".credit", {}, hops - 1);
  Value start = ring.say(c.in, c.inReady);
  InFlight flight;
  flight.others.push_back(s.ready(s.slot(ring.at(rtr, previous)), c.outFree, "ready"));
  auto part = [&](Value view, Value hop) { return s.range(view, s.rem(s.sub(hop, 1), slots)); };
  auto hop = [&](Value source, Value j, Value credits, ValueRange after) {
    SmallVector<Value> all(after);
    all.push_back(s.awaitReady(s.slot(credit), credits, {}, "await credit"));
    return s.put(source, part(ring.at(parts, next), j), s.slot(ring.at(data, next)), all, "put on");
  };
  Value first = hop(s.range(c.in), s.constant(1), s.constant(0), start);
  flight.inFree = {first};
  Value passed = s.loop(1, hops - 1, first, [&](Value j, Value before) {
    Value here = s.arrive(s.slot(data), j, before, "await data");
    Value on = hop(part(parts, j), s.add(j, 1), s.sub(j, slots - 1), here);
    return s.signal(s.slot(ring.at(credit, previous)), on, s.controlLane(), "credit");
  });
  Value last = s.constant(hops - 1);
  Value here = s.arrive(s.slot(data), last, passed, "await data");
  Value granted = s.awaitReady(s.slot(rtr), s.constant(1), here, "await ready");
  Value home = s.put(part(parts, last), s.range(ring.at(c.out, next)), s.slot(ring.at(data, next)),
                     {here, granted}, "put home");
  flight.others.push_back(
      s.signal(s.slot(ring.at(credit, previous)), home, s.controlLane(), "credit"));
  flight.finish = [s, c, data, hops]() mutable -> SmallVector<Value> {
    Value ready = s.arrive(s.slot(data), s.constant(hops), {}, "await data");
    return {ready, Cycle(s, c).demand(c.out, ready)};
  };
  return flight;
}
