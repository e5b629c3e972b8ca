//===- NcclXmlLinks.cpp - What joins the devices of a <system> ------------===//
#include "NcclXmlReader.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::ncclx::topology;
using llvm::StringRef;

void NcclXmlReader::joinSockets() {
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

void NcclXmlReader::joinWire(const Wire &wire) {
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

void NcclXmlReader::numberRanks() {
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
