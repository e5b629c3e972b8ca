//===- Streamed.cpp - Rounds in chunks that follow each other at once -------------------------===//
//
// The rounds of Bruck.cpp, with each block in chunks: a chunk goes on to the next round when it has
// come, and its sum when it is made, whatever has come of the others. Each chunk of each round has
// a slot of its own. Rounds take so many lanes in turn as may be under way together (the depth): of
// one lane the rounds still follow each other chunk by chunk; with a depth of 0 a round waits for
// the whole of the one before. What is sent to whom does not depend on it.
//
// Sums, and copies to where blocks belong, have lanes of their own, so that they keep no put. In an
// all_to_all a block comes to the place that the one before it has left: who has taken a chunk from
// where it arrived says so, for the next round.
//
//===------------------------------------------------------------------------------------------===//
#include "Streamed.h"

#include "PairBlocks.h"
#include "ncclx/CTran/Access.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {

using Tokens = SmallVector<Value>;

class Streamed {
public:
  Streamed(ScheduleBuilder &s, const CollectiveSpec &c, const Streaming &how);
  InFlight emit();
  InFlight exchange();

private:
  ScheduleBuilder &s;
  CollectiveSpec c;
  Cycle cycle;
  int64_t n, count, chunks, depth;
  int64_t capacity; ///< elements of the largest chunk of a block
  /// Views by member and chunk; of what holds one shard, by chunk alone.
  Views v;
  bool shardByChunk = true;
  Value staged; ///< of a reduction where they are not: cut as its input is
  InFlight flight;

  Value zero() { return s.constant(0); }
  int64_t lanes() const { return std::max<int64_t>(1, depth); }
  int64_t sumLane() const { return lanes(); }
  int64_t homeLane() const { return lanes() + 1; }
  Value moved(Value d) { return s.min(d, s.sub(s.constant(n), d)); }
  /// Views of an all_to_all by member and chunk.
  void cutBlocks();
  /// The chunk of the block at a place.
  Value chunkAt(Value view, SmallVector<Value> place, Value chunk) {
    place.push_back(chunk);
    return s.range(view, place);
  }
  Value ownChunk(Value chunk) {
    if (c.flow.inCut && shardByChunk)
      return s.range(v.out, chunk);
    return chunkAt(c.flow.inCut ? staged : v.out, cycle.own(), chunk);
  }
  /// Of a reduction whose shards are not all full: the own one, from where its chunks have been
  /// put together; gives the tokens that the output is ready after.
  Tokens shardHome(Value done);
  Value blocks(StringRef name);
  Value slots(StringRef name, int64_t rounds) {
    return s.slots((c.name + name).str(), {s.freeDim(chunks), s.freeDim(rounds)}, 1);
  }
  Value eachChunk(Value token, llvm::function_ref<Value(Value chunk, Value before)> body) {
    return s.loop(0, chunks, token, body);
  }
  /// The rounds in order: `body` gets the tokens, the last ones of each lane of puts and of the
  /// sums, and leaves its own in their place. With one lane they are a loop.
  void eachRound(bool doubling, Tokens &tokens,
                 llvm::function_ref<void(int64_t lane, Value d, Value round, Tokens &)> body);
  /// On the lane of a round: what `send` puts, chunk by chunk, after `await`.
  Value sendChunks(int64_t lane, Value ready, Value round, Value last,
                   llvm::function_ref<Value(Value chunk)> await,
                   llvm::function_ref<Value(Value chunk, ValueRange after)> send);

  /// Brings the own input's blocks, chunk by chunk, where the rounds work on them, in the order of
  /// the cycle, and tells each chunk in the first place of the slots.
  Value bringOwn(Value start, Value to, Value told, int64_t lane,
                 llvm::function_ref<Value(Value from, Value to, ValueRange after)> bring);

  /// Sums the members' chunks of the own block, which is told in the last place of the slots given.
  Value scatter(Value start, Value &sums);
  /// Spreads the own block; `copyOwn` writes a chunk of it to a box, when it is there.
  Value gather(Value start, llvm::function_ref<Value(Value chunk, Value to, Value before)> copyOwn);
};

} // namespace

