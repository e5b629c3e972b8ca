//===- ProgramGrid.h - The axes of a function's program --------------------*- C++ -*-===//
#ifndef NCCLX_CONVERSION_PROGRAMGRID_H
#define NCCLX_CONVERSION_PROGRAMGRID_H

#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Topology/Tiers.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <string>

namespace mlir::ncclx {

/// Whether it goes round its members in steps: along one axis ranks are alike in it, along several
/// they are not.
bool goesRound(Algorithm algorithm);

/// The grid of the program that a function becomes. It is the function's own where that names one
/// grid and lists no groups, and no ring or rounds go along several axes; else the coarsest one in
/// which axes span the groups of every collective whose groups share axes with those before it,
/// listed groups after all others. Ranks keep their numbers.
class ProgramGrid {
public:
  /// Fails, with an error at the collective, where collectives run on different numbers of ranks.
  static FailureOr<ProgramGrid> of(FunctionOpInterface function);

  struct Axis {
    std::string name;
    int64_t size = 1, stride = 1; ///< between the ranks of neighbours
  };
  ArrayRef<Axis> axes() const { return list; }
  int64_t numRanks() const { return ranks; }
  /// The axes that span the groups of `op`, which names some (getNamedGroups): their members
  /// are numbered row-major over them, in this order. None where no axes span them.
  SmallVector<unsigned> axesOf(Operation *op) const;

  /// Cuts axes in two where blocks of ranks of `tiers` begin.
  void cutBy(const topology::Tiers &tiers);
  struct OfTier {
    const topology::Tier *tier;
    SmallVector<unsigned> axes;
  };
  /// The same axes by tier, outermost first, of a grid that has been cut; or why they are not those
  /// of several tiers, each listed before what is inside of it.
  std::optional<std::string> axesByTier(Operation *op, const topology::Tiers &tiers,
                                        SmallVectorImpl<OfTier> &result) const;

private:
  SmallVector<Axis> list;
  int64_t ranks = 1;
};

} // namespace mlir::ncclx
#endif // NCCLX_CONVERSION_PROGRAMGRID_H
