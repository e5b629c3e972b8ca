//===- Reader.cpp - From a ctran.program to the abstract machine --------------------===//
#include "ncclx/CTran/Reader.h"

#include "Code.h"

#include "ncclx/CTran/Access.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

using namespace mlir;
using namespace mlir::ctran;
using code::Code;
using code::Instr;
using code::Reg;

namespace {

/// The schedule that owns the compiled program.
class ProgramSchedule final : public machine::Schedule {
public:
  std::shared_ptr<code::Program> program = std::make_shared<code::Program>();
  std::unique_ptr<machine::OpStream> open(const std::vector<int64_t> *point,
                                          int64_t) const override {
    return code::open(program, point);
  }
};

class Compiler {
public:
  Compiler(ProgramOp op, ProgramSchedule &schedule)
      : op(op), schedule(schedule), program(*schedule.program) {}

  LogicalResult run();
  SmallVector<Operation *> locations;

private:
  void declare();
  LogicalResult compile(Block &block);
  LogicalResult compile(Operation &op);
  LogicalResult compileLoop(scf::ForOp loop);
  LogicalResult compileBranch(scf::IfOp branch);
  LogicalResult compileLaneOp(ScheduleOpInterface lane);
  void compileEnd(machine::OpKind kind, Operation *at, ValueRange after, Value token);
  Reg compileExpr(AffineExpr expr, affine::AffineApplyOp apply);

  Reg newNumber(int64_t initial = 0) {
    program.initial.push_back(initial);
    return program.initial.size() - 1;
  }
  Reg constant(int64_t value) {
    auto [it, isNew] = constants.try_emplace(value, 0);
    if (isNew)
      it->second = newNumber(value);
    return it->second;
  }
  /// The register of a value; made when the value is first met.
  Reg regOf(Value value);
  Reg define(Value value) { return regOf(value); }
  size_t emit(Instr instr) {
    program.instrs.push_back(instr);
    return program.instrs.size() - 1;
  }
  uint32_t here() const { return program.instrs.size(); }
  void move(Reg dest, Value value) {
    bool token = isa<TokenType>(value.getType());
    emit({token ? Code::MoveToken : Code::Move, dest, regOf(value)});
  }
  void moveAll(ValueRange dests, ValueRange values);

  code::Index indexOf(Value value);
  code::Peer peerOf(PeerViewOp view, std::string &asymmetry);
  LogicalResult setBox(Value range, bool each, code::Op &out, std::vector<code::Box> &list);
  LogicalResult setSlot(Value slot, code::Op &out);
  unsigned spaceIndex(unsigned window, const machine::Space &space);
  unsigned addLocation(Operation *op, StringRef of, StringRef note);

  ProgramOp op;
  ProgramSchedule &schedule;
  code::Program &program;
  llvm::DenseMap<Value, Reg> regs;
  std::map<int64_t, Reg> constants;
  llvm::DenseMap<Operation *, unsigned> windows, slots;
  llvm::StringMap<unsigned> values;
  llvm::StringMap<int> collectives;
};

} // namespace

//===--- declarations ---------------------------------------------------------------===//

