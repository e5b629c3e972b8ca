//===- TopologyCost.cpp - A topology as the machine's cost model ---------------------===//
#include "ncclx/Analysis/TopologyCost.h"

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

unsigned TopologyCost::numResources() const { return capacities.size(); }
double TopologyCost::capacity(unsigned resource) const { return capacities[resource]; }

Cost TopologyCost::copy(const OpCostQuery &query) const {
  Cost cost;
  cost.before = costs.copy;
  double bytes = 0;
  std::vector<std::pair<unsigned, double>> held; // resource, bytes through it
  double slowest = 0;                            // seconds at the routes' own caps
  for (const Part &write : query.writes) {
    int64_t source = query.reads.empty() ? query.rank : query.reads.front().rank;
    bytes += double(write.bytes);
    std::optional<topology::Route> route = model.route(source, write.rank);
    if (!route) {
      if (write.bytes > 0)
        cost.apart = {source, write.rank};
      continue;
    }
    cost.landing = std::max(cost.landing, route->latencyNs.toDouble() * 1e-9);
    if (!route->cap.isZero())
      slowest += double(write.bytes) / route->cap.toDouble();
    for (unsigned resource : route->resources)
      held.push_back({resource, double(write.bytes)});
  }
  if (bytes == 0)
    return cost;
  cost.work = bytes;
  if (slowest > 0)
    cost.maxRate = bytes / slowest;
  for (auto [resource, through] : held)
    cost.uses.push_back({resource, through / bytes});
  // A process copies by its own core.
  const topology::RankResources &rank = model.rank(query.rank);
  bool process = topology.rankNode(query.rank).kind == topology::NodeKind::process;
  if (process && cost.maxRate > 0 && cost.maxRate < std::numeric_limits<double>::infinity())
    cost.uses.push_back({rank.compute, 1 / cost.maxRate});
  // A serial lane waits for the flight of its last byte; a nic's op is complete before. A process
  // stores and goes on: the flight is the signal's.
  if (process)
    cost.landing = 0;
  if (!isIssueLane(query.op->lane.kind)) {
    cost.after = cost.landing;
    cost.landing = 0;
  }
  return cost;
}

void TopologyCost::useMemory(Cost &cost, int64_t rank, double weight) const {
  const topology::RankResources &resources = model.rank(rank);
  if (resources.memory >= 0)
    cost.uses.push_back({unsigned(resources.memory), weight * resources.memoryPerByte.toDouble()});
}

Cost TopologyCost::reduce(const OpCostQuery &query) const {
  Cost cost;
  cost.before = costs.kernel;
  double bytes = 0, rate = std::numeric_limits<double>::infinity();
  for (const Part &part : query.reads)
    bytes += double(part.bytes);
  for (const Part &part : query.writes)
    bytes += double(part.bytes);
  if (bytes == 0)
    return cost;
  cost.work = bytes;
  const topology::RankResources &rank = model.rank(query.rank);
  useMemory(cost, query.rank, 1);
  // One element in four bytes and one operation each: the least a reduction computes.
  double flops = rank.f32PerUnit.toDouble() * rank.units.toDouble();
  if (topology.rankNode(query.rank).kind == topology::NodeKind::process && flops > 0) {
    rate = std::min(rate, flops * 4);
    cost.uses.push_back({rank.compute, rank.units.toDouble() / (flops * 4)});
  }
  cost.maxRate = rate;
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
    if (auto ns = model.latencyNs(query.rank, query.signalled))
      cost.landing = ns->toDouble() * 1e-9;
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