Streamed::Streamed(ScheduleBuilder &s, const CollectiveSpec &c, const Streaming &how)
    : s(s), c(c), cycle(s, c), n(cycle.size()), count(llvm::Log2_64_Ceil(n)), chunks(how.chunks),
      depth(std::clamp<int64_t>(how.depth, 0, count)) {
  if (c.flow.inCut && c.flow.outCut) {
    cutBlocks();
    return;
  }
  v = cycle.views();
  std::optional<int64_t> dim = c.flow.inCut ? c.flow.inCut : c.flow.outCut;
  MemRefType whole = c.flow.inCut ? c.inType : c.outType;
  auto dimsOf = [](Value view) {
    SmallVector<DimAttr> dims;
    for (auto dim : view.getDefiningOp<ReindexOp>().getDims().getAsRange<DimAttr>())
      dims.push_back(dim);
    return dims;
  };
  if (!dim) {
    int64_t granule = flatGranule(c.inType);
    SmallVector<DimAttr> dims = dimsOf(v.in);
    dims.push_back(s.freeDim(chunks, granule));
    v.in = s.reindex(c.in, std::nullopt, dims);
    v.out = c.in == c.out ? v.in : s.reindex(c.out, std::nullopt, dims);
    capacity = int64_t(llvm::divideCeil(capacityOf(s, c), chunks * granule)) * granule;
    return;
  }
  // A short shard is cut at the same rows as a full one.
  int64_t rows = whole.getDimSize(*dim), each = llvm::divideCeil(rows, n);
  int64_t some = std::max<int64_t>(1, llvm::divideCeil(each, chunks));
  DimAttr cut = DimAttr::get(s.builder.getContext(), "", chunks, Cut::Chunked, some);
  Value &byMember = c.flow.inCut ? v.in : v.out, &shard = c.flow.inCut ? v.out : v.in;
  SmallVector<DimAttr> dims = dimsOf(byMember);
  dims.push_back(cut);
  byMember = s.reindex(c.flow.inCut ? c.in : c.out, *dim, dims);
  shardByChunk = rows % n == 0;
  if (shardByChunk)
    shard = s.reindex(c.flow.inCut ? c.out : c.in, *dim, cut);
  capacity = rows ? some * (whole.getNumElements() / rows) : 0;
  if (c.flow.inCut && !shardByChunk)
    staged = s.reindex(s.scratch(c.name + ".staged", c.inType), *dim, dims);
}

void Streamed::cutBlocks() {
  bool flat = PairBlocks::cuttingOf(c) == PairBlocks::Cutting::Flat;
  int64_t granule = flat ? flatGranule(c.inType) : 1;
  auto view = [&](Value window, MemRefType type, int64_t dim) {
    int64_t extent = flat ? type.getNumElements() : type.getDimSize(dim);
    SmallVector<DimAttr> dims;
    if (c.groups.empty())
      dims = chunkDims(s, c.axes, extent);
    else
      dims = {DimAttr::get(s.builder.getContext(), "", n, Cut::Chunked,
                           std::max<int64_t>(1, extent / n))};
    dims.push_back(s.freeDim(chunks, granule));
    return s.reindex(window, flat ? std::nullopt : std::optional(dim), dims);
  };
  v.in = view(c.in, c.inType, *c.flow.inCut);
  v.out = view(c.out, c.outType, *c.flow.outCut);
  int64_t rows = flat ? c.inType.getNumElements() : c.inType.getDimSize(*c.flow.inCut);
  int64_t some = int64_t(llvm::divideCeil(llvm::divideCeil(rows / n, granule), chunks)) * granule;
  capacity = rows ? some * (c.inType.getNumElements() / rows) : 0;
}

Value Streamed::blocks(StringRef name) {
  int64_t piece = std::max<int64_t>(1, capacity);
  Value window = s.scratch((c.name + name).str(),
                           MemRefType::get({chunks * n * capacity}, c.inType.getElementType()));
  return s.reindex(window, std::nullopt, {s.freeDim(chunks, n * piece), s.freeDim(n, piece)});
}

