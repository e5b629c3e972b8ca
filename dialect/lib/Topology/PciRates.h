//===- PciRates.h - Rates of PCI Express and of links between sockets -----===//
#ifndef NCCLX_LIB_TOPOLOGY_PCIRATES_H
#define NCCLX_LIB_TOPOLOGY_PCIRATES_H

#include "ncclx/Topology/Topology.h"

namespace mlir::ncclx::topology {

/// Rates of a PCI Express link as the kernel and NCCL spell it ("16.0 GT/s PCIe", "16"). What is
/// empty or unknown is taken as NCCL takes it (Gen 3, 16 lanes), and `problem` says so.
Rates pciRates(llvm::StringRef speed, llvm::StringRef width, std::string &problem);

/// Rates between two sockets by NCCL's rules for the CPU; both rates are its planning figure.
Rates socketRates(llvm::StringRef arch, llvm::StringRef vendor, int family, int model);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_PCIRATES_H
