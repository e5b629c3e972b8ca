//===- Time.cpp - Discrete events over fluid resources ------------------------===//

#include "ncclx/Machine/Time.h"

#include "Fluid.h"
#include "Stepper.h"

#include "ncclx/Machine/Trace.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

#include <queue>
#include <unordered_map>

namespace mlir::ctran::machine {

namespace {

/// What a token's state holds once its op is over.
struct Over : TokenState {
  Over(double time, int64_t op) : time(time), op(op) {}
  double time;
  int64_t op;
};

class Simulator {
public:
  Simulator(const Schedule &schedule, const CostModel &model, const TimeOptions &options)
      : schedule(schedule), model(model), options(options), frame(schedule, false), fluid(model) {}

  TimeResult run();

private:
  struct Instance {
    Op op;
    Cost cost;
    double issued = 0;
    size_t lane = 0;
    bool started = false;
  };
  struct LaneState {
    uint32_t rank = 0;
    Lane lane;
    std::vector<int64_t> queue; ///< indices of ops
    size_t head = 0;
    bool busy = false;
    double freeSince = 0;
    int64_t last = -1;
    const void *waitsFor = nullptr; ///< the token or slot that has it in a list
  };
  using Waiters = llvm::SmallVector<size_t, 2>; ///< lanes
  struct SlotState {
    std::vector<std::pair<double, int64_t>> raises; ///< when, by which op
    Waiters waiters;
  };
  using SlotKey = std::tuple<uint32_t, unsigned, int64_t>; ///< process, slots, number
  struct SlotHash {
    size_t operator()(const SlotKey &key) const { return llvm::hash_value(key); }
  };
  enum class What : uint8_t { Poll, Begin, Finish, Land };
  struct Event {
    double time;
    int64_t order;
    What what;
    int64_t subject; ///< op; lane for Poll
    bool operator<(const Event &other) const {
      return std::tie(time, order) > std::tie(other.time, other.order);
    }
  };

  bool load();
  Resolve query(const Op &op, uint32_t rank, OpCostQuery &out) const;
  void at(double time, What what, int64_t subject) {
    events.push({time, nextOrder++, what, subject});
  }
  void poll(size_t lane);
  void pollAll(Waiters which);
  /// Null, or the slot that a wait still waits for.
  SlotState *slotAwaited(const Instance &instance, double &since, int64_t &by);
  void begin(int64_t i);
  void finish(int64_t i);
  void land(int64_t i);
  void report();
  void expose(const std::vector<std::vector<int64_t>> &byRank);
  uint32_t processOf(uint32_t owner) const { return one ? 0 : owner; }

