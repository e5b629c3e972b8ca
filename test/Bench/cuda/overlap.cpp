//===- overlap.cpp - Compiled overlaps beside serial NCCL and beside no communication -----===//
//
// Of each case of overlap.py, in turn in each round: the compiled schedule; the same computation
// without its collectives; that, and NCCL's collectives behind it on the same stream (what a serial
// program takes). JSON lines with medians, also of energy and SM clock by NVML where it is there, a
// GPU. Ranks are threads, each with a GPU.
//
//   overlap [--seconds=S] [--rounds=N] [--warm-up=S] [--only=TEXT] [--cublaslt=FILE] [--nccl=FILE]
//   [--driver=FILE] [--trace=FILE]
//
// A trace has a line for each op of the last of three more launches of each case, of rank 0.
// The warm-up is before the first case: the card stays warm.
//
//===----------------------------------------------------------------------===//
#include "ncclxrt/cuda.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <random>
#include <string>
#include <thread>
#include <vector>

struct Collective {
  enum Kind { AllGather, ReduceScatter } kind;
  size_t count; ///< elements of bf16 of the larger buffer
};
/// What ncclx-compile prints.
struct Schedule {
  ncclxrtCudaPlanDesc_t (*describe)();
  ncclxrtProgram_t program;
  ncclxrtResult_t (*input)(ncclxrtCudaPlan_t, int, void **, size_t *);
  int inputs;
};
struct Case {
  const char *title;
  Schedule with, without;
  std::vector<Collective> collectives;
};
#define SCHEDULE(name) {name##_describe, name##_program, name##_input, name##_inputs}
#include "cases.inc"

constexpr int ranks = 2;

static std::string cublaslt, ncclPath, driver, only, traceFile;
static double seconds = 0.3, warmUp = 0;
static int rounds = 7;

static std::barrier<> all{ranks};
static const void *pieces[ranks];
static int32_t allgather(void *rank, const void *mine, size_t bytes, void *to) {
  pieces[*static_cast<int *>(rank)] = mine;
  all.arrive_and_wait();
  for (int r = 0; r < ranks; ++r)
    std::memcpy(static_cast<char *>(to) + size_t(r) * bytes, pieces[r], bytes);
  all.arrive_and_wait();
  return 0;
}

[[noreturn]] static void fail(const std::string &text) {
  std::printf("error: %s\n", text.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

//===--- NCCL ------------------------------------------------------------------------------===//

struct NcclId {
  char data[128];
};
/// Its C interface, of any version 2.
static struct Nccl {
  int (*GetUniqueId)(NcclId *);
  int (*CommInitRank)(void **, int, NcclId, int);
  int (*MemAlloc)(void **, size_t);
  int (*AllGather)(const void *, void *, size_t, int, void *, void *);
  int (*ReduceScatter)(const void *, void *, size_t, int, int, void *, void *);
  const char *(*GetErrorString)(int);
  bool loaded = false;

  void load() {
    void *library = dlopen(ncclPath.empty() ? "libnccl.so.2" : ncclPath.c_str(), RTLD_NOW);
    loaded = library;
    auto find = [&](auto &function, const char *name) {
      function =
          library
              ? reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name))
              : nullptr;
      loaded = loaded && function;
    };
    find(GetUniqueId, "ncclGetUniqueId");
    find(CommInitRank, "ncclCommInitRank");
    find(MemAlloc, "ncclMemAlloc");
    find(AllGather, "ncclAllGather");
    find(ReduceScatter, "ncclReduceScatter");
    find(GetErrorString, "ncclGetErrorString");
  }
  void check(int result) {
    if (result)
      fail(std::string("NCCL: ") + GetErrorString(result));
  }
} nccl;

//===--- NVML ------------------------------------------------------------------------------===//

/// Of all GPUs: energy since some time, and the mean SM clock while somebody listens.
static struct Nvml {
  void load() {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library)
      return;
    auto find = [&](auto &function, const char *name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    int (*init)();
    int (*byIndex)(unsigned, void **);
    if (!find(init, "nvmlInit_v2") || !find(byIndex, "nvmlDeviceGetHandleByIndex_v2") ||
        !find(energyOf, "nvmlDeviceGetTotalEnergyConsumption") ||
        !find(clockOf, "nvmlDeviceGetClockInfo") || init())
      return;
    for (unsigned i = 0; i < ranks; ++i)
      if (void *device; !byIndex(i, &device))
        devices.push_back(device);
  }
  double millijoules() const {
    double all = 0;
    for (void *device : devices) {
      unsigned long long now = 0;
      energyOf(device, &now);
      all += double(now);
    }
    return all;
  }
  void listen() {
    if (devices.empty())
      return;
    sum = count = 0;
    listening = true;
    listener = std::thread([this] {
      constexpr int smClock = 1;
      for (; listening; std::this_thread::sleep_for(std::chrono::milliseconds(20)))
        for (void *device : devices)
          if (unsigned mhz; !clockOf(device, smClock, &mhz))
            sum += mhz, ++count;
    });
  }
  double heard() {
    if (!listener.joinable())
      return 0;
    listening = false;
    listener.join();
    return count ? sum / count : 0;
  }
  std::vector<void *> devices;

private:
  int (*energyOf)(void *, unsigned long long *) = nullptr;
  int (*clockOf)(void *, int, unsigned *) = nullptr;
  std::thread listener;
  std::atomic<bool> listening = false;
  double sum = 0, count = 0;
} nvml;

