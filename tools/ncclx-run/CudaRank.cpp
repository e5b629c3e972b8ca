//===- CudaRank.cpp - A compiled program run by ranks, each with a GPU --------------------===//
#include "CudaProgram.h"

#include "Nccl.h"
#include "Peers.h"
#include "ncclx/Reference/Data.h"
#include "ncclxrt/cuda.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

using namespace mlir;
using namespace mlir::ncclx;

namespace {
/// What all ranks have in common.
struct World {
  const HostPlan &plan;
  ncclxrtProgram_t entry;
  const CudaProgram &program;
  const CudaPaths &cuda;
  const ExecuteOptions &options;
  int32_t gpus;
  bool oneStream;
  int contenders; ///< ours, and NCCL's modes; then, with a graph, the same once more, replayed
};
struct Seat {
  Peers &peers;
  int32_t rank;
};

int32_t allgather(void *context, const void *mine, size_t bytes, void *all) {
  auto *seat = static_cast<Seat *>(context);
  return seat->peers.gather(seat->rank, mine, bytes, all) ? 0 : 1;
}
const char *failureOf(void *context) { return static_cast<Seat *>(context)->peers.failure(); }

const char *orNull(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

/// The one kernel as ncclxrt/cuda.h takes it.
struct KernelDescription {
  std::vector<uint64_t> windows, slots;
  std::vector<const char *> sizes;
  ncclxrtCudaKernelPlanDesc_t description = NCCLXRT_CUDA_KERNEL_PLAN_DESC_INIT;

  explicit KernelDescription(const World &world) {
    const CudaKernel &kernel = *world.program.whole;
    for (const CudaKernel::Window &window : kernel.windows)
      windows.push_back(uint64_t(window.bytes * window.generations));
    slots.assign(kernel.slotWords.begin(), kernel.slotWords.end());
    description.name = kernel.name.c_str();
    description.source = kernel.source.c_str();
    description.entry = kernel.entry.c_str();
    description.blocks = int32_t(kernel.blocks);
    description.threads = int32_t(kernel.threads);
    description.timeline_ops = int32_t(kernel.order.size());
    description.windows = windows.data();
    description.num_windows = windows.size();
    description.slots = slots.data();
    description.num_slots = slots.size();
    for (const std::string &size : kernel.sizes)
      sizes.push_back(size.c_str());
    description.sizes = sizes.data();
    description.num_sizes = sizes.size();
    description.cache = orNull(world.cuda.cache);
    description.nvrtc = orNull(world.cuda.nvrtc);
    description.headers = orNull(world.cuda.headers);
    if (void *describe = world.program.describe)
      description = reinterpret_cast<ncclxrtCudaKernelPlanDesc_t (*)()>(describe)();
  }
};

ncclxrtCudaGemm_t describe(const CudaGemm &gemm) {
  auto matrix = [](const CudaGemm::Matrix &m) {
    return ncclxrtCudaMatrix_t{int32_t(m.argument),
                               int32_t(m.dtype),
                               m.transposed,
                               int32_t(m.scale),
                               m.offset,
                               m.scaleOffset,
                               m.ld,
                               m.batchStride};
  };
  return {gemm.m,
          gemm.n,
          gemm.k,
          gemm.batch,
          matrix(gemm.a),
          matrix(gemm.b),
          matrix(gemm.c),
          matrix(gemm.d),
          gemm.alpha,
          gemm.beta,
          int32_t(gemm.accumulate),
          gemm.tf32,
          int32_t(gemm.sms),
          0};
}

/// The plan's tables as ncclxrt/cuda.h takes them.
struct CudaDescription {
  PlanDescription plan;
  std::vector<int64_t> writers;
  std::vector<ncclxrtCudaKernelDesc_t> kernels;
  std::vector<ncclxrtCudaGemm_t> gemms;
  ncclxrtCudaPlanDesc_t description = NCCLXRT_CUDA_PLAN_DESC_INIT;

  ncclxrtPlanDesc_t own; ///< with a timeline
  static constexpr size_t mostEvents = size_t(1) << 16;

  explicit CudaDescription(const World &world) : plan(world.plan, 0) {
    for (const HostPlan::Slots &slots : world.plan.slots)
      writers.push_back(slots.writers);
    gemms.reserve(world.program.kernels.size());
    for (const ComputeKernel &kernel : world.program.kernels) {
      if (kernel.gemm)
        gemms.push_back(describe(*kernel.gemm));
      kernels.push_back({kernel.name.c_str(), int32_t(kernel.blocks), int32_t(kernel.threads),
                         int32_t(kernel.arguments), 0, uint64_t(kernel.scratchBytes),
                         kernel.gemm ? &gemms.back() : nullptr});
    }
    description.plan = plan.get();
    description.slot_writers = writers.data();
    description.module = orNull(world.program.ptx);
    description.kernels = kernels.data();
    description.num_kernels = kernels.size();
    description.cache = orNull(world.cuda.cache);
    description.nvrtc = orNull(world.cuda.nvrtc);
    description.headers = orNull(world.cuda.headers);
    if (void *describe = world.program.describe)
      description = reinterpret_cast<ncclxrtCudaPlanDesc_t (*)()>(describe)();
    description.cublaslt = orNull(world.cuda.cublaslt);
    description.one_stream = world.oneStream;
    own = *description.plan;
    own.trace_capacity = world.options.timeline ? mostEvents : 0;
    description.plan = &own;
  }
  CudaDescription(const CudaDescription &) = delete;
};
} // namespace

static constexpr char sawOneLeave[] = "another rank has left";

namespace {
/// One rank; `failed` says why it failed, and is "" when all went well.
class CudaRank {
public:
  CudaRank(const World &world, Peers &peers, int32_t rank, std::string &failed)
      : world(world), seat{peers, rank}, failed(failed) {}
  ~CudaRank();
  using Events = std::vector<ncclxrtTraceEvent_t>;
  /// Result `i` goes to resultAt(i), `time` takes run and nanoseconds, `timeline` events and by how
  /// much they may be wrong, `bursts` get seconds of a run, contender by contender.
  void run(ArrayRef<size_t> results, llvm::function_ref<char *(size_t)> resultAt,
           llvm::function_ref<void(int64_t, int64_t)> time,
           llvm::function_ref<void(const Events &, int64_t)> timeline,
           MutableArrayRef<double> bursts);

private:
  const World &world;
  Seat seat;
  std::string &failed;
  ncclxrtCudaComm_t comm = nullptr;
  ncclxrtCudaPlan_t prepared = nullptr;
  std::vector<ncclxrtCudaGraph_t> graphs; ///< ours, then NCCL's by mode
  void *stream = nullptr;
  std::vector<void *> buffers; ///< by window
  Nccl nccl;

