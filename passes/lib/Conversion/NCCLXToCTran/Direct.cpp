//===- Direct.cpp - Every member sends to every other in one step ------------------===//
//
// Schedules (a) and (e) of the ctran reference: a ready token from each receiver, one put to each, one
// wait for each. all_gather, all_to_all and permute are one exchange; reduce_scatter is an exchange
// into scratch and one sum in member order; all_reduce is both, one after the other (two-shot).
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {

/// What moves in an exchange: the box of the own input that a peer gets, and the box of the peer's
/// output in which it arrives. `mine` is the own point for the piece that stays.
struct Boxes {
  llvm::function_ref<Value(const Point &peer)> source;
  llvm::function_ref<Value(Value view, const Point &peer)> dest;
  Value out;             ///< the view that peers write
  bool keepsOwn = true;  ///< the own piece is copied, too
};

struct Exchanged {
  SmallVector<Value> ready; ///< all pieces are here
  SmallVector<Value> sent;  ///< the input has been read
  Value told;               ///< the last ready token has been sent
};

Exchanged exchange(ScheduleBuilder &s, StringRef name, ArrayRef<unsigned> axes, const Boxes &boxes,
                   ValueRange inReady, ValueRange outFree) {
  SmallVector<DimAttr> dims;
  for (unsigned axis : axes)
    dims.push_back(s.boundDim(axis));
  Value rtr = s.slots((name + ".ready").str(), dims, 1);
  Value data = s.slots((name + ".data").str(), dims, 1);
  SmallVector<Value> own = ownPoint(s, axes);
  Point self;

  Exchanged e;
  e.told = s.forEachPeer(axes, outFree.front(), [&](const Point &peer, Value token) {
    return s.ready(s.slot(s.at(rtr, peer), own), outFree, "ready");
  });
  // Tokens of a loop cover the last iteration; on one lane that covers the earlier ones (S13).
  Value start = inReady.front();
  Value sent = s.forEachPeer(axes, start, [&](const Point &peer, Value) {
    SmallVector<Value> after(inReady);
    after.push_back(
        s.awaitReady(s.slot(rtr, pointOf(s, axes, peer)), s.constant(1), {}, "await ready"));
    return s.put(boxes.source(peer), boxes.dest(s.at(boxes.out, peer), peer),
                 s.slot(s.at(data, peer), own), after, "put");
  });
  // The own piece last: no peer waits for it.
  Value kept;
  if (boxes.keepsOwn) {
    SmallVector<Value> after(inReady);
    llvm::append_range(after, outFree);
    kept = s.copy(boxes.source(self), boxes.dest(boxes.out, self), Value(), after,
                  {LaneKind::CE, s.carrier.index}, "keep own");
  }
  Value got = s.forEachPeer(axes, start, [&](const Point &peer, Value) {
    return s.arrive(s.slot(data, pointOf(s, axes, peer)), s.constant(1), {}, "await data");
  });
  e.ready.push_back(got);
  if (kept) {
    e.ready.push_back(kept);
    e.sent.push_back(kept);
  }
  e.sent.push_back(sent);
  return e;
}

SmallVector<Value> joined(ValueRange a, ValueRange b) {
  SmallVector<Value> out(a);
  for (Value v : b)
    if (!llvm::is_contained(out, v))
      out.push_back(v);
  return out;
}

/// The sum of every member's piece for this rank, into `dest`: an exchange into scratch, then one
/// reduction in member order.
CollectiveEnds reduceScatter(ScheduleBuilder &s, const CollectiveSpec &c, Value in, Value dest,
                             int64_t capacity, Value start, ValueRange outFree) {
  int64_t members = c.groupSize(s);
  auto type = MemRefType::get({members * capacity}, c.inType.getElementType());
  Value window = s.scratch(c.name + ".parts", type);
  SmallVector<DimAttr> dims;
  int64_t below = std::max<int64_t>(1, capacity);
  for (unsigned axis : llvm::reverse(c.axes)) {
    dims.push_back(s.boundDim(axis, Cut::Balanced, below));
    below *= s.size(axis);
  }
  std::reverse(dims.begin(), dims.end());
  Value parts = s.reindex(window, std::nullopt, dims);

  auto source = [&](const Point &peer) { return s.range(in, pointOf(s, c.axes, peer)); };
  auto into = [&](Value view, const Point &) { return s.range(view, ownPoint(s, c.axes)); };
  Boxes boxes{source, into, parts};
  Exchanged e = exchange(s, c.name + ".rs", c.axes, boxes, start, s.program.getEntry());
  Value sum = s.reduce(c.reduce, c.accumulate, s.interval(parts, s.size(c.axes.front())), dest,
                       joined(e.ready, outFree), "reduce");
  CollectiveEnds ends;
  ends.outReady = {sum};
  ends.inFree = e.sent;
  ends.others = {e.told};
  return ends;
}

} // namespace

