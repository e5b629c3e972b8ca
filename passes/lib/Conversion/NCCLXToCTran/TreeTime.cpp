//===- TreeTime.cpp - How long a plan of trees takes --------------------------------------===//
//
// Discrete events. A put starts when its lane is free and what it needs is there, shares its way
// with those of the other lanes, and is heard of at the other end. What has happened is counted: a
// step's pieces come one after the other.
//
//===----------------------------------------------------------------------------------------===//
#include "TreeTime.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

using namespace mlir::ctran;
using mlir::ncclx::topology::PackedTree;
using mlir::ncclx::topology::TreePacking;

namespace {

class PlanTimer {
public:
  PlanTimer(const TreePacking &packing, const TreeCosts &costs, const TreePlan &plan,
            int64_t rounds);
  double run();

private:
  /// That `counter` has come to the piece, `ahead` further on.
  struct Need {
    size_t counter;
    int64_t ahead;
  };
  struct Step {
    int64_t stage = 0;
    std::vector<Need> needs;
    double seconds = 0; ///< of a sum
    /// Counters at other members that hear of it, and how long a signal goes there.
    std::vector<std::pair<size_t, double>> tells;
  };
  struct Lane {
    std::vector<size_t> steps; ///< in the order in which it takes them in a round
    size_t next = 0;
    int64_t round = 0;
    int64_t stages = 0; ///< the latest of its steps
    size_t way = 0;     ///< of puts, and 1; else 0
    bool first = false; ///< signals go on a lane of their own
    bool busy = false;
  };
  struct Way {
    double each = 0, latency = 0; ///< seconds of a piece alone, and of its flight
    double done = 0, since = 0;   ///< pieces that each put on it has moved, at a time
    std::vector<std::pair<double, size_t>> puts; ///< over at what `done`, and their lanes
    unsigned version = 0;
  };
  enum class What : uint8_t { Begin, End, Free, Hear };
  struct Event {
    double time;
    uint64_t order;
    What what;
    unsigned version;
    size_t subject;
    bool operator<(const Event &other) const {
      return std::tie(time, order) > std::tie(other.time, other.order);
    }
  };

  const TreeCosts &costs;
  int64_t rounds;
  std::vector<Step> steps;
  std::vector<Lane> lanes;
  std::vector<Way> ways;
  std::vector<int64_t> counts; ///< by step, and behind them the credits of each
  std::vector<std::vector<size_t>> waiters;
  std::priority_queue<Event> events;
  double now = 0;
  uint64_t order = 0;