  bool good(ncclxrtResult_t result) {
    if (result != ncclxrtSuccess && failed.empty())
      failed = ncclxrtCudaLastError(comm);
    return result == ncclxrtSuccess;
  }
  bool meet() {
    if (!seat.peers.meet(seat.rank)) {
      const char *why = seat.peers.failure();
      failed = why ? why : sawOneLeave;
    }
    return failed.empty();
  }
  bool prepare();
  /// What each window holds before a run: inputs number `set`, and what must be overwritten.
  std::vector<std::vector<char>> contents(uint64_t set);
  bool fill(const std::vector<std::vector<char>> &content);
  bool take(ArrayRef<size_t> results, llvm::function_ref<char *(size_t)> to);
  bool runs(int64_t times);
  bool capture(int64_t times, llvm::function_ref<bool()> once);
  bool replay(ArrayRef<size_t> results);
  bool launch(int contender, int64_t times);
  /// Of the last run, in the plan's ops and lanes.
  bool timelineOf(bool captured, Events &events, int64_t &errorNs);
};
} // namespace

CudaRank::~CudaRank() {
  if (!failed.empty())
    seat.peers.leave(seat.rank, failed); // or the others wait for this rank until their deadlines
  // Memory is given back when nobody's streams wait any more.
  if (prepared)
    good(ncclxrtCudaPlanWait(prepared));
  if (stream)
    good(ncclxrtCudaSynchronize(comm, stream));
  seat.peers.waitsWith(seat.rank, nullptr);
  seat.peers.part(seat.rank);
  for (ncclxrtCudaGraph_t graph : graphs)
    ncclxrtCudaGraphDestroy(graph);
  ncclxrtCudaPlanDestroy(prepared);
  nccl.leave();
  ncclxrtCudaDestroy(comm);
}

bool CudaRank::prepare() {
  ncclxrtCudaConfig_t config = NCCLXRT_CUDA_CONFIG_INIT;
  config.rank = seat.rank;
  config.nranks = int32_t(world.plan.ranks);
  config.device = seat.rank % world.gpus;
  config.timeout_ms = world.options.timeoutMs;
  config.allgather = allgather;
  config.failure = failureOf;
  config.context = &seat;
  config.driver = world.cuda.driver.empty() ? nullptr : world.cuda.driver.c_str();
  if (!good(ncclxrtCudaInit(&config, &comm)))
    return false;
  seat.peers.waitsWith(seat.rank, comm);
  ncclxrtResult_t made;
  if (world.program.whole) {
    KernelDescription kernel(world);
    made = ncclxrtCudaKernelPrepare(comm, &kernel.description, &prepared);
  } else {
    CudaDescription description(world);
    // Streams of the caller's do as well as the plan's own; so every other rank brings some.
    std::vector<void *> lanes(world.oneStream ? 1 : world.plan.lanes.size());
    if (seat.rank % 2) {
      for (void *&lane : lanes)
        if (!good(ncclxrtCudaStream(comm, &lane)))
          return false;
      description.description.streams = lanes.data();
    }
    made = ncclxrtCudaPlanPrepare(comm, &description.description, world.entry, &prepared);
  }
  if (!good(made) || !good(ncclxrtCudaStream(comm, &stream)))
    return false;
  buffers.resize(world.plan.windows.size());
  size_t bytes = 0;
  for (size_t w = 0; w < buffers.size(); ++w)
    if (!good(ncclxrtCudaPlanBuffer(prepared, w, 0, &buffers[w], &bytes)))
      return false;
  return true;
}

std::vector<std::vector<char>> CudaRank::contents(uint64_t set) {
  std::vector<std::vector<char>> all(buffers.size());
  for (auto [w, window] : llvm::enumerate(world.plan.windows)) {
    if (window.role == ctran::WindowRole::Scratch)
      continue;
    all[w].assign(window.bytes, char(0xff)); // what is left out must show
    if (window.role == ctran::WindowRole::Output)
      continue;
    // What repeats is drawn once.
    Type type = window.type;
    size_t bytes = all[w].size();
    constexpr int64_t drawn = 1 << 20;
    if (world.options.repeatInputs && window.type.getNumElements() > drawn) {
      type = MemRefType::get({drawn}, window.type.getElementType());
      bytes = bytes / size_t(window.type.getNumElements()) * drawn;
    }
    fillArgument(world.options, world.options.seed + set, seat.rank, window.argument, type,
                 all[w].data());
    for (size_t done = bytes; done < all[w].size(); done += bytes)
      memcpy(all[w].data() + done, all[w].data(), std::min(bytes, all[w].size() - done));
  }
  return all;
}

/// Everybody's, when it returns.
bool CudaRank::fill(const std::vector<std::vector<char>> &content) {
  for (size_t w = 0; w < content.size(); ++w)
    if (!good(ncclxrtCudaCopy(comm, stream, buffers[w], content[w].data(), content[w].size())))
      return false;
  return good(ncclxrtCudaSynchronize(comm, stream)) && meet();
}

bool CudaRank::take(ArrayRef<size_t> results, llvm::function_ref<char *(size_t)> to) {
  // The driver waits in a copy to memory that is not pinned, and other ranks' threads for it.
  if (!good(ncclxrtCudaSynchronize(comm, stream)))
    return false;
  for (auto [result, w] : llvm::enumerate(results))
    if (!good(ncclxrtCudaCopy(comm, stream, to(result), buffers[w], world.plan.windows[w].bytes)))
      return false;
  return good(ncclxrtCudaSynchronize(comm, stream));
}

bool CudaRank::runs(int64_t times) {
  for (int64_t i = 0; i < times; ++i)
    if (!good(ncclxrtCudaPlanRun(prepared, stream)))
      return false;
  return true;
}

bool CudaRank::capture(int64_t times, llvm::function_ref<bool()> once) {
  if (!good(ncclxrtCudaCaptureBegin(comm, stream)))
    return false;
  for (int64_t i = 0; i < times; ++i)
    if (!once())
      return false;
  return good(ncclxrtCudaCaptureEnd(comm, stream, &graphs.emplace_back()));
}

/// Replays the captured runs, each time with other inputs and over outputs that must change, and
/// compares every result with that of an ordinary run of the same inputs.
bool CudaRank::replay(ArrayRef<size_t> results) {
  // Three: not a multiple of the two generations of scratch.
  uint64_t sets = std::min<uint64_t>(3, uint64_t(world.options.replays));
  std::vector<std::vector<std::vector<char>>> content(sets), expected(sets);
  auto into = [&](std::vector<std::vector<char>> &held) {
    held.resize(results.size());
    return take(results, [&](size_t result) {
      held[result].resize(world.plan.windows[results[result]].bytes);
      return held[result].data();
    });
  };
  for (uint64_t set = 0; set < sets; ++set) {
    content[set] = contents(set);
    if (!fill(content[set]) || !runs(1) || !into(expected[set]) || !meet())
      return false;
  }
  if (!capture(world.options.graphRuns, [&] { return runs(1); }))
    return false;
  std::vector<std::vector<char>> found;
  // The last one has the inputs of the reference.
  for (int64_t left = world.options.replays; left-- > 0;) {
    uint64_t set = uint64_t(left) % sets;
    if (!fill(content[set]) || !good(ncclxrtCudaGraphLaunch(graphs.front(), stream)) ||
        !into(found) || !meet())
      return false;
    if (found == expected[set])
      continue;
    failed = "replay " + std::to_string(world.options.replays - left) + " of " +
             std::to_string(world.options.replays) +
             " of the captured runs gives other bits than an ordinary run";
    return false;
  }
  return true;
}

bool CudaRank::launch(int contender, int64_t times) {
  int kinds = world.options.nccl ? 1 + world.options.nccl->modes() : 1;
  if (contender >= kinds) {
    for (int64_t i = 0; i < std::max<int64_t>(1, times / world.options.graphRuns); ++i)
      if (!good(ncclxrtCudaGraphLaunch(graphs[contender - kinds], stream)))
        return false;
    return true;
  }
  if (contender == 0)
    return runs(times);
  for (int64_t i = 0; failed.empty() && i < times; ++i)
    failed = nccl.launch(contender - 1, stream);
  return failed.empty();
}

/// Where blocks share every op, an op begins with the first of them and ends with the last; the
/// next one of a row begins no earlier.
bool CudaRank::timelineOf(bool captured, Events &events, int64_t &errorNs) {
  const ncclxrtTraceEvent_t *told = nullptr;
  size_t count = 0;
  if (!good(ncclxrtCudaPlanTrace(prepared, captured, &told, &count, &errorNs)))
    return false;
  const std::optional<CudaKernel> &kernel = world.program.whole;
  if (!kernel) {
    events.assign(told, told + count);
    return true;
  }
  for (const ncclxrtTraceEvent_t &event : llvm::ArrayRef(told, count)) {
    if (kernel->together && event.lane) {
      events.back().start_ns = std::min(events.back().start_ns, event.start_ns);
      events.back().end_ns = std::max(events.back().end_ns, event.end_ns);
    } else {
      events.push_back(event);
      events.back().op = kernel->order[event.op];
    }
  }
  // Warps and blocks do not wait for each other between ops; a row shows one op at a time.
  std::vector<int64_t> ended(world.plan.lanes.size());
  for (ncclxrtTraceEvent_t &event : events) {
    event.start_ns = std::max(event.start_ns, ended[size_t(event.lane)]);
    event.end_ns = ended[size_t(event.lane)] = std::max(event.start_ns, event.end_ns);
  }
  return true;
}

void CudaRank::run(ArrayRef<size_t> results, llvm::function_ref<char *(size_t)> resultAt,
                   llvm::function_ref<void(int64_t, int64_t)> time,
                   llvm::function_ref<void(const Events &, int64_t)> timeline,
                   MutableArrayRef<double> bursts) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  if (!prepare())
    return;
  std::vector<std::vector<char>> given = contents(0);
  for (int64_t run = 0; run <= world.options.repeat; ++run) {
    if (!fill(given))
      return;
    auto start = Clock::now();
    if (!runs(1) || !good(ncclxrtCudaSynchronize(comm, stream)))
      return;
    time(run, int64_t(since(start) * 1e9));
    // The next inputs are written when every rank has read these.
    if (!meet())
      return;
  }
  if (world.options.graphRuns && !replay(results))
    return;
  if (!take(results, resultAt))
    return;
  if (world.options.timeline) {
    Events events;
    int64_t errorNs = 0;
    if (!timelineOf(world.options.graphRuns, events, errorNs))
      return;
    timeline(events, errorNs);
  }
  if (!world.options.burst)
    return;
  if (world.options.nccl) {
    failed = nccl.join(seat.rank, int32_t(world.plan.ranks), *world.options.nccl,
                       [&](const void *mine, size_t bytes, void *all) {
                         return seat.peers.gather(seat.rank, mine, bytes, all);
                       });
    for (int mode = 0; mode < world.options.nccl->modes(); ++mode) {
      auto once = [&] {
        failed = nccl.launch(mode, stream);
        return failed.empty();
      };
      // Once outside of a graph, in which nothing may be allocated.
      if (!failed.empty() || !meet() || !once() || !good(ncclxrtCudaSynchronize(comm, stream)) ||
          (world.options.graphRuns && !capture(world.options.graphRuns, once)))
        return;
    }
  }
  // Everybody in turn in each round, so that drift of the clock strikes all alike; the first round
  // is not counted.
  for (int64_t turn = -world.contenders; turn < int64_t(bursts.size()); ++turn) {
    int contender = int((turn + world.contenders) % world.contenders);
    int64_t times = world.options.burst;
    if (contender >= world.contenders / 2 && world.options.graphRuns)
      times = std::max<int64_t>(1, times / world.options.graphRuns) * world.options.graphRuns;
    if (!meet())
      return;
    auto start = Clock::now();
    if (!launch(contender, times) || !good(ncclxrtCudaSynchronize(comm, stream)))
      return;
    if (turn >= 0)
      bursts[size_t(turn)] = since(start) / double(times);
  }
}

