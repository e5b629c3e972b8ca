//===- ScheduleBuilder.cpp - Writing schedules in C++ ---------------------------===//
#include "ncclx/Conversion/ScheduleBuilder.h"
#include "ncclx/CTran/Access.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::ctran;

ScheduleBuilder::ScheduleBuilder(OpBuilder &builder, Location loc, ProgramOp program,
                                 Carrier carrier, StringRef collective)
    : builder(builder), loc(loc), program(program), carrier(carrier), of(str(collective)) {}

//===--- numbers ------------------------------------------------------------------===//

Value ScheduleBuilder::constant(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value ScheduleBuilder::add(Value a, Value b) {
  auto x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(*x + *y);
  if (y && *y == 0)
    return a;
  return arith::AddIOp::create(builder, loc, a, b);
}

Value ScheduleBuilder::sub(Value a, Value b) {
  auto x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(*x - *y);
  if (y && *y == 0)
    return a;
  return arith::SubIOp::create(builder, loc, a, b);
}

Value ScheduleBuilder::rem(Value a, int64_t b) {
  if (auto x = constantOf(a); x && *x >= 0)
    return constant(*x % b);
  return arith::RemSIOp::create(builder, loc, a, constant(b));
}

Value ScheduleBuilder::mul(Value a, int64_t b) {
  if (auto x = constantOf(a))
    return constant(*x * b);
  return b == 1 ? a : arith::MulIOp::create(builder, loc, a, constant(b)).getResult();
}

Value ScheduleBuilder::div(Value a, int64_t b) {
  if (auto x = constantOf(a); x && *x >= 0)
    return constant(*x / b);
  return b == 1 ? a : arith::DivSIOp::create(builder, loc, a, constant(b)).getResult();
}

Value ScheduleBuilder::min(Value a, Value b) {
  auto x = constantOf(a), y = constantOf(b);
  if (x && y)
    return constant(std::min(*x, *y));
  return arith::MinSIOp::create(builder, loc, a, b);
}

Value ScheduleBuilder::equal(Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
}

Value ScheduleBuilder::less(Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b);
}

Value ScheduleBuilder::both(Value a, Value b) { return arith::AndIOp::create(builder, loc, a, b); }

//===--- ranks ----------------------------------------------------------------------===//

StringRef ScheduleBuilder::axisName(unsigned axis) {
  return cast<GridAxisAttr>(program.getGrid()[axis]).getName();
}

Value ScheduleBuilder::own(unsigned axis) {
  StringRef name = axisName(axis);
  return CoordOp::create(builder, loc, CoordType::get(builder.getContext(), name),
                         builder.getStringAttr(name));
}

Value ScheduleBuilder::shift(Value coord, Value by) {
  return ShiftOp::create(builder, loc, coord.getType(), coord, by);
}

Point ScheduleBuilder::neighbour(unsigned axis, int64_t by) {
  Point point;
  point[axis] = shift(own(axis), by);
  return point;
}

Value ScheduleBuilder::at(Value memory, const Point &peer) {
  SmallVector<Value> point;
  for (unsigned axis = 0, e = program.getGrid().size(); axis != e; ++axis) {
    auto it = peer.find(axis);
    point.push_back(it == peer.end() ? own(axis) : it->second);
  }
  return PeerViewOp::create(builder, loc, memory.getType(), memory, point, Value());
}

static ArrayAttr axisNames(ScheduleBuilder &s, ArrayRef<unsigned> axes) {
  SmallVector<StringRef> names;
  for (unsigned axis : axes)
    names.push_back(s.axisName(axis));
  return s.builder.getStrArrayAttr(names);
}

Value ScheduleBuilder::members(Value window, ArrayRef<unsigned> axes) {
  return MembersOp::create(builder, loc, window.getType(), window, axisNames(*this, axes));
}

//===--- memory ---------------------------------------------------------------------===//

DimAttr ScheduleBuilder::boundDim(unsigned axis, Cut cut, int64_t granule) {
  return DimAttr::get(builder.getContext(), axisName(axis), size(axis), cut, granule);
}

DimAttr ScheduleBuilder::freeDim(int64_t size, int64_t granule) {
  return DimAttr::get(builder.getContext(), "", size, Cut::Balanced, granule);
}

// What is memory of the program stands in no branch of it.
static void toProgram(OpBuilder &builder, ProgramOp program) {
  Operation *op = builder.getInsertionBlock()->getParentOp();
  if (op == program)
    return;
  while (op->getParentOp() != program)
    op = op->getParentOp();
  builder.setInsertionPoint(op);
}

