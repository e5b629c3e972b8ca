//===- Sizes.cpp - Sizes that a graph leaves open --------------------------===//

#include "ncclx/NCCLX/Sizes.h"
#include "ncclx/NCCLX/NCCLX.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx;

/// The range of `[0, 64]` or `[0, 64, 8]`; nothing where the attribute is no such list.
static std::optional<OpenSize> rangeOf(StringAttr name, Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  if (!list || list.size() < 2 || list.size() > 3)
    return std::nullopt;
  SmallVector<int64_t, 3> numbers;
  for (Attribute entry : list) {
    auto number = dyn_cast<IntegerAttr>(entry);
    if (!number || !number.getType().isSignlessInteger(64))
      return std::nullopt;
    numbers.push_back(number.getInt());
  }
  return OpenSize{name.str(), numbers[0], numbers[1], numbers.size() > 2 ? numbers[2] : 1, {}};
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

std::string OpenSize::place() const {
  return llvm::formatv("dimension {0} of argument {1}", places.front().dim,
                       places.front().argument);
}

std::string OpenSize::range() const {
  std::string text = std::to_string(min);
  if (max != min)
    text += " to " + std::to_string(max);
  if (multiple != 1)
    text += ", a multiple of " + std::to_string(multiple);
  return text;
}

int64_t OpenSize::middle() const {
  int64_t least = min / multiple, half = least + (max / multiple - least) / 2;
  // Primes are dense: further down than this is no use, and takes long where sizes are huge.
  for (int64_t n = half; n > least && n > half - 64; --n)
    if (n < (int64_t(1) << 40) && isPrime(n))
      return n * multiple;
  return half * multiple;
}

std::vector<SmallVector<int64_t>> ncclx::sampleSizes(ArrayRef<OpenSize> open) {
  std::vector<SmallVector<int64_t>> samples;
  auto add = [&](auto valueOf) {
    SmallVector<int64_t> values = llvm::map_to_vector(open, valueOf);
    if (!values.empty() && !llvm::is_contained(samples, values))
      samples.push_back(values);
  };
  add([](const OpenSize &size) { return size.min; });
  add([](const OpenSize &size) { return size.middle(); });
  add([](const OpenSize &size) { return size.max; });
  for (const OpenSize &alone : open)
    add([&](const OpenSize &size) { return &size == &alone ? size.min : size.max; });
  return samples;
}

std::string ncclx::sizesText(ArrayRef<OpenSize> open, ArrayRef<int64_t> values) {
  std::string text;
  for (auto [size, value] : llvm::zip_equal(open, values))
    text += (text.empty() ? "" : ", ") + size.name + " = " + std::to_string(value);
  return text;
}

SmallVector<OpenSize> ncclx::getOpenSizes(FunctionOpInterface function) {
  auto ranges = function->getAttrOfType<DictionaryAttr>(kSizesAttrName);
  llvm::MapVector<StringAttr, OpenSize> sizes;
  for (NamedAttribute range : ranges ? ranges.getValue() : ArrayRef<NamedAttribute>())
    sizes.insert({range.getName(), *rangeOf(range.getName(), range.getValue())});
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
    auto found = rangeOf(range.getName(), range.getValue());
    if (!found)
      return op->emitOpError("size '")
             << range.getName().getValue()
             << "' must be [least, greatest] or [least, greatest, multiple], but is "
             << range.getValue();
    if (found->min < 0 || found->min > found->max)
      return op->emitOpError("size '") << found->name << "' is from " << found->min << " to "
                                       << found->max << ", expected 0 <= least <= greatest";
    if (found->multiple < 1 || !found->holds(found->min) || !found->holds(found->max))
      return op->emitOpError("size '") << found->name << "' is a multiple of " << found->multiple
                                       << ", expected at least 1, and both ends to be one";
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
