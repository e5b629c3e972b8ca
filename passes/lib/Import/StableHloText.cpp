//===- StableHloText.cpp - StableHLO in generic form as HLO text --------------------------===//
//
// StableHLO is HLO with regions: a function, and every region of an op, becomes a computation in
// front of the one that uses it; what a region takes from outside, an operand. Loops and branches
// hand on one tuple.
//
//===----------------------------------------------------------------------===//
#include "StableHloText.h"
#include "StableHloAttributes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx::hlo;

namespace {

class Printer {
public:
  explicit Printer(ModuleOp module) : module(module) {}

  FailureOr<HloText> run() {
    auto count = [&](StringRef what) -> int64_t {
      for (std::string dialect : {"mhlo.", "stablehlo."})
        if (auto number = module->getAttrOfType<IntegerAttr>(dialect + what.str()))
          return number.getInt();
      return 0;
    };
    std::string name = module.getName().value_or("module").str();
    out.text = "HloModule " + word(name);
    if (int64_t replicas = count("num_replicas"))
      out.text += ", replica_count=" + std::to_string(replicas);
    if (int64_t partitions = count("num_partitions"))
      out.text += ", num_partitions=" + std::to_string(partitions);
    out.text += "\n";
    auto main = module.lookupSymbol<func::FuncOp>("main");
    for (func::FuncOp f : module.getOps<func::FuncOp>())
      if (!main && !f.isPrivate() && !f.isExternal())
        main = f;
    if (!main || main.isExternal())
      return module.emitError("has no function @main, and no other public one with a body");
    entry = main;
    std::string ignored;
    if (failed(function(main, ignored)))
      return failure();
    return std::move(out);
  }

private:
  /// A computation on its way: instructions by line.
  struct Scope {
    llvm::DenseMap<Value, std::string> names;
    std::vector<std::string> lines;
    std::vector<Location> locs;
    llvm::StringMap<size_t> line; ///< of a name
  };

  ModuleOp module;
  HloText out;
  func::FuncOp entry;
  llvm::DenseMap<Operation *, std::string>
      functions; ///< those that are printed, or empty: on the way
  unsigned counter = 0;

  static std::string word(StringRef text) {
    std::string result;
    for (char c : text)
      result += llvm::isAlnum(c) || c == '_' || c == '.' ? c : '_';
    return result.empty() || llvm::isDigit(result[0]) ? "m" + result : result;
  }

  LogicalResult shape(Location loc, Type type, std::string &text) {
    if (auto tuple = dyn_cast<TupleType>(type)) {
      text = "(";
      for (Type part : tuple.getTypes()) {
        std::string inner;
        if (failed(shape(loc, part, inner)))
          return failure();
        text += (text.size() > 1 ? ", " : "") + inner;
      }
      text += ")";
      return success();
    }
    std::string shown;
    llvm::raw_string_ostream(shown) << type;
    if (StringRef(shown).ends_with("stablehlo.token") || StringRef(shown).ends_with("mhlo.token")) {
      text = "token[]";
      return success();
    }
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return emitError(loc) << "expected tensors of static shape, found " << type;
    Type element = tensor.getElementType();
    if (auto integer = dyn_cast<IntegerType>(element)) {
      unsigned bits = integer.getWidth();
      text = bits == 1 ? "pred" : (integer.isUnsigned() ? "u" : "s") + std::to_string(bits);
    } else if (auto complex = dyn_cast<ComplexType>(element)) {
      text = complex.getElementType().isF32() ? "c64" : "c128";
    } else if (isa<FloatType>(element)) {
      llvm::raw_string_ostream(text) << element;
      text = StringRef(text).lower();
    } else {
      return emitError(loc) << "HLO has no elements of type " << element;
    }
    text += "[" + joined(tensor.getShape()) + "]";
    return success();
  }
  /// Of several values a tuple.
  LogicalResult shape(Location loc, TypeRange types, std::string &text, bool tuple) {
    if (!tuple)
      return shape(loc, types[0], text);
    return shape(loc, TupleType::get(module.getContext(), SmallVector<Type>(types)), text);
  }

  std::string add(Scope &scope, Location loc, const std::string &shape, const std::string &what) {
    std::string name = "%v" + std::to_string(counter++);
    scope.line[name] = scope.lines.size();
    scope.lines.push_back(name + " = " + shape + " " + what);
    scope.locs.push_back(loc);
    return name;
  }
  FailureOr<std::string> add(Scope &scope, Location loc, Type type, const std::string &what) {
    std::string text;
    if (failed(shape(loc, type, text)))
      return failure();
    return add(scope, loc, text, what);
  }

