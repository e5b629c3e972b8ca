//===- ListedEnds.cpp - Where collectives of listed groups begin and end --------------------===//
#include "ListedEnds.h"

using namespace mlir;
using namespace mlir::ctran;
using Route = ncclx::Dataflow::Route;

ListedEnds::ListedEnds(ScheduleBuilder &s, const CollectiveSpec &c)
    : s(s), c(c), p(s, this->c.groups) {
  if (hasShards())
    shortRows = rows() % each();
}

bool ListedEnds::sends(int64_t from, int64_t to, int64_t members) const {
  if (!hasShard(c.flow.inCut ? to : from))
    return false;
  switch (c.flow.route) {
  case Route::All:
    return true;
  case Route::FromRoot:
    return from == c.root;
  case Route::ToRoot:
    return to == c.root;
  case Route::Listed:
    break;
  }
  if (!c.zero)
    return ((c.shift % members) + members) % members == (to - from + members) % members;
  return llvm::is_contained(c.pairs, std::pair(from, to));
}

int64_t ListedEnds::target(int64_t rank, int64_t by) const {
  if (by >= p.size(rank))
    return -1;
  int64_t to = p.further(rank, by);
  return sends(p.place[rank], p.place[to], p.size(rank)) ? to : -1;
}

int64_t ListedEnds::origin(int64_t rank, int64_t by) const {
  if (by >= p.size(rank))
    return -1;
  int64_t from = p.further(rank, -by);
  return sends(p.place[from], p.place[rank], p.size(rank)) ? from : -1;
}

bool ListedEnds::isUsed(int64_t by) const {
  for (size_t rank = 0; rank < p.group.size(); ++rank)
    if (target(rank, by) >= 0)
      return true;
  return false;
}

Value ListedEnds::shortView(Value memory) {
  int64_t dim = c.flow.inCut ? *c.flow.inCut : *c.flow.outCut;
  return s.reindex(memory, dim,
                   DimAttr::get(s.builder.getContext(), "", llvm::divideCeil(each(), shortRows),
                                Cut::Chunked, shortRows));
}

Value ListedEnds::withShard(Value place, Value memory, llvm::function_ref<Value(Value)> write) {
  if (!hasShards() || !shortRows)
    return write(s.range(memory));
  return s.branch(
      s.equal(place, s.constant(shards() - 1)),
      [&] { return write(s.range(shortView(memory), s.constant(0))); },
      [&] { return write(s.range(memory)); });
}

Value ListedEnds::withOwnShard(Value memory, llvm::function_ref<Value(Value)> write,
                               llvm::function_ref<Value()> otherwise) {
  auto own = [&] { return withShard(ownPlace(), memory, write); };
  if (hasShard(p.largest - 1))
    return own();
  return s.branch(s.less(ownPlace(), s.constant(shards())), own, otherwise);
}

SmallVector<Value> ListedEnds::fillPadding(ValueRange outFree, bool ofShort) {
  if (!hasShards())
    return SmallVector<Value>(outFree);
  bool isShard = c.flow.inCut.has_value(); // the output
  int64_t full = shards() - (shortRows && isShard ? 1 : 0), last = ofShort ? shards() : p.largest;
  if (full >= last)
    return SmallVector<Value>(outFree);
  Value place = ownPlace();
  return joined(outFree,
                s.branch(
                    s.both(s.less(s.constant(full - 1), place), s.less(place, s.constant(last))),
                    [&] { return c.zero(s, outFree); }, [&] { return outFree.front(); }));
}

Value ListedEnds::say(Value in, ValueRange after) {
  if (c.flow.combines)
    return s.source(s.range(in), c.valueName(),
                    p.number([&](int64_t rank) { return c.firstGroup + p.group[rank]; }), p.axes,
                    after);
  return s.source(s.range(in), c.valueName(), p.number([](int64_t rank) { return rank; }), {},
                  after, p.axes);
}

/// What has come over this distance.
Value ListedEnds::demandFrom(int64_t by, Value out, ValueRange after) {
  Value from = p.number([&](int64_t rank) { return origin(rank, by); });
  return p.ifAny(
      from,
      [&] {
        auto demand = [&](Value box, ValueRange label) {
          return s.sink(box, c.valueName(), label, {}, after, p.axes);
        };
        if (c.flow.inCut && hasShards())
          return withShard(ownPlace(), out,
                           [&](Value box) { return demand(box, {from, ownPlace()}); });
        Value place = p.number([&](int64_t rank) {
          int64_t member = origin(rank, by);
          return member < 0 ? 0 : p.place[member];
        });
        Value here = box(out, c.flow.outCut, place);
        if (c.flow.inCut)
          return demand(here, {from, ownPlace()});
        if (!hasShards() || !shortRows)
          return demand(here, from);
        // A short shard is a box of what its member holds.
        return s.branch(
            s.equal(place, s.constant(shards() - 1)),
            [&] { return demand(here, {from, s.constant(0)}); },
            [&] { return demand(here, from); });
      },
      [&] { return after.front(); });
}

/// The reduction over the own group's members.
Value ListedEnds::demandSum(Value out, ValueRange after) {
  Value group = p.number([&](int64_t rank) { return p.group[rank]; });
  Value result = after.front();
  for (auto [g, members] : llvm::enumerate(c.groups)) {
    SmallVector<Value> before = joined(result, after);
    auto demand = [&, g = g, &members = members]() -> Value {
      SmallVector<Value> label{s.constant(c.firstGroup + int64_t(g))};
      if (c.flow.inCut)
        label.push_back(ownPlace());
      if (s.demanded && s.demanded->divide)
        s.demanded->divide = members.size();
      return withOwnShard(
          out,
          [&](Value box) { return s.sink(box, c.valueName(), label, p.axes, before, {}, members); },
          [&] { return before.front(); });
    };
    result = s.branch(s.equal(group, s.constant(g)), demand, [&] { return before.front(); });
  }
  return result;
}

Value ListedEnds::demand(Value out, ValueRange ready) {
  if (c.flow.combines)
    return demandSum(out, ready);
  Value held = ready.front();
  for (int64_t by = 0; by < p.largest; ++by)
    if (isUsed(by))
      held = demandFrom(by, out, joined(held, ready));
  return held;
}