void Compiler::declare() {
  schedule.name = op.getSymName().str();
  schedule.rxVisible = op.getRxVisible();
  for (auto axis : op.getGrid().getAsRange<GridAxisAttr>()) {
    schedule.grid.names.push_back(axis.getName().str());
    schedule.grid.sizes.push_back(axis.getSize());
  }
  program.axes = schedule.grid.sizes;
  for (auto attr : op.getCollectives().getAsRange<CollectiveAttr>()) {
    machine::CollectiveInfo info;
    info.name = attr.getName().str();
    info.kind = attr.getKind().str();
    info.algorithm = attr.getAlgorithm().str();
    for (StringAttr axis : attr.getAxes())
      info.axes.push_back(*op.getAxisIndex(axis));
    info.bytes = attr.getBytes();
    collectives[attr.getName()] = schedule.collectives.size();
    schedule.collectives.push_back(std::move(info));
  }
  for (Operation &inner : op.getBody().front()) {
    if (auto window = dyn_cast<WindowOp>(inner)) {
      machine::Window out;
      out.name = window.getSym().str();
      out.role = static_cast<machine::Window::Role>(window.getRole());
      out.peers = static_cast<machine::Window::Peers>(window.getPeers());
      out.generations = window.getGenerations();
      out.elementBytes = elementBytes(window);
      out.spaces.push_back(*spaceOf({window, {}, {}}));
      windows[window] = schedule.windows.size();
      schedule.windows.push_back(std::move(out));
    } else if (auto declared = dyn_cast<SlotsOp>(inner)) {
      machine::Slots out;
      out.name = declared.getSym().str();
      auto dims = *resolveDims(op, declared.getDims());
      out.dims.assign(dims.begin(), dims.end());
      out.writers = declared.getWriters();
      out.generations = declared.getGenerations();
      out.perRun = declared.getPerRun();
      out.credits = declared.getCredits();
      out.realisation = static_cast<machine::Slots::Realisation>(declared.getRealisation());
      slots[declared] = schedule.slots.size();
      schedule.slots.push_back(std::move(out));
    }
  }
}
static_assert(int(WindowRole::Scratch) == int(machine::Window::Role::Scratch) &&
              int(PeerAccess::LoadStore) == int(machine::Window::Peers::LoadStore) &&
              int(Realisation::Event) == int(machine::Slots::Realisation::Event) &&
              int(ReduceKind::Sum) == int(machine::ReduceKind::Sum) &&
              int(ReduceKind::Prod) == int(machine::ReduceKind::Prod) &&
              int(LaneKind::NIC) == int(machine::LaneKind::NIC));

/// Where the op comes from, and what to call it: "all_gather c0: put".
unsigned Compiler::addLocation(Operation *from, StringRef of, StringRef note) {
  machine::Location location;
  if (auto it = collectives.find(of); it != collectives.end())
    location.op = schedule.collectives[it->second].kind + " ";
  if (!of.empty())
    location.op += of.str() + ": ";
  Location loc = from->getLoc();
  if (auto named = note.empty() ? loc->findInstanceOf<NameLoc>() : NameLoc())
    location.op += named.getName().str();
  else
    location.op += (note.empty() ? from->getName().stripDialect() : note).str();
  if (auto file = loc->findInstanceOf<FileLineColLoc>()) {
    location.file = file.getFilename().str();
    location.line = file.getLine();
    location.column = file.getColumn();
  }
  locations.push_back(from);
  schedule.locations.push_back(std::move(location));
  return schedule.locations.size() - 1;
}

unsigned Compiler::spaceIndex(unsigned window, const machine::Space &space) {
  auto &spaces = schedule.windows[window].spaces;
  auto it = llvm::find(spaces, space);
  if (it == spaces.end())
    it = spaces.insert(it, space);
  return it - spaces.begin();
}

//===--- values ----------------------------------------------------------------------===//

Reg Compiler::regOf(Value value) {
  if (auto it = regs.find(value); it != regs.end())
    return it->second;
  APInt number;
  Reg reg;
  if (isa<TokenType>(value.getType()))
    reg = program.tokens++;
  else if (matchPattern(value, m_ConstantInt(&number)))
    reg = constant(number.getBitWidth() == 1 ? number.getZExtValue() : number.getSExtValue());
  else
    reg = newNumber();
  regs[value] = reg;
  return reg;
}

code::Index Compiler::indexOf(Value value) {
  if (auto coord = dyn_cast<CoordType>(value.getType()))
    return {true, *op.getAxisIndex(coord.getAxis()), regOf(value)};
  return {false, 0, regOf(value)};
}

code::Peer Compiler::peerOf(PeerViewOp view, std::string &asymmetry) {
  code::Peer peer;
  if (!view)
    return peer;
  peer.kind = view.getRank() ? code::Peer::Kind::Rank : code::Peer::Kind::Shift;
  if (view.getRank())
    peer.regs.push_back(regOf(view.getRank()));
  for (Value coord : view.getPoint())
    peer.regs.push_back(regOf(coord));
  if (asymmetry.empty())
    asymmetry = asymmetryOf(view);
  return peer;
}

