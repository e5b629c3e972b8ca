//===- StepExchanges.cpp - Gathers and products, products and reductions, in steps ------------===//
//
// Cards P5 and P7 of the survey: shards travel between members, and every member computes with
// what it has while the next is on its way. Block i is the shard of the i-th member behind this
// one, going round; what a member has is in this order, and one rotation by its own number puts
// rows where they belong. A member learns its number from a reduce_scatter of [0, 1, ..., n-1].
//
//   ring:    blocks come, or partial sums leave, one by one, between neighbours
//   doubling: each step brings as many blocks as are there (1, 1, 2, 4, ...); of a group over
//            several axes the last doubles, and one block from each of the other members of the
//            outer axes is asked for before that begins
//
// A reduction goes the opposite way: its sums are those of `order ring`, or `order tree`.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Passes.h"

#include "Exchanges.h"
#include "Parts.h"
#include "ncclx/Overlap/Solve.h"
#include "ncclx/Transforms/MemberNumber.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::ncclx {
#define GEN_PASS_DEF_RINGEXCHANGES
#define GEN_PASS_DEF_DOUBLEEXCHANGES
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// Axes, or listed groups, that a permute goes over.
struct Group {
  ArrayAttr axes;
  ArrayAttr groups; ///< null where axes span the group
  int64_t size = 1;
};

/// `size` blocks that come next to the `have` that are there.
struct Step {
  int64_t have, size;
};

class Steps : public ExchangeForm {
public:
  Steps(const overlap::CostModel &cost, bool doubling) : cost(cost), doubling(doubling) {}

  std::string refuses(Exchange &edge) override;
  std::optional<double> seconds(Exchange &edge, const overlap::Op &product, std::string &words,
                                std::string &why) override;
  void rewrite(Exchange &edge) override;

private:
  const overlap::CostModel &cost;
  const bool doubling;
  Group inner, outer; ///< of the exchange at hand; the outer one is of size 1 for flat forms

  void group(Exchange &edge);
  SmallVector<Step> plan() const;
  Value permute(OpBuilder &b, Exchange &edge, Value value, const Group &over, int64_t shift);
  Value number(Exchange &edge, const Group &of);
  Value rotate(OpBuilder &b, Exchange &edge, Value value, unsigned dim, int sign);
  void gather(Exchange &edge);
  void reduce(Exchange &edge);
};

/// The reduction that an exchange ends in.
ReduceScatterOp reductionOf(Exchange &edge) {
  return cast<ReduceScatterOp>(edge.collective.getOperation());
}

std::string Steps::refuses(Exchange &edge) {
  constexpr int64_t most = 64;
  if (int64_t n = edge.members(); n < 2 || n > most)
    return llvm::formatv("its group has {0} members, and 2 to {1} are taken in steps", n, most);
  if (edge.collective.getAlgorithm())
    return "an algorithm is asked for";
  if (edge.isGather())
    return "";
  ReduceScatterOp op = reductionOf(edge);
  if (op.getScale() || op.getKind() == ReductionKind::Avg)
    return "it scales or averages, which is done once and not on the way";
  ReductionOrder mine = doubling ? ReductionOrder::Tree : ReductionOrder::Ring;
  if (op.getOrder() != ReductionOrder::Any && op.getOrder() != mine)
    return llvm::formatv("its order is {0}, and this form adds in that of a {1}",
                         stringifyReductionOrder(op.getOrder()), stringifyReductionOrder(mine));
  if (!isPlainInit(edge.product->getOperand(2)))
    return "the product adds to a tensor whose rows would have to be put apart";
  return "";
}

void Steps::group(Exchange &edge) {
  CollectiveOpInterface op = edge.collective;
  ArrayAttr groups = op.getGroupsAttr();
  ArrayRef<Attribute> axes = op.getAxes().getValue();
  Builder b(op.getContext());
  outer = {b.getArrayAttr({}), {}, 1};
  inner = {op.getAxes(), groups, edge.members()};
  bool anyOrder = edge.isGather() || reductionOf(edge).getOrder() == ReductionOrder::Any;
  if (!doubling || axes.size() < 2 || !anyOrder)
    return;
  GridOp grid = lookupGrid(op);
  int64_t last = *grid.getAxisSize(cast<StringAttr>(axes.back()).getValue());
  if (last == 1 || last == edge.members())
    return;
  outer = {b.getArrayAttr(axes.drop_back()), {}, edge.members() / last};
  inner = {b.getArrayAttr(axes.back()), {}, last};
}

