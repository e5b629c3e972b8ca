//===- TreeSearch.h - Pieces and lanes with which trees are fastest ---------*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_TREESEARCH_H
#define NCCLX_LIB_CONVERSION_TREESEARCH_H

#include "TreePlan.h"

namespace mlir::ctran {

/// What moves along trees, in which pieces and in which order.
struct TreeChoice {
  ncclx::topology::TreePacking packing; ///< each tree as often as it has a piece in a round
  TreePlan plan;
  int64_t rounds = 1;
  double pieceBytes = 0;
  double seconds = 0; ///< by timeOf; 0 where it takes too much scratch memory
};

/// Bytes of scratch memory that a member may take, -1: any; and those that cannot be cut.
struct TreeScratch {
  int64_t most = -1;
  double unitBytes = 1;
};

/// The fastest, by timeOf, of some plans that move each root's `bytes` (or all roots' together): no
/// one setting suits all machines and sizes. Of `costs` that is taken which no choice decides.
TreeChoice searchTrees(const ncclx::topology::TreePacking &packing, const TreeCosts &costs,
                       double bytes, TreeScratch scratch = {});

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_TREESEARCH_H
