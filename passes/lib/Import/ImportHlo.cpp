//===- ImportHlo.cpp - HLO computations as functions and structured control flow -----------===//
#include "HloImporter.h"
#include "StableHloText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::hlo;

double HloReport::opaqueFlops() const {
  double sum = 0;
  for (const auto &entry : opaque)
    sum += entry.second.flops;
  return sum;
}

void mlir::ncclx::registerHloImportDialects(DialectRegistry &registry) {
  registry.insert<NCCLXDialect, arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                  math::MathDialect, scf::SCFDialect, tensor::TensorDialect>();
}

/// Ops on elements that stand at one place.
static bool isElementwise(StringRef opcode) {
  return llvm::StringSwitch<bool>(opcode)
      .Cases({"abs", "add", "and", "atan2", "bitcast-convert", "cbrt", "ceil", "clamp"}, true)
      .Cases({"compare", "convert", "copy", "cosine", "count-leading-zeros", "divide"}, true)
      .Cases({"erf", "exponential", "exponential-minus-one", "floor", "is-finite", "log"}, true)
      .Cases({"log-plus-one", "logistic", "maximum", "minimum", "multiply", "negate"}, true)
      .Cases({"not", "or", "popcnt", "power", "remainder", "round-nearest-afz"}, true)
      .Cases({"round-nearest-even", "rsqrt", "select", "shift-left", "shift-right-arithmetic"},
             true)
      .Cases({"shift-right-logical", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor"},
             true)
      .Default(false);
}

/// What acts on more than its result, or differs from one call to the next.
static bool hasEffects(StringRef opcode) {
  return llvm::StringSwitch<bool>(opcode)
      .Cases({"infeed", "outfeed", "send", "send-done", "recv", "recv-done", "rng"}, true)
      .Cases({"rng-get-and-update-state"}, true)
      .Default(false);
}

Importer::Importer(Module &module, StringRef text, StringRef file, MLIRContext *context,
                   HloReport &report)
    : module(module), text(text), file(file), context(context), report(report), b(context) {
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n')
      lines.push_back(i);
}

static LocationAttr placeOf(ArrayRef<size_t> lines, StringRef file, size_t offset,
                            MLIRContext *context) {
  auto line = llvm::lower_bound(lines, offset);
  size_t start = line == lines.begin() ? 0 : *(line - 1) + 1;
  return FileLineColLoc::get(context, file, unsigned(line - lines.begin()) + 1,
                             unsigned(offset - start) + 1);
}

LocationAttr Importer::at(size_t offset) const { return placeOf(lines, file, offset, context); }

SmallVector<Value> Importer::leaves(const Scope &scope, const Instruction &op) const {
  SmallVector<Value> all;
  for (unsigned operand : op.operands)
    all.append(scope.values[operand]);
  return all;
}

const Computation *Importer::callee(const Instruction &op, StringRef attribute, size_t index) {
  SmallVector<StringRef> names = readNames(op.find(attribute).value_or(""));
  return index < names.size() ? module.find(names[index]) : nullptr;
}

func::FuncOp Importer::kernel(StringRef name, TypeRange operands, TypeRange results) {
  auto type = FunctionType::get(context, operands, results);
  std::string key = name.str();
  llvm::raw_string_ostream(key) << ' ' << type;
  func::FuncOp &function = kernels[key];
  if (!function) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(result->getBody());
    std::string plain = "hlo.";
    for (char c : name)
      plain += llvm::isAlnum(c) || c == '.' ? c : '_';
    function = func::FuncOp::create(b, result->getLoc(), plain, type);
    function.setPrivate();
    SymbolTable(*result).insert(function, Block::iterator()); // a name of its own
  }
  return function;
}

SmallVector<Type> Importer::typesOf(const Shape &shape) {
  SmallVector<Type> types;
  if (shape.array())
    types.push_back(typeOf(shape, context));
  for (const Shape &part : shape.parts)
    llvm::append_range(types, typesOf(part));
  return types;
}

