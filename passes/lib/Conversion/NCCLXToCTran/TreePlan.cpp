//===- TreePlan.cpp - In which order pieces move along trees ------------------------------===//
//
// Modulo scheduling: all trees move a piece in each round, so one round's order says all. A way
// between two members has a grid of times as long as a put; a put takes the first free one (the
// last, before the roots' sums) of its time modulo the round.
//
//===----------------------------------------------------------------------===//
#include "TreePlan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <tuple>

using namespace mlir::ctran;
using mlir::ncclx::topology::PackedTree;
using mlir::ncclx::topology::TreePacking;

namespace {

/// The way from one member to another.
struct Way {
  int64_t puts = 0; ///< of a round
  double each = 0;  ///< seconds
  double grid = 0;  ///< seconds between the times of its grid
  std::vector<bool> taken;
};

std::vector<unsigned> heightsOf(const std::vector<unsigned> &parent, unsigned root) {
  std::vector<unsigned> height(parent.size(), 0);
  for (unsigned v = 0; v < parent.size(); ++v) {
    unsigned above = 0;
    for (unsigned u = v; u != root;) {
      u = parent[u];
      height[u] = std::max(height[u], ++above);
    }
  }
  return height;
}

class Planner {
public:
  Planner(const TreePacking &packing, const TreeCosts &costs)
      : packing(packing), costs(costs), n(packing.edgeSeconds.size()) {}
  TreePlan run();

private:
  const TreePacking &packing;
  const TreeCosts &costs;
  unsigned n;
  double round = 0;
  std::map<std::pair<unsigned, unsigned>, Way> ways;
  TreePlan plan;

