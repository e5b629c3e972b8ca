//===- Bounder.h - The arguments behind a bound ------------------*- C++ -*-===//
#ifndef NCCLX_LIB_TOPOLOGY_BOUNDER_H
#define NCCLX_LIB_TOPOLOGY_BOUNDER_H

#include "ConcurrentFlow.h"
#include "CutGraph.h"
#include "DomainBounds.h"
#include "ncclx/Topology/Bounds.h"
#include <fmt/format.h>

namespace mlir::ncclx::topology {

using Terminal = FlowGraph::Terminal;
using Terminals = std::vector<Terminal>;

/// Above this many ranks only the cuts round domains are tried: n maximum flows take too long.
inline constexpr int64_t mostFlows = 256;

/// The arguments for one query. Each adds what it finds to `list`.
class Bounder {
public:
  Bounder(const Topology &topo, const BoundQuery &query, LinkSet set, const CutGraph &cuts,
          bool connected, llvm::ArrayRef<Partition> domains,
          std::vector<std::optional<Rational>> &fromFirst)
      : topo(topo), query(query), n(query.group.size()), size(toRational(query.bytes)),
        share(size / Rational(n)), set(set), cuts(cuts), connected(connected), domains(domains),
        fromFirst(fromFirst) {}
  std::vector<LowerBound> run();

private:
  static Rational toRational(uint64_t bytes) { return Rational::make(Rational::Int(bytes), 1); }
  Terminal whole(unsigned index) const { return {cuts.member[index], std::nullopt}; }
  std::string rankList(const std::vector<unsigned> &indices) const;
  std::string gigabytes(const Rational &rate) const {
    return fmt::format("{:.6g} GB/s", rate.toDouble() / 1e9);
  }
  void add(Rational seconds, const char *argument, std::string detail, bool universal = true);
  void addUnreachable();
  struct Cut {
    Rational rate; ///< of one share, bytes/s; zero: unreachable
    std::string detail;
  };
  Cut shareRate(bool reversed) const;
  Cut rootRate(bool reversed, bool split) const;
  void allToAll();
  void allReduce();
  void allReduceInNetwork();
  void permute();
  void latency();
  void exact();
  void sharedNode();
  /// What each member sends to each other, in units of `amountUnit`: all_to_all, all_to_all_v and a
  /// permute of known pairs. By index into the group; no member to itself.
  std::vector<Demand> demands() const;
  Rational amountUnit() const {
    return query.collective == Collective::all_to_all ? share
           : query.collective == Collective::permute  ? size
                                                      : Rational(1);
  }
  Rational dual(llvm::ArrayRef<int64_t> lengths, llvm::ArrayRef<Demand> moved) const;
  void concurrent(llvm::ArrayRef<Demand> moved);
  /// A partition of the group by a property of its ranks; empty if it has one part.
  std::vector<std::pair<std::string, std::vector<std::vector<unsigned>>>> partitions() const;
  std::vector<int> heaviest() const;
  Rational cutOut(const std::vector<unsigned> &part, bool reversed) const;

  const Topology &topo;
  const BoundQuery &query;
  int64_t n;
  Rational size, share;
  LinkSet set;
  const CutGraph &cuts;
  bool connected;
  llvm::ArrayRef<Partition> domains;
  std::vector<std::optional<Rational>> &fromFirst;
  std::vector<LowerBound> list;
};

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_BOUNDER_H
