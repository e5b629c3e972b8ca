//===- Replay.h - What keeps a replayed run from the next one ---*- C++ -*-===//
//
// A captured run writes and awaits the same values each time. It can follow itself, on all ranks,
// with nothing between, where each counter is 0 again before it is raised anew (S33: who awaits its
// last value writes 0), and where nobody reaches into a rank's memory but between this rank's
// begin and end of the same run. Both are paths in a graph of all ranks' steps of two runs, which
// is searched when a plan is prepared; where one is missing, ranks meet before and after each
// captured run (Plan::capture).
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_LIB_CUDA_REPLAY_H
#define NCCLXRT_LIB_CUDA_REPLAY_H

#include "Comm.h"

#include <map>
#include <optional>
#include <vector>

namespace ncclxrt::cuda {

class Replay {
public:
  enum Kind : int32_t { Raise, Wait, Reach, Order, Unknown };
  struct Step {
    int32_t kind, lane, rank, unused;
    int64_t counter, value;
  };
  using Run = std::vector<Step>;

  /// The steps of a run in their order, each on a lane; a counter is a place among a rank's.
  void raise(size_t lane, int rank, int64_t counter) { add(Raise, lane, rank, counter, 0); }
  void wait(size_t lane, int64_t counter, int64_t value) { add(Wait, lane, 0, counter, value); }
  /// A peer's memory is read or written.
  void reach(size_t lane, int rank) { add(Reach, lane, rank, 0, 0); }
  void order(size_t lane, size_t other) { add(Order, lane, 0, int64_t(other), 0); }
  /// A counter is raised by no single stream.
  void giveUp() { add(Unknown, 0, 0, 0, 0); }
  const Run &told() const { return mine; }

  /// What is awaited last of each of `rank`'s counters, after which it is to be 0, where runs like
  /// these can follow each other; nothing where that leads into another run.
  static std::optional<std::map<int64_t, int64_t>> lastOf(int rank, const std::vector<Run> &all);

  /// Collective, once, when a run was told: whether runs follow one another without meetings.
  Status decide(Comm &comm);
  bool follows() const { return good; }
  /// Whoever has awaited this of an own counter writes 0.
  bool empties(int64_t counter, int64_t value) const {
    auto last = lasts.find(counter);
    return good && last != lasts.end() && last->second == value;
  }

private:
  void add(Kind kind, size_t lane, int rank, int64_t counter, int64_t value) {
    mine.push_back({kind, int32_t(lane), rank, 0, counter, value});
  }

  Run mine;
  std::map<int64_t, int64_t> lasts;
  bool good = false;
};

} // namespace ncclxrt::cuda

#endif // NCCLXRT_LIB_CUDA_REPLAY_H
