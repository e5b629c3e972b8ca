//===- TakeSized.cpp - Who gets something takes it ------------------------===//
//
// all_to_all_v with sizes in a GPU's memory. No host knows them, so that no copy engine can be
// told: kernels read them. A member tells each other how much it has for it. That one's kernel
// reads the number, takes as much from where it lies, and fills the rest of the block with zeros
// meanwhile (S25); then the sender may overwrite what it sent. Nobody asks whether it may write:
// each writes its own output. A sender reads its sizes, too, for a wrong one is an error on both
// ends.
//
//===----------------------------------------------------------------------===//
#include "TakeSized.h"

using namespace mlir;
using namespace mlir::ctran;

/// Reads a size on a lane; gives it and the token.
static std::pair<Value, Value> count(ScheduleBuilder &s, Value range, int64_t most,
                                     ValueRange after, ScheduleBuilder::LaneRef lane,
                                     StringRef note) {
  MLIRContext *context = s.builder.getContext();
  auto op =
      CountOp::create(s.builder, s.loc, SizeType::get(context), TokenType::get(context), range,
                      most, after, lane.kind, lane.index ? s.constant(lane.index) : Value(), s.of,
                      s.builder.getStringAttr(note));
  return {op.getSize(), op.getDone()};
}

InFlight ctran::takeSized(ScheduleBuilder &s, const CollectiveSpec &c) {
  int64_t members = c.groupSize(s), most = c.inType.getDimSize(*c.flow.inCut) / members;
  Views v = makeViews(s, c);
  SmallVector<Value> own = ownPoint(s, c.axes);
  SmallVector<DimAttr> places = boundDims(s, c.axes), numbers = chunkDims(s, c.axes, members);
  auto type = cast<MemRefType>(c.sizes.getDefiningOp<WindowOp>().getType());
  Value sizes = s.reindex(c.sizes, 0, numbers);
  Value told = s.reindex(s.scratch(c.name + ".sizes", type), 0, numbers);
  Value known = s.slots(c.name + ".known", places, 1);
  Value taken = s.slots(c.name + ".taken", places, 1);

  Value start = s.source(s.range(v.in), c.name, own, {}, c.inReady);
  InFlight flight;
  flight.others.push_back(s.forEachPeer(c.axes, start, [&](const Point &peer, Value) {
    return s.put(s.range(sizes, pointOf(s, c.axes, peer)), s.range(s.at(told, peer), own),
                 s.slot(s.at(known, peer), own), start, "tell size");
  }));
  // The own rows beside those of others, where they take longer than another lane does to start.
  constexpr int64_t fewBytes = 4 << 20; // at 4 TB/s, read and written, 2 us
  int64_t bytes = most * llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8);
  for (auto [dim, size] : llvm::enumerate(c.inType.getShape()))
    bytes *= int64_t(dim) == *c.flow.inCut ? 1 : size;
  Value kept = s.onLane(bytes > fewBytes, [&] {
    flight.inFree.push_back(s.forEachPeer(c.axes, start, [&](const Point &peer, Value) {
      return count(s, s.range(sizes, pointOf(s, c.axes, peer)), most, start, s.reduceLane(),
                   "size sent")
          .second;
    }));
    auto [size, read] = count(s, s.range(sizes, own), most, start, s.reduceLane(), "own size");
    return s.copy(s.range(v.in, own, size), s.range(v.out, own, size), Value(),
                  joined({start, read}, c.outFree), s.reduceLane(), "keep own");
  });
  flight.inFree.push_back(kept);
  Value got = s.forEachPeer(c.axes, start, [&](const Point &peer, Value) {
    SmallVector<Value> from = pointOf(s, c.axes, peer);
    Value here = s.wait(s.slot(known, from), s.constant(1), {}, s.reduceLane(), "await size");
    auto [size, read] = count(s, s.range(told, from), most, here, s.reduceLane(), "size");
    Value copied = s.copy(s.range(s.at(v.in, peer), own, size), s.range(v.out, from, size), Value(),
                          joined(read, c.outFree), s.reduceLane(), "take");
    return s.signal(s.slot(s.at(taken, peer), own), copied, s.reduceLane(), "taken");
  });
  flight.inFree.push_back(s.forEachPeer(c.axes, start, [&](const Point &peer, Value) {
    return s.wait(s.slot(taken, pointOf(s, c.axes, peer)), s.constant(1), {}, s.controlLane(),
                  "await taken");
  }));
  flight.finish = [s, c, v, kept, got]() mutable -> SmallVector<Value> {
    SmallVector<Value> ready{kept, got};
    return joined(ready, demandExchanged(s, c, v.out, ready));
  };
  return flight;
}
