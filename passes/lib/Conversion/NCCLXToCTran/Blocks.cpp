//===- Blocks.cpp - Direct, each block of a kernel by itself -----------------------===//
//
// Zero-copy, for messages that would fill packets: every piece is cut among the blocks, and block b
// has to do with the blocks b of the peers alone. It says that it is ready, waits for them, moves
// or sums its part of every piece where it belongs, and tells them. A sum is read from all inputs
// and written to all outputs at once.
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

using namespace mlir;
using namespace mlir::ctran;
using Route = ncclx::Dataflow::Route;

namespace {

/// A collective's memory, cut among the blocks.
class Blocks {
public:
  Blocks(ScheduleBuilder &s, const CollectiveSpec &c)
      : s(s), c(c), members(c.groupSize(s)), count(s.carrier.blocks) {
    bool spread = c.flow.combines && !c.flow.inCut; // each member sums a piece, and all get it
    v.in = c.flow.inCut || spread ? pieces(c.in, c.inType, c.flow.inCut) : piece(c.in);
    v.out = c.in == c.out             ? v.in
            : c.flow.outCut || spread ? pieces(c.out, c.outType, c.flow.outCut)
                                      : piece(c.out);
  }

  ScheduleBuilder &s;
  const CollectiveSpec &c;
  int64_t members, count;
  Views v;
  Value block; ///< in the loop over them

  /// A slot for each block, or for each member and block.
  Value slots(StringRef name, bool ofMembers) {
    SmallVector<DimAttr> dims;
    if (ofMembers)
      dims = boundDims(s, c.axes);
    dims.push_back(s.freeDim(count));
    return s.slots((c.name + name).str(), dims, 1);
  }
  SmallVector<Value> at(SmallVector<Value> place = {}) {
    place.push_back(block);
    return place;
  }
  SmallVector<Value> at(const Point &point) { return at(pointOf(s, c.axes, point)); }
  /// Of each peer's slots the own one is raised.
  Value tell(Value slots, ValueRange after, StringRef note) {
    return s.forEachPeer(c.axes, after.front(), [&](const Point &peer, Value before) {
      return s.signal(s.slot(s.at(slots, peer), at(Point())), joined(after, before),
                      s.controlLane(), note);
    });
  }
  Value await(Value slots, ValueRange after, StringRef note) {
    return s.forEachPeer(c.axes, after.front(), [&](const Point &peer, Value before) {
      return s.wait(s.slot(slots, at(peer)), s.constant(1), joined(after, before), s.controlLane(),
                    note);
    });
  }
  /// The loop over the blocks: token = body(token that only the last wait comes after).
  Value each(Value start, llvm::function_ref<Value(Value ends)> body) {
    return s.loop(0, count, start, [&](Value number, Value ends) {
      block = s.block = number;
      Value last = body(ends);
      block = s.block = Value();
      return last;
    });
  }

private:
  /// Blocks begin at lines of 128 bytes, of which links carry half of one as long as a whole: at
  /// 256 MiB by 132 blocks of an H200 that is 6 % (test/Bench/cuda).
  int64_t lineGranule() const { return flatGranule(c.inType) * 8; }
  Value piece(Value window) {
    return s.reindex(window, std::nullopt, s.freeDim(count, lineGranule()));
  }
  /// Pieces follow one another in memory (whyNotInBlocks).
  Value pieces(Value window, MemRefType type, std::optional<int64_t> dim) {
    int64_t granule = lineGranule();
    SmallVector<DimAttr> dims;
    if (dim)
      for (DimAttr cut : chunkDims(s, c.axes, type.getNumElements()))
        dims.push_back(cut);
    else
      for (unsigned axis : c.axes)
        dims.push_back(s.boundDim(axis, Cut::Balanced, granule));
    dims.push_back(s.freeDim(count, granule));
    return s.reindex(window, std::nullopt, dims);
  }
};

} // namespace

/// Of every member's pieces the blocks move or sum the one that is this rank's.
static InFlight allInBlocks(ScheduleBuilder &s, const CollectiveSpec &c) {
  Blocks b(s, c);
  bool isShard = !c.flow.inCut && c.flow.outCut, toShard = c.flow.inCut && !c.flow.outCut;
  Value in = b.v.in, out = b.v.out;
  Value ready = b.slots(".ready", true), done = b.slots(".done", true);
  SmallVector<Value> own = ownPoint(s, c.axes);
  Value start = c.flow.combines ? s.source(s.range(in), c.name, {}, c.axes, c.inReady)
                                : s.source(s.range(in), c.name, own, {}, c.inReady);
  Members byNumber(s, c.axes);
  Value ends = b.each(start, [&](Value ends) {
    Value granted = b.await(ready, b.tell(ready, joined(start, c.outFree), "ready"), "await ready");
    // Where this rank's piece lies at every member: the own one first.
    SmallVector<Value> there{s.range(out, toShard ? b.at() : b.at(own))};
    if (!toShard)
      for (int64_t by = 1; by < b.members; ++by)
        there.push_back(s.range(s.at(out, s.memberBy(c.axes, s.constant(by))), b.at(own)));
    SmallVector<Value> moved;
    if (c.flow.combines) {
      SmallVector<Value> parts;
      for (int64_t member = 0; member < b.members; ++member)
        parts.push_back(s.range(byNumber.at(in, s.constant(member)), b.at(own)));
      moved.push_back(s.reduce(c.combination, parts, there, granted, "reduce"));
    } else if (isShard) {
      moved.push_back(s.copy(s.range(in, b.at()), there, Value(), granted, s.copyLane(), "put"));
    } else {
      for (auto [by, place] : llvm::enumerate(there))
        moved.push_back(s.copy(s.range(in, b.at(s.memberBy(c.axes, s.constant(by)))), place,
                               Value(), granted, s.copyLane(), "put"));
    }
    // Who reads a peer's input tells it so, too.
    return b.await(done, joined(b.tell(done, moved, "done"), ends), "await done");
  });
  InFlight flight;
  flight.inFree = {ends};
  flight.finish = [s, c, out, own, toShard, ends]() mutable -> SmallVector<Value> {
    if (!c.flow.combines)
      return joined(ends, demandExchanged(s, c, out, ends));
    return {ends, s.sink(s.range(out), c.name, toShard ? own : SmallVector<Value>(), c.axes, ends)};
  };
  return flight;
}

