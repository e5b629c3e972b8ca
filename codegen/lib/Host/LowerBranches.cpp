//===- LowerBranches.cpp - Programs of which a run plays one or several -----------===//
//
// Ways through branches: the run chooses one, and plays it. Stages: it begins with the first, and
// each leaves the number of the next; what they hand to each other lives in windows of the plan.
//
//===----------------------------------------------------------------------===//
#include "LowerBranches.h"
#include "CutSteps.h"
#include "HostEmitter.h"

#include "ncclx/NCCLX/Branches.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::ncclx;

namespace {

class BranchLowering {
public:
  BranchLowering(func::FuncOp chooser, ArrayRef<ctran::ProgramOp> programs, HostPlan &plan,
                 OpBuilder &b, func::FuncOp function)
      : chooser(chooser), programs(programs), plan(plan), b(b), function(function),
        loc(chooser.getLoc()), e(b, programs.front(), plan, HostTarget::Host),
        stages(getStages(chooser)) {}

  /// Gives the status behind all.
  FailureOr<Value> run();

private:
  func::FuncOp chooser;
  ArrayRef<ctran::ProgramOp> programs;
  HostPlan &plan;
  OpBuilder &b;
  func::FuncOp function;
  Location loc;
  HostEmitter e;
  std::vector<Stage> stages; ///< none: ways
  Value status;
  int64_t choice = 0;                       ///< the window of the number
  DenseMap<int64_t, int64_t> windowOfState; ///< behind the arguments, which are the first of both
  SmallVector<DenseMap<Operation *, int64_t>> bound; ///< by program

  void call(StringRef name, ArrayRef<Value> arguments) {
    SmallVector<Value> all{status, e.exec};
    llvm::append_range(all, arguments);
    status = e.call(name, all, b.getI32Type());
  }
  Value op(StringRef name, StringRef location = "") {
    plan.ops.push_back({name.str(), location.str(), ""});
    return e.constant(int64_t(plan.ops.size()) - 1);
  }
  Value lane(ctran::LaneKind kind, StringRef name);
  LogicalResult declareArguments();
  LogicalResult bindStates();
  FailureOr<int64_t> windowOf(int64_t state, ctran::WindowOp window);
  bool hasWindow(int64_t state) {
    return state < int64_t(chooser.getArgumentTypes().size()) || windowOfState.contains(state);
  }
  int64_t windowNumber(int64_t state) const {
    auto found = windowOfState.find(state);
    return found == windowOfState.end() ? state : found->second;
  }
  /// Meets the other ranks with the number in `choice`, and gives it.
  Value meet(StringRef who);
  FailureOr<Value> lowerWays(Value chosen);
  FailureOr<Value> lowerStages(Value chosen);
  FailureOr<Value> lowerStage(int64_t number);
  void move(const StageEdge &edge, StringRef name);
  Value isNumber(Value value, int64_t number) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, value, e.constant(number));
  }
};

Value BranchLowering::lane(ctran::LaneKind kind, StringRef name) {
  for (auto [i, lane] : llvm::enumerate(plan.lanes))
    if (lane.kind == kind && lane.index == 0)
      return e.constant(int64_t(i));
  plan.lanes.push_back({name.str(), kind, 0});
  return e.constant(int64_t(plan.lanes.size()) - 1);
}

/// The graph's arguments, whatever the programs read of them.
LogicalResult BranchLowering::declareArguments() {
  for (BlockArgument argument : chooser.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type || !type.hasStaticShape() || !type.getElementType().isIntOrFloat())
      return chooser.emitOpError("takes ")
             << argument.getType() << ", expected a memref of static shape";
    unsigned i = argument.getArgNumber();
    uint64_t bytes = type.getNumElements() * (type.getElementTypeBitWidth() / 8);
    plan.windows.push_back(
        {"arg" + std::to_string(i), bytes, 1, ctran::WindowRole::Input, int64_t(i), type});
  }
  return success();
}

FailureOr<int64_t> BranchLowering::windowOf(int64_t state, ctran::WindowOp window) {
  auto type = cast<MemRefType>(window.getType());
  uint64_t bytes = type.getNumElements() * ctran::elementBytes(window);
  int64_t found = state;
  if (state >= int64_t(chooser.getNumArguments())) {
    auto [it, isNew] = windowOfState.try_emplace(state, plan.windows.size());
    if (isNew)
      plan.windows.push_back(
          {"state" + std::to_string(state), bytes, 1, ctran::WindowRole::Scratch, -1, type});
    found = it->second;
  }
  if (plan.windows[found].bytes != bytes)
    return window.emitOpError("is of ")
           << bytes << " bytes, but state " << state << " of " << plan.windows[found].bytes;
  return found;
}

