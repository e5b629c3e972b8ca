//===- ImportMscclppJson.cpp - An MSCCL++ plan as ctran --------------------------------===//
//
// A thread block is an `sm` lane, a channel a counter at the end that waits, a port channel a `ce`
// lane too, on which puts and signals are done in order. A packet is a copy of one chunk that
// raises a counter of that chunk: its flag.
//
//===----------------------------------------------------------------------===//
#include "MscclppPlan.h"

#include "ncclx/Import/Msccl.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::msccl;
using mlir::ctran::ScheduleBuilder;

namespace {

class PlanEmitter : ChunkProgram {
public:
  PlanEmitter(const Plan &plan, const PlanPlay &play, const MscclOptions &options, ModuleOp module)
      : ChunkProgram(plan, options.chunkElements, module), plan(plan), play(play) {}
  void run();

private:
  const Plan &plan;
  const PlanPlay &play;
  using Numbered = std::map<std::pair<int64_t, int64_t>, size_t>; ///< rank and its own number
  Numbered channelOf, semaphoreOf, packetOf;
  CounterTable channels, semaphores, packets;

  // Of the rank being written.
  int64_t rank = 0;
  std::vector<Value> last;       ///< by block
  std::vector<Value> port;       ///< by channel: the last put or signal over it
  std::vector<int64_t> waited;   ///< by channel
  std::vector<int64_t> acquired; ///< by semaphore
  std::map<std::pair<size_t, size_t>, Value> done;
  std::map<std::pair<int64_t, int64_t>, Value> meetings; ///< of blocks, by barrier and use
  // Of the op being written.
  ScheduleBuilder::LaneRef lane{};
  SmallVector<Value> after;
  StringAttr note;

