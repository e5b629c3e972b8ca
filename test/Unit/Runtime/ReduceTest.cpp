//===- ReduceTest.cpp - Reductions against a simple reference -------------===//
//
// The reference rounds by looking for the nearest of all values of a 16-bit format, and reduces one
// element at a time: it shares no code with the runtime.
//
//===----------------------------------------------------------------------===//
#include "Floats.h"
#include "Harness.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace harness;

namespace {

/// The value of a 16-bit float by the definition of its format; of an 8-bit one with 2 or 3 bits of
/// mantissa, of which E4M3 has no infinities and one NaN of each sign.
double decode(uint16_t bits, int manBits) {
  int width = manBits < 4 ? 8 : 16, expBits = width - 1 - manBits, bias = (1 << (expBits - 1)) - 1;
  int exponent = bits >> manBits & ((1 << expBits) - 1);
  double mantissa = bits & ((1 << manBits) - 1), sign = bits >> (width - 1) & 1 ? -1 : 1;
  if (manBits == 3 ? (bits & 0x7f) == 0x7f : exponent == (1 << expBits) - 1)
    return mantissa != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0)
    return sign * std::ldexp(mantissa, 1 - bias - manBits);
  return sign * std::ldexp(mantissa + (1 << manBits), exponent - bias - manBits);
}

/// The nearest of all magnitudes, ties to even; past the largest by half a step it is infinite, or
/// the NaN of E4M3.
uint16_t encode(double value, int manBits) {
  int width = manBits < 4 ? 8 : 16;
  uint16_t sign = std::signbit(value) ? uint16_t(1 << (width - 1)) : 0;
  if (std::isnan(value))
    return uint16_t((1 << (width - 1)) - 1);
  long double v = std::fabs((long double)value);
  uint16_t infinity = manBits == 3 ? 0x7f : uint16_t(((1 << (width - 1 - manBits)) - 1) << manBits);
  // Magnitudes grow with their bits; infinity stands for the value one step past the largest.
  auto magnitude = [&](uint16_t b) -> long double {
    if (b < infinity)
      return decode(b, manBits);
    return 2 * (long double)decode(uint16_t(infinity - 1), manBits) -
           decode(uint16_t(infinity - 2), manBits);
  };
  uint16_t low = 0, high = infinity; // low <= v
  if (v >= magnitude(infinity))
    return sign | infinity;
  while (high - low > 1) {
    uint16_t middle = uint16_t((low + high) / 2);
    (magnitude(middle) <= v ? low : high) = middle;
  }
  long double below = v - magnitude(low), above = magnitude(high) - v;
  return sign | (below < above || (below == above && low % 2 == 0) ? low : high);
}

TEST(Floats, WideningIsExact) {
  for (uint32_t b = 0; b < 65536; ++b) {
    float f16 = ncclxrt::F16{uint16_t(b)}, bf16 = ncclxrt::Bf16{uint16_t(b)};
    double d = decode(uint16_t(b), 10), e = decode(uint16_t(b), 7);
    ASSERT_TRUE(std::isnan(d) ? std::isnan(f16) : f16 == d && std::signbit(f16) == std::signbit(d))
        << b;
    ASSERT_TRUE(std::isnan(e) ? std::isnan(bf16)
                              : bf16 == e && std::signbit(bf16) == std::signbit(e))
        << b;
  }
}

template <typename F> void expectNarrow(double v) {
  constexpr int man = std::is_same_v<F, ncclxrt::F16> ? 10 : 7;
  uint16_t expected = encode(v, man), found = F::from(v).bits;
  if (std::isnan(v))
    ASSERT_TRUE(std::isnan(decode(found, man)));
  else
    ASSERT_EQ(found, expected) << v;
}

TEST(Floats, EightBits) {
  for (uint32_t b = 0; b < 256; ++b)
    for (int man : {2, 3}) {
      double v = decode(uint16_t(b), man);
      float wide = man == 2 ? float(ncclxrt::E5m2{uint8_t(b)}) : float(ncclxrt::E4m3{uint8_t(b)});
      ASSERT_TRUE(std::isnan(v) ? std::isnan(wide)
                                : wide == v && std::signbit(wide) == std::signbit(v))
          << b;
      if (!std::isfinite(v))
        continue;
      double next = decode(uint16_t(b + 1), man), middle = (v + next) / 2;
      for (double x : {v, middle, std::nextafter(middle, -INFINITY),
                       std::nextafter(middle, INFINITY), v * 1e9, 464.0, 464.01, -61440.0}) {
        uint16_t expected = encode(x, man);
        uint8_t found = man == 2 ? ncclxrt::E5m2::from(x).bits : ncclxrt::E4m3::from(x).bits;
        if (std::isnan(decode(expected, man)))
          ASSERT_TRUE(std::isnan(decode(found, man))) << x;
        else
          ASSERT_EQ(found, expected) << x;
      }
    }
}

