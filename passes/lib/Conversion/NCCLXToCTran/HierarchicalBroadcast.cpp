//===- HierarchicalBroadcast.cpp - From a root along the tiers of a machine ----------------===//
//
// The members of the innermost tier that are together are a block, and each stands at one place of
// it. All is cut by chunk and by place. In the root's block the root gives each other member the
// box of its place, and its share of the one of the root's own place; who has got these passes them
// on within the block: so the root sends everything once. From place to place the boxes go on from
// block to block, one behind the other, and within each block from each member to all. The blocks
// follow each other by number, so that the outer tiers are crossed as seldom as can be.
//
//===----------------------------------------------------------------------------------------===//
#include "Levels.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ctran;

namespace {

class Broadcast {
public:
  Broadcast(ScheduleBuilder &s, const CollectiveSpec &c);
  InFlight emit();

private:
  ScheduleBuilder &s;
  const CollectiveSpec &c;
  Members members;
  int64_t inside = 1, blocks, chunks, rootBlock, rootPlace;
  Value block, place;
  /// Windows cut by chunk and place, and the box of a place further by who else is in the block.
  Value in, out;
  Value start, isRoot, besideRoot;
  /// At each member, by place and behind them for the next block: who may be written to. What has
  /// come from the root, from the own block by place, boxes and shares, and from the block before.
  Value ready, given, boxes, shares, passed;

  /// Lanes: of waits, of what goes to the next block, and of what goes to each place.
  enum Lane : int64_t { Waits = 1, Next, Places };

  int64_t chunkCount() const;
  Value cut(Value window);
  Value beside(Value place) { return s.add(s.mul(block, inside), place); }
  /// The member of the own place, in a block further on.
  Value along(int64_t by) { return s.add(s.mul(s.rem(s.add(block, by), blocks), inside), place); }
  /// Which share of the root's place falls to another place.
  Value shareOf(Value place) { return s.sub(s.rem(s.add(place, inside - rootPlace), inside), 1); }
  Value isAt(Value place, int64_t other) { return s.equal(place, s.constant(other)); }
  Value join(ValueRange tokens) {
    return FlushOp::create(s.builder, s.loc, tokens.front().getType(), tokens, LaneKind::Host,
                           s.constant(s.carrier.lane(Waits)), s.of,
                           s.builder.getStringAttr("joined"));
  }
  /// For each other place of the block, on the lanes of its own: body(place, token).
  Value forPlaces(Value token, llvm::function_ref<Value(Value place, Value token)> body) {
    SmallVector<Value> done;
    for (int64_t by = 1; by < inside; ++by)
      done.push_back(
          s.onLane(Places + by - 1, [&] { return body(s.rem(s.add(place, by), inside), token); }));
    return join(done);
  }
  Value tell();
  Value granted(Value of) {
    return s.awaitReady(s.slot(ready, of), s.constant(1), start, "await ready");
  }
  /// Puts the box, or share, that has this path to the same place at another member.
  Value put(Value from, ValueRange path, Value member, Value slots, Value slot, ValueRange after,
            StringRef note);
  Value putBox(Value from, Value chunk, Value of, Value member, Value slots, Value slot,
               ValueRange after) {
    return put(from, {chunk, of}, member, slots, slot, after, "put box");
  }
  Value putShare(Value from, Value chunk, Value share, Value member, Value slots, Value slot,
                 ValueRange after) {
    return put(from, {chunk, s.constant(rootPlace), share}, member, slots, slot, after,
               "put share");
  }
  Value putNext(Value from, Value chunk, ValueRange after) {
    return putBox(from, chunk, place, along(1), passed, Value(), after);
  }
  Value atRoot();
  Value passOn(Value from, int64_t each,
               llvm::function_ref<Value(Value chunk, Value to, ValueRange after)> pass);
  Value besideIt();
  Value elsewhere();
  Value awaitAll(Value slots, Value slot) {
    return s.arrive(s.slot(slots, slot), s.constant(chunks), {}, "await all");
  }
};

Broadcast::Broadcast(ScheduleBuilder &s, const CollectiveSpec &c) : s(s), c(c), members(s, c.axes) {
  for (unsigned axis : c.tiers.back().axes)
    inside *= s.size(axis);
  blocks = members.size() / inside;
  rootBlock = c.root / inside;
  rootPlace = c.root % inside;
  chunks = chunkCount();
  s.pipelined = ncclx::Pipeline{chunks};
  place = s.rem(members.own(), inside);
  block = s.div(members.own(), inside);
  isRoot = s.equal(members.own(), s.constant(c.root));
  besideRoot = isAt(block, rootBlock);
  in = cut(c.in);
  out = cut(c.out);
  ready = s.slots(c.name + ".ready", s.freeDim(inside + 1), 1);
  given = s.slots(c.name + ".given", {}, 2 * chunks);
  boxes = s.slots(c.name + ".boxes", s.freeDim(inside), chunks);
  shares = s.slots(c.name + ".shares", s.freeDim(inside), chunks);
  passed = s.slots(c.name + ".passed", {}, chunks);
}

/// What is busiest is busy for so long, whatever the chunks; each of them goes through all blocks,
/// and every step of it has its start.
int64_t Broadcast::chunkCount() const {
  int64_t granule = flatGranule(c.inType), most = 128;
  int64_t units = int64_t(llvm::divideCeil(c.inType.getNumElements(), granule));
  double bytes =
      double(units * granule) * double(llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8));
  double busy = bytes / c.tiers.back().bytesPerSecond, steps = double(blocks + 2), start = 0;
  for (const TierOfGroup &tier : c.tiers) {
    start = std::max(start, stepSeconds + tier.latency);
    if (&tier != &c.tiers.back())
      busy = std::max(busy, bytes / double(inside) / tier.bytesPerSecond);
  }
  int64_t best = c.pipeline.chunks ? *c.pipeline.chunks
                                   : int64_t(std::sqrt(busy * steps / start / double(inside)));
  return std::clamp<int64_t>(best, 1, std::clamp<int64_t>(units / inside, 1, most));
}

