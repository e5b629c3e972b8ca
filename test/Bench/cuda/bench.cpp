//===- bench.cpp - Collectives of one host: bits, then time ---------------===//
//
//   cuda_bench [--ranks=2] [--check] [--stress] [--tune] [--time] [--min-kib=1] [--max-mib=1024]
//   [--only=NAME,...]
//              [--nccl-modes=3] [--out=FILE]
//
// Ranks are threads, rank r on GPU r mod the number of GPUs. README.md says what is measured how.
//
//===----------------------------------------------------------------------===//
#include "check.h"
#include "choose.h"
#include "data.h"
#include "nccl.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace bench;

namespace {

struct Options {
  int ranks = 2;
  bool check = false, stress = false, tune = false, time = false;
  int64_t minBytes = 1024, maxBytes = int64_t(1) << 30;
  FILE *out = nullptr;
  std::string only;        ///< one collective
  int modes = Nccl::modes; ///< of NCCL: the first so many
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[v.size() / 2];
}

/// A schedule that can be launched; captured once where graphs are timed.
using Launch = std::function<void()>;

class Timer {
public:
  explicit Timer(Rank &rank) : r(rank) {}

  /// Microseconds a call, the slowest rank, calls back to back.
  double eager(const Launch &launch, int calls) {
    r.barrier();
    CUDA(cudaEventRecord(r.start, r.stream));
    for (int i = 0; i < calls; ++i)
      launch();
    CUDA(cudaEventRecord(r.stop, r.stream));
    return elapsed(calls);
  }
  cudaGraphExec_t capture(const Launch &launch, int calls) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; ++i)
      launch();
    CUDA(cudaStreamEndCapture(r.stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaGraphLaunch(exec, r.stream));
    CUDA(cudaStreamSynchronize(r.stream));
    return exec;
  }
  double replay(cudaGraphExec_t exec, int calls, int replays) {
    r.barrier();
    CUDA(cudaEventRecord(r.start, r.stream));
    for (int i = 0; i < replays; ++i)
      CUDA(cudaGraphLaunch(exec, r.stream));
    CUDA(cudaEventRecord(r.stop, r.stream));
    return elapsed(calls * replays);
  }

private:
  Rank &r;
  double elapsed(int calls) {
    CUDA(cudaStreamSynchronize(r.stream));
    float ms = 0;
    CUDA(cudaEventElapsedTime(&ms, r.start, r.stop));
    if (ncclxrtCudaQuery(r.comm) != ncclxrtSuccess) {
      std::fprintf(stderr, "error: %s\n", ncclxrtCudaLastError(r.comm));
      std::fflush(nullptr);
      _exit(1);
    }
    return r.member.team->maxOf(r.me, ms * 1e3 / calls);
  }
};

/// Several schedules in turn, so that drift of the clock strikes all alike.
struct Contender {
  std::string label;
  Launch launch;
  std::vector<double> eager, graph;
  cudaGraphExec_t exec = nullptr;
};

void compete(Rank &r, std::vector<Contender> &all, double guess, int rounds) {
  Timer timer(r);
  int calls = guess < 100 ? 20 : guess < 1000 ? 4 : 1;
  double budget = 4000; // microseconds a measurement
  int replays = std::clamp(int(budget / (guess * calls)), 2, 20);
  for (Contender &c : all) {
    for (int i = 0; i < 3; ++i)
      c.launch();
    CUDA(cudaStreamSynchronize(r.stream));
    r.barrier();
    c.exec = timer.capture(c.launch, calls);
  }
  for (int round = 0; round < rounds; ++round)
    for (Contender &c : all) {
      c.eager.push_back(timer.eager(c.launch, std::clamp(int(budget / guess), 4, 100)));
      c.graph.push_back(timer.replay(c.exec, calls, replays));
    }
  for (Contender &c : all)
    CUDA(cudaGraphExecDestroy(c.exec));
}

/// Bytes that the busiest direction of this rank's link carries.
double wireBytes(const Call &call, int ranks) {
  double share = double(ranks - 1) / ranks;
  switch (call.coll) {
  case Coll::AllReduce:
    return 2 * share * call.bytes;
  case Coll::Broadcast:
    return call.bytes; // what a receiver takes in
  case Coll::Permute:
    return call.bytes;
  default:
    return share * call.bytes;
  }
}

void print(const Options &o, Rank &r, const std::string &line) {
  if (r.me != 0)
    return;
  if (o.out) {
    std::fprintf(o.out, "%s\n", line.c_str());
    std::fflush(o.out);
  }
}

/// GB/s each way when both GPUs' copy engines copy to each other.
double ceiling(Rank &r, bool bothWays) {
  Timer timer(r);
  int64_t bytes = std::min<int64_t>(r.capacity, int64_t(512) << 20);
  int peer = (r.me + 1) % r.ranks;
  auto copy = [&] {
    if (bothWays || r.me == 0)
      CUDA(cudaMemcpyAsync(r.out[peer], r.in[r.me], size_t(bytes), cudaMemcpyDefault, r.stream));
  };
  timer.eager(copy, 2);
  std::vector<double> us;
  for (int i = 0; i < 5; ++i)
    us.push_back(timer.eager(copy, 5));
  return bytes / median(us) / 1e3;
}

