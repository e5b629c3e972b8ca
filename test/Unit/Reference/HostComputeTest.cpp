//===- HostComputeTest.cpp - What host code computes, against plain C++ ---===//
#include "HostCode.h"

#include "llvm/ADT/APFloat.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

using namespace mlir::ncclx::test;

namespace {

/// Varied, exact in every format: multiples of 1/8 in [-4, 4).
std::vector<float> numbers(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  for (float &value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = (int(seed >> 26) - 32) / 8.0f;
  }
  return values;
}

std::vector<uint16_t> asBF16(const std::vector<float> &values) {
  std::vector<uint16_t> bits;
  for (float value : values)
    bits.push_back(floatToBF16(value));
  return bits;
}

TEST(HostCompute, ElementwiseF32OnOddSizes) {
  HostCode code(R"(
    func.func @f(%a: memref<3x7xf32>, %b: memref<3x7xf32>, %c: memref<3x7xf32>) {
      linalg.add ins(%a, %b : memref<3x7xf32>, memref<3x7xf32>) outs(%c : memref<3x7xf32>)
      linalg.mul ins(%c, %b : memref<3x7xf32>, memref<3x7xf32>) outs(%c : memref<3x7xf32>)
      return
    })");
  std::vector<float> a = numbers(21, 1), b = numbers(21, 2), c(21);
  a[0] = 0.1f, b[0] = 0.2f;
  code.call("f", a.data(), b.data(), c.data());
  for (size_t i = 0; i < 21; ++i) {
    volatile float sum = a[i] + b[i];
    EXPECT_EQ(c[i], sum * b[i]) << i;
  }
}

TEST(HostCompute, IntegersWrap) {
  HostCode code(R"(
    func.func @f(%a: memref<5xi32>, %b: memref<5xi64>) {
      linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        outs(%a : memref<5xi32>) { ^bb0(%x: i32):
          %y = arith.addi %x, %x overflow<nsw> : i32
          linalg.yield %y : i32 }
      linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        outs(%b : memref<5xi64>) { ^bb0(%x: i64):
          %y = arith.muli %x, %x : i64
          linalg.yield %y : i64 }
      return
    })");
  std::vector<int32_t> a = {0, 1, -7, INT32_MAX, INT32_MIN};
  std::vector<int64_t> b = {0, -3, int64_t(1) << 40, INT64_MAX, INT64_MIN};
  std::vector<int32_t> wantA;
  std::vector<int64_t> wantB;
  for (int i = 0; i < 5; ++i) {
    wantA.push_back(int32_t(uint32_t(a[i]) * 2));
    wantB.push_back(int64_t(uint64_t(b[i]) * uint64_t(b[i])));
  }
  code.call("f", a.data(), b.data());
  EXPECT_EQ(a, wantA);
  EXPECT_EQ(b, wantB);
}

// Two adds round twice, though someone wrote fastmath: 256 + 1 is a tie that falls back to 256, and
// so does the next.
TEST(HostCompute, BF16RoundsAfterEveryOp) {
  HostCode code(R"(
    func.func @f(%a: memref<1xbf16>, %b: memref<1xbf16>) {
      linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                      iterator_types = ["parallel"]}
        ins(%b : memref<1xbf16>) outs(%a : memref<1xbf16>) { ^bb0(%y: bf16, %x: bf16):
          %s = arith.addf %x, %y fastmath<fast> : bf16
          %t = arith.addf %s, %y fastmath<fast> : bf16
          linalg.yield %t : bf16 }
      return
    })");
  uint16_t a = floatToBF16(256), b = floatToBF16(1);
  code.call("f", &a, &b);
  EXPECT_EQ(bf16ToFloat(a), 256.0f);
}

TEST(HostCompute, NothingIsContracted) {
  HostCode code(R"(
    func.func @f(%a: memref<3xf32>) {
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %2 = arith.constant 2 : index
      %x = memref.load %a[%0] : memref<3xf32>
      %y = memref.load %a[%1] : memref<3xf32>
      %z = memref.load %a[%2] : memref<3xf32>
      %p = arith.mulf %x, %y fastmath<contract> : f32
      %s = arith.addf %p, %z fastmath<contract> : f32
      memref.store %s, %a[%0] : memref<3xf32>
      return
    })");
  float x = 1.0f + 0x1p-12f;
  volatile float product = x * x;
  std::vector<float> a = {x, x, -product};
  code.call("f", a.data());
  EXPECT_EQ(a[0], 0.0f); // fused it would be 2^-24
}

