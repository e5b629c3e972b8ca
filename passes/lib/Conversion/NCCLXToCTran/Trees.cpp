//===- Trees.cpp - Trees packed into a topology ------------------------------------------===//
//
// Each member's data goes to all along trees of its own (topology::packTrees), cut by the trees'
// shares and in steps that follow each other down a tree. all_gather: every edge is a put straight
// between outputs. reduce_scatter: the other way round; a member adds what its children sent to its
// own contribution and passes the sum on, through two scratch slots for each edge with a credit for
// each. all_reduce is both. Which edges a member has is told rank by rank: the program is
// asymmetric.
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::ctran;
using topology::PackedTree;
using topology::TreePacking;

namespace {

/// Steps in a row go over different lanes, so that a link is busy while the next copy is started.
constexpr int64_t kLanes = 2;
/// Scratch slots of an edge.
constexpr int64_t kSlots = 2;
/// Seconds that a step takes besides moving bytes: start of a copy, signal, wait (LaneCosts::gpu).
constexpr double kStepSeconds = 3e-6;

/// Writes one phase: all members' data along a packing.
class TreePhase {
public:
  TreePhase(ScheduleBuilder &s, const CollectiveSpec &c, const TreePacking &packing, int64_t steps,
            StringRef name)
      : s(s), c(c), packing(packing), steps(steps), name((c.name + name).str()),
        members(s, c.axes) {}

  /// Pieces that a member's part is cut in: a tree moves `share` of them a step.
  static int64_t pieces(const TreePacking &packing, int64_t steps) {
    return packing.shares * steps;
  }

  /// From the members' parts of `in` (a view by member and piece, or by piece alone: the own one)
  /// to all of `out`. One token for each member's branch.
  SmallVector<Value> gather(Value in, bool inIsOwnPart, Value out, ValueRange have,
                            ValueRange outFree);
  /// Sums of `in` to the own part of `out`, a view by member and piece, or by piece alone.
  SmallVector<Value> reduce(Value in, Value out, bool outIsOwnPart, int64_t capacity,
                            ValueRange have, ValueRange outFree);

private:
  ScheduleBuilder &s;
  const CollectiveSpec &c;
  const TreePacking &packing;
  int64_t steps;
  std::string name;
  Members members;