LogicalResult Compiler::setBox(Value range, bool each, code::Op &out,
                               std::vector<code::Box> &list) {
  auto ref = resolveRange(range);
  if (failed(ref))
    return failure();
  code::Box box;
  box.window = windows.lookup(ref->window);
  box.space = spaceIndex(box.window, ref->space);
  box.peer = peerOf(ref->view, out.asymmetry);
  for (Value index : ref->range.getIndices())
    box.path.push_back(indexOf(index));
  if (Value first = ref->range.getFirst()) {
    const machine::Dim &dim = ref->space.dims[box.path.size()];
    bool whole = coversDimension(first, ref->range.getCount(), dim);
    // All of a dimension is the box above it, unless its boxes are meant one by one.
    if (each || !whole) {
      box.first = indexOf(first);
      box.count = regOf(ref->range.getCount());
    }
    if (each) {
      for (const machine::Dim &below : ArrayRef(ref->space.dims).drop_front(box.path.size()))
        box.apart.push_back({below.size, below.axis});
      if (!whole)
        box.apart.front().wholeAxis.reset();
    }
  }
  // Who has not read the size cannot start (S25).
  if (Value size = ref->range.getSize(); size && out.size == code::none) {
    out.size = regOf(size.getDefiningOp<CountOp>().getDone());
    out.after.push_back(out.size);
  }
  if (out.asymmetry.empty())
    out.asymmetry = asymmetryOf(ref->range);
  if (!ref->members) {
    list.push_back(std::move(box));
    return success();
  }
  out.inNetwork = true;
  box.peer.kind = code::Peer::Kind::Shift;
  for (ArrayRef<int64_t> shift : memberShifts(ref->members)) {
    box.peer.regs.clear();
    for (int64_t by : shift)
      box.peer.regs.push_back(constant(by));
    list.push_back(box);
  }
  return success();
}

LogicalResult Compiler::setSlot(Value value, code::Op &out) {
  auto ref = resolveSlot(value);
  if (failed(ref))
    return failure();
  code::Slot slot;
  slot.slots = slots.lookup(ref->slots);
  slot.peer = peerOf(ref->view, out.asymmetry);
  for (Value index : ref->slot.getIndices())
    slot.path.push_back(indexOf(index));
  if (Value first = ref->slot.getFirst())
    if (!coversDimension(first, ref->slot.getCount(), ref->dims[slot.path.size()])) {
      slot.first = indexOf(first);
      slot.count = regOf(ref->slot.getCount());
    }
  if (out.asymmetry.empty())
    out.asymmetry = asymmetryOf(ref->slot);
  out.slot = std::move(slot);
  return success();
}

//===--- ops --------------------------------------------------------------------------===//

