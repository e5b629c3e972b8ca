//===- Levels.h - Steps along the tiers of a machine -----------------------*- C++ -*-===//
//
// What the hierarchical algorithms share: levels, peers by how far they are, and what stands
// between two of them.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_CONVERSION_LEVELS_H
#define NCCLX_LIB_CONVERSION_LEVELS_H

#include "Algorithms.h"

namespace mlir::ctran {

using Tokens = SmallVector<Value>;

/// Peers that agree on all but some axes. One of them is `distance` further on, which is a number
/// below `size`, row-major over the axes: so that no number depends on the rank.
struct Level {
  SmallVector<unsigned> axes;
  int64_t size = 1;
  int64_t lanes = 1;     ///< that carry its puts, the peers in turn
  int64_t firstLane = 0; ///< of `lanes` + 3
};

class Levels {
public:
  /// Of `tiers`, outermost first, with puts of so many `bytes`; `suffix` keeps names apart. Lanes
  /// are numbered from `firstLane`.
  Levels(ScheduleBuilder &s, const CollectiveSpec &c, ArrayRef<TierOfGroup> tiers,
         ArrayRef<double> bytes, bool together, StringRef suffix, int64_t &firstLane);

  ScheduleBuilder &s;
  const CollectiveSpec &c;
  SmallVector<Level> list;
  std::string name; ///< of the collective and this part of it

  size_t count() const { return list.size(); }
  /// Members that differ on levels [first, last).
  int64_t members(size_t first, size_t last) const;

  /// Adds to `point` where level `t` of it is: `distance` further on than the own place, or back.
  void move(Point &point, size_t t, Value distance, bool back = false);
  /// The same on the levels [0, t), by one number.
  void moveOuter(Point &point, size_t t, Value number, bool back = false);
  Point peer(size_t t, Value distance, bool back = false);

  /// A slot for each peer of a level, by its distance, less 1.
  Value slots(size_t t, StringRef what, int64_t perRun, int64_t of = 1);
  /// What is written on lane `number` of level `t`.
  Value onLane(size_t t, int64_t number, llvm::function_ref<Value()> body) {
    return s.onLane(list[t].firstLane + number, body);
  }
  /// Waits until every peer of level `t` has told so often that it is ready; what follows a put has
  /// a lane of its own, so that it keeps no later put.
  Value granted(size_t t, Value slots, Value times);
  /// Waits for the puts that have raised `slot`.
  Value arrived(size_t t, Value slot, Value puts, StringRef note);
  /// Sums on level `t`'s own lane.
  Value sum(size_t t, const Combination &how, ValueRange sources, Value dest, ValueRange after);
  /// Tells every peer of level `t` that this rank is ready for one more put of it, in the slots
  /// that they have for what `slots` made.
  Value tellAll(size_t t, Value slots, ValueRange after);
  /// The same, once at the start: one stream after the other, so that they do not start their
  /// copies at the same time.
  Value tellFirst(size_t t, Value slots, ValueRange after);
  /// The peers of a level in turn on its lanes: tokens[first + lane] = body(distance).
  void forPeers(size_t t, Tokens &tokens, size_t first,
                llvm::function_ref<Value(Value distance)> body);
  /// for i in [lower, upper): tokens = body(i, tokens).
  Tokens loop(int64_t lower, int64_t upper, Tokens tokens,
              llvm::function_ref<void(Value i, Tokens &tokens)> body);

  /// One token for all.
  Value join(ValueRange tokens);

  /// The first lane that is free for the levels of `tiers` tiers.
  static int64_t firstFree(size_t tiers) { return 1 + int64_t(tiers); }

private:
  Value tell(size_t t, Value slots, ValueRange after);
  void step(Point &point, unsigned axis, Value by, bool back);
};

/// all_gather, reduce_scatter and all_to_all along tiers.
InFlight hierarchicalExchange(ScheduleBuilder &s, const CollectiveSpec &c);

/// broadcast along tiers.
InFlight hierarchicalBroadcast(ScheduleBuilder &s, const CollectiveSpec &c);

/// In how many chunks a sum goes, and for how many of those that it has yet to sum a member has
/// room at once.
struct Chunking {
  int64_t chunks = 1, room = 8;
};
/// That chunking, where it takes no more than `left` bytes of scratch memory by `scratchOf` (-1: no
/// limit); else more chunks, up to `most`, and less room, until it does.
Chunking fitted(Chunking chunking, int64_t most, int64_t left,
                llvm::function_ref<int64_t(Chunking)> scratchOf);

/// Lanes that a level of so many may have.
int64_t mostLanes(ScheduleBuilder &s, size_t levels);
/// What a collective that goes in one chunk puts along a tier.
struct TierLoad {
  double bytes = 0;   ///< of one put
  int64_t peers = 1;  ///< each gets one
  int64_t rounds = 1; ///< so often
};
/// In how many chunks, up to `most`, it goes: those that are asked for, else best: more let tiers
/// overlap, and cost their starts. With `together` it goes along the tiers and back, and on only
/// when all peers' puts have come.
/// `unhidden` is the part of the starts that no other lane hides.
int64_t chunksFor(ScheduleBuilder &s, const CollectiveSpec &c, ArrayRef<TierLoad> loads,
                  int64_t most, bool together, double unhidden);
/// Lanes of a level for puts of `bytes`: so many that with two streams a link is busy while copies
/// are started; one for each peer where what follows waits for all of them.
int64_t lanesFor(const TierOfGroup &tier, double bytes, int64_t peers, bool together, int64_t most);

/// The chunks [first, last) in two streams beside each other, each with lanes of its own: a link is
/// busy with one while copies of the other are started.
SmallVector<std::pair<int64_t, int64_t>> streams(int64_t first, int64_t last, size_t levels);

/// Of `chunks`, as many as go straight to every member across the outer of two tiers, so that both
/// are busy for as long.
int64_t straightChunks(ArrayRef<TierOfGroup> tiers, ArrayRef<int64_t> sizes, int64_t chunks);

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_LEVELS_H
