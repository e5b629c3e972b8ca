//===- Binomial.cpp - Trees from and to a root ----------------------------------------------===//
//
// Members are numbered by their distance before the root: t = (root - member) mod n. A broadcast
// doubles those that have the data in each round: t < d sends to t + d. A reduce is that backwards,
// with the longest distance first; partial results go through two scratch slots. In a gather t
// collects the blocks of the members [t, t + 2d) in round d and passes them on at once; a scatter
// is that backwards. Ranks differ, so the proof is of all ranks.
//
//===----------------------------------------------------------------------------------------===//
#include "Algorithms.h"

#include "ncclx/CTran/Access.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ctran;
using Route = ncclx::Dataflow::Route;

namespace {

/// A rooted collective, as each member sees it.
class Tree {
public:
  Tree(ScheduleBuilder &s, const CollectiveSpec &c)
      : s(s), c(c), ends(s, c), members(s, this->c), n(members.size()), v(ends.views()),
        t(members.minus(s.constant(c.root), members.own())), isRoot(s.equal(t, s.constant(0))),
        levels(s.freeDim(llvm::Log2_64_Ceil(n))) {}

  InFlight broadcast();
  InFlight reduce();
  InFlight gather();
  InFlight scatter();

private:
  ScheduleBuilder &s;
  CollectiveSpec c;
  Cycle ends;
  Members members;
  int64_t n;
  Views v;
  Value t, isRoot;
  DimAttr levels; ///< one place for each round

