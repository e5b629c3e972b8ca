//===- HierarchicalExchange.cpp - Gathers, scatters and exchanges along tiers --------------===//
//
// all_gather: a member's part goes to its partners across the outermost tier, from each on to
// theirs across the next one, and so on inwards. reduce_scatter is the way back: what goes to one
// place of the outer tiers is summed along the innermost tier first. Both in chunks of the parts.
// all_to_all: what goes to another host goes inside first, to the member that stands there where
// the receiver does, and from it across (rails).
//
// Shards that do not cut the tensor evenly go in one chunk.
//
//===----------------------------------------------------------------------------------------===//
#include "Levels.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {

/// The parts of a collective: who has them, and their chunks.
struct Parts {
  int64_t chunks = 1, past = 0, room = 1;
  int64_t capacity = 1; ///< elements of the largest chunk
  double bytes = 0;     ///< of a chunk
  bool even = true;     ///< else there is one chunk, and no dimension for it
  TierOfGroup straight; ///< all tiers as one

  Parts(ScheduleBuilder &s, const CollectiveSpec &c);

  Value range(ScheduleBuilder &s, Value view, SmallVector<Value> path, Value chunk) const {
    if (even)
      path.push_back(chunk);
    return s.range(view, path);
  }
  /// A window of all members' parts, and one of the own part.
  Value whole(ScheduleBuilder &s, const CollectiveSpec &c, Value window) const;
  Value own(ScheduleBuilder &s, const CollectiveSpec &c, Value window) const;
};

