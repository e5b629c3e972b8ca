//===- Collectives.cpp - Collectives become copies, reductions and signals -----------------===//
#include "Converter.h"
#include "Kernels.h"
#include "TakeSized.h"

#include "ncclx/Conversion/Passes.h"
#include "ncclx/NCCLX/Hints.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::ncclx;

static ctran::ReduceKind kindOf(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum:
  case ReductionKind::Avg: // a sum, divided at the end
    return ctran::ReduceKind::Sum;
  case ReductionKind::Min:
    return ctran::ReduceKind::Min;
  case ReductionKind::Max:
    return ctran::ReduceKind::Max;
  case ReductionKind::Prod:
    return ctran::ReduceKind::Prod;
  }
  llvm_unreachable("all kinds are handled");
}

void Converter::describe(CollectiveOpInterface op, ctran::CollectiveSpec &spec) {
  StringRef word = op->getName().stripDialect();
  spec.name = (word + "." + std::to_string(numbers[word]++)).str();
  spec.axes = grid->axesOf(op);
  if (spec.axes.empty())
    spec.groups = lookupGrid(op).getGroups(op.getAxes(), op.getGroupsAttr());
  spec.inType = cast<MemRefType>(op.getInputType());
  spec.outType = cast<MemRefType>(op.getOutputType());
  spec.flow = op.getDataflow();
  spec.root = getRoot(op).value_or(0);
  spec.pipeline = Pipeline::of(op);
  if (auto trees = op->getAttrOfType<DictionaryAttr>(treesAttrName))
    spec.treeSetting = TreeSetting::of(trees);
  if (spec.flow.fillsZeros() || spec.flow.isCounted() || !spec.groups.empty()) {
    Value dest = op.getDest();
    spec.zero = [this, dest](ctran::ScheduleBuilder &s, ValueRange after) {
      return addZero(s, dest, after);
    };
  }
  if (spec.flow.combines) {
    auto kind = op->getAttrOfType<ReductionKindAttr>("kind").getValue();
    spec.combination = {kindOf(kind), op->getAttrOfType<TypeAttr>("accumulate").getValue()};
    if (auto scale = op->getAttrOfType<FloatAttr>("scale"))
      spec.combination.scale = scale.getValueAsDouble();
    if (kind == ReductionKind::Avg)
      spec.combination.divide = getGroupSize(op);
  }
  if (auto permute = dyn_cast<PermuteOp>(*op)) {
    spec.shift = permute.getShift().value_or(0);
    if (permute.getShift() && spec.axes.size() <= 1) {
      spec.zero = nullptr;
    } else if (permute.getShift()) { // along several axes at once
      int64_t n = getGroupSize(op);
      for (int64_t member = 0; member < n; ++member)
        spec.pairs.push_back({member, *permute.getTarget(member, n)});
    } else {
      ArrayRef<int64_t> flat = *permute.getPairs();
      for (size_t i = 0; i + 1 < flat.size(); i += 2)
        spec.pairs.push_back({flat[i], flat[i + 1]});
    }
  }
}

SmallVector<StringAttr> Converter::namesOf(ArrayRef<unsigned> axes) {
  SmallVector<StringAttr> names;
  for (unsigned axis : axes)
    names.push_back(b.getStringAttr(grid->axes()[axis].name));
  if (axes.empty()) // groups that no axes span reach over all of them
    for (const ProgramGrid::Axis &axis : grid->axes())
      names.push_back(b.getStringAttr(axis.name));
  return names;
}

static ctran::InFlight emit(Algorithm algorithm, ctran::ScheduleBuilder &s,
                            const ctran::CollectiveSpec &spec) {
  switch (algorithm) {
  case Algorithm::Direct:
    return ctran::emitDirect(s, spec);
  case Algorithm::Ring:
    return ctran::emitRing(s, spec);
  case Algorithm::Bruck:
    return ctran::emitBruck(s, spec);
  case Algorithm::Binomial:
    return ctran::emitBinomial(s, spec);
  case Algorithm::Eager:
    return ctran::emitEager(s, spec);
  case Algorithm::Trees:
    return ctran::emitTrees(s, spec);
  case Algorithm::Routed:
    return ctran::emitRouted(s, spec);
  case Algorithm::Hierarchical:
    return ctran::emitHierarchical(s, spec);
  case Algorithm::Switch:
    return ctran::emitSwitch(s, spec);
  }
  llvm_unreachable("all algorithms are handled");
}

/// Where the result is first needed as a whole.
static Operation *awaitOf(CollectiveOpInterface op) {
  if (!op.isAsync())
    return op;
  for (Operation *user : op.getToken().getUsers())
    if (isa<FinishOp>(user))
      return user;
  return nullptr;
}

