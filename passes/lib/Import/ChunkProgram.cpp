//===- ChunkProgram.cpp - Programs over buffers that are counted in chunks ---------------===//
#include "ChunkProgram.h"

#include "ncclx/Import/Msccl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx::msccl;
using mlir::ctran::ScheduleBuilder;

void mlir::ncclx::registerImportDialects(DialectRegistry &registry) {
  registry.insert<ctran::CTranDialect, arith::ArithDialect, scf::SCFDialect>();
}

//===--- the collective ------------------------------------------------------------------===//

Collective mlir::ncclx::msccl::collectiveOf(StringRef word) {
  return llvm::StringSwitch<Collective>(word.lower())
      .Cases({"allgather", "all_gather"}, Collective::AllGather)
      .Cases({"allreduce", "all_reduce"}, Collective::AllReduce)
      .Cases({"alltoall", "all_to_all"}, Collective::AllToAll)
      .Cases({"reducescatter", "reduce_scatter"}, Collective::ReduceScatter)
      .Default(Collective::Custom);
}

StringRef Shape::kind() const {
  switch (collective) {
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

Place Shape::resolve(int64_t rank, Place place) const {
  if (place.buffer == 's' || !inPlace)
    return place;
  // The shard of a rank is its place in the whole.
  if (place.buffer == 'i' && collective == Collective::AllGather)
    place.chunk += rank * inputChunks;
  if (place.buffer == 'o' && collective == Collective::ReduceScatter)
    place.chunk += rank * outputChunks;
  place.buffer = 'o';
  return place;
}

int64_t Shape::chunksOf(char resolved) const {
  return resolved == 's'   ? scratchChunks
         : inPlace         ? bufferChunks()
         : resolved == 'i' ? inputChunks
                           : outputChunks;
}

// A file that aliases input and output may give the chunks of one of them only.
bool Shape::completeSizes() {
  auto wrong = [&](auto &&expected) {
    emitError(loc) << collectiveName << " of " << ranks << " GPUs with " << inputChunks
                   << " input and " << outputChunks << " output chunks, expected " << expected;
    return false;
  };
  switch (collective) {
  case Collective::AllGather:
    if (!outputChunks)
      outputChunks = inputChunks * ranks;
    if (!inputChunks)
      inputChunks = outputChunks / ranks;
    if (outputChunks != inputChunks * ranks)
      return wrong(inputChunks * ranks);
    break;
  case Collective::ReduceScatter:
    if (!inputChunks)
      inputChunks = outputChunks * ranks;
    if (!outputChunks)
      outputChunks = inputChunks / ranks;
    if (inputChunks != outputChunks * ranks)
      return wrong(inputChunks / ranks);
    break;
  case Collective::AllReduce:
  case Collective::AllToAll:
    if (!outputChunks)
      outputChunks = inputChunks;
    if (!inputChunks)
      inputChunks = outputChunks;
    if (inputChunks != outputChunks)
      return wrong("the same number");
    if (collective == Collective::AllToAll && inputChunks % ranks)
      return wrong("a multiple of the GPUs");
    break;
  case Collective::Custom:
    break;
  }
  if (bufferChunks() == 0)
    return emitError(loc) << "no GPU has input or output chunks", false;
  return true;
}

int64_t Shape::leastSentTimesRanks() const {
  switch (collective) {
  case Collective::AllGather:
    return (ranks - 1) * inputChunks * ranks;
  case Collective::AllReduce:
    return 2 * (ranks - 1) * inputChunks;
  case Collective::AllToAll:
    return (ranks - 1) * inputChunks;
  case Collective::ReduceScatter:
    return (ranks - 1) * outputChunks * ranks;
  case Collective::Custom:
    return 0;
  }
  llvm_unreachable("all collectives are handled");
}

std::string Shape::sentOfLeast(int64_t mostSent) const {
  int64_t least = leastSentTimesRanks();
  return least ? llvm::formatv(", the busiest rank sends {0:F3} of the least",
                               double(mostSent) * double(ranks) / double(least))
                     .str()
               : "";
}

void Shape::warnIfCustom() const {
  if (collective == Collective::Custom)
    emitWarning(loc) << "the collective is '" << collectiveName
                     << "', whose result is not known here: only reads, races and waits can be "
                        "proved of it";
}

//===--- counters ------------------------------------------------------------------------===//

size_t CounterTable::add(int64_t rank, int64_t perRun, int64_t credits) {
  Family family{perRun, credits};
  counters.push_back({family, used[family][rank]++});
  return counters.size() - 1;
}

void CounterTable::declare(ScheduleBuilder &s, StringRef name) {
  for (auto &[family, byRank] : used) {
    int64_t most = 0;
    for (auto [rank, count] : byRank)
      most = std::max(most, count);
    // Credits tell families apart that have as many signals; one name, one number of credits else.
    std::string own = (name + "." + std::to_string(family.first)).str();
    if (used.lower_bound({family.first, 0})->first != family)
      own += "." + std::to_string(family.second);
    OpBuilder &b = s.builder;
    declared[family] = ctran::SlotsOp::create(
        b, s.loc, ctran::SlotsType::get(b.getContext()), own,
        b.getArrayAttr(Attribute(s.freeDim(most))), family.first, /*writers=*/1, /*generations=*/1,
        family.second, ctran::SlotScope::System, ctran::Realisation::Counter);
  }
}

//===--- the program ---------------------------------------------------------------------===//

static constexpr StringRef axis = "x";

/// A name that ctran takes: without quotes or control characters, not empty.
static std::string plainName(StringRef text) {
  std::string out;
  for (char c : text)
    out += llvm::isAlnum(c) || c == '.' || c == '-' ? c : '_';
  return out.empty() ? "algorithm" : out;
}

ChunkProgram::ChunkProgram(const Shape &shape, int64_t chunkElements, ModuleOp module)
    : shape(shape), chunkElements(chunkElements), b(OpBuilder::atBlockEnd(module.getBody())) {}

void ChunkProgram::begin(ctran::PeerAccess peers, int64_t scratchGenerations) {
  MLIRContext *context = b.getContext();
  Location loc(shape.loc);
  std::string name = plainName(shape.name);
  value = shape.kind().str();
  int64_t bytes = shape.bufferChunks() * chunkElements * 4;
  Attribute collective = ctran::CollectiveAttr::get(context, value, shape.kind(), name,
                                                    {b.getStringAttr(axis)}, bytes);
  auto program = ctran::ProgramOp::create(
      b, loc, name, StringAttr(),
      b.getArrayAttr({ctran::GridAxisAttr::get(context, axis, shape.ranks)}),
      b.getArrayAttr(collective));
  Block &block = program.getBody().emplaceBlock();
  block.addArgument(ctran::TokenType::get(context), loc);
  b.setInsertionPointToEnd(&block);
  builder = std::make_unique<ScheduleBuilder>(b, loc, program, ctran::Carrier{}, value);
  using Role = ctran::WindowRole;
  if (shape.inPlace) {
    input = output = whole("buffer", Role::InOut, shape.bufferChunks(), peers, 1);
  } else {
    if (shape.inputChunks)
      input = whole("input", Role::Input, shape.inputChunks, peers, 1);
    if (shape.outputChunks)
      output = whole("output", Role::Output, shape.outputChunks, peers, 1);
  }
  if (shape.scratchChunks)
    scratch = whole("scratch", Role::Scratch, shape.scratchChunks, peers, scratchGenerations);
}

Value ChunkProgram::whole(StringRef name, ctran::WindowRole role, int64_t chunks,
                          ctran::PeerAccess peers, int64_t generations) {
  auto type = MemRefType::get({chunks * chunkElements}, b.getF32Type());
  bool argument = role != ctran::WindowRole::Scratch;
  Value window = ctran::WindowOp::create(b, s().loc, ctran::WindowType::get(b.getContext()), name,
                                         role, argument ? b.getI64IntegerAttr(0) : IntegerAttr(),
                                         generations, peers, type);
  return s().reindex(window, std::nullopt, s().freeDim(chunks));
}

Value ChunkProgram::constant(int64_t number) {
  Value &known = constants[number];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&s().program.getBody().front());
    known = arith::ConstantIndexOp::create(b, s().program.getLoc(), number);
  }
  return known;
}