/// The candidate that is fastest in a graph, each timed alone with fresh slots.
Config fastest(Rank &r, const Call &call, double wire) {
  Config best = choose(call, r.ranks);
  double least = 1e30;
  for (const Config &config : candidates(call, r.ranks)) {
    if (!r.can(call, config))
      continue;
    r.reset();
    std::vector<Contender> alone{
        {name(config.algo), [&r, call, config] { r.launch(call, config); }, {}, {}, nullptr}};
    compete(r, alone, std::max(3.0, wire * 1.2), 3);
    if (double us = median(alone[0].graph); us < least)
      least = us, best = config;
  }
  return best;
}

void timeAll(const Options &o, Rank &r, Nccl *nccl, const std::string &card) {
  double both = ceiling(r, true), one = ceiling(r, false);
  if (r.me == 0)
    std::printf("copy engine: %.1f GB/s both ways, %.1f one way\n", both, one);
  char text[512];
  std::snprintf(text, sizeof text,
                "{\"kind\":\"ceiling\",\"card\":\"%s\",\"ce_both_GBps\":%.1f,\"ce_one_GBps\":%.1f}",
                card.c_str(), both, one);
  print(o, r, text);
  {
    std::vector<Contender> empty(2);
    empty[0] = {"empty", [&] { launchNothing(r.stream, false); }, {}, {}, nullptr};
    empty[1] = {"empty, early", [&] { launchNothing(r.stream, true); }, {}, {}, nullptr};
    compete(r, empty, 3, 9);
    for (Contender &c : empty) {
      std::snprintf(text, sizeof text,
                    "{\"kind\":\"empty kernel\",\"early\":%s,\"eager_us\":%.3f,\"graph_us\":%.3f}",
                    c.label == "empty" ? "false" : "true", median(c.eager), median(c.graph));
      print(o, r, text);
      if (r.me == 0)
        std::printf("%s: eager %.2f us, graph %.2f us\n", c.label.c_str(), median(c.eager),
                    median(c.graph));
    }
  }
  if (r.me == 0)
    std::printf("%14s %5s %11s %-9s | %9s %9s | %9s %9s %9s | %5s %5s %8s\n", "collective", "type",
                "bytes", "algo", "graph", "eager", "nccl gr", "nccl ea", "mode", "gr/n", "ea/n",
                "wire+6");
  for (Coll coll : allColls)
    for (Dtype dtype : {Dtype::BF16, Dtype::F32})
      for (int64_t bytes = 1024; bytes <= o.maxBytes; bytes *= 4) {
        if (bytes < o.minBytes || (!o.only.empty() && o.only.find(name(coll)) == std::string::npos))
          continue;
        bool reduces = coll == Coll::ReduceScatter || coll == Coll::AllReduce;
        if (dtype == Dtype::F32 && (!reduces || bytes < (1 << 20) || (o.tune && !o.time)))
          continue; // moving bytes is one thing for every type
        Call call{coll, dtype};
        call.bytes = bytes;
        double wire = wireBytes(call, r.ranks) / ((coll == Coll::Broadcast ? one : both) * 1e3);
        std::vector<Contender> all;
        std::vector<Config> configs =
            o.tune && !o.time
                ? candidates(call, r.ranks)
                : std::vector<Config>{o.tune ? fastest(r, call, wire) : choose(call, r.ranks)};
        std::vector<Config> used;
        for (const Config &config : configs)
          if (r.can(call, config)) {
            used.push_back(config);
            all.push_back({name(config.algo),
                           [&r, call, config] { r.launch(call, config); },
                           {},
                           {},
                           nullptr});
          }
        if (nccl)
          for (int mode = 0; mode < o.modes; ++mode)
            all.push_back({Nccl::modeName(mode),
                           [&, mode] { nccl->launch(mode, call, r.stream); },
                           {},
                           {},
                           nullptr});
        // One program's flags are not another's: each contender of ours is timed alone with fresh
        // slots when several share them.
        if (used.size() > 1) {
          for (size_t i = 0; i < all.size(); ++i) {
            r.reset();
            std::vector<Contender> alone{all[i]};
            compete(r, alone, std::max(3.0, wire * 1.2), 3);
            all[i] = alone[0];
          }
        } else {
          r.reset();
          compete(r, all, std::max(5.0, wire * 1.3), 9);
        }
        double bestGraph = 1e30, bestEager = 1e30;
        int mode = -1;
        for (size_t i = used.size(); i < all.size(); ++i) {
          if (median(all[i].graph) < bestGraph)
            bestGraph = median(all[i].graph), mode = int(i - used.size());
          bestEager = std::min(bestEager, median(all[i].eager));
        }
        for (size_t i = 0; i < used.size(); ++i) {
          const Config &c = used[i];
          double graph = median(all[i].graph), eager = median(all[i].eager);
          if (r.me == 0)
            std::printf("%14s %5s %11ld %-9s | %9.2f %9.2f | %9.2f %9.2f %9s | %5.2f %5.2f %8.1f  "
                        "(%d x %d, %d%s)\n",
                        name(coll), dtype == Dtype::F32 ? "f32" : "bf16", bytes, name(c.algo),
                        graph, eager, bestGraph, bestEager, mode < 0 ? "-" : Nccl::modeName(mode),
                        graph / bestGraph, eager / bestEager, 1.05 * wire + 6, c.blocks, c.threads,
                        c.pieces, c.early ? ", early" : "");
          std::string line = "{\"kind\":\"cell\",\"collective\":\"" + std::string(name(coll)) +
                             "\",\"dtype\":\"" + (dtype == Dtype::F32 ? "f32" : "bf16") + "\"";
          std::snprintf(text, sizeof text,
                        ",\"bytes\":%ld,\"ranks\":%d,\"algo\":\"%s\",\"blocks\":%d,\"threads\":%d,"
                        "\"pieces\":%d,\"early\":%s,\"graph_us\":%.3f,\"eager_us\":%.3f,"
                        "\"wire_us\":%.2f",
                        bytes, r.ranks, name(c.algo), c.blocks, c.threads, c.pieces,
                        c.early ? "true" : "false", graph, eager, wire);
          line += text;
          for (size_t k = used.size(); k < all.size(); ++k) {
            std::snprintf(text, sizeof text, ",\"nccl %s graph_us\":%.3f,\"nccl %s eager_us\":%.3f",
                          all[k].label.c_str(), median(all[k].graph), all[k].label.c_str(),
                          median(all[k].eager));
            line += text;
          }
          print(o, r, line + "}");
        }
        if (r.me == 0)
          std::fflush(stdout);
      }
}

