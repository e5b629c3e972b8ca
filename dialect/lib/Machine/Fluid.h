//===- Fluid.h - Flows that share resources max-min fairly ---------*- C++ -*-===//
#ifndef NCCLX_MACHINE_LIB_FLUID_H
#define NCCLX_MACHINE_LIB_FLUID_H

#include "ncclx/Machine/Time.h"

namespace mlir::ctran::machine {

class Fluid {
public:
  explicit Fluid(const CostModel &model);

  void add(int64_t id, const Cost &cost, double now);
  /// When the next flow ends; infinity when none does.
  double nextEnd(double now);
  /// Moves all flows to `now`; the ids of those that have ended.
  std::vector<int64_t> advance(double now);
  /// Empty, or which flow can never end.
  std::string stuck() const;

private:
  struct Flow {
    int64_t id;
    double left, rate, maxRate;
    std::vector<ResourceUse> uses;
    bool fresh; ///< has no rate yet
  };
  void move(double now);
  std::vector<size_t> changed();
  void share();

  std::vector<Flow> flows;
  std::vector<unsigned> left; ///< resources of flows that have ended since rates were shared
  std::vector<double> capacity;
  // Per resource, scratch.
  std::vector<double> used, weight;
  std::vector<std::vector<size_t>> usersOf;
  double at = 0;
  bool stale = false;
};

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_LIB_FLUID_H
