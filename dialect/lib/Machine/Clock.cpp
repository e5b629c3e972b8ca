//===- Clock.cpp - Vector clocks whose keys move with the observer ------------===//

#include "Clock.h"

namespace mlir::ctran::machine {

CountVector &Clock::mutableCounts() {
  if (!shared || shared->UseCount() > 1) {
    auto *copy = new Counts();
    if (shared)
      copy->counts = shared->counts;
    shared = copy;
  }
  return shared->counts;
}

void Clock::raise(uint32_t key, uint32_t count) {
  if (key == noKey || (*this)[key] >= count)
    return;
  for (Own &entry : own)
    if (entry.key == key) {
      entry.count = count;
      return;
    }
  CountVector &counts = mutableCounts();
  if (key >= counts.size())
    counts.resize(key + 1, 0);
  counts[key] = count;
}

void Clock::merge(const Clock &other) {
  if (other.shared && other.shared != shared) {
    const CountVector &more = other.shared->counts;
    if (!shared) {
      shared = other.shared;
    } else {
      // Does one of the two cover the other?
      const CountVector &mine = shared->counts;
      size_t common = std::min(mine.size(), more.size());
      bool newer = false, older = false;
      for (size_t i = 0; i < common; ++i) {
        newer |= more[i] > mine[i];
        older |= more[i] < mine[i];
      }
      for (size_t i = common; i < more.size() && !newer; ++i)
        newer = more[i] != 0;
      for (size_t i = common; i < mine.size() && !older; ++i)
        older = mine[i] != 0;
      if (newer && !older) {
        shared = other.shared;
      } else if (newer) {
        CountVector &counts = mutableCounts();
        if (counts.size() < more.size())
          counts.resize(more.size(), 0);
        for (size_t i = 0; i < more.size(); ++i)
          counts[i] = std::max(counts[i], more[i]);
      }
    }
  }
  for (const Own &entry : other.own)
    raise(entry.key, entry.count);
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
  if (!lastShift || lastD != d) {
    lastShift = &shifts[d];
    lastD = d;
  }
  return *lastShift;
}

uint32_t KeyTable::shift(uint32_t key, uint32_t d) {
  if (d == 0 || key == never)
    return key;
  Shift &table = shiftBy(d);
  constexpr uint32_t unknown = never - 1;
  if (key >= table.to.size())
    table.to.resize(std::max<size_t>(key + 1, keys.size()), unknown);
  if (table.to[key] != unknown)
    return table.to[key];
  Key moved = keys[key];
  moved.owner = frame.minus(moved.owner, d);
  uint32_t out = never;
  if (!windowed || window.contains(moved.owner)) {
    if (moved.kind == KeyKind::Landed || moved.kind == KeyKind::Hidden)
      moved.slot = frame.shiftSlot(moved.id, moved.slot, d);
    out = get(moved);
  }
  table.to[key] = out; // the table's address is stable
  return out;
}

void KeyTable::shift(const Clock &in, uint32_t d, Clock &out) {
  if (d == 0) {
    out = in;
    return;
  }
  if (!in.shared) {
    out.shared = nullptr;
  } else if (Shift &cache = shiftBy(d); cache.from == in.shared) {
    out.shared = cache.result;
    dropped |= cache.lost;
  } else {
    auto result = llvm::makeIntrusiveRefCnt<Clock::Counts>();
    CountVector &counts = result->counts;
    counts.assign(keys.size(), 0);
    bool lost = false;
    for (uint32_t key = 0; key < in.shared->counts.size(); ++key) {
      uint32_t count = in.shared->counts[key];
      if (!count)
        continue;
      uint32_t to = shift(key, d);
      if (to == never) {
        lost = true;
        continue;
      }
      if (to >= counts.size())
        counts.resize(to + 1, 0);
      counts[to] = std::max(counts[to], count);
    }
    dropped |= lost;
    Shift &entry = shiftBy(d);
    entry.from = in.shared;
    entry.result = result;
    entry.lost = lost;
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

void KeyTable::setWindow(const llvm::DenseSet<uint32_t> &peers, unsigned widen) {
  windowed = true;
  window.clear();
  shifts.clear();
  lastShift = nullptr;
  window.insert(0);
  for (uint32_t peer : peers) {
    window.insert(peer);
    window.insert(frame.negate(peer));
  }
  // A set beyond this size is kept as it is: its clocks would cost more than all ranks do.
  constexpr size_t largest = 4096;
  for (unsigned i = 0; i <= widen && window.size() < std::min<size_t>(largest, frame.numRanks());
       ++i) {
    llvm::DenseSet<uint32_t> next;
    for (uint32_t a : window)
      for (uint32_t b : window)
        next.insert(frame.minus(a, b));
    window = std::move(next);
  }
}

} // namespace mlir::ctran::machine
