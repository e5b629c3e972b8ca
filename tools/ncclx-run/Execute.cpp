//===- Execute.cpp - Running a compiled program on processes of this machine ----------------===//
#include "Execute.h"

#include "Peers.h"

#include "ncclx/Reference/Data.h"
#include "ncclxrt/launch.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <sys/mman.h>

using namespace mlir;
using namespace mlir::ncclx;

/// The head of a rank's part of the shared memory; events, times of bursts and outputs follow.
struct Execution::Shared {
  char message[2000];
  int64_t runs;
  int64_t events, clockErrorNs;
  int64_t nanoseconds[256];
};

static constexpr int64_t kMaxRuns = 256;

SmallVector<size_t> Execution::resultWindows(const HostPlan &plan) {
  SmallVector<size_t> found = plan.outputs();
  llvm::append_range(found, plan.changedInPlace());
  return found;
}

Execution::~Execution() {
  if (memory)
    munmap(memory, totalBytes);
}

Execution::Shared *Execution::rankMemory(int64_t rank) const {
  return reinterpret_cast<Shared *>(static_cast<char *>(memory) + rank * bytesPerRank);
}

char *Execution::resultOf(int64_t rank, int64_t index) const {
  return reinterpret_cast<char *>(rankMemory(rank)) + outputOffsets[index];
}
void mlir::ncclx::fillArgument(const ExecuteOptions &options, uint64_t seed, int64_t rank,
                               int64_t argument, Type type, void *data) {
  fillInputs(seed, options.isUniform(argument) ? 0 : rank, argument, type, data, options.exact);
  int64_t most = size_t(argument) < options.most.size() ? options.most[argument] : -1;
  if (most < 0)
    return;
  // What is drawn lies from -100 to 100 (fillInputs): spread over all sizes, both ends among them.
  auto spread = [&](auto *sizes) {
    for (int64_t i = 0; i < getDenseBytes(type) / int64_t(sizeof *sizes); ++i)
      sizes[i] = (int64_t(sizes[i]) + 100) * most / 200;
  };
  if (getElementTypeOrSelf(type).isInteger(32))
    spread(static_cast<int32_t *>(data));
  else
    spread(static_cast<int64_t *>(data));
}

const void *Execution::output(int64_t rank, int64_t index) const { return resultOf(rank, index); }

void Execution::setTime(int64_t rank, int64_t run, int64_t nanoseconds) const {
  rankMemory(rank)->nanoseconds[run] = nanoseconds;
}

void Execution::takeTimes(int64_t ranks, int64_t repeat) {
  for (int64_t run = 1; run <= repeat; ++run) {
    int64_t slowest = 0;
    for (int64_t rank = 0; rank < ranks; ++rank)
      slowest = std::max(slowest, rankMemory(rank)->nanoseconds[run]);
    seconds.push_back(double(slowest) * 1e-9);
  }
}

void Execution::setEvents(int64_t rank, const ncclxrtTraceEvent_t *first, size_t count,
                          int64_t errorNs) const {
  Shared &shared = *rankMemory(rank);
  shared.events = int64_t(std::min(count, traceCapacity));
  shared.clockErrorNs = errorNs;
  memcpy(&shared + 1, first, shared.events * sizeof(ncclxrtTraceEvent_t));
}

MutableArrayRef<double> Execution::burstsOf(int64_t rank) const {
  auto *events = reinterpret_cast<ncclxrtTraceEvent_t *>(rankMemory(rank) + 1);
  return {reinterpret_cast<double *>(events + traceCapacity), burstCount};
}

void Execution::takeEvents(int64_t ranks) {
  int64_t largest = 0, second = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const Shared &shared = *rankMemory(rank);
    auto *first = reinterpret_cast<const ncclxrtTraceEvent_t *>(&shared + 1);
    events.emplace_back(first, first + shared.events);
    second = std::max(second, std::min(largest, shared.clockErrorNs));
    largest = std::max(largest, shared.clockErrorNs);
  }
  clockErrorSeconds = double(largest + second) * 1e-9;
}

