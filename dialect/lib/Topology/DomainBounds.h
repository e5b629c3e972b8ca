//===- DomainBounds.h - Bounds of groups too large for maximum flows ------===//
#ifndef NCCLX_LIB_TOPOLOGY_DOMAINBOUNDS_H
#define NCCLX_LIB_TOPOLOGY_DOMAINBOUNDS_H

#include "ncclx/Topology/Bounds.h"

namespace mlir::ncclx::topology {

/// A group in parts, and what each part's links carry out and in.
struct Partition {
  const char *what;      ///< "rank", "host", "rack", "zone", "data centre"
  std::vector<int> part; ///< by node, -1: in no part
  std::vector<int64_t> members;
  std::vector<Rational> out, in;
};
/// By rank, host, rack, zone and data centre, where those differ.
std::vector<Partition> domainPartitions(const Topology &topology, llvm::ArrayRef<unsigned> group,
                                        Rate rate, LinkSet set);

/// The cuts round each part of the query's group, in time linear in the topology. They bind every
/// schedule, like all cuts; they need not be the narrowest.
std::vector<LowerBound> domainBounds(const Topology &topology, const BoundQuery &query, LinkSet set,
                                     llvm::ArrayRef<Partition> partitions);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_DOMAINBOUNDS_H
