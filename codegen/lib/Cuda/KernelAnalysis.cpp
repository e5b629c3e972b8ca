//===- KernelAnalysis.cpp - What kind of kernel a program is ----------------------===//
//
// Its blocks are a loop over the lane index; or they share every op, where none reads or writes
// what another writes; or there is one.
//
//===----------------------------------------------------------------------===//
#include "KernelEmitter.h"

using namespace mlir;
using namespace mlir::ncclx;

LogicalResult KernelEmitter::analyse() {
  bool named = false, unnamed = false;
  Operation *first = nullptr;
  SmallVector<ctran::ScheduleOpInterface> ops;
  WalkResult walked = program.walk([&](Operation *op) -> WalkResult {
    if (isa<scf::IfOp, ctran::CoordValueOp, ctran::TableOp>(op))
      return WalkResult(
          op->emitOpError("makes ranks differ, which the CUDA emitter does not lower yet"));
    auto lane = dyn_cast<ctran::ScheduleOpInterface>(op);
    if (!lane || isa<ctran::SourceOp, ctran::SinkOp>(op))
      return WalkResult::advance();
    if (lane.getLaneKind() != ctran::LaneKind::SM)
      return WalkResult(op->emitOpError("is on lane ")
                        << ctran::stringifyLaneKind(lane.getLaneKind())
                        << "; the CUDA emitter lowers lane sm, and copy engines not yet");
    ops.push_back(lane);
    Value index = lane.getLaneIndexValue();
    std::optional<int64_t> constant = index ? ctran::constantOf(index) : 0;
    if (constant && *constant == 0) {
      unnamed = true;
      first = first ? first : op;
      return WalkResult::advance();
    }
    auto argument = dyn_cast<BlockArgument>(index);
    auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : nullptr;
    if (!loop || loop.getInductionVar() != index || (blockLoop && loop != blockLoop))
      return WalkResult(op->emitOpError(
          "is on a block that is not the variable of the program's one loop over blocks"));
    blockLoop = loop;
    named = true;
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  if (named && unnamed)
    return first->emitOpError("names no block, and others do; a kernel's ops all do or none does");
  if (ops.empty())
    return program.emitOpError("has no op of an sm lane, so there is no kernel");
  for (ctran::ScheduleOpInterface op : ops)
    if (auto copy = dyn_cast<ctran::CopyOp>(op.getOperation()))
      if (copy.getNotify() && isPacketSlot(copy.getNotify()))
        for (Value dest : copy.getDests())
          if (FailureOr<ctran::BoxRef> ref = ctran::resolveRange(dest); succeeded(ref))
            packetWindows.insert(ref->window);
  if (blockLoop)
    return checkBlockLoop();
  // Blocks may share ops when no op reads, or writes, what another op of the program writes: but
  // for packets, which each thread awaits for itself.
  llvm::SmallPtrSet<Operation *, 4> reads, writes;
  together = true;
  for (ctran::ScheduleOpInterface op : ops) {
    if (Value slot = op.getTouchedSlot(); slot && !isPacketSlot(slot))
      together = false;
    SmallVector<ctran::BoxAccess> accesses;
    op.getAccesses(accesses);
    for (ctran::BoxAccess access : accesses) {
      FailureOr<ctran::BoxRef> ref = ctran::resolveRange(access.range);
      if (failed(ref) || packetWindows.contains(ref->window))
        continue;
      auto &mine = access.write ? writes : reads, &others = access.write ? reads : writes;
      together &=
          !others.contains(ref->window) && !(access.write && !mine.insert(ref->window).second);
      mine.insert(ref->window);
    }
  }
  blocks = together ? options.blocks : 1;
  return success();
}

/// Whether `token` comes from an earlier turn of the loop over blocks, that is, from another block.
static bool isOfAnotherBlock(Value token, scf::ForOp blockLoop) {
  SmallVector<Value> work{token};
  llvm::SmallPtrSet<Value, 8> seen;
  while (!work.empty()) {
    Value at = work.pop_back_val();
    if (!seen.insert(at).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(at)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (loop == blockLoop)
        return llvm::any_of(ArrayRef<Value>{blockLoop.getTiedLoopYieldedValue(argument)->get()},
                            [&](Value v) { return v != at; });
      if (loop) {
        work.push_back(loop.getTiedLoopInit(argument)->get());
        work.push_back(loop.getTiedLoopYieldedValue(argument)->get());
      }
    } else if (auto loop = at.getDefiningOp<scf::ForOp>()) {
      unsigned i = cast<OpResult>(at).getResultNumber();
      work.push_back(loop.getInitArgs()[i]);
      work.push_back(loop.getYieldedValues()[i]);
    }
  }
  return false;
}

LogicalResult KernelEmitter::checkBlockLoop() {
  std::optional<int64_t> low = ctran::constantOf(blockLoop.getLowerBound());
  std::optional<int64_t> high = ctran::constantOf(blockLoop.getUpperBound());
  std::optional<int64_t> step = ctran::constantOf(blockLoop.getStep());
  if (!low || !high || !step || *low != 0 || *step != 1 || *high < 1)
    return blockLoop.emitOpError("runs over blocks, so from 0 to a constant in steps of 1");
  if (blockLoop->getParentOp() != program)
    return blockLoop.emitOpError("runs over blocks, so it stands at the top level of the program");
  blocks = *high;
  // Blocks do not meet inside a kernel: what one awaits of another may only be its end.
  Operation *joined = nullptr;
  WalkResult walked = blockLoop.walk([&](ctran::ScheduleOpInterface op) -> WalkResult {
    bool joins = llvm::any_of(op.getAfterTokens(),
                              [&](Value token) { return isOfAnotherBlock(token, blockLoop); });
    bool waits = isa<ctran::WaitOp>(op.getOperation());
    if ((joins && !waits) || (joined && !waits))
      return WalkResult(op->emitOpError("comes after another block of the same kernel, which needs "
                                        "a barrier of the grid"));
    if (joins)
      joined = op;
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}
