//===- LowerToHost.cpp - ctran to integers and runtime calls -----------------------===//
//
// One running status is threaded through every call in issue order: the serial form of the program
// (Theorem 3 of dialect/SPEC.md), which the prover has shown to be free of deadlock. Tokens need no
// other trace, with one exception: a copy on a nic lane is complete later than its call returns, so
// an op that waits for such a token first waits for the lane.
//
//===----------------------------------------------------------------------===//
#include "CutSteps.h"
#include "HostEmitter.h"
#include "LowerBranches.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/xxhash.h"

#include <bit>

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// One program's part of a plan and of its function.
class Lowering {
public:
  Lowering(ctran::ProgramOp program, HostPlan &plan, OpBuilder &b, HostTarget of,
           StringRef prefix = "")
      : program(program), plan(plan), b(b), e(b, program, plan, of, prefix) {}

  /// Writes the program where the builder stands in `function`, behind the status `before`; gives
  /// the status behind it.
  FailureOr<Value> run(func::FuncOp function, Value before);
  /// Puts a window of the program into the plan's memory of that number.
  void bind(ctran::WindowOp window, int64_t number) { e.bind(window, number); }

private:
  ctran::ProgramOp program;
  HostPlan &plan;
  OpBuilder &b;
  HostEmitter e;
  Value status;
  DenseMap<Value, SmallVector<int64_t>> origins; ///< token -> lanes whose completion it is

  LogicalResult lowerBlock(Block &block);
  LogicalResult lowerFor(scf::ForOp loop);
  LogicalResult lowerIf(scf::IfOp branch);
  LogicalResult lowerLaneOp(ctran::ScheduleOpInterface op);
  LogicalResult lowerCopy(ctran::CopyOp op, int64_t id, int64_t lane);
  LogicalResult lowerReduce(ctran::ReduceOp op, int64_t id, int64_t lane);
  LogicalResult lowerCompute(ctran::ComputeOp op, int64_t id, int64_t lane);
  LogicalResult lowerWait(ctran::WaitOp op, int64_t id, int64_t lane);
  LogicalResult lowerCount(ctran::CountOp op, int64_t id, int64_t lane);
  bool isLate(ctran::ScheduleOpInterface op);
  ArrayRef<int64_t> originsOf(Value token);
  void call(StringRef name, ArrayRef<Value> arguments);
};

void Lowering::call(StringRef name, ArrayRef<Value> arguments) {
  SmallVector<Value> all{status, e.exec};
  llvm::append_range(all, arguments);
  status = e.call(name, all, b.getI32Type());
}

/// Whether an op may be done later than its call returns.
bool Lowering::isLate(ctran::ScheduleOpInterface op) {
  return e.target == HostTarget::Cuda ||
         (isa<ctran::CopyOp>(op.getOperation()) && op.getLaneKind() == ctran::LaneKind::NIC);
}

/// A token of such an op reaches another through loops and branches. Cycles through a loop's
/// argument add nothing, so an entry is made before its sources are looked at.
ArrayRef<int64_t> Lowering::originsOf(Value token) {
  auto [it, isNew] = origins.try_emplace(token);
  if (!isNew)
    return it->second;
  SmallVector<int64_t> lanes;
  auto from = [&](Value source) {
    for (int64_t lane : SmallVector<int64_t>(originsOf(source)))
      if (!llvm::is_contained(lanes, lane))
        lanes.push_back(lane);
  };
  if (auto argument = dyn_cast<BlockArgument>(token)) {
    if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())) {
      from(loop.getTiedLoopInit(argument)->get());
      from(loop.getTiedLoopYieldedValue(argument)->get());
    }
  } else if (auto loop = token.getDefiningOp<scf::ForOp>()) {
    unsigned i = cast<OpResult>(token).getResultNumber();
    from(loop.getInitArgs()[i]);
    from(loop.getYieldedValues()[i]);
  } else if (auto branch = token.getDefiningOp<scf::IfOp>()) {
    unsigned i = cast<OpResult>(token).getResultNumber();
    from(branch.thenYield().getOperand(i));
    from(branch.elseYield().getOperand(i));
  } else if (isa_and_nonnull<ctran::SourceOp, ctran::SinkOp>(token.getDefiningOp())) {
    // No code, but order.
    for (Value after : token.getDefiningOp<ctran::ScheduleOpInterface>().getAfterTokens())
      from(after);
  } else if (auto op = token.getDefiningOp<ctran::ScheduleOpInterface>(); op && isLate(op)) {
    if (FailureOr<int64_t> lane = e.lane(op); succeeded(lane))
      lanes.push_back(*lane);
  }
  return origins[token] = lanes;
}

