//===- Exchanges.cpp - More schedules: exchanges, trees, pipelines -------------===//

#include "Maker.h"

#include <bit>

namespace mlir::ctran::machine::examples {

//===- all_to_all over several copy engines -----------------------------------===//

static Generator allToAllBody(const Example &e, Context, int64_t lanes) {
  enum { Make, Rtr, Own, WaitRtr, Put, Data, WaitData, Use };
  int64_t n = e.grid.sizes[0];
  Maker m(e);
  m.start(OpKind::Source, user(), Make).read(0, {}).label({own(0)});
  TokenRef entry = m.token();
  co_yield m;
  for (int64_t d = 1; d < n; ++d)
    co_yield m.start(OpKind::Signal, ce(d % lanes), Rtr)
        .slot(0, {own(0)}, m.peer(0, d))
        .after(entry);
  m.start(OpKind::Copy, ce(), Own).read(0, {own(0)}).write(1, {own(0)}).after(entry);
  std::vector<TokenRef> ends{m.token()};
  co_yield m;
  for (int64_t d = 1; d < n; ++d) {
    Lane lane = ce(d % lanes);
    co_yield m.start(OpKind::Wait, lane, WaitRtr).slot(0, {own(0, d)}).atLeast(1);
    m.start(OpKind::Copy, lane, Put).read(0, {own(0, d)}).write(1, {own(0)}, m.peer(0, d));
    ends.push_back(m.token());
    co_yield m;
    co_yield m.start(OpKind::Signal, lane, Data).slot(1, {own(0)}, m.peer(0, d));
  }
  for (int64_t d = 1; d < n; ++d) {
    m.start(OpKind::Wait, ce(d % lanes), WaitData).slot(1, {own(0, d)}).atLeast(1);
    ends.push_back(m.token());
    co_yield m;
  }
  for (int64_t d = 0; d < n; ++d)
    co_yield m.start(OpKind::Sink, user(), Use)
        .read(1, {own(0, d)})
        .label({own(0, d), own(0)})
        .after(ends);
}

ExampleRef allToAll(int64_t n, int64_t lanes) {
  ExampleRef e = make("all_to_all", {n},
                      {"make", "rtr", "own", "wait rtr", "put", "data", "wait data", "use"});
  e->windows = {window("in", {bound(0, n)}), window("out", {bound(0, n)})};
  e->slots = {slots("rtr", {bound(0, n)}, 1), slots("data", {bound(0, n)}, 1)};
  e->body = [lanes](const Example &e, Context c) { return allToAllBody(e, c, lanes); };
  return e;
}

//===- permute ----------------------------------------------------------------===//

static Generator permuteBody(const Example &e, Context, int64_t shift) {
  enum { Make, Rtr, WaitRtr, Put, WaitData, Flush, Use };
  Maker m(e);
  m.start(OpKind::Source, user(), Make).read(0, {}).label({});
  TokenRef entry = m.token();
  co_yield m;
  co_yield m.start(OpKind::Signal, host(), Rtr).slot(0, {}, m.peer(0, -shift)).after(entry);
  co_yield m.start(OpKind::Wait, nic(), WaitRtr).slot(0, {}).atLeast(1);
  m.start(OpKind::Copy, nic(), Put)
      .read(0, {})
      .write(1, {}, m.peer(0, shift))
      .slot(1, {}, m.peer(0, shift))
      .after(entry);
  std::vector<TokenRef> ends{m.token()};
  co_yield m;
  co_yield m.start(OpKind::Wait, host(), WaitData).slot(1, {}).atLeast(1);
  m.start(OpKind::Flush, host(), Flush);
  ends.push_back(m.token());
  co_yield m;
  co_yield m.start(OpKind::Sink, user(), Use).read(1, {}).label({own(0, -shift)}).after(ends);
}

ExampleRef permute(int64_t n, int64_t shift) {
  ExampleRef e =
      make("permute", {n}, {"make", "rtr", "wait rtr", "put", "wait data", "flush", "use"});
  e->windows = {window("in", {}), window("out", {})};
  e->slots = {slots("rtr", {}, 1), slots("data", {}, 1)};
  e->body = [shift](const Example &e, Context c) { return permuteBody(e, c, shift); };
  return e;
}

//===- all_gather both ways round a ring --------------------------------------===//

static Generator bidirectionalBody(const Example &e, Context) {
  enum { Make, Rtr, WaitRtr, Put, Wait, Flush, Use };
  int64_t n = e.grid.sizes[0];
  Maker m(e);
  m.start(OpKind::Source, user(), Make).read(0, {own(0)}).label({own(0)});
  TokenRef entry = m.token();
  co_yield m;
  auto steps = [&](int64_t side) { return side ? (n - 1) / 2 : n / 2; };
  for (int64_t side = 0; side < 2; ++side)
    if (steps(side))
      co_yield m.start(OpKind::Signal, host(), Rtr)
          .slot(static_cast<unsigned>(2 * side), {}, m.peer(0, side ? 1 : -1))
          .after(entry);
  std::vector<TokenRef> ends{entry};
  for (int64_t side = 0; side < 2; ++side) {
    auto slot = static_cast<unsigned>(2 * side);
    int64_t d = side ? -1 : 1;
    if (!steps(side))
      continue;
    co_yield m.start(OpKind::Wait, nic(side), WaitRtr).slot(slot, {}).atLeast(1);
    TokenRef have = entry;
    for (int64_t s = 0; s < steps(side); ++s) {
      m.start(OpKind::Copy, nic(side), Put)
          .read(0, {own(0, -d * s)})
          .write(0, {own(0, -d * s)}, m.peer(0, d))
          .slot(slot + 1, {}, m.peer(0, d))
          .after(have);
      ends.push_back(m.token());
      co_yield m;
      co_yield m.start(OpKind::Wait, sm(side), Wait).slot(slot + 1, {}).atLeast(s + 1);
      m.start(OpKind::Flush, sm(side), Flush);
      have = m.token();
      co_yield m;
    }
    ends.push_back(have);
  }
  co_yield m.start(OpKind::Sink, user(), Use).read(0, {}).label({}).after(ends);
}

ExampleRef bidirectionalAllGather(int64_t n) {
  ExampleRef e = make("bidirectional all_gather", {n},
                      {"make", "rtr", "wait rtr", "put", "wait", "flush", "use"});
  e->windows = {window("out", {bound(0, n)})};
  e->slots = {slots("rtr+", {}, 1), slots("d+", {}, n / 2), slots("rtr-", {}, 1),
              slots("d-", {}, (n - 1) / 2)};
  e->body = bidirectionalBody;
  return e;
}

//===- broadcast from rank 0 along a binomial tree ----------------------------===//

static Generator binomialBody(const Example &e, Context c) {
  enum { Make, Rtr, WaitData, Flush, WaitRtr, Put, Use };
  int64_t n = e.grid.sizes[0], r = (*c.point)[0];
  int64_t low = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(r)));
  auto level = [](int64_t step) { return at(std::bit_width(static_cast<uint64_t>(step)) - 1); };
  Maker m(e);
  if (r == 0)
    m.start(OpKind::Source, user(), Make).read(0, {}).label({}, {}, {0});
  else
    m.start(OpKind::Nop, user(), Make);
  TokenRef have = m.token();
  co_yield m;
  std::vector<TokenRef> ends;
  if (r) {
    co_yield m.start(OpKind::Signal, host(), Rtr)
        .slot(0, {level(low)}, m.peer(0, -low))
        .after(have);
    co_yield m.start(OpKind::Wait, host(), WaitData).slot(1, {}).atLeast(1);
    m.start(OpKind::Flush, host(), Flush);
    have = m.token();
    ends.push_back(have);
    co_yield m;
  }
  for (int64_t step = r ? 2 * low : 1; r + step < n; step *= 2) {
    co_yield m.start(OpKind::Wait, nic(), WaitRtr).slot(0, {level(step)}).atLeast(1);
    m.start(OpKind::Copy, nic(), Put)
        .read(0, {})
        .write(0, {}, m.peer(0, step))
        .slot(1, {}, m.peer(0, step))
        .after(have);
    ends.push_back(m.token());
    co_yield m;
  }
  co_yield m.start(OpKind::Sink, user(), Use).read(0, {}).label({}, {}, {0}).after(ends);
}

