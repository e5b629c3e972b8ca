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
