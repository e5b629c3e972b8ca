//===- FunctionProblem.h - A function as a problem, and back -------------------*- C++ -*-===//
#ifndef NCCLX_LIB_OVERLAP_FUNCTIONPROBLEM_H
#define NCCLX_LIB_OVERLAP_FUNCTIONPROBLEM_H

#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Overlap/CostModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::ncclx {

/// The straight line of a function's body. Kernels are linalg ops, ncclx.call, and whatever else
/// has a region; cheap ops without effects (slices, constants, fills) are no ops of the problem:
/// they go with their users. An op with effects, or with communication inside, is opaque: nothing
/// crosses it.
class FunctionProblem {
public:
  struct Site {
    Operation *op = nullptr;          ///< a kernel, a start, or a collective by itself
    CollectiveOpInterface collective; ///< null for kernels
    AwaitOp await;                    ///< of a start
  };

  /// Reads the function, or says why it is not taken.
  static FailureOr<FunctionProblem> read(func::FuncOp function, const overlap::CostModel &cost,
                                         std::string &why);

  overlap::Problem problem;
  overlap::Schedule given;  ///< what the function says
  std::vector<Site> sites;  ///< of each op of the problem
  unsigned withoutCost = 0; ///< kernels whose cost is not known: taken as none

  /// Moves the ops into the order of a schedule that check() accepts.
  void apply(const overlap::Schedule &schedule);

private:
  Block *body = nullptr;
  llvm::DenseMap<Operation *, unsigned> numbers; ///< of ops and awaits
  llvm::DenseMap<Operation *, std::vector<unsigned>> behindGlue;
  llvm::DenseSet<Operation *> placed;

  std::vector<unsigned> producers(Operation *op);
  void producers(Value value, std::vector<unsigned> &list);
  void addBuffer(unsigned op, ValueRange values);
  std::string add(Operation *op, const overlap::CostModel &cost);
  std::string addCollective(CollectiveOpInterface op, StartOp start,
                            const overlap::CostModel &cost);
  void place(Operation *op);
};

/// "all_gather of 16384 bytes", "linalg.matmul -> tensor<4x8xf32>": how remarks call it.
std::string describe(Operation *op);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_OVERLAP_FUNCTIONPROBLEM_H
