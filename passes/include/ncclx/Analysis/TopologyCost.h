//===- TopologyCost.h - A topology as the machine's cost model ------------*- C++ -*-===//
#ifndef NCCLX_ANALYSIS_TOPOLOGYCOST_H
#define NCCLX_ANALYSIS_TOPOLOGYCOST_H

#include "ncclx/Machine/Time.h"
#include "ncclx/Topology/Resources.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::ncclx {

/// Seconds that one op takes of its lane besides moving bytes or computing: the realisation costs
/// of one kind of machine.
struct LaneCosts {
  double copy = 0;   ///< to start a copy
  double signal = 0; ///< to raise a slot, besides its way to the peer
  double wait = 0;   ///< to see that a slot has its value
  double kernel = 0; ///< to start a kernel (reduce, compute)
  double issue = 0;  ///< the issuer's time for each op
  /// A signal's further way to a process, for each other one that shares its core.
  double handover = 0;
  /// GPUs driven by stream memory operations; the sum of a copy and its flag is a measured figure,
  /// its division is assumed (TopologyCost.cpp).
  static LaneCosts gpu();
  /// Processes of one machine: calls of the runtime, their sums measured, the division assumed
  /// (TopologyCost.cpp); the flight of a signal is the topology's
  /// latency.
  static LaneCosts host();
};

/// Times ops by what the topology says of links, memories and compute, shared max-min fairly. One
/// rate throughout, so that a prediction may stand beside a bound of the same rate.
class TopologyCost : public ctran::machine::CostModel {
public:
  /// `topology` has validated without errors and outlives this.
  TopologyCost(const topology::Topology &topology, topology::Rate rate);

  unsigned numResources() const override;
  double capacity(unsigned resource) const override;
  ctran::machine::Cost copy(const ctran::machine::OpCostQuery &query) const override;
  ctran::machine::Cost reduce(const ctran::machine::OpCostQuery &query) const override;
  ctran::machine::Cost compute(const ctran::machine::OpCostQuery &query) const override;
  ctran::machine::Cost signal(const ctran::machine::OpCostQuery &query) const override;
  ctran::machine::Cost wait(const ctran::machine::OpCostQuery &query) const override;
  double issue(const ctran::machine::OpCostQuery &query) const override { return costs.issue; }

  topology::Rate rate() const { return theRate; }

private:
  bool isProcess(const ctran::machine::OpCostQuery &query) const;
  /// A multicast, a reduction on its way, or one into the other.
  ctran::machine::Cost inNetwork(const ctran::machine::OpCostQuery &query) const;

  /// A route in floating point, which is asked for with every op.
  struct Way {
    bool exists = false;
    bool sockets = false; ///< host processes talk
    double latency = 0;   ///< seconds
    double cap = 0;       ///< bytes/s; 0: no limit known
    llvm::SmallVector<unsigned, 8> resources;
  };
  /// Valid until the next call.
  const Way &way(int64_t from, int64_t to) const;

  const topology::Topology &topology;
  topology::Rate theRate;
  mutable topology::ResourceModel model;
  mutable llvm::DenseMap<std::pair<int64_t, int64_t>, Way> ways;
  std::vector<double> capacities;
  LaneCosts costs;
};

} // namespace mlir::ncclx
#endif // NCCLX_ANALYSIS_TOPOLOGYCOST_H
