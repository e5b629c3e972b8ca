//===- ScheduleJitTest.cpp - A schedule and its compute in one module -----===//
#include "ncclx/Jit/ScheduleJit.h"
#include "ncclx/Reference/HostCompute.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::ncclx;

namespace {

// A ring of puts whose status is carried from call to call, and a kernel.
const char *text = R"(
  func.func private @ncclxrt_copy(i32, i64, i64, i64) -> i32
  func.func @scale(%a: memref<3xf32>, %out: memref<3xf32>) {
    linalg.add ins(%a, %a : memref<3xf32>, memref<3xf32>) outs(%out : memref<3xf32>)
    return
  }
  func.func @schedule(%ctx: i64, %n: i64) -> i32 {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %ok = arith.constant 0 : i32
    %status = scf.for %i = %zero to %n step %one iter_args(%s = %ok) -> (i32) : i64 {
      %peer = arith.remsi %i, %n : i64
      %c = func.call @ncclxrt_copy(%s, %ctx, %peer, %i) : (i32, i64, i64, i64) -> i32
      scf.yield %c : i32
    }
    return %status : i32
  })";

int32_t copy(int32_t status, int64_t context, int64_t peer, int64_t offset) {
  if (status)
    return status;
  auto *calls = reinterpret_cast<std::vector<int64_t> *>(context);
  calls->push_back(peer * 100 + offset);
  return offset == 2 ? 9 : 0;
}

struct ScheduleJit : testing::Test {
  ScheduleJit() {
    DialectRegistry registry;
    registerHostComputeDialects(registry);
    context.appendDialectRegistry(registry);
    module = parseSourceString<ModuleOp>(text, &context);
  }
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(ScheduleJit, RunsScheduleAndKernel) {
  ASSERT_TRUE(module);
  auto code = compileSchedule(*module, {{"ncclxrt_copy", reinterpret_cast<void *>(&copy)}});
  ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
  std::vector<int64_t> calls;
  auto schedule = (*code)->lookupAs<int32_t(int64_t, int64_t)>("schedule");
  ASSERT_TRUE(bool(schedule));
  EXPECT_EQ((*schedule)(reinterpret_cast<int64_t>(&calls), 5), 9);
  EXPECT_EQ(calls, (std::vector<int64_t>{0, 101, 202}));
  auto scale = (*code)->lookupAs<void(void *, void *)>("scale");
  ASSERT_TRUE(bool(scale));
  float a[3] = {1, 2, 3}, out[3];
  (*scale)(a, out);
  EXPECT_EQ(out[2], 6.0f);
  auto missing = (*code)->lookup("nothing");
  EXPECT_FALSE(bool(missing));
  EXPECT_NE(llvm::toString(missing.takeError()).find("no function 'nothing'"), std::string::npos);
}

TEST_F(ScheduleJit, NamesWhatTheRuntimeLacks) {
  ASSERT_TRUE(module);
  auto code = compileSchedule(*module, {});
  ASSERT_FALSE(bool(code));
  EXPECT_NE(llvm::toString(code.takeError()).find("'ncclxrt_copy'"), std::string::npos);
}

} // namespace
