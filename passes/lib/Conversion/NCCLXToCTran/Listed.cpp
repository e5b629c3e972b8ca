//===- Listed.cpp - Collectives of groups that no axes span -----------------------------------===//
//
// Groups of any ranks and of any sizes. Who is whose member are tables by the own rank, one for
// each distance in the group: every member sends to all that get something of it, in one step, and
// what is combined arrives beside each other, in member order. Ranks differ, so the proof is of
// all. Where a cut is uneven, one member's shard is short, and the members behind it have none.
//
//===------------------------------------------------------------------------------------------===//
#include "Places.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::ctran;
using Route = ncclx::Dataflow::Route;

namespace {

class Listed : public std::enable_shared_from_this<Listed> {
public:
  Listed(ScheduleBuilder &s, const CollectiveSpec &c) : s(s), c(c), p(this->s, this->c.groups) {}
  Listed(const Listed &) = delete;
  InFlight emit();
  SmallVector<Value> finish();

private:
  ScheduleBuilder s;
  CollectiveSpec c;
  Places p;
  Value in, out, parts, data, start, sizes;
  SmallVector<Value> outFree, sent;

  // Shards are cut of one of input and output; the other one holds a shard, perhaps a short one.
  bool hasShards() const { return c.flow.inCut.has_value() != c.flow.outCut.has_value(); }
  int64_t rows() const {
    return c.flow.inCut ? c.inType.getDimSize(*c.flow.inCut) : c.outType.getDimSize(*c.flow.outCut);
  }
  int64_t each() const { return std::max<int64_t>(1, llvm::divideCeil(rows(), p.largest)); }
  /// How many shards have rows; of no rows, the first one.
  int64_t shards() const { return std::max<int64_t>(1, llvm::divideCeil(rows(), each())); }
  bool hasShard(int64_t place) const { return !hasShards() || place < shards(); }
  /// Of whichever holds a shard: the view whose first box is the short one. Null: none is short.
  Value shortView;
  /// `write`, told whether the shard of the member at `place` is the short one.
  Value withShard(Value place, llvm::function_ref<Value(bool isShort)> write) {
    if (!shortView)
      return write(false);
    return s.branch(
        s.equal(place, s.constant(shards() - 1)), [&] { return write(true); },
        [&] { return write(false); });
  }
  /// The box of a shard in `memory`, which is the view of it.
  Value shardBox(Value memory, bool isShort) {
    return isShort ? s.range(memory, s.constant(0)) : s.range(memory);
  }

  bool sends(int64_t from, int64_t to, int64_t members) const;
  /// The rank that `rank` sends to over this distance, or that it gets from; -1: none.
  int64_t target(int64_t rank, int64_t by) const;
  int64_t origin(int64_t rank, int64_t by) const;
  bool isUsed(int64_t by) const;
  Value ownPlace() {
    return p.number([&](int64_t rank) { return p.place[rank]; });
  }
  Value placeOf(int64_t by, int64_t (Listed::*other)(int64_t, int64_t) const) {
    return p.number([&](int64_t rank) {
      int64_t member = (this->*other)(rank, by);
      return member < 0 ? 0 : p.place[member];
    });
  }
  Value box(Value view, std::optional<int64_t> cut, Value place, Value size = {}) {
    return cut ? s.range(view, place, size) : s.range(view);
  }
  /// Moves what the member `by` further on gets: writes the copy from a box to another, which is in
  /// a view that `at` gives of its memory.
  Value move(int64_t by, llvm::function_ref<Value(Value memory)> at, SmallVector<Value> after,
             llvm::function_ref<Value(Value from, Value to, ValueRange after)> copy);
  /// Reduces the parts on a member that gets the result, and demands it.
  Value combine(ValueRange after);
  Value demandFrom(int64_t by, ValueRange after);
};

} // namespace

bool Listed::sends(int64_t from, int64_t to, int64_t members) const {
  if (!hasShard(c.flow.inCut ? to : from))
    return false;
  switch (c.flow.route) {
  case Route::All:
    return true;
  case Route::FromRoot:
    return from == c.root;
  case Route::ToRoot:
    return to == c.root;
  case Route::Listed:
    break;
  }
  if (!c.zero)
    return ((c.shift % members) + members) % members == (to - from + members) % members;
  return llvm::is_contained(c.pairs, std::pair(from, to));
}

int64_t Listed::target(int64_t rank, int64_t by) const {
  if (by >= p.size(rank))
    return -1;
  int64_t to = p.further(rank, by);
  return sends(p.place[rank], p.place[to], p.size(rank)) ? to : -1;
}

int64_t Listed::origin(int64_t rank, int64_t by) const {
  if (by >= p.size(rank))
    return -1;
  int64_t from = p.further(rank, -by);
  return sends(p.place[from], p.place[rank], p.size(rank)) ? from : -1;
}

bool Listed::isUsed(int64_t by) const {
  for (size_t rank = 0; rank < p.group.size(); ++rank)
    if (target(rank, by) >= 0)
      return true;
  return false;
}

Value Listed::move(int64_t by, llvm::function_ref<Value(Value)> at, SmallVector<Value> after,
                   llvm::function_ref<Value(Value, Value, ValueRange)> copy) {
  Value to = placeOf(by, &Listed::target), size;
  if (sizes) {
    int64_t most = c.inType.getDimSize(*c.flow.inCut) / p.largest;
    auto [read, done] = s.count(s.range(sizes, to), most, c.inReady, "size");
    size = read;
    after.push_back(done);
  }
  if (parts)
    return copy(box(in, c.flow.inCut, to), s.range(at(parts), ownPlace()), after);
  if (!hasShards())
    return copy(box(in, c.flow.inCut, to, size), box(at(out), c.flow.outCut, ownPlace(), size),
                after);
  return withShard(c.flow.inCut ? to : ownPlace(), [&](bool isShort) {
    if (c.flow.inCut)
      return copy(box(in, c.flow.inCut, to), shardBox(at(isShort ? shortView : out), isShort),
                  after);
    return copy(shardBox(isShort ? shortView : in, isShort),
                box(at(out), c.flow.outCut, ownPlace()), after);
  });
}