/// Of one launch among a block of them.
struct Block {
  double seconds = 0, millijoules = 0, mhz = 0;
};

//===--- a rank ----------------------------------------------------------------------------===//

struct Rank {
  int me;
  ncclxrtCudaComm_t comm = nullptr;
  void *stream = nullptr;
  void *ncclComm = nullptr, *in = nullptr, *out = nullptr;
  double cold = warmUp; ///< seconds of warming up that are left

  void check(ncclxrtResult_t result) {
    if (result != ncclxrtSuccess)
      fail("rank " + std::to_string(me) + ": " + ncclxrtCudaLastError(comm));
  }
  void open() {
    ncclxrtCudaConfig_t config = NCCLXRT_CUDA_CONFIG_INIT;
    config.rank = config.device = me;
    config.nranks = ranks;
    config.allgather = allgather;
    config.context = &me;
    config.driver = driver.empty() ? nullptr : driver.c_str();
    check(ncclxrtCudaInit(&config, &comm));
    check(ncclxrtCudaStream(comm, &stream));
    if (!nccl.loaded)
      return;
    NcclId id{};
    if (me == 0)
      nccl.check(nccl.GetUniqueId(&id));
    NcclId ids[ranks];
    allgather(&me, &id, sizeof id, ids);
    nccl.check(nccl.CommInitRank(&ncclComm, ranks, ids[0], me));
    size_t most = 0;
    for (const Case &c : cases)
      for (const Collective &collective : c.collectives)
        most = std::max(most, collective.count * 2);
    nccl.check(nccl.MemAlloc(&in, most));
    nccl.check(nccl.MemAlloc(&out, most));
  }
  ncclxrtCudaPlan_t prepare(const Schedule &schedule, size_t events = 0) {
    ncclxrtCudaPlanDesc_t desc = schedule.describe();
    ncclxrtPlanDesc_t own = *desc.plan;
    own.trace_capacity = events;
    desc.plan = &own;
    desc.cublaslt = cublaslt.empty() ? nullptr : cublaslt.c_str();
    ncclxrtCudaPlan_t plan;
    check(ncclxrtCudaPlanPrepare(comm, &desc, schedule.program, &plan));
    // Random: products of zeros take less power. Of bf16, with a small exponent.
    std::mt19937 random(unsigned(me + 1));
    std::vector<uint16_t> block(size_t(1) << 22);
    for (uint16_t &x : block)
      x = uint16_t((random() & 0x807f) | ((120 + random() % 6) << 7));
    for (int i = 0; i < schedule.inputs; ++i) {
      void *data;
      size_t bytes;
      check(schedule.input(plan, i, &data, &bytes));
      for (size_t done = 0; done < bytes; done += block.size() * 2)
        check(ncclxrtCudaCopy(comm, stream, static_cast<char *>(data) + done, block.data(),
                              std::min(bytes - done, block.size() * 2)));
    }
    check(ncclxrtCudaSynchronize(comm, stream));
    return plan;
  }
  void launch(const Case &c, int contender, ncclxrtCudaPlan_t with, ncclxrtCudaPlan_t without) {
    check(ncclxrtCudaPlanRun(contender == 0 ? with : without, stream));
    for (const Collective &collective : c.collectives) {
      constexpr int bf16 = 9, sum = 0;
      size_t piece = collective.count / ranks;
      if (contender == 2)
        nccl.check(collective.kind == Collective::AllGather
                       ? nccl.AllGather(in, out, piece, bf16, ncclComm, stream)
                       : nccl.ReduceScatter(in, out, piece, bf16, sum, ncclComm, stream));
    }
  }
  Block time(const Case &c, int contender, ncclxrtCudaPlan_t with, ncclxrtCudaPlan_t without,
             int64_t times) {
    double before = nvml.millijoules();
    if (me == 0)
      nvml.listen();
    all.arrive_and_wait();
    auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < times; ++i) {
      launch(c, contender, with, without);
      if (i % 32 == 31) // queues are not endless
        check(ncclxrtCudaSynchronize(comm, stream));
    }
    check(ncclxrtCudaSynchronize(comm, stream));
    double mine =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / times;
    double both[ranks];
    allgather(&me, &mine, sizeof mine, both);
    Block block{*std::max_element(both, both + ranks)};
    if (me == 0 && !nvml.devices.empty())
      block.millijoules =
          (nvml.millijoules() - before) / double(nvml.devices.size()) / double(times);
    if (me == 0)
      block.mhz = nvml.heard();
    return block;
  }
  void trace(const Case &c) {
    ncclxrtCudaPlan_t plan = prepare(c.with, size_t(1) << 16);
    all.arrive_and_wait();
    for (int i = 0; i < 3; ++i)
      check(ncclxrtCudaPlanRun(plan, stream));
    check(ncclxrtCudaPlanWait(plan));
    check(ncclxrtCudaSynchronize(comm, stream));
    const ncclxrtTraceEvent_t *events;
    size_t count;
    int64_t error;
    check(ncclxrtCudaPlanTrace(plan, 0, &events, &count, &error));
    std::FILE *file = me == 0 ? std::fopen(traceFile.c_str(), "a") : nullptr;
    const ncclxrtPlanDesc_t *names = c.with.describe().plan;
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < count; ++i)
      first = std::min(first, events[i].start_ns);
    for (size_t i = 0; file && i < count; ++i)
      std::fprintf(file,
                   "{\"case\": \"%s\", \"lane\": \"%s\", \"op\": \"%s\", \"from_us\": %.1f, "
                   "\"to_us\": %.1f, \"bytes\": %lld}\n",
                   c.title, names->lanes[events[i].lane].name, names->ops[events[i].op].name,
                   double(events[i].start_ns - first) / 1e3, double(events[i].end_ns - first) / 1e3,
                   (long long)events[i].bytes);
    if (file)
      std::fclose(file);
    all.arrive_and_wait();
    check(ncclxrtCudaPlanDestroy(plan));
    all.arrive_and_wait();
  }
  void run(const Case &c) {
    ncclxrtCudaPlan_t with = prepare(c.with), without = prepare(c.without);
    int contenders = nccl.loaded ? 3 : 2;
    std::vector<double> taken[3], ratio[3], energy[3], clock[3];
    for (int contender = 0; contender < contenders; ++contender)
      time(c, contender, with, without, 2);
    double once = time(c, 1, with, without, 3).seconds;
    int64_t times = std::max<int64_t>(1, int64_t(seconds / once));
    for (double spent = 0; spent < cold; spent += once * double(times))
      time(c, 1, with, without, times);
    cold = 0;
    for (int round = 0; round < rounds; ++round) {
      Block now[3] = {};
      for (int contender = 0; contender < contenders; ++contender)
        now[contender] = time(c, contender, with, without, times);
      for (int contender = 0; contender < contenders; ++contender) {
        taken[contender].push_back(now[contender].seconds * 1e6);
        ratio[contender].push_back(now[contender].seconds / now[1].seconds);
        energy[contender].push_back(now[contender].millijoules);
        clock[contender].push_back(now[contender].mhz);
      }
    }
    check(ncclxrtCudaPlanWait(with));
    check(ncclxrtCudaPlanWait(without));
    all.arrive_and_wait();
    check(ncclxrtCudaPlanDestroy(with));
    check(ncclxrtCudaPlanDestroy(without));
    all.arrive_and_wait();
    if (!traceFile.empty())
      trace(c);
    if (me != 0)
      return;
    auto median = [](std::vector<double> &values) {
      std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
      return values[values.size() / 2];
    };
    std::printf(
        "{\"case\": \"%s\", \"ours_us\": %.1f, \"compute_us\": %.1f, \"ours_over_compute\": %.3f",
        c.title, median(taken[0]), median(taken[1]), median(ratio[0]));
    if (nccl.loaded)
      std::printf(", \"serial_nccl_us\": %.1f, \"serial_nccl_over_compute\": %.3f",
                  median(taken[2]), median(ratio[2]));
    const char *names[] = {"ours", "compute", "serial_nccl"};
    for (int contender = 0; contender < contenders && !nvml.devices.empty(); ++contender)
      std::printf(", \"%s_mJ\": %.1f, \"%s_MHz\": %.0f", names[contender],
                  median(energy[contender]), names[contender], median(clock[contender]));
    std::printf(", \"launches\": %lld, \"rounds\": %d}\n", (long long)times, rounds);
    std::fflush(stdout);
  }
};

