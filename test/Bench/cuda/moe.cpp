//===- moe.cpp - Rows whose number the device alone knows, beside NCCL --------------------===//
//
// Of each case that moe.sh compiles, in turn in each round: the schedule compiled for streams,
// launched singly, and as a captured graph; the same as one kernel; what NCCL's users do, grouped
// send and recv of as many rows. For a dispatch those tell each other their numbers first, bring
// them to the host and wait for them; a combine sends back, so that the host knows them. All rows
// of a block may go to one rank, so a buffer has room for that; behind those that came ours leaves
// zeros, NCCL nothing. Each replay is compared with what must come, every byte, over sets of other
// numbers, before anything is timed.
//
//   moe [--rounds=N] [--seconds=S] [--only=TEXT] [--nccl=FILE] [--driver=FILE] [--check=N]
//   [--over=1|2] [--gpus=1]
//
// With --over rank 1 has one row more for rank 0 than there is room for: both ranks say so. 1: on
// streams, 2: as a kernel. With --gpus=1 both ranks share a GPU, and NCCL is left out.
// JSON lines, medians of microseconds a call, of the slower rank. Ranks are threads, each with a
// GPU.
//
//===----------------------------------------------------------------------===//
#include "pair.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

/// What ncclx-compile prints.
struct Schedule {
  ncclxrtResult_t (*prepare)(ncclxrtCudaComm_t, void *const *, ncclxrtCudaPlan_t *);
  ncclxrtResult_t (*input)(ncclxrtCudaPlan_t, int, void **, size_t *);
  ncclxrtResult_t (*output)(ncclxrtCudaPlan_t, int, void **, size_t *);
};
struct Case {
  const char *kind;
  int64_t tokens;    ///< of a rank
  Schedule forms[2]; ///< streams, kernel
};
#define SCHEDULE(name) {name##_prepare, name##_input, name##_output}
#include "cases.inc"

constexpr int64_t experts = 8, rowBytes = 2048 * 2;

static std::string only;
static double seconds = 0.1;
static int rounds = 9, checks = 6;
static int over = 0, gpus = ranks;

//===--- a rank ----------------------------------------------------------------------------===//

/// Rows from each to each; `set` 0 is what is timed: even, or three quarters to rank 0.
static int32_t sizeOf(const Case &c, int64_t set, bool skewed, int from, int to) {
  int64_t rows = experts * c.tokens, first = skewed ? rows - rows / 4 : rows / 2;
  if (set == 1) // nothing, and all
    first = from == 0 ? 0 : rows;
  else if (set)
    first = (set * 7919 + from * 104729) % (rows + 1);
  return int32_t(to == 0 ? first : rows - first);
}
/// A word of what a rank sends in a set.
static uint32_t wordOf(int64_t set, int from, int64_t word) {
  uint64_t x = (uint64_t(word) << 8 | uint64_t(set << 1 | from)) * 0x9e3779b97f4a7c15;
  return uint32_t(x >> 32) | 1;
}

enum Contender { single, graph, kernel, kernelGraph, grouped, contenders };

struct Rank : PairRank {
  void *in = nullptr, *out = nullptr, *numbers = nullptr;
  std::vector<int32_t> host = std::vector<int32_t>(2 * ranks);

  void open() {
    connect(me % gpus);
    if (!nccl.loaded)
      return;
    int64_t most = 0;
    for (const Case &c : cases)
      most = std::max(most, ranks * experts * c.tokens * rowBytes);
    nccl.check(nccl.MemAlloc(&in, size_t(most)));
    nccl.check(nccl.MemAlloc(&out, size_t(most)));
    nccl.check(nccl.MemAlloc(&numbers, 2 * ranks * sizeof(int32_t)));
  }
  void copy(void *to, const void *from, size_t bytes) {
    check(ncclxrtCudaCopy(comm, stream, to, from, bytes));
  }
  void synchronize() { check(ncclxrtCudaSynchronize(comm, stream)); }

  /// What a user of NCCL does, with as many rows as `host` says, or as it is told.
  void byNccl(const Case &c) {
    constexpr int int32 = 2, int8 = 0;
    int64_t block = experts * c.tokens * rowBytes;
    auto *sent = static_cast<int32_t *>(numbers), *got = sent + ranks;
    if (std::string(c.kind) == "dispatch") {
      nccl.check(nccl.GroupStart());
      for (int r = 0; r < ranks; ++r) {
        nccl.check(nccl.Send(sent + r, 1, int32, r, ncclComm, stream));
        nccl.check(nccl.Recv(got + r, 1, int32, r, ncclComm, stream));
      }
      nccl.check(nccl.GroupEnd());
      copy(host.data(), numbers, 2 * ranks * sizeof(int32_t));
      synchronize();
    }
    nccl.check(nccl.GroupStart());
    for (int r = 0; r < ranks; ++r) {
      nccl.check(nccl.Send(static_cast<char *>(in) + r * block, size_t(host[size_t(r)] * rowBytes),
                           int8, r, ncclComm, stream));
      nccl.check(nccl.Recv(static_cast<char *>(out) + r * block,
                           size_t(host[size_t(ranks + r)] * rowBytes), int8, r, ncclComm, stream));
    }
    nccl.check(nccl.GroupEnd());
  }

