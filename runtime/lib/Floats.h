//===- Floats.h - Narrow floats, exactly ------------------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_FLOATS_H
#define NCCLXRT_LIB_FLOATS_H

#include <bit>
#include <cstdint>

namespace ncclxrt {

/// A double rounded once, to nearest even, to a float of `bits` bits with `manBits` of mantissa.
/// Past the largest it becomes infinite, or, where the format is `finite`, the one NaN that there
/// is.
template <int bits, int manBits, bool finite = false> inline uint16_t narrow(double value) {
  constexpr int expBits = bits - 1 - manBits, bias = (1 << (expBits - 1)) - 1;
  constexpr uint64_t nan = (uint64_t(1) << (bits - 1)) - 1;
  constexpr uint64_t past = finite ? nan : uint64_t((1 << expBits) - 1) << manBits;
  uint64_t word = std::bit_cast<uint64_t>(value);
  uint64_t sign = word >> 63 << (bits - 1), mantissa = word << 12 >> 12;
  int exponent = int(word >> 52 & 0x7ff);
  if (exponent == 0x7ff) { // a NaN becomes quiet and keeps what fits of its payload
    uint64_t payload = (uint64_t(1) << (manBits - 1)) | mantissa >> (52 - manBits);
    return uint16_t(sign | (finite ? nan : past | (mantissa ? payload : 0)));
  }
  exponent -= 1023;
  int drop = 52 - manBits;
  uint64_t high; // exponent and mantissa before rounding
  if (exponent >= 1 - bias) {
    if (exponent > bias + finite)
      return uint16_t(sign | past);
    high = uint64_t(exponent + bias) << 52 | mantissa;
  } else {
    drop += 1 - bias - exponent;
    if (drop > 60)
      return uint16_t(sign);
    high = mantissa | uint64_t(1) << 52;
  }
  uint64_t result = high >> drop, rest = high & ((uint64_t(1) << drop) - 1);
  uint64_t half = uint64_t(1) << (drop - 1);
  result += rest > half || (rest == half && (result & 1)); // may carry into the exponent: right
  return uint16_t(sign | (result < past ? result : past));
}

struct Bf16 {
  uint16_t bits;
  static Bf16 from(double value) { return {narrow<16, 7>(value)}; }
  static Bf16 from(float value) {
    uint32_t b = std::bit_cast<uint32_t>(value);
    uint32_t rounded = (b + 0x7fff + (b >> 16 & 1)) >> 16;
    return {uint16_t((b & 0x7fffffff) > 0x7f800000 ? b >> 16 | 0x40 : rounded)};
  }
  operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

struct F16 {
  uint16_t bits;
  static F16 from(double value) { return {narrow<16, 10>(value)}; }
  operator float() const {
    // The exponent moves by a multiplication, which also makes subnormals normal.
    uint32_t magnitude = uint32_t(bits & 0x7fff) << 13;
    float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
    uint32_t result =
        (bits & 0x7c00) == 0x7c00 ? magnitude | 0x7f800000 : std::bit_cast<uint32_t>(scaled);
    return std::bit_cast<float>(result | uint32_t(bits & 0x8000) << 16);
  }
};

/// OCP E5M2: the upper half of an f16.
struct E5m2 {
  uint8_t bits;
  static E5m2 from(double value) { return {uint8_t(narrow<8, 2>(value))}; }
  operator float() const { return F16{uint16_t(bits << 8)}; }
};

/// OCP E4M3: no infinities, and a NaN of each sign.
struct E4m3 {
  uint8_t bits;
  static E4m3 from(double value) { return {uint8_t(narrow<8, 3, true>(value))}; }
  operator float() const {
    uint32_t magnitude = uint32_t(bits & 0x7f) << 20;
    float scaled = std::bit_cast<float>(magnitude) * 0x1p120f;
    uint32_t result = (bits & 0x7f) == 0x7f ? 0x7fc00000 : std::bit_cast<uint32_t>(scaled);
    return std::bit_cast<float>(result | uint32_t(bits & 0x80) << 24);
  }
};

} // namespace ncclxrt

#endif // NCCLXRT_LIB_FLOATS_H
