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

#include "FunctionProblem.h"
#include "Parts.h"

#include "ncclx/NCCLX/Sizes.h"

#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/Remarks.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_SPLITEXCHANGES
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// A product of two matrices, as it stands: no batch, no other layout.
bool isPlainProduct(Operation *op) {
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!linalgOp || !linalg::isaContractionOpInterface(linalgOp) || op->getNumOperands() != 3 ||
      op->getNumResults() != 1)
    return false;
  SmallVector<AffineMap> maps = linalgOp.getIndexingMapsArray();
  return linalgOp.getNumLoops() == 3 && llvm::all_of(maps, [](AffineMap m) {
           return m.getNumResults() == 2 && m.isProjectedPermutation();
         });
}

/// The dimension of each operand of a product that the result's `dim` runs over.
struct Runs {
  std::optional<unsigned> left, right;
};
Runs runsOf(linalg::LinalgOp op, unsigned dim) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  auto loop = cast<AffineDimExpr>(maps[2].getResult(dim));
  auto find = [&](AffineMap map) -> std::optional<unsigned> {
    for (auto [i, expr] : llvm::enumerate(map.getResults()))
      if (expr == loop)
        return i;
    return std::nullopt;
  };
  return {find(maps[0]), find(maps[1])};
}

/// A collective and the product behind or in front of it, which are to be cut alike.
struct Edge {
  CollectiveOpInterface collective;
  linalg::LinalgOp product;
  unsigned operand = 0; ///< of a gather: the product's operand that it is
};

class Splitter {
public:
  Splitter(func::FuncOp function, const overlap::CostModel &cost, StringRef pass, unsigned parts,
           double margin)
      : function(function), cost(cost), pass(pass), asked(parts), margin(margin) {}

  void run() {
    SmallVector<CollectiveOpInterface> all;
    function.walk([&](CollectiveOpInterface op) {
      if (isa<AllGatherOp, ReduceScatterOp>(op) && !op.isBufferForm() &&
          !isa<StartOp>(op->getParentOp()))
        all.push_back(op);
    });
    for (CollectiveOpInterface op : all) {
      std::string why;
      Edge edge{op, {}, 0};
      bool gather = isa<AllGatherOp>(op);
      unsigned parts = 0;
      std::string gain;
      if (gather ? !fitsGather(edge, why) : !fitsReduction(edge, why)) {
        missed(op, why);
        continue;
      }
      if (!(parts = choose(edge, gain))) {
        missed(op, gain);
        continue;
      }
      remark::passed(op->getLoc(), named("ExchangeSplit"))
          << remark::add("{0} and {1} are cut into {2} parts: {3}", describe(op),
                         describe(edge.product), parts, gain);
      gather ? splitGather(edge, parts) : splitReduction(edge, parts);
    }
  }

private:
  func::FuncOp function;
  const overlap::CostModel &cost;
  StringRef pass;
  unsigned asked; ///< parts; 0: the best of 2 to 8
  double margin;

  remark::RemarkOpts named(StringRef name) {
    return remark::RemarkOpts::name(name).category(pass).function(function.getSymName());
  }
  void missed(CollectiveOpInterface op, const std::string &why) {
    remark::missed(op->getLoc(), named("ExchangeWhole"))
        << remark::add("{0} stays whole", describe(op)) << remark::reason("{0}", why);
  }

  /// Shards are even, and cut in the dimension of rows.
  bool evenShards(CollectiveOpInterface op, int64_t dim, ShapedType whole, ShapedType shard,
                  std::string &why) {
    int64_t n = getGroupSize(op);
    if (whole.getRank() != 2)
      why = llvm::formatv("it is of rank {0}, a product's operands have rank 2", whole.getRank());
    else if (shard.getDimSize(dim) * n != whole.getDimSize(dim))
      why = llvm::formatv("its {0} rows are not {1} whole shards of {2}", whole.getDimSize(dim), n,
                          shard.getDimSize(dim));
    return why.empty();
  }

