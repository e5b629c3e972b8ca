//===- CudaEmitter.cpp - CUDA C++ for a program's sm lanes -----------------------===//
#include "KernelEmitter.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::ncclx;
using llvm::formatv;

static std::string labelOf(Operation *op) {
  std::string label = op->getName().stripDialect().str();
  if (auto of = op->getAttrOfType<StringAttr>("of"))
    label += " of " + of.getValue().str();
  if (auto note = op->getAttrOfType<StringAttr>("note"))
    label += ": " + note.getValue().str();
  return label;
}

/// Ops of a block in a timeline.
static constexpr int64_t mostTimed = 1 << 16;

static StringRef elementType(Type type) {
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (type.isF16())
    return "__half";
  if (type.isBF16())
    return "__nv_bfloat16";
  if (isa<Float8E4M3FNType>(type))
    return "__nv_fp8_e4m3";
  if (isa<Float8E5M2Type>(type))
    return "__nv_fp8_e5m2";
  if (type.isSignlessInteger(8))
    return "int8_t";
  if (type.isSignlessInteger(16))
    return "int16_t";
  if (type.isSignlessInteger(32))
    return "int32_t";
  if (type.isSignlessInteger(64))
    return "int64_t";
  return "";
}

//===--- ops
//-----------------------------------------------------------------------------------===//

/// Pieces that one loop of copyPieces moves by turns.
static constexpr size_t mostPieces = 8;

bool KernelEmitter::joins(ctran::CopyOp op, ArrayRef<ctran::CopyOp> others) {
  if (!packetWindows.empty() || op.getNotify() || op.getDests().size() != 1)
    return false;
  FailureOr<ctran::BoxRef> from = ctran::resolveRange(op.getSource()),
                           to = ctran::resolveRange(op.getDests().front());
  if (failed(from) || failed(to) || others.size() == mostPieces || from->range.getSize() ||
      told.contains(to->window))
    return false;
  return llvm::all_of(others, [&](ctran::CopyOp other) {
    FailureOr<ctran::BoxRef> source = ctran::resolveRange(other.getSource()),
                             dest = ctran::resolveRange(other.getDests().front());
    return !llvm::is_contained(op.getAfter(), other.getDone()) && areApart(*from, *dest) &&
           areApart(*to, *dest) && areApart(*to, *source);
  });
}

LogicalResult KernelEmitter::emitPieces(ArrayRef<ctran::CopyOp> ops) {
  if (ops.empty())
    return success();
  if (ops.size() == 1)
    return emitOp(cast<ctran::ScheduleOpInterface>(ctran::CopyOp(ops.front()).getOperation()));
  SmallVector<std::string> to, from, bytes;
  for (ctran::CopyOp op : ops) {
    line() << "// " << steps.size() << ": " << labelOf(op) << "\n";
    if (options.timeline)
      order.push_back(unsigned(steps.size()));
    steps.push_back({op, labelOf(op)});
    FailureOr<CudaBox> source = e.box(op, op.getSource()), dest = e.box(op, op.getDests().front());
    if (failed(source) || failed(dest))
      return failure();
    from.push_back(address(*source));
    to.push_back(address(*dest));
    bytes.push_back(lengthOf({*source, *dest}));
  }
  begins = false;
  startData();
  if (options.timeline)
    line() << "timeline.begin();\n";
  line() << "{\n";
  ++indent;
  line() << array("to", "char", to);
  line() << array("from", "const char", from);
  line() << formatv("const int64_t bytes[] = {{{0}};\n", llvm::join(bytes, ", "));
  line() << formatv("copyPieces<{0}>({1}, [&](int i) {{ return to[i]; }, [&](int i) {{ return "
                    "from[i]; }, [&](int i) {{ return bytes[i]; });\n",
                    ops.size(), workers());
  --indent;
  line() << "}\n";
  if (options.timeline) {
    line() << "timeline.end();\n";
    for (size_t i = 1; i < ops.size(); ++i)
      line() << "timeline.again();\n";
  }
  return success();
}

