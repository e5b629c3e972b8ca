//===- PlanTest.cpp - Known cases that need a schedule, and no run --------===//
//
// What others' schedules got wrong, asked of the compiled and proved schedule itself. Which case is
// which is in test/CASES.md.
//
//===----------------------------------------------------------------------===//
#include "Equivalence.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace equivalence;
namespace machine = mlir::ctran::machine;

namespace {

void expectProved(const GraphText &g,
                  const std::function<void(mlir::ncclx::Compilation &)> &look = {}) {
  for (const char *transport : {"shm", "tcp"})
    EXPECT_EQ(inspect(g, transport, look), "") << "over " << transport << " of\n" << g.str();
}

/// A message of a round: the blocks [first, first + count) of rank `from`'s memory, and where they
/// land at rank `to`.
struct Message {
  int64_t from, to, source, target, count;
};

/// All copies to peers, of each rank in the order in which it issues them.
std::vector<std::vector<Message>> messages(const machine::Schedule &schedule) {
  std::vector<std::vector<Message>> out;
  for (int64_t rank = 0; rank < schedule.grid.numRanks(); ++rank) {
    std::vector<int64_t> point = schedule.grid.pointOf(rank);
    auto stream = schedule.open(&point, 0);
    auto index = [&](const machine::Index &i) {
      return i.own ? machine::wrapped(point[i.axis] + i.value, schedule.grid.sizes[i.axis])
                   : i.value;
    };
    std::vector<Message> &all = out.emplace_back();
    machine::Op op;
    while (stream->next(op) == machine::OpStream::Result::Op) {
      if (op.kind != machine::OpKind::Copy || !op.writes[0].peer.remote)
        continue;
      std::vector<int64_t> peer = point;
      for (size_t axis = 0; axis < peer.size(); ++axis)
        peer[axis] =
            machine::wrapped(peer[axis] + op.writes[0].peer.shift[axis], schedule.grid.sizes[axis]);
      all.push_back({rank, schedule.grid.rankOf(peer), index(op.reads[0].first),
                     index(op.writes[0].first), op.reads[0].count});
      EXPECT_EQ(op.reads[0].count, op.writes[0].count);
    }
  }
  return out;
}

// all_gather by rounds, for 1 to 64 members. Round s moves min(2^s, n - 2^s) blocks; nobody gets
// one that it has; what a rank sends is what its peer lacks; after it everybody has a block of
// min(2^(s+1), n). One member: nothing is sent; two: one round.
void expectRounds(int64_t n) {
  GraphText g({{"x", n}});
  g.algorithm = "bruck";
  g.result(g.allGather(g.argument({1}, "f32"), 0, n, {"x"}));
  std::string wrong = inspect(g, "shm", [&](mlir::ncclx::Compilation &c) {
    std::vector<std::vector<Message>> all = messages(c.machine());
    std::vector<std::set<int64_t>> has(n);
    for (int64_t rank = 0; rank < n; ++rank)
      has[rank] = {rank};
    size_t rounds = 0;
    for (int64_t d = 1; d < n; d *= 2, ++rounds) {
      std::vector<std::set<int64_t>> before = has;
      for (int64_t rank = 0; rank < n; ++rank) {
        ASSERT_GT(all[rank].size(), rounds) << n;
        const Message &m = all[rank][rounds];
        EXPECT_EQ(m.count, std::min(d, n - d)) << n;
        EXPECT_EQ(m.to, (rank - d + n) % n) << n;
        for (int64_t i = 0; i < m.count; ++i) {
          int64_t block = (rank + m.source + i) % n;
          EXPECT_TRUE(before[rank].count(block)) << n;
          EXPECT_EQ((m.to + m.target + i) % n, block) << n;
          EXPECT_TRUE(has[m.to].insert(block).second) << n << ": twice";
        }
      }
      for (int64_t rank = 0; rank < n; ++rank) {
        EXPECT_EQ(int64_t(has[rank].size()), std::min(2 * d, n));
        for (int64_t i = 0; i < std::min(2 * d, n); ++i)
          EXPECT_TRUE(has[rank].count((rank + i) % n)) << n;
      }
    }
    for (const auto &sent : all)
      EXPECT_EQ(sent.size(), rounds) << n;
  });
  EXPECT_EQ(wrong, "") << n;
}

TEST(Plan, RoundsOfAnAllGather) {
  for (int64_t n = 1; n <= 64; ++n)
    expectRounds(n);
}

// The messages of all rounds: (from, to, blocks) with how often each is sent.
std::map<std::vector<int64_t>, int64_t> traffic(int64_t n, const std::string &kind,
                                                const std::string &rounds) {
  GraphText g({{"x", n}});
  g.algorithm = "bruck";
  g.pipeline = rounds;
  constexpr int64_t rows = 5; // of a block
  if (kind == "all_gather")
    g.result(g.allGather(g.argument({rows}, "f32"), 0, rows * n, {"x"}));
  else if (kind == "all_to_all")
    g.result(g.allToAll(g.argument({4, rows * n}, "f32"), 1, 1, {"x"}));
  else if (kind == "reduce_scatter")
    g.result(
        g.reduceScatter(g.argument({rows * n}, "f32"), 0, "sum accumulate f32 order any", {"x"}));
  else // granules of 16 bytes
    g.result(g.allReduce(g.argument({rows * n * 4}, "f32"), "sum accumulate f32 order any", {"x"}));
  std::map<std::vector<int64_t>, int64_t> times;
  std::string wrong = inspect(g, "shm", [&](mlir::ncclx::Compilation &c) {
    for (const std::vector<Message> &sent : messages(c.machine()))
      for (const Message &m : sent)
        ++times[{m.from, m.to, m.source, m.target, m.count}];
  });
  EXPECT_EQ(wrong, "") << kind << " of " << n << " " << rounds;
  return times;
}

// However deep rounds stream, and in however many chunks: the same blocks go from and to the same
// members, each once for each chunk.
TEST(Plan, StreamedRoundsMoveTheSameBlocks) {
  for (int64_t n : {1, 2, 3, 5, 8, 13, 32})
    for (const char *kind : {"all_gather", "reduce_scatter", "all_reduce", "all_to_all"}) {
      std::map<std::vector<int64_t>, int64_t> whole = traffic(n, kind, "chunks = 1");
      for (int64_t chunks : {2, 5, 9})
        for (int64_t depth : {0, 1, 2, 64}) {
          if (n > 8 && (chunks == 9 || (depth == 2) != (chunks == 2)))
            continue; // it takes long
          std::map<std::vector<int64_t>, int64_t> all = whole;
          for (auto &[message, times] : all)
            times *= std::min<int64_t>(chunks, 5);
          EXPECT_EQ(
              traffic(n, kind,
                      "chunks = " + std::to_string(chunks) + ", depth = " + std::to_string(depth)),
              all)
              << kind << " of " << n << ", " << chunks << " chunks, depth " << depth;
        }
    }
}

// reduce_scatter by halving: what arrives in different rounds lies in different places.
void expectApart(int64_t n) {
  GraphText g({{"x", n}});
  g.algorithm = "bruck";
  g.result(g.reduceScatter(g.argument({n}, "f32"), 0, "sum accumulate f32 order any", {"x"}));
  std::string wrong = inspect(g, "shm", [&](mlir::ncclx::Compilation &c) {
    for (const std::vector<Message> &sent : messages(c.machine())) {
      std::set<int64_t> places;
      for (const Message &m : sent)
        for (int64_t i = 0; i < m.count; ++i) {
          EXPECT_TRUE(places.insert(m.target + i).second) << n;
          EXPECT_LT(m.target + i, n);
        }
      EXPECT_EQ(int64_t(places.size()), n - 1);
    }
  });
  EXPECT_EQ(wrong, "") << n;
}

TEST(Plan, RoundsOfAReduceScatterLandApart) {
  for (int64_t n : {2, 3, 4, 8, 12, 16, 32})
    expectApart(n);
}

// A ring of 6 and of 24, which are no powers of two: each step to the neighbour, n - 1 of them, and
// every block once.
void expectRing(int64_t n) {
  GraphText g({{"x", n}});
  g.algorithm = "ring";
  g.result(g.allGather(g.argument({5}, "f32"), 0, 5 * n, {"x"}));
  std::string wrong = inspect(g, "tcp", [&](mlir::ncclx::Compilation &c) {
    for (const std::vector<Message> &sent : messages(c.machine())) {
      EXPECT_EQ(int64_t(sent.size()), n - 1);
      for (const Message &m : sent)
        EXPECT_TRUE(m.to == (m.from + 1) % n || m.to == (m.from + n - 1) % n);
    }
  });
  EXPECT_EQ(wrong, "") << n;
}

TEST(Plan, RingsOfSixAndTwentyFour) {
  expectRing(6);
  expectRing(24);
}

// A tree from and to every root of 1 to 16 members, and of some more (of 9 and of 17 to 19 members
// some have no partner in the first round, but in the third).
TEST(Plan, TreesOfEveryRoot) {
  for (int64_t n = 1; n <= 21; ++n) {
    GraphText g({{"x", n}});
    g.algorithm = "binomial";
    for (int64_t root = 0; root < n; root += n > 16 ? n - 1 : 1) {
      g.result(g.broadcast(g.argument({3}, "f32"), root, {"x"}));
      g.result(g.reduce(g.argument({3}, "f32"), root, "sum accumulate f32 order any", {"x"}));
    }
    EXPECT_EQ(inspect(g, n % 2 ? "shm" : "tcp"), "") << n;
  }
}

// The same of many members, powers of two and not.
TEST(SlowPlan, RoundsOfManyMembers) {
  for (int64_t n : {255, 512})
    expectRounds(n);
  for (int64_t n : {100, 127, 128}) {
    expectRounds(n);
    expectApart(n);
    expectRing(n);
    GraphText g({{"x", n}});
    g.algorithm = "binomial";
    for (int64_t root : {int64_t(0), n / 2 + 1, n - 1}) {
      g.result(g.broadcast(g.argument({3}, "f32"), root, {"x"}));
      g.result(g.reduce(g.argument({3}, "f32"), root, "sum accumulate f32 order any", {"x"}));
    }
    EXPECT_EQ(inspect(g, "tcp"), "") << n;
  }
}

// Sizes about 2^31 and 2^32, of one buffer and of n of them together, and shards that are no
// multiple of 16 bytes: proved, and the windows have all their bytes.
TEST(Plan, SizesBeyondThirtyTwoBits) {
  const int64_t giant = int64_t(1) << 31;
  auto expectBytes = [&](const GraphText &g, uint64_t in, uint64_t out) {
    expectProved(g, [&](mlir::ncclx::Compilation &c) {
      ASSERT_TRUE(succeeded(c.lowerForHost()));
      EXPECT_EQ(c.plan().windows[c.plan().inputs()[0]].bytes, in);
      EXPECT_EQ(c.plan().windows[c.plan().outputs()[0]].bytes, out);
    });
  };
  for (int64_t size : {giant - 1, giant, giant + 1, 2 * giant + 4}) {
    GraphText g({{"x", 3}});
    g.result(g.broadcast(g.argument({size}, "i8"), 1, {"x"}));
    expectBytes(g, size, size);
    for (const char *algorithm : {"direct", "ring", "bruck"}) {
      GraphText h({{"x", 2}});
      h.algorithm = algorithm;
      h.result(h.allReduce(h.argument({size}, "bf16"), "max accumulate bf16 order any", {"x"}));
      expectBytes(h, 2 * size, 2 * size);
    }
  }
  for (const char *algorithm : {"direct", "ring", "bruck"}) {
    for (int64_t each : {giant / 4 + 1, giant / 2 - 1, giant / 2 + 1}) { // the last passes 2^32
      GraphText gathers({{"x", 4}});
      gathers.algorithm = algorithm;
      gathers.result(gathers.allGather(gathers.argument({each}, "i8"), 0, 4 * each, {"x"}));
      expectBytes(gathers, each, 4 * each);
    }
    GraphText scatters({{"x", 2}}), exchanges({{"x", 2}});
    scatters.algorithm = exchanges.algorithm = algorithm;
    scatters.result(scatters.reduceScatter(scatters.argument({2 * giant + 4}, "i8"), 0,
                                           "max accumulate i8 order any", {"x"}));
    expectBytes(scatters, 2 * giant + 4, giant + 2);
    exchanges.result(exchanges.allToAll(exchanges.argument({giant / 4}, "f64"), 0, 0, {"x"}));
    expectBytes(exchanges, 2 * giant, 2 * giant);
    GraphText g({{"x", 5}});
    g.algorithm = algorithm;
    g.result(g.allReduce(g.argument({16'777'728}, "f32"), "sum accumulate f32 order any", {"x"}));
    expectBytes(g, 4 * 16'777'728, 4 * 16'777'728);
    GraphText h({{"x", 3}});
    h.algorithm = algorithm;
    h.result(
        h.reduceScatter(h.argument({33'554'176}, "f32"), 0, "avg accumulate f32 order any", {"x"}));
    expectBytes(h, 4 * 33'554'176, 4 * ceilDiv(33'554'176, 3));
  }
  GraphText rest({{"x", 3}});
  Tensor a = rest.argument({2 * giant + 4}, "i8"), odd = rest.argument({1'073'741'819 + 5}, "i8");
  rest.result(rest.reduce(a, 1, "max accumulate i8 order any", {"x"}));
  rest.result(rest.permute(a, "shift 1", {"x"}));
  rest.result(rest.gather(a, 0, 3 * (2 * giant + 4), 2, {"x"}));
  rest.result(rest.scatter(a, 0, 1, {"x"}));
  rest.result(rest.broadcast(rest.slice(odd, 0, 5, 1'073'741'819), 1, {"x"}));
  expectProved(rest);
  GraphText g({{"x", 2}});
  g.result(
      g.allToAllV(g.argument({2 * giant}, "i8"), 0, {{giant, giant / 2}, {giant, giant}}, {"x"}));
  expectBytes(g, 2 * giant, 2 * giant);
}

// Machines of nodes and devices of all shapes: what is not refused is proved.
TEST(Plan, NodesTimesDevices) {
  const char *sum = "sum accumulate f32 order any";
  for (auto [nodes, devices] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {1, 2}, {1, 3}, {1, 7}, {2, 4}, {3, 5}}) {
    GraphText g({{"node", nodes}, {"device", devices}});
    for (const Axes &axes : std::vector<Axes>{{"device"}, {"node"}, {"node", "device"}}) {
      int64_t n = g.groupSize(axes);
      Tensor a = g.argument({7, 3}, "f32");
      g.result(g.allGather(a, 0, 7 * n - n / 2, axes));
      g.result(g.reduceScatter(a, 0, sum, axes));
      g.result(g.allReduce(a, sum, axes));
      g.result(g.allToAll(g.argument({2 * n, 3}, "f32"), 0, 0, axes));
      g.result(g.broadcast(a, n - 1, axes));
      g.result(g.reduce(a, n / 2, sum, axes));
      g.result(g.gather(a, 0, 7 * n, 0, axes));
      g.result(g.scatter(a, 0, n - 1, axes));
    }
    EXPECT_EQ(inspect(g, devices % 2 ? "shm" : "tcp"), "") << g.str();
    if (nodes > 1)
      EXPECT_EQ(lowered(g.str(), nodes, nodes * devices), "") << g.str();
  }
}

/// The collectives in the order in which a rank first issues an op of each.
std::vector<int> orderOf(const machine::Schedule &schedule, int64_t rank) {
  std::vector<int64_t> point = schedule.grid.pointOf(rank);
  auto stream = schedule.open(&point, 0);
  std::vector<int> order;
  machine::Op op;
  while (stream->next(op) == machine::OpStream::Result::Op)
    if (op.collective >= 0 && std::find(order.begin(), order.end(), op.collective) == order.end())
      order.push_back(op.collective);
  return order;
}

// Two groups that share two ranks, both in flight: one order of collectives on all ranks.
TEST(Plan, GroupsThatShareRanksHaveOneOrder) {
  GraphText g({{"x", 2}, {"y", 2}, {"z", 2}});
  Tensor a = g.argument({6}, "f32");
  g.async = true;
  Tensor first = g.allGather(a, 0, 24, {"x", "y"});
  g.async = true;
  Tensor second = g.allReduce(a, "sum accumulate f32 order any", {"y", "z"});
  Tensor third = g.allToAll(g.argument({4}, "f32"), 0, 0, {"z", "x"});
  g.result(g.await(second));
  g.result(g.await(first));
  g.result(third);
  expectProved(g, [](mlir::ncclx::Compilation &c) {
    for (int64_t rank = 0; rank < 8; ++rank)
      EXPECT_EQ(orderOf(c.machine(), rank), (std::vector<int>{0, 1, 2}));
  });
}

} // namespace
