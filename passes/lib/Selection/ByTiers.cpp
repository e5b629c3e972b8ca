//===- ByTiers.cpp - Collectives over the tiers of a target ---------------------------------===//
#include "ByTiers.h"

#include "ncclx/Conversion/Passes.h"

using namespace mlir;
using namespace mlir::ncclx;

std::optional<std::string> mlir::ncclx::whyNotByTiers(CollectiveOpInterface op,
                                                      const SelectionTarget &target) {
  if (!target.trees)
    return std::string("tiers are not considered");
  FailureOr<ProgramGrid> grid = ProgramGrid::of(op->getParentOfType<FunctionOpInterface>());
  if (failed(grid))
    return std::string("its function has no grid");
  const topology::Tiers &tiers = target.trees->tiers();
  grid->cutBy(tiers);
  SmallVector<ProgramGrid::OfTier> found;
  return grid->axesByTier(op, tiers, found);
}

bool mlir::ncclx::isFlat(const SelectionTarget &target) {
  if (!target.trees)
    return false;
  // Of a single tier the rate is known only where that is so.
  const std::vector<topology::Tier> &tiers = target.trees->tiers().list;
  return tiers.size() == 1 && tiers.front().bytesPerSecond > 0;
}

bool mlir::ncclx::isTimedByOne(CollectiveOpInterface op, std::optional<Algorithm> algorithm,
                               const SelectionTarget &target) {
  if (!algorithm || target.topology->rankNode(0).kind != topology::NodeKind::gpu)
    return false;
  if (*algorithm == Algorithm::Hierarchical)
    return !whyNotByTiers(op, target);
  if (isFlat(target)) // what a switch does fills the links of others, too
    return !llvm::is_contained({Algorithm::Trees, Algorithm::Routed, Algorithm::Switch},
                               *algorithm);
  return (*algorithm == Algorithm::Direct || *algorithm == Algorithm::Eager) &&
         lookupGrid(op).getNumRanks() > mostOneByOne && !whyNot(op, Algorithm::Hierarchical, 1) &&
         !whyNotByTiers(op, target);
}