LogicalResult KernelEmitter::emitBlock(Block &block) {
  SmallVector<ctran::CopyOp> pieces;
  for (Operation &op : block) {
    // Ops that are no step stand between copies, and wait for nothing.
    if (!isa<scf::ForOp, scf::IfOp, ctran::ScheduleOpInterface>(op) ||
        isa<ctran::SourceOp, ctran::SinkOp>(op)) {
      if (auto window = dyn_cast<ctran::WindowOp>(op))
        e.indexOf(window);
      else if (auto slots = dyn_cast<ctran::SlotsOp>(op))
        e.indexOf(slots);
      continue;
    }
    auto copy = dyn_cast<ctran::CopyOp>(op);
    if (!copy || !joins(copy, pieces)) {
      if (failed(emitPieces(pieces)))
        return failure();
      pieces.clear();
    }
    if (copy && joins(copy, pieces)) {
      pieces.push_back(copy);
      continue;
    }
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (failed(emitFor(loop)))
        return failure();
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (failed(emitIf(branch)))
        return failure();
    } else if (auto lane = dyn_cast<ctran::ScheduleOpInterface>(op)) {
      if (failed(emitOp(lane)))
        return failure();
    }
  }
  return emitPieces(pieces);
}

LogicalResult KernelEmitter::emitFor(scf::ForOp loop) {
  for (Type type : loop.getResultTypes())
    if (!isa<ctran::TokenType>(type))
      return loop.emitOpError("carries a ") << type << "; the CUDA emitter carries tokens alone";
  if (loop == blockLoop) {
    e.name(loop.getInductionVar(), "block");
    line() << "const int64_t block = blockIdx.x;\n";
    return emitBlock(*loop.getBody());
  }
  FailureOr<std::string> low = e.number(loop, loop.getLowerBound());
  FailureOr<std::string> high = e.number(loop, loop.getUpperBound());
  FailureOr<std::string> step = e.number(loop, loop.getStep());
  if (failed(low) || failed(high) || failed(step))
    return failure();
  std::string name = formatv("i{0}", loops++);
  e.name(loop.getInductionVar(), name);
  auto isOther = [](ctran::ScheduleOpInterface op) {
    return !isa<ctran::SourceOp, ctran::SinkOp, ctran::SignalOp>(op);
  };
  loop.walk([&](ctran::ScheduleOpInterface op) { begins &= !isOther(op); }); // a turn before
  size_t before = text.size();
  line() << formatv("for (int64_t {0} = {1}; {0} < {2}; {0} += {3}) {{\n", name, *low, *high,
                    *step);
  bool wasUnsynced = unsynced;
  size_t head = text.size();
  ++indent;
  unsynced = true; // by the turn before
  size_t from = order.size();
  if (failed(emitBlock(*loop.getBody())))
    return failure();
  --indent;
  if (text.size() == head) { // of what is for the proof alone
    text.resize(before);
    unsynced = wasUnsynced;
    return success();
  }
  unsynced = true; // where there was no turn, as before it
  line() << "}\n";
  return options.timeline ? repeatOrder(loop, from) : success();
}

/// The ops in `order` from `from` on are those of one turn of the loop.
LogicalResult KernelEmitter::repeatOrder(scf::ForOp loop, size_t from) {
  std::optional<int64_t> low = ctran::constantOf(loop.getLowerBound());
  std::optional<int64_t> high = ctran::constantOf(loop.getUpperBound());
  std::optional<int64_t> step = ctran::constantOf(loop.getStep());
  if (!low || !high || !step || *step < 1)
    return loop.emitOpError("takes a number of turns that is no constant, so a kernel with it has "
                            "no timeline");
  SmallVector<unsigned> turn(ArrayRef<unsigned>(order).drop_front(from));
  order.truncate(from);
  int64_t turns = *high <= *low ? 0 : (*high - *low - 1) / *step + 1;
  if (turn.empty() || turns * int64_t(turn.size()) <= mostTimed - int64_t(order.size())) {
    for (int64_t t = 0; !turn.empty() && t < turns; ++t)
      llvm::append_range(order, turn);
    return success();
  }
  return loop.emitOpError("makes more than ") << mostTimed << " ops, too many for a timeline";
}

