//===- Floats.h - Narrow floats, exactly ------------------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_FLOATS_H
#define NCCLXRT_LIB_FLOATS_H

#include <bit>
#include <cstdint>

namespace ncclxrt {

/// A double rounded once, to nearest even, to a 16-bit float with `manBits` bits of mantissa.
template <int manBits> inline uint16_t narrow(double value) {
  constexpr int expBits = 15 - manBits, bias = (1 << (expBits - 1)) - 1;
  constexpr uint64_t infinity = uint64_t((1 << expBits) - 1) << manBits;
  uint64_t bits = std::bit_cast<uint64_t>(value);
  uint64_t sign = bits >> 63 << 15, mantissa = bits << 12 >> 12;
  int exponent = int(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) // a NaN becomes quiet and keeps what fits of its payload
    return uint16_t(sign | infinity |
                    (mantissa ? (1u << (manBits - 1)) | mantissa >> (52 - manBits) : 0));
  exponent -= 1023;
  int drop = 52 - manBits;
  uint64_t high; // exponent and mantissa before rounding
  if (exponent >= 1 - bias) {
    if (exponent > bias)
      return uint16_t(sign | infinity);
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
  return uint16_t(sign | result);
}

struct Bf16 {
  uint16_t bits;
  static Bf16 from(double value) { return {narrow<7>(value)}; }
  static Bf16 from(float value) {
    uint32_t b = std::bit_cast<uint32_t>(value);
    uint32_t rounded = (b + 0x7fff + (b >> 16 & 1)) >> 16;
    return {uint16_t((b & 0x7fffffff) > 0x7f800000 ? b >> 16 | 0x40 : rounded)};
  }
  operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

struct F16 {
  uint16_t bits;
  static F16 from(double value) { return {narrow<10>(value)}; }
  operator float() const {
    // The exponent moves by a multiplication, which also makes subnormals normal.
    uint32_t magnitude = uint32_t(bits & 0x7fff) << 13;
    float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
    uint32_t result =
        (bits & 0x7c00) == 0x7c00 ? magnitude | 0x7f800000 : std::bit_cast<uint32_t>(scaled);
    return std::bit_cast<float>(result | uint32_t(bits & 0x8000) << 16);
  }
};

} // namespace ncclxrt

#endif // NCCLXRT_LIB_FLOATS_H
