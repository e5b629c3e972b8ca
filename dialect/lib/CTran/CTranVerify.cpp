//===- CTranVerify.cpp - The numbered constraints of single ops ---------------------===//
//
// The numbers are those of dialect/SPEC.md, "ctran: constraints". What takes the whole program is
// in ProgramVerify.cpp.
//
//===----------------------------------------------------------------------===//
#include "ncclx/CTran/Access.h"

#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ctran;

/// Every word of a schedule stands in a program.
static ProgramOp needProgram(Operation *op) {
  auto program = programOf(op);
  if (!program)
    op->emitOpError("must stand in a ctran.program");
  return program;
}

static InFlightDiagnostic unresolved(Operation *op, StringRef what) {
  return op->emitOpError() << what << " must come from ctran ops of this program";
}

//===--- structure -------------------------------------------------------------------===//

LogicalResult CoordOp::verify() {
  auto program = needProgram(*this);
  if (!program)
    return failure();
  if (!program.getAxisIndex(getAxis())) { // coord C1
    auto diag = emitOpError("names axis \"") << getAxis() << "\", which the grid does not have";
    diag.attachNote(program.getLoc()) << "the grid is declared here";
    return diag;
  }
  if (getType().getAxis() != getAxis()) // coord C2
    return emitOpError("on axis \"") << getAxis() << "\" has type " << getType();
  return success();
}

LogicalResult TableOp::verify() {
  auto program = needProgram(*this);
  if (!program)
    return failure();
  auto axis = program.getAxisIndex(getCoord().getType().getAxis());
  if (!axis)
    return unresolved(*this, "the coordinate");
  if (int64_t size = program.getAxisSize(*axis); size != (int64_t)getValues().size()) // table C1
    return emitOpError("needs one value for each of the ")
           << size << " coordinates on axis \"" << getCoord().getType().getAxis() << "\", found "
           << getValues().size();
  return success();
}

//===--- memory ----------------------------------------------------------------------===//

LogicalResult WindowOp::verify() {
  auto type = dyn_cast<MemRefType>(getType());
  if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity() ||
      type.getMemorySpace()) // window C1
    return emitOpError("needs a static memref with identity layout and no memory space, found ")
           << getType();
  if (!type.getElementType().isIntOrFloat() || type.getElementTypeBitWidth() % 8 != 0) // window C2
    return emitOpError("needs elements of whole bytes, found ") << type.getElementType();
  int64_t bytes = elementBytes(*this);
  for (int64_t size : type.getShape()) // window C3
    if (llvm::MulOverflow(bytes, size, bytes))
      return emitOpError("needs a size below 2^63 bytes, found ") << type;
  if ((int64_t)getGenerations() < 1) // window C4
    return emitOpError("needs at least 1 generation, found ") << (int64_t)getGenerations();
  bool indexed = getRole() != WindowRole::Scratch;
  if (indexed != getIndex().has_value()) // window C5
    return emitOpError() << stringifyWindowRole(getRole())
                         << (indexed ? " needs the caller's position, found none"
                                     : " has no position of the caller's, found one");
  if (indexed && *getIndex() > INT32_MAX) // window C5
    return emitOpError("needs a position below 2^31, found ") << int64_t(*getIndex());
  if (indexed && getGenerations() != 1) // window C6
    return emitOpError("is the caller's memory and has 1 generation, found ")
           << (int64_t)getGenerations();
  return success();
}

/// Bound dimensions are as long as their axes.
static LogicalResult verifyDims(Operation *op, ProgramOp program, ArrayAttr dims, int64_t limit) {
  int64_t pieces = 1;
  for (auto [i, dim] : llvm::enumerate(dims.getAsRange<DimAttr>())) {
    if (llvm::MulOverflow(pieces, dim.getSize(), pieces) || pieces > limit) // dims C3
      return op->emitOpError("needs at most ") << limit << " places";
    if (dim.getAxis().empty())
      continue;
    auto axis = program.getAxisIndex(dim.getAxis());
    if (!axis) { // dims C1
      auto diag = op->emitOpError("binds dimension ")
                  << i << " to axis \"" << dim.getAxis() << "\", which the grid does not have";
      diag.attachNote(program.getLoc()) << "the grid is declared here";
      return diag;
    }
    if (int64_t size = program.getAxisSize(*axis); size != dim.getSize()) { // dims C2
      auto diag = op->emitOpError("binds dimension ")
                  << i << " of size " << dim.getSize() << " to axis \"" << dim.getAxis()
                  << "\" of size " << size;
      diag.attachNote(program.getLoc()) << "the grid is declared here";
      return diag;
    }
  }
  return success();
}

