//===- Harness.cpp - Ranks as processes or as threads ---------------------===//
#include "Harness.h"

#include "Control.h" // the server, hosted by the test for ranks that are threads
#include "FakeWorld.h"
#include "Socket.h"

#include <algorithm>
#include <arpa/inet.h>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace harness;
using ncclxrt::LaunchedRank;
using ncclxrt::RankExit;

void harness::check(bool condition, const std::string &text) {
  if (!condition)
    throw std::runtime_error(text);
}

static void must(ncclxrtResult_t result, ncclxrtComm_t comm) {
  if (result != ncclxrtSuccess)
    throw std::runtime_error(std::string(ncclxrtResultString(result)) + ": " +
                             ncclxrtGetLastError(comm));
}

// The world of the calling thread, where its rank is one of a fake job.
static thread_local FakeWorld *fakeWorld;

Rank::Rank(const ncclxrtCommConfig_t &config) : rank(config.rank), nranks(config.nranks) {
  if (fakeWorld) {
    ncclxrt::Status s = ncclxrt::makeComm(fakeWorld->config(rank, config.timeout_ms), &comm);
    check(s.ok(), s.text());
    return;
  }
  must(ncclxrtCommInit(&config, &comm), nullptr);
}

Rank::~Rank() {
  ncclxrtPlanDestroy(plan);
  ncclxrtCommDestroy(comm);
}

void Rank::leave() {
  destroyPlan();
  must(ncclxrtCommDestroy(std::exchange(comm, nullptr)), nullptr);
}

void Rank::destroyPlan() { must(ncclxrtPlanDestroy(std::exchange(plan, nullptr)), comm); }

ncclxrtResult_t Rank::tryPrepare(const PlanSpec &spec) {
  static const ncclxrtLaneDesc_t lanes[] = {
      {"ce0", ncclxrtLaneCe, 0}, {"nic0", ncclxrtLaneNic, 0}, {"host0", ncclxrtLaneHost, 0}};
  std::vector<std::string> names;
  std::vector<ncclxrtOpDesc_t> ops;
  for (int i = 0; i < spec.numOps; ++i)
    names.push_back("op" + std::to_string(i));
  for (const std::string &name : names)
    ops.push_back({name.c_str(), "test.mlir:7:1"});
  ncclxrtPlanDesc_t desc = NCCLXRT_PLAN_DESC_INIT;
  desc.name = spec.name.c_str();
  desc.hash = spec.hash;
  desc.windows = spec.windows.data();
  desc.num_windows = spec.windows.size();
  desc.slots = spec.slots.data();
  desc.num_slots = spec.slots.size();
  desc.lanes = lanes;
  desc.num_lanes = 3;
  desc.ops = ops.data();
  desc.num_ops = ops.size();
  desc.trace_capacity = spec.trace;
  desc.sizes = spec.sizes.data();
  desc.num_sizes = spec.sizes.size();
  desc.sharing = spec.sharing.data();
  desc.num_sharing = spec.sharing.size();
  return ncclxrtPlanPrepare(comm, &desc, &plan);
}

void Rank::prepare(const PlanSpec &spec) { must(tryPrepare(spec), comm); }

std::byte *Rank::buffer(size_t window, int generation, size_t *bytes) {
  void *data;
  size_t size;
  must(ncclxrtPlanBuffer(plan, window, generation, &data, &size), comm);
  if (bytes)
    *bytes = size;
  return static_cast<std::byte *>(data);
}

// A program has no argument but exec, so that a closure goes by way of its thread.
static thread_local const std::function<int32_t(int64_t)> *program;
static int32_t callProgram(int64_t exec) { return (*program)(exec); }

ncclxrtResult_t Rank::tryRun(const std::function<int32_t(int64_t)> &body) {
  program = &body;
  return ncclxrtPlanRun(plan, callProgram);
}

void Rank::run(const std::function<int32_t(int64_t)> &body) { must(tryRun(body), comm); }

namespace {
/// What a rank reports, in memory that its process shares with the test's.
struct Report {
  int64_t elapsedMs;
  char text[4096];
};
} // namespace

static int64_t clockNs() { return fakeWorld ? fakeWorld->now() : ncclxrt::nowNs(); }

static int runBody(const LaunchedRank &rank, Report &report,
                   const std::function<void(const LaunchedRank &)> &body) {
  int64_t start = clockNs();
  std::string text;
  try {
    body(rank);
  } catch (const std::exception &e) {
    text = e.what();
  }
  report.elapsedMs = (clockNs() - start) / ncclxrt::nsPerMs;
  strncpy(report.text, text.c_str(), sizeof(report.text) - 1);
  return text.empty() ? 0 : 1;
}