/// Ranks differ, and all threads of one take the same way.
LogicalResult KernelEmitter::emitIf(scf::IfOp branch) {
  for (Type type : branch.getResultTypes())
    if (!isa<ctran::TokenType>(type))
      return branch.emitOpError("gives a ") << type << "; the CUDA emitter gives tokens alone";
  if (options.timeline)
    return branch.emitOpError("lets ranks differ, so a kernel with it has no timeline");
  FailureOr<std::string> condition = e.number(branch, branch.getCondition());
  if (failed(condition))
    return failure();
  bool before = unsynced, after = unsynced;
  line() << formatv("if ({0}) {{\n", *condition);
  for (Region *way : {&branch.getThenRegion(), &branch.getElseRegion()}) {
    if (way->empty())
      continue;
    if (way == &branch.getElseRegion())
      line() << "} else {\n";
    ++indent;
    unsynced = before;
    if (failed(emitBlock(way->front())))
      return failure();
    after |= unsynced;
    --indent;
  }
  line() << "}\n";
  unsynced = after;
  return success();
}

LogicalResult KernelEmitter::emitOp(ctran::ScheduleOpInterface op) {
  if (isa<ctran::SourceOp, ctran::SinkOp>(op)) // proof only
    return success();
  begins &= isa<ctran::SignalOp>(op);
  unsigned step = steps.size();
  steps.push_back({op, labelOf(op)});
  line() << "// " << step << ": " << labelOf(op) << "\n";
  if (!options.timeline)
    return emitStep(op, step);
  order.push_back(step);
  line() << "timeline.begin();\n";
  if (failed(emitStep(op, step)))
    return failure();
  line() << "timeline.end();\n";
  return success();
}

LogicalResult KernelEmitter::emitStep(ctran::ScheduleOpInterface op, unsigned step) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ctran::CopyOp copy) { return emitCopy(copy, step); })
      .Case([&](ctran::ReduceOp reduce) { return emitReduce(reduce, step); })
      .Case([&](ctran::SignalOp signal) { return emitSignal(signal, signal.getSlot()); })
      .Case([&](ctran::WaitOp wait) { return emitWait(wait, step); })
      .Case([&](ctran::CountOp count) { return emitCount(count, step); })
      .Case([&](ctran::FlushOp) { return success(); }) // loads and stores: nothing to flush
      .Default([](Operation *other) {
        return other->emitOpError("is not lowered for sm lanes by the CUDA emitter");
      });
}

LogicalResult KernelEmitter::message(Operation *op, const CudaBox &box) {
  if (!box.words)
    return op->emitOpError("sends packets to a box that need not start on 8 bytes");
  lines &= box.lines;
  mostMessage = std::max(mostMessage, box.most);
  return success();
}

std::string KernelEmitter::lengthOf(ArrayRef<CudaBox> boxes) {
  std::string length;
  std::optional<int64_t> constant = boxes.front().constantBytes;
  int64_t most = boxes.front().most;
  for (const CudaBox &box : boxes) {
    constant = constant && box.constantBytes
                   ? std::optional<int64_t>(std::min(*constant, *box.constantBytes))
                   : std::nullopt;
    most = std::min(most, box.most);
    if (length.empty())
      length = box.bytes;
    else if (length != box.bytes)
      length = formatv("lesser({0}, {1})", length, box.bytes);
  }
  mostBytes = std::max(mostBytes, most);
  return constant ? std::to_string(*constant) : length;
}

