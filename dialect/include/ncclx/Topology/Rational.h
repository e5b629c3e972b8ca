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
#include <limits>
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

  friend Rational operator+(const Rational &a, const Rational &b) {
    return areSmall(a, b) ? whole(a.num + b.num) : sum(a, b);
  }
  friend Rational operator-(const Rational &a, const Rational &b);
  friend Rational operator*(const Rational &a, const Rational &b) {
    return areSmall(a, b) ? whole(Int(int64_t(a.num)) * int64_t(b.num)) : product(a, b);
  }
  friend Rational operator/(const Rational &a, const Rational &b);
  Rational &operator+=(const Rational &b) { return *this = *this + b; }
  friend bool operator==(const Rational &a, const Rational &b) {
    return a.den != 0 && a.num == b.num && a.den == b.den;
  }
  friend std::partial_ordering operator<=>(const Rational &a, const Rational &b) {
    return areSmall(a, b) ? std::partial_ordering(int64_t(a.num) <=> int64_t(b.num)) : order(a, b);
  }

private:
  /// Rates and latencies of large machines are mostly whole numbers that fit 63 bits: what is done
  /// with two of them cannot overflow.
  static bool areSmall(const Rational &a, const Rational &b) {
    constexpr Int most = std::numeric_limits<int64_t>::max();
    return a.den == 1 && b.den == 1 && a.num <= most && b.num <= most && a.num >= -most &&
           b.num >= -most;
  }
  static Rational whole(Int num) {
    Rational r;
    r.num = num;
    return r;
  }
  static Rational sum(const Rational &a, const Rational &b);
  static Rational product(const Rational &a, const Rational &b);
  static std::partial_ordering order(const Rational &a, const Rational &b);

  Int num = 0;
  Int den = 1;
};

} // namespace mlir::ncclx::topology

#endif // NCCLX_TOPOLOGY_RATIONAL_H
