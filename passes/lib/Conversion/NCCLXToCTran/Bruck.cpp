//===- Bruck.cpp - Rounds over distances 1, 2, 4, ... ----------------------------------------===//
//
// For any number of members n: a round over distance d moves min(d, n - d) blocks, so that the last
// one tops up. Blocks are numbered by how far behind this member their member stands; along one
// axis coordinates are only shifted, so one representative stands for all ranks. Each round is one
// message, or streams in chunks (Streamed.cpp).
//
// all_gather: x has blocks [0, d) and gets [d, 2d) from x + d. reduce_scatter is that backwards:
// partial sums of blocks [d, 2d) go from x to x + d, where they are blocks [0, d). all_reduce is
// both. all_to_all: block j, which has j to go, moves on in the rounds of the bits of j.
//
//===------------------------------------------------------------------------------------------===//
#include "Streamed.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {

class Bruck {
public:
  Bruck(ScheduleBuilder &s, const CollectiveSpec &c)
      : s(s), c(c), cycle(this->s, c), v(cycle.views()), n(cycle.size()),
        count(llvm::Log2_64_Ceil(n)), capacity(capacityOf(s, c)) {}

  InFlight allGather();
  InFlight reduction();
  InFlight allToAll();

private:
  ScheduleBuilder &s;
  CollectiveSpec c;
  Cycle cycle;
  Views v;
  int64_t n, count, capacity;
  SmallVector<Value> filled; ///< padding, after these

  Value zero() { return s.constant(0); }
  Cycle::Member ahead(Value by) { return cycle.member(by); }
  Cycle::Member behind(Value by) { return cycle.member(s.sub(zero(), by)); }
  /// Blocks that a round over distance d moves.
  Value moved(Value d) { return s.min(d, s.sub(s.constant(n), d)); }
  /// Local copies of n blocks.
  Value pack(Value token, int64_t first,
             llvm::function_ref<Value(Value j, ValueRange after)> copyBlock) {
    return s.loop(first, n, token,
                  [&](Value j, Value before) { return copyBlock(j, joined(token, before)); });
  }
  Value gather(Value have, InFlight &flight,
               llvm::function_ref<Value(Value to, ValueRange after)> copyOwn);
  Value scatter(Value start, InFlight &flight);
};

/// Fills the output with the others' blocks; `copyOwn` writes the own one to a box.
Value Bruck::gather(Value have, InFlight &flight,
                    llvm::function_ref<Value(Value to, ValueRange after)> copyOwn) {
  Value parts = slotWindow(s, c, "gathered", n, capacity);
  DimAttr rounds = s.freeDim(count);
  Value ready = s.slots(c.name + ".ag.ready", rounds, 1);
  Value data = s.slots(c.name + ".ag.data", rounds, 1);
  Value entry = s.program.getEntry();
  flight.others.push_back(s.doubling(n, entry, [&](Value d, Value round, Value) {
    return s.ready(s.slot(cycle.at(ready, ahead(d)), round), entry, "ready");
  }));
  Value first = copyOwn(s.range(parts, zero()), have);
  Value got = s.doubling(n, first, [&](Value d, Value round, Value before) {
    Value granted = s.awaitReady(s.slot(ready, round), s.constant(1), before, "await ready");
    Cycle::Member to = behind(d);
    Value put =
        s.put(s.interval(parts, zero(), moved(d)), s.interval(cycle.at(parts, to), d, moved(d)),
              s.slot(cycle.at(data, to), round), {before, granted}, "put blocks");
    return s.arrive(s.slot(data, round), s.constant(1), put, "await blocks");
  });
  return pack(got, 1, [&](Value j, ValueRange after) {
    return s.copy(s.range(parts, j), s.range(v.out, cycle.place(j)), Value(),
                  joined(after, c.outFree), s.controlLane(), "home");
  });
}

InFlight Bruck::allGather() {
  InFlight flight;
  Value start = cycle.say(v.in, c.inReady);
  c.outFree = cycle.fillPadding(c.outFree);
  Value kept = cycle.keepOwn(v, joined(start, c.outFree));
  Value done = gather(kept, flight, [&](Value to, ValueRange after) {
    return cycle.copyOwn(v, to, joined(after, c.outFree));
  });
  flight.inFree = {done};
  SmallVector<Value> ready{done, kept};
  ready.push_back(cycle.demand(v.out, ready));
  flight.finishWith(ready);
  return flight;
}