  void declareCounters();
  Value slot(const CounterTable &table, const Numbered &numbers, int64_t at, int64_t number);
  Value emitRank(int64_t rank, Value begin);
  void emitOp(size_t block, const PlanOp &op);
  void emitMove(const PlanOp &op);
  void emitReduce(const PlanOp &op);
  void emitMeeting(const PlanOp &op);
  void wait(Value slot, int64_t value) {
    after = {ctran::WaitOp::create(b, s().loc, ctran::TokenType::get(b.getContext()), slot,
                                   constant(value), after, lane.kind, constant(lane.index), s().of,
                                   note)};
  }
  void signal(Value slot) { after = {s().signal(slot, after, lane, note.getValue())}; }
  Value box(const PlanOperand &operand, int64_t at, int64_t first, int64_t count) {
    Value window = windowOf(at, operand.place);
    Place place{operand.place.buffer, operand.place.chunk + first};
    return chunksAt(at == rank ? window : peer(window, at), at, place, count);
  }
  Value box(const PlanOperand &operand, int64_t first, int64_t count) {
    return box(operand, operand.rank, first, count);
  }
  SmallVector<Value> boxes(const PlanOperand &operand, int64_t first, int64_t count) {
    SmallVector<Value> all;
    if (!operand.group)
      all.push_back(box(operand, first, count));
    for (int64_t member : operand.ranks)
      all.push_back(box(operand, member, first, count));
    return all;
  }
  void awaitPackets(const PlanOperand &source) {
    for (int64_t i = 0; source.packets && i < source.count; ++i)
      wait(slot(packets, packetOf, rank, source.place.chunk + i), 1);
  }
  void copy(Value source, ValueRange dests, Value notify) {
    after = {ctran::CopyOp::create(b, s().loc, ctran::TokenType::get(b.getContext()), source, dests,
                                   notify, after, lane.kind, constant(lane.index), s().of, note)};
  }
  /// Copies chunk by chunk, with the flag of each.
  void copyPackets(const PlanOperand &source, const PlanOperand &dest) {
    for (int64_t i = 0; i < dest.count; ++i) {
      Value flag = slot(packets, packetOf, dest.rank, dest.place.chunk + i);
      copy(box(source, i, 1), box(dest, i, 1), dest.remote ? flag : Value());
      if (!dest.remote)
        signal(flag);
    }
  }
};

void PlanEmitter::declareCounters() {
  for (auto [rank, gpu] : llvm::enumerate(plan.gpus)) {
    std::vector<int64_t> waits(gpu.channels.size(), 0), takes(gpu.semaphores.size(), 0);
    for (const PlanBlock &block : gpu.blocks)
      for (const PlanOp &op : block.ops) {
        if (op.kind == PlanOpKind::Wait)
          for (size_t channel : op.channels)
            ++waits[channel];
        if (op.kind == PlanOpKind::Acquire)
          for (size_t semaphore : op.semaphores)
            ++takes[semaphore];
        for (const PlanOperand &dest : op.dests)
          for (int64_t i = 0; dest.packets && i < dest.count; ++i)
            packetOf[{dest.rank, dest.place.chunk + i}] = packets.add(dest.rank, 1);
      }
    for (auto [channel, count] : llvm::enumerate(waits))
      if (count)
        channelOf[{rank, channel}] = channels.add(int64_t(rank), count);
    for (auto [semaphore, count] : llvm::enumerate(takes))
      if (count)
        semaphoreOf[{rank, semaphore}] =
            semaphores.add(int64_t(rank), count, gpu.semaphores[semaphore]);
  }
  channels.declare(s(), "channel");
  semaphores.declare(s(), "semaphore");
  packets.declare(s(), "packet");
}

Value PlanEmitter::slot(const CounterTable &table, const Numbered &numbers, int64_t at,
                        int64_t number) {
  size_t counter = numbers.at({at, number});
  Value slots = table.slots(counter);
  return s().slot(at == rank ? slots : peer(slots, at), constant(table.place(counter)));
}

void PlanEmitter::emitMove(const PlanOp &op) {
  for (auto [i, pair] : llvm::enumerate(llvm::zip(op.sources, op.dests))) {
    auto &[source, dest] = pair;
    awaitPackets(source);
    if (dest.packets) {
      copyPackets(source, dest);
      continue;
    }
    SmallVector<Value> dests = boxes(dest, 0, dest.count);
    auto signalled = [&](size_t channel) {
      const PlanChannel &c = plan.gpus[rank].channels[channel];
      return slot(channels, channelOf, c.peer, int64_t(c.there));
    };
    if (!op.port) {
      copy(box(source, 0, source.count), dests, Value());
      if (op.signals)
        signal(signalled(op.channels[i]));
      continue;
    }
    // The proxy does it, behind what it has been told before; the block goes on.
    size_t channel = op.channels[i];
    SmallVector<Value> told = after;
    ScheduleBuilder::LaneRef block = std::exchange(lane, {ctran::LaneKind::CE, int64_t(channel)});
    if (port[channel])
      after.push_back(port[channel]);
    copy(box(source, 0, source.count), dests, Value());
    if (op.signals)
      signal(signalled(channel));
    port[channel] = after.front();
    lane = block;
    after = told;
    if (op.flushes)
      after.push_back(port[channel]);
  }
}

void PlanEmitter::emitReduce(const PlanOp &op) {
  for (const PlanOperand &source : op.sources)
    awaitPackets(source);
  const PlanOperand &first = op.dests.front();
  for (int64_t i = 0; i < first.count; ++i) {
    SmallVector<Value> sources, dests;
    for (const PlanOperand &source : op.sources)
      llvm::append_range(sources, boxes(source, i, 1));
    for (const PlanOperand &dest : op.dests)
      if (!dest.packets)
        llvm::append_range(dests, boxes(dest, i, 1));
    after = {ctran::ReduceOp::create(b, s().loc, ctran::TokenType::get(b.getContext()),
                                     ctran::ReduceKind::Sum, FloatAttr(), IntegerAttr(),
                                     b.getF32Type(), sources, dests, Value(), after, lane.kind,
                                     constant(lane.index), s().of, note)};
  }
  for (const PlanOperand &dest : op.dests)
    if (dest.packets)
      copyPackets(first, dest);
}

/// The blocks' ops of one meeting follow each other in the order; the first joins for all.
void PlanEmitter::emitMeeting(const PlanOp &op) {
  auto [it, isNew] = meetings.try_emplace({op.barrier, op.meeting});
  if (isNew) {
    SmallVector<Value> all;
    for (auto [i, block] : llvm::enumerate(plan.gpus[rank].blocks))
      if (llvm::any_of(block.ops, [&](const PlanOp &other) {
            return other.barrier == op.barrier && other.meeting == op.meeting;
          }))
        all.push_back(last[i]);
    it->second = join(all, lane, note.getValue());
  }
  after = {it->second};
}

void PlanEmitter::emitOp(size_t block, const PlanOp &op) {
  s().loc = Location(op.loc);
  note = b.getStringAttr(llvm::formatv("gpu {0} tb {1} step {2} {3}", rank,
                                       plan.gpus[rank].blocks[block].id, op.number, op.word));
  lane = {ctran::LaneKind::SM, int64_t(block)};
  after = {last[block]};
  switch (op.kind) {
  case PlanOpKind::Nop:
    for (auto [on, steps] : op.deps)
      after.push_back(done.at({on, size_t(steps - 1)}));
    break;
  case PlanOpKind::Signal:
    for (size_t channel : op.channels) {
      const PlanChannel &c = plan.gpus[rank].channels[channel];
      Value raised = slot(channels, channelOf, c.peer, int64_t(c.there));
      if (!op.port) {
        signal(raised);
        continue;
      }
      SmallVector<Value> all = after;
      if (port[channel])
        all.push_back(port[channel]);
      port[channel] =
          s().signal(raised, all, {ctran::LaneKind::CE, int64_t(channel)}, note.getValue());
    }
    break;
  case PlanOpKind::Wait:
    for (size_t channel : op.channels)
      wait(slot(channels, channelOf, rank, int64_t(channel)), ++waited[channel]);
    break;
  case PlanOpKind::Acquire:
    for (size_t semaphore : op.semaphores)
      wait(slot(semaphores, semaphoreOf, rank, int64_t(semaphore)), ++acquired[semaphore]);
    break;
  case PlanOpKind::Release:
    for (size_t semaphore : op.semaphores)
      signal(slot(semaphores, semaphoreOf, rank, int64_t(semaphore)));
    break;
  case PlanOpKind::Flush:
    for (size_t channel : op.channels)
      if (port[channel])
        after.push_back(port[channel]);
    break;
  case PlanOpKind::Barrier:
    emitMeeting(op);
    break;
  case PlanOpKind::Move:
    emitMove(op);
    break;
  case PlanOpKind::Reduce:
    emitReduce(op);
    break;
  }
  last[block] = join(after, lane, note.getValue());
}

Value PlanEmitter::emitRank(int64_t number, Value begin) {
  rank = number;
  const PlanGpu &gpu = plan.gpus[rank];
  last.assign(gpu.blocks.size(), begin);
  port.assign(gpu.channels.size(), Value());
  waited.assign(gpu.channels.size(), 0);
  acquired.assign(gpu.semaphores.size(), 0);
  done.clear();
  meetings.clear();
  for (auto position : play.order[rank]) {
    emitOp(position.first, gpu.blocks[position.first].ops[position.second]);
    done[position] = last[position.first];
  }
  s().loc = Location(gpu.loc);
  SmallVector<Value> all(last.begin(), last.end());
  for (Value token : port)
    if (token)
      all.push_back(token);
  if (all.empty())
    return begin;
  return join(all, {ctran::LaneKind::Host, 0}, "gpu " + std::to_string(rank) + " done");
}

void PlanEmitter::run() {
  begin(ctran::PeerAccess::LoadStore, plan.doubleScratch ? 2 : 1);
  declareCounters();
  Value start = emitSources();
  SmallVector<Value> ready;
  for (int64_t number = 0; number < plan.ranks; ++number)
    ready.push_back(forRank(number, start, [&](Value begin) { return emitRank(number, begin); }));
  end(ready);
}

/// Chunks that the busiest rank sends, those counted that peers fetch from it.
int64_t mostSent(const Plan &plan) {
  std::vector<int64_t> sent(plan.gpus.size(), 0);
  for (auto [rank, gpu] : llvm::enumerate(plan.gpus))
    for (const PlanBlock &block : gpu.blocks)
      for (const PlanOp &op : block.ops) {
        for (const PlanOperand &source : op.sources)
          if (source.remote)
            sent[source.rank] += source.count;
        for (const PlanOperand &dest : op.dests)
          if (dest.remote)
            sent[rank] += dest.count;
      }
  return *llvm::max_element(sent);
}

} // namespace