int Execution::runRank(const HostPlan &plan, ncclxrtProgram_t program,
                       const ExecuteOptions &options, const void *launched) {
  const auto &rank = *static_cast<const ncclxrt::LaunchedRank *>(launched);
  Shared &shared = *rankMemory(rank.rank);
  ncclxrtComm_t comm = nullptr;
  ncclxrtPlan_t prepared = nullptr;
  auto fail = [&](ncclxrtResult_t result) {
    snprintf(shared.message, sizeof(shared.message), "%s", ncclxrtGetLastError(comm));
    ncclxrtPlanDestroy(prepared);
    ncclxrtCommDestroy(comm);
    return int(result);
  };
  ncclxrtCommConfig_t config = rank.config();
  if (ncclxrtResult_t r = ncclxrtCommInit(&config, &comm); r != ncclxrtSuccess)
    return fail(r);
  PlanDescription description(plan, traceCapacity);
  if (ncclxrtResult_t r = ncclxrtPlanPrepare(comm, description.get(), &prepared);
      r != ncclxrtSuccess)
    return fail(r);
  std::vector<void *> buffers(plan.windows.size());
  for (size_t w = 0; w < buffers.size(); ++w) {
    size_t bytes = 0;
    if (ncclxrtResult_t r = ncclxrtPlanBuffer(prepared, w, 0, &buffers[w], &bytes);
        r != ncclxrtSuccess)
      return fail(r);
  }
  for (int64_t run = 0; run <= options.repeat; ++run) {
    for (auto [w, window] : llvm::enumerate(plan.windows)) {
      if (window.role == ctran::WindowRole::Input || window.role == ctran::WindowRole::InOut) {
        fillArgument(options, options.seed, rank.rank, window.argument, window.type, buffers[w]);
      } else if (window.role == ctran::WindowRole::Output) {
        memset(buffers[w], 0xff, window.bytes); // what the program leaves out must show
      }
    }
    ncclxrtPlanTraceClear(prepared);
    auto start = std::chrono::steady_clock::now();
    if (ncclxrtResult_t r = ncclxrtPlanRun(prepared, program); r != ncclxrtSuccess)
      return fail(r);
    setTime(rank.rank, run,
            std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                                 start)
                .count());
    shared.runs = run + 1;
  }
  const ncclxrtTraceEvent_t *events = nullptr;
  size_t count = 0;
  ncclxrtPlanTrace(prepared, &events, &count);
  setEvents(rank.rank, events, count, 0);
  for (auto [result, w] : llvm::enumerate(resultWindows(plan)))
    memcpy(resultOf(rank.rank, result), buffers[w], plan.windows[w].bytes);
  if (ncclxrtResult_t r = ncclxrtPlanDestroy(prepared); r != ncclxrtSuccess) {
    prepared = nullptr;
    return fail(r);
  }
  prepared = nullptr;
  if (ncclxrtResult_t r = ncclxrtCommDestroy(comm); r != ncclxrtSuccess) {
    comm = nullptr;
    return fail(r);
  }
  return 0;
}

bool Execution::share(const HostPlan &plan, ExecuteOptions &options, size_t bursts) {
  options.repeat = std::clamp<int64_t>(options.repeat, 1, kMaxRuns - 1);
  traceCapacity = size_t(1) << 16;
  burstCount = bursts;
  size_t bytes =
      sizeof(Shared) + traceCapacity * sizeof(ncclxrtTraceEvent_t) + bursts * sizeof(double);
  outputOffsets.clear();
  for (size_t w : resultWindows(plan)) {
    bytes = llvm::alignTo(bytes, 64);
    outputOffsets.push_back(bytes);
    bytes += plan.windows[w].bytes;
  }
  bytesPerRank = llvm::alignTo(bytes, 4096);
  totalBytes = bytesPerRank * plan.ranks;
  memory = mmap(nullptr, totalBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    memory = nullptr;
    error =
        llvm::formatv("cannot share {0} bytes with the ranks: {1}", totalBytes, strerror(errno));
    return false;
  }
  return true;
}

/// A process a rank. False: `error` says why they cannot be started.
static bool start(const HostPlan &plan, const ExecuteOptions &options,
                  const std::function<int(const ncclxrt::LaunchedRank &)> &body,
                  std::vector<ncclxrt::RankExit> &exits, std::string &error) {
  ncclxrt::LaunchOptions launch;
  launch.nranks = plan.ranks;
  launch.transport = options.transport;
  launch.job = plan.name;
  launch.timeoutMs = options.timeoutMs;
  try {
    exits = ncclxrt::launch(launch, body);
  } catch (const std::exception &e) {
    error = llvm::formatv("cannot start the ranks: {0}", e.what());
    return false;
  }
  for (auto [rank, exit] : llvm::enumerate(exits))
    if (!exit.ok() && error.empty())
      error = llvm::formatv("rank {0} {1}", rank, exit.str());
  return true;
}

bool Execution::run(const HostPlan &plan, ncclxrtProgram_t program, const ExecuteOptions &given) {
  ExecuteOptions options = given;
  if (!share(plan, options))
    return false;
  std::vector<ncclxrt::RankExit> exits;
  auto body = [&](const ncclxrt::LaunchedRank &rank) {
    return runRank(plan, program, options, &rank);
  };
  if (!start(plan, options, body, exits, error))
    return false;
  // A rank that died says nothing; those that saw it do.
  for (auto [rank, exit] : llvm::enumerate(exits))
    if (!exit.ok() && rankMemory(rank)->message[0]) {
      error = llvm::formatv("rank {0}: {1}", rank, rankMemory(rank)->message);
      break;
    }
  if (!error.empty())
    return false;
  takeTimes(plan.ranks, options.repeat);
  takeEvents(plan.ranks);
  return true;
}

void Execution::runProcesses(const HostPlan &plan, const ExecuteOptions &options, RankBody body,
                             std::vector<std::string> &outcomes) {
  auto rankBody = [&](const ncclxrt::LaunchedRank &rank) {
    ncclxrtCommConfig_t config = rank.config();
    ncclxrtComm_t job = nullptr;
    std::string failed;
    auto good = [&](ncclxrtResult_t result) {
      if (result != ncclxrtSuccess && failed.empty())
        failed = ncclxrtGetLastError(nullptr);
      return result == ncclxrtSuccess;
    };
    if (good(ncclxrtCommInit(&config, &job))) {
      ProcessPeers peers(job);
      failed = body(peers, rank.rank);
    }
    good(ncclxrtCommDestroy(job));
    snprintf(rankMemory(rank.rank)->message, sizeof(Shared::message), "%s", failed.c_str());
    return failed.empty() ? 0 : 1;
  };
  std::vector<ncclxrt::RankExit> exits;
  if (start(plan, options, rankBody, exits, error))
    for (auto [rank, outcome] : llvm::enumerate(outcomes))
      outcome = rankMemory(int64_t(rank))->message;
}