Value ChunkProgram::chunks(Value window, int64_t first, int64_t count) {
  bool one = count == 1;
  Value &known = ranges[{b.getInsertionBlock(), window.getAsOpaquePointer(), first, count}];
  if (!known)
    known = ctran::RangeOp::create(b, s().loc, ctran::RangeType::get(b.getContext()), window,
                                   one ? ValueRange(constant(first)) : ValueRange(),
                                   one ? Value() : constant(first), one ? Value() : constant(count),
                                   Value());
  return known;
}

Value ChunkProgram::windowOf(int64_t rank, Place place) {
  char buffer = shape.resolve(rank, place).buffer;
  return buffer == 'i' ? input : buffer == 'o' ? output : scratch;
}

Value ChunkProgram::chunksAt(Value view, int64_t rank, Place place, int64_t count) {
  return chunks(view, shape.resolve(rank, place).chunk, count);
}

Value ChunkProgram::own(int64_t rank, Place place, int64_t count) {
  return chunksAt(windowOf(rank, place), rank, place, count);
}

Value ChunkProgram::peer(Value memory, int64_t rank) {
  return ctran::PeerViewOp::create(b, s().loc, memory.getType(), memory, ValueRange(),
                                   constant(rank));
}

Value ChunkProgram::join(ArrayRef<Value> tokens, ScheduleBuilder::LaneRef lane, StringRef note) {
  SmallVector<Value> all;
  for (Value token : tokens)
    if (!llvm::is_contained(all, token))
      all.push_back(token);
  if (all.size() == 1)
    return all.front();
  Value index = lane.kind == ctran::LaneKind::Host ? Value() : constant(lane.index);
  return ctran::FlushOp::create(b, s().loc, ctran::TokenType::get(b.getContext()), all, lane.kind,
                                index, s().of, b.getStringAttr(note));
}

