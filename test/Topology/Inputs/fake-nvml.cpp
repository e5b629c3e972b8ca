//===- fake-nvml.cpp - A management library of GPUs that are not there ----===//
//
// The functions of NVIDIA's nvml.h that discovery asks. NCCLX_FAKE_NVML picks the scene: two-h200
// (also by default), lost-link, lost-gpu, mesh, no-driver.
//
//===----------------------------------------------------------------------===//
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {
struct PciInfo {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};
using Device = struct nvmlDevice *;
enum { success = 0, invalidArgument = 2, notSupported = 3, driverNotLoaded = 9, gpuIsLost = 15 };

bool scene(const char *name) {
  const char *chosen = std::getenv("NCCLX_FAKE_NVML");
  return std::strcmp(chosen ? chosen : "two-h200", name) == 0;
}
unsigned gpus() { return scene("mesh") ? 4 : 2; }
unsigned indexOf(Device device) { return unsigned(reinterpret_cast<size_t>(device)) - 1; }
void fill(PciInfo *info, unsigned bus, unsigned id) {
  std::snprintf(info->busId, sizeof info->busId, "00000000:%02X:00.0", bus);
  info->bus = bus;
  info->pciDeviceId = id;
}
unsigned busOf(unsigned gpu) { return 0x19 + 0x22 * gpu; }
} // namespace

extern "C" {
int nvmlInit_v2() { return scene("no-driver") ? driverNotLoaded : success; }
int nvmlShutdown() { return success; }
const char *nvmlErrorString(int code) {
  return code == driverNotLoaded ? "Driver Not Loaded"
         : code == gpuIsLost     ? "GPU is lost"
                                 : "Not Supported";
}
int nvmlDeviceGetCount_v2(unsigned *count) {
  *count = gpus();
  return success;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
  if (index >= gpus())
    return invalidArgument;
  if (index == 1 && scene("lost-gpu"))
    return gpuIsLost;
  *device = reinterpret_cast<Device>(size_t(index) + 1);
  return success;
}
int nvmlDeviceGetPciInfo_v3(Device device, PciInfo *info) {
  fill(info, busOf(indexOf(device)), scene("mesh") ? 0x233010de : 0x233510de);
  return success;
}
int nvmlDeviceGetCudaComputeCapability(Device, int *major, int *minor) {
  *major = 9;
  *minor = 0;
  return success;
}
int nvmlDeviceGetMaxPcieLinkGeneration(Device, unsigned *generation) {
  *generation = 5;
  return success;
}
int nvmlDeviceGetMaxPcieLinkWidth(Device, unsigned *lanes) {
  *lanes = 16;
  return success;
}
int nvmlDeviceGetNvLinkState(Device device, unsigned link, int *active) {
  if (link >= 18)
    return invalidArgument;
  *active = !(scene("lost-link") && indexOf(device) == 1 && link < 5);
  return success;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, PciInfo *info) {
  if (scene("mesh")) { // six links to each of the three others
    unsigned other = link / 6;
    fill(info, busOf(other + (other >= indexOf(device))), 0x233010de);
  } else {
    fill(info, link < 5 ? 0xc4 : link < 10 ? 0xc5 : link < 14 ? 0xc6 : 0xc7, 0x22a310de);
  }
  return success;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(Device, unsigned, int *type) {
  if (scene("mesh")) // an older driver
    return notSupported;
  *type = 2;
  return success;
}
}
