//===- Sizes.cpp - Sizes that a graph leaves open --------------------------===//

#include "ncclx/NCCLX/Sizes.h"
#include "ncclx/NCCLX/NCCLX.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx;

/// The least and the greatest of `[0, 64]`; nothing where the attribute is no such pair.
static std::optional<std::pair<int64_t, int64_t>> rangeOf(Attribute value) {
  auto pair = dyn_cast<ArrayAttr>(value);
  if (!pair || pair.size() != 2)
    return std::nullopt;
  auto min = dyn_cast<IntegerAttr>(pair[0]), max = dyn_cast<IntegerAttr>(pair[1]);
  if (!min || !max || !min.getType().isSignlessInteger(64) || !max.getType().isSignlessInteger(64))
    return std::nullopt;
  return std::pair(min.getInt(), max.getInt());
}

static int64_t numOpen(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getNumDynamicDims() : 0;
}

static bool isPrime(int64_t n) {
  for (int64_t d = 2; d <= n / d; ++d)
    if (n % d == 0)
      return false;
  return n > 1;
}

std::string OpenSize::str() const {
  return llvm::formatv("size '{0}' (dimension {1} of argument {2})", name, places.front().dim,
                       places.front().argument);
}

int64_t OpenSize::middle() const {
  int64_t half = min + (max - min) / 2;
  // Primes are dense: further down than this is no use, and takes long where sizes are huge.
  for (int64_t n = half; n > min && n > half - 64; --n)
    if (n < (int64_t(1) << 40) && isPrime(n))
      return n;
  return half;
}

SmallVector<OpenSize> ncclx::getOpenSizes(FunctionOpInterface function) {
  auto ranges = function->getAttrOfType<DictionaryAttr>(kSizesAttrName);
  llvm::MapVector<StringAttr, OpenSize> sizes;
  for (NamedAttribute range : ranges ? ranges.getValue() : ArrayRef<NamedAttribute>()) {
    auto [min, max] = *rangeOf(range.getValue());
    sizes.insert({range.getName(), {range.getName().str(), min, max, {}}});
  }
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto names = function.getArgAttrOfType<ArrayAttr>(i, kDimsAttrName);
    if (!names || !numOpen(type))
      continue;
    auto shape = cast<RankedTensorType>(type).getShape();
    auto name = names.begin();
    for (auto [dim, size] : llvm::enumerate(shape))
      if (ShapedType::isDynamic(size))
        sizes[cast<StringAttr>(*name++)].places.push_back({unsigned(i), int64_t(dim)});
  }
  SmallVector<OpenSize> found;
  for (auto &[name, size] : sizes)
    found.push_back(size);
  return found;
}

LogicalResult ncclx::verifyAllNamed(FunctionOpInterface function) {
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (numOpen(type) && !function.getArgAttr(i, kDimsAttrName))
      return function->emitOpError("argument #")
             << i << " of type " << type << " has sizes that are not known, expected "
             << kDimsAttrName << " to name each and " << kSizesAttrName << " to give its range";
  return success();
}

/// sizes C1, C2, C5 and C6.
LogicalResult ncclx::verifySizesAttr(Operation *op, Attribute value) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitOpError("has ") << kSizesAttrName << ", but only functions may";
  auto ranges = dyn_cast<DictionaryAttr>(value);
  if (!ranges)
    return op->emitOpError() << kSizesAttrName << " must be a dictionary of ranges, but is "
                             << value;
  llvm::SmallSet<StringRef, 4> used;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto names = function.getArgAttrOfType<ArrayAttr>(i, kDimsAttrName))
      for (Attribute name : names) // what is no name is refused by C3
        if (auto text = dyn_cast<StringAttr>(name))
          used.insert(text.getValue());
  for (NamedAttribute range : ranges) {
    auto ends = rangeOf(range.getValue());
    if (!ends)
      return op->emitOpError("size '")
             << range.getName().getValue() << "' must be [least, greatest], but is "
             << range.getValue();
    if (ends->first < 0 || ends->first > ends->second)
      return op->emitOpError("size '")
             << range.getName().getValue() << "' is from " << ends->first << " to " << ends->second
             << ", expected 0 <= least <= greatest";
    if (!used.contains(range.getName().getValue()))
      return op->emitOpError("size '")
             << range.getName().getValue() << "' is that of no argument's dimension";
  }
  return verifyAllNamed(function);
}

/// sizes C3 and C4.
LogicalResult ncclx::verifyDimsAttr(Operation *op, unsigned argument, Attribute value) {
  auto error = [&] {
    InFlightDiagnostic diag = op->emitOpError("argument #") << argument << ": " << kDimsAttrName;
    return diag;
  };
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return error() << " is there, but only functions may have it";
  auto names = dyn_cast<ArrayAttr>(value);
  if (!names || !llvm::all_of(names, [](Attribute a) { return isa<StringAttr>(a); }))
    return error() << " must be a list of names, but is " << value;
  int64_t open = numOpen(function.getArgumentTypes()[argument]);
  if (int64_t(names.size()) != open || open == 0)
    return error() << " names " << names.size() << " sizes, but "
                   << function.getArgumentTypes()[argument] << " has " << open << " open ones";
  auto ranges = op->getAttrOfType<DictionaryAttr>(kSizesAttrName);
  for (auto name : names.getAsRange<StringAttr>())
    if (!ranges || !ranges.get(name))
      return error() << " names " << name << ", which has no range in " << kSizesAttrName;
  return success();
}

LogicalResult ncclx::requireKnownSizes(Operation *root) {
  WalkResult walked = root->walk([](CollectiveOpInterface op) {
    for (ShapedType type : {op.getInputType(), op.getOutputType()})
      if (!type.hasStaticShape()) {
        op->emitOpError("has a size that is not known yet in ")
            << type << "; ncclx-specialize-sizes makes the graph for given sizes";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}
