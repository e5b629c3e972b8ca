//===- PermutePairs.cpp - A permute whose sends are listed ------------------------------------===//
//
// Who sends to whom is a table, so ranks differ: the program is asymmetric and is proved on all
// ranks.
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

using namespace mlir;
using namespace mlir::ctran;

/// A token made by `then` where `member` is not -1, else by `otherwise`.
static Value ifAny(ScheduleBuilder &s, Value member, llvm::function_ref<Value()> then,
                   llvm::function_ref<Value()> otherwise) {
  return s.branch(s.less(s.constant(-1), member), then, otherwise);
}

InFlight ctran::permutePairs(ScheduleBuilder &s, const CollectiveSpec &c) {
  InFlight flight;
  Members members(s, c.axes);
  SmallVector<std::pair<int64_t, int64_t>> back;
  for (auto [source, target] : c.pairs)
    back.push_back({target, source});
  Value target = members.partner(c.pairs), source = members.partner(back);
  Value rtr = s.slots(c.name + ".ready", {}, 1), data = s.slots(c.name + ".data", {}, 1);
  // Members are numbers here, so the value is named by numbers, the same ones on every rank.
  Value start =
      s.source(s.range(c.in), c.name, members.point(members.own()), {}, c.inReady, c.axes);
  flight.others.push_back(ifAny(
      s, source, [&] { return s.ready(s.slot(members.at(rtr, source)), c.outFree, "ready"); },
      [&] { return c.outFree.front(); }));
  flight.inFree = {ifAny(
      s, target,
      [&] {
        Value granted = s.awaitReady(s.slot(rtr), s.constant(1), {}, "await ready");
        Value rank = members.rank(target);
        return s.put(s.range(c.in), s.range(members.atRank(c.out, rank)),
                     s.slot(members.atRank(data, rank)), {start, granted}, "put");
      },
      [&] { return start; })};
  flight.finish = [s, c, source, data]() mutable -> SmallVector<Value> {
    Members members(s, c.axes);
    Value ready = ifAny(
        s, source,
        [&] {
          Value here = s.arrive(s.slot(data), s.constant(1), {}, "await data");
          return s.sink(s.range(c.out), c.name, members.point(source), {}, here, c.axes);
        },
        [&] { return c.zero(s, c.outFree); });
    return {ready};
  };
  return flight;
}
