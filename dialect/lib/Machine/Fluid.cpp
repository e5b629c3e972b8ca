//===- Fluid.cpp - Flows that share resources max-min fairly ------------------===//

#include "Fluid.h"

#include <fmt/format.h>

#include <algorithm>

namespace mlir::ctran::machine {

static constexpr double never = std::numeric_limits<double>::infinity();

void Fluid::move(double now) {
  for (Flow &flow : flows)
    flow.left -= flow.rate * (now - at);
  at = now;
}

void Fluid::add(int64_t id, const Cost &cost, double now) {
  if (flows.empty())
    at = now;
  else
    move(now);
  flows.push_back({id, cost.work, 0, cost.maxRate, cost.uses});
  stale = true;
}

/// Progressive filling: all rates rise together; a flow stops at its own limit, or when a resource
/// that it uses is full.
void Fluid::share() {
  stale = false;
  used.assign(model.numResources(), 0);
  std::vector<size_t> rising(flows.size());
  for (size_t i = 0; i < flows.size(); ++i)
    rising[i] = i;
  while (!rising.empty()) {
    weight.assign(model.numResources(), 0);
    double level = never;
    for (size_t i : rising) {
      level = std::min(level, flows[i].maxRate);
      for (const ResourceUse &use : flows[i].uses)
        if (use.resource < weight.size())
          weight[use.resource] += use.weight;
    }
    for (size_t r = 0; r < weight.size(); ++r)
      if (weight[r] > 0)
        level = std::min(level, std::max(0.0, model.capacity(static_cast<unsigned>(r)) - used[r]) /
                                    weight[r]);
    std::vector<size_t> still;
    for (size_t i : rising) {
      bool stops = flows[i].maxRate <= level;
      for (const ResourceUse &use : flows[i].uses)
        if (use.resource < weight.size() && use.weight > 0) {
          double capacity = model.capacity(use.resource);
          double full = (capacity - used[use.resource]) / weight[use.resource];
          stops |= full <= level * (1 + 1e-12);
        }
      if (!stops && level < never) {
        still.push_back(i);
        continue;
      }
      flows[i].rate = level;
    }
    // Freeze only now: `used` may not change while the stops are found.
    std::vector<bool> rises(flows.size(), false);
    for (size_t i : still)
      rises[i] = true;
    for (size_t i : rising)
      if (!rises[i])
        for (const ResourceUse &use : flows[i].uses)
          if (use.resource < used.size())
            used[use.resource] += use.weight * flows[i].rate;
    rising = std::move(still);
  }
}

double Fluid::nextEnd(double now) {
  if (flows.empty())
    return never;
  if (stale) {
    move(std::max(now, at));
    share();
  }
  double end = never;
  for (const Flow &flow : flows)
    if (flow.rate == never || flow.left <= 0)
      end = std::min(end, at);
    else if (flow.rate > 0)
      end = std::min(end, at + flow.left / flow.rate);
  return end;
}

std::vector<int64_t> Fluid::advance(double now) {
  std::vector<int64_t> ended;
  for (Flow &flow : flows)
    if (flow.rate == never)
      flow.left = 0;
  std::erase_if(flows, [&](Flow &flow) {
    // What would end within the resolution of the clock has ended.
    double end = flow.rate > 0 ? at + flow.left / flow.rate : never;
    bool over = flow.left <= 0 || end <= now * (1 + 1e-12);
    if (over)
      ended.push_back(flow.id);
    return over;
  });
  move(now);
  stale = true;
  return ended;
}

std::string Fluid::stuck() const {
  if (flows.empty())
    return {};
  return fmt::format("{} ops use resources that have no capacity left for them", flows.size());
}

} // namespace mlir::ctran::machine
