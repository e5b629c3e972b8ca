//===- ByTiers.h - Collectives over the tiers of a target -------------------*- C++ -*-===//
#ifndef NCCLX_LIB_SELECTION_BYTIERS_H
#define NCCLX_LIB_SELECTION_BYTIERS_H

#include "ncclx/Conversion/ProgramGrid.h"
#include "ncclx/Selection/Selection.h"

namespace mlir::ncclx {

/// Why `op` cannot go along the tiers of `target`, or nothing if it can.
std::optional<std::string> whyNotByTiers(CollectiveOpInterface op, const SelectionTarget &target);

/// Whether all ranks are GPUs alike behind one switch.
bool isFlat(const SelectionTarget &target);

/// Whether one rank is timed for all: what is hierarchical, what is alike on all ranks behind one
/// switch, and of many ranks what goes as well in
/// a grid that is cut by tiers, as the others would take minutes rank by rank.
bool isTimedByOne(CollectiveOpInterface op, std::optional<Algorithm> algorithm,
                  const SelectionTarget &target);

/// Ranks that are simulated one by one where they could go by tiers.
constexpr int64_t mostOneByOne = 64;

} // namespace mlir::ncclx
#endif // NCCLX_LIB_SELECTION_BYTIERS_H