LogicalResult ReindexOp::verify() {
  auto program = needProgram(*this);
  if (!program || failed(verifyDims(*this, program, getDims(), INT64_MAX)))
    return failure();
  auto ref = resolveWindow(getResult());
  if (failed(ref) || ref->reindex != *this) // reindex C1
    return emitOpError("needs a window that is not yet reindexed");
  auto type = dyn_cast<MemRefType>(ref->window.getType());
  if (!type || !type.hasStaticShape() || elementBytes(ref->window) < 1)
    return failure(); // the window's own verifier speaks
  if (auto along = getAlong(); along && *along >= uint64_t(type.getRank())) // reindex C2
    return emitOpError("cuts along dimension ")
           << int64_t(*along) << " of a window of rank " << type.getRank();
  if (getResident() != getExtent().has_value()) // reindex C3
    return emitOpError("needs an extent exactly when it is resident, found ")
           << (getExtent() ? "an extent" : "none");
  auto space = spaceOf(*ref);
  if (failed(space))
    return failure();
  if (!getResident())
    return success();
  if (space->extent < 0) // reindex C4
    return emitOpError("needs an extent of at least 0, found ") << space->extent;
  if (space->dims.empty() ||
      !llvm::all_of(space->dims, [](const machine::Dim &dim) { return dim.axis.has_value(); }))
    return emitOpError("is resident, so its dimensions must be bound to axes"); // reindex C5
  int64_t stored = getAlong() ? type.getDimSize(*getAlong()) : type.getNumElements();
  int64_t most = space->residentWidth();
  // Rows follow one another, so along a dimension the piece's length is the window's.
  if (getAlong() ? stored != most : stored < most) // reindex C6
    return emitOpError("is resident and needs room for the largest piece, ")
           << most << ", found " << stored;
  return success();
}

LogicalResult SlotsOp::verify() {
  auto program = needProgram(*this);
  if (!program || failed(verifyDims(*this, program, getDims(), INT32_MAX)))
    return failure();
  if ((int64_t)getCredits() < 0) // slots C5
    return emitOpError("needs credits of at least 0, found ") << (int64_t)getCredits();
  if ((int64_t)getPerRun() < 0) // slots C1
    return emitOpError("needs per_run of at least 0, found ") << (int64_t)getPerRun();
  if ((int64_t)getWriters() < 1) // slots C2
    return emitOpError("needs at least 1 writer, found ") << (int64_t)getWriters();
  if ((int64_t)getGenerations() < 1) // slots C3
    return emitOpError("needs at least 1 generation, found ") << (int64_t)getGenerations();
  if (getRealisation() == Realisation::Inband && getScope() == SlotScope::Block) // slots C4
    return emitOpError("cannot be inband with scope block: the flag travels with the data");
  return success();
}

LogicalResult PeerViewOp::verify() {
  auto program = needProgram(*this);
  if (!program)
    return failure();
  if (bool(getRank()) && !getPoint().empty()) // peer_view C1
    return emitOpError("needs a point or a rank, found both");
  if (getRank()) {
    auto rank = constantOf(getRank());
    if (rank && (*rank < 0 || *rank >= program.getNumRanks())) // peer_view C2
      return emitOpError("needs a rank below ") << program.getNumRanks() << ", found " << *rank;
  } else {
    if (getPoint().size() != program.getGrid().size()) // peer_view C3
      return emitOpError("needs one coordinate for each of the ")
             << program.getGrid().size() << " axes, found " << getPoint().size();
    for (auto [i, coord] : llvm::enumerate(getPoint())) {
      auto ref = resolveCoord(coord);
      if (failed(ref))
        return unresolved(*this, "a coordinate");
      auto axis = cast<GridAxisAttr>(program.getGrid()[i]).getName();
      if (cast<CoordType>(coord.getType()).getAxis() != axis) // peer_view C4
        return emitOpError("needs a coordinate on axis \"")
               << axis << "\" at position " << i << ", found " << coord.getType();
    }
  }
  if (isa<SlotsType>(getMemory().getType())) {
    auto slots = getMemory().getDefiningOp<SlotsOp>();
    if (!slots) // peer_view C5
      return emitOpError("needs slots that are not yet a peer's view");
    if (slots.getScope() != SlotScope::System ||
        slots.getRealisation() == Realisation::Event) { // peer_view C6
      auto diag = emitOpError("sees slots \"") << slots.getSym() << "\" that no peer can reach";
      diag.attachNote(slots.getLoc())
          << "scope " << stringifySlotScope(slots.getScope()) << ", realisation "
          << stringifyRealisation(slots.getRealisation());
      return diag;
    }
    return success();
  }
  auto ref = resolveWindow(getResult());
  if (failed(ref) || ref->view != *this) // peer_view C5
    return emitOpError("needs a window that is not yet a peer's view");
  if (ref->window.getPeers() == PeerAccess::None) { // peer_view C7
    auto diag = emitOpError("sees window \"") << ref->window.getSym() << "\" that no peer may view";
    diag.attachNote(ref->window.getLoc()) << "declared with peers none";
    return diag;
  }
  return success();
}

