//===- ImportMscclXml.cpp - An MSCCL program as ctran ----------------------------------===//
#include "MscclAlgorithm.h"

#include "ncclx/Conversion/ScheduleBuilder.h"
#include "ncclx/Import/Msccl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::msccl;
using mlir::ctran::ScheduleBuilder;

void mlir::ncclx::registerImportDialects(DialectRegistry &registry) {
  registry.insert<ctran::CTranDialect, arith::ArithDialect, scf::SCFDialect>();
}

namespace {

/// A name that ctran takes: without quotes or control characters, not empty.
std::string plainName(StringRef text) {
  std::string out;
  for (char c : text)
    out += llvm::isAlnum(c) || c == '.' || c == '-' ? c : '_';
  return out.empty() ? "algorithm" : out;
}

StringRef kindOf(const Algorithm &a) {
  switch (a.collective) {
  case Collective::AllGather:
    return "all_gather";
  case Collective::AllReduce:
    return "all_reduce";
  case Collective::AllToAll:
    return "all_to_all";
  case Collective::ReduceScatter:
    return "reduce_scatter";
  case Collective::Custom:
    return "custom";
  }
  llvm_unreachable("all collectives are handled");
}

/// The least that the busiest rank sends, in chunks, times the number of ranks: every rank on a
/// port of its own. 0: not known.
int64_t leastSentTimesRanks(const Algorithm &a) {
  int64_t n = a.ranks();
  switch (a.collective) {
  case Collective::AllGather:
    return (n - 1) * a.inputChunks * n;
  case Collective::AllReduce:
    return 2 * (n - 1) * a.inputChunks;
  case Collective::AllToAll:
    return (n - 1) * a.inputChunks;
  case Collective::ReduceScatter:
    return (n - 1) * a.outputChunks * n;
  case Collective::Custom:
    return 0;
  }
  llvm_unreachable("all collectives are handled");
}

class Emitter {
public:
  Emitter(const Algorithm &a, const Play &play, const MscclOptions &options, ModuleOp module)
      : a(a), play(play), options(options), b(OpBuilder::atBlockEnd(module.getBody())), axis("x") {}

  void run();

private:
  const Algorithm &a;
  const Play &play;
  const MscclOptions &options;
  OpBuilder b;
  StringRef axis;
  std::string value;
  std::unique_ptr<ScheduleBuilder> builder;
  Value input, output, scratch, fifo; ///< cut in chunks; fifo: by connection, place, chunk of it
  int64_t widest = 1;                 ///< chunks of a place

  /// A connection's counters: slots of all connections with as many transfers are one declaration.
  struct Ends {
    Value data, credit;           ///< declarations
    int64_t atReceiver, atSender; ///< places in them
    int64_t fifo;                 ///< first index of the receiver's fifo
  };
  std::map<Connection, Ends> ends;
  /// What one end of a connection names again and again; of the rank being written.
  struct End {
    const Ends *ends = nullptr;
    Value awaited, raised, fifo;
    int64_t transfers = 0;
  };
  std::map<int64_t, Value> constants; ///< at the top of the program

