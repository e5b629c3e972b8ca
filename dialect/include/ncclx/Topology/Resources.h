//===- Resources.h - Routes over shared resources ---------------*- C++ -*-===//
//
// What a discrete-event clock needs: a flat list of resources with capacities, and for each pair of
// ranks the resources that a transfer holds. Shares are the clock's business (max-min fair).
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TOPOLOGY_RESOURCES_H
#define NCCLX_TOPOLOGY_RESOURCES_H

#include "ncclx/Topology/Topology.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <map>
#include <utility>

namespace mlir::ncclx::topology {

enum class ResourceKind {
  link,       ///< one direction of a link or bundle of links; bytes/s
  node,       ///< what may pass through a node (a host's memory); bytes/s
  hbm,        ///< a GPU's memory; bytes/s, reads and writes together
  compute,    ///< SMs of a GPU or cores of a host; SM- or core-seconds per second
  copyEngine, ///< one copy engine; bytes/s (the widest of the GPU's links)
};

struct Resource {
  ResourceKind kind = ResourceKind::link;
  /// What its name is made of: link: vertices; node: a vertex; cores: a host; else a rank.
  unsigned from = 0, to = 0;
  Rational capacity; ///< units per second, see ResourceKind
};

/// A transfer of b bytes from one rank to another takes `latencyNs` plus the time that b bytes take
/// at a rate r, where r <= `cap` and each resource named is held for r bytes/s while it runs. No
/// resource is named twice.
struct Route {
  std::vector<unsigned> resources;
  Rational latencyNs;
  /// The rate of a lone transfer. Below the resources' least capacity where the planes of a bundle
  /// are unequal, and for a copy within one HBM, which reads and writes each byte.
  Rational cap;
};

/// What a rank computes with.
struct RankResources {
  unsigned compute = 0; ///< shared by all processes of a host; own for a GPU
  Rational units;       ///< most units one kernel of the rank uses (SMs; 1 core)
  Rational f32PerUnit;  ///< FLOP/s of one unit
  Rational bf16PerUnit; ///< FLOP/s of one unit
  /// HBM, or the host's memory node; -1 if its rate is unknown.
  int memory = -1;
  /// How much of `memory` a byte read or written takes: 1 for HBM, 1/2 for a memory node, whose
  /// throughput counts copied bytes (each read once and written once).
  Rational memoryPerByte;
  std::vector<unsigned> copyEngines; ///< empty for a process
  unsigned powerCapWatts = 0;        ///< 0: unknown
  /// Most bytes a second that one thread block writes in a copy; 0: unknown.
  Rational blockBytesPerSec;
};

/// The port of a network adapter to which a rank has the fewest links, on its own host, and the
/// port's number there. Ranks whose numbers are equal are on one rail: between them, a put meets
/// its own kind of port at the other end.
struct NearestPort {
  int node = -1; ///< -1: the host has none that the rank reaches
  int rail = -1;
};
/// By rank. Requires a topology that validated without errors.
std::vector<NearestPort> nearestPorts(const Topology &topology);

/// A switch, or a bundle of them, that multicasts and reduces, as the ranks behind it reach it.
struct CommonSwitch {
  std::vector<unsigned> up,
      down;           ///< resources from each rank to it, and back, in the group's order
  Rational latencyNs; ///< there and back, of the farthest
  Rational cap;       ///< bytes/s of the narrowest of them
};

/// The resources of one topology at one rate. Holds a reference: the topology must outlive it and
/// must have validated without errors. route() caches, so one object belongs to one thread.
class ResourceModel {
public:
  ResourceModel(const Topology &topology, Rate rate);