LogicalResult Importer::known(const Instruction &op, StringRef name, ValueRange operands,
                              double flops, SmallVector<Value> &results) {
  SmallVector<Type> types = typesOf(op.shape);
  int64_t bytes = op.shape.bytes();
  for (Value operand : operands) {
    auto type = cast<RankedTensorType>(operand.getType());
    Type element = type.getElementType();
    unsigned bits = isa<ComplexType>(element)
                        ? 2 * cast<ComplexType>(element).getElementType().getIntOrFloatBitWidth()
                        : element.getIntOrFloatBitWidth();
    bytes += llvm::divideCeil(uint64_t(type.getNumElements()) * bits, 8);
  }
  report.flops += flops * times;
  func::FuncOp function = kernel(name, operands.getTypes(), types);
  int64_t whole = flops < 9e18 ? int64_t(flops) : std::numeric_limits<int64_t>::max();
  auto call = CallOp::create(b, at(op), types, function.getName(), operands, ValueRange(), whole,
                             bytes, /*sms=*/int64_t(0));
  results.assign(call.getResults().begin(), call.getResults().end());
  return success();
}

LogicalResult Importer::opaque(const Instruction &op, StringRef name, ValueRange operands,
                               bool effects, SmallVector<Value> &results) {
  // An operation for each element that is made; a convolution's are known.
  double flops = 0;
  if (op.shape.array())
    flops = double(op.shape.elements());
  HloReport::Opaque &entry = report.opaque[name.str()];
  ++entry.instructions;
  entry.flops += flops * times;
  if (!effects && op.shape.leaves() > 0)
    return known(op, name, operands, flops, results);
  report.flops += flops * times;
  SmallVector<Type> types = typesOf(op.shape);
  auto call = func::CallOp::create(b, at(op), kernel(name, operands.getTypes(), types), operands);
  results.assign(call.getResults().begin(), call.getResults().end());
  return success();
}

/// A number in a custom call's configuration: `name = 8 : i64`, or `"name":"8"`.
static std::optional<double> configured(StringRef config, StringRef name) {
  for (size_t at = config.find(name); at != StringRef::npos; at = config.find(name, at + 1)) {
    StringRef rest = config.substr(at + name.size());
    if (at > 0 && (llvm::isAlnum(config[at - 1]) || config[at - 1] == '_'))
      continue;
    rest = rest.ltrim("\\\"' :=[");
    StringRef digits = rest.take_while(llvm::isDigit);
    double number;
    if (!digits.empty() && !digits.getAsDouble(number))
      return number;
  }
  return std::nullopt;
}

/// Floating-point operations of the custom calls that are known: attention by TransformerEngine,
/// products by cuBLAS.
static std::optional<double> knownFlops(StringRef target, StringRef config, const Instruction &op,
                                        ArrayRef<const Shape *> operands) {
  if (target.starts_with("te_fused_attn_")) {
    double product = 2;
    for (const char *name : {"input_batch", "attn_heads", "q_max_seqlen", "kv_max_seqlen"}) {
      std::optional<double> number = configured(config, name);
      if (!number)
        return std::nullopt;
      product *= *number;
    }
    std::optional<double> key = configured(config, "qk_head_dim");
    std::optional<double> val = configured(config, "v_head_dim");
    if (!key || !val)
      return std::nullopt;
    // Causal masks (NVTE_Mask_Type from 2 on) leave half; the backward has five products for two.
    double half = configured(config, "mask_type").value_or(0) >= 2 ? 0.5 : 1;
    double ways = target.contains("backward") ? 2.5 : 1;
    return product * (*key + *val) * half * ways;
  }
  if (target.starts_with("__cublas$") && operands.size() >= 2) {
    const Shape &out = op.shape.tuple && !op.shape.parts.empty() ? op.shape.parts[0] : op.shape;
    double product = 2 * double(out.elements());
    size_t at = config.find("lhs_contracting_dimensions");
    if (at == StringRef::npos || !out.array())
      return std::nullopt;
    StringRef list =
        config.substr(at).split('[').second.take_until([](char c) { return c == ']'; });
    for (StringRef rest = list; !rest.empty(); rest = rest.drop_front()) {
      int64_t dim;
      StringRef digits = rest.take_while(llvm::isDigit);
      if (digits.empty())
        continue;
      if (digits.getAsInteger(10, dim) || dim >= int64_t(operands[0]->dims.size()))
        return std::nullopt;
      product *= double(operands[0]->dims[dim]);
      rest = rest.drop_front(digits.size() - 1);
    }
    return product;
  }
  return std::nullopt;
}

