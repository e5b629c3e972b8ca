//===- Listed.cpp - Collectives of groups that no axes span -----------------------------------===//
//
// Groups of any ranks and of any sizes. Who is whose member are tables by the own rank, one for
// each distance in the group: every member sends to all that get something of it, in one step, and
// what is combined arrives beside each other, in member order. Ranks differ, so the proof is of
// all.
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
  Value in, out, parts, data, start;
  SmallVector<Value> sent;

  bool sends(int64_t from, int64_t to, int64_t members) const;
  /// The rank that `rank` sends to over this distance, or that it gets from; -1: none.
  int64_t target(int64_t rank, int64_t by) const;
  int64_t origin(int64_t rank, int64_t by) const;
  bool isUsed(int64_t by) const;
  Value box(Value view, std::optional<int64_t> cut, Value place) {
    return cut ? s.range(view, place) : s.range(view);
  }
  Value landing(Value view) {
    Value own = p.number([&](int64_t rank) { return p.place[rank]; });
    return parts ? s.range(view, own) : box(view, c.flow.outCut, own);
  }
  Value input(int64_t by) {
    return box(in, c.flow.inCut, p.number([&](int64_t rank) {
      int64_t to = target(rank, by);
      return to < 0 ? 0 : p.place[to];
    }));
  }
  /// Reduces the parts on a member that gets the result, and demands it.
  Value combine(ValueRange after);
  Value demandFrom(int64_t by, ValueRange after);
};

} // namespace

bool Listed::sends(int64_t from, int64_t to, int64_t members) const {
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

InFlight Listed::emit() {
  auto view = [&](Value window, MemRefType type, std::optional<int64_t> dim) {
    if (!dim)
      return window;
    int64_t each = std::max<int64_t>(1, type.getDimSize(*dim) / p.largest);
    return s.reindex(window, dim,
                     DimAttr::get(s.builder.getContext(), "", p.largest, Cut::Chunked, each));
  };
  in = view(c.in, c.inType, c.flow.inCut);
  out = view(c.out, c.outType, c.flow.outCut);
  SmallVector<Value> free = c.outFree;
  if (c.flow.combines) {
    int64_t elements = c.inType.getNumElements() / (c.flow.inCut ? p.largest : 1);
    parts = slotWindow(s, c, "parts", p.largest, elements);
    free = {s.program.getEntry()};
  }
  Value target = parts ? parts : out;
  DimAttr distances = s.freeDim(p.largest);
  Value ready = s.slots(c.name + ".ready", distances, 1);
  data = s.slots(c.name + ".data", distances, 1);
  Value group = p.number([&](int64_t rank) { return p.group[rank]; });
  start = c.flow.combines
              ? s.source(s.range(in), c.name, group, p.axes, c.inReady)
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
    Value to = p.number([&](int64_t rank) { return this->target(rank, by); });
    sent.push_back(p.ifAny(
        to,
        [&] {
          Value granted =
              s.awaitReady(s.slot(ready, s.constant(by)), s.constant(1), {}, "await ready");
          return s.put(input(by), landing(p.at(target, to)), s.slot(p.at(data, to), s.constant(by)),
                       {start, granted}, "put");
        },
        [&] { return start; }));
  });
  if (isUsed(0))
    sent.push_back(p.ifAny(
        p.number([&](int64_t rank) { return this->target(rank, 0); }),
        [&] {
          return s.copy(input(0), landing(target), Value(), joined(start, free), s.controlLane(),
                        "keep own");
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
        [&] { return s.reduce(how, s.interval(parts, n), s.range(c.out), after, "reduce"); },
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
            label.push_back(p.number([&](int64_t rank) { return p.place[rank]; }));
          if (s.demanded && s.demanded->divide)
            s.demanded->divide = members.size();
          return s.sink(s.range(c.out), c.name, label, p.axes, before, {}, members);
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
        Value place = p.number([&](int64_t rank) {
          int64_t sender = origin(rank, by);
          return sender < 0 ? 0 : p.place[sender];
        });
        SmallVector<Value> label{from};
        if (c.flow.inCut)
          label.push_back(p.number([&](int64_t rank) { return p.place[rank]; }));
        return s.sink(box(out, c.flow.outCut, place), c.name, label, {}, after, p.axes);
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
      return combine(joined(ready, c.outFree));
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
                                received, [&] { return c.zero(s, joined(c.outFree, sent)); }));
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
