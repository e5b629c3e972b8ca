//===- Fluid.h - Flows that share resources max-min fairly ---------*- C++ -*-===//
#ifndef NCCLX_MACHINE_LIB_FLUID_H
#define NCCLX_MACHINE_LIB_FLUID_H

#include "ncclx/Machine/Time.h"

#include <map>

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
    /// Resource whose capacity alone keeps all flows that have it for theirs slowest, with weight
    /// 1; -1: none does.
    int64_t tightest = -1;
  };
  void move(double now);
  void count(const Flow &flow, int by);
  /// Full at no rates that its flows can have: it makes nobody wait.
  bool isSlack(unsigned resource) const;
  std::vector<size_t> changed();
  void share();

  std::vector<Flow> flows;
  std::vector<unsigned> left; ///< resources of flows that have ended since rates were shared
  std::vector<double> capacity;
  // Per resource: what its flows bring at most, where each has a tightest resource elsewhere; how
  // many have none; whether rates were shared when it was not slack.
  std::vector<double> most;
  std::vector<int64_t> boundless;
  std::vector<bool> coupled;
  std::map<std::pair<unsigned, unsigned>, int64_t> through; ///< flows of a resource, by tightest
  // Per resource, scratch.
  std::vector<double> used, weight;
  std::vector<int64_t> users;
  std::vector<std::vector<size_t>> usersOf;
  double at = 0;
  bool stale = false;
};

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_LIB_FLUID_H
