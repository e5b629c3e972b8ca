//===- AtLeast.cpp - What an algorithm cannot be faster than --------------------------------===//
#include "AtLeast.h"

#include "ncclx/Analysis/TopologyCost.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// What one member sends to another, in shares of the payload, and the rounds that follow each
/// other.
struct Traffic {
  std::vector<double> ahead; ///< by distance from the sender, round the group; empty: unknown
  int64_t rounds = 1;
};

Traffic trafficOf(CollectiveOpInterface op, Algorithm algorithm, int64_t n) {
  Dataflow flow = op.getDataflow();
  Traffic traffic;
  if (flow.route != Dataflow::Route::All || flow.isCounted())
    return traffic;
  double share = 1.0 / double(n);
  bool exchanges = flow.inCut && flow.outCut, scatters = flow.combines, gathers = !flow.inCut;
  // A piece for each member: of an all_reduce on the way to its sum, and back.
  int64_t ways = exchanges ? 1 : int64_t(scatters) + int64_t(gathers);
  std::vector<double> ahead(n, 0);
  switch (algorithm) {
  case Algorithm::Direct:
    std::fill(ahead.begin() + 1, ahead.end(), double(ways) * share);
    traffic.rounds = ways;
    break;
  case Algorithm::Eager:
    std::fill(ahead.begin() + 1, ahead.end(), ways == 2 ? 1 : share);
    break;
  case Algorithm::Ring:
    traffic.rounds = ways * (n - 1);
    ahead[1 % n] = exchanges ? double(n - 1) / 2 : double(traffic.rounds) * share;
    break;
  case Algorithm::Bruck:
    traffic.rounds = ways * int64_t(llvm::Log2_64_Ceil(uint64_t(n)));
    for (int64_t d = 1; d < n; d *= 2) {
      int64_t blocks = std::min(d, n - d);
      if (exchanges)
        for (int64_t j = blocks = 0; j < n; ++j)
          blocks += (j / d) % 2;
      if (exchanges || scatters)
        ahead[d] += double(blocks) * share;
      if (!exchanges && gathers)
        ahead[n - d] += double(blocks) * share;
    }
    break;
  default:
    return traffic;
  }
  traffic.ahead = std::move(ahead);
  return traffic;
}

} // namespace

AtLeast::AtLeast(CollectiveOpInterface op, const SelectionTarget &target, int64_t bytes)
    : op(op), target(target), bytes(bytes) {
  constexpr int64_t mostRanks = 256;        // pairs of which are routed
  constexpr unsigned mostOfTopology = 4096; // that are looked at for it
  int64_t ranks = lookupGrid(op).getNumRanks();
  unsigned all = target.topology->numRanks();
  if (ranks <= mostRanks && ranks <= int64_t(all) && all <= mostOfTopology)
    model.emplace(*target.topology, target.rate);
}

double AtLeast::seconds(Algorithm algorithm) {
  if (!model)
    return 0;
  GridOp grid = lookupGrid(op);
  std::vector<double> carried(model->resources().size(), 0);
  double flight = std::numeric_limits<double>::infinity();
  int64_t rounds = 0;
  for (const SmallVector<int64_t> &group : grid.getGroups(op.getAxes(), op.getGroupsAttr())) {
    int64_t n = int64_t(group.size());
    Traffic traffic = trafficOf(op, algorithm, n);
    if (traffic.ahead.empty() || n < 2)
      continue;
    rounds = std::max(rounds, traffic.rounds);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t d = 1; d < n; ++d) {
        if (traffic.ahead[d] == 0)
          continue;
        auto route = model->route(unsigned(group[i]), unsigned(group[(i + d) % n]));
        if (!route)
          return 0; // which its own time says
        flight = std::min(flight, route->latencyNs.toDouble() * 1e-9);
        for (unsigned resource : route->resources)
          carried[resource] += traffic.ahead[d] * double(bytes);
      }
  }
  if (rounds == 0)
    return 0;
  double least = 0;
  for (auto [resource, load] : llvm::zip(model->resources(), carried))
    if (load > 0)
      least = std::max(least, load / resource.capacity.toDouble());
  bool gpus = target.topology->rankNode(0).kind == topology::NodeKind::gpu;
  LaneCosts costs = gpus ? LaneCosts::gpu() : LaneCosts::host();
  return std::max(least, double(rounds) * (costs.copy + flight));
}
