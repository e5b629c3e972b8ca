//===- SwitchTest.cpp - Through a switch that multicasts and reduces -------------------===//
//
// The host does what a switch would by loads and stores, so that every result is compared to the
// bit: sums of floats where they are exact, as a switch adds in an order of its own.
//
//===----------------------------------------------------------------------===//
#include "Equivalence.h"

#include <gtest/gtest.h>

using namespace equivalence;

namespace {

/// GPUs behind a switch, whose links carry so many bytes a second.
GraphText behindSwitch(Grid grid, const std::string &rate = "100000",
                       const std::string &can = "multicast, reduces") {
  GraphText g(std::move(grid));
  std::string nodes, links;
  for (int64_t i = 0; i < g.ranks(); ++i) {
    std::string gpu = "\"gpu" + std::to_string(i) + "\"";
    nodes += "{name = " + gpu +
             ", kind = \"gpu\", gpu = \"H100-SXM\", rank = " + std::to_string(i) + "}, ";
    links += (i ? ", {from = " : "{from = ") + gpu +
             ", to = \"switch\", kind = \"nvlink\", count = 1, raw = \"" + rate +
             " B/s\", payload = \"" + rate + " B/s\", both_ways}";
  }
  g.topology = "{nodes = [" + nodes + "{name = \"switch\", kind = \"nvswitch\"" +
               (can.empty() ? "" : ", " + can) + "}], links = [" + links + "]}";
  g.algorithm = "switch";
  return g;
}

/// Floats from -7 to 7, so that every sum of them is exact.
Tensor smallNumbers(GraphText &g, const Shape &shape, const std::string &element) {
  if (element[0] == 'i' || element[0] == 'u')
    return g.argument(shape, element);
  Tensor any = g.argument(shape, "i8"), out = g.empty(shape, element);
  std::string dims, loops;
  for (size_t i = 0; i < shape.size(); ++i) {
    dims += (i ? ", d" : "d") + std::to_string(i);
    loops += i ? ", \"parallel\"" : "\"parallel\"";
  }
  std::string map = "affine_map<(" + dims + ") -> (" + dims + ")>";
  return g.op("linalg.generic {indexing_maps = [" + map + ", " + map + "], iterator_types = [" +
                  loops + "]} ins(" + any.name + " : " + any.type() + ") outs(" + out.name + " : " +
                  out.type() + ") {\n  ^bb0(%in: i8, %out: " + element +
                  "):\n    %n = arith.constant 8 : i8\n    %s = arith.remsi %in, %n : i8\n    %f = "
                  "arith.sitofp %s : i8 to " +
                  element + "\n    linalg.yield %f : " + element + "\n  } -> " + out.type(),
              shape, element);
}

struct Case {
  const char *element, *kind, *accumulate;
};
/// All that a switch combines.
const Case combined[] = {{"f32", "sum", "f32"},   {"f64", "sum", "f64"},   {"f16", "sum", "f16"},
                         {"f16", "sum", "f32"},   {"bf16", "sum", "bf16"}, {"bf16", "sum", "f32"},
                         {"i32", "sum", "i32"},   {"i32", "min", "i32"},   {"i32", "max", "i32"},
                         {"i64", "sum", "i64"},   {"ui32", "max", "ui32"}, {"ui32", "sum", "ui32"},
                         {"ui64", "min", "ui64"}, {"ui64", "sum", "ui64"}, {"i64", "max", "i64"}};

std::string reduction(const Case &c) {
  return std::string(c.kind) + " accumulate " + c.accumulate + " order any";
}

/// Each kind of collective at sizes of 0, 1 and odd ones, one behind the other.
void expectAll(int64_t n, const std::string &rate, const Options &options = {}) {
  GraphText g = behindSwitch({{"x", n}}, rate);
  for (const Case &c : combined)
    for (const Shape &shape : {Shape{0}, Shape{1}, Shape{3, 7 + n}})
      g.result(g.allReduce(smallNumbers(g, shape, c.element), reduction(c), {"x"}));
  for (const Case &c : combined)
    for (int64_t rows : {int64_t(0), int64_t(1), 2 * n + 1})
      g.result(g.reduceScatter(smallNumbers(g, {rows, 2}, c.element), 0, reduction(c), {"x"}));
  g.result(g.reduceScatter(smallNumbers(g, {3, 2 * n - 1}, "f32"), 1,
                           "sum accumulate f32 order any", {"x"}));
  for (const char *element : {"f32", "f64", "bf16", "f16", "i8", "ui16", "f8E4M3FN", "i64"})
    for (int64_t rows : {int64_t(0), int64_t(1), 3 * n - 1})
      g.result(g.allGather(g.argument({ceilDiv(rows, n), 4}, element), 0, rows, {"x"}));
  g.result(g.allGather(g.argument({3, 1, 4}, "i32"), 1, n, {"x"}));
  for (int64_t root = 0; root < n; root += 2)
    g.result(g.broadcast(g.argument({root, 5}, "i8"), root, {"x"}));
  g.result(g.broadcast(g.argument({}, "bf16"), n - 1, {"x"}));
  expectEqual(g, options, {"shm"});
}

std::string why(const GraphText &g, const std::string &transport = "shm") {
  return refusal(g.str(), transport);
}

} // namespace

