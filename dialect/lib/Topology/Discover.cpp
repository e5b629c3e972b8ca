//===- Discover.cpp - This machine as a topology --------------------------===//
#include "ncclx/Topology/IO.h"
#include "ncclx/Topology/Make.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <sched.h>
#include <thread>
#include <vector>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
/// Processors this process may run on: containers and taskset count.
unsigned usableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

/// Copied bytes/s of `threads` threads together, each over a buffer that no cache holds.
double copyRate(unsigned threads) {
  constexpr size_t bytes = size_t(32) << 20;
  auto total = std::chrono::steady_clock::duration::zero();
  constexpr unsigned rounds = 3;
  std::vector<std::vector<char>> from(threads), to(threads);
  for (unsigned t = 0; t < threads; ++t) {
    from[t].assign(bytes, char(t));
    to[t].assign(bytes, 0);
  }
  double best = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<std::thread> workers;
    auto start = std::chrono::steady_clock::now();
    for (unsigned t = 0; t < threads; ++t)
      workers.emplace_back([&, t] { std::memcpy(to[t].data(), from[t].data(), bytes); });
    for (std::thread &worker : workers)
      worker.join();
    total = std::chrono::steady_clock::now() - start;
    best = std::max(best, double(bytes) * threads / std::max(seconds(total), 1e-9));
  }
  return best;
}

/// FLOP/s of one core that multiplies and adds f32 vectors from its first-level cache, as plain
/// compiled C++ does it. Not the core's peak.
double multiplyRate() {
  constexpr size_t length = 2048;
  constexpr unsigned rounds = 4000;
  std::vector<float> a(length, 1.0f), b(length, 0.5f);
  auto start = std::chrono::steady_clock::now();
  for (unsigned round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < length; ++i)
      a[i] = a[i] * 0.5f + b[i];
    asm volatile("" : : "r"(a.data()) : "memory"); // each round counts
  }
  return 2.0 * length * rounds / std::max(seconds(std::chrono::steady_clock::now() - start), 1e-9);
}

/// Three digits of a measurement are its worth, and short fractions keep later sums small.
Rational rounded(double value) {
  int64_t scale = 1;
  while (value / double(scale) >= 1000)
    scale *= 10;
  return Rational(std::max<int64_t>(1, int64_t(value / double(scale) + 0.5))) * Rational(scale);
}

unsigned numaNodes() {
  unsigned count = 0;
  while (llvm::MemoryBuffer::getFile(fmt::format("/sys/devices/system/node/node{}/cpulist", count),
                                     /*IsText=*/true))
    ++count;
  return std::max(1u, count);
}
} // namespace

ReadResult topology::discoverThisMachine(const DiscoverOptions &options) {
  ReadResult result;
  result.format = "this machine";
  ProcessHost host;
  host.name = "this-machine";
  host.cores = usableCores();
  host.ranks = options.ranks ? options.ranks : host.cores;
  auto note = [&](const char *rule, std::string message) {
    result.diagnostics.push_back({Severity::note, "hosts[0]", 0, rule, std::move(message)});
  };
  if (options.measure) {
    host.coreCopyBytesPerSec = rounded(copyRate(1));
    host.memoryBytesPerSec = rounded(copyRate(std::min(host.cores, 16u)));
    host.memoryBytesPerSec = std::max(host.memoryBytesPerSec, host.coreCopyBytesPerSec,
                                      [](const Rational &a, const Rational &b) { return a < b; });
    host.coreF32Flops = rounded(multiplyRate());
    host.coreBf16Flops = host.coreF32Flops;
    note("measured", "copy and multiply rates were measured just now, for some milliseconds, and "
                     "include whatever else ran; bf16 is counted as f32");
  } else {
    host.coreCopyBytesPerSec = 5'000'000'000;
    host.memoryBytesPerSec = 10'000'000'000;
    host.coreF32Flops = host.coreBf16Flops = 10'000'000'000;
    note("assumed-rate", "copy and multiply rates are assumed, not measured");
  }
  if (unsigned nodes = numaNodes(); nodes > 1)
    note("numa", fmt::format("{} NUMA nodes share one memory in this description", nodes));
  Topology topo = makeProcessHost(host);
  Diagnostics found = topo.validate();
  result.diagnostics.insert(result.diagnostics.end(), found.begin(), found.end());
  if (!hasErrors(result.diagnostics))
    result.topology = std::move(topo);
  return result;
}
