//===- CudaNamedTest.cpp - What went wrong elsewhere, on GPUs -----------===//
//
// Failures that users of other libraries have met: handles, memory, sizes, order. Which case is
// which is in test/CASES.md.
//
//===----------------------------------------------------------------------===//
#include "CudaRanks.h"
#include "MappedMemory.h"

#include <chrono>

using namespace cuda_ranks;

namespace {

TEST(CudaNamed, WhatIsNoHandleIsRefused) {
  void *at;
  size_t bytes;
  EXPECT_EQ(ncclxrtCudaInit(nullptr, nullptr), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtCudaWindow(nullptr, nullptr, 8, &at), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtCudaPlanPrepare(nullptr, nullptr, gather<false>, nullptr),
            ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtCudaPlanBuffer(nullptr, 0, 0, &at, &bytes), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtCudaPlanRun(nullptr, nullptr), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtCudaPlanLaunch(nullptr, nullptr, nullptr, 0, nullptr), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtCudaPlanWait(nullptr), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtCudaGraphLaunch(nullptr, nullptr), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtCudaAbort(nullptr, "x"), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtCudaQuery(nullptr), ncclxrtInvalidArgument);
  EXPECT_EQ(ncclxrtCudaPlanDestroy(nullptr), ncclxrtSuccess);
  EXPECT_EQ(ncclxrtCudaGraphDestroy(nullptr), ncclxrtSuccess);
  EXPECT_EQ(ncclxrtCudaDestroy(nullptr), ncclxrtSuccess);
}

// A size above the declared maximum, or another than the other ranks', is refused on all ranks.
TEST(CudaNamed, SizesAboveTheMaximumAreRefused) {
  for (int64_t size : {8, 65}) {
    play([&](Rank &me) {
      std::vector<ncclxrtSizeDesc_t> sizes = {
          {"n", "dimension 0 of argument 0", 0, 64, 1, me.rank == 1 ? size : 8}};
      ncclxrtResult_t result = me.prepare(gather<false>, nullptr, sizes);
      std::string said = ncclxrtCudaLastError(me.comm);
      if (size <= 64) {
        me.expect(result == ncclxrtSuccess, "a size that fits");
        me.eager(me.plan, 1);
        return me.destroy(me.plan);
      }
      me.expect(result != ncclxrtSuccess && !me.plan, "not refused");
      me.expect(me.rank != 1 || said.find("size 'n' (dimension 0 of argument 0) is 65, expected 0 "
                                          "to 64") != std::string::npos,
                "the reason");
      me.expect(said.find("rank 1") != std::string::npos || me.rank == 1, "who");
    });
  }
}

// What is no memory of the rank's GPU fails when it is registered, on all ranks.
TEST(CudaNamed, MemoryThatIsNoneIsRefused) {
  play([](Rank &me) {
    int32_t mine[words];
    void *memory[] = {me.rank == 1 ? mine : nullptr, nullptr};
    me.expect(me.prepare(gather<false>, memory) != ncclxrtSuccess && !me.plan, "not refused");
    std::string said = ncclxrtCudaLastError(me.comm);
    me.expect(said.find(me.rank == 1 ? "cuMemGetAddressRange failed"
                                     : "rank 1 could not make its window") != std::string::npos,
              "the reason");
  });
  // For one launch: nothing is enqueued, and the plan is as it was.
  play([](Rank &me) {
    ncclxrtCudaPlan_t plan = me.another();
    int32_t mine[words];
    ncclxrtCudaBuffer_t buffers[] = {{0, 1, 0}};
    void *memory[] = {mine};
    me.expect(ncclxrtCudaPlanLaunch(plan, me.stream, buffers, 1, memory) != ncclxrtSuccess,
              "not refused");
    memory[0] = static_cast<char *>(me.buffer(plan, 0)) + 8; // ends behind its allocation
    me.expect(ncclxrtCudaPlanLaunch(plan, me.stream, buffers, 1, memory) == ncclxrtInvalidArgument,
              "not refused, too long");
    me.expect(std::string(ncclxrtCudaLastError(me.comm)).find("ends 8 bytes behind") !=
                  std::string::npos,
              "the reason");
    me.eager(plan, 7);
    me.destroy(plan);
  });
}

// The caller's memory begins anywhere in its allocation; what lies around it stays.
TEST(CudaNamed, MemoryAtAnyOffset) {
  for (int64_t offset : {1, 5, 16, 256, 4112})
    play([&](Rank &me) {
      const int64_t room = piece + all + 2 * offset + 64;
      const std::vector<char> guard(size_t(room), 0x5a);
      Address made = 0;
      me.expect(driver().allocate(&made, size_t(room)) == 0, "memory");
      auto *base = reinterpret_cast<char *>(made), *in = base + offset, *out = in + piece + offset;
      me.expect(ncclxrtCudaCopy(me.comm, me.stream, base, guard.data(), size_t(room)) == 0 &&
                    ncclxrtCudaSynchronize(me.comm, me.stream) == 0,
                "guard");
      void *memory[] = {in, out};
      me.expect(me.prepare(gather<false>, memory) == ncclxrtSuccess, "prepare");
      ncclxrtCudaPlan_t plan = me.plan;
      me.eager(plan, 1);
      me.eager(plan, 2);
      std::vector<char> now(static_cast<size_t>(room));
      me.expect(ncclxrtCudaCopy(me.comm, me.stream, now.data(), base, size_t(room)) == 0 &&
                    ncclxrtCudaSynchronize(me.comm, me.stream) == 0,
                "guard");
      auto same = [&](const char *from, const char *to) {
        return !memcmp(now.data() + (from - base), guard.data(), size_t(to - from));
      };
      me.expect(same(base, in) && same(in + piece, out) && same(out + all, base + room),
                "the guard was written");
      me.destroy(plan);
      me.meet(); // nobody reaches it any more
      me.expect(driver().free(made) == 0, "the memory is the caller's");
    });
}

// Memory that the caller has made and mapped is reached by the other GPUs of the process, too.
TEST(CudaNamed, MappedMemoryIsReachedByThreads) {
  play([&](Rank &me) {
    uint64_t made = makeMapped(me.rank % 2, 8192);
    me.expect(made != 0, "memory");
    void *memory[] = {reinterpret_cast<void *>(made + 64), reinterpret_cast<void *>(made + 4096)};
    me.expect(me.prepare(gather<false>, memory) == ncclxrtSuccess, "prepare");
    ncclxrtCudaPlan_t plan = me.plan;
    me.eager(plan, 1);
    me.eager(plan, 2);
    me.destroy(plan);
    me.meet(); // nobody reaches it any more
    me.expect(driver().unmap(made, 8192) == 0 && driver().freeReserved(made, 8192) == 0,
              "the memory is the caller's");
  });
}

// Two communicators have the caller's memory; one goes, and the other goes on.
TEST(CudaNamed, TwoCommunicatorsShareMemory) {
  play([](Rank &me) {
    Address made = 0;
    me.expect(driver().allocate(&made, size_t(piece + all)) == 0, "memory");
    void *memory[] = {reinterpret_cast<void *>(made), reinterpret_cast<void *>(made + piece)};
    ncclxrtCudaComm_t first = me.comm;
    me.expect(me.prepare(gather<false>, memory) == ncclxrtSuccess, "the first");
    ncclxrtCudaPlan_t of = me.plan;
    me.eager(of, 1);
    me.comm = me.join();
    me.expect(me.prepare(gather<false>, memory) == ncclxrtSuccess, "the second");
    ncclxrtCudaPlan_t second = me.plan;
    me.eager(second, 2);
    std::swap(me.comm, first);
    me.eager(of, 3);
    me.destroy(of);
    // The second goes on with a stream of its own.
    me.expect(ncclxrtCudaDestroy(me.comm) == ncclxrtSuccess, "the first leaves");
    me.comm = first;
    me.expect(ncclxrtCudaStream(me.comm, &me.stream) == ncclxrtSuccess, "stream");
    me.meet();
    me.eager(second, 4);
    me.destroy(second);
    me.expect(driver().free(made) == 0, "the memory is still the caller's");
  });
}

// A communicator with plans or graphs left does not go: they would refer to nothing.
TEST(CudaNamed, ACommunicatorOutlivesItsPlans) {
  play([](Rank &me) {
    ncclxrtCudaPlan_t a = me.another(), b = me.another(true);
    ncclxrtCudaGraph_t graph = me.captureRuns(a);
    me.expect(ncclxrtCudaDestroy(me.comm) == ncclxrtInvalidUsage, "left with plans");
    me.expect(std::string(ncclxrtCudaLastError(me.comm)) ==
                  "rank " + std::to_string(me.rank) +
                      " has 3 plans and graphs to destroy before its communicator",
              "the reason");
    me.replay(graph, a, 1);
    me.destroy(me.rank == 1 ? a : b); // in any order
    me.destroy(me.rank == 1 ? b : a);
    me.expect(ncclxrtCudaDestroy(me.comm) == ncclxrtInvalidUsage, "left with a graph");
    (void)ncclxrtCudaGraphDestroy(graph);
  });
}

// A hundred times made and destroyed, in different orders, with a run in between.
TEST(CudaNamed, PlansComeAndGo) {
  play([](Rank &me) {
    for (int32_t i = 0; i < 100; ++i) {
      ncclxrtCudaPlan_t a = me.another(), b = me.another();
      me.eager(i % 2 ? a : b, i);
      me.destroy((i + me.rank) % 2 ? a : b);
      me.destroy((i + me.rank) % 2 ? b : a);
    }
  });
}

// Destroyed after an abort in the middle of a run, which a rank does not take part in.
TEST(CudaNamed, DestroyedInFlight) {
  for (int round = 0; round < 10; ++round)
    play([&](Rank &me) {
      ncclxrtCudaPlan_t plan = me.another();
      me.eager(plan, 1);
      if (me.rank != round % ranks)
        me.expect(ncclxrtCudaPlanRun(plan, me.stream) == ncclxrtSuccess, "run");
      (void)ncclxrtCudaAbort(me.comm, "enough");
      me.expect(ncclxrtCudaSynchronize(me.comm, me.stream) == ncclxrtAborted, "end");
      me.expect(ncclxrtCudaPlanWait(plan) == ncclxrtSuccess, "its lanes");
      me.destroy(plan);
    });
}

// What has been registered is known to the driver until its communicator goes, and not after it.
TEST(CudaNamed, WindowsComeAndGo) {
  for (int round = 0; round < 20; ++round) {
    std::vector<Address> registered[ranks];
    auto isKnown = [](Address at) {
      Address base;
      size_t size;
      return driver().addressRange(&base, &size, at) == 0;
    };
    play([&](Rank &me) {
      for (size_t bytes = 0; bytes < 50; ++bytes) {
        void *peers[ranks];
        me.expect(ncclxrtCudaWindow(me.comm, nullptr, bytes, peers) == ncclxrtSuccess, "window");
        for (void *at : peers)
          me.expect(isKnown(reinterpret_cast<Address>(at)), "not registered");
        registered[me.rank].push_back(reinterpret_cast<Address>(peers[me.rank]));
      }
    });
    for (const std::vector<Address> &own : registered)
      for (Address at : own)
        ASSERT_FALSE(isKnown(at)) << "round " << round;
  }
}

// The caller's memory is registered ten thousand times, and so is memory that comes and goes: what
// is known afterwards is what is still there.
TEST(CudaNamed, RegisteredTenThousandTimes) {
  play([](Rank &me) {
    Address kept = 0;
    me.expect(driver().allocate(&kept, 4096) == 0, "memory");
    for (int i = 0; i < 10'000; ++i) {
      Address own = kept + Address(i % 64) * 16;
      void *peers[ranks];
      if (i % 10 == 0)
        me.expect(driver().allocate(&own, 512) == 0, "memory");
      me.expect(ncclxrtCudaWindow(me.comm, reinterpret_cast<void *>(own), 512, peers) ==
                    ncclxrtSuccess,
                "window " + std::to_string(i));
      me.expect(reinterpret_cast<Address>(peers[me.rank]) == own, "registered elsewhere");
      if (i % 10 == 0) {
        me.meet(); // nobody reaches it any more
        me.expect(driver().free(own) == 0, "it is the caller's");
      }
    }
    me.another(); // and the communicator still works
    me.eager(me.plan, 1);
    me.destroy(me.plan);
    me.expect(driver().free(kept) == 0, "it is the caller's");
  });
}

// Its peer does not come: the sentence names the rank that waited, and the deadline is kept.
TEST(CudaNamed, APeerThatNeverComesReleasesTheStream) {
  auto start = std::chrono::steady_clock::now();
  play(
      [](Rank &me) {
        ncclxrtCudaPlan_t plan = me.another();
        if (me.rank == 0) {
          me.expect(ncclxrtCudaPlanRun(plan, me.stream) == ncclxrtSuccess, "run");
          me.expect(ncclxrtCudaSynchronize(me.comm, me.stream) == ncclxrtTimeout, "no timeout");
          me.expect(std::string(ncclxrtCudaLastError(me.comm)) ==
                        "the stream of rank 0 was not done within 200 ms",
                    "the reason");
          (void)ncclxrtCudaPlanWait(plan);
        }
        me.destroy(plan);
      },
      200);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

} // namespace