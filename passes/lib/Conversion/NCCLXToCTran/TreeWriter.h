//===- TreeWriter.h - Writes what moves along trees as ops ------------------*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_TREEWRITER_H
#define NCCLX_LIB_CONVERSION_TREEWRITER_H

#include "Algorithms.h"
#include "TreePlan.h"

#include <map>
#include <optional>
#include <tuple>

namespace mlir::ctran {

/// Writes a collective along trees, each of which moves a piece in so many rounds.
class TreeWriter {
public:
  TreeWriter(ScheduleBuilder &s, const CollectiveSpec &c, ArrayRef<topology::PackedTree> trees,
             const TreePlan &plan, int64_t rounds);

  /// A window cut into pieces: of each member, or of what is all one member's, or anybody's.
  struct View {
    Value window;
    bool byMember = false;
  };
  View in, out;
  int64_t capacity = 0;       ///< elements of the largest piece, where there are sums
  SmallVector<Value> have;    ///< `in` may be read after these
  SmallVector<Value> outFree; ///< `out` may be written after these
  /// One token for each member's branch.
  SmallVector<Value> write();

private:
  using Tokens = SmallVector<Value>;
  using Kind = TreeStep::Kind;

  ScheduleBuilder &s;
  const CollectiveSpec &c;
  ArrayRef<topology::PackedTree> trees;
  const TreePlan &plan;
  int64_t rounds;
  Members members;
  std::vector<int64_t> firstPiece; ///< by tree: of its root's, or of all
  /// Numbers of a member's scratch memory, by tree: for what its first child sends, behind which
  /// those of the others stand, and for its own sum.
  std::vector<std::map<unsigned, int64_t>> partOf;
  std::vector<std::map<unsigned, int64_t>> sumOf;
  std::vector<int64_t> mostParts;
  Value parts, sums, part, credit, data, ready;

  // Of the member that is being written:
  unsigned m = 0;
  ArrayRef<TreeStep> steps;
  std::map<std::tuple<Kind, unsigned, unsigned>, size_t> stepOf; ///< by tree and peer
  /// Tokens of a step in the last rounds, the latest first; of a sum, then that of its credits.
  std::vector<Tokens> tokens;
  std::vector<size_t> kept; ///< how many of a step
  /// Roles of lanes between this member and a peer; the last two help some of those that send.
  enum class Role { Receive, Send, Notify, Credit };
  std::map<std::pair<Role, unsigned>, int64_t> lanes;
  std::map<unsigned, Value> granted; ///< by child: its output may be written

  Value writeMember();
  void number();
  void meetNeighbours(Tokens &all);
  /// The step of this kind whose token step `i` needs, `earlier` pieces ago: its place in `kept`.
  std::optional<std::pair<size_t, size_t>> needed(size_t i, Kind kind, unsigned peer,
                                                  int64_t earlier = 0);
  void need(size_t i, Kind kind, unsigned peer, Tokens &after, int64_t earlier = 0) {
    if (auto found = needed(i, kind, peer, earlier))
      after.push_back(tokens[found->first][found->second]);
  }
  /// The steps [first, end), of one stage, in a round in which they move pieces [from, to).
  void writeSteps(size_t first, size_t end, Value from, Value to);
  void writeStep(size_t i, Value piece);
  Value sum(size_t i, Value piece, Value &told);
  Value send(size_t i, Value piece);
  Value put(const TreeStep &step, Value from, Value to, Value arrived, ValueRange after,
            StringRef note);

  static SmallVector<unsigned> childrenOf(ArrayRef<unsigned> parent, unsigned root, unsigned m) {
    SmallVector<unsigned> found;
    for (unsigned v = 0; v < parent.size(); ++v)
      if (v != root && parent[v] == m)
        found.push_back(v);
    return found;
  }
  /// What a child sends to `parent` in a tree: its number there, and its place for a piece.
  int64_t partNumber(unsigned tree, unsigned parent, unsigned child) {
    SmallVector<unsigned> all = childrenOf(trees[tree].in, trees[tree].root, parent);
    return partOf[parent].at(tree) + (llvm::find(all, child) - all.begin());
  }
  Value partPlace(unsigned tree, unsigned parent, unsigned child, Value piece) {
    int64_t first = partOf[parent].at(tree), number = partNumber(tree, parent, child);
    int64_t together = int64_t(childrenOf(trees[tree].in, trees[tree].root, parent).size());
    return s.add(s.mul(s.rem(piece, plan.buffers), together),
                 first * plan.buffers + number - first);
  }
  /// `s` on a step's lane.
  ScheduleBuilder on(int64_t number) {
    ScheduleBuilder other = s;
    other.carrier.index = s.carrier.lane(number);
    return other;
  }
  int64_t laneOf(Role role, const TreeStep &step) {
    // The first are for sums, the next for their credits.
    return (2 + lanes.at({role, step.peer})) * plan.lanes + step.lane;
  }
  Value buffer(Value window, int64_t number, Value piece) {
    return s.range(window, s.add(s.rem(piece, plan.buffers), number * plan.buffers));
  }
  Value at(Value memory, unsigned member) {
    return members.atRank(memory, s.constant(c.rankOf(s, member)));
  }
  Value box(const View &view, Value window, unsigned tree, Value piece) {
    SmallVector<Value> indices;
    if (view.byMember)
      indices = members.point(s.constant(trees[tree].root));
    indices.push_back(s.add(piece, firstPiece[tree]));
    return s.range(window, indices);
  }
  Value box(const View &view, unsigned tree, Value piece) {
    return box(view, view.window, tree, piece);
  }
  Value join(ValueRange all) {
    SmallVector<Value> once = joined({}, all);
    return once.size() == 1 ? once.front()
                            : Value(FlushOp::create(s.builder, s.loc, once.front().getType(), once,
                                                    LaneKind::Host, Value(), s.of,
                                                    s.builder.getStringAttr("joined")));
  }
};

} // namespace mlir::ctran
#endif // NCCLX_LIB_CONVERSION_TREEWRITER_H
