//===- Stepper.cpp - One execution of a schedule over clocks ------------------===//

#include "StepperState.h"

#include <fmt/format.h>

namespace mlir::ctran::machine {

Stepper::Stepper(const Frame &frame, const Scan &scan, const StepOptions &options)
    : frame(frame), schedule(frame.schedule), scanned(scan), options(options), values(frame),
      keys(frame) {
  slotUse.resize(schedule.slots.size());
  packets.resize(schedule.windows.size());
  if (frame.representative)
    keys.setWindow(scan.peers, options.widen);
}

Stepper::~Stepper() = default;

bool Stepper::fail(Verdict kind, const std::string &text, const Who *op, const Who *other) {
  verdict = kind;
  message = text;
  witness = {};
  if (op)
    witness.op = ref(*op);
  if (other)
    witness.other = ref(*other);
  return false;
}

bool Stepper::failResolve(Resolve r, const Who &who) {
  return fail(r == Resolve::Asymmetric ? Verdict::Undecided : Verdict::Invalid,
              fmt::format("{}: {}", text(who), frame.why), &who);
}

OpRef Stepper::ref(const Who &who) const {
  return {frame.representative ? -1 : int64_t(who.process), laneNames[who.lane], who.step, who.run,
          who.location};
}

std::string Stepper::text(const Who &who) const { return toString(schedule, ref(who)); }

Stepper::Process &Stepper::process(uint32_t owner) {
  return *processes[frame.representative ? 0 : owner];
}

Stepper::LaneState &Stepper::laneOf(Process &p, const Lane &lane) {
  Lane name = options.serialForm ? Lane{LaneKind::Host, 0} : lane;
  if (p.lastLane && p.lastLane->name == name)
    return *p.lastLane;
  for (auto &known : p.lanes)
    if (known->name == name)
      return *(p.lastLane = known.get());
  auto it = std::find(laneNames.begin(), laneNames.end(), name);
  auto id = static_cast<uint32_t>(it - laneNames.begin());
  if (it == laneNames.end())
    laneNames.push_back(name);
  auto state = std::make_unique<LaneState>();
  state->name = name;
  state->id = id;
  state->issueOnly = isIssueLane(name.kind);
  state->key = keys.get({p.rank, KeyKind::Issued, id, 0});
  state->done = state->issueOnly ? keys.get({p.rank, KeyKind::Done, id, 0}) : state->key;
  state->clock.setOwn(0, state->key, 0);
  p.lanes.push_back(std::move(state));
  return *(p.lastLane = p.lanes.back().get());
}

int64_t Stepper::perRun(uint32_t owner, unsigned slots, int64_t index) const {
  if (schedule.slots[slots].perRun >= 0)
    return schedule.slots[slots].perRun;
  return scanned.signals[slots].lookup(Scan::slotKey(owner, index));
}

Stepper::SlotState &Stepper::slotState(Process &p, unsigned slots, int64_t generation,
                                       int64_t index) {
  int64_t at = generation * frame.numSlots(slots) + index;
  if (p.lastSlot && p.lastSlotId == slots && p.lastSlotAt == at)
    return *p.lastSlot;
  std::unique_ptr<SlotState> &state = p.slots[slots][at];
  if (!state) {
    state = std::make_unique<SlotState>();
    state->perRun = perRun(p.rank, slots, index);
    int64_t g = schedule.slots[slots].generations;
    state->uses.resize(options.runs <= generation ? 0 : (options.runs - generation + g - 1) / g);
  }
  p.lastSlot = state.get();
  p.lastSlotId = slots;
  p.lastSlotAt = at;
  return *state;
}

WindowMemory &Stepper::memory(Process &p, unsigned window, int64_t run) {
  auto &generations = p.memory[window];
  std::unique_ptr<WindowMemory> &memory =
      generations[run % static_cast<int64_t>(generations.size())];
  if (!memory)
    memory = std::make_unique<WindowMemory>(frame, values);
  return *memory;
}

void Stepper::wake(Process &p) {
  if (&p == current || p.done || p.isActive)
    return;
  p.isActive = true;
  active.push_back(&p);
}

bool Stepper::run() {
  uint32_t n = frame.representative ? 1 : frame.numRanks();
  for (uint32_t rank = 0; rank < n; ++rank) {
    auto p = std::make_unique<Process>();
    p->rank = rank;
    p->point = schedule.grid.pointOf(rank);
    p->slots = decltype(p->slots)(schedule.slots.size());
    p->memory.resize(schedule.windows.size());
    for (size_t i = 0; i < schedule.windows.size(); ++i)
      p->memory[i].resize(std::min(schedule.windows[i].generations, options.runs));
    processes.push_back(std::move(p));
    wake(*processes.back());
  }
  while (true) {
    while (!active.empty()) {
      current = active.front();
      active.pop_front();
      current->isActive = false;
      if (!advance(*current))
        return false;
    }
    current = nullptr;
    // Nothing moves: let the issuers run further ahead, if that is what holds them.
    lookahead *= 2;
    for (auto &p : processes)
      if (p->hungry)
        wake(*p);
    if (active.empty())
      break;
  }
  for (auto &p : processes)
    if (!p->done)
      return deadlock();
  return options.ordersOnly || (balance() && realisations());
}

bool Stepper::fetch(Process &p) {
  if (p.pending || p.ended)
    return true;
  if (spare.empty()) {
    p.pending = std::make_unique<Queued>();
  } else {
    p.pending = std::move(spare.back());
    spare.pop_back();
  }
  Op &op = p.pending->op;
  while (true) {
    if (!p.stream) {
      if (p.run == options.runs) {
        p.ended = true;
        spare.push_back(std::move(p.pending));
        return true;
      }
      p.stream = schedule.open(frame.representative ? nullptr : &p.point, p.run);
      if (!p.stream)
        return fail(Verdict::Invalid, "the schedule opens no stream");
    }
    OpStream::Result result = p.stream->next(op);
    if (result == OpStream::Result::Op)
      break;
    if (result == OpStream::Result::Asymmetric)
      return fail(Verdict::Undecided, p.stream->why);
    p.stream.reset();
    ++p.run;
    for (auto &lane : p.lanes)
      lane->steps = 0;
  }
  if (++p.fetched > options.eventBudget)
    return fail(Verdict::Undecided,
                fmt::format("the runs have more than {} ops", options.eventBudget));
  if (clockBytes > options.clockBudget)
    return fail(Verdict::Undecided,
                fmt::format("the order of events takes more than {} MiB to keep",
                            options.clockBudget >> 20));
  if (std::string bad = frame.check(op); !bad.empty())
    return fail(Verdict::Invalid, fmt::format("an op of run {} ({}): {}", p.run,
                                              op.location < schedule.locations.size()
                                                  ? schedule.locations[op.location].op
                                                  : std::string(toString(op.kind)),
                                              bad));
  p.pending->run = static_cast<uint32_t>(p.run);
  p.pending->step = static_cast<uint32_t>(laneOf(p, op.lane).steps++);
  return true;
}

bool Stepper::advance(Process &p) {
  p.hungry = false;
  bool poll = true;
  while (true) {
    for (bool again = poll; again;) {
      again = false;
      for (size_t i = 0; i < p.lanes.size(); ++i) {
        LaneState &lane = *p.lanes[i];
        while (!lane.queue.empty()) {
          Step result = step(p, lane, *lane.queue.front());
          if (result == Step::Failed)
            return false;
          if (result == Step::Blocked)
            break;
          std::unique_ptr<Queued> done = std::move(lane.queue.front());
          lane.queue.pop_front();
          --p.queued;
          ++events;
          done->op.after.clear();
          done->op.token.reset();
          spare.push_back(std::move(done));
          again = true;
        }
      }
    }
    if (!fetch(p))
      return false;
    if (p.ended) {
      p.done = p.queued == 0;
      return true;
    }
    LaneState &lane = laneOf(p, p.pending->op.lane);
    if (options.depth && static_cast<int64_t>(lane.queue.size()) >= *options.depth)
      return true; // the issuer blocks on a full lane (S11)
    if (p.queued >= lookahead) {
      p.hungry = true;
      return true;
    }
    poll = lane.queue.empty();
    lane.queue.push_back(std::move(p.pending));
    ++p.queued;
  }
}

Stepper::Step Stepper::step(Process &p, LaneState &lane, Queued &q) {
  Op &op = q.op;
  for (const TokenRef &token : op.after)
    if (!token->state)
      return Step::Blocked;
  Who who{p.rank, lane.id, op.location, q.run, q.step};
  if (op.kind == OpKind::Wait) {
    SlotRange range;
    Resolve r = frame.resolve(*op.slot, p.rank, range);
    if (r != Resolve::Ok) {
      (void)failResolve(r, who);
      return Step::Failed;
    }
    const Slots &decl = schedule.slots[range.slots];
    int64_t g = decl.generations, k = decl.awaited(op.k);
    for (int64_t i = 0; i < range.count; ++i) {
      SlotState &slot = slotState(p, range.slots, q.run % g, range.begin + i);
      if (slot.count < slot.perRun * (q.run / g) + k)
        return Step::Blocked;
    }
  }
  if (options.ordersOnly) {
    if (op.slot && op.kind != OpKind::Wait && !deliver(p, lane, op, who, lane.clock, false))
      return Step::Failed;
    complete(lane, q, false, false);
    return Step::Done;
  }
  for (const TokenRef &token : op.after)
    lane.clock.merge(static_cast<TokenState *>(token->state.get())->clock);
  uint32_t index = lane.clock[lane.key] + 1;
  bool good = true, local = false;
  switch (op.kind) {
  case OpKind::Wait:
    good = acquire(p, lane, q, who);
    lane.clock.raise(lane.key, index);
    break;
  case OpKind::Nop:
    lane.clock.raise(lane.key, index);
    break;
  case OpKind::Flush:
    keys.flush(lane.clock, p.rank);
    lane.clock.raise(lane.key, index);
    break;
  case OpKind::Signal:
    lane.clock.raise(lane.key, index);
    good = deliver(p, lane, op, who, lane.clock, false);
    break;
  case OpKind::Entry:
  case OpKind::Exit:
    good = caller(p, lane, q, who);
    lane.clock.raise(lane.key, index);
    break;
  default:
    local = lane.issueOnly;
    good = moveData(p, lane, q, who);
  }
  if (!good)
    return Step::Failed;
  complete(lane, q, lane.issueOnly, local);
  return Step::Done;
}

void Stepper::complete(LaneState &lane, Queued &q, bool issueLane, bool local) {
  static const auto over = std::make_shared<char>();
  Op &op = q.op;
  if (options.ordersOnly || op.token.use_count() == 1) {
    op.token->state = over; // nobody else can ever wait for it
    return;
  }
  auto state = std::make_shared<TokenState>();
  state->clock = lane.clock;
  if (local)
    state->clock.setOwn(1, lane.done, lane.doneCount);
  op.token->state = std::move(state);
}

/// A wait acquires exactly the first k signals (S16).
bool Stepper::acquire(Process &p, LaneState &lane, Queued &q, const Who &who) {
  const Op &op = q.op;
  SlotRange range;
  if (Resolve r = frame.resolve(*op.slot, p.rank, range); r != Resolve::Ok)
    return failResolve(r, who);
  const Slots &decl = schedule.slots[range.slots];
  uint32_t index = lane.clock[lane.key] + 1;
  for (int64_t i = 0; i < range.count; ++i) {
    SlotState &slot = slotState(p, range.slots, q.run % decl.generations, range.begin + i);
    int64_t use = q.run / decl.generations, k = slot.perRun * use + decl.awaited(op.k);
    if (slot.waiter && slot.waiter != &lane)
      return fail(Verdict::Signal,
                  fmt::format("{}: slot {} is already waited for on lane {}; one lane may wait "
                              "for a slot",
                              text(who), frame.describeSlot(range.slots, range.begin + i),
                              toString(slot.waiter->name)),
                  &who);
    for (; slot.acquired < k; ++slot.acquired) {
      lane.clock.merge(slot.pending.front());
      slot.pending.pop_front();
    }
    slot.waiter = &lane;
    slot.passed.emplace_back(index, k);
    auto &useState = slot.uses[use];
    useState.lastWait = useState.waits++ ? std::max(useState.lastWait, k) : k;
    slot.smallestWait = std::min(slot.smallestWait, op.k);
  }
  return true;
}

bool Stepper::deliver(Process &p, LaneState &lane, const Op &op, const Who &who, const Clock &clock,
                      bool landing) {
  SlotRange range;
  if (Resolve r = frame.resolve(*op.slot, p.rank, range); r != Resolve::Ok)
    return failResolve(r, who);
  uint32_t d = frame.representative ? range.owner : 0;
  Process &owner = process(range.owner);
  const Slots &decl = schedule.slots[range.slots];
  int64_t generation = who.run % decl.generations;
  if (options.ordersOnly) {
    for (int64_t i = 0; i < range.count; ++i)
      ++slotState(owner, range.slots, generation, range.begin + i).count;
    wake(owner);
    return true;
  }
  keys.shift(clock, d, shifted);
  for (int64_t i = 0; i < range.count; ++i) {
    SlotState &slot = slotState(owner, range.slots, generation, range.begin + i);
    auto where = [&] { return frame.describeSlot(range.slots, range.begin + i); };
    // The writer, as the owner names it.
    uint32_t writer = frame.representative ? frame.negate(d) : p.rank;
    int64_t mine = 0;
    bool known = false;
    for (auto &w : slot.writers)
      if (w.rank == writer && w.lane == lane.id) {
        mine = ++w.count;
        known = true;
      }
    if (!known) {
      slot.writers.push_back({writer, lane.id, 1, who});
      mine = 1;
    }
    if (static_cast<int64_t>(slot.writers.size()) > decl.writers) {
      const Who &first = slot.writers.front().who;
      return fail(Verdict::Signal,
                  fmt::format("{}: slot {} of rank {} has {} writers, {} declared; another is {}",
                              text(who), where(),
                              frame.representative ? fmt::format("own+{}", range.owner)
                                                   : fmt::format("{}", range.owner),
                              slot.writers.size(), decl.writers, text(first)),
                  &who, &first);
    }
    if (decl.realisation == Slots::Realisation::Event && range.owner != p.rank)
      return fail(
          Verdict::Realisation,
          fmt::format("{}: slot {} is an event (S34), and a peer raises it", text(who), where()),
          &who);
    if (decl.realisation == Slots::Realisation::Inband &&
        (lane.name.kind != LaneKind::SM || op.kind == OpKind::Signal))
      return fail(Verdict::Realisation,
                  fmt::format("{}: slot {} is a packet's flag (S32), raised by something else than "
                              "an sm lane's copy or reduce",
                              text(who), where()),
                  &who);
    while (!slot.passed.empty() && slot.waiter &&
           shifted[slot.waiter->key] >= slot.passed.front().first) {
      slot.known = std::max(slot.known, slot.passed.front().second);
      slot.passed.pop_front();
    }
    if (decl.writers > 1 && slot.known < (mine - 1) * decl.writers)
      return fail(Verdict::Signal,
                  fmt::format("{}: signal {} into counted slot {} may be counted by an earlier "
                              "wait (S19)",
                              text(who), mine, where()),
                  &who);
    slot.lead = std::max(slot.lead, mine * decl.writers - slot.known);
    ++slot.count;
    ++slot.uses[who.run / decl.generations].signals;
    Clock &arrived = slot.pending.emplace_back(shifted);
    if (landing) { // data and notification: this slot counts the landing (S18)
      uint32_t key = keys.landed(frame.representative ? 0 : range.owner, range.slots,
                                 generation * frame.numSlots(range.slots) + range.begin + i);
      arrived.setOwn(1, schedule.rxVisible ? key : key + 1, static_cast<uint32_t>(slot.count));
    }
  }
  wake(owner);
  return true;
}

} // namespace mlir::ctran::machine
