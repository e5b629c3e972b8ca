//===- Clock.cpp - Vector clocks whose keys move with the observer ------------===//

#include "Clock.h"

namespace mlir::ctran::machine {

uint32_t KeyTable::intern(const Key &key) {
  auto [it, isNew] =
      index.try_emplace({key.owner, static_cast<uint8_t>(key.kind), key.id, key.slot},
                        static_cast<uint32_t>(keys.size()));
  if (isNew) {
    keys.push_back(key);
    if (key.kind == KeyKind::Hidden)
      hidden.push_back(it->second);
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

uint32_t KeyTable::shift(uint32_t key, uint32_t d) {
  if (d == 0 || key == never)
    return key;
  Shift &table = shifts[d];
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
  shifts[d].to[key] = out;
  return out;
}

void KeyTable::shift(const Clock &in, uint32_t d, Clock &out) {
  if (d == 0) {
    out = in;
    return;
  }
  out.counts.assign(keys.size(), 0);
  for (uint32_t key = 0; key < in.counts.size(); ++key) {
    if (!in.counts[key])
      continue;
    uint32_t to = shift(key, d);
    if (to == never)
      dropped = true;
    else
      out.raise(to, in.counts[key]);
  }
}

void KeyTable::flush(Clock &clock, uint32_t me) {
  for (uint32_t key : hidden) {
    if (key >= clock.counts.size() || !clock.counts[key] || keys[key].owner != me)
      continue;
    clock.counts[key - 1] = std::max(clock.counts[key - 1], clock.counts[key]);
    clock.counts[key] = 0;
  }
}

void KeyTable::setWindow(const llvm::DenseSet<uint32_t> &peers, unsigned widen) {
  windowed = true;
  window.clear();
  shifts.clear();
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
