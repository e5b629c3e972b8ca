//===- Listed.cpp - Collectives of groups that no axes span -----------------------------------===//
//
// Groups of any ranks and of any sizes. Who is whose member are tables by the own rank, one for
// each distance in the group: every member sends to all that get something of it, in one step, and
// what is combined arrives beside each other, in member order. Ranks differ, so the proof is of
// all.
//
//===------------------------------------------------------------------------------------------===//
#include "ListedEnds.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {

class Listed : public std::enable_shared_from_this<Listed> {
public:
  Listed(ScheduleBuilder &s, const CollectiveSpec &c)
      : s(s), ends(this->s, c), c(ends.c), p(ends.p) {}
  Listed(const Listed &) = delete;
  InFlight emit();
  SmallVector<Value> finish();

private:
  ScheduleBuilder s;
  ListedEnds ends;
  const CollectiveSpec &c;
  Places &p;
  Value in, out, parts, data, start, sizes;
  SmallVector<Value> outFree, sent;

  Value targetBy(int64_t by) {
    return p.number([&](int64_t rank) { return ends.target(rank, by); });
  }
  Value originBy(int64_t by) {
    return p.number([&](int64_t rank) { return ends.origin(rank, by); });
  }
  /// Moves what the member `by` further on gets: writes the copy from a box to another, which is in
  /// a view that `at` gives of its memory.
  Value move(int64_t by, llvm::function_ref<Value(Value memory)> at, SmallVector<Value> after,
             llvm::function_ref<Value(Value from, Value to, ValueRange after)> copy);
  /// Reduces the parts on a member that gets the result.
  Value combine(ValueRange after);
};

} // namespace

Value Listed::move(int64_t by, llvm::function_ref<Value(Value)> at, SmallVector<Value> after,
                   llvm::function_ref<Value(Value, Value, ValueRange)> copy) {
  Value size, to = p.number([&](int64_t rank) {
    int64_t member = ends.target(rank, by);
    return member < 0 ? 0 : p.place[member];
  });
  auto box = [&](Value view, std::optional<int64_t> cut, Value place) {
    return ends.box(view, cut, place, size);
  };
  if (sizes) {
    int64_t most = c.inType.getDimSize(*c.flow.inCut) / p.largest;
    auto [read, done] = s.count(s.range(sizes, to), most, c.inReady, "size");
    size = read;
    after.push_back(done);
  }
  if (parts)
    return copy(box(in, c.flow.inCut, to), s.range(at(parts), ends.ownPlace()), after);
  if (!ends.hasShards())
    return copy(box(in, c.flow.inCut, to), box(at(out), c.flow.outCut, ends.ownPlace()), after);
  if (c.flow.inCut)
    return ends.withShard(
        to, at(out), [&](Value shard) { return copy(box(in, c.flow.inCut, to), shard, after); });
  return ends.withShard(ends.ownPlace(), in, [&](Value shard) {
    return copy(shard, box(at(out), c.flow.outCut, ends.ownPlace()), after);
  });
}

InFlight Listed::emit() {
  Views v = makeViews(s, c);
  in = c.flow.inCut ? v.in : c.in;
  out = c.flow.outCut ? v.out : c.out;
  outFree = ends.fillPadding(c.outFree, /*ofShort=*/true);
  if (c.flow.sized) {
    sizes = s.reindex(c.sizes, 0, s.freeDim(p.largest));
    outFree = {c.zero(s, c.outFree)}; // what nobody sends
  }
  SmallVector<Value> free = outFree;
  if (c.flow.combines) {
    parts = slotWindow(s, c, "parts", p.largest,
                       c.flow.inCut ? pieceCapacity(c.inType, c.flow.inCut, p.largest, 1)
                                    : c.inType.getNumElements());
    free = {s.program.getEntry()};
  }
  DimAttr distances = s.freeDim(p.largest);
  Value ready = s.slots(c.name + ".ready", distances, 1);
  data = s.slots(c.name + ".data", distances, 1);
  start = ends.say(in, c.inReady);
  InFlight flight;
  auto each = [&](auto body) {
    for (int64_t by = 1; by < p.largest; ++by)
      if (ends.isUsed(by))
        body(by);
  };
  each([&](int64_t by) {
    Value from = originBy(by);
    flight.others.push_back(p.ifAny(
        from, [&] { return s.ready(s.slot(p.at(ready, from), s.constant(by)), free, "ready"); },
        [&] { return free.front(); }));
  });
  each([&](int64_t by) {
    Value to = targetBy(by);
    sent.push_back(p.ifAny(
        to,
        [&] {
          Value granted =
              s.awaitReady(s.slot(ready, s.constant(by)), s.constant(1), {}, "await ready");
          return move(
              by, [&](Value memory) { return p.at(memory, to); }, {start, granted},
              [&](Value from, Value into, ValueRange after) {
                return s.put(from, into, s.slot(p.at(data, to), s.constant(by)), after, "put");
              });
        },
        [&] { return start; }));
  });
  if (ends.isUsed(0))
    sent.push_back(p.ifAny(
        targetBy(0),
        [&] {
          return move(
              0, [](Value memory) { return memory; }, joined(start, free),
              [&](Value from, Value into, ValueRange after) {
                return s.copy(from, into, Value(), after, s.controlLane(), "keep own");
              });
        },
        [&] { return start; }));
  if (sent.empty())
    sent.push_back(start);
  flight.inFree = sent;
  flight.finish = [self = shared_from_this()]() { return self->finish(); };
  return flight;
}

