//===- LoopRotation.cpp - Collectives from one iteration of a loop to the next -----------===//
#include "LoopRotation.h"
#include "FunctionProblem.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::ncclx;

SmallVector<CollectiveOpInterface> mlir::ncclx::collectivesOf(scf::ForOp loop) {
  SmallVector<CollectiveOpInterface> list;
  for (auto op : loop.getBody()->getOps<CollectiveOpInterface>())
    if (!op.isBufferForm() && !op.isAsync() && !op.getDest())
      list.push_back(op);
  return list;
}

static void inOrder(SmallVectorImpl<Operation *> &ops) {
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

/// Adds the cheap ops of the body that `value` comes from, behind what those need; false where
/// something else makes it. Values that the loop carries must be `allowed`.
static bool makersOf(scf::ForOp loop, Value value, llvm::SetVector<Operation *> &list,
                     llvm::function_ref<bool(Value)> allowed) {
  Block *body = loop.getBody();
  SmallVector<Value> work = {value};
  SmallVector<Operation *> found;
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!work.empty()) {
    Value at = work.pop_back_val();
    Operation *def = at.getDefiningOp();
    if (auto argument = dyn_cast<BlockArgument>(at)) {
      if (argument.getOwner() == body && argument != loop.getInductionVar() && !allowed(at))
        return false;
    } else if (def->getBlock() == body && !list.contains(def) && seen.insert(def).second) {
      if (!isGlue(def))
        return false;
      found.push_back(def);
      work.append(usedValues(def));
    }
  }
  inOrder(found);
  list.insert(found.begin(), found.end());
  return true;
}

std::optional<Ahead> mlir::ncclx::findAhead(scf::ForOp loop, CollectiveOpInterface op,
                                            std::string &why) {
  Ahead found{op, {}};
  for (Value operand : op->getOperands())
    if (!makersOf(loop, operand, found.makes, [](Value) { return true; })) {
      why = "its operand is computed in the iteration that it stands in";
      return std::nullopt;
    }
  return found;
}

std::optional<Behind> mlir::ncclx::findBehind(scf::ForOp loop, CollectiveOpInterface op,
                                              std::string &why) {
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
      } else if (user->getBlock() != loop.getBody() || holdsCommunication(user) ||
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
    for (Value value : usedValues(sum))
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
  llvm::SmallPtrSet<Operation *, 8> seen;
  for (size_t i = 0; i < late.size(); ++i)
    for (Operation *user : late[i].getUsers()) {
      if (found.sums.contains(user) || !seen.insert(user).second)
        continue;
      if (!found.makes.contains(user)) {
        why = "the iteration needs the sum of those before";
        return std::nullopt;
      }
      llvm::append_range(late, user->getResults());
    }
  return found;
}

namespace {

/// A loop whose parts are built anew.
class Rotation {
public:
  Rotation(scf::ForOp loop)
      : loop(loop), b(loop), loc(loop.getLoc()), first(loop.getLowerBound()), step(loop.getStep()) {
    std::optional<APInt> trips = loop.getStaticTripCount();
    std::optional<int64_t> from = getConstantIntValue(first), by = getConstantIntValue(step);
    if (trips && from && by) {
      first = number(*from);
      step = number(*by);
      last = number(*from + *by * (trips->getSExtValue() - 1));
      return;
    }
    guard();
    // first + (end - first - 1) / step * step; the span may be too large for a signed number.
    Value one = number(1), span = arith::SubIOp::create(b, loc, loop.getUpperBound(), first);
    span = arith::SubIOp::create(b, loc, span, one);
    Value count = arith::DivUIOp::create(b, loc, span, step);
    last = arith::AddIOp::create(b, loc, first, arith::MulIOp::create(b, loc, count, step));
  }

  scf::ForOp ahead(ArrayRef<Ahead> list);
  scf::ForOp behind(const Behind &which);
  scf::ForOp front(const llvm::SetVector<Operation *> &ops);

private:
  scf::ForOp loop;
  OpBuilder b;
  Location loc;
  Value first, step, last; ///< numbers of iterations; the last one's is in the loop