TEST(HostCompute, HalfConversionsOverAllCodes) {
  HostCode code(R"(
    func.func @bf16(%a: memref<65536xbf16>, %b: memref<65536xbf16>) {
      linalg.add ins(%a, %b : memref<65536xbf16>, memref<65536xbf16>)
                 outs(%b : memref<65536xbf16>)
      return
    }
    func.func @f16(%a: memref<65536xf16>, %b: memref<65536xf16>) {
      linalg.add ins(%a, %b : memref<65536xf16>, memref<65536xf16>) outs(%b : memref<65536xf16>)
      return
    })");
  std::vector<uint16_t> a(65536), b(65536), c(65536), d(65536);
  for (uint32_t i = 0; i < 65536; ++i) {
    a[i] = uint16_t(i);
    b[i] = c[i] = uint16_t(i * 40503u + 7u);
  }
  d = c;
  code.call("bf16", a.data(), b.data());
  code.call("f16", a.data(), c.data());
  for (uint32_t i = 0; i < 65536; ++i) {
    uint16_t want = floatToBF16(bf16ToFloat(a[i]) + bf16ToFloat(d[i]));
    if (std::isnan(bf16ToFloat(want)))
      ASSERT_TRUE(std::isnan(bf16ToFloat(b[i]))) << i;
    else
      ASSERT_EQ(b[i], want) << i;
    want = floatToF16(f16ToFloat(a[i]) + f16ToFloat(d[i]));
    if (std::isnan(f16ToFloat(want)))
      ASSERT_TRUE(std::isnan(f16ToFloat(c[i]))) << i;
    else
      ASSERT_EQ(c[i], want) << i;
  }
}

// Exact in every wider type, NaNs but for their bits.
TEST(HostCompute, BytesExtendOverAllCodes) {
  for (const char *name : {"f8E4M3FN", "f8E5M2"}) {
    std::string text = R"(
      func.func @f(%a: memref<256xBYTE>, %f: memref<256xf32>, %d: memref<256xf64>, %h: memref<256xf16>) {
        linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                        iterator_types = ["parallel"]}
          ins(%a : memref<256xBYTE>) outs(%f, %d, %h : memref<256xf32>, memref<256xf64>, memref<256xf16>) {
          ^bb0(%x: BYTE, %o: f32, %p: f64, %q: f16):
            %s = arith.extf %x : BYTE to f32
            %t = arith.extf %x : BYTE to f64
            %u = arith.extf %x : BYTE to f16
            linalg.yield %s, %t, %u : f32, f64, f16 }
        return
      })";
    for (size_t at; (at = text.find("BYTE")) != std::string::npos;)
      text.replace(at, 4, name);
    HostCode code(text);
    std::vector<uint8_t> a(256);
    for (int i = 0; i < 256; ++i)
      a[i] = uint8_t(i);
    std::vector<float> f(256);
    std::vector<double> d(256);
    std::vector<uint16_t> h(256);
    code.call("f", a.data(), f.data(), d.data(), h.data());
    const llvm::fltSemantics &semantics =
        name[3] == '4' ? llvm::APFloat::Float8E4M3FN() : llvm::APFloat::Float8E5M2();
    for (int i = 0; i < 256; ++i) {
      llvm::APFloat exact(semantics, llvm::APInt(8, i)),
          half(llvm::APFloat::IEEEhalf(), llvm::APInt(16, h[i]));
      if (exact.isNaN()) {
        EXPECT_TRUE(std::isnan(f[i]) && std::isnan(d[i]) && half.isNaN()) << name << " " << i;
        continue;
      }
      double want = exact.convertToDouble();
      EXPECT_EQ(f[i], want) << name << " " << i;
      EXPECT_EQ(d[i], want) << name << " " << i;
      EXPECT_EQ(half.convertToDouble(), want) << name << " " << i;
      EXPECT_EQ(std::signbit(f[i]), exact.isNegative()) << name << " " << i;
    }
  }
}

