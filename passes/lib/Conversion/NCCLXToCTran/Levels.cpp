//===- Levels.cpp - Steps along the tiers of a machine -------------------------------------===//
#include "Levels.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ctran;

Levels::Levels(ScheduleBuilder &s, const CollectiveSpec &c, ArrayRef<TierOfGroup> tiers,
               ArrayRef<double> bytes, bool together, StringRef suffix, int64_t &firstLane)
    : s(s), c(c), name((c.name + suffix).str()) {
  for (const TierOfGroup &tier : tiers) {
    Level level;
    level.axes = tier.axes;
    for (unsigned axis : tier.axes)
      level.size *= s.size(axis);
    level.lanes =
        lanesFor(tier, bytes[list.size()], level.size - 1,
                 together || list.size() + 1 == tiers.size(), mostLanes(s, c.tiers.size()));
    level.firstLane = firstLane;
    firstLane += level.lanes + 3;
    list.push_back(std::move(level));
  }
}

int64_t Levels::members(size_t first, size_t last) const {
  int64_t n = 1;
  for (size_t t = first; t < last; ++t)
    n *= list[t].size;
  return n;
}

void Levels::step(Point &point, unsigned axis, Value by, bool back) {
  auto known = point.find(axis);
  Value from = known == point.end() ? s.own(axis) : known->second;
  point[axis] = s.shift(from, back ? s.sub(s.constant(0), by) : by);
}

void Levels::move(Point &point, size_t t, Value distance, bool back) {
  int64_t below = 1;
  for (unsigned axis : llvm::reverse(list[t].axes)) {
    Value by = s.div(distance, below);
    below *= s.size(axis);
    step(point, axis, below == list[t].size ? by : s.rem(by, s.size(axis)), back);
  }
}

void Levels::moveOuter(Point &point, size_t t, Value number, bool back) {
  int64_t below = 1, all = members(0, t);
  for (size_t level = t; level-- > 0;) {
    Value by = s.div(number, below);
    below *= list[level].size;
    move(point, level, below == all ? by : s.rem(by, list[level].size), back);
  }
}

Point Levels::peer(size_t t, Value distance, bool back) {
  Point point;
  move(point, t, distance, back);
  return point;
}

Value Levels::slots(size_t t, StringRef what, int64_t perRun, int64_t of) {
  SmallVector<DimAttr> dims;
  if (of > 1)
    dims.push_back(s.freeDim(of));
  dims.push_back(s.freeDim(list[t].size - 1));
  return s.slots((name + "." + what + std::to_string(t)).str(), dims, perRun);
}

Value Levels::tell(size_t t, Value slots, ValueRange after) {
  return s.loop(1, list[t].size, after.front(), [&](Value distance, Value) {
    Value at = s.at(slots, peer(t, distance, /*back=*/true));
    return s.signal(s.slot(at, s.sub(distance, 1)), after, s.controlLane(), "ready");
  });
}

Value Levels::tellAll(size_t t, Value slots, ValueRange after) {
  return onLane(t, list[t].lanes, [&] { return tell(t, slots, after); });
}

Value Levels::tellFirst(size_t t, Value slots, ValueRange after) {
  return s.onLane(1 + int64_t(t), [&] { return tell(t, slots, after); });
}

Value Levels::granted(size_t t, Value slots, Value times) {
  return onLane(t, list[t].lanes + 1,
                [&] { return s.awaitReady(s.slot(slots), times, {}, "await ready"); });
}

Value Levels::arrived(size_t t, Value slot, Value puts, StringRef note) {
  return onLane(t, list[t].lanes + 2, [&] { return s.arrive(slot, puts, {}, note); });
}

Value Levels::sum(size_t t, const Combination &how, ValueRange sources, Value dest,
                  ValueRange after) {
  return onLane(t, 0, [&] { return s.reduce(how, sources, dest, after, "add"); });
}

Value Levels::join(ValueRange tokens) {
  Tokens all = joined({}, tokens);
  if (all.size() == 1)
    return all.front();
  return FlushOp::create(s.builder, s.loc, all.front().getType(), all, LaneKind::Host,
                         s.constant(s.carrier.lane(list.front().firstLane)), s.of,
                         s.builder.getStringAttr("joined"));
}

void Levels::forPeers(size_t t, Tokens &tokens, size_t first,
                      llvm::function_ref<Value(Value distance)> body) {
  const Level &level = list[t];
  for (int64_t lane = 0; lane < level.lanes; ++lane)
    tokens[first + lane] = onLane(t, lane, [&] {
      int64_t count = llvm::divideCeil(level.size - 1 - lane, level.lanes);
      return s.loop(0, count, tokens[first + lane], [&](Value round, Value) {
        return body(s.add(s.mul(round, level.lanes), 1 + lane));
      });
    });
}

