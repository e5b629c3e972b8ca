//===- Print.cpp ----------------------------------------------------------===//
#include "Print.h"
#include "ncclx/Topology/Resources.h"
#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
std::string giga(const Rational &value) { return fmt::format("{:.6g}", value.toDouble() / 1e9); }

std::string numaText(const Node &node) {
  std::string text;
  if (node.cores)
    text += fmt::format(", {} processors", node.cores);
  if (node.memoryBytes)
    text += fmt::format(", {:.4g} GB", double(node.memoryBytes) / 1e9);
  return text;
}

/// Wires of each kind that leave each node: "18 nvlink".
std::vector<std::string> scaleUpPorts(const Topology &topo) {
  std::vector<std::map<LinkKind, unsigned>> wires(topo.nodes.size());
  for (const Link &link : topo.links)
    if (link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi ||
        link.kind == LinkKind::die || link.kind == LinkKind::c2c)
      wires[link.from][link.kind] += link.count;
  std::vector<std::string> texts;
  for (const std::map<LinkKind, unsigned> &node : wires) {
    std::string text;
    for (auto [kind, count] : node)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name(kind).str());
    texts.push_back(text.empty() ? "no scale-up links" : text);
  }
  return texts;
}

void printRanks(llvm::raw_ostream &out, const Topology &topo) {
  constexpr unsigned most = 256;
  std::vector<std::string> ports = scaleUpPorts(topo);
  std::vector<NearestPort> nearest = nearestPorts(topo);
  for (unsigned r = 0; r < topo.numRanks(); ++r) {
    if (r == most) {
      out << fmt::format("and {} more ranks\n", topo.numRanks() - most);
      break;
    }
    const Node &node = topo.rankNode(r);
    const Host &host = topo.hosts[node.host];
    std::string nic;
    if (nearest[r].node >= 0)
      nic = fmt::format("; {}, rail {}", topo.nodes[nearest[r].node].name, nearest[r].rail);
    out << fmt::format("rank {}: {} on {}", r, node.name, host.name);
    if (node.kind == NodeKind::process) {
      out << fmt::format(", {} core(s) shared, f32 {} GFLOP/s a core{}\n", host.cores,
                         giga(host.coreF32Flops), nic);
      continue;
    }
    if (node.model >= 0) {
      const GpuModel &m = topo.models[node.model];
      out << fmt::format(", {}: {} SMs, bf16 {:.6g} TFLOP/s, f32 {:.6g} TFLOP/s, HBM {} GB/s",
                         m.name, m.sms, m.bf16Flops.toDouble() / 1e12, m.f32Flops.toDouble() / 1e12,
                         giga(m.hbmBytesPerSec));
    }
    out << "; " << ports[topo.ranks[r]] << nic << "\n";
  }
}

void printPairs(llvm::raw_ostream &out, const Topology &topo) {
  if (topo.numRanks() > mostPairRanks) {
    out << fmt::format("pairs: not listed above {} ranks\n", mostPairRanks);
    return;
  }
  for (const PairClass &pairs : pairClasses(topo)) {
    out << fmt::format("pairs: {} by {}", pairs.count, name(pairs.reach).str());
    if (pairs.reach == Reach::put)
      out << (pairs.oneRail ? " on one rail" : " across rails");
    if (pairs.reach != Reach::none)
      out << fmt::format(", {} GB/s raw, {} GB/s payload, {:.6g} ns", giga(pairs.raw),
                         giga(pairs.payload), pairs.latencyNs.toDouble());
    out << "\n";
  }
}

std::vector<std::string> describe(const Topology &topo) {
  std::vector<std::string> lines;
  for (const GpuModel &m : topo.models)
    lines.push_back(fmt::format("gpu model {}: {} {} SMs, bf16 {}, f32 {}, hbm {}, {} bytes, {} "
                                "copy engines, {} W",
                                m.name, m.arch, m.sms, m.bf16Flops.str(), m.f32Flops.str(),
                                m.hbmBytesPerSec.str(), m.hbmBytes, m.copyEngines,
                                m.powerCapWatts));
  for (const Host &h : topo.hosts)
    lines.push_back(fmt::format("host {}: rack '{}', zone '{}', data centre '{}', {} cores of {}",
                                h.name, h.rack, h.zone, h.dataCenter, h.cores,
                                h.coreF32Flops.str()));
  for (unsigned r = 0; r < topo.numRanks(); ++r)
    lines.push_back(fmt::format("rank {} is {}", r, topo.rankNode(r).name));
  for (const Node &n : topo.nodes)
    lines.push_back(fmt::format("node {}: {}{}{}{}{}{}{}{}{}", n.name, name(n.kind).str(),
                                n.model >= 0 ? " " + topo.models[n.model].name : "",
                                n.busId.empty() ? "" : " at " + n.busId,
                                n.bundle.empty() ? "" : " of bundle " + n.bundle,
                                n.cores ? fmt::format(" {} cores", n.cores) : "",
                                n.memoryBytes ? fmt::format(" {} bytes", n.memoryBytes) : "",
                                n.throughput.isZero() ? "" : " throughput " + n.throughput.str(),
                                n.multicast ? ", multicast" : "", n.reduces ? ", reduces" : ""));
  for (const Link &l : topo.links)
    lines.push_back(fmt::format("link {} -> {}: {} {}, {} raw, {} payload, {} ns",
                                topo.nodes[l.from].name, topo.nodes[l.to].name, l.count,
                                name(l.kind).str(), l.perWire.raw.str(), l.perWire.payload.str(),
                                l.latencyNs.str()));
  for (const Extra &e : topo.extras)
    lines.push_back(fmt::format("extra {}: {}", e.at, e.text));
  std::sort(lines.begin(), lines.end());
  return lines;
}
} // namespace