LogicalResult BranchLowering::bindStates() {
  bound.resize(programs.size());
  for (auto [i, stage] : llvm::enumerate(stages)) {
    ctran::ProgramOp program = programs[i];
    size_t inputs = 0, outputs = 0;
    for (auto window : program.getBody().getOps<ctran::WindowOp>()) {
      if (window.getRole() == ctran::WindowRole::Scratch)
        continue;
      bool reads = window.getRole() != ctran::WindowRole::Output;
      size_t at = *window.getIndex();
      ++(reads ? inputs : outputs);
      if (!reads && stage.edges.empty())
        continue; // the graph's own output
      ArrayRef<int64_t> states = reads ? stage.reads : stage.writes;
      if (!reads && at == states.size()) {
        bound[i][window] = choice;
        continue;
      }
      if (at >= states.size())
        break;
      FailureOr<int64_t> found = windowOf(states[at], window);
      if (failed(found))
        return failure();
      bound[i][window] = *found;
    }
    size_t expected = stage.writes.size() + 1;
    if (inputs != stage.reads.size() || (!stage.edges.empty() && outputs != expected))
      return program.emitOpError("has ")
             << inputs << " inputs and " << outputs << " outputs, but as a stage "
             << stage.reads.size() << " and " << expected;
  }
  // What is only handed on is no program's: it is as large as what it comes from or goes to.
  for (bool grows = true; grows;) {
    grows = false;
    for (const Stage &stage : stages)
      for (const StageEdge &edge : stage.edges)
        for (auto [from, to] : edge.moves)
          for (auto [known, other] : {std::pair(from, to), std::pair(to, from)})
            if (hasWindow(known) && !hasWindow(other)) {
              HostPlan::Window made = plan.windows[windowNumber(known)];
              made.name = "state" + std::to_string(other);
              made.role = ctran::WindowRole::Scratch;
              made.argument = -1;
              windowOfState[other] = plan.windows.size();
              plan.windows.push_back(made);
              grows = true;
            }
  }
  return success();
}

Value BranchLowering::meet(StringRef who) {
  call("ncclxrt_choose", {op(who), lane(ctran::LaneKind::Host, "host0"), e.constant(choice),
                          e.constant(int64_t(programs.size()))});
  return e.call("ncclxrt_branch", e.exec, b.getI64Type());
}

FailureOr<Value> BranchLowering::run() {
  status = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  e.begin(function);
  if (failed(declareArguments()))
    return failure();
  // The kernel takes the inputs in their order, and then what it fills.
  choice = plan.windows.size();
  plan.windows.push_back(
      {"choice", 8, 1, ctran::WindowRole::Scratch, -1, MemRefType::get({}, b.getI64Type())});
  if (failed(bindStates()))
    return failure();
  std::string kernel = chooser.getSymName().str();
  plan.kernels.push_back(kernel);
  plan.kernelSms.push_back(0);
  SmallVector<Value> addresses;
  for (int64_t window = 0; window <= choice; ++window)
    addresses.push_back(e.call("ncclxrt_address", {e.exec, e.constant(window)}, b.getI64Type()));
  plan.lanes.push_back({"compute0", ctran::LaneKind::Compute, 0});
  plan.ops.push_back({kernel, "", ""});
  status = e.callKernel(status, kernel, addresses, 0, 0);
  Value chosen = meet(kernel);
  return stages.empty() ? lowerWays(chosen) : lowerStages(chosen);
}

FailureOr<Value> BranchLowering::lowerWays(Value chosen) {
  for (auto [i, program] : llvm::enumerate(programs)) {
    auto taken = scf::IfOp::create(b, loc, b.getI32Type(), isNumber(chosen, i),
                                   /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&taken.getElseRegion().front());
    scf::YieldOp::create(b, loc, status);
    b.setInsertionPointToStart(&taken.getThenRegion().front());
    FailureOr<Value> behind =
        lowerBranch(program, plan, b, function, status, DenseMap<Operation *, int64_t>());
    if (failed(behind))
      return failure();
    scf::YieldOp::create(b, loc, *behind);
    status = taken.getResult(0);
  }
  return status;
}

