//===- PipelineLoops.cpp - Collectives from one iteration of a loop to the next
//----------------===//
//
// Card P12 of the survey. A loop that carries the future of a collective has it in flight while
// another iteration computes:
//
//   ahead:  start C(0); for i in [0, n-1) { await C; start C(i+1); rest of i };  rest of n-1
//   behind: first without its sums, start C(0); for i in [1, n) { rest of i; await C, sums of i-1;
//           start C(i) };  await C, sums of n-1
//
// What the schedule of a body is worth is asked of the model, for each collective in turn.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Passes.h"

#include "Exchanges.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_PIPELINELOOPS
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// A collective that may be issued an iteration ahead, with the cheap ops that make its input.
struct Ahead {
  Operation *collective;
  llvm::SetVector<Operation *> makes; ///< in order
};
/// One that may be awaited an iteration later, with what becomes of its result.
struct Behind {
  Operation *collective;
  llvm::SetVector<Operation *> makes;  ///< what else the sums need, in order
  llvm::SetVector<Operation *> sums;   ///< in order
  llvm::SmallDenseSet<unsigned> slots; ///< the loop's values that they are yielded as
};

SmallVector<CollectiveOpInterface> collectivesOf(scf::ForOp loop) {
  SmallVector<CollectiveOpInterface> list;
  for (auto op : loop.getBody()->getOps<CollectiveOpInterface>())
    if (!op.isBufferForm() && !op.isAsync() && !op.getDest())
      list.push_back(op);
  return list;
}

/// Adds the cheap ops of the body that `value` comes from; false where something else makes it.
/// Values that the loop carries must be `allowed`.
bool makersOf(scf::ForOp loop, Value value, llvm::SetVector<Operation *> &list,
              llvm::function_ref<bool(Value)> allowed) {
  Block *body = loop.getBody();
  if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == body)
    return argument == loop.getInductionVar() || allowed(value);
  Operation *def = value.getDefiningOp();
  if (!def || !body->getParentOp()->isProperAncestor(def))
    return true;
  if (list.contains(def))
    return true;
  if (!isGlue(def))
    return false;
  for (Value operand : def->getOperands())
    if (!makersOf(loop, operand, list, allowed))
      return false;
  list.insert(def);
  return true;
}

std::optional<Ahead> findAhead(scf::ForOp loop, CollectiveOpInterface op, std::string &why) {
  Ahead found{op, {}};
  for (Value operand : op->getOperands())
    if (!makersOf(loop, operand, found.makes, [](Value) { return true; })) {
      why = "its operand is computed in the iteration that it stands in";
      return std::nullopt;
    }
  return found;
}

std::optional<Behind> findBehind(scf::ForOp loop, CollectiveOpInterface op, std::string &why) {
  Behind found{op, {}, {}, {}};
  Operation *yield = loop.getBody()->getTerminator();
  SmallVector<Operation *> work = {op};
  llvm::SetVector<Operation *> reached;
  while (!work.empty()) {
    Operation *at = work.pop_back_val();
    for (OpOperand &use : at->getUses()) {
      Operation *user = use.getOwner();
      if (user == yield) {
        if (at == op)
          why = "the next iteration, or what follows the loop, needs it as it is";
        else
          found.slots.insert(use.getOperandNumber());
      } else if (user->getBlock() != loop.getBody() || communicates(user) ||
                 !(isGlue(user) || isa<linalg::LinalgOp>(user)) ||
                 (isa<linalg::LinalgOp>(user) &&
                  linalg::isaContractionOpInterface(cast<linalg::LinalgOp>(user)))) {
        why = "the iteration that it stands in computes with its result";
      } else if (reached.insert(user)) {
        work.push_back(user);
      }
    }
    if (!why.empty())
      return std::nullopt;
  }
  for (Operation &inner : *loop.getBody())
    if (reached.contains(&inner))
      found.sums.insert(&inner);
  auto own = [&](Value value) {
    return found.slots.contains(cast<BlockArgument>(value).getArgNumber() - 1);
  };
  for (Operation *sum : found.sums) {
    llvm::SetVector<Value> used(sum->getOperands().begin(), sum->getOperands().end());
    getUsedValuesDefinedAbove(sum->getRegions(), used);
    for (Value value : used)
      if (Operation *def = value.getDefiningOp();
          !(def && (def == op || found.sums.contains(def))) &&
          !makersOf(loop, value, found.makes, own)) {
        why = "its sums need what the iteration computes";
        return std::nullopt;
      }
  }
  // Nothing else sees the sums, which are an iteration late.
  SmallVector<Value> late;
  for (unsigned slot : found.slots)
    late.push_back(loop.getRegionIterArgs()[slot]);
  for (size_t i = 0; i < late.size(); ++i)
    for (Operation *user : late[i].getUsers()) {
      if (found.sums.contains(user))
        continue;
      if (!found.makes.contains(user)) {
        why = "the iteration needs the sum of those before";
        return std::nullopt;
      }
      for (Value result : user->getResults())
        if (!llvm::is_contained(late, result))
          late.push_back(result);
    }
  return found;
}

