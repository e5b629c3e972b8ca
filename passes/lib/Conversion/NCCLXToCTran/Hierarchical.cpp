//===- Hierarchical.cpp - Along each tier of the machine in turn ---------------------------===//
//
// Schedule (g) of the ctran reference, with direct steps. All is cut by chunk, and within that by
// the place along the innermost tier, the next one, and so on: what one member has after a step is
// one box. all_reduce: sums along the innermost tier, each box then along the next, and the way
// back. What has been summed so far lies in the output. Every step of every tier has lanes of its
// own, so that all tiers are busy, each with another chunk.
//
// Where two tiers are left with an outer one that is not full, some chunks go straight to every
// member: that is the same with all tiers as one.
//
//===----------------------------------------------------------------------------------------===//
#include "Levels.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {

class AllReduce {
public:
  AllReduce(ScheduleBuilder &s, const CollectiveSpec &c, Chunking chunking, double chunkBytes,
            Value in, Value out, Value start)
      : s(s), c(c), chunking(chunking), chunkBytes(chunkBytes), in(in), out(out), start(start),
        nextLane(Levels::firstFree(c.tiers.size())) {}

  /// The chunks [first, last), along `tiers`; one token for all.
  Value emit(ArrayRef<TierOfGroup> tiers, int64_t first, int64_t last, StringRef suffix);

private:
  ScheduleBuilder &s;
  const CollectiveSpec &c;
  Chunking chunking;
  double chunkBytes;
  Value in, out, start;
  int64_t nextLane;

  /// Of a chunk what stands for `point` on the levels from `t` inwards.
  Value box(const Levels &levels, Value view, Value chunk, size_t t, const Point &point = {}) {
    SmallVector<Value> path{chunk};
    for (size_t u = levels.count(); u-- > t;)
      llvm::append_range(path, pointOf(s, levels.list[u].axes, point));
    return s.range(view, path);
  }
};

/// Elements of the largest part that a chunk is cut into, among so many.
int64_t partCapacity(const CollectiveSpec &c, int64_t chunks, int64_t among) {
  int64_t granule = flatGranule(c.inType);
  int64_t units = int64_t(llvm::divideCeil(c.inType.getNumElements(), granule));
  return std::max<int64_t>(1, llvm::divideCeil(units, chunks * among)) * granule;
}

Value AllReduce::emit(ArrayRef<TierOfGroup> tiers, int64_t first, int64_t last, StringRef suffix) {
  SmallVector<double> bytes(tiers.size());
  double left = chunkBytes;
  for (size_t t = tiers.size(); t-- > 0;)
    for (unsigned axis : tiers[t].axes)
      bytes[t] = left /= double(s.size(axis));
  Levels down(s, c, tiers, bytes, true, (suffix + ".rs").str(), nextLane);
  Levels up(s, c, tiers, bytes, true, (suffix + ".ag").str(), nextLane);
  size_t count = down.count();
  int64_t mine = last - first, room = std::min(mine, chunking.room);
  Tokens done;
  SmallVector<Value> parts, granted, partsFree, partsHere, sumsReady, sumsHere;
  for (size_t t = 0; t < count; ++t) {
    int64_t peers = down.list[t].size - 1;
    int64_t capacity = partCapacity(c, chunking.chunks, down.members(t, count));
    Value window = s.scratch(down.name + ".parts" + std::to_string(t),
                             MemRefType::get({room * peers * capacity}, c.inType.getElementType()));
    parts.push_back(s.reindex(window, std::nullopt, s.freeDim(room * peers, capacity)));
    Value ready = down.slots(t, "ready", 1);
    partsFree.push_back(mine > room ? down.slots(t, "free", mine) : Value());
    partsHere.push_back(down.slots(t, "data", mine));
    sumsReady.push_back(up.slots(t, "ready", mine));
    sumsHere.push_back(up.slots(t, "data", mine));
    // Nobody but this collective touches the scratch: it is free when a run starts.
    done.push_back(down.tellFirst(t, ready, s.program.getEntry()));
    granted.push_back(down.granted(t, ready, s.constant(1)));
  }

  // By level: the lanes of puts and what has been told, down and up.
  SmallVector<size_t> at;
  size_t tokens = 0;
  for (size_t t = 0; t < count; ++t) {
    at.push_back(tokens);
    tokens += 2 * (size_t(down.list[t].lanes) + 1);
  }
  auto told = [&](size_t t) { return at[t] + size_t(down.list[t].lanes); };
  auto upwards = [&](size_t t) { return told(t) + 1; };
  Tokens ends = down.loop(0, mine, Tokens(tokens, start), [&](Value i, Tokens &lanes) {
    Value chunk = s.add(i, first), once = s.add(i, 1);
    Value place = mine > room ? s.rem(i, room) : i;
    Value have = start;
    SmallVector<Value> sent;
    for (size_t t = count; t-- > 0;) {
      SmallVector<Value> after{have, granted[t]};
      if (mine > room)
        after.push_back(down.granted(t, partsFree[t], s.sub(once, room)));
      Value from = t + 1 == count ? in : out;
      down.forPeers(t, lanes, at[t], [&](Value distance) {
        Point to = down.peer(t, distance);
        Value slot = s.sub(distance, 1);
        return s.put(box(down, from, chunk, t, to),
                     s.range(s.at(parts[t], to), s.add(s.mul(place, down.list[t].size - 1), slot)),
                     s.slot(s.at(partsHere[t], to), slot), after, "put part");
      });
      for (int64_t lane = 0; lane < down.list[t].lanes; ++lane)
        sent.push_back(lanes[at[t] + lane]);
      Value here = down.arrived(t, s.slot(partsHere[t]), once, "await parts");
      int64_t peers = down.list[t].size - 1;
      Value others = s.interval(parts[t], s.mul(place, peers), s.constant(peers));
      after = {here, have};
      if (t + 1 == count)
        after = joined(after, c.outFree);
      have = down.sum(t, t == 0 ? c.lastStep() : c.step(), {others, box(down, from, chunk, t)},
                      box(down, out, chunk, t), after);
      if (mine > room)
        lanes[told(t)] = down.tellAll(t, partsFree[t], have);
    }
    // Peers overwrite what has been read for this chunk, where that lies in the output.
    sent.push_back(have);
    sent = joined(sent, c.outFree);
    for (size_t t = 0; t < count; ++t)
      lanes[upwards(t) + up.list[t].lanes] = up.tellAll(t, sumsReady[t], sent);
    SmallVector<Value> got{have};
    for (size_t t = 0; t < count; ++t) {
      SmallVector<Value> after(got);
      after.push_back(up.granted(t, sumsReady[t], once));
      up.forPeers(t, lanes, upwards(t), [&](Value distance) {
        Point to = up.peer(t, distance);
        return s.put(box(up, out, chunk, t), box(up, s.at(out, to), chunk, t),
                     s.slot(s.at(sumsHere[t], to), s.sub(distance, 1)), after, "put sum");
      });
      if (t + 1 < count)
        got.push_back(up.arrived(t, s.slot(sumsHere[t]), once, "await sums"));
    }
  });
  llvm::append_range(done, ends);
  for (size_t t = 0; t < count; ++t)
    done.push_back(up.arrived(t, s.slot(sumsHere[t]), s.constant(mine), "await all"));
  return up.join(done);
}

