//===- Trees.cpp - Trees packed into a topology ------------------------------------------===//
//
// Each member's data goes to all along trees of its own (topology::packTrees), cut by the trees'
// shares and in steps that follow each other down a tree. all_gather: every edge is a put straight
// between outputs. reduce_scatter: the other way round; a member adds what its children sent to its
// own contribution and passes the sum on, through scratch slots of each edge with a credit for
// each. all_reduce is both. Which edges a member has is told rank by rank: the program is
// asymmetric.
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

using namespace mlir;
using namespace mlir::ctran;
using topology::PackedTree;
using topology::TreePacking;

namespace {

/// Steps in a row take turns on so many lanes, so that a link is busy while the next copy is
/// started. Each has slots and scratch memory of its own: a round is a step on each.
constexpr int64_t kLanes = 2;
/// Puts of one phase, on all ranks together: what is simulated and proved in about a second.
constexpr int64_t kMostPuts = 16384;

/// Writes one phase: all members' data along a packing.
class TreePhase {
public:
  TreePhase(ScheduleBuilder &s, const CollectiveSpec &c, TreePacking packing, int64_t steps,
            StringRef suffix)
      : s(s), c(c), packing(std::move(packing)), steps(steps), suffix(suffix),
        name(c.name + this->suffix), members(s, c.axes) {}

  /// From the members' parts of `in` (a view by member and piece, or by piece alone: the own one)
  /// to all of `out`. One token for each member's branch.
  SmallVector<Value> gather(Value in, bool inIsOwnPart, Value out, ValueRange have,
                            ValueRange outFree);
  /// Sums of `in` to the own part of `out`, a view by member and piece, or by piece alone. Its
  /// trees have one share each.
  SmallVector<Value> reduce(Value in, Value out, bool outIsOwnPart, int64_t capacity,
                            ValueRange have, ValueRange outFree);

private:
  ScheduleBuilder &s;
  const CollectiveSpec &c;
  TreePacking packing;
  int64_t steps;
  std::string suffix, name;
  Members members;

