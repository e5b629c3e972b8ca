//===- SplitHalos.cpp - The interior of a stencil while its halo is exchanged -----------------===//
//
// Card P18 of the survey. A stencil reads a field into which faces of neighbours have been
// inserted. Which elements of its result need none of those follows from what is read of each
// insertion, for a box of the result that is not known yet; the largest such box is the interior.
// Interior and slabs around it are then made by the same ops on boxes, down to the field and the
// faces themselves: the exchange is awaited by the slabs alone.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Overlap/Passes.h"

#include "Exchanges.h"
#include "Parts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/RegionUtils.h"

#include <map>

namespace mlir::ncclx {
#define GEN_PASS_DEF_SPLITHALOS
#include "ncclx/Overlap/Passes.h.inc"
} // namespace mlir::ncclx

using namespace mlir;
using namespace mlir::ncclx;

namespace {

/// Indices [low, high) of one dimension; or, of a box that is not known yet, those that lie by so
/// much beside the two ends of its dimension `dim`.
struct Range {
  int64_t low = 0, high = 0;
  int dim = -1;
  bool operator==(const Range &) const = default;
  auto operator<=>(const Range &) const = default;
};
using Box = SmallVector<Range>;

Box wholeOf(Value value) {
  Box box;
  for (int64_t size : cast<RankedTensorType>(value.getType()).getShape())
    box.push_back({0, size});
  return box;
}
Box moved(Box box, ArrayRef<int64_t> by, int64_t sign) {
  for (auto [range, offset] : llvm::zip(box, by)) {
    range.low += sign * offset;
    range.high += sign * offset;
  }
  return box;
}
std::optional<Box> intersection(const Box &a, const Box &b) {
  Box both;
  for (auto [x, y] : llvm::zip(a, b)) {
    both.push_back({std::max(x.low, y.low), std::min(x.high, y.high)});
    if (both.back().low >= both.back().high)
      return std::nullopt;
  }
  return both;
}
int64_t volume(const Box &box) {
  int64_t product = 1;
  for (const Range &range : box)
    product *= range.high - range.low;
  return product;
}
std::string toString(const Box &box) {
  std::string text;
  for (const Range &range : box)
    text += (text.empty() ? "" : "x") + std::to_string(range.high - range.low);
  return text;
}

//===--- what an op reads for a box of its result --------------------------------------------===//

/// Where an op inserts, or extracts: static, in steps of 1, of the same rank.
template <typename Op> std::optional<Box> placeOf(Op op) {
  if (op.getSourceType().getRank() != op.getType().getRank() ||
      ShapedType::isDynamicShape(op.getStaticOffsets()) ||
      ShapedType::isDynamicShape(op.getStaticSizes()) ||
      llvm::any_of(op.getStaticStrides(), [](int64_t stride) { return stride != 1; }))
    return std::nullopt;
  Box box;
  for (auto [offset, size] : llvm::zip(op.getStaticOffsets(), op.getStaticSizes()))
    box.push_back({offset, offset + size});
  return box;
}
SmallVector<int64_t> offsetsOf(const Box &box) {
  return llvm::map_to_vector(box, [](const Range &range) { return range.low; });
}

SmallVector<int64_t> sizesOf(const Box &box) {
  return llvm::map_to_vector(box, [](const Range &range) { return range.high - range.low; });
}

/// An op of one result whose elements are made one by one, each from elements near it. Products
/// read whole rows: cutting them is for other passes.
bool isLocal(linalg::LinalgOp op) {
  if (isa<linalg::FillOp>(op) || op->getNumResults() != 1 || op.hasIndexSemantics() ||
      !op.hasPureTensorSemantics() || linalg::isaContractionOpInterface(op) ||
      llvm::any_of(op.getStaticLoopRanges(), ShapedType::isDynamic))
    return false;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  AffineMap out = op.getIndexingMapsArray().back();
  return out.isProjectedPermutation() &&
         llvm::none_of(captured, [](Value value) { return isa<ShapedType>(value.getType()); });
}
bool isElementwise(Operation *op) {
  return op->getNumResults() == 1 && OpTrait::hasElementwiseMappableTraits(op) && isPure(op) &&
         isa<RankedTensorType>(op->getResult(0).getType());
}

/// Adds what an index of a map runs over; false where that is no box, or does not go with the
/// result's box as it stands.
bool addRange(AffineExpr expr, const Box &loops, Range &sum) {
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return number.getValue() == 0;
  int64_t factor = 1;
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr)) {
    if (expr.getKind() == AffineExprKind::Add)
      return addRange(binary.getLHS(), loops, sum) && addRange(binary.getRHS(), loops, sum);
    auto times = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (expr.getKind() != AffineExprKind::Mul || !times || times.getValue() < 1)
      return false;
    factor = times.getValue();
    expr = binary.getLHS();
  }
  auto dim = dyn_cast<AffineDimExpr>(expr);
  if (!dim)
    return false;
  const Range &range = loops[dim.getPosition()];
  if (range.dim >= 0 && (sum.dim >= 0 || factor > 1))
    return false;
  sum.low += factor * range.low;
  sum.high += factor * (range.high - 1);
  sum.dim = std::max(sum.dim, range.dim);
  return true;
}

