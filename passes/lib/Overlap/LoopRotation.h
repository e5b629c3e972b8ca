//===- LoopRotation.h - Collectives from one iteration of a loop to the next ----*- C++ -*-===//
//
// A loop that carries the future of a collective has it in flight while another iteration computes:
//
//   ahead:  start C(0); for i in [0, n-1) { await C; start C(i+1); rest of i };  rest of n-1
//   behind: first without its sums, start C(0); for i in [1, n) { rest of i; await C, sums of i-1;
//           start C(i) };  await C, sums of n-1
//
//   front:  front of 0; for i in [0, n-1) { rest of i; front of i+1 };  rest of n-1
//
// Of a loop whose length is not known, all of this stands in a branch that is taken if it runs.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_OVERLAP_LOOPROTATION_H
#define NCCLX_LIB_OVERLAP_LOOPROTATION_H

#include "ncclx/NCCLX/NCCLX.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::ncclx {

/// A collective that may be issued an iteration ahead, with the cheap ops that make its input.
struct Ahead {
  Operation *collective;
  llvm::SetVector<Operation *> makes; ///< in order
};
/// One that may be awaited an iteration later, with what becomes of its result.
struct Behind {
  Operation *collective;
  llvm::SetVector<Operation *> makes;  ///< what else the sums need, in order
  llvm::SetVector<Operation *> sums;   ///< in order
  llvm::SmallDenseSet<unsigned> slots; ///< the loop's values that they are yielded as
};

/// The collectives of a loop's body that are not started yet.
SmallVector<CollectiveOpInterface> collectivesOf(scf::ForOp loop);

// How a collective may go ahead, or stay behind; or why it may not.
std::optional<Ahead> findAhead(scf::ForOp loop, CollectiveOpInterface op, std::string &why);
std::optional<Behind> findBehind(scf::ForOp loop, CollectiveOpInterface op, std::string &why);

// The loop anew, with such collectives in flight between iterations. Gives the loop that is left;
// the one that is given is gone. It runs at least once, or its length is not known.
scf::ForOp rotateAhead(scf::ForOp loop, ArrayRef<Ahead> list);
scf::ForOp rotateBehind(scf::ForOp loop, const Behind &which);

/// The loop anew, with the ops `front` of its body an iteration ahead of the others, and cheap ops
/// where they are needed. Nothing behind them is needed in front.
scf::ForOp rotateFront(scf::ForOp loop, const llvm::SetVector<Operation *> &front);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_OVERLAP_LOOPROTATION_H