Tokens Levels::loop(int64_t lower, int64_t upper, Tokens tokens,
                    llvm::function_ref<void(Value, Tokens &)> body) {
  if (lower >= upper)
    return tokens;
  auto loop = scf::ForOp::create(s.builder, s.loc, s.constant(lower), s.constant(upper),
                                 s.constant(1), tokens);
  OpBuilder::InsertionGuard guard(s.builder);
  s.builder.setInsertionPointToStart(loop.getBody());
  Tokens inside(loop.getRegionIterArgs());
  body(loop.getInductionVar(), inside);
  scf::YieldOp::create(s.builder, s.loc, inside);
  return Tokens(loop.getResults());
}

// A proof follows every lane of every peer, and peers of peers.
int64_t ctran::mostLanes(ScheduleBuilder &s, size_t levels) {
  return levels > 2 ? 1 : s.carrier.lanes;
}

int64_t ctran::lanesFor(const TierOfGroup &tier, double bytes, int64_t peers, bool together,
                        int64_t most) {
  double start = stepSeconds + tier.latency, moves = bytes / tier.bytesPerSecond;
  int64_t needed = most;
  if (!together && start < moves * double(most))
    needed = int64_t(llvm::divideCeil(1 + int64_t(std::ceil(start / moves)), 2));
  return std::clamp<int64_t>(needed, 1, std::max<int64_t>(1, std::min(peers, most)));
}

// The busiest tier, by bytes or by starts, and one chunk's way through all of them.
int64_t ctran::chunksFor(ScheduleBuilder &s, const CollectiveSpec &c, ArrayRef<TierLoad> loads,
                         int64_t most, bool together, double unhidden) {
  if (c.pipeline.chunks)
    return std::min(*c.pipeline.chunks, most);
  ArrayRef<TierOfGroup> tiers = c.tiers;
  int64_t lanes = mostLanes(s, tiers.size()), best = 1;
  double least = 0;
  for (int64_t chunks = 1; chunks <= most; chunks *= 2) {
    double busiest = 0, through = 0;
    for (auto [t, tier] : llvm::enumerate(tiers)) {
      double bytes = loads[t].bytes / double(chunks), start = stepSeconds + tier.latency;
      double moves = bytes / tier.bytesPerSecond;
      bool all = together || t + 1 == tiers.size();
      int64_t beside = lanesFor(tier, bytes, loads[t].peers, all, lanes);
      double turns = double(llvm::divideCeil(loads[t].peers, beside));
      // What the other lanes and streams do not hide of the starts, by trial.
      double round = double(loads[t].peers) * moves + turns * start * unhidden;
      round = std::max(round, (turns * start + round) / 2);
      busiest = std::max(busiest, round * double(loads[t].rounds * chunks));
      through += together ? 2 * (start + moves * double(loads[t].peers))
                          : start + 2 * moves * double(all ? loads[t].peers : beside);
    }
    if (chunks == 1 || busiest + through < least) {
      best = chunks;
      least = busiest + through;
    }
  }
  return best;
}

Chunking ctran::fitted(Chunking chunking, int64_t most, int64_t left,
                       llvm::function_ref<int64_t(Chunking)> scratchOf) {
  while (left >= 0 && scratchOf(chunking) > left) {
    if (chunking.chunks < most)
      chunking.chunks = std::min(most, 2 * chunking.chunks);
    else if (chunking.room > 1)
      --chunking.room;
    else
      break; // who set the limit refuses it
  }
  return chunking;
}

SmallVector<std::pair<int64_t, int64_t>> ctran::streams(int64_t first, int64_t last,
                                                        size_t levels) {
  int64_t middle = first + (last - first) / 2;
  if (middle == first || levels > 2)
    return {{first, last}};
  return {{first, middle}, {middle, last}};
}

// Of a part b that each of n = sizes[0] groups of g = sizes[1] has: straight, all of it enters each
// rank across the outer tier, else a g-th; what came to one member goes to g - 1 others inside.
// (n-1)(g - f(g-1)) / outer = (g-1)(1 + f(n-1)) / inner for the share f that goes through both.
int64_t ctran::straightChunks(ArrayRef<TierOfGroup> tiers, ArrayRef<int64_t> sizes,
                              int64_t chunks) {
  if (tiers.size() != 2)
    return 0;
  double outer = 1 / tiers[0].bytesPerSecond, inner = 1 / tiers[1].bytesPerSecond;
  double n = double(sizes[0] - 1), g = double(sizes[1] - 1);
  double share = (n * (g + 1) * outer - g * inner) / (n * g * (outer + inner));
  return std::clamp<int64_t>(std::llround((1 - share) * double(chunks)), 0, chunks - 1);
}
