//===- ReadNcclXml.cpp - NCCL's and RCCL's <system> files -----------------===//
//
// cpu > nested pci > gpu > nvlink or xgmi; nic > net. The reader makes a node of each GPU, socket,
// PCI bridge, NIC port and NVSwitch, and one `net` behind the ports; counts become links by the
// constants of the GPU's generation.
//
//===----------------------------------------------------------------------===//
#include "Findings.h"
#include "PciRates.h"
#include "ncclx/Topology/IO.h"
#include "ncclx/Topology/Make.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include <algorithm>
#include <fmt/format.h>
#include <pugixml.hpp>
#include <set>
#include <sstream>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;
using llvm::StringRef;

namespace {
/// Deeper files are refused: the walk recurses. Real ones are about ten deep.
constexpr unsigned maxDepth = 64;
/// More text, sockets or kinds of GPU are no machine; some of what follows takes their square.
constexpr size_t maxText = size_t(64) << 20;
constexpr size_t maxSockets = 1024, maxModels = 256;
/// Of unknown elements the first are kept.
constexpr size_t maxExtras = 10'000;
constexpr int64_t maxWires = 1024;
/// Faster ports are taken for a unit error: 3.2 Tb/s in Mb/s.
constexpr int64_t maxPortMbps = 3'200'000;

class XmlReader {
public:
  XmlReader(StringRef text, StringRef name) : text(text) {
    topo.name = name.str();
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n')
        newlines.push_back(i);
  }
  ReadResult run();

private:
  struct Place {
    std::string path;
    unsigned host = 0;
    int parent = -1; ///< node index of the enclosing bridge or socket
    unsigned depth = 0;
  };
  struct Gpu {
    unsigned node = 0;
    const KnownGpu *known = nullptr; ///< for the link rates; null: none known
    std::optional<int64_t> rank;
    int64_t dev = 0;
    int cpu = -1;
    unsigned parts = 1; ///< records of this GPU: 2 if it is split (mlopart)
  };
  struct Wire {
    size_t gpu = 0; ///< index into `gpus`
    std::string target, tclass, path;
    LinkKind kind = LinkKind::nvlink;
    unsigned count = 1;
    unsigned line = 0;
  };

  unsigned line(pugi::xml_node node) const { return lineAt(node.offset_debug()); }
  unsigned lineAt(ptrdiff_t offset) const {
    if (offset < 0)
      return 0;
    return 1 + unsigned(std::lower_bound(newlines.begin(), newlines.end(), size_t(offset)) -
                        newlines.begin());
  }
  void report(Severity severity, pugi::xml_node at, const std::string &path, const char *rule,
              std::string message) {
    found.add({severity, path, at ? line(at) : 0, rule, std::move(message)});
  }
  std::optional<int64_t> integer(pugi::xml_node node, const std::string &path,
                                 const char *attribute, int64_t low, int64_t high);
  unsigned addNode(Node node, pugi::xml_node at);
  void connect(unsigned a, unsigned b, LinkKind kind, const Rates &rates, unsigned count,
               unsigned atLine);
  void readSystem(pugi::xml_node system);
  void readCpu(pugi::xml_node cpu, const std::string &path);
  void readPci(pugi::xml_node pci, Place place);
  void readGpus(pugi::xml_node pci, const Place &place, const Rates &rates);
  void readGpu(pugi::xml_node gpu, pugi::xml_node pci, const Place &place, const Rates &rates,
               unsigned parts);
  void readC2c(pugi::xml_node c2c, const std::string &path, const Gpu &gpu);
  void readNic(pugi::xml_node nic, const Place &place, StringRef bundle);
  void readNet(pugi::xml_node net, const Place &place, StringRef bundle);
  void skipDevice(pugi::xml_node pci, const std::string &path);
  void unknown(pugi::xml_node node, const std::string &path);
  int addModel(pugi::xml_node gpu, pugi::xml_node pci, const std::string &path, unsigned parts,
               const KnownGpu *&known);
  void joinSockets();
  void joinWire(const Wire &wire);
  void numberRanks();

