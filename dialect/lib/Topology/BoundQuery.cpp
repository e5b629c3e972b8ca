//===- BoundQuery.cpp - Names, checks and units of queries -------------------===//
#include "ncclx/Topology/Bounds.h"
#include <algorithm>
#include <fmt/format.h>
#include <limits>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

static constexpr Collective allCollectives[] = {
    Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce,
    Collective::all_to_all, Collective::all_to_all_v,   Collective::broadcast,
    Collective::reduce,     Collective::scatter,        Collective::gather,
    Collective::permute};

llvm::StringRef topology::name(Collective collective) {
  switch (collective) {
  case Collective::all_gather:
    return "all_gather";
  case Collective::reduce_scatter:
    return "reduce_scatter";
  case Collective::all_reduce:
    return "all_reduce";
  case Collective::all_to_all:
    return "all_to_all";
  case Collective::all_to_all_v:
    return "all_to_all_v";
  case Collective::broadcast:
    return "broadcast";
  case Collective::reduce:
    return "reduce";
  case Collective::scatter:
    return "scatter";
  case Collective::gather:
    return "gather";
  case Collective::permute:
    return "permute";
  }
  return "?";
}

std::optional<Collective> topology::parseCollective(llvm::StringRef text) {
  for (Collective collective : allCollectives)
    if (name(collective) == text)
      return collective;
  return std::nullopt;
}

llvm::StringRef topology::name(LinkSet set) {
  switch (set) {
  case LinkSet::scaleUp:
    return "scale-up links";
  case LinkSet::scaleUpAndNics:
    return "scale-up links and NICs";
  case LinkSet::all:
    return "all links";
  }
  return "?";
}

std::string topology::checkQuery(const Topology &topo, const BoundQuery &query) {
  if (query.group.empty())
    return "the group is empty";
  std::vector<bool> seen(topo.numRanks());
  for (unsigned r : query.group) {
    if (r >= topo.numRanks())
      return fmt::format("the group names rank {}, but the topology has {}", r, topo.numRanks());
    if (seen[r])
      return fmt::format("the group names rank {} twice", r);
    seen[r] = true;
  }
  if (query.root >= query.group.size())
    return fmt::format("the root is member {}, but the group has {}", query.root,
                       query.group.size());
  for (auto [from, to] : query.pairs)
    if (from >= query.group.size() || to >= query.group.size())
      return fmt::format("a pair names member {}, but the group has {}", std::max(from, to),
                         query.group.size());
  if (query.collective == Collective::all_to_all_v) {
    size_t members = query.group.size();
    if (query.counts.size() != members * members)
      return fmt::format("all_to_all_v among {} members needs {} x {} counts, found {}", members,
                         members, members, query.counts.size());
    Rational::Int total = 0;
    for (uint64_t count : query.counts)
      total += count;
    if (total > std::numeric_limits<int64_t>::max())
      return "the counts add up to more than 2^63 bytes";
  }
  return "";
}

uint64_t topology::largestTotal(llvm::ArrayRef<uint64_t> counts, unsigned members) {
  uint64_t largest = 0;
  for (unsigned i = 0; i < members; ++i) {
    uint64_t sent = 0, received = 0;
    for (unsigned j = 0; j < members; ++j) {
      sent += i == j ? 0 : counts[i * members + j];
      received += i == j ? 0 : counts[j * members + i];
    }
    largest = std::max({largest, sent, received});
  }
  return largest;
}

static Rational bytesOf(const BoundQuery &query) {
  return Rational::make(Rational::Int(query.bytes), 1);
}

Rational topology::algorithmBandwidth(const BoundQuery &query, const LowerBound &bound) {
  return bound.seconds.isZero() ? Rational(0) : bytesOf(query) / bound.seconds;
}

Rational topology::busBandwidth(const BoundQuery &query, const LowerBound &bound) {
  int64_t n = query.group.size();
  Rational factor = 1;
  switch (query.collective) {
  case Collective::all_reduce:
    factor = Rational::make(2 * (n - 1), n);
    break;
  case Collective::all_gather:
  case Collective::reduce_scatter:
  case Collective::all_to_all:
  case Collective::scatter:
  case Collective::gather:
    factor = Rational::make(n - 1, n);
    break;
  case Collective::broadcast:
  case Collective::reduce:
  case Collective::permute:
  case Collective::all_to_all_v:
    break;
  }
  return algorithmBandwidth(query, bound) * factor;
}