  using Tokens = SmallVector<Value>;
  /// The ops of member `m`; one token for all.
  Value forMember(unsigned m, Value otherwise, llvm::function_ref<Value()> body);
  /// for k in [0, steps), kLanes steps an iteration: next tokens = body(k, lane, tokens).
  Tokens forSteps(Tokens first, llvm::function_ref<Tokens(Value k, int64_t lane, Tokens)> body);
  Value join(ValueRange tokens);
  /// What tree `t` moves in step `k` of its root's part, in a view by member and piece.
  Value piece(Value view, size_t t, Value k, bool ownPart = false);
  SmallVector<unsigned> children(const PackedTree &tree, unsigned m) const {
    SmallVector<unsigned> found;
    for (unsigned v = 0; v < tree.parent.size(); ++v)
      if (v != tree.root && tree.parent[v] == m)
        found.push_back(v);
    return found;
  }
  Value at(Value memory, unsigned member) {
    return members.atRank(memory, s.constant(c.rankOf(s, member)));
  }
  /// `s` on another of the lanes of this collective.
  ScheduleBuilder lane(int64_t number) {
    ScheduleBuilder other = s;
    other.carrier.index = (s.carrier.index + 1) * 1024 + number;
    return other;
  }
};

Value TreePhase::forMember(unsigned m, Value otherwise, llvm::function_ref<Value()> body) {
  return s.branch(s.equal(members.own(), s.constant(m)), body, [&] { return otherwise; });
}

Value TreePhase::join(ValueRange tokens) {
  SmallVector<Value> all = joined({}, tokens);
  return all.size() == 1
             ? all.front()
             : Value(FlushOp::create(s.builder, s.loc, all.front().getType(), all, LaneKind::Host,
                                     Value(), s.of, s.builder.getStringAttr("joined")));
}

TreePhase::Tokens TreePhase::forSteps(Tokens first,
                                      llvm::function_ref<Tokens(Value, int64_t, Tokens)> body) {
  auto loop = scf::ForOp::create(s.builder, s.loc, s.constant(0), s.constant(steps / kLanes),
                                 s.constant(1), first);
  OpBuilder::InsertionGuard guard(s.builder);
  s.builder.setInsertionPointToStart(loop.getBody());
  Tokens tokens(loop.getRegionIterArgs());
  Value k = s.mul(loop.getInductionVar(), kLanes);
  for (int64_t lane = 0; lane < kLanes; ++lane)
    tokens = body(s.add(k, lane), lane, tokens);
  scf::YieldOp::create(s.builder, s.loc, tokens);
  return Tokens(loop.getResults());
}

Value TreePhase::piece(Value view, size_t t, Value k, bool ownPart) {
  const PackedTree &tree = packing.trees[t];
  int64_t before = 0;
  for (size_t i = 0; i < t; ++i)
    if (packing.trees[i].root == tree.root)
      before += packing.trees[i].share;
  SmallVector<Value> indices;
  if (!ownPart)
    indices = members.point(s.constant(tree.root));
  Value first = s.add(s.mul(k, tree.share), before * steps);
  return RangeOp::create(s.builder, s.loc, RangeType::get(s.builder.getContext()), view, indices,
                         first, s.constant(tree.share), Value());
}

SmallVector<Value> TreePhase::gather(Value in, bool inIsOwnPart, Value out, ValueRange have,
                                     ValueRange outFree) {
  unsigned n = unsigned(members.size());
  Value ready = s.slots(name + ".ready", s.freeDim(n), 1);
  Value data = s.slots(name + ".data", s.freeDim(int64_t(packing.trees.size())), steps);
  SmallVector<Value> done;
  for (unsigned m = 0; m < n; ++m)
    done.push_back(forMember(m, have.front(), [&] {
      // Whom the member hears from, and whom it tells.
      std::map<unsigned, Value> granted;
      std::set<unsigned> parents;
      for (const PackedTree &tree : packing.trees)
        if (m != tree.root)
          parents.insert(tree.parent[m]);
      Tokens all(have);
      for (unsigned p : parents)
        all.push_back(s.ready(s.slot(at(ready, p), s.constant(m)), outFree, "ready"));
      // Every edge of every tree has lanes of its own, and so has every tree's arrival.
      int64_t lanes = 0;
      struct Edge {
        unsigned child;
        int64_t lane;
      };
      struct Part {
        size_t tree;
        int64_t arrival;
        SmallVector<Edge> edges;
      };
      SmallVector<Part> parts;
      for (auto [t, tree] : llvm::enumerate(packing.trees)) {
        Part part{t, lanes, {}};
        lanes += kLanes;
        for (unsigned child : children(tree, m)) {
          part.edges.push_back({child, lanes});
          lanes += kLanes;
          if (!granted.count(child))
            granted[child] =
                s.awaitReady(s.slot(ready, s.constant(child)), s.constant(1), have, "await ready");
        }
        parts.push_back(part);
      }
      Tokens first;
      for (const Part &part : parts)
        first.append((1 + part.edges.size()) * kLanes, have.front());
      Tokens last = forSteps(first, [&](Value k, int64_t lane, Tokens tokens) {
        size_t token = 0;
        for (const Part &part : parts) {
          const PackedTree &tree = packing.trees[part.tree];
          bool root = tree.root == m;
          Value &arrived = tokens[token + lane];
          token += kLanes;
          // One lane waits for a slot, as only one may.
          if (!root)
            arrived = this->lane(part.arrival)
                          .arrive(s.slot(data, s.constant(int64_t(part.tree))), s.add(k, 1), {},
                                  "await piece");
          for (const Edge &edge : part.edges) {
            ScheduleBuilder on = this->lane(edge.lane + lane);
            SmallVector<Value> after{granted[edge.child]};
            if (root)
              llvm::append_range(after, have);
            else
              after.push_back(arrived);
            Value source = root ? piece(in, part.tree, k, inIsOwnPart) : piece(out, part.tree, k);
            tokens[token + lane] = on.put(
                source, piece(at(out, edge.child), part.tree, k),
                s.slot(at(data, edge.child), s.constant(int64_t(part.tree))), after, "put piece");
            token += kLanes;
          }
        }
        return tokens;
      });
      llvm::append_range(all, last);
      return join(all);
    }));
  return done;
}

SmallVector<Value> TreePhase::reduce(Value in, Value out, bool outIsOwnPart, int64_t capacity,
                                     ValueRange have, ValueRange outFree) {
  unsigned n = unsigned(members.size());
  // Edges into a member, and trees in which it passes a sum on, have numbers for its scratch
  // memory.
  size_t mostEdges = 0, mostSums = 0;
  std::vector<std::map<std::pair<size_t, unsigned>, int64_t>> edgeOf(n);
  std::vector<std::map<size_t, int64_t>> sumOf(n);
  for (auto [t, tree] : llvm::enumerate(packing.trees))
    for (unsigned m = 0; m < n; ++m) {
      SmallVector<unsigned> below = children(tree, m);
      for (unsigned child : below)
        edgeOf[m].try_emplace({t, child}, int64_t(edgeOf[m].size()));
      if (m != tree.root && !below.empty())
        sumOf[m].try_emplace(t, int64_t(sumOf[m].size()));
      mostEdges = std::max(mostEdges, edgeOf[m].size());
      mostSums = std::max(mostSums, sumOf[m].size());
    }
  Value parts = slotWindow(s, c, name.substr(c.name.size() + 1) + ".parts",
                           int64_t(mostEdges) * kSlots, capacity);
  Value sums = mostSums ? slotWindow(s, c, name.substr(c.name.size() + 1) + ".sums",
                                     int64_t(mostSums) * kSlots, capacity)
                        : Value();
  Value data = s.slots(name + ".data", s.freeDim(int64_t(mostEdges)), steps);
  Value credit = s.slots(name + ".credit", s.freeDim(int64_t(packing.trees.size())), steps);
  auto place = [&](Value view, int64_t number, Value k) {
    return s.range(view, s.add(s.rem(k, kSlots), number * kSlots));
  };
  SmallVector<Value> done;
  for (unsigned m = 0; m < n; ++m)
    done.push_back(forMember(m, have.front(), [&] {
      Tokens first(packing.trees.size() * kLanes * 2, have.front());
      Tokens last = forSteps(first, [&](Value k, int64_t lane, Tokens tokens) {
        for (auto [t, tree] : llvm::enumerate(packing.trees)) {
          // Of the put two steps ago, which read the sum that is now overwritten, and of this one.
          Value &put = tokens[(t * kLanes + lane) * 2];
          Value &summed = tokens[(t * kLanes + lane) * 2 + 1];
          SmallVector<unsigned> below = children(tree, m);
          bool root = tree.root == m;
          ScheduleBuilder on = this->lane(int64_t(t) * kLanes + lane);
          Value source = piece(in, t, k);
          SmallVector<Value> after(have);
          if (!below.empty()) {
            SmallVector<Value> sources{source};
            for (unsigned child : below) {
              int64_t edge = edgeOf[m].at({t, child});
              sources.push_back(place(parts, edge, k));
              // A slot is awaited by one lane, whichever step it is.
              ScheduleBuilder ear = this->lane(int64_t(packing.trees.size()) * kLanes + edge);
              after.push_back(
                  ear.arrive(s.slot(data, s.constant(edge)), s.add(k, 1), {}, "await part"));
            }
            if (root)
              llvm::append_range(after, outFree);
            else
              after.push_back(put);
            Value dest = root ? piece(out, t, k, outIsOwnPart) : place(sums, sumOf[m].at(t), k);
            summed = on.reduce(root ? c.lastStep() : c.step(), sources, dest, after, "add");
            for (unsigned child : below)
              s.signal(s.slot(at(credit, child), s.constant(int64_t(t))), summed, on.controlLane(),
                       "credit");
            after = {summed};
            if (!root)
              source = place(sums, sumOf[m].at(t), k);
          }
          if (root)
            continue;
          // The slots there are two, and the parent says when it has read one.
          unsigned up = tree.parent[m];
          ScheduleBuilder ear =
              this->lane(int64_t(packing.trees.size()) * kLanes + int64_t(mostEdges) + int64_t(t));
          after.push_back(ear.wait(s.slot(credit, s.constant(int64_t(t))), s.sub(k, kSlots - 1), {},
                                   ear.controlLane(), "await credit"));
          int64_t edge = edgeOf[up].at({t, m});
          put = on.put(source, place(at(parts, up), edge, k),
                       s.slot(at(data, up), s.constant(edge)), after, "put part");
        }
        return tokens;
      });
      return join(last);
    }));
  return done;
}

} // namespace

int64_t CollectiveSpec::rankOf(ScheduleBuilder &s, int64_t member) const {
  SmallVector<int64_t> at(s.program.getGrid().size(), 0);
  for (unsigned axis : llvm::reverse(axes)) {
    at[axis] = member % s.size(axis);
    member /= s.size(axis);
  }
  int64_t rank = 0;
  for (unsigned axis = 0; axis < at.size(); ++axis)
    rank = rank * s.size(axis) + at[axis];
  return rank;
}

int64_t ctran::treeSteps(const TreePacking &packing, double bytes) {
  double busy = bytes * packing.secondsPerByte;
  double best = std::sqrt(busy * std::max(1u, packing.depth) / kStepSeconds);
  int64_t steps = std::clamp<int64_t>(int64_t(best), 1, 256);
  return llvm::divideCeil(steps, kLanes) * kLanes;
}
