//===- CudaEmitter.cpp - CUDA C++ for a program's sm lanes -----------------------===//
#include "ncclx/Cuda/CudaEmitter.h"
#include "CudaExpressions.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::ncclx;
using llvm::formatv;

namespace {

class Emitter {
public:
  Emitter(ctran::ProgramOp program, const CudaOptions &options)
      : program(program), options(options), e(program) {}
  LogicalResult run(CudaKernel &kernel);

private:
  ctran::ProgramOp program;
  CudaOptions options;
  CudaExpressions e;
  std::string text;
  llvm::raw_string_ostream body{text};
  unsigned indent = 1, loops = 0;
  SmallVector<std::string> stepNames;
  scf::ForOp blockLoop; ///< whose variable is the lane index; null: the ops name no block
  int64_t blocks = 1;
  bool together = false; ///< blocks share every op: nothing is read that another may write
  llvm::SmallPtrSet<Operation *, 4> packetWindows;
  bool aligned = true;   ///< every message of packets
  bool unsynced = false; ///< a data op since the last barrier of the block

  LogicalResult analyse();
  LogicalResult checkBlockLoop();
  LogicalResult emitBlock(Block &block);
  LogicalResult emitFor(scf::ForOp loop);
  LogicalResult emitOp(ctran::ScheduleOpInterface op);
  LogicalResult emitCopy(ctran::CopyOp op, unsigned step);
  LogicalResult emitReduce(ctran::ReduceOp op, unsigned step);
  LogicalResult emitSignal(Operation *op, Value slot);
  LogicalResult emitWait(ctran::WaitOp op, unsigned step);
  LogicalResult emitDests(Operation *op, ValueRange dests, SmallVectorImpl<CudaBox> &boxes,
                          bool packets);
  void fill(CudaKernel &kernel);

  raw_ostream &line() {
    body.indent(indent * 2);
    return body;
  }
  /// A data op of a block starts when the one before is complete.
  void startData() {
    if (unsynced)
      line() << "__syncthreads();\n";
    unsynced = true;
  }
  bool isPacketSlot(Value slot) {
    FailureOr<ctran::SlotRef> ref = ctran::resolveSlot(slot);
    return succeeded(ref) && ref->slots.getRealisation() == ctran::Realisation::Inband;
  }
  StringRef workers() const { return together ? "gridWorkers()" : "blockWorkers()"; }
  /// Bytes of one generation of a window in memory: packets carry a flag beside each word.
  int64_t bytesOf(ctran::WindowOp window) {
    int64_t bytes =
        cast<MemRefType>(window.getType()).getNumElements() * ctran::elementBytes(window);
    return packetWindows.contains(window) ? 2 * ((bytes + 7) / 8 * 8) : bytes;
  }
  int64_t countOf(ctran::SlotsOp slots) {
    int64_t count = 1;
    if (auto dims = ctran::resolveDims(program, slots.getDims()); succeeded(dims))
      for (const ctran::machine::Dim &dim : *dims)
        count *= dim.size;
    return count;
  }
  static std::string generation(int64_t generations, int64_t size) {
    return generations == 1 ? std::string()
                            : formatv(" + int64_t(run % {0}) * {1}", generations, size).str();
  }
  std::string address(CudaBox box) {
    std::string at = formatv("a.windows[{0}][{1}]{2}", box.window, box.rank,
                             generation(box.op.getGenerations(), bytesOf(box.op)));
    if (box.offset == "0")
      return at;
    // A word at offset o of a window of packets lies, with its flag, at 2 * o.
    return at + " + " + (packetWindows.contains(box.op) ? "2 * " : "") + box.offset;
  }
  std::string place(CudaSlots at) {
    return formatv("a.slots[{0}][{1}]{2} + {3}", at.slots, at.rank,
                   generation(at.op.getGenerations(), countOf(at.op)), at.first);
  }
  std::string array(StringRef name, StringRef type, ArrayRef<std::string> items) {
    std::string list = llvm::join(items, ", ");
    return formatv("{0} *{1}[] = {{{2}};\n", type, name, list);
  }
};

} // namespace

static std::string labelOf(Operation *op) {
  std::string label = op->getName().stripDialect().str();
  if (auto of = op->getAttrOfType<StringAttr>("of"))
    label += " of " + of.getValue().str();
  if (auto note = op->getAttrOfType<StringAttr>("note"))
    label += ": " + note.getValue().str();
  return label;
}

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

