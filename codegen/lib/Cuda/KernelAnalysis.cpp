//===- KernelAnalysis.cpp - What kind of kernel a program is ----------------------===//
//
// Its blocks are a loop over the lane index; or they share every op, where none reads or writes
// what another writes, or none but by signals of blocks of one number; or there is one.
//
//===----------------------------------------------------------------------===//
#include "KernelEmitter.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::ncclx;

/// The shifts of its axis that a coordinate stands for; nothing where that is not plain.
static std::optional<SmallVector<int64_t>> shiftsOf(const ctran::CoordRef &coord, int64_t n) {
  auto wrapped = [&](int64_t v) { return ((v + coord.constant) % n + n) % n; };
  if (coord.amounts.empty())
    return SmallVector<int64_t>{wrapped(0)};
  auto argument = dyn_cast<BlockArgument>(coord.amounts.front());
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : nullptr;
  if (coord.amounts.size() != 1 || !loop || loop.getInductionVar() != argument)
    return std::nullopt;
  std::optional<int64_t> low = ctran::constantOf(loop.getLowerBound()),
                         high = ctran::constantOf(loop.getUpperBound()),
                         step = ctran::constantOf(loop.getStep());
  if (!low || !high || !step || *step < 1 || *high - *low > n)
    return std::nullopt;
  SmallVector<int64_t> shifts;
  for (int64_t v = *low; v < *high; v += *step)
    shifts.push_back(wrapped(v));
  return shifts;
}

/// Whether two coordinates never are the same.
static bool differ(ctran::ProgramOp program, FailureOr<ctran::CoordRef> a,
                   FailureOr<ctran::CoordRef> b) {
  if (failed(a) || failed(b) || a->axis != b->axis)
    return false;
  int64_t n = program.getAxisSize(a->axis);
  std::optional<SmallVector<int64_t>> these = shiftsOf(*a, n), those = shiftsOf(*b, n);
  return these && those &&
         llvm::none_of(*these, [&](int64_t v) { return llvm::is_contained(*those, v); });
}

bool KernelEmitter::areApart(ctran::BoxRef a, ctran::BoxRef b) {
  if (a.window != b.window)
    return true;
  // In the memory of different ranks?
  auto onAxis = [&](ctran::PeerViewOp view, unsigned axis) {
    ctran::CoordRef own;
    own.axis = axis;
    return view ? ctran::resolveCoord(view.getPoint()[axis]) : FailureOr<ctran::CoordRef>(own);
  };
  bool numbered = (a.view && a.view.getRank()) || (b.view && b.view.getRank());
  if (!numbered)
    for (unsigned axis = 0, e = program.getGrid().size(); axis != e; ++axis)
      if (differ(program, onAxis(a.view, axis), onAxis(b.view, axis)))
        return true;
  // Of one rank along some dimension of other members?
  if (a.view != b.view || a.reindex != b.reindex)
    return false;
  for (auto [x, y] : llvm::zip(a.range.getIndices(), b.range.getIndices()))
    if (isa<ctran::CoordType>(x.getType()) && isa<ctran::CoordType>(y.getType()) &&
        differ(program, ctran::resolveCoord(x), ctran::resolveCoord(y)))
      return true;
  return false;
}