ExampleRef binomialBroadcast(int64_t n) {
  ExampleRef e = make("binomial broadcast", {n},
                      {"make", "rtr", "wait data", "flush", "wait rtr", "put", "use"});
  e->windows = {window("buf", {})};
  e->slots = {slots("rtr", {freeDim(std::bit_width(static_cast<uint64_t>(n)))}, 1),
              slots("data", {}, 1)};
  e->asymmetric = true;
  e->body = binomialBody;
  return e;
}

//===- reduce_scatter by recursive halving ------------------------------------===//

/// What guards a partner's scratch is the credit of the run before.
static Generator halvingBody(const Example &e, Context) {
  enum { Make, WaitCredit, Put, WaitData, Flush, Reduce, Credit, Use };
  auto k = static_cast<unsigned>(e.grid.sizes.size());
  Maker m(e);
  m.start(OpKind::Source, user(), Make).read(0, {}).label({}, allAxes(e));
  TokenRef have = m.token();
  co_yield m;
  std::vector<TokenRef> ends;
  Path mine;
  for (unsigned a = 0; a < k; ++a) {
    Path theirs(mine);
    theirs.push_back(own(a, 1));
    mine.push_back(own(a));
    co_yield m.start(OpKind::Wait, nic(), WaitCredit).slot(2 * a, {}).atLeast(0);
    m.start(OpKind::Copy, nic(), Put)
        .read(0, theirs)
        .write(1 + a, {}, m.peer(a, 1))
        .slot(2 * a + 1, {}, m.peer(a, 1))
        .after(have);
    ends.push_back(m.token());
    co_yield m;
    co_yield m.start(OpKind::Wait, sm(), WaitData).slot(2 * a + 1, {}).atLeast(1);
    co_yield m.start(OpKind::Flush, sm(), Flush);
    m.start(OpKind::Reduce, sm(), Reduce).read(0, mine).read(1 + a, {}).write(0, mine).after(have);
    have = m.token();
    co_yield m;
    co_yield m.start(OpKind::Signal, sm(), Credit).slot(2 * a, {}, m.peer(a, 1));
  }
  ends.push_back(have);
  co_yield m.start(OpKind::Sink, user(), Use).read(0, mine).label(mine, allAxes(e)).after(ends);
}

