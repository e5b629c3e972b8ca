//===- machine_bench.cpp - How fast the machine proves ------------------------===//
//
// Prints one JSON line per schedule: {"bench": "prove", "schedule": ..., "ranks": ..., ...}.
//
//===----------------------------------------------------------------------===//

#include "Examples.h"
#include "ncclx/Machine/Machine.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <sys/resource.h>

using namespace mlir::ctran::machine;

static const char *wanted = "";

static void bench(const examples::ExampleRef &schedule, const char *what, ProofMode mode) {
  if (!std::strstr(what, wanted))
    return;
  ProofOptions options;
  options.mode = mode;
  auto cpu = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec * 1e-6;
  };
  double cpuBegin = cpu();
  auto begin = std::chrono::steady_clock::now();
  ProofResult result = prove(*schedule, options);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  double cpuSeconds = cpu() - cpuBegin;
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf("{\"bench\": \"prove\", \"schedule\": \"%s\", \"ranks\": %lld, \"mode\": \"%s\", "
              "\"verdict\": \"%s\", \"ops\": %lld, \"seconds\": %.4f, \"cpu_seconds\": %.4f, "
              "\"peak_mb\": %ld}\n",
              what, static_cast<long long>(schedule->grid.numRanks()),
              mode == ProofMode::Representative ? "representative" : "all ranks",
              toString(result.verdict), static_cast<long long>(result.events), seconds, cpuSeconds,
              usage.ru_maxrss / 1024);
  if (!result)
    std::printf("# %s\n", result.message.c_str());
  std::fflush(stdout);
}

int main(int argc, char **argv) {
  if (argc > 1)
    wanted = argv[1]; // only schedules whose name contains it
  using namespace examples;
  constexpr ProofMode one = ProofMode::Representative, all = ProofMode::AllRanks;
  bench(ringAllReduce({8, 16, 32, 32}), "hierarchical all_reduce 8x16x32x32", one);
  bench(ringAllReduce({8, 16, 32, 32}, 4), "hierarchical all_reduce 8x16x32x32, 4 pieces", one);
  bench(recursiveDoubling(17), "recursive doubling all_gather", one);
  bench(ringAllReduce({64}), "flat ring all_reduce", all);
  bench(ringAllReduce({4, 4, 4}), "all_reduce 4x4x4", all);
  bench(directAllGather(64), "direct all_gather", one);
  bench(directAllGather(64), "direct all_gather", all);
  bench(pipelineSendRecv(1024), "pipeline send/recv", all);
  bench(ringAllReduce({131072}), "flat ring all_reduce", one);
  bench(bruckAllGather(1024, true), "Bruck all_gather, intervals", one);
  return 0;
}
