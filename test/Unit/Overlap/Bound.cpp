//===- Bound.cpp - What no schedule of a problem is shorter than ------------------------===//
//
// Beside each other a kernel goes on at rate r and a collective at rate c, both 1 at most. Time
// that passes is no less than r + c - min(r, c) of it, so that all of the time is no less than the
// kernels' alone and the queue's alone, less the least of the two wherever they run together: a
// flow.
//
//===----------------------------------------------------------------------===//
#include "Bound.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <set>

using namespace mlir::ncclx::overlap;

namespace {

/// A maximum flow along shortest ways, from node 0 to node 1.
class Flow {
public:
  explicit Flow(size_t nodes) : edges(nodes) {}
  void add(unsigned from, unsigned to, double capacity) {
    edges[from].push_back({to, unsigned(edges[to].size()), capacity});
    edges[to].push_back({from, unsigned(edges[from].size() - 1), 0});
  }
  double most() {
    double sum = 0;
    while (double more = augment())
      sum += more;
    return sum;
  }

private:
  struct Edge {
    unsigned to, back;
    double left;
  };
  std::vector<std::vector<Edge>> edges;

  double augment() {
    constexpr double rounding = 1e-15; // seconds
    std::vector<Edge *> by(edges.size());
    std::queue<unsigned> work({0});
    while (!work.empty() && !by[1]) {
      unsigned at = work.front();
      work.pop();
      for (Edge &edge : edges[at])
        if (edge.to != 0 && !by[edge.to] && edge.left > rounding) {
          by[edge.to] = &edge;
          work.push(edge.to);
        }
    }
    if (!by[1])
      return 0;
    auto from = [&](const Edge &edge) { return edges[edge.to][edge.back].to; };
    double most = std::numeric_limits<double>::infinity();
    for (unsigned at = 1; at != 0; at = from(*by[at]))
      most = std::min(most, by[at]->left);
    for (unsigned at = 1; at != 0; at = from(*by[at])) {
      by[at]->left -= most;
      edges[at][by[at]->back].left += most;
    }
    return most;
  }
};

} // namespace

double overlap_test::leastSeconds(const Problem &problem) {
  const size_t n = problem.ops.size();
  Needs needs = needsOf(problem);
  std::vector<std::vector<bool>> behind(n, std::vector<bool>(n)); // [i][j]: i needs j
  for (unsigned i = 0; i < n; ++i)
    for (unsigned j : needs.complete[i]) {
      behind[i][j] = true;
      for (unsigned k = 0; k < n; ++k)
        behind[i][k] = behind[i][k] || behind[j][k];
    }
  double kernels = 0;
  std::set<unsigned> queues;
  for (const Op &op : problem.ops)
    if (op.collective)
      queues.insert(op.queue);
    else
      kernels += op.seconds;
  double least = kernels;
  for (unsigned queue : queues) {
    Flow flow(n + 2);
    double alone = 0;
    for (unsigned c = 0; c < n; ++c) {
      if (!problem.ops[c].collective || problem.ops[c].queue != queue)
        continue;
      alone += problem.ops[c].seconds;
      flow.add(0, c + 2, problem.ops[c].seconds);
      for (unsigned k = 0; k < n; ++k)
        if (!problem.ops[k].collective && !behind[c][k] && !behind[k][c])
          flow.add(c + 2, k + 2, std::numeric_limits<double>::infinity());
    }
    for (unsigned k = 0; k < n; ++k)
      if (!problem.ops[k].collective)
        flow.add(k + 2, 1, problem.ops[k].seconds);
    least = std::max(least, kernels + alone - flow.most());
  }
  return least;
}

double overlap_test::leastExposed(const Problem &problem) {
  double kernels = 0;
  for (const Op &op : problem.ops)
    kernels += op.collective ? 0 : op.seconds;
  return std::max(0.0, leastSeconds(problem) - kernels);
}
