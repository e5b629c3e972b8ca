//===- ShardChain.cpp - Shards to and from a root, from hand to hand -----------------===//
//
// The ring of a gather and of a scatter. A scatter's root sends the furthest shard first, from hand
// to hand, and each member keeps the last that comes. A gather is that backwards, over the same
// links: each sends its own shard, and then those of the members behind it as they come, nearest
// first. So the link at the root, and it alone, carries all of them. On the way shards lie in two
// scratch slots, which a credit frees once what they held has been sent on. Ranks differ, so the
// proof is of all ranks.
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {

class ShardChain {
public:
  ShardChain(ScheduleBuilder &s, const CollectiveSpec &given)
      : s(s), c(given), ends(s, c), members(s, c), n(members.size()),
        places(std::min<int64_t>(2, c.flow.outCut ? n - 2 : n - 1)), v(ends.views()),
        t(c.flow.outCut ? members.minus(s.constant(c.root), members.own())
                        : members.minus(members.own(), s.constant(c.root))),
        isRoot(s.equal(t, s.constant(0))), previous(ahead(-1)), next(ahead(1)) {
    // Each transfer has a slot of its own: how many a member has to do with depends on where it
    // stands.
    data = s.slots(c.name + ".data", s.freeDim(n - 1), 1);
    if (places == 0)
      return;
    credit = s.slots(c.name + ".credit", s.freeDim(n - 1), 1);
    parts = slotWindow(s, c, "parts", places, capacityOf(s, c));
  }

  InFlight gather();
  InFlight scatter();

private:
  ScheduleBuilder &s;
  CollectiveSpec c;
  Cycle ends;
  Members members;
  int64_t n, places;
  Views v;
  Value t; ///< members from the root to this one, the way that shards take
  Value isRoot, previous, next;
  Value data, credit, parts;

  /// The rank of the member that is `by` further that way.
  Value ahead(int64_t by) { return members.ahead(s.constant(c.flow.outCut ? -by : by)); }
  /// The place in views of the member at distance `t` from the root.
  SmallVector<Value> at(Value t) {
    Value root = s.constant(c.root);
    return members.point(c.flow.outCut ? members.minus(root, t) : members.plus(root, t));
  }
  Value part(Value view, Value k) { return s.range(view, s.rem(k, places)); }
  Value arrival(Value k) { return s.slot(members.atRank(data, next), k); }
  /// What the k-th transfer brought here has been taken from its slot.
  Value freed(Value k, Value sent) {
    return s.signal(s.slot(members.atRank(credit, previous), k), sent, s.controlLane(), "credit");
  }
  /// Of `sends` transfers to the next member's scratch, whose slots what came last in the run
  /// before may still hold: it has been taken.
  Value awaitRunBefore(Value sends, Value start);
  /// The k-th of them: the slot that it goes to is free.
  Value awaitSlot(Value k, Value before) {
    if (!parts)
      return before;
    return s.branch(
        s.less(k, s.constant(places)), [&] { return before; },
        [&] {
          return s.awaitReady(s.slot(credit, s.sub(k, places)), s.constant(1), before,
                              "await credit");
        });
  }
};

Value ShardChain::awaitRunBefore(Value sends, Value start) {
  Value free = start;
  for (int64_t back = 1; back <= places; ++back) {
    Value before = free;
    free = s.branch(
        s.less(sends, s.constant(back)), [&] { return before; },
        [&] {
          return s.awaitReady(s.slot(credit, s.sub(sends, back)), s.constant(0), before,
                              "await credit");
        });
  }
  return free;
}

InFlight ShardChain::gather() {
  InFlight flight;
  Value rtr = s.slots(c.name + ".ready", {}, 1);
  Value start = sourceRooted(s, c, v, members);
  c.outFree = ends.fillPadding(c.outFree);
  SmallVector<Value> given = joined(start, c.outFree);
  Value isLast = s.equal(t, s.constant(n - 1));
  flight.others.push_back(s.branch(
      isRoot, [&] { return s.ready(s.slot(members.atRank(rtr, previous)), c.outFree, "ready"); },
      [&] { return start; }));
  Value kept = s.branch(isRoot, [&] { return ends.keepOwn(v, given); }, [&] { return start; });
  // The last member puts straight where a shard belongs, the others to the next one's scratch.
  Value granted = s.branch(
      isLast, [&] { return s.awaitReady(s.slot(rtr), s.constant(1), start, "await ready"); },
      [&] {
        return s.branch(isRoot, [&] { return start; }, [&] { return awaitRunBefore(t, start); });
      });
  Value done = s.loop(0, n - 1, granted, [&](Value k, Value before) {
    auto pass = [&](Value from, ValueRange after) {
      return s.branch(
          isLast,
          [&] {
            Value home = s.range(members.atRank(v.out, next), at(s.sub(t, k)));
            return s.put(from, home, arrival(k), after, "put home");
          },
          [&]() -> Value {
            if (!parts)
              return before;
            SmallVector<Value> all = joined(awaitSlot(k, before), after);
            return s.put(from, part(members.atRank(parts, next), k), arrival(k), all, "put on");
          });
    };
    auto arrived = [&](Value number) {
      return s.arrive(s.slot(data, number), s.constant(1), before, "await shard");
    };
    auto sendOwn = [&] {
      SmallVector<Value> after = joined(before, given);
      return ends.withOwnShard(
          v.in, [&](Value own) { return pass(own, after); },
          // Who has none brings nothing.
          [&] { return pass(s.range(v.out, ends.own()), after); });
    };
    auto sendOn = [&]() -> Value {
      if (!parts)
        return before;
      Value came = s.sub(k, 1);
      return freed(came, pass(part(parts, came), {arrived(came), before}));
    };
    return s.branch(
        isRoot, [&] { return arrived(k); },
        [&] {
          return s.branch(
              s.less(k, t), [&] { return s.branch(s.equal(k, s.constant(0)), sendOwn, sendOn); },
              [&] { return before; });
        });
  });
  flight.inFree = {kept, done};
  Value finished = finishAtRoot(s, c, isRoot, joined(c.outFree, done),
                                [&] { return demandRooted(s, c, v, members, {kept, done}); });
  flight.finishWith({finished, done, kept});
  return flight;
}

InFlight ShardChain::scatter() {
  InFlight flight;
  Value start = sourceRooted(s, c, v, members);
  SmallVector<Value> outFree = ends.fillPadding(c.outFree);
  // Transfer k is of the shard of the member at distance n - 1 - k: the last that comes is the own.
  Value mine = s.sub(s.constant(n - 1), t);
  Value free = awaitRunBefore(mine, start);
  Value done = s.loop(0, n, free, [&](Value k, Value before) {
    auto pass = [&](Value from, ValueRange after) {
      SmallVector<Value> all = joined(awaitSlot(k, before), after);
      return s.put(from, part(members.atRank(parts, next), k), arrival(k), all, "put on");
    };
    auto sendOn = [&] {
      Value here = s.arrive(s.slot(data, k), s.constant(1), before, "await shard");
      return freed(k, pass(part(parts, k), {here, before}));
    };
    auto takeOwn = [&] {
      Value here = s.arrive(s.slot(data, k), s.constant(1), before, "await shard");
      SmallVector<Value> after = joined({here, before}, outFree);
      Value home = ends.withOwnShard(
          v.out,
          [&](Value own) {
            return s.copy(part(parts, k), own, Value(), after, s.controlLane(), "home");
          },
          [&] { return here; });
      return freed(k, home);
    };
    auto sendFirst = [&] { return pass(s.range(v.in, at(s.sub(s.constant(n - 1), k))), before); };
    auto keepFirst = [&] {
      SmallVector<Value> after = joined(before, outFree);
      return ends.withOwnShard(
          v.out,
          [&](Value own) {
            return s.copy(s.range(v.in, ends.own()), own, Value(), after, s.controlLane(),
                          "keep own");
          },
          [&] { return before; });
    };
    return s.branch(
        s.less(k, mine), [&] { return s.branch(isRoot, sendFirst, sendOn); },
        [&] {
          return s.branch(
              s.equal(k, mine), [&] { return s.branch(isRoot, keepFirst, takeOwn); },
              [&] { return before; });
        });
  });
  flight.inFree = {done};
  SmallVector<Value> ready = joined(done, ArrayRef(outFree).drop_front(c.outFree.size()));
  ready.push_back(demandRooted(s, c, v, members, ready));
  flight.finishWith(ready);
  return flight;
}

} // namespace

InFlight ctran::emitShardChain(ScheduleBuilder &s, const CollectiveSpec &c) {
  ShardChain chain(s, c);
  return c.flow.outCut ? chain.gather() : chain.scatter();
}
