//===- Selection.h - Which algorithm carries a collective -----------------*- C++ -*-===//
#ifndef NCCLX_SELECTION_SELECTION_H
#define NCCLX_SELECTION_SELECTION_H

#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Selection/Rules.h"
#include "ncclx/Topology/Bounds.h"
#include "ncclx/Topology/TreePacking.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <limits>
#include <optional>
#include <string>

namespace mlir::ncclx {

/// The machine that a choice is made for.
struct SelectionTarget {
  const topology::Topology *topology = nullptr;
  topology::Rate rate = topology::Rate::payload;
  bool loadStore = true;            ///< peers' memory is reached by load and store
  const RuleTable *rules = nullptr; ///< asked before any prediction; may be null
  /// Of this topology and rate; null: trees and tiers are not considered.
  topology::TreePacker *trees = nullptr;
  /// To be run and compared, where nothing names an algorithm: sums of floats in an order that the
  /// reference interpreter repeats to the bit, if any such can carry them; and short messages, or
  /// what goes at the bound so, by what all ranks do alike.
  bool repeatable = false;
  /// May switches that can multicast and reduce do so, where nothing names an algorithm? As a
  /// bound's query asks (Topology/Bounds.h).
  bool inNetwork = false;
  /// Bytes of scratch memory that collectives may take on a rank; -1: no limit.
  int64_t scratchLimit = -1;
};

/// Of the GPU that has the fewest; 132 where none is known.
int64_t multiprocessorsOf(const topology::Topology &topology);

/// The pass that lowers a graph for `target`, as one kernel of a GPU, of so many blocks, where that
/// is asked for. All that is timed, chosen, proved or run for a target is lowered by it; what is
/// only timed may take more scratch memory than the target allows.
std::unique_ptr<Pass> createLowering(const SelectionTarget &target, bool oneKernel = false,
                                     int64_t blocks = 0, bool cutByTiers = false,
                                     bool onlyTimed = false);

/// What timeAlone finds.
struct AloneTime {
  double seconds = 0;
  int64_t scratch = 0; ///< bytes on a rank
  int64_t events = 0;  ///< that were simulated
  int64_t hops = 0;    ///< as machine::TimeResult counts them
  std::string cannot;  ///< why it does not run on the target; empty if it does
};

/// Seconds that `op`, carried by `algorithm` or by the schedule that it names, takes alone on
/// `target`, all groups of its grid at once: the simulated time of the schedule that the algorithm
/// writes. With `bytes` it is the same collective of buffers of one dimension and about as large.
/// Fails, with an error at the op, where the schedule cannot be built or simulated. The op has
/// static shapes; its algorithm attribute is not read. What is hierarchical, on GPUs, and direct
/// exchanges of many ranks on a machine with tiers are timed by one rank for all, each as slow as
/// the slowest. Where it takes longer than `horizon`, that alone is said. `hint` is given to the op
/// (NCCLX/Hints.h).
FailureOr<AloneTime> timeAlone(CollectiveOpInterface op, std::optional<Algorithm> algorithm,
                               const SelectionTarget &target,
                               std::optional<int64_t> bytes = std::nullopt,
                               double horizon = std::numeric_limits<double>::infinity(),
                               std::optional<NamedAttribute> hint = std::nullopt);

/// What decides the time of a collective on one target: equal keys, equal times.
std::string timingKey(CollectiveOpInterface op);

/// One algorithm for one collective on one target.
struct Candidate {
  Algorithm algorithm;
  std::optional<double> seconds;      ///< predicted
  int64_t scratch = 0, hops = 0;      ///< as in AloneTime, where it has a time
  std::optional<NamedAttribute> hint; ///< to be given to the op (NCCLX/Hints.h)
  std::string refused; ///< why it has no time: it cannot carry the collective, or loses

  void take(const AloneTime &time) {
    seconds = time.seconds;
    scratch = time.scratch;
    hops = time.hops;
  }
};

/// Times a candidate that has a time with another hint; where that is faster it is the candidate's.
/// Gives whether it is; `events` is what simulating it took. Fails as timeAlone does.
FailureOr<bool> tryHint(CollectiveOpInterface op, const SelectionTarget &target,
                        std::optional<int64_t> bytes, Candidate &candidate, NamedAttribute hint,
                        int64_t &events);

/// What carries a collective, why, and what else could.
struct Choice {
  std::optional<Algorithm> algorithm; ///< none: nothing can carry it
  std::string reason;
  std::vector<Candidate> candidates;  ///< all algorithms
  std::vector<std::string> overruled; ///< rules that match and ask for what cannot be
  int64_t bytes = 0;
  /// What no schedule can beat, for its first group; none where no bound is known. The second where
  /// a switch multicasts and reduces.
  std::optional<topology::LowerBound> bound, inNetwork;

  const Candidate &chosen() const { return candidates[unsigned(*algorithm)]; }
  /// What a schedule of this algorithm is measured against.
  const std::optional<topology::LowerBound> &boundOf(Algorithm of) const {
    return of == Algorithm::Switch ? inNetwork : bound;
  }
};

/// Decides by the op's own attribute, else by the first rule that matches and can be followed, else
/// by predicted time. `axes`: how many of its program span its groups (ProgramGrid). `bytes` as in
/// timeAlone. With `alternatives` all that can carry it are timed; else those that may be chosen.
/// Fails, with an error at the op, where a candidate cannot be timed, or the attribute asks for
/// what cannot be.
FailureOr<Choice> choose(CollectiveOpInterface op, size_t axes, const SelectionTarget &target,
                         std::optional<int64_t> bytes = std::nullopt, bool alternatives = false);

/// Gives every collective that names no algorithm the one that `choose` says, and every
/// reduction whose order is `any` the order in which its algorithm reduces, so that the meaning of
/// the graph is one value. A collective that names a schedule keeps it; where its result depends on
/// the order, it must say which the schedule has. Each choice is a remark of category
/// `ncclx-choose-algorithm`.
LogicalResult chooseAlgorithms(ModuleOp module, const SelectionTarget &target);

/// Prints what would carry `op`, why, the alternatives with their predicted times, and the bound.
LogicalResult explain(CollectiveOpInterface op, const SelectionTarget &target,
                      llvm::raw_ostream &os);

/// Prints which algorithm is chosen from which size on, from `least` to `most` bytes. A size where
/// the choice changes is exact to a few per cent.
LogicalResult printSelector(CollectiveOpInterface op, const SelectionTarget &target, int64_t least,
                            int64_t most, llvm::raw_ostream &os);

#define GEN_PASS_DECL
#include "ncclx/Selection/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "ncclx/Selection/Passes.h.inc"

} // namespace mlir::ncclx
#endif // NCCLX_SELECTION_SELECTION_H
