//===- HloControlFlow.cpp - Calls, loops and branches as structured control flow -------===//
#include "HloImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::hlo;

LogicalResult Importer::call(Scope &scope, const Instruction &op, StringRef attribute,
                             SmallVector<Value> &results) {
  const Computation *body = callee(op, attribute);
  if (!body)
    return error(op) << "'" << attribute << "' names no computation above";
  SmallVector<SmallVector<Value>> arguments;
  for (unsigned operand : op.operands)
    arguments.push_back(scope.values[operand]);
  if (arguments.size() != body->parameters.size())
    return error(op) << "gives " << arguments.size() << " operands to '" << body->name
                     << "', which takes " << body->parameters.size();
  for (unsigned i = 0; i < arguments.size(); ++i)
    if (!(body->instructions[body->parameters[i]].shape == shapeOf(scope, op, i)))
      return error(op) << "operand " << i << " has another shape than parameter " << i << " of '"
                       << body->name << "'";
  if (!(body->rootInstruction().shape == op.shape))
    return error(op) << "'" << body->name << "' gives another shape";
  return computation(*body, arguments, results);
}

/// The constant that an instruction is, behind copies and conversions of its value to itself.
static std::optional<int64_t> constantOf(const Computation &computation, unsigned number) {
  const Instruction *op = &computation.instructions[number];
  while ((op->is("copy") || op->is("reshape") || op->is("bitcast") || op->is("convert")) &&
         op->operands.size() == 1)
    op = &computation.instructions[op->operands[0]];
  int64_t value;
  if (!op->is("constant") || !op->shape.dims.empty() || op->shape.element.bits == 0 ||
      op->literal.getAsInteger(10, value) || !llvm::isIntN(op->shape.element.bits, value))
    return std::nullopt;
  return value;
}

/// Which element of the one parameter an instruction is.
static std::optional<int64_t> elementOfParameter(const Computation &computation, unsigned number) {
  const Instruction *op = &computation.instructions[number];
  while (op->is("copy") && op->operands.size() == 1)
    op = &computation.instructions[op->operands[0]];
  int64_t index;
  if (!op->is("get-tuple-element") || op->operands.size() != 1 ||
      !computation.instructions[op->operands[0]].is("parameter") ||
      op->find("index").value_or("").getAsInteger(10, index))
    return std::nullopt;
  return index;
}

/// A loop that counts by a constant from a constant to a constant; or what the backend says.
std::optional<int64_t> Importer::tripCount(const Scope &scope, const Instruction &op,
                                           const Computation &condition, const Computation &body) {
  constexpr int64_t kMostTrips = int64_t(1) << 40;
  if (std::optional<StringRef> config = op.find("backend_config"); config) {
    size_t at = config->find("known_trip_count");
    std::optional<double> count =
        at == StringRef::npos ? std::nullopt : configured(config->substr(at), "n");
    if (count && *count < double(kMostTrips))
      return int64_t(*count);
  }
  const Instruction &root = condition.rootInstruction();
  const Instruction &next = body.rootInstruction();
  const Instruction *init = &scope.computation.instructions[op.operands[0]];
  while (init->is("copy") && init->operands.size() == 1)
    init = &scope.computation.instructions[init->operands[0]];
  if (!root.is("compare") || root.operands.size() != 2 || !next.is("tuple") || !init->is("tuple"))
    return std::nullopt;
  unsigned left = root.operands[0], right = root.operands[1];
  StringRef direction = root.find("direction").value_or("");
  if (constantOf(condition, left)) {
    std::swap(left, right);
    direction = direction == "GT" ? "LT" : direction == "GE" ? "LE" : direction == "NE" ? "NE" : "";
  }
  std::optional<int64_t> counter = elementOfParameter(condition, left);
  std::optional<int64_t> end = constantOf(condition, right);
  if (!counter || !end || *counter < 0 || *counter >= int64_t(next.operands.size()) ||
      *counter >= int64_t(init->operands.size()))
    return std::nullopt;
  std::optional<int64_t> start = constantOf(scope.computation, init->operands[*counter]);
  const Instruction *step = &body.instructions[next.operands[*counter]];
  while (step->is("copy") && step->operands.size() == 1)
    step = &body.instructions[step->operands[0]];
  if (!start || !step->is("add") || step->operands.size() != 2)
    return std::nullopt;
  std::optional<int64_t> by;
  for (int i : {0, 1})
    if (elementOfParameter(body, step->operands[i]) == counter)
      by = constantOf(body, step->operands[1 - i]);
  if (!by || *by < 1 || std::abs(*start) > kMostTrips || std::abs(*end) > kMostTrips)
    return std::nullopt;
  int64_t distance = *end - *start + (direction == "LE" ? 1 : 0);
  if (direction == "NE" && (distance < 0 || distance % *by != 0))
    return std::nullopt;
  if (direction != "LT" && direction != "LE" && direction != "NE")
    return std::nullopt;
  return distance <= 0 ? 0 : int64_t(llvm::divideCeil(uint64_t(distance), uint64_t(*by)));
}

