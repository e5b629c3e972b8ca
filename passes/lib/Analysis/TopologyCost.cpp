//===- TopologyCost.cpp - A topology as the machine's cost model ---------------------===//
#include "ncclx/Analysis/TopologyCost.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir::ncclx;
using namespace mlir::ctran::machine;

// A copy with its flag took 2.8 us and an empty kernel 0.57 us, captured, on H200. How the 2.8 us
// divide among copy, signal and wait was not measured: this division is assumed.
LaneCosts LaneCosts::gpu() { return {1.5e-6, 0.5e-6, 0.5e-6, 0.6e-6, 0}; }
// A collective of 8 bytes took 0.08 us (a copy) and 0.23 us (two and a reduction) on one rank, and,
// with ranks that wait by yielding, some 6 us a message for each further rank on a core: on 2 cores
// of an AMD EPYC, 2026-11-30. How a run divides among its calls was not measured: this division is
// assumed.
LaneCosts LaneCosts::host() { return {0.03e-6, 0.02e-6, 0.02e-6, 0.08e-6, 0, 6e-6}; }

TopologyCost::TopologyCost(const topology::Topology &topology, topology::Rate rate)
    : topology(topology), theRate(rate), model(topology, rate) {
  for (const topology::Resource &resource : model.resources())
    capacities.push_back(resource.capacity.toDouble());
  bool gpus = topology.numRanks() > 0 && topology.rankNode(0).kind == topology::NodeKind::gpu;
  costs = gpus ? LaneCosts::gpu() : LaneCosts::host();
  double cores = 0, ranks = double(topology.numRanks());
  for (const topology::Host &host : topology.hosts)
    cores += double(host.cores);
  costs.handover *= cores > 0 ? std::max(0.0, ranks / cores - 1) : 0;
}

const TopologyCost::Way &TopologyCost::way(int64_t from, int64_t to) const {
  auto [it, isNew] = ways.try_emplace({from, to});
  if (!isNew)
    return it->second;
  if (std::optional<topology::Route> route = model.route(unsigned(from), unsigned(to)))
    it->second = {true,
                  model.reachability(unsigned(from), unsigned(to)) == topology::Reach::hostOnly,
                  route->latencyNs.toDouble() * 1e-9,
                  route->cap.isZero() ? 0 : route->cap.toDouble(),
                  {route->resources.begin(), route->resources.end()}};
  return it->second;
}

unsigned TopologyCost::numResources() const { return capacities.size(); }
double TopologyCost::capacity(unsigned resource) const { return capacities[resource]; }

// A byte that is reduced on its way leaves each member once and reaches the one who asked once; one
// that is multicast leaves its sender once and reaches each member once: the own rank's part of
// both goes through the switch like any other.
Cost TopologyCost::inNetwork(const OpCostQuery &query) const {
  Cost cost;
  bool reduces = query.op->kind == OpKind::Reduce, multicasts = query.writes.size() > 1 || !reduces;
  cost.before = reduces ? costs.kernel : costs.copy;
  std::vector<unsigned> group;
  for (const Part &part : reduces ? query.reads : query.writes)
    group.push_back(unsigned(part.rank));
  cost.work = double(query.writes.front().bytes);
  if (cost.work == 0)
    return cost;
  std::optional<topology::CommonSwitch> common = model.commonSwitch(group);
  if (!common) {
    cost.lacks = "a switch that can multicast and reduce between its members";
    return cost;
  }
  size_t own = size_t(llvm::find(group, unsigned(query.rank)) - group.begin());
  auto use = [&](unsigned resource, double weight = 1) {
    auto known =
        llvm::find_if(cost.uses, [&](const ResourceUse &of) { return of.resource == resource; });
    if (known == cost.uses.end())
      cost.uses.push_back({resource, weight});
    else
      known->weight += weight;
  };
  if (reduces) {
    for (unsigned up : common->up)
      use(up);
    use(common->down[own]);
  }
  if (multicasts) {
    use(common->up[own]);
    for (unsigned down : common->down)
      use(down);
  }
  for (const std::vector<Part> *parts : {&query.reads, &query.writes})
    for (const Part &part : *parts)
      if (const topology::RankResources &at = model.rank(part.rank); at.memory >= 0)
        use(unsigned(at.memory), at.memoryPerByte.toDouble());
  // Planes of a switch that are unequal, and what may pass through it in all, as for a copy.
  for (unsigned other : group) {
    std::optional<topology::Route> route = model.route(unsigned(query.rank), other);
    if (!route || other == unsigned(query.rank))
      continue;
    if (!route->cap.isZero())
      cost.maxRate = std::min(cost.maxRate, route->cap.toDouble());
    if (other == group.back())
      for (unsigned resource : route->resources)
        if (model.resources()[resource].kind == topology::ResourceKind::node)
          use(resource, double(reduces ? group.size() : 0) + (multicasts ? 1 : 0));
  }
  // What is asked for goes there and back, what is sent there.
  cost.after = common->latencyNs.toDouble() * 1e-9 * ((reduces ? 2 : 0) + (multicasts ? 1 : 0));
  return cost;
}

