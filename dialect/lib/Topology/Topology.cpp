//===- Topology.cpp - Names and validation --------------------------------===//
#include "ncclx/Topology/Topology.h"
#include "Findings.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include <fmt/format.h>
#include <map>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

llvm::StringRef topology::name(NodeKind kind) {
  switch (kind) {
  case NodeKind::gpu:
    return "gpu";
  case NodeKind::process:
    return "process";
  case NodeKind::memory:
    return "memory";
  case NodeKind::cpu:
    return "cpu";
  case NodeKind::pci:
    return "pci";
  case NodeKind::nvswitch:
    return "nvswitch";
  case NodeKind::nic:
    return "nic";
  case NodeKind::net:
    return "net";
  }
  return "?";
}

llvm::StringRef topology::name(LinkKind kind) {
  switch (kind) {
  case LinkKind::nvlink:
    return "nvlink";
  case LinkKind::xgmi:
    return "xgmi";
  case LinkKind::pci:
    return "pci";
  case LinkKind::cpu:
    return "cpu";
  case LinkKind::shm:
    return "shm";
  case LinkKind::nic:
    return "nic";
  case LinkKind::net:
    return "net";
  case LinkKind::c2c:
    return "c2c";
  case LinkKind::die:
    return "die";
  case LinkKind::tcp:
    return "tcp";
  }
  return "?";
}

llvm::StringRef topology::name(Reach reach) {
  switch (reach) {
  case Reach::self:
    return "self";
  case Reach::loadStore:
    return "load-store";
  case Reach::copyEngine:
    return "copy-engine";
  case Reach::put:
    return "put";
  case Reach::hostOnly:
    return "host-only";
  case Reach::none:
    return "none";
  }
  return "?";
}

llvm::StringRef topology::name(Rate rate) { return rate == Rate::raw ? "raw" : "payload"; }

llvm::StringRef topology::name(Severity severity) {
  switch (severity) {
  case Severity::note:
    return "note";
  case Severity::warning:
    return "warning";
  case Severity::error:
    return "error";
  }
  return "?";
}

std::optional<NodeKind> topology::parseNodeKind(llvm::StringRef text) {
  for (NodeKind kind : {NodeKind::gpu, NodeKind::process, NodeKind::memory, NodeKind::cpu,
                        NodeKind::pci, NodeKind::nvswitch, NodeKind::nic, NodeKind::net})
    if (name(kind) == text)
      return kind;
  return std::nullopt;
}

std::optional<LinkKind> topology::parseLinkKind(llvm::StringRef text) {
  for (LinkKind kind :
       {LinkKind::nvlink, LinkKind::xgmi, LinkKind::pci, LinkKind::cpu, LinkKind::shm,
        LinkKind::nic, LinkKind::net, LinkKind::tcp, LinkKind::c2c, LinkKind::die})
    if (name(kind) == text)
      return kind;
  return std::nullopt;
}

bool topology::hasErrors(const Diagnostics &diagnostics) {
  for (const Diagnostic &d : diagnostics)
    if (d.severity == Severity::error)
      return true;
  return false;
}

std::string topology::toString(const Diagnostic &d, llvm::StringRef file) {
  std::string where = file.str();
  if (d.line)
    where += fmt::format(":{}", d.line);
  std::string text =
      fmt::format("{}: {}: {} [{}]", where, name(d.severity).str(), d.message, d.rule);
  if (!d.path.empty())
    text += " at " + d.path;
  return text;
}

int Topology::rankOf(unsigned node) const {
  for (unsigned r = 0; r < ranks.size(); ++r)
    if (ranks[r] == node)
      return int(r);
  return -1;
}

int Topology::findNode(llvm::StringRef nodeName) const {
  for (unsigned i = 0; i < nodes.size(); ++i)
    if (nodes[i].name == nodeName)
      return int(i);
  return -1;
}

namespace {
/// Rates above this are a unit error, not a link: 10^18 B/s.
constexpr int64_t maxRate = 1'000'000'000'000'000'000;

class Validator {
public:
  Validator(const Topology &topo) : topo(topo) {}
  Diagnostics run() {
    checkModels();
    checkHosts();
    checkNodes();
    checkLinks();
    checkRanks();
    // The rest follows indices.
    if (!found.hasErrors()) {
      checkSides();
      checkPeers();
    }
    return found.take();
  }

private:
  void report(Severity severity, std::string path, unsigned line, const char *rule,
              std::string message) {
    found.add({severity, std::move(path), line, rule, std::move(message)});
  }
  /// Paths are made only when there is something to say: large topologies have millions of
  /// elements.
  using Path = llvm::function_ref<std::string()>;
  void error(Path path, unsigned line, const char *rule, std::string message) {
    report(Severity::error, path(), line, rule, std::move(message));
  }
  void checkRate(Path path, unsigned line, llvm::StringRef what, const Rational &rate,
                 bool zeroAllowed) {
    if (rate.isValid() && (zeroAllowed ? rate >= Rational(0) : rate > Rational(0)) &&
        rate <= Rational(maxRate))
      return;
    error(path, line, "rate",
          fmt::format("{} must be {} and at most 10^18 a second, but is {}", what.str(),
                      zeroAllowed ? "zero (unknown) or more" : "positive", rate.str()));
  }
  void checkUnique(llvm::StringMap<int> &seen, llvm::StringRef name, Path path, unsigned line,
                   llvm::StringRef what) {
    if (name.empty())
      error(path, line, "name", fmt::format("{} has no name", what.str()));
    else if (!seen.try_emplace(name, 0).second)
      error(path, line, "duplicate-name",
            fmt::format("a second {} is named '{}'", what.str(), name.str()));
  }

