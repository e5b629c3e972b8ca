//===- NcclXmlGpus.cpp - What a <gpu> of a <system> says ------------------===//
#include "NcclXmlReader.h"

using namespace mlir::ncclx::topology;
using llvm::StringRef;

namespace {
/// More kinds of GPU are no machine; looking for one among them takes their square.
constexpr size_t maxModels = 256;

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

/// Finds the model by PCI ids, else by architecture; returns its index in `topo.models`. `known` is
/// the table's row whose link rates hold, if there is one.
int NcclXmlReader::addModel(pugi::xml_node gpu, pugi::xml_node pci, const std::string &path,
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
void NcclXmlReader::readGpus(pugi::xml_node pci, const Place &place, const Rates &rates) {
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
void NcclXmlReader::readC2c(pugi::xml_node c2c, const std::string &path, const Gpu &gpu) {
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

void NcclXmlReader::readGpu(pugi::xml_node gpu, pugi::xml_node pci, const Place &place,
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
