//===- Segment.h - The memory of a plan on one rank -------------*- C++ -*-===//
//
// A segment holds the slots and the windows of a plan. It is a memfd: it has no name that could be
// left behind, and lives as long as a process has it mapped. Signals and waits are here too, since
// they are the same wherever the signaller's store comes from: another process, or a progress
// thread that has read a frame from a socket.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLXRT_LIB_SEGMENT_H
#define NCCLXRT_LIB_SEGMENT_H

#include "Base.h"

#include <atomic>
#include <cstddef>
#include <memory>

namespace ncclxrt {

/// A monotone counter, alone on its cache line.
struct alignas(64) Slot {
  std::atomic<uint64_t> value;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(Slot) == 64);

/// How a waiting thread spends its time before it sleeps. Polling is far quicker than sleeping
/// while the signaller runs on another core, and a loss while it waits for this one, so that the
/// number of polls follows what they have brought of late.
struct WaitPolicy {
  int least = 20, most = 20; // polls, with a pause between
  int budget = 20;           // the polls of the next wait
  unsigned waits = 0;        // every now and then one tries the most, to notice better times
  bool yields = false;       // after the polls, before it sleeps
  static constexpr int leastPenalty = 16, mostPenalty = 1024;
  int sleepsLeft = 0, penalty = leastPenalty; // waits that do not yield, after a yield cost a slice
  template <typename Reached> bool yieldUntil(Reached reached);
  /// By whether the ranks of this machine have a core each.
  static WaitPolicy forRanks(int ranksHere);
};

/// Makes this process one whose stores a barrier of another can order; false where the kernel has
/// no membarrier.
bool joinBarriers();

/// Sleeping and waking between threads of one process, for conditions over atomics.
class Doorbell {
public:
  /// After a condition may have become true.
  void ring();
  /// Waits until `done()`; false when `deadlineNs` has passed.
  template <typename Done> [[nodiscard]] bool await(Done done, int64_t deadlineNs) {
    bool result;
    sleepers.fetch_add(1);
    for (;;) {
      uint32_t seen = sequence.load();
      if ((result = done()))
        break;
      int64_t left = deadlineNs - nowNs();
      if (left <= 0)
        break;
      sleep(seen, left);
    }
    sleepers.fetch_sub(1);
    return result;
  }

private:
  void sleep(uint32_t seen, int64_t ns);
  std::atomic<uint32_t> sequence{0}, sleepers{0};
};

class Segment {
public:
  static constexpr int64_t slotsAt = 64; // after the header
  static constexpr int64_t alignment = 64;

  /// New memory, all zero but the header, which says whose it is.
  static Status create(int64_t bytes, int64_t windowsAt, uint64_t owner,
                       std::shared_ptr<Segment> &segment);
  /// How another process of this machine finds it.
  std::string ticket() const;
  /// Maps the segment of a ticket, checking size and owner. A segment of this very process is
  /// shared and not mapped twice, so that thread sanitizers see one address for one thing.
  static Status open(const std::string &ticket, int64_t bytes, uint64_t owner,
                     std::shared_ptr<Segment> &segment);
  /// After every rank has opened it.
  void closeFile() { file.reset(); }

  /// The pages of [at, at + count) become those of [from, from + count) of `other`, for as long as
  /// either lives. Both begin at the same place of a page, and nothing else uses these pages here.
  Status alias(int64_t at, const Segment &other, int64_t from, int64_t count);
  /// Whether it has been: a segment of this process is, by its owner, before others open it.
  bool isAliased() const { return aliased; }

  ~Segment();
  std::byte *base() const { return memory; }
  int64_t size() const { return bytes; }
  /// Where the windows begin; known of own segments.
  int64_t windowsAt() const { return windows; }
  Slot &slot(int64_t number) const { return reinterpret_cast<Slot *>(memory + slotsAt)[number]; }

  /// One more; releases what the caller did before. Wakes the owner if it sleeps on the slot.
  void raise(int64_t slot);
  /// The same for a counter that only the caller raises, whose new value it knows, and an owner
  /// that calls waitFor with `barrier`: a store, which nobody waits for to be seen.
  void set(int64_t number, uint64_t value) {
    slot(number).value.store(value, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (header().sleeper.load(std::memory_order_relaxed) == nameOf(number))
      wake(number);
  }
  /// Whether the slot has come to `value`, or the segment is aborted.
  bool reached(int64_t number, uint64_t value) const {
    return slot(number).value.load(std::memory_order_acquire) >= value ||
           header().aborted.load(std::memory_order_acquire);
  }
  /// Ends all waits, those to come too.
  void abort();

  /// Waits, as the owner's one thread, until the slot has reached `value` (or is aborted); false
  /// when the deadline has passed. A deadline of 0 is set to `timeoutNs` from now by the first wait
  /// that must sleep: the fast path asks for no time. `barrier`: every rank has called
  /// joinBarriers.
  [[nodiscard]] bool waitFor(int64_t slot, uint64_t value, int64_t timeoutNs, int64_t &deadlineNs,
                             WaitPolicy &policy, bool barrier);

private:
  struct Header {
    uint64_t magic, owner;
    /// The name of the slot that the owner sleeps on; 0: it is awake. On a line that changes
    /// seldom, so that who signals can look without waiting for memory.
    std::atomic<uint32_t> sleeper;
    std::atomic<uint32_t> aborted;
  };
  static_assert(sizeof(Header) <= slotsAt);
  Header &header() const { return *reinterpret_cast<Header *>(memory); }
  static uint32_t nameOf(int64_t slot) { return uint32_t(slot) + 1; }
  void wake(int64_t slot);

  Segment() = default;
  Status map(int64_t bytes);
  std::byte *memory = nullptr;
  int64_t bytes = 0, windows = 0;
  bool aliased = false;
  Fd file;
};

} // namespace ncclxrt

#endif // NCCLXRT_LIB_SEGMENT_H