//===--- what kind of kernel ---------------------------------------------------------------===//

LogicalResult Emitter::analyse() {
  bool named = false, unnamed = false;
  Operation *first = nullptr;
  SmallVector<ctran::ScheduleOpInterface> ops;
  WalkResult walked = program.walk([&](Operation *op) -> WalkResult {
    if (isa<scf::IfOp, ctran::CoordValueOp, ctran::TableOp>(op))
      return WalkResult(
          op->emitOpError("makes ranks differ, which the CUDA emitter does not lower yet"));
    auto lane = dyn_cast<ctran::ScheduleOpInterface>(op);
    if (!lane || isa<ctran::SourceOp, ctran::SinkOp>(op))
      return WalkResult::advance();
    if (lane.getLaneKind() != ctran::LaneKind::SM)
      return WalkResult(op->emitOpError("is on lane ")
                        << ctran::stringifyLaneKind(lane.getLaneKind())
                        << "; the CUDA emitter lowers lane sm, and copy engines not yet");
    ops.push_back(lane);
    Value index = lane.getLaneIndexValue();
    std::optional<int64_t> constant = index ? ctran::constantOf(index) : 0;
    if (constant && *constant == 0) {
      unnamed = true;
      first = first ? first : op;
      return WalkResult::advance();
    }
    auto argument = dyn_cast<BlockArgument>(index);
    auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : nullptr;
    if (!loop || loop.getInductionVar() != index || (blockLoop && loop != blockLoop))
      return WalkResult(op->emitOpError(
          "is on a block that is not the variable of the program's one loop over blocks"));
    blockLoop = loop;
    named = true;
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  if (named && unnamed)
    return first->emitOpError("names no block, and others do; a kernel's ops all do or none does");
  if (ops.empty())
    return program.emitOpError("has no op of an sm lane, so there is no kernel");
  for (ctran::ScheduleOpInterface op : ops)
    if (auto copy = dyn_cast<ctran::CopyOp>(op.getOperation()))
      if (copy.getNotify() && isPacketSlot(copy.getNotify()))
        for (Value dest : copy.getDests())
          if (FailureOr<ctran::BoxRef> ref = ctran::resolveRange(dest); succeeded(ref))
            packetWindows.insert(ref->window);
  if (blockLoop)
    return checkBlockLoop();
  // Blocks may share ops when no op reads, or writes, what another op of the program writes: but
  // for packets, which each thread awaits for itself.
  llvm::SmallPtrSet<Operation *, 4> reads, writes;
  together = true;
  for (ctran::ScheduleOpInterface op : ops) {
    if (Value slot = op.getTouchedSlot(); slot && !isPacketSlot(slot))
      together = false;
    SmallVector<ctran::BoxAccess> accesses;
    op.getAccesses(accesses);
    for (ctran::BoxAccess access : accesses) {
      FailureOr<ctran::BoxRef> ref = ctran::resolveRange(access.range);
      if (failed(ref) || packetWindows.contains(ref->window))
        continue;
      auto &mine = access.write ? writes : reads, &others = access.write ? reads : writes;
      together &=
          !others.contains(ref->window) && !(access.write && !mine.insert(ref->window).second);
      mine.insert(ref->window);
    }
  }
  blocks = together ? options.blocks : 1;
  return success();
}

/// Whether `token` comes from an earlier turn of the loop over blocks, that is, from another block.
static bool isOfAnotherBlock(Value token, scf::ForOp blockLoop) {
  SmallVector<Value> work{token};
  llvm::SmallPtrSet<Value, 8> seen;
  while (!work.empty()) {
    Value at = work.pop_back_val();
    if (!seen.insert(at).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(at)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (loop == blockLoop)
        return llvm::any_of(ArrayRef<Value>{blockLoop.getTiedLoopYieldedValue(argument)->get()},
                            [&](Value v) { return v != at; });
      if (loop) {
        work.push_back(loop.getTiedLoopInit(argument)->get());
        work.push_back(loop.getTiedLoopYieldedValue(argument)->get());
      }
    } else if (auto loop = at.getDefiningOp<scf::ForOp>()) {
      unsigned i = cast<OpResult>(at).getResultNumber();
      work.push_back(loop.getInitArgs()[i]);
      work.push_back(loop.getYieldedValues()[i]);
    }
  }
  return false;
}

LogicalResult Emitter::checkBlockLoop() {
  std::optional<int64_t> low = ctran::constantOf(blockLoop.getLowerBound());
  std::optional<int64_t> high = ctran::constantOf(blockLoop.getUpperBound());
  std::optional<int64_t> step = ctran::constantOf(blockLoop.getStep());
  if (!low || !high || !step || *low != 0 || *step != 1 || *high < 1)
    return blockLoop.emitOpError("runs over blocks, so from 0 to a constant in steps of 1");
  if (blockLoop->getParentOp() != program)
    return blockLoop.emitOpError("runs over blocks, so it stands at the top level of the program");
  blocks = *high;
  // Blocks do not meet inside a kernel: what one awaits of another may only be its end.
  Operation *joined = nullptr;
  WalkResult walked = blockLoop.walk([&](ctran::ScheduleOpInterface op) -> WalkResult {
    bool joins = llvm::any_of(op.getAfterTokens(),
                              [&](Value token) { return isOfAnotherBlock(token, blockLoop); });
    bool waits = isa<ctran::WaitOp>(op.getOperation());
    if ((joins && !waits) || (joined && !waits))
      return WalkResult(op->emitOpError("comes after another block of the same kernel, which needs "
                                        "a barrier of the grid"));
    if (joins)
      joined = op;
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

//===--- ops
//-----------------------------------------------------------------------------------===//

LogicalResult Emitter::emitBlock(Block &block) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (failed(emitFor(loop)))
        return failure();
    } else if (auto lane = dyn_cast<ctran::ScheduleOpInterface>(op)) {
      if (failed(emitOp(lane)))
        return failure();
    } else if (auto window = dyn_cast<ctran::WindowOp>(op)) {
      e.indexOf(window);
    } else if (auto slots = dyn_cast<ctran::SlotsOp>(op)) {
      e.indexOf(slots);
    }
  }
  return success();
}

LogicalResult Emitter::emitFor(scf::ForOp loop) {
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
  line() << formatv("for (int64_t {0} = {1}; {0} < {2}; {0} += {3}) {{\n", name, *low, *high,
                    *step);
  ++indent;
  if (failed(emitBlock(*loop.getBody())))
    return failure();
  --indent;
  line() << "}\n";
  return success();
}

LogicalResult Emitter::emitOp(ctran::ScheduleOpInterface op) {
  if (isa<ctran::SourceOp, ctran::SinkOp>(op)) // proof only
    return success();
  unsigned step = stepNames.size();
  stepNames.push_back(labelOf(op));
  line() << "// " << step << ": " << labelOf(op) << "\n";
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ctran::CopyOp copy) { return emitCopy(copy, step); })
      .Case([&](ctran::ReduceOp reduce) { return emitReduce(reduce, step); })
      .Case([&](ctran::SignalOp signal) { return emitSignal(signal, signal.getSlot()); })
      .Case([&](ctran::WaitOp wait) { return emitWait(wait, step); })
      .Case([&](ctran::FlushOp) { return success(); }) // loads and stores: nothing to flush
      .Default([](Operation *other) {
        return other->emitOpError("is not lowered for sm lanes by the CUDA emitter");
      });
}