SmallVector<Step> Steps::plan() const {
  SmallVector<Step> steps;
  for (int64_t have = 1; have < inner.size;) {
    int64_t size = doubling ? std::min(have, inner.size - have) : 1;
    steps.push_back({have, size});
    have += size;
  }
  return steps;
}

//===--- what it takes
//-------------------------------------------------------------------------------===//

std::optional<double> Steps::seconds(Exchange &edge, const overlap::Op &product, std::string &words,
                                     std::string &why) {
  group(edge);
  const overlap::Engine *carrier = cost.engine("permute");
  std::optional<overlap::Op> asks;
  if (const overlap::Engine *engine = cost.engine("reduce_scatter"))
    asks = cost.collective("number", *engine, edge.members(), 8);
  if (!carrier || !asks) {
    why = llvm::formatv("no engine of machine '{0}' carries {1}", cost.name,
                        carrier ? "reduce_scatter" : "permute");
    return std::nullopt;
  }
  // Where a permute gets some of the links and the native collective all of them, steps leave links
  // idle; parts of the native collective (ncclx-split-exchanges) hide as much.
  const overlap::Engine *native = cost.engine(edge.collective->getName().stripDialect());
  if (carrier->bytesPerSecond < 0.9 * native->bytesPerSecond) {
    why = llvm::formatv(
        "its steps would leave links idle: a permute gets {0:F0} GB/s, the whole {1:F0} GB/s",
        carrier->bytesPerSecond / 1e9, native->bytesPerSecond / 1e9);
    return std::nullopt;
  }
  int64_t n = edge.members();
  auto bytesOf = [](Type type) {
    auto shaped = cast<ShapedType>(type);
    return double(shaped.getNumElements()) * shaped.getElementTypeBitWidth() / 8;
  };
  double shard = bytesOf(edge.isGather() ? Type(edge.collective.getInputType())
                                         : Type(edge.collective.getOutputType()));
  if (!edge.isGather())
    shard *= double(reductionOf(edge).getAccumulate().getIntOrFloatBitWidth()) /
             edge.collective.getElementType().getIntOrFloatBitWidth();
  overlap::Problem problem = cost.problem();
  auto add = [&](overlap::Op op, std::vector<unsigned> after) {
    op.after = std::move(after);
    problem.ops.push_back(std::move(op));
    return unsigned(problem.ops.size() - 1);
  };
  auto move = [&](int64_t blocks, std::vector<unsigned> after) {
    return add(cost.collective("move", *carrier, 2, shard * double(blocks)), std::move(after));
  };
  auto compute = [&](int64_t blocks, std::vector<unsigned> after) {
    overlap::Op part = product;
    double all = part.seconds;
    part.seconds = partSeconds(cost, product, double(blocks) / double(n));
    part.joules *= double(blocks) / double(n);
    part.tiles = std::max<int64_t>(product.tiles > 0, product.tiles * blocks / n);
    for (overlap::Use &use : part.uses)
      use.share = std::min(1.0, use.share * all * double(blocks) / double(n) / part.seconds);
    return add(std::move(part), std::move(after));
  };
  unsigned mine = add(*asks, {});
  double turned = 2 * bytesOf(edge.isGather() ? edge.product->getResult(0).getType()
                                              : edge.product->getOperand(edge.operand).getType());
  SmallVector<Step> steps = plan();
  if (edge.isGather()) {
    std::vector<unsigned> remote = {0}, products;
    for (int64_t k = 1; k < outer.size; ++k)
      remote.push_back(move(1, {}));
    for (int64_t k = 0; k < outer.size; ++k) {
      std::vector<unsigned> there;
      if (k > 0)
        there = {remote[k]};
      int64_t blocks = 1;
      for (Step step : steps) {
        unsigned next = move(step.size, there);
        products.push_back(compute(blocks, there));
        there = {next};
        blocks = step.size;
      }
      products.push_back(compute(blocks, there));
    }
    products.push_back(mine);
    add(cost.memory("rotation", turned), std::move(products));
  } else {
    unsigned rotation = add(cost.memory("rotation", turned), {mine});
    std::vector<unsigned> received;
    for (int64_t k = outer.size; k-- > 0;) {
      std::vector<unsigned> came;
      for (Step step : llvm::reverse(steps)) {
        unsigned part = compute(step.size, {rotation});
        std::vector<unsigned> needs = came;
        needs.push_back(part);
        unsigned sum = add(cost.memory("sum", came.empty() ? 0 : 3 * shard), needs);
        came.push_back(move(step.size, {sum}));
      }
      std::vector<unsigned> needs = came;
      needs.push_back(compute(1, {rotation}));
      if (k == 0)
        needs.insert(needs.end(), received.begin(), received.end());
      unsigned sum = add(cost.memory("sum", 3 * shard), needs);
      if (k > 0)
        received.push_back(move(1, {sum}));
    }
  }
  overlap::SolveOptions options;
  options.margin = 0;
  options.effort = 20'000;
  words = llvm::formatv("{0} steps of {1}", steps.size() * outer.size + outer.size - 1,
                        doubling ? "doubled size" : "a ring");
  return overlap::solve(problem, overlap::serialSchedule(problem), options).timeline.seconds;
}

