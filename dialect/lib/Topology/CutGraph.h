//===- CutGraph.h - The capacities a bound counts, and their cuts ---------===//
#ifndef NCCLX_LIB_TOPOLOGY_CUTGRAPH_H
#define NCCLX_LIB_TOPOLOGY_CUTGRAPH_H

#include "ncclx/Topology/Bounds.h"

namespace mlir::ncclx::topology {

/// A directed graph with rational capacities; maximum flow in exact integers (Dinic on capacities
/// scaled by the least common denominator).
class FlowGraph {
public:
  unsigned addVertex() { return vertices++; }
  [[nodiscard]] unsigned size() const { return vertices; }
  void addArc(unsigned from, unsigned to, const Rational &capacity);
  /// For the next maxFlow only: a terminal's arc from or to a vertex. No capacity: unlimited.
  struct Terminal {
    unsigned vertex;
    std::optional<Rational> capacity;
  };
  /// The value of a maximum flow; invalid on overflow. `sourceSide` gets the least minimum cut's
  /// source side. `reversed` turns every arc round.
  Rational maxFlow(llvm::ArrayRef<Terminal> sources, llvm::ArrayRef<Terminal> sinks,
                   std::vector<bool> *sourceSide = nullptr, bool reversed = false) const;

  struct Arc {
    unsigned from, to;
    Rational capacity;
    Rational latencyNs;
  };
  std::vector<Arc> arcs;

private:
  unsigned vertices = 0;
};

/// Whether a set has links of a kind.
bool counts(LinkSet set, LinkKind kind);

/// The part of a topology that a bound counts.
class CutGraph {
public:
  CutGraph(const Topology &topology, LinkSet set, llvm::ArrayRef<unsigned> group, bool relays,
           Rate rate);

  FlowGraph graph;
  /// Where the i-th member of the group injects and receives.
  std::vector<unsigned> member;
  /// Is every member reachable from every other?
  [[nodiscard]] bool connected() const;
  /// Shortest latency from one member to each vertex, in ns; unset: unreachable.
  [[nodiscard]] std::vector<std::optional<Rational>> latencies(unsigned from) const;
  /// Sum of capacities out of, and into, each vertex.
  std::vector<Rational> capacityOut, capacityIn;
  [[nodiscard]] const Rational &portOut(unsigned index) const { return capacityOut[member[index]]; }
  [[nodiscard]] const Rational &portIn(unsigned index) const { return capacityIn[member[index]]; }
  /// The node, with a throughput, that is the only neighbour of every member; or -1.
  int sharedNode = -1;
};

} // namespace mlir::ncclx::topology

#endif // NCCLX_LIB_TOPOLOGY_CUTGRAPH_H
