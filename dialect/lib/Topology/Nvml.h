//===- Nvml.h - What NVIDIA's management library says -----------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_NVML_H
#define NCCLX_LIB_TOPOLOGY_NVML_H

#include "FoundGpu.h"
#include <string>
#include <vector>

namespace mlir::ncclx::topology {

struct NvmlReport {
  std::vector<FoundGpu> gpus;
  std::string absent;  ///< why there is no library, or ""
  std::string problem; ///< what the library refused, or ""
};

/// Loads the library by that name, asks it, and unloads it.
NvmlReport readNvml(const std::string &library);

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_NVML_H
