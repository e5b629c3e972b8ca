//===- Small.h - Schedules written as lists of ops -----------------*- C++ -*-===//
#ifndef NCCLX_TEST_MACHINE_SMALL_H
#define NCCLX_TEST_MACHINE_SMALL_H

#include "ncclx/Machine/Schedule.h"

#include <functional>
#include <map>

namespace mlir::ctran::machine {

/// The same list of ops for every rank and run; `after[i]` are the ops that op i waits for.
class Small : public Schedule {
public:
  std::vector<Op> ops;
  std::vector<std::vector<size_t>> after;
  std::map<size_t, size_t> sizeOf; ///< of a copy: the count that says how much it moves
  /// Which ops a rank has (all, when empty); makes the program asymmetric.
  std::function<bool(int64_t rank, size_t op)> has;

  size_t add(OpKind kind, Lane lane, std::vector<size_t> tokens = {}) {
    Op op;
    op.kind = kind;
    op.lane = lane;
    op.location = static_cast<unsigned>(locations.size());
    locations.push_back({std::string("op ") + std::to_string(ops.size()), "small.mlir",
                         static_cast<unsigned>(ops.size() + 1), 1});
    ops.push_back(op);
    after.push_back(std::move(tokens));
    return ops.size() - 1;
  }

  std::unique_ptr<OpStream> open(const std::vector<int64_t> *point, int64_t) const override {
    class Stream : public OpStream {
    public:
      Stream(const Small &s, const std::vector<int64_t> *point)
          : s(s), rank(point ? s.grid.rankOf(*point) : -1), tokens(s.ops.size()) {
        for (TokenRef &token : tokens)
          token = llvm::makeIntrusiveRefCnt<Token>();
      }
      Result next(Op &op) override {
        if (s.has && rank < 0) {
          why = "a coordinate is compared";
          return Result::Asymmetric;
        }
        while (i < s.ops.size() && s.has && !s.has(rank, i))
          ++i;
        if (i == s.ops.size())
          return Result::End;
        op = s.ops[i];
        op.token = tokens[i];
        for (size_t j : s.after[i])
          op.after.push_back(tokens[j]);
        if (auto size = s.sizeOf.find(i); size != s.sizeOf.end())
          op.size = tokens[size->second];
        ++i;
        return Result::Op;
      }
      const Small &s;
      int64_t rank;
      std::vector<TokenRef> tokens;
      size_t i = 0;
    };
    return std::make_unique<Stream>(*this, point);
  }
};

namespace small {

inline Index own(unsigned axis, int64_t shift = 0) { return {true, axis, shift}; }
inline Index at(int64_t value) { return {false, 0, value}; }
inline Peer peer(int64_t d) { return {true, false, 0, {d}}; }
inline Lane sm(int64_t i = 0) { return {LaneKind::SM, i}; }
inline Lane nic(int64_t i = 0) { return {LaneKind::NIC, i}; }
inline Lane compute(int64_t i = 0) { return {LaneKind::Compute, i}; }
inline Lane user() { return {LaneKind::User, 0}; }

inline Access box(unsigned window, Indices path = {}, Peer peer = {}, unsigned space = 0) {
  return {window, space, std::move(peer), std::move(path), {}, -1};
}

/// f32 memory of `count` elements, cut along axis 0 when `dims` says so.
inline Window window(std::string name, Window::Role role, int64_t count, std::vector<Dim> dims) {
  Window out;
  out.name = std::move(name);
  out.role = role;
  out.peers = Window::Peers::LoadStore;
  out.elementBytes = 4;
  Space space;
  space.dims = std::move(dims);
  space.extent = count;
  space.unitBytes = 4;
  out.spaces = {space};
  return out;
}

inline Small empty(int64_t n) {
  Small s;
  s.name = "small";
  s.grid = {{"x"}, {n}};
  s.valueNames = {"v"};
  return s;
}

/// Two-shot all-reduce of `count` f32 with entry, exit and waits on whole ranges of slots.
inline Small allReduceTwoShot(int64_t n, int64_t count) {
  Small s = empty(n);
  s.windows = {window("in", Window::Role::Input, count, {Dim{0u, n}}),
               window("out", Window::Role::Output, count, {Dim{0u, n}})};
  s.slots = {{"ready", {Dim{0u, n}}}, {"done", {Dim{0u, n}}}};
  s.collectives = {{"r", "all_reduce", "two-shot", {0}, count * 4, 0}};
  size_t entry = s.add(OpKind::Entry, user());
  size_t source = s.add(OpKind::Source, user(), {entry});
  s.ops[source].reads = {box(0)};
  s.ops[source].label.summed = {0};
  for (int64_t d = 0; d < n; ++d) {
    size_t i = s.add(OpKind::Signal, sm(), {source});
    s.ops[i].slot = SlotRef{0, d ? peer(d) : Peer(), {own(0)}, {}, -1};
  }
  size_t wait = s.add(OpKind::Wait, sm());
  s.ops[wait].slot = SlotRef{0, {}, {}, at(0), n};
  s.ops[wait].k = 1;
  size_t reduce = s.add(OpKind::Reduce, sm());
  for (int64_t d = 0; d < n; ++d)
    s.ops[reduce].reads.push_back(box(0, {own(0)}, d ? peer(d) : Peer()));
  s.ops[reduce].writes = {box(1, {own(0)})};
  if (n > 1) {
    size_t push = s.add(OpKind::Copy, sm());
    s.ops[push].reads = {box(1, {own(0)})};
    for (int64_t d = 1; d < n; ++d)
      s.ops[push].writes.push_back(box(1, {own(0)}, peer(d)));
  }
  for (int64_t d = 0; d < n; ++d) {
    size_t i = s.add(OpKind::Signal, sm());
    s.ops[i].slot = SlotRef{1, d ? peer(d) : Peer(), {own(0)}, {}, -1};
  }
  size_t done = s.add(OpKind::Wait, sm());
  s.ops[done].slot = SlotRef{1, {}, {}, at(0), n};
  s.ops[done].k = 1;
  for (Op &op : s.ops)
    op.collective = op.kind == OpKind::Entry ? -1 : 0;
  size_t sink = s.add(OpKind::Sink, user(), {done});
  s.ops[sink].reads = {box(1)};
  s.ops[sink].label.summed = {0};
  s.add(OpKind::Exit, user());
  return s;
}

} // namespace small
} // namespace mlir::ctran::machine
#endif // NCCLX_TEST_MACHINE_SMALL_H
