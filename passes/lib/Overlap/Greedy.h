//===- Greedy.h - One run of the list scheduler -------------------------------*- C++ -*-===//
#ifndef NCCLX_LIB_OVERLAP_GREEDY_H
#define NCCLX_LIB_OVERLAP_GREEDY_H

#include "ncclx/Overlap/Timeline.h"

namespace mlir::ncclx::overlap {

/// How a list scheduler decides. No rule is best everywhere: solve() tries several.
struct Rules {
  /// What goes first: what is farthest from the end; what stands first in the reference order; what
  /// is nearest to the start of a collective.
  enum class First { path, reference, nearest } first = First::path;
  double pathWeight = 1;   ///< what a second of a collective counts in that path
  bool oneInQueue = false; ///< a collective waits for its queue to be empty, not only ready
  /// A collective that is less urgent than the kernels at hand starts only if it can end before
  /// these make another ready.
  bool polite = false;
  double usefulPart = 0; ///< of a filler, how much must lie beside the collective
  bool bestFit = true;   ///< fillers: the most hidden first; else as everything
};

/// Edges of a problem, both ways, computed once.
struct Graph {
  explicit Graph(const Problem &problem);
  Needs needs;
  std::vector<std::vector<unsigned>> completeFor, placedFor; ///< the ops that need this one
  std::vector<std::vector<unsigned>> makes, reads;           ///< buffers of each op
};

/// A schedule that stays below `limit` bytes, or nothing where these rules find none.
std::optional<Schedule> listSchedule(const Problem &problem, const Graph &graph, int64_t limit,
                                     double frequency, const Rules &rules);

} // namespace mlir::ncclx::overlap
#endif // NCCLX_LIB_OVERLAP_GREEDY_H