LogicalResult Importer::whileLoop(Scope &scope, const Instruction &op,
                                  SmallVector<Value> &results) {
  const Computation *condition = callee(op, "condition"), *body = callee(op, "body");
  if (!condition || !body || op.operands.size() != 1 || condition->parameters.size() != 1 ||
      body->parameters.size() != 1)
    return error(op) << "needs one operand, and 'condition' and 'body' of one parameter";
  const Shape &state = shapeOf(scope, op, 0);
  const Shape &test = condition->rootInstruction().shape;
  auto parameter = [](const Computation *c) { return c->instructions[c->parameters[0]].shape; };
  if (!(state == op.shape) || !(parameter(body) == state) || !(parameter(condition) == state) ||
      !(body->rootInstruction().shape == state) || !test.array() || !test.dims.empty() ||
      test.element.kind != Element::Predicate)
    return error(op) << "operand, parameters and the body's result differ in shape, or the "
                        "condition is no pred[]";
  ++report.loops;
  std::optional<int64_t> trips = tripCount(scope, op, *condition, *body);
  report.loopsOfUnknownLength += !trips;
  SmallVector<Value> inits = scope.values[op.operands[0]];
  Location loc = at(op);
  OpBuilder::InsertionGuard guard(b);
  double before = times;
  llvm::scope_exit restore([&] { times = before; });
  if (!trips) {
    auto loop = scf::WhileOp::create(b, loc, ValueRange(inits).getTypes(), inits);
    SmallVector<Location> locs(inits.size(), loc);
    SmallVector<Value> made;
    Block *first = b.createBlock(&loop.getBefore(), {}, ValueRange(inits).getTypes(), locs);
    if (failed(computation(*condition, {SmallVector<Value>(first->getArguments())}, made)))
      return failure();
    scf::ConditionOp::create(b, loc, extract(loc, made[0]), first->getArguments());
    Block *second = b.createBlock(&loop.getAfter(), {}, ValueRange(inits).getTypes(), locs);
    if (failed(computation(*body, {SmallVector<Value>(second->getArguments())}, made)))
      return failure();
    scf::YieldOp::create(b, loc, made);
    results.assign(loop.getResults().begin(), loop.getResults().end());
    return success();
  }
  // What the body hands on as it got it is carried by no iteration.
  SmallVector<bool> invariant(inits.size());
  const Instruction &next = body->rootInstruction();
  if (next.is("tuple") && next.operands.size() == inits.size())
    for (size_t i = 0; i < inits.size(); ++i)
      invariant[i] = elementOfParameter(*body, next.operands[i]) == int64_t(i);
  SmallVector<Value> carried;
  for (size_t i = 0; i < inits.size(); ++i)
    if (!invariant[i])
      carried.push_back(inits[i]);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value end = arith::ConstantIndexOp::create(b, loc, *trips);
  bool failedInside = false;
  times *= double(*trips);
  auto loop = scf::ForOp::create(b, loc, zero, end, one, carried,
                                 [&](OpBuilder &inner, Location, Value, ValueRange arguments) {
                                   OpBuilder::InsertionGuard guard(b);
                                   b.setInsertionPointToEnd(inner.getInsertionBlock());
                                   SmallVector<Value> state = inits, made, yielded;
                                   for (size_t i = 0, next = 0; i < inits.size(); ++i)
                                     if (!invariant[i])
                                       state[i] = arguments[next++];
                                   failedInside = failed(computation(*body, {state}, made));
                                   for (size_t i = 0; i < inits.size(); ++i)
                                     if (!invariant[i])
                                       yielded.push_back(failedInside ? state[i] : made[i]);
                                   scf::YieldOp::create(b, loc, yielded);
                                 });
  if (failedInside)
    return failure();
  for (size_t i = 0, next = 0; i < inits.size(); ++i)
    results.push_back(invariant[i] ? inits[i] : loop.getResult(next++));
  return success();
}

