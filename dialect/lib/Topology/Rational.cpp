//===- Rational.cpp -------------------------------------------------------===//
#include "ncclx/Topology/Rational.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir::ncclx::topology;
using Int = Rational::Int;

static Int gcd(Int a, Int b) {
  while (b != 0) {
    // 128-bit division is a library call, 64-bit division is not.
    if (Int(int64_t(a)) == a && Int(int64_t(b)) == b && int64_t(b) != -1) {
      int64_t x = int64_t(a), y = int64_t(b);
      while (y != 0 && y != -1) {
        int64_t r = x % y;
        x = y;
        y = r;
      }
      return y == -1 ? 1 : x < 0 ? -Int(x) : Int(x);
    }
    Int r = a % b;
    a = b;
    b = r;
  }
  return a < 0 ? -a : a;
}

static constexpr Int minInt = Int(1) << 127;

Rational Rational::make(Int num, Int den) {
  // The most negative value has no negation.
  if (den == 0 || num == minInt || den == minInt)
    return invalid();
  Rational r;
  if (den == 1) {
    r.num = num;
    return r;
  }
  Int g = gcd(num, den);
  r.num = num / g;
  r.den = den / g;
  if (r.den < 0) {
    r.num = -r.num;
    r.den = -r.den;
  }
  return r;
}

namespace mlir::ncclx::topology {
Rational Rational::product(const Rational &a, const Rational &b) {
  if (!a.isValid() || !b.isValid())
    return Rational::invalid();
  if (a.den == 1 && b.den == 1) { // the common case
    Int num;
    return __builtin_mul_overflow(a.num, b.num, &num) ? Rational::invalid()
                                                      : Rational::make(num, 1);
  }
  // Cross-reduce first: the product of reduced factors is reduced, and overflows only if it must.
  Int g1 = gcd(a.num, b.den), g2 = gcd(b.num, a.den);
  Int num, den;
  if (__builtin_mul_overflow(a.num / g1, b.num / g2, &num) ||
      __builtin_mul_overflow(a.den / g2, b.den / g1, &den))
    return Rational::invalid();
  return Rational::make(num, den);
}

Rational operator/(const Rational &a, const Rational &b) {
  if (!a.isValid() || !b.isValid() || b.num == 0)
    return Rational::invalid();
  return a * Rational::make(b.den, b.num);
}

Rational Rational::sum(const Rational &a, const Rational &b) {
  if (!a.isValid() || !b.isValid())
    return Rational::invalid();
  if (a.den == 1 && b.den == 1) { // the common case
    Int num;
    return __builtin_add_overflow(a.num, b.num, &num) ? Rational::invalid()
                                                      : Rational::make(num, 1);
  }
  Int g = gcd(a.den, b.den);
  Int left, right, num, den;
  if (__builtin_mul_overflow(a.num, b.den / g, &left) ||
      __builtin_mul_overflow(b.num, a.den / g, &right) ||
      __builtin_add_overflow(left, right, &num) || __builtin_mul_overflow(a.den, b.den / g, &den))
    return Rational::invalid();
  return Rational::make(num, den);
}

Rational operator-(const Rational &a, const Rational &b) { return a + Rational(-1) * b; }

std::partial_ordering Rational::order(const Rational &a, const Rational &b) {
  if (!a.isValid() || !b.isValid())
    return std::partial_ordering::unordered;
  if (a.den == b.den)
    return a.num <=> b.num;
  // Compare continued fractions: no product, so no overflow.
  Int an = a.num, ad = a.den, bn = b.num, bd = b.den;
  bool flipped = false;
  while (true) {
    Int aq = an / ad - (an % ad < 0), bq = bn / bd - (bn % bd < 0);
    if (aq != bq)
      return ((aq < bq) != flipped) ? std::partial_ordering::less : std::partial_ordering::greater;
    an -= aq * ad;
    bn -= bq * bd;
    if (an == 0 && bn == 0)
      return std::partial_ordering::equivalent;
    if (an == 0 || bn == 0)
      return ((an == 0) != flipped) ? std::partial_ordering::less : std::partial_ordering::greater;
    std::swap(an, ad);
    std::swap(bn, bd);
    flipped = !flipped;
  }
}
} // namespace mlir::ncclx::topology

double Rational::toDouble() const {
  if (!isValid())
    return std::numeric_limits<double>::quiet_NaN();
  return double(static_cast<long double>(num) / static_cast<long double>(den));
}

static std::string toDecimal(Int value) {
  if (value == 0)
    return "0";
  bool negative = value < 0;
  std::string digits;
  for (Int v = negative ? -value : value; v != 0; v /= 10)
    digits.push_back(char('0' + int(v % 10)));
  if (negative)
    digits.push_back('-');
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string Rational::str() const {
  if (!isValid())
    return "invalid";
  return den == 1 ? toDecimal(num) : toDecimal(num) + "/" + toDecimal(den);
}

/// Reads [-]digits[.digits][e[+-]digits], all of `text`.
static std::optional<Rational> parseDecimal(llvm::StringRef text) {
  bool negative = text.consume_front("-");
  Int mantissa = 0;
  int exponent = 0;
  bool digits = false, point = false;
  while (!text.empty() && (llvm::isDigit(text[0]) || (text[0] == '.' && !point))) {
    if (text[0] == '.') {
      point = true;
    } else {
      digits = true;
      if (__builtin_mul_overflow(mantissa, Int(10), &mantissa) ||
          __builtin_add_overflow(mantissa, Int(text[0] - '0'), &mantissa))
        return std::nullopt;
      exponent -= point;
    }
    text = text.drop_front();
  }
  if (!digits)
    return std::nullopt;
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text = text.drop_front();
    bool negativeExponent = text.consume_front("-");
    if (!negativeExponent)
      text.consume_front("+");
    unsigned magnitude;
    if (text.empty() || !llvm::isDigit(text[0]) || text.getAsInteger(10, magnitude) ||
        magnitude > 1000)
      return std::nullopt;
    text = "";
    exponent += negativeExponent ? -int(magnitude) : int(magnitude);
  }
  if (!text.empty())
    return std::nullopt;
  Rational result = Rational::make(negative ? -mantissa : mantissa, 1);
  Rational ten = exponent < 0 ? Rational::make(1, 10) : Rational(10);
  for (int i = std::abs(exponent); i > 0 && result.isValid() && !result.isZero(); --i)
    result = result * ten;
  if (!result.isValid())
    return std::nullopt;
  return result;
}

std::optional<Rational> Rational::parse(llvm::StringRef text) {
  auto [left, right] = text.split('/');
  std::optional<Rational> num = parseDecimal(left);
  if (!num || left.size() == text.size())
    return num;
  std::optional<Rational> den = parseDecimal(right);
  if (!den)
    return std::nullopt;
  Rational result = *num / *den;
  return result.isValid() ? std::optional<Rational>(result) : std::nullopt;
}
