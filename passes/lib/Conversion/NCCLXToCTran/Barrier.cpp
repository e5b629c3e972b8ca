//===- Barrier.cpp - No member goes on before all have come ---------------===//
//
// Few members tell each other. Of many, along each axis in turn, each tells in round k the one 2^k
// further on, once it has heard from as far behind in the round before (dissemination): after the
// last round of the last axis it has heard of all.
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ctran;

static Value tellAll(ScheduleBuilder &s, StringRef name, ArrayRef<unsigned> axes,
                     ValueRange before) {
  Value here = s.slots(name, boundDims(s, axes), 1);
  Value told = s.forEachPeer(axes, before.front(), [&](const Point &peer, Value) {
    return s.signal(s.slot(s.at(here, peer), ownPoint(s, axes)), before, s.controlLane(), "here");
  });
  return s.forEachPeer(axes, told, [&](const Point &peer, Value last) {
    return s.wait(s.slot(here, pointOf(s, axes, peer)), s.constant(1), joined(told, last),
                  s.controlLane(), "await all");
  });
}

static Value tellInRounds(ScheduleBuilder &s, const std::string &name, unsigned axis,
                          ValueRange before) {
  int64_t n = s.size(axis);
  Value here = s.slots(name, s.freeDim(llvm::Log2_64_Ceil(n)), 1);
  return s.doubling(n, before.front(), [&](Value d, Value round, Value last) {
    Point peer;
    peer[axis] = s.shift(s.own(axis), d);
    Value told =
        s.signal(s.slot(s.at(here, peer), round), joined(last, before), s.controlLane(), "here");
    return s.wait(s.slot(here, round), s.constant(1), told, s.controlLane(), "await round");
  });
}

bool ctran::barrierGoesInRounds(ScheduleBuilder &s, ArrayRef<unsigned> axes) {
  // A signal is started in half the time that one takes to be seen and answered (LaneCosts::gpu):
  // three rounds are no sooner than seven signals.
  constexpr int64_t few = 8;
  int64_t n = 1;
  for (unsigned axis : axes)
    n *= s.size(axis);
  return n > few;
}

Value ctran::emitBarrier(ScheduleBuilder &s, StringRef name, ArrayRef<unsigned> axes,
                         ValueRange before) {
  if (!barrierGoesInRounds(s, axes))
    return tellAll(s, name, axes, before);
  SmallVector<Value> done(before);
  for (auto [i, axis] : llvm::enumerate(axes))
    if (s.size(axis) > 1)
      done = {tellInRounds(s, (name + "." + Twine(i)).str(), axis, done)};
  return done.front();
}
