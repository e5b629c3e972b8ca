//===- Discover.cpp - This machine as a topology --------------------------===//
#include "Kfd.h"
#include "Measure.h"
#include "Nvml.h"
#include "PciRates.h"
#include "Sysfs.h"
#include "ncclx/Topology/IO.h"
#include "ncclx/Topology/Make.h"
#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <pugixml.hpp>
#include <sched.h>
#include <sstream>
#include <thread>
#include <vector>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
/// Processors this process may run on: containers and taskset count.
unsigned usableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

/// Three digits of a measurement are its worth, and short fractions keep later sums small.
Rational rounded(double value) {
  int64_t scale = 1;
  while (value / double(scale) >= 1000)
    scale *= 10;
  return Rational(std::max<int64_t>(1, int64_t(value / double(scale) + 0.5))) * Rational(scale);
}

std::string count(uint64_t bytes) { return fmt::format("{:.4g} GB", double(bytes) / 1e9); }

class Discovery {
public:
  explicit Discovery(const DiscoverOptions &options)
      : options(options), sysfs(options.root), numa(sysfs.numaNodes()), cpu(sysfs.processor()),
        ports(sysfs.verbsPorts()) {}
  ReadResult run();

private:
  void report(Severity severity, std::string path, const char *rule, std::string message) {
    result.diagnostics.push_back({severity, std::move(path), 0, rule, std::move(message)});
  }
  void gpuMachine(const std::vector<FoundGpu> &gpus);
  void processMachine();
  pugi::xml_node cpuElement(unsigned node);
  pugi::xml_node pciElement(const std::string &busId, const FoundGpu *gpu);
  void addPorts(Topology &topo) const;
  /// Ports that carry something; the others are named.
  std::vector<Sysfs::Port> activePorts();
  unsigned cores() const {
    if (options.root.empty())
      return usableCores();
    unsigned sum = 0;
    for (const Sysfs::Numa &node : numa)
      sum += node.cores;
    return std::max(1u, sum);
  }

  const DiscoverOptions &options;
  Sysfs sysfs;
  std::vector<Sysfs::Numa> numa;
  Sysfs::Processor cpu;
  std::vector<Sysfs::Port> ports;
  pugi::xml_document document; ///< a machine of GPUs, as NCCL would dump it
  ReadResult result;
};
} // namespace

pugi::xml_node Discovery::cpuElement(unsigned node) {
  pugi::xml_node system = document.child("system");
  std::string id = std::to_string(node);
  if (pugi::xml_node found = system.find_child_by_attribute("cpu", "numaid", id.c_str()))
    return found;
  pugi::xml_node element = system.append_child("cpu");
  element.append_attribute("numaid") = id.c_str();
  element.append_attribute("arch") = cpu.arch.c_str();
  element.append_attribute("vendor") = cpu.vendor.c_str();
  element.append_attribute("familyid") = cpu.family;
  element.append_attribute("modelid") = cpu.model;
  return element;
}

/// The element of a device below those of the bridges above it. Where sysfs does not show the
/// device (in a container), what the driver told.
pugi::xml_node Discovery::pciElement(const std::string &busId, const FoundGpu *gpu) {
  std::vector<Sysfs::PciDevice> path = sysfs.pciPath(busId);
  if (path.empty()) {
    Sysfs::PciDevice device;
    device.busId = busId;
    device.deviceClass = gpu ? "0x030200" : "0x020000";
    path.push_back(device);
    report(Severity::warning, busId, "missing-device",
           fmt::format("{} is not below /sys/bus/pci/devices: its bridges are not known", busId));
  }
  if (Sysfs::PciDevice &device = path.back(); gpu) {
    device.vendor = fmt::format("{:#06x}", gpu->vendor);
    device.device = fmt::format("{:#06x}", gpu->device);
    constexpr const char *speeds[] = {"",          "2.5 GT/s",  "5.0 GT/s", "8.0 GT/s",
                                      "16.0 GT/s", "32.0 GT/s", "64.0 GT/s"};
    bool told = llvm::StringRef(device.speed).contains("GT/s");
    if (!told && gpu->pcieGeneration < std::size(speeds) && gpu->pcieLanes > 0) {
      device.speed = speeds[gpu->pcieGeneration];
      device.width = std::to_string(gpu->pcieLanes);
    }
  }
  pugi::xml_node at = cpuElement(sysfs.numaOf(busId));
  for (const Sysfs::PciDevice &device : path) {
    pugi::xml_node next = at.find_child_by_attribute("pci", "busid", device.busId.c_str());
    if (!next) {
      next = at.append_child("pci");
      next.append_attribute("busid") = device.busId.c_str();
      next.append_attribute("class") = device.deviceClass.c_str();
      next.append_attribute("vendor") = device.vendor.c_str();
      next.append_attribute("device") = device.device.c_str();
      next.append_attribute("link_speed") = device.speed.c_str();
      next.append_attribute("link_width") = device.width.c_str();
    }
    at = next;
  }
  return at;
}

