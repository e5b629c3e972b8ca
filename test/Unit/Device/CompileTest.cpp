//===- CompileTest.cpp - Images that were compiled ahead of time ----------===//
#include "cuda/Compile.h"
#include "cuda/Reductions.h"

#include "gtest/gtest.h"

using namespace ncclxrt;
using namespace ncclxrt::cuda;

namespace {

const std::string ptx = ".version 8.0\n.target sm_90\n.address_size 64\n";

CompileOptions optionsFor(int architecture) {
  CompileOptions options;
  options.architecture = architecture;
  options.nvrtc = "/nowhere";
  return options;
}

TEST(Images, PtxIsTheDriversUnlessItIsTooNew) {
  std::string image;
  ASSERT_TRUE(assemble(ptx, optionsFor(90), image).ok());
  EXPECT_EQ(image, ptx);
  EXPECT_TRUE(assemble(ptx, optionsFor(100), image).ok());
  Status refused = assemble(ptx, optionsFor(80), image);
  EXPECT_EQ(refused.code(), ncclxrtUnsupported);
  EXPECT_EQ(refused.text(), "its kernels are PTX for sm_90 or later, but its GPU is sm_80");
}

TEST(Images, AreFoundByTextAndArchitecture) {
  const std::string source = "extern \"C\" __global__ void f() {}";
  std::string key = imageKey(source, 90), ptxKey = imageKey(ptx, 90);
  EXPECT_NE(key, imageKey(source, 100));
  EXPECT_NE(key, ptxKey);
  const char code[] = {'c', 0, 'd'}; // machine code is no string
  CompileOptions options = optionsFor(90);
  options.images = {{key.c_str(), 90, 0, code, sizeof code}, {ptxKey.c_str(), 90, 0, code, 1}};
  std::string image;
  ASSERT_TRUE(compile(source, options, image).ok()); // without NVRTC
  EXPECT_EQ(image, std::string(code, sizeof code));
  ASSERT_TRUE(assemble(ptx, options, image).ok());
  EXPECT_EQ(image, "c");
  // Nothing is compiled in the place of what is not there.
  Status other = compile(source + " ", options, image);
  EXPECT_EQ(other.code(), ncclxrtVersionMismatch);
  EXPECT_EQ(assemble(ptx + " ", options, image).code(), ncclxrtVersionMismatch);
  EXPECT_TRUE(options.suit().ok());
  options.architecture = 100;
  EXPECT_EQ(options.suit().text(),
            "its kernels were compiled ahead of time for sm_90, but its GPU is sm_100");
  EXPECT_TRUE(optionsFor(100).suit().ok());
}

TEST(Images, ReductionsThatNoGpuDoesAreRefused) {
  std::pair<int, int> found;
  EXPECT_TRUE(findReduction({ncclxrtReduceSum, ncclxrtBf16, ncclxrtF32, 0, 1}, found).ok());
  EXPECT_EQ(reductionName(found), "ncclxrt_reduce_avg_bf16");
  EXPECT_TRUE(findReduction({ncclxrtReduceSum, ncclxrtE5m2, ncclxrtF32, 1, 0}, found).ok());
  EXPECT_EQ(reductionName(found), "ncclxrt_reduce_scaled_e5m2");
  auto code = [&](ncclxrtCudaReduction_t r) { return findReduction(r, found).code(); };
  EXPECT_EQ(code({4, ncclxrtF32, ncclxrtF32, 0, 0}), ncclxrtInvalidArgument);
  EXPECT_EQ(code({-1, ncclxrtF32, ncclxrtF32, 0, 0}), ncclxrtInvalidArgument);
  EXPECT_EQ(code({ncclxrtReduceSum, 99, 99, 0, 0}), ncclxrtInvalidArgument);
  EXPECT_EQ(code({ncclxrtReduceSum, ncclxrtF32, ncclxrtF64, 0, 0}), ncclxrtUnsupported);
  EXPECT_EQ(code({ncclxrtReduceSum, ncclxrtF32, ncclxrtF32, 1, 1}), ncclxrtUnsupported);
  EXPECT_EQ(code({ncclxrtReduceMax, ncclxrtF32, ncclxrtF32, 0, 1}), ncclxrtUnsupported);
}

} // namespace
