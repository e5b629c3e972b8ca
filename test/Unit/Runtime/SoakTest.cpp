//===- SoakTest.cpp - Random schedules with random faults -----------------===//
//
// Thousands of random schedules over the fake transport, and some of them as processes over shm and
// tcp. Without a fault every cell must hold what the schedule means; with one every survivor must
// end within its deadlines and name the rank at fault. A failure is repeated by its seed.
//
//===----------------------------------------------------------------------===//
#include "RandomSchedule.h"

#include <gtest/gtest.h>
#include <random>

using namespace harness;
using ncclxrt::LaunchedRank;
using ncclxrt::RankExit;

namespace {

struct Fault {
  enum Kind { None, Killed, Stopped, Slow, WrongPlan, NeverStarted, Aborts, Kinds } kind;
  int culprit, run, step;
};

/// Half of the schedules have none.
Fault makeFault(uint64_t seed, const RandomSchedule &schedule) {
  std::mt19937_64 engine(~seed);
  auto below = [&](size_t n) { return int(engine() % n); };
  Fault::Kind kind = seed % 2 ? Fault::Kind(below(Fault::Kinds)) : Fault::None;
  return {kind, below(size_t(schedule.nranks)), below(size_t(schedule.runs)),
          below(schedule.steps.size())};
}

/// What is wrong with how the ranks ended; "" if nothing.
std::string judge(const Fault &fault, const Job &job, const std::vector<Outcome> &outcomes) {
  std::string wrong, name = "rank " + std::to_string(fault.culprit);
  for (int r = 0; r < job.nranks; ++r) {
    const Outcome &o = outcomes[size_t(r)];
    auto blame = [&](const std::string &what) {
      wrong +=
          "rank " + std::to_string(r) + " " + what + ": " + o.exit.str() + ": " + o.text + "\n";
    };
    if (fault.kind == Fault::None) {
      if (!o.exit.ok())
        blame("failed");
      continue;
    }
    if (r == fault.culprit)
      continue;
    if (o.exit.kind != RankExit::Exited || o.exit.ok())
      blame("did not end with an error");
    else if (o.text.find(name) == std::string::npos)
      blame("does not name " + name);
    else if (fault.kind == Fault::Killed && o.text.find(name + " died") == std::string::npos)
      blame("does not give the reason");
    // The first wait that fails ends the job; the culprit's was the last event before it.
    else if (o.elapsedMs > 2 * job.timeoutMs + (job.mode == Mode::Fake ? 0 : 2000))
      blame("took " + std::to_string(o.elapsedMs) + " ms");
  }
  return wrong;
}

std::string play(uint64_t seed, Job job) {
  const RandomSchedule schedule(seed);
  const Fault fault = makeFault(seed, schedule);
  job.nranks = schedule.nranks;
  job.seed = seed;
  job.job = "soak" + std::to_string(seed);
  if (fault.kind == Fault::NeverStarted)
    job.absent = {fault.culprit};
  auto outcomes = run(job, [&](const LaunchedRank &launched) {
    bool mine = launched.rank == fault.culprit;
    Rank me(launched.config());
    PlanSpec plan = schedule.spec();
    if (mine && fault.kind == Fault::WrongPlan)
      plan.hash = 99;
    schedule.play(me, plan, [&](int run, int step) {
      if (!mine || run != fault.run || step != fault.step)
        return;
      if (fault.kind == Fault::Killed)
        fall(Fall::Kill, launched);
      else if (fault.kind == Fault::Stopped)
        fall(Fall::Stop, launched);
      else if (fault.kind == Fault::Slow)
        fall(Fall::Hang, launched);
      else if (fault.kind == Fault::Aborts)
        ncclxrtCommAbort(me.comm, "at random");
    });
  });
  std::string wrong = judge(fault, job, outcomes);
  return wrong.empty() ? ""
                       : "seed " + std::to_string(seed) + ", fault " + std::to_string(fault.kind) +
                             ":\n" + wrong;
}

/// Each case takes 500 of the 2,000 schedules, so that the cases may run side by side.
class Soak : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, Soak, testing::Range(0, 4));

TEST_P(Soak, FakeTransport) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Job job;
    job.mode = Mode::Fake;
    job.timeoutMs = 1000; // of the virtual clock
    ASSERT_EQ(play(uint64_t(GetParam()) * 500 + seed, job), "");
  }
}

/// A hundred of them as processes.
TEST(Soak, Processes) {
  constexpr int atOnce = 25;
  for (int first = 0; first < 100; first += atOnce) {
    auto wrong = inProcesses(atOnce, [&](int i) {
      Job job;
      job.transport = i % 4 < 2 ? "shm" : "tcp";
      job.timeoutMs = 1500;
      job.graceMs = 1000;
      return play(uint64_t(first + i), job);
    });
    for (const std::string &text : wrong)
      EXPECT_EQ(text, "");
  }
}

} // namespace
