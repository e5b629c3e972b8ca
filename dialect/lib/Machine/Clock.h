//===- Clock.h - Vector clocks whose keys move with the observer ---*- C++ -*-===//
#ifndef NCCLX_MACHINE_LIB_CLOCK_H
#define NCCLX_MACHINE_LIB_CLOCK_H

#include "Frame.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::ctran::machine {

/// How many events of each key are known to be over; missing entries are 0.
class Clock {
public:
  uint32_t operator[](uint32_t key) const { return key < counts.size() ? counts[key] : 0; }
  void raise(uint32_t key, uint32_t count) {
    if (key >= counts.size())
      counts.resize(key + 1, 0);
    counts[key] = std::max(counts[key], count);
  }
  void merge(const Clock &other) {
    if (counts.size() < other.counts.size())
      counts.resize(other.counts.size(), 0);
    for (size_t i = 0, n = other.counts.size(); i < n; ++i)
      counts[i] = std::max(counts[i], other.counts[i]);
  }
  void clear() { counts.clear(); }
  const std::vector<uint32_t> &entries() const { return counts; }

private:
  friend class KeyTable;
  std::vector<uint32_t> counts;
};

/// What a key counts.
enum class KeyKind : uint8_t {
  Issued, ///< ops of a lane: started, and over where the lane completes in order
  Done,   ///< local completions of an issue lane
  Landed, ///< puts that raised a slot, landed and visible
  Hidden  ///< the same, landed but not yet visible
};

struct Key {
  uint32_t owner = 0; ///< whose lane or slot: rank, or displacement
  KeyKind kind = KeyKind::Issued;
  uint32_t id = 0; ///< lane, or slots
  int64_t slot = 0;
};

/// Keys as small numbers, and how they look from a displaced observer. Representative clocks keep
/// keys within a set of displacements only; a key outside it is dropped, which loses order and
/// never adds any (Theorem 1).
class KeyTable {
public:
  static constexpr uint32_t never = ~0u; ///< an end that nothing can know

  explicit KeyTable(const Frame &frame) : frame(frame) {}

  uint32_t get(const Key &key);
  /// The Landed key of a slot; its Hidden key is the next one.
  uint32_t landed(uint32_t owner, uint32_t slots, int64_t slot);
  const Key &operator[](uint32_t key) const { return keys[key]; }
  /// `key` as the rank at displacement `d` names it; `never` where it is dropped.
  uint32_t shift(uint32_t key, uint32_t d);
  /// `in`, as the rank at displacement `d` sees it.
  void shift(const Clock &in, uint32_t d, Clock &out);
  /// Landings at rank 0 (the own rank) become visible.
  void flush(Clock &clock, uint32_t me);

  /// The displacements that clocks keep: differences of two of {0, peers, their negatives}, and
  /// `widen` times the differences of what that gives.
  void setWindow(const llvm::DenseSet<uint32_t> &peers, unsigned widen);
  bool dropped = false; ///< some order was lost

private:
  struct Shift {
    std::vector<uint32_t> to;
  };
  uint32_t intern(const Key &key);
  const Frame &frame;
  std::vector<Key> keys;
  std::map<std::tuple<uint32_t, uint8_t, uint32_t, int64_t>, uint32_t> index;
  llvm::DenseMap<uint32_t, Shift> shifts;
  std::vector<uint32_t> hidden; ///< Hidden keys, in order of appearance
  bool windowed = false;
  llvm::DenseSet<uint32_t> window;
};

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_LIB_CLOCK_H
