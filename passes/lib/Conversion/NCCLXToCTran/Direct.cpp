//===- Direct.cpp - Every member sends to every other in one step ------------------===//
//
// Schedules (a) and (e) of the ctran reference: a ready token from each receiver, one put to each,
// one wait for each. all_gather, all_to_all and permute are one exchange; reduce_scatter is an
// exchange into scratch and one reduction in member order; all_reduce is both, one after the other
// (two-shot). Where sums run beside copies, a reduction goes in chunks of its pieces: a chunk is
// summed while the next travels. Those of a reduce_scatter are each half of what is left, as the
// last sum is waited for. Those of an all_reduce are alike, since the first sums travel on while
// the last ones are made, and take two lanes to each peer in turn: one starts while the other
// carries.
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

#include "llvm/Support/MathExtras.h"

#include <vector>

using namespace mlir;
using namespace mlir::ctran;

namespace {

/// What moves in an exchange: the box of the own input that a member gets, and the box of that
/// member's output in which it arrives. Where sizes are known at run time only, of both the size
/// given.
struct Boxes {
  std::function<Value(const Point &peer, Value size)> source;
  std::function<Value(Value view, Value size)> dest; ///< in the view of its memory
  Value out;                                         ///< the view that members write
  bool keepsOwn = true;                              ///< the own piece is copied, too
  int64_t ownLane = 0;                               ///< on which it is copied
  int64_t lanes = 0;                                 ///< the first of those that reach the peers
  /// Peers are told that they may begin one after the other, on this lane; nothing: each on its
  /// own.
  std::optional<int64_t> tellLane = std::nullopt;
  /// Reads the size of what a member gets: it, and its token. Null: all of the box.
  std::function<std::pair<Value, Value>(const Point &peer, ValueRange after)> size = nullptr;
};

/// An exchange of which only the arrivals are still to be awaited.
struct Exchange {
  SmallVector<unsigned> axes;
  Value data; ///< one slot for each member's piece
  bool keepsOwn;
  SmallVector<Value> sent; ///< the input has been read
  SmallVector<Value> puts; ///< by copies to peers
  SmallVector<Value> told; ///< the ready tokens have been sent
};

/// Whether a copy of so many bytes, in the own memory, takes longer than another lane does to
/// start.
bool isLong(ScheduleBuilder &s, int64_t bytes) {
  return 2 * double(bytes) * s.carrier.sumSecondsPerByte > stepSeconds;
}

/// Where pieces have so many bytes and what peers get takes so many lanes: the lane on which the
/// own piece is copied is another where those are several, or it is long. Peers that get long ones
/// begin one after the other, and so do the next copies on their lanes: while one starts the others
/// carry.
void chooseLanes(ScheduleBuilder &s, Boxes &boxes, int64_t bytes, int64_t taken) {
  boxes.ownLane = taken > 1 || isLong(s, bytes) ? taken : 0;
  if (isLong(s, bytes))
    boxes.tellLane = 0;
}

/// Without `outFree` nobody is asked whether it is ready: an exchange before this one, of the same
/// peers on the same lanes, has asked. Peers are asked at once, and get nothing before `turn`.
Exchange exchange(ScheduleBuilder &s, StringRef name, ArrayRef<unsigned> axes, const Boxes &boxes,
                  ValueRange inReady, ValueRange outFree, ValueRange turn = {}) {
  SmallVector<DimAttr> dims = boundDims(s, axes);
  Value rtr = outFree.empty() ? Value() : s.slots((name + ".ready").str(), dims, 1);
  Value data = s.slots((name + ".data").str(), dims, 1);
  Exchange e{SmallVector<unsigned>(axes), data, boxes.keepsOwn, {}, {}, {}};

  auto sizeFor = [&](const Point &peer, SmallVector<Value> &after) {
    if (!boxes.size)
      return Value();
    auto [size, read] = boxes.size(peer, inReady);
    after.push_back(read);
    return size;
  };
  // A loop's token covers its last iteration, and so the earlier ones on the same lane (S13).
  if (rtr) {
    auto tell = [&](const Point &peer, Value) {
      return s.ready(s.slot(s.at(rtr, peer), ownPoint(s, axes)), outFree, "ready");
    };
    if (boxes.tellLane)
      e.told = {
          s.onLane(*boxes.tellLane, [&] { return s.forEachPeer(axes, outFree.front(), tell); })};
    else
      e.told = s.forEachPeerInTurn(axes, outFree.front(), tell, boxes.lanes);
  }
  // Nothing orders copies to different peers, so they may be under way together.
  e.puts = s.forEachPeerInTurn(
      axes, inReady.front(),
      [&](const Point &peer, Value) {
        SmallVector<Value> after = joined(inReady, turn);
        if (rtr)
          after.push_back(
              s.awaitReady(s.slot(rtr, pointOf(s, axes, peer)), s.constant(1), {}, "await ready"));
        Value size = sizeFor(peer, after);
        return s.put(boxes.source(peer, size), boxes.dest(s.at(boxes.out, peer), size),
                     s.slot(s.at(data, peer), ownPoint(s, axes)), after, "put");
      },
      boxes.lanes);
  e.sent = e.puts;
  // The own piece last, as no peer waits for it. It raises a slot like any other, so that whoever
  // waits for a piece need not know whose it is.
  if (boxes.keepsOwn) {
    SmallVector<Value> after = joined(inReady, outFree);
    Value size = sizeFor(Point(), after);
    e.sent.push_back(s.onLane(boxes.ownLane, [&] {
      Value kept = s.copy(boxes.source(Point(), size), boxes.dest(boxes.out, size), Value(), after,
                          s.controlLane(), "keep own");
      return s.signal(s.slot(data, ownPoint(s, axes)), kept, s.controlLane(), "kept own");
    }));
  }
  return e;
}

/// Waits for every piece.
Value arriveAll(ScheduleBuilder &s, const Exchange &e, Value start) {
  if (e.keepsOwn)
    return s.arrive(s.slotInterval(e.data, s.size(e.axes.front())), s.constant(1), {},
                    "await data");
  return s.forEachPeer(e.axes, start, [&](const Point &peer, Value) {
    return s.arrive(s.slot(e.data, pointOf(s, e.axes, peer)), s.constant(1), {}, "await data");
  });
}

/// The chunks of each member's piece, in a view for each of input and output.
struct Chunks {
  Views views;
  int64_t halvings = 0; ///< each but the last is half of what those before it leave; or
  int64_t alike = 1;    ///< so many of one size
  int64_t lanes = 1;    ///< that reach the peers
  int64_t peers = 0;
  /// Elements of one piece that are cut together, and how many of those a piece has at most.
  int64_t unit = 1, units = 0;
  /// Of a reduce_scatter in chunks, the output is a view of the own piece alone.
  bool ownPart = false;