// Each of these is rounded wrongly by a conversion that goes through the nearest f32 or f64.
TEST(HostCompute, WideToHalfRoundsOnce) {
  HostCode code(R"(
    #id = affine_map<(i) -> (i)>
    func.func @f(%a: memref<7xf64>, %b: memref<7xbf16>) {
      linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%a : memref<7xf64>) outs(%b : memref<7xbf16>) { ^bb0(%x: f64, %o: bf16):
          %y = arith.truncf %x : f64 to bf16
          linalg.yield %y : bf16 }
      return
    }
    func.func @g(%a: memref<3xi64>, %b: memref<3xbf16>) {
      linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%a : memref<3xi64>) outs(%b : memref<3xbf16>) { ^bb0(%x: i64, %o: bf16):
          %y = arith.sitofp %x : i64 to bf16
          linalg.yield %y : bf16 }
      return
    })");
  double tie = 1.0 + 0x1p-8; // between 1 and 1 + 2^-7
  std::vector<double> a = {tie,
                           tie + 0x1p-40,
                           -(tie + 0x1p-40),
                           tie - 0x1p-40,
                           0x1p-300,
                           std::numeric_limits<double>::infinity(),
                           NAN};
  std::vector<uint16_t> b(7);
  code.call("f", a.data(), b.data());
  EXPECT_EQ(bf16ToFloat(b[0]), 1.0f);
  EXPECT_EQ(bf16ToFloat(b[1]), 1.0f + 0x1p-7f);
  EXPECT_EQ(bf16ToFloat(b[2]), -1.0f - 0x1p-7f);
  EXPECT_EQ(bf16ToFloat(b[3]), 1.0f);
  EXPECT_EQ(b[4], 0);
  EXPECT_EQ(b[5], 0x7f80);
  EXPECT_TRUE(std::isnan(bf16ToFloat(b[6])));

  int64_t integerTie = (int64_t(1) << 60) + (int64_t(1) << 52);
  std::vector<int64_t> c = {integerTie, integerTie + 1, -integerTie - 1};
  std::vector<uint16_t> d(3);
  code.call("g", c.data(), d.data());
  EXPECT_EQ(bf16ToFloat(d[0]), 0x1p60f);
  EXPECT_EQ(bf16ToFloat(d[1]), 0x1p60f + 0x1p53f);
  EXPECT_EQ(bf16ToFloat(d[2]), -0x1p60f - 0x1p53f);
}

TEST(HostCompute, NanInfinityDenormalsAndSignedZeros) {
  HostCode code(R"(
    func.func @f(%a: memref<6xf32>, %b: memref<6xf32>, %c: memref<6xf32>) {
      linalg.max ins(%a, %b : memref<6xf32>, memref<6xf32>) outs(%c : memref<6xf32>)
      return
    }
    func.func @half(%a: memref<6xf32>) {
      %h = arith.constant 0.5 : f32
      linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        outs(%a : memref<6xf32>) { ^bb0(%x: f32):
          %y = arith.mulf %x, %h : f32
          linalg.yield %y : f32 }
      return
    })");
  float inf = std::numeric_limits<float>::infinity(), tiny = 0x1p-149f;
  std::vector<float> a = {NAN, 1, -0.0f, 0.0f, -inf, 3 * tiny},
                     b = {1, NAN, 0.0f, -0.0f, inf, tiny}, c(6);
  code.call("f", a.data(), b.data(), c.data());
  EXPECT_TRUE(std::isnan(c[0]));
  EXPECT_TRUE(std::isnan(c[1]));
  EXPECT_FALSE(std::signbit(c[2]));
  EXPECT_FALSE(std::signbit(c[3]));
  EXPECT_EQ(c[4], inf);
  EXPECT_EQ(c[5], 3 * tiny);
  std::vector<float> d = {tiny, 3 * tiny, 0x1p-126f, -tiny, inf, 0};
  code.call("half", d.data());
  EXPECT_EQ(d, (std::vector<float>{0, 2 * tiny, 0x1p-127f, -0.0f, inf, 0}));
}