LogicalResult Emitter::emitDests(Operation *op, ValueRange dests, SmallVectorImpl<CudaBox> &boxes,
                                 bool packets) {
  SmallVector<std::string> places;
  for (Value range : dests) {
    FailureOr<CudaBox> box = e.box(op, range);
    if (failed(box))
      return failure();
    if (packets != packetWindows.contains(box->op))
      return op->emitOpError(
          "writes a window that other ops write as packets; packets are a window's only writers");
    places.push_back(address(*box));
    boxes.push_back(*box);
  }
  line() << array("to", "char", places);
  return success();
}

LogicalResult Emitter::emitCopy(ctran::CopyOp op, unsigned step) {
  FailureOr<CudaBox> source = e.box(op, op.getSource());
  if (failed(source))
    return failure();
  bool packets = op.getNotify() && isPacketSlot(op.getNotify());
  bool fromPackets = packetWindows.contains(source->op);
  if (fromPackets && packets)
    return op.emitOpError("forwards packets, which the CUDA emitter does not lower yet");
  if (!packets)
    startData();
  line() << "{\n";
  ++indent;
  SmallVector<CudaBox> dests;
  if (failed(emitDests(op, op.getDests(), dests, packets)))
    return failure();
  if (packets || fromPackets) {
    CudaBox &message = packets ? dests.front() : *source;
    if (!message.words)
      return op.emitOpError("sends packets to a box that need not start on 8 bytes");
    aligned &= source->aligned && dests.front().aligned;
    line() << formatv("const PacketSpan span = packetSpan<Packet16>({0});\n", message.bytes);
  }
  if (packets) {
    line() << formatv("sendPackets<Packet16, aligned>({0}, [&](int i) {{ return to[i]; }, {1}, "
                      "span, PacketRun{{epoch, a.guard, {2}});\n",
                      dests.size(), address(*source), step);
  } else if (fromPackets) {
    if (!source->own || dests.size() != 1)
      return op.emitOpError("reads packets of a peer, or for several places");
    line() << formatv("receivePackets<Packet16, aligned>(to[0], {0}, span, "
                      "PacketRun{{epoch, a.guard, {1}}, 0);\n",
                      address(*source), step);
  } else {
    line() << formatv("copyBytes({0}, {1}, [&](int i) {{ return to[i]; }, {2}, {3});\n", workers(),
                      dests.size(), address(*source), source->bytes);
  }
  --indent;
  line() << "}\n";
  return op.getNotify() && !packets ? emitSignal(op, op.getNotify()) : success();
}