  int64_t count() const { return halvings ? halvings + 1 : alike; }
  /// Room for the chunk of every member's piece, as what cuts them alone says (Sizes.cpp).
  int64_t capacity(int64_t chunk) const {
    int64_t left = llvm::divideCeil(units, alike);
    for (int64_t i = 0; i < halvings && i <= chunk; ++i)
      left -= left / 2;
    return left * unit;
  }
  Value box(ScheduleBuilder &s, Value view, SmallVector<Value> piece, int64_t chunk) const {
    for (int64_t i = 0; i < halvings && i <= chunk; ++i)
      piece.push_back(s.constant(i < chunk));
    if (alike > 1)
      piece.push_back(s.constant(chunk));
    return s.range(view, piece);
  }
  /// Who sums a chunk still tells peers that the next step's memory is free (Boxes::tellLane).
  std::optional<int64_t> tellLane() const {
    return count() > 1 && peers > 1 ? std::optional(lanes + 2) : std::nullopt;
  }
  /// Of the lanes that carry a chunk the first, and whether it is the first on them.
  int64_t firstLane(int64_t chunk) const { return alike > 1 ? chunk % 2 * (lanes / 2) : 0; }
  bool isFirst(int64_t chunk) const { return chunk < (alike > 1 ? 2 : 1); }
  std::string name(const CollectiveSpec &c, StringRef phase, int64_t chunk) const {
    return c.name + phase.str() + (count() > 1 ? std::to_string(chunk) : "");
  }
};

/// As many as make what is left to sum at the end as short as the steps that they cost.
Chunks chunksOf(ScheduleBuilder &s, const CollectiveSpec &c, const Views &whole) {
  std::optional<int64_t> dim = c.flow.inCut;
  int64_t members = c.groupSize(s), capacity = capacityOf(s, c);
  Chunks chunks{whole};
  chunks.lanes = s.carrier.lanes;
  chunks.peers = members - 1;
  chunks.unit = flatGranule(c.inType);
  if (dim) {
    int64_t extent = std::max<int64_t>(1, c.inType.getDimSize(*dim));
    chunks.unit = std::max<int64_t>(1, c.inType.getNumElements() / extent);
  }
  chunks.units = int64_t(llvm::divideCeil(capacity, chunks.unit));
  int64_t bytes = llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8);
  double seconds =
      s.carrier.sumSecondsPerByte * double(capacity) * double(bytes) * double(members + 1);
  // A shard that is not full is cut otherwise than its place in the whole.
  if (members == 1 || seconds < 2 * stepSeconds || (dim && c.inType.getDimSize(*dim) % members))
    return chunks;
  // Two chunks travel, and one of those before them is summed meanwhile or waits for it. A pair
  // keeps the halves that two cards were measured with: by the model those cost it up to 3 % more.
  constexpr int64_t fewChunks = 4, mostLanes = 16;
  if (!dim && chunks.peers > 1 && chunks.peers <= s.carrier.lanes &&
      2 * chunks.peers <= mostLanes && chunks.units >= fewChunks) {
    chunks.alike = fewChunks;
    chunks.lanes = 2 * chunks.peers;
  } else {
    chunks.halvings = std::min<int64_t>(8, int64_t(llvm::Log2_64(uint64_t(seconds / stepSeconds))));
    chunks.halvings =
        std::min<int64_t>(chunks.halvings, llvm::Log2_64(std::max<int64_t>(1, chunks.units)));
  }
  int64_t granule = dim ? 1 : flatGranule(c.inType);
  SmallVector<DimAttr> dims;
  if (dim)
    dims = chunkDims(s, c.axes, c.inType.getDimSize(*dim));
  else
    for (unsigned axis : c.axes)
      dims.push_back(s.boundDim(axis, Cut::Balanced, granule));
  SmallVector<DimAttr> parts(chunks.halvings, s.freeDim(2, granule));
  if (chunks.alike > 1)
    parts.push_back(s.freeDim(chunks.alike, granule));
  llvm::append_range(dims, parts);
  chunks.views.in = s.reindex(c.in, dim, dims);
  chunks.ownPart = dim.has_value();
  chunks.views.out = chunks.ownPart  ? s.reindex(c.out, dim, parts)
                     : c.in == c.out ? chunks.views.in
                                     : s.reindex(c.out, dim, dims);
  return chunks;
}

} // namespace

