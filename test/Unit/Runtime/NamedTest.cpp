//===- NamedTest.cpp - What went wrong elsewhere --------------------------===//
//
// Failures that users of other libraries have met, as tests of this one.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <random>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace harness;
using ncclxrt::LaunchedRank;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

/// Everybody signals everybody, and waits for all.
PlanSpec barrierSpec(int nranks) {
  PlanSpec spec;
  spec.slots = {{"all", nranks, 1, 0}};
  return spec;
}
int32_t barrier(int64_t exec, int nranks) {
  int32_t s = 0;
  for (int r = 0; r < nranks; ++r)
    s = ncclxrt_signal(s, exec, 0, host, 0, r, ncclxrt_rank(exec));
  return ncclxrt_wait(s, exec, 1, host, 0, 0, nranks, ncclxrt_run(exec) + 1);
}

bool within(milliseconds limit, const std::function<void()> &body) {
  auto start = steady_clock::now();
  body();
  return steady_clock::now() - start < limit;
}

void expectOk(const std::vector<Outcome> &outcomes) {
  for (const Outcome &o : outcomes)
    EXPECT_TRUE(o.exit.ok()) << o.exit.str() << ": " << o.text;
}

const char *const transports[] = {"shm", "tcp"};

// A peer that never arrives: the waiter is released by its deadline, not by the peer.
TEST(Named, APeerThatNeverArrivesReleasesTheWaiter) {
  for (const char *transport : transports) {
    Job job;
    job.transport = transport;
    job.timeoutMs = 300;
    job.graceMs = 3000;
    auto outcomes = run(job, [](const LaunchedRank &launched) {
      Rank me(launched.config());
      me.prepare(barrierSpec(2));
      if (me.rank == 1)
        return fall(Fall::Hang, launched);
      check(me.tryRun([](int64_t exec) { return barrier(exec, 2); }) == ncclxrtTimeout, "run");
      check(me.error().find("rank 1 is alive, but in no run") != std::string::npos, me.error());
    });
    EXPECT_TRUE(outcomes[0].exit.ok()) << outcomes[0].text;
    EXPECT_LT(outcomes[0].elapsedMs, 2300);
  }
}

// An error in the middle of the host's schedule ends the run here and everywhere, with its op.
TEST(Named, AHostErrorMidScheduleEndsTheJob) {
  for (const char *transport : transports) {
    Job job;
    job.transport = transport;
    job.nranks = 3;
    expectOk(run(job, [](const LaunchedRank &launched) {
      Rank me(launched.config());
      me.prepare(barrierSpec(3));
      ncclxrtResult_t result = me.tryRun([&](int64_t exec) {
        int32_t s = barrier(exec, 3);
        if (me.rank == 2)
          s = ncclxrt_wait(s, exec, 5, host, 7, 0, 1, 1); // there are no slots 7
        return ncclxrt_wait(s, exec, 6, host, 0, 0, 1, 99);
      });
      check(result == (me.rank == 2 ? ncclxrtInvalidArgument : ncclxrtAborted), "result");
      check(me.error().find("rank 2, plan 'test', run 0, step 5, op 'op5' at test.mlir:7:1: there "
                            "are no slots 7") != std::string::npos,
            me.error());
    }));
  }
}

// Ranks that are about to take different branches, or one that is elsewhere, would wait for ever.
TEST(Named, RanksThatChooseDifferentlyEndTheJob) {
  for (const char *transport : transports)
    for (bool elsewhere : {false, true}) {
      Job job;
      job.transport = transport;
      job.nranks = 3;
      expectOk(run(job, [&](const LaunchedRank &launched) {
        Rank me(launched.config());
        PlanSpec spec = barrierSpec(3);
        spec.windows = {{"choice", 8, 1, ncclxrtRoleInput}};
        me.prepare(spec);
        if (elsewhere && me.rank == 2) {
          ncclxrtPlan_t first = std::exchange(me.plan, nullptr);
          check(me.tryPrepare(spec) != ncclxrtSuccess, "prepare");
          me.plan = first;
        } else {
          int64_t branch = me.rank == 2;
          memcpy(me.buffer(0), &branch, 8);
          check(me.tryRun([&](int64_t exec) {
            int32_t s = ncclxrt_choose(0, exec, 3, host, 0, 2);
            check(s && ncclxrt_branch(exec) == -1, "a branch is chosen");
            return s;
          }) != ncclxrtSuccess,
                "run");
        }
        check(me.error().find(elsewhere ? "rank 2" : "rank 0 chooses branch 0, rank 2 branch 1") !=
                  std::string::npos,
              me.error());
      }));
    }
}

