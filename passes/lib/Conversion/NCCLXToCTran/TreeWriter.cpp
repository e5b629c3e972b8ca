//===- TreeWriter.cpp - Writes what moves along trees as ops ------------------------------===//
//
// A member's steps stand in a loop over rounds, in the order that planTrees makes, each with the
// tokens of those that it waits for, some rounds back.
//
//===----------------------------------------------------------------------===//
#include "TreeWriter.h"

#include <algorithm>
#include <set>

using namespace mlir;
using namespace mlir::ctran;
using topology::PackedTree;

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