  Value number(int64_t value) {
    return arith::ConstantOp::create(b, loc,
                                     b.getIntegerAttr(loop.getInductionVar().getType(), value));
  }
  /// Puts the loop where it runs at least once.
  void guard() {
    auto smaller = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
    Value runs = arith::CmpIOp::create(b, loc, smaller, first, loop.getUpperBound());
    auto branch = scf::IfOp::create(b, loc, loop.getResultTypes(), runs, /*withElseRegion=*/true);
    loop->replaceAllUsesWith(branch.getResults());
    if (loop->getNumResults() == 0) { // its yields are there already
      loop->moveBefore(branch.thenBlock()->getTerminator());
    } else {
      b.setInsertionPointToEnd(branch.elseBlock());
      scf::YieldOp::create(b, loc, loop.getInitArgs());
      b.setInsertionPointToEnd(branch.thenBlock());
      loop->moveBefore(scf::YieldOp::create(b, loc, loop.getResults()));
    }
    b.setInsertionPoint(loop);
  }
  scf::ForOp make(Value from, Value to, ValueRange inits) {
    return scf::ForOp::create(b, loc, from, to, step, inits, /*bodyBuilder=*/nullptr,
                              loop.getUnsignedCmp());
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
  /// The cheap ops that make some values, as far as `map` does not have them.
  void makeAgain(SmallVector<Value> values, IRMapping &map) {
    SmallVector<Operation *> needed;
    llvm::SmallPtrSet<Operation *, 8> seen;
    while (!values.empty()) {
      Value value = values.pop_back_val();
      Operation *def = value.getDefiningOp();
      if (map.contains(value) || !def || def->getBlock() != loop.getBody() ||
          !seen.insert(def).second)
        continue;
      needed.push_back(def);
      values.append(usedValues(def));
    }
    inOrder(needed);
    for (Operation *op : needed)
      b.clone(*op, map);
  }
  /// The op again, with what it needs.
  void again(Operation *op, IRMapping &map) {
    makeAgain(usedValues(op), map);
    b.clone(*op, map);
  }
  Value again(Value value, IRMapping &map) {
    makeAgain({value}, map);
    return map.lookupOrDefault(value);
  }
  /// Whether a result of `ops` goes to others, or to the next iteration, cheap ops in between.
  bool isNeededBehind(Value result, const llvm::SetVector<Operation *> &ops) {
    SmallVector<Value> work = {result};
    llvm::SmallPtrSet<Operation *, 8> seen;
    while (!work.empty())
      for (Operation *user : work.pop_back_val().getUsers()) {
        user = loop.getBody()->findAncestorOpInBlock(*user);
        if (ops.contains(user) || !seen.insert(user).second)
          continue;
        if (user->hasTrait<OpTrait::IsTerminator>() || !isGlue(user))
          return true;
        llvm::append_range(work, user->getResults());
      }
    return false;
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
    mapArguments(map, first, loop.getInitArgs());
    for (Operation *op : a.makes)
      b.clone(*op, map);
    inits.push_back(start(a.collective, map));
  }
  scf::ForOp made = make(first, last, inits);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    ValueRange args = made.getRegionIterArgs();
    IRMapping map;
    mapArguments(map, made.getInductionVar(), args.take_front(carried));
    Value next = arith::AddIOp::create(b, loc, made.getInductionVar(), step);
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
  mapArguments(map, last, made.getResults().take_front(carried));
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
  mapArguments(before, first, loop.getInitArgs());
  Value future = body(before, [] {});
  SmallVector<Value> inits;
  for (auto [i, value] : llvm::enumerate(yielded))
    inits.push_back(which.slots.contains(i) ? loop.getInitArgs()[i]
                                            : before.lookupOrDefault(value));
  inits.push_back(future);
  Value second = b.createOrFold<arith::AddIOp>(loc, first, step); // a number if both are
  scf::ForOp made = make(second, loop.getUpperBound(), inits);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    ValueRange args = made.getRegionIterArgs();
    IRMapping map, sums;
    mapArguments(map, made.getInductionVar(), args.drop_back());
    Value previous = arith::SubIOp::create(b, loc, made.getInductionVar(), step);
    Value next = body(map, [&] { sums = sum(previous, args.drop_back(), args.back()); });
    SmallVector<Value> yields;
    for (auto [i, value] : llvm::enumerate(yielded))
      yields.push_back((which.slots.contains(i) ? sums : map).lookupOrDefault(value));
    yields.push_back(next);
    scf::YieldOp::create(b, loc, yields);
  }
  IRMapping after = sum(last, made.getResults().drop_back(), made.getResults().back());
  SmallVector<Value> results;
  for (auto [i, value] : llvm::enumerate(yielded))
    results.push_back(which.slots.contains(i) ? after.lookupOrDefault(value)
                                              : Value(made.getResult(i)));
  finish(results);
  return made;
}

scf::ForOp Rotation::front(const llvm::SetVector<Operation *> &ops) {
  // What the rest, or the next iteration, needs of the front.
  SmallVector<Value> handed;
  SmallVector<Operation *> rest;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (ops.contains(&op))
      for (Value result : op.getResults())
        if (isNeededBehind(result, ops))
          handed.push_back(result);
    if (!ops.contains(&op) && !isGlue(&op))
      rest.push_back(&op);
  }
  ValueRange yielded = loop.getBody()->getTerminator()->getOperands();
  auto ahead = [&](Value iv, ValueRange carried) {
    IRMapping map;
    mapArguments(map, iv, carried);
    for (Operation *op : ops)
      again(op, map);
    return llvm::map_to_vector(handed, [&](Value value) { return map.lookup(value); });
  };
  auto behind = [&](Value iv, ValueRange all) {
    IRMapping map;
    mapArguments(map, iv, all.drop_back(handed.size()));
    map.map(handed, all.take_back(handed.size()));
    for (Operation *op : rest)
      again(op, map);
    SmallVector<Value> yields;
    for (Value value : yielded)
      yields.push_back(again(value, map));
    return yields;
  };
  SmallVector<Value> inits(loop.getInitArgs());
  inits.append(ahead(first, loop.getInitArgs()));
  scf::ForOp made = make(first, last, inits);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    SmallVector<Value> yields = behind(made.getInductionVar(), made.getRegionIterArgs());
    Value next = arith::AddIOp::create(b, loc, made.getInductionVar(), step);
    yields.append(ahead(next, SmallVector<Value>(yields)));
    scf::YieldOp::create(b, loc, yields);
  }
  finish(behind(last, made.getResults()));
  return made;
}

} // namespace

scf::ForOp mlir::ncclx::rotateFront(scf::ForOp loop, const llvm::SetVector<Operation *> &front) {
  return Rotation(loop).front(front);
}
scf::ForOp mlir::ncclx::rotateAhead(scf::ForOp loop, ArrayRef<Ahead> list) {
  return Rotation(loop).ahead(list);
}
scf::ForOp mlir::ncclx::rotateBehind(scf::ForOp loop, const Behind &which) {
  return Rotation(loop).behind(which);
}
