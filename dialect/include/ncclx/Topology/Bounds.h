//===- Bounds.h - Lower bounds of collectives -------------------*- C++ -*-===//
#ifndef NCCLX_TOPOLOGY_BOUNDS_H
#define NCCLX_TOPOLOGY_BOUNDS_H

#include "ncclx/Topology/Topology.h"
#include "llvm/ADT/ArrayRef.h"
#include <memory>
#include <utility>

namespace mlir::ncclx::topology {

enum class Collective {
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  all_to_all_v,
  broadcast,
  reduce,
  scatter,
  gather,
  permute,
};
llvm::StringRef name(Collective collective);
std::optional<Collective> parseCollective(llvm::StringRef text);

/// Which links a bound counts. It holds for every schedule that uses no other.
enum class LinkSet {
  scaleUp,        ///< nvlink, xgmi, shm
  scaleUpAndNics, ///< those, and PCI only as the way to a NIC; the network
  all,            ///< every link
};
llvm::StringRef name(LinkSet set);

struct BoundQuery {
  Collective collective = Collective::all_gather;
  /// Distinct ranks; order matters to `root` and `permute` only.
  llvm::ArrayRef<unsigned> group;
  /// S, the size in bytes of the *larger* of a rank's two buffers, as nccl-tests count it:
  ///   all_gather      the whole output (each rank contributes S/n)
  ///   reduce_scatter  the whole input of one rank (each rank keeps S/n)
  ///   all_reduce, broadcast, reduce   the buffer
  ///   all_to_all      the whole send buffer of one rank (S/n to each rank, itself included)
  ///   all_to_all_v    what one member sends to, or receives from, the others at most:
  ///                   largestTotal(); the bounds themselves follow from `counts`
  ///   scatter, gather the whole buffer at the root
  ///   permute         the buffer each rank sends
  /// n = group.size(). S/n is taken as a rational; S need not divide.
  uint64_t bytes = 0;
  Rate rate = Rate::payload;
  /// Index into `group`: broadcast, reduce, scatter, gather.
  unsigned root = 0;
  /// permute: (source, destination) as indices into `group`. Empty: unknown, each rank sends to one
  /// other.
  llvm::ArrayRef<std::pair<unsigned, unsigned>> pairs;
  /// all_to_all_v: bytes from member i to member j at [i * n + j]; those of i = j stay where they
  /// are.
  llvm::ArrayRef<uint64_t> counts;
  /// May ranks outside the group forward data? By default they have work of their own.
  bool relays = false;
  /// May switches that can reduce or multicast do so?
  bool inNetwork = false;
};

/// One argument why a collective takes at least so long.
struct LowerBound {
  /// Seconds. Meaningless if `unreachable`.
  Rational seconds;
  /// The argument's fixed name: "cut" (the narrowest of all cuts, by maximum flow), "domain cut"
  /// (above 256 ranks: the narrowest round a rank, host, rack, zone or data centre), "port",
  /// "volume", "shared node", "distance", "concurrent flow", "reduce_scatter + all_gather",
  /// "latency", "in-network reduction", "nothing moves".
  std::string argument;
  /// The argument's witness, for people: "7 of 8 ranks must reach gpu0 over 450 GB/s".
  std::string detail;
  /// True if it binds every schedule over these links; false if only schedules of the form that
  /// `argument` names (all_reduce as reduce_scatter + all_gather).
  bool universal = true;
  /// Some rank cannot be reached over these links.
  bool unreachable = false;
  LinkSet links = LinkSet::scaleUp;
  Rate rate = Rate::payload;
};

/// The links that a bound for this group counts: scale-up links if they connect the group within
/// one NVLink domain; with NICs if they connect each host's part; otherwise all.
LinkSet linksFor(const Topology &topology, llvm::ArrayRef<unsigned> group, bool relays = false);

/// Every argument that applies, largest first; never empty. Requires a topology that validated
/// without errors, and a query whose ranks and indices are in range and distinct (checkQuery).
std::vector<LowerBound> bounds(const Topology &topology, const BoundQuery &query);
/// The same for several queries: what those of equal group, relays and rate have in common is done
/// once. Holds a reference to the topology; belongs to one thread.
class BoundSolver {
public:
  explicit BoundSolver(const Topology &topology);
  ~BoundSolver();
  std::vector<LowerBound> bounds(const BoundQuery &query);

private:
  struct Shared;
  const Topology &topo;
  std::vector<std::unique_ptr<Shared>> known; ///< of the last group: one for each rate
};
/// The largest universal one.
LowerBound bound(const Topology &topology, const BoundQuery &query);
/// What is wrong with a query, or "".
std::string checkQuery(const Topology &topology, const BoundQuery &query);

/// What a query of all_to_all_v says as `bytes`: the largest sum of a row or column of its counts,
/// without the diagonal.
uint64_t largestTotal(llvm::ArrayRef<uint64_t> counts, unsigned members);

/// bytes / seconds, the "algorithm bandwidth" of nccl-tests; zero if `seconds` is zero.
Rational algorithmBandwidth(const BoundQuery &query, const LowerBound &bound);
/// The "bus bandwidth" of nccl-tests: the former times 2(n-1)/n for all_reduce, (n-1)/n for
/// all_gather, reduce_scatter, all_to_all, scatter and gather, 1 otherwise (all_to_all_v counts the
/// others' bytes alone).
Rational busBandwidth(const BoundQuery &query, const LowerBound &bound);

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOPOLOGY_BOUNDS_H
