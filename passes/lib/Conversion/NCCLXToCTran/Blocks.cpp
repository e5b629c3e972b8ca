//===- Blocks.cpp - Direct, each block of a kernel by itself -----------------------===//
//
// Zero-copy, for messages that would fill packets: every piece is cut among the blocks, and block b
// has to do with the blocks b of the peers alone. It says that it is ready, waits for them, moves
// or sums its part of every piece where it belongs, and tells them. A sum is read from all inputs
// and written to all outputs at once.
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ctran;

/// Fewer bytes of a piece are not worth a block, and more blocks than that have no SM of their own
/// (as measured on H200, test/Bench/cuda).
static constexpr int64_t bytesOfBlock = 16 << 10, mostBlocks = 132;

/// Elements of a piece in row-major order, where pieces follow one another.
static int64_t pieceOf(MemRefType type, int64_t dim, int64_t members) {
  return type.getNumElements() / std::max<int64_t>(1, type.getDimSize(dim)) *
         llvm::divideCeil(type.getDimSize(dim), members);
}

InFlight ctran::emitInBlocks(ScheduleBuilder &s, const CollectiveSpec &c) {
  int64_t members = c.groupSize(s), granule = flatGranule(c.inType);
  int64_t elementBytes = llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8);
  int64_t blocks =
      s.carrier.blocks
          ? s.carrier.blocks
          : std::clamp<int64_t>(llvm::divideCeil(capacityOf(s, c) * elementBytes, bytesOfBlock), 1,
                                mostBlocks);
  DimAttr ofBlocks = s.freeDim(blocks, granule);
  auto whole = [&](Value window, MemRefType type, std::optional<int64_t> dim) {
    SmallVector<DimAttr> dims;
    int64_t below = dim ? pieceOf(type, *dim, members) : granule;
    for (unsigned axis : llvm::reverse(c.axes)) {
      dims.push_back(s.boundDim(axis, dim ? Cut::Chunked : Cut::Balanced, below));
      below *= dim ? s.size(axis) : 1;
    }
    std::reverse(dims.begin(), dims.end());
    dims.push_back(ofBlocks);
    return s.reindex(window, std::nullopt, dims);
  };
  // A shard is one piece.
  bool isShard = !c.flow.inCut && c.flow.outCut, toShard = c.flow.inCut && !c.flow.outCut;
  Value in =
      isShard ? s.reindex(c.in, std::nullopt, ofBlocks) : whole(c.in, c.inType, c.flow.inCut);
  Value out = toShard         ? s.reindex(c.out, std::nullopt, ofBlocks)
              : c.in == c.out ? in
                              : whole(c.out, c.outType, c.flow.outCut);
  SmallVector<DimAttr> dims = boundDims(s, c.axes);
  dims.push_back(s.freeDim(blocks));
  Value ready = s.slots(c.name + ".ready", dims, 1), done = s.slots(c.name + ".done", dims, 1);
  SmallVector<Value> own = ownPoint(s, c.axes);
  Value start = c.flow.combines ? s.source(s.range(in), c.name, {}, c.axes, c.inReady)
                                : s.source(s.range(in), c.name, own, {}, c.inReady);

  Value ends = s.loop(0, blocks, start, [&](Value block, Value end) -> Value {
    s.block = block;
    auto at = [&](SmallVector<Value> place) {
      place.push_back(block);
      return place;
    };
    auto tell = [&](Value slots, ValueRange after, StringRef note) {
      return s.forEachPeer(c.axes, after.front(), [&](const Point &peer, Value before) {
        return s.signal(s.slot(s.at(slots, peer), at(own)), joined(after, before), s.controlLane(),
                        note);
      });
    };
    auto await = [&](Value slots, ValueRange after, StringRef note) {
      return s.forEachPeer(c.axes, after.front(), [&](const Point &peer, Value before) {
        return s.wait(s.slot(slots, at(pointOf(s, c.axes, peer))), s.constant(1),
                      joined(after, before), s.controlLane(), note);
      });
    };
    Value told = tell(ready, joined(start, c.outFree), "ready");
    Value granted = await(ready, told, "await ready");
    // Where this rank's piece lies at every member: the own one first.
    SmallVector<Value> there{s.range(out, toShard ? at({}) : at(own))};
    if (!toShard)
      for (int64_t by = 1; by < members; ++by)
        there.push_back(s.range(s.at(out, s.memberBy(c.axes, s.constant(by))), at(own)));
    Value moved = granted;
    if (c.flow.combines) {
      SmallVector<Value> parts;
      for (int64_t member = 0; member < members; ++member)
        parts.push_back(s.range(PeerViewOp::create(s.builder, s.loc, in.getType(), in, ValueRange(),
                                                   s.constant(c.rankOf(s, member))),
                                at(own)));
      moved = s.reduce(c.combination, parts, there, granted, "reduce");
    } else if (isShard) {
      moved = s.copy(s.range(in, at({})), there, Value(), granted, s.copyLane(), "put");
    } else {
      for (int64_t by = 1; by <= members; ++by) { // the own piece last, as no peer waits for it
        Point to = by < members ? s.memberBy(c.axes, s.constant(by)) : Point();
        moved = s.copy(s.range(in, at(pointOf(s, c.axes, to))), there[by % members], Value(), moved,
                       s.copyLane(), "put");
      }
    }
    // Who reads a peer's input tells it so, too.
    Value last = await(done, joined(tell(done, moved, "done"), end), "await done");
    s.block = Value();
    return last;
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
