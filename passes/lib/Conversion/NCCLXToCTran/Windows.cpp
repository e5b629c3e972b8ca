//===- Windows.cpp - One-sided operations become copies, signals and waits ---------------===//
//
// Every rank executes the same text, so it is known which put, signal and wait of one rank belong
// to which of another. The landing of each put is told by a slot of its own, since landings have no
// order; a signal that stands right behind a put is that. What a wait is for is thus a number of
// landings and of other signals.
//
//===----------------------------------------------------------------------------------------===//
#include "Windows.h"
#include "Places.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Remarks.h"

#include <map>
#include <set>

using namespace mlir;
using namespace mlir::ncclx;
using ctran::joined;
using ctran::ScheduleBuilder;

//===--- the layout -----------------------------------------------------------------------===//

bool Windows::isOnWindow(Operation *op) {
  return isa<WindowOp, PutOp, GetOp, SignalOp, WaitOp>(op);
}

namespace {
struct Box {
  SmallVector<int64_t> offsets, sizes;
  bool isEmpty() const { return llvm::is_contained(sizes, 0); }
};
} // namespace

/// The box that a put or get names, which lies in the window.
static FailureOr<Box> boxOf(Operation *op, ShapedType box, ArrayRef<OpFoldResult> offsets,
                            RankedTensorType window) {
  Box result{{}, SmallVector<int64_t>(box.getShape())};
  for (auto [d, offset] : llvm::enumerate(offsets)) {
    std::optional<int64_t> at = getConstantIntValue(offset);
    if (!at)
      return op->emitOpError("has an offset in dimension ")
             << d << " that is not a constant, which is not lowered yet";
    if (*at < 0 || *at > window.getDimSize(d) - box.getDimSize(d))
      return op->emitOpError("has a box of ")
             << box.getDimSize(d) << " at " << *at << " in dimension " << d
             << ", but the window has " << window.getDimSize(d);
    result.offsets.push_back(*at);
  }
  return result;
}

/// The view of `whole` that is a box of it; of a box `from` the beginning of `whole`.
static Value viewOf(OpBuilder &b, Location loc, Value whole, ArrayRef<int64_t> offsets,
                    ArrayRef<int64_t> sizes, ArrayRef<int64_t> from) {
  SmallVector<OpFoldResult> at, size, stride(offsets.size(), b.getIndexAttr(1));
  for (auto [d, offset] : llvm::enumerate(offsets)) {
    at.push_back(b.getIndexAttr(offset - (from.empty() ? 0 : from[d])));
    size.push_back(b.getIndexAttr(sizes[d]));
  }
  if (sizes == cast<ShapedType>(whole.getType()).getShape())
    return whole;
  return memref::SubViewOp::create(b, loc, whole, at, size, stride);
}

/// All points whose d-th coordinate is one of lists[d], the last fastest.
static void forEachPoint(ArrayRef<SmallVector<int64_t>> lists,
                         llvm::function_ref<void(ArrayRef<int64_t>)> body) {
  SmallVector<int64_t> point(lists.size());
  auto nest = [&](auto &&self, size_t d) -> void {
    if (d == lists.size())
      return body(point);
    for (int64_t value : lists[d]) {
      point[d] = value;
      self(self, d + 1);
    }
  };
  nest(nest, 0);
}

Windows::Channel &Windows::channelOf(Window &window, const PeerMap &map) {
  for (auto &channel : window.channels)
    if (channel->map == map)
      return *channel;
  window.channels.push_back(std::make_unique<Channel>());
  window.channels.back()->map = map;
  return *window.channels.back();
}

