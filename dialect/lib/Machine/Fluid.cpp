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

void Fluid::add(int64_t id, double work, double maxRate, llvm::ArrayRef<ResourceUse> uses,
                double now) {
  at = running == 0 ? now : std::max(at, now);
  if (unused.empty()) {
    unused.push_back(flows.size());
    flows.emplace_back();
  }
  size_t i = unused.back();
  unused.pop_back();
  ++running;
  Flow &flow = flows[i];
  flow.id = id;
  flow.number = nextNumber++;
  flow.left = work;
  flow.since = at;
  flow.rate = 0;
  flow.maxRate = maxRate;
  flow.uses.clear();
  flow.places.clear();
  flow.tightest = -1;
  ++flow.version;
  flow.over = false;
  bool plain = true;
  for (const ResourceUse &use : uses) {
    if (use.resource >= capacity.size())
      continue;
    flow.uses.push_back(use);
    plain &= use.weight == 1;
    if (flow.tightest < 0 || capacity[use.resource] < capacity[flow.tightest])
      flow.tightest = use.resource;
  }
  if (!plain)
    flow.tightest = -1;
  join(i);
  fresh.push_back(i);
  byAge.push_back({flow.number, i});
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

/// Flows with a state, by their numbers: sums of rates must not depend on what else has changed.
void Fluid::sortByAge(std::vector<size_t> &list) {
  constexpr size_t few = 16; // of all that run: cheaper to sort
  if (list.size() * few < byAge.size()) {
    llvm::sort(list, [&](size_t a, size_t b) { return flows[a].number < flows[b].number; });
    return;
  }
  list.clear();
  std::erase_if(byAge, [&](const std::pair<int64_t, size_t> &entry) {
    auto [number, i] = entry;
    if (flows[i].over || flows[i].number != number)
      return true;
    if (states[i] == State::Found)
      list.push_back(i);
    return false;
  });
}

/// `rising` are the flows that share a resource, at first or through others, with one that has come
/// or gone.
void Fluid::findChanged() {
  rising.clear();
  told.clear();
  states.resize(flows.size(), State::None);
  auto touch = [&](size_t i) {
    if (std::exchange(states[i], State::Found) == State::None)
      rising.push_back(i);
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
  for (size_t next = 0; next < rising.size(); ++next)
    for (const ResourceUse &use : flows[rising[next]].uses)
      touchUsers(use.resource);
  for (unsigned resource : told)
    asked[resource] = false;
  sortByAge(rising);
}

/// Progressive filling: all rates rise together; a flow stops at its own limit, or when a resource
/// that it uses is full. The rates of what shares nothing with a change stay.
void Fluid::share() {
  stale = false;
  findChanged();
  touched.clear();
  for (size_t i : rising) {
    states[i] = State::Rises;
    for (const ResourceUse &use : flows[i].uses) {
      if (users[use.resource] == 0 && !isSlack(use.resource)) {
        touched.push_back(use.resource);
        used[use.resource] = weight[use.resource] = 0;
      }
      weight[use.resource] += use.weight;
      ++users[use.resource];
    }
  }
  size_t leastUsers = 0;
  double least = never;
  auto findLeast = [&] {
    least = never;
    for (size_t i : rising) {
      if (flows[i].maxRate < least)
        leastUsers = 0;
      least = std::min(least, flows[i].maxRate);
      leastUsers += flows[i].maxRate == least;
    }
  };
  findLeast();
  while (!rising.empty()) {
    double level = least;
    std::erase_if(touched, [&](unsigned r) { return users[r] == 0; });
    for (unsigned r : touched)
      if (weight[r] > 0)
        level = std::min(level, std::max(0.0, capacity[r] - used[r]) / weight[r]);
    // Freeze only when all stops are found: `used` may not change before.
    size_t stops = 0;
    auto stop = [&](size_t i) {
      if (states[i] != State::Rises)
        return;
      states[i] = State::Stops;
      ++stops;
    };
    for (unsigned r : touched)
      if (weight[r] > 0 && (capacity[r] - used[r]) / weight[r] <= level * (1 + 1e-12))
        for (auto [user, use] : usersOf[r])
          stop(user);
    if (least <= level)
      for (size_t i : rising)
        if (flows[i].maxRate <= level)
          stop(i);
    if (stops == 0) // what is not a number stops nothing
      llvm::for_each(rising, stop);
    stopped.clear();
    std::erase_if(rising, [&](size_t i) {
      bool stops = states[i] == State::Stops;
      if (stops)
        stopped.push_back(i);
      return stops;
    });
    for (size_t i : stopped) {
      states[i] = State::None;
      setRate(i, level);
      leastUsers -= flows[i].maxRate == least;
      for (const ResourceUse &use : flows[i].uses) {
        used[use.resource] += use.weight * level;
        weight[use.resource] -= use.weight;
        --users[use.resource];
      }
    }
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
