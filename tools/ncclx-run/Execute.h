//===- Execute.h - Running a compiled program on processes of this machine ---*- C++ -*-===//
#ifndef NCCLX_TOOLS_NCCLX_RUN_EXECUTE_H
#define NCCLX_TOOLS_NCCLX_RUN_EXECUTE_H

#include "Driver.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::ncclx {

struct NcclCall;

struct ExecuteOptions {
  std::string transport = "shm";
  int64_t timeoutMs = 30'000;
  int64_t repeat = 3; ///< timed runs, after one that is not timed
  int64_t burst = 0;  ///< on GPUs: rounds of so many runs back to back behind those
  int rounds = 9;     ///< of bursts
  /// On GPUs: so many runs captured in a graph, and how often it is replayed with every bit
  /// compared; between the rounds it is timed, too. 0: no graph.
  int64_t graphRuns = 0, replays = 1;
  /// On GPUs: what NCCL does between those rounds, by turns; null: nothing.
  const NcclCall *nccl = nullptr;
  bool processes = false; ///< on GPUs: ranks are processes, not threads of this one
  bool timeline = false;  ///< on GPUs: of the last run, with --graph of the last one replayed
  uint64_t seed = 1;
  std::vector<bool> uniform; ///< per argument: the same on all ranks
  std::vector<int64_t> most; ///< per argument: the largest of the sizes that it holds; -1: no sizes
  bool exact = false;        ///< inputs whose sums no order changes
  bool repeatInputs = false; ///< on GPUs: inputs repeat after 1 Mi elements, and are soon made
  /// Products add in an order of their own: unless inputs are exact, what depends on one is
  /// compared within what that can change.
  bool reordered = false;

  bool isUniform(int64_t argument) const {
    return size_t(argument) < uniform.size() && uniform[argument];
  }
};

/// What an argument is filled with: numbers drawn by seed, rank and argument, of which those that
/// are sizes of a collective are some.
void fillArgument(const ExecuteOptions &options, uint64_t seed, int64_t rank, int64_t argument,
                  Type type, void *data);

class Peers;
struct CudaDevices;
struct CudaPaths;
struct CudaProgram;

/// What the ranks left in memory that this process shares with them.
class Execution {
public:
  Execution() = default;
  Execution(const Execution &) = delete;
  Execution &operator=(const Execution &) = delete;
  ~Execution();

  /// Starts one process a rank, runs the program, and waits for all. False: `error` says which rank
  /// failed, in which op, and why.
  bool run(const HostPlan &plan, ncclxrtProgram_t program, const ExecuteOptions &options);

  /// The same on GPUs, rank r on GPU r modulo their number. For processes nothing in this one may
  /// have started the driver, which no child could then use.
  bool runCuda(const HostPlan &plan, ncclxrtProgram_t program, const CudaProgram &kernels,
               const CudaPaths &cuda, const CudaDevices &devices, const ExecuteOptions &options);

  std::string error;
  /// Seconds of each timed run: of its slowest rank.
  std::vector<double> seconds;
  /// Of one run of a burst, the median of the rounds: ours, NCCL's modes, and with a graph the same
  /// once more, replayed.
  std::vector<double> burstSeconds;
  /// The last run's events of each rank; on GPUs with a timeline alone.
  std::vector<std::vector<ncclxrtTraceEvent_t>> events;
  /// By how much the clocks of two ranks may differ in them, on GPUs.
  double clockErrorSeconds = 0;
  /// Output `index` of `rank` after the last run; behind the outputs come the buffers that are
  /// changed in place.
  const void *output(int64_t rank, int64_t index) const;

private:
  struct Shared;
  Shared *rankMemory(int64_t rank) const;
  void *memory = nullptr;
  size_t bytesPerRank = 0, totalBytes = 0, traceCapacity = 0, burstCount = 0;
  std::vector<size_t> outputOffsets; ///< by output position, from the start of a rank's memory

  /// Positions in plan.windows of what holds results: outputs, then buffers changed in place.
  static SmallVector<size_t> resultWindows(const HostPlan &plan);
  /// Memory for what every rank leaves, shared with processes that are started later.
  bool share(const HostPlan &plan, ExecuteOptions &options, size_t bursts = 0);
  MutableArrayRef<double> burstsOf(int64_t rank) const;
  /// What a rank does on a GPU; gives why it failed, or "".
  using RankBody = llvm::function_ref<std::string(Peers &, int32_t)>;
  void runThreads(int64_t ranks, RankBody body, std::vector<std::string> &outcomes);
  /// Sets `error` where a rank died that says nothing.
  void runProcesses(const HostPlan &plan, const ExecuteOptions &options, RankBody body,
                    std::vector<std::string> &outcomes);
  char *resultOf(int64_t rank, int64_t index) const;
  void setTime(int64_t rank, int64_t run, int64_t nanoseconds) const;
  void takeTimes(int64_t ranks, int64_t repeat);
  void setEvents(int64_t rank, const ncclxrtTraceEvent_t *first, size_t count,
                 int64_t errorNs) const;
  void takeEvents(int64_t ranks);
  int runRank(const HostPlan &plan, ncclxrtProgram_t program, const ExecuteOptions &options,
              const void *launched);
};

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_NCCLX_RUN_EXECUTE_H
