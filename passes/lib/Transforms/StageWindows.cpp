//===- StageWindows.cpp - What windows hold goes from stage to stage ---------===//
//
// A window lives in one stage. So a stage that uses one of another makes its own, which begins with
// what the stage before has left, and gives on what it leaves: all puts have arrived then, and all
// signals have been taken. A wait for a signal of a stage before thus waits for nothing; how many
// such signals there are must be the same on every way to a stage.
//
//===----------------------------------------------------------------------===//

#include "StageBlocks.h"
#include "ncclx/NCCLX/NCCLX.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/PostOrderIterator.h"

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// One window, carried through the blocks of a function.
class Carrier {
public:
  explicit Carrier(WindowOp window) : window(window), b(window.getContext()) {}

  LogicalResult run();

private:
  using Key = Attribute;                        ///< a map of peers: its shift or its pairs
  using Counts = llvm::MapVector<Key, int64_t>; ///< of signals that nobody has waited for

  struct Stage {
    bool uses = false;    ///< the window
    bool needs = false;   ///< what it holds, or a stage behind it does
    bool reached = false; ///< are the counts known?
    Counts before, behind;
    Value content; ///< at the end
  };

  WindowOp window;
  OpBuilder b;
  SmallVector<Block *> order; ///< each behind one that leads to it, the window's first
  DenseMap<Block *, Stage> stages;

  void findStages();
  LogicalResult countSignals();
  Counts countIn(Block *block, const Counts &before);
  LogicalResult giveInit();
  Value contentBefore(Block *block);
  void rewrite(Block *block);
  void finishSignals(Block *block, Value handle, Operation *end);
  SmallVector<Operation *> usersIn(Block *block) {
    SmallVector<Operation *> users;
    for (Operation &op : *block)
      if (llvm::is_contained(op.getOperands(), window.getWindow()))
        users.push_back(&op);
    return users;
  }
  static Key keyOf(Operation *op) {
    PeerMap map = PeerMap::of(op);
    return map.shift ? Key(map.shift) : Key(map.pairs);
  }
  static std::string describe(Key key) {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (auto shift = dyn_cast<IntegerAttr>(key))
      os << "shift " << shift.getInt();
    else
      os << "pairs " << key;
    return text;
  }
};

} // namespace

void Carrier::findStages() {
  Block *home = window->getBlock();
  Region *region = home->getParent();
  DominanceInfo dominance(region->getParentOp());
  llvm::ReversePostOrderTraversal<Block *> reachable(&region->front());
  for (Block *block : reachable)
    if (block == home || dominance.properlyDominates(home, block)) {
      order.push_back(block);
      stages[block].uses = block == home;
    }
  for (Operation *user : window->getUsers())
    stages[user->getBlock()].uses = true;
  for (bool grows = true; grows;) {
    grows = false;
    for (Block *block : llvm::reverse(order)) {
      Stage &stage = stages[block];
      bool needs = stage.uses || llvm::any_of(block->getSuccessors(), [&](Block *next) {
                     return next != home && stages.contains(next) && stages[next].needs;
                   });
      grows |= needs != stage.needs;
      stage.needs = needs;
    }
  }
}

//===--- signals ----------------------------------------------------------===//

Carrier::Counts Carrier::countIn(Block *block, const Counts &before) {
  Counts counts = before;
  for (Operation *op : usersIn(block)) {
    if (isa<SignalOp>(op))
      ++counts[keyOf(op)];
    else if (auto wait = dyn_cast<WaitOp>(op)) // too many are refused where the stage is lowered
      counts[keyOf(op)] = std::max<int64_t>(0, counts.lookup(keyOf(op)) - int64_t(wait.getCount()));
  }
  return counts;
}

/// Each stage is counted once, as any way to it must bring the same.
LogicalResult Carrier::countSignals() {
  Block *home = window->getBlock();
  stages[home].reached = true;
  auto countOf = [](const Counts &counts, Key key) { return counts.lookup(key); };
  for (Block *block : order) {
    Stage &stage = stages[block];
    stage.behind = countIn(block, stage.before);
    for (Block *next : block->getSuccessors()) {
      auto found = stages.find(next);
      if (next == home || found == stages.end() || !found->second.needs)
        continue;
      if (!found->second.reached) {
        found->second.reached = true;
        found->second.before = stage.behind;
        continue;
      }
      Counts all = found->second.before;
      for (auto &[key, count] : stage.behind)
        all.insert({key, 0});
      for (auto &[key, ignored] : all) {
        int64_t one = countOf(found->second.before, key), other = countOf(stage.behind, key);
        if (one == other)
          continue;
        InFlightDiagnostic diag =
            window.emitOpError("has signals by ")
            << describe(key) << " that have not been waited for: " << one << " on one way to a "
            << "stage, " << other << " on another; expected as many on every way: wait for them in "
            << "the branch or the turn that makes them";
        for (Operation *user : window->getUsers())
          if (isa<SignalOp>(user) && keyOf(user) == key)
            diag.attachNote(user->getLoc()) << "made here";
        return diag;
      }
    }
  }
  return success();
}

//===--- stages -----------------------------------------------------------===//