LogicalResult MembersOp::verify() {
  auto program = needProgram(*this);
  if (!program)
    return failure();
  llvm::StringSet<> seen;
  int64_t members = 1;
  for (auto axis : getAxes().getAsRange<StringAttr>()) {
    auto found = program.getAxisIndex(axis);
    if (!found || !seen.insert(axis).second) // members C1
      return emitOpError("names axis ")
             << axis << (found ? " twice" : ", which the grid does not have");
    if (llvm::MulOverflow(members, program.getAxisSize(*found), members) ||
        members > mostMembers) // members C2
      return emitOpError("needs at most ") << mostMembers << " members";
  }
  if (getAxes().empty()) // members C1
    return emitOpError("needs an axis along which its members are, found none");
  auto ref = resolveWindow(getResult());
  if (failed(ref) || ref->members != *this) // members C3
    return emitOpError("needs a window that is not yet a view of other memory");
  if (ref->window.getPeers() != PeerAccess::LoadStore) { // members C4
    auto diag = emitOpError("sees window \"")
                << ref->window.getSym() << "\" that members do not reach by load and store";
    diag.attachNote(ref->window.getLoc())
        << "declared with peers " << stringifyPeerAccess(ref->window.getPeers());
    return diag;
  }
  return success();
}

/// An index stands for a place in `dim`: a number below its size, or a coordinate on its axis.
static LogicalResult verifyIndex(Operation *op, Value index, unsigned position,
                                 const machine::Dim &dim, ProgramOp program) {
  if (auto type = dyn_cast<CoordType>(index.getType())) {
    auto ref = resolveCoord(index);
    if (failed(ref))
      return unresolved(op, "a coordinate");
    if (!dim.axis) // index C1
      return op->emitOpError("indexes dimension ")
             << position << ", which is free, with a coordinate on axis \"" << type.getAxis()
             << '"';
    if (*dim.axis != ref->axis) // index C2
      return op->emitOpError("indexes dimension ")
             << position << ", which is bound to axis \""
             << cast<GridAxisAttr>(program.getGrid()[*dim.axis]).getName()
             << "\", with a coordinate on axis \"" << type.getAxis() << '"';
    return success();
  }
  auto number = constantOf(index);
  if (number && (*number < 0 || *number >= dim.size)) // index C3
    return op->emitOpError("indexes dimension ")
           << position << " of size " << dim.size << " with " << *number;
  return success();
}

static LogicalResult verifyPath(Operation *op, OperandRange indices, Value first, Value count,
                                ArrayRef<machine::Dim> dims, ProgramOp program) {
  if (indices.size() > dims.size()) // index C4
    return op->emitOpError("needs at most ") << dims.size() << " indices, found " << indices.size();
  for (auto [i, index] : llvm::enumerate(indices))
    if (failed(verifyIndex(op, index, i, dims[i], program)))
      return failure();
  if (bool(first) != bool(count)) // index C5
    return op->emitOpError("needs both ends of an interval or none, found one");
  if (!first)
    return success();
  if (indices.size() == dims.size()) // index C6
    return op->emitOpError("takes an interval of dimension ")
           << indices.size() << ", but has " << dims.size() << " dimensions";
  const machine::Dim &dim = dims[indices.size()];
  auto begin = constantOf(first), number = constantOf(count);
  if (number && (*number < 0 || *number > dim.size)) // index C7
    return op->emitOpError("takes ")
           << *number << " places of dimension " << indices.size() << ", which has " << dim.size;
  if (isa<CoordType>(first.getType())) {
    if (failed(verifyIndex(op, first, indices.size(), dim, program)))
      return failure();
    if (number != 1 && number != dim.size) // index C8
      return op->emitOpError(
                 "takes an interval from a coordinate on, which must be 1 place or all ")
             << dim.size << " of the axis";
    return success();
  }
  // An empty interval may begin at the end.
  bool inside = !begin || (*begin >= 0 && *begin <= dim.size - number.value_or(0));
  if (!inside) // index C7
    return op->emitOpError("takes ")
           << number.value_or(0) << " places of dimension " << indices.size() << " from " << *begin
           << " on, but there are " << dim.size;
  return success();
}