//===--- rewriting
//-----------------------------------------------------------------------------------===//

Value Steps::permute(OpBuilder &b, Exchange &edge, Value value, const Group &over, int64_t shift) {
  CollectiveOpInterface op = edge.collective;
  return PermuteOp::create(b, op.getLoc(), value.getType(), Type(), value,
                           b.getI64IntegerAttr(shift), DenseI64ArrayAttr(), op.getGridAttr(),
                           over.axes, over.groups, Value(), AlgorithmAttr())
      .getResult();
}

/// This member's number in a group.
Value Steps::number(Exchange &edge, const Group &of) {
  CollectiveOpInterface op = edge.collective;
  return memberNumber(op->getParentOfType<func::FuncOp>(), op.getLoc(), op.getGridAttr(), of.axes,
                      of.groups, of.size);
}

/// The tensor with its blocks turned by this member's number: block i is block i + sign * number
/// of `value`, in both groups.
Value Steps::rotate(OpBuilder &b, Exchange &edge, Value value, unsigned dim, int sign) {
  Location loc = edge.collective.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  Value mine = number(edge, inner), theirs = outer.size > 1 ? number(edge, outer) : Value();
  Value into = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto op = linalg::GenericOp::create(
      b, loc, type, ValueRange(), into, b.getMultiDimIdentityMap(type.getRank()), loops,
      [&](OpBuilder &b, Location loc, ValueRange) {
        auto constant = [&](int64_t v) -> Value {
          return arith::ConstantIndexOp::create(b, loc, v);
        };
        auto turn = [&](Value index, Value number, int64_t size) -> Value {
          Value at = tensor::ExtractOp::create(b, loc, number, constant(0));
          at = arith::IndexCastOp::create(b, loc, b.getIndexType(), at);
          if (sign < 0) // below `size`, and not negative
            at = arith::SubIOp::create(b, loc, constant(size), at);
          return arith::RemUIOp::create(b, loc, arith::AddIOp::create(b, loc, index, at),
                                        constant(size));
        };
        SmallVector<Value> at;
        for (int64_t d = 0; d < type.getRank(); ++d)
          at.push_back(linalg::IndexOp::create(b, loc, d));
        Value rows = constant(edge.shardRows()), last = constant(inner.size);
        Value block = arith::DivUIOp::create(b, loc, at[dim], rows);
        Value from = turn(arith::RemUIOp::create(b, loc, block, last), mine, inner.size);
        if (theirs) {
          Value o = turn(arith::DivUIOp::create(b, loc, block, last), theirs, outer.size);
          from = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, o, last), from);
        }
        Value row = arith::RemUIOp::create(b, loc, at[dim], rows);
        at[dim] = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, from, rows), row);
        Value element = tensor::ExtractOp::create(b, loc, value, at);
        linalg::YieldOp::create(b, loc, element);
      });
  return op.getResult(0);
}

