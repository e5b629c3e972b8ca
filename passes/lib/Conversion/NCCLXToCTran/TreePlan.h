//===- TreePlan.h - In which order pieces move along trees ------------------*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_TREEPLAN_H
#define NCCLX_LIB_CONVERSION_TREEPLAN_H

#include "ncclx/Topology/TreePacking.h"

#include <cstdint>
#include <vector>

namespace mlir::ctran {

/// What a step of a piece's way costs besides moving it.
struct TreeCosts {
  double pieceBytes = 0;
  double handOver = 0;          ///< seconds from the end of a put to the start of what waits for it
  double sum = 0;               ///< seconds to sum what has come
  double sumSecondsPerByte = 0; ///< of what it reads or writes
  /// Lanes that puts from one member to another take in turn, so that a link is busy while the
  /// next copy is started.
  int64_t lanes = 1;
  /// Times that the lanes of a way take a put before a root's next one waits for the earliest of
  /// them. What a root has to give is there from the start: unheld, it takes the way from what
  /// comes later and has further to go.
  int64_t turns = 1;
  double slack = 0; ///< between a put and what waits for it, in lengths of a put alone
};

/// What one member does with one piece of one tree.
struct TreeStep {
  enum class Kind {
    ReceivePart, ///< waits for a sum of the child `peer`
    Sum,         ///< adds what children sent to the own contribution
    SendPart,    ///< puts a sum (a leaf: its contribution) to the parent `peer`
    Receive,     ///< waits for data from the parent `peer`
    Send         ///< puts data to the child `peer`
  };
  Kind kind;
  unsigned tree, member;
  unsigned peer = 0; ///< but for Sum
  /// Which of the lanes between the two members, or of those that sum.
  int64_t lane = 0;
  /// In round r it moves piece r - stage of its tree.
  int64_t stage = 0;
  double time = 0; ///< when it starts, in the first round
  /// The step of the member's list that must be over before, `ago` rounds earlier (one more where
  /// it stands behind this one); -1: none.
  int64_t behind = -1, ago = 0;

  bool sends() const { return kind == Kind::Send || kind == Kind::SendPart; }
};

/// One piece of every tree moves in a round, and rounds follow each other: a modulo schedule.
struct TreePlan {
  /// By member, in the order in which its lanes take them in a round. A step comes behind, or in a
  /// later stage than, those of its piece that it waits for.
  std::vector<std::vector<TreeStep>> steps;
  int64_t stages = 1;
  int64_t lanes = 1; ///< TreeCosts::lanes
  /// Pieces of one tree that scratch memory must hold for no put to wait for credit.
  int64_t buffers = 2;
  /// With fewer of them puts may wait for each other's credits for ever.
  int64_t leastBuffers = 1;
};

/// Plans rounds that are as long as what the busiest way between two members has to move. Parts of
/// sums are sent as late, and data as early, as these ways are free.
TreePlan planTrees(const ncclx::topology::TreePacking &packing, const TreeCosts &costs);

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_TREEPLAN_H
