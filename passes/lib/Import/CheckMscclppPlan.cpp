//===- CheckMscclppPlan.cpp - What all GPUs of an MSCCL++ plan must agree on -------------===//
#include "MscclppPlan.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using namespace mlir::ncclx::msccl;

namespace {

class PlanChecker {
public:
  explicit PlanChecker(Plan &plan) : plan(plan) {}
  bool run();

private:
  Plan &plan;
  bool bad = false;
  std::set<std::string> said; ///< warnings that one file has once

  InFlightDiagnostic error(LocationAttr loc) {
    bad = true;
    return emitError(loc);
  }
  void warnOnce(LocationAttr loc, const std::string &what) {
    if (said.insert(what).second)
      emitWarning(loc) << what;
  }
  void checkRoom();
  void pairChannels();
  void checkCounts();
  void checkPackets();
  void checkMeetings();
  void checkThreads();
};

void PlanChecker::checkRoom() {
  for (const PlanGpu &gpu : plan.gpus)
    for (const PlanBlock &block : gpu.blocks)
      for (const PlanOp &op : block.ops)
        for (const std::vector<PlanOperand> *list : {&op.sources, &op.dests})
          for (const PlanOperand &each : *list) {
            Place found = plan.resolve(each.rank, each.place);
            if (found.chunk + each.count > plan.chunksOf(found.buffer))
              error(op.loc) << "chunks " << each.place.chunk << " to "
                            << each.place.chunk + each.count - 1 << " of buffer "
                            << StringRef(&each.place.buffer, 1) << ", which has "
                            << plan.chunksOf(found.buffer);
          }
}

// The k-th channel from a to b and the k-th from b to a are the two ends of one.
void PlanChecker::pairChannels() {
  std::map<std::tuple<int64_t, int64_t, bool>, std::vector<size_t>> ends;
  for (auto [rank, gpu] : llvm::enumerate(plan.gpus))
    for (auto [i, channel] : llvm::enumerate(gpu.channels))
      ends[{int64_t(rank), channel.peer, channel.port}].push_back(i);
  for (auto &[key, mine] : ends) {
    auto [from, to, port] = key;
    const std::vector<size_t> &theirs = ends[{to, from, port}];
    if (mine.size() != theirs.size()) {
      error(plan.gpus[from].loc) << "GPU " << from << " has " << mine.size()
                                 << (port ? " port" : " memory") << " channels to GPU " << to
                                 << ", which has " << theirs.size() << " back";
      continue;
    }
    for (size_t k = 0; k < mine.size(); ++k)
      plan.gpus[from].channels[mine[k]].there = theirs[k];
  }
}

// Counters live on from run to run: as much must come as is taken.
void PlanChecker::checkCounts() {
  std::map<std::pair<size_t, size_t>, std::pair<int64_t, int64_t>> heard; // at the waiting end
  for (auto [rank, gpu] : llvm::enumerate(plan.gpus)) {
    std::vector<std::array<int64_t, 2>> semaphores(gpu.semaphores.size(), {0, 0});
    std::vector<std::array<std::set<int64_t>, 2>> users(gpu.semaphores.size());
    for (const PlanBlock &block : gpu.blocks)
      for (const PlanOp &op : block.ops) {
        for (size_t channel : op.channels) {
          const PlanChannel &c = gpu.channels[channel];
          if (op.kind == PlanOpKind::Wait)
            ++heard[{rank, channel}].second;
          else if (op.kind == PlanOpKind::Signal || op.signals)
            ++heard[{size_t(c.peer), c.there}].first;
        }
        for (auto [i, dest] : llvm::enumerate(op.dests))
          if ((op.port || op.signals) && i < op.channels.size() &&
              gpu.channels[op.channels[i]].peer != dest.rank)
            error(op.loc) << "puts to GPU " << dest.rank << " over a channel to GPU "
                          << gpu.channels[op.channels[i]].peer;
        bool release = op.kind == PlanOpKind::Release;
        for (size_t number : op.semaphores) {
          ++semaphores[number][release];
          users[number][release].insert(block.id);
        }
      }
    for (auto [i, counts] : llvm::enumerate(semaphores)) {
      if (counts[0] != counts[1])
        error(gpu.loc) << "semaphore " << i << " of GPU " << rank << " is acquired " << counts[0]
                       << " times and released " << counts[1] << " times in a run";
      for (bool release : {false, true})
        if (users[i][release].size() > 1)
          error(gpu.loc) << "semaphore " << i << " of GPU " << rank << " is "
                         << (release ? "released" : "acquired") << " by "
                         << users[i][release].size()
                         << " thread blocks; whose turn it is depends on time, and only one is "
                            "understood";
    }
  }
  for (auto &[end, counts] : heard)
    if (counts.first != counts.second) {
      const PlanChannel &c = plan.gpus[end.first].channels[end.second];
      error(plan.gpus[end.first].loc)
          << "GPU " << end.first << " waits " << counts.second << " times on a channel from GPU "
          << c.peer << ", which signals " << counts.first << " times in a run";
    }
}

void PlanChecker::checkPackets() {
  std::map<std::pair<int64_t, int64_t>, LocationAttr> written;
  auto each = [&](auto &&visit) {
    for (const PlanGpu &gpu : plan.gpus)
      for (const PlanBlock &block : gpu.blocks)
        for (const PlanOp &op : block.ops)
          visit(op);
  };
  each([&](const PlanOp &op) {
    for (const PlanOperand &dest : op.dests)
      for (int64_t i = 0; dest.packets && i < dest.count; ++i)
        if (auto [it, isNew] = written.insert({{dest.rank, dest.place.chunk + i}, op.loc});
            !isNew) {
          error(op.loc) << "a second packet in a run for chunk " << dest.place.chunk + i
                        << " of GPU " << dest.rank
                        << "'s scratch memory; its reader cannot tell them apart";
        }
  });
  each([&](const PlanOp &op) {
    for (const PlanOperand &source : op.sources)
      for (int64_t i = 0; source.packets && i < source.count; ++i)
        if (!written.count({source.rank, source.place.chunk + i}))
          error(op.loc) << "reads a packet in chunk " << source.place.chunk + i << " of GPU "
                        << source.rank << "'s scratch memory, where nobody puts one";
  });
}

void PlanChecker::checkMeetings() {
  for (PlanGpu &gpu : plan.gpus) {
    std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, PlanOp *>> meetings;
    for (PlanBlock &block : gpu.blocks) {
      std::map<int64_t, int64_t> uses;
      for (PlanOp &op : block.ops)
        if (op.kind == PlanOpKind::Barrier) {
          op.meeting = uses[op.barrier]++;
          auto &[count, first] = meetings[{op.barrier, op.meeting}];
          ++count;
          first = first ? first : &op;
        }
    }
    for (auto &[key, met] : meetings)
      if (met.first != met.second->participants)
        error(met.second->loc) << "use " << key.second << " of barrier " << key.first << " is for "
                               << met.second->participants << " thread blocks, and " << met.first
                               << " come";
  }
}

// A lane stands for a block as a whole; its threads are another matter.
void PlanChecker::checkThreads() {
  for (const PlanGpu &gpu : plan.gpus)
    for (const PlanBlock &block : gpu.blocks) {
      const PlanOp *moved = nullptr, *waited = nullptr;
      for (const PlanOp &op : block.ops) {
        bool packets = llvm::any_of(op.sources, [](auto &o) { return o.packets; }) ||
                       llvm::any_of(op.dests, [](auto &o) { return o.packets; });
        switch (op.kind) {
        case PlanOpKind::Nop:
        case PlanOpKind::Barrier:
          moved = waited = nullptr;
          break;
        case PlanOpKind::Wait:
        case PlanOpKind::Acquire:
          waited = &op;
          break;
        case PlanOpKind::Signal:
        case PlanOpKind::Release:
          if (moved && !op.port)
            warnOnce(op.loc, llvm::formatv("no nop between '{0}' and '{1}': nothing says that all "
                                           "threads of the block are done; taken as done",
                                           moved->word, op.word));
          break;
        case PlanOpKind::Move:
        case PlanOpKind::Reduce:
          if (waited && !packets)
            warnOnce(op.loc, llvm::formatv("no nop between '{0}' and '{1}': nothing makes all "
                                           "threads of the block wait; taken as if they did",
                                           waited->word, op.word));
          if (!packets && !op.port)
            moved = &op;
          break;
        case PlanOpKind::Flush:
          break;
        }
      }
    }
}

bool PlanChecker::run() {
  checkRoom();
  pairChannels();
  if (bad)
    return false;
  checkCounts();
  checkPackets();
  checkMeetings();
  if (!bad)
    checkThreads();
  return !bad;
}

} // namespace

bool mlir::ncclx::msccl::checkPlan(Plan &plan) { return PlanChecker(plan).run(); }