LogicalResult Emitter::emitReduce(ctran::ReduceOp op, unsigned step) {
  SmallVector<CudaBox> sources, dests;
  SmallVector<unsigned> plain, packets;
  for (auto [i, range] : llvm::enumerate(op.getSources())) {
    FailureOr<CudaBox> box = e.box(op, range);
    if (failed(box))
      return failure();
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
  if (op.getKind() == ctran::ReduceKind::Prod || op.getScale() || op.getDivide())
    return op.emitOpError("multiplies, scales or divides, which the device library does not");
  const char *kind = op.getKind() == ctran::ReduceKind::Sum   ? "Sum"
                     : op.getKind() == ctran::ReduceKind::Min ? "Min"
                                                              : "Max";
  if (op.getNotify() && isPacketSlot(op.getNotify()))
    return op.emitOpError("sends its result as packets, which the CUDA emitter does not lower yet");
  startData();
  line() << "{\n";
  ++indent;
  if (failed(emitDests(op, op.getDests(), dests, false)))
    return failure();
  SmallVector<std::string> places;
  for (auto [i, box] : llvm::enumerate(sources))
    places.push_back(address(box));
  line() << array("from", "const char", places);
  if (packets.empty()) {
    line() << formatv("reduceBytes<{0}, ReduceOp::{1}, {2}>({3}, {4}, [&](int i) {{ return to[i]; "
                      "}, [&](int i) {{ return from[i]; }, {5}, ReduceArgs{{});\n",
                      type, kind, sources.size(), workers(), dests.size(), sources.front().bytes);
  } else {
    if (plain.size() != 1 || dests.size() != 1)
      return op.emitOpError("combines packets with ")
             << plain.size() << " other boxes into " << dests.size()
             << " places; the device library takes one each";
    for (unsigned i : packets) {
      if (!sources[i].own)
        return op.emitOpError("reads packets of a peer; they are polled where they arrive");
      if (!sources[i].words)
        return op.emitOpError("reads packets from a box that need not start on 8 bytes");
      aligned &= sources[i].aligned;
    }
    aligned &= sources[plain.front()].aligned && dests.front().aligned;
    line() << formatv("const PacketSpan span = packetSpan<Packet16>({0});\n", dests.front().bytes);
    line() << "const Words<aligned> result(to[0], span.bytes);\n";
    line() << formatv(
        "reducePackets<Packet16, aligned, {0}, ReduceOp::{1}>({2}, {3}, from[{3}], [&](int i) {{ "
        "return from[i]; }, span, ReduceArgs{{}, PacketRun{{epoch, a.guard, {4}}, [&](int64_t u, "
        "Unit unit) {{ unpackUnit<Packet16>(result, u, span.words, unit); });\n",
        type, kind, sources.size(), plain.front(), step);
  }
  --indent;
  line() << "}\n";
  return op.getNotify() ? emitSignal(op, op.getNotify()) : success();
}

LogicalResult Emitter::emitSignal(Operation *op, Value slot) {
  FailureOr<CudaSlots> at = e.slots(op, slot);
  if (failed(at))
    return failure();
  ctran::Realisation realisation = at->op.getRealisation();
  if (realisation != ctran::Realisation::Counter)
    return op->emitOpError("raises slots of realisation ")
           << ctran::stringifyRealisation(realisation)
           << "; sm lanes raise counters, and packets carry inband ones";
  if (at->op.getPerRun() == 1 && at->op.getWriters() == 1)
    line() << formatv("signalFromBlock(1, {0}, [&](int) {{ return {1}; });\n",
                      at->op.getGenerations() == 1
                          ? std::string("run + 1")
                          : formatv("run / {0} + 1", at->op.getGenerations()).str(),
                      place(*at));
  else
    line() << formatv("raiseFromBlock({0});\n", place(*at));
  unsynced = false; // a signal begins with a barrier
  return success();
}

LogicalResult Emitter::emitWait(ctran::WaitOp op, unsigned step) {
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

//===--- the file
//--------------------------------------------------------------------------------===//

void Emitter::fill(CudaKernel &kernel) {
  llvm::raw_string_ostream os(kernel.source);
  std::string name = program.getSymName().str();
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  int64_t ranks = program.getNumRanks();
  size_t windows = std::max<size_t>(e.windows.size(), 1),
         slots = std::max<size_t>(e.slotArrays.size(), 1);
  os << formatv(
      "// Generated by ncclx-translate --ctran-to-cuda from @{0}: {1} ranks, {2} blocks of "
      "{3} threads.\n",
      program.getSymName(), ranks, blocks, options.threads);
  os << "#include \"ncclxrt/device/packet.cuh\"\n#include \"ncclxrt/device/transfer.cuh\"\n\n"
     << "namespace {\nusing namespace ncclxrt::device;\n\n";
  os << "struct Arguments {\n"
     << formatv("  char *windows[{0}][{1}]; // of each rank, as this GPU sees it\n", windows, ranks)
     << formatv("  uint64_t *slots[{0}][{1}];\n", slots, ranks)
     << "  uint64_t *epochs; // one a block, 0 at first\n  Guard guard;\n  int64_t rank;\n};\n\n";
  os << formatv("constexpr int64_t windowBytes[] = {{");
  for (ctran::WindowOp window : e.windows)
    os << bytesOf(window) << ", ";
  os << "}; // of one generation\nconstexpr int64_t windowGenerations[] = {";
  for (ctran::WindowOp window : e.windows)
    os << window.getGenerations() << ", ";
  os << "};\n";
  if (!e.slotArrays.empty()) {
    os << "constexpr int64_t slotCounts[] = {";
    for (ctran::SlotsOp array : e.slotArrays)
      os << countOf(array) << ", ";
    os << "};\nconstexpr int64_t slotGenerations[] = {";
    for (ctran::SlotsOp array : e.slotArrays)
      os << array.getGenerations() << ", ";
    os << "};\n";
  }
  if (!packetWindows.empty())
    os << formatv("constexpr bool aligned = {0}; // all messages start and end on 8 bytes\n",
                  aligned ? "true" : "false");
  os << formatv("} // namespace\n\nextern \"C\" __global__ void __launch_bounds__({0}) {1}_kernel("
                "const __grid_constant__ Arguments a) {{\n",
                options.threads, name)
     << "  awaitEarlierKernels();\n  releaseLaterKernels();\n  Epoch epoch(a.epochs);\n"
     << "  const uint64_t run = epoch - 1;\n";
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

  kernel.name = name;
  kernel.entry = name + "_kernel";
  kernel.ranks = ranks;
  kernel.blocks = blocks;
  kernel.threads = options.threads;
  for (ctran::WindowOp window : e.windows)
    kernel.windows.push_back({window, bytesOf(window), int64_t(window.getGenerations())});
  for (ctran::SlotsOp array : e.slotArrays)
    kernel.slotWords.push_back(countOf(array) * int64_t(array.getGenerations()));
  kernel.steps.assign(stepNames.begin(), stepNames.end());
}

LogicalResult Emitter::run(CudaKernel &kernel) {
  if (options.threads < 32 || options.threads > 1024 || options.threads % 32 || options.blocks < 1)
    return program.emitOpError("is to run in ")
           << options.blocks << " blocks of " << options.threads
           << " threads; a block has whole warps, at most 1024 threads, and there is at least one";
  if (failed(analyse()) || failed(emitBlock(program.getBody().front())))
    return failure();
  fill(kernel);
  return success();
}

FailureOr<CudaKernel> mlir::ncclx::emitCudaKernel(ctran::ProgramOp program,
                                                  const CudaOptions &options) {
  CudaKernel kernel;
  if (failed(Emitter(program, options).run(kernel)))
    return failure();
  return kernel;
}
