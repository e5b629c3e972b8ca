//===- Plan.h - A program that streams run ------------------------*- C++ -*-===//
//
// The program of ncclxrt/abi.h's group B, called once a run: it enqueues and returns. A lane is a
// stream, order between lanes an event, a signal a stream's write of the counter's next value, a
// wait a stream's wait for it; additions are kernels of the runtime's own. It is rehearsed first:
// called with nothing enqueued, so that all its ranges are checked and its kernels are there before
// any stream waits.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_LIB_CUDA_PLAN_H
#define NCCLXRT_LIB_CUDA_PLAN_H

#include "../Range.h"
#include "../Shape.h"
#include "Compile.h"
#include "Gemm.h"
#include "Reductions.h"
#include "Replay.h"
#include "Runnable.h"
#include "Timeline.h"
#include "ncclxrt/device/serve.h"

#include <functional>

namespace ncclxrt::cuda {

class Plan : public Runnable {
public:
  /// Collective; the same outcome on every rank.
  static Status prepare(Comm &comm, const ncclxrtCudaPlanDesc_t *desc, ncclxrtProgram_t program,
                        std::unique_ptr<Runnable> &plan);
  ~Plan() override;

  Status buffer(size_t window, int32_t generation, void **data, size_t *bytes) override;
  Status run(Stream stream) override;
  Status drain() override;
  Status timeline(bool captured, std::vector<ncclxrtTraceEvent_t> &events,
                  int64_t &errorNs) override;

  // Group B, with a status of 0. A failure is the run's; nothing more is enqueued after it.
  int64_t rank() const { return comm.rank(); }
  int64_t currentRun() const { return runNumber; }
  int64_t address(int64_t window);
  ncclxrtResult_t copy(int64_t op, int64_t lane, const Where &dst, const Where &src,
                       int64_t notifySlots, int64_t notifyPeer, int64_t notifyIndex);
  /// Reads a size where the device has it, when the stream comes to it; size() is its number.
  ncclxrtResult_t count(int64_t op, int64_t lane, int64_t window, int64_t offset, int64_t bytes,
                        int64_t max);
  int64_t size() const { return int64_t(counted) - 1; }
  ncclxrtResult_t copySized(int64_t op, int64_t lane, const Where &dst, const Where &src,
                            int64_t notifySlots, int64_t notifyPeer, int64_t notifyIndex,
                            int64_t size, int64_t dstUnit, int64_t srcUnit);
  ncclxrtResult_t reduce(int64_t op, int64_t lane, int64_t kind, int64_t dtype, int64_t acc,
                         double scale, int64_t divisor, const Where &dst, const Where &a,
                         int64_t count, int64_t step, const Where &b);
  ncclxrtResult_t signal(int64_t op, int64_t lane, int64_t slots, int64_t peer, int64_t index);
  ncclxrtResult_t wait(int64_t op, int64_t lane, int64_t slots, int64_t index, int64_t count,
                       int64_t value);
  ncclxrtResult_t flush(int64_t op, int64_t lane) { return start(op, lane); }
  /// What `lane` does next comes after all that `other` has been given so far.
  ncclxrtResult_t order(int64_t op, int64_t lane, int64_t other);
  /// Hands the next launch the own memory of a window.
  ncclxrtResult_t argument(int64_t window);
  ncclxrtResult_t launch(int64_t op, int64_t lane, int64_t kernel);

private:
  explicit Plan(Comm &comm) : Runnable(comm) {}
  Status shapeFrom(const ncclxrtCudaPlanDesc_t *desc);
  Status rehearse();
  Status loadKernels();
  Status makeSizes(const std::function<Status(Function &, const std::string &)> &find);
  Status prepareGemms();
  Status makeStreams();
  Status makeTimelines();

