//===- Data.cpp - A schedule executed in an adversarial order -----------------===//

#include "ncclx/Machine/Data.h"

#include "Stepper.h"

#include "ncclx/Machine/Trace.h"

#include "llvm/ADT/DenseMap.h"

#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <functional>
#include <random>

namespace mlir::ctran::machine {

namespace {

/// What an access moves: symbols, or bytes.
struct Blob {
  Pieces pieces;
  Box box;
  std::vector<uint8_t> bytes;
};

class Executor {
public:
  Executor(const Schedule &schedule, const DataOptions &options)
      : schedule(schedule), options(options), frame(schedule, false), values(frame),
        random(options.seed) {}

  DataResult run();

private:
  struct Waiting {
    Op op;
    int64_t run = 0;
  };
  struct Lanes {
    uint32_t rank = 0;
    Lane lane;
    std::deque<Waiting> queue;
    bool busy = false; ///< its head has begun and is not over
    /// Issue lanes: posted and not yet reported complete, and whether each has read.
    std::deque<std::pair<std::shared_ptr<Waiting>, std::shared_ptr<bool>>> posted;
  };
  struct Slot {
    int64_t count = 0, raised = 0;
    std::vector<int64_t> early;   ///< arrived out of order
    std::vector<Lanes *> waiting; ///< for more than `count`
  };
  /// Bytes on their way into a window.
  struct Store {
    Access access;
    uint32_t rank = 0;
    int64_t run = 0;
    Blob blob;
  };
  using Action = std::function<void()>;

  void stop(DataResult::Outcome outcome, std::string text) {
    if (!result)
      return;
    result.outcome = outcome;
    result.message = std::move(text);
  }
  bool load();
  /// Once the head of a lane may begin, it may until it does: it becomes ready, or waits for the
  /// first thing found that it still needs.
  void consider(Lanes &lanes);
  void wake(std::vector<Lanes *> waiting) {
    for (Lanes *lane : waiting)
      consider(*lane);
  }
  void begin(Lanes &lanes);
  void later(Action go) { pending.push_back(std::move(go)); }
  void issue(const std::shared_ptr<Waiting> &w, uint32_t rank, Lanes &lane);
  std::string name(const Op &op, uint32_t rank, int64_t run) const;

  Slot &slot(const SlotRange &range, int64_t i, int64_t run);
  /// Sequence numbers of a notify, taken when its op is issued.
  std::vector<int64_t> reserve(const SlotRef &ref, uint32_t rank, int64_t run);
  void arrive(const SlotRef &ref, uint32_t rank, int64_t run, const std::vector<int64_t> &numbers);

  Box resolved(const Access &access, uint32_t rank);
  WindowMemory &memory(const Box &box, int64_t run);
  std::vector<uint8_t> &bytes(uint32_t rank, unsigned window, int64_t run);
  Blob read(const Op &op, const Access &access, uint32_t rank, int64_t run);
  void store(const Store &store);
  /// The values that an op writes, one blob per write.
  std::vector<Blob> evaluate(const Op &op, uint32_t rank, int64_t run);
  void caller(const Op &op, uint32_t rank, int64_t run);
  void finish(const Op &op) {
    op.token->state = over;
    if (auto it = waiting.find(op.token.get()); it != waiting.end()) {
      std::vector<Lanes *> lanes = std::move(it->second);
      waiting.erase(it);
      wake(std::move(lanes));
    }
  }

