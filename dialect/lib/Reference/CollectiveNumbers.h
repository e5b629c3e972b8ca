//===- CollectiveNumbers.h - The number types of collectives -------*- C++ -*-===//
//
// Narrow floats by search among their values, so that no trick with bits is shared with the code
// that is compared.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_REFERENCE_COLLECTIVENUMBERS_H
#define NCCLX_LIB_REFERENCE_COLLECTIVENUMBERS_H

#include "CollectiveData.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

namespace mlir::ncclx::reference {

/// f32 to the nearest bf16, ties to even; NaN stays one.
inline uint16_t roundToBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

struct BF16 {
  uint16_t bits = 0;
  BF16() = default;
  explicit BF16(float value) : bits(roundToBF16(value)) {}
  /// By way of an f32 rounded to odd, so that the value is rounded once.
  explicit BF16(double value) {
    float nearest = static_cast<float>(value);
    double back = nearest;
    uint32_t word = std::bit_cast<uint32_t>(nearest);
    if (std::fabs(back) > std::fabs(value))
      --word;
    if (back != value && !std::isnan(value))
      word |= 1;
    bits = roundToBF16(std::bit_cast<float>(word));
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
  explicit operator double() const { return static_cast<float>(*this); }
};

/// Its own class, so that no sum is held in more digits than it has.
struct F16 {
  _Float16 value = 0;
  F16() = default;
  explicit F16(float from) : value(static_cast<_Float16>(from)) {}
  explicit F16(double from) : value(static_cast<_Float16>(from)) {}
  explicit operator float() const { return value; }
  explicit operator double() const { return value; }
};

/// An 8-bit float of the OCP formats: `infinities` (E5M2), or the last code alone a NaN (E4M3FN).
template <int exponentBits, int mantissaBits, bool infinities> struct F8 {
  uint8_t bits = 0;
  F8() = default;
  explicit F8(float value) : F8(static_cast<double>(value)) {}
  /// To nearest, ties to the even code; what is beyond the largest by half a step or more takes the
  /// code behind it: infinity, or NaN where there is none.
  explicit F8(double value) {
    uint8_t sign = std::signbit(value) ? 0x80 : 0;
    double size = std::fabs(value);
    const Table &values = table();
    int code = int(std::upper_bound(values.begin(), values.end(), size) - values.begin()) - 1;
    if (std::isnan(value))
      code = 0x7f;
    else if (code + 1 < int(values.size())) {
      double below = size - values[code], above = values[code + 1] - size;
      code += above < below || (above == below && code % 2);
    }
    bits = uint8_t(sign | code);
  }
  explicit operator double() const {
    int code = bits & 0x7f;
    double size = code > overflow || (!infinities && code == overflow)
                      ? std::nan("")
                      : (code == overflow ? double(INFINITY) : table()[code]);
    return bits & 0x80 ? -size : size;
  }
  explicit operator float() const { return static_cast<float>(static_cast<double>(*this)); }

private:
  /// The first code behind the finite ones.
  static constexpr int overflow = infinities ? 0x7f >> mantissaBits << mantissaBits : 0x7f;
  /// By code: the finite values, and what the code behind them would be.
  using Table = std::array<double, overflow + 1>;
  static const Table &table() {
    static const Table values = [] {
      Table t{};
      constexpr int bias = (1 << (exponentBits - 1)) - 1;
      for (int code = 0; code <= overflow; ++code) {
        int exponent = code >> mantissaBits, mantissa = code & ((1 << mantissaBits) - 1);
        t[code] = exponent
                      ? std::ldexp((1 << mantissaBits) + mantissa, exponent - bias - mantissaBits)
                      : std::ldexp(mantissa, 1 - bias - mantissaBits);
      }
      return t;
    }();
    return values;
  }
};
using E4M3 = F8<4, 3, false>;
using E5M2 = F8<5, 2, true>;

template <typename T>
constexpr bool isNarrow = std::is_same_v<T, BF16> || std::is_same_v<T, F16> ||
                          std::is_same_v<T, E4M3> || std::is_same_v<T, E5M2>;

/// Element to accumulation type and back. All pairs occur in a template, few in a program.
template <typename To, typename From> To convert(From from) {
  if constexpr (std::is_same_v<To, From>)
    return from;
  else if constexpr (isNarrow<From>)
    return convert<To>(static_cast<float>(from));
  else
    return static_cast<To>(from);
}

/// a op b, rounded to T. Integers wrap; min and max are IEEE 754-2019 minimum and maximum: a NaN
/// wins, and -0 < +0.
template <typename T> T combine(Reduction reduction, T a, T b) {
  if constexpr (isNarrow<T>) {
    return T(combine(reduction, static_cast<float>(a), static_cast<float>(b)));
  } else if constexpr (std::is_integral_v<T>) {
    switch (reduction) {
    case Reduction::Min:
      return std::min(a, b);
    case Reduction::Max:
      return std::max(a, b);
    case Reduction::Prod:
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    default:
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    }
  } else {
    if (reduction == Reduction::Prod)
      return a * b;
    if (reduction != Reduction::Min && reduction != Reduction::Max)
      return a + b;
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? a : b;
    if (a == b)
      return std::signbit(a) == (reduction == Reduction::Min) ? a : b;
    return (a < b) == (reduction == Reduction::Min) ? a : b;
  }
}

/// total / n: of floats in f64, then rounded to T; of integers towards zero.
template <typename T> T divide(T total, int64_t n) {
  if constexpr (std::is_unsigned_v<T>)
    return static_cast<T>(total / static_cast<uint64_t>(n));
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(int64_t(total) / n);
  else
    return static_cast<T>(static_cast<double>(total) / static_cast<double>(n));
}

/// value * factor, the factor rounded to T first.
template <typename T> T multiply(T value, double factor) {
  if constexpr (std::is_integral_v<T>)
    return value; // refused by the language
  else
    return combine(Reduction::Prod, value, static_cast<T>(factor));
}

/// Calls `function` with a value of the C++ type of `element`.
template <typename Function> void withElement(Element element, Function function) {
  switch (element) {
  case Element::F64:
    return function(double());
  case Element::F32:
    return function(float());
  case Element::F16:
    return function(F16());
  case Element::BF16:
    return function(BF16());
  case Element::E4M3:
    return function(E4M3());
  case Element::E5M2:
    return function(E5M2());
  case Element::I8:
    return function(int8_t());
  case Element::I16:
    return function(int16_t());
  case Element::I32:
    return function(int32_t());
  case Element::I64:
    return function(int64_t());
  case Element::U8:
    return function(uint8_t());
  case Element::U16:
    return function(uint16_t());
  case Element::U32:
    return function(uint32_t());
  case Element::U64:
    return function(uint64_t());
  }
}

} // namespace mlir::ncclx::reference
#endif // NCCLX_LIB_REFERENCE_COLLECTIVENUMBERS_H