// In two shots, as the links are slow.
TEST(Switch, InTwoShots) {
  for (int64_t n : {1, 2, 3})
    expectAll(n, "1000");
}
TEST(SlowSwitch, InTwoShots) {
  for (int64_t n : {5, 8})
    expectAll(n, "1000");
}

// In one, as nothing is soon over that is so quick.
TEST(Switch, InOneShot) {
  for (int64_t n : {1, 2, 3, 5}) {
    GraphText g = behindSwitch({{"x", n}}, "450000000000");
    for (const Case &c : combined)
      for (const Shape &shape : {Shape{0}, Shape{1}, Shape{3, 7}})
        g.result(g.allReduce(smallNumbers(g, shape, c.element), reduction(c), {"x"}));
    expectEqual(g, {}, {"shm"});
  }
}

// Groups along one axis of two, along both, and behind switches of their own.
TEST(Switch, Groups) {
  GraphText g = behindSwitch({{"y", 2}, {"x", 3}}, "1000");
  Tensor a = smallNumbers(g, {5}, "f32");
  for (const Axes &axes : {Axes{"x"}, Axes{"y"}, Axes{"y", "x"}, Axes{"x", "y"}}) {
    a = g.allReduce(a, "sum accumulate f32 order any", axes);
    g.result(a);
    g.result(g.allGather(g.argument({2, 3}, "i32"), 0, 2 * g.groupSize(axes), axes));
    g.result(g.reduceScatter(g.argument({g.groupSize(axes), 3}, "i32"), 0,
                             "max accumulate i32 order any", axes));
    g.result(g.broadcast(g.argument({3}, "f32"), g.groupSize(axes) - 1, axes));
  }
  expectEqual(g, {}, {"shm"});
}

// Started, in place and one from the other.
TEST(Switch, SeveralInOneGraph) {
  GraphText g = behindSwitch({{"x", 3}}, "1000");
  Tensor a = g.argument({40}, "i32", true), b = g.argument({5}, "ui64");
  g.async = true;
  Tensor first = g.allReduce(a, "sum accumulate i32 order any", {"x"});
  g.async = true;
  Tensor second = g.allReduce(b, "max accumulate ui64 order any", {"x"});
  Tensor sum = g.await(first);
  g.result(g.allGather(sum, 0, 120, {"x"}));
  g.result(g.allReduce(sum, "min accumulate i32 order any", {"x"}));
  g.result(g.await(second));
  expectEqual(g, {}, {"shm"});
}

TEST(Switch, Refusals) {
  auto sum = [](GraphText g, const std::string &element, const std::string &reduction) {
    g.result(g.allReduce(g.argument({4}, element), reduction, {"x"}));
    return why(g);
  };
  auto expect = [](const std::string &text, const std::string &part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  GraphText g = behindSwitch({{"x", 3}});
  expect(sum(g, "f32", "sum accumulate f32 order rank"),
         "it reduces in any order, not in rank order");
  expect(sum(g, "f32", "max accumulate f32 order any"), "a switch has no max of f32");
  expect(sum(g, "f16", "sum accumulate f64 order any"),
         "a switch has no sum of f16 accumulated in");
  expect(sum(g, "i8", "sum accumulate i8 order any"), "a switch has no sum of i8");
  expect(sum(g, "i32", "prod accumulate i32 order any"), "a switch has no prod of i32");
  expect(sum(g, "i32", "avg accumulate i32 order any"), "a switch neither scales nor divides");
  GraphText odd = g;
  odd.result(odd.allGather(odd.argument({3}, "i8"), 0, 9, {"x"}));
  expect(why(odd), "its shards do not begin at multiples of 4 bytes (network N7)");
  GraphText exchange = g;
  exchange.result(exchange.allToAll(exchange.argument({3}, "f32"), 0, 0, {"x"}));
  expect(why(exchange), "a switch carries no all_to_all");
  GraphText puts = g;
  puts.result(puts.allReduce(puts.argument({4}, "i32"), "sum accumulate i32 order any", {"x"}));
  expect(why(puts, "tcp"), "a switch is reached by load and store");
  for (const char *can : {"", "multicast", "reduces"})
    expect(sum(behindSwitch({{"x", 3}}, "1000", can), "f32", "sum accumulate f32 order any"),
           "no switch that multicasts and reduces has all members of rank 0's group");
  GraphText none = g;
  none.topology.clear();
  expect(sum(none, "f32", "sum accumulate f32 order any"), "no switch that multicasts and reduces");
  GraphText listed = g;
  Axes pairs;
  pairs.groups = {{0, 2}, {1}};
  listed.result(
      listed.allReduce(listed.argument({4}, "i32"), "sum accumulate i32 order any", pairs));
  expect(why(listed), "no axes span its groups");
}