LogicalResult RangeOp::verify() {
  auto program = needProgram(*this);
  if (!program)
    return failure();
  auto box = resolveRange(getResult());
  if (failed(box))
    return unresolved(*this, "the window");
  if (failed(verifyPath(*this, getIndices(), getFirst(), getCount(), box->space.dims, program)))
    return failure();
  if (box->members && box->space.resident) // range C5
    return emitOpError("takes a box of a resident space in the memory of all members, of whom each "
                       "stores another piece");
  if (box->space.resident) {
    // Only the piece of the rank whose memory it is has storage.
    bool own = getIndices().size() == box->space.dims.size();
    for (auto [index, dim] : llvm::zip(getIndices(), box->space.dims)) {
      unsigned axis = *dim.axis;
      if (!isa<CoordType>(index.getType()))
        own = false;
      else if (!box->view)
        own &= resolveCoord(index)->isOwn();
      else
        own &= !box->view.getRank() && axis < box->view.getPoint().size() &&
               sameValue(index, box->view.getPoint()[axis]);
    }
    if (!getIndices().empty() && !own) // range C1
      return emitOpError("takes a piece of a resident space that its rank does not store: the "
                         "indices must be the coordinates of the rank whose memory it is");
    if (getIndices().empty() && getFirst()) // range C1
      return emitOpError("takes an interval of pieces of a resident space, which stores one");
  }
  if (Value size = getSize()) {
    auto counted = size.getDefiningOp<CountOp>();
    if (!counted) // range C2
      return emitOpError("needs a size that comes from ctran.count");
    auto bounds = boundsOf(*box);
    // What the box counts by: elements, or the rows of a window that is cut along a dimension.
    int64_t unit = box->space.rows * box->space.unitBytes, max = counted.getMax();
    int64_t capacity = !bounds ? 0 : unit ? bounds->least / unit : max;
    if (capacity < max) { // range C3
      bool flat = box->space.unitBytes == elementBytes(box->window);
      auto diag = emitOpError("needs a box of at least ")
                  << max << (flat ? " elements" : " rows") << ", found " << capacity;
      diag.attachNote(counted.getLoc()) << "the size is bounded here";
      return diag;
    }
  }
  return success();
}

LogicalResult SlotOp::verify() {
  auto program = needProgram(*this);
  if (!program)
    return failure();
  auto ref = resolveSlot(getResult());
  if (failed(ref))
    return unresolved(*this, "the slots");
  return verifyPath(*this, getIndices(), getFirst(), getCount(), ref->dims, program);
}

//===--- execution -------------------------------------------------------------------===//

/// What every lane op has.
static LogicalResult verifyLane(ScheduleOpInterface op) {
  if (!needProgram(op))
    return failure();
  if (auto index = constantOf(op.getLaneIndexValue()); index && *index < 0) // lane C1
    return op->emitOpError("needs a lane index of at least 0, found ") << *index;
  return success();
}

/// A slot that is raised is one slot, not several.
static LogicalResult verifyRaised(Operation *op, const ctran::SlotRef &ref) {
  auto slot = ctran::SlotRef(ref).slot;
  if (slot.getFirst() || slot.getIndices().size() != ref.dims.size()) // raise C1
    return op->emitOpError("raises one slot, found ")
           << (slot.getFirst() ? "an interval" : "all slots below a prefix");
  return success();
}