LogicalResult KernelEmitter::emitDests(Operation *op, ValueRange dests,
                                       SmallVectorImpl<CudaBox> &boxes, bool packets) {
  SmallVector<std::string> places;
  for (Value range : dests) {
    FailureOr<CudaBox> box = e.box(op, range);
    if (failed(box))
      return failure();
    if (packets != packetWindows.contains(box->op))
      return op->emitOpError(
          "writes a window that other ops write as packets; packets are a window's only writers");
    if (packets && failed(message(op, *box)))
      return failure();
    places.push_back(address(*box));
    boxes.push_back(*box);
  }
  line() << array("to", "char", places);
  return success();
}

LogicalResult KernelEmitter::emitCopy(ctran::CopyOp op, unsigned step) {
  FailureOr<CudaBox> source = e.box(op, op.getSource());
  if (failed(source))
    return failure();
  bool packets = op.getNotify() && isPacketSlot(op.getNotify());
  bool fromPackets = packetWindows.contains(source->op);
  bool sized = !source->whole.empty();
  if (sized && (packets || fromPackets))
    return op.emitOpError("sends packets of a size known at run time, which the CUDA emitter does "
                          "not lower yet");
  if (fromPackets && packets)
    return op.emitOpError("forwards packets, which the CUDA emitter does not lower yet");
  if (packets && llvm::any_of(ownPackets, [&](auto &own) { return own.second == op; })) {
    line() << "// taken from where it lies\n";
    return success();
  }
  if (!packets)
    startData();
  line() << "{\n";
  ++indent;
  SmallVector<CudaBox> dests;
  if (failed(emitDests(op, op.getDests(), dests, packets)))
    return failure();
  SmallVector<CudaBox> boxes = dests;
  boxes.push_back(*source);
  std::string length = lengthOf(boxes);
  // A kernel of packets copies with the code that it has: it waits for its instructions, too.
  bool whole = ownSlots && llvm::any_of(op.getDests(), [&](Value to) { return isTold(to); });
  bool asWords = together && !packetWindows.empty() && !packets && !fromPackets && !sized &&
                 !whole && dests.size() == 1 && source->words && dests.front().words;
  if (packets || fromPackets || asWords) {
    if (fromPackets && failed(message(op, *source)))
      return failure();
    // Of the two ends of a message one is in memory; a window of packets has whole words.
    for (const CudaBox &box : boxes)
      aligned &= box.aligned;
    line() << formatv("const PacketSpan span = packetSpan<Packet>({0});\n", length);
  }
  if (packets) {
    line() << formatv("sendPackets<Packet, aligned>({0}, [&](int i) {{ return to[i]; }, {1}, "
                      "span, PacketRun{{epoch, a.guard, {2}});\n",
                      dests.size(), address(*source), step);
  } else if (fromPackets) {
    if (!source->own || dests.size() != 1)
      return op.emitOpError("reads packets of a peer, or for several places");
    line() << formatv("receivePackets<Packet, aligned>(to[0], {0}, span, "
                      "PacketRun{{epoch, a.guard, {1}}, 0);\n",
                      address(*source), step);
  } else if (asWords) {
    line() << formatv("sendPackets<Packet, aligned>(0, [&](int i) {{ return to[i]; }, {0}, span, "
                      "PacketRun{{epoch, a.guard, {1}}, to[0]);\n",
                      address(*source), step);
  } else if (sized) {
    // Into own memory, with zeros behind it (S25).
    for (auto [i, dest] : llvm::enumerate(dests))
      line() << formatv("{0}, to[{1}], {2}, {3}, {4});\n",
                        !together     ? "copySized(0, 1"
                        : source->own ? "copySizedByHalves(true, blockIdx.x, gridDim.x"
                                      : "copySizedByHalves(false, blockIdx.x, gridDim.x",
                        i, address(*source), length, dest.own ? dest.whole : "0");
  } else {
    line() << formatv("copyBytes({0}, {1}, [&](int i) {{ return to[i]; }, {2}, {3});\n",
                      whole ? "blockWorkers()" : workers(), dests.size(), address(*source), length);
  }
  --indent;
  line() << "}\n";
  return op.getNotify() && !packets ? emitSignal(op, op.getNotify()) : success();
}

