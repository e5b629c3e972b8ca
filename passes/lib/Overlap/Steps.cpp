//===- Steps.cpp - Which exchanges go in steps, and what they take -------------------===//
#include "Steps.h"

#include "ncclx/Overlap/Solve.h"

using namespace mlir;
using namespace mlir::ncclx;

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
  ReductionOrder mine = form == StepForm::ring ? ReductionOrder::Ring
                        : doubling             ? ReductionOrder::Tree
                                               : ReductionOrder::Rank;
  if (op.getOrder() != ReductionOrder::Any && op.getOrder() != mine)
    return llvm::formatv("its order is {0}, and this form adds in that of {2} {1}",
                         stringifyReductionOrder(op.getOrder()), stringifyReductionOrder(mine),
                         mine == ReductionOrder::Rank ? "the" : "a");
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

//===--- what it takes -----------------------------------------------------------------------===//

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
  if (!edge.isGather() && form != StepForm::direct) // sums go round
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
  } else if (form == StepForm::direct) {
    unsigned rotation = add(cost.memory("rotation", turned), {mine});
    std::vector<unsigned> all;
    for (int64_t k = 1; k < n; ++k)
      all.push_back(move(1, {compute(1, {rotation})}));
    all.push_back(compute(1, {rotation}));
    // All that has come is added at once, put in the members' order before where that matters.
    bool turns = reductionOf(edge).getOrder() != ReductionOrder::Any;
    add(cost.memory("sum", shard * double((turns ? 5 : 1) * n + 1)), std::move(all));
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
                        form == StepForm::ring ? "a ring"
                        : doubling             ? "doubled size"
                                               : "one block, straight to whom it is for");
  return overlap::solve(problem, overlap::serialSchedule(problem), options).timeline.seconds;
}
