//===- RationalTest.cpp ---------------------------------------------------===//
#include "ncclx/Topology/Rational.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir::ncclx::topology;

namespace {
Rational parsed(llvm::StringRef text) {
  std::optional<Rational> value = Rational::parse(text);
  return value ? *value : Rational::invalid();
}

TEST(Rational, ReducesAndKeepsTheSignAbove) {
  EXPECT_EQ(Rational::make(6, -4).str(), "-3/2");
  EXPECT_EQ(Rational::make(0, -7).str(), "0");
  EXPECT_FALSE(Rational::make(1, 0).isValid());
}

TEST(Rational, ParsesDecimalsExactly) {
  EXPECT_EQ(parsed("20.6").str(), "103/5");
  EXPECT_EQ(parsed("370.8/7").str(), "1854/35");
  EXPECT_EQ(parsed("2.5e10").str(), "25000000000");
  EXPECT_EQ(parsed("-3e-2").str(), "-3/100");
  EXPECT_EQ(parsed(".5").str(), "1/2");
}

TEST(Rational, RefusesWhatIsNoNumber) {
  for (llvm::StringRef text : {"", "-", ".", "nan", "inf", "1e", "1e+", "0x10", "1/0", "1/", "/2",
                               "1.2.3", "1e1001", "1 2", "1e300", "--1", "1e+-2"})
    EXPECT_FALSE(Rational::parse(text).has_value()) << text.str();
}

TEST(Rational, OverflowIsInvalidAndSpreads) {
  Rational big = Rational::make(Rational::Int(1) << 100, 1);
  Rational product = big * big;
  EXPECT_FALSE(product.isValid());
  EXPECT_FALSE((product + Rational(1)).isValid());
  EXPECT_FALSE(product == product);
  EXPECT_FALSE(product < Rational(1));
  EXPECT_FALSE(product >= Rational(1));
  EXPECT_TRUE(std::isnan(product.toDouble()));
}

TEST(Rational, ComparesWithoutOverflow) {
  Rational::Int huge = (Rational::Int(1) << 126) - 1;
  Rational a = Rational::make(huge, huge - 1), b = Rational::make(huge - 1, huge - 2);
  EXPECT_LT(a, b);
  EXPECT_GT(Rational::make(-1, 3), Rational::make(-1, 2));
  EXPECT_LT(Rational::make(-7, 2), Rational(-3));
  EXPECT_EQ(Rational::make(2, 4), Rational::make(1, 2));
  EXPECT_LT(Rational(2), Rational::make(7, 3));
  EXPECT_GT(Rational::make(7, 3), Rational(2));
}

TEST(Rational, WideAndNarrowValuesAgree) {
  // Either side of 64 bits, and the values whose negation or quotient is special.
  Rational::Int wide = Rational::Int(1) << 90;
  EXPECT_EQ(Rational::make(wide * 6, wide * 4), Rational::make(3, 2));
  EXPECT_EQ(Rational::make(wide * 3, 6), Rational::make(wide, 2));
  EXPECT_EQ(Rational::make(7, -1), Rational(-7));
  EXPECT_EQ(Rational::make(INT64_MIN, -1).numerator(), -Rational::Int(INT64_MIN));
  EXPECT_EQ(Rational::make(INT64_MIN, INT64_MIN), Rational(1));
  EXPECT_EQ(Rational(5) * Rational(-7) + Rational(36), Rational(1));
}

TEST(Rational, Arithmetic) {
  EXPECT_EQ(Rational::make(1, 3) + Rational::make(1, 6), Rational::make(1, 2));
  EXPECT_EQ(Rational::make(1, 3) - Rational::make(1, 2), Rational::make(-1, 6));
  EXPECT_EQ(Rational::make(2, 3) / Rational::make(4, 9), Rational::make(3, 2));
  EXPECT_FALSE((Rational(1) / Rational(0)).isValid());
}
} // namespace
