//===- Rendezvous.h - Where the ranks' threads meet ----------------*- C++ -*-===//
#ifndef NCCLX_LIB_REFERENCE_RENDEZVOUS_H
#define NCCLX_LIB_REFERENCE_RENDEZVOUS_H

#include "CollectiveData.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace mlir::ncclx::reference {

/// A collective of the program: its data and who takes part.
struct Site {
  /// Of every group, or, where these differ in size, of each.
  std::vector<Collective> collectives;
  std::string name;                         ///< for messages: op and place
  bool agrees = false;                      ///< all must bring the same bits
  std::vector<std::vector<int64_t>> groups; ///< ranks in member order
  std::vector<int64_t> groupOf;             ///< by rank
};

/// All ranks of one run. Every method may be called by any rank's thread.
///
/// A rank that no one can meet any more is an error at once: when every rank waits or has ended,
/// nothing is left that could happen. The deadline is for a rank that computes without end.
class Rendezvous {
public:
  /// `padding`: see Collective::execute.
  Rendezvous(const std::vector<Site> &sites, int64_t ranks, std::chrono::milliseconds deadline,
             uint8_t padding);

  /// Rank `rank` reaches collective `site`. Returns when all members have and the data is there, or
  /// false when the run has failed.
  /// `sizes`: how many rows each member gets, where the collective is told only here.
  bool meet(int64_t rank, int64_t site, const void *in, const void *sizes, void *out);
  /// Rank `rank` has reached the end of its program.
  void finish(int64_t rank);
  /// Ends the run for every rank; the first message stays.
  void fail(const std::string &message);

  /// What went wrong; empty if nothing. Once all threads have ended.
  const std::string &getError() const { return error; }

private:
  struct Arrival {
    int64_t site = 0;
    const void *in = nullptr, *sizes = nullptr;
    void *out = nullptr;
  };
  /// The meeting that a set of ranks is gathering for. `turn` counts those that have been held.
  struct Meeting {
    std::map<int64_t, Arrival> arrived;
    int64_t turn = 0;
  };
  void failLocked(const std::string &message);
  void checkStuckLocked();
  std::string describeLocked() const;

  const std::vector<Site> &sites;
  std::chrono::milliseconds deadline;
  const uint8_t padding;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::vector<int64_t>, Meeting> meetings; ///< by the sorted ranks of the group
  std::vector<int64_t> waitingAt;                   ///< by rank: site, or one of the below
  static constexpr int64_t running = -1, ended = -2;
  std::string error;
};

} // namespace mlir::ncclx::reference
#endif // NCCLX_LIB_REFERENCE_RENDEZVOUS_H