/// all_gather, all_to_all, and all_to_all_v with sizes: one exchange, straight into the outputs.
static InFlight directExchange(ScheduleBuilder &s, const CollectiveSpec &c, const Views &v) {
  bool shard = !c.flow.inCut;
  SmallVector<Value> own = ownPoint(s, c.axes);
  Value start = s.source(shard ? s.range(v.in, own) : s.range(v.in), c.name, own, {}, c.inReady);
  Boxes boxes{[&](const Point &peer, Value size) { return inputBox(s, c, v.in, peer, size); },
              [&](Value view, Value size) { return outputBox(s, c, view, Point(), size); }, v.out};
  int64_t element = llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8);
  chooseLanes(s, boxes, capacityOf(s, c) * element, s.carrier.lanes);
  SmallVector<Value> outFree = c.outFree;
  if (c.flow.sized) {
    int64_t members = c.groupSize(s), most = c.inType.getDimSize(*c.flow.inCut) / members;
    Value sizes = s.reindex(c.sizes, 0, chunkDims(s, c.axes, members));
    boxes.size = [&s, &c, sizes, most](const Point &peer, ValueRange after) {
      return s.count(s.range(sizes, pointOf(s, c.axes, peer)), most, after, "size");
    };
    outFree = {c.zero(s, c.outFree)}; // what nobody sends
  }
  Exchange e = exchange(s, c.name, c.axes, boxes, start, outFree, c.turn);
  InFlight flight;
  flight.inFree = e.sent;
  flight.sent = e.puts;
  llvm::append_range(flight.others, e.told);
  flight.chunk = [s, e](ArrayRef<int64_t> member) mutable {
    SmallVector<Value> at;
    for (int64_t i : member)
      at.push_back(s.constant(i));
    return s.arrive(s.slot(e.data, at), s.constant(1), {}, "await chunk");
  };
  flight.finish = [s, e, c, v, start]() mutable -> SmallVector<Value> {
    Value ready = arriveAll(s, e, start);
    return joined(ready, demandExchanged(s, c, v.out, ready));
  };
  return flight;
}