TEST(Floats, NarrowingRoundsOnceToNearestEven) {
  std::mt19937_64 random(7);
  for (uint32_t b = 0; b < 65536; ++b)
    for (int man : {7, 10}) {
      double v = decode(uint16_t(b), man);
      if (!std::isfinite(v))
        continue;
      double next = decode(uint16_t(b + 1), man), middle = (v + next) / 2;
      for (double x :
           {v, middle, std::nextafter(middle, -INFINITY), std::nextafter(middle, INFINITY)}) {
        expectNarrow<ncclxrt::F16>(x);
        expectNarrow<ncclxrt::Bf16>(x);
      }
    }
  for (int i = 0; i < 50'000; ++i) {
    double x = std::bit_cast<double>(random());
    float f = std::bit_cast<float>(uint32_t(random()));
    expectNarrow<ncclxrt::F16>(x);
    expectNarrow<ncclxrt::Bf16>(x);
    expectNarrow<ncclxrt::F16>(f);
    if (!std::isnan(f))
      ASSERT_EQ(ncclxrt::Bf16::from(f).bits, encode(f, 7)) << f;
    else
      ASSERT_TRUE(std::isnan(float(ncclxrt::Bf16::from(f))));
  }
}

/// One element of any dtype, as the reference holds it.
struct Value {
  double f = 0;
  int64_t i = 0;
};

bool isUnsigned(int dtype) { return dtype >= ncclxrtU8 && dtype <= ncclxrtU64; }
bool isInt(int dtype) { return dtype >= ncclxrtI32 && dtype <= ncclxrtU64; }
int sizeOf(int dtype) {
  switch (dtype) {
  case ncclxrtF64:
  case ncclxrtI64:
  case ncclxrtU64:
    return 8;
  case ncclxrtF32:
  case ncclxrtI32:
  case ncclxrtU32:
    return 4;
  case ncclxrtF16:
  case ncclxrtBf16:
  case ncclxrtI16:
  case ncclxrtU16:
    return 2;
  default:
    return 1;
  }
}
/// Bits of mantissa of a narrow float, or 0.
int mantissaOf(int dtype) {
  return dtype == ncclxrtBf16   ? 7
         : dtype == ncclxrtF16  ? 10
         : dtype == ncclxrtE4m3 ? 3
         : dtype == ncclxrtE5m2 ? 2
                                : 0;
}

/// Cut to a dtype's bits.
int64_t wrap(int64_t i, int dtype) {
  int unused = 64 - 8 * sizeOf(dtype);
  return isUnsigned(dtype) ? int64_t(uint64_t(i) << unused >> unused) : i << unused >> unused;
}

Value load(const std::byte *p, int dtype) {
  Value v;
  uint64_t bits = 0;
  memcpy(&bits, p, size_t(sizeOf(dtype)));
  if (isInt(dtype))
    v.i = wrap(int64_t(bits), dtype);
  else if (dtype == ncclxrtF32)
    v.f = std::bit_cast<float>(uint32_t(bits));
  else if (dtype == ncclxrtF64)
    v.f = std::bit_cast<double>(bits);
  else
    v.f = decode(uint16_t(bits), mantissaOf(dtype));
  return v;
}

/// Rounded to a dtype.
Value round(Value v, int dtype) {
  if (isInt(dtype))
    v.i = wrap(v.i, dtype);
  else if (dtype == ncclxrtF32)
    v.f = float(v.f);
  else if (int mantissa = mantissaOf(dtype))
    v.f = decode(encode(v.f, mantissa), mantissa);
  return v;
}