OwningOpRef<ModuleOp> mlir::ncclx::importMscclppJson(StringRef text, StringRef name,
                                                     MLIRContext *context,
                                                     const MscclOptions &options) {
  DialectRegistry registry;
  registerImportDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  std::optional<Plan> plan = readPlan(text, name, context);
  if (!plan)
    return nullptr;
  std::optional<PlanPlay> played = play(*plan);
  if (!played)
    return nullptr;
  Location loc(plan->loc);
  plan->warnIfCustom();
  if (!played->stopped.empty()) {
    InFlightDiagnostic warning = emitWarning(loc) << "stops for ever";
    for (const std::string &who : played->stopped)
      warning.attachNote(loc) << who;
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  PlanEmitter(*plan, *played, options, *module).run();
  size_t ops = 0;
  bool inNetwork = false;
  for (const PlanGpu &gpu : plan->gpus)
    for (const PlanBlock &block : gpu.blocks) {
      ops += block.ops.size();
      for (const PlanOp &op : block.ops)
        inNetwork |= llvm::any_of(op.dests, [](const PlanOperand &o) { return o.group; });
    }
  emitRemark(loc) << plan->kind() << " of " << plan->ranks << " ranks "
                  << (plan->inPlace ? "in" : "out of") << " place, " << ops << " steps"
                  << (inNetwork ? ", through the switch" : plan->sentOfLeast(mostSent(*plan)));
  return module;
}
