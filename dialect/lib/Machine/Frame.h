//===- Frame.h - Boxes and slots of a schedule, as numbers ---------*- C++ -*-===//
//
// A process of the machine is a rank, or the one representative of all ranks. The representative
// stands at displacement 0; what it does to the rank at displacement d is, shifted by -d, what the
// rank at -d does to it, so every index is told relative to the rank that owns the memory.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_MACHINE_LIB_FRAME_H
#define NCCLX_MACHINE_LIB_FRAME_H

#include "ncclx/Machine/Prove.h"
#include "ncclx/Machine/Schedule.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <map>
#include <string>
#include <tuple>

namespace mlir::ctran::machine {

using Path = llvm::SmallVector<int64_t, 6>;

/// A resolved access.
struct Box {
  uint32_t owner = 0; ///< rank, or displacement of the rank whose memory it is
  unsigned window = 0, space = 0;
  Path path;
  int64_t first = 0, count = -1; ///< as in Access; -1 also where the interval is everything
  bool ownPiece = false;         ///< the whole of a resident space: its own piece is meant
  unsigned residentSpace = 0;    ///< meaningful when ownPiece
};

/// Resolved slots: linear indices in Schedule::slots[slots].
struct SlotRange {
  uint32_t owner = 0;
  unsigned slots = 0;
  int64_t begin = 0, count = 1;
};

enum class Resolve : uint8_t { Ok, Invalid, Asymmetric };

class Frame {
public:
  Frame(const Schedule &schedule, bool representative);

  const Schedule &schedule;
  const bool representative;

  /// Empty, or what is wrong with the schedule's declarations.
  std::string validate() const;
  /// Empty, or what is wrong with an op whoever executes it.
  std::string check(const Op &op) const;

  uint32_t numRanks() const { return ranks; }
  int64_t coordinate(uint32_t rank, unsigned axis) const { return pointOf(rank)[axis]; }
  /// Componentwise a - b on the torus; a rank as the displacement from rank 0.
  uint32_t minus(uint32_t a, uint32_t b) const;
  uint32_t negate(uint32_t a) const { return minus(0, a); }
  uint32_t target(const Peer &peer, uint32_t me) const;

  [[nodiscard]] Resolve resolve(const Access &access, uint32_t me, Box &box) const;
  [[nodiscard]] Resolve resolve(const SlotRef &ref, uint32_t me, SlotRange &range) const;
  /// How a box that is moved fits where it goes: a larger box of scratch memory is used from its
  /// start.
  enum class Fit : uint8_t { Equal, ToLarger, FromLarger };
  /// Whether both ends of a move hold as many bytes on whatever rank it runs (boxes C2), and, as
  /// its value is known in pieces of `below` more dimensions, are cut alike there.
  [[nodiscard]] Resolve fits(const Access &from, const Access &to, uint32_t me, size_t below,
                             Fit &fit) const;
  /// Why the last resolve did not succeed.
  mutable std::string why;

  int64_t numSlots(unsigned slots) const { return slotCount[slots]; }
  /// The slot `index` (and generation, the slowest part) as the rank at displacement `d` names it.
  int64_t shiftSlot(unsigned slots, int64_t index, uint32_t d) const;
  /// Identity of the way that dimension `depth` of a space cuts.
  uint32_t layoutOf(unsigned window, unsigned space, size_t depth) const {
    return layoutIds[window][space][depth];
  }
  const std::vector<Dim> &dims(const Box &box) const {
    return schedule.windows[box.window].spaces[box.space].dims;
  }
  /// Has its window no bytes? Nobody writes it, then, and what it holds is known.
  bool isEmpty(const Box &box) const {
    return schedule.windows[box.window].spaces[box.space].storageBytes() == 0;
  }
  /// The value name that an op works for: a label's own, else that of its collective; -1: none.
  int64_t valueFor(const Op &op) const {
    if (op.kind == OpKind::Sink || op.kind == OpKind::Source)
      return op.label.name;
    return op.collective >= 0 && size_t(op.collective) < collectiveValue.size()
               ? collectiveValue[op.collective]
               : -1;
  }
  std::string describe(const Box &box) const;
  std::string describeSlot(unsigned slots, int64_t index) const;

private:
  [[nodiscard]] Resolve index(const Index &index, const Dim &dim, uint32_t me, uint32_t owner,
                              int64_t &out) const;
  // False: `bad` says what is wrong.
  bool checkOp(const Op &op, std::string &bad) const;
  bool checkAccess(const Access &access, std::string &bad) const;
  bool checkSlot(const SlotRef &ref, std::string &bad) const;
  bool checkPeer(const Peer &peer, std::string &bad) const;
  /// The coordinates of `rank`, valid until the next call for another rank.
  const uint32_t *pointOf(uint32_t rank) const {
    size_t place = rank % knownPoints;
    if (pointRank[place] != rank)
      fillPoint(rank);
    return &points[place * strides.size()];
  }
  void fillPoint(uint32_t rank) const;

  uint32_t ranks = 0;
  std::vector<uint32_t> strides;
  std::vector<int64_t> slotCount;
  std::vector<std::vector<std::vector<uint32_t>>> layoutIds;
  std::vector<int64_t> collectiveValue; ///< by Schedule::collectives: index of the value it names
  std::string invalid;
  /// Coordinates of the ranks, or displacements, that were last asked for: a schedule has few
  /// peers.
  static constexpr size_t knownPoints = 64;
  mutable std::vector<uint32_t> points, pointRank;
};

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_LIB_FRAME_H