LogicalResult Importer::customCall(Scope &scope, const Instruction &op,
                                   SmallVector<Value> &results) {
  StringRef target = op.find("custom_call_target").value_or("").trim('"');
  SmallVector<Value> operands = leaves(scope, op);
  SmallVector<const Shape *> shapes;
  for (unsigned i = 0; i < op.operands.size(); ++i)
    shapes.push_back(&shapeOf(scope, op, i));
  if (target == "Sharding" && shapes.size() == 1 && *shapes[0] == op.shape) {
    results = operands;
    return success();
  }
  std::string name;
  for (char c : target.empty() ? StringRef("custom-call") : target)
    name += llvm::isAlnum(c) || c == '_' || c == '.' ? c : '_';
  bool effects = op.find("custom_call_has_side_effect").value_or("false") == "true";
  StringRef config = op.find("backend_config").value_or("");
  std::optional<double> flops = knownFlops(target, config, op, shapes);
  if (flops && !effects && op.shape.leaves() > 0)
    return known(op, name, operands, *flops, results);
  return opaque(op, name, operands, effects, results);
}

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

LogicalResult Importer::instruction(Scope &scope, const Instruction &op,
                                    SmallVector<Value> &results) {
  StringRef opcode = op.opcode;
  if (opcode == "tuple") {
    if (!op.shape.tuple || op.shape.parts.size() != op.operands.size())
      return error(op) << "has a tuple of its operands for a result";
    for (unsigned i = 0; i < op.operands.size(); ++i)
      if (!(op.shape.parts[i] == shapeOf(scope, op, i)))
        return error(op) << "operand " << i << " has another shape";
    results = leaves(scope, op);
    return success();
  }
  if (opcode == "get-tuple-element") {
    int64_t index;
    if (op.operands.size() != 1 || op.find("index").value_or("").getAsInteger(10, index) ||
        !shapeOf(scope, op, 0).tuple || index < 0 ||
        index >= int64_t(shapeOf(scope, op, 0).parts.size()) ||
        !(shapeOf(scope, op, 0).parts[index] == op.shape))
      return error(op) << "needs a tuple, and in 'index' an element of the result's shape";
    const Shape &tuple = shapeOf(scope, op, 0);
    unsigned first = 0;
    for (int64_t i = 0; i < index; ++i)
      first += tuple.parts[i].leaves();
    results.append(scope.values[op.operands[0]].begin() + first,
                   scope.values[op.operands[0]].begin() + first + op.shape.leaves());
    return success();
  }
  if (opcode == "constant") {
    std::string wrong;
    if (!op.shape.array())
      return error(op) << "has an array for a result";
    if (DenseElementsAttr literal = literalOf(op, context, wrong)) {
      results.push_back(arith::ConstantOp::create(b, at(op), literal));
      return success();
    }
    if (!wrong.empty())
      return error(op) << wrong;
    return opaque(op, "constant", {}, /*effects=*/false, results);
  }
  if (opcode == "partition-id" || opcode == "replica-id") {
    if (!op.shape.array() || !op.shape.dims.empty() || op.shape.element.name != "u32")
      return error(op) << "has a u32[] for a result";
    results.push_back(opcode == "partition-id" ? partitionId : replicaId);
    return success();
  }
  if (opcode == "after-all" || opcode == "add-dependency" || opcode == "opt-barrier" ||
      opcode == "domain" || opcode == "optimization-barrier" || opcode == "copy-done") {
    if (opcode == "after-all") {
      if (op.shape.leaves() == 0)
        return success();
      return error(op) << "has a token for a result";
    }
    // The value is the first operand's; of a copy-start it stands first.
    if (op.operands.empty() || scope.values[op.operands[0]].size() < op.shape.leaves())
      return error(op) << "needs an operand of the result's shape";
    const Shape &from = shapeOf(scope, op, 0);
    bool copy = opcode == "copy-done";
    if (copy ? !from.tuple || from.parts.empty() || !(from.parts[0] == op.shape)
             : !(from == op.shape))
      return error(op) << "operand and result differ in shape";
    results.append(scope.values[op.operands[0]].begin(),
                   scope.values[op.operands[0]].begin() + op.shape.leaves());
    return success();
  }
  if (opcode == "copy-start") { // (result, operand, context)
    bool fits = op.operands.size() == 1 && op.shape.tuple && op.shape.parts.size() == 3 &&
                op.shape.parts[0] == shapeOf(scope, op, 0) &&
                op.shape.parts[1] == shapeOf(scope, op, 0) && op.shape.parts[2].array() &&
                op.shape.parts[2].dims.empty() &&
                op.shape.parts[2].element.kind == Element::Unsigned;
    if (!fits)
      return error(op) << "has (result, operand, context) for a result";
    for (int i = 0; i < 2; ++i)
      results.append(scope.values[op.operands[0]]);
    results.push_back(arith::ConstantOp::create(
        b, at(op), cast<TypedAttr>(b.getZeroAttr(typeOf(op.shape.parts[2], context)))));
    return success();
  }
  if (opcode == "call")
    return call(scope, op, "to_apply", results);
  if (opcode == "fusion")
    return call(scope, op, "calls", results);
  if (opcode == "while")
    return whileLoop(scope, op, results);
  if (opcode == "conditional")
    return conditional(scope, op, results);
  if (opcode == "custom-call")
    return customCall(scope, op, results);
  if (opcode.ends_with("-start"))
    return start(scope, op, results);
  if (isCollective(opcode))
    return collectiveInstruction(scope, op, results);
  if (opcode.ends_with("-done") && !hasEffects(opcode))
    return done(scope, op, results);
  if (opcode == "async-update") {
    if (op.operands.size() != 1 || !(shapeOf(scope, op, 0) == op.shape))
      return error(op) << "operand and result differ in shape";
    results = scope.values[op.operands[0]];
    return success();
  }
  if (opcode == "reduce") {
    bool understood = false;
    if (failed(reduce(scope, op, results, understood)))
      return failure();
    if (understood)
      return success();
  } else if (op.shape.array()) {
    FailureOr<Value> made = isElementwise(opcode) ? elementwise(scope, op) : tensorOp(scope, op);
    if (failed(made))
      return failure();
    if (*made) {
      results.push_back(*made);
      if (isElementwise(opcode) && opcode != "copy" && opcode != "convert")
        report.flops += double(op.shape.elements()) * times;
      return success();
    }
  }
  return opaque(op, opcode, leaves(scope, op), hasEffects(opcode), results);
}

