//===- Kfd.h - What AMD's kernel driver says --------------------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_KFD_H
#define NCCLX_LIB_TOPOLOGY_KFD_H

#include "FoundGpu.h"
#include "Sysfs.h"

namespace mlir::ncclx::topology {

/// The GPUs below /sys/class/kfd/kfd/topology, in the order of their nodes, with their xGMI links.
/// Empty where there is no such driver. GPUs that this process may not see have no properties there
/// and are left out.
std::vector<FoundGpu> readKfd(const Sysfs &sysfs);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_KFD_H