/// What of an operand a local op reads for a box of its result.
std::optional<Box> readBy(linalg::LinalgOp op, unsigned operand, const Box &result) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  Box loops, read;
  for (int64_t size : op.getStaticLoopRanges())
    loops.push_back({0, size});
  for (auto [expr, range] : llvm::zip(maps.back().getResults(), result))
    loops[cast<AffineDimExpr>(expr).getPosition()] = range;
  for (AffineExpr expr : maps[operand].getResults()) {
    Range sum{0, 1};
    if (!addRange(expr, loops, sum))
      return std::nullopt;
    read.push_back(sum);
  }
  return read;
}

//===--- interior and slabs ------------------------------------------------------------------===//

/// One result of a stencil, in boxes.
class Stencil {
public:
  /// `done`: fields that have been looked at; what is further back is another step's.
  Stencil(Value root, const DenseSet<Value> &done)
      : root(root), block(*root.getDefiningOp()->getBlock()), done(done) {}

  llvm::SetVector<Operation *> exchanges; ///< that the result needs
  Box interior;
  SmallVector<Box> slabs;

  /// Finds interior and slabs; or in `why` what is in the way. No reason: there is no halo.
  bool plan(std::string &why);
  /// Makes the result of them; gives it.
  Value rewrite();

private:
  Value root;
  Block &block;
  const DenseSet<Value> &done;
  struct Halo { ///< what a box must not read: an insertion of what has been communicated
    Box read, inserted;
  };
  SmallVector<Halo> halos;
  /// Whether a value comes from an exchange, and whether by another way than a halo.
  struct Reach {
    bool exchange = false, whole = false;
    void operator|=(Reach other) {
      exchange |= other.exchange;
      whole |= other.whole;
    }
  };
  std::map<std::pair<void *, std::vector<Range>>, Reach> walked;
  llvm::SetVector<Operation *> chain; ///< what is made anew on boxes
  std::map<std::pair<void *, std::vector<Range>>, Value> parts;

  static std::pair<void *, std::vector<Range>> key(Value value, const Box &box) {
    return {value.getAsOpaquePointer(), {box.begin(), box.end()}};
  }
  Reach walk(Value value, const Box &box);
  Reach reach(Operation *op, const Box &box);
  bool avoid(const Halo &halo);
  Value part(OpBuilder &b, Value value, const Box &box);
  Value make(OpBuilder &b, Operation *op, const Box &box, Value into = {});
  Value onBox(OpBuilder &b, Operation *op, ValueRange operands);
};

Stencil::Reach Stencil::walk(Value value, const Box &box) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &block || done.contains(value))
    return {};
  auto [it, isNew] = walked.try_emplace(key(value, box));
  if (!isNew)
    return it->second;
  Reach found = reach(op, box);
  if (found.exchange)
    chain.insert(op);
  return walked[key(value, box)] = found;
}