LogicalResult Compiler::compileLaneOp(ScheduleOpInterface lane) {
  Operation *from = lane;
  code::Op out;
  out.lane = static_cast<machine::LaneKind>(lane.getLaneKind());
  if (Value index = lane.getLaneIndexValue())
    out.laneIndex = regOf(index);
  for (Value token : lane.getAfterTokens())
    out.after.push_back(regOf(token));
  auto textOf = [&](StringRef name) {
    auto text = from->getAttrOfType<StringAttr>(name);
    return text ? text.getValue() : StringRef();
  };
  out.location = addLocation(from, textOf("of"), textOf("note"));
  if (auto it = collectives.find(textOf("of")); it != collectives.end())
    out.collective = it->second;

  SmallVector<BoxAccess> accesses;
  lane.getAccesses(accesses);
  // Only reduce takes an interval apart.
  bool each = isa<ReduceOp>(from);
  for (const BoxAccess &access : accesses)
    if (failed(setBox(access.range, each && !access.write, out,
                      access.write ? out.writes : out.reads)))
      return failure();
  if (Value slot = lane.getTouchedSlot())
    if (failed(setSlot(slot, out)))
      return failure();

  auto label = [&](auto labelled, machine::OpKind kind) {
    out.kind = kind;
    out.name = values.try_emplace(labelled.getValue(), schedule.valueNames.size()).first->second;
    if (out.name == schedule.valueNames.size())
      schedule.valueNames.push_back(labelled.getValue().str());
    for (Value index : labelled.getIndices())
      out.labelPath.push_back(indexOf(index));
    for (auto axis : labelled.getSummed().template getAsRange<StringAttr>())
      out.summed.push_back(*op.getAxisIndex(axis));
    for (auto axis : labelled.getShared().template getAsRange<StringAttr>())
      out.shared.push_back(*op.getAxisIndex(axis));
  };
  auto combination = [](auto op, ReduceKind kind) {
    machine::Combination how{static_cast<machine::ReduceKind>(kind)};
    if (op.getScale())
      how.scale = op.getScale()->convertToDouble();
    how.divide = op.getDivide().value_or(1);
    return how;
  };
  llvm::TypeSwitch<Operation *>(from)
      .Case([&](CopyOp) { out.kind = machine::OpKind::Copy; })
      .Case([&](ReduceOp reduce) {
        out.kind = machine::OpKind::Reduce;
        out.combination = combination(reduce, reduce.getKind());
      })
      .Case([&](ComputeOp compute) {
        out.kind = machine::OpKind::Compute;
        out.flops = compute.getFlops().convertToDouble();
        out.bytes = compute.getBytes().convertToDouble();
        out.sms = compute.getSms();
      })
      .Case([&](SignalOp) { out.kind = machine::OpKind::Signal; })
      .Case([&](WaitOp wait) {
        out.kind = machine::OpKind::Wait;
        out.k = regOf(wait.getValue());
      })
      .Case([&](FlushOp) { out.kind = machine::OpKind::Flush; })
      .Case([&](CountOp count) {
        out.kind = machine::OpKind::Count;
        out.countMax = count.getMax();
      })
      .Case([&](SourceOp source) { label(source, machine::OpKind::Source); })
      .Case([&](SinkOp sink) {
        label(sink, machine::OpKind::Sink);
        if (sink.getAmong())
          llvm::append_range(out.among, *sink.getAmong());
        if (sink.getKind())
          out.how = combination(sink, *sink.getKind());
      });
  out.token = define(lane.getDoneToken());
  program.ops.push_back(std::move(out));
  emit({Code::Emit, code::none, code::none, code::none, code::none,
        uint32_t(program.ops.size() - 1)});
  return success();
}

void Compiler::compileEnd(machine::OpKind kind, Operation *at, ValueRange after, Value token) {
  code::Op out;
  out.kind = kind;
  out.location = addLocation(at, "", kind == machine::OpKind::Entry ? "entry" : "exit");
  for (Value value : after)
    out.after.push_back(regOf(value));
  if (token)
    out.token = define(token);
  program.ops.push_back(std::move(out));
  emit({Code::Emit, code::none, code::none, code::none, code::none,
        uint32_t(program.ops.size() - 1)});
}

/// Moves that happen at once: no destination may be overwritten before it is read.
void Compiler::moveAll(ValueRange dests, ValueRange values) {
  bool clash = false;
  for (auto [i, value] : llvm::enumerate(values))
    clash |= llvm::is_contained(dests.take_front(i), value);
  SmallVector<Reg> from;
  for (auto [dest, value] : llvm::zip_equal(dests, values)) {
    if (dest == value)
      continue;
    if (!clash) {
      move(define(dest), value);
      continue;
    }
    from.push_back(isa<TokenType>(value.getType()) ? program.tokens++ : newNumber());
    move(from.back(), value);
  }
  if (!clash)
    return;
  auto next = from.begin();
  for (auto [dest, value] : llvm::zip_equal(dests, values))
    if (dest != value)
      emit({isa<TokenType>(value.getType()) ? Code::MoveToken : Code::Move, define(dest), *next++});
}

