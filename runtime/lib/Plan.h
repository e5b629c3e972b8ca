//===- Plan.h - A prepared program of one rank ------------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_PLAN_H
#define NCCLXRT_LIB_PLAN_H

#include "Comm.h"
#include "Reduce.h"
#include "Shape.h"

#include <cstdlib>
#include <deque>
#include <map>

namespace ncclxrt {

/// What a rank has made of the counters that it alone raises, at each peer. Pages that nothing is
/// counted on take no memory.
class SentCounts {
public:
  SentCounts() = default;
  SentCounts(size_t nranks, size_t slotCount)
      : slotCount(slotCount), counts(static_cast<uint64_t *>(calloc(nranks * slotCount, 8)), free) {
  }
  explicit operator bool() const { return counts != nullptr; }
  uint64_t next(int rank, int64_t slot) {
    return ++counts[size_t(rank) * slotCount + size_t(slot)];
  }

private:
  size_t slotCount = 0;
  std::unique_ptr<uint64_t[], void (*)(void *)> counts{nullptr, free};
};

class Plan {
public:
  /// Collective. The plan, or the same error on every rank.
  static Status prepare(Comm &comm, const ncclxrtPlanDesc_t *desc, std::unique_ptr<Plan> &plan);
  ~Plan();

  Status buffer(size_t window, int32_t generation, void **data, size_t *bytes);
  ncclxrtResult_t run(ncclxrtProgram_t program);
  void abortWaits() { own->abort(); }
  const ncclxrtTraceEvent_t *traceEvents() const { return trace.data(); }
  size_t traceCount() const { return size_t(traceSize); }
  void clearTrace() { traceSize = 0; }
  const std::string &name() const { return shape.name; }
  std::string opName(int64_t op) const;
  bool isPlan(int64_t number) const { return number == id; }

  // Group B, with a status of 0.
  int64_t currentRun() const { return branchRun; }
  int64_t address(int64_t window);
  ncclxrtResult_t copy(int64_t op, int64_t lane, const Where &dst, const Where &src,
                       int64_t notifySlots, int64_t notifyPeer, int64_t notifyIndex);
  ncclxrtResult_t reduce(int64_t op, int64_t lane, int64_t kind, int64_t dtype, int64_t acc,
                         double scale, int64_t divisor, const Where &dst, const Where &a,
                         int64_t count, int64_t step, const Where &b);
  /// A further source of this op's reduction.
  ncclxrtResult_t operand(int64_t op, int64_t lane, const Where &source);
  ncclxrtResult_t signal(int64_t op, int64_t lane, int64_t slots, int64_t peer, int64_t index);
  ncclxrtResult_t wait(int64_t op, int64_t lane, int64_t slots, int64_t index, int64_t count,
                       int64_t value);
  ncclxrtResult_t count(int64_t op, int64_t lane, int64_t window, int64_t offset, int64_t bytes,
                        int64_t max);
  /// What the last count has read.
  int64_t size() const { return counted; }
  ncclxrtResult_t choose(int64_t op, int64_t lane, int64_t window, int64_t branches);
  /// What has been chosen last in this run, or -1.
  int64_t chosen() const { return branch; }
  ncclxrtResult_t agree(int64_t op, int64_t lane, int64_t window, int64_t dtype);
  ncclxrtResult_t flush(int64_t op, int64_t lane);
  ncclxrtResult_t complete(int64_t op, int64_t lane);
  ncclxrtResult_t computeBegin(int64_t op, int64_t lane);
  ncclxrtResult_t computeEnd(int64_t op, int64_t lane);

  Comm &comm;

private:
  Plan(Comm &comm, int64_t id, Shape given) : comm(comm), id(id), shape(std::move(given)) {}

  /// Begins an op: counts the step, notes the place, checks op and lane.
  ncclxrtResult_t enter(int64_t op, int64_t lane);
  ncclxrtResult_t refuseEntry(int64_t op, int64_t lane);
  /// Ends the job: "rank, plan, run, step, op: " and the reason.
  ncclxrtResult_t fail(ncclxrtResult_t code, const std::string &reason);
  ncclxrtResult_t fail(const Status &status) { return fail(status.code(), status.text()); }
  template <typename Text> ncclxrtResult_t refuse(ncclxrtResult_t code, Text text);
  std::string describePlace() const;