  /// The member at distance `distance` before the root.
  Value member(Value distance) { return members.minus(s.constant(c.root), distance); }
  /// The rank of the member that is `d` nearer to the root than this one, or further from it.
  Value nearer(Value d) { return members.ahead(d); }
  Value further(Value d) { return members.ahead(s.sub(s.constant(0), d)); }
  /// begin <= x < end
  Value within(Value begin, Value x, Value end) {
    return s.both(s.less(s.sub(begin, 1), x), s.less(x, end));
  }
  /// In the round of distance d of a broadcast or reduce: who is nearer to the root, and has a
  /// partner, and who is that partner.
  Value isNear(Value d) { return s.both(s.less(t, d), s.less(s.add(t, d), s.constant(n))); }
  Value isFar(Value d) { return within(d, t, s.add(d, d)); }
  /// In the round of distance d of a gather or scatter: t is a multiple of 2d and t + d a member,
  /// or an odd multiple of d.
  Value rest(Value d) { return arith::RemSIOp::create(s.builder, s.loc, t, s.add(d, d)); }
  Value isHead(Value d) {
    return s.both(s.equal(rest(d), s.constant(0)), s.less(s.add(t, d), s.constant(n)));
  }
  Value isPart(Value d) { return s.equal(rest(d), d); }
  /// The blocks [from, from + d) of those that exist.
  Value blocks(Value view, Value from, Value d) {
    return s.interval(view, from, s.min(d, s.sub(s.constant(n), from)));
  }
};

InFlight Tree::broadcast() {
  Value rtr = s.slots(c.name + ".ready", levels, 1), data = s.slots(c.name + ".data", {}, 1);
  Value start = sourceRooted(s, c, v, members);
  InFlight flight;
  Value told = s.doubling(n, c.outFree.front(), [&](Value d, Value round, Value before) {
    return s.branch(
        isFar(d),
        [&] {
          return s.ready(s.slot(members.atRank(rtr, nearer(d)), round), joined(c.outFree, before),
                         "ready");
        },
        [&] { return before; });
  });
  flight.others.push_back(told);
  // The root sends from its output like everybody else.
  Value kept = keepAtRoot(s, c, v, isRoot, start);
  flight.inFree = {kept};
  Value done = s.doubling(n, kept, [&](Value d, Value round, Value before) {
    Value here = s.branch(
        isFar(d), [&] { return s.arrive(s.slot(data), s.constant(1), before, "await data"); },
        [&] { return before; });
    return s.branch(
        isNear(d),
        [&] {
          Value granted = s.awaitReady(s.slot(rtr, round), s.constant(1), here, "await ready");
          Value rank = further(d);
          return s.put(s.range(v.out), s.range(members.atRank(v.out, rank)),
                       s.slot(members.atRank(data, rank)), {here, granted}, "put");
        },
        [&] { return here; });
  });
  flight.finishWith({done, demandRooted(s, c, v, members, done)});
  return flight;
}

InFlight Tree::reduce() {
  constexpr int64_t kSlots = 2;
  int64_t count = llvm::Log2_64_Ceil(n), slots = std::min(kSlots, count);
  Value ready = s.slots(c.name + ".ready", levels, 1), data = s.slots(c.name + ".data", levels, 1);
  Value parts = slotWindow(s, c, "parts", slots, capacityOf(s, c));
  Value sum = s.scratch(c.name + ".sum", c.inType);
  Value start = sourceRooted(s, c, v, members);
  Combination first = c.step();
  first.scale = c.combination.scale;
  Value have = first.scale
                   ? s.reduce(first, s.range(v.in), s.range(sum), start, "scale")
                   : s.copy(s.range(v.in), s.range(sum), Value(), start, s.controlLane(), "own");
  InFlight flight;
  flight.inFree = {have};
  auto part = [&](Value view, Value round) { return s.range(view, s.rem(round, slots)); };
  // A slot is free for a round when the run starts, or when the round that had it is over.
  auto grant = [&](Value d, Value round, Value before) {
    if (std::optional<int64_t> number = constantOf(round); number && *number >= count)
      return before;
    return s.branch(
        isNear(d),
        [&] { return s.ready(s.slot(members.atRank(ready, further(d)), round), before, "ready"); },
        [&] { return before; });
  };
  Value granted = s.program.getEntry();
  for (int64_t round = 0; round < slots; ++round)
    granted = grant(s.constant(int64_t(1) << (count - 1 - round)), s.constant(round), granted);
  flight.others.push_back(granted);
  Value done = s.halving(n, have, [&](Value d, Value round, Value before) {
    // d / 2^slots is 0 where there is no such round, and then nobody is near. Who has no partner in
    // this round may have one in that.
    auto grantNext = [&](Value after) {
      return grant(s.div(d, int64_t(1) << slots), s.add(round, slots), after);
    };
    Value added = s.branch(
        isNear(d),
        [&] {
          Value here = s.arrive(s.slot(data, round), s.constant(1), before, "await part");
          return grantNext(s.reduce(c.step(), {s.range(sum), part(parts, round)}, s.range(sum),
                                    {before, here}, "add"));
        },
        [&] { return grantNext(before); });
    return s.branch(
        isFar(d),
        [&] {
          Value free = s.awaitReady(s.slot(ready, round), s.constant(1), added, "await ready");
          Value rank = nearer(d);
          return s.put(s.range(sum), part(members.atRank(parts, rank), round),
                       s.slot(members.atRank(data, rank), round), {added, free}, "put part");
        },
        [&] { return added; });
  });
  Value finished = finishAtRoot(s, c, isRoot, joined(c.outFree, done), [&] {
    SmallVector<Value> after = joined(done, c.outFree);
    Value out = c.combination.divide
                    ? s.reduce(c.lastStep(), s.range(sum), s.range(v.out), after, "divide")
                    : s.copy(s.range(sum), s.range(v.out), Value(), after, s.controlLane(), "home");
    return demandRooted(s, c, v, members, out);
  });
  flight.finishWith({finished, done});
  return flight;
}

InFlight Tree::gather() {
  Value ready = s.slots(c.name + ".ready", levels, 1), data = s.slots(c.name + ".data", levels, 1);
  Value parts = slotWindow(s, c, "parts", n, capacityOf(s, c));
  Value start = sourceRooted(s, c, v, members);
  InFlight flight;
  flight.others.push_back(
      s.doubling(n, s.program.getEntry(), [&](Value d, Value round, Value before) {
        return s.branch(
            isHead(d),
            [&] {
              return s.ready(s.slot(members.atRank(ready, further(d)), round), before, "ready");
            },
            [&] { return before; });
      }));
  c.outFree = ends.fillPadding(c.outFree);
  Value have = ends.copyOwn(v, s.range(parts, t), joined(start, c.outFree));
  flight.inFree = {have};
  Value done = s.doubling(n, have, [&](Value d, Value round, Value before) {
    Value more = s.branch(
        isHead(d),
        [&] { return s.arrive(s.slot(data, round), s.constant(1), before, "await blocks"); },
        [&] { return before; });
    return s.branch(
        isPart(d),
        [&] {
          Value granted = s.awaitReady(s.slot(ready, round), s.constant(1), more, "await ready");
          Value rank = nearer(d);
          return s.put(blocks(parts, t, d), blocks(members.atRank(parts, rank), t, d),
                       s.slot(members.atRank(data, rank), round), {more, granted}, "put blocks");
        },
        [&] { return more; });
  });
  Value finished = finishAtRoot(s, c, isRoot, joined(c.outFree, done), [&] {
    Value home = s.loop(0, n, done, [&](Value j, Value before) {
      return s.copy(s.range(parts, j), s.range(v.out, members.point(member(j))), Value(),
                    joined({done, before}, c.outFree), s.controlLane(), "home");
    });
    return demandRooted(s, c, v, members, home);
  });
  flight.finishWith({finished, done});
  return flight;
}

InFlight Tree::scatter() {
  Value ready = s.slots(c.name + ".ready", levels, 1), data = s.slots(c.name + ".data", {}, 1);
  Value parts = slotWindow(s, c, "parts", n, capacityOf(s, c));
  Value start = sourceRooted(s, c, v, members);
  InFlight flight;
  flight.others.push_back(
      s.doubling(n, s.program.getEntry(), [&](Value d, Value round, Value before) {
        return s.branch(
            isPart(d),
            [&] {
              return s.ready(s.slot(members.atRank(ready, nearer(d)), round), before, "ready");
            },
            [&] { return before; });
      }));
  Value have = s.branch(
      isRoot,
      [&] {
        return s.loop(0, n, start, [&](Value j, Value before) {
          return s.copy(s.range(v.in, members.point(member(j))), s.range(parts, j), Value(),
                        {start, before}, s.controlLane(), "own");
        });
      },
      [&] { return start; });
  flight.inFree = {have};
  // Rounds are numbered from the shortest distance, as those of `ready` above.
  int64_t last = llvm::Log2_64_Ceil(n) - 1;
  Value done = s.halving(n, have, [&](Value d, Value fromLongest, Value before) {
    Value round = s.sub(s.constant(last), fromLongest);
    Value here = s.branch(
        isPart(d), [&] { return s.arrive(s.slot(data), s.constant(1), before, "await blocks"); },
        [&] { return before; });
    return s.branch(
        isHead(d),
        [&] {
          Value granted = s.awaitReady(s.slot(ready, round), s.constant(1), here, "await ready");
          Value to = s.add(t, d), rank = further(d);
          return s.put(blocks(parts, to, d), blocks(members.atRank(parts, rank), to, d),
                       s.slot(members.atRank(data, rank)), {here, granted}, "put blocks");
        },
        [&] { return here; });
  });
  SmallVector<Value> after = joined(done, ends.fillPadding(c.outFree));
  Value home = ends.withOwnShard(
      v.out,
      [&](Value own) {
        return s.copy(s.range(parts, t), own, Value(), after, s.controlLane(), "home");
      },
      [&] { return done; });
  SmallVector<Value> tokens =
      joined(home, ArrayRef(after).drop_front(joined(done, c.outFree).size()));
  tokens.push_back(demandRooted(s, c, v, members, tokens));
  flight.finishWith(tokens);
  return flight;
}

} // namespace

InFlight ctran::emitBinomial(ScheduleBuilder &s, const CollectiveSpec &c) {
  if (c.groupSize(s) == 1)
    return emitDirect(s, c);
  if (!c.haveOneSize())
    return emitBySize(s, c, emitBinomial);
  Tree tree(s, c);
  if (c.flow.combines)
    return tree.reduce();
  if (c.flow.outCut)
    return tree.gather();
  return c.flow.inCut ? tree.scatter() : tree.broadcast();
}
