//===- HostEmitter.cpp - Integers for coordinates, boxes and counters ----------------===//
#include "HostEmitter.h"
#include "ncclxrt/abi.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx;

void HostEmitter::begin(func::FuncOp f) {
  function = f;
  exec = f.getArgument(0);
  Value rank = call("ncclxrt_rank", exec, b.getI64Type());
  runNumber = call("ncclxrt_run", exec, b.getI64Type());
  int64_t below = 1;
  unsigned axes = program.getGrid().size();
  own.assign(axes, Value());
  for (unsigned axis = axes; axis-- > 0;) { // the last axis is the fastest
    int64_t size = program.getAxisSize(axis);
    own[axis] = rem(div(rank, constant(below)), constant(size));
    below *= size;
  }
}

Value HostEmitter::constant(int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
}

LogicalResult HostEmitter::lowerScalar(Operation *op) {
  // Looked through at their uses, or done where blocks end.
  if (isa<ctran::WindowOp, ctran::ReindexOp, ctran::SlotsOp, ctran::PeerViewOp, ctran::MembersOp,
          ctran::RangeOp, ctran::SlotOp, ctran::CoordOp, ctran::ShiftOp, ctran::ReturnOp,
          scf::YieldOp>(op))
    return success();
  if (auto value = dyn_cast<ctran::CoordValueOp>(op)) {
    map(value.getResult(), coord(value.getCoord()));
    return success();
  }
  if (auto table = dyn_cast<ctran::TableOp>(op)) {
    Value at = coord(table.getCoord()), result = constant(table.getValues().back());
    for (auto [i, value] : llvm::enumerate(table.getValues().drop_back())) {
      Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, at, constant(i));
      result = arith::SelectOp::create(b, loc, here, constant(value), result);
    }
    map(table.getResult(), result);
    return success();
  }
  if (auto literal = dyn_cast<arith::ConstantOp>(op)) {
    if (literal.getType().isIndex())
      map(literal, constant(cast<IntegerAttr>(literal.getValue()).getInt()));
    else
      map(literal, arith::ConstantOp::create(b, loc, literal.getValue()));
    return success();
  }
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    return apply.emitOpError("is not lowered; run lower-affine first");
  }
  if (isa<arith::ArithDialect>(op->getDialect()) && op->getNumResults() == 1) {
    // The same op on i64 in place of index.
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(number(operand));
    Type type = op->getResult(0).getType();
    if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
      return op->emitOpError("mixes index with other integers; schedules count in index alone");
    OperationState state(loc, op->getName(), operands,
                         type.isIndex() ? Type(b.getI64Type()) : type);
    state.attributes = op->getDiscardableAttrDictionary();
    state.propertiesAttr = op->getPropertiesAsAttribute();
    map(op->getResult(0), b.create(state)->getResult(0));
    return success();
  }
  return op->emitOpError("is not part of a schedule");
}

//===--- ranks ---------------------------------------------------------------------------===//

Value HostEmitter::coord(Value original) {
  FailureOr<ctran::CoordRef> ref = ctran::resolveCoord(original);
  int64_t n = program.getAxisSize(ref->axis);
  if (ref->isOwn())
    return own[ref->axis];
  // Every term is brought into [0, n) first: remsi keeps the sign of what it divides.
  Value size = constant(n);
  Value sum = add(own[ref->axis], constant(((ref->constant % n) + n) % n));
  for (Value amount : ref->amounts)
    sum = add(sum, add(rem(number(amount), size), size));
  return rem(sum, size);
}

Value HostEmitter::indexNumber(Value index) {
  return isa<ctran::CoordType>(index.getType()) ? coord(index) : number(index);
}

Value HostEmitter::peer(ctran::PeerViewOp view) {
  if (!view)
    return constant(-1);
  if (view.getRank())
    return number(view.getRank());
  Value rank = constant(0);
  for (auto [axis, at] : llvm::enumerate(view.getPoint()))
    rank = add(mul(rank, constant(program.getAxisSize(axis))), coord(at));
  return rank;
}

//===--- memory ----------------------------------------------------------------------------===//