  StringRef text;
  std::vector<size_t> newlines;
  Topology topo;
  Findings found;
  std::vector<Gpu> gpus;
  std::vector<Wire> wires;
  std::vector<std::pair<unsigned, Rates>> sockets; ///< cpu node, its socket link's rates
  llvm::StringMap<int> nodeNames;
  /// A device's name: its bus id on its host. A fabric that reaches several hosts has no bus id;
  /// NCCL then writes ones, and means one switch.
  static std::string key(unsigned host, StringRef busId) {
    return busId.starts_with("fffffff") ? busId.str() : fmt::format("{}/{}", host, busId.str());
  }
  llvm::StringMap<unsigned> byBusId;             ///< by key(); of a split GPU, its first half
  llvm::StringMap<std::vector<unsigned>> gpusAt; ///< by key(): a GPU, or its halves
  std::set<std::string> assumedFor; ///< architectures whose assumption has been reported
  int net = -1;
  unsigned bareGpus = 0, bareNics = 0, bareUnknown = 0; ///< pci elements with no record inside
};

/// "0000:0F:00.0" and "00000000:0f:00.0" are one device.
std::string normalBusId(StringRef text) {
  std::string lower = text.trim().lower();
  StringRef rest = lower;
  size_t colon = rest.find(':');
  if (rest.count(':') == 2 && colon > 4 && rest.take_front(colon - 4).count('0') == colon - 4)
    return rest.drop_front(colon - 4).str();
  return lower;
}

/// Between the halves of a split GPU: NCCL's topo.h (MLOPART_LOC_BW), and what its 72 per cent are
/// of.
Rates dieRates() { return {3'600'000'000'000, 2'618'000'000'000}; }

std::optional<uint16_t> hexId(pugi::xml_node node, const char *attribute) {
  StringRef value = node.attribute(attribute).value();
  value.consume_front("0x");
  uint16_t id;
  if (value.getAsInteger(16, id))
    return std::nullopt;
  return id;
}
} // namespace

std::optional<int64_t> XmlReader::integer(pugi::xml_node node, const std::string &path,
                                          const char *attribute, int64_t low, int64_t high) {
  pugi::xml_attribute found = node.attribute(attribute);
  if (!found)
    return std::nullopt;
  int64_t value;
  if (StringRef(found.value()).trim().getAsInteger(10, value) || value < low || value > high) {
    report(Severity::error, node, path, "number",
           fmt::format("{}=\"{}\" must be a whole number from {} to {}", attribute, found.value(),
                       low, high));
    return std::nullopt;
  }
  return value;
}

unsigned XmlReader::addNode(Node node, pugi::xml_node at) {
  node.line = line(at);
  int &uses = nodeNames[node.name];
  if (uses++ > 0)
    node.name += fmt::format("#{}", uses);
  topo.nodes.push_back(std::move(node));
  return topo.nodes.size() - 1;
}

void XmlReader::connect(unsigned a, unsigned b, LinkKind kind, const Rates &rates, unsigned count,
                        unsigned atLine) {
  Rational latency = defaultLatencyNs(kind);
  topo.links.push_back({a, b, kind, count, rates, latency, atLine});
  topo.links.push_back({b, a, kind, count, rates, latency, atLine});
}

/// Keeps an element that has no meaning here as it is written.
void XmlReader::unknown(pugi::xml_node node, const std::string &path) {
  if (node.type() != pugi::node_element)
    return;
  StringRef tag = node.name();
  const char *home = llvm::StringSwitch<const char *>(tag)
                         .Case("cpu", "<system>")
                         .Case("pci", "<cpu> or <pci>")
                         .Case("gpu", "<pci>")
                         .Cases({"nvlink", "xgmi", "c2c"}, "<gpu>")
                         .Case("nic", "<cpu> or <pci>")
                         .Case("net", "<nic>")
                         .Default(nullptr);
  if (home)
    report(Severity::warning, node, path, "misplaced-element",
           fmt::format("<{}> belongs inside a {}; here it is kept and has no effect", tag.str(),
                       home));
  else
    report(Severity::warning, node, path, "unknown-element",
           fmt::format("<{}> is not an element this reader knows; it is kept and has no effect",
                       tag.str()));
  if (topo.extras.size() == maxExtras)
    return;
  std::ostringstream text;
  node.print(text, "", pugi::format_raw);
  topo.extras.push_back({path, text.str()});
}

