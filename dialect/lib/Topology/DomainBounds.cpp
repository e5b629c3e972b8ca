//===- DomainBounds.cpp ---------------------------------------------------===//
#include "DomainBounds.h"
#include "CutGraph.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
class Partitioner {
public:
  Partitioner(const Topology &topo, llvm::ArrayRef<unsigned> group, Rate rate, LinkSet set)
      : topo(topo), group(group), rate(rate), set(set) {}
  std::vector<Partition> run();

private:
  template <typename Key> void addPartition(const char *what, Key key);
  void grow(Partition &partition) const;

  const Topology &topo;
  llvm::ArrayRef<unsigned> group;
  Rate rate;
  LinkSet set;
  std::vector<Partition> partitions;
};

class DomainBounder {
public:
  DomainBounder(const Topology &topo, const BoundQuery &query, LinkSet set,
                llvm::ArrayRef<Partition> partitions)
      : topo(topo), query(query), set(set), n(query.group.size()),
        size(Rational::make(Rational::Int(query.bytes), 1)), share(size / Rational(n)),
        partitions(partitions) {}
  std::vector<LowerBound> run();

private:
  void countBytes();
  void add(const Rational &seconds, const char *argument, std::string detail,
           bool universal = true);
  /// How many shares must enter and leave a part in any schedule of a collective.
  std::pair<Rational, Rational> traffic(Collective collective, const Partition &partition,
                                        unsigned part) const;
  LowerBound widest(Collective collective) const;

  const Topology &topo;
  const BoundQuery &query;
  LinkSet set;
  int64_t n;
  Rational size, share;
  llvm::ArrayRef<Partition> partitions;
  struct Bytes {
    std::vector<uint64_t> enter, leave; ///< by part
  };
  std::vector<Bytes> bytes; ///< all_to_all_v: by partition
  std::vector<LowerBound> list;
};
} // namespace

void DomainBounder::add(const Rational &seconds, const char *argument, std::string detail,
                        bool universal) {
  list.push_back({seconds, argument, std::move(detail), universal, false, set, query.rate});
}

/// Nodes of no host (network switches) belong to the part of what lies below them: layer by layer
/// from the hosts, a node joins its neighbours' part if they are all of one. Any choice gives a
/// valid cut; this one follows the tiers.
void Partitioner::grow(Partition &partition) const {
  std::vector<std::vector<unsigned>> next(topo.nodes.size());
  for (const Link &link : topo.links)
    if (counts(set, link.kind) && topo.nodes[link.to].kind == NodeKind::net)
      next[link.from].push_back(link.to);
  std::vector<unsigned> layer;
  std::vector<bool> done(topo.nodes.size());
  for (unsigned i = 0; i < topo.nodes.size(); ++i)
    if (topo.nodes[i].kind != NodeKind::net) {
      done[i] = true;
      layer.push_back(i);
    }
  constexpr int mixed = -2, none = -3;
  std::vector<int> below(topo.nodes.size(), none);
  while (!layer.empty()) {
    std::vector<unsigned> reached;
    for (unsigned v : layer)
      for (unsigned w : next[v])
        if (!done[w]) {
          if (below[w] == none)
            reached.push_back(w);
          below[w] = below[w] == none || below[w] == partition.part[v] ? partition.part[v] : mixed;
        }
    layer = std::move(reached);
    for (unsigned node : layer) {
      done[node] = true;
      partition.part[node] = below[node] == mixed ? -1 : below[node];
    }
  }
}

template <typename Key> void Partitioner::addPartition(const char *what, Key key) {
  Partition partition;
  partition.what = what;
  partition.part.assign(topo.nodes.size(), -1);
  std::map<decltype(key(0u)), int> index;
  for (unsigned r : group) {
    auto [it, added] = index.try_emplace(key(topo.ranks[r]), int(index.size()));
    if (added)
      partition.members.push_back(0);
    ++partition.members[it->second];
    partition.part[topo.ranks[r]] = it->second;
  }
  if (index.size() < 2 || (!partitions.empty() && index.size() == partitions.back().members.size()))
    return;
  if (!partitions.empty()) { // the first is by rank: a rank is its node alone
    for (unsigned i = 0; i < topo.nodes.size(); ++i)
      if (topo.nodes[i].kind != NodeKind::net) {
        auto it = index.find(key(i));
        partition.part[i] = it == index.end() ? -1 : it->second;
      }
    grow(partition);
  }
  partition.out.resize(index.size());
  partition.in.resize(index.size());
  for (const Link &link : topo.links) {
    int from = partition.part[link.from], to = partition.part[link.to];
    if (from == to || !counts(set, link.kind))
      continue;
    Rational bandwidth = link.bandwidth(rate);
    if (from >= 0)
      partition.out[from] += bandwidth;
    if (to >= 0)
      partition.in[to] += bandwidth;
  }
  partitions.push_back(std::move(partition));
}

void DomainBounder::countBytes() {
  for (const Partition &partition : partitions) {
    Bytes counted;
    counted.enter.resize(partition.members.size());
    counted.leave.resize(partition.members.size());
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        int from = partition.part[topo.ranks[query.group[i]]];
        int to = partition.part[topo.ranks[query.group[j]]];
        if (from == to)
          continue;
        counted.leave[from] += query.counts[i * n + j];
        counted.enter[to] += query.counts[i * n + j];
      }
    bytes.push_back(std::move(counted));
  }
}

