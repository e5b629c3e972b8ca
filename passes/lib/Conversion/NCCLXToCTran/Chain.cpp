//===- Chain.cpp - From and to a root, from hand to hand ------------------===//
//
// The ring of what has a root, in chunks that follow each other. A broadcast goes from the root to
// the member behind it and on to the last; a reduce begins at the member behind the root, each adds
// its own to what comes and passes it on, and the root is the last (order `ring`). However many
// members there are, each link carries the tensor once. Ranks differ, so the proof is of all ranks.
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::ctran;

namespace {

class Chain {
public:
  Chain(ScheduleBuilder &s, const CollectiveSpec &c);
  InFlight broadcast();
  InFlight reduce();

private:
  ScheduleBuilder &s;
  CollectiveSpec c;
  Cycle ends;
  Members members;
  int64_t n, chunks;
  int64_t capacity; ///< elements of the largest chunk
  Views v;
  Value place; ///< members from the root to this one
  Value isRoot, previous, next;

  int64_t numChunks() const;
  Value inChunks(Value window) {
    return s.reindex(window, std::nullopt, s.freeDim(chunks, flatGranule(c.inType)));
  }
};

Chain::Chain(ScheduleBuilder &s, const CollectiveSpec &given)
    : s(s), c(given), ends(s, c), members(s, c), n(members.size()), chunks(numChunks()),
      v(ends.views()), place(members.minus(members.own(), s.constant(c.root))),
      isRoot(s.equal(place, s.constant(0))), previous(members.ahead(s.constant(-1))),
      next(members.ahead(s.constant(1))) {
  int64_t granule = flatGranule(c.inType);
  capacity = int64_t(llvm::divideCeil(c.inType.getNumElements(), chunks * granule)) * granule;
  if (s.carrier.oneKernel)
    s.whole = "it is one kernel's";
  else
    s.pipelined = ncclx::Pipeline{chunks};
}

/// The last chunk arrives as many steps after the first as there are further chunks: what both
/// together take is least where the square of the number of chunks is the time of the whole tensor
/// on a link, over a step's fixed part, times the members that it still has to pass.
int64_t Chain::numChunks() const {
  int64_t elements = c.inType.getNumElements();
  int64_t most = std::max<int64_t>(1, llvm::divideCeil(elements, flatGranule(c.inType)));
  if (s.carrier.oneKernel)
    return 1;
  if (c.pipeline.chunks)
    return std::min(*c.pipeline.chunks, most);
  if (!c.link)
    return 1;
  constexpr double mostByTime = 512;
  double bytes = double(elements) * double(llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8));
  double seconds = bytes / c.link->bytesPerSecond;
  if (c.flow.combines)
    seconds += 3 * bytes * s.carrier.sumSecondsPerByte;
  double passes = double(c.flow.combines ? n - 1 : n - 2);
  double best = std::sqrt(passes * seconds / stepSeconds);
  return std::clamp<int64_t>(int64_t(std::min(best, mostByTime)), 1, most);
}

InFlight Chain::broadcast() {
  Value rtr = s.slots(c.name + ".ready", {}, 1), data = s.slots(c.name + ".data", {}, chunks);
  Value in = inChunks(c.in), out = c.in == c.out ? in : inChunks(c.out);
  Value start = sourceRooted(s, c, v, members);
  Value isLast = s.equal(place, s.constant(n - 1));
  InFlight flight;
  flight.others.push_back(s.branch(
      isRoot, [&] { return start; },
      [&] { return s.ready(s.slot(members.atRank(rtr, previous)), c.outFree, "ready"); }));
  Value granted = s.branch(
      isLast, [&] { return start; },
      [&] { return s.awaitReady(s.slot(rtr), s.constant(1), start, "await ready"); });
  Value passed = s.loop(0, chunks, granted, [&](Value k, Value before) {
    Value here = s.branch(
        isRoot, [&] { return before; },
        [&] { return s.arrive(s.slot(data), s.add(k, 1), {}, "await chunk"); });
    auto pass = [&](Value from) {
      return s.put(s.range(from, k), s.range(members.atRank(out, next), k),
                   s.slot(members.atRank(data, next)), {here, granted, before}, "put chunk");
    };
    return s.branch(
        isLast, [&] { return here; },
        [&] { return s.branch(isRoot, [&] { return pass(in); }, [&] { return pass(out); }); });
  });
  Value kept = keepAtRoot(s, c, v, isRoot, start);
  flight.inFree = {kept, passed};
  SmallVector<Value> ready{passed, kept};
  ready.push_back(demandRooted(s, c, v, members, {passed, kept}));
  flight.finishWith(ready);
  return flight;
}

InFlight Chain::reduce() {
  constexpr int64_t kScratchSlots = 2;
  int64_t slots = std::min(kScratchSlots, chunks);
  Value data = s.slots(c.name + ".data", {}, chunks),
        credit = s.slots(c.name + ".credit", {}, chunks);
  Value parts = slotWindow(s, c, "parts", slots, capacity);
  Value start = sourceRooted(s, c, v, members);
  bool scaled = ends.prescale(c, v, start);
  Value in = inChunks(c.in), out = c.in == c.out ? in : inChunks(c.out);
  Value isFirst = s.equal(place, s.constant(1));
  Value done = s.loop(0, chunks, start, [&](Value k, Value before) {
    auto part = [&](Value view) { return s.range(view, s.rem(k, slots)); };
    // A slot is free when the chunk that had it has been passed on. A run starts in slot 0
    // whichever its last one ended in: its first put waits for all credits of the runs before.
    Value missing = s.min(s.sub(s.constant(slots - 1), k), s.constant(0));
    auto pass = [&](Value sum, ValueRange after) {
      Value granted =
          s.awaitReady(s.slot(credit), s.sub(s.constant(0), missing), after, "await credit");
      return s.put(sum, part(members.atRank(parts, next)), s.slot(members.atRank(data, next)),
                   joined(granted, after), "put part");
    };
    return s.branch(
        isFirst, [&] { return pass(s.range(in, k), {start, before}); },
        [&] {
          Value here = s.arrive(s.slot(data), s.add(k, 1), {}, "await part");
          Value sum = s.branch(
              isRoot,
              [&] {
                return s.reduce(c.lastStep(), {part(parts), s.range(in, k)}, s.range(out, k),
                                joined({here, start}, c.outFree), "add own");
              },
              [&] {
                return pass(part(parts), s.reduce(c.step(), {part(parts), s.range(in, k)},
                                                  part(parts), {here, start}, "add own"));
              });
          return s.signal(s.slot(members.atRank(credit, previous)), {sum, before}, s.controlLane(),
                          "credit");
        });
  });
  InFlight flight;
  flight.inFree = {scaled ? start : done};
  flight.others = {done};
  Value finished = finishAtRoot(s, c, isRoot, joined(c.outFree, done),
                                [&] { return demandRooted(s, c, v, members, done); });
  flight.finishWith({finished, done});
  return flight;
}

} // namespace

InFlight ctran::emitChain(ScheduleBuilder &s, const CollectiveSpec &c) {
  Chain chain(s, c);
  return c.flow.combines ? chain.reduce() : chain.broadcast();
}