// A size that one rank reads above the maximum is the error of all, who would wait for ever.
TEST(Named, ASizeOutOfRangeEndsTheJob) {
  for (const char *transport : transports)
    for (int64_t size : {int64_t(-1), int64_t(9)}) {
      Job job;
      job.transport = transport;
      job.nranks = 3;
      expectOk(run(job, [&](const LaunchedRank &launched) {
        Rank me(launched.config());
        PlanSpec spec = barrierSpec(3);
        spec.windows = {{"sizes", 8, 1, ncclxrtRoleInput}};
        me.prepare(spec);
        int64_t own = me.rank == 1 ? size : 8;
        memcpy(me.buffer(0), &own, 8);
        int64_t read = 0;
        ncclxrtResult_t result = me.tryRun([&](int64_t exec) {
          int32_t s = ncclxrt_count(barrier(exec, 3), exec, 5, host, 0, 0, 8, 8);
          read = ncclxrt_size(exec);
          return ncclxrt_wait(s, exec, 6, host, 0, 0, 1, 99);
        });
        check(result == (me.rank == 1 ? ncclxrtInvalidArgument : ncclxrtAborted), "result");
        check(me.rank != 1 || read == 0, "a size out of range is given out");
        std::string expected =
            "the size at byte 0 of window 'sizes' is " + std::to_string(size) + ", expected 0 to 8";
        check(me.error().find(expected) != std::string::npos &&
                  me.error().find("rank 1") != std::string::npos,
              me.error());
      }));
    }
}

// After an abort every call returns at once, and the sentence stays the first one.
TEST(Named, CallsAfterAnAbortReturnFast) {
  for (const char *transport : transports) {
    Job job;
    job.transport = transport;
    expectOk(run(job, [](const LaunchedRank &launched) {
      Rank me(launched.config());
      me.prepare(barrierSpec(2));
      if (me.rank == 0)
        check(ncclxrtCommAbort(me.comm, "first") == ncclxrtSuccess, "abort");
      while (std::string(ncclxrtGetLastError(me.comm)).empty())
        std::this_thread::yield();
      std::string first = me.error();
      check(within(milliseconds(1000),
                   [&] {
                     ncclxrtCommAbort(me.comm, "second");
                     for (int i = 0; i < 3; ++i)
                       check(me.tryRun([](int64_t exec) { return barrier(exec, 2); }) ==
                                 ncclxrtAborted,
                             "run");
                     ncclxrtPlan_t plan = me.plan;
                     check(me.tryPrepare(barrierSpec(2)) == ncclxrtAborted, "prepare");
                     me.plan = plan;
                   }),
            "calls after an abort took long");
      check(me.error() == first && first.find("rank 0 aborted: first") != std::string::npos,
            me.error());
      check(within(milliseconds(2000),
                   [&] {
                     me.destroyPlan();
                     check(ncclxrtCommDestroy(std::exchange(me.comm, nullptr)) == ncclxrtSuccess,
                           "leave");
                   }),
            "leaving after an abort took long");
    }));
  }
}

// What cannot work fails at prepare, on all ranks, and the communicator stays usable.
TEST(Named, WhatCannotWorkFailsAtPrepare) {
  for (const char *transport : transports) {
    Job job;
    job.transport = transport;
    expectOk(run(job, [](const LaunchedRank &launched) {
      Rank me(launched.config());
      PlanSpec bad = barrierSpec(2);
      bad.windows = {{"huge", uint64_t(1) << 50, 1, 0}};
      if (me.rank == 1) // one rank alone lacks the memory
        check(me.tryPrepare(bad) != ncclxrtSuccess, "prepare");
      else {
        PlanSpec good = barrierSpec(2);
        check(me.tryPrepare(good) == ncclxrtOutOfMemory, "prepare");
      }
      check(me.error().find("rank 1 cannot prepare it: windows and slots need") !=
                std::string::npos,
            me.error());
      me.prepare(barrierSpec(2));
      me.run([](int64_t exec) { return barrier(exec, 2); });
      me.leave();
    }));
  }
}

// The thread that waits holds no lock that others need: an error can be read, and the job be
// aborted, while it waits in a run and in prepare. (Not in CommDestroy: nobody may use what goes.)
TEST(Named, AWaitHoldsNoLockThatAnAbortNeeds) {
  for (const char *transport : transports)
    for (const char *where : {"run", "prepare"}) {
      Job job;
      job.transport = transport;
      expectOk(run(job, [&](const LaunchedRank &launched) {
        Rank me(launched.config());
        me.prepare(barrierSpec(2));
        if (me.rank == 1) { // stays away until the abort has reached it
          while (std::string(ncclxrtGetLastError(me.comm)).empty())
            std::this_thread::sleep_for(milliseconds(1));
          return;
        }
        std::thread other([&, comm = me.comm] {
          std::this_thread::sleep_for(milliseconds(60)); // it waits by now
          check(within(milliseconds(1000),
                       [&] {
                         (void)ncclxrtGetLastError(comm);
                         ncclxrtCommAbort(comm, "enough");
                       }),
                "an abort took long");
        });
        bool soon = within(milliseconds(5000), [&] { // not the deadline of 20 s
          if (!strcmp(where, "run")) {
            me.tryRun([](int64_t exec) { return barrier(exec, 2); });
          } else if (!strcmp(where, "prepare")) {
            ncclxrtPlan_t plan = me.plan;
            me.tryPrepare(barrierSpec(2));
            me.plan = plan;
          }
        });
        other.join();
        check(soon, std::string("an abort did not end the wait in ") + where);
      }));
    }
}

