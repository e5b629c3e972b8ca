//===- ImportMscclXml.cpp - An MSCCL program as ctran ----------------------------------===//
#include "MscclAlgorithm.h"

#include "ncclx/Import/Msccl.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx;
using namespace mlir::ncclx::msccl;
using mlir::ctran::ScheduleBuilder;

namespace {

class Emitter : ChunkProgram {
public:
  Emitter(const Algorithm &a, const Play &play, const MscclOptions &options, ModuleOp module)
      : ChunkProgram(a, options.chunkElements, module), a(a), play(play), options(options) {}

  void run();

private:
  const Algorithm &a;
  const Play &play;
  const MscclOptions &options;
  Value fifo;         ///< cut in chunks: by connection, place, chunk of it
  int64_t widest = 1; ///< chunks of a place

  /// A connection's counters: of what has arrived at the receiver, of places free at the sender.
  struct Ends {
    size_t data, credit;
    int64_t fifo; ///< first index of the receiver's fifo
  };
  std::map<Connection, Ends> ends;
  CounterTable data, credit;
  /// What one end of a connection names again and again; of the rank being written.
  struct End {
    const Ends *ends = nullptr;
    Value awaited, raised, fifo;
    int64_t transfers = 0;
  };

  void declareConnections();
  Value fifoChunks(const End &end, int64_t first, int64_t count);
  Value emitRank(int64_t rank, Value begin);
};

void Emitter::declareConnections() {
  int64_t most = 0;
  std::map<int64_t, int64_t> fifos; // by receiver
  for (const Gpu &gpu : a.gpus)
    for (const ThreadBlock &block : gpu.blocks)
      for (const Step &step : block.steps)
        if (sends(step.type))
          widest = std::max(widest, step.count);
  for (auto [c, transfers] : a.connections()) {
    if (!transfers)
      continue;
    auto [from, to, channel] = c;
    ends[c] = {data.add(to, transfers), credit.add(from, transfers, options.fifoSlots),
               fifos[to]++};
    most = std::max(most, fifos[to]);
  }
  if (ends.empty())
    return;
  int64_t places = most * options.fifoSlots * widest;
  Value window =
      s().scratch("fifo", MemRefType::get({places * options.chunkElements}, b.getF32Type()));
  fifo = s().reindex(window, std::nullopt, s().freeDim(places));
  data.declare(s(), "data");
  credit.declare(s(), "credit");
}

/// Chunks of the place that a connection's current transfer takes.
Value Emitter::fifoChunks(const End &end, int64_t first, int64_t count) {
  int64_t place = (end.transfers - 1) % options.fifoSlots;
  return chunks(end.fifo, (end.ends->fifo * options.fifoSlots + place) * widest + first, count);
}

Value Emitter::emitRank(int64_t rank, Value begin) {
  const Gpu &gpu = a.gpus[rank];
  for (auto &[source, dest] : gpu.copies)
    begin = s().copy(own(rank, source, 1), own(rank, dest, 1), Value(), begin,
                     {ctran::LaneKind::SM, 0}, "copy");
  std::vector<Value> last(gpu.blocks.size(), begin);
  std::vector<End> ins(gpu.blocks.size()), outs(gpu.blocks.size());
  for (auto [i, block] : llvm::enumerate(gpu.blocks)) {
    auto slot = [&](const CounterTable &table, size_t number, int64_t at) {
      Value slots = table.slots(number);
      return s().slot(at == rank ? slots : peer(slots, at), constant(table.place(number)));
    };
    if (auto found = ends.find({block.receive, rank, block.channel}); found != ends.end()) {
      const Ends &e = found->second;
      ins[i] = {&e, slot(data, e.data, rank), slot(credit, e.credit, block.receive), fifo, 0};
    }
    if (auto found = ends.find({rank, block.send, block.channel}); found != ends.end()) {
      const Ends &e = found->second;
      outs[i] = {&e, slot(credit, e.credit, rank), slot(data, e.data, block.send),
                 peer(fifo, block.send), 0};
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
      token = join(after, lane, note.getValue());
    }
    for (End *end : {in, out})
      if (end)
        token = ctran::SignalOp::create(b, s().loc, tokenType, end->raised, token, lane.kind,
                                        laneIndex, s().of, note);
    last[index] = done[position] = token;
  }
  s().loc = Location(gpu.loc);
  return join(last, {ctran::LaneKind::Host, 0}, "gpu " + std::to_string(rank) + " done");
}

void Emitter::run() {
  begin(ctran::PeerAccess::None, 1);
  declareConnections();
  Value start = emitSources();
  SmallVector<Value> ready;
  for (int64_t rank = 0; rank < a.ranks; ++rank)
    ready.push_back(forRank(rank, start, [&](Value begin) { return emitRank(rank, begin); }));
  end(ready);
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
  algorithm->warnIfCustom();
  if (!played->fifoSlots)
    emitWarning(loc) << "stops for ever with " << options.fifoSlots << " FIFO places";
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  Emitter(*algorithm, *played, options, *module).run();
  size_t steps = 0;
  for (const Gpu &gpu : algorithm->gpus)
    for (const ThreadBlock &block : gpu.blocks)
      steps += block.steps.size();
  InFlightDiagnostic remark = emitRemark(loc);
  remark << algorithm->kind() << " of " << algorithm->ranks << " ranks "
         << (algorithm->inPlace ? "in" : "out of") << " place, " << steps << " steps";
  if (played->fifoSlots)
    remark << ": needs " << *played->fifoSlots << " FIFO place"
           << (*played->fifoSlots == 1 ? "" : "s") << ", " << played->hops << " hop"
           << (played->hops == 1 ? "" : "s") << algorithm->sentOfLeast(played->mostSent);
  return module;
}