Value ScheduleBuilder::scratch(StringRef name, MemRefType type, int64_t generations) {
  OpBuilder::InsertionGuard guard(builder);
  toProgram(builder, program);
  return WindowOp::create(builder, loc, WindowType::get(builder.getContext()), name,
                          WindowRole::Scratch, IntegerAttr(), generations,
                          carrier.loadStore ? PeerAccess::LoadStore : PeerAccess::Put, type);
}

static ArrayAttr dimArray(OpBuilder &builder, ArrayRef<DimAttr> dims) {
  return builder.getArrayAttr(SmallVector<Attribute>(dims.begin(), dims.end()));
}

Value ScheduleBuilder::slots(StringRef name, ArrayRef<DimAttr> dims, int64_t perRun,
                             int64_t generations) {
  OpBuilder::InsertionGuard guard(builder);
  toProgram(builder, program);
  return SlotsOp::create(builder, loc, SlotsType::get(builder.getContext()), name,
                         dimArray(builder, dims), perRun, 1, generations, 0, SlotScope::System,
                         Realisation::Counter);
}

Value ScheduleBuilder::arrivals(StringRef name, ArrayRef<DimAttr> dims) {
  if (!carrier.oneKernel)
    return slots(name, dims, 1);
  OpBuilder::InsertionGuard guard(builder);
  toProgram(builder, program);
  return SlotsOp::create(builder, loc, SlotsType::get(builder.getContext()), name,
                         dimArray(builder, dims), 1, 1, 2, 0, SlotScope::System,
                         Realisation::Inband);
}

Value ScheduleBuilder::reindex(Value window, std::optional<int64_t> along, ArrayRef<DimAttr> dims,
                               bool resident, std::optional<int64_t> extent) {
  return ReindexOp::create(builder, loc, window.getType(), window,
                           along ? builder.getI64IntegerAttr(*along) : IntegerAttr(),
                           dimArray(builder, dims), resident,
                           extent ? builder.getI64IntegerAttr(*extent) : IntegerAttr());
}

Value ScheduleBuilder::range(Value window, ValueRange indices, Value size) {
  return RangeOp::create(builder, loc, RangeType::get(builder.getContext()), window, indices,
                         Value(), Value(), size);
}

Value ScheduleBuilder::interval(Value window, Value first, Value count) {
  return interval(window, ValueRange(), first, count);
}

Value ScheduleBuilder::interval(Value window, ValueRange indices, Value first, Value count) {
  return RangeOp::create(builder, loc, RangeType::get(builder.getContext()), window, indices, first,
                         count, Value());
}

Value ScheduleBuilder::slot(Value slots, ValueRange indices) {
  return SlotOp::create(builder, loc, SlotType::get(builder.getContext()), slots, indices, Value(),
                        Value());
}

Value ScheduleBuilder::slotInterval(Value slots, Value first, Value count) {
  return SlotOp::create(builder, loc, SlotType::get(builder.getContext()), slots, ValueRange(),
                        first, count);
}

//===--- lanes ------------------------------------------------------------------------===//

Value ScheduleBuilder::laneIndex(LaneRef lane) {
  if (block && lane.kind == LaneKind::SM)
    return block;
  return lane.index == 0 ? Value() : constant(lane.index);
}

Value ScheduleBuilder::copy(Value source, ValueRange dests, Value notify, ValueRange after,
                            LaneRef lane, StringRef note) {
  return CopyOp::create(builder, loc, TokenType::get(builder.getContext()), source, dests, notify,
                        after, lane.kind, laneIndex(lane), of, str(note));
}

FloatAttr ScheduleBuilder::scaleAttr(const Combination &how) {
  return how.scale ? builder.getF64FloatAttr(*how.scale) : FloatAttr();
}

IntegerAttr ScheduleBuilder::divideAttr(const Combination &how) {
  return how.divide ? builder.getI64IntegerAttr(*how.divide) : IntegerAttr();
}

Value ScheduleBuilder::reduce(const Combination &how, ValueRange sources, ValueRange dests,
                              ValueRange after, StringRef note) {
  LaneRef lane = reduceLane();
  return ReduceOp::create(builder, loc, TokenType::get(builder.getContext()), how.kind,
                          scaleAttr(how), divideAttr(how), how.accumulate, sources, dests, Value(),
                          after, lane.kind, laneIndex(lane), of, str(note));
}

