//===- Topology.h - Topologies in the IR -------------------------*- C++ -*-===//
#ifndef NCCLX_NCCLX_TOPOLOGY_H
#define NCCLX_NCCLX_TOPOLOGY_H

#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Topology/IO.h"

namespace mlir::ncclx {

/// The machine that an attribute describes. One that verified has a topology.
topology::ReadResult readTopology(TopologyAttr attribute);

} // namespace mlir::ncclx

#endif // NCCLX_NCCLX_TOPOLOGY_H
