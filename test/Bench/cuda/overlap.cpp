//===- overlap.cpp - Compiled overlaps beside serial NCCL and beside no communication -----===//
//
// Of each case of overlap.py, in turn in each round: the compiled schedule; the same computation
// without its collectives; that, and NCCL's collectives behind it on the same stream (what a serial
// program takes); and with --async-tp PyTorch's form of it, by a process that this one starts.
// Behind the rounds the collectives alone, compiled too. JSON lines with medians, also of energy
// and SM clock by NVML where it is there, a GPU. The floor is the longest of computation,
// collectives, and the energy of both over the power limit. Ranks are threads, each with a GPU.
//
//   overlap [--seconds=S] [--rounds=N] [--warm-up=S] [--only=TEXT] [--cublaslt=FILE] [--nccl=FILE]
//   [--driver=FILE] [--trace=FILE] [--async-tp=async_tp.py]
//
// A trace has a line for each op of the last of a second's more launches of each case, ours and the
// computation's, of rank 0.
// The warm-up is before the first case: the card stays warm.
//
//===----------------------------------------------------------------------===//
#include "pair.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
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
  Schedule with, without, only;
  std::vector<Collective> collectives;
  int layers;          ///< that one run goes through
  const char *asyncTp; ///< what async_tp.py is asked for; empty: nothing
};
enum Contender { Ours, Compute, SerialNccl, AsyncTp, Only, contenders };
constexpr const char *names[] = {"ours", "compute", "serial_nccl", "async_tp", "collectives"};
constexpr Contender compared[] = {Ours, Compute, SerialNccl, AsyncTp};
#define SCHEDULE(name) {name##_describe, name##_program, name##_input, name##_inputs}
#include "cases.inc"

static std::string cublaslt, only, traceFile, asyncTpFile;
static double seconds = 0.3, warmUp = 0;
static int rounds = 7;

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
        !find(clockOf, "nvmlDeviceGetClockInfo") ||
        !find(limitOf, "nvmlDeviceGetEnforcedPowerLimit") || init())
      return;
    for (unsigned i = 0; i < ranks; ++i)
      if (void *device; !byIndex(i, &device))
        devices.push_back(device);
    for (void *device : devices)
      if (unsigned milliwatts; !limitOf(device, &milliwatts))
        capWatts += milliwatts / 1e3 / double(devices.size());
  }
  /// While nothing runs.
  void rest() {
    if (devices.empty())
      return;
    double before = millijoules();
    auto start = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    std::chrono::duration<double, std::milli> slept = std::chrono::steady_clock::now() - start;
    idleWatts = (millijoules() - before) / slept.count() / double(devices.size());
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
  double capWatts = 0, idleWatts = 0; ///< of one GPU

private:
  int (*energyOf)(void *, unsigned long long *) = nullptr;
  int (*clockOf)(void *, int, unsigned *) = nullptr;
  int (*limitOf)(void *, unsigned *) = nullptr;
  std::thread listener;
  std::atomic<bool> listening = false;
  double sum = 0, count = 0;
} nvml;

/// Of one launch among a block of them.
struct Block {
  double seconds = 0, millijoules = 0, mhz = 0;
};

//===--- PyTorch -----------------------------------------------------------------------------===//

/// The process of async_tp.py, which rank 0 asks.
static struct AsyncTpProcess {
  std::FILE *ask = nullptr, *answer = nullptr;
  void start() {
    int to[2], from[2];
    if (pipe(to) || pipe(from))
      fail("no pipe");
    pid_t child = fork();
    if (child < 0)
      fail("no process");
    if (child == 0) {
      dup2(to[0], 0), dup2(from[1], 1);
      for (int end : {to[0], to[1], from[0], from[1]})
        close(end);
      execlp("python3", "python3", asyncTpFile.c_str(), static_cast<char *>(nullptr));
      _exit(127);
    }
    close(to[0]), close(from[1]);
    ask = fdopen(to[1], "w"), answer = fdopen(from[0], "r");
  }
  /// Seconds a call.
  double time(const char *words, double seconds) {
    double us = 0;
    std::fprintf(ask, "%s %f\n", words, seconds);
    std::fflush(ask);
    if (std::fscanf(answer, "%lf", &us) != 1)
      fail("async_tp.py gave no answer");
    return us / 1e6;
  }
} asyncTp;

