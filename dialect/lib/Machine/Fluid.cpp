//===- Fluid.cpp - Flows that share resources max-min fairly ------------------===//

#include "Fluid.h"

#include "llvm/ADT/STLExtras.h"

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
  asked.resize(capacity.size());
}

double Fluid::Flow::end() const {
  if (rate == never || left <= 0)
    return since;
  return rate > 0 ? since + left / rate : never;
}

void Fluid::add(int64_t id, const Cost &cost, double now) {
  at = running == 0 ? now : std::max(at, now);
  if (unused.empty()) {
    unused.push_back(flows.size());
    flows.emplace_back();
  }
  size_t i = unused.back();
  unused.pop_back();
  ++running;
  Flow &flow = flows[i];
  flow = {id, nextNumber++, cost.work, at, 0, cost.maxRate, cost.uses, {}, -1, flow.version + 1};
  std::erase_if(flow.uses, [&](const ResourceUse &use) { return use.resource >= capacity.size(); });
  bool plain = true;
  for (const ResourceUse &use : flow.uses) {
    plain &= use.weight == 1;
    if (flow.tightest < 0 || capacity[use.resource] < capacity[flow.tightest])
      flow.tightest = use.resource;
  }
  if (!plain)
    flow.tightest = -1;
  join(i);
  fresh.push_back(i);
  stale = true;
}

void Fluid::join(size_t i) {
  Flow &flow = flows[i];
  count(flow, 1);
  for (size_t use = 0; use < flow.uses.size(); ++use) {
    std::vector<std::pair<size_t, size_t>> &users = usersOf[flow.uses[use].resource];
    flow.places.push_back(users.size());
    users.push_back({i, use});
  }
}

void Fluid::leave(size_t i) {
  Flow &flow = flows[i];
  count(flow, -1);
  for (size_t use = 0; use < flow.uses.size(); ++use) {
    std::vector<std::pair<size_t, size_t>> &users = usersOf[flow.uses[use].resource];
    auto [other, itsUse] = users[flow.places[use]] = users.back();
    flows[other].places[itsUse] = flow.places[use];
    users.pop_back();
    left.push_back(flow.uses[use].resource);
  }
  flow.over = true;
  unused.push_back(i);
  --running;
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
  std::vector<size_t> list;
  std::vector<unsigned> told;
  found.resize(flows.size(), false);
  auto touch = [&](size_t i) {
    if (found[i])
      return;
    found[i] = true;
    list.push_back(i);
  };
  for (size_t i : fresh)
    touch(i);
  fresh.clear();
  auto touchUsers = [&](unsigned resource) {
    if (asked[resource])
      return;
    asked[resource] = true;
    told.push_back(resource);
    bool couples = !isSlack(resource);
    if (!couples && !coupled[resource])
      return;
    coupled[resource] = couples;
    for (auto [user, use] : usersOf[resource])
      touch(user);
  };
  for (unsigned resource : left)
    touchUsers(resource);
  left.clear();
  for (size_t next = 0; next < list.size(); ++next)
    for (const ResourceUse &use : flows[list[next]].uses)
      touchUsers(use.resource);
  for (size_t i : list)
    found[i] = false;
  for (unsigned resource : told)
    asked[resource] = false;
  // In the order in which they came, so that sums do not depend on what else has changed.
  llvm::sort(list, [&](size_t a, size_t b) { return flows[a].number < flows[b].number; });
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
  rises.resize(flows.size(), false);
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
        for (auto [user, use] : usersOf[r])
          stop(user);
    if (least <= level)
      for (size_t i : rising)
        if (flows[i].maxRate <= level)
          stop(i);
    llvm::sort(stopped, [&](size_t a, size_t b) { return flows[a].number < flows[b].number; });
    for (size_t i : stopped) {
      setRate(i, level);
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

/// From now on; what it has been until now is gone.
void Fluid::setRate(size_t i, double rate) {
  Flow &flow = flows[i];
  if (flow.rate == rate && rate > 0)
    return; // its end stands
  if (flow.rate != never)
    flow.left -= flow.rate * (at - flow.since);
  flow.since = at;
  flow.rate = rate;
  ++flow.version;
  if (double end = flow.end(); end < never)
    ends.push({end, i, flow.version});
}

double Fluid::nextEnd(double now) {
  if (running == 0)
    return never;
  if (stale) {
    at = std::max(now, at);
    share();
  }
  while (!ends.empty() && !isCurrent(ends.top()))
    ends.pop();
  return ends.empty() ? never : std::max(at, ends.top().time);
}

std::vector<int64_t> Fluid::advance(double now) {
  std::vector<size_t> ended;
  // What would end within the resolution of the clock has ended.
  for (; !ends.empty() && ends.top().time <= now * (1 + 1e-12); ends.pop())
    if (isCurrent(ends.top()))
      ended.push_back(ends.top().flow);
  llvm::sort(ended, [&](size_t a, size_t b) { return flows[a].number < flows[b].number; });
  std::vector<int64_t> ids;
  for (size_t i : ended) {
    ids.push_back(flows[i].id);
    leave(i);
  }
  at = now;
  stale = true;
  return ids;
}

std::string Fluid::stuck() const {
  if (running == 0)
    return {};
  return fmt::format("{} ops use resources that have no capacity left for them", running);
}

} // namespace mlir::ctran::machine
