//===- ExportMscclXml.cpp - A ctran program as an MSCCL XML file ------------------------===//
//
// MSCCL knows no puts and no signals: a sender fills a FIFO and the receiver empties it. So a put
// whose landing raises a slot, by its notify or by a signal behind it on its lane, becomes a send
// on a connection of that slot's own, received where the slot is awaited; what a receiver's ready
// tokens and credits say is said by the FIFO. What one rank's lanes order among themselves are
// dependencies of steps. Whether that is enough the prover says of the file, imported.
//
//===----------------------------------------------------------------------===//
#include "ncclx/CTran/Reader.h"
#include "ncclx/Import/Msccl.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace mlir::ncclx;
namespace machine = mlir::ctran::machine;

namespace {

/// Elements of one buffer of one rank.
struct Box {
  int64_t rank = 0;
  char buffer = 'i';
  int64_t first = 0, count = 0;
};

using SlotKey = std::tuple<int64_t, unsigned, int64_t>; ///< rank, slots, number in them

/// How many steps of each thread block are over.
using Clock = std::vector<int64_t>;
void merge(Clock &into, const Clock &from) {
  into.resize(std::max(into.size(), from.size()), 0);
  for (size_t i = 0; i < from.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}

struct Step {
  StringRef type;
  std::optional<Box> source, dest;
  std::pair<int64_t, int64_t> on{-1, -1}; ///< block and step
  bool awaited = false;
  Clock clock{}; ///< what is over when it is
};

struct ThreadBlock {
  int64_t send = -1, receive = -1, channel = 0;
  std::vector<Step> steps;
};

/// One executed op, resolved.
struct Item {
  machine::Op op;
  std::vector<Box> reads, writes;
  std::vector<SlotKey> slots;
  std::optional<SlotKey> arrives; ///< of a put: the slot that says so
};

/// What raises a slot at another rank.
struct Arrivals {
  struct Put {
    Box dest;
    int64_t raise; ///< the signal that tells of it, from 0
  };
  int64_t sender = 0, raises = 0;
  std::vector<Put> puts;
};

class Exporter {
public:
  Exporter(ctran::ProgramOp program, const machine::Schedule &schedule, ArrayRef<Operation *> ops)
      : program(program), schedule(schedule), ops(ops), ranks(schedule.grid.numRanks()),
        blocks(ranks) {}
  LogicalResult run(llvm::raw_ostream &os);

private:
  ctran::ProgramOp program;
  const machine::Schedule &schedule;
  ArrayRef<Operation *> ops;
  int64_t ranks, chunk = 0; ///< chunk: elements
  int64_t inputElements = 0, outputElements = 0, scratchElements = 0;
  bool inPlace = false;
  std::vector<int64_t> base; ///< of each window in its buffer
  std::vector<std::vector<Item>> items;
  std::map<SlotKey, Arrivals> arrivals;
  std::map<SlotKey, int64_t> channels; ///< of the connection that a slot's puts take
  std::map<std::pair<int64_t, int64_t>, int64_t> channelsOf; ///< how many a pair of ranks has
  std::vector<std::vector<ThreadBlock>> blocks;

  // Of the rank being written.
  int64_t rank = 0;
  std::map<std::pair<int, int64_t>, size_t> laneBlock;
  std::map<std::tuple<int64_t, bool, int64_t>, size_t> peerBlock; ///< peer, sends, channel
  std::map<std::pair<int, int64_t>, Clock> laneClock;
  std::map<const machine::Token *, Clock> tokenClock;
  std::map<SlotKey, std::vector<Clock>> raised; ///< by the own rank
  std::map<SlotKey, size_t> received;

  InFlightDiagnostic refuse(const machine::Op &op) {
    Operation *at = op.location < ops.size() ? ops[op.location] : nullptr;
    return at ? at->emitError("cannot be said in MSCCL XML: ")
              : program.emitError("cannot be said in MSCCL XML: ");
  }
  LogicalResult declare();
  LogicalResult load();
  LogicalResult raise(const machine::Op &op, const SlotKey &slot, ArrayRef<Item *> puts);
  LogicalResult resolve(const machine::Op &op, const machine::Access &access, Box &box);
  int64_t target(const machine::Peer &peer) const;
  int64_t number(const machine::Index &index) const;
  LogicalResult measure();
  LogicalResult writeRank();
  LogicalResult writeItem(Item &item);
  LogicalResult writeReduce(const Item &item, size_t block, Clock &clock);
  LogicalResult writeWait(const Item &item, Clock &clock);
  void receive(const SlotKey &slot, int64_t upTo, const Clock &after, Clock &clock);
  size_t blockOf(int64_t peer, bool sends, int64_t channel);
  size_t blockOf(const machine::Lane &lane);
  void add(size_t block, Step step, const Clock &after, Clock &clock);
  void print(llvm::raw_ostream &os);
};

LogicalResult Exporter::declare() {
  if (program.getCollectives().size() != 1)
    return program.emitError("carries ")
           << program.getCollectives().size() << " collectives; an MSCCL file carries one";
  using Role = machine::Window::Role;
  for (const machine::Window &window : schedule.windows) {
    int64_t elements = window.spaces[0].storageBytes() / window.elementBytes;
    int64_t *total = window.role == Role::Scratch  ? &scratchElements
                     : window.role == Role::Output ? &outputElements
                                                   : &inputElements;
    if (window.role != Role::Scratch && *total)
      return program.emitError("has several inputs or outputs; an MSCCL file has one of each");
    if (window.generations != 1)
      return program.emitError("window \"") << window.name << "\" has " << window.generations
                                            << " generations; an MSCCL file's buffers have one";
    if (window.elementBytes != schedule.windows.front().elementBytes)
      return program.emitError("has windows of several element types");
    base.push_back(*total);
    *total += elements;
    inPlace |= window.role == Role::InOut;
  }
  if (inPlace && outputElements)
    return program.emitError("has several inputs or outputs; an MSCCL file has one of each");
  return success();
}

int64_t Exporter::number(const machine::Index &index) const {
  if (!index.own)
    return index.value;
  int64_t n = schedule.grid.sizes[index.axis];
  return machine::wrapped(schedule.grid.pointOf(rank)[index.axis] + index.value, n);
}

int64_t Exporter::target(const machine::Peer &peer) const {
  if (!peer.remote)
    return rank;
  if (peer.absolute)
    return peer.rank;
  std::vector<int64_t> point = schedule.grid.pointOf(rank);
  for (size_t i = 0; i < point.size(); ++i)
    point[i] = machine::wrapped(point[i] + peer.shift[i], schedule.grid.sizes[i]);
  return schedule.grid.rankOf(point);
}

LogicalResult Exporter::resolve(const machine::Op &op, const machine::Access &access, Box &box) {
  const machine::Window &window = schedule.windows[access.window];
  const machine::Space &space = window.spaces[access.space];
  box.rank = target(access.peer);
  std::vector<int64_t> path;
  for (const machine::Index &index : access.path)
    path.push_back(number(index));
  // The whole of a resident space is its owner's piece.
  if (space.resident && path.empty() && access.count < 0) {
    std::vector<int64_t> point = schedule.grid.pointOf(box.rank);
    for (const machine::Dim &dim : space.dims)
      path.push_back(point[*dim.axis]);
  }
  machine::ByteBox bytes = space.locate(path, number(access.first), access.count);
  if (bytes.rows > 1 && bytes.rowBytes != bytes.stride && bytes.bytes() > 0)
    return refuse(op) << bytes.rows << " rows of window \"" << window.name
                      << "\" that do not follow each other; its steps move whole chunks";
  using Role = machine::Window::Role;
  box.buffer = window.role == Role::Scratch             ? 's'
               : inPlace || window.role == Role::Output ? 'o'
                                                        : 'i';
  box.first = base[access.window] + bytes.offset / window.elementBytes;
  box.count = bytes.bytes() / window.elementBytes;
  return success();
}

// All ops of all ranks, and what each slot is raised by.
LogicalResult Exporter::load() {
  constexpr size_t most = 1 << 20;
  size_t total = 0;
  items.resize(ranks);
  for (rank = 0; rank < ranks; ++rank) {
    std::vector<int64_t> point = schedule.grid.pointOf(rank);
    std::unique_ptr<machine::OpStream> stream = schedule.open(&point, 0);
    while (true) {
      Item item;
      machine::OpStream::Result result = stream->next(item.op);
      if (result == machine::OpStream::Result::End)
        break;
      if (result != machine::OpStream::Result::Op)
        return program.emitError("is not a schedule: ") << stream->why;
      if (++total > most)
        return program.emitError("executes more than ") << most << " ops";
      const machine::Op &op = item.op;
      for (bool reads : {true, false})
        for (const machine::Access &access : reads ? op.reads : op.writes) {
          if (op.kind == machine::OpKind::Source || op.kind == machine::OpKind::Sink)
            continue;
          Box box;
          if (failed(resolve(op, access, box)))
            return failure();
          (reads ? item.reads : item.writes).push_back(box);
        }
      if (op.slot) {
        const std::vector<machine::Dim> &dims = schedule.slots[op.slot->slots].dims;
        int64_t begin = 0, count = 1;
        size_t depth = 0;
        for (; depth < op.slot->path.size(); ++depth)
          begin = begin * dims[depth].size + number(op.slot->path[depth]);
        if (op.slot->count >= 0) {
          begin = begin * dims[depth++].size + number(op.slot->first);
          count = op.slot->count;
        }
        for (; depth < dims.size(); ++depth) {
          begin *= dims[depth].size;
          count *= dims[depth].size;
        }
        for (int64_t i = 0; i < count; ++i)
          item.slots.push_back({target(op.slot->peer), op.slot->slots, begin + i});
      }
      bool put = op.kind == machine::OpKind::Copy &&
                 llvm::any_of(item.writes, [&](const Box &box) { return box.rank != rank; });
      if (put && item.writes.size() != 1)
        return refuse(op) << "a put with several destinations";
      items[rank].push_back(std::move(item));
    }
    // Puts that no signal has told of yet, by lane.
    std::map<std::pair<int, int64_t>, SmallVector<Item *>> untold;
    for (Item &item : items[rank]) {
      const machine::Op &op = item.op;
      SmallVector<Item *> &waiting = untold[{int(op.lane.kind), op.lane.index}];
      bool put = op.kind == machine::OpKind::Copy && item.writes.front().rank != rank;
      if (put && op.slot) {
        if (failed(raise(op, item.slots.front(), &item)))
          return failure();
      } else if (put) {
        if (machine::isIssueLane(op.lane.kind))
          return refuse(op) << "a put on nic that does not notify";
        waiting.push_back(&item);
      } else if (op.kind == machine::OpKind::Signal && std::get<0>(item.slots.front()) != rank) {
        int64_t to = std::get<0>(item.slots.front());
        auto there = [&](Item *each) { return each->writes.front().rank == to; };
        SmallVector<Item *> told(llvm::make_filter_range(waiting, there));
        llvm::erase_if(waiting, there);
        if (failed(raise(op, item.slots.front(), told)))
          return failure();
      }
    }
    for (auto &[lane, waiting] : untold)
      if (!waiting.empty())
        return refuse(waiting.front()->op) << "a put of which its receiver is not told";
  }
  return success();
}

/// One more signal on a slot at a peer, which tells of `puts`.
LogicalResult Exporter::raise(const machine::Op &op, const SlotKey &slot, ArrayRef<Item *> puts) {
  auto [it, isNew] = arrivals.try_emplace(slot);
  Arrivals &known = it->second;
  if (isNew) {
    known.sender = rank;
    channels[slot] = -1;
  }
  if (known.sender != rank)
    return refuse(op) << "slot \"" << schedule.slots[std::get<1>(slot)].name
                      << "\" is raised by several ranks; a connection has one sender";
  for (Item *put : puts) {
    put->arrives = slot;
    known.puts.push_back({put->writes.front(), known.raises});
    if (channels[slot] < 0)
      channels[slot] = channelsOf[{rank, std::get<0>(slot)}]++;
  }
  ++known.raises;
  return success();
}

/// The largest chunk of which all boxes are made.
LogicalResult Exporter::measure() {
  constexpr int64_t most = 1 << 15;
  for (int64_t whole : {inputElements, outputElements})
    chunk = std::gcd(chunk, whole);
  for (const std::vector<Item> &list : items)
    for (const Item &item : list)
      for (const std::vector<Box> *boxes : {&item.reads, &item.writes})
        for (const Box &box : *boxes)
          if (box.count)
            chunk = std::gcd(std::gcd(chunk, box.first), box.count);
  int64_t whole = std::max(inputElements, outputElements);
  if (chunk == 0)
    return program.emitError("moves nothing");
  if (whole / chunk > most)
    return program.emitError("its pieces have no common measure above ")
           << chunk << " elements, of which its buffers have " << whole / chunk
           << "; MSCCL's interpreter takes " << most;
  return success();
}

//===--- steps ----------------------------------------------------------------------------===//

size_t Exporter::blockOf(int64_t peer, bool sends, int64_t channel) {
  auto [it, isNew] = peerBlock.try_emplace({peer, sends, channel}, blocks[rank].size());
  if (isNew)
    blocks[rank].push_back({sends ? peer : -1, sends ? -1 : peer, channel, {}});
  return it->second;
}

size_t Exporter::blockOf(const machine::Lane &lane) {
  auto [it, isNew] = laneBlock.try_emplace({int(lane.kind), lane.index}, blocks[rank].size());
  if (isNew)
    blocks[rank].push_back({});
  return it->second;
}

/// Appends a step behind `after`; `clock` is then what is over when it is. A step names one step
/// that it waits for; others get a nop each.
void Exporter::add(size_t number, Step step, const Clock &after, Clock &clock) {
  ThreadBlock &block = blocks[rank][number];
  Clock known = block.steps.empty() ? Clock() : block.steps.back().clock;
  known.resize(std::max(after.size(), number + 1), 0);
  std::vector<std::pair<size_t, int64_t>> needs;
  for (size_t other = 0; other < after.size(); ++other)
    if (other != number && after[other] > known[other])
      needs.push_back({other, after[other]});
  // Whatever another of them waits for needs no mention.
  llvm::erase_if(needs, [&](const auto &need) {
    return llvm::any_of(needs, [&](const auto &other) {
      const Clock &covers = blocks[rank][other.first].steps[other.second - 1].clock;
      return other.first != need.first && need.first < covers.size() &&
             covers[need.first] >= need.second;
    });
  });
  auto append = [&](Step next) {
    next.clock = known;
    next.clock[number] = int64_t(block.steps.size()) + 1;
    block.steps.push_back(std::move(next));
  };
  for (size_t i = 0; i < needs.size(); ++i) {
    auto [other, steps] = needs[i];
    Step &awaited = blocks[rank][other].steps[steps - 1];
    awaited.awaited = true;
    merge(known, awaited.clock);
    if (i + 1 == needs.size())
      step.on = {int64_t(other), steps - 1};
    else
      append({"nop", {}, {}, {int64_t(other), steps - 1}});
  }
  append(std::move(step));
  clock = after;
  merge(clock, block.steps.back().clock);
}

void Exporter::receive(const SlotKey &slot, int64_t upTo, const Clock &after, Clock &clock) {
  const Arrivals &from = arrivals[slot];
  for (size_t &next = received[slot]; next < from.puts.size() && from.puts[next].raise < upTo;
       ++next) {
    if (!from.puts[next].dest.count)
      continue;
    Clock done;
    add(blockOf(from.sender, /*sends=*/false, channels[slot]), {"r", {}, from.puts[next].dest},
        after, done);
    merge(clock, done);
  }
}

LogicalResult Exporter::writeWait(const Item &item, Clock &clock) {
  Clock after = clock;
  for (const SlotKey &slot : item.slots) {
    int64_t k = schedule.slots[std::get<1>(slot)].awaited(item.op.k);
    if (k <= 0)
      continue;
    if (arrivals.count(slot)) { // without puts: a peer's ready token or credit
      receive(slot, k, after, clock);
      continue;
    }
    auto own = raised.find(slot);
    if (own == raised.end())
      return refuse(item.op) << "waits for a signal of its own rank that the text has only later";
    if (k > int64_t(own->second.size()))
      return refuse(item.op) << "waits for a signal of its own rank that the text has only later";
    for (int64_t i = 0; i < k; ++i)
      merge(clock, own->second[i]);
  }
  return success();
}

LogicalResult Exporter::writeReduce(const Item &item, size_t block, Clock &clock) {
  auto op = dyn_cast_or_null<ctran::ReduceOp>(ops[item.op.location]);
  if (!op || op.getKind() != ctran::ReduceKind::Sum || op.getScale() || op.getDivide())
    return refuse(item.op) << "a reduction that is not a plain sum";
  if (item.op.slot || item.writes.size() != 1)
    return refuse(item.op) << "a reduction that notifies, or has several destinations";
  for (const std::vector<Box> *boxes : {&item.reads, &item.writes})
    for (const Box &box : *boxes)
      if (box.rank != rank)
        return refuse(item.op) << "a reduction of a peer's memory";
  const Box &dest = item.writes.front();
  auto same = [&](const Box &box) { return box.buffer == dest.buffer && box.first == dest.first; };
  if (!dest.count)
    return success();
  auto own = llvm::find_if(item.reads, same);
  size_t kept = own == item.reads.end() ? 0 : size_t(own - item.reads.begin());
  auto part = [&](Box box) {
    box.count = dest.count; // a slot of scratch memory is used from its start
    return box;
  };
  if (own == item.reads.end())
    add(block, {"cpy", part(item.reads[0]), dest}, clock, clock);
  for (auto [i, source] : llvm::enumerate(item.reads))
    if (i != kept)
      add(block, {"re", part(source), dest}, clock, clock);
  return success();
}

LogicalResult Exporter::writeItem(Item &item) {
  const machine::Op &op = item.op;
  Clock clock;
  for (const machine::TokenRef &token : op.after)
    merge(clock, tokenClock[token.get()]);
  std::pair<int, int64_t> lane{int(op.lane.kind), op.lane.index};
  bool serial = !machine::isIssueLane(op.lane.kind);
  if (serial)
    merge(clock, laneClock[lane]);
  switch (op.kind) {
  case machine::OpKind::Copy: {
    const Box &source = item.reads.front();
    if (source.rank != rank)
      return refuse(op) << "a copy from a peer's memory";
    for (Box dest : item.writes) {
      if (!dest.count || !source.count)
        continue;
      Box from = source;
      from.count = dest.count = std::min(source.count, dest.count);
      if (dest.rank == rank) {
        add(blockOf(op.lane), {"cpy", from, dest}, clock, clock);
        continue;
      }
      add(blockOf(dest.rank, /*sends=*/true, channels[*item.arrives]), {"s", from, {}}, clock,
          clock);
    }
    break;
  }
  case machine::OpKind::Reduce:
    if (failed(writeReduce(item, blockOf(op.lane), clock)))
      return failure();
    break;
  case machine::OpKind::Signal:
    if (std::get<0>(item.slots.front()) == rank)
      raised[item.slots.front()].push_back(clock);
    break;
  case machine::OpKind::Wait:
    if (failed(writeWait(item, clock)))
      return failure();
    break;
  case machine::OpKind::Compute:
  case machine::OpKind::Count:
    return refuse(op) << "computation, or a size known at run time";
  case machine::OpKind::Flush:
  case machine::OpKind::Source:
  case machine::OpKind::Sink:
  case machine::OpKind::Entry:
  case machine::OpKind::Exit:
  case machine::OpKind::Nop:
    break;
  }
  if (serial)
    laneClock[lane] = clock;
  tokenClock[op.token.get()] = std::move(clock);
  return success();
}

LogicalResult Exporter::writeRank() {
  laneBlock.clear();
  peerBlock.clear();
  laneClock.clear();
  tokenClock.clear();
  raised.clear();
  received.clear();
  for (Item &item : items[rank])
    if (failed(writeItem(item)))
      return failure();
  // What nobody waits for arrives all the same.
  Clock all;
  for (auto &[lane, clock] : laneClock)
    merge(all, clock);
  for (auto &[slot, from] : arrivals)
    if (std::get<0>(slot) == rank)
      receive(slot, from.raises, all, all);
  return success();
}

void Exporter::print(llvm::raw_ostream &os) {
  auto claim = cast<ctran::CollectiveAttr>(program.getCollectives()[0]);
  StringRef collective = llvm::StringSwitch<StringRef>(claim.getKind())
                             .Case("all_gather", "allgather")
                             .Case("all_reduce", "allreduce")
                             .Case("all_to_all", "alltoall")
                             .Case("reduce_scatter", "reduce_scatter")
                             .Default("custom");
  int64_t most = 1;
  for (auto [pair, count] : channelsOf)
    most = std::max(most, count);
  int64_t in = inputElements / chunk, out = outputElements / chunk;
  int64_t scratch = (scratchElements + chunk - 1) / chunk;
  os << llvm::formatv(
      "<algo name=\"{0}\" proto=\"Simple\" nchannels=\"{1}\" nchunksperloop=\"{2}\" "
      "ngpus=\"{3}\" coll=\"{4}\" inplace=\"{5}\" outofplace=\"{6}\" "
      "minBytes=\"0\" maxBytes=\"{7}\">\n",
      program.getSymName(), most, std::max(in, out), ranks, collective, int(inPlace), int(!inPlace),
      std::numeric_limits<int64_t>::max());
  for (auto [rank, list] : llvm::enumerate(blocks)) {
    os << llvm::formatv("  <gpu id=\"{0}\" i_chunks=\"{1}\" o_chunks=\"{2}\" s_chunks=\"{3}\">\n",
                        rank, in, out, scratch);
    for (auto [id, block] : llvm::enumerate(list)) {
      os << llvm::formatv("    <tb id=\"{0}\" send=\"{1}\" recv=\"{2}\" chan=\"{3}\">\n", id,
                          block.send, block.receive, block.channel);
      for (auto [s, step] : llvm::enumerate(block.steps)) {
        // An end that a step does not have names the chunks of the other, as others' files do.
        const Box whole{0, 'i', 0, chunk};
        const Box &source = step.source ? *step.source : step.dest ? *step.dest : whole;
        const Box &dest = step.dest ? *step.dest : source;
        os << llvm::formatv("      <step s=\"{0}\" type=\"{1}\" srcbuf=\"{2}\" srcoff=\"{3}\" "
                            "dstbuf=\"{4}\" dstoff=\"{5}\" cnt=\"{6}\" depid=\"{7}\" deps=\"{8}\" "
                            "hasdep=\"{9}\"/>\n",
                            s, step.type, source.buffer, source.first / chunk, dest.buffer,
                            dest.first / chunk, source.count / chunk, step.on.first, step.on.second,
                            int(step.awaited));
      }
      os << "    </tb>\n";
    }
    os << "  </gpu>\n";
  }
  os << "</algo>\n";
}

LogicalResult Exporter::run(llvm::raw_ostream &os) {
  if (failed(declare()) || failed(load()) || failed(measure()))
    return failure();
  for (rank = 0; rank < ranks; ++rank)
    if (failed(writeRank()))
      return failure();
  print(os);
  return success();
}

} // namespace

LogicalResult mlir::ncclx::exportMscclXml(ctran::ProgramOp program, llvm::raw_ostream &os) {
  SmallVector<Operation *> ops;
  auto schedule = ctran::readSchedule(program, &ops);
  if (failed(schedule))
    return failure();
  return Exporter(program, **schedule, ops).run(os);
}
