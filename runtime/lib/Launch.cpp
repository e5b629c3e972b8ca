//===- Launch.cpp - Ranks as processes of this machine --------------------===//
#include "ncclxrt/launch.h"
#include "Control.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

using namespace ncclxrt;

ncclxrtCommConfig_t LaunchedRank::config() const {
  ncclxrtCommConfig_t config = NCCLXRT_COMM_CONFIG_INIT;
  config.rank = rank;
  config.nranks = nranks;
  config.server = ncclxrtServerExternal;
  config.transport = transport.c_str();
  config.rendezvous = rendezvous.c_str();
  config.job = job.c_str();
  config.timeout_ms = timeoutMs;
  return config;
}

std::string RankExit::str() const {
  switch (kind) {
  case Absent:
    return "not started";
  case Exited:
    return fmt::format("exit status {}", value);
  case Signalled:
    return fmt::format("signal {}", value);
  case Killed:
    return "killed by the launcher";
  }
  return "";
}

namespace {
struct Child {
  pid_t pid = -1;
  Fd pidfd;
  bool running = false, killed = false;
};
} // namespace

/// In the child: runs the body and ends the process without the parent's exit handlers.
[[noreturn]] static void runBody(pid_t parent, const LaunchedRank &rank,
                                 const std::function<int(const LaunchedRank &)> &body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) // it died before that
    _exit(1);
  int status = 1;
  try {
    status = body(rank);
  } catch (const std::exception &e) {
    fprintf(stderr, "rank %d: %s\n", rank.rank, e.what());
  } catch (...) {
    fprintf(stderr, "rank %d: unknown exception\n", rank.rank);
  }
  fflush(nullptr);
  _exit(status);
}

static void killAll(std::vector<Child> &children) {
  for (Child &child : children)
    if (child.running) {
      child.killed = true;
      kill(child.pid, SIGKILL);
    }
}

std::vector<RankExit> ncclxrt::launch(const LaunchOptions &options,
                                      const std::function<int(const LaunchedRank &)> &body) {
  if (options.nranks < 1)
    throw std::runtime_error(fmt::format("launch: expected nranks >= 1, found {}", options.nranks));
  Address address;
  Fd listener;
  Status s = Address::parse("127.0.0.1:0", address);
  if (s.ok())
    s = listenOn(address, listener);
  if (!s.ok())
    throw std::runtime_error("launch: " + s.text());

  std::vector<RankExit> exits(options.nranks);
  std::vector<Child> children(options.nranks);
  // What is buffered would be printed once more by each child.
  fflush(nullptr);
  pid_t self = getpid();
  for (int r = 0; r < options.nranks; ++r) {
    if (std::count(options.absent.begin(), options.absent.end(), r))
      continue;
    Child &child = children[r];
    child.pid = fork();
    if (child.pid == 0) {
      listener.reset();
      runBody(self,
              {r, options.nranks, options.transport, address.str(), options.job, options.timeoutMs},
              body);
    }
    if (child.pid > 0) {
      child.running = true;
      child.pidfd = Fd(int(syscall(SYS_pidfd_open, child.pid, 0)));
    }
    if (child.pid < 0 || !child.pidfd) {
      std::string reason = systemError("fork").text();
      killAll(children);
      for (Child &c : children)
        if (c.running)
          waitpid(c.pid, nullptr, 0);
      throw std::runtime_error("launch: " + reason);
    }
  }

  Server server(std::move(listener), options.nranks, options.job);
  int64_t graceNs = (options.graceMs ? options.graceMs : 2 * options.timeoutMs) * nsPerMs;
  int64_t endNs = options.limitMs ? nowNs() + options.limitMs * nsPerMs : INT64_MAX;
  bool failing = false;
  std::vector<int> pidfds;
  for (;;) {
    pidfds.clear();
    for (int r = 0; r < options.nranks; ++r) {
      Child &child = children[r];
      int status;
      if (child.running && waitpid(child.pid, &status, WNOHANG) == child.pid) {
        child.running = false;
        if (WIFEXITED(status))
          exits[r] = {RankExit::Exited, WEXITSTATUS(status)};
        else
          exits[r] = {child.killed ? RankExit::Killed : RankExit::Signalled, WTERMSIG(status)};
        if (!exits[r].ok() && !failing) {
          failing = true;
          endNs = std::min(endNs, nowNs() + graceNs);
        }
      }
      if (child.running)
        pidfds.push_back(child.pidfd.get());
    }
    if (pidfds.empty())
      return exits;
    if (nowNs() >= endNs) {
      killAll(children);
      endNs = INT64_MAX;
    }
    server.poll(std::min(endNs, nowNs() + 1000 * nsPerMs), pidfds);
  }
}