Value Broadcast::cut(Value window) {
  int64_t granule = flatGranule(c.inType);
  return s.reindex(
      window, std::nullopt,
      {s.freeDim(chunks, granule), s.freeDim(inside, granule), s.freeDim(inside - 1, granule)});
}

Value Broadcast::put(Value from, ValueRange path, Value member, Value slots, Value slot,
                     ValueRange after, StringRef note) {
  Value rank = members.rank(member), at = members.atRank(slots, rank);
  return s.put(s.range(from, path), s.range(members.atRank(out, rank), path),
               slot ? s.slot(at, slot) : s.slot(at), after, note);
}

/// All but the root are written to: by their block, and by the one before.
Value Broadcast::tell() {
  Value told = forPlaces(c.outFree.front(), [&](Value to, Value) {
    Value rank = members.rank(beside(to));
    return s.ready(s.slot(members.atRank(ready, rank), place), c.outFree, "ready");
  });
  Value next = s.branch(
      besideRoot, [&] { return c.outFree.front(); },
      [&] {
        Value rank = members.rank(along(blocks - 1));
        return s.ready(s.slot(members.atRank(ready, rank), s.constant(inside)), c.outFree, "ready");
      });
  return join({told, next});
}

Value Broadcast::atRoot() {
  Value sent = forPlaces(start, [&](Value to, Value token) {
    Value may = granted(to);
    return s.loop(0, chunks, token, [&](Value chunk, Value before) {
      Value box = putBox(in, chunk, to, beside(to), given, Value(), {before, may});
      return putShare(in, chunk, shareOf(to), beside(to), given, Value(), box);
    });
  });
  Value next = s.onLane(Next, [&] {
    Value may = granted(s.constant(inside));
    return s.loop(0, chunks, may,
                  [&](Value chunk, Value before) { return putNext(in, chunk, {before, may}); });
  });
  Value kept = s.copy(s.range(in), s.range(out), Value(), joined({start}, c.outFree),
                      s.controlLane(), "keep own");
  return join({sent, next, kept});
}

