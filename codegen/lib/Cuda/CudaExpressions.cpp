//===- CudaExpressions.cpp - C++ text for coordinates, boxes and slots ---------------===//
#include "CudaExpressions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <utility>

using namespace mlir;
using namespace mlir::ncclx;
using llvm::formatv;

/// Where `op` stands in the list, at its end if it was not there.
template <class Op> static unsigned placeIn(SmallVector<Op> &list, Op op) {
  auto *at = llvm::find(list, op);
  if (at != list.end())
    return at - list.begin();
  list.push_back(op);
  return list.size() - 1;
}
unsigned CudaExpressions::indexOf(ctran::WindowOp window) { return placeIn(windows, window); }
unsigned CudaExpressions::indexOf(ctran::SlotsOp slots) { return placeIn(slotArrays, slots); }

/// How an op on numbers or conditions reads in C++; null for others.
static const char *formOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, const char *>(op)
      .Case([](arith::AddIOp) { return "({0} + {1})"; })
      .Case([](arith::SubIOp) { return "({0} - {1})"; })
      .Case([](arith::MulIOp) { return "({0} * {1})"; })
      .Case([](arith::DivSIOp) { return "({0} / {1})"; })
      .Case([](arith::RemSIOp) { return "({0} % {1})"; })
      .Case([](arith::MinSIOp) { return "lesser({0}, {1})"; })
      .Case([](arith::AndIOp) { return "({0} & {1})"; })
      .Case([](arith::OrIOp) { return "({0} | {1})"; })
      .Case([](arith::XOrIOp) { return "({0} ^ {1})"; })
      .Case([](arith::SelectOp) { return "({0} ? {1} : {2})"; })
      .Case([](arith::CmpIOp compare) -> const char * {
        switch (compare.getPredicate()) {
        case arith::CmpIPredicate::eq:
          return "({0} == {1})";
        case arith::CmpIPredicate::ne:
          return "({0} != {1})";
        case arith::CmpIPredicate::slt:
          return "({0} < {1})";
        case arith::CmpIPredicate::sle:
          return "({0} <= {1})";
        case arith::CmpIPredicate::sgt:
          return "({0} > {1})";
        case arith::CmpIPredicate::sge:
          return "({0} >= {1})";
        default:
          return nullptr; // indices are signed
        }
      })
      .Default([](Operation *) { return nullptr; });
}

FailureOr<std::string> CudaExpressions::number(Operation *op, Value value) {
  if (std::optional<int64_t> constant = ctran::constantOf(value))
    return value.getType().isInteger(1) ? std::string(*constant ? "true" : "false")
                                        : std::to_string(*constant);
  if (auto it = names.find(value); it != names.end())
    return it->second;
  Operation *definition = value.getDefiningOp();
  if (auto own = dyn_cast_if_present<ctran::CoordValueOp>(definition))
    return coord(op, own.getCoord());
  if (auto table = dyn_cast_if_present<ctran::TableOp>(definition)) {
    FailureOr<std::string> at = coord(op, table.getCoord());
    if (failed(at))
      return failure();
    return formatv("table{0}[{1}]", placeIn(tables, table), *at).str();
  }
  const char *form = definition ? formOf(definition) : nullptr;
  if (!form)
    return op->emitOpError("uses a number that the CUDA emitter cannot print: it knows constants, "
                           "loop variables, coordinates, tables, and additions, subtractions, "
                           "products, signed divisions, remainders and comparisons, and, or, xor "
                           "and select of them");
  SmallVector<std::string> operands;
  for (Value operand : definition->getOperands()) {
    FailureOr<std::string> text = number(op, operand);
    if (failed(text))
      return failure();
    operands.push_back(*text);
  }
  operands.resize(3);
  return formatv(form, operands[0], operands[1], operands[2]).str();
}

FailureOr<std::string> CudaExpressions::coord(Operation *op, Value value) {
  FailureOr<ctran::CoordRef> ref = ctran::resolveCoord(value);
  if (failed(ref))
    return op->emitOpError("uses a coordinate that is not of this program");
  int64_t size = program.getAxisSize(ref->axis);
  std::string own = formatv("c{0}", ref->axis);
  if (ref->isOwn())
    return own;
  std::string amount = std::to_string(ref->constant);
  for (Value term : ref->amounts) {
    FailureOr<std::string> text = number(op, term);
    if (failed(text))
      return failure();
    amount = amount == "0" ? *text : amount + " + " + *text;
  }
  return formatv("shifted({0}, {1}, {2})", own, amount, size).str();
}

FailureOr<std::string> CudaExpressions::index(Operation *op, Value value) {
  return isa<ctran::CoordType>(value.getType()) ? coord(op, value) : number(op, value);
}

FailureOr<std::string> CudaExpressions::rank(Operation *op, ctran::PeerViewOp view) {
  if (!view)
    return std::string("a.rank");
  if (view.getRank())
    return number(op, view.getRank());
  std::string rank;
  for (auto [axis, value] : llvm::enumerate(view.getPoint())) {
    FailureOr<std::string> at = coord(op, value);
    if (failed(at))
      return failure();
    rank = rank.empty() ? *at
                        : formatv("({0}) * {1} + {2}", rank, program.getAxisSize(axis), *at).str();
  }
  return rank;
}

