//===- Time.h - How long a schedule takes on shared resources ------*- C++ -*-===//
#ifndef NCCLX_MACHINE_TIME_H
#define NCCLX_MACHINE_TIME_H

#include "ncclx/Machine/Schedule.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlir::ctran::machine {

/// A share of a resource: a flow at rate r takes weight * r of the resource's capacity.
struct ResourceUse {
  unsigned resource = 0;
  double weight = 1;
};

/// What an op costs: `before` seconds of its own, then `work` units (bytes, seconds of a core, ...)
/// at the max-min fair rate that `uses` and `maxRate` leave it, then `after` seconds. A remote
/// write or notify lands `landing` seconds after that; the lane does not wait for it. An issue lane
/// is free for its next op after `before`. Ops that share a resource count work in one unit.
struct Cost {
  double before = 0, work = 0, after = 0, landing = 0;
  double maxRate = std::numeric_limits<double>::infinity(); ///< units a second
  std::vector<ResourceUse> uses;
  /// Ranks between which the op must move something, and nothing leads: from, to.
  std::optional<std::pair<int64_t, int64_t>> apart;
  /// What the op needs and the machine does not have, or null.
  const char *lacks = nullptr;
};

/// An access, resolved: whose memory and how many bytes.
struct Part {
  int64_t rank = 0;
  unsigned window = 0;
  int64_t bytes = 0;
  int64_t rows = 1; ///< contiguous pieces
};

/// Everything about an op that a cost may depend on.
struct OpCostQuery {
  int64_t rank = 0; ///< who executes it
  const Op *op = nullptr;
  std::vector<Part> reads, writes; ///< empty boxes included
  int64_t signalled = -1;          ///< whose slot a signal or notify raises; -1: none
};

/// The machine that a schedule is timed on. Units are the caller's, time is in seconds.
class CostModel {
public:
  virtual ~CostModel() = default;
  /// Capacity of a resource, in units a second. Resources are numbered from 0.
  virtual unsigned numResources() const = 0;
  virtual double capacity(unsigned resource) const = 0;

  virtual Cost copy(const OpCostQuery &query) const = 0;
  virtual Cost reduce(const OpCostQuery &query) const = 0;
  virtual Cost compute(const OpCostQuery &query) const = 0;
  /// `landing` is how long the signal travels.
  virtual Cost signal(const OpCostQuery &query) const = 0;
  /// What a wait costs after its slot has its value.
  virtual Cost wait(const OpCostQuery &query) const { return {}; }
  virtual Cost flush(const OpCostQuery &query) const { return {}; }
  virtual Cost count(const OpCostQuery &query) const { return {}; }
  /// Time that the one issuer of a rank needs to enqueue an op (launch, post): the next op of the
  /// program is enqueued after it.
  virtual double issue(const OpCostQuery &query) const { return 0; }

  /// True when all ranks and resources look alike from each other: then one representative, rank
  /// 0, is simulated, and every resource that its ops name stands for its whole orbit (weight =
  /// how many flows of the orbit share one resource).
  virtual bool symmetric() const { return false; }
};

/// When an executed op ran. `start`: lane, tokens and slot let it; `end`: local completion.
struct TimedOp {
  int64_t rank = 0, run = 0, step = 0; ///< step: position in its lane and run
  Lane lane;
  OpKind kind = OpKind::Nop;
  unsigned location = 0;
  int collective = -1;
  double start = 0, end = 0, landed = 0;
  /// What let it start last: index of a TimedOp, -1 when nothing did.
  int64_t blocker = -1;
};

struct TimeOptions {
  int64_t runs = 1;
  int64_t eventBudget = 4'000'000;
  bool keepOps = true; ///< fill TimeResult::ops
  /// Give up where the schedule takes longer: TimeResult::late.
  double horizon = std::numeric_limits<double>::infinity();
};

struct CollectiveTime {
  double firstIssue = 0;     ///< earliest start of one of its ops, any rank
  double lastCompletion = 0; ///< latest end or landing
  /// A rank is *exposed* while it is inside the run and none of its lanes executes a Compute op.
  /// That time is charged along the chain of blockers of the op that ends it (the next Compute, or
  /// Exit): each stretch to the collective whose op filled it. Here: the largest over ranks, and
  /// the mean.
  double exposedMax = 0, exposedMean = 0;
};

struct TimeResult {
  bool ok = false;
  std::string message; ///< why not
  bool apart = false;  ///< because the machine lacks a way or a switch: no fault of the schedule
  bool late = false;   ///< because it takes longer than TimeOptions::horizon
  int64_t processes = 0, events = 0;
  std::vector<TimedOp> ops; ///< by start time
  double makespan = 0;
  /// Transfers between ranks that follow each other by tokens, or by what a lane has waited for, in
  /// the longest chain. Beyond the way of one piece that counts those that wait for room, too.
  int64_t hops = 0;
  std::vector<CollectiveTime> collectives; ///< as Schedule::collectives
  double exposedOtherMax = 0;              ///< exposed, and no collective's doing
  double computeMax = 0;                   ///< largest time a rank executes Compute ops
  /// Per Schedule::windows: bytes per rank, all generations; and their sum.
  std::vector<int64_t> windowBytes;
  int64_t totalBytes = 0;
};

/// Discrete-event simulation with fluid max-min sharing of the resources.
[[nodiscard]] TimeResult simulate(const Schedule &schedule, const CostModel &model,
                                  const TimeOptions &options = {});

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_TIME_H