// The arithmetic of ctran::machine::cut (Layout.cpp), which the prover uses.
void HostEmitter::cut(const ctran::machine::Dim &dim, Value index, Value &begin, Value &end) {
  Value length = sub(end, begin), next = add(index, constant(1));
  Value n = constant(dim.size), granule = constant(dim.granule);
  Value units = ceilDiv(length, dim.granule);
  Value from, to;
  if (dim.partition == ctran::machine::Partition::Balanced) {
    from = mul(div(mul(index, units), n), granule);
    to = mul(div(mul(next, units), n), granule);
  } else {
    Value piece = mul(ceilDiv(units, dim.size), granule);
    from = mul(index, piece);
    to = mul(next, piece);
  }
  end = add(begin, min(to, length));
  begin = add(begin, min(from, length));
}

FailureOr<Box> HostEmitter::box(Value range, bool each) {
  FailureOr<ctran::BoxRef> ref = ctran::resolveRange(range);
  if (failed(ref))
    return emitError(loc, "uses a range whose window is not declared in this program");
  ctran::RangeOp op = ref->range;
  const ctran::machine::Space &space = ref->space;
  Box box;
  box.window = constant(windowIndex(ref->window));
  box.peer = peer(ref->view);
  box.elementType = cast<MemRefType>(ref->window.getType()).getElementType();
  box.scratch = ref->window.getRole() == ctran::WindowRole::Scratch;

  Value begin = constant(0), end = constant(space.extent);
  for (auto [i, index] : llvm::enumerate(op.getIndices()))
    cut(space.dims[i], indexNumber(index), begin, end);
  unsigned depth = op.getIndices().size();
  if (op.getFirst() && !each) {
    // From where the first box begins to where the one behind the last would.
    const ctran::machine::Dim &dim = space.dims[depth];
    if (!ctran::coversDimension(op.getFirst(), op.getCount(), dim)) {
      Value first = indexNumber(op.getFirst()), from = begin, to = end, behind = begin, past = end;
      cut(dim, first, from, to);
      cut(dim, add(first, number(op.getCount())), behind, past);
      begin = from;
      end = behind;
    }
  } else if (op.getFirst()) {
    // Boxes of one size, one behind the other: then a step leads from each to the next.
    Value from = begin, to = end;
    Value boxes = number(op.getCount());
    cut(space.dims[depth], indexNumber(op.getFirst()), from, to);
    for (unsigned i = depth + 1; i < space.dims.size(); ++i) {
      cut(space.dims[i], constant(0), from, to);
      boxes = mul(boxes, constant(space.dims[i].size));
    }
    ctran::machine::ByteBox all = space.locate({}, 0, -1);
    int64_t leaves = 1;
    for (const ctran::machine::Dim &dim : space.dims)
      leaves *= dim.size;
    std::vector<int64_t> path(space.dims.size(), 0);
    int64_t each = space.locate(path).bytes();
    if (depth != 0 || space.resident || space.rows != 1 || each * leaves != all.bytes())
      return op.emitOpError("names boxes that are not equally large and contiguous, which the host "
                            "carrier cannot step through");
    box.count = boxes;
    box.step = constant(each);
    begin = from;
    end = to;
  }
  Value unit = constant(space.unitBytes);
  int64_t stored = space.storageBytes();
  box.offset = space.resident ? constant(0) : mul(begin, unit);
  box.rows = constant(space.rows);
  box.stride = constant(space.rows ? stored / space.rows : 0);
  box.rowBytes = mul(sub(end, begin), unit);
  if (op.getSize()) {
    box.size = number(op.getSize());
    box.unit = unit;
    if (target == HostTarget::Host)
      box.rowBytes = mul(box.size, unit);
  }
  return box;
}

FailureOr<SmallVector<Box>> HostEmitter::boxes(ValueRange ranges, bool each) {
  SmallVector<Box> all;
  for (Value range : ranges) {
    FailureOr<Box> own = box(range, each);
    if (failed(own))
      return failure();
    ctran::MembersOp members = ctran::resolveRange(range)->members;
    if (!members) {
      all.push_back(*own);
      continue;
    }
    for (ArrayRef<int64_t> shift : ctran::memberShifts(members)) {
      Value rank = constant(0);
      for (auto [axis, by] : llvm::enumerate(shift)) {
        Value size = constant(program.getAxisSize(axis)), at = this->own[axis];
        rank = add(mul(rank, size), by == 0 ? at : rem(add(at, constant(by)), size));
      }
      all.push_back(*own);
      all.back().peer = rank;
    }
  }
  return all;
}

