//===- Rational.h - Exact, overflow-checked rationals -----------*- C++ -*-===//
//
// Bandwidths and bounds are compared exactly: NCCL's 20.6 GB/s, or 370.8/7, must not round away.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_TOPOLOGY_RATIONAL_H
#define NCCLX_TOPOLOGY_RATIONAL_H

#include "llvm/ADT/StringRef.h"
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace mlir::ncclx::topology {

/// A rational number with 128-bit numerator and denominator, always reduced. A result that does not
/// fit (or a division by zero) is *invalid*; invalid operands give invalid results, and compare
/// unordered with everything, so a computation may run to its end and be checked once.
class Rational {
public:
  using Int = __int128;

  constexpr Rational() = default;
  constexpr Rational(int64_t value) : num(value) {}
  /// num/den, reduced; invalid if `den` is zero.
  static Rational make(Int num, Int den);
  static constexpr Rational invalid() {
    Rational r;
    r.den = 0;
    return r;
  }
  /// Reads "12", "-3/7", "20.6", "2.5e10" and "370.8/7" exactly. Nothing else, and no value that
  /// does not fit.
  static std::optional<Rational> parse(llvm::StringRef text);

  [[nodiscard]] bool isValid() const { return den != 0; }
  [[nodiscard]] bool isZero() const { return den != 0 && num == 0; }
  [[nodiscard]] Int numerator() const { return num; }
  /// Zero exactly for an invalid number.
  [[nodiscard]] Int denominator() const { return den; }
  /// The nearest double, give or take a unit in the last place; NaN if invalid.
  [[nodiscard]] double toDouble() const;
  /// "3", "370800000000/7", or "invalid". parse() reads the first two back.
  [[nodiscard]] std::string str() const;

  friend Rational operator+(const Rational &a, const Rational &b);
  friend Rational operator-(const Rational &a, const Rational &b);
  friend Rational operator*(const Rational &a, const Rational &b);
  friend Rational operator/(const Rational &a, const Rational &b);
  Rational &operator+=(const Rational &b) { return *this = *this + b; }
  friend bool operator==(const Rational &a, const Rational &b) {
    return a.den != 0 && a.num == b.num && a.den == b.den;
  }
  friend std::partial_ordering operator<=>(const Rational &a, const Rational &b);

private:
  Int num = 0;
  Int den = 1;
};

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOPOLOGY_RATIONAL_H
