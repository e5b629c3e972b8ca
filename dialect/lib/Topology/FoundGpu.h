//===- FoundGpu.h - What a driver says of a GPU -----------------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_FOUNDGPU_H
#define NCCLX_LIB_TOPOLOGY_FOUNDGPU_H

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::ncclx::topology {

struct FoundGpu {
  std::string busId; ///< "0000:0f:00.0"
  unsigned vendor = 0, device = 0;
  unsigned capability = 0;                    ///< NVIDIA: 90
  std::string gcn;                            ///< AMD: "gfx942"
  unsigned computeUnits = 0;                  ///< AMD
  unsigned pcieGeneration = 0, pcieLanes = 0; ///< 0: not told
  /// Active NVLinks or xGMI links: the PCI id at the other end and its class, as NCCL writes it
  /// ("0x068000").
  struct Link {
    std::string target, targetClass;
    unsigned count = 0;
  };
  std::vector<Link> links;
};

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_FOUNDGPU_H