  void measure();
  /// Takes the first free time from `ready` on, or the last one up to it.
  double take(Way &way, double ready, bool backward);
  /// From the put's start to where what has waited for it may start.
  double passing(const Way &way) const {
    return (double(costs.lanes) + costs.slack) * way.each + costs.handOver;
  }
  void sendDown();
  void sendUp();
  void add(TreeStep::Kind kind, unsigned tree, unsigned member, unsigned peer, double time) {
    plan.steps[member].push_back({kind, tree, member, peer, 0, 0, time});
  }
  void order();
  void holdRoots();
  void countBuffers();
};

void Planner::measure() {
  for (const PackedTree &tree : packing.trees)
    for (unsigned v = 0; v < n; ++v) {
      if (v == tree.root)
        continue;
      if (!tree.in.empty())
        ++ways[{v, tree.in[v]}].puts;
      if (!tree.out.empty())
        ++ways[{tree.out[v], v}].puts;
    }
  for (auto &[ends, way] : ways) {
    // Of short ones the start, which as many lanes as there are hide, is all.
    way.each = std::max(costs.handOver / double(costs.lanes),
                        packing.edgeSeconds[ends.first][ends.second] * costs.pieceBytes);
    round = std::max(round, double(way.puts) * way.each);
  }
  for (auto &[ends, way] : ways) {
    way.taken.resize(std::max(way.puts, int64_t(round / way.each + 1e-9)));
    way.grid = round / double(way.taken.size());
  }
}

double Planner::take(Way &way, double ready, bool backward) {
  int64_t size = int64_t(way.taken.size()), step = backward ? -1 : 1;
  double exact = ready / way.grid;
  int64_t at = int64_t(backward ? std::floor(exact + 1e-6) : std::ceil(exact - 1e-6));
  auto place = [&] { return size_t((at % size + size) % size); };
  while (way.taken[place()])
    at += step;
  way.taken[place()] = true;
  return double(at) * way.grid;
}

/// From time 0 on, when a piece is at its root: what is ready first is sent first, and of what is
/// ready at once that which has furthest to go.
void Planner::sendDown() {
  using Ready = std::tuple<double, int64_t, unsigned, unsigned>; // time, -height, tree, child
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> queue;
  std::vector<std::vector<unsigned>> heights;
  auto reach = [&](unsigned t, unsigned parent, double time) {
    const PackedTree &tree = packing.trees[t];
    for (unsigned v = 0; v < n; ++v)
      if (v != tree.root && tree.out[v] == parent)
        queue.push({time, -int64_t(heights[t][v]), t, v});
  };
  for (unsigned t = 0; t < packing.trees.size(); ++t) {
    const PackedTree &tree = packing.trees[t];
    heights.push_back(tree.out.empty() ? std::vector<unsigned>() : heightsOf(tree.out, tree.root));
    if (!tree.out.empty())
      reach(t, tree.root, 0);
  }
  while (!queue.empty()) {
    auto [time, height, t, v] = queue.top();
    queue.pop();
    unsigned parent = packing.trees[t].out[v];
    Way &way = ways.at({parent, v});
    double start = take(way, time, false);
    add(TreeStep::Kind::Send, t, parent, v, start);
    add(TreeStep::Kind::Receive, t, v, parent, start + costs.lanes * way.each);
    reach(t, v, start + passing(way));
  }
}

/// The same the other way round: up to time 0, when a piece is summed at its root.
void Planner::sendUp() {
  using Due = std::tuple<double, int64_t, unsigned, unsigned>; // time, height, tree, child
  std::priority_queue<Due> queue;
  std::vector<std::vector<unsigned>> heights;
  auto sumAt = [&](unsigned t, unsigned parent, double time) {
    const PackedTree &tree = packing.trees[t];
    if (heights[t][parent] == 0)
      return;
    add(TreeStep::Kind::Sum, t, parent, 0, time);
    for (unsigned v = 0; v < n; ++v)
      if (v != tree.root && tree.in[v] == parent)
        queue.push({time, int64_t(heights[t][v]), t, v});
  };
  for (unsigned t = 0; t < packing.trees.size(); ++t) {
    const PackedTree &tree = packing.trees[t];
    heights.push_back(tree.in.empty() ? std::vector<unsigned>() : heightsOf(tree.in, tree.root));
    if (!tree.in.empty())
      sumAt(t, tree.root, -costs.sum);
  }
  while (!queue.empty()) {
    auto [time, height, t, v] = queue.top();
    queue.pop();
    unsigned parent = packing.trees[t].in[v];
    Way &way = ways.at({v, parent});
    double start = take(way, time - passing(way), true);
    add(TreeStep::Kind::SendPart, t, v, parent, start);
    add(TreeStep::Kind::ReceivePart, t, parent, v, start + costs.lanes * way.each);
    sumAt(t, v, start - costs.sum);
  }
}

/// Sorts a member's steps by their time in a round, and gives them stages and lanes.
void Planner::order() {
  double first = 0;
  for (const auto &steps : plan.steps)
    for (const TreeStep &step : steps)
      first = std::min(first, step.time);
  for (auto &steps : plan.steps)
    for (TreeStep &step : steps) {
      step.time -= first;
      step.stage = int64_t(step.time / round + 1e-9);
      plan.stages = std::max(plan.stages, step.stage + 1);
    }
  auto within = [&](const TreeStep &step) { return step.time - double(step.stage) * round; };
  std::map<std::tuple<unsigned, unsigned, unsigned, bool>, int64_t> laneOf;
  for (auto &steps : plan.steps) {
    auto key = [&](const TreeStep &step) {
      return std::tuple(within(step), step.stage, step.kind, step.tree, step.peer);
    };
    std::sort(steps.begin(), steps.end(),
              [&](const TreeStep &a, const TreeStep &b) { return key(a) < key(b); });
    std::map<unsigned, int64_t> numbers; // by peer; sums as by the member itself
    for (TreeStep &step : steps) {
      bool sum = step.kind == TreeStep::Kind::Sum;
      if (!sum && !step.sends())
        continue;
      // Lanes that have more of a round's puts than others would end it alone.
      int64_t lanes = costs.lanes;
      if (!sum) {
        int64_t puts = ways.at({step.member, step.peer}).puts, turns = (puts + lanes - 1) / lanes;
        lanes = (puts + turns - 1) / turns;
      }
      step.lane = numbers[sum ? step.member : step.peer]++ % lanes;
      if (!sum)
        laneOf[{step.member, step.peer, step.tree, step.kind == TreeStep::Kind::Send}] = step.lane;
    }
  }
  for (auto &steps : plan.steps)
    for (TreeStep &step : steps)
      if (step.kind == TreeStep::Kind::Receive || step.kind == TreeStep::Kind::ReceivePart)
        step.lane =
            laneOf.at({step.peer, step.member, step.tree, step.kind == TreeStep::Kind::Receive});
}

/// Of a packing that spreads alone: where there are sums, their credits hold the roots.
void Planner::holdRoots() {
  for (unsigned m = 0; m < n; ++m) {
    std::vector<TreeStep> &steps = plan.steps[m];
    std::map<unsigned, std::vector<size_t>> puts; // by peer
    for (size_t i = 0; i < steps.size(); ++i)
      if (steps[i].sends())
        puts[steps[i].peer].push_back(i);
    for (const auto &[peer, of] : puts) {
      // Of another lane, so that all are held.
      int64_t number = int64_t(of.size()), back = costs.turns * plan.lanes - 1;
      for (int64_t p = 0; p < number; ++p) {
        if (packing.trees[steps[of[p]].tree].root != m || back % number == 0)
          continue;
        int64_t place = ((p - back) % number + number) % number;
        steps[of[p]].behind = int64_t(of[place]);
        // Its token of this round is not there yet where it comes later in one.
        steps[of[p]].ago = (place + back - p) / number - (place > p);
      }
    }
  }
}

/// A put's place is free again, at the parent and in the own memory, some rounds later.
void Planner::countBuffers() {
  std::map<std::pair<unsigned, unsigned>, double> sums; // by tree and member
  for (const auto &steps : plan.steps)
    for (const TreeStep &step : steps)
      if (step.kind == TreeStep::Kind::Sum)
        sums[{step.tree, step.member}] = step.time;
  double longest = 0;
  for (const auto &steps : plan.steps)
    for (const TreeStep &step : steps)
      if (step.kind == TreeStep::Kind::SendPart) {
        longest = std::max(longest, sums.at({step.tree, step.peer}) + costs.sum + costs.handOver -
                                        step.time);
        if (auto own = sums.find({step.tree, step.member}); own != sums.end())
          longest = std::max(longest,
                             step.time + passing(ways.at({step.member, step.peer})) - own->second);
      }
  plan.buffers = int64_t(longest / round) + 2;
  plan.leastBuffers = plan.buffers - 1;
}

TreePlan Planner::run() {
  plan.steps.resize(n);
  plan.lanes = costs.lanes;
  measure();
  sendDown();
  sendUp();
  order();
  if (packing.trees.front().in.empty())
    holdRoots();
  countBuffers();
  return std::move(plan);
}

} // namespace

TreePlan mlir::ctran::planTrees(const TreePacking &packing, const TreeCosts &costs) {
  return Planner(packing, costs).run();
}
