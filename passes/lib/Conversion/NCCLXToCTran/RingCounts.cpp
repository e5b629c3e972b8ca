//===- RingCounts.cpp - all_to_all_v by neighbours alone -----------------------------===//
//
// The ring of RingExchange.cpp, for blocks of as many rows as a matrix says: whoever passes a block
// on knows from it how long the block is. Which rows go is a table by the own rank for each step
// and distance, so the text grows with the matrix. What no member sends goes in no message.
//
//===----------------------------------------------------------------------===//
#include "Counts.h"

using namespace mlir;
using namespace mlir::ctran;

namespace {

class RingCounts {
public:
  RingCounts(ScheduleBuilder &s, const CollectiveSpec &c)
      : s(s), blocks(std::make_shared<CountedBlocks>(this->s, c, /*cutFurther=*/false)),
        n(blocks->size()), most(blocks->mostRows()) {}
  InFlight emit(const CollectiveSpec &c);

private:
  static constexpr int64_t kSlots = 2;
  ScheduleBuilder &s;
  std::shared_ptr<CountedBlocks> blocks;
  int64_t n, most;

  /// Does some member send rows to the one that is `d` further on?
  bool isUsed(int64_t d) const {
    for (int64_t x = 0; x < n; ++x)
      if (blocks->rows(x, (x + d) % n))
        return true;
    return false;
  }
  /// Messages of the steps up to and with `step`.
  int64_t messages(int64_t step) const {
    int64_t count = 0;
    for (int64_t d = 1; d < n; ++d)
      if (isUsed(d))
        count += std::min(step, d);
    return count;
  }
  /// A number that depends on the block for the member `d` further on than its sender, which is
  /// the one `step - 1` behind the own one.
  Value ofBlock(int64_t step, int64_t d, llvm::function_ref<int64_t(int64_t from, int64_t to)> f) {
    return blocks->table(1 - step, [&](int64_t, int64_t from) { return f(from, (from + d) % n); });
  }
  Value rows(int64_t step, int64_t d) {
    return ofBlock(step, d, [&](int64_t from, int64_t to) { return blocks->rows(from, to); });
  }
};

} // namespace

InFlight RingCounts::emit(const CollectiveSpec &c) {
  int64_t all = messages(n - 1);
  blocks->start();
  InFlight flight;
  Value kept = blocks->keepOwn(s);
  flight.inFree = {kept};
  if (all == 0) {
    flight.finish = [blocks = blocks, kept]() -> SmallVector<Value> {
      return {kept, blocks->demand(kept)};
    };
    return flight;
  }
  auto next = blocks->viewsAt(1), previous = blocks->viewsAt(-1);
  Value rtr = s.slots(c.name + ".ready", {}, 1), data = s.slots(c.name + ".data", {}, all);
  Value parts, credit;
  if (n > 2) {
    parts = slotWindow(s, c, "parts", kSlots * n * most, blocks->unitElements());
    credit = s.slots(c.name + ".credit", {}, n - 2);
  }
  flight.others.push_back(s.ready(s.slot(previous(rtr)), blocks->outFree, "ready"));
  Value granted = s.awaitReady(s.slot(rtr), s.constant(1), blocks->given, "await ready");
  auto part = [&](Value memory, int64_t step, int64_t d) {
    return s.interval(memory, s.constant((step % kSlots * n + d) * most), rows(step, d));
  };
  auto source = [&](int64_t step, int64_t d) {
    if (step == 1)
      return blocks->sent(d);
    // What came in the step before, and how long it is, are of one block.
    return s.interval(parts, s.constant(((step - 1) % kSlots * n + d) * most), rows(step, d));
  };
  Value passed = granted; // all that went before
  for (int64_t step = 1; step < n; ++step) {
    SmallVector<Value> after{blocks->given, granted}, puts;
    if (step > 1)
      after.front() =
          s.arrive(s.slot(data), s.constant(messages(step - 1)), passed, "await blocks");
    // Step k writes the slots that the successor's step k-1 read, its (k-2)-th credit; the first
    // one those that the run before has left behind.
    if (n > 2)
      after.push_back(s.awaitReady(s.slot(credit), s.constant(std::max<int64_t>(0, step - 2)), {},
                                   "await credit"));
    for (int64_t d = step; d < n; ++d) {
      if (!isUsed(d))
        continue;
      Value size = rows(step, d);
      Value to = d > step ? part(next(parts), step, d)
                          : s.interval(next(blocks->out),
                                       ofBlock(step, d,
                                               [&](int64_t from, int64_t to) {
                                                 return blocks->landsAt(from, to);
                                               }),
                                       size);
      puts.push_back(
          s.put(source(step, d), to, s.slot(next(data)), after, d > step ? "put on" : "put home"));
    }
    if (step == 1)
      llvm::append_range(flight.inFree, puts);
    else
      passed = s.signal(s.slot(previous(credit)), joined(after, puts), s.controlLane(), "credit");
  }
  llvm::append_range(flight.others, joined(passed, flight.inFree));
  flight.finish = [s = s, data, all, passed, kept,
                   blocks = blocks]() mutable -> SmallVector<Value> {
    SmallVector<Value> ready{kept, s.arrive(s.slot(data), s.constant(all), passed, "await blocks")};
    ready.push_back(blocks->demand(ready));
    return ready;
  };
  return flight;
}

InFlight ctran::ringCounts(ScheduleBuilder &s, const CollectiveSpec &c) {
  return RingCounts(s, c).emit(c);
}
