//===- TierCost.cpp - A machine of equal tiers as a cost model -------------------------------===//
#include "ncclx/Analysis/TierCost.h"

#include <algorithm>

using namespace mlir::ncclx;
using namespace mlir::ctran::machine;

double TierCost::capacity(unsigned resource) const {
  if (resource < tiers.ports.size())
    return tiers.ports[resource];
  return tiers.memory > 0 ? tiers.memory : std::numeric_limits<double>::infinity();
}

const topology::Tier *TierCost::between(int64_t a, int64_t b) const {
  for (const topology::Tier &tier : tiers.list)
    if (a / tier.stride != b / tier.stride)
      return &tier;
  return nullptr;
}

// Of each port a transfer takes the way out of one rank and the way into another, which have the
// same rate: where one is full, so is the other.
Cost TierCost::copy(const OpCostQuery &query) const {
  Cost cost;
  cost.before = costs.copy;
  double bytes = 0, inMemory = 0;
  std::vector<double> held(tiers.ports.size(), 0);
  for (const Part &write : query.writes) {
    int64_t source = query.reads.empty() ? query.rank : query.reads.front().rank;
    bytes += double(write.bytes);
    inMemory += 2 * double(write.bytes);
    const topology::Tier *tier = between(source, write.rank);
    if (!tier)
      continue;
    // What is asked for goes there and back.
    bool gets = source != query.rank && write.rank == query.rank;
    cost.landing = std::max(cost.landing, tier->latency * (gets ? 2 : 1));
    for (unsigned port : tier->ports)
      held[port] += double(write.bytes);
  }
  if (bytes == 0)
    return cost;
  cost.work = bytes;
  for (unsigned port = 0; port < held.size(); ++port)
    if (held[port] > 0)
      cost.uses.push_back({port, held[port] / bytes});
  if (tiers.memory > 0)
    cost.uses.push_back({memory(), inMemory / bytes});
  // As in TopologyCost: a serial lane waits for the flight of its last byte.
  if (!isIssueLane(query.op->lane.kind)) {
    cost.after = cost.landing;
    cost.landing = 0;
  }
  return cost;
}

// As in TopologyCost.
Cost TierCost::reduce(const OpCostQuery &query) const {
  Cost cost;
  cost.before = costs.kernel;
  std::vector<double> held(tiers.ports.size(), 0);
  for (const std::vector<Part> *parts : {&query.reads, &query.writes}) {
    double latency = 0;
    for (const Part &part : *parts) {
      cost.work += double(part.bytes);
      const topology::Tier *tier = part.bytes > 0 ? between(query.rank, part.rank) : nullptr;
      if (!tier)
        continue;
      latency = std::max(latency, tier->latency);
      for (unsigned port : tier->ports)
        held[port] += double(part.bytes);
    }
    cost.after += latency * (parts == &query.reads ? 2 : 1);
  }
  for (unsigned port = 0; port < held.size(); ++port)
    if (held[port] > 0)
      cost.uses.push_back({port, held[port] / cost.work});
  if (cost.work > 0 && tiers.memory > 0)
    cost.uses.push_back({memory(), 1});
  return cost;
}

Cost TierCost::compute(const OpCostQuery &query) const {
  Cost cost;
  cost.before = costs.kernel;
  cost.work = query.op->bytes;
  if (cost.work > 0 && tiers.memory > 0)
    cost.uses.push_back({memory(), 1});
  return cost;
}

Cost TierCost::signal(const OpCostQuery &query) const {
  Cost cost;
  cost.before = costs.signal;
  if (query.signalled >= 0)
    if (const topology::Tier *tier = between(query.rank, query.signalled))
      cost.landing = tier->latency;
  return cost;
}

Cost TierCost::wait(const OpCostQuery &) const {
  Cost cost;
  cost.before = costs.wait;
  return cost;
}