Parts::Parts(ScheduleBuilder &s, const CollectiveSpec &c) {
  int64_t dim = c.flow.inCut ? *c.flow.inCut : *c.flow.outCut;
  MemRefType type = c.flow.inCut ? c.inType : c.outType;
  int64_t members = c.groupSize(s), rows = type.getDimSize(dim);
  even = rows % members == 0;
  int64_t row = rows ? std::max<int64_t>(1, type.getNumElements() / rows) : 1;
  double part = double(type.getNumElements()) / double(members) *
                double(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  SmallVector<TierLoad> loads(c.tiers.size());
  SmallVector<int64_t> sizes(c.tiers.size(), 1);
  straight = c.tiers.front();
  straight.axes.clear();
  int64_t outer = 1, most = 64, puts = 32768; // of a rank: what is simulated and proved in a second
  for (size_t t = 0; t < c.tiers.size(); ++t) {
    for (unsigned axis : c.tiers[t].axes)
      sizes[t] *= s.size(axis);
    llvm::append_range(straight.axes, c.tiers[t].axes);
    loads[t] = {part, sizes[t] - 1, outer};
    most = std::clamp<int64_t>(puts / (outer * (sizes[t] - 1)), 1, most);
    outer *= sizes[t];
  }
  auto capacityIn = [&](int64_t chunks) {
    return std::max<int64_t>(1, int64_t(llvm::divideCeil(llvm::divideCeil(rows, members), chunks)) *
                                    row);
  };
  // Of sums: what each level holds for each place of the outer ones, and passes on.
  auto scratchOf = [&](Chunking of) {
    int64_t elements = c.combination.scale ? type.getNumElements() : 0;
    auto add = [&](ArrayRef<int64_t> sizes, int64_t mine) {
      int64_t outer = 1, held = std::min(mine, of.room);
      for (auto [t, size] : llvm::enumerate(sizes)) {
        elements +=
            (held * outer * (size - 1) + (t > 0 ? mine * outer : 0)) * capacityIn(of.chunks);
        outer *= size;
      }
    };
    int64_t past = even ? straightChunks(c.tiers, sizes, of.chunks) : 0;
    if (past > 0)
      add(members, past);
    for (auto [first, last] : streams(past, of.chunks, c.tiers.size()))
      add(sizes, last - first);
    return elements * int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  };
  Chunking chunking;
  if (even) {
    most = std::clamp<int64_t>(rows / members, 1, most);
    chunking.chunks = chunksFor(s, c, loads, most, false, c.flow.combines ? 1.0 / 16 : 1.0 / 8);
    if (c.flow.combines)
      chunking = fitted(chunking, most, c.scratchLeft, scratchOf);
    past = straightChunks(c.tiers, sizes, chunking.chunks);
    s.pipelined = ncclx::Pipeline{chunking.chunks};
  } else {
    s.whole = "its shards are not all full";
  }
  chunks = chunking.chunks;
  room = chunking.room;
  bytes = part / double(chunks);
  capacity = capacityIn(chunks);
}

Value Parts::whole(ScheduleBuilder &s, const CollectiveSpec &c, Value window) const {
  int64_t dim = c.flow.inCut ? *c.flow.inCut : *c.flow.outCut;
  MemRefType type = c.flow.inCut ? c.inType : c.outType;
  SmallVector<DimAttr> dims = chunkDims(s, c.axes, type.getDimSize(dim));
  if (even)
    dims.push_back(s.freeDim(chunks));
  return s.reindex(window, dim, dims);
}

Value Parts::own(ScheduleBuilder &s, const CollectiveSpec &c, Value window) const {
  int64_t dim = c.flow.inCut ? *c.flow.inCut : *c.flow.outCut;
  return s.reindex(window, dim, s.freeDim(chunks));
}

//===--- all_gather -------------------------------------------------------------------------===//

/// The chunks [first, last) along `tiers`. `have` holds the own part, in the view `in` by chunk
/// alone, or where that is null in `out`. One token for all.
Value gather(ScheduleBuilder &s, const CollectiveSpec &c, const Parts &parts,
             ArrayRef<TierOfGroup> tiers, int64_t first, int64_t last, StringRef suffix,
             int64_t &nextLane, Value in, Value out, Value have) {
  SmallVector<double> bytes(tiers.size(), parts.bytes);
  // The own part goes on lanes of its own: what has to come first would keep it.
  Levels levels(s, c, tiers, bytes, false, suffix, nextLane),
      owns(s, c, tiers, bytes, false, suffix, nextLane);
  size_t count = levels.count();
  int64_t mine = last - first;
  Tokens done;
  SmallVector<Value> data, granted;
  SmallVector<size_t> at;
  size_t lanes = 0;
  for (size_t t = 0; t < count; ++t) {
    Value ready = levels.slots(t, "ready", 1);
    // By whose part it is, on the outer levels, and the distance of the peer that sends it.
    data.push_back(levels.slots(t, "data", mine, levels.members(0, t)));
    done.push_back(levels.tellFirst(t, ready, c.outFree));
    granted.push_back(levels.granted(t, ready, s.constant(1)));
    at.push_back(lanes);
    lanes += size_t(levels.list[t].lanes) * (t > 0 ? 2 : 1);
  }
  auto slot = [&](size_t t, Value slots, Value outer, Value distance) {
    SmallVector<Value> path;
    if (levels.members(0, t) > 1)
      path.push_back(outer);
    path.push_back(s.sub(distance, 1));
    return s.slot(slots, path);
  };
  Tokens ends = levels.loop(0, mine, Tokens(lanes, have), [&](Value i, Tokens &tokens) {
    Value chunk = s.add(i, first);
    // The part of the member that is `number` back on the levels outside of `t`.
    auto send = [&](size_t t, Value number, Point owner, bool isOwn, Value after, Tokens &tokens) {
      SmallVector<Value> path = pointOf(s, c.axes, owner);
      Value source = isOwn && in ? s.range(in, chunk) : parts.range(s, out, path, chunk);
      bool apart = isOwn && t > 0;
      Levels &on = apart ? owns : levels;
      on.forPeers(t, tokens, at[t] + (apart ? levels.list[t].lanes : 0), [&](Value distance) {
        Point to = levels.peer(t, distance);
        return s.put(source, parts.range(s, s.at(out, to), path, chunk),
                     slot(t, s.at(data[t], to), number, distance), {after, granted[t]}, "put");
      });
    };
    for (size_t t = 0; t < count; ++t) {
      send(t, s.constant(0), Point(), true, have, tokens);
      // What has come across an outer tier u, there from a peer and before that from further out.
      for (size_t u = 0; u < t; ++u) {
        int64_t peers = levels.list[u].size - 1, outer = levels.members(0, u);
        tokens = levels.loop(0, outer * peers, tokens, [&](Value which, Tokens &tokens) {
          Value distance = s.add(s.rem(which, peers), 1), number = s.div(which, peers);
          Value here = levels.arrived(u, slot(u, data[u], number, distance), s.add(i, 1), "await");
          Point owner;
          if (outer > 1)
            levels.moveOuter(owner, u, number, /*back=*/true);
          levels.move(owner, u, distance, /*back=*/true);
          Value all = s.mul(s.add(s.mul(number, peers + 1), distance), levels.members(u + 1, t));
          send(t, all, owner, false, here, tokens);
        });
      }
    }
  });
  llvm::append_range(done, ends);
  for (size_t t = 0; t < count; ++t)
    done.push_back(levels.arrived(t, s.slot(data[t]), s.constant(mine), "await all"));
  return levels.join(done);
}

InFlight allGather(ScheduleBuilder &s, const CollectiveSpec &c) {
  Parts parts(s, c);
  Value out = parts.whole(s, c, c.out);
  SmallVector<Value> own = ownPoint(s, c.axes);
  Value in = parts.even ? parts.own(s, c, c.in) : Value();
  Value mine = parts.even ? s.range(in) : s.range(makeViews(s, c).in, own);
  Value start = s.source(mine, c.name, own, {}, c.inReady);
  Value kept = s.copy(mine, s.range(out, own), Value(), joined(start, c.outFree), s.controlLane(),
                      "keep own");
  Value have = in ? start : kept;
  int64_t lane = Levels::firstFree(c.tiers.size());
  SmallVector<Value> done{kept};
  // The second stream starts later, so that they do not start their copies at the same time.
  for (auto [first, last] : streams(parts.past, parts.chunks, c.tiers.size()))
    done.push_back(gather(s, c, parts, c.tiers, first, last, "." + std::to_string(first), lane, in,
                          out, first > parts.past ? kept : have));
  if (parts.past > 0)
    done.push_back(
        gather(s, c, parts, parts.straight, 0, parts.past, ".past", lane, in, out, have));
  InFlight flight;
  flight.inFree = done;
  done.push_back(s.sink(s.range(out), c.name, {}, {}, done));
  flight.finishWith(done);
  return flight;
}

//===--- reduce_scatter ---------------------------------------------------------------------===//

class ReduceScatter {
public:
  ReduceScatter(ScheduleBuilder &s, const CollectiveSpec &c, const Parts &parts,
                ArrayRef<TierOfGroup> tiers, int64_t first, int64_t last, StringRef suffix,
                int64_t &nextLane, Value in, Value out, Value have)
      : s(s), c(c), parts(parts),
        levels(s, c, tiers, SmallVector<double>(tiers.size(), parts.bytes), false, suffix,
               nextLane),
        first(first), mine(last - first), room(std::min(mine, parts.room)), in(in), out(out),
        have(have) {}

  Value emit();

private:
  ScheduleBuilder &s;
  const CollectiveSpec &c;
  const Parts &parts;
  Levels levels;
  int64_t first, mine, room;
  Value in, out, have;
  SmallVector<Value> held, sums, free, data; ///< by level
  SmallVector<size_t> at;                    ///< first token of a level: its lanes, and told
  SmallVector<SmallVector<Value>> granted;
  Value i, chunk, place;

  /// Where the sum over the levels from `t` inwards lies that is for the place `number` further on
  /// outside of them, and after what it does.
  struct Piece {
    Value box, ready;
  };
  Piece produce(size_t t, Value number, Tokens &tokens);
  /// The first place in level `t`'s room for the parts that are for `number`.
  Value firstOf(size_t t, Value number) {
    Value which = s.add(s.mul(place, levels.members(0, t)), number);
    return s.mul(which, levels.list[t].size - 1);
  }
};

ReduceScatter::Piece ReduceScatter::produce(size_t t, Value number, Tokens &tokens) {
  if (t == levels.count()) {
    Point to;
    levels.moveOuter(to, t, number);
    return {parts.range(s, in, pointOf(s, c.axes, to), chunk), have};
  }
  const Level &level = levels.list[t];
  int64_t outer = levels.members(0, t);
  auto slot = [&](Value slots, Value distance) {
    SmallVector<Value> indices;
    if (outer > 1)
      indices.push_back(number);
    indices.push_back(s.sub(distance, 1));
    return s.slot(slots, indices);
  };
  auto put = [&](Value distance, const Piece &piece, ValueRange before) {
    Point to = levels.peer(t, distance);
    return s.put(piece.box,
                 s.range(s.at(held[t], to), s.add(firstOf(t, number), s.sub(distance, 1))),
                 slot(s.at(data[t], to), distance), joined(joined(piece.ready, granted[t]), before),
                 "put part");
  };
  auto further = [&](Value distance) { return s.add(s.mul(number, level.size), distance); };
  if (t + 1 == levels.count()) {
    levels.forPeers(t, tokens, at[t], [&](Value distance) {
      return put(distance, produce(t + 1, further(distance), tokens), {});
    });
  } else {
    // The lanes in turn, in one loop: a piece is put when it is summed.
    auto step = [&](Value distance, int64_t lane, Tokens &tokens) {
      Piece piece = produce(t + 1, further(distance), tokens);
      // What levels further in do in loops hands on this lane's token, too.
      return levels.onLane(t, lane, [&] { return put(distance, piece, tokens[at[t] + lane]); });
    };
    int64_t rounds = (level.size - 1) / level.lanes;
    tokens = levels.loop(0, rounds, tokens, [&](Value round, Tokens &tokens) {
      for (int64_t lane = 0; lane < level.lanes; ++lane)
        tokens[at[t] + lane] = step(s.add(s.mul(round, level.lanes), 1 + lane), lane, tokens);
    });
    for (int64_t distance = rounds * level.lanes + 1; distance < level.size; ++distance) {
      int64_t lane = (distance - 1) % level.lanes;
      Value last = step(s.constant(distance), lane, tokens);
      tokens[at[t] + lane] = levels.join({tokens[at[t] + lane], last});
    }
  }
  Piece own = produce(t + 1, further(s.constant(0)), tokens);
  Value arrived = outer > 1 ? s.slot(data[t], number) : s.slot(data[t]);
  Value here = levels.arrived(t, arrived, s.add(i, 1), "await parts");
  Value others = s.interval(held[t], firstOf(t, number), s.constant(level.size - 1));
  SmallVector<Value> after{here, own.ready};
  if (t == 0)
    after = joined(after, c.outFree);
  Piece sum;
  if (t == 0)
    sum.box = parts.even ? s.range(out, chunk) : s.range(out, ownPoint(s, c.axes));
  else
    sum.box = s.range(sums[t], {i, number});
  sum.ready = levels.sum(t, t == 0 ? c.lastStep() : c.step(), {others, own.box}, sum.box, after);
  return sum;
}

Value ReduceScatter::emit() {
  size_t count = levels.count(), lanes = 0;
  Tokens done;
  auto window = [&](StringRef what, size_t t, SmallVector<int64_t> sizes) {
    int64_t elements = parts.capacity;
    SmallVector<DimAttr> dims;
    for (int64_t size : llvm::reverse(sizes)) {
      dims.push_back(s.freeDim(size, elements));
      elements *= size;
    }
    std::reverse(dims.begin(), dims.end());
    Value memory = s.scratch(levels.name + "." + what.str() + std::to_string(t),
                             MemRefType::get({elements}, c.inType.getElementType()));
    return s.reindex(memory, std::nullopt, dims);
  };
  for (size_t t = 0; t < count; ++t) {
    const Level &level = levels.list[t];
    held.push_back(window("parts", t, {room * levels.members(0, t) * (level.size - 1)}));
    sums.push_back(t == 0 ? Value() : window("sums", t, {mine, levels.members(0, t)}));
    Value ready = levels.slots(t, "ready", 1);
    free.push_back(mine > room ? levels.slots(t, "free", mine) : Value());
    data.push_back(levels.slots(t, "data", mine, levels.members(0, t)));
    done.push_back(levels.tellFirst(t, ready, s.program.getEntry()));
    granted.push_back({levels.granted(t, ready, s.constant(1))});
    at.push_back(lanes);
    lanes += size_t(level.lanes) + 1;
  }
  SmallVector<SmallVector<Value>> ready = granted;
  Tokens ends = levels.loop(0, mine, Tokens(lanes, have), [&](Value index, Tokens &tokens) {
    i = index;
    chunk = s.add(i, first);
    place = mine > room ? s.rem(i, room) : i;
    for (size_t t = 0; t < count && mine > room; ++t)
      granted[t] = joined(ready[t], levels.granted(t, free[t], s.sub(s.add(i, 1), room)));
    Piece sum = produce(0, s.constant(0), tokens);
    for (size_t t = 0; t < count; ++t) {
      Value &told = tokens[at[t] + levels.list[t].lanes];
      // After the last sums of all levels, each of which stand on one lane.
      SmallVector<Value> summed{told, sum.ready};
      told = mine > room ? levels.tellAll(t, free[t], summed) : levels.join(summed);
    }
  });
  llvm::append_range(done, ends);
  return levels.join(done);
}

InFlight reduceScatter(ScheduleBuilder &s, const CollectiveSpec &given) {
  CollectiveSpec c = given;
  Parts parts(s, c);
  SmallVector<Value> own = ownPoint(s, c.axes);
  Value in = parts.whole(s, c, c.in);
  Value out = parts.even ? parts.own(s, c, c.out) : makeViews(s, c).out;
  Value start = s.source(s.range(in), c.name, {}, c.axes, c.inReady);
  if (c.combination.scale) {
    Combination scaled = {c.combination.kind, c.combination.accumulate, c.combination.scale};
    Value moved = parts.whole(s, c, s.scratch(c.name + ".scaled", c.inType));
    start = s.reduce(scaled, s.range(in), s.range(moved), start, "scale");
    in = moved;
    c.combination.scale = std::nullopt;
  }
  int64_t lane = Levels::firstFree(c.tiers.size());
  SmallVector<Value> done;
  auto emit = [&](ArrayRef<TierOfGroup> tiers, int64_t first, int64_t last, StringRef suffix) {
    done.push_back(
        ReduceScatter(s, c, parts, tiers, first, last, suffix, lane, in, out, start).emit());
  };
  if (parts.past > 0)
    emit(parts.straight, 0, parts.past, ".past");
  for (auto [first, last] : streams(parts.past, parts.chunks, c.tiers.size()))
    emit(c.tiers, first, last, "." + std::to_string(first));
  InFlight flight;
  flight.inFree = done;
  Value mine = parts.even ? s.range(out) : s.range(out, own);
  done.push_back(s.sink(mine, c.name, own, c.axes, done));
  flight.finishWith(done);
  return flight;
}

//===--- all_to_all -------------------------------------------------------------------------===//

/// `tiers` are two: hosts, and the members of one.
InFlight allToAll(ScheduleBuilder &s, const CollectiveSpec &c) {
  TierOfGroup outer = c.tiers.front();
  for (const TierOfGroup &tier : ArrayRef(c.tiers).drop_front().drop_back())
    llvm::append_range(outer.axes, tier.axes);
  int64_t lane = Levels::firstFree(c.tiers.size());
  double bytes = double(c.inType.getNumElements()) / double(c.groupSize(s)) *
                 double(llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8));
  Levels levels(s, c, {outer, c.tiers.back()}, {bytes, bytes}, false, "", lane);
  int64_t hosts = levels.list[0].size, inside = levels.list[1].size;
  Views v = makeViews(s, c);
  SmallVector<Value> own = ownPoint(s, c.axes);
  Value start = s.source(s.range(v.in), c.name, own, {}, c.inReady);
  // By the distance of the host for which it is, less 1, and of the member from which it is.
  int64_t capacity = std::max<int64_t>(1, capacityOf(s, c));
  Value window =
      s.scratch(levels.name + ".parts", MemRefType::get({(hosts - 1) * (inside - 1) * capacity},
                                                        c.inType.getElementType()));
  Value parts =
      s.reindex(window, std::nullopt,
                {s.freeDim(hosts - 1, (inside - 1) * capacity), s.freeDim(inside - 1, capacity)});
  Value across = s.slots(levels.name + ".across", {s.freeDim(hosts - 1), s.freeDim(inside)}, 1);
  Value within = s.slots(levels.name + ".within", {s.freeDim(hosts), s.freeDim(inside - 1)}, 1);
  Tokens done;
  SmallVector<Value> granted;
  for (size_t t = 0; t < 2; ++t) {
    Value ready = levels.slots(t, "ready", 1);
    done.push_back(levels.tellFirst(t, ready, c.outFree));
    granted.push_back(levels.granted(t, ready, s.constant(1)));
  }
  auto block = [&](Value view, const Point &point) {
    return s.range(view, pointOf(s, c.axes, point));
  };
  // Inside: what the members of this host send across for this one, and then what is theirs.
  Tokens inner(levels.list[1].lanes, start);
  auto inwards = [&](Value host, Tokens &tokens, bool relayed) {
    levels.forPeers(1, tokens, 0, [&](Value distance) {
      Point at = levels.peer(1, distance), to = at;
      Value slot = s.sub(distance, 1);
      if (relayed)
        levels.move(to, 0, host);
      Value dest = relayed ? s.range(s.at(parts, at), {s.sub(host, 1), slot})
                           : s.range(s.at(v.out, at), own);
      return s.put(block(v.in, to), dest, s.slot(s.at(within, at), {host, slot}),
                   {start, granted[1]}, "put inside");
    });
  };
  inner = levels.loop(1, hosts, inner,
                      [&](Value host, Tokens &tokens) { inwards(host, tokens, true); });
  inwards(s.constant(0), inner, false);
  // Across: the own block first, the others as they come.
  const Level &rail = levels.list[0];
  auto home = [&](Value host, Value from, Value source, Value after, int64_t lane) {
    Point at = levels.peer(0, host), whose;
    levels.move(whose, 1, from, /*back=*/true);
    return levels.onLane(0, lane, [&] {
      return s.put(source, s.range(s.at(v.out, at), pointOf(s, c.axes, whose)),
                   s.slot(s.at(across, at), {s.sub(host, 1), from}), {after, granted[0]},
                   "put across");
    });
  };
  Tokens rails(rail.lanes + 1, start); // the last is of the own block
  rails = levels.loop(1, hosts, rails, [&](Value host, Tokens &tokens) {
    Point to = levels.peer(0, host);
    tokens.back() = home(host, s.constant(0), block(v.in, to), start, 0);
    auto relay = [&](Value from, int64_t lane) {
      Value slot = s.sub(from, 1);
      Value here = levels.arrived(1, s.slot(within, {host, slot}), s.constant(1), "await inside");
      return home(host, from, s.range(parts, {s.sub(host, 1), slot}), here, lane);
    };
    int64_t rounds = (inside - 1) / rail.lanes;
    tokens = levels.loop(0, rounds, tokens, [&](Value round, Tokens &tokens) {
      for (int64_t lane = 0; lane < rail.lanes; ++lane)
        tokens[lane] = relay(s.add(s.mul(round, rail.lanes), 1 + lane), lane);
    });
    for (int64_t from = rounds * rail.lanes + 1; from < inside; ++from) {
      int64_t lane = (from - 1) % rail.lanes;
      tokens[lane] = levels.join({tokens[lane], relay(s.constant(from), lane)});
    }
  });
  done.push_back(s.copy(s.range(v.in, own), s.range(v.out, own), Value(), joined(start, c.outFree),
                        s.controlLane(), "keep own"));
  llvm::append_range(done, inner);
  llvm::append_range(done, rails);
  InFlight flight;
  Value sent = levels.join(done);
  flight.inFree = {sent};
  Value all = levels.join({sent, levels.arrived(0, s.slot(across), s.constant(1), "await all"),
                           levels.arrived(1, s.slot(within), s.constant(1), "await all")});
  SmallVector<Value> ready{all};
  ready.push_back(demandExchanged(s, c, v.out, all));
  flight.finishWith(ready);
  return flight;
}

} // namespace

InFlight ctran::hierarchicalExchange(ScheduleBuilder &s, const CollectiveSpec &c) {
  if (c.flow.combines)
    return reduceScatter(s, c);
  return c.flow.inCut ? allToAll(s, c) : allGather(s, c);
}
