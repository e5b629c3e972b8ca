//===- Topology.cpp - #ncclx.topology -------------------------------------===//
#include "ncclx/NCCLX/Topology.h"
#include "ncclx/NCCLX/Branches.h"
#include "ncclx/NCCLX/Hints.h"
#include "ncclx/NCCLX/Sizes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::ncclx;

/// The attribute as JSON; std::nullopt, and `stranger` is what JSON cannot say.
static std::optional<llvm::json::Value> toJson(Attribute attribute, Attribute &stranger) {
  using Result = std::optional<llvm::json::Value>;
  return llvm::TypeSwitch<Attribute, Result>(attribute)
      .Case([&](DictionaryAttr dictionary) -> Result {
        llvm::json::Object object;
        for (NamedAttribute entry : dictionary) {
          Result value = toJson(entry.getValue(), stranger);
          if (!value)
            return std::nullopt;
          object[llvm::json::fixUTF8(entry.getName().strref())] = std::move(*value);
        }
        return std::move(object);
      })
      .Case([&](ArrayAttr list) -> Result {
        llvm::json::Array array;
        for (Attribute element : list) {
          Result value = toJson(element, stranger);
          if (!value)
            return std::nullopt;
          array.push_back(std::move(*value));
        }
        return std::move(array);
      })
      .Case([](StringAttr text) -> Result { return llvm::json::fixUTF8(text.getValue()); })
      .Case([](BoolAttr flag) -> Result { return flag.getValue(); })
      .Case([](UnitAttr) -> Result { return true; })
      .Case([&](IntegerAttr number) -> Result {
        if (number.getValue().getSignificantBits() <= 64)
          return number.getValue().getSExtValue();
        stranger = number;
        return std::nullopt;
      })
      .Default([&](Attribute other) -> Result {
        stranger = other;
        return std::nullopt;
      });
}

static topology::ReadResult read(DictionaryAttr description) {
  topology::ReadResult result;
  Attribute stranger;
  std::optional<llvm::json::Value> value = toJson(description, stranger);
  if (!value) {
    std::string message = "holds an attribute that is no string, whole number, flag, array or "
                          "dictionary: ";
    llvm::raw_string_ostream(message) << stranger;
    result.diagnostics.push_back({topology::Severity::error, "", 0, "type", std::move(message)});
    return result;
  }
  llvm::json::Object &object = *value->getAsObject();
  object.try_emplace("format", "ncclx-topology");
  object.try_emplace("version", 1);
  std::string text;
  llvm::raw_string_ostream(text) << *value;
  result = topology::readJson(text, "topology");
  for (topology::Diagnostic &diagnostic : result.diagnostics)
    diagnostic.line = 0; // of a text that nobody sees
  return result;
}

topology::ReadResult mlir::ncclx::readTopology(TopologyAttr attribute) {
  return read(attribute.getDescription());
}

LogicalResult TopologyAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                   DictionaryAttr description) {
  for (const topology::Diagnostic &diagnostic : read(description).diagnostics)
    if (diagnostic.severity == topology::Severity::error) {
      InFlightDiagnostic error = emitError();
      error << "topology";
      if (!diagnostic.path.empty())
        error << " at " << diagnostic.path;
      return error << ": " << diagnostic.message << " [" << diagnostic.rule << "]";
    }
  return success();
}

/// schedule S1.
static LogicalResult verifyScheduleAttr(Operation *op, Attribute value) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective)
    return op->emitOpError("names a schedule, but only collectives may");
  if (!isa<FlatSymbolRefAttr>(value))
    return op->emitOpError("names a schedule by ") << value << ", expected a symbol";
  if (collective.getAlgorithm())
    return op->emitOpError("names a schedule and an algorithm, expected one of them");
  return success();
}