//===--- a rank ----------------------------------------------------------------------------===//

struct Rank : PairRank {
  void *in = nullptr, *out = nullptr;
  double cold = warmUp; ///< seconds of warming up that are left

  void open() {
    connect(me);
    if (!nccl.loaded)
      return;
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
  /// One for each contender; serial NCCL takes that of the computation.
  using Plans = std::array<ncclxrtCudaPlan_t, contenders>;
  void launch(const Case &c, Contender contender, const Plans &plans) {
    check(ncclxrtCudaPlanRun(plans[contender], stream));
    if (contender != SerialNccl)
      return;
    for (const Collective &collective : c.collectives) {
      constexpr int bf16 = 9, sum = 0;
      size_t piece = collective.count / ranks;
      nccl.check(collective.kind == Collective::AllGather
                     ? nccl.AllGather(in, out, piece, bf16, ncclComm, stream)
                     : nccl.ReduceScatter(in, out, piece, bf16, sum, ncclComm, stream));
    }
  }
  Block time(const Case &c, Contender contender, const Plans &plans, int64_t times) {
    if (contender == AsyncTp) {
      double taken = me == 0 ? asyncTp.time(c.asyncTp, seconds) : 0, both[ranks];
      allgather(&me, &taken, sizeof taken, both);
      return {both[0]};
    }
    double before = nvml.millijoules();
    if (me == 0)
      nvml.listen();
    all.arrive_and_wait();
    auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < times; ++i) {
      launch(c, contender, plans);
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
  void trace(const Case &c, Contender who, double once) {
    const Schedule &schedule = who == Ours ? c.with : c.without;
    ncclxrtCudaPlan_t plan = prepare(schedule, size_t(1) << 16);
    all.arrive_and_wait();
    for (int i = 0, count = std::max(3, int(1 / once)); i < count; ++i) {
      check(ncclxrtCudaPlanRun(plan, stream));
      if (i % 32 == 31)
        check(ncclxrtCudaSynchronize(comm, stream));
    }
    check(ncclxrtCudaPlanWait(plan));
    check(ncclxrtCudaSynchronize(comm, stream));
    const ncclxrtTraceEvent_t *events;
    size_t count;
    int64_t error;
    check(ncclxrtCudaPlanTrace(plan, 0, &events, &count, &error));
    std::FILE *file = me == 0 ? std::fopen(traceFile.c_str(), "a") : nullptr;
    const ncclxrtPlanDesc_t *plans = schedule.describe().plan;
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < count; ++i)
      first = std::min(first, events[i].start_ns);
    for (size_t i = 0; file && i < count; ++i)
      std::fprintf(file,
                   "{\"case\": \"%s\", \"of\": \"%s\", \"lane\": \"%s\", \"op\": \"%s\", "
                   "\"from_us\": %.1f, \"to_us\": %.1f, \"bytes\": %lld}\n",
                   c.title, names[who], plans->lanes[events[i].lane].name,
                   plans->ops[events[i].op].name, double(events[i].start_ns - first) / 1e3,
                   double(events[i].end_ns - first) / 1e3, (long long)events[i].bytes);
    if (file)
      std::fclose(file);
    all.arrive_and_wait();
    check(ncclxrtCudaPlanDestroy(plan));
    all.arrive_and_wait();
  }
  void run(const Case &c) {
    ncclxrtCudaPlan_t without = prepare(c.without);
    const Plans plans = {prepare(c.with), without, without, nullptr, prepare(c.only)};
    std::vector<double> taken[contenders], ratio[contenders], energy[contenders], clock[contenders];
    int64_t launches[contenders] = {};
    double once[contenders] = {};
    for (Contender who : {Ours, Compute, SerialNccl, AsyncTp, Only}) {
      if ((who == SerialNccl && !nccl.loaded) || (who == AsyncTp && (!asyncTp.ask || !*c.asyncTp)))
        continue;
      time(c, who, plans, 2);
      once[who] = time(c, who, plans, 3).seconds;
    }
    // As many of all that are compared, so that the blocks are of one kind.
    for (Contender who : {Ours, Compute, SerialNccl, Only})
      launches[who] = std::max<int64_t>(1, int64_t(seconds / once[who == Only ? Only : Compute]));
    for (double spent = 0; spent < cold; spent += once[Compute] * double(launches[Compute]))
      time(c, Compute, plans, launches[Compute]);
    cold = 0;
    auto note = [&](Contender who, const Block &now, double alone) {
      taken[who].push_back(now.seconds * 1e6);
      ratio[who].push_back(now.seconds / alone);
      energy[who].push_back(now.millijoules);
      clock[who].push_back(now.mhz);
    };
    for (int round = 0; round < rounds; ++round) {
      Block now[contenders];
      for (Contender who : compared)
        if (once[who] > 0)
          now[who] = time(c, who, plans, launches[who]);
      for (Contender who : compared)
        if (once[who] > 0)
          note(who, now[who], now[Compute].seconds);
    }
    for (int round = 0; round < std::min(rounds, 3); ++round)
      note(Only, time(c, Only, plans, launches[Only]), once[Compute]);
    for (Contender who : {Ours, Compute, Only}) {
      check(ncclxrtCudaPlanWait(plans[who]));
      all.arrive_and_wait();
    }
    for (Contender who : {Ours, Compute, Only})
      check(ncclxrtCudaPlanDestroy(plans[who]));
    all.arrive_and_wait();
    for (Contender who : {Ours, Compute})
      if (!traceFile.empty())
        trace(c, who, once[Compute]);
    if (me != 0)
      return;
    auto median = [](std::vector<double> &values) {
      std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
      return values[values.size() / 2];
    };
    double us[contenders] = {}, mJ[contenders] = {};
    std::printf("{\"case\": \"%s\"", c.title);
    for (Contender who : {Ours, Compute, SerialNccl, AsyncTp, Only}) {
      if (taken[who].empty())
        continue;
      us[who] = median(taken[who]), mJ[who] = median(energy[who]);
      std::printf(", \"%s_us\": %.1f", names[who], us[who]);
      if (who == Ours || who == SerialNccl || who == AsyncTp)
        std::printf(", \"%s_over_compute\": %.3f", names[who], median(ratio[who]));
      if (!nvml.devices.empty() && who != AsyncTp)
        std::printf(", \"%s_mJ\": %.1f, \"%s_MHz\": %.0f", names[who], mJ[who], names[who],
                    median(clock[who]));
    }
    double energyUs = 0;
    if (nvml.capWatts > 0) {
      energyUs = (mJ[Compute] + mJ[Only] - nvml.idleWatts * us[Only] / 1e3) / nvml.capWatts * 1e3;
      std::printf(", \"idle_W\": %.0f, \"cap_W\": %.0f", nvml.idleWatts, nvml.capWatts);
    }
    double floor = std::max({us[Compute], us[Only], energyUs});
    std::printf(", \"floor_us\": %.1f, \"floor_over_compute\": %.3f, \"ours_over_floor\": %.3f",
                floor, floor / us[Compute], us[Ours] / floor);
    std::printf(", \"layers\": %d, \"launches\": %lld, \"rounds\": %d}\n", c.layers,
                (long long)launches[Compute], rounds);
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
    else if (is("async-tp"))
      asyncTpFile = value;
    else if (is("driver"))
      driver = value;
    else
      fail("unknown option " + word);
  }
  if (!asyncTpFile.empty())
    asyncTp.start(); // before this process has anything of CUDA's
  nccl.load();
  nvml.load();
  std::vector<std::thread> threads;
  int passed = 0;
  for (int me = 0; me < ranks; ++me)
    threads.emplace_back([me, &passed] {
      Rank rank{{me}};
      rank.open();
      if (me == 0)
        nvml.rest();
      all.arrive_and_wait();
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