void HostEmitter::fitScratch(ArrayRef<Box *> boxes) {
  if (llvm::none_of(boxes, [](Box *box) { return box->scratch; }))
    return;
  // Boxes that are no slots have one size, and no slot has less room than that.
  Value bytes;
  for (Box *box : boxes)
    bytes = bytes ? min(bytes, total(*box)) : total(*box);
  for (Box *box : boxes)
    if (box->scratch && getConstantIntValue(box->rows) == 1)
      box->rowBytes = bytes;
}

FailureOr<Counter> HostEmitter::counter(Value slot) {
  FailureOr<ctran::SlotRef> ref = ctran::resolveSlot(slot);
  if (failed(ref))
    return emitError(loc, "uses slots that are not declared in this program");
  Counter counter;
  counter.slots = constant(slotsIndex(ref->slots));
  counter.peer = peer(ref->view);
  counter.perRun = ref->slots.getPerRun();
  counter.generations = ref->slots.getGenerations();
  counter.credits = ref->slots.getCredits();
  Value index = constant(0);
  unsigned at = 0;
  for (Value i : ref->slot.getIndices())
    index = add(mul(index, constant(ref->dims[at++].size)), indexNumber(i));
  if (ref->slot.getFirst()) {
    index = add(mul(index, constant(ref->dims[at++].size)), indexNumber(ref->slot.getFirst()));
    counter.count = number(ref->slot.getCount());
  }
  for (; at < ref->dims.size(); ++at) {
    // Fewer indices than dimensions name all slots below.
    index = mul(index, constant(ref->dims[at].size));
    Value above = counter.count ? counter.count : constant(1);
    counter.count = mul(above, constant(ref->dims[at].size));
  }
  counter.index = index;
  return counter;
}

//===--- tables ------------------------------------------------------------------------------===//

FailureOr<int64_t> HostEmitter::lane(ctran::ScheduleOpInterface op) {
  int64_t index = 0;
  if (Value value = op.getLaneIndexValue()) {
    std::optional<int64_t> constant = ctran::constantOf(value);
    if (!constant)
      return op->emitOpError("has a lane index that is not a constant, which the host carrier does "
                             "not lower yet");
    index = *constant;
  }
  for (auto [i, lane] : llvm::enumerate(plan.lanes))
    if (lane.kind == op.getLaneKind() && lane.index == index)
      return int64_t(i);
  std::string name = llvm::formatv("{0}{1}", ctran::stringifyLaneKind(op.getLaneKind()), index);
  plan.lanes.push_back({name, op.getLaneKind(), int32_t(index)});
  return int64_t(plan.lanes.size()) - 1;
}

static std::string describe(Location loc) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto file = loc->findInstanceOf<FileLineColLoc>())
    os << file.getFilename().getValue() << ':' << file.getLine() << ':' << file.getColumn();
  return text;
}

HostPlan::Op mlir::ncclx::planOpOf(ctran::ScheduleOpInterface op) {
  std::string name = op->getName().stripDialect().str(), collective;
  auto note = op->getAttrOfType<StringAttr>("note"), of = op->getAttrOfType<StringAttr>("of");
  if (auto compute = dyn_cast<ctran::ComputeOp>(*op))
    name = compute.getCallee().str();
  if (note)
    name = note.str();
  if (of)
    name = of.str() + ": " + name, collective = of.str();
  return {name, describe(op.getLoc()), collective};
}

int64_t HostEmitter::opIndex(ctran::ScheduleOpInterface op) {
  auto [it, isNew] = opIds.try_emplace(op, plan.ops.size());
  if (!isNew)
    return it->second;
  HostPlan::Op made = planOpOf(op);
  made.name = prefix + made.name;
  if (!made.collective.empty())
    made.collective = prefix + made.collective;
  plan.ops.push_back(std::move(made));
  return it->second;
}

int64_t HostEmitter::exitIndex() {
  plan.ops.push_back({prefix + "exit", describe(program.getLoc()), ""});
  return int64_t(plan.ops.size()) - 1;
}