// One rank brings another count: an error within the deadline, on every rank, and no wrong result.
TEST(Named, MismatchedCountsAreAnErrorEverywhere) {
  for (const char *transport : transports) {
    Job job;
    job.transport = transport;
    job.nranks = 3;
    expectOk(run(job, [](const LaunchedRank &launched) {
      Rank me(launched.config());
      PlanSpec spec = barrierSpec(3);
      spec.windows = {{"in", me.rank == 1 ? 2000u : 1000u, 1, ncclxrtRoleInput}};
      check(me.tryPrepare(spec) == ncclxrtPlanMismatch, "prepare");
      check(me.error().find("rank 1 has window 'in' of 2000 bytes") != std::string::npos,
            me.error());
      me.leave();
    }));
  }
}

// Destroying in any order never deadlocks: it is done, or refused.
TEST(Named, DestroyOrderNeverDeadlocks) {
  for (const char *transport : transports) {
    Job job;
    job.transport = transport;
    expectOk(run(job, [](const LaunchedRank &launched) {
      Rank me(launched.config());
      me.prepare(barrierSpec(2));
      ncclxrtPlan_t first = me.plan;
      me.prepare(barrierSpec(2));
      // The ranks destroy their plans in opposite orders, one of them after a run of the other.
      ncclxrtPlan_t order[] = {first, me.plan};
      if (me.rank == 1)
        std::swap(order[0], order[1]);
      check(ncclxrtCommDestroy(me.comm) == ncclxrtInvalidUsage, "left with plans");
      me.plan = first;
      me.run([](int64_t exec) { return barrier(exec, 2); });
      check(ncclxrtPlanDestroy(order[0]) == ncclxrtSuccess, "destroy");
      check(ncclxrtPlanDestroy(order[1]) == ncclxrtSuccess, "destroy");
      me.plan = nullptr;
      me.leave();
    }));
  }
}

// Two schedules of one communicator, run in turn without a barrier, each run with data of its own;
// one is destroyed while other ranks may still be in it, the last two in opposite orders.
TEST(Named, PreparedSchedulesInTurnDestroyedInAnyOrder) {
  for (const char *transport : transports) {
    Job job;
    job.transport = transport;
    job.nranks = 3;
    each(job, [](Rank &me) {
      const int64_t n = me.nranks, chunks[] = {100, 7001, 1};
      std::vector<ncclxrtPlan_t> plans;
      for (int64_t chunk : chunks) {
        PlanSpec spec;
        spec.windows = {{"in", uint64_t(chunk), 1, ncclxrtRoleInput},
                        {"out", uint64_t(chunk * n), 2, ncclxrtRoleOutput}};
        spec.slots = {{"landed", n, 2, 0}};
        me.prepare(spec);
        plans.push_back(me.plan);
      }
      // An all_gather. Who overwrites an output has heard from its reader, two runs later.
      auto gather = [&](int which, int run) {
        const int64_t chunk = chunks[which];
        me.plan = plans[which];
        memset(me.buffer(0), run * 8 + me.rank, size_t(chunk));
        me.run([&](int64_t exec) {
          int32_t s = 0;
          for (int64_t peer = 0; peer < n; ++peer)
            s = copy(s, exec, 0, nic, whole(1, peer, me.rank * chunk, chunk),
                     whole(0, -1, 0, chunk), 0, peer, me.rank);
          s = ncclxrt_wait(s, exec, 1, host, 0, 0, n, run / 2 + 1);
          s = ncclxrt_flush(s, exec, 2, host);
          return ncclxrt_complete(s, exec, 3, nic);
        });
        const auto *out = reinterpret_cast<const uint8_t *>(me.buffer(1, run % 2));
        for (int64_t i = 0; i < chunk * n; ++i)
          check(out[i] == uint8_t(run * 8 + i / chunk), "run " + std::to_string(run));
      };
      for (int run = 0; run < 20; ++run)
        for (int i = 0; i < 3; ++i)
          gather((run + i) % 3, run);
      me.plan = plans[1];
      me.destroyPlan();
      for (int run = 20; run < 30; ++run)
        for (int which : {0, 2})
          gather(which, run);
      for (int which : {me.rank == 1 ? 2 : 0, me.rank == 1 ? 0 : 2}) {
        me.plan = plans[which];
        me.destroyPlan();
      }
      me.leave();
    });
  }
}