/// What comes `each` times a chunk to `from` goes on, to the places of the block by `pass`, but not
/// to the root, and where there is one to the next block.
Value Broadcast::passOn(Value from, int64_t each,
                        llvm::function_ref<Value(Value chunk, Value to, ValueRange after)> pass) {
  Value isLast = isAt(s.rem(s.add(block, 1), blocks), rootBlock);
  SmallVector<Value> places, nobody; // the last is the next block's
  for (int64_t by = 1; by < inside; ++by) {
    places.push_back(s.rem(s.add(place, by), inside));
    nobody.push_back(s.equal(beside(places.back()), s.constant(c.root)));
  }
  places.push_back(s.constant(inside));
  nobody.push_back(isLast);
  auto laneOf = [&](size_t i) {
    return i + 1 == places.size() ? int64_t(Next) : Places + int64_t(i);
  };
  SmallVector<Value> may;
  for (size_t i = 0; i < places.size(); ++i)
    may.push_back(s.onLane(laneOf(i), [&] {
      return s.branch(nobody[i], [&] { return start; }, [&] { return granted(places[i]); });
    }));
  auto loop =
      scf::ForOp::create(s.builder, s.loc, s.constant(0), s.constant(chunks), s.constant(1), may);
  {
    OpBuilder::InsertionGuard guard(s.builder);
    s.builder.setInsertionPointToStart(loop.getBody());
    Value chunk = loop.getInductionVar();
    Value here = s.onLane(Waits, [&] {
      return s.arrive(s.slot(from), s.mul(s.add(chunk, 1), each), {}, "await chunk");
    });
    SmallVector<Value> next;
    for (size_t i = 0; i < places.size(); ++i) {
      Value before = loop.getRegionIterArgs()[i];
      next.push_back(s.onLane(laneOf(i), [&] {
        return s.branch(
            nobody[i], [&] { return before; },
            [&] {
              SmallVector<Value> after{here, before};
              return i + 1 == places.size() ? putNext(out, chunk, after)
                                            : pass(chunk, places[i], after);
            });
      }));
    }
    scf::YieldOp::create(s.builder, s.loc, next);
  }
  SmallVector<Value> done(loop.getResults());
  done.push_back(s.onLane(
      Waits, [&] { return s.arrive(s.slot(from), s.constant(each * chunks), {}, "await all"); }));
  return join(done);
}

Value Broadcast::besideIt() {
  Value sent = passOn(given, 2, [&](Value chunk, Value to, ValueRange after) {
    Value box = putBox(out, chunk, place, beside(to), boxes, place, after);
    return putShare(out, chunk, shareOf(place), beside(to), shares, place, box);
  });
  return forPlaces(sent, [&](Value from, Value token) {
    return s.branch(
        isAt(from, rootPlace), [&] { return token; },
        [&] { return join({token, awaitAll(boxes, from), awaitAll(shares, from)}); });
  });
}

Value Broadcast::elsewhere() {
  Value sent = passOn(passed, 1, [&](Value chunk, Value to, ValueRange after) {
    return putBox(out, chunk, place, beside(to), boxes, place, after);
  });
  return forPlaces(sent,
                   [&](Value from, Value token) { return join({token, awaitAll(boxes, from)}); });
}

InFlight Broadcast::emit() {
  Views whole{in, out};
  start = sourceRooted(s, c, whole, members);
  InFlight flight;
  flight.others = {s.branch(isRoot, [&] { return c.outFree.front(); }, [&] { return tell(); })};
  Value done = s.branch(
      isRoot, [&] { return atRoot(); },
      [&] {
        return s.branch(besideRoot, [&] { return besideIt(); }, [&] { return elsewhere(); });
      });
  flight.inFree = {done};
  SmallVector<Value> ready{done, demandRooted(s, c, whole, members, done)};
  flight.finishWith(ready);
  return flight;
}

} // namespace

InFlight ctran::hierarchicalBroadcast(ScheduleBuilder &s, const CollectiveSpec &c) {
  return Broadcast(s, c).emit();
}
