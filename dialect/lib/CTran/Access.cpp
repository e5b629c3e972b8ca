//===- Access.cpp - What the values of a schedule stand for ------------------------===//
#include "ncclx/CTran/Access.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ctran;

ProgramOp ctran::programOf(Operation *op) { return op->getParentOfType<ProgramOp>(); }

std::optional<int64_t> ctran::constantOf(Value value) {
  APInt number;
  if (value && matchPattern(value, m_ConstantInt(&number)) && number.getSignificantBits() <= 64)
    return number.getSExtValue();
  return std::nullopt;
}

/// `a` + `b`, wrapped as the machine's arithmetic wraps.
static int64_t wrappingAdd(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

// IR that is being verified may hold cycles (dominance is checked last), so every walk up the
// definitions remembers where it has been.

FailureOr<CoordRef> ctran::resolveCoord(Value coord) {
  CoordRef ref;
  llvm::SmallPtrSet<Operation *, 4> seen;
  while (auto shift = coord.getDefiningOp<ShiftOp>()) {
    if (!seen.insert(shift).second)
      return failure();
    if (auto amount = constantOf(shift.getAmount()))
      ref.constant = wrappingAdd(ref.constant, *amount);
    else
      ref.amounts.push_back(shift.getAmount());
    coord = shift.getCoord();
  }
  auto own = coord.getDefiningOp<CoordOp>();
  auto program = own ? programOf(own) : ProgramOp();
  auto axis = program ? program.getAxisIndex(own.getAxis()) : std::nullopt;
  if (!axis)
    return failure();
  ref.axis = *axis;
  ref.constant %= program.getAxisSize(*axis);
  return ref;
}

FailureOr<WindowRef> ctran::resolveWindow(Value value) {
  WindowRef ref;
  while (Operation *op = value.getDefiningOp()) {
    if ((ref.window = dyn_cast<WindowOp>(op)))
      return ref;
    // At most one of each, so that the walk ends whatever the order.
    if (auto reindex = dyn_cast<ReindexOp>(op); reindex && !ref.reindex) {
      ref.reindex = reindex;
      value = reindex.getWindow();
    } else if (auto view = dyn_cast<PeerViewOp>(op); view && ref.isOwn()) {
      ref.view = view;
      value = view.getMemory();
    } else if (auto members = dyn_cast<MembersOp>(op); members && ref.isOwn()) {
      ref.members = members;
      value = members.getWindow();
    } else {
      break;
    }
  }
  return failure();
}

FailureOr<SlotsRef> ctran::resolveSlots(Value value) {
  SlotsRef ref;
  if ((ref.view = value.getDefiningOp<PeerViewOp>()))
    value = ref.view.getMemory();
  if (!(ref.slots = value.getDefiningOp<SlotsOp>()))
    return failure();
  return ref;
}

FailureOr<SmallVector<machine::Dim, 2>> ctran::resolveDims(ProgramOp program, ArrayAttr dims) {
  SmallVector<machine::Dim, 2> result;
  for (auto attr : dims.getAsRange<DimAttr>()) {
    machine::Dim dim;
    if (!attr.getAxis().empty() && !(dim.axis = program.getAxisIndex(attr.getAxis())))
      return failure();
    dim.size = attr.getSize();
    dim.partition =
        attr.getCut() == Cut::Balanced ? machine::Partition::Balanced : machine::Partition::Chunked;
    dim.granule = attr.getGranule();
    result.push_back(dim);
  }
  return result;
}

int64_t ctran::elementBytes(WindowOp window) {
  Type element = cast<MemRefType>(window.getType()).getElementType();
  return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() / 8 : 0;
}

FailureOr<machine::Space> ctran::spaceOf(const WindowRef &ref) {
  auto type = cast<MemRefType>(WindowOp(ref.window).getType());
  machine::Space space;
  space.unitBytes = elementBytes(ref.window);
  space.extent = type.getNumElements();
  ReindexOp reindex = ref.reindex;
  if (!reindex)
    return space;
  if (auto along = reindex.getAlong()) {
    if (*along >= uint64_t(type.getRank()))
      return failure();
    space.extent = type.getDimSize(*along);
    for (int64_t size : type.getShape().take_front(*along))
      space.rows *= size;
    for (int64_t size : type.getShape().drop_front(*along + 1))
      space.unitBytes *= size;
  }
  if (auto extent = reindex.getExtent())
    space.extent = *extent;
  space.resident = reindex.getResident();
  auto dims = resolveDims(programOf(reindex), reindex.getDims());
  if (failed(dims))
    return failure();
  space.dims.assign(dims->begin(), dims->end());
  return space;
}

FailureOr<BoxRef> ctran::resolveRange(Value value) {
  BoxRef ref;
  if (!(ref.range = value.getDefiningOp<RangeOp>()))
    return failure();
  auto window = resolveWindow(ref.range.getWindow());
  if (failed(window))
    return failure();
  static_cast<WindowRef &>(ref) = *window;
  auto space = spaceOf(*window);
  if (failed(space))
    return failure();
  ref.space = std::move(*space);
  return ref;
}

FailureOr<ctran::SlotRef> ctran::resolveSlot(Value value) {
  ctran::SlotRef ref;
  if (!(ref.slot = value.getDefiningOp<SlotOp>()))
    return failure();
  auto slots = resolveSlots(ref.slot.getSlots());
  if (failed(slots))
    return failure();
  static_cast<SlotsRef &>(ref) = *slots;
  auto dims = resolveDims(programOf(ref.slot), ref.slots.getDims());
  if (failed(dims))
    return failure();
  ref.dims = std::move(*dims);
  return ref;
}

//===--- sizes ---------------------------------------------------------------------===//

bool ctran::coversDimension(Value first, Value count, const machine::Dim &dim) {
  auto number = constantOf(count);
  if (!number || *number != dim.size)
    return false;
  return isa<CoordType>(first.getType()) || constantOf(first) == 0;
}

void ctran::pieceBounds(const machine::Dim &dim, int64_t extent, int64_t &least, int64_t &most) {
  if (dim.partition == machine::Partition::Chunked) {
    int64_t piece = llvm::divideCeil(llvm::divideCeil(extent, dim.granule), dim.size) * dim.granule;
    most = std::min(piece, extent);
    least = dim.size == 1
                ? extent
                : std::max<int64_t>(0, extent -
                                           llvm::SaturatingMultiply<uint64_t>(piece, dim.size - 1));
    return;
  }
  int64_t granules = llvm::divideCeil(extent, dim.granule);
  int64_t share = granules / dim.size, rest = granules % dim.size;
  // The last piece has a granule more than the share when there is a rest, and is cut at the
  // extent; of the others, rest - 1 have one more.
  int64_t last = extent - (granules - share - (rest != 0)) * dim.granule;
  least = most = last;
  if (dim.size > 1) {
    least = std::min(last, share * dim.granule);
    most = std::max(last, (share + (rest > 1)) * dim.granule);
  }
}

ByteBounds ctran::boundsAt(const machine::Space &space, unsigned depth) {
  ByteBounds units{space.extent, space.extent};
  for (const machine::Dim &dim : ArrayRef(space.dims).take_front(depth)) {
    int64_t ignored;
    pieceBounds(dim, units.least, units.least, ignored);
    pieceBounds(dim, units.most, ignored, units.most);
  }
  int64_t scale = space.rows * space.unitBytes;
  return {units.least * scale, units.most * scale};
}

std::optional<ByteBounds> ctran::boundsOf(BoxRef &box) {
  unsigned depth = box.range.getIndices().size();
  // The whole of a resident space is whatever piece the rank has.
  if (box.space.resident && depth == 0)
    return boundsAt(box.space, box.space.dims.size());
  if (!box.range.getFirst())
    return boundsAt(box.space, depth);
  auto count = constantOf(box.range.getCount());
  if (!count || depth >= box.space.dims.size())
    return std::nullopt;
  if (coversDimension(box.range.getFirst(), box.range.getCount(), box.space.dims[depth]))
    return boundsAt(box.space, depth);
  auto piece = boundsAt(box.space, depth + 1);
  return ByteBounds{piece.least * *count, piece.most * *count};
}

//===--- equality --------------------------------------------------------------------===//

static bool sameValueTo(Value a, Value b, unsigned depth) {
  if (a == b)
    return true;
  auto x = constantOf(a), y = constantOf(b);
  if (x || y)
    return x == y;
  Operation *p = a.getDefiningOp(), *q = b.getDefiningOp();
  if (!p || !q || depth == 0 || p->getName() != q->getName() || p->getNumRegions() ||
      !isMemoryEffectFree(p) || p->getNumOperands() != q->getNumOperands() ||
      p->getRawDictionaryAttrs() != q->getRawDictionaryAttrs() ||
      p->getPropertiesAsAttribute() != q->getPropertiesAsAttribute() ||
      cast<OpResult>(a).getResultNumber() != cast<OpResult>(b).getResultNumber())
    return false;
  return llvm::all_of(llvm::zip(p->getOperands(), q->getOperands()), [&](auto pair) {
    return sameValueTo(std::get<0>(pair), std::get<1>(pair), depth - 1);
  });
}

static bool sameCoord(Value a, Value b) {
  auto x = resolveCoord(a), y = resolveCoord(b);
  if (failed(x) || failed(y) || x->axis != y->axis || x->amounts.size() != y->amounts.size())
    return false;
  int64_t size = programOf(a.getDefiningOp()).getAxisSize(x->axis);
  if ((x->constant - y->constant) % size != 0)
    return false;
  return llvm::all_of(llvm::zip(x->amounts, y->amounts),
                      [](auto pair) { return sameValue(std::get<0>(pair), std::get<1>(pair)); });
}

bool ctran::sameValue(Value a, Value b) {
  if (a.getType() != b.getType())
    return false;
  if (isa<CoordType>(a.getType()))
    return sameCoord(a, b);
  // Deep enough for what passes write; beyond it values count as different.
  return sameValueTo(a, b, 8);
}

bool ctran::samePoint(PeerViewOp a, PeerViewOp b) {
  if (a == b)
    return true;
  if (bool(a.getRank()) != bool(b.getRank()) || a.getPoint().size() != b.getPoint().size())
    return false;
  if (a.getRank())
    return sameValue(a.getRank(), b.getRank());
  return llvm::all_of(llvm::zip(a.getPoint(), b.getPoint()),
                      [](auto pair) { return sameValue(std::get<0>(pair), std::get<1>(pair)); });
}

//===--- what switches do ------------------------------------------------------------===//

SmallVector<SmallVector<int64_t, 4>> ctran::memberShifts(MembersOp members) {
  ProgramOp program = programOf(members);
  SmallVector<SmallVector<int64_t, 4>> shifts{SmallVector<int64_t, 4>(program.getGrid().size(), 0)};
  for (auto name : members.getAxes().getAsRange<StringAttr>()) {
    unsigned axis = *program.getAxisIndex(name);
    SmallVector<SmallVector<int64_t, 4>> next;
    for (SmallVector<int64_t, 4> &shift : shifts)
      for (int64_t by = 0, n = program.getAxisSize(axis); by < n; ++by) {
        shift[axis] = by;
        next.push_back(shift);
      }
    shifts = std::move(next);
  }
  return shifts;
}

bool ctran::isInNetwork(Operation *op) {
  auto lane = dyn_cast<ScheduleOpInterface>(op);
  if (!lane)
    return false;
  SmallVector<BoxAccess> accesses;
  lane.getAccesses(accesses);
  return llvm::any_of(accesses, [](const BoxAccess &access) {
    FailureOr<BoxRef> box = resolveRange(access.range);
    return succeeded(box) && box->members;
  });
}

// Those of NVLink switches of PTX 8.1: sums of floats that are accumulated in f32 where they are
// narrower, and of integers their sum, least and greatest. What becomes of a NaN in a least or
// greatest of floats is not said, so that these are not taken.
std::optional<std::string> ctran::whyNotInNetwork(ReduceKind kind, Type element, Type accumulate) {
  bool floats = isa<Float32Type, Float64Type, Float16Type, BFloat16Type>(element);
  bool integers = element.isInteger(32) || element.isInteger(64);
  bool sum = kind == ReduceKind::Sum;
  bool kept = accumulate == element ||
              (isa<Float16Type, BFloat16Type>(element) && isa<Float32Type>(accumulate));
  if ((floats && sum && kept) || (integers && kind != ReduceKind::Prod && kept))
    return std::nullopt;
  std::string text;
  llvm::raw_string_ostream(text) << "a switch has no " << stringifyReduceKind(kind) << " of "
                                 << element << " accumulated in " << accumulate;
  return text;
}

//===--- symmetry ------------------------------------------------------------------===//

Operation *ctran::coordinateSource(Value value) {
  SmallVector<Value> work{value};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value current = work.pop_back_val();
    if (!seen.insert(current).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(current)) {
      // A loop's variable follows its bounds; a carried value, what enters and what is yielded.
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!loop)
        continue;
      if (argument.getArgNumber() == 0) {
        llvm::append_values(work, loop.getLowerBound(), loop.getUpperBound(), loop.getStep());
      } else {
        unsigned i = argument.getArgNumber() - 1;
        llvm::append_values(work, loop.getInitArgs()[i], loop.getYieldedValues()[i]);
      }
      continue;
    }
    Operation *op = current.getDefiningOp();
    unsigned i = cast<OpResult>(current).getResultNumber();
    if (isa<CoordValueOp, TableOp>(op))
      return op;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      llvm::append_values(work, loop.getInitArgs()[i], loop.getYieldedValues()[i]);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      llvm::append_values(work, branch.getCondition(), branch.thenYield().getResults()[i]);
      if (branch.elseBlock())
        work.push_back(branch.elseYield().getResults()[i]);
    } else {
      llvm::append_range(work, op->getOperands());
    }
  }
  return nullptr;
}