// out[m,n] = sum over k from 0 up, in f32: the plain loop must give the same bits whatever the
// operands' layout. 5, 7, 3 and 8, 6, 33 have remainders for every unrolling.
void checkMatmul(int64_t m, int64_t n, int64_t k, bool transposeA, bool transposeB) {
  auto shape = [](int64_t a, int64_t b) {
    return "memref<" + std::to_string(a) + "x" + std::to_string(b);
  };
  std::string ta = (transposeA ? shape(k, m) : shape(m, k)) + "xbf16>";
  std::string tb = (transposeB ? shape(n, k) : shape(k, n)) + "xbf16>";
  std::string tc = shape(m, n) + "xf32>";
  HostCode code("func.func @f(%a: " + ta + ", %b: " + tb + ", %c: " + tc + R"() {
      %zero = arith.constant 0.0 : f32
      linalg.fill ins(%zero : f32) outs(%c : )" +
                tc + R"()
      linalg.matmul indexing_maps = [affine_map<(m, n, k) -> ()" +
                (transposeA ? "k, m" : "m, k") + ")>, affine_map<(m, n, k) -> (" +
                (transposeB ? "n, k" : "k, n") + R"()>, affine_map<(m, n, k) -> (m, n)>]
        ins(%a, %b : )" +
                ta + ", " + tb + ") outs(%c : " + tc + R"()
      return
    })");
  std::vector<uint16_t> a = asBF16(numbers(m * k, 3)), b = asBF16(numbers(k * n, 4));
  for (size_t i = 0; i < a.size(); i += 5)
    a[i] = floatToBF16(0.1f * float(i % 31)); // sums that depend on their order
  std::vector<float> c(m * n, -1);
  code.call("f", a.data(), b.data(), c.data());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        volatile float product = bf16ToFloat(transposeA ? a[l * m + i] : a[i * k + l]) *
                                 bf16ToFloat(transposeB ? b[j * k + l] : b[l * n + j]);
        sum = sum + product;
      }
      ASSERT_EQ(c[i * n + j], sum) << i << ", " << j;
    }
}

TEST(HostCompute, MatmulInEveryLayout) {
  for (auto [m, n, k] : {std::array{5, 7, 3}, {8, 6, 33}, {1, 1, 1}, {4, 40, 64}})
    for (int layout = 0; layout < 4; ++layout)
      checkMatmul(m, n, k, layout & 1, layout & 2);
}

TEST(HostCompute, EmptyMatmulIsZero) { checkMatmul(3, 5, 0, false, true); }

TEST(HostCompute, ReductionsRunFromZeroUp) {
  HostCode code(R"(
    func.func @f(%a: memref<3x101xf32>, %b: memref<3xf32>) {
      linalg.reduce ins(%a : memref<3x101xf32>) outs(%b : memref<3xf32>) dimensions = [1]
        (%x: f32, %acc: f32) { %s = arith.addf %acc, %x : f32
                               linalg.yield %s : f32 }
      return
    })");
  std::vector<float> a = numbers(303, 5), b = {0.3f, 0, 1e8f};
  for (size_t i = 0; i < a.size(); i += 3)
    a[i] *= 0.1f;
  std::vector<float> want = b;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 101; ++j)
      want[i] = want[i] + a[i * 101 + j];
  code.call("f", a.data(), b.data());
  EXPECT_EQ(b, want);
}

TEST(HostCompute, CopiesViewsBroadcastAndTranspose) {
  HostCode code(R"(
    func.func @f(%a: memref<4x6xf32>, %b: memref<6x4xf32>, %c: memref<2x3xf32>,
                 %d: memref<2x4x6xf32>) {
      linalg.transpose ins(%a : memref<4x6xf32>) outs(%b : memref<6x4xf32>) permutation = [1, 0]
      %s = memref.subview %a[1, 2] [2, 3] [2, 1]
        : memref<4x6xf32> to memref<2x3xf32, strided<[12, 1], offset: 8>>
      memref.copy %s, %c : memref<2x3xf32, strided<[12, 1], offset: 8>> to memref<2x3xf32>
      %flat = memref.collapse_shape %c [[0, 1]] : memref<2x3xf32> into memref<6xf32>
      %again = memref.expand_shape %flat [[0, 1]] output_shape [3, 2]
        : memref<6xf32> into memref<3x2xf32>
      %i = arith.constant 2 : index
      %one = arith.constant 1 : index
      %v = arith.constant 99.0 : f32
      memref.store %v, %again[%i, %one] : memref<3x2xf32>
      linalg.broadcast ins(%a : memref<4x6xf32>) outs(%d : memref<2x4x6xf32>) dimensions = [0]
      return
    })");
  std::vector<float> a(24), b(24), c(6), d(48);
  for (int i = 0; i < 24; ++i)
    a[i] = float(i);
  code.call("f", a.data(), b.data(), c.data(), d.data());
  for (int i = 0; i < 24; ++i) {
    EXPECT_EQ(b[(i % 6) * 4 + i / 6], float(i));
    EXPECT_EQ(d[i], float(i));
    EXPECT_EQ(d[24 + i], float(i));
  }
  EXPECT_EQ(c, (std::vector<float>{8, 9, 10, 20, 21, 99}));
}