Value combine(Value a, Value b, int kind, int acc) {
  Value r;
  bool min = kind == ncclxrtReduceMin;
  if (isInt(acc)) {
    bool less = isUnsigned(acc) ? uint64_t(a.i) < uint64_t(b.i) : a.i < b.i;
    r.i = kind == ncclxrtReduceSum    ? int64_t(uint64_t(a.i) + uint64_t(b.i))
          : kind == ncclxrtReduceProd ? int64_t(uint64_t(a.i) * uint64_t(b.i))
          : less == min               ? a.i
                                      : b.i;
  } else if (kind == ncclxrtReduceSum) {
    r.f = a.f + b.f; // of f32 in double, rounded to f32 once more, is the same: 53 >= 2 * 24 + 2
  } else if (kind == ncclxrtReduceProd) {
    r.f = a.f * b.f;
  } else if (std::isnan(a.f) || std::isnan(b.f)) {
    r.f = std::nan("");
  } else if (a.f == b.f) {
    r.f = std::signbit(a.f) == min ? a.f : b.f;
  } else {
    r.f = min ? std::min(a.f, b.f) : std::max(a.f, b.f);
  }
  return round(r, acc);
}

/// Bytes that mean something in every dtype: plain values, and now and then any bits at all, which
/// makes NaNs, infinities, subnormals and integers that overflow.
void fill(std::byte *p, int64_t bytes, int dtype, std::mt19937_64 &random) {
  int size = sizeOf(dtype);
  for (int64_t i = 0; i + size <= bytes; i += size) {
    uint64_t any = random();
    double plain = double(int64_t(any % 2000) - 1000) / 16;
    if (any >> 60 == 0)
      plain = any % 2 ? 0.0 : -0.0;
    float f = float(plain);
    uint16_t narrow = mantissaOf(dtype) ? encode(plain, mantissaOf(dtype)) : 0;
    bool wild = any >> 60 == 1 || isInt(dtype);
    const void *from = wild                  ? static_cast<void *>(&any)
                       : dtype == ncclxrtF32 ? static_cast<void *>(&f)
                       : dtype == ncclxrtF64 ? static_cast<void *>(&plain)
                                             : static_cast<void *>(&narrow);
    memcpy(p + i, from, size_t(size));
  }
}

struct Shape {
  int64_t elements, count, gap; // gap: bytes between sources
  bool withB, rows;
};