Stencil::Reach Stencil::reach(Operation *op, const Box &box) {
  if (isa<CollectiveOpInterface, AwaitOp>(op)) {
    exchanges.insert(op);
    return {true, true};
  }
  Reach found;
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    if (std::optional<Box> place = placeOf(insert)) {
      Reach source = walk(insert.getSource(), moved(box, offsetsOf(*place), -1));
      if (source.whole)
        halos.push_back({box, *place});
      source.whole = false;
      found |= source;
      found |= walk(insert.getDest(), box);
      return found;
    }
  if (auto extract = dyn_cast<tensor::ExtractSliceOp>(op))
    if (std::optional<Box> place = placeOf(extract))
      return walk(extract.getSource(), moved(box, offsetsOf(*place), 1));
  if (auto local = dyn_cast<linalg::LinalgOp>(op); local && isLocal(local)) {
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      if (!isa<RankedTensorType>(op->getOperand(i).getType()))
        continue;
      if (std::optional<Box> read = readBy(local, i, box)) {
        found |= walk(op->getOperand(i), *read);
      } else if (walk(op->getOperand(i), wholeOf(op->getOperand(i))).exchange) {
        found = {true, true};
      }
    }
    return found;
  }
  if (isElementwise(op)) {
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        found |= walk(operand, box);
    return found;
  }
  if (isGlue(op)) // a view, or a slice somewhere: all of it
    for (Value operand : op->getOperands())
      if (auto type = dyn_cast<RankedTensorType>(operand.getType());
          type && type.hasStaticShape() && walk(operand, wholeOf(operand)).exchange)
        found = {true, true};
  return found;
}

/// Cuts the interior down until it does not read the halo: at that end which leaves most.
bool Stencil::avoid(const Halo &halo) {
  Box read;
  for (const Range &range : halo.read)
    read.push_back(range.dim < 0 ? range
                                 : Range{range.low + interior[range.dim].low,
                                         range.high + interior[range.dim].high});
  if (!intersection(read, halo.inserted))
    return true;
  Box best;
  for (auto [range, inserted] : llvm::zip(halo.read, halo.inserted)) {
    if (range.dim < 0)
      continue;
    for (bool low : {true, false}) {
      Box box = interior;
      (low ? box[range.dim].low : box[range.dim].high) =
          low ? inserted.high - range.low : inserted.low - range.high;
      if (box[range.dim].low < box[range.dim].high && (best.empty() || volume(box) > volume(best)))
        best = box;
    }
  }
  if (best.empty())
    return false;
  interior = best;
  return true;
}

bool Stencil::plan(std::string &why) {
  Box symbolic;
  interior = wholeOf(root);
  for (size_t i = 0; i < interior.size(); ++i)
    symbolic.push_back({0, 0, int(i)});
  Reach found = walk(root, symbolic);
  if (halos.empty())
    return false;
  if (found.whole)
    why = "it needs all of what is communicated, wherever it is computed";
  for (const Halo &halo : halos)
    if (why.empty() && !avoid(halo))
      why = "none of its elements can do without what is communicated";
  if (!why.empty())
    return false;
  Box rest = wholeOf(root), whole = rest;
  if (interior == whole)
    return false;
  for (size_t i = 0; i < rest.size(); ++i) {
    for (Range end : {Range{0, interior[i].low}, Range{interior[i].high, whole[i].high}})
      if (end.low < end.high) {
        slabs.push_back(rest);
        slabs.back()[i] = end;
      }
    rest[i] = interior[i];
  }
  return true;
}