/// A loop whose parts are built anew.
class Rotation {
public:
  Rotation(scf::ForOp loop)
      : loop(loop), b(loop), loc(loop.getLoc()), first(*getConstantIntValue(loop.getLowerBound())),
        step(*getConstantIntValue(loop.getStep())),
        last(first + step * (loop.getStaticTripCount()->getSExtValue() - 1)) {}

  scf::ForOp ahead(ArrayRef<Ahead> list);
  scf::ForOp behind(const Behind &which);

private:
  scf::ForOp loop;
  OpBuilder b;
  Location loc;
  int64_t first, step, last;

  Value number(int64_t value) {
    return arith::ConstantOp::create(b, loc,
                                     b.getIntegerAttr(loop.getInductionVar().getType(), value));
  }
  void mapArguments(IRMapping &map, Value iv, ValueRange carried) {
    map.map(loop.getInductionVar(), iv);
    map.map(loop.getRegionIterArgs(), carried);
  }
  Value start(Operation *collective, IRMapping &map) {
    auto type = cast<RankedTensorType>(cast<CollectiveOpInterface>(collective).getOutputType());
    auto op = StartOp::create(b, loc, FutureType::get(type));
    OpBuilder inner = OpBuilder::atBlockBegin(&op.getBody().emplaceBlock());
    Operation *copy = inner.clone(*collective, map);
    YieldOp::create(inner, loc, cast<CollectiveOpInterface>(copy).getResult());
    return op.getFuture();
  }
  Value await(Value future, Type type) {
    return AwaitOp::create(b, loc, type, future, Value(), IntegerAttr(), IntegerAttr(),
                           ValueRange());
  }
  /// The body once, collectives of the list awaited; gives what it yields.
  SmallVector<Value> body(IRMapping &map, ArrayRef<Ahead> list, ValueRange futures) {
    for (Operation &op : loop.getBody()->without_terminator()) {
      const Ahead *found = llvm::find_if(list, [&](auto &a) { return a.collective == &op; });
      if (found == list.end())
        b.clone(op, map);
      else
        map.map(op.getResult(0), await(futures[found - list.begin()], op.getResult(0).getType()));
    }
    SmallVector<Value> yields;
    for (Value value : loop.getBody()->getTerminator()->getOperands())
      yields.push_back(map.lookupOrDefault(value));
    return yields;
  }
  void finish(ValueRange results) {
    loop->replaceAllUsesWith(results);
    loop->erase();
  }
};

scf::ForOp Rotation::ahead(ArrayRef<Ahead> list) {
  SmallVector<Value> inits(loop.getInitArgs());
  unsigned carried = inits.size();
  for (const Ahead &a : list) {
    IRMapping map;
    mapArguments(map, number(first), loop.getInitArgs());
    for (Operation *op : a.makes)
      b.clone(*op, map);
    inits.push_back(start(a.collective, map));
  }
  auto made = scf::ForOp::create(b, loc, number(first), number(last), number(step), inits);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    ValueRange args = made.getRegionIterArgs();
    IRMapping map;
    mapArguments(map, made.getInductionVar(), args.take_front(carried));
    Value next = arith::AddIOp::create(b, loc, made.getInductionVar(), number(step));
    Operation *top = next.getDefiningOp();
    SmallVector<Value> yields = body(map, list, args.drop_front(carried));
    for (const Ahead &a : list) {
      // As early as what the next iteration starts with is there.
      Operation *behind = top;
      IRMapping later;
      mapArguments(later, next, ArrayRef<Value>(yields).take_front(carried));
      auto needs = [&](Operation *op) {
        for (Value operand : op->getOperands())
          if (auto argument = dyn_cast<BlockArgument>(operand);
              argument && argument.getOwner() == loop.getBody())
            if (Operation *def = later.lookup(operand).getDefiningOp();
                def && def->getBlock() == made.getBody() && behind->isBeforeInBlock(def))
              behind = def;
      };
      for (Operation *op : a.makes)
        needs(op);
      needs(a.collective);
      b.setInsertionPointAfter(behind);
      for (Operation *op : a.makes)
        b.clone(*op, later);
      yields.push_back(start(a.collective, later));
      b.setInsertionPointToEnd(made.getBody());
    }
    b.setInsertionPointToEnd(made.getBody());
    scf::YieldOp::create(b, loc, yields);
  }
  IRMapping map;
  mapArguments(map, number(last), made.getResults().take_front(carried));
  finish(body(map, list, made.getResults().drop_front(carried)));
  return made;
}