LogicalResult Importer::computation(const Computation &computation,
                                    ArrayRef<SmallVector<Value>> arguments,
                                    SmallVector<Value> &results) {
  if (depth >= kDeepest)
    return emitError(at(computation.offset))
           << "'" << computation.name << "' is called more than " << kDeepest << " deep";
  ++depth;
  llvm::scope_exit leave([&] { --depth; });
  Scope scope{computation, {}};
  scope.values.reserve(computation.instructions.size());
  for (const Instruction &op : computation.instructions) {
    SmallVector<Value> made;
    if (++report.instructions > kMost)
      return error(op) << "the module has more than " << kMost
                       << " instructions, calls written out";
    if (op.is("parameter")) {
      size_t number =
          llvm::find(computation.parameters, scope.values.size()) - computation.parameters.begin();
      made = arguments[number];
    } else if (failed(instruction(scope, op, made))) {
      return failure();
    }
    if (made.size() != op.shape.leaves())
      return error(op) << "gives " << made.size() << " arrays, its shape has " << op.shape.leaves();
    scope.values.push_back(std::move(made));
  }
  results = scope.values[computation.root];
  return success();
}

OwningOpRef<ModuleOp> Importer::run() {
  const Computation &entry = module.computations[module.entry];
  result = ModuleOp::create(b, at(0), module.name);
  b.setInsertionPointToEnd(result->getBody());
  if (failed(countDevices()))
    return {};
  findScatters();
  if (failed(findGrid()))
    return {};
  SmallVector<Type> types;
  for (unsigned parameter : entry.parameters)
    llvm::append_range(types, typesOf(entry.instructions[parameter].shape));
  // The number of a device differs between ranks: it comes from outside.
  SmallVector<StringRef> ids;
  for (StringRef id : {"partition-id", "replica-id"})
    if (llvm::any_of(module.computations, [&](const Computation &c) {
          return llvm::any_of(c.instructions, [&](const Instruction &op) { return op.is(id); });
        }))
      ids.push_back(id);
  auto scalar = RankedTensorType::get({}, b.getI32Type());
  types.append(ids.size(), scalar);
  main =
      func::FuncOp::create(b, at(entry.offset), entry.name, FunctionType::get(context, types, {}));
  Block *block = main.addEntryBlock();
  b.setInsertionPointToEnd(block);
  SmallVector<SmallVector<Value>> arguments;
  unsigned next = 0;
  for (unsigned parameter : entry.parameters) {
    unsigned count = entry.instructions[parameter].shape.leaves();
    arguments.emplace_back(block->getArguments().slice(next, count));
    next += count;
  }
  for (StringRef id : ids)
    (id == "partition-id" ? partitionId : replicaId) = block->getArgument(next++);
  SmallVector<Value> results;
  if (failed(computation(entry, arguments, results)))
    return {};
  func::ReturnOp::create(b, at(entry.offset), results);
  main.setFunctionType(FunctionType::get(context, types, ValueRange(results).getTypes()));
  if (failed(verify(*result)))
    return {};
  return std::move(result);
}

