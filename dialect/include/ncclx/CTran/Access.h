//===- Access.h - What the values of a schedule stand for -------------*- C++ -*-===//
//
// Coordinates, windows, slots and boxes are resolved by walking their definitions. The verifiers,
// the reader into the abstract machine and the code generator all use these functions, so that one
// text means one thing. Everything here reads IR only; nothing is cached, nothing needs a lock.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_CTRAN_ACCESS_H
#define NCCLX_CTRAN_ACCESS_H

#include "ncclx/CTran/CTran.h"
#include "ncclx/Machine/Layout.h"

#include <optional>
#include <string>

namespace mlir::ctran {

/// A coordinate: the own one on `axis` (position in the grid), moved by `constant` and by the sum
/// of `amounts` (values of type index, none of them constant).
struct CoordRef {
  unsigned axis = 0;
  int64_t constant = 0;
  SmallVector<Value, 2> amounts;

  bool isOwn() const { return constant == 0 && amounts.empty(); }
};

/// A value of type !ctran.window.
struct WindowRef {
  WindowOp window;
  ReindexOp reindex;      ///< null: the whole, a space without dimensions
  PeerViewOp view;        ///< null: the own memory, or that of all members
  MembersOp members = {}; ///< not null: a place in the memory of each member

  bool isOwn() { return !view && !members; }
};

/// A value of type !ctran.slots.
struct SlotsRef {
  SlotsOp slots;
  PeerViewOp view; ///< null: the own memory
};

/// A value of type !ctran.range: indices, interval and run-time size are operands of `range`.
struct BoxRef : WindowRef {
  RangeOp range;
  machine::Space space;
};

/// A value of type !ctran.slot.
struct SlotRef : SlotsRef {
  SlotOp slot;
  SmallVector<machine::Dim, 2> dims;
};

/// Smallest and largest number of bytes that a box can have over all its indices.
struct ByteBounds {
  int64_t least = 0, most = 0;
};

/// The program around `op`, or null.
ProgramOp programOf(Operation *op);

/// The number that an index value always is, or nothing.
std::optional<int64_t> constantOf(Value value);

/// Each of these fails, without a diagnostic, on a value that does not come from the ops of this
/// dialect inside one program; the verifier leaves no such value in a valid program.
FailureOr<CoordRef> resolveCoord(Value coord);
FailureOr<WindowRef> resolveWindow(Value window);
FailureOr<SlotsRef> resolveSlots(Value slots);
FailureOr<BoxRef> resolveRange(Value range);
FailureOr<SlotRef> resolveSlot(Value slot);

/// Dimensions as the machine knows them: axes by position in the grid. Fails on an unknown axis.
FailureOr<SmallVector<machine::Dim, 2>> resolveDims(ProgramOp program, ArrayAttr dims);

/// Bytes of an element of the window, which is a positive whole number in a valid program.
int64_t elementBytes(WindowOp window);
/// The index space of a resolved window; the whole has no dimensions.
FailureOr<machine::Space> spaceOf(const WindowRef &window);

/// True when the interval covers all of `dim`, from wherever it starts.
bool coversDimension(Value first, Value count, const machine::Dim &dim);

/// Bytes of one box at `depth` indices of `space` and of the boxes just below it.
ByteBounds boundsAt(const machine::Space &space, unsigned depth);
/// Bytes of the box that `box` names; nothing when an interval's count is not constant.
std::optional<ByteBounds> boundsOf(BoxRef &box);
/// Sizes of the pieces of `extent` units that `dim` can cut.
void pieceBounds(const machine::Dim &dim, int64_t extent, int64_t &least, int64_t &most);

/// True when two index values, or two coordinates, are the same by their definitions.
bool sameValue(Value a, Value b);
/// The members, each by how far it is from the own rank along every axis of the grid, row-major,
/// the own rank first.
SmallVector<SmallVector<int64_t, 4>> memberShifts(MembersOp members);
/// The most members that a view can have: no switch has more ports.
constexpr int64_t mostMembers = 1024;
/// Is `op` done by a switch, for all members at once (S35)?
bool isInNetwork(Operation *op);
/// Why no switch combines elements of this type so, or nothing if one can (network N5).
std::optional<std::string> whyNotInNetwork(ReduceKind kind, Type element, Type accumulate);
/// Where boxes that are reached through a switch begin: at multiples of so many bytes.
constexpr int64_t networkAlignment = 4;
/// True when both views are of the same rank by their definitions.
bool samePoint(PeerViewOp a, PeerViewOp b);

/// The `coord_value` or `table` that an index or condition derives from, or null: then the value is
/// the same on every rank.
Operation *coordinateSource(Value value);

/// How this one op makes a program asymmetric, or nothing.
std::string asymmetryOf(Operation *op);
/// True when one representative stands for all ranks (Theorem 1). Else `where` is the first op, in
/// the order of the text, that uses a coordinate as a number, and `reason` says how.
bool isSymmetric(ProgramOp program, std::string *reason = nullptr, Operation **where = nullptr);

} // namespace mlir::ctran
#endif // NCCLX_CTRAN_ACCESS_H