/// Processes do by loads and stores of their own what a switch would do for GPUs.
bool TopologyCost::isProcess(const OpCostQuery &query) const {
  return topology.rankNode(query.rank).kind == topology::NodeKind::process;
}

Cost TopologyCost::copy(const OpCostQuery &query) const {
  if (query.op->inNetwork && !isProcess(query))
    return inNetwork(query);
  Cost cost;
  cost.before = costs.copy;
  double bytes = 0;
  llvm::SmallVector<std::pair<unsigned, double>, 8> held; // resource, bytes through it
  double slowest = 0;                                     // seconds at the routes' own caps
  bool sockets = false;
  for (const Part &write : query.writes) {
    int64_t source = query.reads.empty() ? query.rank : query.reads.front().rank;
    bytes += double(write.bytes);
    const Way &route = way(source, write.rank);
    if (!route.exists) {
      if (write.bytes > 0)
        cost.apart = {source, write.rank};
      continue;
    }
    // What is asked for goes there and back.
    bool gets = source != query.rank && write.rank == query.rank;
    cost.landing = std::max(cost.landing, route.latency * (gets ? 2 : 1));
    sockets |= route.sockets;
    if (route.cap != 0)
      slowest += double(write.bytes) / route.cap;
    for (unsigned resource : route.resources)
      held.push_back({resource, double(write.bytes)});
  }
  if (bytes == 0)
    return cost;
  cost.work = bytes;
  if (slowest > 0)
    cost.maxRate = bytes / slowest;
  for (auto [resource, through] : held)
    cost.uses.push_back({resource, through / bytes});
  // An sm lane is one thread block (S9).
  const topology::RankResources &rank = model.rank(query.rank);
  if (double block = rank.blockBytesPerSec.toDouble();
      block > 0 && query.op->lane.kind == LaneKind::SM)
    cost.maxRate = std::min(cost.maxRate, block);
  // A process copies by its own core; a socket takes one at each end.
  bool process = isProcess(query);
  if (process && cost.maxRate > 0 && cost.maxRate < std::numeric_limits<double>::infinity())
    cost.uses.push_back({rank.compute, (sockets ? 2 : 1) / cost.maxRate});
  // A serial lane waits for the flight of its last byte; a nic's op is complete before. A process
  // that shares memory stores and goes on: the flight is the signal's.
  if (process && !sockets)
    cost.landing = 0;
  else if (process)
    cost.landing += costs.handover;
  if (!isIssueLane(query.op->lane.kind)) {
    cost.after = cost.landing;
    cost.landing = 0;
  }
  return cost;
}