InFlight allReduce(ScheduleBuilder &s, const CollectiveSpec &given) {
  CollectiveSpec c = given;
  int64_t granule = flatGranule(c.inType), members = c.groupSize(s);
  int64_t units = int64_t(llvm::divideCeil(c.inType.getNumElements(), granule));
  double bytes = double(c.inType.getNumElements()) *
                 double(llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8));
  SmallVector<TierLoad> loads(c.tiers.size());
  SmallVector<int64_t> sizes(c.tiers.size(), 1);
  TierOfGroup straight = c.tiers.front();
  straight.axes.clear();
  double left = bytes;
  for (size_t t = c.tiers.size(); t-- > 0;) {
    for (unsigned axis : c.tiers[t].axes)
      sizes[t] *= s.size(axis);
    llvm::append_range(straight.axes, c.tiers[t].axes);
    loads[t] = {left /= double(sizes[t]), sizes[t] - 1, 2};
  }
  int64_t most = std::clamp<int64_t>(units / members, 1, c.tiers.size() > 2 ? 8 : 128);
  int64_t width = int64_t(llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8));
  auto scratchOf = [&](Chunking of) {
    int64_t elements = c.combination.scale ? c.inType.getNumElements() : 0;
    auto add = [&](ArrayRef<int64_t> sizes, int64_t mine) {
      int64_t among = 1;
      for (int64_t size : llvm::reverse(sizes)) {
        among *= size;
        elements += std::min(mine, of.room) * (size - 1) * partCapacity(c, of.chunks, among);
      }
    };
    int64_t past = straightChunks(c.tiers, sizes, of.chunks);
    if (past > 0)
      add(members, past);
    for (auto [first, last] : streams(past, of.chunks, c.tiers.size()))
      add(sizes, last - first);
    return elements * width;
  };
  Chunking chunking =
      fitted({chunksFor(s, c, loads, most, true, 1.0 / 32)}, most, c.scratchLeft, scratchOf);
  s.pipelined = ncclx::Pipeline{chunking.chunks};
  int64_t chunks = chunking.chunks, past = straightChunks(c.tiers, sizes, chunks);

  SmallVector<DimAttr> dims{s.freeDim(chunks, granule)};
  for (unsigned axis : straight.axes)
    dims.push_back(s.boundDim(axis, Cut::Balanced, granule));
  auto cut = [&](Value window) { return s.reindex(window, std::nullopt, dims); };
  Value in = cut(c.in), out = c.in == c.out ? in : cut(c.out);
  Value start = s.source(s.range(in), c.name, {}, c.axes, c.inReady);
  if (c.combination.scale) {
    Combination scaled = {c.combination.kind, c.combination.accumulate, c.combination.scale};
    Value moved = cut(s.scratch(c.name + ".scaled", c.inType));
    start = s.reduce(scaled, s.range(in), s.range(moved), start, "scale");
    in = moved;
    c.combination.scale = std::nullopt;
    c.outFree = joined(c.outFree, start);
  }
  AllReduce all(s, c, chunking, bytes / double(chunks), in, out, start);
  SmallVector<Value> done;
  if (past > 0)
    done.push_back(all.emit(straight, 0, past, ".past"));
  for (auto [first, last] : streams(past, chunks, c.tiers.size()))
    done.push_back(all.emit(c.tiers, first, last, "." + std::to_string(first)));
  InFlight flight;
  flight.inFree = done;
  done.push_back(s.sink(s.range(out), c.name, {}, c.axes, done));
  flight.finishWith(done);
  return flight;
}

} // namespace

InFlight ctran::emitHierarchical(ScheduleBuilder &s, const CollectiveSpec &c) {
  if (c.flow.route == ncclx::Dataflow::Route::FromRoot)
    return hierarchicalBroadcast(s, c);
  if (c.flow.combines && !c.flow.inCut)
    return allReduce(s, c);
  return hierarchicalExchange(s, c);
}