LogicalResult KernelEmitter::emitReduce(ctran::ReduceOp op, unsigned step) {
  SmallVector<CudaBox> sources, dests;
  SmallVector<unsigned> plain, packets;
  std::string count, own; // of packets: how many, and which of them is no packet
  FailureOr<CudaBox> ownBox = failure();
  for (auto [i, range] : llvm::enumerate(op.getSources())) {
    FailureOr<ctran::BoxRef> ref = ctran::resolveRange(range);
    bool whole = succeeded(ref) && ref->range.getFirst() && packetWindows.contains(ref->window);
    FailureOr<CudaBox> box = e.box(op, range, whole ? "i" : "");
    if (failed(box))
      return failure();
    if (whole) {
      if (op.getSources().size() != 1)
        return op.emitOpError("combines a window of packets with other boxes");
      count = std::to_string(ref->space.dims.back().size);
      own = "-1";
      if (auto it = ownPackets.find(ref->window); it != ownPackets.end()) {
        ownBox = e.box(it->second, it->second.getSource());
        FailureOr<ctran::BoxRef> place = ctran::resolveRange(it->second.getDests().front());
        FailureOr<std::string> at = e.coord(op, place->range.getIndices().front());
        if (failed(ownBox) || failed(at))
          return failure();
        own = *at;
        aligned &= ownBox->aligned;
      }
    }
    (packetWindows.contains(box->op) ? packets : plain).push_back(i);
    sources.push_back(*box);
  }
  Type element = cast<MemRefType>(sources.front().op.getType()).getElementType();
  StringRef type = elementType(element);
  bool narrow = isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  Type wanted = narrow ? Type(Float32Type::get(op.getContext())) : element;
  if (type.empty() || op.getAccumulate() != wanted)
    return op.emitOpError("reduces ")
           << element << " in " << op.getAccumulate() << "; the device library reduces floats of "
           << "less than 32 bits in f32 and everything else in itself";
  if (op.getScale() && op.getDivide())
    return op.emitOpError("scales and divides; the device library does one of both");
  const char *kind = op.getScale()                             ? "ScaledSum"
                     : op.getDivide()                          ? "Avg"
                     : op.getKind() == ctran::ReduceKind::Sum  ? "Sum"
                     : op.getKind() == ctran::ReduceKind::Prod ? "Prod"
                     : op.getKind() == ctran::ReduceKind::Min  ? "Min"
                                                               : "Max";
  std::string arguments;
  if (op.getScale() || op.getDivide()) {
    llvm::raw_string_ostream os(arguments);
    os << llvm::format("%.17g", op.getScale() ? op.getScaleAttr().getValueAsDouble() : 1.0) << ", "
       << (op.getDivide() ? int64_t(*op.getDivide()) : 1);
  }
  if (op.getNotify() && isPacketSlot(op.getNotify()))
    return op.emitOpError("sends its result as packets, which the CUDA emitter does not lower yet");
  startData();
  line() << "{\n";
  ++indent;
  if (failed(emitDests(op, op.getDests(), dests, false)))
    return failure();
  SmallVector<CudaBox> boxes = dests;
  llvm::append_range(boxes, sources);
  std::string length = lengthOf(boxes);
  if (packets.empty() || count.empty()) {
    SmallVector<std::string> places;
    for (auto [i, box] : llvm::enumerate(sources))
      places.push_back(address(box));
    line() << array("from", "const char", places);
  }
  if (packets.empty()) {
    line() << formatv("reduceBytes<{0}, ReduceOp::{1}, {2}>({3}, {4}, [&](int i) {{ return to[i]; "
                      "}, [&](int i) {{ return from[i]; }, {5}, ReduceArgs{{{6}});\n",
                      type, kind, sources.size(), workers(), dests.size(), length, arguments);
  } else {
    if ((count.empty() && plain.size() != 1) || dests.size() != 1)
      return op.emitOpError("combines packets with ")
             << plain.size() << " other boxes into " << dests.size()
             << " places; the device library takes one each";
    for (unsigned i : packets) {
      if (!sources[i].own)
        return op.emitOpError("reads packets of a peer; they are polled where they arrive");
      if (failed(message(op, sources[i])))
        return failure();
      aligned &= sources[i].aligned;
    }
    aligned &= dests.front().aligned;
    std::string mine = "to[0]", from = "from[i]";
    if (count.empty()) {
      count = std::to_string(sources.size());
      own = std::to_string(plain.front());
      mine = "from[" + own + "]";
      aligned &= sources[plain.front()].aligned;
    } else {
      from = address(sources.front());
      if (succeeded(ownBox))
        mine = address(*ownBox);
    }
    line() << formatv("const PacketSpan span = packetSpan<Packet>({0});\n", length);
    line() << "const Words<aligned> result(to[0], span.bytes);\n";
    line() << formatv(
        "reducePackets<Packet, aligned, {0}, ReduceOp::{1}>({2}, int({3}), {4}, [&](int i) {{ "
        "return {5}; }, span, ReduceArgs{{{7}}, PacketRun{{epoch, a.guard, {6}}, [&](int64_t u, "
        "Unit unit) {{ unpackUnit<Packet>(result, u, span.words, unit); });\n",
        type, kind, count, own, mine, from, step, arguments);
  }
  --indent;
  line() << "}\n";
  return op.getNotify() ? emitSignal(op, op.getNotify()) : success();
}