/// The median over rounds of contender `of`, each round's time being that of its slowest rank.
static double medianOf(ArrayRef<ArrayRef<double>> bursts, int of, int contenders) {
  std::vector<double> rounds;
  for (size_t turn = of; turn < bursts.front().size(); turn += contenders) {
    double slowest = 0;
    for (ArrayRef<double> rank : bursts)
      slowest = std::max(slowest, rank[turn]);
    rounds.push_back(slowest);
  }
  std::nth_element(rounds.begin(), rounds.begin() + rounds.size() / 2, rounds.end());
  return rounds[rounds.size() / 2];
}

/// Who only saw that another left says less than that one.
static std::string firstCause(ArrayRef<std::string> outcomes) {
  auto saw = [](StringRef outcome, size_t rank) {
    return outcome == sawOneLeave || outcome.starts_with("the exchange of") ||
           outcome.starts_with(("rank " + llvm::Twine(rank) + " ended: ").str());
  };
  for (bool own : {true, false})
    for (auto [rank, outcome] : llvm::enumerate(outcomes))
      if (!outcome.empty() && !(own && saw(outcome, rank)))
        return "rank " + std::to_string(rank) + ": " + outcome;
  return "";
}

void Execution::runThreads(int64_t ranks, RankBody body, std::vector<std::string> &outcomes) {
  ThreadPeers peers{int32_t(ranks)};
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { outcomes[rank] = body(peers, rank); });
  for (std::thread &thread : threads)
    thread.join();
}