/// Whether a kernel of the graph stands between the start of a collective and its await.
static bool runsBesideKernel(CollectiveOpInterface op) {
  Operation *end = awaitOf(op);
  for (Operation *next = op->getNextNode(); end && next && next != end; next = next->getNextNode())
    if (isa<CallOp>(next) ||
        (!endsKernel(next) && !isScaffold(next) && !isa<memref::AllocOp, memref::DeallocOp>(next)))
      return op.isAsync();
  return false;
}

/// Two collectives of one group that are under way together would each get half of the links, and
/// the one that is needed first would come as late as the other. So it has them to itself, and the
/// other asks its peers meanwhile. Where what starts later is needed first, they share.
SmallVector<Value> Converter::turnOf(const Transfer &transfer) const {
  for (const Transfer &before : llvm::reverse(transfers)) {
    if (before.axes != transfer.axes || !before.awaited)
      continue;
    if (before.lane == transfer.lane) // which completes in order
      return {};
    if (!transfer.awaited || before.awaited->isBeforeInBlock(transfer.awaited))
      return before.sent;
  }
  return {};
}

LogicalResult Converter::convertCollective(CollectiveOpInterface op) {
  ctran::ProgramOp written = getSchedule(op);
  Algorithm algorithm = op.getAlgorithm().value_or(Algorithm::Direct);
  StringRef carriedBy = written ? written.getSymName() : stringifyAlgorithm(algorithm);
  auto s = std::make_unique<Started>();
  describe(op, s->spec);
  if (std::optional<std::string> why =
          written ? std::nullopt : whyNot(op, algorithm, s->spec.axes.size()))
    return op->emitOpError("asks for ") << stringifyAlgorithm(algorithm) << ", but " << *why;
  if (!written && algorithm == Algorithm::Trees && failed(packTrees(op, s->spec)))
    return failure();
  if (!written && algorithm == Algorithm::Routed && failed(route(op, s->spec)))
    return failure();
  if (!written && algorithm == Algorithm::Switch && failed(findSwitch(op, s->spec)))
    return failure();
  if (!written && algorithm == Algorithm::Hierarchical && failed(layTiers(op, s->spec)))
    return failure();
  bool streams = algorithm == Algorithm::Bruck || (algorithm == Algorithm::Ring && getRoot(op));
  if (!written && streams && !s->spec.pipeline.chunks)
    s->spec.link = slowestLink(op);
  s->inRoot = op.getInput();
  s->outRoot = op.getDest();
  s->spec.in = buffers[s->inRoot].window;
  s->spec.out = buffers[s->outRoot].window;
  s->spec.inReady = readyTokens(s->inRoot);
  Value sizes = op.getSizes();
  if (sizes) {
    s->spec.sizes = buffers[sizes].window;
    s->spec.inReady = ctran::joined(s->spec.inReady, readyTokens(sizes));
  }
  s->spec.outFree = freeTokens(s->outRoot);
  if (scratchLimit >= 0)
    s->spec.scratchLeft = std::max<int64_t>(0, scratchLimit - scratchTaken());
  ctran::Carrier carrier{loadStore, op.isAsync() ? 1 + asyncs++ % 4 : 0, oneKernel};
  if (trees && loadStore && !oneKernel) {
    carrier.lanes = trees->copyLanes();
    carrier.sumSecondsPerByte = trees->sumSecondsPerByte();
  }
  ctran::ScheduleBuilder builder(b, op.getLoc(), program, carrier, s->spec.name);
  if (s->spec.flow.combines)
    builder.demanded = s->spec.combination;
  builder.unrolled = !s->spec.groups.empty();
  for (unsigned axis : s->spec.axes)
    s->sizes.push_back(program.getAxisSize(axis));
  Transfer transfer{s->spec.axes, carrier.index, awaitOf(op), {}};
  // Links are slower than memory, and what takes them no longer than another lane takes to start
  // needs no turn.
  bool takesTurns = false;
  if (carrier.sumSecondsPerByte > 0 && s->spec.groups.empty()) {
    int64_t bytes = ctran::capacityOf(builder, s->spec) *
                    llvm::divideCeil(s->spec.inType.getElementTypeBitWidth(), 8);
    takesTurns = 2 * double(bytes) * carrier.sumSecondsPerByte > ctran::stepSeconds;
  }
  if (takesTurns)
    s->spec.turn = turnOf(transfer);
  // The blocks of a kernel beside it keep their multiprocessors to its end (as products on H200 do,
  // test/Bench/cuda), and sums run behind it: one takes less than several.
  if (s->spec.flow.combines && s->spec.flow.inCut && runsBesideKernel(op))
    builder.carrier.sumSecondsPerByte = 0;
  if (written) {
    FailureOr<ctran::InFlight> flight = ctran::emitWritten(builder, s->spec, op, written);
    if (failed(flight))
      return failure();
    s->flight = std::move(*flight);
  } else if (oneKernel && algorithm == Algorithm::Direct && isAlone(op) && !whyNotInBlocks(op)) {
    // Fewer bytes of a piece are not worth a block (as measured on H200, test/Bench/cuda), and each
    // has a multiprocessor of its own.
    constexpr int64_t bytesOfBlock = 16 << 10;
    int64_t bytes = ctran::capacityOf(builder, s->spec) *
                    llvm::divideCeil(s->spec.inType.getElementTypeBitWidth(), 8);
    builder.carrier.blocks = blocks ? blocks
                                    : std::clamp<int64_t>(llvm::divideCeil(bytes, bytesOfBlock), 1,
                                                          std::max<int64_t>(1, mostBlocks));
    s->flight = ctran::emitInBlocks(builder, s->spec);
  } else if (s->spec.flow.sized && s->spec.groups.empty() && loadStore &&
             (oneKernel || function->getParentOfType<ModuleOp>()->hasAttr(kDeviceSizesAttrName))) {
    s->flight = ctran::takeSized(builder, s->spec);
  } else {
    s->flight = emit(algorithm, builder, s->spec);
  }

  if (!measured)
    tellUnfollowed(op, carriedBy, s->spec, builder);

  transfer.sent = s->flight.sent;
  if (takesTurns && !transfer.sent.empty())
    transfers.push_back(std::move(transfer));

  SmallVector<StringAttr> axes = namesOf(s->spec.axes);
  collectives.push_back(ctran::CollectiveAttr::get(b.getContext(), s->spec.name,
                                                   op->getName().stripDialect(), carriedBy, axes,
                                                   op.getPayloadBytes()));
  Buffer &in = buffers[s->inRoot];
  in.readers = ctran::joined(in.readers, s->flight.inFree);
  if (sizes) // read before what they are the sizes of is sent
    buffers[sizes].readers = ctran::joined(buffers[sizes].readers, s->flight.inFree);
  if (!op.isAsync()) {
    finish(*s);
    return success();
  }
  started[op.getToken()] = std::move(s);
  return success();
}