/// A number that names a place along an axis breaks the symmetry of that axis, unless it begins an
/// interval of the whole dimension.
static bool numbersAxis(OperandRange indices, Value first, Value count, ArrayRef<machine::Dim> dims,
                        unsigned &dim) {
  for (auto [i, index] : llvm::enumerate(indices)) {
    dim = i;
    if (i < dims.size() && dims[i].axis && isa<IndexType>(index.getType()))
      return true;
  }
  dim = indices.size();
  return first && dim < dims.size() && dims[dim].axis && isa<IndexType>(first.getType()) &&
         !coversDimension(first, count, dims[dim]);
}

std::string ctran::asymmetryOf(Operation *op) {
  auto numbered = [&](StringRef kind, StringRef name, unsigned dim, const machine::Dim &bound) {
    auto axis = cast<GridAxisAttr>(programOf(op).getGrid()[*bound.axis]).getName();
    return llvm::formatv("a number indexes dimension {0} of {1} \"{2}\", which is bound to axis "
                         "\"{3}\"",
                         dim, kind, name, axis)
        .str();
  };
  unsigned dim;
  if (auto value = dyn_cast<CoordValueOp>(op)) {
    if (!value->use_empty())
      return ("the coordinate on axis \"" + value.getCoord().getType().getAxis() +
              "\" is used as a number")
          .str();
  } else if (auto table = dyn_cast<TableOp>(op)) {
    if (!table->use_empty())
      return ("a table is indexed by the coordinate on axis \"" +
              table.getCoord().getType().getAxis() + "\"")
          .str();
  } else if (auto sink = dyn_cast<SinkOp>(op); sink && sink.getAmong()) {
    return "contributors are named by their rank numbers";
  } else if (auto view = dyn_cast<PeerViewOp>(op)) {
    if (view.getRank())
      return "a peer is named by its rank number";
  } else if (auto range = dyn_cast<RangeOp>(op)) {
    auto box = resolveRange(range.getResult());
    if (succeeded(box) &&
        numbersAxis(range.getIndices(), range.getFirst(), range.getCount(), box->space.dims, dim))
      return numbered("window", box->window.getSym(), dim, box->space.dims[dim]);
  } else if (auto slot = dyn_cast<SlotOp>(op)) {
    auto ref = resolveSlot(slot.getResult());
    if (succeeded(ref) &&
        numbersAxis(slot.getIndices(), slot.getFirst(), slot.getCount(), ref->dims, dim))
      return numbered("slots", ref->slots.getSym(), dim, ref->dims[dim]);
  }
  return {};
}

bool ctran::isSymmetric(ProgramOp program, std::string *reason, Operation **where) {
  std::string why;
  program.walk<WalkOrder::PreOrder>([&](Operation *op) {
    why = asymmetryOf(op);
    if (why.empty())
      return WalkResult::advance();
    if (where)
      *where = op;
    return WalkResult::interrupt();
  });
  if (reason)
    *reason = why;
  return why.empty();
}