void Steps::gather(Exchange &edge) {
  linalg::LinalgOp product = edge.product;
  OpBuilder b(product);
  Location loc = edge.collective.getLoc();
  int64_t c = edge.shardRows();
  Value shard = edge.collective.getInput(), whole = product->getOperand(2);
  auto shardType = cast<RankedTensorType>(shard.getType());
  // Products write into one tensor, the blocks in the order in which they are counted.
  auto compute = [&](Value blocks, int64_t from, int64_t count) {
    SmallVector<Value> operands(product->getOperands());
    operands[edge.operand] = blocks;
    operands[2] = takeSlice(b, loc, whole, edge.rows, from * c, count * c);
    Operation *part = clone(b, product, operands[2].getType(), operands);
    whole = putPart(b, loc, part->getResult(0), whole, edge.rows, from * c);
  };
  SmallVector<Step> steps = plan();
  SmallVector<Value> own = {shard};
  for (int64_t k = 1; k < outer.size; ++k)
    own.push_back(permute(b, edge, shard, outer, -k));
  for (int64_t k = 0; k < outer.size; ++k) {
    SmallVector<int64_t> shape(shardType.getShape());
    shape[edge.dim] = inner.size * c;
    Value stack;
    if (doubling && steps.size() > 1)
      stack =
          putPart(b, loc, own[k],
                  tensor::EmptyOp::create(b, loc, shape, shardType.getElementType()), edge.dim, 0);
    Value newest = own[k];
    int64_t at = k * inner.size, count = 1;
    for (auto [i, step] : llvm::enumerate(steps)) {
      Value sent = newest;
      if (doubling && step.have > 1)
        sent = takePart(b, loc, stack, edge.dim, 0, step.size * c);
      Value next = permute(b, edge, sent, inner, doubling ? -step.have : -1);
      compute(newest, at, count);
      at = k * inner.size + step.have;
      count = step.size;
      newest = next;
      if (doubling && i + 1 < steps.size())
        stack = putPart(b, loc, next, stack, edge.dim, step.have * c);
    }
    compute(newest, at, count);
  }
  Value result = rotate(b, edge, whole, edge.rows, -1);
  product->getResult(0).replaceAllUsesWith(result);
  product->erase();
  edge.collective->erase();
}

/// `left` and `right` combined element by element in type `type`; without `right` only converted.
Value combine(OpBuilder &b, Location loc, ReductionKind kind, Value left, Value right, Type type) {
  auto shape = cast<RankedTensorType>(left.getType());
  auto convert = [&](OpBuilder &b, Value v, Type to) -> Value {
    if (v.getType() == to)
      return v;
    bool wider = to.getIntOrFloatBitWidth() > v.getType().getIntOrFloatBitWidth();
    if (isa<FloatType>(to))
      return wider ? Value(arith::ExtFOp::create(b, loc, to, v))
                   : Value(arith::TruncFOp::create(b, loc, to, v));
    return wider ? Value(arith::ExtSIOp::create(b, loc, to, v))
                 : Value(arith::TruncIOp::create(b, loc, to, v));
  };
  if (!right && shape.getElementType() == type)
    return left;
  Value into = tensor::EmptyOp::create(b, loc, shape.getShape(), type);
  SmallVector<Value> ins = {left};
  if (right)
    ins.push_back(right);
  SmallVector<AffineMap> maps(ins.size() + 1, b.getMultiDimIdentityMap(shape.getRank()));
  SmallVector<utils::IteratorType> loops(shape.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, into.getType(), ins, into, maps, loops,
                                   [&](OpBuilder &b, Location, ValueRange args) {
                                     Value x = convert(b, args[0], type);
                                     if (right) {
                                       Value y = convert(b, args[1], type);
                                       bool isFloat = isa<FloatType>(type);
                                       switch (kind) {
                                       case ReductionKind::Min:
                                         x = isFloat
                                                 ? Value(arith::MinimumFOp::create(b, loc, x, y))
                                                 : Value(arith::MinSIOp::create(b, loc, x, y));
                                         break;
                                       case ReductionKind::Max:
                                         x = isFloat
                                                 ? Value(arith::MaximumFOp::create(b, loc, x, y))
                                                 : Value(arith::MaxSIOp::create(b, loc, x, y));
                                         break;
                                       case ReductionKind::Prod:
                                         x = isFloat ? Value(arith::MulFOp::create(b, loc, x, y))
                                                     : Value(arith::MulIOp::create(b, loc, x, y));
                                         break;
                                       default:
                                         x = isFloat ? Value(arith::AddFOp::create(b, loc, x, y))
                                                     : Value(arith::AddIOp::create(b, loc, x, y));
                                       }
                                     }
                                     linalg::YieldOp::create(b, loc, x);
                                   })
      .getResult(0);
}

