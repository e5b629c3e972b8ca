//===- CudaProgram.cpp - A compiled program on the GPUs of this machine -----------------===//
#include "CudaProgram.h"

#include "Nccl.h"
#include "Threads.h"
#include "ncclx/CTran/Access.h"
#include "ncclx/Reference/Data.h"
#include "ncclxrt/cuda.h"

#include "llvm/ADT/ScopeExit.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

using namespace mlir;
using namespace mlir::ncclx;

bool CudaDevices::find(const std::string &driver, std::string &error) {
  // Before the driver starts: a module that is loaded late can wait for streams that wait for it,
  // and streams that wait must not share a queue of the hardware with those they wait for.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  char text[256];
  if (ncclxrtCudaDevices(driver.empty() ? nullptr : driver.c_str(), &count, &architecture, text,
                         sizeof text) != ncclxrtSuccess) {
    error = ncclxrtCudaLastError(nullptr);
    return false;
  }
  name = text;
  if (count > 0)
    return true;
  error = "this machine has no GPU";
  return false;
}

LogicalResult CudaProgram::make(Compilation &compilation, int32_t architecture) {
  if (failed(compilation.lowerForCuda()))
    return failure();
  std::vector<std::string> names(compilation.plan().kernels.begin(),
                                 compilation.plan().kernels.end());
  if (!names.empty() &&
      failed(computeToPtx(compilation.kernelModule(), names, architecture, ptx, kernels)))
    return failure();
  std::vector<JitSymbol> symbols;
#define NCCLX_SYMBOL(name)                                                                         \
  symbols.push_back({"ncclxrtCuda_" #name, reinterpret_cast<void *>(&ncclxrtCuda_##name)})
  NCCLX_SYMBOL(rank);
  NCCLX_SYMBOL(run);
  NCCLX_SYMBOL(copy);
  NCCLX_SYMBOL(reduce);
  NCCLX_SYMBOL(signal);
  NCCLX_SYMBOL(wait);
  NCCLX_SYMBOL(flush);
  NCCLX_SYMBOL(order);
  NCCLX_SYMBOL(argument);
  NCCLX_SYMBOL(launch);
#undef NCCLX_SYMBOL
  return compilation.compileProgram(symbols);
}

LogicalResult CudaProgram::makeKernel(Compilation &compilation, int64_t blocks) {
  auto program =
      compilation.scheduleModule().lookupSymbol<ctran::ProgramOp>(compilation.function());
  CudaOptions options;
  options.blocks = blocks;
  FailureOr<CudaKernel> kernel = emitCudaKernel(program, options);
  if (failed(kernel))
    return failure();
  HostPlan &plan = compilation.plan();
  plan.name = compilation.function().str();
  plan.ranks = kernel->ranks;
  for (CudaKernel::Window &window : kernel->windows) {
    auto type = cast<MemRefType>(window.op.getType());
    plan.windows.push_back({window.op.getSym().str(),
                            uint64_t(type.getNumElements() * ctran::elementBytes(window.op)),
                            int32_t(window.generations), window.op.getRole(),
                            window.op.getIndex() ? int64_t(*window.op.getIndex()) : -1, type});
  }
  whole = std::move(*kernel);
  return success();
}

namespace {
/// What the threads of all ranks share.
struct World {
  const HostPlan &plan;
  ncclxrtProgram_t entry;
  const CudaProgram &program;
  const CudaPaths &cuda;
  const ExecuteOptions &options;
  int32_t gpus;
  bool oneStream;
  int contenders; ///< ours, and NCCL's modes
  Hall hall;
  std::mutex lock;
  std::vector<ncclxrtCudaComm_t> comms; ///< by rank; null: not yet, or no more

  void joinComm(int32_t rank, ncclxrtCudaComm_t comm) {
    std::lock_guard<std::mutex> hold(lock);
    comms[rank] = comm;
  }
  void leaveComm(int32_t rank) { joinComm(rank, nullptr); }
  void abortAll(const char *reason) {
    std::lock_guard<std::mutex> hold(lock);
    for (ncclxrtCudaComm_t comm : comms)
      if (comm)
        ncclxrtCudaAbort(comm, reason);
  }
};
struct Seat {
  World &world;
  int32_t rank;
};

int32_t allgather(void *context, const void *mine, size_t bytes, void *all) {
  auto *seat = static_cast<Seat *>(context);
  return seat->world.hall.gather(seat->rank, mine, bytes, all) ? 0 : 1;
}

const char *orNull(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

/// The one kernel as ncclxrt/cuda.h takes it.
struct KernelDescription {
  std::vector<uint64_t> windows, slots;
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
    description.windows = windows.data();
    description.num_windows = windows.size();
    description.slots = slots.data();
    description.num_slots = slots.size();
    description.cache = orNull(world.cuda.cache);
    description.nvrtc = orNull(world.cuda.nvrtc);
    description.headers = orNull(world.cuda.headers);
  }
};

/// The plan's tables as ncclxrt/cuda.h takes them.
struct CudaDescription {
  PlanDescription plan;
  std::vector<int64_t> writers;
  std::vector<ncclxrtCudaKernelDesc_t> kernels;
  ncclxrtCudaPlanDesc_t description = NCCLXRT_CUDA_PLAN_DESC_INIT;

  explicit CudaDescription(const World &world) : plan(world.plan, 0) {
    for (const HostPlan::Slots &slots : world.plan.slots)
      writers.push_back(slots.writers);
    for (const ComputeKernel &kernel : world.program.kernels)
      kernels.push_back({kernel.name.c_str(), int32_t(kernel.blocks), int32_t(kernel.threads),
                         int32_t(kernel.arguments), 0, uint64_t(kernel.scratchBytes)});
    description.plan = plan.get();
    description.slot_writers = writers.data();
    description.module = orNull(world.program.ptx);
    description.kernels = kernels.data();
    description.num_kernels = kernels.size();
    description.one_stream = world.oneStream;
    description.cache = orNull(world.cuda.cache);
    description.nvrtc = orNull(world.cuda.nvrtc);
    description.headers = orNull(world.cuda.headers);
  }
};
} // namespace

static constexpr char sawOneLeave[] = "another rank has left";

/// Runs a rank; `failed` says why it failed, and is "" when all went well. Result `i` goes to
/// resultAt(i), `time` takes run and nanoseconds, `bursts` get seconds of a run, contender by
/// contender.
static void runCudaRank(Seat &seat, ArrayRef<size_t> results,
                        llvm::function_ref<char *(size_t)> resultAt,
                        llvm::function_ref<void(int64_t, int64_t)> time,
                        std::vector<double> &bursts, std::string &failed) {
  World &world = seat.world;
  ncclxrtCudaComm_t comm = nullptr;
  ncclxrtCudaPlan_t prepared = nullptr;
  void *stream = nullptr;
  ncclxrtCudaConfig_t config = NCCLXRT_CUDA_CONFIG_INIT;
  config.rank = seat.rank;
  config.nranks = int32_t(world.plan.ranks);
  config.device = seat.rank % world.gpus;
  config.timeout_ms = world.options.timeoutMs;
  config.allgather = allgather;
  config.context = &seat;
  config.driver = world.cuda.driver.empty() ? nullptr : world.cuda.driver.c_str();
  auto good = [&](ncclxrtResult_t result) {
    if (result != ncclxrtSuccess && failed.empty())
      failed = ncclxrtCudaLastError(comm);
    return result == ncclxrtSuccess;
  };
  llvm::scope_exit leave([&] {
    if (!failed.empty()) {
      world.hall.leave();
      world.abortAll(sawOneLeave); // or the others wait for this rank until their own deadlines
    }
    // Memory is given back when nobody's streams wait any more.
    if (prepared)
      good(ncclxrtCudaPlanWait(prepared));
    if (stream)
      good(ncclxrtCudaSynchronize(comm, stream));
    world.leaveComm(seat.rank);
    world.hall.part();
    ncclxrtCudaPlanDestroy(prepared);
    ncclxrtCudaDestroy(comm);
  });
  if (!good(ncclxrtCudaInit(&config, &comm)))
    return;
  world.joinComm(seat.rank, comm);
  ncclxrtResult_t made;
  if (world.program.whole) {
    KernelDescription kernel(world);
    made = ncclxrtCudaKernelPrepare(comm, &kernel.description, &prepared);
  } else {
    CudaDescription description(world);
    made = ncclxrtCudaPlanPrepare(comm, &description.description, world.entry, &prepared);
  }
  if (!good(made) || !good(ncclxrtCudaStream(comm, &stream)))
    return;
  std::vector<void *> buffers(world.plan.windows.size());
  size_t bytes = 0;
  for (size_t w = 0; w < buffers.size(); ++w)
    if (!good(ncclxrtCudaPlanBuffer(prepared, w, 0, &buffers[w], &bytes)))
      return;
  double seconds = 0;
  auto enqueue = [&](int64_t times) {
    auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < times; ++i)
      if (!good(ncclxrtCudaPlanRun(prepared, stream)))
        return false;
    bool done = good(ncclxrtCudaSynchronize(comm, stream));
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return done;
  };
  for (int64_t run = 0; run <= world.options.repeat; ++run) {
    for (auto [w, window] : llvm::enumerate(world.plan.windows)) {
      if (window.role == ctran::WindowRole::Scratch)
        continue;
      std::vector<char> content(window.bytes, char(0xff)); // what is left out must show
      if (window.role != ctran::WindowRole::Output)
        fillInputs(world.options.seed, world.options.isUniform(window.argument) ? 0 : seat.rank,
                   window.argument, window.type, content.data(), world.options.exact);
      if (!good(ncclxrtCudaCopy(comm, stream, buffers[w], content.data(), window.bytes)) ||
          !good(ncclxrtCudaSynchronize(comm, stream)))
        return;
    }
    if (!world.hall.meet())
      return void(failed = sawOneLeave);
    if (!enqueue(1))
      return;
    time(run, int64_t(seconds * 1e9));
    // The next inputs are written when every rank has read these.
    if (!world.hall.meet())
      return void(failed = sawOneLeave);
  }
  for (auto [result, w] : llvm::enumerate(results))
    if (!good(ncclxrtCudaCopy(comm, stream, resultAt(result), buffers[w],
                              world.plan.windows[w].bytes)))
      return;
  if (!good(ncclxrtCudaSynchronize(comm, stream)) || !world.options.burst)
    return;
  Nccl nccl;
  if (world.options.nccl)
    failed = nccl.join(seat.rank, int32_t(world.plan.ranks), *world.options.nccl,
                       [&](const void *mine, size_t bytes, void *all) {
                         return world.hall.gather(seat.rank, mine, bytes, all);
                       });
  // Everybody in turn in each round, so that drift of the clock strikes all alike.
  for (size_t turn = 0; failed.empty() && turn < bursts.size(); ++turn) {
    int contender = int(turn % size_t(world.contenders));
    if (!world.hall.meet())
      return void(failed = sawOneLeave);
    auto start = std::chrono::steady_clock::now();
    if (contender == 0)
      enqueue(world.options.burst);
    else
      for (int64_t i = 0; failed.empty() && i < world.options.burst; ++i)
        failed = nccl.launch(contender - 1, stream);
    good(ncclxrtCudaSynchronize(comm, stream));
    bursts[turn] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
                   double(world.options.burst);
  }
}

/// The median over rounds of contender `of`, each round's time being that of its slowest rank.
static double medianOf(const std::vector<std::vector<double>> &bursts, int of, int contenders) {
  std::vector<double> rounds;
  for (size_t turn = of; turn < bursts.front().size(); turn += contenders) {
    double slowest = 0;
    for (const std::vector<double> &rank : bursts)
      slowest = std::max(slowest, rank[turn]);
    rounds.push_back(slowest);
  }
  std::nth_element(rounds.begin(), rounds.begin() + rounds.size() / 2, rounds.end());
  return rounds[rounds.size() / 2];
}

bool Execution::runCuda(const HostPlan &plan, ncclxrtProgram_t entry, const CudaProgram &program,
                        const CudaPaths &cuda, const CudaDevices &devices,
                        const ExecuteOptions &given) {
  ExecuteOptions options = given;
  if (!share(plan, options))
    return false;
  // Streams that wait need queues of their own.
  constexpr int64_t queues = 30;
  int64_t gpus = std::min<int64_t>(devices.count, plan.ranks);
  int64_t streams = int64_t(plan.lanes.size()) * ((plan.ranks + gpus - 1) / gpus);
  World world{plan,
              entry,
              program,
              cuda,
              options,
              int32_t(gpus),
              streams > queues,
              options.nccl ? 1 + Nccl::modes : 1,
              Hall(int32_t(plan.ranks)),
              {},
              std::vector<ncclxrtCudaComm_t>(plan.ranks)};
  SmallVector<size_t> results = resultWindows(plan);
  std::vector<std::string> outcomes(plan.ranks);
  constexpr int rounds = 9;
  std::vector<std::vector<double>> bursts(plan.ranks,
                                          std::vector<double>(rounds * world.contenders));
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < plan.ranks; ++rank)
    threads.emplace_back([&, rank] {
      Seat seat{world, rank};
      runCudaRank(
          seat, results, [&](size_t result) { return resultOf(rank, result); },
          [&](int64_t run, int64_t ns) { setTime(rank, run, ns); }, bursts[rank], outcomes[rank]);
    });
  for (std::thread &thread : threads)
    thread.join();
  // Who only saw that another left says less than that one.
  for (bool own : {true, false})
    for (auto [rank, outcome] : llvm::enumerate(outcomes))
      if (error.empty() && !outcome.empty() &&
          !(own && (outcome == sawOneLeave || StringRef(outcome).starts_with("the exchange of"))))
        error = "rank " + std::to_string(rank) + ": " + outcome;
  if (!error.empty())
    return false;
  takeTimes(plan.ranks, options.repeat);
  if (options.burst)
    burstSeconds = medianOf(bursts, 0, world.contenders);
  for (int c = 1; options.burst && c < world.contenders; ++c)
    ncclSeconds.push_back(medianOf(bursts, c, world.contenders));
  return true;
}
