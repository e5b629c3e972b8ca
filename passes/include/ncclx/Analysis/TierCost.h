//===- TierCost.h - A machine of equal tiers as a cost model ---------------*- C++ -*-===//
#ifndef NCCLX_ANALYSIS_TIERCOST_H
#define NCCLX_ANALYSIS_TIERCOST_H

#include "ncclx/Analysis/TopologyCost.h"
#include "ncclx/Topology/Tiers.h"

namespace mlir::ncclx {

/// Times one rank, which stands for all: every rank is taken to be as slow as the slowest, and what
/// it shares with others counts by its part. For programs that are symmetric and whose axes are cut
/// by tiers (ProgramGrid::cutBy), on GPUs.
class TierCost : public ctran::machine::CostModel {
public:
  /// `tiers` outlives this.
  explicit TierCost(const topology::Tiers &tiers) : tiers(tiers), costs(LaneCosts::gpu()) {}

  unsigned numResources() const override { return unsigned(tiers.ports.size()) + 1; }
  double capacity(unsigned resource) const override;
  ctran::machine::Cost copy(const ctran::machine::OpCostQuery &query) const override;
  ctran::machine::Cost reduce(const ctran::machine::OpCostQuery &query) const override;
  ctran::machine::Cost compute(const ctran::machine::OpCostQuery &query) const override;
  ctran::machine::Cost signal(const ctran::machine::OpCostQuery &query) const override;
  ctran::machine::Cost wait(const ctran::machine::OpCostQuery &query) const override;
  bool symmetric() const override { return true; }

private:
  /// The outermost tier between two ranks, or null.
  const topology::Tier *between(int64_t a, int64_t b) const;
  unsigned memory() const { return unsigned(tiers.ports.size()); }

  const topology::Tiers &tiers;
  LaneCosts costs;
};

} // namespace mlir::ncclx
#endif // NCCLX_ANALYSIS_TIERCOST_H