CollectiveEnds ctran::emitDirect(ScheduleBuilder &s, const CollectiveSpec &c) {
  using Kind = CollectiveSpec::Kind;
  Views v = makeViews(s, c);
  CollectiveEnds ends;
  SmallVector<Value> own = ownPoint(s, c.axes);
  switch (c.kind) {
  case Kind::AllGather: {
    Value start = s.source(s.range(v.in, own), c.name, own, {}, c.inReady);
    auto source = [&](const Point &) { return s.range(v.in, ownPoint(s, c.axes)); };
    auto dest = [&](Value view, const Point &) { return s.range(view, ownPoint(s, c.axes)); };
    Exchanged e = exchange(s, c.name, c.axes, {source, dest, v.out}, start, c.outFree);
    Value done = s.sink(s.range(v.out), c.name, {}, {}, e.ready);
    return {e.ready, e.sent, {e.told, done}};
  }
  case Kind::AllToAll: {
    Value start = s.source(s.range(v.in), c.name, own, {}, c.inReady);
    auto source = [&](const Point &peer) { return s.range(v.in, pointOf(s, c.axes, peer)); };
    auto dest = [&](Value view, const Point &) { return s.range(view, ownPoint(s, c.axes)); };
    Exchanged e = exchange(s, c.name, c.axes, {source, dest, v.out}, start, c.outFree);
    auto holds = [&](const Point &from) {
      SmallVector<Value> at = pointOf(s, c.axes, from);
      SmallVector<Value> label = at;
      llvm::append_range(label, ownPoint(s, c.axes));
      return s.sink(s.range(v.out, at), c.name, label, {}, e.ready);
    };
    Value done = s.forEachPeer(c.axes, e.ready.front(),
                               [&](const Point &from, Value) { return holds(from); });
    return {e.ready, e.sent, {e.told, done, holds(Point())}};
  }
  case Kind::Permute: {
    unsigned axis = c.axes.front();
    Value start = s.source(s.range(v.in), c.name, own, {}, c.inReady);
    int64_t by = ((c.shift % s.size(axis)) + s.size(axis)) % s.size(axis);
    if (by == 0) {
      Value kept = s.copy(s.range(v.in), s.range(v.out), Value(), joined({start}, c.outFree),
                          {LaneKind::CE, s.carrier.index}, "keep own");
      Value done = s.sink(s.range(v.out), c.name, own, {}, kept);
      return {{kept}, {kept}, {done}};
    }
    Value rtr = s.slots(c.name + ".ready", {}, 1), data = s.slots(c.name + ".data", {}, 1);
    Point to = s.neighbour(axis, by), from = s.neighbour(axis, -by);
    Value told = s.ready(s.slot(s.at(rtr, from)), c.outFree, "ready");
    Value granted = s.awaitReady(s.slot(rtr), s.constant(1), start, "await ready");
    Value sent = s.put(s.range(v.in), s.range(s.at(v.out, to)), s.slot(s.at(data, to)),
                       {start, granted}, "put");
    Value got = s.arrive(s.slot(data), s.constant(1), {}, "await data");
    SmallVector<Value> label = pointOf(s, c.axes, from);
    Value done = s.sink(s.range(v.out), c.name, label, {}, got);
    return {{got}, {sent}, {told, done}};
  }
  case Kind::ReduceScatter: {
    Value start = s.source(s.range(v.in), c.name, {}, c.axes, c.inReady);
    int64_t capacity = pieceCapacity(c.inType, c.dim, c.groupSize(s), 1);
    ends = reduceScatter(s, c, v.in, s.range(v.out, own), capacity, start, c.outFree);
    ends.others.push_back(s.sink(s.range(v.out, own), c.name, own, c.axes, ends.outReady));
    return ends;
  }
  case Kind::AllReduce: {
    Value start = s.source(s.range(v.in), c.name, {}, c.axes, c.inReady);
    int64_t capacity = pieceCapacity(c.inType, std::nullopt, c.groupSize(s), flatGranule(c.inType));
    // In place, the sum overwrites a piece that this rank has sent to nobody: its own.
    ends = reduceScatter(s, c, v.in, s.range(v.out, own), capacity, start, c.outFree);
    auto mine = [&](const Point &) { return s.range(v.out, ownPoint(s, c.axes)); };
    auto dest = [&](Value view, const Point &) { return s.range(view, ownPoint(s, c.axes)); };
    Boxes boxes{mine, dest, v.out, /*keepsOwn=*/false};
    // Peers may write here once the own pieces have been sent (in place) and the output is free.
    Exchanged e = exchange(s, c.name + ".ag", c.axes, boxes, ends.outReady,
                           c.in == c.out ? joined(c.outFree, ends.inFree) : c.outFree);
    llvm::append_range(ends.others, e.sent);
    ends.others.push_back(e.told);
    ends.outReady = joined(ends.outReady, e.ready);
    ends.others.push_back(s.sink(s.range(v.out), c.name, {}, c.axes, ends.outReady));
    return ends;
  }
  }
  llvm_unreachable("all kinds are handled");
}