LogicalResult KernelEmitter::emitSignal(Operation *op, Value slot) {
  FailureOr<CudaSlots> at = e.slots(op, slot);
  if (failed(at))
    return failure();
  ctran::Realisation realisation = at->op.getRealisation();
  if (realisation != ctran::Realisation::Counter)
    return op->emitOpError("raises slots of realisation ")
           << ctran::stringifyRealisation(realisation)
           << "; sm lanes raise counters, and packets carry inband ones";
  if (at->op.getPerRun() == 1 && at->op.getWriters() == 1)
    line() << formatv("{0}(1, {1}, [&](int) {{ return {2}; });\n",
                      begins ? "firstSignalFromBlock" : "signalFromBlock",
                      at->op.getGenerations() == 1
                          ? std::string("run + 1")
                          : formatv("run / {0} + 1", at->op.getGenerations()).str(),
                      place(*at));
  else
    line() << formatv("raiseFromBlock({0});\n", place(*at));
  unsynced = false; // a signal begins with a barrier
  return success();
}

LogicalResult KernelEmitter::emitWait(ctran::WaitOp op, unsigned step) {
  if (isPacketSlot(op.getSlot()))
    return success(); // the readers poll the packets themselves
  FailureOr<CudaSlots> at = e.slots(op, op.getSlot());
  FailureOr<std::string> value = e.number(op, op.getValue());
  if (failed(at) || failed(value))
    return failure();
  if (at->op.getCredits())
    return op.emitOpError(
        "waits for slots with credits, which the CUDA emitter does not lower yet");
  int64_t generations = at->op.getGenerations();
  line() << formatv("waitInBlock(int({0}), {1} * {2} + {3}, a.guard, {4}, [&](int t) {{ return "
                    "{5} + t; });\n",
                    at->count,
                    generations == 1 ? std::string("run") : formatv("run / {0}", generations).str(),
                    at->op.getPerRun(), *value, step, place(*at));
  unsynced = false;
  return success();
}