  ScheduleBuilder &s() { return *builder; }
  Value whole(StringRef name, ctran::WindowRole role, int64_t chunks, Location loc);
  void declareMemory();
  void declareConnections();
  Value slots(const std::string &name, int64_t count, int64_t perRun, int64_t credits);
  Value chunks(Value window, int64_t first, int64_t count);
  Value fifoChunks(const End &end, int64_t first, int64_t count);
  Value own(int64_t rank, Place place, int64_t count);
  Value peer(Value memory, int64_t rank);
  Value emitSources(Value entry);
  Value emitRank(int64_t rank, Value start);
  Value emitSinks(ValueRange ready);
  Value forChunks(int64_t count, Value token, llvm::function_ref<Value(Value, Value)> body);
  Value coordNumber();
  Value constant(int64_t value);
};

Value Emitter::whole(StringRef name, ctran::WindowRole role, int64_t chunks, Location loc) {
  auto type = MemRefType::get({chunks * options.chunkElements}, b.getF32Type());
  bool argument = role != ctran::WindowRole::Scratch;
  Value window = ctran::WindowOp::create(b, loc, ctran::WindowType::get(b.getContext()), name, role,
                                         argument ? b.getI64IntegerAttr(0) : IntegerAttr(), 1,
                                         ctran::PeerAccess::None, type);
  return s().reindex(window, std::nullopt, s().freeDim(chunks));
}

void Emitter::declareMemory() {
  using Role = ctran::WindowRole;
  if (a.inPlace) {
    input = output = whole("buffer", Role::InOut, a.bufferChunks(), s().loc);
  } else {
    if (a.inputChunks)
      input = whole("input", Role::Input, a.inputChunks, s().loc);
    if (a.outputChunks)
      output = whole("output", Role::Output, a.outputChunks, s().loc);
  }
  if (a.scratchChunks)
    scratch = whole("scratch", Role::Scratch, a.scratchChunks, s().loc);
}

void Emitter::declareConnections() {
  int64_t most = 0;
  std::map<int64_t, int64_t> fifos;                                 // by receiver
  std::map<int64_t, std::map<int64_t, int64_t>> receivers, senders; // by transfers, then rank
  std::map<int64_t, int64_t> places;                                // by transfers
  auto connections = a.connections();
  for (const Gpu &gpu : a.gpus)
    for (const ThreadBlock &block : gpu.blocks)
      for (const Step &step : block.steps)
        if (sends(step.type))
          widest = std::max(widest, step.count);
  for (auto [c, transfers] : connections) {
    if (!transfers)
      continue;
    auto [from, to, channel] = c;
    Ends &e = ends[c];
    e.fifo = fifos[to]++;
    e.atReceiver = receivers[transfers][to]++;
    e.atSender = senders[transfers][from]++;
    most = std::max(most, fifos[to]);
    places[transfers] = std::max({places[transfers], e.atReceiver + 1, e.atSender + 1});
  }
  if (ends.empty())
    return;
  auto type =
      MemRefType::get({most * options.fifoSlots * widest * options.chunkElements}, b.getF32Type());
  Value window = s().scratch("fifo", type);
  fifo = s().reindex(window, std::nullopt, s().freeDim(most * options.fifoSlots * widest));
  std::map<int64_t, std::pair<Value, Value>> declared;
  for (auto [transfers, count] : places) {
    std::string suffix = "." + std::to_string(transfers);
    declared[transfers] = {slots("data" + suffix, count, transfers, 0),
                           slots("credit" + suffix, count, transfers, options.fifoSlots)};
  }
  for (auto &[c, e] : ends)
    std::tie(e.data, e.credit) = declared[connections[c]];
}

Value Emitter::slots(const std::string &name, int64_t count, int64_t perRun, int64_t credits) {
  return ctran::SlotsOp::create(b, s().loc, ctran::SlotsType::get(b.getContext()), name,
                                b.getArrayAttr(Attribute(s().freeDim(count))), perRun,
                                /*writers=*/1, /*generations=*/1, credits, ctran::SlotScope::System,
                                ctran::Realisation::Counter);
}

Value Emitter::chunks(Value window, int64_t first, int64_t count) {
  bool one = count == 1;
  return ctran::RangeOp::create(b, s().loc, ctran::RangeType::get(b.getContext()), window,
                                one ? ValueRange(constant(first)) : ValueRange(),
                                one ? Value() : constant(first), one ? Value() : constant(count),
                                Value());
}

/// Chunks of the place that a connection's current transfer takes.
Value Emitter::fifoChunks(const End &end, int64_t first, int64_t count) {
  int64_t place = (end.transfers - 1) % options.fifoSlots;
  return chunks(end.fifo, (end.ends->fifo * options.fifoSlots + place) * widest + first, count);
}

Value Emitter::own(int64_t rank, Place place, int64_t count) {
  Place found = a.resolve(rank, place);
  Value window = found.buffer == 'i' ? input : found.buffer == 'o' ? output : scratch;
  return chunks(window, found.chunk, count);
}

Value Emitter::peer(Value memory, int64_t rank) {
  return ctran::PeerViewOp::create(b, s().loc, memory.getType(), memory, ValueRange(),
                                   constant(rank));
}

Value Emitter::constant(int64_t value) {
  Value &known = constants[value];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&s().program.getBody().front());
    known = arith::ConstantIndexOp::create(b, s().program.getLoc(), value);
  }
  return known;
}

