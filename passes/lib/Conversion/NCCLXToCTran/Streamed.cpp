//===- Streamed.cpp - Rounds in chunks that follow each other at once -------------------------===//
//
// The rounds of Bruck.cpp, with each block in chunks: a chunk goes on to the next round when it has
// come, and its sum when it is made, whatever has come of the others. Each chunk of each round has
// a slot of its own. Rounds take so many lanes in turn as may be under way together (the depth): of
// one lane the rounds still follow each other chunk by chunk; with a depth of 0 a round waits for
// the whole of the one before. What is sent to whom does not depend on it.
//
// Sums, and copies to where blocks belong, have lanes of their own, so that they keep no put.
//
//===------------------------------------------------------------------------------------------===//
#include "Streamed.h"

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

private:
  ScheduleBuilder &s;
  CollectiveSpec c;
  Cycle cycle;
  int64_t n, count, chunks, depth;
  int64_t capacity; ///< elements of the largest chunk of a block
  /// Views by member and chunk; of what holds one shard, by chunk alone.
  Views v;
  bool shardByChunk = true;
  InFlight flight;

  Value zero() { return s.constant(0); }
  int64_t lanes() const { return std::max<int64_t>(1, depth); }
  int64_t sumLane() const { return lanes(); }
  int64_t homeLane() const { return lanes() + 1; }
  Value moved(Value d) { return s.min(d, s.sub(s.constant(n), d)); }
  /// The chunk of the block at a place.
  Value chunkAt(Value view, SmallVector<Value> place, Value chunk) {
    place.push_back(chunk);
    return s.range(view, place);
  }
  Value ownChunk(Value chunk) {
    return c.flow.inCut ? s.range(v.out, chunk) : chunkAt(v.out, cycle.own(), chunk);
  }
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

  /// Sums the members' chunks of the own block, which is told in the last place of the slots given.
  Value scatter(Value start, Value &sums);
  /// Spreads the own block; `copyOwn` writes a chunk of it to a box, when it is there.
  Value gather(Value start, llvm::function_ref<Value(Value chunk, Value to, Value before)> copyOwn);
};

} // namespace

Streamed::Streamed(ScheduleBuilder &s, const CollectiveSpec &c, const Streaming &how)
    : s(s), c(c), cycle(s, c), n(cycle.size()), count(llvm::Log2_64_Ceil(n)), chunks(how.chunks),
      depth(std::clamp<int64_t>(how.depth, 0, count)) {
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
  Value have = s.onLane(sumLane(), [&] {
    return eachChunk(start, [&](Value chunk, Value) {
      Value own = s.loop(0, n, start, [&](Value j, Value before) {
        Value from = chunkAt(v.in, cycle.place(j), chunk), to = s.range(sums, {chunk, j});
        SmallVector<Value> after = joined(start, before);
        return scaled.scale ? s.reduce(scaled, from, to, after, "scale")
                            : s.copy(from, to, Value(), after, s.controlLane(), "own");
      });
      return s.signal(s.slot(summed, {chunk, zero()}), own, s.controlLane(), "own");
    });
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
      ready = {done};
      ready.push_back(c.groups.empty() ? s.sink(s.range(v.out), c.name, cycle.own(), c.axes, ready)
                                       : cycle.demand(v.out, ready));
    } else {
      ready = {gather(start, [&](Value chunk, Value to, Value before) {
        return s.copy(ownChunk(chunk), to, Value(), home(chunk, before), s.controlLane(), "own");
      })};
      ready.push_back(cycle.demand(v.out, ready));
    }
  }
  flight.finish = [ready]() { return ready; };
  return std::move(flight);
}

//===--- how many chunks ----------------------------------------------------------------------===//

/// What a block can be cut into at most.
static int64_t mostChunks(ScheduleBuilder &s, const CollectiveSpec &c) {
  int64_t n = c.groupSize(s);
  std::optional<int64_t> dim = c.flow.inCut ? c.flow.inCut : c.flow.outCut;
  if (!dim)
    return llvm::divideCeil(capacityOf(s, c), flatGranule(c.inType));
  int64_t rows = (c.flow.inCut ? c.inType : c.outType).getDimSize(*dim);
  if (c.flow.inCut && rows % n)
    return 1; // a shard that is not full is cut otherwise than its place in the whole
  return llvm::divideCeil(rows, n);
}

/// The first chunk goes through all that is done, the others take as long as what is busiest of
/// them: puts, or sums and copies.
static int64_t chunksByTime(ScheduleBuilder &s, const CollectiveSpec &c, int64_t most) {
  if (!c.link)
    return 1;
  int64_t n = c.groupSize(s), rounds = llvm::Log2_64_Ceil(n);
  int64_t phases = int64_t(c.flow.combines) + int64_t(!c.flow.inCut);
  double block =
      double(capacityOf(s, c)) * double(llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8));
  double all = block * double(n - 1), copied = all * c.link->copySecondsPerByte;
  double sums = c.flow.combines ? 3 * all * s.carrier.sumSecondsPerByte : 0;
  int64_t best = 1;
  double least = 0;
  for (int64_t chunks = 1; chunks <= std::min<int64_t>(most, 64); chunks *= 2) {
    double puts =
        double(phases) * (all / c.link->bytesPerSecond + double(rounds * chunks) * stepSeconds);
    double local = sums + double(phases) * (copied + double((n - 1) * chunks) * stepSeconds);
    double seconds = std::max(puts, local) * double(chunks - 1) / double(chunks) +
                     (puts + local) / double(chunks);
    if (chunks == 1 || seconds < least) {
      best = chunks;
      least = seconds;
    }
  }
  return best;
}

std::optional<Streaming> ctran::streamingOf(ScheduleBuilder &s, const CollectiveSpec &c) {
  if (s.carrier.oneKernel || (c.flow.inCut && c.flow.outCut))
    return std::nullopt;
  int64_t most = mostChunks(s, c);
  Streaming how{1, std::max<int64_t>(1, s.carrier.lanes)};
  if (c.streaming)
    how = *c.streaming;
  else
    how.chunks = chunksByTime(s, c, most);
  how.chunks = std::min(how.chunks, most);
  return how.chunks > 1 ? std::optional(how) : std::nullopt;
}

InFlight ctran::emitStreamed(ScheduleBuilder &s, const CollectiveSpec &c, const Streaming &how) {
  return Streamed(s, c, how).emit();
}
