//===- SimulatorLoad.cpp - The ops of a schedule, as what their times depend on -----------===//

#include "Simulator.h"

#include "ncclx/Machine/Trace.h"

#include <fmt/format.h>

namespace mlir::ctran::machine {

namespace {
/// Which op a token is of.
struct Made : TokenState {
  explicit Made(uint32_t op) : op(op) {}
  uint32_t op;
};
} // namespace

struct Simulator::Loading {
  uint32_t rank = 0;
  int64_t run = 0;
  double issued = 0;
  Op op;
  OpCostQuery query;
  llvm::DenseMap<std::pair<unsigned, int64_t>, uint32_t> lanes; ///< of the rank
  /// Tokens of later ops, with their places in `befores`.
  std::vector<std::pair<TokenRef, size_t>> later;
  std::vector<double> carried; ///< by resource, units
};

std::string Simulator::query(const Op &op, uint32_t rank, OpCostQuery &out) const {
  out.rank = rank;
  out.op = &op;
  out.signalled = -1;
  out.reads.clear();
  out.writes.clear();
  Box box;
  for (bool reads : {true, false})
    for (const Access &access : reads ? op.reads : op.writes) {
      if (frame.resolve(access, rank, box) != Resolve::Ok)
        return frame.why;
      ByteBox bytes =
          schedule.windows[box.window].spaces[box.space].locate(box.path, box.first, box.count);
      (reads ? out.reads : out.writes)
          .push_back({box.owner, box.window, bytes.bytes(),
                      bytes.rowBytes == bytes.stride ? 1 : bytes.rows});
    }
  if (op.slot && op.kind != OpKind::Wait)
    out.signalled = frame.target(op.slot->peer, rank);
  return {};
}

Cost Simulator::costOf(const OpCostQuery &query) const {
  switch (query.op->kind) {
  case OpKind::Copy:
    return model.copy(query);
  case OpKind::Reduce:
    return model.reduce(query);
  case OpKind::Compute:
    return model.compute(query);
  case OpKind::Signal:
    return model.signal(query);
  case OpKind::Wait:
    return model.wait(query);
  case OpKind::Flush:
    return model.flush(query);
  case OpKind::Count:
    return model.count(query);
  default:
    return {}; // the proof's own words take no time
  }
}

uint32_t Simulator::laneOf(Loading &loading, const Lane &lane) {
  auto [it, isNew] =
      loading.lanes.try_emplace({static_cast<unsigned>(lane.kind), lane.index}, lanes.size());
  if (isNew) {
    LaneState &state = lanes.emplace_back();
    state.rank = loading.rank;
    state.lane = lane;
  }
  return it->second;
}

/// The slots that `op` waits for, or raises. Empty, or why they cannot be told.
std::string Simulator::addSlots(const Op &op, uint32_t rank, int64_t run) {
  SlotRange range;
  if (own->resolve(*op.slot, one ? 0 : rank, range) != Resolve::Ok)
    return own->why;
  const Slots &decl = schedule.slots[range.slots];
  int64_t generation = run % decl.generations, use = run / decl.generations;
  uint32_t process = one ? 0 : range.owner;
  for (int64_t i = 0; i < range.count; ++i) {
    int64_t slot = range.begin + i, k = 0;
    if (op.kind == OpKind::Wait) {
      int64_t perRun = 0; // run 0 needs none
      if (use > 0)
        perRun = decl.perRun >= 0
                     ? decl.perRun
                     : scanned.signals[range.slots].lookup(Scan::slotKey(process, slot));
      k = perRun * use + decl.awaited(op.k);
      if (k <= 0)
        continue;
    }
    auto [it, isNew] = slotNumbers.try_emplace(
        {uint64_t(process) << 32 | range.slots, generation * frame.numSlots(range.slots) + slot},
        slots.size());
    if (isNew)
      slots.emplace_back();
    slotUses.push_back({it->second, k});
  }
  return {};
}

bool Simulator::refuse(const Op &op, const std::string &why) {
  result.message =
      fmt::format("'{}': {}",
                  op.location < schedule.locations.size() ? schedule.locations[op.location].op
                                                          : std::string(toString(op.kind)),
                  why);
  return false;
}

bool Simulator::loadOp(Loading &loading) {
  const Op &op = loading.op;
  if (std::string bad = frame.check(op); !bad.empty())
    return refuse(op, bad);
  if (std::string bad = query(op, loading.rank, loading.query); !bad.empty())
    return refuse(op, bad);
  Cost cost = costOf(loading.query);
  if (auto apart = cost.apart) {
    result.apart = true;
    result.message = fmt::format("it moves something from rank {} to rank {}, and nothing "
                                 "leads there",
                                 apart->first, apart->second);
    return false;
  }
  if (cost.lacks) {
    result.apart = true;
    result.message = fmt::format("it needs {}", cost.lacks);
    return false;
  }
  auto number = static_cast<uint32_t>(instances.size());
  loading.issued += model.issue(loading.query);
  Instance &instance = instances.emplace_back();
  instance.issued = loading.issued;
  instance.lane = laneOf(loading, op.lane);
  instance.after = static_cast<uint32_t>(befores.size());
  instance.slots = static_cast<uint32_t>(slotUses.size());
  instance.waits = op.kind == OpKind::Wait;
  instance.raises = op.slot && !instance.waits;
  for (const auto *parts : {&loading.query.reads, &loading.query.writes})
    for (const Part &part : *parts)
      instance.transfers |= part.rank != loading.rank && part.bytes > 0;
  for (const TokenRef &token : op.after) {
    const auto *made = static_cast<const Made *>(token->state.get());
    if (!made)
      loading.later.push_back({token, befores.size()});
    befores.push_back(made ? made->op : none);
  }
  op.token->state = llvm::makeIntrusiveRefCnt<Made>(number);
  if (op.slot)
    if (std::string bad = addSlots(op, loading.rank, loading.run); !bad.empty())
      return refuse(op, bad);
  timings.push_back({cost.before, cost.work, cost.after, cost.landing, cost.maxRate,
                     static_cast<uint32_t>(resourceUses.size())});
  double rate = cost.maxRate;
  for (const ResourceUse &use : cost.uses) {
    resourceUses.push_back(use);
    if (use.resource >= loading.carried.size() || use.weight <= 0)
      continue;
    loading.carried[use.resource] += use.weight * cost.work;
    rate = std::min(rate, model.capacity(use.resource) / use.weight);
  }
  LaneState &lane = lanes[instance.lane];
  (lane.tail == none ? lane.head : instances[lane.tail].next) = number;
  lane.tail = number;
  lane.least += cost.before;
  if (!isIssueLane(op.lane.kind))
    lane.least += cost.after + (cost.work > 0 ? cost.work / rate : 0);

  TimedOp &timed = result.ops.emplace_back();
  timed.rank = loading.rank;
  timed.run = loading.run;
  timed.step = lane.steps++;
  timed.lane = op.lane;
  timed.kind = op.kind;
  timed.location = op.location;
  timed.collective =
      op.collective < static_cast<int>(schedule.collectives.size()) ? op.collective : -1;
  return true;
}

/// Of many ranks, whether all their ops are as many as are simulated: to ask the model for the cost
/// of millions that are then too many takes half a minute.
bool Simulator::hasRoom(uint32_t processes) {
  constexpr uint32_t many = 4096;
  int64_t left = budget();
  Op op;
  for (uint32_t rank = 0; rank < processes && processes > many; ++rank) {
    std::vector<int64_t> point = schedule.grid.pointOf(rank);
    std::unique_ptr<OpStream> stream = schedule.open(&point, 0);
    while (stream && stream->next(op) == OpStream::Result::Op)
      if ((left -= options.runs) < 0)
        return false;
  }
  return true;
}

bool Simulator::load() {
  uint32_t processes = one ? 1 : frame.numRanks();
  if (!hasRoom(processes)) {
    result.message = fmt::format("more than {} ops", budget());
    return false;
  }
  Loading loading;
  loading.carried.resize(model.numResources());
  for (uint32_t rank = 0; rank < processes; ++rank) {
    std::vector<int64_t> point = schedule.grid.pointOf(rank);
    firstOf.push_back(instances.size());
    loading.rank = rank;
    loading.issued = 0;
    loading.lanes.clear();
    for (int64_t run = 0; run < options.runs; ++run) {
      loading.run = run;
      for (auto &[name, lane] : loading.lanes)
        lanes[lane].steps = 0;
      std::unique_ptr<OpStream> stream = schedule.open(one ? nullptr : &point, run);
      while (stream) {
        OpStream::Result next = stream->next(loading.op);
        if (next == OpStream::Result::End)
          break;
        if (next != OpStream::Result::Op) {
          result.message = stream->why;
          return false;
        }
        if (++result.events > budget()) {
          result.message = fmt::format("more than {} ops", budget());
          return false;
        }
        if (!loadOp(loading))
          return false;
      }
    }
  }
  for (auto &[token, place] : loading.later)
    if (const auto *made = static_cast<const Made *>(token->state.get()))
      befores[place] = made->op;
  firstOf.push_back(instances.size());
  Instance &end = instances.emplace_back();
  end.after = static_cast<uint32_t>(befores.size());
  end.slots = static_cast<uint32_t>(slotUses.size());
  timings.emplace_back().uses = static_cast<uint32_t>(resourceUses.size());
  if (!isLate(loading.carried))
    return true;
  tellLate();
  return false;
}

/// What its lanes and resources have to do, one thing after the other, takes longer than asked for.
bool Simulator::isLate(llvm::ArrayRef<double> carried) const {
  double most = options.horizon * (1 + 1e-9); // what is added up here is rounded otherwise
  for (const LaneState &lane : lanes)
    if (lane.least > most)
      return true;
  for (unsigned resource = 0; resource < carried.size(); ++resource)
    if (carried[resource] > model.capacity(resource) * most)
      return true;
  return false;
}

} // namespace mlir::ctran::machine
