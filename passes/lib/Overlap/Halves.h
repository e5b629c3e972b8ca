//===- Halves.h - A block on two halves of its rows -----------------------------*- C++ -*-===//
#ifndef NCCLX_LIB_OVERLAP_HALVES_H
#define NCCLX_LIB_OVERLAP_HALVES_H

#include "ncclx/NCCLX/NCCLX.h"

#include "llvm/ADT/DenseMap.h"

#include <array>

namespace mlir::ncclx {

/// The rows that a block's collectives work on one by one, or gather and scatter: their number (of
/// a shard), how many blocks of them the largest result has, and the collectives.
struct Rows {
  int64_t extent = 0, blocks = 1;
  SmallVector<CollectiveOpInterface> collectives;
};
/// What most bytes of the block's collectives have in common; nothing, and why, where none can be
/// cut.
std::optional<Rows> findRows(Block &block, std::string &why);

/// Has the block do its work on rows [0, first) and on the others, one after the other, op by op.
/// An op that needs all rows gets them, put together. Gives the number of collectives that are cut;
/// kernels of calls that are cut have new names, and are declared by `declareKernels`.
unsigned cutInHalves(Block &block, const Rows &rows, int64_t first);
/// Declares the kernels that cut calls name.
void declareKernels(Operation *symbolTable, Block &block);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_OVERLAP_HALVES_H