/// Does the program exchange anything with other ranks?
bool exchanges(ctran::ProgramOp program) {
  return program
      .walk([](ctran::ScheduleOpInterface op) {
        return isa<ctran::ComputeOp, ctran::SourceOp, ctran::SinkOp>(*op) ? WalkResult::advance()
                                                                          : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// Fills what the next stage is to find: behind the meeting, and before that stage begins.
void BranchLowering::move(const StageEdge &edge, StringRef name) {
  Value none = e.constant(-1), zero = e.constant(0), one = e.constant(1);
  for (auto [from, to] : edge.moves) {
    if (!hasWindow(from)) // nobody ever reads what goes round there
      continue;
    int64_t source = windowNumber(from), target = windowNumber(to);
    Value size = e.constant(int64_t(plan.windows[target].bytes));
    call("ncclxrt_copy",
         {op(name), lane(ctran::LaneKind::Host, "host0"), e.constant(target), none, zero, one, size,
          size, e.constant(source), none, zero, one, size, size, none, none, zero});
  }
}

/// Gives the number of the stage to play next, or -1.
FailureOr<Value> BranchLowering::lowerStage(int64_t number) {
  const Stage &stage = stages[number];
  ctran::ProgramOp program = programs[number];
  FailureOr<Value> behind = lowerBranch(program, plan, b, function, status, bound[number]);
  if (failed(behind))
    return failure();
  status = *behind;
  if (stage.edges.empty())
    return e.constant(-1);
  std::string prefix = (program.getSymName() + "/").str();
  if (stage.agree) {
    int64_t window = windowOfState.lookup(*stage.agree);
    FailureOr<int64_t> dtype = e.dtype(program, plan.windows[window].type.getElementType());
    if (failed(dtype))
      return failure();
    call("ncclxrt_agree",
         {op(prefix + "assume_uniform", stage.agreeAt), lane(ctran::LaneKind::Host, "host0"),
          e.constant(window), e.constant(*dtype)});
  }
  // Ranks meet where they decide, and before what communicates.
  Value next = e.constant(stage.edges.front().target);
  if (stage.edges.size() > 1 || exchanges(programs[stage.edges.front().target]))
    next = meet(prefix + "next");
  for (const StageEdge &edge : stage.edges) {
    if (edge.moves.empty())
      continue;
    if (stage.edges.size() == 1) {
      move(edge, prefix + "hand on");
      continue;
    }
    auto taken = scf::IfOp::create(b, loc, b.getI32Type(), isNumber(next, edge.target),
                                   /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&taken.getElseRegion().front());
    scf::YieldOp::create(b, loc, status);
    b.setInsertionPointToStart(&taken.getThenRegion().front());
    move(edge, prefix + "hand on");
    scf::YieldOp::create(b, loc, status);
    status = taken.getResult(0);
  }
  return next;
}

FailureOr<Value> BranchLowering::lowerStages(Value chosen) {
  SmallVector<Type> types{b.getI64Type(), b.getI32Type()};
  SmallVector<Location> locs(2, loc);
  auto loop = scf::WhileOp::create(b, loc, types, ValueRange{chosen, status});
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, types, locs);
  Value goesOn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, before->getArgument(0),
                                       e.constant(0));
  scf::ConditionOp::create(b, loc, goesOn, before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, types, locs);
  Value current = after->getArgument(0), next = e.constant(-1);
  status = after->getArgument(1);
  for (int64_t number = 0; number < int64_t(stages.size()); ++number) {
    auto taken =
        scf::IfOp::create(b, loc, types, isNumber(current, number), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard inside(b);
    b.setInsertionPointToStart(&taken.getElseRegion().front());
    scf::YieldOp::create(b, loc, ValueRange{next, status});
    b.setInsertionPointToStart(&taken.getThenRegion().front());
    FailureOr<Value> following = lowerStage(number);
    if (failed(following))
      return failure();
    scf::YieldOp::create(b, loc, ValueRange{*following, status});
    next = taken.getResult(0);
    status = taken.getResult(1);
  }
  // A run that has failed is over.
  Value good = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, status,
                                     arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0)));
  next = arith::SelectOp::create(b, loc, good, next, e.constant(-1));
  scf::YieldOp::create(b, loc, ValueRange{next, status});
  return loop.getResult(1);
}

} // namespace

FailureOr<HostPlan> mlir::ncclx::lowerToHost(StringRef name, func::FuncOp chooser,
                                             ArrayRef<ctran::ProgramOp> branches, ModuleOp target) {
  HostPlan plan;
  plan.name = name.str();
  plan.ranks = ctran::ProgramOp(branches.front()).getNumRanks();
  OpBuilder b(target.getContext());
  func::FuncOp function = startFunction(b, chooser.getLoc(), target, plan.name);
  FailureOr<Value> status = BranchLowering(chooser, branches, plan, b, function).run();
  if (failed(status))
    return failure();
  b.setInsertionPointToEnd(&function.getBody().front());
  func::ReturnOp::create(b, chooser.getLoc(), *status);
  cutSteps(function);
  plan.hash = hashOf(branches, plan);
  return plan;
}