// Two communicators of one process, each with a thread of its own, on the same peers.
TEST(Named, TwoCommunicatorsOfOneProcess) {
  for (const char *transport : transports) {
    Job job;
    job.transport = transport;
    const std::string second = "127.0.0.1:" + std::to_string(freePort());
    expectOk(run(job, [&](const LaunchedRank &launched) {
      auto work = [&](ncclxrtCommConfig_t config) {
        Rank me(config);
        me.prepare(barrierSpec(2));
        for (int i = 0; i < 200; ++i)
          me.run([](int64_t exec) { return barrier(exec, 2); });
        me.leave();
      };
      std::string error;
      std::thread other([&] {
        try {
          ncclxrtCommConfig_t config = launched.config();
          config.server = ncclxrtServerRank0;
          config.rendezvous = second.c_str();
          config.job = "other";
          work(config);
        } catch (const std::exception &e) {
          error = e.what();
        }
      });
      work(launched.config());
      other.join();
      check(error.empty(), error);
    }));
  }
}

/// A small all-reduce, `rounds` times in one run, each rank late by a random time before each
/// signal.
void manySmallAllReduces(Rank &me, int rounds, int32_t writers) {
  PlanSpec spec;
  const int64_t n = me.nranks;
  // Each rank's contribution lands in a slot of the others; two generations of slots in turn.
  spec.windows = {{"in", 8, 1, 0}, {"parts", uint64_t(8 * n * 2), 1, 0}, {"out", 8, 1, 0}};
  spec.slots = {{"landed", n, 1, writers}};
  me.prepare(spec);
  auto *in = reinterpret_cast<int64_t *>(me.buffer(0));
  auto *out = reinterpret_cast<int64_t *>(me.buffer(2));
  std::minstd_rand random(unsigned(me.rank + 1));
  me.run([&](int64_t exec) {
    int32_t s = 0;
    for (int64_t i = 1; i <= rounds && s == 0; ++i) {
      const int64_t half = i % 2 * 8 * n;
      *in = i * 10 + me.rank;
      for (int64_t k = 0; k < n; ++k) {
        int64_t peer = (me.rank + k) % n;
        s = copy(s, exec, 0, ce, whole(1, peer, half + me.rank * 8, 8), whole(0, -1, 0, 8));
        for (volatile unsigned spin = unsigned(random()) % 200; spin; spin = spin - 1)
          ;
        s = ncclxrt_signal(s, exec, 1, ce, 0, peer, me.rank);
      }
      s = ncclxrt_wait(s, exec, 2, ce, 0, 0, n, i);
      s = reduce(s, exec, 3, ncclxrtReduceSum, ncclxrtI64, ncclxrtI64, whole(2, -1, 0, 8),
                 whole(1, -1, half, 8), n, 8);
      check(s || *out == n * i * 10 + n * (n - 1) / 2, "round " + std::to_string(i));
    }
    return s;
  });
}

TEST(Named, ManySmallAllReducesWithRandomDelays) {
  Job job;
  each(job, [](Rank &me) { manySmallAllReduces(me, 100'000, 0); });
}

// A counter that one rank raises is raised by a plain store. Two ranks poll; five share the cores
// and sleep; threads are what TSan follows.
TEST(Named, ManySignalsOfOneWriter) {
  for (Mode mode : {Mode::Processes, Mode::Threads})
    for (int nranks : {2, 5}) {
      Job job;
      job.mode = mode;
      job.nranks = nranks;
      each(job, [](Rank &me) { manySmallAllReduces(me, me.nranks == 2 ? 100'000 : 4'000, 1); });
    }
}

/// From here on, this process finds a kernel without membarrier.
void loseMembarrier() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(filter), filter};
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
        "no filter of system calls");
  check(syscall(SYS_membarrier, 0, 0, 0) == -1 && errno == ENOSYS, "membarrier is still there");
}

// Where some rank's kernel lacks it, every rank signals as if no counter had one writer.
TEST(Named, OneWriterWithoutMembarrier) {
  for (bool all : {true, false}) {
    Job job;
    job.nranks = 3;
    expectOk(run(job, [&](const LaunchedRank &launched) {
      if (all || launched.rank == 1)
        loseMembarrier();
      Rank me(launched.config());
      manySmallAllReduces(me, 4'000, 1);
      me.leave();
    }));
  }
}

} // namespace
