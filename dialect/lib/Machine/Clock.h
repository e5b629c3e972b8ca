//===- Clock.h - Vector clocks whose keys move with the observer ---*- C++ -*-===//
#ifndef NCCLX_MACHINE_LIB_CLOCK_H
#define NCCLX_MACHINE_LIB_CLOCK_H

#include "Frame.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/IntrusiveRefCntPtr.h"

#include <new>
#include <unordered_map>

namespace mlir::ctran::machine {

/// Counts of all clocks alive on this thread, in bytes: what a proof's memory grows with.
inline thread_local int64_t clockBytes = 0;

/// Counts of keys 0, 1, ..., shared by clocks; one block of memory. Most clocks of a proof have one
/// size and live for a few ops, so blocks are kept for the next.
class Counts {
public:
  /// Not yet set.
  static llvm::IntrusiveRefCntPtr<Counts> make(uint32_t size);
  uint32_t size() const { return count; }
  uint32_t *at() { return reinterpret_cast<uint32_t *>(this + 1); }
  const uint32_t *at() const { return reinterpret_cast<const uint32_t *>(this + 1); }
  bool isShared() const { return users > 1; }

  void Retain() { ++users; }
  void Release() {
    if (--users == 0)
      recycle(this);
  }

private:
  explicit Counts(uint32_t size) : count(size) {}
  static void recycle(Counts *counts);
  size_t bytes() const { return sizeof(Counts) + count * sizeof(uint32_t); }

  uint32_t users = 0;
  const uint32_t count;
};

/// How many events of each key are known to be over; missing entries are 0.
///
/// Most clocks of a lane differ in the lane's own entry only, so the other entries are shared until
/// one of them grows.
class Clock {
public:
  static constexpr uint32_t noKey = ~0u;

  uint32_t operator[](uint32_t key) const {
    uint32_t count = shared && key < shared->size() ? shared->at()[key] : 0;
    for (const Own &entry : own)
      if (entry.key == key)
        count = std::max(count, entry.count);
    return count;
  }
  /// Keeps `key` as an entry of its own from here on.
  void setOwn(unsigned which, uint32_t key, uint32_t count) { own[which] = {key, count}; }
  void raise(uint32_t key, uint32_t count) {
    for (Own &entry : own)
      if (entry.key == key) {
        entry.count = std::max(entry.count, count);
        return;
      }
    // Keys come one by one: room for more, so that not each costs a copy. Here alone, as clocks that
    // are merged with each other would outgrow each other without end.
    uint32_t had = shared ? shared->size() : 0;
    if (key >= had)
      mutableCounts(std::max(key + 1, had + had / 2))[key] = count;
    else if (shared->at()[key] < count)
      mutableCounts(had)[key] = count;
  }
  void merge(const Clock &other);
  /// The same where `other` is an earlier clock of the same lane, whose own entries may be other
  /// ones.
  void mergeEarlier(const Clock &other) {
    for (const Own &entry : other.own)
      if (entry.key != noKey)
        raise(entry.key, entry.count);
  }

private:
  friend class KeyTable;
  struct Own {
    uint32_t key = noKey, count = 0;
  };
  /// Counts of this clock's own, at least `size` of them.
  uint32_t *mutableCounts(uint32_t size);

  llvm::IntrusiveRefCntPtr<Counts> shared;
  Own own[2];
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
  static constexpr uint32_t never = Clock::noKey; ///< an end that nothing can know

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

  /// The displacements that clocks keep: 0, peers and their negatives, and `widen` times the
  /// differences of two of what that gives.
  void setWindow(const llvm::DenseSet<uint32_t> &peers, unsigned widen);
  /// Instead of that: not widened, and peers are those that clocks are shifted to, as they come.
  void learnWindow();
  /// False: a peer came when order had been lost that its window might have kept, or there are too
  /// many to learn.
  bool learned() const { return !tooLate; }
  bool dropped = false; ///< some order was lost

private:
  struct Shift {
    uint32_t d = 0;
    std::vector<uint32_t> to;
    /// The last entries that were shifted, and what came out.
    llvm::IntrusiveRefCntPtr<Counts> from, result;
    bool lost = false;
  };
  uint32_t intern(const Key &key);
  const Frame &frame;
  std::vector<Key> keys;
  std::map<std::tuple<uint32_t, uint8_t, uint32_t, int64_t>, uint32_t> index;
  Shift &shiftBy(uint32_t d);
  uint32_t shiftAnew(uint32_t key, Shift &by);
  std::unordered_map<uint32_t, Shift> shifts;
  Shift *lastShift[4] = {}; ///< by the last bits of the displacement
  llvm::DenseMap<uint32_t, llvm::SmallVector<uint32_t, 4>> hidden; ///< Hidden keys, by owner
  bool windowed = false, learning = false, tooLate = false;
  llvm::DenseSet<uint32_t> window, met;
};

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_LIB_CLOCK_H