void Streamed::eachRound(bool doubling, Tokens &tokens,
                         llvm::function_ref<void(int64_t, Value, Value, Tokens &)> body) {
  auto next = [&](Value d) { return doubling ? s.add(d, d) : s.div(d, 2); };
  Value d = s.constant(doubling ? 1 : int64_t(1) << (count - 1));
  if (s.unrolled || lanes() > 1) {
    for (int64_t round = 0; round < count; ++round, d = next(d))
      body(round % lanes(), d, s.constant(round), tokens);
    return;
  }
  Tokens carried = tokens;
  carried.push_back(d);
  auto loop =
      scf::ForOp::create(s.builder, s.loc, zero(), s.constant(count), s.constant(1), carried);
  OpBuilder::InsertionGuard guard(s.builder);
  s.builder.setInsertionPointToStart(loop.getBody());
  Tokens inside(loop.getRegionIterArgs().drop_back());
  d = loop.getRegionIterArgs().back();
  body(0, d, loop.getInductionVar(), inside);
  inside.push_back(next(d));
  scf::YieldOp::create(s.builder, s.loc, inside);
  tokens = Tokens(loop.getResults().drop_back());
}

Value Streamed::sendChunks(int64_t lane, Value ready, Value round, Value last,
                           llvm::function_ref<Value(Value)> await,
                           llvm::function_ref<Value(Value, ValueRange)> send) {
  return s.onLane(lane, [&] {
    Value granted = s.awaitReady(s.slot(ready, round), s.constant(1), last, "await ready");
    Value first =
        depth > 0 ? granted : eachChunk(granted, [&](Value chunk, Value) { return await(chunk); });
    return eachChunk(first, [&](Value chunk, Value) {
      return send(chunk, joined({await(chunk), granted}, first));
    });
  });
}

Value Streamed::bringOwn(Value start, Value to, Value told, int64_t lane,
                         llvm::function_ref<Value(Value from, Value to, ValueRange after)> bring) {
  return s.onLane(lane, [&] {
    return eachChunk(start, [&](Value chunk, Value) {
      Value own = s.loop(0, n, start, [&](Value j, Value before) {
        Value from = chunkAt(v.in, cycle.place(j), chunk);
        return bring(from, s.range(to, {chunk, j}), joined(start, before));
      });
      return s.signal(s.slot(told, {chunk, zero()}), own, s.controlLane(), "own");
    });
  });
}

Value Streamed::scatter(Value start, Value &sums) {
  sums = blocks(".sums");
  Value parts = blocks(".parts"), ready = s.slots(c.name + ".rs.ready", s.freeDim(count), 1);
  Value data = slots(".rs.data", count);
  // Of each chunk: the inputs are there, and the sum of each round.
  Value summed = slots(".rs.summed", count + 1);
  Value entry = s.program.getEntry();
  flight.others.push_back(s.halving(n, entry, [&](Value d, Value round, Value) {
    Cycle::Member from = cycle.member(s.sub(zero(), d));
    return s.ready(s.slot(cycle.at(ready, from), round), entry, "ready");
  }));
  Combination scaled = c.step();
  scaled.scale = c.combination.scale;
  Value have =
      bringOwn(start, sums, summed, sumLane(), [&](Value from, Value to, ValueRange after) {
        return scaled.scale ? s.reduce(scaled, from, to, after, "scale")
                            : s.copy(from, to, Value(), after, s.controlLane(), "own");
      });
  flight.inFree = {have};
  Tokens tokens(lanes(), start);
  tokens.push_back(have);
  eachRound(/*doubling=*/false, tokens, [&](int64_t lane, Value d, Value round, Tokens &tokens) {
    Cycle::Member to = cycle.member(d);
    tokens[lane] = sendChunks(
        lane, ready, round, tokens[lane],
        [&](Value chunk) {
          return s.awaitReady(s.slot(summed, {chunk, round}), s.constant(1), {}, "await sum");
        },
        [&](Value chunk, ValueRange after) {
          return s.put(s.interval(sums, chunk, d, moved(d)),
                       s.interval(cycle.at(parts, to), chunk, d, moved(d)),
                       s.slot(cycle.at(data, to), {chunk, round}), after, "put parts");
        });
    tokens.back() = s.onLane(sumLane(), [&] {
      return eachChunk(tokens.back(), [&](Value chunk, Value before) {
        Value here = s.arrive(s.slot(data, {chunk, round}), s.constant(1), before, "await parts");
        Value sum = s.loop(zero(), moved(d), here, [&](Value j, Value last) {
          return s.reduce(c.step(),
                          {s.range(sums, {chunk, j}), s.range(parts, {chunk, s.add(j, d)})},
                          s.range(sums, {chunk, j}), {here, last}, "add");
        });
        return s.signal(s.slot(summed, {chunk, s.add(round, 1)}), sum, s.controlLane(), "summed");
      });
    });
  });
  llvm::append_range(flight.others, tokens);
  return summed;
}