  bool fitsGather(Edge &edge, std::string &why) {
    auto op = cast<AllGatherOp>(edge.collective.getOperation());
    if (!evenShards(edge.collective, op.getDim(), edge.collective.getOutputType(),
                    edge.collective.getInputType(), why))
      return false;
    Value result = edge.collective.getResult();
    if (!result.hasOneUse() || !isPlainProduct(*result.user_begin())) {
      why = result.hasOneUse() ? "its user is no product of two matrices"
                               : llvm::formatv("it has {0} users, and one product is cut with it",
                                               result.getNumUses())
                                     .str();
      return false;
    }
    OpOperand &use = *result.use_begin();
    edge.product = cast<linalg::LinalgOp>(use.getOwner());
    edge.operand = use.getOperandNumber();
    if (Operation *init = edge.product->getOperand(2).getDefiningOp();
        !isa_and_nonnull<tensor::EmptyOp, linalg::FillOp>(init)) {
      why = "the product adds to a tensor whose rows would have to be put apart";
      return false;
    }
    AffineMap map = edge.product.getIndexingMapsArray()[edge.operand];
    auto loop = cast<AffineDimExpr>(map.getResult(op.getDim())).getPosition();
    if (edge.operand > 1 ||
        edge.product.getIteratorTypesArray()[loop] != utils::IteratorType::parallel) {
      why = "the product sums over the dimension that is gathered: parts of a sum are no sums";
      return false;
    }
    return true;
  }

  bool fitsReduction(Edge &edge, std::string &why) {
    auto op = cast<ReduceScatterOp>(edge.collective.getOperation());
    if (!evenShards(edge.collective, op.getDim(), edge.collective.getInputType(),
                    edge.collective.getOutputType(), why))
      return false;
    Value input = edge.collective.getInput();
    if (!isPlainProduct(input.getDefiningOp()) || !input.hasOneUse()) {
      why = "its operand is no product of two matrices that it alone uses";
      return false;
    }
    edge.product = cast<linalg::LinalgOp>(input.getDefiningOp());
    return true;
  }

  /// Parts, and what they are predicted to gain; 0 where that is below the margin.
  unsigned choose(Edge &edge, std::string &gain) {
    StringRef kind = edge.collective->getName().stripDialect();
    const overlap::Engine *engine = cost.engine(kind);
    std::optional<overlap::Op> product = costOf(edge.product, cost);
    if (!engine || !product) {
      gain = engine ? "the product's size is not known"
                    : llvm::formatv("no engine of machine '{0}' carries it", cost.name).str();
      return 0;
    }
    int64_t n = getGroupSize(edge.collective);
    double bytes = overlap::wireBytes(kind, n, double(edge.collective.getPayloadBytes()));
    overlap::Op whole = cost.collective("", *engine, n, bytes);
    double serial = whole.seconds + product->seconds, best = 0;
    unsigned parts = 0;
    for (unsigned p = asked ? asked : 2; p <= (asked ? asked : 8); ++p) {
      // Parts of the product have whole waves of their own, and a launch; those of the collective
      // its latency.
      double g = (product->seconds - cost.launch) / p + cost.launch;
      if (cost.waves && product->tiles > 0) {
        double each = std::ceil(double(product->tiles) / p);
        g = (product->seconds - cost.launch) * std::ceil(each / cost.sms) /
                std::ceil(double(product->tiles) / cost.sms) +
            cost.launch;
      }
      double c = cost.collective("", *engine, n, bytes / p).seconds;
      double time = p * std::max(g, c) + std::min(g, c);
      if (!parts || time < best) {
        best = time;
        parts = p;
      }
    }
    gain = llvm::formatv("{0:F1} us in parts, {1:F1} us one after the other", best * 1e6,
                         serial * 1e6);
    return serial - best >= margin * whole.seconds && serial > best ? parts : 0;
  }

  /// Sizes of `parts` parts of a dimension, the first ones larger by one at most.
  static SmallVector<int64_t> sizesOf(int64_t size, unsigned parts) {
    SmallVector<int64_t> sizes;
    for (unsigned i = 0; i < parts; ++i)
      if (int64_t part = size * (i + 1) / parts - size * i / parts; part > 0)
        sizes.push_back(part);
    return sizes;
  }

