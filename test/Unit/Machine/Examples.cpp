//===- Examples.cpp - The reference's schedules, in C++ -----------------------===//

#include "Maker.h"

#include <cstdlib>
#include <cstring>

namespace mlir::ctran::machine::examples {

namespace {

class ExampleStream : public OpStream {
public:
  ExampleStream(Generator generator) : generator(std::move(generator)) {}
  Result next(Op &op) override {
    Op *made = generator.next();
    if (!made)
      return Result::End;
    // Gives the storage of the lists back to the maker.
    std::swap(op.reads, made->reads);
    std::swap(op.writes, made->writes);
    std::swap(op.after, made->after);
    op.kind = made->kind;
    op.lane = made->lane;
    op.slot = std::move(made->slot);
    op.k = made->k;
    op.token = std::move(made->token);
    op.label = std::move(made->label);
    op.location = made->location;
    return Result::Op;
  }

private:
  Generator generator;
};

class AsymmetricStream : public OpStream {
public:
  AsymmetricStream() { why = "a coordinate is compared with a number"; }
  Result next(Op &) override { return Result::Asymmetric; }
};

} // namespace

std::unique_ptr<OpStream> Example::open(const std::vector<int64_t> *point, int64_t run) const {
  if (asymmetric && !point)
    return std::make_unique<AsymmetricStream>();
  return std::make_unique<ExampleStream>(body(*this, {run, point}));
}

//===- (a) --------------------------------------------------------------------===//

static Generator directBody(const Example &e, Context c, bool counted) {
  enum { Make, Rtr, WaitRtr, Put, Data, WaitData, Use };
  int64_t n = e.grid.sizes[0];
  Maker m(e);
  auto data = [&](int64_t d) { return counted ? Path() : Path{own(0, d)}; };
  std::vector<TokenRef> tokens;
  m.start(OpKind::Source, user(), Make).read(0, {own(0)}).label({own(0)});
  TokenRef entry = m.token();
  tokens.push_back(entry);
  co_yield m;
  for (int64_t d = 1; d < n; ++d)
    co_yield m.start(OpKind::Signal, ce(), Rtr).slot(0, {own(0)}, m.peer(0, d)).after(entry);
  for (int64_t d = 1; d < n; ++d) {
    co_yield m.start(OpKind::Wait, ce(), WaitRtr).slot(0, {own(0, d)}).atLeast(1);
    m.start(OpKind::Copy, ce(), Put).read(0, {own(0)}).write(0, {own(0)}, m.peer(0, d));
    tokens.push_back(m.token());
    co_yield m;
    co_yield m.start(OpKind::Signal, ce(), Data).slot(1, data(0), m.peer(0, d));
  }
  for (int64_t d = 1; d < n; ++d) {
    m.start(OpKind::Wait, ce(), WaitData).slot(1, data(d)).atLeast(counted ? n - 1 : 1);
    tokens.push_back(m.token());
    co_yield m;
  }
  co_yield m.start(OpKind::Sink, user(), Use).read(0, {}).label({}).after(tokens);
}

ExampleRef directAllGather(int64_t n, bool counted) {
  ExampleRef e = make("direct all_gather", {n},
                      {"make", "rtr", "wait rtr", "put", "data", "wait data", "use"});
  e->windows = {window("out", {bound(0, n)})};
  e->slots = {slots("rtr", {bound(0, n)}, 1),
              counted ? slots("data", {}, n - 1, std::max<int64_t>(1, n - 1))
                      : slots("data", {bound(0, n)}, 1)};
  e->body = [counted](const Example &e, Context c) { return directBody(e, c, counted); };
  return e;
}

//===- (b), (g) ---------------------------------------------------------------===//

static Generator ringBody(const Example &e, Context c, int64_t pieces, int64_t scratch) {
  enum {
    Make,
    WaitCredit,
    RsPut,
    WaitRs,
    FlushRs,
    Reduce,
    Credit,
    Rtr,
    WaitRtr,
    AgPut,
    WaitAg,
    FlushAg,
    Exit
  };
  const std::vector<int64_t> &grid = e.grid.sizes;
  unsigned T = static_cast<unsigned>(grid.size());
  enum { CreditSlot, DataSlot, ReadySlot, GatherSlot };
  auto slotOf = [](unsigned axis, unsigned which) { return 4 * axis + which; };
  Maker m(e);
  m.start(OpKind::Source, user(), Make).read(0, {}).label({}, allAxes(e));
  TokenRef entry = m.token();
  co_yield m;
  std::vector<TokenRef> ends;
  for (int64_t j = 0; j < pieces; ++j) {
    TokenRef have = entry;
    for (unsigned a = 0; a < T; ++a) {
      int64_t n = grid[a];
      Path pre{at(j)};
      for (unsigned b = 0; b < a; ++b)
        pre.push_back(own(b));
      auto box = [&](int64_t shift) {
        Path path(pre);
        path.push_back(own(a, shift));
        return path;
      };
      std::vector<TokenRef> puts;
      for (int64_t s = 0; s < n - 1; ++s) {
        int64_t k = j * (n - 1) + s + 1;
        int64_t t = (c.run * pieces * (n - 1) + k - 1) % scratch;
        co_yield m.start(OpKind::Wait, nic(a), WaitCredit)
            .slot(slotOf(a, CreditSlot), {})
            .atLeast(k - scratch);
        m.start(OpKind::Copy, nic(a), RsPut)
            .read(0, box(-1 - s))
            .write(1 + a, {at(t)}, m.peer(a, 1))
            .slot(slotOf(a, DataSlot), {}, m.peer(a, 1))
            .after(have);
        puts.push_back(m.token());
        co_yield m;
        co_yield m.start(OpKind::Wait, sm(a), WaitRs).slot(slotOf(a, DataSlot), {}).atLeast(k);
        co_yield m.start(OpKind::Flush, sm(a), FlushRs);
        m.start(OpKind::Reduce, sm(a), Reduce)
            .read(0, box(-2 - s))
            .read(1 + a, {at(t)})
            .write(0, box(-2 - s))
            .after(have);
        have = m.token();
        co_yield m;
        co_yield m.start(OpKind::Signal, sm(a), Credit)
            .slot(slotOf(a, CreditSlot), {}, m.peer(a, -1));
      }
      co_yield m.start(OpKind::Signal, sm(a), Rtr)
          .slot(slotOf(a, ReadySlot), {}, m.peer(a, -1))
          .after(puts);
      ends.insert(ends.end(), puts.begin(), puts.end());
    }
    std::vector<TokenRef> got{have};
    for (unsigned a = T; a-- > 0;) {
      int64_t n = grid[a];
      Path pre{at(j)};
      for (unsigned b = 0; b < a; ++b)
        pre.push_back(own(b));
      co_yield m.start(OpKind::Wait, nic(T + a), WaitRtr)
          .slot(slotOf(a, ReadySlot), {})
          .atLeast(j + 1);
      std::vector<TokenRef> after(got);
      for (int64_t s = 0; s < n - 1; ++s) {
        int64_t k = j * (n - 1) + s + 1;
        Path box(pre);
        box.push_back(own(a, -s));
        m.start(OpKind::Copy, nic(T + a), AgPut)
            .read(0, box)
            .write(0, box, m.peer(a, 1))
            .slot(slotOf(a, GatherSlot), {}, m.peer(a, 1))
            .after(after);
        ends.push_back(m.token());
        co_yield m;
        co_yield m.start(OpKind::Wait, sm(T + a), WaitAg)
            .slot(slotOf(a, GatherSlot), {})
            .atLeast(k);
        m.start(OpKind::Flush, sm(T + a), FlushAg);
        after.assign(1, m.token());
        co_yield m;
      }
      if (n > 1)
        got.push_back(after.front());
    }
    ends.insert(ends.end(), got.begin(), got.end());
  }
  co_yield m.start(OpKind::Sink, user(), Exit).read(0, {}).label({}, allAxes(e)).after(ends);
}

ExampleRef ringAllReduce(std::vector<int64_t> grid, int64_t pieces, int64_t scratch) {
  ExampleRef e = make("ring all_reduce", grid,
                      {"make", "wait credit", "rs put", "wait rs", "flush rs", "reduce", "credit",
                       "rtr ag", "wait rtr ag", "ag put", "wait ag", "flush ag", "exit"});
  std::vector<Dim> space{freeDim(pieces)};
  for (unsigned a = 0; a < grid.size(); ++a)
    space.push_back(bound(a, grid[a]));
  e->windows = {window("buf", space)};
  for (unsigned a = 0; a < grid.size(); ++a) {
    std::vector<Dim> dims{freeDim(scratch)};
    dims.insert(dims.end(), space.begin() + a + 2, space.end());
    e->windows.push_back(window("tmp" + std::to_string(a), dims));
    int64_t k = pieces * (grid[a] - 1);
    for (const char *name : {"c", "d"})
      e->slots.push_back(slots(name + std::to_string(a), {}, k));
    e->slots.push_back(slots("cg" + std::to_string(a), {}, pieces));
    e->slots.push_back(slots("dg" + std::to_string(a), {}, k));
  }
  e->body = [pieces, scratch](const Example &e, Context c) {
    return ringBody(e, c, pieces, scratch);
  };
  return e;
}

//===- (c) --------------------------------------------------------------------===//

static Generator doublingBody(const Example &e, Context c) {
  enum { Make, Rtr, WaitRtr, Put, WaitData, Flush, Exit };
  unsigned k = static_cast<unsigned>(e.grid.sizes.size());
  Maker m(e);
  auto prefix = [](unsigned length) {
    Path path;
    for (unsigned a = 0; a < length; ++a)
      path.push_back(own(a));
    return path;
  };
  m.start(OpKind::Source, user(), Make).read(0, prefix(k)).label(prefix(k));
  std::vector<TokenRef> got{m.token()}, ends;
  co_yield m;
  for (unsigned a = 0; a < k; ++a)
    co_yield m.start(OpKind::Signal, host(), Rtr).slot(0, {at(a)}, m.peer(a, 1)).after(got);
  for (unsigned a = k; a-- > 0;) {
    co_yield m.start(OpKind::Wait, nic(), WaitRtr).slot(0, {at(a)}).atLeast(1);
    m.start(OpKind::Copy, nic(), Put)
        .read(0, prefix(a + 1))
        .write(0, prefix(a + 1), m.peer(a, 1))
        .slot(1, {at(a)}, m.peer(a, 1))
        .after(got);
    ends.push_back(m.token());
    co_yield m;
    co_yield m.start(OpKind::Wait, host(), WaitData).slot(1, {at(a)}).atLeast(1);
    m.start(OpKind::Flush, host(), Flush);
    got.assign(1, m.token());
    ends.push_back(m.token());
    co_yield m;
  }
  co_yield m.start(OpKind::Sink, user(), Exit).read(0, {}).label({}).after(ends);
}

ExampleRef recursiveDoubling(unsigned k) {
  ExampleRef e = make("recursive doubling all_gather", std::vector<int64_t>(k, 2),
                      {"make", "rtr", "wait rtr", "put", "wait data", "flush", "exit"});
  std::vector<Dim> dims;
  for (unsigned a = 0; a < k; ++a)
    dims.push_back(bound(a, 2));
  e->windows = {window("out", dims)};
  e->slots = {slots("rtr", {freeDim(std::max(1u, k))}, 1),
              slots("d", {freeDim(std::max(1u, k))}, 1)};
  e->body = doublingBody;
  return e;
}

//===- (d) --------------------------------------------------------------------===//

static Generator bruckBody(const Example &e, Context c, bool intervals) {
  enum { Make, Rtr, WaitRtr, Put, Wait, Flush, Rotate, Exit };
  int64_t n = e.grid.sizes[0];
  unsigned steps = static_cast<unsigned>(e.slots.size() / 2);
  Maker m(e);
  m.start(OpKind::Source, user(), Make).read(0, {at(0)}).label({own(0)});
  TokenRef entry = m.token();
  co_yield m;
  for (unsigned s = 0; s < steps; ++s)
    co_yield m.start(OpKind::Signal, host(), Rtr)
        .slot(2 * s, {}, m.peer(0, int64_t(1) << s))
        .after(entry);
  std::vector<TokenRef> got, ends;
  for (unsigned s = 0; s < steps; ++s) {
    int64_t d = int64_t(1) << s, count = std::min(d, n - d);
    co_yield m.start(OpKind::Wait, nic(), WaitRtr).slot(2 * s, {}).atLeast(1);
    for (int64_t j = 0; j < (intervals ? 1 : count); ++j) {
      m.start(OpKind::Copy, nic(), Put);
      if (intervals)
        m.read(0, {}).interval(0, count).write(0, {}, m.peer(0, -d)).interval(d, count, true);
      else
        m.read(0, {at(j)}).write(0, {at(d + j)}, m.peer(0, -d));
      m.slot(2 * s + 1, {}, m.peer(0, -d)).after(got).after(entry);
      ends.push_back(m.token());
      co_yield m;
    }
    co_yield m.start(OpKind::Wait, host(), Wait).slot(2 * s + 1, {}).atLeast(intervals ? 1 : count);
    m.start(OpKind::Flush, host(), Flush);
    got.assign(1, m.token());
    co_yield m;
  }
  for (int64_t j = 0; j < n; ++j) {
    m.start(OpKind::Copy, ce(), Rotate)
        .read(0, {at(j)})
        .write(1, {own(0, j)})
        .after(got)
        .after(entry);
    ends.push_back(m.token());
    co_yield m;
  }
  co_yield m.start(OpKind::Sink, user(), Exit).read(1, {}).label({}).after(ends);
}

ExampleRef bruckAllGather(int64_t n, bool intervals) {
  ExampleRef e = make("Bruck all_gather", {n},
                      {"make", "rtr", "wait rtr", "put", "wait", "flush", "rotate", "exit"});
  e->windows = {window("tmp", {freeDim(n)}), window("out", {bound(0, n)})};
  for (int64_t d = 1; d < n; d *= 2) {
    e->slots.push_back(slots("rtr" + std::to_string(d), {}, 1));
    e->slots.push_back(slots("d" + std::to_string(d), {}, intervals ? 1 : std::min(d, n - d)));
  }
  e->body = [intervals](const Example &e, Context c) { return bruckBody(e, c, intervals); };
  return e;
}

//===- (e) --------------------------------------------------------------------===//

static Generator twoShotBody(const Example &e, Context c, int64_t blocks, bool swap) {
  enum { Make, In, WaitIn, Pull, Push, Done, WaitDone, Exit };
  int64_t n = e.grid.sizes[0];
  Maker m(e);
  m.start(OpKind::Source, user(), Make).read(0, {}).label({}, {0});
  TokenRef entry = m.token();
  co_yield m;
  std::vector<TokenRef> ends;
  for (int64_t b = 0; b < blocks; ++b) {
    int64_t other = swap ? (b + 1) % blocks : b;
    for (int64_t d = 1; d < n; ++d)
      co_yield m.start(OpKind::Signal, sm(b), In)
          .slot(0, {own(0), at(b)}, m.peer(0, d))
          .after(entry);
    for (int64_t d = 1; d < n; ++d)
      co_yield m.start(OpKind::Wait, sm(b), WaitIn).slot(0, {own(0, d), at(b)}).atLeast(1);
    m.start(OpKind::Reduce, sm(b), Pull).write(1, {own(0), at(b)}).after(entry);
    for (int64_t d = 0; d < n; ++d)
      m.read(0, {own(0), at(b)}, d ? m.peer(0, d) : Peer());
    co_yield m;
    if (n > 1) {
      m.start(OpKind::Copy, sm(b), Push).read(1, {own(0), at(other)});
      for (int64_t d = 1; d < n; ++d)
        m.write(1, {own(0), at(other)}, m.peer(0, d));
    } else {
      m.start(OpKind::Nop, sm(b), Push);
      ends.push_back(m.token());
    }
    co_yield m;
    for (int64_t d = 1; d < n; ++d)
      co_yield m.start(OpKind::Signal, sm(b), Done).slot(1, {own(0), at(b)}, m.peer(0, d));
    for (int64_t d = 1; d < n; ++d) {
      m.start(OpKind::Wait, sm(b), WaitDone).slot(1, {own(0, d), at(b)}).atLeast(1);
      ends.push_back(m.token());
      co_yield m;
    }
  }
  co_yield m.start(OpKind::Sink, user(), Exit).read(1, {}).label({}, {0}).after(ends);
}

ExampleRef twoShotAllReduce(int64_t n, int64_t blocks, bool swap) {
  ExampleRef e = make("two-shot all_reduce", {n},
                      {"make", "in", "wait in", "pull", "push", "done", "wait done", "exit"});
  std::vector<Dim> space{bound(0, n), freeDim(blocks)};
  e->windows = {window("in", space), window("out", space)};
  e->slots = {slots("in", space, 1), slots("done", space, 1)};
  e->body = [blocks, swap](const Example &e, Context c) { return twoShotBody(e, c, blocks, swap); };
  return e;
}

//===- (f) --------------------------------------------------------------------===//

static Generator oneShotBody(const Example &e, Context c, bool oneWay) {
  enum { Make, Packet, Poll, Reduce, Exit };
  int64_t n = e.grid.sizes[0], peers = oneWay ? std::min<int64_t>(2, n) : n;
  Maker m(e);
  m.start(OpKind::Source, user(), Make).read(0, {}).label({}, {0});
  TokenRef entry = m.token();
  co_yield m;
  for (int64_t d = 1; d < peers; ++d)
    co_yield m.start(OpKind::Copy, sm(), Packet)
        .read(0, {})
        .write(2, {own(0)}, m.peer(0, d))
        .slot(0, {own(0)}, m.peer(0, d))
        .after(entry);
  for (int64_t d = 1; d < peers; ++d)
    co_yield m.start(OpKind::Wait, sm(), Poll).slot(0, {own(0, -d)}).atLeast(1);
  m.start(OpKind::Reduce, sm(), Reduce).read(0, {}).write(1, {});
  for (int64_t d = 1; d < peers; ++d)
    m.read(2, {own(0, -d)});
  TokenRef reduced = m.token();
  co_yield m;
  if (oneWay)
    co_yield m.start(OpKind::Flush, user(), Exit).after(reduced);
  else
    co_yield m.start(OpKind::Sink, user(), Exit).read(1, {}).label({}, {0}).after(reduced);
}

ExampleRef oneShotPackets(int64_t n, int64_t generations, bool oneWay) {
  ExampleRef e = make("one-shot packets", {n}, {"make", "packet put", "poll", "reduce", "exit"});
  e->windows = {window("in", {}), window("out", {}), window("scr", {bound(0, n)}, generations)};
  e->slots = {slots("pkt", {bound(0, n)}, 1, 1, generations)};
  e->slots[0].realisation = Slots::Realisation::Inband;
  e->body = [oneWay](const Example &e, Context c) { return oneShotBody(e, c, oneWay); };
  return e;
}

//===- (m) --------------------------------------------------------------------===//

static Generator pipelineBody(const Example &e, Context c, int64_t micro, int64_t scratch) {
  enum { Make, WaitData, Flush, Stage, WaitCredit, Send, Credit, Join };
  int64_t n = e.grid.sizes[0], r = (*c.point)[0];
  Maker m(e);
  for (int64_t i = 0; i < micro; ++i) {
    int64_t k = i + 1, t = (c.run * micro + i) % scratch;
    TokenRef x;
    if (r == 0) {
      m.start(OpKind::Source, user(), Make).read(0, {at(t)}).label({at(i)}, {}, {0});
    } else {
      co_yield m.start(OpKind::Wait, nic(), WaitData).slot(0, {}).atLeast(k);
      m.start(OpKind::Flush, nic(), Flush);
    }
    x = m.token();
    co_yield m;
    m.start(OpKind::Sink, user(), Stage).read(0, {at(t)}).label({at(i)}, {}, {0}).after(x);
    std::vector<TokenRef> ends{m.token()};
    co_yield m;
    if (r < n - 1) {
      co_yield m.start(OpKind::Wait, nic(), WaitCredit).slot(1, {}).atLeast(k - scratch);
      m.start(OpKind::Copy, nic(), Send)
          .read(0, {at(t)})
          .write(0, {at(t)}, m.peer(0, 1))
          .slot(0, {}, m.peer(0, 1))
          .after(ends[0]);
      ends.push_back(m.token());
      co_yield m;
    }
    if (r > 0)
      co_yield m.start(OpKind::Signal, host(), Credit).slot(1, {}, m.peer(0, -1)).after(ends);
    else
      co_yield m.start(OpKind::Flush, user(), Join).after(ends);
  }
}

ExampleRef pipelineSendRecv(int64_t n, int64_t micro, int64_t scratch) {
  ExampleRef e =
      make("pipeline send/recv", {n},
           {"make", "wait data", "flush", "stage", "wait credit", "send", "credit", "join"});
  e->windows = {window("act", {freeDim(scratch)})};
  e->slots = {slots("d", {}, micro), slots("c", {}, micro)};
  e->asymmetric = true;
  e->body = [micro, scratch](const Example &e, Context c) {
    return pipelineBody(e, c, micro, scratch);
  };
  return e;
}

ExampleRef byName(const std::string &text) {
  std::vector<int64_t> sizes;
  int64_t pieces = 1, scratch = 2;
  bool counted = text.find("counted") != std::string::npos;
  size_t space = text.find(' ');
  std::string kind = text.substr(0, space);
  auto number = [&](const char *key, int64_t otherwise) {
    size_t i = text.find(key);
    return i == std::string::npos ? otherwise
                                  : std::strtoll(text.c_str() + i + std::strlen(key), nullptr, 10);
  };
  pieces = number("pieces=", pieces);
  scratch = number("slots=", scratch);
  if (space != std::string::npos)
    for (const char *s = text.c_str() + space; *s == ' ' || *s == ',';) {
      char *end;
      int64_t size = std::strtoll(s + 1, &end, 10);
      if (end == s + 1)
        break;
      sizes.push_back(size);
      s = end;
    }
  if (sizes.empty())
    return nullptr;
  if (kind == "direct")
    return directAllGather(sizes[0], counted);
  if (kind == "ring")
    return ringAllReduce(sizes, pieces, scratch);
  if (kind == "doubling")
    return recursiveDoubling(static_cast<unsigned>(sizes[0]));
  if (kind == "bruck")
    return bruckAllGather(sizes[0]);
  if (kind == "bruck-intervals")
    return bruckAllGather(sizes[0], true);
  if (kind == "two-shot")
    return twoShotAllReduce(sizes[0]);
  if (kind == "one-shot")
    return oneShotPackets(sizes[0]);
  if (kind == "alltoall")
    return allToAll(sizes[0], number("lanes=", 1));
  if (kind == "permute")
    return permute(sizes[0], number("shift=", 1));
  if (kind == "bidirectional")
    return bidirectionalAllGather(sizes[0]);
  if (kind == "binomial")
    return binomialBroadcast(sizes[0]);
  if (kind == "halving")
    return halvingReduceScatter(static_cast<unsigned>(sizes[0]));
  if (kind == "chunked")
    return chunkedReduceScatter(sizes[0], number("pieces=", 2), scratch);
  if (kind == "stream")
    return streamRight(sizes[0], number("pieces=", 2), scratch);
  if (kind == "handoff")
    return handoffAllGather(sizes[0]);
  if (kind == "pipeline")
    return pipelineSendRecv(sizes[0], 4, scratch);
  return nullptr;
}

} // namespace mlir::ctran::machine::examples