void Steps::reduce(Exchange &edge) {
  ReduceScatterOp scatter = reductionOf(edge);
  linalg::LinalgOp product = edge.product;
  OpBuilder b(scatter);
  Location loc = scatter.getLoc();
  int64_t c = edge.shardRows();
  Type type = scatter.getAccumulate(), element = edge.collective.getElementType();
  Value rows = rotate(b, edge, product->getOperand(edge.operand), edge.dim, 1);
  // Partial sums of some blocks, in the type that they are added in.
  auto compute = [&](int64_t from, int64_t count) {
    SmallVector<Value> operands(product->getOperands());
    operands[edge.operand] = takePart(b, loc, rows, edge.dim, from * c, count * c);
    operands[2] = takePart(b, loc, operands[2], edge.rows, from * c, count * c);
    Operation *part = clone(b, product, operands[2].getType(), operands);
    return combine(b, loc, scatter.getKind(), part->getResult(0), Value(), type);
  };
  auto add = [&](Value left, Value right) {
    return combine(b, loc, scatter.getKind(), left, right, type);
  };
  struct Received {
    Value sums; ///< of the blocks [from, from + count)
    int64_t from, count;
  };
  SmallVector<Step> steps = plan();
  SmallVector<Value> fromOthers;
  Value result;
  for (int64_t k = outer.size; k-- > 0;) {
    int64_t base = k * inner.size;
    SmallVector<Received> received;
    // Blocks [from, from + count), with what has come for them, in the order in which it came.
    auto sum = [&](int64_t from, int64_t count) {
      Value sums = compute(base + from, count);
      for (Received &r : received) {
        int64_t common = std::min(from + count, r.from + r.count) - from;
        if (common <= 0)
          continue;
        Value theirs = r.sums;
        if (r.count != common)
          theirs = takePart(b, loc, theirs, edge.rows, (from - r.from) * c, common * c);
        if (common == count) {
          sums = add(sums, theirs);
          continue;
        }
        Value mine = add(takePart(b, loc, sums, edge.rows, 0, common * c), theirs);
        sums = putPart(b, loc, mine, sums, edge.rows, 0);
      }
      return sums;
    };
    for (Step step : llvm::reverse(steps)) {
      Value sums = sum(step.have, step.size);
      Value came = permute(b, edge, sums, inner, doubling ? step.have : 1);
      if (!doubling) // they are of the one block in front of the one that was sent
        received.clear();
      received.push_back({came, doubling ? 0 : step.have - 1, step.size});
    }
    Value sums = sum(0, 1);
    if (k > 0) {
      fromOthers.push_back(permute(b, edge, sums, outer, k));
      continue;
    }
    for (Value theirs : fromOthers)
      sums = add(sums, theirs);
    result = combine(b, loc, scatter.getKind(), sums, Value(), element);
  }
  scatter.getResult().replaceAllUsesWith(result);
  scatter->erase();
  product->erase();
}

void Steps::rewrite(Exchange &edge) { edge.isGather() ? gather(edge) : reduce(edge); }

LogicalResult cutInSteps(ModuleOp module, StringRef pass, StringRef machine, double margin,
                         bool doubling) {
  std::optional<overlap::CostModel> cost = machineFor(module, pass, machine, margin);
  if (!cost)
    return failure();
  Steps form(*cost, doubling);
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      cutExchanges(function, *cost, pass, margin, form);
  return success();
}

struct RingExchanges : ncclx::impl::RingExchangesBase<RingExchanges> {
  using RingExchangesBase::RingExchangesBase;
  void runOnOperation() override {
    if (failed(cutInSteps(getOperation(), getArgument(), machineFile, margin, false)))
      signalPassFailure();
  }
};

struct DoubleExchanges : ncclx::impl::DoubleExchangesBase<DoubleExchanges> {
  using DoubleExchangesBase::DoubleExchangesBase;
  void runOnOperation() override {
    if (failed(cutInSteps(getOperation(), getArgument(), machineFile, margin, true)))
      signalPassFailure();
  }
};

} // namespace