  void checkModels();
  void checkHosts();
  void checkNodes();
  void checkLinks();
  void checkRanks();
  void checkSides();
  void checkPeers();

  const Topology &topo;
  Findings found;
};
} // namespace

void Validator::checkModels() {
  llvm::StringMap<int> names;
  for (size_t i = 0; i < topo.models.size(); ++i) {
    const GpuModel &m = topo.models[i];
    auto path = [&] { return fmt::format("gpus[{}]", i); };
    checkUnique(names, m.name, path, 0, "GPU model");
    checkRate(path, 0, "bf16_flops", m.bf16Flops, true);
    checkRate(path, 0, "f32_flops", m.f32Flops, true);
    checkRate(path, 0, "hbm", m.hbmBytesPerSec, true);
  }
}

void Validator::checkHosts() {
  llvm::StringMap<int> names;
  for (size_t i = 0; i < topo.hosts.size(); ++i) {
    auto path = [&] { return fmt::format("hosts[{}]", i); };
    checkUnique(names, topo.hosts[i].name, path, 0, "host");
    checkRate(path, 0, "core_f32_flops", topo.hosts[i].coreF32Flops, true);
    checkRate(path, 0, "core_bf16_flops", topo.hosts[i].coreBf16Flops, true);
  }
}

void Validator::checkNodes() {
  llvm::StringMap<int> names, busIds;
  for (size_t i = 0; i < topo.nodes.size(); ++i) {
    const Node &n = topo.nodes[i];
    auto path = [&] { return fmt::format("nodes[{}] '{}'", i, n.name); };
    checkUnique(names, n.name, path, n.line, "node");
    if (n.kind != NodeKind::net && n.host >= topo.hosts.size())
      error(path, n.line, "host",
            fmt::format("names host {}, but there are {}", n.host, topo.hosts.size()));
    if (n.model >= int(topo.models.size()) || (n.model >= 0 && n.kind != NodeKind::gpu))
      error(path, n.line, "model", "names a GPU model that there is not, or is no GPU");
    checkRate(path, n.line, "throughput", n.throughput, true);
    if (!n.busId.empty() && !busIds.try_emplace(fmt::format("{}/{}", n.host, n.busId), 0).second &&
        n.kind != NodeKind::nic)
      error(path, n.line, "duplicate-bus-id",
            fmt::format("bus id {} is another node's too", n.busId));
  }
}

void Validator::checkLinks() {
  for (size_t i = 0; i < topo.links.size(); ++i) {
    const Link &l = topo.links[i];
    auto path = [&] {
      std::string text = fmt::format("links[{}]", i);
      if (l.from < topo.nodes.size() && l.to < topo.nodes.size())
        text += fmt::format(" '{}' -> '{}'", topo.nodes[l.from].name, topo.nodes[l.to].name);
      return text;
    };
    if (l.from >= topo.nodes.size() || l.to >= topo.nodes.size()) {
      error(
          path, l.line, "link-end",
          fmt::format("joins nodes {} and {}, but there are {}", l.from, l.to, topo.nodes.size()));
      continue;
    }
    if (l.from == l.to)
      error(path, l.line, "self-link", "a link from a node to itself");
    if (l.count == 0)
      error(path, l.line, "count", "a link of no wires");
    checkRate(path, l.line, "raw", l.perWire.raw, false);
    checkRate(path, l.line, "payload", l.perWire.payload, false);
    if (l.perWire.payload > l.perWire.raw)
      error(path, l.line, "payload-above-raw",
            fmt::format("payload {} B/s is above raw {} B/s", l.perWire.payload.str(),
                        l.perWire.raw.str()));
    if (!(l.latencyNs >= Rational(0) && l.latencyNs <= Rational(maxRate)))
      error(path, l.line, "latency",
            fmt::format("latency must be zero or more, but is {} ns", l.latencyNs.str()));
  }
}

