//===- Halves.cpp - A block on two halves of its rows
//------------------------------------------===//
//
// What the rows are follows from the collectives: from a dimension of each that it works on row by
// row back through what made it, to where rows come from. From there every op that works row by
// row is done twice.
//
//===----------------------------------------------------------------------===//
#include "Halves.h"
#include "FunctionProblem.h"
#include "Parts.h"

#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// How rows go through an op: their dimension in each operand and result; -1 where all of it is
/// needed.
struct Way {
  SmallVector<int64_t> operands, results;
};

bool isStatic(Type type) {
  auto shaped = dyn_cast<RankedTensorType>(type);
  return shaped && shaped.hasStaticShape();
}

/// Whether a collective treats the rows of a dimension alike and by themselves.
bool isRowWise(CollectiveOpInterface op, int64_t dim) {
  if (op.isBufferForm() || op.isAsync() || op.getDest() ||
      op->hasAttr(NCCLXDialect::getScheduleAttrName()))
    return false;
  if (auto reduce = dyn_cast<AllReduceOp>(op.getOperation()))
    // The others count chunks of elements: another number, another order of addition.
    return reduce.getOrder() == ReductionOrder::Any || reduce.getOrder() == ReductionOrder::Rank;
  if (auto gather = dyn_cast<AllGatherOp>(op.getOperation()))
    return int64_t(gather.getDim()) != dim;
  if (auto scatter = dyn_cast<ReduceScatterOp>(op.getOperation()))
    return int64_t(scatter.getDim()) != dim;
  if (auto exchange = dyn_cast<AllToAllOp>(op.getOperation()))
    return int64_t(exchange.getSplit()) != dim && int64_t(exchange.getConcat()) != dim;
  return isa<PermuteOp, BroadcastOp>(op.getOperation());
}

std::optional<Way> wayThroughLoop(linalg::LinalgOp op, unsigned loop) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (op.getIteratorTypesArray()[loop] != utils::IteratorType::parallel ||
      ShapedType::isDynamic(op.getStaticLoopRanges()[loop]) || maps.size() != op->getNumOperands())
    return std::nullopt;
  bool counts = op->walk([&](linalg::IndexOp index) {
                    return index.getDim() == loop ? WalkResult::interrupt() : WalkResult::advance();
                  }).wasInterrupted();
  if (counts)
    return std::nullopt;
  Way way;
  for (AffineMap map : maps) {
    FailureOr<std::optional<unsigned>> dim = dimensionOf(map, loop);
    if (failed(dim))
      return std::nullopt;
    way.operands.push_back(*dim ? int64_t(**dim) : -1);
  }
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    way.results.push_back(way.operands[op.getNumDpsInputs() + i]);
    if (way.results.back() < 0)
      return std::nullopt;
  }
  return way;
}

/// The way of dimension `dim` of operand, or result, `index`.
std::optional<Way> wayThrough(Operation *op, bool isResult, unsigned index, int64_t dim) {
  if (op->getNumResults() == 0 || !llvm::all_of(op->getResultTypes(), isStatic))
    return std::nullopt;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    if (isa<linalg::FillOp>(op))
      return std::nullopt;
    AffineMap map =
        linalgOp.getIndexingMapsArray()[isResult ? linalgOp.getNumDpsInputs() + index : index];
    auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
    return loop ? wayThroughLoop(linalgOp, loop.getPosition()) : std::nullopt;
  }
  Way way;
  way.operands.assign(op->getNumOperands(), -1);
  way.results.assign(op->getNumResults(), dim);
  if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
    if (!isRowWise(collective, dim) || op->getNumOperands() != 1)
      return std::nullopt;
    way.operands[0] = dim;
    return way;
  }
  if (auto call = dyn_cast<CallOp>(op)) {
    auto cut = call->getAttrOfType<DenseI64ArrayAttr>(kCutAttrName);
    if (!cut || cut.size() != int64_t(op->getNumOperands() + op->getNumResults()))
      return std::nullopt;
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, call.getCalleeAttr());
    ArrayRef<int64_t> dims = cut.asArrayRef();
    if ((callee && !callee.isExternal()) ||
        dims[(isResult ? op->getNumOperands() : 0) + index] != dim)
      return std::nullopt;
    llvm::copy(dims.take_front(op->getNumOperands()), way.operands.begin());
    llvm::copy(dims.drop_front(op->getNumOperands()), way.results.begin());
    auto fits = [](Type type, int64_t d) {
      auto shaped = dyn_cast<RankedTensorType>(type);
      return d == -1 || (d >= 0 && shaped && d < shaped.getRank());
    };
    for (auto [type, d] : llvm::zip(op->getOperandTypes(), way.operands))
      if (!fits(type, d))
        return std::nullopt;
    for (auto [type, d] : llvm::zip(op->getResultTypes(), way.results))
      if (d < 0 || !fits(type, d))
        return std::nullopt;
    return way;
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    auto from = slice.getSourceType(), to = slice.getResultType();
    if (op->getNumOperands() != 1 || from.getRank() != to.getRank() ||
        from.getDimSize(dim) != to.getDimSize(dim))
      return std::nullopt;
    way.operands[0] = dim;
    return way;
  }
  if (OpTrait::hasElementwiseMappableTraits(op) && isPure(op)) {
    for (auto [i, type] : llvm::enumerate(op->getOperandTypes()))
      if (isa<RankedTensorType>(type))
        way.operands[i] = dim;
    return way;
  }
  return std::nullopt;
}

