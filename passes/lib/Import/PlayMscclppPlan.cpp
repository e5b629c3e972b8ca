//===- PlayMscclppPlan.cpp - One execution of an MSCCL++ plan ---------------------------===//
//
// Waits count and nothing is chosen by arrival, so what one execution shows holds for all.
//
//===----------------------------------------------------------------------===//
#include "MscclppPlan.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using namespace mlir::ncclx::msccl;

namespace {

class Player {
public:
  explicit Player(const Plan &plan) : plan(plan) {
    for (const PlanGpu &gpu : plan.gpus) {
      next.emplace_back(gpu.blocks.size(), 0);
      heard.emplace_back(gpu.channels.size(), 0);
      taken.emplace_back(gpu.channels.size(), 0);
      semaphores.push_back(gpu.semaphores);
      met.emplace_back();
      result.order.emplace_back();
    }
  }
  std::optional<PlanPlay> run();

private:
  const Plan &plan;
  PlanPlay result;
  std::vector<std::vector<size_t>> next;          ///< by rank and block
  std::vector<std::vector<int64_t>> heard, taken; ///< by rank and channel
  std::vector<std::vector<int64_t>> semaphores;   ///< by rank
  std::set<std::pair<int64_t, int64_t>> packets;  ///< rank and chunk
  /// Blocks that stand before a meeting, by barrier and meeting.
  std::vector<std::map<std::pair<int64_t, int64_t>, std::set<size_t>>> met;

  const PlanOp *current(size_t rank, size_t block) const {
    const PlanBlock &b = plan.gpus[rank].blocks[block];
    return next[rank][block] < b.ops.size() ? &b.ops[next[rank][block]] : nullptr;
  }
  /// What the op cannot start for, or nothing; `local`: of its own GPU alone.
  std::string waitsFor(size_t rank, size_t block, const PlanOp &op, bool local);
  void execute(size_t rank, size_t block, const PlanOp &op);
  bool pass(bool local);
};

std::string Player::waitsFor(size_t rank, size_t block, const PlanOp &op, bool local) {
  const PlanGpu &gpu = plan.gpus[rank];
  for (auto [on, steps] : op.deps)
    if (int64_t(next[rank][on]) < steps)
      return llvm::formatv("step {0} of thread block {1}", steps - 1, gpu.blocks[on].id);
  if (op.kind == PlanOpKind::Barrier) {
    auto &here = met[rank][{op.barrier, op.meeting}];
    here.insert(block);
    if (int64_t(here.size()) < op.participants)
      return llvm::formatv("{0} more thread blocks at barrier {1}",
                           op.participants - int64_t(here.size()), op.barrier);
  }
  if (local)
    return "";
  if (op.kind == PlanOpKind::Wait)
    for (size_t channel : op.channels)
      if (heard[rank][channel] <= taken[rank][channel])
        return llvm::formatv("signal {0} of GPU {1}", taken[rank][channel] + 1,
                             gpu.channels[channel].peer);
  if (op.kind == PlanOpKind::Acquire)
    for (size_t semaphore : op.semaphores)
      if (semaphores[rank][semaphore] < 1)
        return llvm::formatv("semaphore {0}", semaphore);
  for (const PlanOperand &source : op.sources)
    for (int64_t i = 0; source.packets && i < source.count; ++i)
      if (!packets.count({source.rank, source.place.chunk + i}))
        return llvm::formatv("a packet in chunk {0}", source.place.chunk + i);
  return "";
}

void Player::execute(size_t rank, size_t block, const PlanOp &op) {
  for (size_t channel : op.channels) {
    const PlanChannel &c = plan.gpus[rank].channels[channel];
    if (op.kind == PlanOpKind::Wait)
      ++taken[rank][channel];
    else if (op.kind == PlanOpKind::Signal || op.signals)
      ++heard[c.peer][c.there];
  }
  for (size_t semaphore : op.semaphores)
    semaphores[rank][semaphore] += op.kind == PlanOpKind::Release ? 1 : -1;
  for (const PlanOperand &dest : op.dests)
    for (int64_t i = 0; dest.packets && i < dest.count; ++i)
      packets.insert({dest.rank, dest.place.chunk + i});
  result.order[rank].push_back({block, next[rank][block]++});
}

/// Whether somebody has moved on.
bool Player::pass(bool local) {
  bool moved = false;
  for (size_t rank = 0; rank < plan.gpus.size(); ++rank)
    for (size_t block = 0; block < plan.gpus[rank].blocks.size(); ++block)
      while (const PlanOp *op = current(rank, block)) {
        if (!waitsFor(rank, block, *op, local).empty())
          break;
        moved = true;
        if (op->kind != PlanOpKind::Barrier) {
          execute(rank, block, *op);
          continue;
        }
        // All leave together, so that their ops stand side by side.
        for (size_t other : met[rank][{op->barrier, op->meeting}])
          execute(rank, other, *current(rank, other));
      }
  return moved;
}

std::optional<PlanPlay> Player::run() {
  while (pass(/*local=*/false)) {
  }
  auto each = [&](bool local, auto &&visit) {
    for (size_t rank = 0; rank < plan.gpus.size(); ++rank)
      for (size_t block = 0; block < plan.gpus[rank].blocks.size(); ++block)
        if (const PlanOp *op = current(rank, block))
          visit(*op,
                llvm::formatv("GPU {0} thread block {1} stands before step {2} '{3}': it waits "
                              "for {4}",
                              rank, plan.gpus[rank].blocks[block].id, op->number, op->word,
                              waitsFor(rank, block, *op, local))
                    .str());
  };
  each(false, [&](const PlanOp &, std::string text) { result.stopped.push_back(text); });
  while (pass(/*local=*/true)) {
  }
  bool cycle = false;
  each(true, [&](const PlanOp &op, const std::string &text) {
    if (!std::exchange(cycle, true))
      emitError(op.loc) << "thread blocks of one GPU wait for each other: " << text;
  });
  return cycle ? std::nullopt : std::optional<PlanPlay>(std::move(result));
}

} // namespace

std::optional<PlanPlay> mlir::ncclx::msccl::play(const Plan &plan) { return Player(plan).run(); }
