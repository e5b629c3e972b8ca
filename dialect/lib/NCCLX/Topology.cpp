//===- Topology.cpp - #ncclx.topology -------------------------------------===//
#include "ncclx/NCCLX/Topology.h"

#include "mlir/IR/Builders.h"
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
