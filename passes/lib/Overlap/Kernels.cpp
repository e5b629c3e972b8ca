//===- Kernels.cpp - What blocks consist of, and what it costs -----------------------===//
#include "Kernels.h"
#include "Halves.h"

#include "ncclx/NCCLX/Hints.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx;

std::string mlir::ncclx::describe(Operation *op) {
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    return llvm::formatv("{0} of {1} bytes", op->getName().stripDialect(),
                         collective.getPayloadBytes());
  if (auto call = dyn_cast<CallOp>(op))
    return ("@" + call.getCallee()).str();
  std::string text;
  llvm::raw_string_ostream os(text);
  os << op->getName();
  if (op->getNumResults() > 0)
    os << " -> " << op->getResult(0).getType();
  return text;
}

bool mlir::ncclx::isGlue(Operation *op) {
  return isa<linalg::FillOp>(op) || (op->getNumRegions() == 0 && isPure(op) && !isa<CallOp>(op));
}

int64_t mlir::ncclx::bytesOf(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasStaticShape() || !shaped.getElementType().isIntOrFloat())
    return 0;
  return shaped.getNumElements() * llvm::divideCeil(shaped.getElementTypeBitWidth(), 8);
}

SmallVector<Value> mlir::ncclx::usedValues(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  values.append(captured.begin(), captured.end());
  return values;
}

SmallVector<func::FuncOp> mlir::ncclx::communicatingFunctions(ModuleOp module) {
  return llvm::filter_to_vector(module.getOps<func::FuncOp>(), [](func::FuncOp function) {
    return !function.isExternal() && holdsCommunication(function);
  });
}

SmallVector<Block *> mlir::ncclx::blocksIn(Operation *op) {
  SmallVector<Block *> blocks;
  if (!isa<scf::ForOp, scf::WhileOp, scf::IfOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(op) ||
      !holdsCommunication(op))
    return blocks;
  for (Region &region : op->getRegions())
    if (region.hasOneBlock())
      blocks.push_back(&region.front());
  return blocks;
}

double mlir::ncclx::timesOf(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  std::optional<APInt> trips = loop ? loop.getStaticTripCount() : std::nullopt;
  return trips ? trips->roundToDouble() : 1;
}

SmallVector<Block *> mlir::ncclx::communicatingBlocks(func::FuncOp function) {
  SmallVector<Block *> blocks;
  if (function.getBody().hasOneBlock())
    blocks.push_back(&function.getBody().front());
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Block *block : blocksIn(op))
      if (llvm::any_of(*block, [](Operation &inner) { return holdsCommunication(&inner); }))
        blocks.push_back(block);
  });
  return blocks;
}

/// A product's sizes: rows and columns of the result, what is summed over, and how many products
/// there are. Dimensions of the left operand alone are rows, of the right alone columns.
static std::optional<overlap::Op> costOfProduct(linalg::LinalgOp op, std::string name,
                                                const overlap::CostModel &cost) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (maps.size() != 3)
    return std::nullopt;
  double m = 1, n = 1, k = 1, groups = 1;
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  for (auto [dim, size] : llvm::enumerate(op.getStaticLoopRanges())) {
    bool left = maps[0].isFunctionOfDim(dim), right = maps[1].isFunctionOfDim(dim);
    double &place = kinds[dim] == utils::IteratorType::reduction ? k
                    : left && right                              ? groups
                    : left                                       ? m
                                                                 : n;
    place *= double(size);
  }
  return cost.gemm(std::move(name), m * groups, n, k, groups);
}

/// A kernel that says it is a grouped product. Which rows go to which group is known at run time:
/// the last tile of each is half full on average.
static std::optional<overlap::Op> costOfGroupedProduct(CallOp call, std::string name,
                                                       const overlap::CostModel &cost) {
  auto sizes = call->getAttrOfType<DenseI64ArrayAttr>(kProductAttrName);
  auto rows = call.getInputs().empty() ? RankedTensorType()
                                       : dyn_cast<RankedTensorType>(call.getInputs()[0].getType());
  if (!sizes || sizes.size() != 4 || !rows || rows.getRank() == 0 || !rows.hasStaticShape() ||
      llvm::any_of(sizes.asArrayRef(), [](int64_t size) { return size < 1; }))
    return std::nullopt;
  double groups = sizes[0];
  double m = double(rows.getDimSize(0)) * sizes[1] + (groups > 1 ? groups * cost.tileM / 2 : 0);
  return cost.gemm(std::move(name), m, sizes[2], sizes[3], groups);
}

std::optional<overlap::Op> mlir::ncclx::costOf(Operation *op, const overlap::CostModel &cost) {
  std::string name = describe(op);
  int64_t bytes = 0;
  for (Value value : usedValues(op))
    bytes += bytesOf(value.getType());
  if (auto call = dyn_cast<CallOp>(op)) {
    if (std::optional<overlap::Op> product = costOfGroupedProduct(call, name, cost))
      return product;
    overlap::Op busy = cost.attention(name, call.getFlops(), call.getBytes(), /*backward=*/false);
    overlap::Op moving = cost.memory(name, call.getBytes());
    return busy.seconds >= moving.seconds ? busy : moving;
  }
  // A loop or a branch without communication: what is in it, one after the other; of branches the
  // one that takes longest.
  if (isa<scf::ForOp, scf::IfOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(op)) {
    double times = 1;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      std::optional<APInt> trips = loop.getStaticTripCount();
      if (!trips)
        return std::nullopt;
      times = trips->roundToDouble();
    }
    overlap::Op longest;
    for (Region &region : op->getRegions()) {
      overlap::Op sum;
      for (Block &block : region)
        for (Operation &inner : block) {
          if (isGlue(&inner) || inner.hasTrait<OpTrait::IsTerminator>())
            continue;
          std::optional<overlap::Op> priced = costOf(&inner, cost);
          if (!priced)
            return std::nullopt;
          sum.seconds += priced->seconds * times;
          sum.joules += priced->joules * times;
        }
      if (sum.seconds > longest.seconds)
        longest = sum;
    }
    longest.clocked = true;
    return longest;
  }
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || llvm::any_of(linalgOp.getStaticLoopRanges(), ShapedType::isDynamic))
    return std::nullopt;
  if (linalg::isaContractionOpInterface(linalgOp))
    if (std::optional<overlap::Op> product = costOfProduct(linalgOp, name, cost))
      return product;
  return cost.memory(name, double(bytes));
}

std::optional<overlap::Op> mlir::ncclx::costOfCollective(CollectiveOpInterface op,
                                                         const overlap::CostModel &cost,
                                                         double fraction) {
  StringRef kind = op->getName().stripDialect();
  const overlap::Engine *engine = cost.engine(kind);
  if (!engine)
    return std::nullopt;
  // A permute has one peer, however large its group is.
  int64_t members = getGroupSize(op),
          peers = isa<PermuteOp>(op) ? std::min<int64_t>(members, 2) : members;
  return cost.collective(
      describe(op), *engine, peers,
      overlap::wireBytes(kind, members, double(op.getPayloadBytes()) * fraction));
}