// The host posts what has that size, so it is the host that must know it.
std::pair<Value, Value> ScheduleBuilder::count(Value range, int64_t max, ValueRange after,
                                               StringRef note) {
  auto op = CountOp::create(builder, loc, SizeType::get(builder.getContext()),
                            TokenType::get(builder.getContext()), range, max, after, LaneKind::Host,
                            laneIndex({LaneKind::Host, carrier.index}), of, str(note));
  return {op.getSize(), op.getDone()};
}

Value ScheduleBuilder::signal(Value slot, ValueRange after, LaneRef lane, StringRef note) {
  return SignalOp::create(builder, loc, TokenType::get(builder.getContext()), slot, after,
                          lane.kind, laneIndex(lane), of, str(note));
}

Value ScheduleBuilder::wait(Value slot, Value value, ValueRange after, LaneRef lane,
                            StringRef note) {
  return WaitOp::create(builder, loc, TokenType::get(builder.getContext()), slot, value, after,
                        lane.kind, laneIndex(lane), of, str(note));
}

// Source and sink carry no code, so they must lend no order to the ops around them: each stands on
// a host lane of its own.
ScheduleBuilder::LaneRef ScheduleBuilder::proofLane() {
  int64_t used = 0;
  program.walk([&](Operation *op) { used += isa<SourceOp, SinkOp>(op); });
  return {LaneKind::Host, (int64_t(1) << 20) + used};
}

Value ScheduleBuilder::source(Value range, StringRef value, ValueRange indices,
                              ArrayRef<unsigned> summed, ValueRange after,
                              ArrayRef<unsigned> shared) {
  LaneRef lane = proofLane();
  return SourceOp::create(builder, loc, TokenType::get(builder.getContext()), value, indices,
                          axisNames(*this, summed), axisNames(*this, shared), range, after,
                          lane.kind, laneIndex(lane), of, str("given"));
}

Value ScheduleBuilder::sink(Value range, StringRef value, ValueRange indices,
                            ArrayRef<unsigned> summed, ValueRange after, ArrayRef<unsigned> shared,
                            ArrayRef<int64_t> among) {
  LaneRef lane = proofLane();
  ReduceKindAttr kind;
  FloatAttr scale;
  IntegerAttr divide;
  if (demanded && !summed.empty()) {
    kind = ReduceKindAttr::get(builder.getContext(), demanded->kind);
    scale = scaleAttr(*demanded);
    divide = divideAttr(*demanded);
  }
  return SinkOp::create(builder, loc, TokenType::get(builder.getContext()), value, indices,
                        axisNames(*this, summed),
                        among.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(among),
                        kind, scale, divide, axisNames(*this, shared), range, after, lane.kind,
                        laneIndex(lane), of, str("demanded"));
}

//===--- words that hide the carrier -----------------------------------------------------===//

Value ScheduleBuilder::put(Value source, Value dest, Value arrived, ValueRange after,
                           StringRef note) {
  FailureOr<SlotRef> slot = resolveSlot(arrived);
  bool inband = succeeded(slot) && slot->slots.getRealisation() == Realisation::Inband;
  if (!carrier.loadStore || inband)
    return copy(source, dest, arrived, after, copyLane(), note);
  // The lane completes in order, so the signal behind the copy is released after it (S17).
  Value copied = copy(source, dest, Value(), after, copyLane(), note);
  return signal(arrived, copied, copyLane(), "arrived");
}

Value ScheduleBuilder::arrive(Value slot, Value value, ValueRange after, StringRef note) {
  Value waited = wait(slot, value, after, controlLane(), note);
  if (carrier.loadStore)
    return waited;
  LaneRef lane = controlLane();
  return FlushOp::create(builder, loc, TokenType::get(builder.getContext()), waited, lane.kind,
                         laneIndex(lane), of, str("flush"));
}

Value ScheduleBuilder::ready(Value slot, ValueRange after, StringRef note) {
  return signal(slot, after, controlLane(), note);
}

Value ScheduleBuilder::awaitReady(Value slot, Value value, ValueRange after, StringRef note) {
  return wait(slot, value, after, copyLane(), note);
}

//===--- loops ------------------------------------------------------------------------------===//

Value ScheduleBuilder::loop(int64_t lower, int64_t upper, Value token,
                            llvm::function_ref<Value(Value, Value)> body) {
  if (lower >= upper)
    return token;
  return loop(constant(lower), constant(upper), token, body);
}