/// A permute by a shift.
static InFlight directShift(ScheduleBuilder &s, const CollectiveSpec &c, const Views &v) {
  unsigned axis = c.axes.front();
  int64_t n = s.size(axis), by = ((c.shift % n) + n) % n;
  Value start = s.source(s.range(v.in), c.name, ownPoint(s, c.axes), {}, c.inReady);
  Value rtr = s.slots(c.name + ".ready", {}, 1), data = s.slots(c.name + ".data", {}, 1);
  Point to = s.neighbour(axis, by), from = s.neighbour(axis, n - by);
  InFlight flight;
  flight.others.push_back(s.ready(s.slot(s.at(rtr, from)), c.outFree, "ready"));
  Value granted = s.awaitReady(s.slot(rtr), s.constant(1), {}, "await ready");
  flight.inFree = {s.put(s.range(v.in), s.range(s.at(v.out, to)), s.slot(s.at(data, to)),
                         joined({start, granted}, c.turn), "put")};
  flight.sent = flight.inFree;
  flight.finish = [s, c, v, data, from]() mutable -> SmallVector<Value> {
    Value ready = s.arrive(s.slot(data), s.constant(1), {}, "await data");
    return {ready, s.sink(s.range(v.out), c.name, pointOf(s, c.axes, from), {}, ready)};
  };
  return flight;
}

