//===- FaultTest.cpp - Ranks that die, stop, or never come ----------------===//
//
// Every survivor must end within its deadline with an error that names the rank at fault; nothing
// may be left behind, and the same job name must be free at once.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include "Control.h"
#include "Wire.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <dirent.h>
#include <gtest/gtest.h>
#include <mutex>
#include <poll.h>
#include <set>
#include <sys/wait.h>
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

/// A run round the ring; `before` is called ahead of the put and says whether to go on: if not, the
/// program ends there.
ncclxrtResult_t ringRun(Rank &me, const std::function<bool()> &before = nullptr) {
  int next = (me.rank + 1) % me.nranks;
  return me.tryRun([&](int64_t exec) {
    if (before && !before())
      return int32_t(ncclxrtSuccess);
    int32_t s = copy(0, exec, 0, ce, whole(1, next, 0, 64), whole(0, -1, 0, 64), 0, next, 0);
    return ncclxrt_wait(s, exec, 1, ce, 0, 0, 1, ncclxrt_run(exec) + 1);
  });
}

//===- The matrix ---------------------------------------------------------===//

enum class Phase { Rendezvous, Prepare, FirstRun, MidRun, BetweenRuns, Destroy };
constexpr const char *phaseNames[] = {"Rendezvous", "Prepare",     "FirstRun",
                                      "MidRun",     "BetweenRuns", "Destroy"};
constexpr int numPhases = 6;
enum class Kind { Killed, Stopped, Slow, NeverStarted, WrongPlan, WrongCount, WrongVersion };
constexpr const char *kindNames[] = {"Killed",    "Stopped",    "Slow",        "NeverStarted",
                                     "WrongPlan", "WrongCount", "WrongVersion"};

/// What rank 1 does when it comes to `phase`:
///   Killed, Stopped   by a signal
///   Slow              does not come back for eight deadlines
///   NeverStarted      was not started; or leaves instead of starting what comes now; in the middle
///                     of a run its program ends
///   WrongPlan         brings another plan, runs another one, or leaves without destroying one
///   WrongCount        says that the job has 7 ranks; when the job is whole, a stranger does
///   WrongVersion      speaks interface version 99; when the job is whole, a stranger does
struct Cell {
  std::string transport;
  Kind kind;
  Phase phase;
  /// A stranger does no harm: all ranks end well.
  bool harmless() const { return kind >= Kind::WrongCount && phase != Phase::Rendezvous; }
  /// Nobody has a plan at the rendezvous.
  bool exists() const { return kind != Kind::WrongPlan || phase != Phase::Rendezvous; }
};

/// A process that greets the rendezvous server by hand; what it is told.
std::string greet(const LaunchedRank &launched, int32_t version, int32_t count) {
  ncclxrt::Address address;
  ncclxrt::Fd fd;
  int64_t deadline = ncclxrt::nowNs() + timeoutMs * ncclxrt::nsPerMs;
  check(ncclxrt::Address::parse(launched.rendezvous, address).ok() &&
            ncclxrt::connectTo(address, deadline, fd).ok(),
        "a stranger cannot connect");
  ncclxrt::MessageStream stream(std::move(fd));
  stream.send(ncclxrt::Writer()
                  .put(ncclxrt::Message::Hello)
                  .put(ncclxrt::helloMagic)
                  .put(version)
                  .put(int32_t(culprit))
                  .put(count)
                  .put(timeoutMs * ncclxrt::nsPerMs)
                  .put(std::string_view(launched.job))
                  .put(std::string_view("shm\n"))
                  .take());
  std::string message;
  while (!stream.next(message) && ncclxrt::pollFor(stream.fd(), POLLIN, deadline))
    if (!stream.receive() && !stream.next(message))
      break;
  ncclxrt::Reader reader(message);
  reader.get<uint8_t>();
  reader.get<int32_t>();
  return reader.text();
}

/// The sentence that a wrong count or version brings.
std::string complaint(Kind kind) {
  return kind == Kind::WrongCount ? "rank 1 was started for 7 ranks, but the job has 4"
                                  : "rank 1 runs interface version 99, the rendezvous version " +
                                        std::to_string(NCCLXRT_ABI_VERSION);
}