int main(int argc, char **argv) {
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i], value = word.substr(std::min(word.size(), word.find('=') + 1));
    auto is = [&](const char *name) { return word.rfind(std::string("--") + name + "=", 0) == 0; };
    if (is("seconds"))
      seconds = std::atof(value.c_str());
    else if (is("rounds"))
      rounds = std::max(1, std::atoi(value.c_str()));
    else if (is("warm-up"))
      warmUp = std::atof(value.c_str());
    else if (is("only"))
      only = value;
    else if (is("cublaslt"))
      cublaslt = value;
    else if (is("nccl"))
      ncclPath = value;
    else if (is("trace"))
      traceFile = value;
    else if (is("driver"))
      driver = value;
    else
      fail("unknown option " + word);
  }
  nccl.load();
  nvml.load();
  std::vector<std::thread> threads;
  int passed = 0;
  for (int me = 0; me < ranks; ++me)
    threads.emplace_back([me, &passed] {
      Rank rank{me};
      rank.open();
      for (const Case &c : cases)
        if (std::string(c.title).find(only) != std::string::npos) {
          rank.run(c);
          passed += me == 0;
        }
      all.arrive_and_wait();
      rank.check(ncclxrtCudaDestroy(rank.comm));
    });
  for (std::thread &thread : threads)
    thread.join();
  std::printf("%d passed, 0 failed\n", passed);
}