Value Streamed::gather(Value start,
                       llvm::function_ref<Value(Value chunk, Value to, Value before)> copyOwn) {
  Value parts = blocks(".gathered"), ready = s.slots(c.name + ".ag.ready", s.freeDim(count), 1);
  Value data = slots(".ag.data", count);
  // Of each chunk: the own block is there, and what comes in each round. One lane alone may wait
  // for a slot, so the lane that waits for what comes tells those that send it on.
  Value there = slots(".ag.there", count + 1);
  Value entry = s.program.getEntry();
  flight.others.push_back(s.doubling(n, entry, [&](Value d, Value round, Value) {
    return s.ready(s.slot(cycle.at(ready, cycle.member(d)), round), entry, "ready");
  }));
  Value own = s.onLane(homeLane(), [&] {
    return eachChunk(start, [&](Value chunk, Value before) {
      Value copied = copyOwn(chunk, s.range(parts, {chunk, zero()}), before);
      return s.signal(s.slot(there, {chunk, zero()}), copied, s.controlLane(), "own");
    });
  });
  Tokens tokens(lanes(), start);
  tokens.push_back(own);
  eachRound(/*doubling=*/true, tokens, [&](int64_t lane, Value d, Value round, Tokens &tokens) {
    Cycle::Member to = cycle.member(s.sub(zero(), d));
    tokens[lane] = sendChunks(
        lane, ready, round, tokens[lane],
        [&](Value chunk) {
          return s.awaitReady(s.slot(there, {chunk, round}), s.constant(1), {}, "await chunk");
        },
        [&](Value chunk, ValueRange after) {
          return s.put(s.interval(parts, chunk, zero(), moved(d)),
                       s.interval(cycle.at(parts, to), chunk, d, moved(d)),
                       s.slot(cycle.at(data, to), {chunk, round}), after, "put blocks");
        });
    tokens.back() = s.onLane(homeLane(), [&] {
      return eachChunk(tokens.back(), [&](Value chunk, Value before) {
        Value here = s.arrive(s.slot(data, {chunk, round}), s.constant(1), before, "await blocks");
        Value told =
            s.signal(s.slot(there, {chunk, s.add(round, 1)}), here, s.controlLane(), "there");
        return s.loop(d, s.add(d, moved(d)), told, [&](Value j, Value last) {
          return s.copy(s.range(parts, {chunk, j}), chunkAt(v.out, cycle.place(j), chunk), Value(),
                        joined({here, last}, c.outFree), s.controlLane(), "home");
        });
      });
    });
  });
  Value home = tokens.pop_back_val();
  llvm::append_range(flight.others, tokens);
  return home;
}