  [[nodiscard]] const std::vector<Resource> &resources() const { return list; }
  /// "gpu0->nvswitch", "host0.cores", "gpu3.hbm".
  [[nodiscard]] std::string name(unsigned resource) const;
  /// The same for links, nodes and memories whose names differ in nothing but numbers.
  [[nodiscard]] std::pair<unsigned, unsigned> kindOfName(unsigned resource) const;
  [[nodiscard]] const RankResources &rank(unsigned rank) const { return perRank[rank]; }
  /// The best route: scale-up links (nvlink, xgmi, shm) before PCI before the network, then fewest
  /// links, then widest, then lowest node. Never through another rank: forwarding is a schedule's
  /// choice. std::nullopt if there is none. It holds the memories at both ends too (HBM, or a
  /// host's memory), each once. From a rank to itself: its memory alone, where its rate is known
  /// (else no resources and a cap of zero, which then means "no limit known"); zero latency.
  std::optional<Route> route(unsigned source, unsigned destination);
  /// The rate of a lone transfer, zero if there is no route.
  Rational bandwidth(unsigned source, unsigned destination);
  /// Latency of the route; std::nullopt if there is none.
  std::optional<Rational> latencyNs(unsigned source, unsigned destination);
  /// How `source` may reach the memory of `destination`.
  Reach reachability(unsigned source, unsigned destination);
  /// The switch that can multicast and reduce and to which every rank of `group` has links of its
  /// own, of several the widest; std::nullopt if there is none.
  [[nodiscard]] std::optional<CommonSwitch> commonSwitch(llvm::ArrayRef<unsigned> group) const;

private:
  /// Links of one kind between two vertices. There are hundreds of thousands in a large machine:
  /// their rate is their resource's.
  struct Edge {
    unsigned to;
    unsigned resource;
    LinkKind kind;
    unsigned link;   ///< the first, by its index in the topology
    int others = -1; ///< in moreLinks; -1: there are none
  };
  struct Mark {
    unsigned hops = ~0u;
    unsigned previous = 0;
    const Edge *edge = nullptr;
    Rational width;
  };
  struct Found {
    Route route;
    Reach reach = Reach::none;
  };
  llvm::ArrayRef<Edge> out(unsigned vertex) const {
    return {edges.data() + firstEdge[vertex], numEdges[vertex]};
  }
  const Rational &bandwidthOf(const Edge &edge) const { return list[edge.resource].capacity; }
  llvm::SmallVector<unsigned, 4> linksOf(const Edge &edge) const;
  Rational latencyOf(const Edge &edge) const;
  void buildGraph();
  void buildRanks();
  Found search(unsigned source, unsigned destination) const;
  unsigned meet(unsigned start, unsigned goal, unsigned most, std::vector<unsigned> &seen) const;
  const Found &find(unsigned source, unsigned destination);
  Rational planeCap(const std::vector<const Edge *> &path) const;

  const Topology &topo;
  Rate rate;
  std::vector<Resource> list;
  std::vector<RankResources> perRank;
  std::vector<unsigned> group; ///< node -> vertex (bundles are one vertex)
  /// By vertex: a node of its name, and whether the name is that of its bundle.
  std::vector<std::pair<unsigned, bool>> vertexName;
  std::vector<unsigned> vertexKind; ///< by vertex: equal where names differ in numbers alone
  std::vector<Edge> edges;          ///< those of a vertex behind each other
  std::vector<unsigned> firstEdge, numEdges;       ///< by vertex
  std::vector<std::pair<unsigned, LinkKind>> into; ///< where edges come from, by where they lead
  std::vector<unsigned> firstInto;                 ///< by vertex, and one more
  std::vector<std::vector<unsigned>> moreLinks;
  // Of a search, by vertex; reset behind it.
  mutable std::vector<Mark> marks;
  mutable std::vector<unsigned> fromStart, toGoal; ///< hops; ~0u: unknown
  std::vector<int> throughResource;                ///< by vertex, -1: no limit
  std::vector<int> vertexRank;                     ///< by vertex, -1: not a rank's
  std::vector<bool> inNetwork; ///< by vertex: can all of it multicast and reduce
  std::map<std::pair<unsigned, unsigned>, Found> cache;
};

/// Transfers between members that the two that are farthest from each other are apart, each along a
/// route of its own: where a route leads from all to all, 1. std::nullopt: some are not joined.
std::optional<unsigned> eccentricity(ResourceModel &resources, llvm::ArrayRef<unsigned> group);

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOPOLOGY_RESOURCES_H