  const Schedule &schedule;
  const CostModel &model;
  const TimeOptions &options;
  Frame frame;
  std::unique_ptr<Frame> own; ///< of the processes: all ranks or one
  Fluid fluid;
  Scan scanned;
  bool one = false;
  double now = 0;
  int64_t nextOrder = 0;
  TimeResult result;
  std::vector<Instance> instances;
  std::vector<LaneState> lanes;
  std::vector<std::vector<size_t>> lanesOf;
  std::unordered_map<SlotKey, SlotState, SlotHash> slots;
  llvm::DenseMap<const void *, Waiters> tokenWaiters;
  /// Where such a wait waits for what is never there.
  SlotState nowhere;
  std::priority_queue<Event> events;
};

Resolve Simulator::query(const Op &op, uint32_t rank, OpCostQuery &out) const {
  out.rank = rank;
  out.op = &op;
  Box box;
  for (bool reads : {true, false})
    for (const Access &access : reads ? op.reads : op.writes) {
      if (Resolve r = frame.resolve(access, rank, box); r != Resolve::Ok)
        return r;
      std::vector<int64_t> path(box.path.begin(), box.path.end());
      ByteBox bytes =
          schedule.windows[box.window].spaces[box.space].locate(path, box.first, box.count);
      (reads ? out.reads : out.writes)
          .push_back({box.owner, box.window, bytes.bytes(),
                      bytes.rowBytes == bytes.stride ? 1 : bytes.rows});
    }
  if (op.slot && op.kind != OpKind::Wait)
    out.signalled = frame.target(op.slot->peer, rank);
  return Resolve::Ok;
}

bool Simulator::load() {
  uint32_t processes = one ? 1 : frame.numRanks();
  lanesOf.resize(processes);
  for (uint32_t rank = 0; rank < processes; ++rank) {
    std::vector<int64_t> point = schedule.grid.pointOf(rank);
    double issued = 0;
    for (int64_t run = 0; run < options.runs; ++run) {
      std::unique_ptr<OpStream> stream = schedule.open(one ? nullptr : &point, run);
      llvm::SmallVector<int64_t, 8> steps(lanesOf[rank].size(), 0);
      while (stream) {
        Instance instance;
        OpStream::Result r = stream->next(instance.op);
        if (r == OpStream::Result::End)
          break;
        std::string bad = r == OpStream::Result::Op ? frame.check(instance.op) : stream->why;
        OpCostQuery q;
        const Op &op = instance.op;
        if (bad.empty() && query(op, rank, q) != Resolve::Ok)
          bad = frame.why;
        if (!bad.empty() || r != OpStream::Result::Op) {
          result.message = bad.empty() ? "the stream ends in an error" : bad;
          return false;
        }
        if (++result.events > options.eventBudget) {
          result.message = fmt::format("more than {} ops", options.eventBudget);
          return false;
        }
        switch (op.kind) {
        case OpKind::Copy:
          instance.cost = model.copy(q);
          break;
        case OpKind::Reduce:
          instance.cost = model.reduce(q);
          break;
        case OpKind::Compute:
          instance.cost = model.compute(q);
          break;
        case OpKind::Signal:
          instance.cost = model.signal(q);
          break;
        case OpKind::Wait:
          instance.cost = model.wait(q);
          break;
        case OpKind::Flush:
          instance.cost = model.flush(q);
          break;
        case OpKind::Count:
          instance.cost = model.count(q);
          break;
        default:
          break; // the proof's own words take no time
        }
        if (auto apart = instance.cost.apart) {
          result.apart = true;
          result.message = fmt::format("it moves something from rank {} to rank {}, and nothing "
                                       "leads there",
                                       apart->first, apart->second);
          return false;
        }
        if (instance.cost.lacks) {
          result.apart = true;
          result.message = fmt::format("it needs {}", instance.cost.lacks);
          return false;
        }
        issued += model.issue(q);
        instance.issued = issued;
        size_t lane = 0;
        for (; lane < lanesOf[rank].size(); ++lane)
          if (lanes[lanesOf[rank][lane]].lane == op.lane)
            break;
        if (lane == lanesOf[rank].size()) {
          lanesOf[rank].push_back(lanes.size());
          steps.push_back(0);
          LaneState &state = lanes.emplace_back();
          state.rank = rank;
          state.lane = op.lane;
        }
        instance.lane = lanesOf[rank][lane];
        TimedOp timed;
        timed.rank = rank;
        timed.run = run;
        timed.step = steps[lane]++;
        timed.lane = op.lane;
        timed.kind = op.kind;
        timed.location = op.location;
        timed.collective =
            op.collective < static_cast<int>(schedule.collectives.size()) ? op.collective : -1;
        lanes[instance.lane].queue.push_back(static_cast<int64_t>(instances.size()));
        result.ops.push_back(timed);
        instances.push_back(std::move(instance));
      }
    }
  }
  return true;
}

/// Where a wait's slots have their values, also says since when, and by which op.
Simulator::SlotState *Simulator::slotAwaited(const Instance &instance, double &since, int64_t &by) {
  const TimedOp &timed = result.ops[&instance - instances.data()];
  SlotRange range;
  if (own->resolve(*instance.op.slot, one ? 0 : timed.rank, range) != Resolve::Ok)
    return &nowhere;
  const Slots &decl = schedule.slots[range.slots];
  int64_t generation = timed.run % decl.generations, use = timed.run / decl.generations;
  uint32_t process = processOf(range.owner);
  for (int64_t i = 0; i < range.count; ++i) {
    int64_t slot = range.begin + i;
    int64_t perRun = decl.perRun >= 0
                         ? decl.perRun
                         : scanned.signals[range.slots].lookup(Scan::slotKey(process, slot));
    int64_t k = perRun * use + decl.awaited(instance.op.k);
    if (k <= 0)
      continue;
    SlotState &state =
        slots[{process, range.slots, generation * frame.numSlots(range.slots) + slot}];
    if (static_cast<int64_t>(state.raises.size()) < k)
      return &state;
    auto [time, op] = state.raises[k - 1];
    if (time >= since) {
      since = time;
      by = op;
    }
  }
  return nullptr;
}

void Simulator::poll(size_t which) {
  LaneState &lane = lanes[which];
  if (lane.busy || lane.head == lane.queue.size())
    return;
  int64_t i = lane.queue[lane.head];
  Instance &instance = instances[i];
  double since = lane.freeSince;
  int64_t by = lane.last;
  auto waitFor = [&](const void *what, Waiters &waiters) {
    if (std::exchange(lane.waitsFor, what) != what)
      waiters.push_back(which);
  };
  for (const TokenRef &token : instance.op.after) {
    const auto *over = static_cast<const Over *>(token->state.get());
    if (!over)
      return waitFor(token.get(), tokenWaiters[token.get()]);
    if (over->time > since) {
      since = over->time;
      by = over->op;
    }
  }
  if (instance.op.kind == OpKind::Wait)
    if (SlotState *awaited = slotAwaited(instance, since, by))
      return waitFor(awaited, awaited->waiters);
  if (instance.issued > now) {
    at(instance.issued, What::Poll, static_cast<int64_t>(which));
    return;
  }
  if (instance.issued > since)
    by = -1;
  lane.busy = true;
  instance.started = true;
  TimedOp &timed = result.ops[i];
  timed.start = now;
  timed.blocker = by;
  at(now + instance.cost.before, What::Begin, i);
}

void Simulator::pollAll(Waiters which) {
  llvm::sort(which);
  for (size_t lane : which)
    lanes[lane].waitsFor = nullptr;
  for (size_t lane : which)
    poll(lane);
}

void Simulator::begin(int64_t i) {
  Instance &instance = instances[i];
  LaneState &lane = lanes[instance.lane];
  if (isIssueLane(lane.lane.kind)) {
    ++lane.head;
    lane.busy = false;
    lane.freeSince = now;
    lane.last = i;
    poll(instance.lane);
  }
  if (instance.cost.work > 0)
    fluid.add(i, instance.cost, now);
  else
    at(now + instance.cost.after, What::Finish, i);
}

void Simulator::finish(int64_t i) {
  Instance &instance = instances[i];
  LaneState &lane = lanes[instance.lane];
  TimedOp &timed = result.ops[i];
  timed.end = now;
  timed.landed = now;
  instance.op.token->state = llvm::makeIntrusiveRefCnt<Over>(now, i);
  if (!isIssueLane(lane.lane.kind)) {
    ++lane.head;
    lane.busy = false;
    lane.freeSince = now;
    lane.last = i;
  }
  bool raises = instance.op.slot && instance.op.kind != OpKind::Wait;
  if (raises && instance.cost.landing <= 0)
    land(i);
  else if (raises)
    at(now + instance.cost.landing, What::Land, i);
  Waiters next = std::move(tokenWaiters[instance.op.token.get()]);
  tokenWaiters.erase(instance.op.token.get());
  if (!llvm::is_contained(next, instance.lane))
    next.push_back(instance.lane);
  pollAll(std::move(next));
}

void Simulator::land(int64_t i) {
  Instance &instance = instances[i];
  TimedOp &timed = result.ops[i];
  timed.landed = now;
  SlotRange range;
  if (own->resolve(*instance.op.slot, one ? 0 : timed.rank, range) != Resolve::Ok)
    return;
  int64_t generation = timed.run % schedule.slots[range.slots].generations;
  uint32_t process = processOf(range.owner);
  Waiters next;
  for (int64_t k = 0; k < range.count; ++k) {
    SlotState &state =
        slots[{process, range.slots, generation * frame.numSlots(range.slots) + range.begin + k}];
    state.raises.emplace_back(now, i);
    next.append(state.waiters);
    state.waiters.clear();
  }
  pollAll(std::move(next));
}

TimeResult Simulator::run() {
  result.message = frame.validate();
  if (!result.message.empty())
    return result;
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
    scanned = scan(*own, options.eventBudget);
    if (scanned.verdict != Verdict::Ok) {
      result.message = scanned.message;
      return result;
    }
  }
  result.processes = one ? 1 : frame.numRanks();
  if (!load())
    return result;
  for (size_t lane = 0; lane < lanes.size(); ++lane)
    poll(lane);
  while (true) {
    double next = events.empty() ? std::numeric_limits<double>::infinity() : events.top().time;
    // Rates are shared once for all that happens at one time.
    double flow = next <= now ? std::numeric_limits<double>::infinity() : fluid.nextEnd(now);
    if (flow <= next && flow < std::numeric_limits<double>::infinity()) {
      now = std::max(now, flow);
      for (int64_t i : fluid.advance(now))
        at(now + instances[i].cost.after, What::Finish, i);
      continue;
    }
    if (events.empty())
      break;
    Event event = events.top();
    events.pop();
    now = std::max(now, event.time);
    // Where an op ends later, so does the schedule; a signal on its way may still be of no use.
    if (event.what == What::Finish && now > options.horizon) {
      result.late = true;
      result.message = fmt::format("it takes longer than {} s", options.horizon);
      return result;
    }
    switch (event.what) {
    case What::Poll:
      poll(static_cast<size_t>(event.subject));
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
  if (std::string bad = fluid.stuck(); !bad.empty()) {
    result.message = bad;
    return result;
  }
  for (const LaneState &lane : lanes)
    if (lane.head != lane.queue.size()) {
      const Op &op = instances[lane.queue[lane.head]].op;
      result.message =
          fmt::format("rank {} {} never gets past '{}'; the schedule does not end", lane.rank,
                      toString(lane.lane),
                      op.location < schedule.locations.size() ? schedule.locations[op.location].op
                                                              : std::string(toString(op.kind)));
      return result;
    }
  result.ok = true;
  report();
  return result;
}

void Simulator::report() {
  result.collectives.resize(schedule.collectives.size());
  std::vector<bool> seen(schedule.collectives.size(), false);
  std::vector<std::vector<int64_t>> byRank(lanesOf.size());
  for (size_t i = 0; i < result.ops.size(); ++i) {
    const TimedOp &op = result.ops[i];
    // A signal on its way keeps nobody but whoever waits for it.
    double over = op.kind == OpKind::Signal ? op.end : std::max(op.end, op.landed);
    result.makespan = std::max(result.makespan, over);
    byRank[op.rank].push_back(static_cast<int64_t>(i));
    if (op.collective < 0)
      continue;
    CollectiveTime &c = result.collectives[op.collective];
    c.firstIssue = seen[op.collective] ? std::min(c.firstIssue, op.start) : op.start;
    c.lastCompletion = std::max(c.lastCompletion, over);
    seen[op.collective] = true;
  }
  expose(byRank);
  if (!options.keepOps) {
    result.ops.clear();
    return;
  }
  std::vector<int64_t> order(result.ops.size()), place(result.ops.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<int64_t>(i);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::pair(result.ops[a].start, a) < std::pair(result.ops[b].start, b);
  });
  std::vector<TimedOp> sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<int64_t>(i);
    sorted.push_back(result.ops[order[i]]);
  }
  for (TimedOp &op : sorted)
    if (op.blocker >= 0)
      op.blocker = place[op.blocker];
  result.ops = std::move(sorted);
}

/// Charges the time in which a rank executes no compute to what kept it from doing so.
void Simulator::expose(const std::vector<std::vector<int64_t>> &byRank) {
  std::vector<double> charged;
  for (const std::vector<int64_t> &mine : byRank) {
    charged.assign(schedule.collectives.size(), 0);
    double other = 0, computes = 0, coveredTo = 0;
    std::vector<int64_t> work;
    int64_t last = -1;
    for (int64_t i : mine) {
      const TimedOp &op = result.ops[i];
      if (op.kind == OpKind::Compute)
        work.push_back(i);
      if (last < 0 || op.end >= result.ops[last].end)
        last = i;
    }
    std::sort(work.begin(), work.end(), [&](int64_t a, int64_t b) {
      return std::pair(result.ops[a].start, a) < std::pair(result.ops[b].start, b);
    });
    // The stretch (from, to] is charged to what `i` did, and before that to what held `i` back.
    auto charge = [&](double from, double to, int64_t i, bool itself) {
      while (to > from) {
        if (!itself)
          i = i < 0 ? -1 : result.ops[i].blocker;
        itself = false;
        double since = i < 0 ? from : std::max(from, std::min(to, result.ops[i].start));
        int collective = i < 0 ? -1 : result.ops[i].collective;
        (collective < 0 ? other : charged[collective]) += to - since;
        to = since;
      }
    };
    for (int64_t i : work) {
      const TimedOp &op = result.ops[i];
      if (op.start > coveredTo)
        charge(coveredTo, op.start, i, false);
      computes += std::max(0.0, op.end - std::max(op.start, coveredTo));
      coveredTo = std::max(coveredTo, op.end);
    }
    if (last >= 0 && result.ops[last].end > coveredTo)
      charge(coveredTo, result.ops[last].end, last, true);
    for (size_t c = 0; c < charged.size(); ++c) {
      CollectiveTime &time = result.collectives[c];
      time.exposedMax = std::max(time.exposedMax, charged[c]);
      time.exposedMean += charged[c] / static_cast<double>(byRank.size());
    }
    result.exposedOtherMax = std::max(result.exposedOtherMax, other);
    result.computeMax = std::max(result.computeMax, computes);
  }
}

} // namespace

TimeResult simulate(const Schedule &schedule, const CostModel &model, const TimeOptions &options) {
  return Simulator(schedule, model, options).run();
}

} // namespace mlir::ctran::machine
