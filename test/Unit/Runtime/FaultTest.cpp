//===- FaultTest.cpp - Ranks that die, stop, or never come ----------------===//
//
// Every survivor must end within its deadline with an error that names the rank at fault; nothing
// may be left behind, and the same job name must be free at once.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include <csignal>
#include <cstdlib>
#include <dirent.h>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <unistd.h>

using namespace harness;
using ncclxrt::LaunchedRank;
using ncclxrt::RankExit;

namespace {

constexpr int64_t timeoutMs = 700;
constexpr int culprit = 1;

/// What a directory holds: open files of this process, or names in /dev/shm.
std::set<std::string> entries(const char *directory) {
  std::set<std::string> names;
  if (DIR *d = opendir(directory)) {
    while (dirent *e = readdir(d))
      names.insert(e->d_name);
    closedir(d);
  }
  return names;
}

PlanSpec ringSpec() {
  PlanSpec spec;
  spec.windows = {{"in", 64, 1, 0}, {"out", 64, 1, 0}};
  spec.slots = {{"landed", 1, 1, 0}};
  return spec;
}

/// A run round the ring; `before` is called ahead of the put.
ncclxrtResult_t ringRun(Rank &me, const std::function<void()> &before = nullptr) {
  int next = (me.rank + 1) % me.nranks;
  return me.tryRun([&](int64_t exec) {
    if (before)
      before();
    int32_t s = copy(0, exec, 0, ce, whole(1, next, 0, 64), whole(0, -1, 0, 64), 0, next, 0);
    return ncclxrt_wait(s, exec, 1, ce, 0, 0, 1, ncclxrt_run(exec) + 1);
  });
}

enum class Phase { Prepare, FirstRun, MidRun, BetweenRuns, Destroy };
struct FaultCase {
  std::string transport;
  Phase phase;
  int signal; // SIGKILL, SIGSTOP; 0: hangs in a computation of its own
};

void PrintTo(const FaultCase &c, std::ostream *os) {
  *os << c.transport << ", signal " << c.signal;
}

class Fault : public testing::TestWithParam<FaultCase> {};

TEST_P(Fault, SurvivorsNameTheRank) {
  const FaultCase &c = GetParam();
  auto filesBefore = entries("/proc/self/fd"), shmBefore = entries("/dev/shm");
  Job job;
  job.transport = c.transport;
  job.nranks = 4;
  job.timeoutMs = timeoutMs;
  job.graceMs = 3 * timeoutMs;
  auto outcomes = run(job, [&](const LaunchedRank &launched) {
    auto fall = [&] {
      if (launched.rank != culprit)
        return;
      if (c.signal)
        kill(getpid(), c.signal);
      else
        usleep(8 * timeoutMs * 1000);
    };
    Rank me(launched.config());
    auto mustRun = [&](ncclxrtResult_t result) { check(result == ncclxrtSuccess, me.error()); };
    if (c.phase == Phase::Prepare)
      fall();
    check(me.tryPrepare(ringSpec()) == ncclxrtSuccess, me.error());
    for (int run = 0; run < 3; ++run) {
      bool here =
          (c.phase == Phase::FirstRun && run == 0) || (c.phase == Phase::MidRun && run == 2);
      mustRun(ringRun(me, here ? std::function<void()>(fall) : nullptr));
      if (c.phase == Phase::BetweenRuns && run == 1)
        fall();
    }
    if (c.phase == Phase::Destroy)
      fall();
    me.leave();
  });
  for (int r = 0; r < job.nranks; ++r) {
    const Outcome &o = outcomes[size_t(r)];
    if (r == culprit) {
      EXPECT_FALSE(o.exit.ok());
      continue;
    }
    EXPECT_EQ(o.exit.kind, RankExit::Exited) << r << ": " << o.exit.str();
    EXPECT_NE(o.text.find("rank 1"), std::string::npos) << r << ": " << o.text;
    // A death is told at once; the others take the deadline, and a little for a busy machine.
    EXPECT_LT(o.elapsedMs, 2 * timeoutMs + 2000) << r;
    if (c.signal == SIGKILL)
      EXPECT_NE(o.text.find("rank 1 died"), std::string::npos) << r << ": " << o.text;
    else if (c.signal == SIGSTOP && c.phase != Phase::Prepare && c.phase != Phase::Destroy)
      EXPECT_NE(o.text.find("not heard from: rank 1"), std::string::npos) << r << ": " << o.text;
    // The one that waits for the culprit was in the run; others may have been past it.
    if (c.phase == Phase::MidRun && c.signal == SIGSTOP && r == culprit + 1)
      EXPECT_NE(o.text.find("run 2"), std::string::npos) << r << ": " << o.text;
  }
  EXPECT_EQ(entries("/proc/self/fd"), filesBefore);
  EXPECT_EQ(entries("/dev/shm"), shmBefore);
  // The same name again, at once.
  job.timeoutMs = 20'000;
  each(job, [](Rank &me) {
    me.prepare(ringSpec());
    check(ringRun(me) == ncclxrtSuccess, me.error());
  });
}

std::vector<FaultCase> faultCases() {
  std::vector<FaultCase> all;
  for (const char *transport : {"shm", "tcp"})
    for (Phase phase :
         {Phase::Prepare, Phase::FirstRun, Phase::MidRun, Phase::BetweenRuns, Phase::Destroy})
      for (int signal : {SIGKILL, SIGSTOP, 0})
        all.push_back({transport, phase, signal});
  return all;
}

std::string faultName(const testing::TestParamInfo<FaultCase> &info) {
  const char *phases[] = {"Prepare", "FirstRun", "MidRun", "BetweenRuns", "Destroy"};
  const FaultCase &c = info.param;
  return c.transport + phases[int(c.phase)] +
         (c.signal == SIGKILL ? "Killed"
          : c.signal          ? "Stopped"
                              : "Slow");
}

INSTANTIATE_TEST_SUITE_P(All, Fault, testing::ValuesIn(faultCases()), faultName);

TEST(Rendezvous, NamesRanksThatWereNeverStarted) {
  for (const char *transport : {"shm", "tcp"}) {
    Job job;
    job.transport = transport;
    job.nranks = 5;
    job.timeoutMs = timeoutMs;
    job.absent = {2, 4};
    auto outcomes = run(job, [](const LaunchedRank &launched) { Rank me(launched.config()); });
    for (int r : {0, 1, 3}) {
      EXPECT_NE(outcomes[r].text.find("rank 2, rank 4 never joined"), std::string::npos)
          << outcomes[r].text;
      EXPECT_LT(outcomes[r].elapsedMs, timeoutMs + 2000);
    }
    EXPECT_EQ(outcomes[2].exit.kind, RankExit::Absent);
  }
}

TEST(Rendezvous, ARankThatDiesOnTheWayIsNamed) {
  for (int signal : {SIGKILL, SIGSTOP}) {
    Job job;
    job.nranks = 3;
    job.timeoutMs = timeoutMs;
    auto outcomes = run(job, [&](const LaunchedRank &launched) {
      if (launched.rank == 2)
        kill(getpid(), signal);
      Rank me(launched.config());
    });
    for (int r : {0, 1})
      EXPECT_NE(outcomes[r].text.find("rank 2 never joined"), std::string::npos)
          << outcomes[r].text;
  }
}

/// A port that nobody listens on.
int freePort() {
  // Derived from the process, so that tests that run side by side do not meet.
  return 20'000 + getpid() % 10'000;
}

TEST(Rendezvous, Rank0HostsItToo) {
  Job job;
  job.nranks = 3;
  job.timeoutMs = 5000;
  std::string address = "127.0.0.1:" + std::to_string(freePort());
  for (int repeat = 0; repeat < 3; ++repeat) { // the same port, at once
    auto outcomes = run(job, [&](const LaunchedRank &launched) {
      ncclxrtCommConfig_t config = launched.config();
      config.server = ncclxrtServerRank0;
      config.rendezvous = address.c_str();
      Rank me(config);
      me.prepare(ringSpec());
      check(ringRun(me) == ncclxrtSuccess, me.error());
      me.leave();
    });
    for (const Outcome &o : outcomes)
      EXPECT_TRUE(o.exit.ok()) << o.text;
  }
}

TEST(Rendezvous, TheDeathOfTheHostIsNamed) {
  for (int signal : {SIGKILL, SIGSTOP}) {
    Job job;
    job.nranks = 3;
    job.timeoutMs = timeoutMs;
    std::string address = "127.0.0.1:" + std::to_string(freePort());
    auto outcomes = run(job, [&](const LaunchedRank &launched) {
      ncclxrtCommConfig_t config = launched.config();
      config.server = ncclxrtServerRank0;
      config.rendezvous = address.c_str();
      Rank me(config);
      me.prepare(ringSpec());
      if (me.rank == 0)
        kill(getpid(), signal);
      check(ringRun(me) == ncclxrtSuccess, me.error());
      me.leave();
    });
    for (int r : {1, 2})
      EXPECT_NE(outcomes[r].text.find(signal == SIGKILL
                                          ? "rank 0, which hosts the rendezvous, died"
                                          : "rank 0, which hosts the rendezvous, has not been"),
                std::string::npos)
          << outcomes[r].text;
  }
}

TEST(Rendezvous, TakesTheEnvironmentOfTorchrun) {
  Job job;
  std::string port = std::to_string(freePort());
  auto outcomes = run(job, [&](const LaunchedRank &launched) {
    setenv("RANK", std::to_string(launched.rank).c_str(), 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "localhost", 1);
    setenv("MASTER_PORT", port.c_str(), 1);
    ncclxrtCommConfig_t config = NCCLXRT_COMM_CONFIG_INIT;
    Rank me(config);
    me.rank = launched.rank;
    me.nranks = 2;
    me.prepare(ringSpec());
    check(ringRun(me) == ncclxrtSuccess, me.error());
    me.leave();
  });
  for (const Outcome &o : outcomes)
    EXPECT_TRUE(o.exit.ok()) << o.text;
}

TEST(Rendezvous, RefusesWhatDoesNotFit) {
  struct Wrong {
    const char *what;
    std::function<void(ncclxrtCommConfig_t &)> change;
    const char *message;
    bool forAll; // the others hear of it at once
  } wrongs[] = {
      {"rank count", [](auto &c) { c.nranks = 7; },
       "rank 1 was started for 7 ranks, but the job has 3", true},
      {"transport", [](auto &c) { c.transport = "tcp"; }, "rank 1 uses transport tcp", true},
      {"job", [](auto &c) { c.job = "other"; }, "rank 1 belongs to job 'other'", false},
      {"rank", [](auto &c) { c.rank = 0; }, "rank 0 of job 'test' is there already", false},
      {"version", [](auto &c) { c.abi_version = 99; }, "the caller uses interface version 99",
       false},
  };
  for (const Wrong &wrong : wrongs) {
    Job job;
    job.nranks = 3;
    job.timeoutMs = timeoutMs;
    auto outcomes = run(job, [&](const LaunchedRank &launched) {
      ncclxrtCommConfig_t config = launched.config();
      if (launched.rank == culprit) {
        usleep(100'000); // the right rank 0 comes first
        wrong.change(config);
      }
      Rank me(config);
    });
    for (int r = 0; r < 3; ++r) {
      EXPECT_FALSE(outcomes[r].exit.ok()) << wrong.what;
      bool told = outcomes[r].text.find(wrong.message) != std::string::npos;
      bool missed = outcomes[r].text.find("rank 1 never joined") != std::string::npos;
      bool crossed = std::string(wrong.what) == "transport" && // each tells what it sees
                     outcomes[r].text.find("uses transport") != std::string::npos;
      EXPECT_TRUE(r == culprit || wrong.forAll ? told || crossed : missed)
          << wrong.what << ", rank " << r << ": " << outcomes[r].text;
    }
  }
}

TEST(Abort, ReachesEveryRankWithItsReason) {
  for (const char *transport : {"shm", "tcp"}) {
    Job job;
    job.transport = transport;
    job.nranks = 3;
    auto outcomes = run(job, [](const LaunchedRank &launched) {
      Rank me(launched.config());
      me.prepare(ringSpec());
      ncclxrtResult_t result = me.tryRun([&](int64_t exec) {
        if (me.rank == 2) {
          usleep(50'000); // the others wait by now
          check(ncclxrtCommAbort(me.comm, "out of coffee") == ncclxrtSuccess, "abort");
        }
        return ncclxrt_wait(0, exec, 1, ce, 0, 0, 1, 1);
      });
      check(result == ncclxrtAborted, "expected an aborted run");
      if (me.rank != 2)
        check(me.error().find("(here: rank " + std::to_string(me.rank) +
                              ", plan 'test', run 0, step 1, op 'op1'") != std::string::npos,
              me.error());
      check(me.error().find("rank 2 aborted: out of coffee") != std::string::npos, me.error());
      void *data;
      size_t bytes;
      check(ncclxrtPlanBuffer(me.plan, 0, 0, &data, &bytes) == ncclxrtSuccess, "buffer");
      PlanSpec again;
      check(me.tryPrepare(again) == ncclxrtAborted, "prepare after an abort");
    });
    for (const Outcome &o : outcomes) {
      EXPECT_TRUE(o.exit.ok()) << o.text;
      EXPECT_LT(o.elapsedMs, 5000); // not the deadline of 20 s
    }
  }
}

TEST(Abort, AFailedProgramTellsTheOthers) {
  Job job;
  job.nranks = 3;
  auto outcomes = run(job, [](const LaunchedRank &launched) {
    Rank me(launched.config());
    me.prepare(ringSpec());
    if (me.rank == 0)
      check(me.tryRun([](int64_t exec) { return ncclxrt_signal(0, exec, 2, ce, 0, 9, 0); }) ==
                ncclxrtInvalidArgument,
            "expected an invalid argument");
    else
      check(me.tryRun([](int64_t exec) {
        return ncclxrt_wait(0, exec, 1, ce, 0, 0, 1, 1); // nobody signals
      }) == ncclxrtAborted,
            "expected an aborted run");
    check(me.error().find("rank 0, plan 'test', run 0, step 1, op 'op2' at test.mlir:7:1: there "
                          "is no rank 9, the job has 3") != std::string::npos,
          me.error());
  });
  for (const Outcome &o : outcomes)
    EXPECT_TRUE(o.exit.ok()) << o.text;
}

TEST(Abort, AnUnmetWaitTellsWhatItSaw) {
  Job job;
  job.timeoutMs = 300;
  auto outcomes = run(job, [](const LaunchedRank &launched) {
    Rank me(launched.config());
    me.prepare(ringSpec());
    ncclxrtResult_t result =
        me.tryRun([](int64_t exec) { return ncclxrt_wait(0, exec, 4, host, 0, 0, 1, 5); });
    check(result == ncclxrtTimeout, "expected a timeout");
    check(me.error().find("waited 300 ms for slots 'landed'[0] >= 5, found 0") != std::string::npos,
          me.error());
    check(me.error().find("all ranks are alive and wait: rank") != std::string::npos, me.error());
  });
  for (const Outcome &o : outcomes)
    EXPECT_TRUE(o.exit.ok()) << o.text;
}

TEST(Launch, KillsLeftovers) {
  Job job;
  job.graceMs = 100;
  auto outcomes = run(job, [](const LaunchedRank &launched) {
    if (launched.rank == 0)
      throw std::runtime_error("meant");
    for (;;)
      pause();
  });
  EXPECT_EQ(outcomes[0].exit.str(), "exit status 1");
  EXPECT_EQ(outcomes[1].exit.kind, RankExit::Killed);
}

} // namespace