Value Listed::combine(ValueRange after) {
  llvm::SmallSet<int64_t, 4> known;
  Value result = start;
  Value size = p.number([&](int64_t rank) { return p.size(rank); });
  for (const auto &members : c.groups) {
    int64_t n = members.size();
    if (!known.insert(n).second)
      continue;
    Combination how = c.combination;
    if (how.divide)
      how.divide = n;
    Value before = result;
    result = s.branch(
        s.equal(size, s.constant(n)),
        [&] {
          return ends.withShard(ends.ownPlace(), out, [&](Value shard) {
            return s.reduce(how, s.interval(parts, n), shard, after, "reduce");
          });
        },
        [&] { return before; });
  }
  return result;
}

SmallVector<Value> Listed::finish() {
  Value here = sent.back();
  for (int64_t by = 1; by < p.largest; ++by)
    if (ends.isUsed(by))
      here = p.ifAny(
          originBy(by),
          [&] { return s.arrive(s.slot(data, s.constant(by)), s.constant(1), here, "await data"); },
          [&] { return here; });
  SmallVector<Value> ready = joined(here, sent);
  auto received = [&]() -> Value {
    Value held = c.flow.combines ? combine(joined(ready, outFree)) : here;
    return ends.demand(out, c.flow.combines ? ValueRange(held) : ValueRange(joined(held, ready)));
  };
  auto gets = [&](int64_t rank) {
    for (int64_t by = 0; by < p.largest; ++by)
      if (ends.origin(rank, by) >= 0)
        return true;
    return false;
  };
  bool all = true;
  for (size_t rank = 0; rank < p.group.size(); ++rank)
    all &= gets(rank);
  ready.push_back(all ? received()
                      : p.ifAny(p.number([&](int64_t rank) { return gets(rank) ? 1 : -1; }),
                                received, [&] { return c.zero(s, joined(outFree, sent)); }));
  return ready;
}

InFlight ctran::emitListed(ScheduleBuilder &s, const CollectiveSpec &c) {
  return std::make_shared<Listed>(s, c)->emit();
}

Value ctran::emitListedBarrier(ScheduleBuilder &s, StringRef name,
                               ArrayRef<SmallVector<int64_t>> groups, ValueRange before) {
  Places p(s, groups);
  Value here = s.slots(name, s.freeDim(p.largest), 1);
  auto other = [&](int64_t by, int64_t sign) {
    return p.number(
        [&](int64_t rank) { return by < p.size(rank) ? p.further(rank, sign * by) : -1; });
  };
  Value told = before.front();
  for (int64_t by = 1; by < p.largest; ++by) {
    Value to = other(by, 1), last = told;
    SmallVector<Value> after = joined(before, last);
    told = p.ifAny(
        to,
        [&] {
          return s.signal(s.slot(p.at(here, to), s.constant(by)), after, s.controlLane(), "here");
        },
        [&] { return last; });
  }
  for (int64_t by = 1; by < p.largest; ++by) {
    Value last = told;
    told = p.ifAny(
        other(by, -1),
        [&] {
          return s.wait(s.slot(here, s.constant(by)), s.constant(1), joined(last, before),
                        s.controlLane(), "await all");
        },
        [&] { return last; });
  }
  return told;
}