Value Stencil::part(OpBuilder &b, Value value, const Box &box) {
  Operation *op = value.getDefiningOp();
  bool isView = isa_and_nonnull<tensor::InsertSliceOp, tensor::ExtractSliceOp>(op) &&
                op->getBlock() == &block && !done.contains(value);
  if (!isView && !(op && chain.contains(op)))
    return takeBox(b, root.getLoc(), value, offsetsOf(box), sizesOf(box));
  auto [it, isNew] = parts.try_emplace(key(value, box));
  if (isNew) {
    Value made = make(b, op, box);
    parts[key(value, box)] = made;
    return made;
  }
  return it->second;
}

Value Stencil::onBox(OpBuilder &b, Operation *op, ValueRange operands) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<int64_t> shape;
  if (auto local = dyn_cast<linalg::LinalgOp>(op))
    return clone(b, op, operands.back().getType(), operands)->getResult(0);
  for (Value operand : operands)
    if (auto from = dyn_cast<RankedTensorType>(operand.getType()))
      shape.assign(from.getShape().begin(), from.getShape().end());
  return clone(b, op, RankedTensorType::get(shape, type.getElementType()), operands)->getResult(0);
}

/// The op on a box of its result; of a linalg op, written `into` this if it is given.
Value Stencil::make(OpBuilder &b, Operation *op, const Box &box, Value into) {
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    if (std::optional<Box> place = placeOf(insert)) {
      std::optional<Box> both = intersection(box, *place);
      if (!both)
        return part(b, insert.getDest(), box);
      Value source = part(b, insert.getSource(), moved(*both, offsetsOf(*place), -1));
      if (*both == box)
        return source;
      Value dest = part(b, insert.getDest(), box);
      return putBox(b, op->getLoc(), source, dest, offsetsOf(moved(*both, offsetsOf(box), -1)));
    }
  if (auto extract = dyn_cast<tensor::ExtractSliceOp>(op))
    if (std::optional<Box> place = placeOf(extract))
      return part(b, extract.getSource(), moved(box, offsetsOf(*place), 1));
  auto local = dyn_cast<linalg::LinalgOp>(op);
  bool isLocalOp = local && isLocal(local);
  if (!isLocalOp && !isElementwise(op))
    return takeBox(b, op->getLoc(), op->getResult(0), offsetsOf(box), sizesOf(box));
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (into && i + 1 == op->getNumOperands())
      operands.push_back(into);
    else if (!isa<RankedTensorType>(operand.getType()))
      operands.push_back(operand);
    else if (!isLocalOp)
      operands.push_back(part(b, operand, box));
    else
      operands.push_back(part(b, operand, readBy(local, i, box).value_or(wholeOf(operand))));
  }
  return onBox(b, op, operands);
}

