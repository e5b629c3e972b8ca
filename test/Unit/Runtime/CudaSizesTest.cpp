//===- CudaSizesTest.cpp - Sizes that the device alone knows -------------===//
//
// An all_to_all_v whose sizes lie in device memory, as it is compiled: each member tells how much
// it has for each other, which takes it. On a fake driver.
//
//===----------------------------------------------------------------------===//
#include "CudaRanks.h"

#include <chrono>

using namespace cuda_ranks;

namespace {

constexpr int64_t most = 8, width = 3; // rows of a block, words of a row
constexpr int64_t unit = width * 4, block = most * unit;
enum Window { given, sizes, told, result };

int32_t exchange(int64_t exec) {
  int64_t rank = ncclxrtCuda_rank(exec), run = ncclxrtCuda_run(exec);
  int32_t s = 0;
  auto others = [&](auto body) {
    for (int64_t by = 1; by < ranks; ++by)
      body((rank + by) % ranks);
  };
  auto take = [&](int64_t peer, int64_t from, int64_t at) {
    int64_t size = ncclxrtCuda_size(exec);
    s = ncclxrtCuda_copy_sized(s, exec, 3, 1, result, -1, from * block, 1, block, block, given,
                               peer, at * block, 1, block, block, -1, -1, 0, size, unit, unit);
  };
  others([&](int64_t peer) {
    s = ncclxrtCuda_copy(s, exec, 0, 0, told, peer, 4 * rank, 1, 4, 4, sizes, -1, 4 * peer, 1, 4, 4,
                         0, peer, rank);
  });
  others([&](int64_t peer) { s = ncclxrtCuda_count(s, exec, 1, 2, sizes, 4 * peer, 4, most); });
  s = ncclxrtCuda_count(s, exec, 1, 1, sizes, 4 * rank, 4, most);
  take(-1, rank, rank);
  others([&](int64_t peer) {
    s = ncclxrtCuda_wait(s, exec, 2, 1, 0, peer, 1, run + 1);
    s = ncclxrtCuda_count(s, exec, 1, 1, told, 4 * peer, 4, most);
    take(peer, peer, rank);
    s = ncclxrtCuda_signal(s, exec, 4, 1, 1, peer, rank);
  });
  others([&](int64_t peer) { s = ncclxrtCuda_wait(s, exec, 5, 0, 1, peer, 1, run + 1); });
  return s;
}

struct Exchange {
  Rank &me;
  ncclxrtCudaPlan_t plan = nullptr;