LogicalResult Lowering::lowerFor(scf::ForOp loop) {
  // Token arguments vanish in the running status; numbers stay.
  SmallVector<Value> inits{status};
  SmallVector<unsigned> numbers;
  for (auto [i, init] : llvm::enumerate(loop.getInitArgs()))
    if (init.getType().isIndex()) {
      numbers.push_back(i);
      inits.push_back(e.number(init));
    }
  auto lowered =
      scf::ForOp::create(b, loop.getLoc(), e.number(loop.getLowerBound()),
                         e.number(loop.getUpperBound()), e.number(loop.getStep()), inits);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(lowered.getBody());
    status = lowered.getRegionIterArg(0);
    e.map(loop.getInductionVar(), lowered.getInductionVar());
    for (auto [k, i] : llvm::enumerate(numbers))
      e.map(loop.getRegionIterArg(i), lowered.getRegionIterArg(k + 1));
    if (failed(lowerBlock(*loop.getBody())))
      return failure();
    SmallVector<Value> yielded{status};
    for (unsigned i : numbers)
      yielded.push_back(e.number(loop.getYieldedValues()[i]));
    scf::YieldOp::create(b, loop.getLoc(), yielded);
  }
  status = lowered.getResult(0);
  for (auto [k, i] : llvm::enumerate(numbers))
    e.map(loop.getResult(i), lowered.getResult(k + 1));
  return success();
}

LogicalResult Lowering::lowerIf(scf::IfOp branch) {
  Value condition = e.number(branch.getCondition());
  auto lowered = scf::IfOp::create(b, branch.getLoc(), b.getI32Type(), condition, true);
  for (Type type : branch.getResultTypes())
    if (!isa<ctran::TokenType>(type))
      return branch.emitOpError("gives a ") << type << ", but the host carrier passes tokens alone "
                                            << "out of a branch";
  Value before = status;
  auto lower = [&](Region &region, Region &into) -> LogicalResult {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&into.front());
    status = before;
    if (!region.empty() && failed(lowerBlock(region.front())))
      return failure();
    scf::YieldOp::create(b, branch.getLoc(), status);
    return success();
  };
  if (failed(lower(branch.getThenRegion(), lowered.getThenRegion())) ||
      failed(lower(branch.getElseRegion(), lowered.getElseRegion())))
    return failure();
  status = lowered.getResult(0);
  return success();
}

LogicalResult Lowering::lowerCopy(ctran::CopyOp op, int64_t id, int64_t lane) {
  FailureOr<Box> source = e.box(op.getSource());
  if (failed(source))
    return failure();
  Value none = e.constant(-1), zero = e.constant(0);
  FailureOr<SmallVector<Box>> dests = e.boxes(op.getDests());
  if (failed(dests))
    return failure();
  for (auto [i, dest] : llvm::enumerate(*dests)) {
    Box from = *source, to = dest;
    bool onDevice = to.size && e.target == HostTarget::Cuda;
    if (!onDevice)
      e.fitScratch({&from, &to});
    SmallVector<Value> arguments{e.constant(id), e.constant(lane)};
    to.append(arguments);
    from.append(arguments);
    bool last = i + 1 == dests->size();
    if (op.getNotify() && last) {
      FailureOr<Counter> slot = e.counter(op.getNotify());
      if (failed(slot))
        return failure();
      llvm::append_values(arguments, slot->slots, slot->peer, slot->index);
    } else {
      llvm::append_values(arguments, none, none, zero);
    }
    if (onDevice)
      llvm::append_values(arguments, to.size, to.unit, from.unit);
    call(onDevice ? "ncclxrt_copy_sized" : "ncclxrt_copy", arguments);
  }
  return success();
}

