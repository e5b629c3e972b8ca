//===- Schedule.cpp - Grid arithmetic and names -------------------------------===//

#include "ncclx/Machine/Schedule.h"
#include "ncclx/Machine/Trace.h"

namespace mlir::ctran::machine {

int64_t Grid::numRanks() const {
  int64_t n = 1;
  for (int64_t size : sizes)
    n *= size;
  return n;
}

std::vector<int64_t> Grid::pointOf(int64_t rank) const {
  std::vector<int64_t> point(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    point[i] = rank % sizes[i];
    rank /= sizes[i];
  }
  return point;
}

int64_t Grid::rankOf(const std::vector<int64_t> &point) const {
  int64_t rank = 0;
  for (size_t i = 0; i < sizes.size(); ++i)
    rank = rank * sizes[i] + point[i];
  return rank;
}

const char *toString(ReduceKind kind) {
  constexpr const char *names[] = {"sum", "min", "max", "prod"};
  return names[size_t(kind)];
}

std::string toString(Lane lane) {
  switch (lane.kind) {
  case LaneKind::CE:
    return "ce" + std::to_string(lane.index);
  case LaneKind::Compute:
    return "compute" + std::to_string(lane.index);
  case LaneKind::SM:
    return "sm" + std::to_string(lane.index);
  case LaneKind::Host:
    return "host" + std::to_string(lane.index);
  case LaneKind::NIC:
    return "nic" + std::to_string(lane.index);
  case LaneKind::User:
    return lane.index == 0 ? "user" : "user" + std::to_string(lane.index);
  }
  return "?";
}

const char *toString(OpKind kind) {
  switch (kind) {
  case OpKind::Copy:
    return "copy";
  case OpKind::Reduce:
    return "reduce";
  case OpKind::Compute:
    return "compute";
  case OpKind::Signal:
    return "signal";
  case OpKind::Wait:
    return "wait";
  case OpKind::Flush:
    return "flush";
  case OpKind::Count:
    return "count";
  case OpKind::Source:
    return "source";
  case OpKind::Sink:
    return "sink";
  case OpKind::Entry:
    return "entry";
  case OpKind::Exit:
    return "exit";
  case OpKind::Nop:
    return "nop";
  }
  return "?";
}

} // namespace mlir::ctran::machine