int64_t HostEmitter::windowIndex(ctran::WindowOp window) {
  auto [it, isNew] = windowIds.try_emplace(window, plan.windows.size());
  if (!isNew)
    return it->second;
  // Programs of one plan share what the caller gives and takes.
  int64_t argument = window.getIndex() ? int64_t(*window.getIndex()) : -1;
  for (auto [i, known] : llvm::enumerate(plan.windows))
    if (argument >= 0 && known.role == window.getRole() && known.argument == argument)
      return it->second = int64_t(i);
  auto type = cast<MemRefType>(window.getType());
  uint64_t bytes = type.getNumElements() * ctran::elementBytes(window);
  plan.windows.push_back({window.getSym().str(), bytes, int32_t(window.getGenerations()),
                          window.getRole(), argument, type});
  return it->second;
}

int64_t HostEmitter::slotsIndex(ctran::SlotsOp slots) {
  auto [it, isNew] = slotsIds.try_emplace(slots, plan.slots.size());
  if (isNew) {
    int64_t count = 1;
    for (Attribute dim : slots.getDims())
      count *= cast<ctran::DimAttr>(dim).getSize();
    plan.slots.push_back({slots.getSym().str(), count, int32_t(slots.getGenerations()),
                          int64_t(slots.getWriters())});
  }
  return it->second;
}

FailureOr<int64_t> HostEmitter::dtype(Operation *op, Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 8:
      return isUnsigned ? ncclxrtU8 : ncclxrtI8;
    case 16:
      return isUnsigned ? ncclxrtU16 : ncclxrtI16;
    case 32:
      return isUnsigned ? ncclxrtU32 : ncclxrtI32;
    case 64:
      return isUnsigned ? ncclxrtU64 : ncclxrtI64;
    }
  }
  if (auto floating = dyn_cast<FloatType>(type)) {
    int64_t dtype = llvm::TypeSwitch<FloatType, int64_t>(floating)
                        .Case<Float32Type>([](Type) { return ncclxrtF32; })
                        .Case<Float64Type>([](Type) { return ncclxrtF64; })
                        .Case<BFloat16Type>([](Type) { return ncclxrtBf16; })
                        .Case<Float16Type>([](Type) { return ncclxrtF16; })
                        .Case<Float8E4M3FNType>([](Type) { return ncclxrtE4m3; })
                        .Case<Float8E5M2Type>([](Type) { return ncclxrtE5m2; })
                        .Default([](Type) { return -1; });
    if (dtype >= 0)
      return dtype;
  }
  return op->emitOpError("reduces elements of type ")
         << type
         << "; the runtime has floats (f64, f32, f16, bf16, f8E4M3FN, f8E5M2), i8 to i64 and ui8 "
            "to ui64";
}

//===--- calls
//---------------------------------------------------------------------------------===//

Value HostEmitter::call(StringRef name, ArrayRef<Value> arguments, Type result) {
  std::string cuda;
  if (target == HostTarget::Cuda && name.starts_with("ncclxrt_"))
    name = cuda = ("ncclxrtCuda_" + name.drop_front(strlen("ncclxrt_"))).str();
  auto module = function->getParentOfType<ModuleOp>();
  auto declared = module.lookupSymbol<func::FuncOp>(name);
  if (!declared) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    declared = func::FuncOp::create(b, loc, name,
                                    b.getFunctionType(TypeRange(ValueRange(arguments)),
                                                      result ? TypeRange(result) : TypeRange()));
    declared.setPrivate();
  }
  auto made = func::CallOp::create(b, loc, declared, arguments);
  return result ? made.getResult(0) : Value();
}

Value HostEmitter::callKernel(Value status, StringRef callee, ArrayRef<Value> addresses, int64_t id,
                              int64_t lane) {
  Type i32 = b.getI32Type();
  status = call("ncclxrt_compute_begin", {status, exec, constant(id), constant(lane)}, i32);
  // A kernel has no status; it must not run when something before it failed.
  Value good = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, status,
                                     arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0)));
  auto guarded = scf::IfOp::create(b, loc, TypeRange(), good, false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&guarded.getThenRegion().front());
    call(callee, addresses, Type());
  }
  return call("ncclxrt_compute_end", {status, exec, constant(id), constant(lane)}, i32);
}