  const Schedule &schedule;
  const DataOptions &options;
  Frame frame;
  Values values;
  std::mt19937_64 random;
  DataResult result;
  std::vector<std::unique_ptr<Lanes>> lanes;
  std::vector<Lanes *> ready;
  llvm::DenseMap<const Token *, std::vector<Lanes *>> waiting;
  std::vector<Action> pending;
  std::vector<std::vector<Store>> landed; ///< by rank: arrived, not yet visible
  std::map<std::tuple<uint32_t, unsigned, int64_t>, Slot> slots;
  std::map<std::tuple<uint32_t, unsigned, int64_t>, std::unique_ptr<WindowMemory>> symbols;
  std::map<std::tuple<uint32_t, unsigned, int64_t>, std::vector<uint8_t>> storage;
  llvm::DenseMap<const Token *, int64_t> counted; ///< what each count has read
  Scan scanned;
  int64_t runs = 0, nextTerm = 0;
  llvm::IntrusiveRefCntPtr<TokenState> over = llvm::makeIntrusiveRefCnt<TokenState>();
};

std::string Executor::name(const Op &op, uint32_t rank, int64_t run) const {
  return fmt::format("rank {} {} run {} '{}'", rank, toString(op.lane), run,
                     op.location < schedule.locations.size() ? schedule.locations[op.location].op
                                                             : std::string(toString(op.kind)));
}

bool Executor::load() {
  for (uint32_t rank = 0; rank < frame.numRanks(); ++rank) {
    std::vector<int64_t> point = schedule.grid.pointOf(rank);
    std::map<std::pair<LaneKind, int64_t>, Lanes *> byName;
    for (int64_t run = 0; run < runs; ++run) {
      std::unique_ptr<OpStream> stream = schedule.open(&point, run);
      for (Waiting w; stream;) {
        OpStream::Result r = stream->next(w.op);
        if (r == OpStream::Result::End)
          break;
        std::string bad = r == OpStream::Result::Op ? frame.check(w.op) : stream->why;
        if (!bad.empty() || r != OpStream::Result::Op) {
          stop(DataResult::Outcome::Invalid, bad);
          return false;
        }
        if (++result.events > options.eventBudget) {
          stop(DataResult::Outcome::Undecided,
               fmt::format("more than {} ops", options.eventBudget));
          return false;
        }
        Lanes *&lane = byName[{w.op.lane.kind, w.op.lane.index}];
        if (!lane) {
          lanes.push_back(std::make_unique<Lanes>());
          lane = lanes.back().get();
          lane->rank = rank;
          lane->lane = w.op.lane;
        }
        w.run = run;
        lane->queue.push_back(w);
      }
    }
  }
  return true;
}

Executor::Slot &Executor::slot(const SlotRange &range, int64_t i, int64_t run) {
  int64_t generation = run % schedule.slots[range.slots].generations;
  return slots[{range.owner, range.slots,
                generation * frame.numSlots(range.slots) + range.begin + i}];
}

std::vector<int64_t> Executor::reserve(const SlotRef &ref, uint32_t rank, int64_t run) {
  SlotRange range;
  std::vector<int64_t> numbers;
  if (frame.resolve(ref, rank, range) != Resolve::Ok) {
    stop(DataResult::Outcome::Invalid, frame.why);
    return numbers;
  }
  for (int64_t i = 0; i < range.count; ++i)
    numbers.push_back(++slot(range, i, run).raised);
  return numbers;
}

void Executor::arrive(const SlotRef &ref, uint32_t rank, int64_t run,
                      const std::vector<int64_t> &numbers) {
  SlotRange range;
  if (frame.resolve(ref, rank, range) != Resolve::Ok)
    return;
  for (int64_t i = 0; i < range.count && i < static_cast<int64_t>(numbers.size()); ++i) {
    Slot &s = slot(range, i, run);
    s.early.push_back(numbers[i]);
    // The receiver drains arrivals in sequence (S18).
    for (bool more = true; more;) {
      auto it = std::find(s.early.begin(), s.early.end(), s.count + 1);
      more = it != s.early.end();
      if (more) {
        s.early.erase(it);
        ++s.count;
      }
    }
    wake(std::exchange(s.waiting, {}));
  }
}

Box Executor::resolved(const Access &access, uint32_t rank) {
  Box box;
  if (frame.resolve(access, rank, box) != Resolve::Ok) {
    stop(DataResult::Outcome::Invalid, frame.why);
    box.count = 0;
  }
  return box;
}

WindowMemory &Executor::memory(const Box &box, int64_t run) {
  auto &memory = symbols[{box.owner, box.window, run % schedule.windows[box.window].generations}];
  if (!memory)
    memory = std::make_unique<WindowMemory>(frame, values, false);
  return *memory;
}

std::vector<uint8_t> &Executor::bytes(uint32_t rank, unsigned window, int64_t run) {
  const Window &decl = schedule.windows[window];
  std::vector<uint8_t> &all = storage[{rank, window, run % decl.generations}];
  if (all.empty()) {
    int64_t size = 0;
    for (const Space &space : decl.spaces)
      size = std::max(size, space.storageBytes());
    all.assign(size, 0xA5); // what nobody wrote is garbage
  }
  return all;
}

static ByteBox locate(const Schedule &schedule, const Box &box) {
  std::vector<int64_t> path(box.path.begin(), box.path.end());
  return schedule.windows[box.window].spaces[box.space].locate(path, box.first, box.count);
}

Blob Executor::read(const Op &op, const Access &access, uint32_t rank, int64_t run) {
  Blob blob;
  blob.box = resolved(access, rank);
  if (options.model) {
    std::vector<uint8_t> &all = bytes(blob.box.owner, blob.box.window, run);
    ByteBox at = locate(schedule, blob.box);
    if (op.size) // by its maximum it fits
      at.rowBytes = std::min(
          at.rowBytes, counted.lookup(op.size.get()) *
                           schedule.windows[blob.box.window].spaces[blob.box.space].unitBytes);
    for (int64_t row = 0; row < at.rows; ++row) {
      const uint8_t *from = all.data() + at.offset + row * at.stride;
      blob.bytes.insert(blob.bytes.end(), from, from + at.rowBytes);
    }
    return blob;
  }
  Refusal refusal;
  if (!memory(blob.box, run).read(blob.box, {}, {}, &blob.pieces, refusal, frame.valueFor(op)))
    stop(DataResult::Outcome::Undecided,
         fmt::format("{}{}", frame.describe(blob.box), refusal.note));
  return blob;
}

void Executor::store(const Store &s) {
  Box box = resolved(s.access, s.rank);
  if (options.model) {
    std::vector<uint8_t> &all = bytes(box.owner, box.window, s.run);
    ByteBox at = locate(schedule, box);
    int64_t given = static_cast<int64_t>(s.blob.bytes.size()), rows = std::max<int64_t>(at.rows, 1);
    if (given > at.bytes() || given % rows) {
      stop(DataResult::Outcome::Wrong, fmt::format("{} bytes are written into {}, which has {}",
                                                   given, frame.describe(box), at.bytes()));
      return;
    }
    for (int64_t row = 0; row < at.rows && given; ++row)
      std::memcpy(all.data() + at.offset + row * at.stride,
                  s.blob.bytes.data() + row * (given / rows), given / rows);
    return;
  }
  Pieces pieces = s.blob.pieces;
  Refusal refusal;
  if (box.count > 0 && !splitPieces(frame, values, s.blob.box, box.count, pieces)) {
    stop(DataResult::Outcome::Undecided, frame.describe(box) + " gets a value that has no pieces");
    return;
  }
  if (!memory(box, s.run).write(box, {}, {}, KeyTable::never, 0, pieces, refusal))
    stop(DataResult::Outcome::Undecided, fmt::format("{}{}", frame.describe(box), refusal.note));
}

std::vector<Blob> Executor::evaluate(const Op &op, uint32_t rank, int64_t run) {
  std::vector<Blob> sources;
  for (const Access &access : op.reads)
    sources.push_back(read(op, access, rank, run));
  std::vector<Blob> out;
  if (op.kind == OpKind::Source && !options.model) {
    Refusal refusal;
    Box box = resolved(op.reads[0], rank);
    if (op.lane.kind == LaneKind::User)
      store({op.reads[0],
             rank,
             run,
             {{{{}, values.of(op.label, box, rank, run, false), false}}, box, {}}});
    else if (!memory(box, run).label(box, {}, {}, values.of(op.label, box, rank, run, false),
                                     refusal))
      stop(DataResult::Outcome::Undecided, fmt::format("{}{}", frame.describe(box), refusal.note));
  }
  if (op.kind == OpKind::Sink && !options.model) {
    const Blob &source = sources[0];
    std::string bad = checkLabel(frame, values, source.pieces, op.label, source.box, rank, run);
    if (!bad.empty())
      stop(DataResult::Outcome::Wrong, name(op, rank, run) + ": " + bad);
  }
  if (options.model && op.kind == OpKind::Compute) {
    std::vector<std::vector<uint8_t>> in, made;
    for (Blob &source : sources)
      in.push_back(std::move(source.bytes));
    for (const Access &access : op.writes)
      made.emplace_back(locate(schedule, resolved(access, rank)).bytes());
    options.model->compute(op, rank, run, in, made);
    for (auto &bytes : made)
      out.emplace_back().bytes = std::move(bytes);
    return out;
  }
  if (options.model && op.kind == OpKind::Count) {
    const std::vector<uint8_t> &from = sources[0].bytes;
    int64_t size = 0;
    if (from.size() == sizeof(int32_t)) {
      int32_t narrow;
      std::memcpy(&narrow, from.data(), sizeof(narrow));
      size = narrow;
    } else {
      std::memcpy(&size, from.data(), std::min(sizeof(size), from.size()));
    }
    if (size < 0 || size > op.countMax)
      stop(DataResult::Outcome::Wrong, fmt::format("{}: the size is {}, expected 0 to {}",
                                                   name(op, rank, run), size, op.countMax));
    counted[op.token.get()] = std::clamp<int64_t>(size, 0, op.countMax);
    return out;
  }
  Blob value;
  if (op.kind == OpKind::Copy) {
    value = std::move(sources[0]);
  } else if (op.kind == OpKind::Reduce && options.model) {
    std::vector<const uint8_t *> from;
    size_t size = sources[0].bytes.size();
    for (const Blob &source : sources) {
      size = std::min(size, source.bytes.size());
      from.push_back(source.bytes.data());
    }
    value.bytes.resize(size);
    options.model->reduce(op, from, value.bytes.data(), static_cast<int64_t>(size));
  } else if (op.kind == OpKind::Reduce || op.kind == OpKind::Compute) {
    bool sums = op.kind == OpKind::Reduce;
    std::vector<Pieces> pieces;
    std::vector<Box> boxes;
    for (const Blob &source : sources) {
      for (const Piece &piece : source.pieces)
        sums &= piece.value && piece.value->name >= 0;
      pieces.push_back(source.pieces);
      boxes.push_back(source.box);
    }
    std::string why;
    if (!sources.empty())
      value.box = sources[0].box;
    if (!sums || !combinePieces(frame, values, op.combination, pieces, boxes, value.pieces, why))
      value.pieces = {{{}, values.term(nextTerm++, rank, run), false}};
  }
  out.assign(std::max<size_t>(1, op.writes.size()), value);
  for (size_t i = 0; op.kind == OpKind::Compute && i < op.writes.size(); ++i)
    out[i].box = resolved(op.writes[i], rank); // a term has the pieces of where it goes
  return out;
}

void Executor::caller(const Op &op, uint32_t rank, int64_t run) {
  for (unsigned w = 0; w < schedule.windows.size(); ++w) {
    const Window &decl = schedule.windows[w];
    if (op.kind == OpKind::Entry &&
        (decl.role == Window::Role::Input || decl.role == Window::Role::InOut)) {
      if (options.model) {
        auto &all = bytes(rank, w, run);
        options.model->input(rank, w, run, all.data(), static_cast<int64_t>(all.size()));
        continue;
      }
      Box box;
      box.owner = rank;
      box.window = w;
      Refusal refusal;
      (void)memory(box, run).write(box, {}, {}, KeyTable::never, 0,
                                   {{{}, values.term(nextTerm++, rank, run), false}}, refusal);
    }
    if (op.kind == OpKind::Exit && options.model &&
        (decl.role == Window::Role::Output || decl.role == Window::Role::InOut)) {
      auto &all = bytes(rank, w, run);
      std::string bad =
          options.model->output(rank, w, run, all.data(), static_cast<int64_t>(all.size()));
      if (!bad.empty())
        stop(DataResult::Outcome::Wrong,
             fmt::format("{}: window '{}': {}", name(op, rank, run), decl.name, bad));
    }
  }
}

void Executor::consider(Lanes &l) {
  if (l.busy || l.queue.empty())
    return;
  const Waiting &w = l.queue.front();
  for (const TokenRef &token : w.op.after)
    if (!token->state)
      return waiting[token.get()].push_back(&l);
  if (w.op.kind != OpKind::Wait)
    return ready.push_back(&l);
  SlotRange range;
  if (frame.resolve(*w.op.slot, l.rank, range) != Resolve::Ok)
    return stop(DataResult::Outcome::Invalid, frame.why);
  const Slots &decl = schedule.slots[range.slots];
  for (int64_t i = 0; i < range.count; ++i) {
    int64_t k =
        decl.perRun >= 0
            ? decl.perRun
            : scanned.signals[range.slots].lookup(Scan::slotKey(range.owner, range.begin + i));
    Slot &s = slot(range, i, w.run);
    if (s.count < k * (w.run / decl.generations) + decl.awaited(w.op.k))
      return s.waiting.push_back(&l);
  }
  ready.push_back(&l);
}

/// An issue lane: posted now, read and done later, landed and seen later still.
void Executor::issue(const std::shared_ptr<Waiting> &w, uint32_t rank, Lanes &lane) {
  std::vector<int64_t> numbers;
  if (w->op.slot)
    numbers = reserve(*w->op.slot, rank, w->run);
  // Reads happen in any order, but are reported complete in the order of the lane (S9).
  auto read = std::make_shared<bool>(false);
  Lanes *posted = &lane;
  posted->posted.push_back({w, read});
  later([this, w, rank, numbers, read, posted] {
    std::vector<Blob> blobs = evaluate(w->op, rank, w->run);
    std::vector<Store> remote;
    for (size_t i = 0; i < w->op.writes.size(); ++i) {
      Store s{w->op.writes[i], rank, w->run, std::move(blobs[i])};
      if (s.access.peer.remote)
        remote.push_back(std::move(s));
      else
        store(s);
    }
    *read = true;
    while (!posted->posted.empty() && *posted->posted.front().second) {
      finish(posted->posted.front().first->op);
      posted->posted.pop_front();
    }
    later([this, w, rank, numbers, remote] {
      for (const Store &s : remote) {
        if (schedule.rxVisible)
          store(s);
        else
          landed[frame.target(s.access.peer, rank)].push_back(s);
      }
      if (w->op.slot)
        arrive(*w->op.slot, rank, w->run, numbers);
    });
  });
}

void Executor::begin(Lanes &l) {
  Waiting &head = l.queue.front();
  uint32_t rank = l.rank;
  switch (head.op.kind) {
  case OpKind::Flush:
    for (const Store &s : landed[rank])
      store(s);
    landed[rank].clear();
    break;
  case OpKind::Signal:
    arrive(*head.op.slot, rank, head.run, reserve(*head.op.slot, rank, head.run));
    break;
  case OpKind::Entry:
  case OpKind::Exit:
    caller(head.op, rank, head.run);
    break;
  case OpKind::Wait:
  case OpKind::Nop:
    break;
  default: {
    auto w = std::make_shared<Waiting>(head);
    if (isIssueLane(l.lane.kind)) {
      l.queue.pop_front();
      issue(w, rank, l);
      consider(l);
      return;
    }
    l.busy = true;
    Lanes *lane = &l;
    later([this, w, rank, lane] {
      auto blobs = std::make_shared<std::vector<Blob>>(evaluate(w->op, rank, w->run));
      later([this, w, rank, lane, blobs] {
        for (size_t i = 0; i < w->op.writes.size(); ++i)
          store({w->op.writes[i], rank, w->run, (*blobs)[i]});
        if (w->op.slot)
          arrive(*w->op.slot, rank, w->run, reserve(*w->op.slot, rank, w->run));
        finish(w->op);
        lane->queue.pop_front();
        lane->busy = false;
        consider(*lane);
      });
    });
    return;
  }
  }
  finish(head.op);
  l.queue.pop_front();
  consider(l);
}

DataResult Executor::run() {
  if (std::string bad = frame.validate(); !bad.empty()) {
    stop(DataResult::Outcome::Invalid, bad);
    return result;
  }
  runs = options.runs > 0 ? options.runs : runsToProve(schedule);
  scanned = scan(frame, options.eventBudget);
  if (scanned.verdict != Verdict::Ok) {
    stop(scanned.overBudget ? DataResult::Outcome::Undecided : DataResult::Outcome::Invalid,
         scanned.message);
    return result;
  }
  landed.resize(frame.numRanks());
  if (!load())
    return result;
  std::vector<uint32_t> hidden;
  auto pick = [&](size_t n) -> size_t {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  for (auto &l : lanes)
    consider(*l);
  while (result) {
    hidden.clear();
    for (uint32_t rank = 0; rank < frame.numRanks(); ++rank)
      if (!landed[rank].empty())
        hidden.push_back(rank);
    size_t choices = ready.size() + pending.size();
    // Visibility comes late, but at last by itself.
    if (choices == 0 && hidden.empty())
      break;
    bool show = choices == 0 || (!hidden.empty() && pick(10) == 0 && pick(choices + 1) == 0);
    if (show) {
      std::vector<Store> &list = landed[hidden[pick(hidden.size())]];
      size_t i = pick(list.size());
      Store s = std::move(list[i]);
      list.erase(list.begin() + static_cast<ptrdiff_t>(i));
      store(s);
      continue;
    }
    size_t i = pick(choices);
    if (i < ready.size()) {
      std::swap(ready[i], ready.back());
      Lanes &lane = *ready.back();
      ready.pop_back();
      begin(lane);
      continue;
    }
    i -= ready.size();
    std::swap(pending[i], pending.back());
    Action action = std::move(pending.back());
    pending.pop_back();
    action();
  }
  if (result)
    for (auto &l : lanes)
      if (!l->queue.empty()) {
        stop(DataResult::Outcome::Hang,
             name(l->queue.front().op, l->rank, l->queue.front().run) + " waits for ever");
        break;
      }
  return result;
}

} // namespace

DataResult run(const Schedule &schedule, const DataOptions &options) {
  return Executor(schedule, options).run();
}

} // namespace mlir::ctran::machine
