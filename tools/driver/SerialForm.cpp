//===- SerialForm.cpp - A schedule as one thread plays it ---------------------------------===//
#include "SerialForm.h"

using namespace mlir::ctran::machine;
using mlir::ncclx::SerialForm;

SerialForm::SerialForm(const Schedule &schedule, bool keepNic)
    : schedule(schedule), keepNic(keepNic) {
  name = schedule.name;
  grid = schedule.grid;
  windows = schedule.windows;
  slots = schedule.slots;
  valueNames = schedule.valueNames;
  locations = schedule.locations;
  collectives = schedule.collectives;
  rxVisible = schedule.rxVisible;
}

namespace {
class SerialStream : public OpStream {
public:
  SerialStream(std::unique_ptr<OpStream> inner, bool keepNic)
      : inner(std::move(inner)), keepNic(keepNic) {}

  Result next(Op &op) override {
    Result result = inner->next(op);
    why = inner->why;
    bool proofOnly = op.kind == OpKind::Source || op.kind == OpKind::Sink;
    if (result == Result::Op && op.lane.kind != LaneKind::User && !proofOnly &&
        !(keepNic && isIssueLane(op.lane.kind)))
      op.lane = {LaneKind::Host, 0};
    return result;
  }

private:
  std::unique_ptr<OpStream> inner;
  bool keepNic;
};
} // namespace

std::unique_ptr<OpStream> SerialForm::open(const std::vector<int64_t> *point, int64_t run) const {
  return std::make_unique<SerialStream>(schedule.open(point, run), keepNic);
}
