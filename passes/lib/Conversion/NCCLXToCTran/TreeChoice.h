//===- TreeChoice.h - Pieces and their order along trees --------------------*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_TREECHOICE_H
#define NCCLX_LIB_CONVERSION_TREECHOICE_H

#include "TreePlan.h"

#include "ncclx/Conversion/TreeSetting.h"

namespace mlir::ctran {

/// What moves along trees, in which pieces and in which order.
struct TreeChoice {
  ncclx::topology::TreePacking packing; ///< each tree as often as it has a piece in a round
  TreePlan plan;
  int64_t rounds = 1;
  double pieceBytes = 0;
};

/// Bytes of scratch memory that a member may take, -1: any; and those that cannot be cut.
struct TreeScratch {
  int64_t most = -1;
  double unitBytes = 1;
};

/// Moves each root's `bytes` (or all roots' together) as the setting says, or as near as the limit
/// of scratch memory lets it: smaller pieces, and then room for fewer at once. Where that is not
/// enough it takes more. Of `costs` that is taken which no setting decides.
TreeChoice chooseTrees(const ncclx::topology::TreePacking &packing, const TreeCosts &costs,
                       double bytes, const ncclx::TreeSetting &setting, TreeScratch scratch);

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_TREECHOICE_H