/// Whether every box at `depth` indices starts on `unit` bytes, and is of whole units.
static std::pair<bool, bool> unitsAt(const ctran::machine::Space &space, unsigned depth,
                                     int64_t unit) {
  int64_t boxes = 1;
  for (unsigned i = 0; i < depth; ++i)
    boxes *= space.dims[i].size;
  if (boxes > 65536)
    return {false, false};
  bool starts = true, whole = true;
  for (int64_t box = 0; box < boxes; ++box) {
    std::vector<int64_t> path(depth);
    int64_t left = box;
    for (unsigned i = depth; i-- > 0; left /= space.dims[i].size)
      path[i] = left % space.dims[i].size;
    ctran::machine::ByteBox at = space.locate(path);
    starts &= at.offset % unit == 0;
    whole &= at.bytes() % unit == 0;
  }
  return {starts, starts && whole};
}

FailureOr<CudaBox> CudaExpressions::box(Operation *op, Value range, StringRef each) {
  FailureOr<ctran::BoxRef> ref = ctran::resolveRange(range);
  if (failed(ref))
    return op->emitOpError("uses a range whose window is not declared in this program");
  const ctran::machine::Space &space = ref->space;
  unsigned depth = ref->range.getIndices().size();
  Value first = ref->range.getFirst();
  bool whole = !each.empty() && first && ctran::constantOf(first) == 0 &&
               ctran::coversDimension(first, ref->range.getCount(), space.dims[depth]) &&
               depth + 1 == space.dims.size();
  if (first && !whole)
    return op->emitOpError("has a box that is an interval, which the CUDA emitter does not lower "
                           "yet");
  if (space.rows != 1)
    return op->emitOpError("has a box of ")
           << space.rows << " rows; the CUDA emitter lowers contiguous boxes";
  CudaBox box;
  box.op = ref->window;
  box.window = indexOf(ref->window);
  box.own = !ref->view;
  FailureOr<std::string> at = rank(op, ref->view);
  if (failed(at))
    return failure();
  box.rank = *at;
  std::string share = formatv("Share{{0, {0}}", space.extent);
  auto cut = [&](unsigned i, StringRef at) {
    const ctran::machine::Dim &dim = space.dims[i];
    bool balanced = dim.partition == ctran::machine::Partition::Balanced;
    share = formatv("{0}({1}, {2}, {3}, {4})", balanced ? "balancedPiece" : "chunkedPiece", share,
                    dim.granule, dim.size, at);
  };
  for (auto [i, value] : llvm::enumerate(ref->range.getIndices())) {
    FailureOr<std::string> text = index(op, value);
    if (failed(text))
      return failure();
    cut(unsigned(i), *text);
  }
  if (whole)
    cut(depth++, each);
  ctran::ByteBounds bounds = ctran::boundsAt(space, depth);
  if (bounds.least == bounds.most)
    box.constantBytes = bounds.least;
  box.bytes = box.constantBytes ? std::to_string(*box.constantBytes)
                                : formatv("{0}.size() * {1}", share, space.unitBytes).str();
  if (Value size = ref->range.getSize()) {
    auto named = names.find(size);
    if (named == names.end())
      return op->emitOpError("has a size that is not read before, in the same loop or branch");
    box.whole =
        std::exchange(box.bytes, formatv("{0} * {1}", named->second, space.unitBytes).str());
    box.constantBytes.reset();
  }
  box.offset = depth == 0 || space.resident
                   ? std::string("0")
                   : formatv("{0}.begin * {1}", share, space.unitBytes).str();
  box.most = bounds.most;
  if (space.resident)
    box.words = true, box.aligned = unitsAt(space, depth, 8).second;
  else
    std::tie(box.words, box.aligned) = unitsAt(space, depth, 8);
  box.lines = !space.resident && bounds.least >= 64 && unitsAt(space, depth, 64).first;
  return box;
}

FailureOr<CudaSlots> CudaExpressions::slots(Operation *op, Value slot) {
  FailureOr<ctran::SlotRef> ref = ctran::resolveSlot(slot);
  if (failed(ref))
    return op->emitOpError("uses slots that are not declared in this program");
  CudaSlots result;
  result.op = ref->slots;
  result.slots = indexOf(ref->slots);
  FailureOr<std::string> at = rank(op, ref->view);
  if (failed(at))
    return failure();
  result.rank = *at;
  std::string first = "0";
  int64_t below = 1;
  unsigned i = 0;
  auto append = [&](const std::string &text, int64_t size) {
    first = first == "0" ? text : formatv("({0}) * {1} + {2}", first, size, text).str();
  };
  for (Value value : ref->slot.getIndices()) {
    FailureOr<std::string> text = index(op, value);
    if (failed(text))
      return failure();
    append(*text, ref->dims[i++].size);
  }
  result.count = "1";
  if (Value start = ref->slot.getFirst()) {
    const ctran::machine::Dim &dim = ref->dims[i++];
    // From wherever it starts, the whole axis is all of its places.
    bool whole = ctran::coversDimension(start, ref->slot.getCount(), dim);
    FailureOr<std::string> text =
        whole ? FailureOr<std::string>(std::string("0")) : index(op, start);
    FailureOr<std::string> count = number(op, ref->slot.getCount());
    if (failed(text) || failed(count))
      return failure();
    append(*text, dim.size);
    result.count = *count;
  }
  for (; i < ref->dims.size(); ++i) {
    append("0", ref->dims[i].size);
    below *= ref->dims[i].size;
  }
  if (below != 1)
    result.count = formatv("{0} * {1}", result.count, below);
  result.first = first;
  return result;
}