LogicalResult Compiler::compileLoop(scf::ForOp loop) {
  ValueRange carried = loop.getRegionIterArgs();
  // The results are the carried values after the last iteration.
  moveAll(carried, loop.getInitArgs());
  for (auto [result, value] : llvm::zip_equal(loop.getResults(), carried))
    regs[result] = regOf(value);
  Reg variable = define(loop.getInductionVar());
  move(variable, loop.getLowerBound());
  uint32_t test = here();
  size_t exit = emit({Code::LoopTest, code::none, variable, regOf(loop.getUpperBound())});
  if (failed(compile(*loop.getBody())))
    return failure();
  moveAll(carried, loop.getYieldedValues());
  emit({Code::LoopStep, variable, regOf(loop.getStep()), code::none, code::none, test});
  program.instrs[exit].aux = here();
  return success();
}

LogicalResult Compiler::compileBranch(scf::IfOp branch) {
  size_t skip = emit({Code::JumpIfZero, code::none, regOf(branch.getCondition())});
  auto side = [&](Block &block) -> LogicalResult {
    if (failed(compile(block)))
      return failure();
    for (auto [result, value] :
         llvm::zip_equal(branch.getResults(), block.getTerminator()->getOperands()))
      move(define(result), value);
    return success();
  };
  if (failed(side(*branch.thenBlock())))
    return failure();
  if (!branch.elseBlock()) {
    program.instrs[skip].aux = here();
    return success();
  }
  size_t end = emit({Code::Jump});
  program.instrs[skip].aux = here();
  if (failed(side(*branch.elseBlock())))
    return failure();
  program.instrs[end].aux = here();
  return success();
}

Reg Compiler::compileExpr(AffineExpr expr, affine::AffineApplyOp apply) {
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return constant(number.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return regOf(apply.getMapOperands()[dim.getPosition()]);
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return regOf(apply.getMapOperands()[apply.getMap().getNumDims() + symbol.getPosition()]);
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Reg left = compileExpr(binary.getLHS(), apply), right = compileExpr(binary.getRHS(), apply);
  Code op = expr.getKind() == AffineExprKind::Add        ? Code::Add
            : expr.getKind() == AffineExprKind::Mul      ? Code::Mul
            : expr.getKind() == AffineExprKind::Mod      ? Code::Mod
            : expr.getKind() == AffineExprKind::FloorDiv ? Code::FloorDiv
                                                         : Code::CeilDiv;
  Reg result = newNumber();
  emit({op, result, left, right});
  return result;
}

static std::optional<Code> codeOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Code>>(op)
      .Case<arith::AddIOp>([](auto) { return Code::Add; })
      .Case<arith::SubIOp>([](auto) { return Code::Sub; })
      .Case<arith::MulIOp>([](auto) { return Code::Mul; })
      .Case<arith::DivSIOp>([](auto) { return Code::DivS; })
      .Case<arith::DivUIOp>([](auto) { return Code::DivU; })
      .Case<arith::CeilDivSIOp>([](auto) { return Code::CeilDiv; })
      .Case<arith::FloorDivSIOp>([](auto) { return Code::FloorDiv; })
      .Case<arith::RemSIOp>([](auto) { return Code::RemS; })
      .Case<arith::RemUIOp>([](auto) { return Code::RemU; })
      .Case<arith::MinSIOp>([](auto) { return Code::MinS; })
      .Case<arith::MaxSIOp>([](auto) { return Code::MaxS; })
      .Case<arith::MinUIOp>([](auto) { return Code::MinU; })
      .Case<arith::MaxUIOp>([](auto) { return Code::MaxU; })
      .Case<arith::AndIOp>([](auto) { return Code::And; })
      .Case<arith::OrIOp>([](auto) { return Code::Or; })
      .Case<arith::XOrIOp>([](auto) { return Code::Xor; })
      .Default(std::nullopt);
}