LogicalResult Windows::layOut(WindowOp op) {
  Window &window = *(windows[op] = std::make_unique<Window>());
  RankedTensorType type = cast<WindowType>(op.getWindow().getType()).getValue();
  llvm::MapVector<Operation *, Box> boxes; // in the order of the function
  SmallVector<Operation *> users(op.getWindow().getUsers());
  llvm::sort(users, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *user : users) {
    if (PeerMap map = PeerMap::of(user); !map.isOwn())
      channelOf(window, map);
    FailureOr<Box> box = Box();
    if (auto put = dyn_cast<PutOp>(user))
      box = boxOf(user, cast<ShapedType>(put.getSource().getType()),
                  getMixedValues(put.getStaticOffsets(), put.getOffsets(), op.getContext()), type);
    else if (auto get = dyn_cast<GetOp>(user))
      box = boxOf(user, get.getBoxType(),
                  getMixedValues(get.getStaticOffsets(), get.getOffsets(), op.getContext()), type);
    else
      continue;
    if (failed(box))
      return failure();
    if (!box->isEmpty())
      boxes.insert({user, *box});
  }
  SmallVector<std::set<int64_t>> cuts(type.getRank());
  for (auto &[user, box] : boxes)
    for (auto [d, offset] : llvm::enumerate(box.offsets))
      cuts[d].insert({offset, offset + box.sizes[d]});

  OpBuilder b(op);
  std::map<std::vector<int64_t>, size_t> numbers; // of the cells, by where they begin
  auto cellAt = [&](ArrayRef<int64_t> begin) {
    auto [it, isNew] = numbers.try_emplace(begin.vec(), window.cells.size());
    if (isNew) {
      Cell cell{SmallVector<int64_t>(begin), {}, {}, {}, {}};
      for (auto [d, at] : llvm::enumerate(begin))
        cell.sizes.push_back(*cuts[d].upper_bound(at) - at);
      b.setInsertionPoint(op);
      cell.buffer = memref::AllocOp::create(b, op.getLoc(),
                                            MemRefType::get(cell.sizes, type.getElementType()));
      if (op.getInit()) // what nobody reads or writes is no cell, and need not be copied
        memref::CopyOp::create(b, op.getLoc(),
                               viewOf(b, op.getLoc(), op.getInit(), cell.offsets, cell.sizes, {}),
                               cell.buffer);
      window.cells.push_back(std::move(cell));
    }
    return it->second;
  };
  for (auto &[user, box] : boxes) {
    Location loc = user->getLoc();
    SmallVector<SmallVector<int64_t>> begins(type.getRank());
    for (auto [d, offset] : llvm::enumerate(box.offsets))
      begins[d].assign(cuts[d].find(offset), cuts[d].find(offset + box.sizes[d]));
    Operation *behind = user; // the copies stand behind their op, in order
    forEachPoint(begins, [&](ArrayRef<int64_t> begin) {
      Part part{cellAt(begin), {}};
      const Cell &cell = window.cells[part.cell];
      auto view = [&](Value whole) {
        return viewOf(b, loc, whole, cell.offsets, cell.sizes, box.offsets);
      };
      if (auto get = dyn_cast<GetOp>(user)) {
        b.setInsertionPointAfter(behind);
        Value dest = view(get.getDest());
        behind = memref::CopyOp::create(b, loc, cell.buffer, dest);
      } else if (auto put = cast<PutOp>(user); PeerMap::of(put).isOwn()) {
        b.setInsertionPointAfter(behind);
        Value source = view(put.getSource());
        behind = memref::CopyOp::create(b, loc, source, cell.buffer);
      } else {
        b.setInsertionPoint(user);
        Value source = view(put.getSource());
        if (!isWholeBuffer(source)) {
          Value staged = memref::AllocOp::create(b, loc, cast<MemRefType>(cell.buffer.getType()));
          memref::CopyOp::create(b, loc, source, staged);
          source = staged;
          remark::missed(
              loc, remark::RemarkOpts::name("CopiedForPut").category("convert-ncclx-to-ctran"))
              << remark::add("a part of the source is not a whole buffer: it goes through one of "
                             "its own");
        }
        part.piece = source;
        remote.insert(source);
        remote.insert(cell.buffer);
        ++channelOf(window, PeerMap::of(put)).allCopies;
      }
      parts[user].push_back(part);
    });
  }
  op.getInitMutable().clear();
  return success();
}

LogicalResult Windows::layOut(func::FuncOp function) {
  for (WindowOp op : llvm::make_early_inc_range(function.getBody().front().getOps<WindowOp>()))
    if (failed(layOut(op)))
      return failure();
  return success();
}

//===--- peers ----------------------------------------------------------------------------===//

/// To whom a map leads, and from whom: neighbours on an axis, or ranks from a table.
struct Windows::Peers {
  Peers(ScheduleBuilder &s, const PeerMap &map, NamedGroups named, SmallVector<unsigned> axes) {
    if (axes.size() == 1 && map.shift) {
      axis = axes.front();
      int64_t n = s.size(*axis);
      by = (map.shift.getInt() % n + n) % n;
      return;
    }
    groups = named.grid.getGroups(named.axes, named.groups);
    ctran::Places p(s, groups);
    for (int64_t rank = 0, e = p.group.size(); rank < e; ++rank) {
      auto rankOf = [&](std::optional<int64_t> member) {
        return member ? groups[p.group[rank]][*member] : -1;
      };
      targets.push_back(rankOf(map.getTarget(p.place[rank], p.size(rank))));
      sources.push_back(rankOf(map.getSource(p.place[rank], p.size(rank))));
    }
  }
  std::optional<unsigned> axis;
  int64_t by = 0;
  SmallVector<SmallVector<int64_t>> groups;
  SmallVector<int64_t> targets, sources; ///< by rank; -1: none

