//===- Eager.cpp - One step, into scratch that is free without asking ------------------------===//
//
// Every member puts its pieces into scratch memory of every other and says so; each takes them from
// there. Nobody asks whether it may: the scratch has two generations, and what a member puts in run
// e into the generation of run e - 2 comes after the other's signal of run e - 1, which comes after
// the other's exit of run e - 2. One message in place of two and a copy more, and for an all_reduce
// every element to everyone (one-shot): for small sizes.
//
//===------------------------------------------------------------------------------------------===//
#include "Algorithms.h"

using namespace mlir;
using namespace mlir::ctran;

InFlight ctran::emitEager(ScheduleBuilder &s, const CollectiveSpec &c) {
  Views v = makeViews(s, c);
  bool whole = c.flow.combines && !c.flow.inCut, shard = !c.flow.inCut && !whole;
  SmallVector<Value> own = ownPoint(s, c.axes);
  Value start = c.flow.combines ? s.source(s.range(v.in), c.name, {}, c.axes, c.inReady)
                                : s.source(shard ? s.range(v.in, own) : s.range(v.in), c.name, own,
                                           {}, c.inReady);
  Value parts = memberWindow(s, c, whole ? c.inType.getNumElements() : capacityOf(s, c), 2);
  SmallVector<DimAttr> dims;
  for (unsigned axis : c.axes)
    dims.push_back(s.boundDim(axis));
  Value data = s.slots(c.name + ".data", dims, 1);
  auto piece = [&](const Point &to) { return whole ? s.range(v.in) : inputBox(s, c, v.in, to); };

  InFlight flight;
  flight.inFree.push_back(s.forEachPeer(c.axes, start, [&](const Point &peer, Value before) {
    return s.put(piece(peer), s.range(s.at(parts, peer), own), s.slot(s.at(data, peer), own),
                 {start, before}, "put");
  }));
  // The own piece: at once where it belongs, or among those that are summed up.
  SmallVector<Value> outFree =
      joined(c.outFree, c.in == c.out ? flight.inFree : SmallVector<Value>());
  Value kept = c.flow.combines ? s.copy(piece(Point()), s.range(parts, own), Value(), start,
                                        s.controlLane(), "keep own")
                               : s.copy(piece(Point()), s.range(v.out, own), Value(),
                                        joined(start, outFree), s.controlLane(), "keep own");
  flight.inFree.push_back(kept);

  flight.finish = [s, c, v, parts, data, kept, outFree]() mutable -> SmallVector<Value> {
    auto arrived = [&](const Point &peer, ValueRange after) {
      return s.arrive(s.slot(data, pointOf(s, c.axes, peer)), s.constant(1), after, "await data");
    };
    if (!c.flow.combines) {
      Value home = s.forEachPeer(c.axes, kept, [&](const Point &peer, Value before) {
        Value here = arrived(peer, before);
        SmallVector<Value> from = pointOf(s, c.axes, peer);
        return s.copy(s.range(parts, from), s.range(v.out, from), Value(), joined(here, outFree),
                      s.controlLane(), "home");
      });
      SmallVector<Value> ready = joined(home, kept);
      return joined(ready, demandExchanged(s, c, v.out, ready));
    }
    Value here = s.forEachPeer(
        c.axes, kept, [&](const Point &peer, Value before) { return arrived(peer, before); });
    bool cut = c.flow.inCut.has_value();
    SmallVector<Value> own = ownPoint(s, c.axes);
    Value dest = cut ? s.range(v.out, own) : s.range(v.out);
    Value sum = s.reduce(c.combination, s.interval(parts, s.size(c.axes.front())), dest,
                         joined({here, kept}, outFree), "reduce");
    Value demanded = s.sink(dest, c.name, cut ? ValueRange(own) : ValueRange(), c.axes, sum);
    return {sum, demanded};
  };
  return flight;
}