void Validator::checkRanks() {
  if (topo.ranks.empty())
    error([] { return std::string("ranks"); }, 0, "no-ranks", "the topology has no rank");
  std::vector<int> owner(topo.nodes.size(), -1);
  for (size_t r = 0; r < topo.ranks.size(); ++r) {
    auto path = [&] { return fmt::format("ranks[{}]", r); };
    if (topo.ranks[r] >= topo.nodes.size()) {
      error(path, 0, "rank",
            fmt::format("names node {}, but there are {}", topo.ranks[r], topo.nodes.size()));
      continue;
    }
    const Node &n = topo.nodes[topo.ranks[r]];
    if (n.kind != NodeKind::gpu && n.kind != NodeKind::process)
      error(path, n.line, "rank",
            fmt::format("'{}' is a {}; a rank is a gpu or a process", n.name, name(n.kind).str()));
    if (owner[topo.ranks[r]] >= 0)
      error(path, n.line, "rank",
            fmt::format("'{}' is rank {} already", n.name, owner[topo.ranks[r]]));
    owner[topo.ranks[r]] = int(r);
  }
}

/// NCCL writes each link from both its ends; a link known from one end alone is a lost record.
void Validator::checkSides() {
  using Way = std::pair<uint64_t, unsigned>; // both ends, kind
  auto way = [](unsigned from, unsigned to, LinkKind kind) {
    return Way(uint64_t(from) << 32 | to, unsigned(kind));
  };
  llvm::DenseMap<Way, unsigned> wires;
  wires.reserve(topo.links.size());
  for (const Link &l : topo.links)
    wires[way(l.from, l.to, l.kind)] += l.count;
  for (const Link &l : topo.links) {
    auto back = wires.find(way(l.to, l.from, l.kind));
    unsigned forth = wires.lookup(way(l.from, l.to, l.kind));
    unsigned other = back == wires.end() ? 0 : back->second;
    if (other >= forth)
      continue;
    report(Severity::warning, fmt::format("'{}'", topo.nodes[l.from].name), l.line,
           "one-sided-link",
           fmt::format("{} {} link(s) from '{}' to '{}', but {} back", forth, name(l.kind).str(),
                       topo.nodes[l.from].name, topo.nodes[l.to].name, other));
    wires[way(l.from, l.to, l.kind)] = 0; // said once
  }
}

/// GPUs of one model on one host should have equal bandwidth and equal planes.
void Validator::checkPeers() {
  struct Ports {
    unsigned wires = 0;
    llvm::SmallVector<std::pair<unsigned, unsigned>, 1> bySwitch; ///< sorted
  };
  std::vector<Ports> ports(topo.nodes.size()); // of GPUs: scale-up wires that leave it
  std::map<std::pair<unsigned, int>, std::vector<unsigned>> peers;
  for (unsigned i = 0; i < topo.nodes.size(); ++i)
    if (topo.nodes[i].kind == NodeKind::gpu)
      peers[{topo.nodes[i].host, topo.nodes[i].model}].push_back(i);
  for (const Link &l : topo.links) {
    if ((l.kind != LinkKind::nvlink && l.kind != LinkKind::xgmi) ||
        topo.nodes[l.from].kind != NodeKind::gpu)
      continue;
    Ports &mine = ports[l.from];
    mine.wires += l.count;
    if (topo.nodes[l.to].kind != NodeKind::nvswitch)
      continue;
    auto at = llvm::lower_bound(mine.bySwitch, std::pair(l.to, 0u));
    if (at == mine.bySwitch.end() || at->first != l.to)
      at = mine.bySwitch.insert(at, {l.to, 0});
    at->second += l.count;
  }
  for (auto &[key, gpus] : peers) {
    unsigned most = 0;
    for (unsigned g : gpus)
      most = std::max(most, ports[g].wires);
    bool fewer = false;
    for (unsigned g : gpus) {
      const Node &n = topo.nodes[g];
      if (ports[g].wires < most) {
        fewer = true;
        report(Severity::warning, fmt::format("'{}'", n.name), n.line, "fewer-links",
               fmt::format("'{}' has {} NVLink or xGMI link(s), its peers up to {}: a link is down "
                           "or its record is lost",
                           n.name, ports[g].wires, most));
      }
    }
    for (unsigned g : gpus)
      if (!fewer && ports[g].bySwitch != ports[gpus.front()].bySwitch) {
        report(Severity::note, fmt::format("'{}'", topo.nodes[g].name), topo.nodes[g].line,
               "unequal-planes",
               fmt::format("'{}' spreads its links over the switches unlike '{}'",
                           topo.nodes[g].name, topo.nodes[gpus.front()].name));
        break;
      }
  }
}

Diagnostics Topology::validate() const { return Validator(*this).run(); }
