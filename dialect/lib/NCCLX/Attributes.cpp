//===- Attributes.cpp - What modules, functions and ops may carry -------------------------===//
#include "ncclx/NCCLX/Branches.h"
#include "ncclx/NCCLX/Hints.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/NCCLX/Sizes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ncclx;

Pipeline Pipeline::of(Operation *op) {
  Pipeline asked;
  auto words = op->getAttrOfType<DictionaryAttr>(pipelineAttrName);
  auto number = [&](StringRef word, std::optional<int64_t> &value) {
    if (auto given = words ? words.getAs<IntegerAttr>(word) : IntegerAttr())
      value = given.getInt();
  };
  number("chunks", asked.chunks);
  number("depth", asked.depth);
  return asked;
}

NamedAttribute Pipeline::hint(MLIRContext *context) const {
  Builder b(context);
  NamedAttrList words;
  if (chunks)
    words.set("chunks", b.getI64IntegerAttr(*chunks));
  if (depth)
    words.set("depth", b.getI64IntegerAttr(*depth));
  return b.getNamedAttr(pipelineAttrName, words.getDictionary(context));
}

namespace {

/// A word of a hint, and the i64 that it may be.
struct Word {
  StringRef name;
  int64_t least, most;

  std::string range() const {
    return "an i64 " + (most == std::numeric_limits<int64_t>::max()
                            ? "of at least " + std::to_string(least)
                            : "from " + std::to_string(least) + " to " + std::to_string(most));
  }
};

} // namespace

/// The rules of a hint: on a collective, a dictionary of some of these words.
static LogicalResult verifyHint(Operation *op, NamedAttribute hint, ArrayRef<Word> known) {
  StringRef name = hint.getName();
  if (!isa<CollectiveOpInterface>(op))
    return op->emitOpError("has ") << name << ", but only collectives may";
  auto expected = [&](InFlightDiagnostic &&error) {
    error << ", expected ";
    llvm::interleaveComma(known, error,
                          [&](const Word &word) { error << word.name << ", " << word.range(); });
    return LogicalResult(error << ", or some of them");
  };
  auto words = dyn_cast<DictionaryAttr>(hint.getValue());
  if (!words || words.empty())
    return expected(op->emitOpError("has ") << name << " = " << hint.getValue());
  for (NamedAttribute word : words) {
    StringRef spelt = word.getName();
    const auto *is = llvm::find_if(known, [&](const Word &one) { return one.name == spelt; });
    if (is == known.end())
      return expected(op->emitOpError("has ")
                      << name << " with the unknown word '" << spelt << "'");
    auto number = dyn_cast<IntegerAttr>(word.getValue());
    if (!number || !number.getType().isSignlessInteger(64) || number.getInt() < is->least ||
        number.getInt() > is->most)
      return op->emitOpError("has ") << name << " with " << spelt << " = " << word.getValue()
                                     << ", expected " << is->range();
  }
  return success();
}

/// pipeline P1 and P2.
static LogicalResult verifyPipelineAttr(Operation *op, NamedAttribute hint) {
  constexpr int64_t any = std::numeric_limits<int64_t>::max();
  return verifyHint(op, hint, {{"chunks", 1, any}, {"depth", 0, any}});
}

/// trees T1 and T2.
static LogicalResult verifyTreesAttr(Operation *op, NamedAttribute hint) {
  constexpr int64_t most = 1 << 20; // no number of the hint is of use beyond this
  return verifyHint(op, hint,
                    {{"lanes", 1, most},
                     {"rounds", 1, most},
                     {"copies", 1, most},
                     {"turns", 1, most},
                     {"slack", 0, most}});
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

static LogicalResult verifyTopologyAttr(Operation *op, Attribute value) {
  StringRef name = NCCLXDialect::getTopologyAttrName();
  if (!isa<ModuleOp>(op))
    return op->emitOpError("has \"") << name << "\", but only modules may";
  if (!isa<TopologyAttr>(value))
    return op->emitOpError() << "\"" << name << "\" must be an #ncclx.topology, but is " << value;
  return success();
}

/// Other rooms read these, and what is not of their form is nothing to them: here it is an error.
static LogicalResult verifyUnit(Operation *op, NamedAttribute attr) {
  if (isa<UnitAttr>(attr.getValue()))
    return success();
  return op->emitOpError("has ") << attr.getName().getValue() << " = " << attr.getValue()
                                 << ", expected a unit attribute";
}

static LogicalResult verifySmsAttr(Operation *op, Attribute value) {
  auto sms = dyn_cast<IntegerAttr>(value);
  if (sms && sms.getType().isSignlessInteger(64) && sms.getInt() >= 1)
    return success();
  return op->emitOpError("has ") << kSmsAttrName << " = " << value
                                 << ", expected an i64 of at least 1: multiprocessors";
}

static LogicalResult verifyCutAttr(Operation *op, Attribute value) {
  if (!isa<CallOp>(op))
    return op->emitOpError("has ") << kCutAttrName << ", but only calls of kernels may";
  if (isa<DenseI64ArrayAttr>(value))
    return success();
  return op->emitOpError("has ") << kCutAttrName << " = " << value
                                 << ", expected an array<i64> of dimensions";
}

static LogicalResult verifyProductAttr(Operation *op, Attribute value) {
  if (!isa<CallOp>(op))
    return op->emitOpError("has ") << kProductAttrName << ", but only calls of kernels may";
  auto sizes = dyn_cast<DenseI64ArrayAttr>(value);
  if (sizes && sizes.size() == 4 &&
      llvm::all_of(sizes.asArrayRef(), [](int64_t size) { return size >= 1; }))
    return success();
  return op->emitOpError("has ")
         << kProductAttrName << " = " << value
         << ", expected an array<i64> of groups, rows, columns and inner size, each at least 1";
}

/// A rule on the value alone.
template <LogicalResult (*rule)(Operation *, Attribute)>
static LogicalResult valueRule(Operation *op, NamedAttribute attr) {
  return rule(op, attr.getValue());
}

LogicalResult NCCLXDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  using Rule = LogicalResult (*)(Operation *, NamedAttribute);
  // What an op may carry: also what an error names.
  const std::pair<StringRef, Rule> known[] = {
      {getScheduleAttrName(), valueRule<verifyScheduleAttr>},
      {pipelineAttrName, verifyPipelineAttr},
      {treesAttrName, verifyTreesAttr},
      {kSizesAttrName, valueRule<verifySizesAttr>},
      {branchesAttrName, valueRule<verifyBranchesAttr>},
      {stagesAttrName, valueRule<verifyStagesAttr>},
      {getTopologyAttrName(), valueRule<verifyTopologyAttr>},
      {kAllowTf32AttrName, verifyUnit},
      {kSmsAttrName, valueRule<verifySmsAttr>},
      {kCutAttrName, valueRule<verifyCutAttr>},
      {kProductAttrName, valueRule<verifyProductAttr>},
      {kContractAttrName,
       [](Operation *, NamedAttribute) { return success(); }}, // its reader tells
      {kDeviceSizesAttrName, verifyUnit},
  };
  for (auto &[name, rule] : known)
    if (attr.getName() == name)
      return rule(op, attr);
  InFlightDiagnostic error = op->emitOpError("has the unknown attribute ")
                             << attr.getName() << ", expected one of ";
  llvm::interleaveComma(known, error, [&](auto &one) { error << one.first; });
  return error;
}
