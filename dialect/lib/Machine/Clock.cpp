//===- Clock.cpp - Vector clocks whose keys move with the observer ------------===//

#include "Clock.h"

namespace mlir::ctran::machine {

namespace {
/// Blocks of one size that are in no use.
struct SpareCounts {
  static constexpr size_t most = 64;
  static constexpr uint32_t largest = 1024; ///< larger ones cost more than their memory
  uint32_t size = 0;
  llvm::SmallVector<void *, most> blocks;
  void clear() {
    for (void *block : blocks)
      ::operator delete(block);
    blocks.clear();
  }
  ~SpareCounts() { clear(); }
};
} // namespace
static thread_local SpareCounts spare;

llvm::IntrusiveRefCntPtr<Counts> Counts::make(uint32_t size) {
  size_t bytes = sizeof(Counts) + size * sizeof(uint32_t);
  clockBytes += static_cast<int64_t>(bytes);
  void *block = nullptr;
  if (size == spare.size && !spare.blocks.empty())
    block = spare.blocks.pop_back_val();
  else
    block = ::operator new(bytes);
  return new (block) Counts(size);
}

void Counts::recycle(Counts *counts) {
  clockBytes -= static_cast<int64_t>(counts->bytes());
  if (counts->count > spare.size && counts->count <= SpareCounts::largest) {
    spare.clear();
    spare.size = counts->count;
  }
  if (counts->count == spare.size && spare.blocks.size() < SpareCounts::most)
    spare.blocks.push_back(counts);
  else
    ::operator delete(counts);
}

uint32_t *Clock::mutableCounts(uint32_t size) {
  uint32_t had = shared ? shared->size() : 0;
  if (had >= size && !shared->isShared())
    return shared->at();
  auto copy = Counts::make(std::max(size, had));
  if (shared)
    std::copy_n(shared->at(), had, copy->at());
  std::fill(copy->at() + had, copy->at() + copy->size(), 0);
  shared = std::move(copy);
  return shared->at();
}

void Clock::merge(const Clock &other) {
  if (!shared) {
    shared = other.shared;
  } else if (other.shared && other.shared != shared) {
    const uint32_t *more = other.shared->at();
    uint32_t size = other.shared->size();
    uint32_t *counts = mutableCounts(size);
    for (uint32_t i = 0; i < size; ++i)
      counts[i] = std::max(counts[i], more[i]);
  }
  mergeEarlier(other);
}

uint32_t KeyTable::intern(const Key &key) {
  auto [it, isNew] =
      index.try_emplace({key.owner, static_cast<uint8_t>(key.kind), key.id, key.slot},
                        static_cast<uint32_t>(keys.size()));
  if (isNew) {
    keys.push_back(key);
    if (key.kind == KeyKind::Hidden)
      hidden[key.owner].push_back(it->second);
  }
  return it->second;
}

uint32_t KeyTable::get(const Key &key) {
  if (key.kind == KeyKind::Landed)
    return landed(key.owner, key.id, key.slot);
  if (key.kind == KeyKind::Hidden)
    return landed(key.owner, key.id, key.slot) + 1;
  return intern(key);
}

uint32_t KeyTable::landed(uint32_t owner, uint32_t slots, int64_t slot) {
  uint32_t key = intern({owner, KeyKind::Landed, slots, slot});
  if (key + 1 == keys.size())
    intern({owner, KeyKind::Hidden, slots, slot});
  return key;
}

KeyTable::Shift &KeyTable::shiftBy(uint32_t d) {
  Shift *&last = lastShift[d % 4];
  if (last && last->d == d)
    return *last;
  if (learning && !met.contains(d)) {
    // Those that are met are few: a window of many is cheaper to make at once.
    constexpr size_t most = 16;
    tooLate |= dropped || met.size() == most;
    if (!tooLate) {
      met.insert(d);
      setWindow(met, 0);
    }
  }
  Shift &shift = shifts[d];
  shift.d = d;
  lastShift[d % 4] = &shift;
  return shift;
}

constexpr static uint32_t unknown = KeyTable::never - 1;

uint32_t KeyTable::shiftAnew(uint32_t key, Shift &by) {
  Key moved = keys[key];
  moved.owner = frame.minus(moved.owner, by.d);
  if (windowed && !window.contains(moved.owner))
    return never;
  if (moved.kind == KeyKind::Landed || moved.kind == KeyKind::Hidden)
    moved.slot = frame.shiftSlot(moved.id, moved.slot, by.d);
  return get(moved);
}

uint32_t KeyTable::shift(uint32_t key, uint32_t d) {
  if (d == 0 || key == never)
    return key;
  Shift &table = shiftBy(d);
  if (key >= table.to.size())
    table.to.resize(std::max<size_t>(key + 1, keys.size()), unknown);
  if (table.to[key] == unknown)
    table.to[key] = shiftAnew(key, table);
  return table.to[key];
}

void KeyTable::shift(const Clock &in, uint32_t d, Clock &out) {
  if (d == 0) {
    out = in;
    return;
  }
  if (!in.shared) {
    out.shared = nullptr;
  } else if (Shift &by = shiftBy(d); by.from == in.shared) {
    out.shared = by.result;
    dropped |= by.lost;
  } else {
    const uint32_t *from = in.shared->at();
    uint32_t size = in.shared->size();
    if (by.to.size() < size)
      by.to.resize(std::max<size_t>(size, keys.size()), unknown);
    for (uint32_t key = 0; key < size; ++key)
      if (by.to[key] == unknown && from[key])
        by.to[key] = shiftAnew(key, by);
    auto result = Counts::make(static_cast<uint32_t>(keys.size()));
    uint32_t *counts = result->at();
    std::fill_n(counts, result->size(), 0);
    bool lost = false;
    const uint32_t *to = by.to.data();
    for (uint32_t key = 0; key < size; ++key) {
      if (to[key] < unknown)
        counts[to[key]] = from[key];
      else
        lost |= from[key] != 0;
    }
    dropped |= lost;
    by.from = in.shared;
    by.result = result;
    by.lost = lost;
    out.shared = std::move(result);
  }
  for (unsigned i = 0; i < 2; ++i) {
    uint32_t to = shift(in.own[i].key, d);
    dropped |= to == never && in.own[i].key != never;
    out.own[i] = {to, in.own[i].count};
  }
}

void KeyTable::flush(Clock &clock, uint32_t me) {
  auto it = hidden.find(me);
  if (it == hidden.end())
    return;
  for (uint32_t key : it->second)
    if (uint32_t count = clock[key])
      clock.raise(key - 1, count);
}

void KeyTable::learnWindow() {
  learning = true;
  setWindow({}, 0);
}

void KeyTable::setWindow(const llvm::DenseSet<uint32_t> &peers, unsigned widen) {
  windowed = true;
  window.clear();
  shifts.clear();
  std::fill(std::begin(lastShift), std::end(lastShift), nullptr);
  window.insert(0);
  for (uint32_t peer : peers) {
    window.insert(peer);
    window.insert(frame.negate(peer));
  }
  // A set beyond this size is kept as it is: its clocks would cost more than all ranks do.
  constexpr size_t largest = 4096;
  for (unsigned i = 0; i < widen && window.size() < std::min<size_t>(largest, frame.numRanks());
       ++i) {
    llvm::DenseSet<uint32_t> next;
    for (uint32_t a : window)
      for (uint32_t b : window)
        next.insert(frame.minus(a, b));
    window = std::move(next);
  }
}

} // namespace mlir::ctran::machine