scf::ForOp Rotation::behind(const Behind &which) {
  Type type = which.collective->getResult(0).getType();
  // The body once without its sums, and in their place what `atCollective` does; gives what it
  // yields, but for the slots, and the future.
  auto body = [&](IRMapping &map, llvm::function_ref<void()> atCollective) {
    Value future;
    for (Operation &op : loop.getBody()->without_terminator()) {
      if (&op == which.collective) {
        atCollective();
        future = start(&op, map);
      } else if (!which.sums.contains(&op)) {
        b.clone(op, map);
      }
    }
    return future;
  };
  auto sum = [&](Value iv, ValueRange carried, Value future) {
    IRMapping map;
    mapArguments(map, iv, carried);
    for (Operation *op : which.makes)
      b.clone(*op, map);
    map.map(which.collective->getResult(0), await(future, type));
    for (Operation *op : which.sums)
      b.clone(*op, map);
    return map;
  };
  ValueRange yielded = loop.getBody()->getTerminator()->getOperands();
  IRMapping before;
  mapArguments(before, number(first), loop.getInitArgs());
  Value future = body(before, [] {});
  SmallVector<Value> inits;
  for (auto [i, value] : llvm::enumerate(yielded))
    inits.push_back(which.slots.contains(i) ? loop.getInitArgs()[i]
                                            : before.lookupOrDefault(value));
  inits.push_back(future);
  auto made =
      scf::ForOp::create(b, loc, number(first + step), number(last + step), number(step), inits);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    ValueRange args = made.getRegionIterArgs();
    IRMapping map, sums;
    mapArguments(map, made.getInductionVar(), args.drop_back());
    Value previous = arith::SubIOp::create(b, loc, made.getInductionVar(), number(step));
    Value next = body(map, [&] { sums = sum(previous, args.drop_back(), args.back()); });
    SmallVector<Value> yields;
    for (auto [i, value] : llvm::enumerate(yielded))
      yields.push_back((which.slots.contains(i) ? sums : map).lookupOrDefault(value));
    yields.push_back(next);
    scf::YieldOp::create(b, loc, yields);
  }
  IRMapping after = sum(number(last), made.getResults().drop_back(), made.getResults().back());
  SmallVector<Value> results;
  for (auto [i, value] : llvm::enumerate(yielded))
    results.push_back(which.slots.contains(i) ? after.lookupOrDefault(value)
                                              : Value(made.getResult(i)));
  finish(results);
  return made;
}

class Pipeliner {
public:
  Pipeliner(func::FuncOp function, const overlap::CostModel &cost, StringRef pass, double margin,
            int64_t budget)
      : function(function), cost(cost), pass(pass), margin(margin), budget(budget) {}

  void run() {
    SmallVector<scf::ForOp> loops;
    function.walk([&](Operation *op) {
      if (auto loop = dyn_cast<scf::ForOp>(op); loop && communicates(op))
        loops.push_back(loop);
      else if (isa<scf::WhileOp>(op) && communicates(op))
        missed(op->getLoc(), "a loop", "how often it runs is not known");
    });
    for (scf::ForOp loop : loops)
      pipeline(loop);
  }

private:
  func::FuncOp function;
  const overlap::CostModel &cost;
  StringRef pass;
  double margin;
  int64_t budget; ///< bytes

  remark::RemarkOpts named(StringRef name) {
    return remark::RemarkOpts::name(name).category(pass).function(function.getSymName());
  }
  void missed(Location loc, const std::string &what, const std::string &why) {
    remark::missed(loc, named("LoopNotPipelined"))
        << remark::add("{0} stays in its iteration", what) << remark::reason("{0}", why);
  }

  void pipeline(scf::ForOp loop) {
    std::string why = refuses(loop);
    if (!why.empty())
      return missed(loop.getLoc(), "whatever a loop communicates", why);
    std::optional<Predicted> now = predict(*loop.getBody(), cost, why);
    if (!now)
      return missed(loop.getLoc(), "whatever a loop communicates", why);
    double seconds = now->seconds;
    SmallVector<unsigned> taken;
    SmallVector<std::string> whyNot;
    unsigned count = collectivesOf(loop).size();
    for (unsigned i = 0; i < count; ++i) {
      whyNot.emplace_back();
      SmallVector<unsigned> with(taken);
      with.push_back(i);
      if (tryOut(loop, with, seconds, true, whyNot.back()))
        taken = std::move(with);
    }
    int64_t inFlight = 0;
    for (unsigned i : taken)
      inFlight += note(collectivesOf(loop)[i], "an iteration ahead");
    budget -= inFlight;
    SmallVector<Operation *> rest;
    SmallVector<std::string> reasons;
    // Those that go ahead are gone from the loop made; the others keep their order.
    for (unsigned i = 0; i < count; ++i)
      if (!llvm::is_contained(taken, i))
        reasons.push_back(whyNot[i]);
    if (!taken.empty())
      loop = rotateAhead(loop, taken);
    for (unsigned i = 0; i < reasons.size();) {
      CollectiveOpInterface op = collectivesOf(loop)[i];
      std::string behind;
      if (!refuses(loop).empty() || !tryOut(loop, {i}, seconds, false, behind)) {
        missed(op.getLoc(), describe(op),
               "ahead: " + reasons[i] + (behind.empty() ? "" : "; behind: " + behind));
        ++i;
        continue;
      }
      budget -= note(op, "an iteration later");
      std::string ignored;
      loop = Rotation(loop).behind(*findBehind(loop, op, ignored));
      reasons.erase(reasons.begin() + i);
    }
  }

