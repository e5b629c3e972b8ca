//===- FunctionProblem.h - A block as a problem, and back ----------------------*- C++ -*-===//
#ifndef NCCLX_LIB_OVERLAP_FUNCTIONPROBLEM_H
#define NCCLX_LIB_OVERLAP_FUNCTIONPROBLEM_H

#include "Kernels.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::ncclx {

/// What one op of a block costs that was scheduled before it: a loop, or a branch, with
/// communication inside.
struct LoopCost {
  double seconds = 0, joules = 0; ///< of all iterations; joules above idle
  int64_t peak = 0;               ///< bytes alive at once in an iteration
  int64_t peakBefore = 0;         ///< the same before it was scheduled
};
using LoopCosts = llvm::DenseMap<Operation *, LoopCost>;

/// The straight line of a function's or a loop's body. Kernels are linalg ops, ncclx.call, and
/// whatever else has a region; cheap ops without effects (slices, constants, fills) are no ops of
/// the problem: they go with their users. An op with effects, or with communication inside, is
/// opaque: nothing crosses it.
class FunctionProblem {
public:
  struct Site {
    /// A kernel, a start, or a collective by itself; null for what the iteration before started,
    /// and for later chunks.
    Operation *op = nullptr;
    CollectiveOpInterface collective; ///< null for kernels
    SmallVector<AwaitOp, 1> awaits;   ///< of a start; none if a loop or the next iteration has it
    /// Of a product: what scales or rounds its result, in which nobody else has a part. A library
    /// does it with the product, and nothing may come between.
    SmallVector<Operation *, 1> ends = {};
  };

  /// Reads the block, or says why it is not taken.
  static FailureOr<FunctionProblem> read(Block &block, const overlap::CostModel &cost,
                                         const LoopCosts &loops, std::string &why);

  overlap::Problem problem;
  overlap::Schedule given;  ///< what the function says
  std::vector<Site> sites;  ///< of each op of the problem
  unsigned withoutCost = 0; ///< kernels whose cost is not known: taken as none
  /// A collective that the iteration before has started: its number here, that of its start, and
  /// the loop's value that is its future.
  struct Resumed {
    unsigned rest, start, argument;
  };
  std::vector<Resumed> resumed() const;
  /// The peak of `given` with its loops as they were before they were scheduled.
  int64_t peakBefore() const;

  /// Of a loop's body: ops, and those of the next iteration that need what they yield.
  std::vector<std::pair<unsigned, unsigned>> carried();

  /// Moves the ops into the order of a schedule that check() accepts.
  void apply(const overlap::Schedule &schedule);

private:
  Block *body = nullptr;
  llvm::DenseMap<Operation *, unsigned> numbers; ///< of ops
  llvm::DenseMap<Operation *, unsigned> awaited; ///< what an await is of
  llvm::DenseMap<Operation *, std::vector<unsigned>> behindGlue;
  llvm::DenseSet<Operation *> placed;

  std::vector<unsigned> producers(Operation *op);
  void producers(Value value, std::vector<unsigned> &list);
  void addBuffer(unsigned op, ValueRange values);
  std::string add(Operation *op, const overlap::CostModel &cost, const LoopCosts &loops);
  std::vector<overlap::Buffer> innerPeaks;         ///< what iterations of loops have alive
  std::vector<std::pair<unsigned, int64_t>> inner; ///< their numbers, and their sizes before
  std::vector<unsigned> handedOn; ///< collectives whose futures leave the block's ops
  /// Awaits of what the iteration before started, with its start and their numbers. The time of
  /// such a collective is shared: as much as kernels run behind the start is the start's, what is
  /// left begins with the block.
  llvm::DenseMap<Operation *, StartOp> comesFrom;
  std::vector<std::pair<unsigned, Operation *>> rests; ///< its number; its start
  void findResumed();
  void shareTimes();
  void complete(Operation *before);
  void addCollective(CollectiveOpInterface op, StartOp start, const overlap::CostModel &cost);
  std::string addAwait(AwaitOp await, const overlap::CostModel &cost);
  std::optional<unsigned> productEndedBy(Operation *op);
  void place(Operation *op);
};

/// What a block takes once it is scheduled, and all its collectives one after the other.
struct Predicted {
  double seconds = 0, communication = 0;
};
/// Schedules a block on paper, in less effort than ncclx-overlap takes; or says why it cannot be.
std::optional<Predicted> predict(Block &block, const overlap::CostModel &cost, std::string &why);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_OVERLAP_FUNCTIONPROBLEM_H