  /// The token of `body`, given what sees memory at the peer, where there is one.
  Value at(ScheduleBuilder &s, bool target, Value otherwise,
           llvm::function_ref<Value(llvm::function_ref<Value(Value)>)> body) const {
    if (axis) {
      ctran::Point point = s.neighbour(*axis, target ? by : s.size(*axis) - by);
      return body([&](Value memory) { return s.at(memory, point); });
    }
    ctran::Places p(s, groups);
    Value rank = p.number([&](int64_t own) { return (target ? targets : sources)[own]; });
    return p.ifAny(
        rank, [&] { return body([&](Value memory) { return p.at(memory, rank); }); },
        [&] { return otherwise; });
  }
  Value atTarget(ScheduleBuilder &s, Value otherwise,
                 llvm::function_ref<Value(llvm::function_ref<Value(Value)>)> body) const {
    return at(s, true, otherwise, body);
  }
  Value atSource(ScheduleBuilder &s, Value otherwise,
                 llvm::function_ref<Value(llvm::function_ref<Value(Value)>)> body) const {
    return at(s, false, otherwise, body);
  }
  /// For the proof: what is sent is this rank's, and what has come the source's.
  Value sourceLabel(ScheduleBuilder &s, Value range, StringRef name, ValueRange after) const {
    if (axis)
      return s.source(range, name, s.own(*axis), {}, after);
    ctran::Places p(s, groups);
    return s.source(range, name, p.number([](int64_t rank) { return rank; }), {}, after, p.axes);
  }
  Value sinkLabel(ScheduleBuilder &s, Value range, StringRef name, ValueRange after) const {
    if (axis)
      return s.sink(range, name, s.neighbour(*axis, s.size(*axis) - by)[*axis], {}, after);
    ctran::Places p(s, groups);
    Value from = p.number([&](int64_t own) { return sources[own]; });
    return p.ifAny(
        from, [&] { return s.sink(range, name, from, {}, after, p.axes); },
        [&] { return after.front(); });
  }
};

//===--- the ops ----------------------------------------------------------------------------===//

LogicalResult Windows::convert(Operation *op, ScheduleBuilder &s, Buffers &buffers) {
  if (auto window = dyn_cast<WindowOp>(op)) {
    windows[op]->name = s.of.str();
    describe(s.of, "window", window, cast<WindowType>(window.getWindow().getType()).getValue());
    open(window, s, buffers);
    return success();
  }
  Value handle =
      *llvm::find_if(op->getOperands(), [](Value v) { return isa<WindowType>(v.getType()); });
  s.of = s.builder.getStringAttr(windowOf(handle).name);
  if (auto put = dyn_cast<PutOp>(op))
    this->put(put, s, buffers);
  else if (auto get = dyn_cast<GetOp>(op))
    this->get(get, s, buffers);
  else if (auto signal = dyn_cast<SignalOp>(op))
    this->signal(signal, s, buffers);
  else
    return wait(cast<WaitOp>(op), s, buffers);
  return success();
}

SmallVector<Value> Windows::done(Window &window, ScheduleBuilder &s, Buffers &buffers) {
  SmallVector<Value> tokens;
  for (Cell &cell : window.cells) {
    Buffer &buffer = buffers[cell.buffer];
    tokens = joined(joined(tokens, buffer.writers), buffer.readers);
  }
  if (window.acquired)
    tokens = joined(tokens, window.acquired);
  return tokens.empty() ? SmallVector<Value>{s.program.getEntry()} : tokens;
}

/// The slots of all puts by a map are declared before the first, and who may be written says so.
void Windows::open(WindowOp op, ScheduleBuilder &s, Buffers &buffers) {
  Window &window = windowOf(op.getWindow());
  NamedGroups named = *getNamedGroups(op);
  SmallVector<Value> after = done(window, s, buffers);
  for (auto [i, channel] : llvm::enumerate(window.channels)) {
    channel->name = window.name + ".p" + std::to_string(i);
    channel->peers = std::make_shared<Peers>(s, channel->map, named, grid.axesOf(op));
    if (!channel->allCopies)
      continue;
    channel->ready = s.slots(channel->name + ".ready", {}, 1);
    channel->landed = s.slots(channel->name + ".landed", s.freeDim(channel->allCopies), 1);
    channel->peers->atSource(s, after.front(), [&](auto at) {
      return s.ready(s.slot(at(channel->ready)), after, "ready");
    });
  }
}