TEST(HostCompute, MathFunctionsAreClose) {
  HostCode code(R"(
    #id = affine_map<(i) -> (i)>
    func.func @f(%a: memref<64xf32>, %e: memref<64xf32>, %t: memref<64xf32>, %r: memref<64xf32>) {
      linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
        ins(%a : memref<64xf32>)
        outs(%e, %t, %r : memref<64xf32>, memref<64xf32>, memref<64xf32>) {
        ^bb0(%x: f32, %0: f32, %1: f32, %2: f32):
          %y = math.exp %x : f32
          %z = math.tanh %x : f32
          %p = math.absf %x : f32
          %q = math.rsqrt %p : f32
          linalg.yield %y, %z, %q : f32, f32, f32 }
      return
    }
    func.func @b(%a: memref<64xbf16>) {
      linalg.exp ins(%a : memref<64xbf16>) outs(%a : memref<64xbf16>)
      return
    })");
  std::vector<float> a(64), e(64), t(64), r(64);
  for (int i = 0; i < 64; ++i)
    a[i] = (i - 31.5f) / 4;
  std::vector<uint16_t> b = asBF16(a);
  code.call("f", a.data(), e.data(), t.data(), r.data());
  code.call("b", b.data());
  for (int i = 0; i < 64; ++i) {
    EXPECT_NEAR(e[i], std::exp(a[i]), 4e-7 * std::exp(a[i]));
    EXPECT_NEAR(t[i], std::tanh(a[i]), 4e-7);
    EXPECT_EQ(r[i], 1.0f / std::sqrt(std::fabs(a[i])));
    float exact = std::exp(bf16ToFloat(floatToBF16(a[i])));
    EXPECT_NEAR(bf16ToFloat(b[i]), exact, exact / 250);
  }
}

TEST(HostCompute, CallsLoopsAndExternals) {
  static int64_t seen = 0;
  auto note = +[](int64_t value) -> int32_t {
    seen = seen * 10 + value;
    return value == 3 ? 7 : 0;
  };
  HostCode code(R"(
    func.func private @note(i64) -> i32
    func.func @twice(%a: memref<3xf32>) {
      linalg.add ins(%a, %a : memref<3xf32>, memref<3xf32>) outs(%a : memref<3xf32>)
      return
    }
    func.func @schedule(%n: i64, %a: memref<3xf32>) -> i32 {
      %0 = arith.constant 0 : i64
      %1 = arith.constant 1 : i64
      %ok = arith.constant 0 : i32
      %status = scf.for %i = %0 to %n step %1 iter_args(%s = %ok) -> (i32) : i64 {
        %c = func.call @note(%i) : (i64) -> i32
        %o = arith.ori %s, %c : i32
        func.call @twice(%a) : (memref<3xf32>) -> ()
        scf.yield %o : i32
      }
      return %status : i32
    })",
                {{"note", reinterpret_cast<void *>(note)}});
  ASSERT_TRUE(code.jit) << code.messages;
  float a[3] = {1, 2, 3};
  auto schedule = code.jit->lookupAs<int32_t(int64_t, float *)>("schedule");
  ASSERT_TRUE(bool(schedule));
  EXPECT_EQ((*schedule)(4, a), 7);
  EXPECT_EQ(seen, 123);
  EXPECT_EQ(a[2], 48.0f);
  EXPECT_EQ((*schedule)(-1, a), 0); // signed: no turn at all
  EXPECT_EQ(seen, 123);
}

TEST(HostCompute, RefusesByName) {
  auto message = [](const char *text) { return HostCode(text).messages; };
  EXPECT_NE(message("func.func @f(%a: memref<?xf32>) { return }").find("static shape"),
            std::string::npos);
  EXPECT_NE(message("func.func @f(%a: tensor<4xf32>) { return }").find("on memrefs"),
            std::string::npos);
  EXPECT_NE(message("func.func @f(%a: memref<4xf8E4M3B11FNUZ>) { return }").find("f8E4M3B11FNUZ"),
            std::string::npos);
  EXPECT_NE(message(R"(func.func @f(%a: memref<1xf64>) {
      linalg.exp ins(%a : memref<1xf64>) outs(%a : memref<1xf64>)
      return })")
                .find("same on every machine"),
            std::string::npos);
  EXPECT_NE(message(R"(func.func private @nobody(i64)
      func.func @f(%a: i64) {
        func.call @nobody(%a) : (i64) -> ()
        return })")
                .find("nobody"),
            std::string::npos);
  EXPECT_NE(message(R"(func.func @f(%a: f32) -> bf16 {
        %b = arith.truncf %a upward : f32 to bf16
        return %b : bf16 })")
                .find("nearest even"),
            std::string::npos);
}

} // namespace