/// Rank 1 of a cell, when it has come to the cell's phase. True: it goes on.
bool comeToGrief(const Cell &c, const LaunchedRank &launched) {
  switch (c.kind) {
  case Kind::Killed:
    fall(Fall::Kill, launched);
    return true;
  case Kind::Stopped:
    fall(Fall::Stop, launched);
    return true;
  case Kind::Slow:
    fall(Fall::Hang, launched);
    return true;
  case Kind::NeverStarted:
    return false;
  case Kind::WrongPlan:
    return true; // see playCell
  case Kind::WrongCount:
  case Kind::WrongVersion: {
    bool count = c.kind == Kind::WrongCount;
    std::string answer = greet(launched, count ? NCCLXRT_ABI_VERSION : 99, count ? 7 : 4);
    check(answer == complaint(c.kind), "a stranger was told: " + answer);
    return c.harmless();
  }
  }
  return true;
}

/// What a rank of a cell does: two plans, three runs of the first.
void playCell(const Cell &c, const LaunchedRank &launched) {
  auto falls = [&](Phase phase) { return launched.rank == culprit && phase == c.phase; };
  auto runsWrong = [&](Phase phase) { return c.kind == Kind::WrongPlan && falls(phase); };
  if (falls(Phase::Rendezvous) && !comeToGrief(c, launched))
    return;
  Rank me(launched.config());
  if (falls(Phase::Prepare) && !comeToGrief(c, launched))
    return me.leave();
  PlanSpec first = ringSpec(), second = ringSpec();
  second.name = "second";
  second.hash = 2;
  if (runsWrong(Phase::Prepare))
    first.hash = 99;
  struct Plans { // whatever happens, both go before the communicator
    ncclxrtPlan_t first = nullptr, second = nullptr;
    void destroy() {
      ncclxrtPlanDestroy(std::exchange(first, nullptr));
      ncclxrtPlanDestroy(std::exchange(second, nullptr));
    }
    ~Plans() { destroy(); }
  } plans;
  auto prepare = [&](const PlanSpec &spec) {
    me.prepare(spec);
    return std::exchange(me.plan, nullptr);
  };
  plans.first = prepare(first);
  plans.second = prepare(second);
  auto leave = [&] {
    plans.destroy();
    me.leave();
  };
  auto runOnce = [&](bool wrong, const std::function<bool()> &before) {
    me.plan = wrong ? plans.second : plans.first;
    ncclxrtResult_t result = ringRun(me, before);
    me.plan = nullptr;
    check(result == ncclxrtSuccess, me.error());
  };
  if (c.kind == Kind::NeverStarted && falls(Phase::FirstRun))
    return leave();
  runOnce(runsWrong(Phase::FirstRun),
          [&] { return !falls(Phase::FirstRun) || comeToGrief(c, launched); });
  runOnce(false, nullptr);
  if (falls(Phase::BetweenRuns) && !comeToGrief(c, launched))
    return leave();
  runOnce(runsWrong(Phase::MidRun) || runsWrong(Phase::BetweenRuns),
          [&] { return !falls(Phase::MidRun) || comeToGrief(c, launched); });
  if (falls(Phase::Destroy) && !comeToGrief(c, launched))
    _exit(0);                      // without a word
  if (runsWrong(Phase::Destroy)) { // one plan is left: it cannot leave, and ends
    ncclxrtPlanDestroy(std::exchange(plans.first, nullptr));
    _exit(ncclxrtCommDestroy(me.comm) == ncclxrtInvalidUsage ? 0 : 1);
  }
  leave();
}

