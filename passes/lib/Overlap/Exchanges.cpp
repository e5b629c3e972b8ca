//===- Exchanges.cpp - A collective and the product that it feeds or drains -----------------===//
#include "Exchanges.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/Remarks.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ncclx;

/// A product of two matrices, as it stands: no batch, no other layout.
static bool isPlainProduct(Operation *op) {
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!linalgOp || !linalg::isaContractionOpInterface(linalgOp) || op->getNumOperands() != 3 ||
      op->getNumResults() != 1)
    return false;
  SmallVector<AffineMap> maps = linalgOp.getIndexingMapsArray();
  return linalgOp.getNumLoops() == 3 && llvm::all_of(maps, [](AffineMap m) {
           return m.getNumResults() == 2 && m.isProjectedPermutation();
         });
}

Runs mlir::ncclx::runsOf(linalg::LinalgOp product, unsigned dim) {
  SmallVector<AffineMap> maps = product.getIndexingMapsArray();
  auto loop = cast<AffineDimExpr>(maps[2].getResult(dim));
  auto find = [&](AffineMap map) -> std::optional<unsigned> {
    for (auto [i, expr] : llvm::enumerate(map.getResults()))
      if (expr == loop)
        return i;
    return std::nullopt;
  };
  return {find(maps[0]), find(maps[1])};
}

bool mlir::ncclx::isPlainInit(Value value) {
  return isa_and_nonnull<tensor::EmptyOp, linalg::FillOp>(value.getDefiningOp());
}

bool Exchange::isGather() { return isa<AllGatherOp>(collective.getOperation()); }
int64_t Exchange::members() { return getGroupSize(collective); }
int64_t Exchange::shardRows() {
  Operation *op = collective.getOperation();
  if (auto gather = dyn_cast<AllGatherOp>(op))
    return cast<ShapedType>(gather.getInput().getType()).getDimSize(gather.getDim());
  auto scatter = cast<ReduceScatterOp>(op);
  return cast<ShapedType>(scatter.getResult().getType()).getDimSize(scatter.getDim());
}

//===--- which exchanges can be cut at all
//----------------------------------------------------------===//

/// Shards are even, and cut in the dimension of rows.
static std::string evenShards(CollectiveOpInterface op, int64_t dim, ShapedType whole,
                              ShapedType shard) {
  int64_t n = getGroupSize(op);
  if (whole.getRank() != 2)
    return llvm::formatv("it is of rank {0}, a product's operands have rank 2", whole.getRank());
  if (!haveOneSize(op))
    return "its groups differ in size";
  if (shard.getDimSize(dim) * n != whole.getDimSize(dim))
    return llvm::formatv("its {0} rows are not {1} whole shards of {2}", whole.getDimSize(dim), n,
                         shard.getDimSize(dim));
  return "";
}

static std::string matchGather(Exchange &edge) {
  auto op = cast<AllGatherOp>(edge.collective.getOperation());
  if (std::string why = evenShards(edge.collective, op.getDim(), edge.collective.getOutputType(),
                                   edge.collective.getInputType());
      !why.empty())
    return why;
  Value result = edge.collective.getResult();
  if (!result.hasOneUse())
    return llvm::formatv("it has {0} users, and one product is cut with it", result.getNumUses());
  OpOperand &use = *result.use_begin();
  if (!isPlainProduct(use.getOwner()))
    return "its user is no product of two matrices";
  edge.product = cast<linalg::LinalgOp>(use.getOwner());
  edge.operand = use.getOperandNumber();
  edge.dim = op.getDim();
  if (!isPlainInit(edge.product->getOperand(2)))
    return "the product adds to a tensor whose rows would have to be put apart";
  AffineMap map = edge.product.getIndexingMapsArray()[edge.operand];
  auto loop = cast<AffineDimExpr>(map.getResult(op.getDim())).getPosition();
  if (edge.operand > 1 ||
      edge.product.getIteratorTypesArray()[loop] != utils::IteratorType::parallel)
    return "the product sums over the dimension that is gathered: parts of a sum are no sums";
  for (unsigned i = 0; i < 2; ++i) {
    Runs runs = runsOf(edge.product, i);
    if ((edge.operand == 0 ? runs.left : runs.right) == edge.dim)
      edge.rows = i;
  }
  return "";
}

