//===- Memory.h - The memory of one process, as boxes --------------*- C++ -*-===//
//
// Each window generation is a trie over the dimensions of an index space, split only where accesses
// were finer than what is there. A cell keeps its value, the end of its last write and the ends of
// the reads since.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_MACHINE_LIB_MEMORY_H
#define NCCLX_MACHINE_LIB_MEMORY_H

#include "Clock.h"
#include "Value.h"

#include <map>
#include <memory>

namespace mlir::ctran::machine {

/// Compact OpRef.
struct Who {
  uint32_t process = 0, lane = 0, location = 0, run = 0, step = 0;
};

/// The end of an access, as the owner of the memory names it.
struct End {
  uint32_t key = KeyTable::never, count = 0;
  Who who;
};

/// Values of a box, by sub-box. `rest`: of the indices below `sub` that no other piece names.
struct Piece {
  Path sub;
  ValueRef value;
  bool rest = false;
};
using Pieces = llvm::SmallVector<Piece, 1>;

/// Gives a box that is one value the pieces [0, count) of its next dimension.
[[nodiscard]] bool splitPieces(const Frame &frame, const Values &values, const Box &source,
                               int64_t count, Pieces &pieces);
/// What several boxes hold, combined. False: `why`, or nothing where they are split differently.
[[nodiscard]] bool combinePieces(const Frame &frame, const Values &values, const Combination &how,
                                 llvm::MutableArrayRef<Pieces> sources, llvm::ArrayRef<Box> boxes,
                                 Pieces &out, std::string &why);
/// Empty, or how what `box` holds differs from what `label` demands of `me` in run `run`.
std::string checkLabel(const Frame &frame, const Values &values, const Pieces &pieces,
                       const ValueLabel &label, const Box &box, uint32_t me, int64_t run);

/// Why an access is refused.
struct Refusal {
  Verdict verdict = Verdict::Ok;
  Path where;               ///< the cell
  std::optional<Who> other; ///< the access it conflicts with
  bool otherWrites = false;
  const char *note = "";
};

class WindowMemory {
public:
  /// `checked` false: a plain memory, in which every access is allowed.
  WindowMemory(const Frame &frame, const Values &values, bool checked = true)
      : frame(frame), values(values), checked(checked) {}

  /// Reads `box` at `clock`, the read ending at `end`; fills `out` unless null (then values are
  /// only checked to be there). False: `refusal`.
  /// `wanted`: the value name that the reading op works for, or -1; a box that several collectives
  /// read has a name for each of them.
  [[nodiscard]] bool read(const Box &box, const Clock &clock, const End &end, Pieces *out,
                          Refusal &refusal, int64_t wanted = -1);
  /// Says what `box` holds from here on. Storage is read, not written: reads by others need no
  /// order with this, and what the box was called before stays known to the ops that work for that
  /// name.
  [[nodiscard]] bool label(const Box &box, const Clock &clock, const End &end,
                           const ValueRef &value, Refusal &refusal);
  /// A read that needs no value: the owner may look at the box until `end`.
  [[nodiscard]] bool touch(const Box &box, const Clock &clock, const End &end, Refusal &refusal);
  /// Writes `pieces` into `box`. The op's own reads, which end at (`readKey`, `readCount`), do not
  /// conflict.
  [[nodiscard]] bool write(const Box &box, const Clock &clock, const End &end, uint32_t readKey,
                           uint32_t readCount, const Pieces &pieces, Refusal &refusal);

private:
  struct Node;
  struct Kids {
    std::vector<std::unique_ptr<Node>> at;
    int64_t present = 0;
  };
  struct Node {
    ValueRef value;
    End write;
    bool written = false;
    llvm::SmallVector<End, 2> reads;
    std::unique_ptr<Kids> kids;
  };

  /// Boxes through another index space than the one in use: the window is taken as a whole.
  void enter(const Box &box);
  const Box &inSpace(const Box &box, Box &whole);
  Node &find(Node &from, const Box &box, size_t depth, llvm::ArrayRef<int64_t> path);
  /// Calls visit(sub, node, rest) on the cells below `node`, with their path below it added to
  /// `sub`; false stops.
  template <typename Fn> bool leaves(Node &node, Path &sub, Fn visit);
  ValueRef collapse(const Node &node, const Box &box, size_t depth) const;
  void relabel(Node &node, const ValueRef &value, const Box &box, size_t depth);
  bool allWritten(const Node &node) const;
  /// Calls visit(node, i) on the node of the box, i < 0, or on the i-th of its interval.
  template <typename Fn> bool eachNode(const Box &box, Fn visit);
  [[nodiscard]] bool readNode(Node &node, const Box &box, int64_t i, const Clock &clock,
                              const End &end, bool needsValue, Refusal &refusal);
  [[nodiscard]] bool fill(Node &node, const Box &box, int64_t i, llvm::ArrayRef<Piece> pieces,
                          Refusal &refusal);
  /// Whether the accesses through other index spaces are over.
  [[nodiscard]] bool foreignOver(const Clock &clock, Refusal &refusal) const;

  const Frame &frame;
  const Values &values;
  const bool checked;
  unsigned space = 0;
  bool entered = false;
  Node root;
  /// Ends of accesses made through other index spaces, the latest of each key.
  std::vector<End> foreignWrites, foreignReads;
  /// The window holds several values that this index space has no boxes for.
  bool mixed = false;
  /// What boxes were called before they got another name, by that name; until the next write.
  std::map<int64_t, std::unique_ptr<WindowMemory>> aliases;
};

} // namespace mlir::ctran::machine
#endif // NCCLX_MACHINE_LIB_MEMORY_H