  explicit Exchange(Rank &me, ncclxrtProgram_t program = exchange) : me(me) {
    me.expect(prepare(program) == ncclxrtSuccess, "prepare");
  }
  ncclxrtResult_t prepare(ncclxrtProgram_t program) {
    ncclxrtWindowDesc_t windows[] = {{"given", ranks * block, 1, 1},
                                     {"sizes", ranks * 4, 1, 1},
                                     {"told", ranks * 4, 1, 0},
                                     {"result", ranks * block, 1, 2}};
    ncclxrtSlotsDesc_t slots[] = {{"known", ranks, 1, 1}, {"taken", ranks, 1, 1}};
    ncclxrtLaneDesc_t lanes[] = {
        {"ce0", ncclxrtLaneCe, 0}, {"sm0", ncclxrtLaneSm, 0}, {"host0", ncclxrtLaneHost, 0}};
    ncclxrtOpDesc_t ops[] = {{"tell", 0}, {"size", 0},  {"await", 0},
                             {"take", 0}, {"taken", 0}, {"end", 0}};
    ncclxrtPlanDesc_t host = NCCLXRT_PLAN_DESC_INIT;
    host.name = "exchange", host.hash = 2;
    host.windows = windows, host.num_windows = 4;
    host.slots = slots, host.num_slots = 2;
    host.lanes = lanes, host.num_lanes = 3;
    host.ops = ops, host.num_ops = 6;
    int64_t writers[] = {1, 1};
    ncclxrtCudaPlanDesc_t desc = NCCLXRT_CUDA_PLAN_DESC_INIT;
    desc.plan = &host, desc.slot_writers = writers, desc.nvrtc = FAKE_CUDA;
    return ncclxrtCudaPlanPrepare(me.comm, &desc, program, &plan);
  }
  static int32_t sizeOf(int64_t number, int64_t from, int64_t to) {
    return int32_t((number * 5 + from * 3 + to * 7) % (most + 1));
  }
  static int32_t valueOf(int64_t number, int64_t from, int64_t place) {
    return int32_t(100000 * number + 10000 * from + place + 1);
  }
  /// Inputs, and poison where results come; sizes but for one, where that is given.
  void fill(int64_t number, int32_t wrong = 0, int to = -1) {
    std::vector<int32_t> in, many, poison(size_t(ranks * block / 4), -1);
    for (int64_t i = 0; i < ranks * block / 4; ++i)
      in.push_back(valueOf(number, me.rank, i));
    for (int r = 0; r < ranks; ++r)
      many.push_back(r == to ? wrong : sizeOf(number, me.rank, r));
    (void)ncclxrtCudaCopy(me.comm, me.stream, me.buffer(plan, given), in.data(), ranks * block);
    (void)ncclxrtCudaCopy(me.comm, me.stream, me.buffer(plan, sizes), many.data(), ranks * 4);
    (void)ncclxrtCudaCopy(me.comm, me.stream, me.buffer(plan, result), poison.data(),
                          ranks * block);
    me.expect(ncclxrtCudaSynchronize(me.comm, me.stream) == ncclxrtSuccess, "fill");
    me.meet();
  }
  void look(int64_t number) {
    std::vector<int32_t> out(size_t(ranks * block / 4));
    (void)ncclxrtCudaCopy(me.comm, me.stream, out.data(), me.buffer(plan, result), ranks * block);
    me.expect(ncclxrtCudaSynchronize(me.comm, me.stream) == ncclxrtSuccess, "end");
    for (int64_t i = 0; i < ranks * block / 4; ++i) {
      int64_t from = i / (block / 4), place = i % (block / 4);
      int32_t wanted = place < sizeOf(number, from, me.rank) * width
                           ? valueOf(number, from, me.rank * (block / 4) + place)
                           : 0;
      me.expect(out[size_t(i)] == wanted,
                "run " + std::to_string(number) + " brought " + std::to_string(out[size_t(i)]) +
                    " at " + std::to_string(i) + ", not " + std::to_string(wanted));
    }
    me.meet();
  }
};

// Captured once, replayed with other sizes each time, and between ordinary runs; 0 and the most
// among them.
TEST(CudaSizes, ReplaysWithOtherSizes) {
  play([](Rank &me) {
    Exchange of(me);
    ncclxrtCudaGraph_t graph = nullptr;
    for (int64_t number = 0; number < 40; ++number) {
      of.fill(number);
      if (number == 2)
        graph = me.captureRuns(of.plan);
      bool replayed = graph && number % 4;
      me.expect((replayed ? ncclxrtCudaGraphLaunch(graph, me.stream)
                          : ncclxrtCudaPlanRun(of.plan, me.stream)) == ncclxrtSuccess,
                "run");
      of.look(number);
    }
    (void)ncclxrtCudaGraphDestroy(graph);
    me.destroy(of.plan);
  });
}

// One out of range ends the run of who sends it and of who is to get it, at once: the error names
// rank, op, size and maximum. Replayed, too.
TEST(CudaSizes, OneOutOfRangeIsAnErrorOnBothEnds) {
  for (int32_t wrong : {int32_t(most) + 1, -1, INT32_MAX, INT32_MIN})
    for (bool captured : {false, true}) {
      auto start = std::chrono::steady_clock::now();
      play([&](Rank &me) {
        Exchange of(me);
        ncclxrtCudaGraph_t graph = captured ? me.captureRuns(of.plan) : nullptr;
        of.fill(1, wrong, me.rank == 1 ? 2 : -1);
        me.expect((captured ? ncclxrtCudaGraphLaunch(graph, me.stream)
                            : ncclxrtCudaPlanRun(of.plan, me.stream)) == ncclxrtSuccess,
                  "run");
        ncclxrtResult_t ended = ncclxrtCudaSynchronize(me.comm, me.stream);
        std::string said = ncclxrtCudaLastError(me.comm);
        std::string wanted = me.rank == 1   ? "the size at byte 8 of window 'sizes'"
                             : me.rank == 2 ? "the size at byte 4 of window 'told'"
                                            : "";
        if (me.rank)
          me.expect(ended == ncclxrtInvalidArgument &&
                        said == "rank " + std::to_string(me.rank) + ", plan 'exchange', size: " +
                                    wanted + " is " + std::to_string(wrong) + ", expected 0 to 8",
                    "the reason");
        if (me.rank)
          me.expect(ncclxrtCudaPlanRun(of.plan, me.stream) == ncclxrtInvalidArgument,
                    "a call after it");
        me.meet();
        (void)ncclxrtCudaAbort(me.comm, "enough");
        (void)ncclxrtCudaPlanWait(of.plan);
        (void)ncclxrtCudaSynchronize(me.comm, me.stream);
        me.meet();
        (void)ncclxrtCudaGraphDestroy(graph);
        me.destroy(of.plan);
      });
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)); // of 20
    }
}

// What does not fit the window, or uses a size that nobody has read, is found when the program is
// rehearsed.
TEST(CudaSizes, WhatCannotWorkIsRefused) {
  struct Case {
    ncclxrtProgram_t program;
    const char *reason;
  };
  for (const Case &c : {
           Case{[](int64_t e) { return ncclxrtCuda_count(0, e, 1, 1, sizes, 0, 2, most); },
                "a size of 2 bytes"},
           Case{[](int64_t e) { return ncclxrtCuda_count(0, e, 1, 1, sizes, 0, 4, -1); },
                "at most -1"},
           Case{[](int64_t e) { return ncclxrtCuda_count(0, e, 1, 1, sizes, 10, 4, most); },
                "window 'sizes'"},
           Case{[](int64_t e) {
                  return ncclxrtCuda_copy_sized(0, e, 3, 1, result, -1, 0, 1, block, block, given,
                                                -1, 0, 1, block, block, -1, -1, 0, 0, unit, unit);
                },
                "there is no size 0, 0 have been read"},
           Case{[](int64_t e) {
                  int32_t s = ncclxrtCuda_count(0, e, 1, 1, sizes, 0, 4, most + 1);
                  return ncclxrtCuda_copy_sized(s, e, 3, 1, result, -1, 0, 1, block, block, given,
                                                -1, 0, 1, block, block, -1, -1, 0, 0, unit, unit);
                },
                "9 units of 12 and 12 bytes do not fit into 1 and 1 rows of 96 and 96 bytes"},
       })
    play([&](Rank &me) {
      Exchange of(me, exchange);
      ncclxrtCudaPlan_t none = std::exchange(of.plan, nullptr);
      me.expect(of.prepare(c.program) == ncclxrtInvalidArgument && !of.plan, "not refused");
      me.expect(std::string(ncclxrtCudaLastError(me.comm)).find(c.reason) != std::string::npos,
                "the reason");
      me.destroy(none);
    });
}

} // namespace