Value Stencil::rewrite() {
  Operation *op = root.getDefiningOp();
  OpBuilder b(op);
  Location loc = op->getLoc();
  auto type = cast<RankedTensorType>(root.getType());
  // The boxes of the result are written where they stand: each reads its own box of what the op
  // writes into.
  auto local = dyn_cast<linalg::LinalgOp>(op);
  Value init = local ? local.getDpsInits()[0] : Value();
  bool inPlace = init && !(init.getDefiningOp() && chain.contains(init.getDefiningOp()));
  Value result =
      inPlace ? init
              : tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType()).getResult();
  SmallVector<Box> boxes = {interior};
  boxes.append(slabs);
  for (const Box &box : boxes) {
    Value into = inPlace ? sliceBox(b, loc, result, offsetsOf(box), sizesOf(box)) : Value();
    result = putBox(b, loc, make(b, op, box, into), result, offsetsOf(box));
  }
  root.replaceAllUsesWith(result);
  for (size_t i = 0; i < chain.size(); ++i) // what only the whole needed
    for (Value operand : chain[i]->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && def->getBlock() == &block && isGlue(def) && !done.contains(operand))
        chain.insert(def);
  SmallVector<Operation *> old = chain.takeVector();
  llvm::sort(old, [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
  for (Operation *op : old)
    if (op->use_empty() && !exchanges.contains(op))
      op->erase();
  return result;
}

//===--- the pass ----------------------------------------------------------------------------===//

struct SplitHalos : ncclx::impl::SplitHalosBase<SplitHalos> {
  using SplitHalosBase::SplitHalosBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<overlap::CostModel> cost = machineFor(module, getArgument(), machineFile, margin);
    if (!cost)
      return signalPassFailure();
    for (func::FuncOp function : communicatingFunctions(module))
      for (Block *block : communicatingBlocks(function))
        split(function, *block, *cost);
  }

  /// Whether a local op makes what others than local ops use: a field.
  static bool makesField(Operation *op) {
    auto isLocalOp = [&](Operation *other) {
      auto local = dyn_cast<linalg::LinalgOp>(other);
      return other->getBlock() == op->getBlock() &&
             ((local && isLocal(local)) || isElementwise(other));
    };
    auto type = op->getNumResults() == 1 ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                                         : RankedTensorType();
    return type && type.hasStaticShape() && type.getNumElements() > 0 && isLocalOp(op) &&
           !llvm::all_of(op->getUsers(), isLocalOp);
  }

  void split(func::FuncOp function, Block &block, const overlap::CostModel &cost) {
    auto named = [&](StringRef name) {
      return remark::RemarkOpts::name(name).category(getArgument()).function(function.getSymName());
    };
    DenseSet<Value> done;
    SmallVector<Operation *> ops; // what goes stands in front of what is looked at
    for (Operation &op : block)
      ops.push_back(&op);
    for (Operation *op : ops) {
      if (!makesField(op))
        continue;
      Value root = op->getResult(0);
      Stencil stencil(root, done);
      std::string why, gain;
      bool cut = stencil.plan(why);
      if (cut) {
        gain = llvm::formatv("{0} of {1} do without {2} exchanges, {3} slabs wait for them",
                             toString(stencil.interior), toString(wholeOf(root)),
                             stencil.exchanges.size(), stencil.slabs.size());
        cut = pays(function, root, done, cost, gain, why);
      }
      if (cut)
        remark::passed(op->getLoc(), named("HaloSplit"))
            << remark::add("{0} is cut: {1}", describe(op), gain);
      else if (!why.empty())
        remark::missed(op->getLoc(), named("HaloWhole"))
            << remark::add("{0} stays whole", describe(op)) << remark::reason("{0}", why);
      // A face may be made of what came; whatever else has been looked at is there as it is.
      bool isFace = llvm::any_of(root.getUses(), [](OpOperand &use) {
        return isa<tensor::InsertSliceOp>(use.getOwner()) && use.getOperandNumber() == 0;
      });
      if (cut || !why.empty() || !isFace)
        done.insert(cut ? stencil.rewrite() : root);
    }
  }

  /// Decides on a copy of the function.
  bool pays(func::FuncOp function, Value root, const DenseSet<Value> &done,
            const overlap::CostModel &cost, std::string &gain, std::string &why) {
    OpBuilder b(function);
    IRMapping map;
    auto copy = cast<func::FuncOp>(b.clone(*function, map));
    DenseSet<Value> doneThere;
    for (Value value : done)
      doneThere.insert(map.lookup(value));
    Stencil stencil(map.lookup(root), doneThere);
    Block &block = *map.lookup(root).getDefiningOp()->getBlock();
    double alone = 0;
    std::string ignored;
    std::optional<Predicted> whole = predict(block, cost, why), parts;
    if (whole && stencil.plan(ignored)) {
      for (Operation *op : stencil.exchanges)
        if (auto collective = dyn_cast<CollectiveOpInterface>(op))
          alone += costOfCollective(collective, cost)->seconds;
      stencil.rewrite();
      parts = predict(block, cost, why);
    }
    copy.erase();
    if (!parts)
      return false;
    gain += llvm::formatv("; {0:F1} us so, {1:F1} us whole", parts->seconds * 1e6,
                          whole->seconds * 1e6);
    if (whole->seconds - parts->seconds >= margin * alone && whole->seconds > parts->seconds)
      return true;
    why = gain;
    return false;
  }
};

} // namespace