  struct Lane {
    Stream stream = nullptr;
    Event event = nullptr;
    bool used = false;             ///< in this run
    uint64_t given = 0;            ///< ops so far
    std::vector<uint64_t> follows; ///< of each stream: how many of its ops this one comes after
    /// Signals and waits of a captured run, which become one node of the graph.
    std::vector<MemoryOp> held;
  };
  /// `joins`: the op may be held with those before it.
  ncclxrtResult_t enter(int64_t op, int64_t lane, bool joins = false);
  /// The same, and what the lane is given next is this op's.
  ncclxrtResult_t start(int64_t op, int64_t lane, bool joins = false) {
    if (auto code = enter(op, lane, joins))
      return code;
    return startTime(op, lane);
  }
  Status write(Lane &lane, uint64_t *slot, uint64_t value);
  Status await(Lane &lane, const uint64_t *slot, uint64_t value);
  Status hold(Lane &lane, int kind, const uint64_t *slot, uint64_t value);
  /// Enqueues what is held.
  Status release(Lane &lane);
  ncclxrtResult_t startTime(int64_t op, int64_t lane);
  void tellBytes(int64_t lane, int64_t bytes) {
    if (times && !rehearsing)
      times->moved(placeOf(lane), bytes);
  }
  size_t placeOf(int64_t lane) const { return oneStream ? 0 : size_t(lane); }
  ncclxrtResult_t fail(ncclxrtResult_t code, const std::string &reason);
  ncclxrtResult_t check(const Status &status) {
    return status.ok() ? ncclxrtSuccess : fail(status.code(), status.text());
  }
  /// Checks and locates a range in this GPU's addresses.
  ncclxrtResult_t place(int64_t lane, const char *what, const Where &where, bool isTarget,
                        int64_t moved, int64_t unit, device::Pieces &pieces);
  Status copyPieces(Lane &lane, const device::Pieces &to, const device::Pieces &from);
  ncclxrtResult_t raise(int64_t lane, int64_t slots, int64_t peer, int64_t index);
  Status launchOwn(Lane &lane, Function function, unsigned blocks, unsigned threads,
                   void *argument);
  bool findRank(int64_t peer, int &rank) const;

  /// Counters of one array at one rank: who raises them, and how often this rank has.
  struct Raised {
    std::vector<int32_t> by;        ///< by index: a stream, `nobody` or `several`
    std::vector<uint64_t> count;    ///< by generation and index
    std::vector<uint64_t> captured; ///< the same of a captured run, which is the first of all
  };
  static constexpr int32_t nobody = -1, several = -2;

  Shape shape;
  std::vector<int64_t> writers; ///< by array of slots
  ncclxrtProgram_t program = nullptr;
  std::string module;
  std::unique_ptr<Gemms> gemms; ///< outlives the kernels that use it
  struct Kernel {
    std::string name;
    int32_t blocks = 0, threads = 0, arguments = 0;
    uint64_t scratchBytes = 0;
    Function function = nullptr;
    Address scratch = 0;
    int64_t scratchLane = 0;        ///< that used it last
    std::unique_ptr<Gemm> gemm;     ///< instead of an entry
    std::vector<Address> rehearsed; ///< its arguments when it was rehearsed
  };
  std::vector<Kernel> kernels;
  bool computes = false; ///< there are kernels
  int processors = 0;    ///< of this GPU
  Address workspace = 0; ///< of all products
  int64_t workspaceLane = 0;
  bool oneStream = false;
  std::vector<Stream> givenStreams;
  CompileOptions compileOptions;

  /// A captured run is the same each time that it is replayed, so it is always run 0: on counters
  /// of its own, which waits leave at 0 where that is enough (Replay.h); elsewhere between two
  /// meetings of all ranks, of which the second leaves all counters 0.
  Status capture(Stream stream);
  Status enqueue(Stream stream);
  Status meet(Stream stream, size_t place);

  std::vector<std::vector<char *>> memory; ///< by window and rank
  std::vector<uint64_t *> counters;        ///< by rank; of ordinary runs, then of captured ones
  size_t captureFirst = 0, meetingFirst = 0;
  Replay replay;
  std::vector<Lane> lanes; ///< streams; lane l is lanes[oneStream ? 0 : l]
  Event entered = nullptr;
  std::vector<std::vector<Raised>> raised; ///< by array and rank
  Reductions reductions;
  std::map<std::pair<int, int>, Function> reduceKernels;
  Function raiseKernel = nullptr, sizeKernel = nullptr, sizedCopyKernel = nullptr;
  std::vector<Module> modules;

  /// Sizes that a run reads, in its order: each has a word of the device, which the next run writes
  /// anew when all of this one is done.
  struct Counted {
    int64_t most;
    uint32_t place;
  };
  std::vector<Counted> counts;
  size_t counted = 0; ///< in this run
  Address sizes = 0;

  /// With a timeline: of ordinary runs and of captured ones; the one of this run, or none.
  std::unique_ptr<Clock> clock;
  std::unique_ptr<Timeline> timelines[2];
  Timeline *times = nullptr;
  size_t rehearsed = 0; ///< ops and orders

  bool rehearsing = false, capturing = false, ownStreams = true;
  int64_t runNumber = 0, currentOp = -1;
  std::vector<Address> arguments;
  Status failure;
};

} // namespace ncclxrt::cuda

#endif // NCCLXRT_LIB_CUDA_PLAN_H