/// Where nothing is defined, a stage hands on zeros.
LogicalResult Carrier::giveInit() {
  if (window.getInit())
    return success();
  RankedTensorType type = cast<WindowType>(window.getWindow().getType()).getValue();
  if (type.getElementType().isUnsignedInteger())
    return window.emitOpError("is used in several stages, and has elements of type ")
           << type.getElementType() << ", of which there are no constants: give it an init";
  b.setInsertionPoint(window);
  // Not one constant, which would be as large as the window wherever the program is.
  Location loc = window.getLoc();
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  window.getInitMutable().assign(
      linalg::FillOp::create(b, loc, ValueRange(zero), ValueRange(empty)).getResult(0));
  return success();
}

Value Carrier::contentBefore(Block *block) {
  if (Block *only = block->getSinglePredecessor())
    return stages[only].content;
  auto type = cast<WindowType>(window.getWindow().getType()).getValue();
  return block->addArgument(type, window.getLoc());
}

/// What has been put and signalled has arrived before what the window holds is read.
void Carrier::finishSignals(Block *block, Value handle, Operation *end) {
  llvm::MapVector<Key, int64_t> open; ///< signals of this stage that no wait of it takes
  llvm::SmallSetVector<Key, 4> bare;  ///< maps by which there is a put behind the last signal
  for (Operation &op : *block) {
    if (!llvm::is_contained(op.getOperands(), handle) || PeerMap::of(&op).isOwn())
      continue;
    if (isa<PutOp>(op)) {
      bare.insert(keyOf(&op));
    } else if (isa<SignalOp>(op)) {
      bare.remove(keyOf(&op));
      ++open[keyOf(&op)];
    } else if (auto wait = dyn_cast<WaitOp>(op)) {
      open[keyOf(&op)] -= wait.getCount();
    }
  }
  b.setInsertionPoint(end);
  for (Key key : bare) {
    SignalOp::create(b, window.getLoc(), handle, dyn_cast<IntegerAttr>(key),
                     dyn_cast<DenseI64ArrayAttr>(key));
    ++open[key];
  }
  for (auto &[key, count] : open)
    if (count > 0)
      WaitOp::create(b, window.getLoc(), handle, dyn_cast<IntegerAttr>(key),
                     dyn_cast<DenseI64ArrayAttr>(key), count);
}

void Carrier::rewrite(Block *block) {
  Stage &stage = stages[block];
  bool isHome = block == window->getBlock();
  Value before = isHome ? window.getInit() : contentBefore(block);
  stage.content = before;
  if (!stage.uses)
    return;
  SmallVector<Operation *> users = usersIn(block);
  Value handle = window.getWindow();
  if (!isHome) {
    b.setInsertionPointToStart(block);
    handle = WindowOp::create(b, window.getLoc(), handle.getType(), window.getGridAttr(),
                              window.getAxesAttr(), window.getGroupsAttr(), before);
    for (Operation *user : users)
      user->replaceUsesOfWith(window.getWindow(), handle);
  }
  // Signals of the stages before have been taken.
  Counts taken = stage.before;
  bool changes = false;
  for (Operation *user : users) {
    changes |= isa<PutOp>(user);
    auto wait = dyn_cast<WaitOp>(user);
    if (!wait)
      continue;
    int64_t &left = taken[keyOf(wait)], count = wait.getCount(), free = std::min(left, count);
    left -= free;
    if (count == free)
      wait.erase();
    else
      wait.setCount(count - free);
  }
  Operation *end = endOf(block);
  finishSignals(block, handle, end);
  if (!changes || llvm::none_of(block->getSuccessors(), [&](Block *next) {
        return next != window->getBlock() && stages.contains(next) && stages[next].needs;
      }))
    return;
  RankedTensorType type = cast<WindowType>(handle.getType()).getValue();
  b.setInsertionPoint(end);
  SmallVector<int64_t> origin(type.getRank(), 0);
  stage.content = GetOp::create(b, window.getLoc(), type, handle, ValueRange(), origin,
                                IntegerAttr(), DenseI64ArrayAttr(), Value())
                      .getResult();
}

LogicalResult Carrier::run() {
  Block *home = window->getBlock();
  if (llvm::all_of(window->getUsers(), [&](Operation *user) { return user->getBlock() == home; }))
    return success();
  findStages();
  if (failed(countSignals()) || failed(giveInit()))
    return failure();
  remark::missed(window.getLoc(),
                 remark::RemarkOpts::name("WindowCarried").category("ncclx-split-branches"))
      << remark::reason("several stages use it: what it holds is copied from one to the next");
  for (Block *block : order)
    if (stages[block].needs)
      rewrite(block);
  // Blocks that several lead to have it as their last argument.
  for (Block *block : order) {
    auto branch = dyn_cast<BranchOpInterface>(block->getTerminator());
    for (unsigned i = 0; branch && i < block->getNumSuccessors(); ++i) {
      Block *next = block->getSuccessor(i);
      if (next != home && stages.contains(next) && stages[next].needs &&
          !next->getSinglePredecessor())
        branch.getSuccessorOperands(i).append(stages[block].content);
    }
  }
  return success();
}

LogicalResult ncclx::carryWindows(func::FuncOp function) {
  SmallVector<WindowOp> windows(function.getOps<WindowOp>());
  for (WindowOp window : windows)
    if (failed(Carrier(window).run()))
      return failure();
  return success();
}