static std::string matchReduction(Exchange &edge) {
  auto op = cast<ReduceScatterOp>(edge.collective.getOperation());
  if (std::string why = evenShards(edge.collective, op.getDim(), edge.collective.getInputType(),
                                   edge.collective.getOutputType());
      !why.empty())
    return why;
  Value input = edge.collective.getInput();
  if (!isPlainProduct(input.getDefiningOp()) || !input.hasOneUse())
    return "its operand is no product of two matrices that it alone uses";
  edge.product = cast<linalg::LinalgOp>(input.getDefiningOp());
  edge.rows = op.getDim();
  Runs runs = runsOf(edge.product, edge.rows);
  edge.operand = runs.left ? 0 : 1;
  edge.dim = runs.left ? *runs.left : *runs.right;
  return "";
}

//===--- the driver
//----------------------------------------------------------------------------------===//

double mlir::ncclx::partSeconds(const overlap::CostModel &cost, const overlap::Op &product,
                                double fraction) {
  double busy = product.seconds - cost.launch;
  if (cost.waves && product.tiles > 0)
    return busy * std::ceil(std::ceil(double(product.tiles) * fraction) / cost.sms) /
               std::ceil(double(product.tiles) / cost.sms) +
           cost.launch;
  return busy * fraction + cost.launch;
}

void mlir::ncclx::cutExchanges(func::FuncOp function, const overlap::CostModel &cost,
                               StringRef pass, double margin, ExchangeForm &form) {
  SmallVector<CollectiveOpInterface> all;
  function.walk([&](CollectiveOpInterface op) {
    if (isa<AllGatherOp, ReduceScatterOp>(op) && !op.isBufferForm() &&
        !isa<StartOp>(op->getParentOp()))
      all.push_back(op);
  });
  auto named = [&](StringRef name) {
    return remark::RemarkOpts::name(name).category(pass).function(function.getSymName());
  };
  for (CollectiveOpInterface op : all) {
    Exchange edge{op, {}, 0, 0, 0};
    auto missed = [&](const std::string &why) {
      remark::missed(op->getLoc(), named("ExchangeWhole"))
          << remark::add("{0} stays whole", describe(op)) << remark::reason("{0}", why);
    };
    std::string why;
    if (op->hasAttr(NCCLXDialect::getScheduleAttrName()))
      why = "a schedule of its own carries it";
    else
      why = isa<AllGatherOp>(op) ? matchGather(edge) : matchReduction(edge);
    if (why.empty() && edge.product->getBlock() != op->getBlock())
      why = "the product runs another number of times than the collective";
    if (why.empty())
      why = form.refuses(edge);
    std::optional<overlap::Op> whole = costOfCollective(op, cost), product;
    if (why.empty() && !whole)
      why = llvm::formatv("no engine of machine '{0}' carries it", cost.name);
    if (why.empty() && !(product = costOf(edge.product, cost)))
      why = "the product's size is not known";
    if (!why.empty()) {
      missed(why);
      continue;
    }
    std::string words;
    std::optional<double> parts = form.seconds(edge, *product, words, why);
    if (!parts) {
      missed(why);
      continue;
    }
    double serial = whole->seconds + product->seconds;
    std::string gain = llvm::formatv("{0:F1} us in {1}, {2:F1} us one after the other",
                                     *parts * 1e6, words, serial * 1e6);
    if (serial - *parts < margin * whole->seconds || serial <= *parts) {
      missed(gain);
      continue;
    }
    remark::passed(op->getLoc(), named("ExchangeSplit"))
        << remark::add("{0} and {1} are cut: {2}", describe(op), describe(edge.product), gain);
    form.rewrite(edge);
  }
}
