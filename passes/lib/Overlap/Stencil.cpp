//===- Stencil.cpp - A result in an interior and slabs around it --------------------===//
#include "Stencil.h"
#include "Kernels.h"
#include "Parts.h"

#include "mlir/Dialect/Utils/StructuredOpsUtils.h"

using namespace mlir;
using namespace mlir::ncclx;

Stencil::Reach Stencil::walk(Value value, const Box &box) {
  constexpr unsigned kDeepest = 500; // ops one behind the other
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &block || done.contains(value))
    return {};
  auto [it, isNew] = walked.try_emplace(key(value, box));
  if (!isNew)
    return it->second;
  if (depth == kDeepest) {
    isTooDeep = true;
    return {};
  }
  ++depth;
  Reach found = reach(op, box);
  --depth;
  if (found.exchange)
    chain.insert(op);
  return walked[key(value, box)] = found;
}

Stencil::Reach Stencil::reach(Operation *op, const Box &box) {
  if (isa<CollectiveOpInterface, AwaitOp>(op)) {
    exchanges.insert(op);
    return {true, true};
  }
  if (auto get = dyn_cast<GetOp>(op))
    return reachWindow(get, box);
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

const std::optional<Stencil::Shown> &Stencil::shownBy(GetOp get) {
  auto [it, isNew] = gets.try_emplace(get);
  if (!isNew || get.getShift() || get.getPairs() || !get.getOffsets().empty())
    return it->second;
  Value window = get.getWindow();
  Shown shown;
  SmallVector<Operation *> theirs;
  for (Operation *op = get->getPrevNode(); op && op != window.getDefiningOp();
       op = op->getPrevNode()) {
    auto put = dyn_cast<PutOp>(op);
    if (!put || put.getWindow() != window) {
      if (op->getNumRegions() > 0 && llvm::is_contained(usedValues(op), window))
        return it->second;
      continue;
    }
    auto type = dyn_cast<RankedTensorType>(put.getSource().getType());
    if (!put.getOffsets().empty() || !type || !type.hasStaticShape())
      return it->second;
    Box place = boxOf(put.getStaticOffsets(), type.getShape());
    if (put.getShift() || put.getPairs()) {
      theirs.push_back(put);
      if (!shown.own)
        shown.others.push_back(place);
    } else if (shown.own) {
      break;
    } else {
      shown.own = put.getSource();
      shown.place = place;
    }
  }
  if (shown.own) {
    puts.insert(theirs.begin(), theirs.end());
    it->second = shown;
  }
  return it->second;
}

Stencil::Reach Stencil::reachWindow(GetOp get, const Box &box) {
  exchanges.insert(get);
  const std::optional<Shown> &shown = shownBy(get);
  if (!shown) {
    isUnknown = true;
    return {true, true};
  }
  Box inWindow = moved(box, get.getStaticOffsets(), 1);
  Box all = boxOf(SmallVector<int64_t>(box.size(), 0),
                  cast<WindowType>(get.getWindow().getType()).getValue().getShape());
  for (const Box &other : shown->others)
    halos.push_back({inWindow, other});
  for (size_t i = 0; i < all.size(); ++i)
    for (Extent end : {Extent{0, shown->place[i].low}, Extent{shown->place[i].high, all[i].high}})
      if (end.low < end.high) {
        halos.push_back({inWindow, all});
        halos.back().inserted[i] = end;
      }
  Reach found = walk(shown->own, moved(inWindow, offsetsOf(shown->place), -1));
  found.exchange = true;
  return found;
}

/// Cuts the interior down until it does not read the halo: at that end which leaves most.
bool Stencil::avoid(const Halo &halo) {
  Box read;
  for (const Extent &range : halo.read)
    read.push_back(range.dim < 0 ? range
                                 : Extent{range.low + interior[range.dim].low,
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
  if (isTooDeep)
    why = "too many ops stand one behind the other in front of it";
  else if (isUnknown)
    why = "the puts in front of it do not tell what the window holds";
  else if (halos.empty())
    return false;
  else if (found.whole)
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
    for (Extent end : {Extent{0, interior[i].low}, Extent{interior[i].high, whole[i].high}})
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
  bool isView = isa_and_nonnull<tensor::InsertSliceOp, tensor::ExtractSliceOp, GetOp>(op) &&
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
  if (auto get = dyn_cast<GetOp>(op))
    if (const std::optional<Shown> &shown = shownBy(get)) {
      Box inWindow = moved(box, get.getStaticOffsets(), 1);
      bool isOwn = intersection(inWindow, shown->place) == inWindow &&
                   llvm::none_of(shown->others, [&](const Box &other) {
                     return intersection(inWindow, other).has_value();
                   });
      if (isOwn)
        return part(b, shown->own, moved(inWindow, offsetsOf(shown->place), -1));
    }
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

/// Puts the ops between `from` and `to`, none of which has effects, in front of the wait for the
/// neighbours' puts, with the cheap ops that they need; or leaves them where they are.
void Stencil::hoist(Operation *from, Operation *to) {
  Operation *wait = nullptr, *last = *llvm::max_element(puts, [](Operation *a, Operation *b) {
    return a->isBeforeInBlock(b);
  });
  for (Operation *op = last; op != to && !wait; op = op->getNextNode())
    if (auto found = dyn_cast<WaitOp>(op))
      if (found.getWindow() == cast<PutOp>(last).getWindow())
        wait = op;
  if (!wait)
    return;
  SmallVector<Operation *> made, moving;
  for (Operation *op = from ? from->getNextNode() : &block.front(); op != to;
       op = op->getNextNode())
    made.push_back(op);
  llvm::SmallPtrSet<Operation *, 8> seen(made.begin(), made.end());
  SmallVector<Operation *> work(made);
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    moving.push_back(op);
    for (Value value : usedValues(op)) {
      Operation *def = value.getDefiningOp();
      if (!def || def->getBlock() != &block || def->isBeforeInBlock(wait) ||
          !seen.insert(def).second)
        continue;
      if (!isGlue(def))
        return;
      work.push_back(def);
    }
  }
  llvm::sort(moving, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : moving)
    op->moveBefore(wait);
  early = made;
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
    Operation *before = op->getPrevNode();
    Value into = inPlace ? sliceBox(b, loc, result, offsetsOf(box), sizesOf(box)) : Value();
    Value piece = make(b, op, box, into);
    if (&box == boxes.begin() && !puts.empty())
      hoist(before, op);
    result = putBox(b, loc, piece, result, offsetsOf(box));
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
