//===- StableHloText.cpp - StableHLO in generic form as HLO text
//--------------------------------===//
//
// StableHLO is HLO with regions: a function, and every region of an op, becomes a computation in
// front of the one that uses it; what a region takes from outside, an operand. Loops and branches
// hand on one tuple.
//
//===----------------------------------------------------------------------===//
#include "StableHloText.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx::hlo;

namespace {

std::string joined(ArrayRef<int64_t> numbers) {
  return llvm::join(llvm::map_range(numbers, [](int64_t n) { return std::to_string(n); }), ",");
}

/// An op's attribute, wherever the generic form has put it.
Attribute attribute(Operation *op, StringRef name) {
  if (Attribute found = op->getDiscardableAttr(name))
    return found;
  if (auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    return properties.get(name);
  return {};
}

/// The text of an attribute of the dialect, which has no registered form.
std::string textOf(Attribute attribute) {
  std::string text;
  if (attribute)
    llvm::raw_string_ostream(text) << attribute;
  return text;
}

/// As a string of HLO's.
std::string quoted(StringRef text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + '"';
}

/// Behind `key =` in such a text: "[1, 2]", or a number.
std::optional<SmallVector<int64_t>> keyed(StringRef text, StringRef key) {
  for (size_t at = text.find(key); at != StringRef::npos; at = text.find(key, at + 1)) {
    StringRef rest = text.substr(at + key.size()).ltrim();
    if ((at > 0 && (llvm::isAlnum(text[at - 1]) || text[at - 1] == '_')) ||
        !rest.consume_front("="))
      continue;
    rest = rest.ltrim();
    bool list = rest.consume_front("[");
    rest = list ? rest.split(']').first
                : rest.take_while([](char c) { return llvm::isDigit(c) || c == '-'; });
    SmallVector<int64_t> numbers;
    SmallVector<StringRef> words;
    rest.split(words, ',', -1, /*KeepEmpty=*/false);
    for (StringRef word : words)
      if (word.trim().getAsInteger(10, numbers.emplace_back()))
        return std::nullopt;
    return numbers;
  }
  return std::nullopt;
}

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
  std::optional<SmallVector<int64_t>> numbers(Operation *op, StringRef name) {
    Attribute found = attribute(op, name);
    if (auto array = dyn_cast_or_null<DenseI64ArrayAttr>(found))
      return SmallVector<int64_t>(array.asArrayRef());
    SmallVector<int64_t> list;
    if (auto number = dyn_cast_or_null<IntegerAttr>(found))
      return SmallVector<int64_t>{number.getInt()};
    if (auto dense = dyn_cast_or_null<DenseIntElementsAttr>(found)) {
      for (const APInt &value : dense.getValues<APInt>())
        list.push_back(value.getSExtValue());
      return list;
    }
    return std::nullopt;
  }
  /// ", name={...}" of an op's attribute, which it must have.
  LogicalResult give(Operation *op, StringRef from, StringRef as, std::string &text) {
    std::optional<SmallVector<int64_t>> list = numbers(op, from);
    if (!list)
      return op->emitError("needs '") << from << "'";
    text += (", " + as + "={" + joined(*list) + "}").str();
    return success();
  }
  LogicalResult attributes(Operation *op, StringRef kind, std::string &text);
  LogicalResult groups(Operation *op, StringRef from, StringRef as, std::string &text);
};

/// A number as HLO's literals have it.
std::string literal(Attribute value) {
  std::string text;
  if (auto number = dyn_cast<FloatAttr>(value)) {
    llvm::APFloat f = number.getValue();
    if (f.isNaN())
      return f.isNegative() ? "-nan" : "nan";
    if (f.isInfinity())
      return f.isNegative() ? "-inf" : "inf";
    SmallString<32> digits;
    f.toString(digits, /*FormatPrecision=*/0, /*FormatMaxPadding=*/0);
    return digits.str().str();
  }
  auto number = cast<IntegerAttr>(value);
  if (number.getType().isInteger(1))
    return number.getValue().isZero() ? "false" : "true";
  SmallString<32> digits;
  number.getValue().toString(digits, 10, /*Signed=*/!number.getType().isUnsignedInteger());
  return digits.str().str();
}

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

LogicalResult Printer::groups(Operation *op, StringRef from, StringRef as, std::string &text) {
  auto lists = dyn_cast_or_null<DenseIntElementsAttr>(attribute(op, from));
  auto type = lists ? dyn_cast<RankedTensorType>(lists.getType()) : RankedTensorType();
  if (!type || type.getRank() != 2)
    return op->emitError("needs a list of lists of ids in '") << from << "'";
  text += (", " + as + "={").str();
  SmallVector<APInt> ids(lists.getValues<APInt>());
  for (int64_t i = 0; i < type.getDimSize(0); ++i) {
    SmallVector<int64_t> list;
    for (int64_t j = 0; j < type.getDimSize(1); ++j)
      if (int64_t id = ids[i * type.getDimSize(1) + j].getSExtValue();
          id >= 0) // shorter ones are filled with -1
        list.push_back(id);
    text += (i ? ",{" : "{") + joined(list) + "}";
  }
  text += "}";
  return success();
}

/// What stands behind an instruction's operands.
LogicalResult Printer::attributes(Operation *op, StringRef kind, std::string &text) {
  bool collective = llvm::StringSwitch<bool>(kind)
                        .Cases({"all_gather", "all_reduce", "reduce_scatter", "all_to_all"}, true)
                        .Cases({"collective_permute", "collective_broadcast"}, true)
                        .Default(false);
  if (collective) {
    bool pairs = kind == "collective_permute";
    if (failed(groups(op, pairs ? "source_target_pairs" : "replica_groups",
                      pairs ? "source_target_pairs" : "replica_groups", text)))
      return failure();
    if (std::optional<SmallVector<int64_t>> handle =
            keyed(textOf(attribute(op, "channel_handle")), "handle");
        handle && handle->size() == 1 && handle->front() > 0)
      text += ", channel_id=" + std::to_string(handle->front());
    if (attribute(op, "use_global_device_ids"))
      text += ", use_global_device_ids=true";
  }
  if (kind == "all_gather")
    return give(op, "all_gather_dim", "dimensions", text);
  if (kind == "reduce_scatter" && failed(give(op, "scatter_dimension", "dimensions", text)))
    return failure();
  if (kind == "all_to_all")
    return give(op, "split_dimension", "dimensions", text);
  if (kind == "reduce" && failed(give(op, "dimensions", "dimensions", text)))
    return failure();
  if (kind == "all_reduce" || kind == "reduce_scatter" || kind == "reduce") {
    std::string name;
    if (op->getNumRegions() != 1 || failed(reducer(op->getRegion(0), name)))
      return op->emitError("needs a region that combines two numbers");
    text += ", to_apply=%" + name;
    return success();
  }
  if (kind == "transpose")
    return give(op, "permutation", "dimensions", text);
  if (kind == "concatenate")
    return give(op, "dimension", "dimensions", text);
  if (kind == "iota")
    return give(op, "iota_dimension", "iota_dimension", text);
  if (kind == "dynamic_slice")
    return give(op, "slice_sizes", "dynamic_slice_sizes", text);
  if (kind == "get_tuple_element") {
    std::optional<SmallVector<int64_t>> index = numbers(op, "index");
    text += ", index=" + joined(index.value_or(SmallVector<int64_t>()));
    return success();
  }
  if (kind == "compare") {
    std::string how = textOf(attribute(op, "comparison_direction"));
    for (StringRef direction : {"EQ", "NE", "LE", "LT", "GE", "GT"})
      if (StringRef(how).contains(direction))
        text += (", direction=" + direction).str();
    if (StringRef(textOf(attribute(op, "compare_type"))).contains("TOTALORDER"))
      text += ", type=TOTALORDER";
    return success();
  }
  if (kind == "slice" || kind == "pad") {
    bool slice = kind == "slice";
    std::optional<SmallVector<int64_t>> low =
        numbers(op, slice ? "start_indices" : "edge_padding_low");
    std::optional<SmallVector<int64_t>> high =
        numbers(op, slice ? "limit_indices" : "edge_padding_high");
    std::optional<SmallVector<int64_t>> step = numbers(op, slice ? "strides" : "interior_padding");
    if (!low || !high || !step || low->size() != high->size() || low->size() != step->size())
      return op->emitError("needs its three lists of numbers, of one length");
    text += slice ? ", slice={" : ", padding=";
    for (size_t i = 0; i < low->size(); ++i)
      text +=
          slice
              ? llvm::formatv("{0}[{1}:{2}:{3}]", i ? ", " : "", (*low)[i], (*high)[i], (*step)[i])
                    .str()
              : llvm::formatv("{0}{1}_{2}_{3}", i ? "x" : "", (*low)[i], (*high)[i], (*step)[i])
                    .str();
    text += slice ? "}" : "";
    return success();
  }
  if (kind == "dot_general" || kind == "dot") {
    std::string numbers = textOf(attribute(op, "dot_dimension_numbers"));
    auto side = [&](StringRef key, StringRef as) {
      std::optional<SmallVector<int64_t>> dims = keyed(numbers, key);
      if (dims && !dims->empty())
        text += (", " + as + "={" + joined(*dims) + "}").str();
    };
    if (kind == "dot") { // of vectors or matrices: the last by the first
      int64_t rank = cast<ShapedType>(op->getOperand(0).getType()).getRank();
      text += ", lhs_contracting_dims={" + std::to_string(rank - 1) + "}, rhs_contracting_dims={0}";
      return success();
    }
    side("lhs_batching_dimensions", "lhs_batch_dims");
    side("rhs_batching_dimensions", "rhs_batch_dims");
    side("lhs_contracting_dimensions", "lhs_contracting_dims");
    side("rhs_contracting_dimensions", "rhs_contracting_dims");
    return success();
  }
  if (kind == "custom_call") {
    auto target = dyn_cast_or_null<StringAttr>(attribute(op, "call_target_name"));
    text += ", custom_call_target=" + quoted(target ? target.getValue() : "");
    if (auto effect = dyn_cast_or_null<BoolAttr>(attribute(op, "has_side_effect"));
        effect && effect.getValue())
      text += ", custom_call_has_side_effect=true";
    for (StringRef name : {"backend_config", "mhlo.backend_config"})
      if (Attribute config = attribute(op, name)) {
        auto words = dyn_cast<StringAttr>(config);
        text += ", backend_config=" + quoted(words ? words.getValue() : StringRef(textOf(config)));
        break;
      }
  }
  return success();
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
  if (failed(attributes(op, kind, text)))
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