InFlight Listed::emit() {
  auto cut = [&](Value window, int64_t dim, int64_t places, int64_t each) {
    return s.reindex(window, dim,
                     DimAttr::get(s.builder.getContext(), "", places, Cut::Chunked, each));
  };
  auto view = [&](Value window, MemRefType type, std::optional<int64_t> dim) {
    if (!dim)
      return window;
    if (hasShards())
      return cut(window, *dim, shards(), each());
    return cut(window, *dim, p.largest, std::max<int64_t>(1, type.getDimSize(*dim) / p.largest));
  };
  in = view(c.in, c.inType, c.flow.inCut);
  out = view(c.out, c.outType, c.flow.outCut);
  outFree = c.outFree;
  if (int64_t last = hasShards() ? rows() % each() : 0) {
    shortView = cut(c.flow.inCut ? c.out : c.in, c.flow.inCut ? *c.flow.inCut : *c.flow.outCut,
                    llvm::divideCeil(each(), last), last);
    // Who reads a short shard as a whole finds all of it written.
    if (c.flow.inCut)
      outFree = joined(outFree, withShard(ownPlace(), [&](bool isShort) {
                         return isShort ? c.zero(s, c.outFree) : c.outFree.front();
                       }));
  }
  if (c.flow.sized) {
    sizes = cut(c.sizes, 0, p.largest, 1);
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
  start = c.flow.combines
              ? s.source(s.range(in), c.name, p.number([&](int64_t rank) { return p.group[rank]; }),
                         p.axes, c.inReady)
              : s.source(s.range(in), c.name, p.number([](int64_t rank) { return rank; }), {},
                         c.inReady, p.axes);
  InFlight flight;
  auto each = [&](auto body) {
    for (int64_t by = 1; by < p.largest; ++by)
      if (isUsed(by))
        body(by);
  };
  each([&](int64_t by) {
    Value from = p.number([&](int64_t rank) { return origin(rank, by); });
    flight.others.push_back(p.ifAny(
        from, [&] { return s.ready(s.slot(p.at(ready, from), s.constant(by)), free, "ready"); },
        [&] { return free.front(); }));
  });
  each([&](int64_t by) {
    Value to = p.number([&](int64_t rank) { return target(rank, by); });
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
  if (isUsed(0))
    sent.push_back(p.ifAny(
        p.number([&](int64_t rank) { return target(rank, 0); }),
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
          return withShard(ownPlace(), [&](bool isShort) {
            return s.reduce(how, s.interval(parts, n), shardBox(isShort ? shortView : out, isShort),
                            after, "reduce");
          });
        },
        [&] { return before; });
  }
  Value group = p.number([&](int64_t rank) { return p.group[rank]; });
  for (auto [g, members] : llvm::enumerate(c.groups)) {
    Value before = result;
    result = s.branch(
        s.equal(group, s.constant(g)),
        [&, g = g, &members = members] {
          SmallVector<Value> label{s.constant(g)};
          if (c.flow.inCut)
            label.push_back(ownPlace());
          if (s.demanded && s.demanded->divide)
            s.demanded->divide = members.size();
          return withShard(ownPlace(), [&](bool isShort) {
            return s.sink(shardBox(isShort ? shortView : out, isShort), c.name, label, p.axes,
                          before, {}, members);
          });
        },
        [&] { return before; });
  }
  return result;
}

Value Listed::demandFrom(int64_t by, ValueRange after) {
  Value from = p.number([&](int64_t rank) { return origin(rank, by); });
  return p.ifAny(
      from,
      [&] {
        auto demand = [&](Value box, ValueRange label) {
          return s.sink(box, c.name, label, {}, after, p.axes);
        };
        if (c.flow.inCut && hasShards())
          return withShard(ownPlace(), [&](bool isShort) {
            return demand(shardBox(isShort ? shortView : out, isShort), {from, ownPlace()});
          });
        Value place = placeOf(by, &Listed::origin), here = box(out, c.flow.outCut, place);
        if (c.flow.inCut)
          return demand(here, {from, ownPlace()});
        // A short shard is a box of what its member holds.
        return withShard(place, [&](bool isShort) {
          return isShort ? demand(here, {from, s.constant(0)}) : demand(here, from);
        });
      },
      [&] { return after.front(); });
}

SmallVector<Value> Listed::finish() {
  Value here = sent.back();
  for (int64_t by = 1; by < p.largest; ++by)
    if (isUsed(by))
      here = p.ifAny(
          p.number([&](int64_t rank) { return origin(rank, by); }),
          [&] { return s.arrive(s.slot(data, s.constant(by)), s.constant(1), here, "await data"); },
          [&] { return here; });
  SmallVector<Value> ready = joined(here, sent);
  auto received = [&]() -> Value {
    if (c.flow.combines)
      return combine(joined(ready, outFree));
    Value held = here;
    for (int64_t by = 0; by < p.largest; ++by)
      if (isUsed(by))
        held = demandFrom(by, joined(held, ready));
    return held;
  };
  auto gets = [&](int64_t rank) {
    for (int64_t by = 0; by < p.largest; ++by)
      if (origin(rank, by) >= 0)
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