Value ScheduleBuilder::loop(Value lower, Value upper, Value token,
                            llvm::function_ref<Value(Value, Value)> body) {
  auto loop = scf::ForOp::create(builder, loc, lower, upper, constant(1), token);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value next = body(loop.getInductionVar(), loop.getRegionIterArg(0));
  scf::YieldOp::create(builder, loc, next);
  return loop.getResult(0);
}

Value ScheduleBuilder::rounds(int64_t first, int64_t count, Value token,
                              llvm::function_ref<Value(Value)> next,
                              llvm::function_ref<Value(Value, Value, Value)> body) {
  if (count == 0)
    return token;
  if (unrolled) {
    Value d = constant(first);
    for (int64_t round = 0; round < count; ++round, d = next(d))
      token = body(d, constant(round), token);
    return token;
  }
  auto loop = scf::ForOp::create(builder, loc, constant(0), constant(count), constant(1),
                                 ValueRange{token, constant(first)});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value d = loop.getRegionIterArg(1);
  Value done = body(d, loop.getInductionVar(), loop.getRegionIterArg(0));
  scf::YieldOp::create(builder, loc, ValueRange{done, next(d)});
  return loop.getResult(0);
}

Value ScheduleBuilder::doubling(int64_t n, Value token,
                                llvm::function_ref<Value(Value, Value, Value)> body) {
  return rounds(1, llvm::Log2_64_Ceil(n), token, [&](Value d) { return add(d, d); }, body);
}

Value ScheduleBuilder::halving(int64_t n, Value token,
                               llvm::function_ref<Value(Value, Value, Value)> body) {
  int64_t count = llvm::Log2_64_Ceil(n);
  return rounds(
      count ? int64_t(1) << (count - 1) : 0, count, token, [&](Value d) { return div(d, 2); },
      body);
}

Value ScheduleBuilder::branch(Value condition, llvm::function_ref<Value()> then,
                              llvm::function_ref<Value()> otherwise) {
  auto branch = scf::IfOp::create(builder, loc, TokenType::get(builder.getContext()), condition,
                                  /*withElseRegion=*/true);
  auto fill = [&](Region &region, llvm::function_ref<Value()> body) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&region.front());
    Value token = body();
    scf::YieldOp::create(builder, loc, token);
  };
  fill(branch.getThenRegion(), then);
  fill(branch.getElseRegion(), otherwise);
  return branch.getResult(0);
}

Value ScheduleBuilder::onLane(int64_t number, llvm::function_ref<Value()> body) {
  llvm::SaveAndRestore<int64_t> index(carrier.index);
  if (number)
    carrier.index = carrier.lane(number);
  return body();
}

// The members other than this one, each once, by how far they are from it, row-major. A loop for
// each lane, so that the text does not depend on what is left over.
Point ScheduleBuilder::memberBy(ArrayRef<unsigned> axes, Value distance) {
  Point point;
  int64_t below = 1;
  for (auto [i, axis] : llvm::enumerate(llvm::reverse(axes))) {
    Value by = div(distance, below);
    below *= size(axis);
    point[axis] = shift(own(axis), i + 1 == axes.size() ? by : rem(by, size(axis)));
  }
  return point;
}

SmallVector<Value>
ScheduleBuilder::forEachPeerInTurn(ArrayRef<unsigned> axes, Value token,
                                   llvm::function_ref<Value(const Point &, Value)> body,
                                   int64_t first) {
  int64_t members = 1;
  for (unsigned axis : axes)
    members *= size(axis);
  auto at = [&](Value distance, Value before) { return body(memberBy(axes, distance), before); };
  int64_t lanes = std::clamp<int64_t>(members - 1, 1, carrier.lanes);
  SmallVector<Value> tokens;
  for (int64_t turn = 0; turn < lanes; ++turn) {
    Value done = onLane(first + turn, [&]() -> Value {
      if (lanes == 1)
        return loop(1, members, token, at);
      int64_t count = llvm::divideCeil(members - 1 - turn, lanes);
      return loop(0, count, token, [&](Value round, Value before) {
        return at(add(mul(round, lanes), 1 + turn), before);
      });
    });
    if (tokens.empty() || done != token)
      tokens.push_back(done);
  }
  return tokens;
}

Value ScheduleBuilder::forEachPeer(ArrayRef<unsigned> axes, Value token,
                                   llvm::function_ref<Value(const Point &, Value)> body) {
  llvm::SaveAndRestore<int64_t> one(carrier.lanes, 1);
  return forEachPeerInTurn(axes, token, body).front();
}
