//===- Written.cpp - A collective carried by a program that a user wrote ------------------===//
//
// The program's body is copied to where the collective stands. Its windows become the collective's
// buffers, its axes the group's, and its entry a token after which the input is ready and the
// output free. What it says of its boxes is dropped: what the collective gives and demands is said
// in the collective's own cuts, so that the proof is of the collective and not of what the program
// claims.
//
//===--------------------------------------------------------------------------------------===//
#include "Algorithms.h"
#include "ncclx/CTran/Access.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ctran;
using Route = ncclx::Dataflow::Route;

namespace {

/// Calls fn(op) with the concrete op where it is one that a lane executes.
template <typename Fn> void forLaneOp(Operation *op, Fn fn) {
  llvm::TypeSwitch<Operation *>(op)
      .Case<CopyOp, ReduceOp, ComputeOp, SignalOp, WaitOp, FlushOp, CountOp, SourceOp, SinkOp>(fn);
}

class Written {
public:
  Written(ScheduleBuilder &s, const CollectiveSpec &c, Operation *op, ProgramOp program)
      : s(s), c(c), op(op), program(program) {}

  LogicalResult check();
  FailureOr<InFlight> copy();

private:
  ScheduleBuilder &s;
  CollectiveSpec c;
  Operation *op;
  ProgramOp program;
  WindowOp input, output;
  Views views;
  IRMapping map;
  SmallVector<Operation *> labels;  ///< copies of what the program says of its boxes
  SmallVector<Operation *> regions; ///< inner ones first

  LogicalResult refuse(const Twine &why) {
    InFlightDiagnostic diag = op->emitOpError("names the schedule @")
                              << program.getSymName() << ", which " << why;
    diag.attachNote(program.getLoc()) << "the schedule";
    return diag;
  }
  LogicalResult checkGrid();
  LogicalResult checkWindows();
  LogicalResult checkViews(WindowOp window, Value buffer, Value &view);
  bool cutsAlike(const machine::Space &own, const machine::Space &wanted);
  Value source(ValueRange after);
  Value demand(ValueRange ready);
  void adapt(Operation *copy);
  void adaptView(PeerViewOp view);
  ArrayAttr rename(ArrayAttr dims);
  LogicalResult dropLabels(Value start, SmallVectorImpl<Value> &exits);
  LogicalResult replaceToken(Value token, ArrayRef<Value> by, Operation *label,
                             SmallVectorImpl<Value> &exits);
};

} // namespace

//===--- does it fit? -----------------------------------------------------------------------===//

LogicalResult Written::checkGrid() {
  SmallVector<int64_t> own, wanted;
  for (unsigned axis = 0; axis < program.getGrid().size(); ++axis)
    own.push_back(program.getAxisSize(axis));
  for (unsigned axis : c.axes)
    wanted.push_back(s.size(axis));
  if (own == wanted)
    return success();
  auto text = [](ArrayRef<int64_t> sizes) {
    std::string out;
    llvm::raw_string_ostream os(out);
    llvm::interleaveComma(sizes, os);
    return "[" + out + "]";
  };
  return refuse("has a grid of " + text(own) + ", but the group's axes are " + text(wanted));
}

LogicalResult Written::checkWindows() {
  bool sums = false;
  program.walk([&](ReduceOp reduce) {
    sums |= isa<FloatType>(reduce.getAccumulate()) && isInNetwork(reduce);
  });
  if (sums)
    return refuse("adds floats through a switch, in an order that no graph names");
  for (auto window : program.getBody().front().getOps<WindowOp>()) {
    WindowRole role = window.getRole();
    if (!s.carrier.loadStore && window.getPeers() == PeerAccess::LoadStore)
      return refuse("reaches window \"" + window.getSym() +
                    "\" of a peer by load and store, but here peers are reached by puts alone");
    if (role == WindowRole::Scratch)
      continue;
    bool in = role != WindowRole::Output, out = role != WindowRole::Input;
    if ((in && input) || (out && output))
      return refuse("has a second input or output \"" + window.getSym() +
                    "\"; a collective has one of each");
    if (in)
      input = window;
    if (out)
      output = window;
  }
  if (!input || !output)
    return refuse(Twine("has no ") + (input ? "output" : "input"));
  if ((input == output) != (c.in == c.out))
    return refuse(input == output ? "works in place, but the collective has two buffers"
                                  : "has two buffers, but the collective works in place");
  for (auto [window, type, what] :
       {std::tuple(input, c.inType, "input"), std::tuple(output, c.outType, "output")}) {
    auto own = cast<MemRefType>(window.getType());
    bool flat = own.getRank() == 1 && own.getElementType() == type.getElementType() &&
                own.getNumElements() == type.getNumElements();
    if (own == type || flat)
      continue;
    std::string types;
    llvm::raw_string_ostream(types) << own << ", but the collective's " << what << " is " << type;
    return refuse("has window \"" + window.getSym() + "\" of " + types +
                  " (or as many elements in one row)");
  }
  return success();
}

