//===- Tiers.h - Ranks in equal nested blocks -------------------*- C++ -*-===//
#ifndef NCCLX_TOPOLOGY_TIERS_H
#define NCCLX_TOPOLOGY_TIERS_H

#include "ncclx/Topology/Resources.h"

namespace mlir::ncclx::topology {

/// One level of a machine whose ranks lie in nested blocks of consecutive numbers, all of one size.
struct Tier {
  std::string name;   ///< what it joins: "rank", "host", "rack", "zone"
  int64_t size = 1;   ///< how many of them, more than one
  int64_t stride = 1; ///< ranks in each
  /// What each rank may send across this tier, and receive, while all do: of the slowest rank.
  double bytesPerSecond = 0;
  double latency = 0; ///< seconds from a rank to its partner across this tier, of the farthest
  /// What a transfer across the tier goes through: numbers of Tiers::ports.
  std::vector<unsigned> ports;
};

struct Tiers {
  std::vector<Tier> list;    ///< outermost first
  std::vector<double> ports; ///< bytes/s that one rank has of each, of the slowest rank
  double memory = 0;         ///< bytes/s of a rank's memory, of the slowest; 0: unknown
  std::string why;           ///< why there are fewer than two, where there are
};

/// The tiers of the ranks of `topology`, by host, rack, zone and data centre. Links and memories
/// whose names differ in numbers alone are of one kind, and each is taken to be as slow as the
/// slowest of its kind: a time that follows from that is one for all ranks. Requires a topology
/// that validated without errors.
Tiers findTiers(const Topology &topology, ResourceModel &resources);

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOPOLOGY_TIERS_H