void Windows::put(PutOp op, ScheduleBuilder &s, Buffers &buffers) {
  Window &window = windowOf(op.getWindow());
  PeerMap map = PeerMap::of(op);
  ArrayRef<Part> written = parts[op];
  window.justPut = nullptr;
  if (map.isOwn()) { // the copies stand behind it
    for (const Part &part : written)
      window.cells[part.cell].from = nullptr;
    return;
  }
  if (written.empty())
    return;
  Channel &channel = channelOf(window, map);
  const Peers &peers = *channel.peers;
  SmallVector<Value> before = done(window, s, buffers);
  if (!channel.granted)
    channel.granted = peers.atTarget(s, before.front(), [&](auto) {
      return s.awaitReady(s.slot(channel.ready), s.constant(1), {}, "await ready");
    });
  before = joined(before, channel.granted);
  for (const Part &part : written) {
    Cell &cell = window.cells[part.cell];
    Buffer &piece = buffers[part.piece];
    // A name of its own, since one buffer may be sent by several puts at once.
    std::string value = window.name + ".put." + std::to_string(window.puts++);
    describe(value, "put", op.getWindow().getDefiningOp<WindowOp>(), piece.type);
    s.of = s.builder.getStringAttr(value);
    Value start = peers.sourceLabel(s, s.range(piece.window), value, piece.writers);
    Value put = peers.atTarget(s, start, [&](auto at) {
      return s.put(s.range(piece.window), s.range(at(buffers[cell.buffer].window)),
                   s.slot(at(channel.landed), s.constant(channel.copies)), joined(start, before),
                   "put");
    });
    piece.readers = joined(piece.readers, put);
    window.sent.push_back(put);
    ++channel.copies;
    cell.from = channel.peers;
    cell.holds = value;
  }
  window.justPut = &channel;
}

/// The copies stand behind it: what they find must be what a peer has put last.
void Windows::get(GetOp op, ScheduleBuilder &s, Buffers &buffers) {
  Window &window = windowOf(op.getWindow());
  window.justPut = nullptr;
  for (const Part &part : parts[op]) {
    Cell &cell = window.cells[part.cell];
    if (!cell.from)
      continue;
    Buffer &buffer = buffers[cell.buffer];
    buffer.readers = joined(buffer.readers, cell.from->sinkLabel(s, s.range(buffer.window),
                                                                 cell.holds, buffer.writers));
  }
}

void Windows::signal(SignalOp op, ScheduleBuilder &s, Buffers &buffers) {
  Window &window = windowOf(op.getWindow());
  Channel &channel = channelOf(window, PeerMap::of(op));
  // Right behind a put, which waited for all that the signal would tell of, its landing says it.
  if (window.justPut != &channel) {
    if (!channel.told)
      channel.told = s.slots(channel.name + ".told", {}, 0).getDefiningOp<ctran::SlotsOp>();
    SmallVector<Value> after = joined(done(window, s, buffers), window.sent);
    window.sent = {channel.peers->atTarget(s, after.front(), [&](auto at) {
      return s.signal(s.slot(at(channel.told)), after, s.controlLane(), "signal");
    })};
    ++channel.raises;
  }
  window.justPut = nullptr;
  channel.signals.push_back({channel.copies, channel.raises});
}

LogicalResult Windows::wait(WaitOp op, ScheduleBuilder &s, Buffers &buffers) {
  Window &window = windowOf(op.getWindow());
  Channel &channel = channelOf(window, PeerMap::of(op));
  window.justPut = nullptr;
  int64_t count = op.getCount(), made = channel.signals.size();
  if (count > made - channel.awaited) {
    InFlightDiagnostic diag = op.emitOpError("waits for ever: it takes ")
                              << count << " of these signals, but " << made
                              << " have been made before it and " << channel.awaited
                              << " of them taken";
    return diag;
  }
  channel.awaited += count;
  const Channel::Signal &last = channel.signals[channel.awaited - 1];
  Value before = window.acquired ? window.acquired : s.program.getEntry();
  Value here = before;
  if (last.copies > channel.landings)
    here = channel.peers->atSource(s, here, [&](auto) {
      Value first = s.constant(channel.landings), size = s.constant(last.copies - channel.landings);
      return s.arrive(s.slotInterval(channel.landed, first, size), s.constant(1), here,
                      "await landing");
    });
  if (last.raises > channel.raised)
    here = channel.peers->atSource(s, here, [&](auto) {
      return s.arrive(s.slot(channel.told), s.constant(last.raises), here, "await signal");
    });
  channel.landings = std::max(channel.landings, last.copies);
  channel.raised = std::max(channel.raised, last.raises);
  if (here == before)
    return success();
  window.acquired = here;
  for (Cell &cell : window.cells) {
    SmallVector<Value> &writers = buffers[cell.buffer].writers;
    llvm::erase(writers, before);
    writers.push_back(here);
  }
  return success();
}

void Windows::close() {
  for (auto &[op, window] : windows)
    for (auto &channel : window->channels)
      if (channel->told)
        channel->told.setPerRun(channel->raises);
}
