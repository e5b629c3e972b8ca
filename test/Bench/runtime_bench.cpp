//===- runtime_bench.cpp - Puts and signals of the runtime ----------------===//
//
// Prints one JSON line for each measurement: put bandwidth by size and the round trip of a signal
// between pairs of 2 and of 8 ranks, and a barrier of all ranks. Not a test: nothing passes or
// fails by its time.
//
//   runtime_bench [shm|tcp]...
//
//===----------------------------------------------------------------------===//
#include "ncclxrt/launch.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

using namespace ncclxrt;

namespace {

struct Measurement {
  int64_t bytes; // 0: signals alone; -1: a barrier
  int rounds;
};
thread_local Measurement now;
thread_local int64_t numRanks;

/// Ranks 2k and 2k + 1 play ping-pong: the even one puts and signals, the odd one answers.
int32_t pingPong(int64_t exec) {
  int64_t rank = ncclxrt_rank(exec), peer = rank ^ 1, bytes = now.bytes;
  static thread_local int64_t count = 0;
  int32_t s = 0;
  for (int i = 0; i < now.rounds && s == 0; ++i) {
    ++count;
    if (rank % 2 == 0) {
      s = bytes ? ncclxrt_copy(s, exec, 0, 0, 1, peer, 0, 1, bytes, bytes, 0, -1, 0, 1, bytes,
                               bytes, 0, peer, 0)
                : ncclxrt_signal(s, exec, 0, 0, 0, peer, 0);
      s = ncclxrt_wait(s, exec, 1, 0, 0, 0, 1, count);
    } else {
      s = ncclxrt_wait(s, exec, 1, 0, 0, 0, 1, count);
      s = ncclxrt_signal(s, exec, 0, 0, 0, peer, 0);
    }
    s = ncclxrt_complete(s, exec, 2, 0);
  }
  return s;
}

/// Everybody signals everybody, and waits for all.
int32_t barrier(int64_t exec) {
  static thread_local int64_t count = 0;
  int32_t s = 0;
  for (int i = 0; i < now.rounds && s == 0; ++i) {
    ++count;
    for (int64_t peer = 0; peer < numRanks; ++peer)
      s = ncclxrt_signal(s, exec, 0, 0, 1, peer, ncclxrt_rank(exec));
    s = ncclxrt_wait(s, exec, 1, 0, 1, 0, numRanks, count);
  }
  return s;
}

int body(const LaunchedRank &launched) {
  ncclxrtCommConfig_t config = launched.config();
  ncclxrtComm_t comm;
  if (ncclxrtCommInit(&config, &comm)) {
    fprintf(stderr, "%s\n", ncclxrtGetLastError(nullptr));
    return 1;
  }
  constexpr int64_t largest = 16 << 20;
  const ncclxrtWindowDesc_t windows[] = {{"from", largest, 1, 0}, {"to", largest, 1, 0}};
  const ncclxrtSlotsDesc_t slots[] = {{"flag", 1, 1, 0}, {"all", launched.nranks, 1, 0}};
  numRanks = launched.nranks;
  const ncclxrtLaneDesc_t lanes[] = {{"nic0", ncclxrtLaneNic, 0}};
  const ncclxrtOpDesc_t ops[] = {{"put", 0}, {"wait", 0}, {"complete", 0}};
  ncclxrtPlanDesc_t desc = NCCLXRT_PLAN_DESC_INIT;
  desc.name = "bench";
  desc.windows = windows;
  desc.num_windows = 2;
  desc.slots = slots;
  desc.num_slots = 2;
  desc.lanes = lanes;
  desc.num_lanes = 1;
  desc.ops = ops;
  desc.num_ops = 3;
  ncclxrtPlan_t plan;
  int status = ncclxrtPlanPrepare(comm, &desc, &plan);
  for (Measurement m : {Measurement{-1, 1000},
                        {0, 2000},
                        {8, 2000},
                        {4096, 1000},
                        {65536, 500},
                        {1 << 20, 60},
                        {largest, 6}}) {
    std::vector<double> seconds;
    for (int repeat = 0; repeat < 6 && status == 0; ++repeat) {
      now = m;
      auto start = std::chrono::steady_clock::now();
      status = ncclxrtPlanRun(plan, m.bytes < 0 ? barrier : pingPong);
      std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (repeat > 0) // the first warms up
        seconds.push_back(took.count() / m.rounds);
    }
    if (launched.rank != 0 || status)
      continue;
    std::sort(seconds.begin(), seconds.end());
    double median = seconds[seconds.size() / 2];
    printf("{\"bench\": \"%s\", \"transport\": \"%s\", \"ranks\": %d, \"bytes\": %lld, "
           "\"us\": %.3f, \"GBps\": %.3f}\n",
           m.bytes > 0 ? "put"
           : m.bytes   ? "barrier"
                       : "signal",
           launched.transport.c_str(), launched.nranks, (long long)std::max<int64_t>(0, m.bytes),
           median * 1e6, double(std::max<int64_t>(0, m.bytes)) / median / 1e9);
    fflush(stdout);
  }
  if (status)
    fprintf(stderr, "%s\n", ncclxrtGetLastError(comm));
  ncclxrtPlanDestroy(plan);
  int left = ncclxrtCommDestroy(comm);
  return status ? status : left;
}

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> transports(argv + 1, argv + argc);
  if (transports.empty())
    transports = {"shm", "tcp"};
  for (const std::string &transport : transports)
    for (int nranks : {2, 8}) {
      LaunchOptions options;
      options.nranks = nranks;
      options.transport = transport;
      options.timeoutMs = 300'000; // pairs run at different paces
      for (const RankExit &exit : launch(options, body))
        if (!exit.ok())
          return 1;
    }
  return 0;
}
