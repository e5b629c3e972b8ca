//===- DirectExchanges.cpp - Products of each shard as it comes, or for whom it goes ---------===//
//
// Cards P6 and P7 of the survey: a gather stays whole and native, with all links busy, and the
// product behind it takes the shards one by one as they are there. Nothing is sent in another way
// than before, and rows of a product are sums of their own: no bit changes. A product in front of a
// reduction is taken shard by shard, too, and each goes straight to whom it is for, who adds.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Passes.h"

#include "Exchanges.h"
#include "MachinePass.h"
#include "Parts.h"
#include "Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_DIRECTEXCHANGES
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

class Direct : public ExchangeForm {
public:
  explicit Direct(const overlap::CostModel &cost)
      : cost(cost), reductions(cost, StepForm::direct) {}

  std::string refuses(Exchange &edge) override {
    constexpr int64_t most = 64;
    if (!edge.isGather())
      return reductions.refuses(edge);
    if (int64_t n = edge.members(); n < 2 || n > most)
      return llvm::formatv("its group has {0} members, and products of 2 to {1} chunks are taken",
                           n, most);
    std::optional<Algorithm> algorithm = edge.collective.getAlgorithm();
    if (algorithm && *algorithm != Algorithm::Direct)
      return "an algorithm is asked for in which chunks have no signals of their own";
    if (edge.collective.getGroupsAttr())
      return "its groups are listed, and their chunks have no signals of their own";
    return "";
  }

  /// Chunks come one after the other; the product of the last runs behind them.
  std::optional<double> seconds(Exchange &edge, const overlap::Op &product, std::string &words,
                                std::string &why) override {
    if (!edge.isGather())
      return reductions.seconds(edge, product, words, why);
    int64_t n = edge.members();
    double g = partSeconds(cost, product, 1.0 / double(n));
    double c = costOfCollective(edge.collective, cost)->seconds / double(n);
    words = llvm::formatv("{0} chunks of one gather", n).str();
    return c + double(n - 1) * std::max(g, c) + g;
  }

  void rewrite(Exchange &edge) override {
    if (!edge.isGather())
      return reductions.rewrite(edge);
    auto gather = cast<AllGatherOp>(edge.collective.getOperation());
    linalg::LinalgOp whole = edge.product;
    OpBuilder b(gather);
    Location loc = gather.getLoc();
    auto full = cast<RankedTensorType>(gather.getResult().getType());
    auto shard = cast<RankedTensorType>(gather.getInput().getType());
    auto start = StartOp::create(b, loc, FutureType::get(full));
    OpBuilder inner = OpBuilder::atBlockBegin(&start.getBody().emplaceBlock());
    auto yield = YieldOp::create(inner, loc, gather.getResult());
    gather->moveBefore(yield);
    b.setInsertionPoint(whole);
    int64_t n = edge.members(), rows = edge.shardRows();
    Value result = whole->getOperand(2);
    for (int64_t i = 0; i < n; ++i) {
      Value number = arith::ConstantIndexOp::create(b, loc, i);
      SmallVector<Value> operands(whole->getOperands());
      operands[edge.operand] =
          AwaitOp::create(b, loc, shard, start.getFuture(), number, b.getI64IntegerAttr(n),
                          b.getI64IntegerAttr(edge.dim), ValueRange());
      operands[2] = takeSlice(b, loc, result, edge.rows, i * rows, rows);
      Operation *product = clone(b, whole, operands[2].getType(), operands);
      result = putPart(b, loc, product->getResult(0), result, edge.rows, i * rows);
    }
    AwaitOp::create(b, loc, full, start.getFuture(), Value(), IntegerAttr(), IntegerAttr(),
                    ValueRange());
    whole->getResult(0).replaceAllUsesWith(result);
    whole->erase();
  }

private:
  const overlap::CostModel &cost;
  Steps reductions;
};

struct DirectExchanges
    : MachinePass<DirectExchanges, ncclx::impl::DirectExchangesBase<DirectExchanges>> {
  using MachinePass::MachinePass;

  void run(func::FuncOp function, const overlap::CostModel &cost) {
    Direct form(cost);
    cutExchanges(function, cost, getArgument(), margin, form);
  }
};

} // namespace
