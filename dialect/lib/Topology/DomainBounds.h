//===- DomainBounds.h - Bounds of groups too large for maximum flows ------===//
#ifndef NCCLX_LIB_TOPOLOGY_DOMAINBOUNDS_H
#define NCCLX_LIB_TOPOLOGY_DOMAINBOUNDS_H

#include "ncclx/Topology/Bounds.h"

namespace mlir::ncclx::topology {

/// The cuts round each rank, host, rack, zone and data centre, in time linear in the topology. They
/// bind every schedule, like all cuts; they need not be the narrowest.
std::vector<LowerBound> domainBounds(const Topology &topology, const BoundQuery &query,
                                     LinkSet set);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_DOMAINBOUNDS_H
