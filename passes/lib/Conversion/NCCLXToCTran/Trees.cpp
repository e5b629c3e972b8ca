//===- Trees.cpp - Trees packed into a topology ------------------------------------------===//
//
// Data moves along trees that topology::packTrees packs, cut into pieces of one size, of which each
// tree has as many. A piece of an all_gather goes from its root down a tree, every edge a put
// straight between outputs. One of a reduce_scatter goes up a tree: a member adds what its children
// sent to its own contribution and passes the sum on, through scratch slots of each edge with a
// credit for each. One of an all_reduce goes up one tree and from its root, as soon as it is
// summed, down another. In a round every tree moves a piece, in the order that planTrees makes.
// Which edges a member has is told rank by rank: the program is asymmetric.
//
//===----------------------------------------------------------------------===//
#include "Algorithms.h"
#include "TreeSearch.h"

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

/// Writes a collective along trees, each of which moves a piece in so many rounds.
class TreeWriter {
public:
  TreeWriter(ScheduleBuilder &s, const CollectiveSpec &c, ArrayRef<PackedTree> trees,
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
  ArrayRef<PackedTree> trees;
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

TreeWriter::TreeWriter(ScheduleBuilder &s, const CollectiveSpec &c, ArrayRef<PackedTree> trees,
                       const TreePlan &plan, int64_t rounds)
    : s(s), c(c), trees(trees), plan(plan), rounds(rounds), members(s, c.axes),
      partOf(members.size()), sumOf(members.size()) {
  bool rootsShare = !trees.front().in.empty() && !trees.front().out.empty();
  int64_t next = 0;
  for (auto [t, tree] : llvm::enumerate(trees)) {
    if (t > 0 && !rootsShare && tree.root != trees[t - 1].root)
      next = 0;
    firstPiece.push_back(next);
    next += rounds;
  }
  mostParts.assign(members.size(), 0);
  for (const std::vector<TreeStep> &of : plan.steps)
    for (const TreeStep &step : of) {
      if (step.kind != Kind::Sum)
        continue;
      const PackedTree &tree = trees[step.tree];
      int64_t &parts = mostParts[step.member];
      partOf[step.member][step.tree] = parts;
      parts += int64_t(childrenOf(tree.in, tree.root, step.member).size());
      if (step.member != tree.root)
        sumOf[step.member].try_emplace(step.tree, int64_t(sumOf[step.member].size()));
    }
}

SmallVector<Value> TreeWriter::write() {
  int64_t most = *llvm::max_element(mostParts), mostSums = 0, n = members.size();
  int64_t number = int64_t(trees.size());
  for (const auto &numbers : sumOf)
    mostSums = std::max(mostSums, int64_t(numbers.size()));
  if (most) {
    parts = slotWindow(s, c, "parts", most * plan.buffers, capacity);
    part = s.slots(c.name + ".part", s.freeDim(most), rounds);
    credit = s.slots(c.name + ".credit", s.freeDim(number), rounds);
  }
  if (mostSums)
    sums = slotWindow(s, c, "sums", mostSums * plan.buffers, capacity);
  if (!trees.front().out.empty()) {
    ready = s.slots(c.name + ".ready", s.freeDim(n), 1);
    data = s.slots(c.name + ".data", s.freeDim(number), rounds);
  }
  Tokens done;
  for (m = 0; m < n; ++m)
    done.push_back(s.branch(
        s.equal(members.own(), s.constant(m)), [&] { return writeMember(); },
        [&] { return have.front(); }));
  return done;
}

std::optional<std::pair<size_t, size_t>> TreeWriter::needed(size_t i, Kind kind, unsigned peer,
                                                            int64_t earlier) {
  auto found = stepOf.find({kind, steps[i].tree, peer});
  if (found == stepOf.end())
    return std::nullopt;
  // In so many rounds since has it moved on to other pieces.
  const TreeStep &before = steps[found->second];
  int64_t since = steps[i].stage + earlier - before.stage - (found->second > i);
  assert(since >= 0 && "a step waits for an earlier one");
  return std::pair(found->second, size_t(since));
}

void TreeWriter::number() {
  steps = plan.steps[m];
  stepOf.clear();
  lanes.clear();
  kept.assign(steps.size(), 1);
  for (auto [i, step] : llvm::enumerate(steps)) {
    stepOf[{step.kind, step.tree, step.peer}] = i;
    if (step.sends())
      for (Role role : {Role::Send, Role::Notify, Role::Credit})
        lanes.try_emplace({role, step.peer}, int64_t(lanes.size()));
    else if (step.kind != Kind::Sum)
      lanes.try_emplace({Role::Receive, step.peer}, int64_t(lanes.size()));
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    const PackedTree &tree = trees[steps[i].tree];
    auto keep = [&](Kind kind, unsigned peer, int64_t earlier = 0) {
      if (auto found = needed(i, kind, peer, earlier))
        kept[found->first] = std::max(kept[found->first], found->second + 1);
    };
    switch (steps[i].kind) {
    case Kind::Sum:
      for (unsigned child : childrenOf(tree.in, tree.root, m))
        keep(Kind::ReceivePart, child);
      if (m != tree.root && plan.buffers < rounds)
        keep(Kind::SendPart, tree.in[m], plan.buffers);
      break;
    case Kind::SendPart:
      keep(Kind::Sum, 0);
      break;
    case Kind::Send:
      if (m != tree.root)
        keep(Kind::Receive, tree.out[m]);
      else
        keep(Kind::Sum, 0);
      break;
    case Kind::Receive:
    case Kind::ReceivePart:
      break;
    }
  }
  for (const TreeStep &step : steps)
    if (step.behind >= 0)
      kept[step.behind] = std::max(kept[step.behind], size_t(step.ago) + 1);
}

/// Tells those who put into the own output that it may be written, and hears the same.
void TreeWriter::meetNeighbours(Tokens &all) {
  granted.clear();
  std::set<unsigned> parents, children;
  for (const TreeStep &step : steps) {
    if (step.kind == Kind::Receive)
      parents.insert(step.peer);
    if (step.kind == Kind::Send)
      children.insert(step.peer);
  }
  for (unsigned parent : parents)
    all.push_back(s.ready(s.slot(at(ready, parent), s.constant(m)), outFree, "ready"));
  for (unsigned child : children)
    granted[child] =
        s.awaitReady(s.slot(ready, s.constant(child)), s.constant(1), have, "await ready");
}

Value TreeWriter::writeMember() {
  number();
  Tokens all(have);
  meetNeighbours(all);
  int64_t least = plan.stages, most = 0;
  Tokens first;
  tokens.clear();
  for (auto [step, count] : llvm::zip_equal(steps, kept)) {
    least = std::min(least, step.stage);
    most = std::max(most, step.stage);
    tokens.emplace_back(count + (step.kind == Kind::Sum), have.front());
    llvm::append_range(first, tokens.back());
  }
  auto loop = scf::ForOp::create(s.builder, s.loc, s.constant(least), s.constant(rounds + most),
                                 s.constant(1), first);
  OpBuilder::InsertionGuard guard(s.builder);
  s.builder.setInsertionPointToStart(loop.getBody());
  auto takeFrom = [&](ValueRange values) {
    for (Tokens &of : tokens) {
      llvm::copy(values.take_front(of.size()), of.begin());
      values = values.drop_front(of.size());
    }
  };
  takeFrom(loop.getRegionIterArgs());
  // Where a stage begins later, or has ended, it has no piece.
  std::map<int64_t, std::pair<Value, Value>> pieces;
  auto clamped = [&](Value piece) {
    Value above = arith::MaxSIOp::create(s.builder, s.loc, piece, s.constant(0));
    return s.min(above, s.constant(rounds));
  };
  Value round = loop.getInductionVar();
  for (size_t i = 0, end; i < steps.size(); i = end) {
    int64_t stage = steps[i].stage;
    for (end = i; end < steps.size() && steps[end].stage == stage;)
      ++end;
    if (least == most) {
      writeSteps(i, end, s.sub(round, stage), Value());
      continue;
    }
    auto &[from, to] = pieces[stage];
    if (!from) {
      from = clamped(s.sub(round, stage));
      to = clamped(s.sub(round, stage - 1));
    }
    writeSteps(i, end, from, to);
  }
  Tokens next;
  for (const Tokens &of : tokens)
    llvm::append_range(next, of);
  scf::YieldOp::create(s.builder, s.loc, next);
  s.builder.setInsertionPointAfter(loop);
  llvm::append_range(all, loop.getResults());
  return join(all);
}

void TreeWriter::writeSteps(size_t first, size_t end, Value from, Value to) {
  if (!to) {
    for (size_t i = first; i < end; ++i)
      writeStep(i, from);
    return;
  }
  // What a round without a piece leaves as it is: the latest token, and that of credits.
  std::vector<Tokens> before(tokens.begin() + first, tokens.begin() + end);
  auto latest = [&] {
    Tokens of;
    for (size_t i = first; i < end; ++i) {
      of.push_back(tokens[i].front());
      if (steps[i].kind == Kind::Sum)
        of.push_back(tokens[i].back());
    }
    return of;
  };
  auto once = scf::ForOp::create(s.builder, s.loc, from, to, s.constant(1), latest());
  {
    OpBuilder::InsertionGuard guard(s.builder);
    s.builder.setInsertionPointToStart(once.getBody());
    for (size_t i = first; i < end; ++i)
      writeStep(i, once.getInductionVar());
    scf::YieldOp::create(s.builder, s.loc, latest());
  }
  auto result = once.getResults().begin();
  for (size_t i = first; i < end; ++i) {
    Tokens &of = tokens[i], &old = before[i - first];
    for (size_t k = 1; k < kept[i]; ++k)
      of[k] = old[k - 1];
    of.front() = *result++;
    if (steps[i].kind == Kind::Sum)
      of.back() = *result++;
  }
}

void TreeWriter::writeStep(size_t i, Value piece) {
  const TreeStep &step = steps[i];
  Tokens &of = tokens[i];
  Value token;
  switch (step.kind) {
  case Kind::ReceivePart:
    token = on(laneOf(Role::Receive, step))
                .arrive(s.slot(part, s.constant(partNumber(step.tree, m, step.peer))),
                        s.add(piece, 1), {}, "await part");
    break;
  case Kind::Receive:
    token = on(laneOf(Role::Receive, step))
                .arrive(s.slot(data, s.constant(step.tree)), s.add(piece, 1), {}, "await piece");
    break;
  case Kind::Sum:
    token = sum(i, piece, of.back());
    break;
  case Kind::SendPart:
  case Kind::Send:
    token = send(i, piece);
    break;
  }
  for (size_t k = kept[i]; k-- > 1;)
    of[k] = of[k - 1];
  of.front() = token;
}

Value TreeWriter::sum(size_t i, Value piece, Value &told) {
  const TreeStep &step = steps[i];
  const PackedTree &tree = trees[step.tree];
  bool last = m == tree.root;
  SmallVector<unsigned> below = childrenOf(tree.in, tree.root, m);
  Tokens after(have);
  for (unsigned child : below)
    need(i, Kind::ReceivePart, child, after);
  Value first = partPlace(step.tree, m, below.front(), piece);
  SmallVector<Value> sources{below.size() == 1
                                 ? s.range(parts, first)
                                 : s.interval(parts, first, s.constant(int64_t(below.size()))),
                             box(in, step.tree, piece)};
  if (last)
    llvm::append_range(after, outFree);
  else if (plan.buffers < rounds) // else what sent it has been before this run
    need(i, Kind::SendPart, tree.in[m], after, plan.buffers);
  Value dest = last ? box(out, step.tree, piece) : buffer(sums, sumOf[m].at(step.tree), piece);
  Value summed = on(step.lane).reduce(last ? c.lastStep() : c.step(), sources, dest, after, "add");
  ScheduleBuilder tells = on(plan.lanes + step.lane);
  for (unsigned child : below)
    told = tells.ready(s.slot(at(credit, child), s.constant(step.tree)), {summed, told}, "credit");
  return summed;
}

Value TreeWriter::send(size_t i, Value piece) {
  const TreeStep &step = steps[i];
  const PackedTree &tree = trees[step.tree];
  Tokens after;
  if (step.kind == Kind::Send) {
    bool first = m == tree.root;
    after.push_back(granted.at(step.peer));
    if (first && tree.in.empty())
      llvm::append_range(after, have);
    need(i, first ? Kind::Sum : Kind::Receive, first ? 0 : tree.out[m], after);
    if (step.behind >= 0)
      after.push_back(tokens[step.behind][step.ago]);
    // What is spread unsummed is read from the input at its root alone.
    const View &from = first && tree.in.empty() ? in : out;
    return put(step, box(from, step.tree, piece),
               box(out, at(out.window, step.peer), step.tree, piece),
               s.slot(at(data, step.peer), s.constant(step.tree)), after, "put piece");
  }
  need(i, Kind::Sum, 0, after);
  bool leaf = after.empty();
  if (leaf)
    llvm::append_range(after, have);
  // The parent has read what was put there before.
  bool helped = step.lane + 1 < plan.lanes;
  after.push_back(on(laneOf(helped ? Role::Credit : Role::Send, step))
                      .awaitReady(s.slot(credit, s.constant(step.tree)),
                                  s.sub(piece, plan.buffers - 1), {}, "await credit"));
  Value place = s.constant(partNumber(step.tree, step.peer, m));
  return put(step, leaf ? box(in, step.tree, piece) : buffer(sums, sumOf[m].at(step.tree), piece),
             s.range(at(parts, step.peer), partPlace(step.tree, step.peer, m, piece)),
             s.slot(at(part, step.peer), place), after, "put part");
}

/// Lanes between two members differ in what they do besides copying. Those that do the same would
/// get into step, and leave the link idle together while they start copies.
Value TreeWriter::put(const TreeStep &step, Value from, Value to, Value arrived, ValueRange after,
                      StringRef note) {
  ScheduleBuilder here = on(laneOf(Role::Send, step));
  if (!s.carrier.loadStore || step.lane > 0)
    return here.put(from, to, arrived, after, note);
  Value copied = here.copy(from, to, Value(), after, here.copyLane(), note);
  return on(laneOf(Role::Notify, step)).ready(arrived, copied, "arrived");
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

InFlight ctran::emitTrees(ScheduleBuilder &s, const CollectiveSpec &given) {
  CollectiveSpec c = given;
  int64_t n = c.groupSize(s);
  bool all = c.flow.combines && !c.flow.inCut; // all_reduce: roots share all of it
  MemRefType whole = c.flow.outCut ? c.outType : c.inType;
  std::optional<int64_t> dim = c.flow.inCut ? c.flow.inCut : c.flow.outCut;
  int64_t width = int64_t(llvm::divideCeil(whole.getElementTypeBitWidth(), 8));
  double bytes = double(whole.getNumElements()) * double(width) / double(all ? 1 : n);
  int64_t granule = dim ? 1 : flatGranule(c.inType), inner = 1;
  if (dim)
    inner =
        std::max<int64_t>(1, whole.getNumElements() / std::max<int64_t>(1, whole.getDimSize(*dim)));
  bool even = dim && whole.getDimSize(*dim) % n == 0;
  // Operands are scaled once, before they are summed. Where the buffer is one and nothing but a
  // landing is known of a put, what is put must not be what peers overwrite.
  bool apart = all && c.in == c.out && !s.carrier.loadStore;
  bool copies = c.flow.combines && (c.combination.scale || apart);
  TreeCosts costs;
  costs.sumSecondsPerByte = s.carrier.sumSecondsPerByte;
  TreeScratch scratch{c.scratchLeft, double(inner * granule * width)};
  if (c.scratchLeft >= 0) // beside whole copies
    scratch.most = std::max<int64_t>(
        0, c.scratchLeft - (int64_t(copies) + int64_t(c.flow.combines && !all && !even)) *
                               c.inType.getNumElements() * width);
  TreeChoice choice = searchTrees(*c.trees, costs, bytes, scratch);
  int64_t pieces = choice.packing.shares * choice.rounds;
  TreeWriter writer(s, c, choice.packing.trees, choice.plan, choice.rounds);

  // A window cut by member and then by piece; a shard, and what is anybody's, by piece alone. A
  // shard is, where all have as much.
  auto cut = [&](Value window) -> TreeWriter::View {
    SmallVector<DimAttr> dims;
    if (dim)
      dims = chunkDims(s, c.axes, whole.getDimSize(*dim));
    dims.push_back(s.freeDim(pieces, granule));
    return {s.reindex(window, dim, dims), dim.has_value()};
  };
  auto shard = [&](Value window) -> TreeWriter::View {
    return {s.reindex(window, dim, s.freeDim(pieces, granule)), false};
  };
  SmallVector<Value> own = ownPoint(s, c.axes);
  InFlight flight;
  auto finishWith = [&](SmallVector<Value> done, Value demanded) {
    done.push_back(demanded);
    flight.finish = [done]() { return done; };
    return flight;
  };
  if (!c.flow.combines) {
    writer.out = cut(c.out);
    writer.outFree = c.outFree;
    writer.in = even ? shard(c.in) : writer.out;
    Value from = even ? writer.in.window : makeViews(s, c).in;
    Value mine = even ? s.range(from) : s.range(from, own);
    Value start = s.source(mine, c.name, own, {}, c.inReady);
    // Not on the lane whose signals peers wait for.
    ScheduleBuilder keeper = s;
    keeper.carrier.index = s.carrier.lane(lanesOfOne - 1);
    Value kept = s.copy(mine, s.range(writer.out.window, own), Value(), joined(start, c.outFree),
                        keeper.controlLane(), "keep own");
    writer.have = {even ? start : kept};
    SmallVector<Value> done = writer.write();
    done.push_back(kept);
    flight.inFree = done;
    return finishWith(done, s.sink(s.range(writer.out.window), c.name, {}, {}, done));
  }

  writer.in = cut(c.in);
  Value start = s.source(s.range(writer.in.window), c.name, {}, c.axes, c.inReady);
  if (copies) {
    TreeWriter::View copied = cut(s.scratch(c.name + ".scaled", c.inType));
    Value from = s.range(writer.in.window), to = s.range(copied.window);
    start = c.combination.scale
                ? s.reduce({c.combination.kind, c.combination.accumulate, c.combination.scale},
                           from, to, start, "scale")
                : s.copy(from, to, Value(), start, s.controlLane(), "set apart");
    c.combination.scale = std::nullopt;
    writer.in = copied;
    if (c.in == c.out)
      c.outFree = joined(c.outFree, start);
  }
  // Elements of the largest piece.
  int64_t units = dim ? llvm::divideCeil(whole.getDimSize(*dim), n)
                      : llvm::divideCeil(c.inType.getNumElements(), granule);
  writer.capacity = std::min(units, units / pieces + 1) * inner * granule;
  writer.have = {start};
  writer.outFree = c.outFree;
  writer.out = all ? cut(c.out) : even ? shard(c.out) : cut(s.scratch(c.name + ".sum", c.inType));
  if (!all && !even)
    writer.outFree = {s.program.getEntry()};
  SmallVector<Value> done = writer.write();
  flight.inFree = done;
  Value result = writer.out.window;
  if (all)
    return finishWith(done, s.sink(s.range(result), c.name, {}, c.axes, done));
  if (even)
    return finishWith(done, s.sink(s.range(result), c.name, own, c.axes, done));
  Views v = makeViews(s, c);
  Value moved = s.copy(s.range(result, own), s.range(v.out, own), Value(), joined(done, c.outFree),
                       s.controlLane(), "keep own");
  return finishWith({moved}, s.sink(s.range(v.out, own), c.name, own, c.axes, moved));
}