LogicalResult Lowering::lowerReduce(ctran::ReduceOp op, int64_t id, int64_t lane) {
  FailureOr<SmallVector<Box>> sourceBoxes = e.boxes(op.getSources(), /*each=*/true),
                              destBoxes = e.boxes(op.getDests());
  if (failed(sourceBoxes) || failed(destBoxes))
    return failure();
  SmallVector<Box> &sources = *sourceBoxes, &dests = *destBoxes;
  FailureOr<int64_t> dtype = e.dtype(op, dests.front().elementType);
  FailureOr<int64_t> acc = e.dtype(op, op.getAccumulate());
  if (failed(dtype) || failed(acc))
    return failure();
  Box dest = dests.front();
  SmallVector<Box *> all{&dest};
  for (Box &box : sources)
    all.push_back(&box);
  e.fitScratch(all);
  // A carrier takes `count` boxes a step apart and then single ones; on streams, one of these.
  bool single = llvm::none_of(ArrayRef(sources).drop_front(), [](const Box &b) { return b.count; });
  if (!single || (e.target == HostTarget::Cuda && sources.size() > 2))
    return op.emitOpError("has ") << sources.size()
                                  << " sources; the carrier takes one interval or "
                                  << "box and then "
                                  << (single ? "at most one box" : "no other interval");
  for (const Box &more : ArrayRef(sources).drop_front(std::min<size_t>(2, sources.size()))) {
    SmallVector<Value> operand{e.constant(id), e.constant(lane)};
    more.append(operand);
    call("ncclxrt_operand", operand);
  }
  SmallVector<Value> arguments{e.constant(id), e.constant(lane), e.constant(int64_t(op.getKind())),
                               e.constant(*dtype), e.constant(*acc)};
  double scale = op.getScale() ? op.getScale()->convertToDouble() : 1.0;
  HostPlan::Reduction reduction{int64_t(op.getKind()), *dtype, *acc, scale != 1,
                                op.getDivide().value_or(1) != 1};
  if (!llvm::is_contained(plan.reductions, reduction))
    plan.reductions.push_back(reduction);
  llvm::append_values(arguments, e.constant(std::bit_cast<int64_t>(scale)),
                      e.constant(op.getDivide().value_or(1)));
  dest.append(arguments);
  sources[0].append(arguments);
  arguments.push_back(sources[0].count ? sources[0].count : e.constant(1));
  arguments.push_back(sources[0].count ? sources[0].step : e.constant(0));
  if (sources.size() > 1) {
    sources[1].append(arguments);
  } else {
    arguments.append({e.constant(-1), e.constant(-1)});
    arguments.append(4, e.constant(0));
  }
  call("ncclxrt_reduce", arguments);
  // Other destinations get the sum from the first one.
  for (Box to : ArrayRef(dests).drop_front()) {
    e.fitScratch({&dest, &to});
    SmallVector<Value> copy{e.constant(id), e.constant(lane)};
    to.append(copy);
    dest.append(copy);
    llvm::append_values(copy, e.constant(-1), e.constant(-1), e.constant(0));
    call("ncclxrt_copy", copy);
  }
  if (op.getNotify()) {
    FailureOr<Counter> slot = e.counter(op.getNotify());
    if (failed(slot))
      return failure();
    call("ncclxrt_signal",
         {e.constant(id), e.constant(lane), slot->slots, slot->peer, slot->index});
  }
  return success();
}