Value Emitter::coordNumber() {
  return ctran::CoordValueOp::create(b, s().loc, b.getIndexType(), s().own(0));
}

Value Emitter::forChunks(int64_t count, Value token, llvm::function_ref<Value(Value, Value)> body) {
  return s().loop(0, count, token, body);
}

// Values are named by the chunk's number in the whole, which is the same on every rank.
Value Emitter::emitSources(Value entry) {
  switch (a.collective) {
  case Collective::Custom:
    return entry;
  case Collective::AllReduce:
  case Collective::ReduceScatter:
    return s().source(s().range(input), value, {}, {0}, entry);
  case Collective::AllGather:
  case Collective::AllToAll:
    return forChunks(a.inputChunks, entry, [&](Value j, Value before) {
      Value first = arith::MulIOp::create(b, s().loc, coordNumber(), constant(a.inputChunks));
      Value number = s().add(first, j);
      bool shard = a.inPlace && a.collective == Collective::AllGather;
      return s().source(s().range(input, shard ? number : j), value, number, {}, before, {0});
    });
  }
  llvm_unreachable("all collectives are handled");
}

Value Emitter::emitSinks(ValueRange ready) {
  auto number = [&](int64_t scale) {
    return Value(arith::MulIOp::create(b, s().loc, coordNumber(), constant(scale)));
  };
  switch (a.collective) {
  case Collective::Custom:
    return Value();
  case Collective::AllReduce:
    return s().sink(s().range(output), value, {}, {0}, ready);
  case Collective::AllGather:
    return s().sink(s().range(output), value, {}, {}, ready, {0});
  case Collective::ReduceScatter:
    break;
  case Collective::AllToAll:
    break;
  }
  // The first chunk's sink takes all that must be ready; the others follow it.
  SmallVector<Value> after(ready);
  Value joined =
      ctran::FlushOp::create(b, s().loc, ctran::TokenType::get(b.getContext()), after,
                             ctran::LaneKind::Host, Value(), s().of, b.getStringAttr("all done"));
  return forChunks(a.outputChunks, joined, [&](Value j, Value before) -> Value {
    if (a.collective == Collective::ReduceScatter) {
      Value index = s().add(number(a.outputChunks), j);
      return s().sink(s().range(output, a.inPlace ? index : j), value, index, {0}, before);
    }
    // Chunk j comes from rank j / share, where it is the own rank's part.
    int64_t share = a.inputChunks / a.ranks();
    Value width = constant(share);
    Value from = arith::DivSIOp::create(b, s().loc, j, width);
    Value index = s().add(
        s().add(arith::MulIOp::create(b, s().loc, from, constant(a.inputChunks)), number(share)),
        arith::RemSIOp::create(b, s().loc, j, width));
    return s().sink(s().range(output, j), value, index, {}, before, {0});
  });
}