/// What is wrong with how a cell ended; "" if nothing.
std::string judgeCell(const Cell &c, const std::vector<Outcome> &outcomes) {
  std::string wrong, reason;
  bool toldPlace = false;
  auto inText = [](const Outcome &o, const std::string &what) {
    return o.text.find(what) != std::string::npos;
  };
  for (int r = 0; r < int(outcomes.size()); ++r) {
    const Outcome &o = outcomes[size_t(r)];
    auto blame = [&](const std::string &what) {
      wrong +=
          fmt::format("rank {} {} ({}, {} ms): {}\n", r, what, o.exit.str(), o.elapsedMs, o.text);
    };
    if (c.harmless()) {
      if (!o.exit.ok())
        blame("should have ended well");
      continue;
    }
    if (r == culprit)
      continue;
    if (o.exit.kind != RankExit::Exited || o.exit.ok())
      blame("should have ended with an error");
    // A death is told at once; the others take the deadline, and a little for a busy machine.
    if (o.elapsedMs > 2 * timeoutMs + 2000)
      blame("took longer than its deadline");
    // Whoever waits for a rank that itself waits for the culprit knows that one, and where it is.
    if (!inText(o, "rank 1") && !inText(o, "rank 2 (waiting in run "))
      blame("does not name rank 1");
    bool met = c.phase != Phase::Rendezvous;
    if (c.kind == Kind::Killed && !inText(o, met ? "rank 1 died" : "rank 1 never joined"))
      blame("does not tell of the death");
    if (c.kind == Kind::Stopped &&
        !inText(o, met ? "not heard from: rank 1" : "rank 1 never joined"))
      blame("does not tell of the silence");
    if (c.kind == Kind::WrongPlan && c.phase == Phase::Prepare &&
        !inText(o, "rank 1 has hash 0x0000000000000063"))
      blame("does not tell the difference");
    if (c.kind >= Kind::WrongCount && !inText(o, complaint(c.kind)))
      blame("does not tell what does not fit");
    // The first reason wins: where one event ends the job, all ranks give the same.
    std::string mine = o.text.substr(0, o.text.find(" (here:"));
    mine.erase(0, mine.find("ended: ") == std::string::npos ? 0 : mine.find("ended: ") + 7);
    if (c.kind == Kind::Killed && met && !reason.empty() && mine != reason)
      blame("gives another reason than the first");
    reason = mine;
    toldPlace |= inText(o, "step ") && inText(o, "op 'op") && inText(o, "plan 'test', run ");
    toldPlace |= inText(o, "waiting for all ranks to ") || inText(o, "ms for all ranks to ") ||
                 inText(o, " came to ");
  }
  // Whoever waited for the culprit tells where: rank, plan, run, step and op, or the meeting.
  if (!c.harmless() && c.phase != Phase::Rendezvous &&
      !(c.kind == Kind::WrongPlan && c.phase == Phase::Prepare) && !toldPlace)
    wrong += "no rank tells where it was: " + outcomes[2].text + "\n";
  return wrong;
}

/// Plays a cell in a directory of its own, and looks whether anything is left behind.
std::string runCell(const Cell &c) {
  char directory[] = "/tmp/ncclxrt-fault-XXXXXX";
  if (!mkdtemp(directory) || chdir(directory))
    return "no directory";
  setenv("TMPDIR", directory, 1);
  auto filesBefore = entries("/proc/self/fd"), shmBefore = entries("/dev/shm");
  Job job;
  job.transport = c.transport;
  job.nranks = 4;
  job.timeoutMs = timeoutMs;
  job.graceMs = 2 * timeoutMs; // who never meets the culprit takes its whole deadline
  if (c.kind == Kind::NeverStarted && c.phase == Phase::Rendezvous)
    job.absent = {culprit};
  std::string wrong =
      judgeCell(c, run(job, [&](const LaunchedRank &launched) { playCell(c, launched); }));
  if (entries("/proc/self/fd") != filesBefore)
    wrong += "a file or socket is left open\n";
  if (entries("/dev/shm") != shmBefore)
    wrong += "shared memory is left\n";
  if (entries(directory).size() != 2)
    wrong += "a file is left\n";
  if (waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD)
    wrong += "a process is left\n";
  // The same name again, at once.
  job.timeoutMs = 20'000;
  job.absent.clear();
  for (const Outcome &o : run(job, [](const LaunchedRank &launched) {
         Rank me(launched.config());
         me.prepare(ringSpec());
         check(ringRun(me) == ncclxrtSuccess, me.error());
         me.leave();
       }))
    if (!o.exit.ok())
      wrong += "the name could not be used again: " + o.text + "\n";
  rmdir(directory);
  return wrong;
}

class Fault : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(Fault, InEveryPhase) {
  auto [transport, kind] = GetParam();
  auto wrong = inProcesses(numPhases, [&, transport = transport, kind = kind](int phase) {
    Cell c{transport, Kind(kind), Phase(phase)};
    return c.exists() ? runCell(c) : "";
  });
  for (int phase = 0; phase < numPhases; ++phase)
    EXPECT_EQ(wrong[size_t(phase)], "") << phaseNames[phase];
}

INSTANTIATE_TEST_SUITE_P(All, Fault,
                         testing::Combine(testing::Values("shm", "tcp"), testing::Range(0, 7)),
                         [](const auto &info) {
                           return std::get<0>(info.param) + kindNames[std::get<1>(info.param)];
                         });

//===- The rendezvous -----------------------------------------------------===//

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
      ncclxrtPlan_t before = me.plan; // which a failed prepare sets to null
      check(me.tryPrepare(PlanSpec()) == ncclxrtAborted, "prepare after an abort");
      me.plan = before;
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