/// The lane's engine must be able to reach the peer's memory (S7, S9).
static LogicalResult verifyReach(ScheduleOpInterface op, BoxRef &box) {
  if (box.isOwn() || box.window.getPeers() == PeerAccess::LoadStore ||
      (op.getLaneKind() == LaneKind::NIC && box.window.getPeers() == PeerAccess::Put))
    return success();
  auto diag = op->emitOpError("on ") // reach C1
              << stringifyLaneKind(op.getLaneKind()) << " needs peers "
              << (op.getLaneKind() == LaneKind::NIC ? "put" : "load_store") << " of window \""
              << box.window.getSym() << "\", found " << stringifyPeerAccess(box.window.getPeers());
  diag.attachNote(box.window.getLoc()) << "the window is declared here";
  return diag;
}

/// Boxes of one op hold the same type of element.
static LogicalResult verifyElements(Operation *op, ArrayRef<BoxRef> boxes) {
  auto elementOf = [](BoxRef box) {
    return cast<MemRefType>(box.window.getType()).getElementType();
  };
  for (const BoxRef &box : boxes)
    if (elementOf(box) != elementOf(boxes[0])) // boxes C1
      return op->emitOpError("needs boxes of one element type, found ")
             << elementOf(boxes[0]) << " and " << elementOf(box);
  return success();
}

static LogicalResult verifySize(Operation *op, BoxRef &from, const ByteBounds &source, BoxRef &to) {
  auto dest = boundsOf(to);
  // Uneven pieces are compared by the prover, box by box; here only what is wrong for all of them.
  if (!dest || (source.least <= dest->most && source.most >= dest->least))
    return success();
  // A slot of scratch memory holds the largest piece that may come; a smaller one uses its start.
  if ((to.window.getRole() == WindowRole::Scratch && dest->least >= source.most) ||
      (from.window.getRole() == WindowRole::Scratch && source.least >= dest->most))
    return success();
  int64_t unit = elementBytes(from.window);
  auto show = [&](InFlightDiagnostic &diag, const ByteBounds &bounds) {
    diag << bounds.least / unit;
    if (bounds.most != bounds.least)
      diag << " to " << bounds.most / unit;
  };
  auto diag = op->emitOpError("needs boxes of equal size, found "); // boxes C2
  show(diag, source);
  diag << " elements of \"" << from.window.getSym() << "\" and ";
  show(diag, *dest);
  diag << " of \"" << to.window.getSym() << '"';
  return diag;
}

/// A notify is raised where the copy lands (S18).
static LogicalResult verifyNotify(ScheduleOpInterface op, Value notify, ArrayRef<BoxRef> dests) {
  auto ref = resolveSlot(notify);
  if (failed(ref))
    return unresolved(op, "the slot");
  if (failed(verifyRaised(op, *ref)))
    return failure();
  if (llvm::none_of(dests, [](const BoxRef &box) { return bool(box.view); })) // notify C1
    return op->emitOpError("notifies, but has no destination at a peer");
  bool lands = ref->view && llvm::any_of(dests, [&](const BoxRef &box) {
                 return box.view && samePoint(box.view, ref->view);
               });
  if (!lands) // notify C2
    return op->emitOpError("notifies a slot at ")
           << (ref->view ? "a peer" : "its own rank") << " where no destination lands";
  if (ref->slots.getRealisation() == Realisation::Inband &&
      op.getLaneKind() != LaneKind::SM) // notify C3
    return op->emitOpError("notifies inband slots, which needs lane sm, found ")
           << stringifyLaneKind(op.getLaneKind());
  return success();
}

static FailureOr<SmallVector<BoxRef>> resolveAll(Operation *op, ValueRange ranges) {
  SmallVector<BoxRef> boxes;
  for (Value range : ranges) {
    auto box = resolveRange(range);
    if (failed(box))
      return unresolved(op, "a box"), failure();
    boxes.push_back(std::move(*box));
  }
  return boxes;
}

/// The boxes of all members are in the memory of each at multiples of so many bytes.
static int64_t alignmentOf(BoxRef &box) {
  unsigned depth = box.range.getIndices().size() + bool(box.range.getFirst());
  uint64_t bytes = 0;
  for (const machine::Dim &dim : ArrayRef(box.space.dims).take_front(depth))
    bytes = std::gcd(bytes, uint64_t(dim.granule) * uint64_t(box.space.unitBytes));
  if (depth && box.space.rows > 1)
    bytes = std::gcd(bytes, uint64_t(box.space.extent) * uint64_t(box.space.unitBytes));
  return int64_t(bytes); // 0: at the start of the window
}