std::vector<Sysfs::Port> Discovery::activePorts() {
  std::vector<Sysfs::Port> active;
  for (const Sysfs::Port &port : ports) {
    if (port.megabits > 0 && llvm::StringRef(port.state).contains("ACTIVE"))
      active.push_back(port);
    else
      report(Severity::note, fmt::format("{} port {}", port.device, port.number), "port-down",
             fmt::format("state '{}': left out", port.state));
  }
  return active;
}

/// Writes what was found as NCCL's system file and reads that: one way to make a machine of it.
void Discovery::gpuMachine(const std::vector<FoundGpu> &gpus) {
  document.append_child("system").append_attribute("version") = "1";
  for (const Sysfs::Numa &node : numa)
    cpuElement(node.id);
  unsigned index = 0;
  for (const FoundGpu &gpu : gpus) {
    pugi::xml_node element = pciElement(gpu.busId, &gpu).append_child("gpu");
    element.append_attribute("dev") = index;
    element.append_attribute("rank") = index++;
    bool isAmd = !gpu.gcn.empty();
    if (isAmd)
      element.append_attribute("gcn") = gpu.gcn.c_str();
    if (unsigned sm = isAmd ? gpu.computeUnits : gpu.capability) // as RCCL and as NCCL write it
      element.append_attribute("sm") = sm;
    for (const FoundGpu::Link &link : gpu.links) {
      auto isTarget = [&](const FoundGpu &other) { return other.busId == link.target; };
      bool peer = std::any_of(gpus.begin(), gpus.end(), isTarget);
      pugi::xml_node wire = element.append_child(isAmd ? "xgmi" : "nvlink");
      wire.append_attribute("target") = link.target.c_str();
      wire.append_attribute("count") = link.count;
      wire.append_attribute("tclass") = !link.targetClass.empty() ? link.targetClass.c_str()
                                        : peer                    ? "0x030200"
                                                                  : "0x068000";
    }
  }
  for (const Sysfs::Port &port : activePorts()) {
    pugi::xml_node pci = pciElement(port.busId, nullptr);
    pugi::xml_node nic = pci.child("nic") ? pci.child("nic") : pci.append_child("nic");
    pugi::xml_node net = nic.append_child("net");
    std::string name = port.device + (port.number > 1 ? fmt::format(":{}", port.number) : "");
    net.append_attribute("name") = name.c_str();
    net.append_attribute("speed") = static_cast<long long>(port.megabits);
    net.append_attribute("port") = port.number;
    net.append_attribute("guid") = port.guid.c_str();
  }
  std::ostringstream text;
  document.save(text);
  ReadResult read = readNcclXml(text.str(), "this-machine");
  for (Diagnostic &d : read.diagnostics) {
    d.line = 0; // of a file that nobody sees
    result.diagnostics.push_back(std::move(d));
  }
  if (!read.topology)
    return;
  Topology &topo = *read.topology;
  topo.hosts[0].cores = cores();
  for (Node &node : topo.nodes) {
    node.line = 0;
    for (const Sysfs::Numa &one : numa)
      if (node.kind == NodeKind::cpu && node.name == fmt::format("cpu{}", one.id)) {
        node.cores = one.cores;
        node.memoryBytes = one.memoryBytes;
      }
  }
  for (Link &link : topo.links)
    link.line = 0;
  result.topology = std::move(topo);
}