/// reduce_scatter and all_reduce: exchanges into scratch, each with one reduction in member order;
/// an all_reduce sends each sum on.
static InFlight directReduction(ScheduleBuilder &s, const CollectiveSpec &c, const Views &whole) {
  InFlight flight;
  Chunks chunks = chunksOf(s, c, whole);
  const Views &v = chunks.views;
  SmallVector<Value> own = ownPoint(s, c.axes);
  SmallVector<Value> mine = chunks.ownPart ? SmallVector<Value>() : own;
  Value start = s.source(s.range(v.in), c.name, {}, c.axes, c.inReady);
  // Of two operands the order is none: the own one may come behind the other, and so from where it
  // is. Of more its place is in the middle.
  bool keepsOwn = c.groupSize(s) != 2 || c.in == c.out || s.carrier.oneKernel;
  // What arrives is awaited beside what is still being sent.
  int64_t arrivals = chunks.count() > 1 ? chunks.lanes + 1 : 0;
  int64_t element = llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8);
  SmallVector<Value> parts;
  std::vector<Exchange> exchanges;
  for (int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
    parts.push_back(memberWindow(s, c, chunks.capacity(chunk), 1,
                                 chunks.count() > 1 ? std::to_string(chunk) : ""));
    Boxes boxes{[&](const Point &peer, Value) {
                  return chunks.box(s, v.in, pointOf(s, c.axes, peer), chunk);
                },
                [&](Value view, Value) { return s.range(view, ownPoint(s, c.axes)); }, parts.back(),
                keepsOwn};
    chooseLanes(s, boxes, chunks.capacity(chunk) * element, chunks.lanes);
    boxes.tellLane = chunks.tellLane();
    boxes.lanes = chunks.firstLane(chunk);
    // Nobody but this collective touches the scratch: it is free when a run starts.
    Value entry = s.program.getEntry();
    // A chunk's copies follow those of the one before on their lanes.
    Exchange e = exchange(s, chunks.name(c, ".rs", chunk), c.axes, boxes, start,
                          chunks.isFirst(chunk) ? ValueRange(entry) : ValueRange(),
                          chunks.isFirst(chunk) ? ValueRange(c.turn) : ValueRange());
    llvm::append_range(flight.inFree, e.sent);
    llvm::append_range(flight.sent, e.puts);
    llvm::append_range(flight.others, e.told);
    exchanges.push_back(std::move(e));
  }
  // In place, the sum overwrites a piece that only this rank still needed, and peers' sums
  // overwrite pieces that have been sent to them: those puts must be complete first.
  SmallVector<Value> outFree =
      c.in == c.out ? joined(c.outFree, flight.inFree) : SmallVector<Value>(c.outFree);
  SmallVector<Value> sums;
  std::vector<Exchange> spread;
  for (int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
    Value here = s.onLane(arrivals, [&] { return arriveAll(s, exchanges[chunk], start); });
    SmallVector<Value> sources, after = joined(here, c.outFree);
    if (keepsOwn) {
      sources = {s.interval(parts[chunk], s.size(c.axes.front()))};
    } else {
      Point other = s.memberBy(c.axes, s.constant(1));
      sources = {s.range(parts[chunk], pointOf(s, c.axes, other)), chunks.box(s, v.in, own, chunk)};
      after = joined(after, start);
    }
    sums.push_back(
        s.reduce(c.combination, sources, chunks.box(s, v.out, mine, chunk), after, "reduce"));
    if (c.flow.inCut)
      continue;
    auto ownBox = [&](Value view) { return chunks.box(s, view, ownPoint(s, c.axes), chunk); };
    Boxes boxes{[&](const Point &, Value) { return ownBox(v.out); },
                [&](Value view, Value) { return ownBox(view); }, v.out, /*keepsOwn=*/false};
    boxes.lanes = chunks.firstLane(chunk);
    boxes.tellLane = chunks.tellLane();
    Exchange e = exchange(s, chunks.name(c, ".ag", chunk), c.axes, boxes, sums.back(),
                          chunks.isFirst(chunk) ? ValueRange(outFree) : ValueRange());
    llvm::append_range(flight.others, e.sent);
    llvm::append_range(flight.sent, e.puts);
    llvm::append_range(flight.others, e.told);
    spread.push_back(std::move(e));
  }
  if (!keepsOwn)
    llvm::append_range(flight.inFree, sums);
  if (c.flow.inCut) {
    flight.others.push_back(s.sink(s.range(v.out, mine), c.name, own, c.axes, sums));
    flight.finish = [sums]() { return sums; };
    return flight;
  }
  flight.finish = [s, spread, c, v, sums, arrivals]() mutable -> SmallVector<Value> {
    SmallVector<Value> ready = sums;
    for (auto [e, sum] : llvm::zip_equal(spread, sums))
      ready = joined(ready, s.onLane(arrivals, [&] { return arriveAll(s, e, sum); }));
    Value demanded = s.sink(s.range(v.out), c.name, {}, c.axes, ready);
    ready.push_back(demanded);
    return ready;
  };
  return flight;
}

InFlight ctran::emitDirect(ScheduleBuilder &s, const CollectiveSpec &c) {
  using Route = ncclx::Dataflow::Route;
  if (c.flow.counts)
    return directCounts(s, c);
  // Of an exchange of several sizes the blocks are cut differently, too.
  if (!c.haveOneSize() && c.flow.inCut && c.flow.outCut)
    return emitBySize(s, c, emitListed);
  if (!c.groups.empty())
    return emitListed(s, c);
  if (c.flow.route == Route::FromRoot || c.flow.route == Route::ToRoot)
    return directRooted(s, c);
  if (c.flow.route == Route::Listed && c.zero)
    return permutePairs(s, c);
  Views v = makeViews(s, c);
  if (c.flow.route == Route::Listed)
    return directShift(s, c, v);
  return c.flow.combines ? directReduction(s, c, v) : directExchange(s, c, v);
}