  FailureOr<std::string> nameOf(Scope &scope, Value value, Location use) {
    auto it = scope.names.find(value);
    if (it != scope.names.end())
      return it->second;
    // A constant from outside is said again: what counts by it stays countable.
    if (Operation *def = value.getDefiningOp(); def && isConstant(def)) {
      if (failed(constant(scope, def)))
        return failure();
      return scope.names[value];
    }
    return emitError(use) << "takes a value from outside of its region, which is no constant";
  }
  FailureOr<std::string> list(Scope &scope, ValueRange values, Location use) {
    std::string text;
    for (Value value : values) {
      FailureOr<std::string> name = nameOf(scope, value, use);
      if (failed(name))
        return failure();
      text += (text.empty() ? "" : ", ") + *name;
    }
    return text;
  }

  /// Writes a computation whose root is these values, or a tuple of them.
  LogicalResult finish(Scope &scope, Location loc, ValueRange results, bool tuple,
                       const std::string &name, bool isEntry = false) {
    FailureOr<std::string> operands = list(scope, results, loc);
    std::string text, root;
    if (failed(operands))
      return failure();
    if (tuple || results.size() != 1) {
      if (failed(shape(loc, results.getTypes(), text, true)))
        return failure();
      root = add(scope, loc, text, "tuple(" + *operands + ")");
    } else {
      root = *operands;
    }
    std::string &line = scope.lines[scope.line[root]];
    line = "ROOT " + line;
    out.text += (isEntry ? "\nENTRY %" : "\n%") + name + " {\n";
    for (const std::string &each : scope.lines)
      out.text += "  " + each + "\n";
    out.text += "}\n";
    out.computations.push_back({loc, std::move(scope.locs)});
    return success();
  }

  LogicalResult parameters(Scope &scope, Location loc, ValueRange values) {
    for (auto [i, value] : llvm::enumerate(values)) {
      FailureOr<std::string> name =
          add(scope, value.getLoc(), value.getType(), llvm::formatv("parameter({0})", i).str());
      if (failed(name))
        return failure();
      scope.names[value] = *name;
    }
    return success();
  }
  /// One parameter: a tuple of what `values` are.
  LogicalResult tupleParameter(Scope &scope, Location loc, ValueRange values) {
    std::string text;
    if (failed(shape(loc, values.getTypes(), text, true)))
      return failure();
    std::string parameter = add(scope, loc, text, "parameter(0)");
    return elements(scope, loc, parameter, values);
  }
  LogicalResult elements(Scope &scope, Location loc, const std::string &tuple, ValueRange values) {
    for (auto [i, value] : llvm::enumerate(values)) {
      FailureOr<std::string> name =
          add(scope, loc, value.getType(),
              llvm::formatv("get-tuple-element({0}), index={1}", tuple, i).str());
      if (failed(name))
        return failure();
      scope.names[value] = *name;
    }
    return success();
  }

  LogicalResult function(func::FuncOp f, std::string &name) {
    auto [it, isNew] = functions.try_emplace(f, "");
    if (!isNew) {
      name = it->second;
      return name.empty() ? f.emitError("calls itself") : success();
    }
    if (!llvm::hasSingleElement(f.getBody()))
      return f.emitError("needs a body of one block");
    Scope scope;
    Block &body = f.getBody().front();
    if (failed(parameters(scope, f.getLoc(), body.getArguments())) || failed(block(scope, body)))
      return failure();
    name = word(f.getName()) + "." + std::to_string(counter++);
    functions[f] = name;
    return finish(scope, f.getLoc(), body.back().getOperands(), false, name, f == entry);
  }
  /// A region on scalars: what a reduction does with two of them.
  LogicalResult reducer(Region &region, std::string &name) {
    Location loc = region.getLoc();
    if (!llvm::hasSingleElement(region))
      return emitError(loc) << "needs a region of one block";
    Scope scope;
    if (failed(parameters(scope, loc, region.front().getArguments())) ||
        failed(block(scope, region.front())))
      return failure();
    name = "region." + std::to_string(counter++);
    return finish(scope, loc, region.front().back().getOperands(), false, name);
  }
  /// What a region takes from outside; constants are said again.
  SmallVector<Value> takenBy(MutableArrayRef<Region> regions) {
    llvm::SetVector<Value> values;
    for (Region &region : regions)
      getUsedValuesDefinedAbove(region, values);
    SmallVector<Value> list;
    for (Value value : values)
      if (Operation *def = value.getDefiningOp(); !def || !isConstant(def))
        list.push_back(value);
    return list;
  }

  static StringRef kindOf(Operation *op) {
    StringRef name = op->getName().getStringRef();
    return name.consume_front("stablehlo.") || name.consume_front("mhlo.") ? name : StringRef();
  }
  static bool isConstant(Operation *op) {
    return kindOf(op) == "constant" || op->getName().getStringRef() == "arith.constant";
  }

