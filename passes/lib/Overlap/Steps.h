//===- Steps.h - Gathers and products, products and reductions, in steps -----------*- C++ -*-===//
//
// Cards P5 and P7 of the survey: shards travel between members, and every member computes with
// what it has while the next is on its way. Block i is the shard of the i-th member behind this
// one, going round; what a member has is in this order, and one rotation by its own number puts
// rows where they belong. A member learns its number from a reduce_scatter of [0, 1, ..., n-1].
//
//   ring:    blocks come, or partial sums leave, one by one, between neighbours
//   doubling: each step brings as many blocks as are there (1, 1, 2, 4, ...); of a group over
//            several axes the last doubles, and one block from each of the other members of the
//            outer axes is asked for before that begins
//
//   direct:  a reduction alone (gathers are taken by chunk): each block goes straight to whom it is
//            for, that of the farthest first
//
// A reduction goes the opposite way: its sums are those of `order ring`, or `order tree`, or, where
// all that is for a member is there before it is added, `order rank`.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_OVERLAP_STEPS_H
#define NCCLX_LIB_OVERLAP_STEPS_H

#include "Exchanges.h"

namespace mlir::ncclx {

/// Axes, or listed groups, that a permute goes over.
struct StepGroup {
  ArrayAttr axes;
  ArrayAttr groups; ///< null where axes span the group
  int64_t size = 1;
};

/// Forms that differ in who sends what to whom.
enum class StepForm { ring, doubling, direct };

/// `size` blocks that come next to the `have` that are there.
struct Step {
  int64_t have, size;
};

class Steps : public ExchangeForm {
public:
  Steps(const overlap::CostModel &cost, StepForm form)
      : cost(cost), form(form), doubling(form == StepForm::doubling) {}

  std::string refuses(Exchange &edge) override;
  std::optional<double> seconds(Exchange &edge, const overlap::Op &product, std::string &words,
                                std::string &why) override;
  void rewrite(Exchange &edge) override;

private:
  const overlap::CostModel &cost;
  const StepForm form;
  const bool doubling;
  StepGroup inner, outer; ///< of the exchange at hand; the outer one is of size 1 for flat forms

  void group(Exchange &edge);
  SmallVector<Step> plan() const;
  Value permute(OpBuilder &b, Exchange &edge, Value value, const StepGroup &over, int64_t shift);
  Value number(Exchange &edge, const StepGroup &of);
  Value rotate(OpBuilder &b, Exchange &edge, Value value, unsigned dim, int sign);
  void gather(Exchange &edge);
  void reduce(Exchange &edge);
  void reduceDirectly(Exchange &edge);
};

/// The reduction that an exchange ends in.
inline ReduceScatterOp reductionOf(Exchange &edge) {
  return cast<ReduceScatterOp>(edge.collective.getOperation());
}

} // namespace mlir::ncclx
#endif // NCCLX_LIB_OVERLAP_STEPS_H
