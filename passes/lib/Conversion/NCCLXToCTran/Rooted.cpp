//===- Rooted.cpp - Broadcast, reduce, gather and scatter in one step ----------------------===//
//
// The root puts to every other member, or every other member puts to the root. Which rank is the
// root is a number, so ranks differ: the program is asymmetric and is proved on all ranks.
//
//===----------------------------------------------------------------------------------------===//
#include "ListedEnds.h"

using namespace mlir;
using namespace mlir::ctran;
using Route = ncclx::Dataflow::Route;

// What members hold is named by numbers where the root must be named, and by coordinates where
// each rank names its own.
Value ctran::sourceRooted(ScheduleBuilder &s, const CollectiveSpec &c, const Views &v,
                          Members &members) {
  if (!c.groups.empty())
    return ListedEnds(s, c).say(v.in, c.inReady);
  if (c.flow.combines)
    return s.source(s.range(v.in), c.name, {}, c.axes, c.inReady);
  if (c.flow.outCut)
    return s.source(inputBox(s, c, v.in, Point()), c.name, ownPoint(s, c.axes), {}, c.inReady);
  return s.source(s.range(v.in), c.name, members.point(members.own()), {}, c.inReady, c.axes);
}

Value ctran::keepAtRoot(ScheduleBuilder &s, const CollectiveSpec &c, const Views &v, Value isRoot,
                        Value start) {
  return s.branch(
      isRoot,
      [&] {
        return s.copy(s.range(v.in), s.range(v.out), Value(), joined(start, c.outFree),
                      s.controlLane(), "keep own");
      },
      [&] { return start; });
}

Value ctran::finishAtRoot(ScheduleBuilder &s, const CollectiveSpec &c, Value isRoot,
                          ValueRange after, llvm::function_ref<Value()> atRoot) {
  return s.branch(isRoot, atRoot, [&] { return c.zero(s, after); });
}

Value ctran::demandRooted(ScheduleBuilder &s, const CollectiveSpec &c, const Views &v,
                          Members &members, ValueRange ready) {
  if (!c.groups.empty())
    return ListedEnds(s, c).demand(v.out, ready);
  if (c.flow.combines)
    return s.sink(s.range(v.out), c.name, {}, c.axes, ready);
  if (c.flow.outCut)
    return s.sink(s.range(v.out), c.name, {}, {}, ready);
  SmallVector<Value> label = members.point(s.constant(c.root));
  if (!c.flow.inCut)
    return s.sink(s.range(v.out), c.name, label, {}, ready, c.axes);
  SmallVector<Value> own = ownPoint(s, c.axes);
  llvm::append_range(label, own);
  return s.sink(s.range(v.out, own), c.name, label, {}, ready, c.axes);
}

static InFlight directFromRoot(ScheduleBuilder &s, const CollectiveSpec &c) {
  Views v = makeViews(s, c);
  Members members(s, c.axes);
  Value isRoot = s.equal(members.own(), s.constant(c.root));
  Value rtr = s.slots(c.name + ".ready", boundDims(s, c.axes), 1),
        data = s.slots(c.name + ".data", {}, 1);
  Value start = sourceRooted(s, c, v, members);
  Value atRoot = members.at(rtr, s.constant(c.root));
  InFlight flight;
  flight.others.push_back(s.branch(
      isRoot, [&] { return c.outFree.front(); },
      [&] { return s.ready(s.slot(atRoot, ownPoint(s, c.axes)), c.outFree, "ready"); }));
  Value sent = s.branch(
      isRoot,
      [&] {
        Value puts = s.forEachPeer(c.axes, start, [&](const Point &to, Value before) {
          Value granted =
              s.awaitReady(s.slot(rtr, pointOf(s, c.axes, to)), s.constant(1), {}, "await ready");
          return s.put(inputBox(s, c, v.in, to), outputBox(s, c, s.at(v.out, to), to),
                       s.slot(s.at(data, to)), {start, before, granted}, "put");
        });
        return s.copy(inputBox(s, c, v.in, Point()), outputBox(s, c, v.out, Point()), Value(),
                      joined({start, puts}, c.outFree), s.controlLane(), "keep own");
      },
      [&] { return start; });
  flight.inFree = {sent};
  flight.finish = [s, c, v, data, isRoot, sent]() mutable -> SmallVector<Value> {
    Value here = s.branch(
        isRoot, [&] { return sent; },
        [&] { return s.arrive(s.slot(data), s.constant(1), {}, "await data"); });
    Members members(s, c.axes);
    return {here, sent, demandRooted(s, c, v, members, {here, sent})};
  };
  return flight;
}

static InFlight directToRoot(ScheduleBuilder &s, const CollectiveSpec &c) {
  Views v = makeViews(s, c);
  Members members(s, c.axes);
  Value isRoot = s.equal(members.own(), s.constant(c.root));
  Value rtr = s.slots(c.name + ".ready", {}, 1),
        data = s.slots(c.name + ".data", boundDims(s, c.axes), 1);
  Value start = sourceRooted(s, c, v, members);
  // What is combined arrives beside each other, in the order of the members.
  Value parts;
  if (c.flow.combines)
    parts = slotWindow(s, c, "parts", members.size(), capacityOf(s, c));
  auto place = [&](Value view) {
    return parts ? s.range(view, members.own()) : outputBox(s, c, view, Point());
  };
  Value target = parts ? parts : v.out;
  SmallVector<Value> free =
      parts ? SmallVector<Value>{s.program.getEntry()} : SmallVector<Value>(c.outFree);
  InFlight flight;
  flight.others.push_back(s.branch(
      isRoot,
      [&] {
        return s.forEachPeer(c.axes, free.front(), [&](const Point &peer, Value) {
          return s.ready(s.slot(s.at(rtr, peer)), free, "ready");
        });
      },
      [&] { return free.front(); }));
  Value sent = s.branch(
      isRoot,
      [&] {
        return s.copy(inputBox(s, c, v.in, Point()), place(target), Value(), joined(start, free),
                      s.controlLane(), "keep own");
      },
      [&] {
        Value granted = s.awaitReady(s.slot(rtr), s.constant(1), {}, "await ready");
        Value rank = members.rank(s.constant(c.root)), atRoot = members.atRank(data, rank);
        return s.put(inputBox(s, c, v.in, Point()), place(members.atRank(target, rank)),
                     s.slot(atRoot, ownPoint(s, c.axes)), {start, granted}, "put");
      });
  flight.inFree = {sent};
  flight.finish = [s, c, v, data, parts, isRoot, sent]() mutable -> SmallVector<Value> {
    Members members(s, c.axes);
    Value done = finishAtRoot(s, c, isRoot, joined(c.outFree, sent), [&] {
      Value here = s.forEachPeer(c.axes, sent, [&](const Point &from, Value before) {
        return s.arrive(s.slot(data, pointOf(s, c.axes, from)), s.constant(1), before,
                        "await data");
      });
      if (parts)
        here = s.reduce(c.combination, s.interval(parts, members.size()), s.range(v.out),
                        joined({here, sent}, c.outFree), "reduce");
      return demandRooted(s, c, v, members, {here, sent});
    });
    return {done, sent};
  };
  return flight;
}

InFlight ctran::directRooted(ScheduleBuilder &s, const CollectiveSpec &c) {
  return c.flow.route == Route::FromRoot ? directFromRoot(s, c) : directToRoot(s, c);
}
