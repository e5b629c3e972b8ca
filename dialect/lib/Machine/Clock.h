//===- Clock.h - Vector clocks whose keys move with the observer ---*- C++ -*-===//
#ifndef NCCLX_MACHINE_LIB_CLOCK_H
#define NCCLX_MACHINE_LIB_CLOCK_H

#include "Frame.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/IntrusiveRefCntPtr.h"

#include <unordered_map>

namespace mlir::ctran::machine {

/// Counts of all clocks alive on this thread, in bytes: what a proof's memory grows with.
inline thread_local int64_t clockBytes = 0;

template <typename T> struct CountedAllocator {
  using value_type = T;
  CountedAllocator() = default;
  template <typename U> CountedAllocator(const CountedAllocator<U> &) {}
  T *allocate(size_t n) {
    clockBytes += static_cast<int64_t>(n * sizeof(T));
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T *p, size_t n) {
    clockBytes -= static_cast<int64_t>(n * sizeof(T));
    std::allocator<T>().deallocate(p, n);
  }
  friend bool operator==(const CountedAllocator &, const CountedAllocator &) { return true; }
};
using CountVector = std::vector<uint32_t, CountedAllocator<uint32_t>>;

/// How many events of each key are known to be over; missing entries are 0.
///
/// Most clocks of a lane differ in the lane's own entry only, so the other entries are shared until
/// one of them grows.
class Clock {
public:
  static constexpr uint32_t noKey = ~0u;

  uint32_t operator[](uint32_t key) const {
    uint32_t count = shared && key < shared->counts.size() ? shared->counts[key] : 0;
    for (const Own &entry : own)
      if (entry.key == key)
        count = std::max(count, entry.count);
    return count;
  }
  /// Keeps `key` as an entry of its own from here on.
  void setOwn(unsigned which, uint32_t key, uint32_t count) { own[which] = {key, count}; }
  void raise(uint32_t key, uint32_t count);
  void merge(const Clock &other);

private:
  friend class KeyTable;
  struct Counts : llvm::RefCountedBase<Counts> {
    CountVector counts;
  };
  struct Own {
    uint32_t key = noKey, count = 0;
  };
  CountVector &mutableCounts();

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

  /// The displacements that clocks keep: differences of two of {0, peers, their negatives}, and
  /// `widen` times the differences of what that gives.
  void setWindow(const llvm::DenseSet<uint32_t> &peers, unsigned widen);
  bool dropped = false; ///< some order was lost

private:
  struct Shift {
    std::vector<uint32_t> to;
    /// The last entries that were shifted, and what came out.
    llvm::IntrusiveRefCntPtr<Clock::Counts> from, result;
    bool lost = false;
  };
  uint32_t intern(const Key &key);
  const Frame &frame;
  std::vector<Key> keys;
  std::map<std::tuple<uint32_t, uint8_t, uint32_t, int64_t>, uint32_t> index;
  Shift &shiftBy(uint32_t d);
  std::unordered_map<uint32_t, Shift> shifts;
  Shift *lastShift = nullptr;
  uint32_t lastD = 0;
  llvm::DenseMap<uint32_t, llvm::SmallVector<uint32_t, 4>> hidden; ///< Hidden keys, by owner
  bool windowed = false;
  llvm::DenseSet<uint32_t> window;
};

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_LIB_CLOCK_H