Cost TopologyCost::reduce(const OpCostQuery &query) const {
  if (query.op->inNetwork && !isProcess(query))
    return inNetwork(query);
  Cost cost;
  cost.before = costs.kernel;
  cost.maxRate = std::numeric_limits<double>::infinity();
  for (const std::vector<Part> *parts : {&query.reads, &query.writes})
    for (const Part &part : *parts)
      cost.work += double(part.bytes);
  if (cost.work == 0)
    return cost;
  const topology::RankResources &rank = model.rank(query.rank);
  bool process = isProcess(query);
  llvm::SmallMapVector<unsigned, double, 8> held; // bytes through it
  double slowest = 0;                             // seconds of a peer's part at the route's own cap
  for (const std::vector<Part> *parts : {&query.reads, &query.writes}) {
    bool reads = parts == &query.reads;
    double latency = 0;
    for (const Part &part : *parts) {
      if (part.bytes == 0)
        continue;
      double bytes = double(part.bytes);
      const topology::RankResources &there = model.rank(part.rank);
      if (there.memory >= 0)
        held[unsigned(there.memory)] += bytes * there.memoryPerByte.toDouble();
      if (part.rank == query.rank)
        continue;
      int64_t from = reads ? part.rank : query.rank, to = reads ? query.rank : part.rank;
      const Way &route = way(from, to);
      if (!route.exists) {
        cost.apart = {from, to};
        continue;
      }
      latency = std::max(latency, route.latency);
      if (route.cap != 0)
        slowest = std::max(slowest, bytes / route.cap);
      // A sum goes through no memory but that of its operands.
      for (unsigned resource : route.resources)
        if (int(resource) != there.memory && int(resource) != rank.memory)
          held[resource] += bytes;
    }
    // As in a copy: what is read is asked for before, and a process waits for neither.
    cost.after += process ? 0 : latency * (reads ? 2 : 1);
  }
  for (auto [resource, through] : held)
    cost.uses.push_back({resource, through / cost.work});
  if (slowest > 0)
    cost.maxRate = cost.work / slowest;
  // One element in four bytes and one operation each: the least a reduction computes.
  double flops = rank.f32PerUnit.toDouble() * rank.units.toDouble();
  if (process && flops > 0) {
    cost.maxRate = std::min(cost.maxRate, flops * 4);
    cost.uses.push_back({rank.compute, rank.units.toDouble() / (flops * 4)});
  }
  return cost;
}

Cost TopologyCost::compute(const OpCostQuery &query) const {
  Cost cost;
  cost.before = costs.kernel;
  const topology::RankResources &rank = model.rank(query.rank);
  double units = rank.units.toDouble();
  if (query.op->sms > 0 && topology.rankNode(query.rank).kind == topology::NodeKind::gpu)
    units = std::min(units, double(query.op->sms));
  double perUnit = std::max(rank.bf16PerUnit.toDouble(), rank.f32PerUnit.toDouble());
  double arithmetic = units > 0 && perUnit > 0 ? query.op->flops / (units * perUnit) : 0;
  double memory = 0;
  double perByte = rank.memory >= 0 ? rank.memoryPerByte.toDouble() : 0;
  if (rank.memory >= 0 && capacities[rank.memory] > 0)
    memory = query.op->bytes * perByte / capacities[rank.memory];
  double seconds = std::max(arithmetic, memory);
  if (seconds <= 0)
    return cost;
  // Work in seconds of this op alone; it shares its units and its memory.
  cost.work = seconds;
  cost.maxRate = 1;
  if (units > 0)
    cost.uses.push_back({rank.compute, units * (arithmetic > 0 ? arithmetic / seconds : 1)});
  if (memory > 0)
    cost.uses.push_back({unsigned(rank.memory), query.op->bytes * perByte / seconds});
  return cost;
}

Cost TopologyCost::signal(const OpCostQuery &query) const {
  Cost cost;
  cost.before = costs.signal;
  if (query.signalled >= 0 && query.signalled != query.rank) {
    if (const Way &route = way(query.rank, query.signalled); route.exists)
      cost.landing = route.latency;
    else
      cost.apart = {query.rank, query.signalled};
  }
  if (query.signalled >= 0)
    cost.landing += costs.handover;
  return cost;
}

Cost TopologyCost::wait(const OpCostQuery &) const {
  Cost cost;
  cost.before = costs.wait;
  return cost;
}