  struct Prepared {
    ncclxrtCudaPlan_t plan;
    ncclxrtCudaGraph_t graph;
    void *rows, *sizes, *result, *got;
  };
  Prepared prepare(const Case &c, int form) {
    Prepared p{};
    const Schedule &schedule = c.forms[form];
    check(schedule.prepare(comm, nullptr, &p.plan));
    size_t bytes;
    check(schedule.input(p.plan, 0, &p.rows, &bytes));
    check(schedule.input(p.plan, 1, &p.sizes, &bytes));
    check(schedule.output(p.plan, 0, &p.result, &bytes));
    if (std::string(c.kind) == "dispatch")
      check(schedule.output(p.plan, 1, &p.got, &bytes));
    return p;
  }
  void setSizes(const Case &c, const Prepared &p, int64_t set, bool skewed) {
    for (int r = 0; r < ranks; ++r) {
      host[size_t(r)] = sizeOf(c, set, skewed, me, r);
      host[size_t(ranks + r)] = sizeOf(c, set, skewed, r, me);
    }
    copy(p.sizes, host.data(), ranks * sizeof(int32_t));
    if (numbers)
      copy(numbers, host.data(), 2 * ranks * sizeof(int32_t));
    synchronize();
  }
  void compare(const Case &c, const Prepared &p, int64_t set, Contender contender) {
    int64_t words = experts * c.tokens * rowBytes / 4;
    std::vector<uint32_t> rows(size_t(ranks * words));
    for (int64_t i = 0; i < ranks * words; ++i)
      rows[size_t(i)] = wordOf(set, me, i);
    copy(contender == grouped ? in : p.rows, rows.data(), rows.size() * 4);
    std::fill(rows.begin(), rows.end(), 0xffffffffu);
    copy(contender == grouped ? out : p.result, rows.data(), rows.size() * 4);
    setSizes(c, p, set, false);
    all.arrive_and_wait();
    launch(c, p, contender);
    copy(rows.data(), contender == grouped ? out : p.result, rows.size() * 4);
    int32_t got[ranks] = {};
    if (p.got && contender != grouped)
      copy(got, p.got, sizeof got);
    synchronize();
    for (int from = 0; from < ranks; ++from) {
      int64_t came = sizeOf(c, set, false, from, me);
      if (p.got && contender != grouped && got[from] != came)
        fail("rank " + std::to_string(me) + " was told of " + std::to_string(got[from]) + " rows");
      for (int64_t i = 0; i < words; ++i) {
        bool sent = i < came * rowBytes / 4;
        if (!sent && contender == grouped)
          break;
        if (rows[size_t(from * words + i)] != (sent ? wordOf(set, from, me * words + i) : 0))
          fail(std::string(c.kind) + " of " + std::to_string(c.tokens) + ", set " +
               std::to_string(set) + ", rank " + std::to_string(me) + ": word " +
               std::to_string(i) + " from rank " + std::to_string(from) + " is " +
               std::to_string(rows[size_t(from * words + i)]));
      }
    }
    all.arrive_and_wait();
  }
  void launch(const Case &c, const Prepared &p, int contender) {
    if (contender == single || contender == kernel)
      check(ncclxrtCudaPlanRun(p.plan, stream));
    else if (contender != grouped)
      check(ncclxrtCudaGraphLaunch(p.graph, stream));
    else
      byNccl(c);
  }
  double time(const Case &c, const Prepared &p, int contender, int64_t times) {
    all.arrive_and_wait();
    auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < times; ++i) {
      launch(c, p, contender);
      if (i % 32 == 31) // queues are not endless
        synchronize();
    }
    synchronize();
    double mine = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
                  double(times);
    double both[ranks];
    allgather(&me, &mine, sizeof mine, both);
    return *std::max_element(both, both + ranks);
  }
  /// A size above the maximum, replayed: "" and what each rank says.
  void exceed(const Case &c) {
    Prepared p = prepare(c, over - 1);
    setSizes(c, p, 0, false);
    check(ncclxrtCudaCaptureBegin(comm, stream));
    check(ncclxrtCudaPlanRun(p.plan, stream));
    check(ncclxrtCudaCaptureEnd(comm, stream, &p.graph));
    all.arrive_and_wait();
    check(ncclxrtCudaGraphLaunch(p.graph, stream));
    synchronize();
    if (me == 1) {
      host[0] = int32_t(experts * c.tokens + 1);
      copy(p.sizes, host.data(), ranks * sizeof(int32_t));
      synchronize();
    }
    all.arrive_and_wait();
    auto start = std::chrono::steady_clock::now();
    check(ncclxrtCudaGraphLaunch(p.graph, stream));
    ncclxrtResult_t ended = ncclxrtCudaSynchronize(comm, stream);
    double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    std::string said = ncclxrtCudaLastError(comm);
    std::string wanted = " is " + std::to_string(experts * c.tokens + 1) + ", expected 0 to " +
                         std::to_string(experts * c.tokens);
    if (ended == ncclxrtSuccess || said.find(wanted) == std::string::npos)
      fail("rank " + std::to_string(me) + " did not say so: " + said);
    for (int r = 0; r < ranks; ++r) {
      if (r == me)
        std::printf("{\"kind\": \"moe over\", \"rank\": %d, \"ms\": %.1f, \"error\": \"%s\"}\n", me,
                    ms, said.c_str());
      std::fflush(stdout);
      all.arrive_and_wait();
    }
  }
  void run(const Case &c) {
    Prepared forms[] = {prepare(c, 0), prepare(c, 1)};
    int used = nccl.loaded ? contenders : contenders - 1;
    auto of = [&](int contender) -> const Prepared & {
      return forms[contender == kernel || contender == kernelGraph];
    };
    for (Contender once : {single, kernel})
      compare(c, of(once), 2, once);
    all.arrive_and_wait();
    for (Prepared &p : forms) {
      check(ncclxrtCudaCaptureBegin(comm, stream));
      check(ncclxrtCudaPlanRun(p.plan, stream));
      check(ncclxrtCudaCaptureEnd(comm, stream, &p.graph));
    }
    // One graph, other numbers each time.
    for (int64_t set = 1; set <= checks; ++set)
      for (int contender = 0; contender < used; ++contender)
        compare(c, of(contender), set, Contender(contender));
    for (bool skewed : {false, true}) {
      for (const Prepared &p : forms)
        setSizes(c, p, 0, skewed);
      std::vector<double> taken[contenders], ratio[contenders];
      double once = 0;
      for (int contender = 0; contender < used; ++contender) {
        time(c, of(contender), contender, 3);
        once = std::max(once, time(c, of(contender), contender, 5));
      }
      int64_t times = std::max<int64_t>(3, int64_t(seconds / once));
      for (int round = 0; round < rounds; ++round) {
        double now[contenders] = {};
        for (int contender = 0; contender < used; ++contender)
          now[contender] = time(c, of(contender), contender, times);
        for (int contender = 0; contender < used; ++contender) {
          taken[contender].push_back(now[contender] * 1e6);
          ratio[contender].push_back(now[contender] / now[grouped]);
        }
      }
      if (me != 0)
        continue;
      auto median = [](std::vector<double> &values) {
        std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
        return values[values.size() / 2];
      };
      std::printf("{\"kind\": \"moe %s\", \"tokens\": %lld, \"to_rank_0\": %s, \"bytes_sent\": "
                  "%lld, \"room\": %lld, \"single_us\": %.1f, \"graph_us\": %.1f, "
                  "\"kernel_us\": %.1f, \"kernel_graph_us\": %.1f",
                  c.kind, (long long)c.tokens, skewed ? "0.75" : "0.5",
                  (long long)(sizeOf(c, 0, skewed, 1, 0) * rowBytes),
                  (long long)(experts * c.tokens * rowBytes), median(taken[single]),
                  median(taken[graph]), median(taken[kernel]), median(taken[kernelGraph]));
      if (nccl.loaded)
        std::printf(", \"nccl_us\": %.1f, \"single_over_nccl\": %.3f, \"graph_over_nccl\": %.3f, "
                    "\"kernel_over_nccl\": %.3f, \"kernel_graph_over_nccl\": %.3f",
                    median(taken[grouped]), median(ratio[single]), median(ratio[graph]),
                    median(ratio[kernel]), median(ratio[kernelGraph]));
      std::printf(", \"launches\": %lld, \"rounds\": %d}\n", (long long)times, rounds);
      std::fflush(stdout);
    }
    for (const Prepared &p : forms)
      check(ncclxrtCudaPlanWait(p.plan));
    synchronize();
    all.arrive_and_wait();
    for (const Prepared &p : forms) {
      check(ncclxrtCudaGraphDestroy(p.graph));
      check(ncclxrtCudaPlanDestroy(p.plan));
    }
    all.arrive_and_wait();
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
    else if (is("check"))
      checks = std::max(1, std::atoi(value.c_str()));
    else if (is("only"))
      only = value;
    else if (is("nccl"))
      ncclPath = value;
    else if (is("driver"))
      driver = value;
    else if (is("gpus"))
      gpus = std::clamp(std::atoi(value.c_str()), 1, ranks);
    else if (is("over"))
      over = std::clamp(std::atoi(value.c_str()), 0, 2);
    else
      fail("unknown option " + word);
  }
  if (!over && gpus == ranks) // NCCL takes one rank a GPU
    nccl.load();
  std::vector<std::thread> threads;
  int passed = 0;
  for (int me = 0; me < ranks; ++me)
    threads.emplace_back([me, &passed] {
      Rank rank{{me}};
      rank.open();
      if (over) {
        rank.exceed(cases[0]);
        if (me == 0)
          std::_Exit(0);
        std::this_thread::sleep_for(std::chrono::seconds(60));
      }
      for (const Case &c : cases)
        if ((c.kind + std::to_string(c.tokens)).find(only) != std::string::npos) {
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