LogicalResult Importer::conditional(Scope &scope, const Instruction &op,
                                    SmallVector<Value> &results) {
  SmallVector<const Computation *> branches;
  bool byIndex = op.find("branch_computations").has_value();
  if (byIndex) {
    for (size_t i = 0; i < readNames(*op.find("branch_computations")).size(); ++i)
      branches.push_back(callee(op, "branch_computations", i));
  } else {
    branches = {callee(op, "true_computation"), callee(op, "false_computation")};
  }
  if (branches.empty() || llvm::is_contained(branches, nullptr) ||
      op.operands.size() != branches.size() + 1)
    return error(op) << "needs a selector, and an operand for each of its branches";
  const Shape &selector = shapeOf(scope, op, 0);
  bool asPredicate = selector.element.kind == Element::Predicate;
  if (!selector.array() || !selector.dims.empty() ||
      (byIndex ? selector.element.name != "s32" && !(asPredicate && branches.size() == 2)
               : !asPredicate))
    return error(op) << "the selector is a pred[] of two branches, or an s32[]";
  for (auto [i, branch] : llvm::enumerate(branches))
    if (branch->parameters.size() != 1 || !(branch->rootInstruction().shape == op.shape) ||
        !(branch->instructions[branch->parameters[0]].shape == shapeOf(scope, op, i + 1)))
      return error(op) << "branch '" << branch->name << "' has other shapes";
  Location loc = at(op);
  SmallVector<Type> types = typesOf(op.shape);
  OpBuilder::InsertionGuard guard(b);
  auto fill = [&](Region &region, size_t i) -> LogicalResult {
    if (region.empty())
      region.emplaceBlock();
    b.setInsertionPointToEnd(&region.front());
    SmallVector<Value> made;
    if (failed(computation(*branches[i], {scope.values[op.operands[i + 1]]}, made)))
      return failure();
    scf::YieldOp::create(b, loc, made);
    return success();
  };
  if (branches.size() == 1)
    return computation(*branches[0], {scope.values[op.operands[1]]}, results);
  Value which = extract(loc, value(scope, op, 0));
  if (branches.size() == 2) {
    // Of two branches by number the first is number 0; every other number is the last.
    if (!asPredicate)
      which = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, which,
                                    arith::ConstantIntOp::create(b, loc, 0, 32));
    auto branch = scf::IfOp::create(b, loc, types, which, /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    for (Region &region : branch->getRegions())
      if (!region.front().empty())
        region.front().clear();
    if (failed(fill(branch.getThenRegion(), 0)) || failed(fill(branch.getElseRegion(), 1)))
      return failure();
    results.assign(branch.getResults().begin(), branch.getResults().end());
    return success();
  }
  SmallVector<int64_t> cases;
  for (size_t i = 0; i + 1 < branches.size(); ++i)
    cases.push_back(i);
  Value index = arith::IndexCastOp::create(b, loc, b.getIndexType(), which);
  auto branch = scf::IndexSwitchOp::create(b, loc, types, index, cases, cases.size());
  for (size_t i = 0; i + 1 < branches.size(); ++i)
    if (failed(fill(branch.getCaseRegions()[i], i)))
      return failure();
  if (failed(fill(branch.getDefaultRegion(), branches.size() - 1)))
    return failure();
  results.assign(branch.getResults().begin(), branch.getResults().end());
  return success();
}