LogicalResult KernelEmitter::analyse() {
  bool named = false, unnamed = false;
  Operation *first = nullptr;
  SmallVector<ctran::ScheduleOpInterface> ops;
  WalkResult walked = program.walk([&](Operation *op) -> WalkResult {
    auto lane = dyn_cast<ctran::ScheduleOpInterface>(op);
    if (!lane || isa<ctran::SourceOp, ctran::SinkOp>(op))
      return WalkResult::advance();
    if (lane.getLaneKind() != ctran::LaneKind::SM)
      return WalkResult(op->emitOpError("is on lane ")
                        << ctran::stringifyLaneKind(lane.getLaneKind())
                        << "; the CUDA emitter lowers lane sm, and copy engines not yet");
    if (ctran::isInNetwork(op))
      return WalkResult(
          op->emitOpError("is done by a switch, which the CUDA emitter does not ask"));
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
  findOwnPackets(ops);
  together = blocksShare(ops);
  if (!together)
    together = ownSlots = blocksShareAcrossSignals(ops);
  blocks = together ? options.blocks : 1;
  return success();
}

/// Blocks may share ops when no op reads, or writes, what another op of the program writes: but
/// for packets, which each thread awaits for itself.
bool KernelEmitter::blocksShare(ArrayRef<ctran::ScheduleOpInterface> ops) {
  SmallVector<std::pair<Operation *, ctran::BoxAccess>> plain;
  bool together = true;
  for (ctran::ScheduleOpInterface op : ops) {
    if (Value slot = op.getTouchedSlot(); slot && !isPacketSlot(slot))
      together = false;
    SmallVector<ctran::BoxAccess> accesses;
    op.getAccesses(accesses);
    for (ctran::BoxAccess access : accesses) {
      FailureOr<ctran::BoxRef> ref = ctran::resolveRange(access.range);
      if (failed(ref) || packetWindows.contains(ref->window))
        continue;
      for (auto &[other, earlier] : plain) {
        FailureOr<ctran::BoxRef> before = ctran::resolveRange(earlier.range);
        if (other != op && (access.write || earlier.write) && ref->window == before->window)
          together &= areApart(*ref, *before);
      }
      plain.push_back({op, access});
    }
  }
  return together;
}

/// Whether each turn of the loops around `op` names another box.
static bool differsByTurn(ctran::ProgramOp program, Operation *op, ctran::BoxRef box) {
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (llvm::none_of(box.range.getIndices(), [&](Value index) {
          FailureOr<ctran::CoordRef> coord = isa<ctran::CoordType>(index.getType())
                                                 ? ctran::resolveCoord(index)
                                                 : FailureOr<ctran::CoordRef>(failure());
          return succeeded(coord) && llvm::is_contained(coord->amounts, loop.getInductionVar()) &&
                 shiftsOf(*coord, program.getAxisSize(coord->axis));
        }))
      return false;
  return true;
}

/// They may also share ops between signals, where a block has to do with the blocks of its number
/// alone: ops read what nobody writes and write, in own memory, boxes that are apart and that
/// nobody reads. Sizes are told from what nobody writes to where counts read them: there every
/// block has memory of its own, of which it writes all. So each block does the whole program by
/// itself, but for what it leaves of each copy to the others.
bool KernelEmitter::blocksShareAcrossSignals(ArrayRef<ctran::ScheduleOpInterface> ops) {
  struct Use {
    ctran::ScheduleOpInterface op;
    ctran::BoxRef box;
    bool write;
  };
  llvm::MapVector<Operation *, SmallVector<Use>> uses;
  for (ctran::ScheduleOpInterface op : ops) {
    SmallVector<ctran::BoxAccess> accesses;
    op.getAccesses(accesses);
    for (ctran::BoxAccess access : accesses) {
      FailureOr<ctran::BoxRef> ref = ctran::resolveRange(access.range);
      if (failed(ref))
        return false;
      if (!packetWindows.contains(ref->window))
        uses[ref->window].push_back({op, *ref, access.write});
    }
  }
  auto isWritten = [&](Operation *window) {
    return llvm::any_of(uses.lookup(window), [](const Use &use) { return use.write; });
  };
  auto tells = [&](Use use) {
    auto copy = dyn_cast<ctran::CopyOp>(use.op.getOperation());
    if (!copy || use.box.range.getSize() || copy.getDests().size() != 1)
      return false;
    FailureOr<ctran::BoxRef> from = ctran::resolveRange(copy.getSource());
    return succeeded(from) && !isWritten(from->window) && !packetWindows.contains(from->window);
  };
  for (auto &[window, of] : uses) {
    if (!isWritten(window))
      continue;
    if (llvm::any_of(of, [](const Use &use) { return !use.write; })) {
      if (cast<ctran::WindowOp>(window).getRole() != ctran::WindowRole::Scratch ||
          !llvm::all_of(of, [&](Use use) {
            return use.write ? tells(use)
                             : isa<ctran::CountOp>(use.op.getOperation()) && !use.box.view;
          }))
        return false;
      told.insert(window);
      continue;
    }
    for (auto [i, use] : llvm::enumerate(of)) {
      if (use.box.view || !differsByTurn(program, use.op, use.box))
        return false;
      for (const Use &other : ArrayRef(of).drop_front(i + 1))
        if (!areApart(use.box, other.box))
          return false;
    }
  }
  return true;
}

/// A view of the own memory.
static bool isOwn(ctran::PeerViewOp view) {
  return !view.getRank() && llvm::all_of(view.getPoint(), [](Value at) {
    FailureOr<ctran::CoordRef> coord = ctran::resolveCoord(at);
    return succeeded(coord) && coord->isOwn();
  });
}

/// What a rank contributes to its own sum need not travel as a packet: the reduction of the window
/// takes it from where it lies.
void KernelEmitter::findOwnPackets(ArrayRef<ctran::ScheduleOpInterface> ops) {
  for (ctran::ScheduleOpInterface op : ops) {
    auto copy = dyn_cast<ctran::CopyOp>(op.getOperation());
    if (!copy || !copy.getNotify() || !isPacketSlot(copy.getNotify()) ||
        copy.getDests().size() != 1 || copy->getParentOp() != program)
      continue;
    FailureOr<ctran::BoxRef> to = ctran::resolveRange(copy.getDests().front());
    if (failed(to) || !to->view || !isOwn(to->view))
      continue;
    // Read by reductions of the whole window alone.
    bool only = true;
    for (ctran::ScheduleOpInterface reader : ops) {
      SmallVector<ctran::BoxAccess> accesses;
      reader.getAccesses(accesses);
      for (ctran::BoxAccess access : accesses) {
        FailureOr<ctran::BoxRef> from = ctran::resolveRange(access.range);
        if (succeeded(from) && !access.write && from->window == to->window)
          only &= isa<ctran::ReduceOp>(reader.getOperation()) && from->range.getFirst() &&
                  to->range.getIndices().size() == 1 && from->range.getIndices().empty();
      }
    }
    if (only)
      ownPackets.insert({to->window, copy});
  }
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
    } else if (auto branch = at.getDefiningOp<scf::IfOp>()) {
      unsigned i = cast<OpResult>(at).getResultNumber();
      work.push_back(branch.thenYield().getOperand(i));
      work.push_back(branch.elseYield().getOperand(i));
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