LogicalResult Lowering::lowerCompute(ctran::ComputeOp op, int64_t id, int64_t lane) {
  if (!llvm::is_contained(plan.kernels, op.getCallee())) {
    plan.kernels.push_back(op.getCallee().str());
    plan.kernelSms.push_back(op.getSms());
  }
  SmallVector<Value> addresses;
  for (Value window : op.getArgs()) {
    auto declared = window.getDefiningOp<ctran::WindowOp>();
    if (!declared)
      return op.emitOpError("passes a view to its kernel; the host carrier passes whole windows");
    Value index = e.constant(e.windowIndex(declared));
    if (e.target == HostTarget::Cuda)
      call("ncclxrt_argument", index);
    else
      addresses.push_back(e.call("ncclxrt_address", {e.exec, index}, b.getI64Type()));
  }
  if (e.target == HostTarget::Cuda) {
    int64_t kernel = llvm::find(plan.kernels, op.getCallee()) - plan.kernels.begin();
    call("ncclxrt_launch", {e.constant(id), e.constant(lane), e.constant(kernel)});
    return success();
  }
  status = e.callKernel(status, op.getCallee(), addresses, id, lane);
  return success();
}

LogicalResult Lowering::lowerWait(ctran::WaitOp op, int64_t id, int64_t lane) {
  FailureOr<Counter> slot = e.counter(op.getSlot());
  if (failed(slot))
    return failure();
  // S15: the k-th signal of run e is e*K + k; slots that rotate count the runs of their generation.
  Value runs = slot->generations == 1 ? e.run() : e.div(e.run(), e.constant(slot->generations));
  Value wanted = e.number(op.getValue());
  if (slot->credits)
    wanted = e.max(e.sub(wanted, e.constant(slot->credits)), e.constant(0));
  Value value = e.add(e.mul(runs, e.constant(slot->perRun)), wanted);
  call("ncclxrt_wait", {e.constant(id), e.constant(lane), slot->slots, slot->index,
                        slot->count ? slot->count : e.constant(1), value});
  return success();
}

LogicalResult Lowering::lowerCount(ctran::CountOp op, int64_t id, int64_t lane) {
  FailureOr<Box> box = e.box(op.getSource());
  if (failed(box))
    return failure();
  call("ncclxrt_count",
       {e.constant(id), e.constant(lane), box->window, box->offset,
        e.constant(box->elementType.getIntOrFloatBitWidth() / 8), e.constant(op.getMax())});
  e.map(op.getSize(), e.call("ncclxrt_size", e.exec, b.getI64Type()));
  return success();
}

LogicalResult Lowering::lowerLaneOp(ctran::ScheduleOpInterface op) {
  e.setLocation(op.getLoc());
  if (e.target == HostTarget::Cuda && ctran::isInNetwork(op))
    return op->emitOpError("is done by a switch, which programs on streams do not ask");
  // Proof only: no code, and no order either.
  if (isa<ctran::SourceOp, ctran::SinkOp>(op))
    return success();
  FailureOr<int64_t> lane = e.lane(op);
  if (failed(lane))
    return failure();
  int64_t id = e.opIndex(op);
  SmallVector<int64_t> pending;
  for (Value token : op.getAfterTokens())
    for (int64_t late : originsOf(token))
      if (!llvm::is_contained(pending, late))
        pending.push_back(late);
  for (int64_t late : pending)
    if (e.target == HostTarget::Host)
      call("ncclxrt_complete", {e.constant(id), e.constant(late)});
    else if (late != *lane) // a stream is in order by itself
      call("ncclxrt_order", {e.constant(id), e.constant(*lane), e.constant(late)});
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ctran::CopyOp copy) { return lowerCopy(copy, id, *lane); })
      .Case([&](ctran::ReduceOp reduce) { return lowerReduce(reduce, id, *lane); })
      .Case([&](ctran::ComputeOp compute) { return lowerCompute(compute, id, *lane); })
      .Case([&](ctran::SignalOp signal) -> LogicalResult {
        FailureOr<Counter> slot = e.counter(signal.getSlot());
        if (failed(slot))
          return failure();
        call("ncclxrt_signal",
             {e.constant(id), e.constant(*lane), slot->slots, slot->peer, slot->index});
        return success();
      })
      .Case([&](ctran::WaitOp wait) { return lowerWait(wait, id, *lane); })
      .Case([&](ctran::FlushOp) {
        call("ncclxrt_flush", {e.constant(id), e.constant(*lane)});
        return success();
      })
      .Case([&](ctran::CountOp count) { return lowerCount(count, id, *lane); })
      .Default([](Operation *other) { return other->emitOpError("is not lowered for the host"); });
}

