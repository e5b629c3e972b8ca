//===- OrdersTest.cpp - Is the oracle of all orders right? --------------------===//

#include "Orders.h"
#include "Examples.h"
#include "Small.h"
#include "ncclx/Machine/Machine.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir::ctran::machine;
using namespace mlir::ctran::machine::examples;

namespace {

TEST(Orders, ARightScheduleHasOne) {
  for (const char *name : {"direct 2", "direct 3 counted", "ring 3", "ring 2,3", "doubling 3",
                           "two-shot 3", "one-shot 3", "bruck-intervals 6", "pipeline 3"}) {
    Orders orders = tryAllOrders(*byName(name));
    EXPECT_TRUE(orders.right()) << name << ": " << orders.str();
    EXPECT_EQ(orders.tried, 1) << name;
    EXPECT_EQ(orders.races, 0) << name;
    EXPECT_GT(orders.steps, 20) << name;
  }
}

/// A put that nothing waits for, and a reader that comes after `hops` signals to and fro: wrong
/// only if the put takes longer than all of them. `stale` is what is there before.
Small lateLanding(int64_t hops, bool stale) {
  using namespace small;
  Small s = empty(2);
  s.rxVisible = true;
  s.windows = {window("w", Window::Role::Scratch, 1, {}),
               window("r", Window::Role::Scratch, 1, {})};
  s.slots = {{"s", {Dim{std::nullopt, hops + 1}}}};
  for (unsigned w : {0u, 1u}) {
    size_t i = s.add(OpKind::Source, user());
    s.ops[i].reads = {box(w)};
    s.ops[i].label.path = {own(0, w == 0 || stale ? 0 : 1)};
  }
  auto signal = [&](Lane lane, int64_t slot, size_t after) {
    size_t i = s.add(OpKind::Signal, lane, {after});
    s.ops[i].slot = SlotRef{0, peer(1), {at(slot)}, {}, -1};
  };
  auto wait = [&](Lane lane, int64_t slot) {
    size_t i = s.add(OpKind::Wait, lane);
    s.ops[i].slot = SlotRef{0, {}, {at(slot)}, {}, -1};
    s.ops[i].k = 1;
    return i;
  };
  signal(sm(), hops, 1); // both have made r
  size_t put = wait(nic(), hops);
  put = s.add(OpKind::Copy, nic(), {put, 1});
  s.ops[put].reads = {box(0)};
  s.ops[put].writes = {box(1, {}, peer(1))};
  size_t last = put;
  for (int64_t hop = 0; hop < hops; ++hop) {
    signal(sm(), hop, last);
    last = wait(sm(), hop);
  }
  size_t sink = s.add(OpKind::Sink, user(), {last});
  s.ops[sink].reads = {box(1)};
  s.ops[sink].label.path = {own(0, 1)};
  return s;
}

TEST(Orders, FindsTheOneBadOrderThatChanceDoesNot) {
  Small s = lateLanding(40, true);
  for (uint64_t seed = 1; seed <= 500; ++seed)
    ASSERT_TRUE(run(s, {.seed = seed, .runs = 1})) << seed;
  Orders orders = tryAllOrders(s, {.runs = 1, .stopAtWrong = false});
  EXPECT_TRUE(orders.all) << orders.str();
  EXPECT_NE(orders.wrong, "") << orders.str();
  EXPECT_GT(orders.seen.size(), 1u);
  EXPECT_EQ(prove(s).verdict, Verdict::Race);
}

TEST(Orders, CountsARaceWithoutEffectAsRight) {
  Small s = lateLanding(3, false);
  Orders orders = tryAllOrders(s, {.runs = 1});
  EXPECT_TRUE(orders.right()) << orders.str();
  EXPECT_GT(orders.races, 0);
  EXPECT_GT(orders.tried, 1);
  EXPECT_EQ(prove(s).verdict, Verdict::Race);
}

TEST(Orders, LimitsAreSaid) {
  Orders orders = tryAllOrders(lateLanding(3, false), {.runs = 1, .limit = 1});
  EXPECT_FALSE(orders.all);
  EXPECT_FALSE(orders.right());
}

TEST(Orders, KnowsWhatDepthAQueueNeeds) {
  ExampleRef s = handoffAllGather(3);
  EXPECT_TRUE(tryAllOrders(*s, {.depth = s->depth}).right());
  EXPECT_TRUE(tryAllOrders(*s, {.depth = *s->depth - 1}).hangs);
  EXPECT_TRUE(tryAllOrders(*s).right());
}

/// A few ops of two ranks, some ordered and some not. `counted`: counters that both ranks raise;
/// else puts that tell of their landing, and flushes.
Small randomProgram(uint64_t seed, bool counted) {
  using namespace small;
  std::mt19937_64 random(seed);
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  Small s = empty(2);
  s.rxVisible = pick(4) == 0;
  s.windows = {window("a", Window::Role::Scratch, 2, {Dim{std::nullopt, 2}}),
               window("b", Window::Role::Scratch, 2, {Dim{std::nullopt, 2}})};
  std::vector<Dim> dims{Dim{std::nullopt, 2}};
  if (!counted)
    dims.push_back(Dim{0u, 2});
  s.slots = {{"s", dims, counted ? 8 : 1}};
  std::vector<uint8_t> ranks; // which rank has an op: a bit each
  auto slot = [&](size_t i, Peer to, int64_t shift) {
    Indices path{at(pick(2))};
    if (!counted)
      path.push_back(own(0, shift));
    s.ops[i].slot = SlotRef{0, std::move(to), path, {}, -1};
  };
  auto place = [&](Peer to = {}) {
    return box(static_cast<unsigned>(pick(2)),
               pick(4) ? Indices{at(pick(2))} : Indices{}, std::move(to));
  };
  int64_t ops = 3 + pick(4);
  for (int64_t k = 0; k < ops; ++k) {
    std::vector<size_t> after;
    if (k && pick(2))
      after.push_back(static_cast<size_t>(pick(k)));
    bool put = !counted && pick(3) == 0;
    Lane lane = put ? nic() : sm(pick(2));
    constexpr OpKind kinds[] = {OpKind::Copy,    OpKind::Copy,   OpKind::Compute, OpKind::Compute,
                                OpKind::Compute, OpKind::Signal, OpKind::Wait,    OpKind::Flush};
    OpKind kind = put ? OpKind::Copy : kinds[pick(counted ? 7 : 8)];
    size_t i = s.add(kind, lane, after);
    if (kind == OpKind::Compute)
      s.ops[i].writes = {place()};
    if (kind == OpKind::Copy) {
      auto cell = [&](Peer to = {}) {
        return box(static_cast<unsigned>(pick(2)), {at(pick(2))}, std::move(to));
      };
      s.ops[i].reads = {cell()};
      s.ops[i].writes = {cell(put || pick(2) ? peer(1) : Peer())};
      if (put && pick(3))
        slot(i, peer(1), 0);
    }
    if (kind == OpKind::Signal)
      slot(i, pick(2) ? peer(1) : Peer(), 0);
    if (kind == OpKind::Wait) {
      slot(i, {}, pick(2));
      s.ops[i].k = 1 + (counted && pick(3) == 0);
    }
    ranks.push_back(static_cast<uint8_t>(1 + pick(3)));
  }
  s.has = [ranks](int64_t rank, size_t op) { return ranks[op] >> rank & 1; };
  // A token of an op that a rank has not: not waited for.
  for (size_t i = 0; i < s.ops.size(); ++i)
    std::erase_if(s.after[i], [&](size_t j) { return (ranks[i] & ~ranks[j]) != 0; });
  return s;
}

TEST(Orders, AgreesWithEveryOrderOneByOne) {
  int compared = 0, racy = 0, wrong = 0, hung = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Small s = randomProgram(seed, seed % 2);
    OrdersOptions options{.runs = 1, .limit = 20000, .stopAtWrong = false};
    Orders few = tryAllOrders(s, options);
    if (few.steps > 18)
      continue;
    Orders every = tryEveryOrder(s, options);
    if (!every.all)
      continue;
    ++compared;
    EXPECT_TRUE(few.all) << seed << ": " << few.str();
    EXPECT_EQ(few.hangs, every.hangs) << seed << ": " << few.str() << " / " << every.str();
    if (few.hangs) {
      ++hung;
      continue;
    }
    EXPECT_EQ(few.seen, every.seen) << seed << ": " << few.str() << " / " << every.str();
    EXPECT_EQ(few.wrong.empty(), every.wrong.empty()) << seed << ": " << few.str();
    racy += few.seen.size() > 1;
    wrong += !few.wrong.empty();
    // The prover says yes to nothing that has two outcomes.
    if (prove(s, {.runs = 1})) {
      EXPECT_TRUE(few.right() && few.seen.size() == 1) << seed << ": " << few.str();
      EXPECT_EQ(few.races, 0) << seed;
    }
  }
  EXPECT_GT(compared, 500);
  EXPECT_GT(racy, 50);
  EXPECT_GT(wrong, 20);
  EXPECT_GT(hung, 20);
  std::printf("%d programs, %d with several outcomes, %d wrong, %d hang\n", compared, racy, wrong,
              hung);
}

} // namespace