void XmlReader::readSystem(pugi::xml_node system) {
  for (pugi::xml_node child : system) {
    std::string path = fmt::format("system/{}", child.name());
    if (StringRef(child.name()) == "cpu")
      readCpu(child, fmt::format("system/cpu[{}]", child.attribute("numaid").value()));
    else
      unknown(child, path);
  }
}

void XmlReader::readCpu(pugi::xml_node cpu, const std::string &path) {
  if (sockets.size() == maxSockets)
    return report(Severity::error, cpu, path, "count",
                  fmt::format("more than {} <cpu> elements", maxSockets));
  std::string hostName = cpu.attribute("host_hash").value();
  if (hostName.empty())
    hostName = "host0";
  Place place{path, 0, -1, 1};
  auto host = std::find_if(topo.hosts.begin(), topo.hosts.end(),
                           [&](const Host &h) { return h.name == hostName; });
  place.host = host - topo.hosts.begin();
  if (host == topo.hosts.end()) {
    topo.hosts.emplace_back();
    topo.hosts.back().name = hostName;
  }
  Node node;
  node.kind = NodeKind::cpu;
  node.host = place.host;
  StringRef numa = cpu.attribute("numaid").value();
  node.name = "cpu" + (numa.empty() ? std::to_string(sockets.size()) : numa.str());
  place.parent = int(addNode(node, cpu));
  sockets.push_back(
      {unsigned(place.parent),
       socketRates(cpu.attribute("arch").value(), cpu.attribute("vendor").value(),
                   cpu.attribute("familyid").as_int(), cpu.attribute("modelid").as_int())});
  for (pugi::xml_node child : cpu) {
    StringRef tag = child.name();
    if (tag == "pci")
      readPci(child, place);
    else if (tag == "nic")
      readNic(child, place, "");
    else
      unknown(child, path + "/" + tag.str());
  }
}

void XmlReader::skipDevice(pugi::xml_node pci, const std::string &path) {
  StringRef pciClass = pci.attribute("class").value();
  if (pciClass.empty()) {
    ++bareUnknown;
    report(Severity::warning, pci, path, "missing-class",
           "a <pci> element without class=\"...\" and without a record inside: what it is cannot "
           "be told");
  } else if (pciClass.starts_with("0x03") || pciClass.starts_with("0x12")) {
    ++bareGpus;
  } else if (pciClass.starts_with("0x02")) {
    ++bareNics;
  }
}

void XmlReader::readPci(pugi::xml_node pci, Place place) {
  std::string busId = normalBusId(pci.attribute("busid").value());
  place.path += fmt::format("/pci[{}]", busId);
  if (++place.depth > maxDepth) {
    report(Severity::error, pci, "system", "depth",
           fmt::format("elements are nested more than {} deep", maxDepth));
    return;
  }
  if (busId.empty())
    report(Severity::warning, pci, place.path, "missing-busid",
           "a <pci> element without busid=\"...\"");
  else if (auto first = byBusId.find(key(place.host, busId)); first != byBusId.end()) {
    // Links name GPUs by bus id; of bridges copied by hand only the id is lost.
    bool gpus = pci.child("gpu") || topo.nodes[first->second].kind == NodeKind::gpu;
    report(gpus ? Severity::error : Severity::warning, pci, place.path, "duplicate-bus-id",
           fmt::format("a second <pci> has bus id {} (the first is in line {}){}", busId,
                       topo.nodes[first->second].line,
                       gpus ? "" : "; it is taken for another device, without an id"));
    if (gpus)
      return;
    busId.clear();
  }
  std::string problem;
  Rates rates =
      pciRates(pci.attribute("link_speed").value(), pci.attribute("link_width").value(), problem);

  pugi::xml_node gpu = pci.child("gpu");
  bool inner = pci.child("pci") || pci.child("nic");
  StringRef pciClass = pci.attribute("class").value();
  if (!gpu && !inner && !pciClass.starts_with("0x06")) {
    skipDevice(pci, place.path);
    for (pugi::xml_node child : pci)
      unknown(child, place.path + "/" + child.name());
    return;
  }
  if (!problem.empty())
    report(Severity::warning, pci, place.path, "pci-rate", problem);
  if (gpu) {
    readGpus(pci, place, rates);
  } else {
    Node node;
    node.kind = NodeKind::pci;
    node.host = place.host;
    node.busId = busId;
    node.name = busId.empty() ? "pci" : "pci-" + busId;
    unsigned index = addNode(node, pci);
    if (!busId.empty())
      byBusId[key(place.host, busId)] = index;
    connect(index, unsigned(place.parent), LinkKind::pci, rates, 1, line(pci));
    place.parent = int(index);
  }
  for (pugi::xml_node child : pci) {
    StringRef tag = child.name();
    if (tag == "pci")
      readPci(child, place);
    else if (tag == "nic")
      readNic(child, place, busId);
    else if (tag != "gpu")
      unknown(child, place.path + "/" + tag.str());
  }
}