std::vector<PairClass> topology::pairClasses(const Topology &topo) {
  ResourceModel raw(topo, Rate::raw), payload(topo, Rate::payload);
  std::vector<NearestPort> ports = nearestPorts(topo);
  std::vector<PairClass> classes;
  for (unsigned i = 0; i < topo.numRanks(); ++i)
    for (unsigned j = 0; j < topo.numRanks(); ++j) {
      if (i == j)
        continue;
      Reach reach = raw.reachability(i, j);
      PairClass one{reach,
                    raw.bandwidth(i, j),
                    payload.bandwidth(i, j),
                    raw.latencyNs(i, j).value_or(0),
                    reach == Reach::put && ports[i].rail >= 0 && ports[i].rail == ports[j].rail,
                    1};
      auto same = std::find_if(classes.begin(), classes.end(), [&](const PairClass &c) {
        return c.reach == one.reach && c.raw == one.raw && c.payload == one.payload &&
               c.latencyNs == one.latencyNs && c.oneRail == one.oneRail;
      });
      if (same == classes.end())
        classes.push_back(one);
      else
        ++same->count;
    }
  std::sort(classes.begin(), classes.end(), [](const PairClass &a, const PairClass &b) {
    auto key = [](const PairClass &c) {
      return std::tuple(c.reach, !c.oneRail, -c.raw.toDouble(), -c.payload.toDouble(),
                        c.latencyNs.toDouble());
    };
    return key(a) < key(b);
  });
  return classes;
}

void topology::printTopology(llvm::raw_ostream &out, const Topology &topo, llvm::StringRef format) {
  std::map<NodeKind, unsigned> kinds;
  for (const Node &node : topo.nodes)
    ++kinds[node.kind];
  out << fmt::format("{}: {} rank(s), {} host(s), read from {}\n", topo.name, topo.numRanks(),
                     topo.hosts.size(), format.str());
  out << "nodes:";
  for (auto [kind, count] : kinds)
    out << fmt::format(" {} {}", count, name(kind).str());
  out << fmt::format("; {} links\n", topo.links.size());
  std::map<std::string, unsigned> special; // line -> how many nodes
  for (const Node &node : topo.nodes)
    if (node.kind == NodeKind::memory)
      ++special[fmt::format("{}: {} GB/s copied, shared{}", node.name, giga(node.throughput),
                            numaText(node))];
    else if (node.kind == NodeKind::cpu && (node.cores || node.memoryBytes))
      ++special[fmt::format("{}: NUMA node{}", node.name, numaText(node))];
    else if (node.kind == NodeKind::nvswitch && (node.multicast || node.reduces))
      ++special[fmt::format("switches that can{}{}", node.multicast ? " multicast" : "",
                            node.reduces ? " reduce" : "")];
  for (const auto &[line, count] : special)
    out << line << (count > 1 ? fmt::format(" ({} of them)", count) : "") << "\n";
  printRanks(out, topo);
  printPairs(out, topo);
  for (const Extra &extra : topo.extras)
    out << fmt::format("kept, without effect: {}: {}\n", extra.at,
                       extra.text.size() > 60 ? extra.text.substr(0, 60) + "..." : extra.text);
}

void topology::printBounds(llvm::raw_ostream &out, BoundSolver &solver, const BoundQuery &query) {
  bool first = true;
  for (const LowerBound &b : solver.bounds(query)) {
    if (first)
      out << fmt::format("{} of {} bytes over {} rank(s), {} rate, {}:\n",
                         name(query.collective).str(), query.bytes, query.group.size(),
                         name(query.rate).str(), name(b.links).str());
    first = false;
    if (b.unreachable) {
      out << fmt::format("  {}: {}\n", b.argument, b.detail);
      continue;
    }
    out << fmt::format("  {:.6g} us", b.seconds.toDouble() * 1e6);
    if (!b.seconds.isZero())
      out << fmt::format(", alg {} GB/s, bus {} GB/s", giga(algorithmBandwidth(query, b)),
                         giga(busBandwidth(query, b)));
    out << fmt::format(" [{}]{}: {}\n", b.argument, b.universal ? "" : " of that form only",
                       b.detail);
  }
}

Difference topology::difference(const Topology &a, const Topology &b) {
  std::vector<std::string> left = describe(a), right = describe(b);
  Difference result;
  std::set_difference(left.begin(), left.end(), right.begin(), right.end(),
                      std::back_inserter(result.onlyFirst));
  std::set_difference(right.begin(), right.end(), left.begin(), left.end(),
                      std::back_inserter(result.onlySecond));
  return result;
}

bool topology::printDifference(llvm::raw_ostream &out, const Topology &a, const Topology &b) {
  Difference differs = difference(a, b);
  for (const std::string &line : differs.onlyFirst)
    out << "- " << line << "\n";
  for (const std::string &line : differs.onlySecond)
    out << "+ " << line << "\n";
  return !differs.onlyFirst.empty() || !differs.onlySecond.empty();
}