Tokens Streamed::shardHome(Value done) {
  SmallVector<Value> free = cycle.fillPadding(c.outFree);
  Value home = s.onLane(homeLane(), [&] {
    return cycle.withOwnShard(
        v.out,
        [&](Value own) {
          return s.copy(s.range(staged, cycle.own()), own, Value(), joined(done, free),
                        s.controlLane(), "home");
        },
        [&] { return done; });
  });
  return joined(home, ArrayRef(free).drop_front(c.outFree.size()));
}

InFlight Streamed::emit() {
  Tokens ready;
  if (!c.flow.combines) {
    Value start = shardByChunk && c.groups.empty()
                      ? s.source(s.range(v.in), c.name, cycle.own(), {}, c.inReady)
                      : cycle.say(v.in, c.inReady);
    c.outFree = cycle.fillPadding(c.outFree);
    Value kept = shardByChunk ? s.copy(s.range(v.in), s.range(v.out, cycle.own()), Value(),
                                       joined(start, c.outFree), s.controlLane(), "keep own")
                              : cycle.keepOwn(v, joined(start, c.outFree));
    Value done = gather(shardByChunk ? start : kept, [&](Value chunk, Value to, Value before) {
      Value from = shardByChunk ? s.range(v.in, chunk) : chunkAt(v.out, cycle.own(), chunk);
      return s.copy(from, to, Value(), joined(before, c.outFree), s.controlLane(), "own");
    });
    flight.inFree = {kept, done};
    ready = {done, kept};
    ready.push_back(cycle.demand(v.out, ready));
  } else {
    Value start = cycle.say(v.in, c.inReady), sums;
    Value summed = scatter(start, sums);
    // Leaves a chunk of the own block in the output.
    auto home = [&](Value chunk, Value before) {
      Value sum = s.wait(s.slot(summed, {chunk, s.constant(count)}), s.constant(1), before,
                         s.controlLane(), "await sum");
      Value from = s.range(sums, {chunk, zero()});
      SmallVector<Value> after = joined(sum, c.outFree);
      return c.combination.divide
                 ? s.reduce(c.lastStep(), from, ownChunk(chunk), after, "divide")
                 : s.copy(from, ownChunk(chunk), Value(), after, s.controlLane(), "home");
    };
    if (c.flow.inCut) {
      Value done = s.onLane(homeLane(), [&] { return eachChunk(start, home); });
      ready = shardByChunk ? Tokens{done} : shardHome(done);
      ready.push_back(c.groups.empty() && shardByChunk
                          ? s.sink(s.range(v.out), c.name, cycle.own(), c.axes, ready)
                          : cycle.demand(v.out, ready));
    } else {
      ready = {gather(start, [&](Value chunk, Value to, Value before) {
        return s.copy(ownChunk(chunk), to, Value(), home(chunk, before), s.controlLane(), "own");
      })};
      ready.push_back(cycle.demand(v.out, ready));
    }
  }
  flight.finishWith(ready);
  return std::move(flight);
}

