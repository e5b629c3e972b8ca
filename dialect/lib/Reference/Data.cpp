//===- Data.cpp - Inputs from a seed, and comparing outputs ---------------===//
#include "ncclx/Reference/Data.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace mlir::ncclx;

namespace {

Type elementType(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped ? shaped.getElementType() : type;
}

int64_t elementCount(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped ? shaped.getNumElements() : 1;
}

int64_t elementBytes(Type element) {
  if (element.isIndex())
    return 8;
  if (!element.isIntOrFloat())
    return 0;
  int64_t bits = element.getIntOrFloatBitWidth();
  if (isa<FloatType>(element))
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? bits / 8 : 0;
  return bits == 1 ? 1 : bits == 8 || bits == 16 || bits == 32 || bits == 64 ? bits / 8 : 0;
}

uint64_t splitmix(uint64_t state) {
  state += 0x9e3779b97f4a7c15;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

/// The bits of `value` in the float type's format, rounded once.
uint64_t floatBits(FloatType type, double value) {
  llvm::APFloat number(value);
  bool loses = false;
  number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return number.bitcastToAPInt().getZExtValue();
}

double valueOf(Type element, uint64_t bits) {
  if (auto type = dyn_cast<FloatType>(element)) {
    llvm::APFloat number(type.getFloatSemantics(), llvm::APInt(type.getWidth(), bits));
    bool loses = false;
    number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
    return number.convertToDouble();
  }
  if (element.isUnsignedInteger())
    return double(bits);
  int64_t unused = 64 - 8 * elementBytes(element);
  return double(int64_t(bits << unused) >> unused);
}

uint64_t load(const void *data, int64_t index, int64_t size) {
  uint64_t bits = 0; // little endian, as the host that runs the code
  std::memcpy(&bits, static_cast<const char *>(data) + index * size, size);
  return bits;
}

} // namespace

int64_t mlir::ncclx::getDenseBytes(Type type) {
  return elementBytes(elementType(type)) * elementCount(type);
}

void mlir::ncclx::fillInputs(uint64_t seed, int64_t rank, int64_t argument, Type type, void *data,
                             bool exact) {
  Type element = elementType(type);
  int64_t size = elementBytes(element), count = elementCount(type);
  uint64_t stream = splitmix(splitmix(splitmix(seed) ^ uint64_t(rank)) ^ uint64_t(argument));
  uint64_t floats[41] = {};
  auto floating = dyn_cast<FloatType>(element);
  for (int64_t k = 0; k < 41 && floating; ++k)
    floats[k] = floatBits(floating, exact ? double(k % 5 - 2) : double(k - 20) / 10);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t drawn = splitmix(stream ^ uint64_t(i)) >> 11;
    uint64_t bits = 0;
    if (floating)
      bits = floats[drawn % 41];
    else if (element.isInteger(1))
      bits = drawn & 1;
    else if (!element.isIndex())
      bits = uint64_t(int64_t(drawn % 201) - 100);
    std::memcpy(static_cast<char *>(data) + i * size, &bits, size);
  }
}

double mlir::ncclx::largestMagnitude(Type type, const void *data) {
  Type element = elementType(type);
  int64_t size = elementBytes(element);
  double largest = 0;
  for (int64_t i = 0; i < elementCount(type); ++i)
    if (double x = std::fabs(valueOf(element, load(data, i, size))); std::isfinite(x))
      largest = std::max(largest, x);
  return largest;
}

Comparison mlir::ncclx::compare(Type type, const void *expected, const void *found,
                                double tolerance) {
  Type element = elementType(type);
  int64_t size = elementBytes(element);
  Comparison result;
  result.count = elementCount(type);
  for (int64_t i = 0; i < result.count; ++i) {
    uint64_t a = load(expected, i, size), b = load(found, i, size);
    if (a == b)
      continue;
    double x = valueOf(element, a), y = valueOf(element, b);
    if (std::isnan(x) && std::isnan(y))
      continue;
    double distance = std::fabs(x - y);
    if (!(distance <= result.largest) && !std::isnan(result.largest))
      result.largest = distance;
    if (tolerance >= 0 && distance <= tolerance)
      continue;
    if (result.different++ == 0)
      result.first = i, result.expected = x, result.found = y;
  }
  return result;
}

std::string Comparison::describe(Type type) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (equal()) {
    os << "all " << count << " elements are equal";
    return text;
  }
  os << different << " of " << count << " elements differ, the first at [";
  SmallVector<int64_t> index;
  int64_t rest = first;
  if (auto shaped = dyn_cast<ShapedType>(type))
    for (int64_t size : llvm::reverse(shaped.getShape())) {
      index.insert(index.begin(), rest % size);
      rest /= size;
    }
  llvm::interleaveComma(index, os);
  os << llvm::format("]: expected %.9g, found %.9g (largest difference %.3g)", expected, found,
                     largest);
  return text;
}