/// chunks S1.
static LogicalResult verifyChunksAttr(Operation *op, Attribute value) {
  if (!isa<CollectiveOpInterface>(op))
    return op->emitOpError("has ") << chunksAttrName << ", but only collectives may";
  auto chunks = dyn_cast<IntegerAttr>(value);
  if (!chunks || !chunks.getType().isInteger(64) || chunks.getInt() < 1)
    return op->emitOpError("has ")
           << chunksAttrName << " = " << value << ", expected a positive i64";
  return success();
}

/// rounds R1 and R2.
static LogicalResult verifyRoundsAttr(Operation *op, Attribute value) {
  if (!isa<CollectiveOpInterface>(op))
    return op->emitOpError("has rounds, but only collectives may");
  auto words = dyn_cast<DictionaryAttr>(value);
  auto isNumber = [&](StringRef word, int64_t least) {
    auto number = words.getAs<IntegerAttr>(word);
    return number && number.getType().isSignlessInteger(64) && number.getInt() >= least;
  };
  bool hasDepth = words && words.contains("depth");
  if (words && words.size() == (hasDepth ? 2 : 1) && isNumber("chunks", 1) &&
      (!hasDepth || isNumber("depth", 0)))
    return success();
  return op->emitOpError("has rounds ")
         << value << ", expected chunks, an i64 of at least 1, and perhaps a depth, one of at "
         << "least 0";
}

/// No number of the hint is of use beyond this.
static constexpr int64_t mostOfTrees = 1 << 20;

/// trees T1 and T2.
static LogicalResult verifyTreesAttr(Operation *op, Attribute value) {
  if (!isa<CollectiveOpInterface>(op))
    return op->emitOpError("has ") << treesAttrName << ", but only collectives may";
  auto words = dyn_cast<DictionaryAttr>(value);
  bool isGood = words && llvm::all_of(words, [](NamedAttribute word) {
                  StringRef name = word.getName();
                  auto number = dyn_cast<IntegerAttr>(word.getValue());
                  bool mayBeNone = name == "slack";
                  return number && number.getType().isSignlessInteger(64) &&
                         (name == "lanes" || name == "rounds" || name == "copies" ||
                          name == "turns" || name == "slack") &&
                         number.getInt() >= (mayBeNone ? 0 : 1) && number.getInt() <= mostOfTrees;
                });
  if (isGood)
    return success();
  return op->emitOpError("has ")
         << treesAttrName << " = " << value
         << ", expected lanes, rounds, copies, turns and slack, each an i64 from 1 (slack: 0) to "
         << mostOfTrees << " or left out";
}

/// branches B1.
static LogicalResult verifyBranchesAttr(Operation *op, Attribute value) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  auto names = dyn_cast<ArrayAttr>(value);
  if (!function)
    return op->emitOpError("has ") << branchesAttrName << ", but only functions choose";
  if (!names || names.size() < 2 || !llvm::all_of(names, llvm::IsaPred<FlatSymbolRefAttr>))
    return op->emitOpError("has branches ") << value << ", expected at least two symbols";
  return success();
}

LogicalResult NCCLXDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  if (attr.getName() == getScheduleAttrName())
    return verifyScheduleAttr(op, attr.getValue());
  if (attr.getName() == chunksAttrName)
    return verifyChunksAttr(op, attr.getValue());
  if (attr.getName() == roundsAttrName)
    return verifyRoundsAttr(op, attr.getValue());
  if (attr.getName() == treesAttrName)
    return verifyTreesAttr(op, attr.getValue());
  if (attr.getName() == kSizesAttrName)
    return verifySizesAttr(op, attr.getValue());
  if (attr.getName() == branchesAttrName)
    return verifyBranchesAttr(op, attr.getValue());
  if (attr.getName() == stagesAttrName)
    return verifyStagesAttr(op, attr.getValue());
  if (attr.getName() != getTopologyAttrName())
    return success();
  if (!isa<ModuleOp>(op))
    return op->emitOpError("has ") << attr.getName() << ", but only modules may";
  if (!isa<TopologyAttr>(attr.getValue()))
    return op->emitOpError() << attr.getName() << " must be an #ncclx.topology, but is "
                             << attr.getValue();
  return success();
}