  /// What every rank brings, each `bytes` long, when all have come to this.
  ncclxrtResult_t gather(const char *kind, const std::string &what, const void *mine, size_t bytes,
                         std::vector<std::string> &parts);

  /// Puts the windows that are other plans' into what this plan has mapped of a rank's memory.
  Status shareWindows(int rank, const std::map<int64_t, Plan *> &sharers);
  Segment *segmentOf(int rank) const { return rank == comm.rank() ? own.get() : peers[rank].get(); }

  /// Own rank for -1; false for no rank.
  bool resolvePeer(int64_t peer, int &rank) const;
  /// Checks a range, and gives it with its offset in the segment. `moved`: the furthest that a
  /// source moves from its offset. `unit`: pieces and offsets are multiples of it.
  ncclxrtResult_t resolve(const char *what, const Where &where, bool isTarget, int64_t moved,
                          int64_t unit, Range &range, int &rank);
  /// Whether a range is one row, not empty, of its window: the quick half of resolve, with nothing
  /// moved and no unit.
  bool isRow(const Where &where, int &rank) const;
  ncclxrtResult_t copyAny(int64_t op, int64_t lane, Where dst, Where src, int64_t notifySlots,
                          int64_t notifyPeer, int64_t notifyIndex);
  bool hasSlots(int64_t slots, int64_t index, int64_t count) const;
  /// The number of a slot in the segment, of the current generation.
  ncclxrtResult_t resolveSlot(int64_t slots, int64_t index, int64_t count, int64_t &slot);
  ncclxrtResult_t raise(int rank, int64_t slots, int64_t slot);
  ncclxrtResult_t raiseFar(int rank, int64_t slot);
  ncclxrtResult_t await(int64_t slots, int64_t index, int64_t first, int64_t count, int64_t value);

  bool tracing() const { return shape.traceCapacity > 0; }
  /// The event's number, or -1 when no room is left.
  int64_t traceBegin(int64_t op, int64_t lane, int64_t bytes);
  void traceEnd(int64_t event);

  int64_t id;
  Shape shape;
  std::shared_ptr<Segment> own;
  std::vector<std::shared_ptr<Segment>> peers; // null: not mapped; own at the own rank
  std::deque<LaneProgress> lanes;
  std::vector<ncclxrtTraceEvent_t> trace;
  int64_t traceSize = 0;

  /// Where the current run's generation of something lies. Each run steps on, which is quicker than
  /// to divide.
  struct Generation {
    int64_t at, pitch, first, end;
    Generation(int64_t first, int64_t pitch, int64_t generations)
        : at(first + (generations - 1) * pitch), pitch(pitch), first(first), end(at + pitch) {}
    int64_t next() const { return at + pitch == end ? first : at + pitch; }
    void step() { at = next(); }
    /// To where a run of this number, which is not the next one, has it.
    void moveTo(int64_t run) {
      if (pitch) // else all are empty
        at = first + run % ((end - first) / pitch) * pitch;
    }
  };
  struct WindowNow : Generation { // at: offset in the segment
    int64_t bytes;
  };
  struct SlotsNow : Generation { // at: number of the first slot
    int64_t count;
    bool isOnlyOurs; // what this rank raises at a peer, nobody else does, and it is counted
  };
  std::vector<WindowNow> windows;
  std::vector<SlotsNow> slots;
  SentCounts sent;

  bool running = false;
  int64_t runNumber = -1, step = 0, currentOp = -1;
  int64_t branch = -1, branchRun = -1; // of this run; without a choice all are of one branch
  std::vector<int64_t> branchRuns;     // how many each branch has had
  std::vector<Where> named;            // further sources of the reduction of namedOf
  std::vector<Placed> further;         // where b and they lie; kept for its room
  int64_t namedOf = -1;
  int64_t computeEvent = -1;
  bool computing = false;
  int64_t counted = 0;
  int64_t badWindow = -1; // of an address that could not be given
  bool hasBadWindow = false;

public:
  /// Where a rank is that comes to run it when the job has ended.
  std::string describeNextRun() const;
  /// Whether a program runs, so that group B may be called.
  bool inRun() const { return running; }
};

} // namespace ncclxrt

struct ncclxrtPlan {
  std::unique_ptr<ncclxrt::Plan> plan;
};

#endif // NCCLXRT_LIB_PLAN_H