Value Emitter::emitRank(int64_t rank, Value start) {
  const Gpu &gpu = a.gpus[rank];
  Value isHere =
      arith::CmpIOp::create(b, s().loc, arith::CmpIPredicate::eq, coordNumber(), constant(rank));
  auto branch = scf::IfOp::create(b, s().loc, start.getType(), isHere, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getElseRegion().front());
  scf::YieldOp::create(b, s().loc, start);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  Value begin = start;
  for (auto &[source, dest] : gpu.copies)
    begin = s().copy(own(rank, source, 1), own(rank, dest, 1), Value(), begin,
                     {ctran::LaneKind::SM, 0}, "copy");
  std::vector<Value> last(gpu.blocks.size(), begin);
  std::vector<End> ins(gpu.blocks.size()), outs(gpu.blocks.size());
  for (auto [i, block] : llvm::enumerate(gpu.blocks)) {
    if (auto found = ends.find({block.receive, rank, block.channel}); found != ends.end()) {
      const Ends &e = found->second;
      ins[i] = {&e, s().slot(e.data, constant(e.atReceiver)),
                s().slot(peer(e.credit, block.receive), constant(e.atSender)), fifo, 0};
    }
    if (auto found = ends.find({rank, block.send, block.channel}); found != ends.end()) {
      const Ends &e = found->second;
      outs[i] = {&e, s().slot(e.credit, constant(e.atSender)),
                 s().slot(peer(e.data, block.send), constant(e.atReceiver)), peer(fifo, block.send),
                 0};
    }
  }
  std::map<std::pair<size_t, size_t>, Value> done;
  for (auto position : play.order[rank]) {
    auto [index, number] = position;
    const ThreadBlock &block = gpu.blocks[index];
    const Step &step = block.steps[number];
    s().loc = Location(step.loc);
    ScheduleBuilder::LaneRef lane{ctran::LaneKind::SM, int64_t(index)};
    Value laneIndex = constant(lane.index);
    auto note = b.getStringAttr(
        llvm::formatv("gpu {0} tb {1} step {2} {3}", rank, block.id, step.number, step.word));
    SmallVector<Value> after{last[index]};
    if (step.dependency)
      after.push_back(done[*step.dependency]);
    End *in = receives(step.type) ? &ins[index] : nullptr;
    End *out = sends(step.type) ? &outs[index] : nullptr;
    auto tokenType = last[index].getType();
    auto await = [&](End &end) {
      after = {ctran::WaitOp::create(b, s().loc, tokenType, end.awaited, constant(++end.transfers),
                                     after, lane.kind, laneIndex, s().of, note)};
    };
    if (in)
      await(*in);
    if (out)
      await(*out);
    Value token;
    if (reduces(step.type)) {
      token = after.front();
      for (int64_t i = 0; i < step.count; ++i) {
        auto shifted = [&](Place p) { return own(rank, {p.buffer, p.chunk + i}, 1); };
        SmallVector<Value> sources{step.type == StepType::Reduce ? shifted(step.dest)
                                                                 : fifoChunks(*in, i, 1),
                                   shifted(step.source)};
        SmallVector<Value> dests;
        if (stores(step.type))
          dests.push_back(shifted(step.dest));
        if (out)
          dests.push_back(fifoChunks(*out, i, 1));
        token = ctran::ReduceOp::create(b, s().loc, token.getType(), ctran::ReduceKind::Sum,
                                        FloatAttr(), IntegerAttr(), b.getF32Type(), sources, dests,
                                        Value(), i ? ValueRange(token) : ValueRange(after),
                                        lane.kind, laneIndex, s().of, note);
      }
    } else if (step.type != StepType::Nop) {
      SmallVector<Value> dests;
      if (stores(step.type))
        dests.push_back(own(rank, step.dest, step.count));
      if (out)
        dests.push_back(fifoChunks(*out, 0, step.count));
      Value source = in ? fifoChunks(*in, 0, step.count) : own(rank, step.source, step.count);
      token = ctran::CopyOp::create(b, s().loc, after.front().getType(), source, dests, Value(),
                                    after, lane.kind, laneIndex, s().of, note);
    } else {
      token = after.size() == 1
                  ? after.front()
                  : Value(ctran::FlushOp::create(b, s().loc, ctran::TokenType::get(b.getContext()),
                                                 after, lane.kind, laneIndex, s().of, note));
    }
    for (End *end : {in, out})
      if (end)
        token = ctran::SignalOp::create(b, s().loc, tokenType, end->raised, token, lane.kind,
                                        laneIndex, s().of, note);
    last[index] = done[position] = token;
  }
  s().loc = Location(gpu.loc);
  SmallVector<Value> all;
  for (Value token : last)
    if (!llvm::is_contained(all, token))
      all.push_back(token);
  Value end =
      all.size() == 1
          ? all.front()
          : Value(ctran::FlushOp::create(b, s().loc, ctran::TokenType::get(b.getContext()), all,
                                         ctran::LaneKind::Host, Value(), s().of,
                                         b.getStringAttr("gpu " + std::to_string(rank) + " done")));
  scf::YieldOp::create(b, s().loc, end);
  return branch.getResult(0);
}

