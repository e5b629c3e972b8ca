//===- ConcurrentFlow.cpp -------------------------------------------------===//
//
// Each round routes every pair along a shortest way and lengthens links by their load. The rounds'
// average is a routing; the lengths that bound best are a dual solution.
//
//===----------------------------------------------------------------------===//
#include "ConcurrentFlow.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

namespace {
struct Router {
  const FlowGraph &graph;
  std::vector<std::vector<unsigned>> out = std::vector<std::vector<unsigned>>(graph.size());
  std::vector<double> distance = {};
  std::vector<int> via = {};

  /// Shortest ways from a vertex: `distance`, and the arc that enters each vertex.
  void run(unsigned from, const std::vector<double> &length) {
    distance.assign(graph.size(), std::numeric_limits<double>::infinity());
    via.assign(graph.size(), -1);
    using Entry = std::pair<double, unsigned>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    distance[from] = 0;
    queue.push({0, from});
    while (!queue.empty()) {
      auto [d, v] = queue.top();
      queue.pop();
      if (d > distance[v])
        continue;
      for (unsigned a : out[v]) {
        unsigned to = graph.arcs[a].to;
        if (d + length[a] < distance[to]) {
          distance[to] = d + length[a];
          via[to] = int(a);
          queue.push({distance[to], to});
        }
      }
    }
  }
};
} // namespace

ConcurrentMetric topology::concurrentMetric(const FlowGraph &graph,
                                            llvm::ArrayRef<std::pair<unsigned, unsigned>> pairs) {
  constexpr unsigned rounds = 120;
  Router router{graph};
  std::vector<double> capacity, length, load(graph.arcs.size(), 0), best;
  for (unsigned a = 0; a < graph.arcs.size(); ++a) {
    router.out[graph.arcs[a].from].push_back(a);
    capacity.push_back(graph.arcs[a].capacity.toDouble());
    length.push_back(1 / capacity.back());
  }
  std::map<unsigned, std::vector<unsigned>> targets;
  for (auto [from, to] : pairs)
    targets[from].push_back(to);
  double bestBound = -1;
  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<double> now(graph.arcs.size(), 0);
    double demand = 0, supply = 0;
    for (const auto &[from, ends] : targets) {
      router.run(from, length);
      for (unsigned end : ends) {
        if (router.via[end] < 0)
          continue;
        demand += router.distance[end];
        for (unsigned v = end; v != from; v = graph.arcs[router.via[v]].from)
          now[router.via[v]] += 1;
      }
    }
    double busiest = 0;
    for (unsigned a = 0; a < now.size(); ++a) {
      supply += capacity[a] * length[a];
      load[a] += now[a];
      busiest = std::max(busiest, now[a] / capacity[a]);
    }
    if (busiest == 0)
      break;
    if (demand / supply > bestBound) {
      bestBound = demand / supply;
      best = length;
    }
    double step = 0.5 / (1 + 0.1 * round), longest = 0;
    for (unsigned a = 0; a < now.size(); ++a) {
      length[a] *= std::exp(step * now[a] / capacity[a] / busiest);
      longest = std::max(longest, length[a] * capacity[a]);
    }
    for (double &l : length) // only ratios matter
      l /= longest;
  }
  ConcurrentMetric metric;
  for (unsigned a = 0; a < load.size(); ++a)
    metric.routed = std::max(metric.routed, load[a] / rounds / capacity[a]);
  double longest = 0;
  for (double l : best)
    longest = std::max(longest, l);
  for (double l : best)
    metric.lengths.push_back(int64_t(std::llround(l / longest * double(1 << 20))));
  return metric;
}
