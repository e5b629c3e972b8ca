//===- KnownCasesTest.cpp - Sizes and shapes that others got wrong --------===//
//
// Run for real and compared bit by bit. Which case is which is in test/CASES.md.
//
//===----------------------------------------------------------------------===//
#include "Equivalence.h"

#include <gtest/gtest.h>
#include <set>

using namespace equivalence;

namespace {

std::string reduction(const std::string &kind, const std::string &type) {
  return kind + " accumulate " + type + " order any";
}
const std::string sumF32 = reduction("sum", "f32");
const std::vector<std::string> shm{"shm"};

/// Of what a user has, the part behind `begin`.
Tensor behind(GraphText &g, int64_t begin, int64_t size, const std::string &element) {
  return g.slice(g.argument({begin + size}, element), 0, begin, size);
}

TEST(KnownCases, AllGatherCountsAndOffsets) {
  GraphText g({{"x", 2}});
  for (int64_t count : {1, 8192, 1'048'567, 1'048'576}) {
    g.algorithm = count % 2 ? "ring" : "direct";
    g.result(g.allGather(g.argument({count}, "f32"), 0, 2 * count, {"x"}));
    g.result(g.allGather(behind(g, 64, count, "f32"), 0, 2 * count, {"x"})); // at byte 256
  }
  expectEqual(g, {.runs = 2, .adversarial = 0}, shm);
}

// Twenty runs without a barrier between them, each with inputs of its own: no run overwrites what
// another still reads.
TEST(KnownCases, BackToBackRuns) {
  for (const char *algorithm : {"direct", "ring", "bruck"}) {
    GraphText g({{"x", 3}});
    g.algorithm = algorithm;
    Tensor a = g.argument({37}, "f32");
    Tensor gathered = g.allGather(a, 0, 111, {"x"});
    Tensor sum = g.allReduce(gathered, sumF32, {"x"});
    g.result(g.allGather(g.elementwise("add", a, a), 0, 111, {"x"}));
    g.result(g.allReduce(g.elementwise("mul", sum, gathered), sumF32, {"x"}));
    g.result(gathered);
    expectEqual(g, {.runs = 20, .adversarial = 1});
  }
}

TEST(KnownCases, AllReduceCounts) {
  for (const char *algorithm : {"direct", "ring", "bruck"}) {
    GraphText g({{"x", 3}});
    g.algorithm = algorithm;
    for (const char *element : {"ui64", "f32"})
      for (int64_t count : {1, 2, 3, 8, 9, 16, 17, 32, 1024, 8192, 8195})
        g.result(g.allReduce(g.argument({count}, element), reduction("sum", element), {"x"}));
    for (const char *kind : {"prod", "max", "min", "avg"})
      g.result(g.allReduce(g.argument({8195}, "f32"), reduction(kind, "f32"), {"x"}));
    g.result(g.allReduce(g.argument({16}, "f32"), reduction("avg", "f32"), {"x"}));
    expectEqual(g, {.runs = 2, .adversarial = 0}, shm);
  }
  GraphText g({{"x", 3}}); // and one that is large
  g.algorithm = "ring";
  g.result(g.allReduce(g.argument({1'048'593}, "f32"), reduction("avg", "f32"), {"x"}));
  expectEqual(g, {.runs = 1, .adversarial = 0}, {"tcp"});
}

TEST(KnownCases, ReduceScatterCounts) {
  for (const char *algorithm : {"direct", "ring", "bruck"})
    for (int64_t n : {1, 3}) {
      GraphText g({{"x", n}});
      g.algorithm = algorithm;
      for (const char *kind : {"sum", "prod", "max", "min", "avg"})
        for (int64_t count : {0, 8192})
          g.result(g.reduceScatter(g.argument({count}, "f32"), 0, reduction(kind, "f32"), {"x"}));
      if (n == 3)
        g.result(g.reduceScatter(g.argument({1'048'567}, "f32"), 0, sumF32, {"x"}));
      expectEqual(g, {.runs = 2, .adversarial = 0}, shm);
    }
}

TEST(KnownCases, AllToAllCounts) {
  GraphText g({{"x", 3}});
  for (const char *element : {"i8", "f16", "i32", "f64"})
    for (int64_t each : {2, 8192, 8233, 9991}) {
      g.algorithm = each % 2 ? "bruck" : "direct";
      g.result(g.allToAll(g.argument({3 * each}, element), 0, 0, {"x"}));
    }
  g.algorithm = "";
  auto exchange = [&](const std::vector<Shape> &counts) {
    int64_t most = 0;
    for (const Shape &row : counts)
      most = std::max(most, row[0] + row[1] + row[2]);
    g.result(g.allToAllV(g.argument({most, 5}, "f32"), 0, counts, {"x"}));
  };
  exchange({{0, 41, 103}, {60, 0, 192}, {41, 41, 0}}); // nothing for oneself
  exchange({{0, 0, 0}, {7, 3, 1}, {5, 0, 2}});         // who sends nothing gets something
  exchange({{8192, 1, 0}, {0, 0, 8192}, {0, 9, 0}});
  expectEqual(g, {.runs = 2, .adversarial = 0});
}

// Counts that only the run tells: of every width, along each dimension and several axes, none at
// all, in flight, on views, and one tensor of sizes for two exchanges that is written again.
TEST(KnownCases, AllToAllSizesAtRunTime) {
  GraphText g({{"y", 2}, {"x", 3}});
  for (auto [element, number] : {std::pair("i8", "i64"), {"bf16", "i32"}, {"f64", "i64"}}) {
    Tensor along = g.sizes(3, 7, number);
    g.result(g.allToAllSized(g.argument({21, 5}, element), 0, along, {"x"}));
    g.async = true;
    Tensor future = g.allToAllSized(g.argument({2, 21, 2}, element), 1, along, {"x"});
    Tensor changed = g.elementwise("add", along, along, along);
    g.result(g.allToAll(changed, 0, 0, {"x"}));
    g.result(g.await(future));
    Tensor both = g.slice(g.sizes(9, 4, number), 0, 2, 6);
    g.result(g.allToAllSized(g.argument({3, 24}, element), 1, both, {"y", "x"}));
    g.into = g.slice(g.argument({12, 4}, element, /*mayChange=*/true), 0, 3, 8);
    g.result(g.allToAllSized(g.argument({8, 4}, element), 0, g.sizes(2, 4, number), {"y"}));
  }
  g.result(g.allToAllSized(g.argument({3, 4}, "f32"), 0, g.sizes(3, 0, "i32"), {"x"}));
  g.result(g.allToAllSized(g.argument({0, 4}, "f32"), 0, g.sizes(3, 0, "i32"), {"x"}));
  g.result(g.allToAllSized(g.argument({24'000}, "i64"), 0, g.sizes(3, 8000, "i32"), {"x"}));
  expectEqual(g, {.runs = 4, .adversarial = 2});
}

// What the runtime does then is Named.ASizeOutOfRangeEndsTheJob.
TEST(KnownCases, TheReferenceRefusesASizeAboveTheMaximum) {
  GraphText g({{"x", 3}});
  // Member 1 has them, the others zeros.
  Tensor many = g.op("arith.constant dense<[2, 3, 0]> : tensor<3xi64>", {3}, "i64");
  Tensor own = g.permute(many, "pairs [0 -> 1]", {"x"});
  g.result(g.allToAllSized(g.argument({6}, "f32"), 0, own, {"x"}));
  std::string wrong = check(g, "shm", {.runs = 1, .adversarial = 0});
  EXPECT_NE(wrong.find("member 1 sends 3 rows to member 1, expected 0 to 2"), std::string::npos)
      << wrong;
}

TEST(KnownCases, BroadcastCountsOffsetsAndRoots) {
  GraphText g({{"x", 3}});
  for (int64_t root = 0; root < 3; ++root)
    for (int64_t count : {1, 64, 1024, 4096, 65'536}) {
      g.algorithm = (count + root) % 2 ? "binomial" : "direct";
      g.result(g.broadcast(g.argument({count}, "f32"), root, {"x"}));
      g.result(g.broadcast(behind(g, 5, count, "i8"), root, {"x"})); // at byte 5
    }
  g.result(g.broadcast(behind(g, 5, 2'097'155, "i8"), 1, {"x"}));
  expectEqual(g, {.runs = 2, .adversarial = 0}, shm);
}

// Every collective of nothing, by every algorithm: it ends, and what lies around is untouched.
TEST(KnownCases, NothingOfEveryKind) {
  GraphText g({{"x", 3}});
  Tensor whole = g.elementwise("add", g.argument({6}, "f32"), g.argument({6}, "f32"));
  Tensor nothing = g.argument({0}, "f32");
  auto keep = [&](const Tensor &t) { whole = g.insert(t, whole, 0, 3); };
  for (const char *algorithm : {"direct", "ring", "bruck"}) {
    g.algorithm = algorithm;
    keep(g.allGather(nothing, 0, 0, {"x"}));
    keep(g.reduceScatter(nothing, 0, sumF32, {"x"}));
    keep(g.allReduce(nothing, sumF32, {"x"}));
    keep(g.allToAll(nothing, 0, 0, {"x"}));
    if (g.algorithm != "bruck")
      keep(g.permute(nothing, "shift 1", {"x"}));
  }
  for (const char *algorithm : {"direct", "binomial"}) {
    g.algorithm = algorithm;
    keep(g.broadcast(nothing, 1, {"x"}));
    keep(g.reduce(nothing, 1, sumF32, {"x"}));
    keep(g.gather(nothing, 0, 0, 2, {"x"}));
    keep(g.scatter(nothing, 0, 2, {"x"}));
  }
  g.algorithm = "direct";
  keep(g.allToAllV(nothing, 0, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, {"x"}));
  keep(g.permute(nothing, "pairs [0 -> 2]", {"x"}));
  g.result(whole);
  expectEqual(g);
}

// All sizes from one byte to 20, and about every power of four up to 64 KiB.
TEST(KnownCases, EverySmallSize) {
  std::set<int64_t> sizes;
  for (int64_t size = 1; size <= 20; ++size)
    sizes.insert(size);
  for (int64_t size = 64; size <= 65'536; size *= 4)
    sizes.insert({size - 1, size, size + 1});
  for (const char *algorithm : {"direct", "ring", "bruck", "eager"}) {
    GraphText g({{"x", 3}});
    g.algorithm = algorithm;
    for (int64_t size : sizes)
      g.result(g.allReduce(g.argument({size}, "i8"), reduction("sum", "i8"), {"x"}));
    expectEqual(g, {.runs = 1, .adversarial = 0}, shm);
  }
}

// Bytes just past multiples of 128, of every width of element, in the middle of what must stay. The
// runtime reduces 1,024 elements at a time: sizes about one and two of these, too.
TEST(KnownCases, TailsAmongOtherData) {
  GraphText g({{"x", 4}});
  const char *algorithms[] = {"direct", "ring", "bruck"};
  int64_t turn = 0;
  for (auto [element, width] :
       {std::pair<std::string, int64_t>{"i8", 1}, {"bf16", 2}, {"f32", 4}, {"f64", 8}}) {
    std::set<int64_t> counts{1023, 1025, 2049};
    for (int64_t tail : {1, 2, 4, 8, 16, 124})
      if (tail % width == 0)
        counts.insert((128 * 5 + tail) / width);
    for (int64_t count : counts) {
      g.algorithm = algorithms[turn++ % 3];
      Tensor around = g.argument({count + 9}, element, /*mayChange=*/true);
      g.into = g.slice(around, 0, 4, count);
      Tensor sum = g.allReduce(g.argument({count}, element), reduction("sum", element), {"x"});
      g.result(g.insert(sum, around, 0, 4));
    }
  }
  expectEqual(g, {.runs = 1, .adversarial = 0}, shm);
}

// One member alone: every collective, every kind of reduction, sizes about all that is cut.
TEST(KnownCases, OneMember) {
  for (const char *algorithm : {"direct", "ring", "bruck"}) {
    GraphText g({{"x", 1}});
    g.algorithm = algorithm;
    for (int64_t count : {1, 2, 3, 15, 17, 64, 1023, 1025, 4096, 4099}) {
      Tensor a = g.argument({count}, "f32");
      for (const char *kind : {"sum", "prod", "min", "max", "avg", "sum scale 0.3"})
        g.result(g.allReduce(a, reduction(kind, "f32"), {"x"}));
      g.result(g.reduceScatter(a, 0, reduction("avg", "f32"), {"x"}));
      g.result(g.allGather(a, 0, count, {"x"}));
      g.result(g.allToAll(a, 0, 0, {"x"}));
      if (g.algorithm == "bruck")
        continue;
      g.result(g.permute(a, "shift 1", {"x"}));
      if (g.algorithm == "ring")
        continue;
      g.result(g.broadcast(a, 0, {"x"}));
      g.result(g.reduce(a, 0, reduction("avg", "f32"), {"x"}));
      g.result(g.gather(a, 0, count, 0, {"x"}));
      g.result(g.scatter(a, 0, 0, {"x"}));
    }
    expectEqual(g, {.runs = 1, .adversarial = 0}, shm);
  }
}

// Gathered along and scattered along each dimension of three.
TEST(KnownCases, EveryDimension) {
  GraphText g({{"x", 3}});
  for (const char *algorithm : {"direct", "ring", "bruck"})
    for (int64_t dim = 0; dim < 3; ++dim) {
      g.algorithm = algorithm;
      Tensor a = g.argument({4, 5, 6}, "bf16");
      g.result(g.allGather(a, dim, 3 * a.shape[dim] - 2, {"x"}));
      g.result(g.reduceScatter(a, dim, reduction("sum", "bf16"), {"x"}));
    }
  expectEqual(g, {.runs = 2});
}

} // namespace