/// All threads read it where it lies.
LogicalResult KernelEmitter::emitCount(ctran::CountOp op, unsigned step) {
  FailureOr<CudaBox> box = e.box(op, op.getSource());
  if (failed(box))
    return failure();
  if (packetWindows.contains(box->op))
    return op.emitOpError("reads a size from packets, which the CUDA emitter does not lower yet");
  if (unsynced && !together)
    line() << "__syncthreads();\n";
  unsynced = unsynced && together;
  std::string name = formatv("size{0}", step);
  line() << formatv("[[maybe_unused]] const int64_t {0} = readSize({1}, {2}, {3}, a.guard.control, "
                    "a.sizes + {4});\n",
                    name, address(*box), *box->constantBytes, op.getMax(), sizes.size());
  sizes.push_back(labelOf(op) + ": a size of window '" + box->op.getSym().str() + "'");
  e.name(op.getSize(), name);
  return success();
}

//===--- the file
//--------------------------------------------------------------------------------===//

/// Blocks and threads of a program that leaves them open, as measured on H200 (test/Bench/cuda): a
/// unit a thread as long as messages are short, all SMs when they are long.
void KernelEmitter::chooseShape() {
  // Of a loop over blocks it is one block's part that is named.
  int64_t bytes = std::max(mostMessage, mostBytes) * (blockLoop ? blocks : 1);
  auto ofKiB = [&](int64_t most) { return std::clamp<int64_t>((bytes + 1023) >> 10, 1, most); };
  options.threads = bytes <= (128 << 10) ? 128 : bytes <= (256 << 10) ? 256 : 512;
  if (together)
    blocks =
        ofKiB(std::min<int64_t>(options.mostBlocks, bytes <= (64 << 10)    ? 64
                                                    : bytes <= (256 << 10) ? 128
                                                                           : options.mostBlocks));
  else if (!blockLoop)
    options.threads = 512;
}