/// What a switch does: `from` into `to`, some of them in the memory of all members.
static LogicalResult verifyNetwork(ScheduleOpInterface op, MutableArrayRef<BoxRef> from,
                                   MutableArrayRef<BoxRef> to) {
  auto all = llvm::concat<BoxRef>(from, to);
  if (llvm::none_of(all, [](BoxRef &box) { return bool(box.members); }))
    return success();
  auto reduce = dyn_cast<ReduceOp>(op.getOperation());
  if (!reduce && from[0].members) // network N1
    return op->emitOpError("copies from the memory of all members; only a reduction reads it");
  if (reduce && !from[0].members) // network N1
    return op->emitOpError("reduces own memory into that of all members; the sum of own boxes is "
                           "copied there");
  if (from.size() != 1 || to.size() != 1) // network N2
    return op->emitOpError("through a switch has one source and one destination, found ")
           << from.size() << " and " << to.size();
  for (BoxRef &box : all) {
    if (box.view || box.range.getFirst() || box.range.getSize()) // network N3
      return op->emitOpError(
          "through a switch takes boxes of own memory or of all members', and no "
          "interval or size known at run time");
    if (box.members && alignmentOf(box) % networkAlignment) // network N7
      return op->emitOpError("reaches boxes of \"")
             << box.window.getSym() << "\" at multiples of " << alignmentOf(box)
             << " bytes; through a switch they begin at multiples of " << networkAlignment;
  }
  if (from[0].members && to[0].members &&
      from[0].members.getAxes() != to[0].members.getAxes()) // network N4
    return op->emitOpError("reduces over members along ")
           << from[0].members.getAxes() << " into those along " << to[0].members.getAxes();
  bool bySM = op.getLaneKind() == LaneKind::SM;
  if (!bySM && (reduce || op.getLaneKind() != LaneKind::CE)) // network N5
    return op->emitOpError("through a switch stands on lane sm")
           << (reduce ? "" : " or ce") << ", found " << stringifyLaneKind(op.getLaneKind());
  if (!reduce)
    return success();
  Type element = cast<MemRefType>(from[0].window.getType()).getElementType();
  if (auto why = whyNotInNetwork(reduce.getKind(), element, reduce.getAccumulate())) // network N6
    return op->emitOpError("through a switch: ") << *why;
  if (reduce.getScale() || reduce.getDivide()) // network N6
    return op->emitOpError("through a switch neither scales nor divides");
  return success();
}

LogicalResult CopyOp::verify() {
  ScheduleOpInterface lane = *this;
  if (failed(verifyLane(lane)))
    return failure();
  if (getDests().empty()) // copy C1
    return emitOpError("needs at least one destination");
  SmallVector<Value> ranges{getSource()};
  llvm::append_range(ranges, getDests());
  auto boxes = resolveAll(*this, ranges);
  if (failed(boxes) || failed(verifyElements(*this, *boxes)))
    return failure();
  auto dests = MutableArrayRef(*boxes).drop_front();
  for (BoxRef &box : *boxes)
    if (failed(verifyReach(lane, box)))
      return failure();
  if (failed(verifyNetwork(lane, MutableArrayRef(*boxes).take_front(1), dests)))
    return failure();
  if ((*boxes)[0].view &&
      llvm::any_of(dests, [](BoxRef &box) { return bool(box.view); })) // copy C2
    return emitOpError("moves bytes from one peer to another: one end must be the own memory");
  for (BoxRef &box : dests)
    if (box.range.getSize() != (*boxes)[0].range.getSize()) // copy C3
      return emitOpError("needs the same run-time size at both ends");
  if (auto source = boundsOf((*boxes)[0]))
    for (BoxRef &box : dests)
      if (failed(verifySize(*this, (*boxes)[0], *source, box)))
        return failure();
  return getNotify() ? verifyNotify(lane, getNotify(), dests) : success();
}

/// range C4: only a copy moves a part of a box.
static LogicalResult verifyWholeBoxes(Operation *op, ValueRange ranges) {
  for (Value range : ranges)
    if (auto named = range.getDefiningOp<RangeOp>(); named && named.getSize())
      return op->emitOpError("takes a box of a size known at run time, which only ctran.copy does");
  return success();
}

