//===- Windows.cpp - Windows, peers and boxes -----------------------------===//
//
// The constraints are numbered in dialect/SPEC.md.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "ncclx/NCCLX/AssumeUniform.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::ncclx;

//===--- Peers ------------------------------------------------------------===//

PeerMap PeerMap::of(Operation *op) {
  return {op->getAttrOfType<IntegerAttr>("shift"), op->getAttrOfType<DenseI64ArrayAttr>("pairs")};
}

/// The other side of `member`: pairs hold (source, target), a shift goes from source to target.
static std::optional<int64_t> otherSide(const PeerMap &map, int64_t member, int64_t numMembers,
                                        bool toTarget) {
  if (map.shift) {
    int64_t step = map.shift.getInt() % numMembers;
    return (member + (toTarget ? step : -step) + numMembers) % numMembers;
  }
  ArrayRef<int64_t> values = map.pairs ? map.pairs.asArrayRef() : ArrayRef<int64_t>();
  for (size_t i = 0; i + 1 < values.size(); i += 2)
    if (values[i + !toTarget] == member)
      return values[i + toTarget];
  return std::nullopt;
}

std::optional<int64_t> PeerMap::getTarget(int64_t member, int64_t numMembers) const {
  return otherSide(*this, member, numMembers, /*toTarget=*/true);
}

std::optional<int64_t> PeerMap::getSource(int64_t member, int64_t numMembers) const {
  return otherSide(*this, member, numMembers, /*toTarget=*/false);
}

PeerMap PeerMap::getInverse() const {
  if (shift) {
    // The smallest number has no negative: a group has far fewer members.
    int64_t back = shift.getInt() == INT64_MIN ? INT64_MIN : -shift.getInt();
    return {IntegerAttr::get(shift.getType(), back), {}};
  }
  SmallVector<int64_t> swapped(pairs.asArrayRef());
  for (size_t i = 0; i + 1 < swapped.size(); i += 2)
    std::swap(swapped[i], swapped[i + 1]);
  return {{}, DenseI64ArrayAttr::get(pairs.getContext(), swapped)};
}

LogicalResult ncclx::verifyPeers(Operation *op, bool mayBeOwn) {
  PeerMap map = PeerMap::of(op);
  if ((map.shift && map.pairs) || (map.isOwn() && !mayBeOwn))
    return op->emitOpError("needs either a shift or pairs, but has ")
           << (map.shift ? "both" : "neither");
  if (!map.pairs)
    return success();
  ArrayRef<int64_t> values = map.pairs;
  if (values.size() % 2)
    return op->emitOpError("needs a target for each source, but has ")
           << values.size() << " numbers in pairs";
  llvm::DenseSet<int64_t> sources, targets;
  for (size_t i = 0; i < values.size(); i += 2) {
    if (!sources.insert(values[i]).second)
      return op->emitOpError("names member ") << values[i] << " twice as a source";
    if (!targets.insert(values[i + 1]).second)
      return op->emitOpError("names member ") << values[i + 1] << " twice as a target";
  }
  return success();
}

LogicalResult ncclx::verifyMembers(Operation *op, int64_t numMembers) {
  PeerMap map = PeerMap::of(op);
  if (!map.pairs)
    return success();
  for (int64_t member : map.pairs.asArrayRef())
    if (member < 0 || member >= numMembers)
      return op->emitOpError("names member ")
             << member << ", but the group has " << numMembers << " members";
  return success();
}

//===--- Groups -----------------------------------------------------------===//

std::optional<NamedGroups> ncclx::getNamedGroups(Operation *op) {
  auto of = [&](auto named) {
    return NamedGroups{SymbolTable::lookupNearestSymbolFrom<GridOp>(named, named.getGridAttr()),
                       named.getAxes(), named.getGroupsAttr()};
  };
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    return of(collective);
  if (auto barrier = dyn_cast<BarrierOp>(op))
    return of(barrier);
  if (auto window = dyn_cast<WindowOp>(op))
    return of(window);
  return std::nullopt;
}

bool ncclx::isCommunication(Operation *op) {
  return isa<CollectiveOpInterface, BarrierOp, WindowOp, PutOp, GetOp, SignalOp, WaitOp,
             AssumeUniformOp>(op);
}

//===--- window -----------------------------------------------------------===//

LogicalResult WindowType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                 RankedTensorType value) {
  if (!isSupportedElementType(value.getElementType()))
    return emitError() << "a window holds floats, i8 to i64 or ui8 to ui64, but found "
                       << value.getElementType();
  if (!value.hasStaticShape())
    return emitError() << "a window needs a static shape, but found " << value;
  if (!fitsBytes(value))
    return emitError() << "a window needs less than 2^63 bytes, but found " << value;
  return success();
}

static RankedTensorType held(Value window) { return cast<WindowType>(window.getType()).getValue(); }