LogicalResult Lowering::lowerBlock(Block &block) {
  for (Operation &op : block) {
    e.setLocation(op.getLoc());
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (failed(lowerFor(loop)))
        return failure();
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (failed(lowerIf(branch)))
        return failure();
    } else if (auto lane = dyn_cast<ctran::ScheduleOpInterface>(op)) {
      if (failed(lowerLaneOp(lane)))
        return failure();
    } else if (failed(e.lowerScalar(&op))) {
      return failure();
    }
  }
  return success();
}

FailureOr<Value> Lowering::run(func::FuncOp function, Value before) {
  status = before;
  e.begin(function);
  if (failed(lowerBlock(program.getBody().front())))
    return failure();
  // What the caller gives and takes is there although no op touches it, as nothing of size 0.
  for (auto window : program.getBody().front().getOps<ctran::WindowOp>())
    if (window.getIndex())
      e.windowIndex(window);
  for (auto [i, lane] : llvm::enumerate(plan.lanes)) // on a GPU a run ends when all lanes have
    if (lane.kind == ctran::LaneKind::NIC && e.target == HostTarget::Host)
      call("ncclxrt_complete", {e.constant(e.exitIndex()), e.constant(i)});
  return status;
}

} // namespace

func::FuncOp mlir::ncclx::startFunction(OpBuilder &b, Location loc, ModuleOp target,
                                        StringRef name) {
  b.setInsertionPointToEnd(target.getBody());
  auto function =
      func::FuncOp::create(b, loc, name, b.getFunctionType(b.getI64Type(), b.getI32Type()));
  b.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

uint64_t mlir::ncclx::hashOf(ArrayRef<ctran::ProgramOp> programs, const HostPlan &plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (ctran::ProgramOp program : programs)
    program->print(os, OpPrintingFlags().useLocalScope());
  if (auto module = programs.front()->getParentOfType<ModuleOp>())
    for (const std::string &kernel : plan.kernels)
      if (Operation *f = module.lookupSymbol(kernel))
        f->print(os, OpPrintingFlags().useLocalScope());
  return llvm::xxh3_64bits(text);
}

FailureOr<Value> mlir::ncclx::lowerBranch(ctran::ProgramOp program, HostPlan &plan, OpBuilder &b,
                                          func::FuncOp function, Value before,
                                          const DenseMap<Operation *, int64_t> &bound) {
  std::string prefix = (program.getSymName() + "/").str();
  Lowering lowering(program, plan, b, HostTarget::Host, prefix);
  for (auto window : program.getBody().getOps<ctran::WindowOp>())
    if (auto it = bound.find(window); it != bound.end())
      lowering.bind(window, it->second);
  return lowering.run(function, before);
}

SmallVector<size_t> HostPlan::windowsOf(ArrayRef<ctran::WindowRole> roles) const {
  SmallVector<size_t> found;
  for (auto [w, window] : llvm::enumerate(windows))
    if (llvm::is_contained(roles, window.role))
      found.push_back(w);
  llvm::sort(found, [&](size_t a, size_t b) { return windows[a].argument < windows[b].argument; });
  return found;
}

uint64_t HostPlan::scratchBytes() const {
  uint64_t bytes = 0;
  for (const Window &window : windows)
    if (window.role == ctran::WindowRole::Scratch)
      bytes += window.bytes * window.generations;
  return bytes;
}

FailureOr<HostPlan> mlir::ncclx::lowerToHost(ctran::ProgramOp program, ModuleOp target,
                                             HostTarget of) {
  HostPlan plan;
  plan.name = program.getSymName().str();
  plan.ranks = program.getNumRanks();
  OpBuilder b(target.getContext());
  func::FuncOp function = startFunction(b, program.getLoc(), target, plan.name);
  Value start = arith::ConstantOp::create(b, program.getLoc(), b.getI32IntegerAttr(0));
  FailureOr<Value> status = Lowering(program, plan, b, of).run(function, start);
  if (failed(status))
    return failure();
  func::ReturnOp::create(b, program.getLoc(), *status);
  cutSteps(function);
  plan.hash = hashOf(program, plan);
  return plan;
}