/// Finds the model by PCI ids, else by architecture; returns its index in `topo.models`. `known` is
/// the table's row whose link rates hold, if there is one.
int XmlReader::addModel(pugi::xml_node gpu, pugi::xml_node pci, const std::string &path,
                        unsigned parts, const KnownGpu *&known) {
  std::optional<int64_t> sm = integer(gpu, path, "sm", 1, 100'000);
  StringRef gcn = gpu.attribute("gcn").value();
  std::string arch;
  if (gcn == "910") // RCCL's number for MI200 in its older files
    arch = "gfx90a";
  else if (!gcn.empty())
    arch = gcn.starts_with("gfx") ? gcn.str() : "gfx" + gcn.str();
  else if (sm)
    arch = fmt::format("sm_{}", *sm);
  std::optional<uint16_t> vendor = hexId(pci, "vendor"), device = hexId(pci, "device");
  known = vendor && device ? findGpu(*vendor, *device) : nullptr;
  if (known && !arch.empty() && known->model.arch != arch) {
    report(Severity::warning, gpu, path, "model-mismatch",
           fmt::format("the PCI device id says {} ({}), the record says {}; the record is followed",
                       known->model.name, known->model.arch, arch));
    known = nullptr;
  }
  bool assumed = !known;
  if (!known)
    known = guessGpu(arch);
  GpuModel model;
  if (known) {
    model = known->model;
    if (assumed && assumedFor.insert(fmt::format("{}/{}", arch, device.value_or(0))).second)
      report(Severity::note, gpu, path, "assumed-model",
             fmt::format("{} alone does not tell the product; {} is assumed for all such GPUs{}",
                         arch, model.name,
                         device
                             ? fmt::format(" (PCI device id {:#06x} is not in the table)", *device)
                             : ""));
  } else {
    model.name = arch.empty() ? "unknown" : arch;
    model.arch = arch;
    report(Severity::warning, gpu, path, "unknown-model",
           fmt::format("no figures are known for a GPU of architecture '{}'", arch));
  }
  // RCCL's sm="..." is the number of compute units, NCCL's the compute capability (94 for gfx942),
  // which some of RCCL's have too.
  bool capability = sm && arch.size() > 5 && arch.substr(3, 2) == std::to_string(*sm);
  if (!gcn.empty() && sm && !capability && model.sms != unsigned(*sm)) {
    if (model.sms)
      model.name += fmt::format("-{}cu", *sm);
    model.sms = unsigned(*sm);
  }
  if (parts > 1) { // a half has half of everything
    model.name += fmt::format("-1/{}", parts);
    model.sms /= parts;
    model.copyEngines = (model.copyEngines + parts - 1) / parts;
    model.hbmBytes /= parts;
    model.powerCapWatts /= parts;
    for (Rational *rate : {&model.bf16Flops, &model.f32Flops, &model.hbmBytesPerSec})
      *rate = *rate / Rational(int64_t(parts));
  }
  for (size_t i = 0; i < topo.models.size(); ++i)
    if (topo.models[i] == model)
      return int(i);
  if (topo.models.size() == maxModels) {
    report(Severity::error, gpu, path, "count",
           fmt::format("more than {} kinds of GPU", maxModels));
    return 0;
  }
  topo.models.push_back(model);
  return int(topo.models.size()) - 1;
}

/// One GPU, or the halves that MPS makes of one (mlopart="0" and "1"), each a rank of its own.
void XmlReader::readGpus(pugi::xml_node pci, const Place &place, const Rates &rates) {
  std::set<int64_t> halves;
  unsigned parts = 0;
  for (pugi::xml_node gpu : pci.children("gpu")) {
    std::string path = place.path + "/gpu";
    std::optional<int64_t> half = integer(gpu, path, "mlopart", 0, 1);
    if (parts++ > 0 && (!half || halves.empty() || halves.contains(*half)))
      return report(Severity::error, gpu, path, "two-gpus",
                    "two <gpu> records in one <pci>, and not the halves mlopart=\"0\" and \"1\" of "
                    "a split GPU: several ranks of one GPU are not supported");
    if (half)
      halves.insert(*half);
  }
  for (pugi::xml_node gpu : pci.children("gpu"))
    readGpu(gpu, pci, place, rates, parts);
}

/// The coherent link of a GPU and its CPU: `bw` is of one link, in MB/s. Halves share it.
void XmlReader::readC2c(pugi::xml_node c2c, const std::string &path, const Gpu &gpu) {
  std::optional<int64_t> megabytes = integer(c2c, path, "bw", 1, 10'000'000);
  std::optional<int64_t> count = integer(c2c, path, "count", 1, maxWires);
  if (!megabytes || !count) {
    if (!c2c.attribute("bw") || !c2c.attribute("count"))
      report(Severity::warning, c2c, path, "missing-count",
             "<c2c> needs bw=\"...\" and count=\"...\": the link is left out");
    return;
  }
  Rational rate = Rational(*megabytes) * Rational(1'000'000);
  Rates rates{rate, rate};
  unsigned end = unsigned(gpu.cpu);
  if (gpu.parts > 1) {
    Node bridge;
    bridge.kind = NodeKind::pci;
    bridge.host = topo.nodes[gpu.node].host;
    bridge.name = "c2c-" + StringRef(topo.nodes[gpu.node].busId).split('/').first.str();
    int known = topo.findNode(bridge.name);
    if (known < 0) {
      known = int(addNode(bridge, c2c));
      connect(unsigned(known), end, LinkKind::c2c, rates, unsigned(*count), line(c2c));
    }
    end = unsigned(known);
  }
  connect(gpu.node, end, LinkKind::c2c, rates, unsigned(*count), line(c2c));
}

void XmlReader::readGpu(pugi::xml_node gpu, pugi::xml_node pci, const Place &place,
                        const Rates &rates, unsigned parts) {
  std::string path = place.path + "/gpu";
  Gpu record;
  record.parts = parts;
  std::optional<int64_t> dev = integer(gpu, path, "dev", 0, 1 << 20);
  record.dev = dev ? *dev : int64_t(gpus.size());
  record.rank = integer(gpu, path, "rank", 0, 1 << 24);
  Node node;
  node.kind = NodeKind::gpu;
  node.host = place.host;
  std::string device = normalBusId(pci.attribute("busid").value());
  node.busId = device;
  node.name = fmt::format("gpu{}", record.dev);
  if (parts > 1) {
    node.name += fmt::format(".{}", gpu.attribute("mlopart").value());
    node.busId += fmt::format("/{}", gpu.attribute("mlopart").value());
  }
  if (place.host > 0)
    node.name = topo.hosts[place.host].name + "." + node.name;
  node.model = addModel(gpu, pci, path, parts, record.known);
  record.node = addNode(node, gpu);
  if (!device.empty()) {
    std::string at = key(node.host, device);
    byBusId.try_emplace(at, record.node);
    for (unsigned other : gpusAt[at])
      connect(other, record.node, LinkKind::die, dieRates(), 1, line(gpu));
    gpusAt[at].push_back(record.node);
  }
  connect(record.node, unsigned(place.parent), LinkKind::pci, rates, 1, line(pci));
  for (const auto &[socket, unused] : sockets)
    record.cpu = int(socket); // the last one read encloses this GPU
  for (pugi::xml_node child : gpu) {
    StringRef tag = child.name();
    std::string childPath = path + "/" + tag.str();
    if (tag == "c2c") {
      readC2c(child, childPath, record);
      continue;
    }
    if (tag != "nvlink" && tag != "xgmi") {
      unknown(child, childPath);
      continue;
    }
    Wire wire;
    wire.gpu = gpus.size();
    wire.kind = tag == "xgmi" ? LinkKind::xgmi : LinkKind::nvlink;
    wire.target = normalBusId(child.attribute("target").value());
    wire.tclass = child.attribute("tclass").value();
    wire.path = childPath + "[" + wire.target + "]";
    wire.line = line(child);
    if (!child.attribute("count"))
      report(Severity::warning, child, wire.path, "missing-count", "no count=\"...\": 1 is taken");
    std::optional<int64_t> count = integer(child, wire.path, "count", 1, maxWires);
    wire.count = count ? unsigned(*count) : 1;
    wires.push_back(std::move(wire));
  }
  gpus.push_back(record);
}

void XmlReader::readNic(pugi::xml_node nic, const Place &place, StringRef bundle) {
  for (pugi::xml_node child : nic) {
    if (StringRef(child.name()) == "net")
      readNet(child, place, bundle);
    else
      unknown(child, place.path + "/nic/" + child.name());
  }
}

void XmlReader::readNet(pugi::xml_node element, const Place &place, StringRef bundle) {
  std::string netName = element.attribute("name").value();
  if (netName.empty())
    netName = fmt::format("net{}", element.attribute("dev").value());
  std::string path = fmt::format("{}/nic/net[{}]", place.path, netName);
  std::optional<int64_t> speed =
      integer(element, path, "speed", 0, std::numeric_limits<int64_t>::max());
  int64_t mbps = speed.value_or(0);
  if (mbps == 0) {
    mbps = 10'000; // what NCCL takes then
    report(Severity::warning, element, path, "missing-speed",
           "no speed is given: 10000 Mb/s is taken, as NCCL does");
  } else if (mbps > maxPortMbps) {
    int64_t given = mbps;
    mbps = std::max<int64_t>(1, mbps / 1000);
    if (mbps > maxPortMbps) {
      report(Severity::error, element, path, "unit",
             fmt::format("speed=\"{}\" is in Mb/s, and no port is that fast", given));
      return;
    }
    report(Severity::warning, element, path, "unit",
           fmt::format("speed=\"{}\" is in Mb/s, and no port is that fast; it is taken for kb/s: "
                       "{} Mb/s",
                       given, mbps));
  }
  Rational bytes = Rational(mbps) * Rational(125'000);
  Rates rates{bytes, bytes};
  if (net < 0) {
    Node node;
    node.kind = NodeKind::net;
    node.name = "net";
    net = int(addNode(node, element));
    topo.nodes[net].line = 0;
  }
  Node node;
  node.kind = NodeKind::nic;
  node.host = place.host;
  node.name = place.host > 0 ? topo.hosts[place.host].name + "." + netName : netName;
  if (!bundle.empty())
    node.bundle = ("nic-" + bundle).str();
  unsigned port = addNode(node, element);
  connect(unsigned(place.parent), port, LinkKind::nic, rates, 1, line(element));
  connect(port, unsigned(net), LinkKind::net, rates, 1, line(element));
}

void XmlReader::joinSockets() {
  bool any = false;
  for (size_t i = 0; i < sockets.size(); ++i)
    for (size_t j = i + 1; j < sockets.size(); ++j)
      if (topo.nodes[sockets[i].first].host == topo.nodes[sockets[j].first].host) {
        connect(sockets[i].first, sockets[j].first, LinkKind::cpu, sockets[i].second, 1, 0);
        any = true;
      }
  bool scaleUp = llvm::any_of(topo.links, [](const Link &l) {
    return l.kind == LinkKind::nvlink || l.kind == LinkKind::xgmi;
  });
  if (any && !scaleUp)
    found.add({Severity::note, "system/cpu", 0, "assumed-rate",
               fmt::format("links between sockets are not in the file; NCCL's {:.0f} GB/s is "
                           "taken, raw and payload",
                           sockets[0].second.raw.toDouble() / 1e9)});
}

void XmlReader::joinWire(const Wire &wire) {
  const Gpu &gpu = gpus[wire.gpu];
  const Node &source = topo.nodes[gpu.node];
  auto warn = [&](const char *rule, std::string message) {
    found.add({Severity::warning, wire.path, wire.line, rule, std::move(message)});
  };
  if (!wire.target.empty() && llvm::is_contained(gpusAt[key(source.host, wire.target)], gpu.node))
    return warn("self-link",
                fmt::format("'{}' ({}) names itself as the target of {} link(s): where they lead "
                            "cannot be told; they are left out",
                            source.name, source.busId, wire.count));
  const std::string &arch = topo.models[source.model].arch;
  Rates rates = assumedLinkRates(wire.kind, arch);
  if (gpu.known && gpu.known->linkKind == wire.kind)
    rates = gpu.known->linkPerWire;
  else
    warn("assumed-rate",
         fmt::format("no {} rate is known for '{}'; {:.0f} GB/s a link is assumed",
                     name(wire.kind).str(), source.name, rates.raw.toDouble() / 1e9));
  auto divide = [&](unsigned parts) { // halves have half of each wire
    Rational by = int64_t(parts);
    rates = {rates.raw / by, rates.payload / by};
  };
  divide(gpu.parts);
  if (StringRef(wire.tclass).starts_with("0x068001")) { // the CPU itself (POWER9, Grace)
    if (gpu.cpu >= 0)
      connect(gpu.node, unsigned(gpu.cpu), LinkKind::nvlink, rates, wire.count, wire.line);
    return;
  }
  std::string targetKey = key(source.host, wire.target);
  auto target = byBusId.find(targetKey);
  if (StringRef(wire.tclass).starts_with("0x0680") && target == byBusId.end()) {
    Node node;
    node.kind = NodeKind::nvswitch;
    node.host = source.host;
    node.busId = wire.target;
    node.name = "nvswitch-" + wire.target;
    node.bundle = "nvswitch";
    node.line = wire.line;
    if (node.host > 0 && targetKey != wire.target)
      node.name = topo.hosts[node.host].name + "." + node.name;
    target = byBusId.try_emplace(targetKey, unsigned(topo.nodes.size())).first;
    topo.nodes.push_back(node);
  }
  if (target == byBusId.end())
    return warn("unknown-target",
                fmt::format("target {} (class '{}') is not in the file; {} link(s) are left out",
                            wire.target, wire.tclass, wire.count));
  Node &end = topo.nodes[target->second];
  if (end.kind == NodeKind::nvswitch) {
    // As NCCL: a switch writes no records of its own.
    connect(gpu.node, target->second, wire.kind, rates, wire.count, wire.line);
    // NVLink SHARP came with the third NVSwitch, for Hopper; for halves NCCL has none.
    unsigned sm = 0;
    if (StringRef(arch).starts_with("sm_") && !StringRef(arch).drop_front(3).getAsInteger(10, sm) &&
        sm >= 90 && gpu.parts == 1)
      end.multicast = end.reduces = true;
    return;
  }
  if (end.kind != NodeKind::gpu)
    return warn("unknown-target",
                fmt::format("target {} is a {}, not a GPU or a switch; {} link(s) "
                            "are left out",
                            wire.target, name(end.kind).str(), wire.count));
  const std::vector<unsigned> &targets = gpusAt[targetKey];
  divide(unsigned(targets.size()));
  for (unsigned half : targets)
    topo.links.push_back(
        {gpu.node, half, wire.kind, wire.count, rates, defaultLatencyNs(wire.kind), wire.line});
}

void XmlReader::numberRanks() {
  std::vector<const Gpu *> order;
  for (const Gpu &gpu : gpus)
    order.push_back(&gpu);
  bool all = llvm::all_of(gpus, [](const Gpu &gpu) { return gpu.rank.has_value(); });
  llvm::sort(order, [&](const Gpu *a, const Gpu *b) {
    auto key = [&](const Gpu *g) { return std::tuple(all ? *g->rank : 0, g->dev, g->node); };
    return key(a) < key(b);
  });
  bool dense = all;
  for (size_t r = 0; r < order.size(); ++r) {
    dense = dense && *order[r]->rank == int64_t(r);
    topo.ranks.push_back(order[r]->node);
  }
  if (!dense)
    found.add({Severity::note, "system", 0, "ranks-numbered",
               all ? "the GPUs' ranks are not 0, 1, 2, ...: they are numbered anew in their order"
                   : "not every GPU has a rank: they are numbered by dev"});
}

ReadResult XmlReader::run() {
  ReadResult result;
  result.format = "nccl-xml";
  auto fail = [&](unsigned atLine, const char *rule, std::string message) {
    result.diagnostics.push_back({Severity::error, "", atLine, rule, std::move(message)});
    return std::move(result);
  };
  if (text.size() > maxText)
    return fail(0, "file",
                fmt::format("has {} bytes of XML; at most {} are read", text.size(), maxText));
  pugi::xml_document document;
  pugi::xml_parse_result parsed =
      document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_auto);
  if (!parsed)
    return fail(lineAt(parsed.offset), "xml",
                fmt::format("not well-formed XML, or cut short: {}", parsed.description()));
  pugi::xml_node root = document.document_element();
  StringRef tag = root.name();
  if (tag == "graphs")
    return fail(
        line(root), "not-a-system",
        "this is a <graphs> file, the rings and trees NCCL found for one exact set of GPUs; "
        "a topology is a <system> file (NCCL_TOPO_DUMP_FILE writes one)");
  if (tag != "system")
    return fail(line(root), "not-a-system",
                fmt::format("the root element is <{}>, a topology's is <system>", tag.str()));
  readSystem(root);
  if (gpus.empty() && !found.hasErrors()) {
    report(Severity::error, root, "system", "no-gpu-records",
           fmt::format("the file has no <gpu> record in a <pci>, so it says nothing about GPUs or "
                       "their links: "
                       "a skeleton of the PCI tree ({} GPU-class, {} network-class and {} "
                       "unclassified devices), which NCCL fills in on the machine itself; take a "
                       "dump there (NCCL_TOPO_DUMP_FILE)",
                       bareGpus, bareNics, bareUnknown));
  } else if (bareGpus > 0) {
    report(Severity::warning, root, "system", "no-gpu-record",
           fmt::format("{} GPU-class device(s) have no <gpu> record and are left out", bareGpus));
  }
  if (!found.hasErrors()) {
    if (wires.empty())
      report(Severity::note, root, "system", "no-scale-up-links",
             "no <nvlink> or <xgmi> record: GPUs reach each other over PCI alone");
    for (const Wire &wire : wires)
      joinWire(wire);
    joinSockets();
    numberRanks();
    Diagnostics more = topo.validate();
    found.add(std::move(more));
  }
  result.diagnostics = found.take();
  if (!hasErrors(result.diagnostics))
    result.topology = std::move(topo);
  return result;
}

ReadResult topology::readNcclXml(StringRef text, StringRef name) {
  return XmlReader(text, name).run();
}

Diagnostics topology::checkGraphs(StringRef text, const Topology &topo) {
  Diagnostics found;
  pugi::xml_document document;
  pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  pugi::xml_node root = document.document_element();
  if (!parsed || StringRef(root.name()) != "graphs") {
    found.push_back({Severity::error, "", 0, "not-graphs",
                     parsed ? fmt::format("the root element is <{}>, not <graphs>", root.name())
                            : fmt::format("not well-formed XML: {}", parsed.description())});
    return found;
  }
  for (pugi::xml_node graph : root.children("graph")) {
    std::string path = fmt::format("graphs/graph[{}]", graph.attribute("id").value());
    bool said = false;
    for (pugi::xml_node channel : graph.children("channel"))
      for (pugi::xml_node gpu : channel.children("gpu")) {
        StringRef value = gpu.attribute("dev").value();
        unsigned dev;
        if (said || (!value.getAsInteger(10, dev) && dev < topo.numRanks()))
          continue;
        said = true;
        unsigned atLine = 1 + unsigned(text.take_front(gpu.offset_debug()).count('\n'));
        found.push_back({Severity::error, path, atLine, "graph-device",
                         fmt::format("names GPU dev {}, but '{}' has {} GPU(s): a graph file fits "
                                     "the exact set of GPUs it was made for",
                                     value.str(), topo.name, topo.numRanks())});
      }
  }
  return found;
}
