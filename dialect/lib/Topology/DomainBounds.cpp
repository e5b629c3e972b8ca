//===- DomainBounds.cpp ---------------------------------------------------===//
#include "DomainBounds.h"
#include "CutGraph.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
class Partitioner {
public:
  Partitioner(const Topology &topo, llvm::ArrayRef<unsigned> group, Rate rate, LinkSet set)
      : topo(topo), group(group), rate(rate), set(set) {}
  std::vector<Partition> run();

private:
  /// `keys`: by node, of those that are in no network.
  void addPartition(const char *what, llvm::ArrayRef<unsigned> keys, unsigned numKeys);
  template <typename Key> void addByHost(const char *what, Key key);
  void grow(Partition &partition) const;

  const Topology &topo;
  llvm::ArrayRef<unsigned> group;
  Rate rate;
  LinkSet set;
  std::vector<Partition> partitions;
  /// Links to nodes of the network, those of a node behind each other.
  std::vector<unsigned> firstUp, up;
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
      for (unsigned i = firstUp[v]; i < firstUp[v + 1]; ++i) {
        unsigned w = up[i];
        if (done[w])
          continue;
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

void Partitioner::addPartition(const char *what, llvm::ArrayRef<unsigned> keys, unsigned numKeys) {
  Partition partition;
  partition.what = what;
  partition.part.assign(topo.nodes.size(), -1);
  std::vector<int> index(numKeys, -1); // of a key with members
  for (unsigned r : group) {
    int &mine = index[keys[topo.ranks[r]]];
    if (mine < 0) {
      mine = int(partition.members.size());
      partition.members.push_back(0);
    }
    ++partition.members[mine];
    partition.part[topo.ranks[r]] = mine;
  }
  size_t parts = partition.members.size();
  if (parts < 2 || (!partitions.empty() && parts == partitions.back().members.size()))
    return;
  if (!partitions.empty()) { // the first is by rank: a rank is its node alone
    for (unsigned i = 0; i < topo.nodes.size(); ++i)
      if (topo.nodes[i].kind != NodeKind::net)
        partition.part[i] = index[keys[i]];
    grow(partition);
  }
  partition.out.resize(parts);
  partition.in.resize(parts);
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

/// `key`: of a host.
template <typename Key> void Partitioner::addByHost(const char *what, Key key) {
  std::map<decltype(key(0u)), unsigned> numbers;
  std::vector<unsigned> ofHost, keys(topo.nodes.size(), 0);
  for (unsigned h = 0; h < topo.hosts.size(); ++h)
    ofHost.push_back(numbers.try_emplace(key(h), unsigned(numbers.size())).first->second);
  for (unsigned i = 0; i < topo.nodes.size(); ++i)
    if (topo.nodes[i].kind != NodeKind::net)
      keys[i] = ofHost[topo.nodes[i].host];
  addPartition(what, keys, unsigned(numbers.size()));
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
  for (const Partition &partition : partitions) {
    Rational lastShares[2], lastCapacity[2]; // most parts are as the one before
    for (unsigned p = 0; p < partition.members.size(); ++p) {
      auto [enter, leave] = traffic(collective, partition, p);
      for (bool entering : {true, false}) {
        const Rational &shares = entering ? enter : leave;
        const Rational &capacity = entering ? partition.in[p] : partition.out[p];
        if (p > 0 && shares == lastShares[entering] && capacity == lastCapacity[entering])
          continue;
        lastShares[entering] = shares;
        lastCapacity[entering] = capacity;
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
  }
  return best;
}

std::vector<Partition> Partitioner::run() {
  auto toNetwork = [&](const Link &link) {
    return counts(set, link.kind) && topo.nodes[link.to].kind == NodeKind::net;
  };
  firstUp.assign(topo.nodes.size() + 1, 0);
  for (const Link &link : topo.links)
    firstUp[link.from + 1] += toNetwork(link);
  std::partial_sum(firstUp.begin(), firstUp.end(), firstUp.begin());
  up.resize(firstUp.back());
  std::vector<unsigned> at(firstUp.begin(), firstUp.end() - 1);
  for (const Link &link : topo.links)
    if (toNetwork(link))
      up[at[link.from]++] = link.to;

  std::vector<unsigned> own(topo.nodes.size());
  std::iota(own.begin(), own.end(), 0u);
  addPartition("rank", own, unsigned(own.size()));
  auto host = [&](unsigned h) -> const Host & { return topo.hosts[h]; };
  addByHost("host", [](unsigned h) { return h; });
  addByHost("rack",
            [&](unsigned h) { return std::tuple(host(h).dataCenter, host(h).zone, host(h).rack); });
  addByHost("zone", [&](unsigned h) { return std::pair(host(h).dataCenter, host(h).zone); });
  addByHost("data centre", [&](unsigned h) { return host(h).dataCenter; });
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