void testReduce(Rank &me, int kind, int dtype, int acc, Shape shape, double scale = 1,
                int64_t divisor = 1) {
  int64_t size = sizeOf(dtype), bytes = shape.elements * size, step = bytes + shape.gap;
  std::byte *a = me.buffer(0), *b = me.buffer(1), *out = me.buffer(2);
  memset(out, 0x5a, 200'000);
  // With rows: the sources lie in rows of three elements, the destination in rows of one.
  Box from = whole(0, -1, shape.gap, bytes), to = whole(2, -1, 8, bytes);
  if (shape.rows) {
    from = {0, -1, shape.gap, shape.elements / 3, 4 * size, 3 * size};
    to = {2, -1, 8, shape.elements, 2 * size, size};
    step = 40'000;
  }
  auto at = [](const Box &box, int64_t byte) {
    return box.offset + byte / box.rowBytes * box.stride + byte % box.rowBytes;
  };
  Box second = whole(1, -1, 16, bytes);
  me.run([&](int64_t exec) {
    return reduce(0, exec, 1, kind, dtype, acc, to, from, shape.count, step,
                  shape.withB ? second : Box{-1, 0, 0, 0, 0, 0}, scale, divisor);
  });
  for (int64_t e = 0; e < shape.elements; ++e) {
    Value expected;
    for (int64_t i = 0; i < shape.count + shape.withB; ++i) {
      const std::byte *p =
          i < shape.count ? a + i * step + at(from, e * size) : b + at(second, e * size);
      Value v = round(load(p, dtype), acc);
      if (scale != 1)
        v.f = round({v.f * round({scale}, acc).f}, acc).f;
      expected = i ? combine(expected, v, kind, acc) : v;
    }
    if (divisor != 1) {
      expected.f = round({expected.f / double(divisor)}, acc).f;
      expected.i = isUnsigned(acc) ? int64_t(uint64_t(expected.i) / uint64_t(divisor))
                                   : expected.i / divisor;
    }
    expected = round(expected, dtype);
    Value found = load(out + at(to, e * size), dtype);
    bool same = isInt(dtype) ? found.i == expected.i
                : std::isnan(expected.f)
                    ? std::isnan(found.f)
                    : found.f == expected.f && std::signbit(found.f) == std::signbit(expected.f);
    check(same, "kind " + std::to_string(kind) + " dtype " + std::to_string(dtype) + " acc " +
                    std::to_string(acc) + " element " + std::to_string(e) + ": found " +
                    std::to_string(found.f) + " expected " + std::to_string(expected.f));
  }
}

PlanSpec threeWindows() {
  PlanSpec spec;
  for (const char *name : {"a", "b", "out"})
    spec.windows.push_back({name, 200'000, 1, ncclxrtRoleScratch});
  return spec;
}

TEST(Reduce, AgreesWithReference) {
  Job job;
  job.nranks = 1;
  each(job, [](Rank &me) {
    me.prepare(threeWindows());
    std::mt19937_64 random(1);
    const Shape shapes[] = {{0, 3, 0, false, false},    {1, 1, 0, false, false},
                            {1023, 5, 0, false, false}, {1025, 3, 24, true, false},
                            {2999, 2, 1, true, false}, // sources that are not aligned
                            {999, 4, 8, true, true},    {7, 0, 0, true, false}};
    for (int dtype = ncclxrtF32; dtype <= ncclxrtE5m2; ++dtype) {
      fill(me.buffer(0), 200'000, dtype, random);
      fill(me.buffer(1), 200'000, dtype, random);
      for (int acc = ncclxrtF32; acc <= ncclxrtE5m2; ++acc) {
        bool sameKind = isInt(dtype) == isInt(acc) && isUnsigned(dtype) == isUnsigned(acc);
        if (dtype != acc && !(sameKind && sizeOf(acc) > sizeOf(dtype)))
          continue;
        for (const Shape &shape : shapes) {
          for (int kind = ncclxrtReduceSum; kind <= ncclxrtReduceProd; ++kind)
            testReduce(me, kind, dtype, acc, shape);
          testReduce(me, ncclxrtReduceSum, dtype, acc, shape, 1, 7);
          if (!isInt(dtype))
            testReduce(me, ncclxrtReduceSum, dtype, acc, shape, 0.3, 3);
        }
      }
    }
  });
}

TEST(Reduce, DestinationMayBeASource) {
  Job job;
  job.nranks = 1;
  each(job, [](Rank &me) {
    me.prepare(threeWindows());
    auto *a = reinterpret_cast<float *>(me.buffer(0));
    for (int i = 0; i < 9000; ++i)
      a[i] = float(i);
    me.run([](int64_t exec) {
      return reduce(0, exec, 0, ncclxrtReduceSum, ncclxrtF32, ncclxrtF32,
                    whole(0, -1, 12'000, 12'000), whole(0, -1, 0, 12'000), 3, 12'000);
    });
    for (int i = 0; i < 3000; ++i) {
      check(a[3000 + i] == float(i) + float(3000 + i) + float(6000 + i), std::to_string(i));
      check(a[i] == float(i) && a[6000 + i] == float(6000 + i), "a source changed");
    }
  });
}

TEST(Reduce, ReachesPeersOverShmOnly) {
  for (const char *transport : {"shm", "tcp"}) {
    Job job;
    job.transport = transport;
    auto outcomes = run(job, [](const ncclxrt::LaunchedRank &launched) {
      Rank me(launched.config());
      PlanSpec spec = threeWindows();
      spec.slots = {{"ready", 2, 1, 0}};
      me.prepare(spec);
      reinterpret_cast<int32_t *>(me.buffer(0))[0] = 10 + me.rank;
      me.run([&](int64_t exec) {
        int32_t s = ncclxrt_signal(0, exec, 0, ce, 0, 1 - me.rank, 0);
        s = ncclxrt_wait(s, exec, 1, ce, 0, 0, 1, 1);
        s = reduce(s, exec, 3, ncclxrtReduceSum, ncclxrtI32, ncclxrtI32, whole(2, -1, 0, 4),
                   whole(0, 0, 0, 4), 1, 0, whole(0, 1, 0, 4));
        s = ncclxrt_signal(s, exec, 4, ce, 0, 1 - me.rank, 1);
        return ncclxrt_wait(s, exec, 5, ce, 0, 1, 1, 1);
      });
      check(reinterpret_cast<int32_t *>(me.buffer(2))[0] == 21, "sum");
      me.leave();
    });
    for (const Outcome &o : outcomes) {
      if (job.transport == "shm")
        EXPECT_TRUE(o.exit.ok()) << o.text;
      else
        EXPECT_NE(o.text.find("memory, which transport tcp cannot reach"), std::string::npos)
            << o.text;
    }
  }
}

} // namespace
