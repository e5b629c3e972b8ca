//===- ReadNcclXml.cpp - The walk through a <system> ----------------------===//
#include "NcclXmlReader.h"
#include "PciRates.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"
#include <sstream>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;
using llvm::StringRef;

namespace {
/// Deeper files are refused: the walk recurses. Real ones are about ten deep.
constexpr unsigned maxDepth = 64;
/// More text or sockets are no machine; some of what follows takes their square.
constexpr size_t maxText = size_t(64) << 20;
constexpr size_t maxSockets = 1024;
/// Of unknown elements the first are kept.
constexpr size_t maxExtras = 10'000;
/// Faster ports are taken for a unit error: 3.2 Tb/s in Mb/s.
constexpr int64_t maxPortMbps = 3'200'000;
} // namespace

std::string NcclXmlReader::normalBusId(StringRef text) {
  std::string lower = text.trim().lower();
  StringRef rest = lower;
  size_t colon = rest.find(':');
  if (rest.count(':') == 2 && colon > 4 && rest.take_front(colon - 4).count('0') == colon - 4)
    return rest.drop_front(colon - 4).str();
  return lower;
}

std::optional<int64_t> NcclXmlReader::integer(pugi::xml_node node, const std::string &path,
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

unsigned NcclXmlReader::addNode(Node node, pugi::xml_node at) {
  node.line = line(at);
  int &uses = nodeNames[node.name];
  if (uses++ > 0)
    node.name += fmt::format("#{}", uses);
  topo.nodes.push_back(std::move(node));
  return topo.nodes.size() - 1;
}

void NcclXmlReader::connect(unsigned a, unsigned b, LinkKind kind, const Rates &rates,
                            unsigned count, unsigned atLine) {
  Rational latency = defaultLatencyNs(kind);
  topo.links.push_back({a, b, kind, count, rates, latency, atLine});
  topo.links.push_back({b, a, kind, count, rates, latency, atLine});
}

/// Keeps an element that has no meaning here as it is written.
void NcclXmlReader::unknown(pugi::xml_node node, const std::string &path) {
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

void NcclXmlReader::readSystem(pugi::xml_node system) {
  for (pugi::xml_node child : system) {
    std::string path = fmt::format("system/{}", child.name());
    if (StringRef(child.name()) == "cpu")
      readCpu(child, fmt::format("system/cpu[{}]", child.attribute("numaid").value()));
    else
      unknown(child, path);
  }
}

void NcclXmlReader::readCpu(pugi::xml_node cpu, const std::string &path) {
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

void NcclXmlReader::skipDevice(pugi::xml_node pci, const std::string &path) {
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

void NcclXmlReader::readPci(pugi::xml_node pci, Place place) {
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

void NcclXmlReader::readNic(pugi::xml_node nic, const Place &place, StringRef bundle) {
  for (pugi::xml_node child : nic) {
    if (StringRef(child.name()) == "net")
      readNet(child, place, bundle);
    else
      unknown(child, place.path + "/nic/" + child.name());
  }
}

void NcclXmlReader::readNet(pugi::xml_node element, const Place &place, StringRef bundle) {
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

ReadResult NcclXmlReader::run() {
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
  return NcclXmlReader(text, name).run();
}
