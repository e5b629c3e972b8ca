//===- Nvml.cpp -----------------------------------------------------------===//
//
// The library is loaded at run time, so the few types and functions that are asked are declared
// here as NVIDIA's nvml.h (12.x) documents them.
//
//===----------------------------------------------------------------------===//
#include "Nvml.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include <algorithm>
#include <dlfcn.h>
#include <fmt/format.h>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
using Device = struct nvmlDevice *;
constexpr int success = 0;
constexpr unsigned mostLinks = 36; // 18 on Hopper and Blackwell

struct PciInfo { // nvmlPciInfo_t
  char busIdLegacy[16];
  unsigned domain, bus, device;
  unsigned pciDeviceId; // device << 16 | vendor
  unsigned pciSubSystemId;
  char busId[32];
};

/// A name in the library; calls answer "not supported" where it has no such function.
template <typename... Args> struct Function {
  int (*entry)(Args...) = nullptr;
  void find(void *library, const char *name) {
    entry = reinterpret_cast<int (*)(Args...)>(dlsym(library, name));
  }
  int operator()(Args... args) const {
    constexpr int notSupported = 3;
    return entry ? entry(args...) : notSupported;
  }
};

struct Library {
  void *handle;
  Function<> init, shutdown;
  Function<unsigned *> count;
  Function<unsigned, Device *> byIndex;
  Function<Device, PciInfo *> pci;
  Function<Device, int *, int *> capability;
  Function<Device, unsigned *> generation, lanes;
  Function<Device, unsigned, int *> linkState, linkType;
  Function<Device, unsigned, PciInfo *> linkPci;
  const char *(*errorText)(int) = nullptr;

  explicit Library(void *handle) : handle(handle) {
    init.find(handle, "nvmlInit_v2");
    shutdown.find(handle, "nvmlShutdown");
    count.find(handle, "nvmlDeviceGetCount_v2");
    byIndex.find(handle, "nvmlDeviceGetHandleByIndex_v2");
    pci.find(handle, "nvmlDeviceGetPciInfo_v3");
    capability.find(handle, "nvmlDeviceGetCudaComputeCapability");
    generation.find(handle, "nvmlDeviceGetMaxPcieLinkGeneration");
    lanes.find(handle, "nvmlDeviceGetMaxPcieLinkWidth");
    linkState.find(handle, "nvmlDeviceGetNvLinkState");
    linkType.find(handle, "nvmlDeviceGetNvLinkRemoteDeviceType");
    linkPci.find(handle, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    errorText = reinterpret_cast<const char *(*)(int)>(dlsym(handle, "nvmlErrorString"));
  }
  ~Library() { dlclose(handle); }
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;

  [[nodiscard]] std::string error(int code) const {
    const char *text = errorText ? errorText(code) : nullptr;
    return text ? text : fmt::format("error {}", code);
  }
};

/// "00000000:0F:00.0" as sysfs writes it.
std::string busIdOf(const PciInfo &info) {
  llvm::StringRef text(
      info.busId, std::min(sizeof info.busId, std::size_t(std::find(std::begin(info.busId),
                                                                    std::end(info.busId), '\0') -
                                                          std::begin(info.busId))));
  std::string lower = text.lower();
  return lower.size() == 16 && llvm::StringRef(lower).starts_with("0000") ? lower.substr(4) : lower;
}

void readLinks(const Library &nvml, Device device, FoundGpu &gpu) {
  for (unsigned link = 0; link < mostLinks; ++link) {
    int active = 0;
    PciInfo remote = {};
    if (nvml.linkState(device, link, &active) != success || active != 1 ||
        nvml.linkPci(device, link, &remote) != success)
      continue;
    constexpr int unknown = 255;
    int type = unknown;
    if (nvml.linkType(device, link, &type) != success)
      type = unknown;
    std::string target = busIdOf(remote);
    // 0: a GPU, 1: a processor, 2: a switch. Old drivers do not say: the class of a device is in
    // sysfs, and what is no GPU is a switch.
    const char *targetClass = type == 0 ? "0x030200" : type == 1 ? "0x068001" : "0x068000";
    if (type == unknown)
      targetClass = "";
    auto same = std::find_if(gpu.links.begin(), gpu.links.end(),
                             [&](const FoundGpu::Link &l) { return l.target == target; });
    if (same == gpu.links.end())
      gpu.links.push_back({target, targetClass, 1});
    else
      ++same->count;
  }
}
} // namespace

NvmlReport topology::readNvml(const std::string &name) {
  NvmlReport report;
  // The loader would wait for ever for somebody to write into a pipe.
  if (llvm::sys::fs::file_status status; !llvm::sys::fs::status(name, status) &&
                                         status.type() == llvm::sys::fs::file_type::fifo_file) {
    report.absent = name + ": is a pipe";
    return report;
  }
  void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    report.absent = why ? why : name + " cannot be loaded";
    return report;
  }
  Library nvml(handle);
  if (int code = nvml.init(); code != success) {
    report.problem = "nvmlInit: " + nvml.error(code);
    return report;
  }
  unsigned count = 0;
  if (int code = nvml.count(&count); code != success)
    report.problem = "nvmlDeviceGetCount: " + nvml.error(code);
  for (unsigned i = 0; i < count && i < 1024; ++i) {
    Device device = nullptr;
    PciInfo pci = {};
    int code = nvml.byIndex(i, &device);
    if (code == success)
      code = nvml.pci(device, &pci);
    if (code != success) { // a GPU that fell off the bus leaves the others
      report.problem = fmt::format("GPU {}: {}", i, nvml.error(code));
      continue;
    }
    FoundGpu gpu;
    gpu.busId = busIdOf(pci);
    gpu.vendor = pci.pciDeviceId & 0xffff;
    gpu.device = pci.pciDeviceId >> 16;
    int major = 0, minor = 0;
    if (nvml.capability(device, &major, &minor) == success)
      gpu.capability = unsigned(10 * major + minor);
    if (nvml.generation(device, &gpu.pcieGeneration) != success)
      gpu.pcieGeneration = 0;
    if (nvml.lanes(device, &gpu.pcieLanes) != success)
      gpu.pcieLanes = 0;
    readLinks(nvml, device, gpu);
    report.gpus.push_back(std::move(gpu));
  }
  nvml.shutdown();
  return report;
}
