//===- Problem.h - What is to be scheduled, and what a schedule is --------*- C++ -*-===//
//
// Computation and collectives of one rank as one problem that knows no IR: operations, what each
// needs of the machine while it runs, buffers, and the order they must keep. All ranks run one
// schedule, so the order of its starts is the total order of collectives on every rank.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_OVERLAP_PROBLEM_H
#define NCCLX_OVERLAP_PROBLEM_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::ncclx::overlap {

/// How computation and collectives share the SMs.
enum class Sharing {
  /// A kernel launched beside a collective leaves it its SMs to the kernel's end (cuBLASLt's SM
  /// target): in waves.
  fixed,
  /// A kernel gets every SM back once the collective has ended.
  dynamic
};

/// A share of a resource's capacity (HBM, copy engines, a direction of the links, NICs).
struct Use {
  unsigned resource = 0;
  double share = 0; ///< while the op runs alone, in [0, 1]
};

/// A kernel, or a collective.
struct Op {
  std::string name;
  bool collective = false;
  double seconds = 0;    ///< alone, at the highest clock
  bool clocked = false;  ///< bound by the SMs: its rate follows their clock and number
  double joules = 0;     ///< above idle, at the highest clock; of clocked ops it grows as clock^2
  int64_t tiles = 0;     ///< of a GEMM: units of work that an SM does one at a time
  double sms = 0;        ///< of a collective: the SMs it takes from whatever runs beside it
  unsigned queue = 0;    ///< of a collective: those of one queue run one after the other
  std::optional<unsigned> partOf; ///< of a collective: a later part of that one, by itself awaited
  std::vector<Use> uses; ///< each resource at most once
  std::vector<unsigned> after;  ///< ops that are complete before this one starts
  std::vector<unsigned> fences; ///< ops that stand before this one in every schedule
  bool opaque = false;          ///< may communicate in ways unknown: nothing moves across it
};

/// Memory that lives from its producer to its last user.
struct Buffer {
  std::string name;
  int64_t bytes = 0;
  std::optional<unsigned> producer; ///< none: it is there from the start
  std::vector<unsigned> users;
  bool escapes = false; ///< it lives to the end
};

/// Limits of the power that one device may draw, averaged over the schedule.
struct Power {
  double idleWatts = 0;
  double capWatts = 0;      ///< 0: no limit
  double lowestClock = 0.1; ///< of the highest
};

/// The ops stand in a legal order, the reference: the one that they are in before anything moves.
struct Problem {
  std::vector<Op> ops;
  std::vector<Buffer> buffers;
  std::vector<std::string> resources;
  double sms = 132; ///< SMs of the device
  Sharing sharing = Sharing::dynamic;
  Power power;
};

enum class StepKind { run, start, await };

/// What happens next. A collective starts no earlier than the kernels before its start have ended
/// and is complete at its await; kernels run one after the other.
struct Step {
  StepKind kind = StepKind::run;
  unsigned op = 0;
  bool operator==(const Step &) const = default;
};

using Schedule = std::vector<Step>;

/// The reference order with every collective awaited where it starts: no overlap at all.
Schedule serialSchedule(const Problem &problem);

/// What is wrong with the problem itself, or nothing: indices in range, times and shares finite and
/// not negative, an order of ops that its edges allow.
std::optional<std::string> validate(const Problem &problem);

/// What is wrong with a schedule of a valid problem, or nothing: each kernel runs once, each
/// collective is started and awaited once, what an op needs is complete before it starts, and
/// fences and opaque ops keep their places.
std::optional<std::string> check(const Problem &problem, const Schedule &schedule);

/// The most memory alive at once. A collective's buffers live from its start to its await.
int64_t peakBytes(const Problem &problem, const Schedule &schedule);

/// What must be so before an op starts, its fences and opaque ops included.
struct Needs {
  std::vector<std::vector<unsigned>> complete; ///< have run, or have been awaited
  std::vector<std::vector<unsigned>> placed;   ///< stand before it, a collective with its start
};
Needs needsOf(const Problem &problem);

/// Forbids that anything is put off, or brought forward, by more than `distance` collectives of the
/// reference order: a kernel stays in front of the start of that collective behind it, and whatever
/// there is behind the start of that one in front of it.
void fenceDeferral(Problem &problem, unsigned distance);

/// A fingerprint of a schedule; ranks compare it before they run.
uint64_t fingerprint(const Schedule &schedule);

} // namespace mlir::ncclx::overlap
#endif // NCCLX_OVERLAP_PROBLEM_H