/// Ports at the memories of their NUMA nodes, and one network behind them.
void Discovery::addPorts(Topology &topo) const {
  int net = -1;
  for (const Sysfs::Port &port : ports) {
    if (port.megabits == 0 || !llvm::StringRef(port.state).contains("ACTIVE"))
      continue;
    auto add = [&](NodeKind kind, std::string name) {
      Node node;
      node.kind = kind;
      node.name = std::move(name);
      topo.nodes.push_back(node);
      return unsigned(topo.nodes.size()) - 1;
    };
    if (net < 0)
      net = int(add(NodeKind::net, "net"));
    unsigned nic =
        add(NodeKind::nic, port.device + (port.number > 1 ? fmt::format(":{}", port.number) : ""));
    topo.nodes[nic].busId = port.busId;
    unsigned home = 0, node = sysfs.numaOf(port.busId);
    for (unsigned i = 0; i < numa.size(); ++i)
      if (numa[i].id == node)
        home = i;
    Rational bytes = Rational(int64_t(port.megabits)) * Rational(125'000);
    for (auto [a, b, kind] :
         {std::tuple(home, nic, LinkKind::nic), std::tuple(nic, home, LinkKind::nic),
          std::tuple(nic, unsigned(net), LinkKind::net),
          std::tuple(unsigned(net), nic, LinkKind::net)})
      topo.links.push_back({a, b, kind, 1, {bytes, bytes}, defaultLatencyNs(kind), 0});
  }
}

void Discovery::processMachine() {
  ProcessHost host;
  host.name = "this-machine";
  host.cores = cores();
  host.ranks = options.ranks ? options.ranks : host.cores;
  const char *path = "hosts[0]";
  if (options.measure) {
    host.coreCopyBytesPerSec = rounded(copyRate(1));
    host.memoryBytesPerSec = rounded(copyRate(std::min(host.cores, 16u)));
    host.memoryBytesPerSec = std::max(host.memoryBytesPerSec, host.coreCopyBytesPerSec,
                                      [](const Rational &a, const Rational &b) { return a < b; });
    host.coreF32Flops = rounded(multiplyRate());
    host.coreBf16Flops = host.coreF32Flops;
    report(Severity::note, path, "measured",
           "copy and multiply rates were measured just now, for some milliseconds, and "
           "include whatever else ran; bf16 is counted as f32");
  } else {
    host.coreCopyBytesPerSec = 5'000'000'000;
    host.memoryBytesPerSec = 10'000'000'000;
    host.coreF32Flops = host.coreBf16Flops = 10'000'000'000;
    report(Severity::note, path, "assumed-rate",
           "copy and multiply rates are assumed, not measured");
  }
  if (options.sockets) {
    std::optional<LoopbackRates> measured;
    if (options.measure)
      measured = loopbackRates();
    host.socketBytesPerSec = measured ? rounded(measured->bytesPerSec) : 2'000'000'000;
    host.latencyNs =
        measured ? rounded(measured->seconds * 1e9) : Rational(2) * defaultLatencyNs(LinkKind::tcp);
    if (!measured)
      report(options.measure ? Severity::warning : Severity::note, path, "assumed-rate",
             options.measure
                 ? "no connection with this machine itself could be measured: its rate is assumed"
                 : "the rate of TCP is assumed, not measured");
  }
  for (const Sysfs::Numa &node : numa)
    host.numa.push_back({node.cores, node.memoryBytes});
  if (numa.size() > 1) {
    host.numaLinkBytesPerSec = socketRates(cpu.arch, cpu.vendor, cpu.family, cpu.model).payload;
    report(Severity::note, path, "numa",
           fmt::format("{} NUMA nodes have equal parts of the memory's rate and of the ranks, and "
                       "NCCL's {:.0f} GB/s between two of them: assumed",
                       numa.size(), host.numaLinkBytesPerSec.toDouble() / 1e9));
  }
  Topology topo = makeProcessHost(host);
  activePorts(); // names the others
  addPorts(topo);
  Diagnostics found = topo.validate();
  result.diagnostics.insert(result.diagnostics.end(), found.begin(), found.end());
  if (!hasErrors(result.diagnostics))
    result.topology = std::move(topo);
}

ReadResult Discovery::run() {
  result.format = "this machine";
  for (const Sysfs::Numa &node : numa)
    report(Severity::note, fmt::format("NUMA node {}", node.id), "numa-node",
           fmt::format("{} processor(s) ({}), {}", node.cores, node.cpus, count(node.memoryBytes)));
  std::vector<FoundGpu> gpus;
  if (options.ranks == 0 && !options.sockets) {
    NvmlReport nvml = readNvml(options.nvml);
    if (!nvml.absent.empty())
      report(Severity::note, "gpus", "no-nvml", "no GPUs of NVIDIA are looked for: " + nvml.absent);
    if (!nvml.problem.empty())
      report(Severity::warning, "gpus", "nvml", nvml.problem);
    gpus = std::move(nvml.gpus);
    for (FoundGpu &gpu : readKfd(sysfs))
      gpus.push_back(std::move(gpu));
  }
  if (gpus.empty())
    processMachine();
  else
    gpuMachine(gpus);
  return std::move(result);
}

ReadResult topology::discoverThisMachine(const DiscoverOptions &options) {
  return Discovery(options).run();
}