void body(const Options &o, Team &team, int me, int gpus, int &failed) {
  Rank r;
  r.init(team, me, gpus, o.maxBytes, 20000);
  cudaDeviceProp properties;
  CUDA(cudaGetDeviceProperties(&properties, r.device));
  if (o.check) {
    CheckResult result = checkAll(r, o.ranks == 2, o.stress);
    if (me == 0) {
      std::printf("check, %d ranks: %d cases, %d failed\n", o.ranks, result.cases, result.failed);
      failed = result.failed + (result.cases == 0);
      std::fflush(stdout);
    }
    r.reset();
  }
  if (o.time || o.tune) {
    Nccl nccl;
    int version = 0;
    bool have = nccl.init(r, o.maxBytes, version);
    if (me == 0)
      std::printf("%s, NCCL %d\n", properties.name, version);
    timeAll(o, r, have ? &nccl : nullptr, properties.name);
    if (have)
      nccl.destroy();
  }
  r.destroy();
}

} // namespace

int main(int argc, char **argv) {
  // A module that is loaded late can wait for kernels that wait for the one to be loaded.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  // Streams that wait must not share a hardware queue with those they wait for.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  Options o;
  for (int i = 1; i < argc; ++i) {
    std::string a = argv[i];
    auto value = [&](const char *key) {
      return a.rfind(key, 0) == 0 ? a.c_str() + std::strlen(key) : nullptr;
    };
    if (a == "--check")
      o.check = true;
    else if (a == "--stress")
      o.check = o.stress = true;
    else if (a == "--tune")
      o.tune = true;
    else if (a == "--time")
      o.time = true;
    else if (const char *v = value("--ranks="))
      o.ranks = std::atoi(v);
    else if (const char *v = value("--max-mib="))
      o.maxBytes = int64_t(std::atoi(v)) << 20;
    else if (const char *v = value("--only="))
      o.only = v;
    else if (const char *v = value("--nccl-modes="))
      o.modes = std::clamp(std::atoi(v), 0, Nccl::modes);
    else if (const char *v = value("--min-kib="))
      o.minBytes = int64_t(std::atoi(v)) << 10;
    else if (const char *v = value("--out="))
      o.out = std::fopen(v, "w");
    else {
      std::fprintf(stderr, "error: no such option: %s\n", argv[i]);
      return 2;
    }
  }
  if (o.ranks != 2 && o.ranks != 3 && o.ranks != 8) {
    std::fprintf(stderr, "error: there are kernels for 2, 3 and 8 ranks, not for %d\n", o.ranks);
    return 2;
  }
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
    std::fprintf(stderr, "error: no GPU here\n");
    return 1;
  }
  gpus = std::min(gpus, o.ranks);
  Team team(o.ranks);
  int failed = 0;
  std::vector<std::thread> threads;
  for (int r = 0; r < o.ranks; ++r)
    threads.emplace_back([&, r] { body(o, team, r, gpus, failed); });
  for (std::thread &t : threads)
    t.join();
  if (o.out)
    std::fclose(o.out);
  return failed ? 1 : 0;
}
