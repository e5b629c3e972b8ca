//===- SplitExchanges.cpp - Gathers and products, products and reductions, in parts -----------===//
//
// Cards P8 and P9 of the survey: every part is a native collective over all links. A gather is cut
// within each member's shard, so that a part holds rows of all members; a reduction is cut in the
// columns of the product in front of it. Rows and columns of a product are sums of their own: no
// bit changes. A gather of n shards of c rows in p parts:
//
//   part j: the rows [j*c/p, (j+1)*c/p) of every shard -> a product of n*c/p rows, whose rows go to
//   [r*c + j*c/p, ...) of the result for each member r
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Passes.h"

#include "Exchanges.h"
#include "MachinePass.h"
#include "Parts.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_SPLITEXCHANGES
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

class NativeParts : public ExchangeForm {
public:
  NativeParts(const overlap::CostModel &cost, unsigned parts) : cost(cost), asked(parts) {}

  std::optional<double> seconds(Exchange &edge, const overlap::Op &product, std::string &words,
                                std::string &why) override {
    double best = 0;
    parts = 0;
    for (unsigned p = asked ? asked : 2; p <= (asked ? asked : 8); ++p) {
      // Parts of the collective have its latency each.
      double g = partSeconds(cost, product, 1.0 / p);
      double c = costOfCollective(edge.collective, cost, 1.0 / p)->seconds;
      double time = p * std::max(g, c) + std::min(g, c);
      if (!parts || time < best) {
        best = time;
        parts = p;
      }
    }
    words = llvm::formatv("{0} parts", parts).str();
    return best;
  }

  void rewrite(Exchange &edge) override {
    edge.isGather() ? splitGather(edge) : splitReduction(edge);
  }

private:
  const overlap::CostModel &cost;
  unsigned asked; ///< parts; 0: the best of 2 to 8
  unsigned parts = 0;

  /// Sizes of the parts of a dimension, the first ones larger by one at most.
  SmallVector<int64_t> sizesOf(int64_t size) const {
    SmallVector<int64_t> sizes;
    for (unsigned i = 0; i < parts; ++i)
      if (int64_t part = size * (i + 1) / parts - size * i / parts; part > 0)
        sizes.push_back(part);
    return sizes;
  }

  void splitGather(Exchange &edge) {
    auto gather = cast<AllGatherOp>(edge.collective.getOperation());
    linalg::LinalgOp whole = edge.product;
    OpBuilder b(whole);
    Location loc = gather.getLoc();
    int64_t n = edge.members();
    auto shard = cast<RankedTensorType>(gather.getInput().getType());
    auto out = cast<RankedTensorType>(whole->getResult(0).getType());
    // The result with its rows as members and rows of a shard: a part is one box of it.
    int64_t c = edge.shardRows();
    SmallVector<int64_t> split;
    SmallVector<ReassociationIndices> groups(2);
    for (unsigned i = 0; i < 2; ++i) {
      if (i == edge.rows) {
        groups[i].push_back(split.size());
        split.push_back(n);
      }
      groups[i].push_back(split.size());
      split.push_back(i == edge.rows ? c : out.getDimSize(i));
    }
    Value result = tensor::EmptyOp::create(b, loc, split, out.getElementType());
    int64_t from = 0;
    for (int64_t size : sizesOf(c)) {
      Value piece = takePart(b, loc, gather.getInput(), edge.dim, from, size);
      SmallVector<int64_t> shape(shard.getShape());
      shape[edge.dim] = size * n;
      auto part = AllGatherOp::create(
          b, loc, Type(RankedTensorType::get(shape, shard.getElementType())), Type(), piece,
          gather.getDimAttr(), gather.getGridAttr(), gather.getAxes(), gather.getGroupsAttr(),
          Value(), gather.getAlgorithmAttr());
      SmallVector<Value> operands(whole->getOperands());
      operands[edge.operand] = part.getResult();
      operands[2] = takePart(b, loc, operands[2], edge.rows, from, size * n);
      Operation *product = clone(b, whole, operands[2].getType(), operands);
      SmallVector<int64_t> box(split);
      box[edge.rows + 1] = size;
      Value view = tensor::ExpandShapeOp::create(
          b, loc, RankedTensorType::get(box, out.getElementType()), product->getResult(0), groups);
      result = putPart(b, loc, view, result, edge.rows + 1, from);
      from += size;
    }
    result = tensor::CollapseShapeOp::create(b, loc, out, result, groups);
    whole->getResult(0).replaceAllUsesWith(result);
    whole->erase();
    gather->erase();
  }

  void splitReduction(Exchange &edge) {
    auto scatter = cast<ReduceScatterOp>(edge.collective.getOperation());
    linalg::LinalgOp whole = edge.product;
    OpBuilder b(scatter);
    Location loc = scatter.getLoc();
    unsigned columns = 1 - edge.rows;
    Runs runs = runsOf(whole, columns);
    auto out = cast<RankedTensorType>(scatter.getResult().getType());
    Value result = tensor::EmptyOp::create(b, loc, out.getShape(), out.getElementType());
    int64_t from = 0;
    for (int64_t size : sizesOf(out.getDimSize(columns))) {
      SmallVector<Value> operands(whole->getOperands());
      if (runs.left)
        operands[0] = takePart(b, loc, operands[0], *runs.left, from, size);
      if (runs.right)
        operands[1] = takePart(b, loc, operands[1], *runs.right, from, size);
      operands[2] = takePart(b, loc, operands[2], columns, from, size);
      Operation *product = clone(b, whole, operands[2].getType(), operands);
      SmallVector<int64_t> shape(out.getShape());
      shape[columns] = size;
      auto part = ReduceScatterOp::create(
          b, loc, Type(RankedTensorType::get(shape, out.getElementType())), Type(),
          product->getResult(0), scatter.getDimAttr(), scatter.getKindAttr(),
          scatter.getScaleAttr(), scatter.getAccumulateAttr(), scatter.getOrderAttr(),
          scatter.getGridAttr(), scatter.getAxes(), scatter.getGroupsAttr(), Value(),
          scatter.getAlgorithmAttr());
      result = putPart(b, loc, part.getResult(), result, columns, from);
      from += size;
    }
    scatter.getResult().replaceAllUsesWith(result);
    scatter->erase();
    whole->erase();
  }
};

struct SplitExchanges
    : MachinePass<SplitExchanges, ncclx::impl::SplitExchangesBase<SplitExchanges>> {
  using MachinePass::MachinePass;

  std::string wrongOption() {
    if (parts == 1 || parts > 64)
      return llvm::formatv("parts are 0, or 2 to 64, found {0}", unsigned(parts));
    return "";
  }
  void run(func::FuncOp function, const overlap::CostModel &cost) {
    NativeParts form(cost, parts);
    cutExchanges(function, cost, getArgument(), margin, form);
  }
};

} // namespace