/// Do the outermost dimensions of `own` cut the same bytes as all of `wanted`?
bool Written::cutsAlike(const machine::Space &own, const machine::Space &wanted) {
  size_t depth = wanted.dims.size();
  if (own.dims.size() < depth)
    return false;
  int64_t pieces = 1;
  for (size_t i = 0; i < depth; ++i) {
    if (own.dims[i].axis != std::optional<unsigned>(i) || own.dims[i].size != wanted.dims[i].size)
      return false;
    pieces *= wanted.dims[i].size;
  }
  for (int64_t piece = 0; piece < pieces; ++piece) {
    std::vector<int64_t> path(depth);
    int64_t rest = piece;
    for (size_t i = depth; i-- > 0; rest /= wanted.dims[i].size)
      path[i] = rest % wanted.dims[i].size;
    machine::ByteBox a = own.locate(path), b = wanted.locate(path);
    if (a.bytes() != b.bytes() || (a.bytes() != 0 && a.offset != b.offset))
      return false;
  }
  return true;
}

// A label names a piece by its place in a cut. So that place means the same here and there, the
// program cuts a buffer as the collective does (and further, if it likes); a buffer that the
// collective does not cut, in any way that keeps its rows together.
LogicalResult Written::checkViews(WindowOp window, Value buffer, Value &view) {
  auto canonical = view.getDefiningOp<ReindexOp>();
  FailureOr<machine::Space> wanted =
      spaceOf({buffer.getDefiningOp<WindowOp>(), canonical, PeerViewOp()});
  if (failed(wanted))
    return failure();
  bool isCut = !wanted->dims.empty() && !wanted->resident;
  bool summed = c.flow.combines && c.flow.route == Route::All && !c.flow.inCut;
  ReindexOp first;
  WalkResult walked = program.walk([&](ReindexOp reindex) {
    FailureOr<WindowRef> ref = resolveWindow(reindex.getResult());
    if (failed(ref) || ref->window != window)
      return WalkResult::advance();
    FailureOr<machine::Space> own = spaceOf({window, reindex, PeerViewOp()});
    if (failed(own))
      return WalkResult::advance();
    if (own->rows != wanted->rows || (own->resident && !wanted->resident) ||
        (isCut && !summed && !cutsAlike(*own, *wanted))) {
      InFlightDiagnostic diag = op->emitOpError("names the schedule @")
                                << program.getSymName() << ", which cuts window \""
                                << window.getSym() << "\" in another way than the collective";
      diag.attachNote(reindex.getLoc()) << "it is cut here";
      return WalkResult::interrupt();
    }
    if (!first && !reindex.getWindow().getDefiningOp<PeerViewOp>())
      first = reindex;
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  if (isCut && first) {
    Operation *own = s.builder.clone(*first, map);
    adapt(own);
    view = own->getResult(0);
  }
  return success();
}

LogicalResult Written::check() {
  if (!c.groups.empty())
    return refuse("runs along axes, and no axes span the collective's groups");
  if (c.flow.isCounted() || (c.flow.route == Route::Listed && c.zero))
    return refuse("cannot carry it: the compiler alone writes " +
                  Twine(c.flow.isCounted() ? "exchanges by counts" : "permutes by pairs"));
  StringRef kind = op->getName().stripDialect();
  auto claims = program.getCollectives().getAsRange<CollectiveAttr>();
  if (program.getCollectives().size() == 1 && (*claims.begin()).getKind() != kind)
    return refuse("says that it carries " + (*claims.begin()).getKind());
  if (program.getRxVisible() && !s.program.getRxVisible())
    return refuse("is written for memory where arriving bytes need no flush (rx_visible)");
  return failure(failed(checkGrid()) || failed(checkWindows()));
}

//===--- what it is given, and what it must leave ---------------------------------------------===//

Value Written::source(ValueRange after) {
  if (c.flow.route == Route::FromRoot || c.flow.route == Route::ToRoot) {
    c.inReady.assign(after.begin(), after.end());
    Members members(s, c.axes);
    return sourceRooted(s, c, views, members);
  }
  if (c.flow.combines)
    return s.source(s.range(views.in), c.name, {}, c.axes, after);
  SmallVector<Value> own = ownPoint(s, c.axes);
  bool shard = c.flow.outCut && !c.flow.inCut;
  return s.source(shard ? s.range(views.in, own) : s.range(views.in), c.name, own, {}, after);
}

Value Written::demand(ValueRange ready) {
  SmallVector<Value> own = ownPoint(s, c.axes);
  switch (c.flow.route) {
  case Route::FromRoot:
  case Route::ToRoot: {
    Members members(s, c.axes);
    auto demanded = [&] { return demandRooted(s, c, views, members, ready); };
    if (c.flow.route == Route::FromRoot)
      return demanded();
    return s.branch(s.equal(members.own(), s.constant(c.root)), demanded,
                    [&] { return c.zero(s, ready); });
  }
  case Route::Listed: {
    int64_t n = s.size(c.axes.front());
    Point from = s.neighbour(c.axes.front(), ((-c.shift) % n + n) % n);
    return s.sink(s.range(views.out), c.name, pointOf(s, c.axes, from), {}, ready);
  }
  case Route::All:
    break;
  }
  if (!c.flow.combines)
    return demandExchanged(s, c, views.out, ready);
  return c.flow.inCut ? s.sink(s.range(views.out, own), c.name, own, c.axes, ready)
                      : s.sink(s.range(views.out), c.name, {}, c.axes, ready);
}

//===--- copying ------------------------------------------------------------------------------===//

/// The program's axis i is the group's.
ArrayAttr Written::rename(ArrayAttr dims) {
  SmallVector<Attribute> renamed;
  for (auto dim : dims.getAsRange<DimAttr>()) {
    StringRef axis = dim.getAxis();
    if (!axis.empty())
      axis = s.axisName(c.axes[*program.getAxisIndex(axis)]);
    renamed.push_back(
        DimAttr::get(dim.getContext(), axis, dim.getSize(), dim.getCut(), dim.getGranule()));
  }
  return ArrayAttr::get(program.getContext(), renamed);
}

void Written::adaptView(PeerViewOp view) {
  OpBuilder::InsertionGuard guard(s.builder);
  s.builder.setInsertionPoint(view);
  if (Value rank = view.getRank()) {
    view.getRankMutable().assign(Members(s, c.axes).rank(rank));
    return;
  }
  SmallVector<Value> given(view.getPoint()), point;
  for (unsigned axis = 0, e = s.program.getGrid().size(); axis != e; ++axis) {
    auto listed = llvm::find(c.axes, axis);
    point.push_back(listed == c.axes.end() ? s.own(axis) : given[listed - c.axes.begin()]);
  }
  view.getPointMutable().assign(point);
}

void Written::adapt(Operation *copy) {
  MLIRContext *context = copy->getContext();
  auto named = [&](StringRef name) { return StringAttr::get(context, c.name + "." + name.str()); };
  llvm::TypeSwitch<Operation *>(copy)
      .Case([&](CoordOp coord) {
        StringRef axis = s.axisName(c.axes[*program.getAxisIndex(coord.getAxis())]);
        coord.setAxis(axis);
        coord.getResult().setType(CoordType::get(context, axis));
      })
      .Case([&](ShiftOp shift) { shift.getResult().setType(shift.getCoord().getType()); })
      .Case([&](WindowOp window) { window.setSymAttr(named(window.getSym())); })
      .Case([&](SlotsOp slots) {
        slots.setSymAttr(named(slots.getSym()));
        slots.setDimsAttr(rename(slots.getDims()));
      })
      .Case([&](ReindexOp reindex) {
        reindex.setDimsAttr(rename(reindex.getDims()));
        // One row here may be several there.
        FailureOr<WindowRef> ref = resolveWindow(reindex.getResult());
        if (succeeded(ref) && reindex.getAlong() == 0 &&
            (ref->window == c.in.getDefiningOp() || ref->window == c.out.getDefiningOp()) &&
            cast<MemRefType>((ref->window == c.in.getDefiningOp() ? input : output).getType())
                    .getRank() == 1)
          reindex.removeAlongAttr();
      })
      .Case([&](MembersOp members) {
        SmallVector<StringRef> axes;
        for (auto axis : members.getAxes().getAsRange<StringAttr>())
          axes.push_back(s.axisName(c.axes[*program.getAxisIndex(axis)]));
        members.setAxesAttr(s.builder.getStrArrayAttr(axes));
      })
      .Case([&](PeerViewOp view) { adaptView(view); });
  forLaneOp(copy, [&](auto lane) {
    lane.setOf(c.name);
    if (s.carrier.index) {
      OpBuilder::InsertionGuard guard(s.builder);
      s.builder.setInsertionPoint(lane);
      Value index = lane.getLaneIndex() ? lane.getLaneIndex() : s.constant(0);
      // Far from the lanes of what else is in flight.
      lane.getLaneIndexMutable().assign(s.add(index, s.carrier.index * 64));
    }
  });
  if (isa<SourceOp, SinkOp>(copy))
    labels.push_back(copy);
  if (isa<scf::ForOp, scf::IfOp>(copy))
    regions.push_back(copy);
}

/// Whoever waits for a label waits for what it waits for.
LogicalResult Written::dropLabels(Value start, SmallVectorImpl<Value> &exits) {
  for (Operation *label : labels) {
    SmallVector<Value> before;
    forLaneOp(label,
              [&](auto lane) { before.assign(lane.getAfter().begin(), lane.getAfter().end()); });
    if (before.empty())
      before.push_back(start);
    if (failed(replaceToken(label->getResult(0), before, label, exits)))
      return failure();
    label->erase();
  }
  for (Operation *region : regions) { // inner ones first
    bool isEmpty = llvm::all_of(region->getResultTypes(), llvm::IsaPred<TokenType>);
    region->walk([&](ScheduleOpInterface) { isEmpty = false; });
    if (!isEmpty)
      continue;
    for (OpResult result : region->getResults()) {
      unsigned i = result.getResultNumber();
      SmallVector<Value> given;
      if (auto loop = dyn_cast<scf::ForOp>(region))
        given.push_back(loop.getInitArgs()[i]);
      else
        for (Region &way : region->getRegions())
          given = joined(given, way.front().getTerminator()->getOperand(i));
      if (failed(replaceToken(result, given, region, exits)))
        return failure();
    }
    region->erase();
  }
  return success();
}

/// Whoever waits for `token` waits for those of `by`, of which it may be one itself.
LogicalResult Written::replaceToken(Value token, ArrayRef<Value> by, Operation *label,
                                    SmallVectorImpl<Value> &exits) {
  auto expand = [&](ValueRange tokens) {
    SmallVector<Value> out;
    for (Value value : tokens)
      out = joined(out, value == token ? ValueRange(by) : ValueRange(value));
    return out;
  };
  exits = expand(exits);
  for (OpOperand &use : llvm::make_early_inc_range(token.getUses())) {
    Operation *user = use.getOwner();
    bool isLane = false;
    forLaneOp(user, [&](auto lane) {
      lane.getAfterMutable().assign(expand(lane.getAfter()));
      isLane = true;
    });
    if (isLane)
      continue;
    if (by.size() == 1) {
      use.set(by.front());
      continue;
    }
    // One token goes on into a loop or out of a region; the others are there for whoever waits.
    auto loop = dyn_cast<scf::ForOp>(user);
    Operation *region = loop ? loop : isa<scf::YieldOp>(user) ? user->getParentOp() : nullptr;
    unsigned i = use.getOperandNumber();
    if (loop)
      i -= loop.getNumControlOperands();
    else
      loop = dyn_cast_or_null<scf::ForOp>(region);
    if (loop && token == loop.getRegionIterArg(i) && region != user)
      continue; // it goes round as it is
    SmallVector<Value> inner, outer;
    for (Value value : by)
      (region && region->isAncestor(value.getParentBlock()->getParentOp()) ? inner : outer)
          .push_back(value);
    if (!isa_and_nonnull<scf::ForOp, scf::IfOp>(region) || inner.size() > 1) {
      InFlightDiagnostic diag = op->emitOpError("names the schedule @")
                                << program.getSymName() << ", which hands on a token of "
                                << by.size() << " others by '" << user->getName() << "'";
      diag.attachNote(label->getLoc()) << "it is made here";
      return diag;
    }
    use.set(inner.empty() ? outer.front() : inner.front());
    SmallVector<Value> handed = {region->getResult(i)};
    if (loop)
      handed.push_back(loop.getRegionIterArg(i));
    for (Value value : handed)
      if (failed(replaceToken(value, joined(value, outer), label, exits)))
        return failure();
  }
  return success();
}

FailureOr<InFlight> Written::copy() {
  map.map(input.getResult(), c.in);
  map.map(output.getResult(), c.out);
  views = makeViews(s, c);
  if (failed(checkViews(input, c.in, views.in)))
    return failure();
  if (input == output)
    views.out = views.in;
  else if (failed(checkViews(output, c.out, views.out)))
    return failure();
  Value start = source(joined(c.inReady, c.outFree));
  map.map(program.getEntry(), start);
  Block &body = program.getBody().front();
  for (Operation &inner : body.without_terminator())
    if (&inner != input && &inner != output)
      s.builder.clone(inner, map)->walk([&](Operation *copy) { adapt(copy); });
  SmallVector<Value> exits;
  for (Value exit : body.getTerminator()->getOperands())
    exits = joined(exits, map.lookup(exit));
  if (failed(dropLabels(start, exits)))
    return failure();
  if (exits.empty())
    exits.push_back(start);
  InFlight flight;
  flight.inFree = exits;
  exits.push_back(demand(exits));
  flight.finish = [exits]() { return exits; };
  return flight;
}

FailureOr<InFlight> ctran::emitWritten(ScheduleBuilder &s, const CollectiveSpec &c, Operation *op,
                                       ProgramOp program) {
  Written written(s, c, op, program);
  if (failed(written.check()))
    return failure();
  return written.copy();
}