ExampleRef halvingReduceScatter(unsigned k) {
  ExampleRef e =
      make("halving reduce_scatter", std::vector<int64_t>(k, 2),
           {"make", "wait credit", "put", "wait data", "flush", "reduce", "credit", "use"});
  std::vector<Dim> dims;
  for (unsigned a = 0; a < k; ++a)
    dims.push_back(bound(a, 2));
  e->windows = {window("buf", dims)};
  for (unsigned a = 0; a < k; ++a) {
    e->windows.push_back(
        window("tmp" + std::to_string(a), std::vector<Dim>(dims.begin() + a + 1, dims.end())));
    e->slots.push_back(slots("c" + std::to_string(a), {}, 1));
    e->slots.push_back(slots("d" + std::to_string(a), {}, 1));
  }
  e->body = halvingBody;
  return e;
}

//===- (h) reduce_scatter in chunks, copy engines and one block ---------------===//

static Generator chunkedBody(const Example &e, Context c, int64_t chunks, int64_t scratch) {
  enum { Make, WaitCredit, Put, Data, WaitData, Reduce, Credit, Use };
  int64_t n = e.grid.sizes[0];
  Maker m(e);
  m.start(OpKind::Source, user(), Make).read(0, {}).label({}, {0});
  TokenRef entry = m.token();
  co_yield m;
  std::vector<TokenRef> ends;
  for (int64_t i = 0; i < chunks; ++i) {
    int64_t k = i + 1, t = (c.run * chunks + i) % scratch;
    for (int64_t d = 1; d < n; ++d) {
      Lane lane = ce(d % 2);
      co_yield m.start(OpKind::Wait, lane, WaitCredit).slot(0, {own(0, d)}).atLeast(k);
      m.start(OpKind::Copy, lane, Put)
          .read(0, {own(0, d), at(i)})
          .write(1, {own(0), at(t)}, m.peer(0, d))
          .after(entry);
      ends.push_back(m.token());
      co_yield m;
      co_yield m.start(OpKind::Signal, lane, Data).slot(1, {own(0)}, m.peer(0, d));
    }
    for (int64_t d = 1; d < n; ++d)
      co_yield m.start(OpKind::Wait, sm(), WaitData).slot(1, {own(0, d)}).atLeast(k);
    m.start(OpKind::Reduce, sm(), Reduce).read(0, {own(0), at(i)}).write(2, {at(i)}).after(entry);
    for (int64_t d = 1; d < n; ++d)
      m.read(1, {own(0, d), at(t)});
    ends.push_back(m.token());
    co_yield m;
    for (int64_t d = 1; d < n; ++d)
      co_yield m.start(OpKind::Signal, sm(), Credit).slot(0, {own(0)}, m.peer(0, d));
  }
  for (int64_t i = 0; i < chunks; ++i)
    co_yield m.start(OpKind::Sink, user(), Use)
        .read(2, {at(i)})
        .label({own(0), at(i)}, {0})
        .after(ends);
}

ExampleRef chunkedReduceScatter(int64_t n, int64_t chunks, int64_t scratch) {
  ExampleRef e =
      make("chunked reduce_scatter", {n},
           {"make", "wait credit", "put", "data", "wait data", "reduce", "credit", "use"});
  e->windows = {window("in", {bound(0, n), freeDim(chunks)}),
                window("tmp", {bound(0, n), freeDim(scratch)}), window("out", {freeDim(chunks)})};
  e->slots = {slots("credit", {bound(0, n)}, chunks), slots("data", {bound(0, n)}, chunks)};
  e->slots[0].credits = scratch;
  e->body = [chunks, scratch](const Example &e, Context c) {
    return chunkedBody(e, c, chunks, scratch);
  };
  return e;
}