/// `a predicate b`, with the sides changed where only the other order has a code.
static Instr comparison(arith::CmpIPredicate predicate, Reg dest, Reg a, Reg b) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return {Code::Equal, dest, a, b};
  case P::ne:
    return {Code::NotEqual, dest, a, b};
  case P::slt:
    return {Code::LessS, dest, a, b};
  case P::sle:
    return {Code::LessEqualS, dest, a, b};
  case P::sgt:
    return {Code::LessS, dest, b, a};
  case P::sge:
    return {Code::LessEqualS, dest, b, a};
  case P::ult:
    return {Code::LessU, dest, a, b};
  case P::ule:
    return {Code::LessEqualU, dest, a, b};
  case P::ugt:
    return {Code::LessU, dest, b, a};
  case P::uge:
    return {Code::LessEqualU, dest, b, a};
  }
  return {Code::Equal, dest, a, b};
}

LogicalResult Compiler::compile(Operation &inner) {
  if (auto lane = dyn_cast<ScheduleOpInterface>(inner))
    return compileLaneOp(lane);
  if (auto loop = dyn_cast<scf::ForOp>(inner))
    return compileLoop(loop);
  if (auto branch = dyn_cast<scf::IfOp>(inner))
    return compileBranch(branch);
  if (auto code = codeOf(&inner)) {
    emit({*code, define(inner.getResult(0)), regOf(inner.getOperand(0)),
          regOf(inner.getOperand(1))});
    return success();
  }
  llvm::TypeSwitch<Operation *>(&inner)
      .Case([&](CoordOp coord) { regs[coord.getResult()] = constant(0); })
      .Case([&](ShiftOp shift) {
        emit({Code::Shift, define(shift.getResult()), regOf(shift.getCoord()),
              regOf(shift.getAmount()), code::none, *op.getAxisIndex(shift.getType().getAxis())});
      })
      .Case<CoordValueOp, TableOp>([&](auto value) {
        if (value->use_empty())
          return;
        Instr instr{Code::CoordValue, define(value.getResult()), regOf(value.getCoord())};
        instr.aux = *op.getAxisIndex(value.getCoord().getType().getAxis());
        instr.c = program.reasons.size();
        program.reasons.push_back(asymmetryOf(value));
        if (auto table = dyn_cast<TableOp>(value.getOperation())) {
          instr.code = Code::Table;
          instr.b = program.tables.size();
          program.tables.push_back(table.getValues().vec());
        }
        emit(instr);
      })
      .Case([&](arith::CmpIOp compare) {
        emit(comparison(compare.getPredicate(), define(compare.getResult()),
                        regOf(compare.getLhs()), regOf(compare.getRhs())));
      })
      .Case([&](arith::SelectOp select) {
        bool token = isa<TokenType>(select.getType());
        emit({token ? Code::SelectToken : Code::Select, define(select.getResult()),
              regOf(select.getCondition()), regOf(select.getTrueValue()),
              regOf(select.getFalseValue())});
      })
      .Case([&](affine::AffineApplyOp apply) {
        Reg value = compileExpr(apply.getMap().getResult(0), apply);
        emit({Code::Move, define(apply.getResult()), value});
      });
  return success();
}

LogicalResult Compiler::compile(Block &block) {
  for (Operation &inner : block.without_terminator())
    if (failed(compile(inner)))
      return inner.emitOpError("cannot be read: it does not verify");
  return success();
}

LogicalResult Compiler::run() {
  declare();
  Block &body = op.getBody().front();
  compileEnd(machine::OpKind::Entry, op, {}, op.getEntry());
  if (failed(compile(body)))
    return failure();
  auto end = cast<ReturnOp>(body.getTerminator());
  compileEnd(machine::OpKind::Exit, end, end.getExits(), {});
  return success();
}

FailureOr<std::unique_ptr<machine::Schedule>>
ctran::readSchedule(ProgramOp op, SmallVectorImpl<Operation *> *ops) {
  auto schedule = std::make_unique<ProgramSchedule>();
  Compiler compiler(op, *schedule);
  if (failed(compiler.run()))
    return failure();
  if (ops)
    ops->assign(compiler.locations.begin(), compiler.locations.end());
  return std::unique_ptr<machine::Schedule>(std::move(schedule));
}
