//===- Constants.cpp - What GPUs and links give, and who says so ----------===//
//
// Sources
//   [nccl] NCCL src/graph/topo.h: SM70/SM80_NVLINK_BW 20.0, SM86 12.0, SM90 20.6, SM100 40.1 GB/s
//          of payload a link; [rccl] the same file of RCCL: VEGA_XGMI_WIDTH 24, MI200 36,
//          GFX94X 48.
//   [nv]   NVIDIA's data sheets (V100, A100, H100, H200, B200, GB200), dense figures. Raw NVLink
//          rates: NVLink 2 to 4 carry 25 GB/s a direction and link, NVLink 5 50 GB/s. (nvidia-smi
//          shows 26.56 GB/s of signalling for NVLink 4; the data sheet's 900 GB/s a GPU, both
//          directions, is 18 x 2 x 25, and that is the figure taken.)
//   [amd]  AMD's data sheets (MI50, MI100, MI210 to MI300X). A GPU here is what the driver
//          calls one: a GCD of an MI250. xGMI 2 carries 46 GB/s a direction and link, xGMI 3 50,
//          MI300's 64, MI350's 76.8.
//   [ns3]  Measurements of MSCCL files on 8 MI300X, rouge3877/ns3-msccl-data: in 12.75 ms of an
//          all_gather of 1 GiB each of 7 blocks (ag_allpair_simple_x_1) writes 128 MiB to a peer
//          and as much at home, 21 GB/s; by ag_ring_simple_1_1 (14 times 128 MiB in 86.4 ms) 21.7.
//   [pci]  pci.ids, the PCI ID repository.
// Copy engines are cudaDeviceProp::asyncEngineCount where known (3 on A100 and later, 6 on V100)
// and two SDMA engines otherwise, an assumption: a schedule asks only whether there is one to
// spare.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Topology/Make.h"
#include <algorithm>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
Rational tera(int64_t tenths) { return Rational(tenths) * Rational(100'000'000'000); }
Rational giga(int64_t tenths) { return Rational(tenths) * Rational(100'000'000); }
// A direction of one link, raw and payload.
const Rates nvlink2 = {giga(250), giga(200)};
const Rates nvlink3 = {giga(250), giga(200)};
const Rates nvlink86 = {giga(140), giga(120)}; // 112.5 GB/s both ways over 4 links
const Rates nvlink4 = {giga(250), giga(206)};
const Rates nvlink5 = {giga(500), giga(401)};
const Rates xgmi2 = {giga(460), giga(240)};
const Rates xgmi3 = {giga(500), giga(360)};
const Rates xgmi4 = {giga(640), giga(480)};
const Rates xgmi5 = {giga(768), giga(480)};
constexpr uint64_t gib = uint64_t(1) << 30;
constexpr uint16_t nvidia = 0x10de, amd = 0x1002;

// PCI device ids by model [pci].
constexpr uint16_t v100[] = {0x1db1, 0x1db5};
constexpr uint16_t a100Sxm40[] = {0x20b0};
constexpr uint16_t a100Sxm80[] = {0x20b2};
constexpr uint16_t a100Pcie80[] = {0x20b5};
constexpr uint16_t a10g[] = {0x2237};
constexpr uint16_t h100Sxm[] = {0x2330};
constexpr uint16_t h100Pcie[] = {0x2331};
constexpr uint16_t h200Sxm[] = {0x2335};
constexpr uint16_t b200[] = {0x2901};
constexpr uint16_t gb200[] = {0x2941};
constexpr uint16_t b300[] = {0x3182};
constexpr uint16_t gb300[] = {0x31c2, 0x31c3};
constexpr uint16_t mi50[] = {0x66a1};
constexpr uint16_t mi100[] = {0x738c};
constexpr uint16_t mi210[] = {0x740f};
constexpr uint16_t mi250[] = {0x740c};
constexpr uint16_t mi250x[] = {0x7408};
constexpr uint16_t mi300a[] = {0x74a0};
constexpr uint16_t mi300x[] = {0x74a1, 0x74b5}; // the second seen from a virtual machine
constexpr uint16_t mi325x[] = {0x74a5};
constexpr uint16_t mi350x[] = {0x75a0};
constexpr uint16_t mi355x[] = {0x75a3};
} // namespace

const std::vector<KnownGpu> &topology::knownGpus() {
  // name, arch, SMs, bf16 and f32 peak, HBM rate and size, copy engines, W. The first of an
  // architecture is what is guessed for it. V100 and MI50 have no bf16: their f32 rate stands
  // there.
  static const std::vector<KnownGpu> table = {
      {{"V100-SXM2", "sm_70", 80, tera(157), tera(157), giga(9000), 32 * gib, 6, 300},
       LinkKind::nvlink,
       nvlink2,
       nvidia,
       v100},
      {{"A100-SXM-80GB", "sm_80", 108, tera(3120), tera(195), giga(20390), 80 * gib, 3, 400},
       LinkKind::nvlink,
       nvlink3,
       nvidia,
       a100Sxm80},
      {{"A100-SXM-40GB", "sm_80", 108, tera(3120), tera(195), giga(15550), 40 * gib, 3, 400},
       LinkKind::nvlink,
       nvlink3,
       nvidia,
       a100Sxm40},
      {{"A100-PCIe-80GB", "sm_80", 108, tera(3120), tera(195), giga(19350), 80 * gib, 3, 300},
       LinkKind::nvlink,
       nvlink3,
       nvidia,
       a100Pcie80},
      {{"A10G", "sm_86", 80, tera(700), tera(350), giga(6000), 24 * gib, 2, 300},
       LinkKind::nvlink,
       nvlink86,
       nvidia,
       a10g},
      {{"H100-SXM", "sm_90", 132, tera(9894), tera(669), giga(33500), 80 * gib, 3, 700},
       LinkKind::nvlink,
       nvlink4,
       nvidia,
       h100Sxm},
      {{"H200-SXM", "sm_90", 132, tera(9894), tera(669), giga(48000), 141'000'000'000, 3, 700},
       LinkKind::nvlink,
       nvlink4,
       nvidia,
       h200Sxm},
      {{"H100-PCIe", "sm_90", 114, tera(7560), tera(510), giga(20000), 80 * gib, 3, 350},
       LinkKind::nvlink,
       nvlink4,
       nvidia,
       h100Pcie},
      {{"B200", "sm_100", 148, tera(22500), tera(750), giga(80000), 180'000'000'000, 3, 1000},
       LinkKind::nvlink,
       nvlink5,
       nvidia,
       b200},
      {{"GB200", "sm_100", 148, tera(25000), tera(800), giga(80000), 186'000'000'000, 3, 1200},
       LinkKind::nvlink,
       nvlink5,
       nvidia,
       gb200},
      // Blackwell Ultra: SMs as of Blackwell, an assumption.
      {{"B300", "sm_103", 148, tera(22500), tera(750), giga(80000), 288'000'000'000, 3, 1100},
       LinkKind::nvlink,
       nvlink5,
       nvidia,
       b300},
      {{"GB300", "sm_103", 148, tera(25000), tera(800), giga(80000), 288'000'000'000, 3, 1400},
       LinkKind::nvlink,
       nvlink5,
       nvidia,
       gb300},
      {{"MI50", "gfx906", 60, tera(134), tera(134), giga(10240), 16 * gib, 2, 300},
       LinkKind::xgmi,
       xgmi2,
       amd,
       mi50},
      {{"MI100", "gfx908", 120, tera(923), tera(231), giga(12288), 32 * gib, 2, 300},
       LinkKind::xgmi,
       xgmi2,
       amd,
       mi100},
      {{"MI250-GCD", "gfx90a", 104, tera(1811), tera(226), giga(16000), 64 * gib, 2, 250},
       LinkKind::xgmi,
       xgmi3,
       amd,
       mi250},
      {{"MI210", "gfx90a", 104, tera(1810), tera(226), giga(16000), 64 * gib, 2, 300},
       LinkKind::xgmi,
       xgmi3,
       amd,
       mi210},
      {{"MI250X-GCD", "gfx90a", 110, tera(1915), tera(239), giga(16000), 64 * gib, 2, 280},
       LinkKind::xgmi,
       xgmi3,
       amd,
       mi250x},
      {{"MI300X", "gfx942", 304, tera(13074), tera(1634), giga(53000), 192 * gib, 2, 750,
        giga(210)},
       LinkKind::xgmi,
       xgmi4,
       amd,
       mi300x},
      {{"MI300A", "gfx942", 228, tera(9806), tera(1226), giga(53000), 128 * gib, 2, 550},
       LinkKind::xgmi,
       xgmi4,
       amd,
       mi300a},
      {{"MI325X", "gfx942", 304, tera(13074), tera(1634), giga(60000), 256'000'000'000, 2, 1000},
       LinkKind::xgmi,
       xgmi4,
       amd,
       mi325x},
      {{"MI350X", "gfx950", 256, tera(23069), tera(1442), giga(80000), 288'000'000'000, 2, 1000},
       LinkKind::xgmi,
       xgmi5,
       amd,
       mi350x},
      {{"MI355X", "gfx950", 256, tera(25166), tera(1573), giga(80000), 288'000'000'000, 2, 1400},
       LinkKind::xgmi,
       xgmi5,
       amd,
       mi355x},
  };
  return table;
}

const KnownGpu *topology::findGpu(uint16_t pciVendor, uint16_t pciDevice) {
  for (const KnownGpu &gpu : knownGpus())
    if (gpu.pciVendor == pciVendor)
      for (uint16_t device : gpu.pciDevices)
        if (device == pciDevice)
          return &gpu;
  return nullptr;
}

const KnownGpu *topology::findGpu(llvm::StringRef modelName) {
  for (const KnownGpu &gpu : knownGpus())
    if (gpu.model.name == modelName)
      return &gpu;
  return nullptr;
}

Rates topology::assumedLinkRates(LinkKind kind, llvm::StringRef arch) {
  if (kind == LinkKind::xgmi) {
    if (arch == "gfx90a")
      return xgmi3;
    if (arch.starts_with("gfx94") || arch.starts_with("gfx95"))
      return xgmi4;
    return xgmi2;
  }
  unsigned sm = 0;
  if (!arch.consume_front("sm_") || arch.getAsInteger(10, sm) || sm >= 70)
    return sm >= 100 ? nvlink5 : sm >= 90 ? nvlink4 : sm == 86 ? nvlink86 : nvlink3;
  return {giga(200), giga(180)};
}

const KnownGpu *topology::guessGpu(llvm::StringRef arch) {
  for (const KnownGpu &gpu : knownGpus())
    if (gpu.model.arch == arch)
      return &gpu;
  return nullptr;
}

/// Assumptions, not measurements, but for the first: an all-gather of 1 KiB between two H200s takes
/// 1.86 us in a graph, an empty kernel 0.57 us; of the 1.3 us between, 1 us is taken for the two
/// links through the switch and the rest for the poll.
Rational topology::defaultLatencyNs(LinkKind kind) {
  switch (kind) {
  case LinkKind::nvlink:
    return 500;
  case LinkKind::xgmi:
    return 1000;
  case LinkKind::die:
    return 100;
  case LinkKind::c2c:
  case LinkKind::pci:
    return 250;
  case LinkKind::cpu:
    return 200;
  case LinkKind::shm:
    return 100;
  case LinkKind::nic:
    return 500;
  case LinkKind::net:
    return 500;
  case LinkKind::tcp:
    return 10000;
  }
  return 0;
}

Topology topology::makeProcessHost(const ProcessHost &spec) {
  Topology topo;
  topo.name = spec.name;
  Host host;
  host.name = spec.name;
  host.cores = spec.cores;
  host.coreF32Flops = spec.coreF32Flops;
  host.coreBf16Flops = spec.coreBf16Flops;
  topo.hosts.push_back(host);
  unsigned memories = std::max<size_t>(1, spec.numa.size());
  for (unsigned i = 0; i < memories; ++i) {
    Node memory;
    memory.name = memories == 1 ? "memory" : "memory" + std::to_string(i);
    memory.kind = NodeKind::memory;
    memory.throughput = spec.memoryBytesPerSec * Rational::make(1, memories);
    if (i < spec.numa.size()) {
      memory.cores = spec.numa[i].cores;
      memory.memoryBytes = spec.numa[i].memoryBytes;
    }
    topo.nodes.push_back(memory);
  }
  bool sockets = !spec.socketBytesPerSec.isZero();
  LinkKind kind = sockets ? LinkKind::tcp : LinkKind::shm;
  Rational rate = sockets ? spec.socketBytesPerSec : spec.coreCopyBytesPerSec;
  Rates own = {rate, rate};
  Rates between = {spec.numaLinkBytesPerSec, spec.numaLinkBytesPerSec};
  for (unsigned i = 0; i < memories; ++i)
    for (unsigned j = 0; j < memories; ++j)
      if (i != j)
        topo.links.push_back({i, j, LinkKind::shm, 1, between, defaultLatencyNs(LinkKind::cpu), 0});
  for (unsigned r = 0; r < spec.ranks; ++r) {
    Node process;
    process.name = "process" + std::to_string(r);
    process.kind = NodeKind::process;
    unsigned index = topo.nodes.size();
    topo.nodes.push_back(process);
    topo.ranks.push_back(index);
    Rational half = spec.latencyNs * Rational::make(1, 2);
    auto home = unsigned(uint64_t(r) * memories / spec.ranks);
    topo.links.push_back({index, home, kind, 1, own, half, 0});
    topo.links.push_back({home, index, kind, 1, own, half, 0});
  }
  return topo;
}