  void at(double time, What what, size_t subject, unsigned version = 0) {
    events.push({time, order++, what, version, subject});
  }
  void poll(size_t lane);
  void count(size_t counter);
  void begin(size_t lane);
  void move(Way &way);
  void expect(size_t way);
  void end(size_t way);
  void free(size_t lane);
};

PlanTimer::PlanTimer(const TreePacking &packing, const TreeCosts &costs, const TreePlan &plan,
                     int64_t rounds)
    : costs(costs), rounds(rounds) {
  std::map<std::tuple<unsigned, TreeStep::Kind, unsigned, unsigned>, size_t> stepOf;
  std::vector<size_t> first;
  using Kind = TreeStep::Kind;
  for (unsigned m = 0; m < plan.steps.size(); ++m) {
    first.push_back(steps.size());
    for (const TreeStep &step : plan.steps[m]) {
      stepOf[{m, step.kind, step.tree, step.peer}] = steps.size();
      steps.push_back({step.stage, {}, 0, {}});
    }
  }
  counts.assign(2 * steps.size(), 0);
  waiters.resize(counts.size());
  std::map<std::tuple<unsigned, int64_t, int64_t>, size_t> laneOf; // sums: peer -1
  std::map<std::pair<unsigned, unsigned>, size_t> wayOf;
  for (unsigned m = 0; m < plan.steps.size(); ++m)
    for (size_t i = 0; i < plan.steps[m].size(); ++i) {
      const TreeStep &step = plan.steps[m][i];
      const PackedTree &tree = packing.trees[step.tree];
      size_t number = first[m] + i;
      Step &mine = steps[number];
      auto need = [&](Kind kind, unsigned peer, int64_t ahead = 0) {
        auto found = stepOf.find({m, kind, step.tree, peer});
        if (found != stepOf.end())
          mine.needs.push_back({found->second, ahead});
      };
      if (step.kind == Kind::Receive || step.kind == Kind::ReceivePart)
        continue;
      bool sum = step.kind == Kind::Sum;
      auto [lane, isNew] =
          laneOf.try_emplace({m, sum ? -1 : int64_t(step.peer), step.lane}, lanes.size());
      if (isNew)
        lanes.emplace_back();
      lanes[lane->second].steps.push_back(number);
      lanes[lane->second].stages = std::max(lanes[lane->second].stages, step.stage);
      if (sum) {
        double parts = 2;
        for (unsigned v = 0; v < tree.in.size(); ++v)
          if (v != tree.root && tree.in[v] == m) {
            ++parts;
            need(Kind::ReceivePart, v);
            size_t put = stepOf.at({v, Kind::SendPart, step.tree, m});
            mine.tells.push_back({steps.size() + put, packing.latencies[m][v]});
          }
        if (m != tree.root)
          need(Kind::SendPart, tree.in[m], -plan.buffers);
        mine.seconds = costs.kernel + parts * costs.pieceBytes * costs.sumSecondsPerByte;
        continue;
      }
      auto [way, isFirst] = wayOf.try_emplace({m, step.peer}, ways.size());
      double latency = packing.latencies[m][step.peer];
      if (isFirst) {
        Way &mine = ways.emplace_back();
        // Not nothing, where there are no bytes.
        mine.each = std::max(1e-12, packing.edgeSeconds[m][step.peer] * costs.pieceBytes);
        mine.latency = latency;
      }
      lanes[lane->second].way = way->second + 1;
      lanes[lane->second].first = step.lane == 0;
      if (step.kind == Kind::SendPart) {
        need(Kind::Sum, 0);
        mine.needs.push_back({steps.size() + number, -plan.buffers});
        mine.tells.push_back({stepOf.at({step.peer, Kind::ReceivePart, step.tree, m}), latency});
      } else {
        if (m == tree.root)
          need(Kind::Sum, 0);
        else
          need(Kind::Receive, tree.out[m]);
        mine.tells.push_back({stepOf.at({step.peer, Kind::Receive, step.tree, m}), latency});
      }
      if (step.behind >= 0) {
        const TreeStep &other = plan.steps[m][size_t(step.behind)];
        int64_t ahead = step.stage - other.stage - step.ago - (size_t(step.behind) > i);
        mine.needs.push_back({first[m] + size_t(step.behind), ahead});
      }
    }
}

void PlanTimer::poll(size_t which) {
  Lane &lane = lanes[which];
  for (; !lane.busy; ++lane.next) {
    if (lane.next == lane.steps.size()) {
      lane.next = 0;
      ++lane.round;
    }
    const Step &step = steps[lane.steps[lane.next]];
    int64_t piece = lane.round - step.stage;
    if (lane.round >= rounds + lane.stages)
      return;
    if (piece < 0 || piece >= rounds)
      continue;
    for (const Need &need : step.needs)
      if (counts[need.counter] < std::min(rounds, piece + need.ahead + 1)) {
        waiters[need.counter].push_back(which);
        return;
      }
    lane.busy = true;
    at(now + (lane.way ? costs.start : step.seconds), lane.way ? What::Begin : What::Free, which);
    return;
  }
}

void PlanTimer::count(size_t counter) {
  ++counts[counter];
  std::vector<size_t> those;
  those.swap(waiters[counter]);
  for (size_t lane : those)
    poll(lane);
}

void PlanTimer::move(Way &way) {
  if (!way.puts.empty())
    way.done += (now - way.since) / (way.each * double(way.puts.size()));
  way.since = now;
}

void PlanTimer::expect(size_t number) {
  Way &way = ways[number];
  ++way.version;
  if (way.puts.empty())
    return;
  double over = std::min_element(way.puts.begin(), way.puts.end())->first;
  at(now + std::max(0.0, over - way.done) * way.each * double(way.puts.size()), What::End, number,
     way.version);
}

void PlanTimer::begin(size_t which) {
  size_t number = lanes[which].way - 1;
  Way &way = ways[number];
  move(way);
  way.puts.push_back({way.done + 1, which});
  expect(number);
}

void PlanTimer::end(size_t number) {
  Way &way = ways[number];
  move(way);
  auto first = std::min_element(way.puts.begin(), way.puts.end());
  size_t which = first->second;
  way.puts.erase(first);
  expect(number);
  const Lane &lane = lanes[which];
  at(now + way.latency + (lane.first ? 0 : costs.signal), What::Free, which);
  for (auto [counter, latency] : steps[lane.steps[lane.next]].tells)
    at(now + way.latency + costs.signal + latency + costs.wait, What::Hear, counter);
}

void PlanTimer::free(size_t which) {
  Lane &lane = lanes[which];
  size_t step = lane.steps[lane.next];
  if (!lane.way)
    for (auto [counter, latency] : steps[step].tells)
      at(now + costs.signal + latency + costs.wait, What::Hear, counter);
  lane.busy = false;
  ++lane.next;
  count(step);
  poll(which);
}

double PlanTimer::run() {
  for (size_t lane = 0; lane < lanes.size(); ++lane)
    poll(lane);
  while (!events.empty()) {
    Event event = events.top();
    events.pop();
    if (event.what == What::End && event.version != ways[event.subject].version)
      continue;
    now = event.time;
    switch (event.what) {
    case What::Begin:
      begin(event.subject);
      break;
    case What::End:
      end(event.subject);
      break;
    case What::Free:
      free(event.subject);
      break;
    case What::Hear:
      count(event.subject);
      break;
    }
  }
  for (const Lane &lane : lanes)
    if (lane.round < rounds + lane.stages)
      return std::numeric_limits<double>::infinity();
  return now;
}

} // namespace

double mlir::ctran::timeOf(const TreePacking &packing, const TreeCosts &costs, const TreePlan &plan,
                           int64_t rounds) {
  return PlanTimer(packing, costs, plan, rounds).run();
}