LogicalResult ReduceOp::verify() {
  ScheduleOpInterface lane = *this;
  if (failed(verifyLane(lane)) || failed(verifyWholeBoxes(*this, getSources())) ||
      failed(verifyWholeBoxes(*this, getDests())))
    return failure();
  if (getSources().empty() || getDests().empty()) // reduce C1
    return emitOpError("needs at least one source and one destination");
  SmallVector<Value> ranges(getSources());
  llvm::append_range(ranges, getDests());
  auto boxes = resolveAll(*this, ranges);
  if (failed(boxes) || failed(verifyElements(*this, *boxes)))
    return failure();
  Type element = cast<MemRefType>((*boxes)[0].window.getType()).getElementType();
  Type accumulate = getAccumulate();
  if (!accumulate.isIntOrFloat() || isa<FloatType>(accumulate) != isa<FloatType>(element) ||
      accumulate.isUnsignedInteger() != element.isUnsignedInteger() ||
      accumulate.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth()) // reduce C2
    return emitOpError("of ") << element << " needs an accumulation type of its kind and at least "
                              << "its width, found " << accumulate;
  if (getScale() && (getKind() != ReduceKind::Sum || !isa<FloatType>(element))) // reduce C4
    return emitOpError("scales the operands of a sum of floats only, found ")
           << stringifyReduceKind(getKind()) << " of " << element;
  if (getDivide() &&
      (getKind() != ReduceKind::Sum || static_cast<int64_t>(*getDivide()) < 1)) // reduce C5
    return emitOpError("divides a sum by at least 1, found ")
           << stringifyReduceKind(getKind()) << " divided by "
           << static_cast<int64_t>(*getDivide());
  auto dests = MutableArrayRef(*boxes).drop_front(getSources().size());
  for (BoxRef &box : *boxes)
    if (failed(verifyReach(lane, box)))
      return failure();
  if (failed(verifyNetwork(lane, MutableArrayRef(*boxes).take_front(getSources().size()), dests)))
    return failure();
  for (BoxRef &box : dests)
    if (box.range.getFirst()) // reduce C3
      return emitOpError("needs a box as a destination, found an interval");
  for (BoxRef &box : MutableArrayRef(*boxes).take_front(getSources().size())) {
    // An interval stands for the smallest boxes in it, one by one.
    auto bounds = box.range.getFirst() ? std::optional(boundsAt(box.space, box.space.dims.size()))
                                       : boundsOf(box);
    if (!bounds)
      continue;
    for (BoxRef &dest : dests)
      if (failed(verifySize(*this, box, *bounds, dest)))
        return failure();
  }
  return getNotify() ? verifyNotify(lane, getNotify(), dests) : success();
}

LogicalResult ComputeOp::verify() {
  if (failed(verifyLane(*this)) || failed(verifyWholeBoxes(*this, getReads())) ||
      failed(verifyWholeBoxes(*this, getWrites())))
    return failure();
  SmallVector<Operation *> windows;
  for (Value arg : getArgs()) {
    auto window = arg.getDefiningOp<WindowOp>();
    if (!window) // compute C1
      return emitOpError("takes windows as declared, found a view");
    windows.push_back(window);
  }
  SmallVector<Value> ranges(getReads());
  llvm::append_range(ranges, getWrites());
  auto boxes = resolveAll(*this, ranges);
  if (failed(boxes))
    return failure();
  for (BoxRef &box : *boxes) {
    if (!box.isOwn()) // compute C2
      return emitOpError("reads and writes own memory only, found a box of \"")
             << box.window.getSym() << "\" at a peer";
    if (!llvm::is_contained(windows, box.window.getOperation())) // compute C3
      return emitOpError("reads or writes window \"")
             << box.window.getSym() << "\", which is not among its arguments";
  }
  auto valid = [](const APFloat &value) { return value.isFinite() && !value.isNegative(); };
  if (!valid(getFlops()) || !valid(getBytes())) // compute C4
    return emitOpError("needs finite flops and bytes of at least 0");
  if ((int64_t)getSms() < 0) // compute C5
    return emitOpError("needs sms of at least 0, found ") << (int64_t)getSms();
  return success();
}

LogicalResult ComputeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(
      (*this)->getParentOfType<ProgramOp>(), getCalleeAttr());
  if (!callee) // compute C6
    return emitOpError("calls ") << getCalleeAttr() << ", which is not a function of the module";
  SmallVector<Type> types;
  for (Value arg : getArgs())
    if (auto window = arg.getDefiningOp<WindowOp>())
      types.push_back(window.getType());
  if (callee.getArgumentTypes() != ArrayRef<Type>(types) || callee.getNumResults()) { // compute C7
    auto diag = emitOpError("passes windows of types (");
    llvm::interleaveComma(types, diag);
    diag << ") to a function of another type";
    diag.attachNote(callee.getLoc()) << "which has type " << callee.getFunctionType();
    return diag;
  }
  return success();
}