std::pair<Rational, Rational>
DomainBounder::traffic(Collective collective, const Partition &partition, unsigned part) const {
  int64_t inside = partition.members[part], outside = n - inside;
  unsigned rootNode = topo.ranks[query.group[query.root]];
  bool root = partition.part[rootNode] == int(part);
  auto whole = [&](int64_t shares) { return Rational(shares); };
  switch (collective) {
  case Collective::all_gather:
    return {whole(outside), 0};
  case Collective::reduce_scatter:
    return {0, whole(outside)};
  case Collective::all_reduce:
    return {whole(n), whole(n)};
  case Collective::all_to_all:
    return {whole(inside) * whole(outside), whole(inside) * whole(outside)};
  case Collective::all_to_all_v: {
    const Bytes &counted = bytes[&partition - partitions.data()];
    auto shares = [&](uint64_t count) { return Rational::make(Rational::Int(count), 1) / share; };
    return {shares(counted.enter[part]), shares(counted.leave[part])};
  }
  case Collective::broadcast:
    return root ? std::pair(whole(0), whole(n)) : std::pair(whole(n), whole(0));
  case Collective::reduce:
    return root ? std::pair(whole(n), whole(0)) : std::pair(whole(0), whole(n));
  case Collective::scatter:
    return root ? std::pair(whole(0), whole(outside)) : std::pair(whole(inside), whole(0));
  case Collective::gather:
    return root ? std::pair(whole(outside), whole(0)) : std::pair(whole(0), whole(inside));
  case Collective::permute:
    break;
  }
  if (query.pairs.empty())
    return inside == 1 ? std::pair(whole(n), whole(n)) : std::pair(whole(0), whole(0));
  int64_t enter = 0, leave = 0;
  for (auto [from, to] : query.pairs) {
    bool fromHere = partition.part[topo.ranks[query.group[from]]] == int(part);
    bool toHere = partition.part[topo.ranks[query.group[to]]] == int(part);
    leave += fromHere && !toHere;
    enter += toHere && !fromHere;
  }
  return {whole(enter) * whole(n), whole(leave) * whole(n)};
}

LowerBound DomainBounder::widest(Collective collective) const {
  LowerBound best;
  for (const Partition &partition : partitions)
    for (unsigned p = 0; p < partition.members.size(); ++p) {
      auto [enter, leave] = traffic(collective, partition, p);
      for (bool entering : {true, false}) {
        const Rational &shares = entering ? enter : leave;
        const Rational &capacity = entering ? partition.in[p] : partition.out[p];
        Rational seconds = share * shares / capacity;
        if (shares.isZero() || !(seconds > best.seconds))
          continue;
        best.seconds = seconds;
        best.argument = "domain cut";
        best.detail = fmt::format("{:.6g} shares must {} a {} of {} rank(s) over {:.6g} GB/s",
                                  shares.toDouble(), entering ? "enter" : "leave", partition.what,
                                  partition.members[p], capacity.toDouble() / 1e9);
      }
      // A pair list is read for every part: the first parts will do.
      if (collective == Collective::permute && !query.pairs.empty() && p == 63)
        break;
    }
  return best;
}

std::vector<Partition> Partitioner::run() {
  auto host = [&](unsigned node) -> const Host & { return topo.hosts[topo.nodes[node].host]; };
  addPartition("rank", [](unsigned node) { return node; });
  addPartition("host", [&](unsigned node) { return topo.nodes[node].host; });
  addPartition("rack", [&](unsigned node) {
    return std::tuple(host(node).dataCenter, host(node).zone, host(node).rack);
  });
  addPartition("zone",
               [&](unsigned node) { return std::tuple(host(node).dataCenter, host(node).zone); });
  addPartition("data centre", [&](unsigned node) { return host(node).dataCenter; });
  return std::move(partitions);
}

std::vector<LowerBound> DomainBounder::run() {
  if (query.collective == Collective::all_to_all_v)
    countBytes();
  LowerBound cut = widest(query.collective);
  add(cut.seconds, "domain cut", cut.detail);
  if (query.collective != Collective::all_reduce)
    return std::move(list);
  if (!query.inNetwork && !query.relays)
    for (const Partition &partition : partitions)
      for (const std::vector<Rational> *side : {&partition.out, &partition.in}) {
        Rational capacity = 0;
        for (const Rational &one : *side)
          capacity += one;
        int64_t parts = side->size();
        add(size * Rational(2 * (parts - 1)) / capacity, "volume",
            fmt::format("2 x {} buffers must {} the {} {}s, {:.6g} GB/s together", parts - 1,
                        side == &partition.out ? "leave" : "enter", parts, partition.what,
                        capacity.toDouble() / 1e9));
      }
  LowerBound scatter = widest(Collective::reduce_scatter), gather = widest(Collective::all_gather);
  add(scatter.seconds + gather.seconds, "reduce_scatter + all_gather",
      scatter.detail + "; " + gather.detail, false);
  return std::move(list);
}

std::vector<Partition> topology::domainPartitions(const Topology &topo,
                                                  llvm::ArrayRef<unsigned> group, Rate rate,
                                                  LinkSet set) {
  return Partitioner(topo, group, rate, set).run();
}

std::vector<LowerBound> topology::domainBounds(const Topology &topo, const BoundQuery &query,
                                               LinkSet set, llvm::ArrayRef<Partition> partitions) {
  return DomainBounder(topo, query, set, partitions).run();
}
