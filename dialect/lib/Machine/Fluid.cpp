//===- Fluid.cpp - Flows that share resources max-min fairly ------------------===//

#include "Fluid.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mlir::ctran::machine {

static constexpr double never = std::numeric_limits<double>::infinity();

Fluid::Fluid(const CostModel &model) {
  for (unsigned r = 0, e = model.numResources(); r < e; ++r)
    capacity.push_back(model.capacity(r));
  most.resize(capacity.size());
  boundless.resize(capacity.size());
  coupled.resize(capacity.size());
  used.resize(capacity.size());
  weight.resize(capacity.size());
  users.resize(capacity.size());
  usersOf.resize(capacity.size());
}

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
  Flow &flow = flows.emplace_back(id, cost.work, 0, cost.maxRate, cost.uses, true);
  std::erase_if(flow.uses, [&](const ResourceUse &use) { return use.resource >= capacity.size(); });
  bool plain = true;
  for (const ResourceUse &use : flow.uses) {
    plain &= use.weight == 1;
    if (flow.tightest < 0 || capacity[use.resource] < capacity[flow.tightest])
      flow.tightest = use.resource;
  }
  if (!plain)
    flow.tightest = -1;
  count(flow, 1);
  stale = true;
}

void Fluid::count(const Flow &flow, int by) {
  for (const ResourceUse &use : flow.uses) {
    if (flow.tightest < 0 || flow.tightest == int64_t(use.resource)) {
      boundless[use.resource] += by;
      continue;
    }
    int64_t &number = through[{use.resource, unsigned(flow.tightest)}];
    if (number == 0)
      most[use.resource] += capacity[flow.tightest];
    number += by;
    if (number == 0)
      most[use.resource] -= capacity[flow.tightest];
  }
}

bool Fluid::isSlack(unsigned resource) const {
  return boundless[resource] == 0 && most[resource] <= capacity[resource] * (1 - 1e-9);
}

/// The flows that share a resource, at first or through others, with one that has come or gone.
std::vector<size_t> Fluid::changed() {
  std::vector<bool> found(flows.size(), false), asked(capacity.size(), false);
  std::vector<size_t> list;
  for (std::vector<size_t> &users : usersOf)
    users.clear();
  auto touch = [&](size_t i) {
    if (found[i])
      return;
    found[i] = true;
    list.push_back(i);
  };
  for (size_t i = 0; i < flows.size(); ++i) {
    for (const ResourceUse &use : flows[i].uses)
      usersOf[use.resource].push_back(i);
    if (flows[i].fresh)
      touch(i);
    flows[i].fresh = false;
  }
  auto touchUsers = [&](unsigned resource) {
    if (asked[resource])
      return;
    asked[resource] = true;
    bool couples = !isSlack(resource);
    if (!couples && !coupled[resource])
      return;
    coupled[resource] = couples;
    for (size_t user : usersOf[resource])
      touch(user);
  };
  for (unsigned resource : left)
    touchUsers(resource);
  left.clear();
  for (size_t next = 0; next < list.size(); ++next)
    for (const ResourceUse &use : flows[list[next]].uses)
      touchUsers(use.resource);
  // In the order in which they came, so that sums do not depend on what else has changed.
  list.clear();
  for (size_t i = 0; i < flows.size(); ++i)
    if (found[i])
      list.push_back(i);
  return list;
}

/// Progressive filling: all rates rise together; a flow stops at its own limit, or when a resource
/// that it uses is full. The rates of what shares nothing with a change stay.
void Fluid::share() {
  stale = false;
  std::vector<size_t> rising = changed(), stopped;
  std::vector<unsigned> touched;
  for (size_t i : rising)
    for (const ResourceUse &use : flows[i].uses) {
      if (users[use.resource] == 0 && !isSlack(use.resource)) {
        touched.push_back(use.resource);
        used[use.resource] = weight[use.resource] = 0;
      }
      weight[use.resource] += use.weight;
      ++users[use.resource];
    }
  std::vector<bool> rises(flows.size(), false);
  for (size_t i : rising)
    rises[i] = true;
  size_t left = rising.size(), leastUsers = 0;
  double least = never;
  auto findLeast = [&] {
    least = never;
    std::erase_if(rising, [&](size_t i) { return !rises[i]; });
    for (size_t i : rising) {
      if (flows[i].maxRate < least)
        leastUsers = 0;
      least = std::min(least, flows[i].maxRate);
      leastUsers += flows[i].maxRate == least;
    }
  };
  findLeast();
  while (left > 0) {
    double level = least;
    for (unsigned r : touched)
      if (users[r] > 0 && weight[r] > 0)
        level = std::min(level, std::max(0.0, capacity[r] - used[r]) / weight[r]);
    // Freeze only when all stops are found: `used` may not change before.
    stopped.clear();
    auto stop = [&](size_t i) {
      if (rises[i])
        stopped.push_back(i);
      rises[i] = false;
    };
    for (unsigned r : touched)
      if (users[r] > 0 && weight[r] > 0 &&
          (capacity[r] - used[r]) / weight[r] <= level * (1 + 1e-12))
        for (size_t i : usersOf[r])
          stop(i);
    if (least <= level)
      for (size_t i : rising)
        if (flows[i].maxRate <= level)
          stop(i);
    for (size_t i : stopped) {
      flows[i].rate = level;
      leastUsers -= flows[i].maxRate == least;
      for (const ResourceUse &use : flows[i].uses) {
        used[use.resource] += use.weight * level;
        weight[use.resource] -= use.weight;
        --users[use.resource];
      }
    }
    left -= stopped.size();
    if (leastUsers == 0)
      findLeast();
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
    if (over) {
      ended.push_back(flow.id);
      count(flow, -1);
      for (const ResourceUse &use : flow.uses)
        left.push_back(use.resource);
    }
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