Type cutType(Type type, int64_t dim, int64_t size) {
  auto shaped = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(shaped.getShape());
  shape[dim] = size;
  return RankedTensorType::get(shape, shaped.getElementType());
}

/// Whether a whole of `bytes` is mostly what a call needs whatever its rows are: its whole inputs.
double fixedBytes(CallOp call, const Way &way) {
  double bytes = 0;
  for (auto [type, dim] : llvm::zip(call->getOperandTypes(), way.operands))
    if (auto shaped = dyn_cast<RankedTensorType>(type); shaped && dim < 0 && isStatic(type))
      bytes += double(shaped.getNumElements()) * shaped.getElementTypeBitWidth() / 8;
  return std::min(bytes, double(call.getBytes()));
}

class Halver {
public:
  Halver(Block &block, const Rows &rows, int64_t first)
      : block(block), rows(rows), sizes{first, rows.extent - first} {}

  unsigned run() {
    for (CollectiveOpInterface op : rows.collectives)
      for (int64_t d = 0; d < op.getOutputType().getRank(); ++d)
        if (op.getOutputType().getDimSize(d) == rows.extent && isRowWise(op, d)) {
          findSeeds(op.getResult(), d);
          break;
        }
    SmallVector<Operation *> ops, done;
    for (Operation &op : block)
      ops.push_back(&op);
    unsigned collectives = 0;
    for (Operation *op : ops) {
      if (std::optional<Way> way = chooseWay(op)) {
        cut(op, *way);
        done.push_back(op);
        collectives += isa<CollectiveOpInterface>(op);
      } else {
        useWhole(op);
      }
    }
    for (Operation *op : llvm::reverse(done))
      op->erase();
    return collectives;
  }

private:
  struct Halves {
    int64_t dim;
    std::array<Value, 2> half;
    Value whole; ///< put together again, once somebody has asked
  };

  Block &block;
  const Rows &rows;
  const std::array<int64_t, 2> sizes;
  llvm::DenseMap<Value, Halves> halves;
  llvm::DenseMap<Value, int64_t> seeds;
  llvm::DenseSet<std::pair<Value, int64_t>> seen;

  bool hasRows(Value value, int64_t dim) const {
    return isStatic(value.getType()) &&
           cast<RankedTensorType>(value.getType()).getDimSize(dim) == rows.extent;
  }

  /// Back from a value to those that rows of this block come from.
  void findSeeds(Value value, int64_t dim) {
    SmallVector<std::pair<Value, int64_t>> work = {{value, dim}};
    while (!work.empty()) {
      auto [v, d] = work.pop_back_val();
      if (!hasRows(v, d) || !seen.insert({v, d}).second)
        continue;
      Operation *def = v.getDefiningOp();
      std::optional<Way> way;
      if (def && def->getBlock() == &block)
        way = wayThrough(def, true, cast<OpResult>(v).getResultNumber(), d);
      bool further = false;
      if (way)
        for (auto [operand, at] : llvm::zip(def->getOperands(), way->operands))
          if (at >= 0 && !isInit(operand)) {
            work.push_back({operand, at});
            further = true;
          }
      if (!further && !isInit(v) && !(def && def->hasTrait<OpTrait::ConstantLike>()))
        seeds.try_emplace(v, d);
    }
  }
  static bool isInit(Value value) {
    return isa_and_nonnull<tensor::EmptyOp, linalg::FillOp>(value.getDefiningOp());
  }

