//===- ncclxrt/launch.h - Ranks as processes of this machine ----*- C++ -*-===//
#ifndef NCCLXRT_LAUNCH_H
#define NCCLXRT_LAUNCH_H

#include "ncclxrt/abi.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ncclxrt {

/// How ranks are started.
struct LaunchOptions {
  int nranks = 1;
  std::string transport = "shm";
  std::string job;
  int64_t timeoutMs = 30'000; ///< Deadline of each wait and collective step of the ranks.
  /// Once a rank has failed, how long the others may take to end before they are killed. 0: twice
  /// the deadline.
  int64_t graceMs = 0;
  /// The whole job, then all are killed. 0: no limit.
  int64_t limitMs = 0;
  /// Ranks that are left out, for tests of what the others then do.
  std::vector<int> absent;
};

/// What a rank needs to join: fill a configuration from it with config().
struct LaunchedRank {
  int rank, nranks;
  std::string transport, rendezvous, job;
  int64_t timeoutMs;
  /// Its strings are this object's.
  NCCLXRT_EXPORT ncclxrtCommConfig_t config() const;
};

/// How a rank ended.
struct RankExit {
  enum Kind { Absent, Exited, Signalled, Killed /**< by the launcher, as a leftover */ };
  Kind kind = Absent;
  int value = 0; ///< Exit status or signal.
  bool ok() const { return kind == Exited && value == 0; }
  NCCLXRT_EXPORT std::string str() const;
};

/// Forks one process a rank, runs `body` in each (its result is the exit status; it is left by
/// _exit with standard output flushed), and hosts the rendezvous until all have ended. No process
/// outlives the call, nor the calling thread. The caller should have no other thread that the body
/// depends on. Throws std::runtime_error if a process or the rendezvous cannot be made.
NCCLXRT_EXPORT std::vector<RankExit> launch(const LaunchOptions &options,
                                            const std::function<int(const LaunchedRank &)> &body);

} // namespace ncclxrt

#endif // NCCLXRT_LAUNCH_H