  using Tokens = SmallVector<Value>;
  /// The ops of member `m`; one token for all.
  Value forMember(unsigned m, Value otherwise, llvm::function_ref<Value()> body);
  /// Each step of each round: next tokens = body(round, step, lane, tokens).
  Tokens forSteps(Tokens first,
                  llvm::function_ref<Tokens(Value round, Value k, int64_t lane, Tokens)> body);
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
  /// The slot, or scratch memory, of a lane of the `number`th of them.
  Value ofLane(int64_t number, int64_t lane) { return s.constant(number * kLanes + lane); }
  /// `s` on another of the lanes of this collective.
  ScheduleBuilder on(int64_t number) {
    ScheduleBuilder other = s;
    other.carrier.index = s.carrier.lane(number);
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

TreePhase::Tokens
TreePhase::forSteps(Tokens first, llvm::function_ref<Tokens(Value, Value, int64_t, Tokens)> body) {
  auto loop = scf::ForOp::create(s.builder, s.loc, s.constant(0), s.constant(steps / kLanes),
                                 s.constant(1), first);
  OpBuilder::InsertionGuard guard(s.builder);
  s.builder.setInsertionPointToStart(loop.getBody());
  Tokens tokens(loop.getRegionIterArgs());
  Value round = loop.getInductionVar(), k = s.mul(round, kLanes);
  for (int64_t lane = 0; lane < kLanes; ++lane)
    tokens = body(round, s.add(k, lane), lane, tokens);
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
  if (tree.share == 1) {
    indices.push_back(first);
    return s.range(view, indices);
  }
  return RangeOp::create(s.builder, s.loc, RangeType::get(s.builder.getContext()), view, indices,
                         first, s.constant(tree.share), Value());
}

SmallVector<Value> TreePhase::gather(Value in, bool inIsOwnPart, Value out, ValueRange have,
                                     ValueRange outFree) {
  unsigned n = unsigned(members.size());
  Value ready = s.slots(name + ".ready", s.freeDim(n), 1);
  Value data =
      s.slots(name + ".data", s.freeDim(int64_t(packing.trees.size()) * kLanes), steps / kLanes);
  SmallVector<Value> done;
  for (unsigned m = 0; m < n; ++m)
    done.push_back(forMember(m, have.front(), [&] {
      std::set<unsigned> parents;
      for (const PackedTree &tree : packing.trees)
        if (m != tree.root)
          parents.insert(tree.parent[m]);
      Tokens all(have);
      for (unsigned parent : parents)
        all.push_back(s.ready(s.slot(at(ready, parent), s.constant(m)), outFree, "ready"));
      // Every edge of every tree has lanes of its own, and so has every tree's arrival.
      int64_t lanes = 0;
      std::map<unsigned, Value> granted;
      for (const PackedTree &tree : packing.trees)
        for (unsigned child : children(tree, m))
          if (Value &known = granted[child]; !known)
            known =
                s.awaitReady(s.slot(ready, s.constant(child)), s.constant(1), have, "await ready");
      for (const PackedTree &tree : packing.trees)
        lanes += 1 + int64_t(children(tree, m).size());
      Tokens first(lanes * kLanes, have.front());
      Tokens last = forSteps(first, [&](Value round, Value k, int64_t lane, Tokens tokens) {
        int64_t next = 0;
        for (auto [t, tree] : llvm::enumerate(packing.trees)) {
          bool root = tree.root == m;
          int64_t number = next++ * kLanes + lane;
          Value &arrived = tokens[number];
          if (!root)
            arrived = on(number).arrive(s.slot(data, ofLane(int64_t(t), lane)), s.add(round, 1), {},
                                        "await piece");
          for (unsigned child : children(tree, m)) {
            SmallVector<Value> after{granted[child]};
            if (root)
              llvm::append_range(after, have);
            else
              after.push_back(arrived);
            number = next++ * kLanes + lane;
            tokens[number] = on(number).put(
                root ? piece(in, t, k, inIsOwnPart) : piece(out, t, k), piece(at(out, child), t, k),
                s.slot(at(data, child), ofLane(int64_t(t), lane)), after, "put piece");
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
  int64_t trees = int64_t(packing.trees.size());
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
  int64_t edges = int64_t(mostEdges) * kLanes;
  Value parts = slotWindow(s, c, suffix.substr(1) + ".parts", edges, capacity);
  Value sums =
      mostSums ? slotWindow(s, c, suffix.substr(1) + ".sums", int64_t(mostSums) * kLanes, capacity)
               : Value();
  Value data = s.slots(name + ".data", s.freeDim(edges), steps / kLanes);
  Value credit = s.slots(name + ".credit", s.freeDim(trees * kLanes), steps / kLanes);
  SmallVector<Value> done;
  for (unsigned m = 0; m < n; ++m)
    done.push_back(forMember(m, have.front(), [&] {
      // By tree and lane: the put before, which read the sum that is now overwritten, and the last
      // credit given.
      Tokens first(trees * kLanes * 2, have.front());
      Tokens last = forSteps(first, [&](Value round, Value k, int64_t lane, Tokens tokens) {
        for (auto [t, tree] : llvm::enumerate(packing.trees)) {
          int64_t number = int64_t(t) * kLanes + lane;
          Value &put = tokens[number * 2], &told = tokens[number * 2 + 1];
          SmallVector<unsigned> below = children(tree, m);
          bool root = tree.root == m;
          ScheduleBuilder here = on(number);
          Value source = piece(in, t, k);
          SmallVector<Value> after(have);
          if (!below.empty()) {
            SmallVector<Value> sources{source};
            for (unsigned child : below) {
              Value place = ofLane(edgeOf[m].at({t, child}), lane);
              sources.push_back(s.range(parts, place));
              after.push_back(here.arrive(s.slot(data, place), s.add(round, 1), {}, "await part"));
            }
            if (root)
              llvm::append_range(after, outFree);
            else
              after.push_back(put);
            Value dest =
                root ? piece(out, t, k, outIsOwnPart) : s.range(sums, ofLane(sumOf[m].at(t), lane));
            Value summed = here.reduce(root ? c.lastStep() : c.step(), sources, dest, after, "add");
            for (unsigned child : below)
              told = s.signal(s.slot(at(credit, child), ofLane(int64_t(t), lane)), {summed, told},
                              here.controlLane(), "credit");
            after = {summed};
            if (!root)
              source = s.range(sums, ofLane(sumOf[m].at(t), lane));
          }
          if (root)
            continue;
          // The parent has read what was put in the round before.
          unsigned up = tree.parent[m];
          after.push_back(
              here.awaitReady(s.slot(credit, ofLane(int64_t(t), lane)), round, {}, "await credit"));
          Value place = ofLane(edgeOf[up].at({t, m}), lane);
          put = here.put(source, s.range(at(parts, up), place), s.slot(at(data, up), place), after,
                         "put part");
        }
        return tokens;
      });
      return join(last);
    }));
  return done;
}

/// The same trees, each once for every share.
TreePacking oneShareEach(const TreePacking &packing) {
  TreePacking single = packing;
  single.trees.clear();
  for (PackedTree tree : packing.trees)
    for (unsigned left = std::exchange(tree.share, 1); left > 0; --left)
      single.trees.push_back(tree);
  return single;
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

/// Steps that a part of `bytes` moves in: more let deep trees overlap, and cost their starts.
static int64_t stepsOf(const TreePacking &packing, double bytes) {
  double busy = bytes * packing.secondsPerByte;
  double best = std::sqrt(busy * std::max(1u, packing.depth) / stepSeconds);
  int64_t edges = int64_t(packing.trees.size() * (packing.trees.front().parent.size() - 1));
  int64_t most = std::min<int64_t>(256, std::max<int64_t>(kLanes, kMostPuts / edges));
  int64_t steps = std::clamp<int64_t>(int64_t(best), 1, most);
  return int64_t(llvm::divideCeil(steps, kLanes)) * kLanes;
}

InFlight ctran::emitTrees(ScheduleBuilder &s, const CollectiveSpec &given) {
  CollectiveSpec c = given;
  int64_t members = c.groupSize(s);
  double bytes = double(std::max(c.inType.getNumElements(), c.outType.getNumElements())) *
                 double(llvm::divideCeil(c.inType.getElementTypeBitWidth(), 8)) / double(members);
  const TreePacking &first = c.inward ? *c.inward : *c.outward;
  int64_t steps = stepsOf(first, bytes);
  int64_t pieces =
      steps * std::lcm<int64_t>(c.outward ? c.outward->shares : 1, c.inward ? c.inward->shares : 1);
  // A window cut by member and then by piece; a shard cut by piece alone, which needs that all have
  // as much.
  std::optional<int64_t> dim = c.flow.inCut ? c.flow.inCut : c.flow.outCut;
  MemRefType whole = c.flow.inCut ? c.inType : c.outType;
  bool even = !dim || whole.getDimSize(*dim) % members == 0;
  int64_t granule = dim ? 1 : flatGranule(c.inType);
  auto cut = [&](Value window) {
    SmallVector<DimAttr> dims;
    if (dim)
      dims = chunkDims(s, c.axes, whole.getDimSize(*dim));
    else
      for (unsigned axis : c.axes)
        dims.push_back(s.boundDim(axis, Cut::Balanced, granule));
    dims.push_back(s.freeDim(pieces, granule));
    return s.reindex(window, dim, dims);
  };
  auto shard = [&](Value window) { return s.reindex(window, dim, s.freeDim(pieces, granule)); };
  SmallVector<Value> own = ownPoint(s, c.axes);
  InFlight flight;
  auto finishWith = [&](SmallVector<Value> ready, Value demanded) {
    ready.push_back(demanded);
    flight.finish = [ready]() { return ready; };
  };
  if (!c.flow.combines) {
    Value out = cut(c.out);
    Views v = even ? Views{shard(c.in), Value()} : makeViews(s, c);
    Value mine = even ? s.range(v.in) : s.range(v.in, own);
    Value start = s.source(mine, c.name, own, {}, c.inReady);
    // Not on the lane whose signals peers wait for.
    ScheduleBuilder keeper = s;
    keeper.carrier.index = s.carrier.lane(lanesOfOne - 1);
    Value kept = s.copy(mine, s.range(out, own), Value(), joined(start, c.outFree),
                        keeper.controlLane(), "keep own");
    TreePhase phase(s, c, first, steps, "");
    SmallVector<Value> done =
        phase.gather(even ? v.in : out, even, out, even ? start : kept, c.outFree);
    done.push_back(kept);
    flight.inFree = done;
    finishWith(done, s.sink(s.range(out), c.name, {}, {}, done));
    return flight;
  }
  Value in = cut(c.in);
  Value start = s.source(s.range(in), c.name, {}, c.axes, c.inReady);
  Views views{in, Value()};
  if (c.combination.scale) {
    // Operands are scaled once, before they are summed.
    Value scaled = s.scratch(c.name + ".scaled", c.inType);
    in = cut(scaled);
    start = s.reduce({c.combination.kind, c.combination.accumulate, c.combination.scale},
                     s.range(views.in), s.range(in), start, "scale");
    c.combination.scale = std::nullopt;
    if (c.in == c.out)
      c.outFree = joined(c.outFree, start);
  }
  // Elements of the largest share of the largest step.
  int64_t inner = c.inType.getNumElements();
  if (dim)
    inner = std::max<int64_t>(1, inner / std::max<int64_t>(1, c.inType.getDimSize(*dim)));
  int64_t units = dim ? int64_t(llvm::divideCeil(whole.getDimSize(*dim), members))
                      : int64_t(llvm::divideCeil(llvm::divideCeil(inner, granule), members));
  int64_t capacity = std::min(units, units / pieces + 1) * (dim ? inner : granule);
  TreePhase sum(s, c, oneShareEach(first), steps, ".rs");
  if (c.flow.inCut) {
    Value out = even ? shard(c.out) : cut(s.scratch(c.name + ".sum", c.inType));
    SmallVector<Value> free = even ? c.outFree : SmallVector<Value>{s.program.getEntry()};
    SmallVector<Value> done = sum.reduce(in, out, even, capacity, start, free);
    flight.inFree = done;
    if (!even) {
      Views v = makeViews(s, c);
      Value moved = s.copy(s.range(out, own), s.range(v.out, own), Value(), joined(done, c.outFree),
                           s.controlLane(), "keep own");
      finishWith({moved}, s.sink(s.range(v.out, own), c.name, own, c.axes, moved));
      return flight;
    }
    finishWith(done, s.sink(s.range(out), c.name, own, c.axes, done));
    return flight;
  }
  Value out = cut(c.out);
  SmallVector<Value> summed = sum.reduce(in, out, false, capacity, start, c.outFree);
  flight.inFree = summed;
  // Peers overwrite what the own puts may still be reading, where the buffer is one: they are told
  // when those are complete.
  TreePhase spread(s, c, first, steps, ".ag");
  SmallVector<Value> done =
      spread.gather(out, false, out, summed,
                    c.in == c.out ? joined(c.outFree, summed) : SmallVector<Value>(c.outFree));
  llvm::append_range(done, summed);
  finishWith(done, s.sink(s.range(out), c.name, {}, c.axes, done));
  return flight;
}
