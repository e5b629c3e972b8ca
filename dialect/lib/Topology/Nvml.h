//===- Nvml.h - What NVIDIA's management library says -----------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_NVML_H
#define NCCLX_LIB_TOPOLOGY_NVML_H

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::ncclx::topology {

struct NvmlGpu {
  std::string name;  ///< "NVIDIA H200"
  std::string busId; ///< "0000:0f:00.0"
  unsigned vendor = 0, device = 0;
  unsigned capability = 0; ///< 90
  uint64_t memoryBytes = 0;
  unsigned pcieGeneration = 0, pcieLanes = 0; ///< 0: not told
  /// Active NVLinks: the PCI id at the other end and its class, as NCCL writes it ("0x068000").
  struct Link {
    std::string target, targetClass;
    unsigned count = 0;
  };
  std::vector<Link> links;
};

struct NvmlReport {
  std::vector<NvmlGpu> gpus;
  std::string absent;  ///< why there is no library, or ""
  std::string problem; ///< what the library refused, or ""
};

/// Loads the library by that name, asks it, and unloads it.
NvmlReport readNvml(const std::string &library);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_NVML_H