  LogicalResult block(Scope &scope, Block &block) {
    // The last op is what the block gives, by whatever name: it is not known to be a terminator.
    if (block.empty())
      return emitError(block.getParent()->getLoc()) << "a block is empty";
    for (Operation &op : llvm::drop_end(block))
      if (failed(operation(scope, &op)))
        return failure();
    return success();
  }

  LogicalResult constant(Scope &scope, Operation *op);
  LogicalResult operation(Scope &scope, Operation *op);
  LogicalResult whileLoop(Scope &scope, Operation *op);
  LogicalResult branches(Scope &scope, Operation *op);
  LogicalResult broadcast(Scope &scope, Operation *op);
  /// Names of the results of an instruction, taken out of its tuple where there are several.
  LogicalResult results(Scope &scope, Operation *op, const std::string &what) {
    std::string text;
    bool tuple = op->getNumResults() != 1;
    if (failed(shape(op->getLoc(), op->getResultTypes(), text, tuple)))
      return failure();
    std::string name = add(scope, op->getLoc(), text, what);
    if (tuple)
      return elements(scope, op->getLoc(), name, op->getResults());
    scope.names[op->getResult(0)] = name;
    return success();
  }
};

LogicalResult Printer::constant(Scope &scope, Operation *op) {
  constexpr int64_t kMost = 1 << 20; ///< elements that are written out
  Value result = op->getResult(0);
  auto type = dyn_cast<RankedTensorType>(result.getType());
  auto values = dyn_cast_or_null<DenseElementsAttr>(attribute(op, "value"));
  if (!type || !type.hasStaticShape())
    return op->emitError("expected a tensor of static shape");
  bool plain = values && type.getElementType().isIntOrFloat();
  std::string text = "...";
  if (plain && (values.isSplat() || type.getNumElements() <= kMost)) {
    text.clear();
    if (values.isSplat() && type.getRank() > 0) { // one number, everywhere
      FailureOr<std::string> scalar =
          add(scope, op->getLoc(), RankedTensorType::get({}, type.getElementType()),
              "constant(" + literal(values.getSplatValue<Attribute>()) + ")");
      if (failed(scalar))
        return failure();
      return results(scope, op, "broadcast(" + *scalar + "), dimensions={}");
    }
    for (Attribute value : values.getValues<Attribute>())
      text += (text.empty() ? "" : ", ") + literal(value);
  }
  if (type.getRank() > 0)
    text = "{" + text + "}";
  return results(scope, op, "constant(" + text + ")");
}

LogicalResult Printer::whileLoop(Scope &scope, Operation *op) {
  Location loc = op->getLoc();
  if (op->getNumRegions() != 2 || !llvm::hasSingleElement(op->getRegion(0)) ||
      !llvm::hasSingleElement(op->getRegion(1)))
    return op->emitError("needs two regions of one block");
  // What it takes from outside is carried as it is.
  SmallVector<Value> taken = takenBy(op->getRegions());
  std::string names[2];
  for (int i : {0, 1}) {
    Block &body = op->getRegion(i).front();
    Scope inner;
    SmallVector<Value> state(body.getArguments());
    state.append(taken);
    if (failed(tupleParameter(inner, loc, state)) || failed(block(inner, body)))
      return failure();
    SmallVector<Value> made(body.back().getOperands());
    if (i == 1)
      made.append(taken);
    names[i] = "loop." + std::to_string(counter++);
    if (failed(finish(inner, loc, made, i == 1, names[i])))
      return failure();
  }
  SmallVector<Value> inits(op->getOperands());
  inits.append(taken);
  FailureOr<std::string> operands = list(scope, inits, loc);
  std::string text;
  if (failed(operands) || failed(shape(loc, ValueRange(inits).getTypes(), text, true)))
    return failure();
  std::string tuple = add(scope, loc, text, "tuple(" + *operands + ")");
  std::string made =
      add(scope, loc, text, "while(" + tuple + "), condition=%" + names[0] + ", body=%" + names[1]);
  return elements(scope, loc, made, op->getResults());
}

LogicalResult Printer::branches(Scope &scope, Operation *op) {
  Location loc = op->getLoc();
  SmallVector<Value> taken = takenBy(op->getRegions());
  std::string names, operands, text;
  FailureOr<std::string> used = list(scope, taken, loc);
  FailureOr<std::string> selector = list(scope, op->getOperands(), loc);
  if (failed(used) || failed(selector) ||
      failed(shape(loc, ValueRange(taken).getTypes(), text, true)))
    return failure();
  std::string tuple = add(scope, loc, text, "tuple(" + *used + ")");
  bool many = op->getNumResults() != 1;
  for (Region &region : op->getRegions()) {
    if (!llvm::hasSingleElement(region))
      return op->emitError("needs regions of one block");
    Scope inner;
    if (failed(tupleParameter(inner, loc, taken)) || failed(block(inner, region.front())))
      return failure();
    std::string name = "branch." + std::to_string(counter++);
    if (failed(finish(inner, loc, region.front().back().getOperands(), many, name)))
      return failure();
    names += (names.empty() ? "%" : ", %") + name;
    operands += ", " + tuple;
  }
  std::string how = kindOf(op) == "if"
                        ? ", true_computation=" + StringRef(names).split(", ").first.str() +
                              ", false_computation=" + StringRef(names).split(", ").second.str()
                        : ", branch_computations={" + names + "}";
  return results(scope, op, "conditional(" + *selector + operands + ")" + how);
}

/// In HLO no dimension of size 1 grows: it is left out first.
LogicalResult Printer::broadcast(Scope &scope, Operation *op) {
  auto from = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  std::optional<SmallVector<int64_t>> dims = numbers(op, "broadcast_dimensions");
  FailureOr<std::string> operand = list(scope, op->getOperand(0), op->getLoc());
  if (!from || !to || !dims || int64_t(dims->size()) != from.getRank() || failed(operand) ||
      llvm::any_of(*dims, [&](int64_t d) { return d < 0 || d >= to.getRank(); }))
    return op->emitError(
        "needs a dimension of the result for each of its operand's in 'broadcast_dimensions'");
  SmallVector<int64_t> kept, sizes;
  for (auto [i, dim] : llvm::enumerate(*dims))
    if (from.getDimSize(i) == to.getDimSize(dim)) {
      kept.push_back(dim);
      sizes.push_back(from.getDimSize(i));
    } else if (from.getDimSize(i) != 1) {
      return op->emitError("dimension ") << i << " of size " << from.getDimSize(i)
                                         << " does not become one of " << to.getDimSize(dim);
    }
  if (kept.size() != dims->size()) {
    operand = add(scope, op->getLoc(), RankedTensorType::get(sizes, from.getElementType()),
                  "reshape(" + *operand + ")");
    if (failed(operand))
      return failure();
  }
  return results(scope, op, "broadcast(" + *operand + "), dimensions={" + joined(kept) + "}");
}

LogicalResult Printer::operation(Scope &scope, Operation *op) {
  StringRef kind = kindOf(op);
  if (isConstant(op))
    return constant(scope, op);
  if (kind == "while")
    return whileLoop(scope, op);
  if (kind == "if" || kind == "case")
    return branches(scope, op);
  FailureOr<std::string> operands = list(scope, op->getOperands(), op->getLoc());
  if (failed(operands))
    return failure();
  std::string text;
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    std::string name;
    if (!callee)
      return op->emitError("calls @") << call.getCallee() << ", which is not defined";
    if (callee.isExternal())
      return results(scope, op,
                     "custom-call(" + *operands + "), custom_call_target=\"" +
                         word(call.getCallee()) + "\", custom_call_has_side_effect=true");
    if (failed(function(callee, name)))
      return failure();
    return results(scope, op, "call(" + *operands + "), to_apply=%" + name);
  }
  if (kind == "broadcast_in_dim")
    return broadcast(scope, op);
  if (kind == "optimization_barrier") {
    for (auto [operand, result] : llvm::zip(op->getOperands(), op->getResults()))
      scope.names[result] = scope.names[operand];
    return success();
  }
  // Where rows go from one dimension to another HLO has no word: a kernel of unknown effects.
  if (kind == "all_to_all" && (numbers(op, "split_dimension") != numbers(op, "concat_dimension") ||
                               op->getNumResults() != 1))
    return results(scope, op,
                   "custom-call(" + *operands +
                       "), custom_call_target=\"all_to_all\", custom_call_has_side_effect=true");
  auto combiner = [&](Region &region, std::string &name) { return reducer(region, name); };
  if (failed(attributesOf(op, kind, combiner, text)))
    return failure();
  std::string opcode = kind == "dot_general" ? "dot" : kind.str();
  if (kind.empty()) { // of another dialect: whatever it is, with whatever effects
    text = ", custom_call_target=\"" + word(op->getName().getStringRef()) +
           "\", custom_call_has_side_effect=true";
    opcode = "custom-call";
  }
  llvm::replace(opcode, '_', '-');
  return results(scope, op, opcode + "(" + *operands + ")" + text);
}

} // namespace

FailureOr<HloText> mlir::ncclx::hlo::printAsHlo(ModuleOp module) { return Printer(module).run(); }