LogicalResult SignalOp::verify() {
  if (failed(verifyLane(*this)))
    return failure();
  auto ref = resolveSlot(getSlot());
  if (failed(ref))
    return unresolved(*this, "the slot");
  if (failed(verifyRaised(*this, *ref)))
    return failure();
  if (ref->slots.getRealisation() == Realisation::Inband) // signal C1
    return emitOpError("raises slots \"")
           << ref->slots.getSym() << "\", which are inband: only a copy's notify raises them";
  return success();
}

LogicalResult WaitOp::verify() {
  if (failed(verifyLane(*this)))
    return failure();
  auto ref = resolveSlot(getSlot());
  if (failed(ref))
    return unresolved(*this, "the slot");
  if (ref->view) // wait C1
    return emitOpError("waits for its own slots only, found a peer's");
  if (ref->slots.getRealisation() == Realisation::Inband && getLane() != LaneKind::SM) // wait C2
    return emitOpError("waits for inband slots, which needs lane sm, found ")
           << stringifyLaneKind(getLane());
  return success();
}

LogicalResult FlushOp::verify() { return verifyLane(*this); }

LogicalResult CountOp::verify() {
  if (failed(verifyLane(*this)) || failed(verifyWholeBoxes(*this, getSource())))
    return failure();
  auto box = resolveRange(getSource());
  if (failed(box))
    return unresolved(*this, "the box");
  if (!box->isOwn()) // count C1
    return emitOpError("reads own memory only, found a peer's");
  Type element = cast<MemRefType>(box->window.getType()).getElementType();
  if (!element.isInteger(32) && !element.isInteger(64)) // count C2
    return emitOpError("needs i32 or i64, found ") << element;
  auto bounds = boundsOf(*box);
  int64_t unit = elementBytes(box->window);
  if (!bounds || bounds->least != unit || bounds->most != unit) // count C3
    return emitOpError("needs a box of one element");
  if ((int64_t)getMax() < 0) // count C4
    return emitOpError("needs a maximum of at least 0, found ") << (int64_t)getMax();
  return success();
}

template <typename LabelOp> static LogicalResult verifyLabel(LabelOp op) {
  if (failed(verifyLane(op)))
    return failure();
  auto box = resolveRange(op.getRange());
  if (failed(box))
    return unresolved(op, "the box");
  if (!box->isOwn() || box->range.getFirst() || box->range.getSize()) // label C1
    return op.emitOpError("speaks of one whole box of its own memory");
  auto program = programOf(op);
  llvm::StringSet<> axes;
  for (ArrayAttr list : {op.getSummed(), op.getShared()})
    for (auto axis : list.getAsRange<StringAttr>()) {
      if (!program.getAxisIndex(axis)) // label C2
        return op.emitOpError("speaks of axis ") << axis << ", which the grid does not have";
      if (!axes.insert(axis).second) // label C3
        return op.emitOpError("speaks of axis ") << axis << " twice";
    }
  for (Value index : op.getIndices())
    if (isa<CoordType>(index.getType()) && failed(resolveCoord(index)))
      return unresolved(op, "a coordinate");
  return success();
}
LogicalResult SourceOp::verify() { return verifyLabel(*this); }
LogicalResult SinkOp::verify() {
  if (failed(verifyLabel(*this)))
    return failure();
  auto program = programOf(*this);
  if (std::optional<ArrayRef<int64_t>> ranks = getAmong()) { // label C5
    llvm::DenseSet<int64_t> seen;
    bool good = getSummed().size() == program.getGrid().size() && !ranks->empty();
    for (int64_t rank : *ranks)
      good &= rank >= 0 && rank < program.getNumRanks() && seen.insert(rank).second;
    if (!good)
      return emitOpError("names contributors `among` ranks of the grid, each once, of what is "
                         "summed along all axes");
  }
  bool more = getScale() || getDivide();
  if ((getKind() && getSummed().empty()) || (more && getKind() != ReduceKind::Sum) || // label C4
      (getDivide() && static_cast<int64_t>(*getDivide()) < 1))
    return emitOpError("says how a reduction is made: `by` a kind along summed axes, and of a sum "
                       "its scale and a divisor of at least 1");
  return success();
}