LogicalResult WindowOp::verify() {
  if (failed(verifyAxes(*this, getAxes(), getGroupsAttr())))
    return failure();
  if (!getInit())
    return success();
  auto type = cast<ShapedType>(getInit().getType());
  RankedTensorType value = held(getWindow());
  if (type.getShape() != value.getShape() || type.getElementType() != value.getElementType())
    return emitOpError("holds ") << value << ", but its initial content is " << type;
  return success();
}

LogicalResult WindowOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<GridOp> grid = verifyGrid(*this, getGridAttr(), getAxes(), getGroupsAttr(), tables);
  if (failed(grid))
    return failure();
  // peer C3: of the ops on this window, which name its members.
  for (const auto &group : grid->getGroups(getAxes(), getGroupsAttr()))
    for (Operation *user : getWindow().getUsers())
      if (isCommunication(user) && failed(verifyMembers(user, group.size())))
        return failure();
  return success();
}

//===--- put, get, signal, wait ---------------------------------------------===//

/// box C1 and C2.
static LogicalResult verifyBox(Operation *op, ShapedType box, Value window,
                               ArrayRef<int64_t> offsets) {
  RankedTensorType whole = held(window);
  if (box.getElementType() != whole.getElementType())
    return op->emitOpError("moves elements of type ")
           << box.getElementType() << ", but the window holds " << whole;
  if (!box.hasStaticShape())
    return op->emitOpError("needs a box of static shape, but found ") << box;
  if (box.getRank() != whole.getRank() || int64_t(offsets.size()) != whole.getRank())
    return op->emitOpError("needs an offset and a size for each of ")
           << whole.getRank() << " dimensions, but has " << offsets.size() << " offsets and "
           << box;
  for (auto [d, offset] : llvm::enumerate(offsets)) {
    int64_t from = ShapedType::isDynamic(offset) ? 0 : offset;
    int64_t room = whole.getDimSize(d) - box.getDimSize(d);
    if (from < 0 || from > room)
      return op->emitOpError("has a box of ")
             << box.getDimSize(d) << " at " << from << " in dimension " << d
             << ", but the window has " << whole.getDimSize(d);
  }
  return success();
}

LogicalResult PutOp::verify() {
  if (failed(verifyPeers(*this, /*mayBeOwn=*/true)))
    return failure();
  return verifyBox(*this, cast<ShapedType>(getSource().getType()), getWindow(), getStaticOffsets());
}

LogicalResult GetOp::verify() {
  if (failed(verifyPeers(*this, /*mayBeOwn=*/true)))
    return failure();
  if (!getResult() && !getDest())
    return emitOpError("needs a result (on tensors) or a destination (on memrefs)");
  if (getDest() && isa<BaseMemRefType>(getDest().getType()) == bool(getResult()))
    return emitOpError("has ") << (getResult() ? "a result, but a memref"
                                               : "no result, but a tensor")
                               << " as destination";
  if (getResult() && getDest() && getResult().getType() != getDest().getType())
    return emitOpError("has a result of type ")
           << getResult().getType() << ", but a destination of type " << getDest().getType();
  if (!getResult() && !PeerMap::of(*this).isOwn())
    return emitOpError("on memrefs reads the own window: run ncclx-answer-gets before");
  return verifyBox(*this, getBoxType(), getWindow(), getStaticOffsets());
}

LogicalResult SignalOp::verify() { return verifyPeers(*this, /*mayBeOwn=*/false); }

LogicalResult WaitOp::verify() {
  if (static_cast<int64_t>(getCount()) < 1)
    return emitOpError("waits for ")
           << static_cast<int64_t>(getCount()) << " signals, expected at least 1";
  return verifyPeers(*this, /*mayBeOwn=*/false);
}

LogicalResult ncclx::answerGets(Operation *root) {
  SmallVector<GetOp> gets;
  root->walk([&](GetOp op) {
    if (!PeerMap::of(op).isOwn())
      gets.push_back(op);
  });
  for (GetOp op : gets) {
    auto window = op.getWindow().getDefiningOp<WindowOp>();
    if (!window)
      return op.emitOpError("reads a window that the function has not made itself");
    OpBuilder builder(op);
    Type type = op.getResult().getType();
    auto own = GetOp::create(builder, op.getLoc(), type, op.getWindow(), op.getOffsets(),
                             op.getStaticOffsets(), IntegerAttr(), DenseI64ArrayAttr(), Value());
    // From whose peer a member is.
    PeerMap back = PeerMap::of(op).getInverse();
    auto answer = PermuteOp::create(builder, op.getLoc(), type, Type(), own.getResult(), back.shift,
                                    back.pairs, window.getGridAttr(), window.getAxes(),
                                    window.getGroupsAttr(), op.getDest(), AlgorithmAttr());
    op.getResult().replaceAllUsesWith(answer.getResult());
    op.erase();
  }
  return success();
}
