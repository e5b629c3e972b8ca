//===- TreeSearch.h - Pieces and lanes with which trees are fastest ---------*- C++ -*-===//
#ifndef NCCLX_LIB_SELECTION_TREESEARCH_H
#define NCCLX_LIB_SELECTION_TREESEARCH_H

#include "ncclx/Selection/Selection.h"

namespace mlir::ncclx {

/// Improves a candidate that goes along trees and has been timed with `events`, as the lowering has
/// it: no one setting suits all machines and sizes, so that some are built and timed, the more of
/// them the further it is from `bound` seconds. `bytes` as in timeAlone, `payload` those of the
/// collective. Sets its hint, if some other setting is better.
LogicalResult searchTrees(CollectiveOpInterface op, const SelectionTarget &target,
                          std::optional<int64_t> bytes, int64_t payload, double bound,
                          Candidate &candidate, int64_t events);

/// Why no trees can be packed for `op`, or nothing.
std::string whyNoTrees(CollectiveOpInterface op, const SelectionTarget &target);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_SELECTION_TREESEARCH_H
