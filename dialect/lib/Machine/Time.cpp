//===- Time.cpp - Discrete events over fluid resources ------------------------===//

#include "Simulator.h"

#include "ncclx/Machine/Trace.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

namespace mlir::ctran::machine {

void Simulator::poll(uint32_t which) {
  LaneState &lane = lanes[which];
  if (lane.busy || lane.head == none)
    return;
  uint32_t i = lane.head;
  Instance &instance = instances[i];
  double since = lane.freeSince;
  int64_t by = lane.last;
  uint32_t hops = lane.hops;
  auto waitFor = [&](uint32_t &firstWaiter) {
    if (std::exchange(lane.waiting, true))
      return; // for this, as nothing that has come goes again
    lane.nextWaiter = std::exchange(firstWaiter, which);
  };
  for (uint32_t before : beforesOf(i)) {
    if (before == none)
      return;
    Instance &other = instances[before];
    if (!other.over)
      return waitFor(other.firstWaiter);
    hops = std::max(hops, other.hops);
    if (other.end > since) {
      since = other.end;
      by = before;
    }
  }
  if (instance.waits) {
    // One at a time may come, of many: those before it are not looked at again.
    llvm::ArrayRef<SlotUse> all = slotsOf(i);
    for (; lane.come < all.size(); ++lane.come)
      if (SlotState &state = slots[all[lane.come].slot];
          static_cast<int64_t>(state.raises.size()) < all[lane.come].k)
        return waitFor(state.firstWaiter);
    for (auto [slot, k] : all) {
      const SlotState::Raise &raise = slots[slot].raises[k - 1];
      hops = std::max(hops, raise.hops);
      if (raise.time >= since) {
        since = raise.time;
        by = raise.op;
      }
    }
  }
  if (instance.issued > now) {
    at(instance.issued, What::Poll, which);
    return;
  }
  if (instance.issued > since)
    by = -1;
  lane.busy = true;
  instance.hops = hops + instance.transfers;
  if (instance.waits)
    lane.hops = hops;
  TimedOp &timed = result.ops[i];
  timed.start = now;
  timed.blocker = by;
  at(now + timings[i].before, What::Begin, i);
}

void Simulator::wake(uint32_t &firstWaiter) {
  for (uint32_t lane = std::exchange(firstWaiter, none); lane != none;
       lane = lanes[lane].nextWaiter) {
    lanes[lane].waiting = false;
    woken.push_back(lane);
  }
}

void Simulator::pollWoken() {
  llvm::sort(woken);
  for (uint32_t lane : woken)
    poll(lane);
  woken.clear();
}

/// A lane is done with the op at its head, which leaves it.
void Simulator::leave(LaneState &lane, uint32_t i) {
  lane.head = instances[i].next;
  lane.come = 0;
  lane.busy = false;
  lane.freeSince = now;
  lane.last = i;
}

void Simulator::begin(uint32_t i) {
  Instance &instance = instances[i];
  LaneState &lane = lanes[instance.lane];
  if (isIssueLane(lane.lane.kind)) {
    leave(lane, i);
    poll(instance.lane);
  }
  const Timing &timing = timings[i];
  if (timing.work > 0)
    fluid.add(i, timing.work, timing.maxRate, usesOf(i), now);
  else
    at(now + timing.after, What::Finish, i);
}

void Simulator::finish(uint32_t i) {
  Instance &instance = instances[i];
  LaneState &lane = lanes[instance.lane];
  result.ops[i].end = result.ops[i].landed = now;
  instance.end = now;
  instance.over = true;
  if (!isIssueLane(lane.lane.kind))
    leave(lane, i);
  if (instance.raises) {
    if (timings[i].landing <= 0)
      land(i);
    else
      at(now + timings[i].landing, What::Land, i);
  }
  wake(instance.firstWaiter);
  if (!llvm::is_contained(woken, instance.lane))
    woken.push_back(instance.lane);
  pollWoken();
}

void Simulator::land(uint32_t i) {
  result.ops[i].landed = now;
  for (const SlotUse &use : slotsOf(i)) {
    SlotState &slot = slots[use.slot];
    uint32_t before = slot.raises.empty() ? 0 : slot.raises.back().hops;
    slot.raises.push_back({now, i, std::max(before, instances[i].hops)});
    wake(slot.firstWaiter);
  }
  pollWoken();
}

/// False: `result` says why it cannot be timed, or that it takes too long.
bool Simulator::prepare() {
  result.message = frame.validate();
  if (!result.message.empty())
    return false;
  result.windowBytes.resize(schedule.windows.size());
  for (size_t w = 0; w < schedule.windows.size(); ++w) {
    const Window &window = schedule.windows[w];
    for (const Space &space : window.spaces)
      result.windowBytes[w] =
          std::max(result.windowBytes[w], space.storageBytes() * window.generations);
    result.totalBytes += result.windowBytes[w];
  }
  if (model.symmetric()) {
    own = std::make_unique<Frame>(schedule, true);
    scanned = scan(*own, options.eventBudget);
    one = scanned.verdict == Verdict::Ok;
  }
  if (!one) {
    own = std::make_unique<Frame>(schedule, false);
    // How often a run raises each slot matters to those behind it alone.
    if (options.runs > 1) {
      scanned = scan(*own, options.eventBudget);
      if (scanned.verdict != Verdict::Ok) {
        result.message = scanned.message;
        return false;
      }
    }
  }
  result.processes = one ? 1 : frame.numRanks();
  return load();
}

/// False: it takes longer than asked for.
bool Simulator::play() {
  for (uint32_t lane = 0; lane < lanes.size(); ++lane)
    poll(lane);
  while (true) {
    double next = events.empty() ? std::numeric_limits<double>::infinity() : events.top().time;
    // Rates are shared once for all that happens at one time.
    double flow = next <= now ? std::numeric_limits<double>::infinity() : fluid.nextEnd(now);
    if (flow <= next && flow < std::numeric_limits<double>::infinity()) {
      now = std::max(now, flow);
      for (int64_t i : fluid.advance(now))
        at(now + timings[i].after, What::Finish, static_cast<uint32_t>(i));
      continue;
    }
    if (events.empty())
      return true;
    Event event = events.top();
    events.pop();
    now = std::max(now, event.time);
    // Where an op ends later, so does the schedule; a signal on its way may still be of no use.
    if (event.what == What::Finish && now > options.horizon)
      return false;
    switch (event.what) {
    case What::Poll:
      poll(event.subject);
      break;
    case What::Begin:
      begin(event.subject);
      break;
    case What::Finish:
      finish(event.subject);
      break;
    case What::Land:
      land(event.subject);
      break;
    }
  }
}

/// Empty where every op is over.
std::string Simulator::whyNoEnd() const {
  if (std::string bad = fluid.stuck(); !bad.empty())
    return bad;
  for (const LaneState &lane : lanes)
    if (lane.head != none) {
      const TimedOp &op = result.ops[lane.head];
      return fmt::format("rank {} {} never gets past '{}'; the schedule does not end", lane.rank,
                         toString(lane.lane),
                         op.location < schedule.locations.size()
                             ? schedule.locations[op.location].op
                             : std::string(toString(op.kind)));
    }
  return {};
}

TimeResult Simulator::run() {
  if (!prepare())
    return std::move(result);
  if (!play()) {
    tellLate();
    return std::move(result);
  }
  result.message = whyNoEnd();
  result.ok = result.message.empty();
  if (result.ok)
    report();
  return std::move(result);
}

void Simulator::tellLate() {
  result.late = true;
  result.message = fmt::format("it takes longer than {} s", options.horizon);
}

TimeResult simulate(const Schedule &schedule, const CostModel &model, const TimeOptions &options) {
  return Simulator(schedule, model, options).run();
}

} // namespace mlir::ctran::machine
