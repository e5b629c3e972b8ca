//===- DataTest.cpp - Seeds and comparisons -------------------------------===//
#include "ncclx/Reference/Data.h"
#include "HostCode.h"

#include <cmath>
#include <set>

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::test;

namespace {

struct Data : testing::Test {
  MLIRContext context;
  Builder b{&context};
  Type tensor(std::initializer_list<int64_t> shape, Type element) {
    return RankedTensorType::get(ArrayRef<int64_t>(shape), element);
  }
};

TEST_F(Data, DependsOnSeedRankAndArgumentAlone) {
  Type type = tensor({5, 7}, b.getF32Type());
  auto draw = [&](uint64_t seed, int64_t rank, int64_t argument) {
    std::vector<float> values(35);
    fillInputs(seed, rank, argument, type, values.data());
    return values;
  };
  EXPECT_EQ(draw(1, 2, 3), draw(1, 2, 3));
  std::set<std::vector<float>> all = {draw(1, 2, 3), draw(2, 2, 3), draw(1, 3, 3),
                                      draw(1, 2, 4), draw(2, 1, 3), draw(1, 3, 2)};
  EXPECT_EQ(all.size(), 6u);
  std::vector<float> values = draw(1, 2, 3);
  for (float value : values)
    EXPECT_EQ(value, float(std::lround(value * 10) / 10.0));
  EXPECT_GT(std::set<float>(values.begin(), values.end()).size(), 15u);
}

TEST_F(Data, EveryElementType) {
  EXPECT_EQ(getDenseBytes(tensor({3, 0}, b.getF32Type())), 0);
  EXPECT_EQ(getDenseBytes(b.getIndexType()), 8);
  EXPECT_EQ(getDenseBytes(b.getI1Type()), 1);
  EXPECT_EQ(getDenseBytes(tensor({4}, Float8E4M3FNType::get(&context))), 4);
  EXPECT_EQ(getDenseBytes(tensor({4}, Float4E2M1FNType::get(&context))), 0);
  for (Type element : {Type(b.getBF16Type()), Type(b.getF16Type()), Type(b.getF64Type()),
                       Type(b.getI32Type()), Type(b.getI64Type())}) {
    Type type = tensor({9}, element);
    std::vector<char> x(getDenseBytes(type)), y;
    fillInputs(3, 0, 0, type, x.data());
    y = x;
    EXPECT_TRUE(compare(type, x.data(), y.data()).equal());
    y[getDenseBytes(element) * 4] ^= 1;
    Comparison result = compare(type, x.data(), y.data());
    EXPECT_EQ(result.different, 1);
    EXPECT_EQ(result.first, 4);
  }
}

TEST_F(Data, NanIsNanAndZeroHasASign) {
  Type type = tensor({2, 3}, b.getF32Type());
  float x[6] = {std::bit_cast<float>(0x7fc00001u), 0.0f, 1, 2, NAN, 5};
  float y[6] = {std::bit_cast<float>(0xffc00000u), -0.0f, 1, 2, 3, 5.5f};
  Comparison result = compare(type, x, y);
  EXPECT_EQ(result.different, 3);
  EXPECT_EQ(result.first, 1);
  EXPECT_TRUE(std::isnan(result.largest));
  x[4] = 3;
  EXPECT_EQ(compare(type, x, y).describe(type),
            "2 of 6 elements differ, the first at [0, 1]: expected 0, found -0 "
            "(largest difference 0.5)");
}

// A tolerance is of values: a zero's sign is within any, a NaN in none.
TEST_F(Data, ComparesWithinATolerance) {
  Type type = tensor({4}, b.getF32Type());
  float x[] = {1, 0.0f, 5, 2}, y[] = {1.25f, -0.0f, 5, 2.5f};
  EXPECT_EQ(compare(type, x, y).different, 3);
  EXPECT_EQ(compare(type, x, y, 0).different, 2);
  EXPECT_EQ(compare(type, x, y, 0.25).different, 1);
  EXPECT_EQ(compare(type, x, y, 0.25).first, 3);
  EXPECT_EQ(compare(type, x, y, 0.5).different, 0);
  EXPECT_EQ(compare(type, x, y, 0.5).largest, 0.5);
  EXPECT_EQ(largestMagnitude(type, x), 5);
  y[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(compare(type, x, y, 10).different, 1);
  EXPECT_EQ(largestMagnitude(type, y), 5);
}

} // namespace
