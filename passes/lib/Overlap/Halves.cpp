//===- Halves.cpp - A block on two halves of its rows
//------------------------------------------===//
//
// What the rows are follows from the collectives: from a dimension of each that it works on row by
// row back through what made it, to where rows come from. From there every op that works row by
// row is done twice. Where a collective gathers or scatters the rows themselves (sequence
// parallelism), rows are those of a shard: what is gathered holds a block of them for each member,
// and a half of it has the same rows of every block.
//
//===----------------------------------------------------------------------===//
#include "Halves.h"
#include "FunctionProblem.h"
#include "Parts.h"

#include "ncclx/NCCLX/Hints.h"

#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// How rows go through an op: their dimension in each operand and result; -1 where all of it is
/// needed. Of each block of rows there are as many in a result as are gathered, or the other way
/// round.
struct Way {
  SmallVector<int64_t> operands, results;
  int64_t gathers = 1, scatters = 1;
};

/// Rows of a value: their dimension, and how many blocks of them it has.
struct Place {
  int64_t dim, blocks;
  bool operator==(const Place &) const = default;
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

/// Members of a group whose even shards in `dim` a collective gathers, or scatters; 1 where that is
/// not what it does.
int64_t gathered(CollectiveOpInterface op, int64_t dim, bool scatters) {
  auto gather = dyn_cast<AllGatherOp>(op.getOperation());
  auto scatter = dyn_cast<ReduceScatterOp>(op.getOperation());
  if (!(scatters ? scatter && int64_t(scatter.getDim()) == dim
                 : gather && int64_t(gather.getDim()) == dim) ||
      op.isBufferForm() || op.isAsync() || op.getDest() || !haveOneSize(op) ||
      op->hasAttr(NCCLXDialect::getScheduleAttrName()))
    return 1;
  int64_t n = getGroupSize(op);
  ShapedType in = op.getInputType(), out = op.getOutputType();
  int64_t shard = (scatters ? out : in).getDimSize(dim);
  return (scatters ? in : out).getDimSize(dim) == n * shard ? n : 1;
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
    way.gathers = gathered(collective, dim, false);
    way.scatters = gathered(collective, dim, true);
    if (op->getNumOperands() != 1 ||
        (way.gathers == 1 && way.scatters == 1 && !isRowWise(collective, dim)))
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

/// Rows that a collective may be cut in, and where they are in its result: in the order of its
/// dimensions.
SmallVector<std::pair<int64_t, Place>> rowsOf(CollectiveOpInterface op) {
  SmallVector<std::pair<int64_t, Place>> list;
  ShapedType in = op.getInputType(), out = op.getOutputType();
  for (int64_t d = 0; d < out.getRank(); ++d) {
    if (isRowWise(op, d) && out.getDimSize(d) > 1)
      list.push_back({out.getDimSize(d), {d, 1}});
    else if (int64_t n = gathered(op, d, false); n > 1 && in.getDimSize(d) > 1)
      list.push_back({in.getDimSize(d), {d, n}});
    else if (gathered(op, d, true) > 1 && out.getDimSize(d) > 1)
      list.push_back({out.getDimSize(d), {d, 1}});
  }
  return list;
}

class Halver {
public:
  Halver(Block &block, const Rows &rows, int64_t first)
      : block(block), rows(rows), sizes{first, rows.extent - first} {}

  unsigned run() {
    for (CollectiveOpInterface op : rows.collectives)
      for (auto [extent, place] : rowsOf(op))
        if (extent == rows.extent) {
          findSeeds(op.getResult(), place);
          break;
        }
    SmallVector<Operation *> ops, done;
    for (Operation &op : block)
      ops.push_back(&op);
    unsigned collectives = 0;
    for (Operation *op : ops) {
      int64_t blocks = 1;
      if (std::optional<Way> way = chooseWay(op, blocks)) {
        cut(op, *way, blocks);
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
    Place place;
    std::array<Value, 2> half;
    Value whole; ///< put together again, once somebody has asked
  };

  Block &block;
  const Rows &rows;
  const std::array<int64_t, 2> sizes;
  llvm::DenseMap<Value, Halves> halves;
  llvm::DenseMap<Value, Place> seeds;
  llvm::DenseSet<std::pair<Value, int64_t>> seen;

  bool hasRows(Value value, Place place) const {
    return isStatic(value.getType()) &&
           cast<RankedTensorType>(value.getType()).getDimSize(place.dim) ==
               rows.extent * place.blocks;
  }

  /// Back from a value to those that rows of this block come from.
  void findSeeds(Value value, Place place) {
    SmallVector<std::pair<Value, Place>> work = {{value, place}};
    while (!work.empty()) {
      auto [v, at] = work.pop_back_val();
      if (!hasRows(v, at) || !seen.insert({v, at.dim}).second)
        continue;
      Operation *def = v.getDefiningOp();
      std::optional<Way> way;
      if (def && def->getBlock() == &block)
        way = wayThrough(def, true, cast<OpResult>(v).getResultNumber(), at.dim);
      bool further = false;
      if (way && at.blocks % way->gathers == 0)
        for (auto [operand, dim] : llvm::zip(def->getOperands(), way->operands))
          if (dim >= 0 && !isInit(operand)) {
            work.push_back({operand, {dim, at.blocks / way->gathers * way->scatters}});
            further = true;
          }
      if (!further && !isInit(v) && !(def && def->hasTrait<OpTrait::ConstantLike>()))
        seeds.try_emplace(v, at);
    }
  }
  static bool isInit(Value value) {
    return isa_and_nonnull<tensor::EmptyOp, linalg::FillOp>(value.getDefiningOp());
  }

  /// Where an operand is in halves, or its rows start here: the first such decides. `blocks`: of
  /// the operands.
  std::optional<Way> chooseWay(Operation *op, int64_t &blocks) {
    if (op->hasTrait<OpTrait::IsTerminator>())
      return std::nullopt;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      Place place;
      if (auto it = halves.find(operand); it != halves.end())
        place = it->second.place;
      else if (auto seed = seeds.find(operand); seed != seeds.end())
        place = seed->second;
      else
        continue;
      std::optional<Way> way = wayThrough(op, false, i, place.dim);
      if (!way || place.blocks % way->scatters)
        continue;
      int64_t after = place.blocks / way->scatters * way->gathers;
      if (llvm::all_of(llvm::zip(op->getResults(), way->results), [&](auto pair) {
            return hasRows(std::get<0>(pair), {std::get<1>(pair), after});
          })) {
        blocks = place.blocks;
        return way;
      }
    }
    return std::nullopt;
  }

  /// The dimension of rows in two: blocks, and rows of each.
  struct Blocked {
    RankedTensorType type;
    SmallVector<ReassociationIndices> groups;
  };
  static Blocked blocked(RankedTensorType type, Place place) {
    Blocked result;
    SmallVector<int64_t> shape;
    for (int64_t d = 0; d < type.getRank(); ++d) {
      ReassociationIndices &group = result.groups.emplace_back();
      group.push_back(shape.size());
      if (d == place.dim) {
        shape.push_back(place.blocks);
        group.push_back(shape.size());
      }
      shape.push_back(type.getDimSize(d) / (d == place.dim ? place.blocks : 1));
    }
    result.type = RankedTensorType::get(shape, type.getElementType());
    return result;
  }
  Value expanded(OpBuilder &b, Value value, Place place) {
    if (place.blocks == 1)
      return value;
    Blocked to = blocked(cast<RankedTensorType>(value.getType()), place);
    return tensor::ExpandShapeOp::create(b, value.getLoc(), to.type, value, to.groups);
  }
  Value collapsed(OpBuilder &b, Value value, RankedTensorType type, Place place) {
    if (place.blocks == 1)
      return value;
    return tensor::CollapseShapeOp::create(b, value.getLoc(), type, value,
                                           blocked(type, place).groups);
  }

  Value wholeOf(OpBuilder &b, Value value) {
    auto it = halves.find(value);
    if (it == halves.end())
      return value;
    Halves &h = it->second;
    if (h.whole)
      return h.whole;
    auto type = cast<RankedTensorType>(value.getType());
    Location loc = value.getLoc();
    auto room = h.place.blocks == 1 ? type : blocked(type, h.place).type;
    unsigned dim = h.place.dim + (h.place.blocks > 1);
    Value whole = tensor::EmptyOp::create(b, loc, room.getShape(), type.getElementType());
    for (unsigned j = 0; j < 2; ++j)
      whole = putPart(b, loc, expanded(b, h.half[j], h.place), whole, dim, j * sizes[0]);
    return h.whole = collapsed(b, whole, type, h.place);
  }
  Value halfOf(OpBuilder &b, Value value, Place place, unsigned j) {
    if (auto it = halves.find(value); it != halves.end() && it->second.place == place)
      return it->second.half[j];
    Value whole = wholeOf(b, value);
    if (place.blocks == 1 || isInit(whole))
      return takePart(b, value.getLoc(), whole, place.dim, j * sizes[0] * place.blocks,
                      sizes[j] * place.blocks);
    Value part = takePart(b, value.getLoc(), expanded(b, whole, place), place.dim + 1, j * sizes[0],
                          sizes[j]);
    return collapsed(
        b, part,
        cast<RankedTensorType>(cutType(whole.getType(), place.dim, sizes[j] * place.blocks)),
        place);
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

  void cut(Operation *op, const Way &way, int64_t blocks) {
    OpBuilder b(op);
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    for (Value value : captured)
      if (halves.contains(value))
        value.replaceUsesWithIf(wholeOf(b, value), [&](OpOperand &use) {
          return use.getOwner() != op && op->isAncestor(use.getOwner());
        });
    int64_t after = blocks / way.scatters * way.gathers;
    SmallVector<Halves> made;
    for (int64_t dim : way.results)
      made.push_back({{dim, after}, {}, {}});
    for (unsigned j = 0; j < 2; ++j) {
      SmallVector<Value> operands;
      for (auto [operand, dim] : llvm::zip(op->getOperands(), way.operands))
        operands.push_back(dim < 0 ? wholeOf(b, operand) : halfOf(b, operand, {dim, blocks}, j));
      SmallVector<Type> types;
      for (auto [type, dim] : llvm::zip(op->getResultTypes(), way.results))
        types.push_back(cutType(type, dim, sizes[j] * after));
      Operation *half;
      if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
        SmallVector<OpFoldResult> extents = slice.getMixedSizes();
        extents[way.results[0]] = b.getIndexAttr(sizes[j] * after);
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
  SmallVector<CollectiveOpInterface> all(block.getOps<CollectiveOpInterface>());
  for (CollectiveOpInterface op : all) {
    llvm::SmallDenseSet<int64_t> counted;
    for (auto [extent, place] : rowsOf(op))
      if (counted.insert(extent).second)
        bytes[extent] += op.getPayloadBytes();
  }
  if (bytes.empty()) {
    why = all.empty() ? "it has no collective that is not started already"
                      : "no collective treats rows of its tensor alike and by themselves";
    return std::nullopt;
  }
  Rows rows;
  rows.extent =
      llvm::max_element(bytes, [](auto &x, auto &y) { return x.second < y.second; })->first;
  for (CollectiveOpInterface op : all)
    for (auto [extent, place] : rowsOf(op))
      if (extent == rows.extent) {
        rows.collectives.push_back(op);
        rows.blocks = std::max(rows.blocks, place.blocks);
        break;
      }
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