  static std::string refuses(scf::ForOp loop) {
    std::optional<APInt> trips = loop.getStaticTripCount();
    if (!trips || !getConstantIntValue(loop.getLowerBound()) ||
        !getConstantIntValue(loop.getStep()))
      return "how often it runs is not known";
    if (trips->ult(2))
      return llvm::formatv("it runs {0} times", trips->getZExtValue());
    for (Operation &op : *loop.getBody())
      if (!isa<CollectiveOpInterface, StartOp, AwaitOp>(op) &&
          (communicates(&op) || !isMemoryEffectFree(&op)))
        return llvm::formatv("{0} may communicate, and nothing crosses it", op.getName());
    return "";
  }

  int64_t note(CollectiveOpInterface op, StringRef where) {
    int64_t bytes = getPayloadBytes(op.getOutputType(), op.getOutputType());
    remark::passed(op.getLoc(), named("LoopPipelined"))
        << remark::add("{0} is {1} {2}: {3} bytes more in flight", describe(op),
                       where.contains("ahead") ? "issued" : "awaited", where, bytes);
    return bytes;
  }

  static scf::ForOp rotateAhead(scf::ForOp loop, ArrayRef<unsigned> which) {
    SmallVector<CollectiveOpInterface> all = collectivesOf(loop);
    SmallVector<Ahead> list;
    std::string ignored;
    for (unsigned i : which)
      list.push_back(*findAhead(loop, all[i], ignored));
    return Rotation(loop).ahead(list);
  }

  /// Whether the last of `which` pays, on a copy of the function; `seconds` is then the new body's.
  bool tryOut(scf::ForOp loop, ArrayRef<unsigned> which, double &seconds, bool ahead,
              std::string &why) {
    CollectiveOpInterface op = collectivesOf(loop)[which.back()];
    if (ahead ? !findAhead(loop, op, why) : !findBehind(loop, op, why))
      return false;
    int64_t bytes = 0;
    for (unsigned i : which) {
      ShapedType type = collectivesOf(loop)[i].getOutputType();
      bytes += getPayloadBytes(type, type);
    }
    if (bytes > budget) {
      why = llvm::formatv("{0} bytes more in flight, and the budget leaves {1}", bytes, budget);
      return false;
    }
    auto loopsOf = [](func::FuncOp f) {
      SmallVector<scf::ForOp> list;
      f.walk([&](scf::ForOp l) { list.push_back(l); });
      return list;
    };
    SmallVector<scf::ForOp> all = loopsOf(function);
    size_t index = llvm::find(all, loop) - all.begin();
    OpBuilder b(function);
    auto copy = cast<func::FuncOp>(b.clone(*function));
    scf::ForOp trial = loopsOf(copy)[index];
    std::string ignored;
    trial = ahead ? rotateAhead(trial, which)
                  : Rotation(trial).behind(
                        *findBehind(trial, collectivesOf(trial)[which.back()], ignored));
    std::optional<Predicted> then = predict(*trial.getBody(), cost, why);
    copy.erase();
    if (!then)
      return false;
    double alone = costOfCollective(op, cost)->seconds;
    if (seconds - then->seconds < margin * alone || seconds <= then->seconds) {
      why = llvm::formatv("an iteration takes {0:F1} us so, {1:F1} us now", then->seconds * 1e6,
                          seconds * 1e6);
      return false;
    }
    seconds = then->seconds;
    return true;
  }
};

struct PipelineLoops : ncclx::impl::PipelineLoopsBase<PipelineLoops> {
  using PipelineLoopsBase::PipelineLoopsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<overlap::CostModel> cost = machineFor(module, getArgument(), machineFile, margin);
    if (!cost)
      return signalPassFailure();
    if (memoryBudget < 0) {
      module.emitError("ncclx-pipeline-loops: memory-budget is at least 0, found ")
          << int64_t(memoryBudget);
      return signalPassFailure();
    }
    for (func::FuncOp function : communicatingFunctions(module))
      Pipeliner(function, *cost, getArgument(), margin, memoryBudget).run();
  }
};

} // namespace
