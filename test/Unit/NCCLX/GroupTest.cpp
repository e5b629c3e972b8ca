//===- GroupTest.cpp - Groups, shards and permutations --------------------===//

#include "ncclx/NCCLX/NCCLX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::ncclx;

namespace {

using Ranks = llvm::SmallVector<int64_t>;

struct GroupTest : testing::Test {
  GroupTest() { context.loadDialect<NCCLXDialect, func::FuncDialect>(); }

  OwningOpRef<ModuleOp> parse(std::string text) {
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    return module;
  }
  template <typename OpTy> OpTy find(ModuleOp module) {
    OpTy found;
    module.walk([&](OpTy op) { found = op; });
    return found;
  }

  MLIRContext context;
};

TEST_F(GroupTest, MembersAreRowMajorOverTheListedAxes) {
  auto module = parse(R"(ncclx.grid @g ["dp" = 2, "pp" = 3, "tp" = 4])");
  auto grid = find<GridOp>(*module);
  Builder b(&context);
  EXPECT_EQ(grid.getNumRanks(), 24);
  EXPECT_EQ(grid.getAxisSize("pp"), 3);
  EXPECT_EQ(grid.getAxisSize("ep"), std::nullopt);
  // Rank 17 is dp 1, pp 1, tp 1.
  EXPECT_EQ(grid.getGroup(b.getStrArrayAttr({"tp"}), 17), Ranks({16, 17, 18, 19}));
  EXPECT_EQ(grid.getGroup(b.getStrArrayAttr({"pp"}), 17), Ranks({13, 17, 21}));
  EXPECT_EQ(grid.getGroup(b.getStrArrayAttr({"dp", "pp"}), 17), Ranks({1, 5, 9, 13, 17, 21}));
  EXPECT_EQ(grid.getGroup(b.getStrArrayAttr({"pp", "dp"}), 17), Ranks({1, 13, 5, 17, 9, 21}));
}

TEST_F(GroupTest, EveryRankIsInItsGroupAndGroupsPartition) {
  auto module = parse(R"(ncclx.grid @g ["a" = 3, "b" = 1, "c" = 5])");
  auto grid = find<GridOp>(*module);
  Builder b(&context);
  for (ArrayAttr axes :
       {b.getStrArrayAttr({"a"}), b.getStrArrayAttr({"c", "a"}), b.getStrArrayAttr({"b"})})
    for (int64_t rank = 0; rank < grid.getNumRanks(); ++rank) {
      Ranks group = grid.getGroup(axes, rank);
      EXPECT_EQ(int64_t(group.size()), grid.getGroupSize(axes));
      EXPECT_TRUE(llvm::is_contained(group, rank));
      for (int64_t member : group)
        EXPECT_EQ(grid.getGroup(axes, member), group);
    }
}

TEST(ShardTest, ShardsTileTheDimension) {
  for (int64_t n : {1, 2, 3, 5, 7, 8, 24})
    for (int64_t size : {0, 1, 2, 7, 24, 25, 100}) {
      int64_t next = 0;
      for (int64_t member = 0; member < n; ++member) {
        ShardRange range = getShardRange(size, n, member);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.end - range.begin, getShardSize(size, n));
        next = range.end;
      }
      EXPECT_EQ(next, size);
      EXPECT_LT((getShardSize(size, n) - 1) * n, std::max<int64_t>(size, 1));
    }
}

TEST(ShardTest, LargeSizesDoNotOverflow) {
  int64_t huge = INT64_MAX;
  EXPECT_EQ(getShardSize(huge, 2), int64_t(1) << 62);
  EXPECT_EQ(getShardRange(huge, 2, 1).end, huge);
  EXPECT_EQ(getShardRange(huge, huge, huge - 1).begin, huge - 1);
}

TEST_F(GroupTest, PermuteSourcesAndTargetsAreInverse) {
  auto module = parse(R"(
    ncclx.grid @g ["tp" = 4]
    func.func @f(%a: tensor<3xf32>) {
      %0 = ncclx.permute %a shift -9 over @g["tp"] : tensor<3xf32> -> tensor<3xf32>
      return
    })");
  auto shift = find<PermuteOp>(*module);
  EXPECT_EQ(shift.getTarget(0, 4), 3);
  EXPECT_EQ(shift.getSource(0, 4), 1);
  for (int64_t n : {1, 2, 3, 7})
    for (int64_t member = 0; member < n; ++member)
      EXPECT_EQ(shift.getSource(*shift.getTarget(member, n), n), member);

  module = parse(R"(
    ncclx.grid @g ["tp" = 4]
    func.func @f(%a: tensor<3xf32>) {
      %0 = ncclx.permute %a pairs [2 -> 0, 0 -> 1] over @g["tp"] : tensor<3xf32> -> tensor<3xf32>
      return
    })");
  auto pairs = find<PermuteOp>(*module);
  EXPECT_EQ(pairs.getTarget(2, 4), 0);
  EXPECT_EQ(pairs.getSource(0, 4), 2);
  EXPECT_EQ(pairs.getSource(2, 4), std::nullopt);
  EXPECT_EQ(pairs.getTarget(3, 4), std::nullopt);
}

TEST_F(GroupTest, InterfaceAndClone) {
  auto module = parse(R"(
    ncclx.grid @g ["dp" = 2, "tp" = 4]
    func.func @f(%a: tensor<4x8xbf16>, %b: tensor<4x8xbf16>, %d: tensor<32x8xbf16>, %m: memref<4x8xbf16>,
                 %n: memref<32x8xbf16>) {
      %0 = ncclx.all_gather %a dim 0 over @g["tp", "dp"] algorithm ring {hint} : tensor<4x8xbf16> -> tensor<32x8xbf16>
      return
    })");
  auto op = find<CollectiveOpInterface>(*module);
  EXPECT_EQ(getGroupSize(op), 8);
  EXPECT_EQ(op.getPayloadBytes(), 32 * 8 * 2);
  EXPECT_EQ(op.getChunkDim(), 0);
  EXPECT_FALSE(op.isReduction() || op.isAsync() || op.isBufferForm());

  auto function = find<func::FuncOp>(*module);
  OpBuilder builder(op);
  CollectiveOpInterface tensors = cloneCollective(builder, op, function.getArgument(1),
                                                  function.getArgument(2), /*async=*/true);
  CollectiveOpInterface buffers = cloneCollective(builder, op, function.getArgument(3),
                                                  function.getArgument(4), /*async=*/false);
  EXPECT_TRUE(succeeded(tensors->getName().verifyInvariants(tensors)));
  EXPECT_TRUE(succeeded(buffers->getName().verifyInvariants(buffers)));
  EXPECT_TRUE(tensors.isAsync() && tensors.getResult() && !tensors.isBufferForm());
  EXPECT_TRUE(!buffers.isAsync() && !buffers.getResult() && buffers.isBufferForm());
  for (CollectiveOpInterface clone : {tensors, buffers}) {
    EXPECT_EQ(clone.getAlgorithm(), Algorithm::Ring);
    EXPECT_EQ(clone.getAxes(), op.getAxes());
    EXPECT_TRUE(clone->hasAttr("hint"));
    EXPECT_EQ(clone.getPayloadBytes(), op.getPayloadBytes());
  }
  buffers.setAlgorithm(Algorithm::Direct);
  EXPECT_EQ(buffers.getAlgorithm(), Algorithm::Direct);
}

} // namespace