void Converter::finish(Started &s) {
  Buffer &out = buffers[s.outRoot];
  out.writers = s.flight.finish();
  // The output's own part may still be on its way to the other members.
  out.readers = s.flight.others;
  // What the input's readers were is still so; in place, the output's new value follows them.
  if (s.inRoot == s.outRoot)
    out.readers = ctran::joined(out.readers, s.flight.inFree);
}

LogicalResult Converter::convertChunk(FinishChunkOp op) {
  Started &s = *started[op.getToken()];
  std::optional<int64_t> chunk = getConstantIntValue(op.getChunk());
  if (!chunk)
    return op.emitOpError(
        "waits for a chunk whose number is not a constant, which is not lowered yet");
  Value ready;
  if (s.flight.chunk) {
    SmallVector<int64_t> member(s.sizes.size());
    int64_t rest = *chunk;
    for (size_t i = s.sizes.size(); i-- > 0; rest /= s.sizes[i])
      member[i] = rest % s.sizes[i];
    ready = s.flight.chunk(member);
  }
  if (!ready)
    return op.emitOpError("waits for a chunk that arrives with the whole; `direct` brings each "
                          "chunk by itself");
  // The view is read after this token, and the whole of the buffer after its own.
  Buffer view;
  view.type = MemRefType();
  view.writers = {ready};
  buffers.insert({op.getResult(), view});
  return success();
}

// A rank has come when all that it did before is done, and everything behind it follows the others.
void Converter::convertBarrier(BarrierOp op) {
  std::string name = "barrier." + std::to_string(numbers["barrier"]++);
  ctran::ScheduleBuilder s(b, op.getLoc(), program, {loadStore, 0, oneKernel}, name);
  SmallVector<unsigned> axes = grid->axesOf(op);
  SmallVector<StringAttr> names = namesOf(axes);
  collectives.push_back(ctran::CollectiveAttr::get(
      b.getContext(), name, "barrier", ctran::barrierGoesInRounds(s, axes) ? "bruck" : "direct",
      names, 0));
  SmallVector<Value> before;
  for (auto &[root, buffer] : buffers)
    before = ctran::joined(ctran::joined(before, buffer.writers), buffer.readers);
  if (before.empty())
    before.push_back(program.getEntry());
  auto named = SymbolTable::lookupNearestSymbolFrom<GridOp>(op, op.getGridAttr());
  Value done = axes.empty()
                   ? ctran::emitListedBarrier(
                         s, name, named.getGroups(op.getAxes(), op.getGroupsAttr()), before)
                   : ctran::emitBarrier(s, name, axes, before);
  for (auto &[root, buffer] : buffers)
    buffer.writers = ctran::joined(buffer.writers, done);
}

LogicalResult Converter::convertOnWindow(Operation *op) {
  std::string name;
  if (isa<WindowOp>(op))
    name = "window." + std::to_string(numbers["window"]++);
  ctran::ScheduleBuilder s(b, op->getLoc(), program, {loadStore, 0, oneKernel}, name);
  return windows->convert(op, s, buffers);
}