  void splitGather(Edge &edge, unsigned parts) {
    auto gather = cast<AllGatherOp>(edge.collective.getOperation());
    OpBuilder b(edge.product);
    Location loc = gather.getLoc();
    int64_t n = getGroupSize(edge.collective);
    unsigned dim = gather.getDim();
    auto shard = cast<RankedTensorType>(gather.getInput().getType());
    auto out = cast<RankedTensorType>(edge.product->getResult(0).getType());
    // Which dimension of the result has the gathered rows.
    unsigned rows = 0;
    for (unsigned i = 0; i < 2; ++i) {
      Runs runs = runsOf(edge.product, i);
      if ((edge.operand == 0 ? runs.left : runs.right) == dim)
        rows = i;
    }
    // The result with its rows as members and rows of a shard: a part is one box of it.
    int64_t c = shard.getDimSize(dim);
    SmallVector<int64_t> split;
    SmallVector<ReassociationIndices> groups(2);
    for (unsigned i = 0; i < 2; ++i) {
      if (i == rows) {
        groups[i].push_back(split.size());
        split.push_back(n);
      }
      groups[i].push_back(split.size());
      split.push_back(i == rows ? c : out.getDimSize(i));
    }
    Value whole = tensor::EmptyOp::create(b, loc, split, out.getElementType());
    int64_t from = 0;
    for (int64_t size : sizesOf(c, parts)) {
      b.setInsertionPoint(edge.product);
      Value piece = takePart(b, loc, gather.getInput(), dim, from, size);
      SmallVector<int64_t> shape(shard.getShape());
      shape[dim] = size * n;
      auto part = AllGatherOp::create(
          b, loc, Type(RankedTensorType::get(shape, shard.getElementType())), Type(), piece,
          gather.getDimAttr(), gather.getGridAttr(), gather.getAxes(), gather.getGroupsAttr(),
          Value(), gather.getAlgorithmAttr());
      SmallVector<Value> operands(edge.product->getOperands());
      operands[edge.operand] = part.getResult();
      operands[2] = takePart(b, loc, operands[2], rows, from, size * n);
      Operation *product = clone(b, edge.product, operands[2].getType(), operands);
      SmallVector<int64_t> box(split);
      box[rows + 1] = size;
      Value view = tensor::ExpandShapeOp::create(
          b, loc, RankedTensorType::get(box, out.getElementType()), product->getResult(0), groups);
      whole = putPart(b, loc, view, whole, rows + 1, from);
      from += size;
    }
    Value result = tensor::CollapseShapeOp::create(b, loc, out, whole, groups);
    edge.product->getResult(0).replaceAllUsesWith(result);
    edge.product->erase();
    gather->erase();
  }

  void splitReduction(Edge &edge, unsigned parts) {
    auto scatter = cast<ReduceScatterOp>(edge.collective.getOperation());
    OpBuilder b(scatter);
    Location loc = scatter.getLoc();
    unsigned columns = 1 - scatter.getDim();
    Runs runs = runsOf(edge.product, columns);
    auto out = cast<RankedTensorType>(scatter.getResult().getType());
    Value whole = tensor::EmptyOp::create(b, loc, out.getShape(), out.getElementType());
    int64_t from = 0;
    for (int64_t size : sizesOf(out.getDimSize(columns), parts)) {
      SmallVector<Value> operands(edge.product->getOperands());
      if (runs.left)
        operands[0] = takePart(b, loc, operands[0], *runs.left, from, size);
      if (runs.right)
        operands[1] = takePart(b, loc, operands[1], *runs.right, from, size);
      operands[2] = takePart(b, loc, operands[2], columns, from, size);
      Operation *product = clone(b, edge.product, operands[2].getType(), operands);
      SmallVector<int64_t> shape(out.getShape());
      shape[columns] = size;
      auto part = ReduceScatterOp::create(
          b, loc, Type(RankedTensorType::get(shape, out.getElementType())), Type(),
          product->getResult(0), scatter.getDimAttr(), scatter.getKindAttr(),
          scatter.getScaleAttr(), scatter.getAccumulateAttr(), scatter.getOrderAttr(),
          scatter.getGridAttr(), scatter.getAxes(), scatter.getGroupsAttr(), Value(),
          scatter.getAlgorithmAttr());
      whole = putPart(b, loc, part.getResult(), whole, columns, from);
      from += size;
    }
    scatter.getResult().replaceAllUsesWith(whole);
    scatter->erase();
    edge.product->erase();
  }
};

struct SplitExchanges : ncclx::impl::SplitExchangesBase<SplitExchanges> {
  using SplitExchangesBase::SplitExchangesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto fail = [&](const Twine &what) {
      module.emitError(what);
      signalPassFailure();
    };
    if (machineFile.empty())
      return fail("ncclx-split-exchanges needs machine=FILE");
    overlap::CostModelResult cost = overlap::readCostModelFile(machineFile);
    if (!cost.model)
      return fail(cost.error);
    if (parts == 1 || parts > 64 || !(margin >= 0))
      return fail("ncclx-split-exchanges: parts are 0, or 2 to 64, and margin is at least 0");
    if (failed(requireKnownSizes(module)))
      return signalPassFailure();
    for (func::FuncOp function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        Splitter(function, *cost.model, getArgument(), parts, margin).run();
  }
};

} // namespace