void Emitter::run() {
  MLIRContext *context = b.getContext();
  Location loc(a.loc);
  std::string name = plainName(a.name);
  value = kindOf(a).str();
  int64_t bytes = a.bufferChunks() * options.chunkElements * 4;
  Attribute collective =
      ctran::CollectiveAttr::get(context, value, kindOf(a), name, {b.getStringAttr(axis)}, bytes);
  auto program =
      ctran::ProgramOp::create(b, loc, name, StringAttr(),
                               b.getArrayAttr({ctran::GridAxisAttr::get(context, axis, a.ranks())}),
                               b.getArrayAttr(collective));
  Block &block = program.getBody().emplaceBlock();
  block.addArgument(ctran::TokenType::get(context), loc);
  b.setInsertionPointToEnd(&block);
  builder = std::make_unique<ScheduleBuilder>(b, loc, program, ctran::Carrier{}, value);
  declareMemory();
  declareConnections();
  Value start = emitSources(program.getEntry());
  SmallVector<Value> ready;
  for (int64_t rank = 0; rank < a.ranks(); ++rank)
    ready.push_back(emitRank(rank, start));
  s().loc = loc;
  if (Value demanded = emitSinks(ready))
    ready = {demanded};
  ctran::ReturnOp::create(b, loc, ready);
}

} // namespace

OwningOpRef<ModuleOp> mlir::ncclx::importMscclXml(StringRef text, StringRef name,
                                                  MLIRContext *context,
                                                  const MscclOptions &options) {
  DialectRegistry registry;
  registerImportDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  std::optional<Algorithm> algorithm = readAlgorithm(text, name, context);
  if (!algorithm)
    return nullptr;
  std::optional<Play> played = play(*algorithm, options.fifoSlots);
  if (!played)
    return nullptr;
  Location loc(algorithm->loc);
  if (algorithm->collective == Collective::Custom)
    emitWarning(loc) << "coll is '" << algorithm->collectiveName
                     << "', whose result is not known here: only reads, races and waits can be "
                        "proved of it";
  if (!played->fifoSlots)
    emitWarning(loc) << "stops for ever with " << options.fifoSlots << " FIFO places";
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  Emitter(*algorithm, *played, options, *module).run();
  size_t steps = 0;
  for (const Gpu &gpu : algorithm->gpus)
    for (const ThreadBlock &block : gpu.blocks)
      steps += block.steps.size();
  InFlightDiagnostic remark = emitRemark(loc);
  remark << kindOf(*algorithm) << " of " << algorithm->ranks() << " ranks "
         << (algorithm->inPlace ? "in" : "out of") << " place, " << steps << " steps";
  if (played->fifoSlots)
    remark << ": needs " << *played->fifoSlots << " FIFO place"
           << (*played->fifoSlots == 1 ? "" : "s") << ", " << played->hops << " hop"
           << (played->hops == 1 ? "" : "s");
  if (int64_t least = leastSentTimesRanks(*algorithm); least && played->fifoSlots)
    remark << ", the busiest rank sends "
           << llvm::formatv("{0:F3}", double(played->mostSent) * algorithm->ranks() / least).str()
           << " of the least";
  return module;
}