static void load(MLIRContext *context) {
  DialectRegistry registry;
  registerHloImportDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
}

/// The graph of a module; a remark says what it holds.
static OwningOpRef<ModuleOp> import(Module &module, StringRef text, StringRef name,
                                    MLIRContext *context, HloReport &r) {
  OwningOpRef<ModuleOp> result = Importer(module, text, name, context, r).run();
  if (!result)
    return {};
  std::string kinds, opaque;
  for (auto &[kind, count] : r.collectives)
    kinds += llvm::formatv("{0}{1} {2}", kinds.empty() ? "" : ", ", count, kind);
  for (auto &[name, entry] : r.opaque)
    opaque += llvm::formatv("{0}{1} {2}", opaque.empty() ? "" : ", ", entry.instructions, name);
  double part = r.flops > 0 ? r.opaqueFlops() / r.flops * 100 : 0;
  emitRemark(UnknownLoc::get(context))
      << name << ": "
      << llvm::formatv("{0} instructions, {1} loops ({2} of unknown length); collectives: {3}; {4} "
                       "reduce_scatters "
                       "were all-reduces with slices; {5:e3} flops, {6:F3} % of them opaque; not "
                       "understood: {7}",
                       r.instructions, r.loops, r.loopsOfUnknownLength,
                       kinds.empty() ? "none" : kinds, r.scatters, r.flops, part,
                       opaque.empty() ? "nothing" : opaque);
  return result;
}

OwningOpRef<ModuleOp> mlir::ncclx::importHlo(StringRef text, StringRef name, MLIRContext *context,
                                             HloReport *report) {
  load(context);
  Fault fault;
  std::optional<Module> module = read(text, fault);
  HloReport own;
  if (!module) {
    SmallVector<size_t> lines;
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n')
        lines.push_back(i);
    emitError(placeOf(lines, name, fault.offset, context)) << fault.what;
    return {};
  }
  return import(*module, text, name, context, report ? *report : own);
}

OwningOpRef<ModuleOp> mlir::ncclx::importStableHlo(StringRef text, StringRef name,
                                                   MLIRContext *context, HloReport *report) {
  load(context);
  // Dialects that are not registered are read in a context of their own, whose errors are ours.
  MLIRContext apart(MLIRContext::Threading::DISABLED);
  apart.loadDialect<func::FuncDialect, arith::ArithDialect>();
  apart.allowUnregisteredDialects();
  auto ours = [&](Location loc) -> Location {
    if (auto place = dyn_cast<FileLineColLoc>(loc))
      return FileLineColLoc::get(context, name, place.getLine(), place.getColumn());
    return FileLineColLoc::get(context, name, 1, 1);
  };
  ScopedDiagnosticHandler forward(&apart, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      emitError(ours(diagnostic.getLocation())) << diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> source = parseSourceString<ModuleOp>(text, &apart, name);
  if (!source)
    return {};
  FailureOr<HloText> printed = printAsHlo(*source);
  if (failed(printed))
    return {};
  Fault fault;
  std::optional<Module> module = read(printed->text, fault);
  if (!module) {
    emitError(FileLineColLoc::get(context, name, 1, 1)) << "as HLO: " << fault.what;
    return {};
  }
  // Places in the text that was given, for whatever the importer has to say.
  SmallVector<size_t> begins = {0};
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n')
      begins.push_back(i + 1);
  auto offset = [&](Location loc) -> size_t {
    auto place = dyn_cast<FileLineColLoc>(loc);
    if (!place || place.getLine() < 1 || place.getLine() > begins.size())
      return 0;
    return std::min(text.size(), begins[place.getLine() - 1] + std::max(1u, place.getColumn()) - 1);
  };
  for (auto [computation, from] : llvm::zip(module->computations, printed->computations)) {
    computation.offset = offset(from.loc);
    for (auto [instruction, loc] : llvm::zip(computation.instructions, from.instructions))
      instruction.offset = offset(loc);
  }
  HloReport own;
  return import(*module, text, name, context, report ? *report : own);
}