  /// Where an operand is in halves, or its rows start here: the first such decides.
  std::optional<Way> chooseWay(Operation *op) {
    if (op->hasTrait<OpTrait::IsTerminator>())
      return std::nullopt;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      int64_t dim = -1;
      if (auto it = halves.find(operand); it != halves.end())
        dim = it->second.dim;
      else if (auto seed = seeds.find(operand); seed != seeds.end())
        dim = seed->second;
      else
        continue;
      if (std::optional<Way> way = wayThrough(op, false, i, dim))
        if (llvm::all_of(llvm::zip(op->getResults(), way->results),
                         [&](auto pair) { return hasRows(std::get<0>(pair), std::get<1>(pair)); }))
          return way;
    }
    return std::nullopt;
  }

  Value wholeOf(OpBuilder &b, Value value) {
    auto it = halves.find(value);
    if (it == halves.end())
      return value;
    Halves &h = it->second;
    if (h.whole)
      return h.whole;
    auto type = cast<RankedTensorType>(value.getType());
    Value whole =
        tensor::EmptyOp::create(b, value.getLoc(), type.getShape(), type.getElementType());
    whole = putPart(b, value.getLoc(), h.half[0], whole, h.dim, 0);
    return h.whole = putPart(b, value.getLoc(), h.half[1], whole, h.dim, sizes[0]);
  }
  Value halfOf(OpBuilder &b, Value value, int64_t dim, unsigned j) {
    if (auto it = halves.find(value); it != halves.end() && it->second.dim == dim)
      return it->second.half[j];
    return takePart(b, value.getLoc(), wholeOf(b, value), dim, j * sizes[0], sizes[j]);
  }

  /// An op that stays gets what it uses put together.
  void useWhole(Operation *op) {
    OpBuilder b(op);
    llvm::SetVector<Value> used(op->getOperands().begin(), op->getOperands().end());
    getUsedValuesDefinedAbove(op->getRegions(), used);
    for (Value value : used)
      if (halves.contains(value))
        value.replaceUsesWithIf(wholeOf(b, value),
                                [&](OpOperand &use) { return op->isAncestor(use.getOwner()); });
  }

  void cut(Operation *op, const Way &way) {
    OpBuilder b(op);
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    for (Value value : captured)
      if (halves.contains(value))
        value.replaceUsesWithIf(wholeOf(b, value), [&](OpOperand &use) {
          return use.getOwner() != op && op->isAncestor(use.getOwner());
        });
    SmallVector<Halves> made;
    for (int64_t dim : way.results)
      made.push_back({dim, {}, {}});
    for (unsigned j = 0; j < 2; ++j) {
      SmallVector<Value> operands;
      for (auto [operand, dim] : llvm::zip(op->getOperands(), way.operands))
        operands.push_back(dim < 0 ? wholeOf(b, operand) : halfOf(b, operand, dim, j));
      SmallVector<Type> types;
      for (auto [type, dim] : llvm::zip(op->getResultTypes(), way.results))
        types.push_back(cutType(type, dim, sizes[j]));
      Operation *half;
      if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
        SmallVector<OpFoldResult> extents = slice.getMixedSizes();
        extents[way.results[0]] = b.getIndexAttr(sizes[j]);
        half = tensor::ExtractSliceOp::create(b, op->getLoc(), operands[0], slice.getMixedOffsets(),
                                              extents, slice.getMixedStrides());
      } else {
        half = clone(b, op, types, operands);
      }
      if (auto call = dyn_cast<CallOp>(half)) {
        double part = double(sizes[j]) / double(rows.extent), fixed = fixedBytes(call, way);
        call.setCallee((call.getCallee() + ".rows" + Twine(sizes[j])).str());
        call.setFlops(int64_t(double(call.getFlops()) * part));
        call.setBytes(int64_t(fixed + (double(call.getBytes()) - fixed) * part));
      }
      for (auto [result, h] : llvm::zip(half->getResults(), made))
        h.half[j] = result;
    }
    for (auto [result, h] : llvm::zip(op->getResults(), made))
      halves[result] = h;
  }
};

} // namespace

std::optional<Rows> mlir::ncclx::findRows(Block &block, std::string &why) {
  llvm::MapVector<int64_t, int64_t> bytes; // of the collectives of each number of rows
  auto rowsOf = [](CollectiveOpInterface op) -> std::optional<int64_t> {
    ShapedType type = op.getOutputType();
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (type.getDimSize(d) > 1 && isRowWise(op, d))
        return type.getDimSize(d);
    return std::nullopt;
  };
  SmallVector<CollectiveOpInterface> all(block.getOps<CollectiveOpInterface>());
  for (CollectiveOpInterface op : all)
    if (std::optional<int64_t> extent = rowsOf(op))
      bytes[*extent] += op.getPayloadBytes();
  if (bytes.empty()) {
    why = all.empty() ? "it has no collective that is not started already"
                      : "no collective treats rows of its tensor alike and by themselves";
    return std::nullopt;
  }
  Rows rows;
  rows.extent =
      llvm::max_element(bytes, [](auto &x, auto &y) { return x.second < y.second; })->first;
  for (CollectiveOpInterface op : all)
    if (rowsOf(op) == rows.extent)
      rows.collectives.push_back(op);
  return rows;
}

unsigned mlir::ncclx::cutInHalves(Block &block, const Rows &rows, int64_t first) {
  return Halver(block, rows, first).run();
}

void mlir::ncclx::declareKernels(Operation *symbolTable, Block &block) {
  for (auto call : block.getOps<CallOp>()) {
    if (!call->hasAttr(kCutAttrName) ||
        SymbolTable::lookupSymbolIn(symbolTable, call.getCalleeAttr()))
      continue;
    OpBuilder b = OpBuilder::atBlockEnd(&symbolTable->getRegion(0).front());
    auto type = b.getFunctionType(call->getOperandTypes(), call->getResultTypes());
    func::FuncOp::create(b, call.getLoc(), call.getCallee(), type).setPrivate();
  }
}