InFlight Streamed::exchange() {
  Value parts = blocks(".parts"), arrived = blocks(".arrived");
  DimAttr runsOfRound = s.freeDim(std::max<int64_t>(1, n / 2));
  Value ready = slots(".ready", count), there = slots(".there", count + 1);
  Value data = s.slots(c.name + ".data", {s.freeDim(chunks), s.freeDim(count), runsOfRound}, 1);
  Value start = cycle.say(v.in, c.inReady), entry = s.program.getEntry();
  // Who writes here in a round stands its distance behind.
  auto grant = [&](Value d, Value chunk, Value round, ValueRange after) {
    Cycle::Member from = cycle.member(s.sub(zero(), d));
    return s.ready(s.slot(cycle.at(ready, from), {chunk, round}), after, "ready");
  };
  flight.others.push_back(eachChunk(
      entry, [&](Value chunk, Value) { return grant(s.constant(1), chunk, zero(), entry); }));
  Value have =
      bringOwn(start, parts, there, homeLane(), [&](Value from, Value to, ValueRange after) {
        return s.copy(from, to, Value(), after, s.controlLane(), "own");
      });
  flight.inFree = {have};
  Tokens tokens(lanes(), start);
  tokens.push_back(have);
  eachRound(/*doubling=*/true, tokens, [&](int64_t lane, Value d, Value round, Tokens &tokens) {
    Cycle::Member to = cycle.member(d);
    // Blocks with an odd multiple of d to go come in runs of d.
    Value runs = arith::DivSIOp::create(s.builder, s.loc, s.sub(s.add(d, n), 1), s.add(d, d));
    auto run = [&](Value view, Value chunk, Value number) {
      Value first = arith::MulIOp::create(s.builder, s.loc, s.add(s.mul(number, 2), 1), d);
      return s.interval(view, chunk, first, s.min(d, s.sub(s.constant(n), first)));
    };
    auto await = [&](Value chunk, ValueRange after) {
      return s.awaitReady(s.slot(there, {chunk, round}), s.constant(1), after, "await chunk");
    };
    if (depth == 0)
      tokens[lane] =
          eachChunk(tokens[lane], [&](Value chunk, Value before) { return await(chunk, before); });
    auto loop = scf::ForOp::create(s.builder, s.loc, zero(), s.constant(chunks), s.constant(1),
                                   ValueRange{tokens[lane], tokens.back()});
    OpBuilder::InsertionGuard guard(s.builder);
    s.builder.setInsertionPointToStart(loop.getBody());
    Value chunk = loop.getInductionVar(), last = loop.getRegionIterArg(0);
    Value sent = s.onLane(lane, [&] {
      Value here = await(chunk, last);
      Value granted = s.awaitReady(s.slot(ready, {chunk, round}), s.constant(1), {}, "await ready");
      return s.loop(zero(), runs, granted, [&](Value number, Value) {
        return s.put(run(parts, chunk, number), run(cycle.at(arrived, to), chunk, number),
                     s.slot(cycle.at(data, to), {chunk, round, number}), {here, granted},
                     "put blocks");
      });
    });
    // What goes to where something has been sent from comes after that has been sent.
    Value taken = s.onLane(sumLane(), [&]() -> Value {
      Value all = s.loop(zero(), runs, sent, [&](Value number, Value before) {
        Value here =
            s.arrive(s.slot(data, {chunk, round, number}), s.constant(1), before, "await blocks");
        return s.copy(run(arrived, chunk, number), run(parts, chunk, number), Value(), {here, sent},
                      s.controlLane(), "take");
      });
      all = s.signal(s.slot(there, {chunk, s.add(round, 1)}), {all, loop.getRegionIterArg(1)},
                     s.controlLane(), "there");
      auto further = [&]() -> Value { return grant(s.add(d, d), chunk, s.add(round, 1), all); };
      if (std::optional<int64_t> number = constantOf(round))
        return *number + 1 < count ? further() : all;
      return s.branch(s.less(s.add(round, 1), s.constant(count)), further, [&] { return all; });
    });
    scf::YieldOp::create(s.builder, s.loc, ValueRange{sent, taken});
    tokens[lane] = loop.getResult(0);
    tokens.back() = loop.getResult(1);
  });
  llvm::append_range(flight.others, tokens);
  Value home = s.onLane(homeLane(), [&] {
    return eachChunk(have, [&](Value chunk, Value before) {
      Value all = s.wait(s.slot(there, {chunk, s.constant(count)}), s.constant(1), before,
                         s.controlLane(), "await chunk");
      return s.loop(0, n, all, [&](Value j, Value before) {
        Value place = s.sub(zero(), j);
        return s.copy(s.range(parts, {chunk, j}), chunkAt(v.out, cycle.place(place), chunk),
                      Value(), joined(joined(all, before), c.outFree), s.controlLane(), "home");
      });
    });
  });
  Tokens done{home, cycle.demand(v.out, home)};
  flight.finishWith(done);
  return std::move(flight);
}

InFlight ctran::emitStreamed(ScheduleBuilder &s, const CollectiveSpec &c, const Streaming &how) {
  Streamed streamed(s, c, how);
  return c.flow.inCut && c.flow.outCut ? streamed.exchange() : streamed.emit();
}