void KernelEmitter::fill(CudaKernel &kernel) {
  llvm::raw_string_ostream os(kernel.source);
  std::string name = program.getSymName().str();
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  int64_t ranks = program.getNumRanks(), slotSets = ownSlots ? blocks : 1;
  size_t windows = std::max<size_t>(e.windows.size(), 1),
         slots = std::max<size_t>(e.slotArrays.size(), 1);
  os << formatv(
      "// Generated by ncclx-translate --ctran-to-cuda from @{0}: {1} ranks, {2} blocks of "
      "{3} threads.\n",
      program.getSymName(), ranks, blocks, options.threads);
  os << "#include \"ncclxrt/device/packet.cuh\"\n#include \"ncclxrt/device/transfer.cuh\"\n"
     << (options.timeline ? "#include \"ncclxrt/device/timeline.cuh\"\n" : "")
     << (sizes.empty() ? "" : "#include \"ncclxrt/device/sized.cuh\"\n") << "\n"
     << "namespace {\nusing namespace ncclxrt::device;\n\n";
  if (options.timeline)
    os << formatv("constexpr int timelineSteps = {0};\n", order.size());
  os << "struct Arguments {\n"
     << (options.timeline ? "  uint64_t *timeline; // two words an op and block\n" : "")
     << formatv("  char *windows[{0}][{1}]; // of each rank, as this GPU sees it\n", windows, ranks)
     << formatv("  uint64_t *slots[{0}][{1}];\n", slots, ranks)
     << "  uint64_t *epochs; // one a block, 0 at first\n  Guard guard;\n  int64_t rank;\n"
     << (sizes.empty() ? "" : "  uint64_t sizes; // number of the first, for a failure\n")
     << "};\n\n";
  os << formatv("constexpr int64_t windowBytes[] = {{");
  auto ofBlocks = [&](ctran::WindowOp window) {
    return bytesOf(window) * (ownSlots && told.contains(window) ? blocks : 1);
  };
  for (ctran::WindowOp window : e.windows)
    os << ofBlocks(window) << ", ";
  os << "}; // of one generation\nconstexpr int64_t windowGenerations[] = {";
  for (ctran::WindowOp window : e.windows)
    os << window.getGenerations() << ", ";
  os << "};\n";
  if (!e.slotArrays.empty()) {
    os << "constexpr int64_t slotCounts[] = {";
    for (ctran::SlotsOp array : e.slotArrays)
      os << countOf(array) * slotSets << ", ";
    os << "};\nconstexpr int64_t slotGenerations[] = {";
    for (ctran::SlotsOp array : e.slotArrays)
      os << array.getGenerations() << ", ";
    os << "};\n";
  }
  for (auto [i, table] : llvm::enumerate(e.tables))
    os << formatv(
        "__constant__ const int64_t table{0}[] = {{{1}};\n", i,
        llvm::join(llvm::map_range(table.getValues(), [](int64_t v) { return std::to_string(v); }),
                   ", "));
  if (!packetWindows.empty())
    os << formatv("constexpr bool aligned = {0}; // all messages start and end on 8 bytes\n"
                  "using Packet = {1};\n",
                  aligned ? "true" : "false",
                  lines && mostMessage > (64 << 10) ? "Packet128" : "Packet16");
  os << formatv("} // namespace\n\nextern \"C\" __global__ void __launch_bounds__({0}) {1}_kernel("
                "const __grid_constant__ Arguments a) {{\n",
                options.threads, name)
     << "  awaitEarlierKernels();\n  releaseLaterKernels();\n  Epoch epoch(a.epochs);\n"
     << "  const uint64_t run = epoch - 1;\n"
     << (options.timeline ? "  Timeline timeline(a.timeline);\n" : "");
  int64_t below = 1;
  SmallVector<std::string> coordinates;
  for (unsigned axis = program.getGrid().size(); axis-- > 0;) {
    coordinates.push_back(formatv("  const int64_t c{0} = a.rank / {1} % {2};\n", axis, below,
                                  program.getAxisSize(axis)));
    below *= program.getAxisSize(axis);
  }
  for (const std::string &coordinate : llvm::reverse(coordinates))
    os << coordinate;
  os << text << "  epoch.end();\n}\n\n";
  if (options.timeline)
    os << "extern \"C\" __global__ void ncclxrt_clock(uint64_t *to) { tellTimelineClock(to); }\n";

  kernel.name = name;
  kernel.entry = name + "_kernel";
  kernel.ranks = ranks;
  kernel.blocks = blocks;
  kernel.threads = options.threads;
  for (ctran::WindowOp window : e.windows)
    kernel.windows.push_back({window, ofBlocks(window), int64_t(window.getGenerations())});
  for (ctran::SlotsOp array : e.slotArrays)
    kernel.slotWords.push_back(countOf(array) * int64_t(array.getGenerations()) * slotSets);
  kernel.sizes = sizes;
  kernel.steps = steps;
  kernel.together = together;
  kernel.order = order;
}

LogicalResult KernelEmitter::run(CudaKernel &kernel) {
  bool open = options.blocks == 0;
  if (options.threads < 32 || options.threads > 1024 || options.threads % 32 || options.blocks < 0)
    return program.emitOpError("is to run in ")
           << options.blocks << " blocks of " << options.threads
           << " threads; a block has whole warps, at most 1024 threads, and there is at least one";
  if (failed(analyse()) || failed(emitBlock(program.getBody().front())))
    return failure();
  if (open)
    chooseShape();
  fill(kernel);
  return success();
}

FailureOr<CudaKernel> mlir::ncclx::emitCudaKernel(ctran::ProgramOp program,
                                                  const CudaOptions &options) {
  CudaKernel kernel;
  if (failed(KernelEmitter(program, options).run(kernel)))
    return failure();
  return kernel;
}
