//===- ListedEager.cpp - One step between groups that no axes span, without asking ----------===//
//
// As Eager.cpp, with the members by tables: who is at which distance is told by the own rank. Where
// each hears from all, everybody sends to everybody, be it nothing: what comes back says that the
// scratch of the run before the last is free. Ranks differ, so the proof is of all.
//
//===----------------------------------------------------------------------------------------===//
#include "Algorithms.h"

using namespace mlir;
using namespace mlir::ctran;
using Route = ncclx::Dataflow::Route;

namespace {

class ListedEager : public std::enable_shared_from_this<ListedEager> {
public:
  ListedEager(ScheduleBuilder &s, const CollectiveSpec &given)
      : s(s), c(given), ends(this->s, c), members(this->s, c), n(members.size()), v(ends.views()),
        isRoot(this->s.equal(members.own(), this->s.constant(c.root))) {}
  ListedEager(const ListedEager &) = delete;
  InFlight toAll();
  InFlight fromRoot();
  InFlight toRoot();

private:
  ScheduleBuilder s;
  CollectiveSpec c;
  Cycle ends;
  Members members;
  int64_t n;
  Views v;
  Value isRoot, start, parts, data, taken, sent;
  SmallVector<Value> outFree;

  bool isWhole() const { return c.flow.combines && !c.flow.inCut; }
  /// The member `by` further on than the root, and `by` further on than the own one.
  SmallVector<Value> behindRoot(int64_t by) { return members.point(s.constant((c.root + by) % n)); }
  Value rankBy(int64_t by) { return members.ahead(s.constant(by)); }
  Value rootRank() { return members.rank(s.constant(c.root)); }
  /// `put`, given the own box of the input that `to` gets.
  Value ofInput(const SmallVector<Value> &to, llvm::function_ref<Value(Value box)> put) {
    if (c.flow.inCut)
      return put(s.range(v.in, to));
    if (!c.flow.outCut)
      return put(s.range(v.in));
    // Who has no shard brings nothing: a box of its output that has no rows.
    return ends.withOwnShard(v.in, put, [&] { return put(s.range(v.out, ends.own())); });
  }
  Value fromEach(Value token, llvm::function_ref<Value(int64_t by, Value before)> body) {
    for (int64_t by = 1; by < n; ++by)
      token = body(by, token);
    return token;
  }
  Value home(Value box, Value to, ValueRange after) {
    return s.copy(box, to, Value(), joined(after, outFree), s.controlLane(), "home");
  }
  SmallVector<Value> finishToAll();
  SmallVector<Value> finishFromRoot();
  SmallVector<Value> finishToRoot();
};

} // namespace

InFlight ListedEager::toAll() {
  start = ends.say(v.in, c.inReady);
  c.outFree = ends.fillPadding(c.outFree);
  SmallVector<Value> given =
      c.flow.outCut && !c.flow.inCut ? joined(start, c.outFree) : SmallVector<Value>{start};
  parts = memberWindow(s, c, isWhole() ? c.inType.getNumElements() : capacityOf(s, c), 2);
  data = s.arrivals(c.name + ".data", s.freeDim(n));
  InFlight flight;
  auto put = [&](int64_t by, Value before) {
    Cycle::Member to = ends.member(by);
    return ofInput(to.place, [&](Value box) {
      return s.put(box, s.range(ends.at(parts, to), ends.own()),
                   s.slot(ends.at(data, to), ends.own()), joined(given, before), "put");
    });
  };
  sent = fromEach(start, put);
  flight.inFree = {sent};
  outFree = c.in == c.out ? joined(c.outFree, sent) : c.outFree;
  // Packets are a window's only writers, so the own one is a packet, too.
  bool toSelf = c.flow.combines && s.carrier.oneKernel;
  if (toSelf)
    sent = put(0, sent);
  else if (c.flow.combines)
    sent = ofInput(ends.own(), [&](Value box) {
      return s.copy(box, s.range(parts, ends.own()), Value(), start, s.controlLane(), "keep own");
    });
  else if (c.flow.inCut)
    sent = s.copy(s.range(v.in, ends.own()), s.range(v.out, ends.own()), Value(),
                  joined(start, outFree), s.controlLane(), "keep own");
  else
    sent = ends.withOwnShard(
        v.in,
        [&](Value box) {
          return s.copy(box, s.range(v.out, ends.own()), Value(), joined(start, outFree),
                        s.controlLane(), "keep own");
        },
        [&] { return sent; });
  flight.inFree.push_back(sent);
  flight.finish = [self = shared_from_this()] { return self->finishToAll(); };
  return flight;
}

SmallVector<Value> ListedEager::finishToAll() {
  auto arrived = [&](int64_t by, Value before) {
    return s.arrive(s.slot(data, ends.place(s.constant(by))), s.constant(1), before, "await data");
  };
  SmallVector<Value> ready;
  if (!c.flow.combines) {
    Value last = fromEach(sent, [&](int64_t by, Value before) {
      SmallVector<Value> from = ends.place(s.constant(by));
      return home(s.range(parts, from), s.range(v.out, from), arrived(by, before));
    });
    ready = joined(last, sent);
  } else {
    Value here = fromEach(sent, arrived);
    if (s.carrier.oneKernel)
      here = arrived(0, here);
    SmallVector<Value> after = joined({here, sent}, outFree);
    auto sum = [&](Value box) {
      return s.reduce(c.combination, s.interval(parts, n), box, after, "reduce");
    };
    Value done =
        c.flow.inCut ? ends.withOwnShard(v.out, sum, [&] { return here; }) : sum(s.range(v.out));
    ready = joined(done, c.outFree);
  }
  ready.push_back(ends.demand(v.out, ready));
  return ready;
}