static InFlight fromRootInBlocks(ScheduleBuilder &s, const CollectiveSpec &c) {
  Blocks b(s, c);
  Members members(s, c.axes);
  Value isRoot = s.equal(members.own(), s.constant(c.root));
  Value ready = b.slots(".ready", true), done = b.slots(".done", false);
  Value start = sourceRooted(s, c, b.v, members);
  Value atRoot = members.at(ready, s.constant(c.root));
  Value ends = b.each(start, [&](Value ends) {
    Value told = s.branch(
        isRoot,
        [&] {
          Value granted = b.await(ready, joined(start, c.outFree), "await ready");
          SmallVector<Value> there, moved;
          if (c.in != c.out)
            there.push_back(s.range(b.v.out, b.at()));
          for (int64_t by = 1; by < b.members; ++by)
            there.push_back(s.range(s.at(b.v.out, s.memberBy(c.axes, s.constant(by))), b.at()));
          if (!c.flow.inCut)
            moved.push_back(
                s.copy(s.range(b.v.in, b.at()), there, Value(), granted, s.copyLane(), "put"));
          else // a scatter is not in place
            for (auto [by, place] : llvm::enumerate(there))
              moved.push_back(s.copy(s.range(b.v.in, b.at(s.memberBy(c.axes, s.constant(by)))),
                                     place, Value(), granted, s.copyLane(), "put"));
          Value told = s.forEachPeer(c.axes, moved.front(), [&](const Point &peer, Value before) {
            return s.signal(s.slot(s.at(done, peer), b.at()), joined(moved, before),
                            s.controlLane(), "done");
          });
          return s.signal(s.slot(done, b.at()), told, s.controlLane(), "done");
        },
        [&] {
          return s.signal(s.slot(atRoot, b.at(Point())), joined(start, c.outFree), s.controlLane(),
                          "ready");
        });
    return s.wait(s.slot(done, b.at()), s.constant(1), {told, ends}, s.controlLane(), "await done");
  });
  InFlight flight;
  flight.inFree = {ends};
  flight.finish = [s, c, v = b.v, ends]() mutable -> SmallVector<Value> {
    Members members(s, c.axes);
    SmallVector<Value> label = members.point(s.constant(c.root));
    if (c.flow.inCut)
      llvm::append_range(label, ownPoint(s, c.axes));
    return {ends, s.sink(s.range(v.out), c.name, label, {}, ends, c.axes)};
  };
  return flight;
}

static InFlight shiftInBlocks(ScheduleBuilder &s, const CollectiveSpec &c) {
  Blocks b(s, c);
  unsigned axis = c.axes.front();
  int64_t n = s.size(axis), by = ((c.shift % n) + n) % n;
  Point to = s.neighbour(axis, by), from = s.neighbour(axis, n - by);
  Value ready = b.slots(".ready", false), done = b.slots(".done", false);
  Value start = s.source(s.range(b.v.in), c.name, ownPoint(s, c.axes), {}, c.inReady);
  Value ends = b.each(start, [&](Value ends) {
    Value told = s.signal(s.slot(s.at(ready, from), b.at()), joined(start, c.outFree),
                          s.controlLane(), "ready");
    Value granted =
        s.wait(s.slot(ready, b.at()), s.constant(1), told, s.controlLane(), "await ready");
    Value moved = s.copy(s.range(b.v.in, b.at()), s.range(s.at(b.v.out, to), b.at()), Value(),
                         granted, s.copyLane(), "put");
    told = s.signal(s.slot(s.at(done, to), b.at()), moved, s.controlLane(), "done");
    return s.wait(s.slot(done, b.at()), s.constant(1), {told, ends}, s.controlLane(), "await done");
  });
  InFlight flight;
  flight.inFree = {ends};
  flight.finish = [s, c, v = b.v, from, ends]() mutable -> SmallVector<Value> {
    return {ends, s.sink(s.range(v.out), c.name, pointOf(s, c.axes, from), {}, ends)};
  };
  return flight;
}

InFlight ctran::emitInBlocks(ScheduleBuilder &s, const CollectiveSpec &c) {
  switch (c.flow.route) {
  case Route::All:
    return allInBlocks(s, c);
  case Route::FromRoot:
    return fromRootInBlocks(s, c);
  default:
    return shiftInBlocks(s, c);
  }
}