//===- a stream of chunks to the right, whose credit runs on from run to run ---===//

static Generator streamBody(const Example &e, Context c, int64_t chunks, int64_t scratch) {
  enum { Make, WaitCredit, Put, WaitData, Flush, Take, Credit, Use };
  Maker m(e);
  m.start(OpKind::Source, user(), Make).read(0, {}).label({});
  TokenRef entry = m.token();
  co_yield m;
  std::vector<TokenRef> ends;
  for (int64_t i = 0; i < chunks; ++i) {
    int64_t k = i + 1, t = (c.run * chunks + i) % scratch;
    co_yield m.start(OpKind::Wait, nic(), WaitCredit).slot(0, {}).atLeast(k - scratch);
    m.start(OpKind::Copy, nic(), Put)
        .read(0, {at(i)})
        .write(1, {at(t)}, m.peer(0, 1))
        .slot(1, {}, m.peer(0, 1))
        .after(entry);
    ends.push_back(m.token());
    co_yield m;
    co_yield m.start(OpKind::Wait, sm(), WaitData).slot(1, {}).atLeast(k);
    co_yield m.start(OpKind::Flush, sm(), Flush);
    m.start(OpKind::Copy, sm(), Take).read(1, {at(t)}).write(2, {at(i)}).after(entry);
    ends.push_back(m.token());
    co_yield m;
    co_yield m.start(OpKind::Signal, sm(), Credit).slot(0, {}, m.peer(0, -1));
  }
  co_yield m.start(OpKind::Sink, user(), Use).read(2, {}).label({own(0, -1)}).after(ends);
}

ExampleRef streamRight(int64_t n, int64_t chunks, int64_t scratch) {
  ExampleRef e = make(
      "stream", {n}, {"make", "wait credit", "put", "wait data", "flush", "take", "credit", "use"});
  e->windows = {window("in", {freeDim(chunks)}), window("act", {freeDim(scratch)}),
                window("out", {freeDim(chunks)})};
  e->slots = {slots("credit", {}, chunks), slots("data", {}, chunks)};
  e->body = [chunks, scratch](const Example &e, Context c) {
    return streamBody(e, c, chunks, scratch);
  };
  return e;
}

//===- all_gather that issues what it receives before what it sends -----------===//

static Generator handoffBody(const Example &e, Context) {
  enum { Make, Own, WaitData, Take, WaitCredit, Put, Data, Credit, Use };
  int64_t n = e.grid.sizes[0];
  Maker m(e);
  m.start(OpKind::Source, user(), Make).read(0, {}).label({});
  TokenRef entry = m.token();
  co_yield m;
  std::vector<TokenRef> ends;
  m.start(OpKind::Copy, sm(0), Own).read(0, {}).write(2, {own(0)}).after(entry);
  ends.push_back(m.token());
  co_yield m;
  for (int64_t d = 1; d < n; ++d) {
    co_yield m.start(OpKind::Wait, sm(0), WaitData).slot(0, {own(0, -d)}).atLeast(1);
    m.start(OpKind::Copy, sm(0), Take).read(1, {own(0, -d)}).write(2, {own(0, -d)});
    ends.push_back(m.token());
    co_yield m;
  }
  for (int64_t d = 1; d < n; ++d) {
    co_yield m.start(OpKind::Wait, sm(1), WaitCredit).slot(1, {own(0, d)}).atLeast(0);
    m.start(OpKind::Copy, sm(1), Put).read(0, {}).write(1, {own(0)}, m.peer(0, d)).after(entry);
    ends.push_back(m.token());
    co_yield m;
    co_yield m.start(OpKind::Signal, sm(1), Data).slot(0, {own(0)}, m.peer(0, d));
  }
  for (int64_t d = 1; d < n; ++d)
    co_yield m.start(OpKind::Signal, sm(0), Credit).slot(1, {own(0)}, m.peer(0, -d));
  co_yield m.start(OpKind::Sink, user(), Use).read(2, {}).label({}).after(ends);
}

ExampleRef handoffAllGather(int64_t n) {
  ExampleRef e =
      make("hand-off all_gather", {n},
           {"make", "own", "wait data", "take", "wait credit", "put", "data", "credit", "use"});
  e->windows = {window("in", {}), window("tmp", {bound(0, n)}), window("out", {bound(0, n)})};
  e->slots = {slots("data", {bound(0, n)}, 1), slots("credit", {bound(0, n)}, 1)};
  e->depth = 2 * (n - 1); // all that is received stands in a queue before the first is sent
  e->body = handoffBody;
  return e;
}

} // namespace mlir::ctran::machine::examples