bool Execution::runCuda(const HostPlan &plan, ncclxrtProgram_t entry, const CudaProgram &program,
                        const CudaPaths &cuda, const CudaDevices &devices,
                        const ExecuteOptions &given) {
  ExecuteOptions options = given;
  int contenders = (options.nccl ? 1 + options.nccl->modes() : 1) * (options.graphRuns ? 2 : 1);
  if (!share(plan, options, size_t(options.rounds) * contenders))
    return false;
  int64_t gpus = std::min<int64_t>(devices.count, plan.ranks);
  int64_t streams = (int64_t(plan.lanes.size()) + ncclxrtCudaOtherStreams) *
                    ((plan.ranks + gpus - 1) / gpus);
  World world{plan,      entry, program, cuda, options, int32_t(gpus), streams > ncclxrtCudaQueues,
              contenders};
  SmallVector<size_t> results = resultWindows(plan);
  std::vector<std::string> outcomes(plan.ranks);
  auto body = [&](Peers &peers, int32_t rank) {
    std::string failed;
    CudaRank(world, peers, rank, failed)
        .run(
            results, [&](size_t result) { return resultOf(rank, result); },
            [&](int64_t run, int64_t ns) { setTime(rank, run, ns); },
            [&](const CudaRank::Events &events, int64_t errorNs) {
              setEvents(rank, events.data(), events.size(), errorNs);
            },
            burstsOf(rank));
    return failed;
  };
  options.processes ? runProcesses(plan, options, body, outcomes)
                    : runThreads(plan.ranks, body, outcomes);
  if (std::string cause = firstCause(outcomes); !cause.empty())
    error = cause;
  if (!error.empty())
    return false;
  takeTimes(plan.ranks, options.repeat);
  if (options.timeline)
    takeEvents(plan.ranks);
  std::vector<ArrayRef<double>> bursts;
  for (int64_t rank = 0; rank < plan.ranks; ++rank)
    bursts.push_back(burstsOf(rank));
  for (int c = 0; options.burst && c < contenders; ++c)
    burstSeconds.push_back(medianOf(bursts, c, contenders));
  return true;
}