InFlight ListedEager::fromRoot() {
  int64_t depth = eagerDepth(c.outType);
  start = sourceRooted(s, c, v, members);
  outFree = ends.fillPadding(c.outFree);
  parts = s.scratch(c.name + ".part",
                    MemRefType::get({capacityOf(s, c)}, c.inType.getElementType()), depth);
  data = s.slots(c.name + ".data", {}, 1, depth);
  taken = s.slots(c.name + ".taken", s.freeDim(n), 1, depth);
  sent = s.branch(
      isRoot,
      [&] {
        Value puts = fromEach(start, [&](int64_t by, Value before) {
          SmallVector<Value> to = behindRoot(by);
          Value free = s.awaitReady(s.slot(taken, to), s.constant(0), {}, "await taken");
          Value rank = rankBy(by);
          return ofInput(to, [&](Value box) {
            return s.put(box, s.range(members.atRank(parts, rank)),
                         s.slot(members.atRank(data, rank)), {start, before, free}, "put");
          });
        });
        SmallVector<Value> after = joined({start, puts}, outFree);
        auto keep = [&](Value box) {
          return ofInput(behindRoot(0), [&](Value own) {
            return s.copy(own, box, Value(), after, s.controlLane(), "keep own");
          });
        };
        return c.flow.inCut ? ends.withOwnShard(v.out, keep, [&] { return puts; })
                            : keep(s.range(v.out));
      },
      [&] { return start; });
  InFlight flight;
  flight.inFree = {sent};
  flight.finish = [self = shared_from_this()] { return self->finishFromRoot(); };
  return flight;
}

SmallVector<Value> ListedEager::finishFromRoot() {
  Value here = s.branch(
      isRoot, [&] { return sent; },
      [&] {
        Value arrived = s.arrive(s.slot(data), s.constant(1), {}, "await data");
        auto take = [&](Value box) { return home(s.range(parts), box, arrived); };
        Value done = c.flow.inCut ? ends.withOwnShard(v.out, take, [&] { return arrived; })
                                  : take(s.range(v.out));
        return s.signal(s.slot(members.atRank(taken, rootRank()), ends.own()), done,
                        s.controlLane(), "taken");
      });
  SmallVector<Value> ready = joined({here, sent}, outFree);
  ready.push_back(demandRooted(s, c, v, members, ready));
  return ready;
}

InFlight ListedEager::toRoot() {
  int64_t depth = eagerDepth(c.inType);
  start = sourceRooted(s, c, v, members);
  outFree = ends.fillPadding(c.outFree);
  parts = memberWindow(s, c, capacityOf(s, c), depth);
  data = s.slots(c.name + ".data", s.freeDim(n), 1, depth);
  taken = s.slots(c.name + ".taken", {}, 1, depth);
  SmallVector<Value> given = joined(start, outFree);
  sent = s.branch(
      isRoot,
      [&] {
        if (!c.flow.combines)
          return ends.keepOwn(v, given);
        return s.copy(s.range(v.in), s.range(parts, ends.own()), Value(), given, s.controlLane(),
                      "keep own");
      },
      [&] {
        Value free = s.awaitReady(s.slot(taken), s.constant(0), {}, "await taken");
        Value rank = rootRank();
        return ofInput({}, [&](Value box) {
          return s.put(box, s.range(members.atRank(parts, rank), ends.own()),
                       s.slot(members.atRank(data, rank), ends.own()), joined(given, free), "put");
        });
      });
  InFlight flight;
  flight.inFree = {sent};
  flight.finish = [self = shared_from_this()] { return self->finishToRoot(); };
  return flight;
}

SmallVector<Value> ListedEager::finishToRoot() {
  Value done = finishAtRoot(s, c, isRoot, joined(outFree, sent), [&] {
    Value last = fromEach(sent, [&](int64_t by, Value before) {
      SmallVector<Value> from = behindRoot(by);
      Value here = s.arrive(s.slot(data, from), s.constant(1), before, "await data");
      return c.flow.combines ? here : home(s.range(parts, from), s.range(v.out, from), here);
    });
    if (c.flow.combines)
      last = s.reduce(c.combination, s.interval(parts, n), s.range(v.out),
                      joined({last, sent}, outFree), "reduce");
    Value told = fromEach(last, [&](int64_t by, Value before) {
      return s.signal(s.slot(members.atRank(taken, rankBy(by))), {last, before}, s.controlLane(),
                      "taken");
    });
    return demandRooted(s, c, v, members, {last, sent, told});
  });
  return {done, sent};
}

InFlight ctran::eagerListed(ScheduleBuilder &s, const CollectiveSpec &c) {
  auto eager = std::make_shared<ListedEager>(s, c);
  switch (c.flow.route) {
  case Route::FromRoot:
    return eager->fromRoot();
  case Route::ToRoot:
    return eager->toRoot();
  default:
    return eager->toAll();
  }
}
