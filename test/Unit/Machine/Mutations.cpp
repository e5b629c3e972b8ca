//===- Mutations.cpp - Where a schedule is broken, and where that is none -----===//
//
// A mutation is counted whatever becomes of it, but it has to say something else than the schedule
// does. By form alone these do not, and are not made:
//  M1 an op that stays what it was, as indices and displacements count modulo the size of their
//  axis; M2 a token dropped that the lanes and the other tokens of its rank imply; M3 a wait
//  dropped, or weakened, that its lane has passed already: the same wait with as high a
//     value (with the weakened value) came before it in the run;
//  M4 a wait that is too strict but less so than a later one could be: only a wait for more than
//     the run's signals is wrong, any other only adds order;
//  M5 queues made shallower, or counters' generations fewer, where the schedule declares none.
//
//===----------------------------------------------------------------------===//

#include "Examples.h"

#include <algorithm>
#include <map>
#include <set>

namespace mlir::ctran::machine::examples {

namespace {

//===- More kinds of mutation -------------------------------------------------===//

int64_t wrapped(int64_t x, int64_t n) { return (x % n + n) % n; }

/// The index on an axis of the first box at a peer that `op` writes.
Index *lastBound(const Schedule &s, Op &op) {
  if (op.writes.empty() || !op.writes[0].peer.remote)
    return nullptr;
  Access &access = op.writes[0];
  const std::vector<Dim> &dims = s.windows[access.window].spaces[access.space].dims;
  for (size_t i = access.path.size(); i-- > 0;)
    if (access.path[i].own && dims[i].axis)
      return &access.path[i];
  return nullptr;
}

struct Kind {
  std::string name;
  Mutator change;
  bool needsPoint = false;
  bool asymmetric = false;
};

std::vector<Kind> kindsFor(const Schedule &s) {
  std::vector<Kind> all;
  for (const auto &[name, change] : mutators())
    all.push_back({name, change});
  all.push_back({"first token", [](Op &op, const Where &) {
                   bool applies = op.after.size() > 1;
                   if (applies)
                     op.after.erase(op.after.begin());
                   return applies;
                 }});
  all.push_back({"last token", [](Op &op, const Where &) {
                   bool applies = op.after.size() > 1;
                   if (applies)
                     op.after.pop_back();
                   return applies;
                 }});
  all.push_back({"guard", [](Op &op, const Where &where) { // of the second run
                   bool applies = op.kind == OpKind::Wait && op.k <= 1 && where.run > 0;
                   if (applies) {
                     op.kind = OpKind::Nop;
                     op.slot.reset();
                   }
                   return applies;
                 }});
  all.push_back({"later token", [](Op &op, const Where &where) {
                   bool applies = where.run > 0 && !op.after.empty() && op.kind != OpKind::Source;
                   if (applies)
                     op.after.clear();
                   return applies;
                 }});
  // The peer stays a translation, the place in its memory does not.
  all.push_back({"same place",
                 [&s](Op &op, const Where &) {
                   Index *index = lastBound(s, op);
                   int64_t n = index ? s.grid.sizes[index->axis] : 1;
                   if (n > 1)
                     *index = {false, 0, wrapped(index->value, n)};
                   return n > 1;
                 },
                 false, true});
  all.push_back({"mirrored place",
                 [&s](Op &op, const Where &where) {
                   Index *index = lastBound(s, op);
                   int64_t n = index ? s.grid.sizes[index->axis] : 1;
                   if (n > 2) // of two places, the mirror image is the place itself
                     *index = {false, 0, wrapped(index->value - (*where.point)[index->axis], n)};
                   return n > 2;
                 },
                 true, true});
  return all;
}

//===- The rules --------------------------------------------------------------===//

/// An index by its meaning on rank 0.
int64_t meaning(const Schedule &s, const Index &index) {
  return index.own ? wrapped(index.value, s.grid.sizes[index.axis]) : index.value;
}

std::vector<int64_t> meaning(const Schedule &s, const Indices &path, const Peer &peer) {
  std::vector<int64_t> out;
  for (const Index &index : path) {
    out.push_back(index.own);
    out.push_back(meaning(s, index));
  }
  for (size_t axis = 0; peer.remote && axis < peer.shift.size(); ++axis)
    out.push_back(wrapped(peer.shift[axis], s.grid.sizes[axis]));
  return out;
}

bool same(const Schedule &s, const Op &a, const Op &b) { // M1
  auto awaited = [&](const Op &op) {
    return op.kind == OpKind::Wait ? s.slots[op.slot->slots].awaited(op.k) : op.k;
  };
  if (a.kind != b.kind || awaited(a) != awaited(b) || a.after != b.after ||
      a.reads.size() != b.reads.size() || a.slot.has_value() != b.slot.has_value())
    return false;
  auto equal = [&](const auto &x, const auto &y) {
    return meaning(s, x.path, x.peer) == meaning(s, y.path, y.peer);
  };
  if (a.slot && !equal(*a.slot, *b.slot))
    return false;
  for (size_t i = 0; i < a.reads.size(); ++i)
    if (!equal(a.reads[i], b.reads[i]))
      return false;
  for (size_t i = 0; i < a.writes.size(); ++i)
    if (!equal(a.writes[i], b.writes[i]))
      return false;
  return true;
}

/// Order within rank 0's run: two nodes for each op, its start and its end.
class LocalOrder {
public:
  explicit LocalOrder(const std::vector<Op> &ops) : ops(ops), before(2 * ops.size()) {
    std::map<const Token *, size_t> owner;
    std::map<std::pair<LaneKind, int64_t>, size_t> last, lastData;
    for (size_t i = 0; i < ops.size(); ++i)
      owner[ops[i].token.get()] = i;
    for (size_t i = 0; i < ops.size(); ++i) {
      std::pair lane{ops[i].lane.kind, ops[i].lane.index};
      before[end(i)].push_back(start(i));
      bool issues = isIssueLane(ops[i].lane.kind);
      bool data = !ops[i].reads.empty() || !ops[i].writes.empty();
      if (auto it = last.find(lane); it != last.end())
        before[start(i)].push_back(issues ? start(it->second) : end(it->second));
      last[lane] = i;
      if (issues && !data)
        before[end(i)].push_back(start(i));
      if (issues && data) {
        if (auto it = lastData.find(lane); it != lastData.end())
          before[end(i)].push_back(end(it->second));
        lastData[lane] = i;
      }
      for (const TokenRef &token : ops[i].after)
        tokens.insert({i, owner[token.get()]});
    }
  }
  /// Does the end of op `from` come before the start of `to` even with `kept` as the tokens of
  /// `to`?
  bool implied(size_t from, size_t to, const std::vector<TokenRef> &kept) const {
    std::set<size_t> seen;
    std::vector<size_t> work{start(to)};
    std::set<const Token *> stays;
    for (const TokenRef &token : kept)
      stays.insert(token.get());
    while (!work.empty()) {
      size_t node = work.back();
      work.pop_back();
      if (!seen.insert(node).second)
        continue;
      if (node == end(from))
        return true;
      work.insert(work.end(), before[node].begin(), before[node].end());
      size_t op = node / 2;
      if (node == start(op))
        for (auto it = tokens.lower_bound({op, 0}); it != tokens.end() && it->first == op; ++it)
          if (op != to || stays.count(ops[it->second].token.get()))
            work.push_back(end(it->second));
    }
    return false;
  }
  size_t ownerOf(const TokenRef &token) const {
    for (size_t i = 0; i < ops.size(); ++i)
      if (ops[i].token == token)
        return i;
    return 0;
  }

private:
  static size_t start(size_t op) { return 2 * op; }
  static size_t end(size_t op) { return 2 * op + 1; }
  const std::vector<Op> &ops;
  std::vector<std::vector<size_t>> before;
  std::set<std::pair<size_t, size_t>> tokens; ///< waiting op, op waited for
};

/// Has the lane of op `at` passed a wait for that slot with at least `k` in this run? (M3)
bool passed(const Schedule &s, const std::vector<Op> &ops, size_t at, int64_t k) {
  const Op &op = ops[at];
  for (size_t i = 0; i < at; ++i)
    if (ops[i].kind == OpKind::Wait && ops[i].lane == op.lane && ops[i].k >= k &&
        ops[i].slot->slots == op.slot->slots && ops[i].slot->count == op.slot->count &&
        meaning(s, ops[i].slot->path, {}) == meaning(s, op.slot->path, {}))
      return true;
  return false;
}

bool saysSomethingElse(const Schedule &s, const std::vector<Op> &ops, const LocalOrder &order,
                       size_t at, const Op &changed) {
  const Op &op = ops[at];
  if (same(s, op, changed))
    return false;
  if (op.after != changed.after) { // M2
    for (const TokenRef &token : op.after)
      if (std::find(changed.after.begin(), changed.after.end(), token) == changed.after.end() &&
          !order.implied(order.ownerOf(token), at, changed.after))
        return true;
    return false;
  }
  if (op.kind != OpKind::Wait)
    return true;
  if (changed.kind == OpKind::Wait && changed.k > op.k) // M4
    return s.slots[op.slot->slots].awaited(changed.k) > s.slots[op.slot->slots].perRun;
  return !passed(s, ops, at, op.k);
}

std::vector<size_t> spread(const std::vector<size_t> &all, size_t most) {
  std::vector<size_t> out;
  size_t n = std::min(most, all.size());
  for (size_t i = 0; i < n; ++i)
    out.push_back(all[(i + 1) * all.size() / (n + 1)]);
  return out;
}

} // namespace

std::vector<Broken> mutations(const ExampleRef &base, size_t most) {
  std::vector<Broken> out;
  std::vector<Op> ops = firstRun(*base);
  LocalOrder order(ops);
  // Changes in later runs only are judged by what they do in run 1.
  std::vector<int64_t> point = base->grid.pointOf(0);
  auto describe = [&](size_t i) {
    return base->locations[ops[i].location].op + "@" + std::to_string(i);
  };
  for (const Kind &kind : kindsFor(*base)) {
    std::vector<size_t> at;
    for (size_t i = 0; i < ops.size(); ++i) {
      Op changed = ops[i];
      // Rank 0 mirrored is rank 0: judge by another rank.
      std::vector<int64_t> other(point.size(), 1);
      Where where{ops[i].k, 1, &other};
      if (ops[i].kind == OpKind::Wait)
        where.absolute += base->slots[ops[i].slot->slots].perRun;
      if (kind.change(changed, where) && saysSomethingElse(*base, ops, order, i, changed))
        at.push_back(i);
    }
    for (size_t i : spread(at, most)) {
      auto mutant = std::make_shared<Mutant>(base, static_cast<int64_t>(i), kind.change);
      mutant->needsPoint = kind.needsPoint;
      out.push_back({kind.name, kind.name + " " + describe(i), mutant, {}, kind.asymmetric});
    }
  }
  // A scratch queue of fewer places than its credit says.
  std::vector<size_t> queues;
  for (size_t w = 0; w < base->windows.size(); ++w) {
    const std::vector<Dim> &dims = base->windows[w].spaces[0].dims;
    for (size_t d = 0; d < dims.size(); ++d)
      if (!dims[d].axis && dims[d].size > 1)
        queues.push_back(w << 8 | d);
  }
  for (size_t queue : spread(queues, most)) {
    size_t window = queue >> 8, dim = queue & 255;
    int64_t room = base->windows[window].spaces[0].dims[dim].size - 1;
    auto mutant = std::make_shared<Mutant>(base, -1, [=](Op &op, const Where &) {
      bool applies = false;
      for (auto *list : {&op.reads, &op.writes})
        for (Access &access : *list)
          if (access.window == window && access.path.size() > dim) {
            applies |= access.path[dim].value >= room;
            access.path[dim].value %= room;
          }
      return applies;
    });
    mutant->everyOp = true;
    out.push_back({"queue", "queue of " + base->windows[window].name, mutant, {}, false});
  }
  // One generation less (M5).
  int64_t generations = 1;
  auto fewer = std::make_shared<Example>(*base);
  for (Window &window : fewer->windows)
    generations = std::max(generations, window.generations--);
  for (Slots &slots : fewer->slots)
    generations = std::max(generations, slots.generations--);
  for (Window &window : fewer->windows)
    window.generations = std::max<int64_t>(1, window.generations);
  for (Slots &slots : fewer->slots)
    slots.generations = std::max<int64_t>(1, slots.generations);
  if (generations > 1)
    out.push_back({"generation", "one generation less", fewer, {}, false});
  // A queue with more credits than places, or with none; with fewer it only waits longer (M4).
  for (size_t i = 0; i < base->slots.size(); ++i)
    for (int64_t credits : {base->slots[i].credits + 1, int64_t(0)}) {
      if (!base->slots[i].credits)
        continue;
      auto other = std::make_shared<Example>(*base);
      other->slots[i].credits = credits;
      out.push_back({"credits", std::to_string(credits) + " credits", other, {}, false});
    }
  if (base->depth && *base->depth > 1) { // M5
    out.push_back({"depth", "depth less one", base, *base->depth - 1, false});
    out.push_back({"depth", "depth 1", base, 1, false});
  }
  return out;
}

} // namespace mlir::ctran::machine::examples