static std::vector<RankExit> runThreads(const Job &job, Report *reports,
                                        const std::function<void(const LaunchedRank &)> &body) {
  ncclxrt::Address address;
  ncclxrt::Fd listener;
  EXPECT_TRUE(ncclxrt::Address::parse("127.0.0.1:0", address).ok());
  EXPECT_TRUE(ncclxrt::listenOn(address, listener).ok());
  ncclxrt::Server server(std::move(listener), job.nranks, job.job);
  std::atomic<bool> stop{false};
  std::thread host([&] {
    while (!stop)
      server.poll(ncclxrt::nowNs() + 5 * ncclxrt::nsPerMs);
  });
  std::vector<RankExit> exits(job.nranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < job.nranks; ++r)
    threads.emplace_back([&, r] {
      LaunchedRank rank{r, job.nranks, job.transport, address.str(), job.job, job.timeoutMs};
      exits[r] = {RankExit::Exited, runBody(rank, reports[r], body)};
    });
  for (std::thread &t : threads)
    t.join();
  stop = true;
  host.join();
  return exits;
}

static std::vector<RankExit> runFake(const Job &job, Report *reports,
                                     const std::function<void(const LaunchedRank &)> &body) {
  std::vector<RankExit> exits(size_t(job.nranks));
  FakeWorld world(job.nranks, job.seed);
  world.run([&](int r) {
    if (std::count(job.absent.begin(), job.absent.end(), r))
      return;
    fakeWorld = &world;
    exits[size_t(r)] = {
        RankExit::Exited,
        runBody({r, job.nranks, "fake", "", job.job, job.timeoutMs}, reports[r], body)};
  });
  return exits;
}

std::vector<std::string> harness::inProcesses(int n, const std::function<std::string(int)> &body) {
  constexpr size_t room = 1 << 14;
  size_t bytes = room * size_t(n);
  auto *texts = static_cast<char *>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> children;
  fflush(nullptr);
  for (int i = 0; i < n; ++i) {
    pid_t pid = fork();
    if (pid == 0) {
      strncpy(texts + room * size_t(i), body(i).c_str(), room - 1);
      fflush(nullptr);
      _exit(0);
    }
    children.push_back(pid);
  }
  std::vector<std::string> results;
  for (int i = 0; i < n; ++i) {
    int status = 0;
    bool ended = waitpid(children[size_t(i)], &status, 0) == children[size_t(i)] && status == 0;
    results.push_back(ended ? texts + room * size_t(i)
                            : "its process ended with status " + std::to_string(status));
  }
  munmap(texts, bytes);
  return results;
}

int harness::freePort() {
  constexpr int first = 10'000, ports = 22'000;
  for (int i = 0; i < ports; ++i) {
    ncclxrt::Address address{htonl(INADDR_LOOPBACK), uint16_t(first + (getpid() + i) % ports)};
    ncclxrt::Fd fd;
    if (ncclxrt::listenOn(address, fd).ok())
      return address.port;
  }
  throw std::runtime_error("no port is free");
}

void harness::fall(Fall how, const LaunchedRank &rank) {
  if (!fakeWorld && how != Fall::Hang) {
    kill(getpid(), how == Fall::Kill ? SIGKILL : SIGSTOP);
    return;
  }
  int64_t hangMs = 8 * rank.timeoutMs;
  if (!fakeWorld) {
    usleep(useconds_t(hangMs * 1000));
    return;
  }
  if (how == Fall::Hang) {
    int64_t end = fakeWorld->now() + hangMs * ncclxrt::nsPerMs;
    (void)fakeWorld->block(rank.rank, [] { return false; }, end);
    return;
  }
  how == Fall::Kill ? fakeWorld->die(rank.rank) : fakeWorld->stop(rank.rank);
  throw std::runtime_error("fell");
}

std::vector<Outcome> harness::run(const Job &job,
                                  const std::function<void(const LaunchedRank &)> &body) {
  size_t bytes = sizeof(Report) * size_t(job.nranks);
  auto *reports = static_cast<Report *>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int r = 0; r < job.nranks; ++r)
    reports[r].elapsedMs = -1;
  std::vector<RankExit> exits;
  if (job.mode == Mode::Fake) {
    exits = runFake(job, reports, body);
  } else if (job.mode == Mode::Threads) {
    exits = runThreads(job, reports, body);
  } else {
    ncclxrt::LaunchOptions options;
    options.nranks = job.nranks;
    options.transport = job.transport;
    options.job = job.job;
    options.timeoutMs = job.timeoutMs;
    options.absent = job.absent;
    options.graceMs = job.graceMs;
    options.limitMs = 120'000;
    exits = ncclxrt::launch(
        options, [&](const LaunchedRank &rank) { return runBody(rank, reports[rank.rank], body); });
  }
  std::vector<Outcome> outcomes;
  for (int r = 0; r < job.nranks; ++r)
    outcomes.push_back({exits[r], reports[r].text, reports[r].elapsedMs});
  munmap(reports, bytes);
  return outcomes;
}

void harness::each(const Job &job, const std::function<void(Rank &)> &body) {
  std::vector<Outcome> outcomes = run(job, [&](const LaunchedRank &launched) {
    Rank rank(launched.config());
    body(rank);
    rank.leave();
  });
  for (size_t r = 0; r < outcomes.size(); ++r)
    EXPECT_TRUE(outcomes[r].exit.ok())
        << "rank " << r << ": " << outcomes[r].exit.str() << ": " << outcomes[r].text;
}