Value ChunkProgram::coordNumber() {
  return ctran::CoordValueOp::create(b, s().loc, b.getIndexType(), s().own(0));
}

// Values are named by the chunk's number in the whole, which is the same on every rank.
Value ChunkProgram::emitSources() {
  Value entry = s().program.getEntry();
  switch (shape.collective) {
  case Collective::Custom:
    return entry;
  case Collective::AllReduce:
  case Collective::ReduceScatter:
    return s().source(s().range(input), value, {}, {0}, entry);
  case Collective::AllGather:
  case Collective::AllToAll:
    return s().loop(0, shape.inputChunks, entry, [&](Value j, Value before) {
      Value first = arith::MulIOp::create(b, s().loc, coordNumber(), constant(shape.inputChunks));
      Value number = s().add(first, j);
      bool shard = shape.inPlace && shape.collective == Collective::AllGather;
      return s().source(s().range(input, shard ? number : j), value, number, {}, before, {0});
    });
  }
  llvm_unreachable("all collectives are handled");
}

Value ChunkProgram::forRank(int64_t rank, Value start, llvm::function_ref<Value(Value)> body) {
  Value isHere =
      arith::CmpIOp::create(b, s().loc, arith::CmpIPredicate::eq, coordNumber(), constant(rank));
  auto branch = scf::IfOp::create(b, s().loc, start.getType(), isHere, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getElseRegion().front());
  scf::YieldOp::create(b, s().loc, start);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  scf::YieldOp::create(b, s().loc, body(start));
  return branch.getResult(0);
}

Value ChunkProgram::emitSinks(ValueRange ready) {
  auto number = [&](int64_t scale) {
    return Value(arith::MulIOp::create(b, s().loc, coordNumber(), constant(scale)));
  };
  switch (shape.collective) {
  case Collective::Custom:
    return Value();
  case Collective::AllReduce:
    return s().sink(s().range(output), value, {}, {0}, ready);
  case Collective::AllGather:
    return s().sink(s().range(output), value, {}, {}, ready, {0});
  case Collective::ReduceScatter:
  case Collective::AllToAll:
    break;
  }
  // The first chunk's sink takes all that must be ready; the others follow it.
  Value joined = join(SmallVector<Value>(ready), {ctran::LaneKind::Host, 0}, "all done");
  return s().loop(0, shape.outputChunks, joined, [&](Value j, Value before) -> Value {
    if (shape.collective == Collective::ReduceScatter) {
      Value index = s().add(number(shape.outputChunks), j);
      return s().sink(s().range(output, shape.inPlace ? index : j), value, index, {0}, before);
    }
    // Chunk j comes from rank j / share, where it is the own rank's part.
    int64_t share = shape.inputChunks / shape.ranks;
    Value width = constant(share);
    Value from = arith::DivSIOp::create(b, s().loc, j, width);
    Value index =
        s().add(s().add(arith::MulIOp::create(b, s().loc, from, constant(shape.inputChunks)),
                        number(share)),
                arith::RemSIOp::create(b, s().loc, j, width));
    return s().sink(s().range(output, j), value, index, {}, before, {0});
  });
}

void ChunkProgram::end(SmallVector<Value> ready) {
  s().loc = Location(shape.loc);
  if (Value demanded = emitSinks(ready))
    ready = {demanded};
  ctran::ReturnOp::create(b, s().loc, ready);
}
