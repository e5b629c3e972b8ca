//===- Kfd.cpp ------------------------------------------------------------===//
//
// A folder for each node (processors have some too), with a file of lines "name value"; links are
// in folders of nodes. Names and codes: Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c and
// kfd_crat.h.
//
//===----------------------------------------------------------------------===//
#include "Kfd.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <fmt/format.h>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
constexpr uint64_t xgmiLink = 11; ///< CRAT_IOLINK_TYPE_XGMI
constexpr uint64_t mostWires = 64;

/// 90402 is gfx942, 90010 gfx90a.
std::string gfxName(uint64_t version) {
  return fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
}
} // namespace

std::vector<FoundGpu> topology::readKfd(const Sysfs &sysfs) {
  const std::string folder = "/sys/class/kfd/kfd/topology/nodes";
  std::vector<std::pair<unsigned, FoundGpu>> gpus; // by node
  for (const std::string &name : sysfs.list(folder)) {
    unsigned node;
    if (llvm::StringRef(name).getAsInteger(10, node))
      continue;
    std::map<std::string, uint64_t> values = sysfs.properties(folder + "/" + name + "/properties");
    if (values["simd_count"] == 0 || values["vendor_id"] == 0)
      continue; // a processor, or nothing that may be seen
    FoundGpu gpu;
    uint64_t at = values["location_id"];
    gpu.busId = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", values["domain"], at >> 8 & 0xff,
                            at >> 3 & 0x1f, at & 7);
    gpu.vendor = unsigned(values["vendor_id"]);
    gpu.device = unsigned(values["device_id"]);
    gpu.gcn = gfxName(values["gfx_target_version"]);
    gpu.computeUnits =
        unsigned(values["simd_count"] / std::max<uint64_t>(1, values["simd_per_cu"]));
    gpus.emplace_back(node, std::move(gpu));
  }
  std::sort(gpus.begin(), gpus.end(), [](auto &a, auto &b) { return a.first < b.first; });
  std::vector<FoundGpu> found;
  for (auto &[node, gpu] : gpus) {
    std::string links = fmt::format("{}/{}/io_links", folder, node);
    for (const std::string &name : sysfs.list(links)) {
      std::map<std::string, uint64_t> values = sysfs.properties(links + "/" + name + "/properties");
      auto other = std::find_if(gpus.begin(), gpus.end(), [&](auto &candidate) {
        return candidate.first == values["node_to"];
      });
      if (values["type"] != xgmiLink || other == gpus.end() || other->first == node)
        continue; // PCI, or to a processor
      // One wire gives the least rate, all together the most.
      uint64_t least = values["min_bandwidth"], most = values["max_bandwidth"];
      uint64_t count = least ? std::clamp<uint64_t>(most / least, 1, mostWires) : 1;
      gpu.links.push_back({other->second.busId, "0x120000", unsigned(count)});
    }
    found.push_back(gpu);
  }
  return found;
}