/// Leaves the own block of all inputs, reduced, in the output.
Value Bruck::scatter(Value start, InFlight &flight) {
  Value sums = slotWindow(s, c, "sums", n, capacity);
  Value parts = slotWindow(s, c, "parts", n, capacity);
  DimAttr rounds = s.freeDim(count);
  Value ready = s.slots(c.name + ".rs.ready", rounds, 1);
  Value data = s.slots(c.name + ".rs.data", rounds, 1);
  Value entry = s.program.getEntry();
  flight.others.push_back(s.halving(n, entry, [&](Value d, Value round, Value) {
    return s.ready(s.slot(cycle.at(ready, behind(d)), round), entry, "ready");
  }));
  Combination scaled = c.step();
  scaled.scale = c.combination.scale;
  Value have = pack(start, 0, [&](Value j, ValueRange after) {
    Value from = s.range(v.in, cycle.place(j)), to = s.range(sums, j);
    return scaled.scale ? s.reduce(scaled, from, to, after, "scale")
                        : s.copy(from, to, Value(), after, s.controlLane(), "own");
  });
  flight.inFree = {have};
  Value summed = s.halving(n, have, [&](Value d, Value round, Value before) {
    Value granted = s.awaitReady(s.slot(ready, round), s.constant(1), before, "await ready");
    Cycle::Member to = ahead(d);
    Value put = s.put(s.interval(sums, d, moved(d)), s.interval(cycle.at(parts, to), d, moved(d)),
                      s.slot(cycle.at(data, to), round), {before, granted}, "put parts");
    Value here = s.arrive(s.slot(data, round), s.constant(1), put, "await parts");
    return s.loop(zero(), moved(d), here, [&](Value j, Value last) {
      return s.reduce(c.step(), {s.range(sums, j), s.range(parts, s.add(j, d))}, s.range(sums, j),
                      {here, last}, "add");
    });
  });
  SmallVector<Value> after = joined(summed, cycle.fillPadding(c.outFree));
  filled = joined({}, ArrayRef(after).drop_front(joined(summed, c.outFree).size()));
  auto home = [&](Value own) {
    return c.combination.divide
               ? s.reduce(c.lastStep(), s.range(sums, zero()), own, after, "divide")
               : s.copy(s.range(sums, zero()), own, Value(), after, s.controlLane(), "home");
  };
  return c.flow.inCut ? cycle.withOwnShard(v.out, home, [&] { return summed; })
                      : home(s.range(v.out, cycle.own()));
}

InFlight Bruck::reduction() {
  InFlight flight;
  Value start = cycle.say(v.in, c.inReady);
  Value sum = scatter(start, flight);
  SmallVector<Value> ready{sum};
  if (c.flow.inCut)
    ready = joined(ready, filled);
  else
    ready.push_back(gather(sum, flight, [&](Value to, ValueRange after) {
      return s.copy(s.range(v.out, cycle.own()), to, Value(), after, s.controlLane(), "own");
    }));
  ready.push_back(cycle.demand(v.out, ready));
  flight.finishWith(ready);
  return flight;
}

InFlight Bruck::allToAll() {
  InFlight flight;
  // Blocks with an odd multiple of d to go come in runs of d.
  auto runs = [&](Value d) -> Value {
    return arith::DivSIOp::create(s.builder, s.loc, s.sub(s.add(d, n), 1), s.add(d, d));
  };
  auto begin = [&](Value d, Value run) -> Value {
    Value odd = s.add(s.mul(run, 2), 1);
    return arith::MulIOp::create(s.builder, s.loc, odd, d);
  };
  auto blocks = [&](Value view, Value first, Value d) {
    return s.interval(view, first, s.min(d, s.sub(s.constant(n), first)));
  };
  Value parts = slotWindow(s, c, "parts", n, capacity);
  Value arrived = slotWindow(s, c, "arrived", n, capacity);
  DimAttr rounds = s.freeDim(count);
  Value ready = s.slots(c.name + ".ready", rounds, 1);
  Value data = s.slots(c.name + ".data", {rounds, s.freeDim(std::max<int64_t>(1, n / 2))}, 1);
  Value start = cycle.say(v.in, c.inReady);
  Value have = pack(start, 0, [&](Value j, ValueRange after) {
    return s.copy(s.range(v.in, cycle.place(j)), s.range(parts, j), Value(), after, s.controlLane(),
                  "own");
  });
  flight.inFree = {have};
  Value done = s.doubling(n, have, [&](Value d, Value round, Value before) {
    // What arrived in the round before has been taken.
    Value told = s.ready(s.slot(cycle.at(ready, behind(d)), round), before, "ready");
    Value granted = s.awaitReady(s.slot(ready, round), s.constant(1), told, "await ready");
    Cycle::Member to = ahead(d);
    Value sent = s.loop(zero(), runs(d), granted, [&](Value run, Value) {
      Value first = begin(d, run);
      return s.put(blocks(parts, first, d), blocks(cycle.at(arrived, to), first, d),
                   s.slot(cycle.at(data, to), {round, run}), {before, granted}, "put blocks");
    });
    return s.loop(zero(), runs(d), sent, [&](Value run, Value last) {
      Value first = begin(d, run);
      Value here =
          s.arrive(s.slot(data, {round, run}), s.constant(1), {sent, last}, "await blocks");
      return s.copy(blocks(arrived, first, d), blocks(parts, first, d), Value(), {here, sent},
                    s.controlLane(), "take");
    });
  });
  Value home = pack(done, 0, [&](Value j, ValueRange after) {
    return s.copy(s.range(parts, j), s.range(v.out, cycle.place(s.sub(zero(), j))), Value(),
                  joined(after, c.outFree), s.controlLane(), "home");
  });
  SmallVector<Value> tokens{home, cycle.demand(v.out, home)};
  flight.finish = [tokens]() { return tokens; };
  return flight;
}

} // namespace

InFlight ctran::emitBruck(ScheduleBuilder &s, const CollectiveSpec &c) {
  if (c.groupSize(s) == 1)
    return emitDirect(s, c);
  if (!c.haveOneSize())
    return emitBySize(s, c, emitBruck);
  if (std::optional<Streaming> how = streamingOf(s, c))
    return emitStreamed(s, c, *how);
  Bruck bruck(s, c);
  if (c.flow.combines)
    return bruck.reduction();
  return c.flow.inCut ? bruck.allToAll() : bruck.allGather();
}
