//===- GraphTest.cpp - Collectives beside computation, in place, in flight -===//
#include "Equivalence.h"

#include <gtest/gtest.h>

using namespace equivalence;

namespace {

const char *sumF32 = "sum accumulate f32 order any";

void expectBoth(void (*build)(GraphText &), const Grid &grid) {
  for (const char *algorithm : {"direct", "ring"}) {
    GraphText g(grid);
    g.algorithm = algorithm;
    build(g);
    SCOPED_TRACE(algorithm);
    expectEqual(g);
  }
}

// The destination is the input: a value that is dead behind, one that is not, an argument.
TEST(EquivalenceGraph, InPlace) {
  expectBoth(
      [](GraphText &g) {
        Tensor a = g.argument({37, 3}, "f32"), w = g.argument({37, 3}, "f32", /*writable=*/true);
        Tensor dead = g.elementwise("add", a, a), live = g.elementwise("mul", a, a);
        g.into = dead;
        g.result(g.allReduce(dead, sumF32, {"x"}));
        g.into = live;
        g.result(g.allReduce(live, sumF32, {"x"}));
        g.result(live);
        g.into = w;
        g.result(g.allReduce(w, sumF32, {"x"}));
        Tensor moved = g.elementwise("sub", a, live);
        g.into = moved;
        g.result(g.permute(moved, "shift 1", {"x"}));
        Tensor square = g.slice(g.elementwise("max", a, live), 0, 0, 36);
        g.into = square;
        g.result(g.allToAll(square, 0, 0, {"x"}));
      },
      {{"x", 3}});
}

// In place with no copy to hide behind: the result is written where the input was read.
TEST(EquivalenceGraph, InPlaceAgainAndAgain) {
  expectBoth(
      [](GraphText &g) {
        Tensor t = g.elementwise("add", g.argument({91}, "f32"), g.argument({91}, "f32"));
        for (int i = 0; i < 4; ++i) {
          g.into = t;
          t = g.allReduce(t, sumF32, {"x"});
          t = g.elementwise("mul", t, t, t);
        }
        g.result(t);
      },
      {{"x", 5}});
}

// Into rows in the middle of a larger tensor, from rows and columns of another.
TEST(EquivalenceGraph, Slices) {
  expectBoth(
      [](GraphText &g) {
        Tensor big = g.argument({20, 7}, "f32"), a = g.argument({4, 7}, "f32");
        Tensor whole = g.elementwise("add", big, big);
        g.into = g.slice(whole, 0, 5, 11);
        Tensor gathered = g.allGather(a, 0, 11, {"x"});
        g.result(g.insert(gathered, whole, 0, 5));
        g.result(g.allGather(g.slice(big, 1, 2, 3), 1, 9, {"x"}));
        Tensor other = g.elementwise("mul", big, big);
        g.into = g.slice(other, 1, 3, 2);
        g.result(g.insert(g.reduceScatter(g.slice(big, 1, 1, 6), 1, sumF32, {"x"}), other, 1, 3));
        Tensor third = g.elementwise("sub", big, whole);
        g.into = g.slice(third, 0, 2, 4);
        g.result(g.insert(g.permute(a, "shift 2", {"x"}), third, 0, 2));
      },
      {{"x", 3}});
}

// A buffer goes round: written by one collective, read by the next, overwritten by a third.
TEST(EquivalenceGraph, SharedBuffers) {
  expectBoth(
      [](GraphText &g) {
        Tensor a = g.argument({5, 6}, "f32"), b = g.argument({20, 6}, "f32");
        Tensor one = g.allGather(a, 0, 20, {"x"});
        Tensor two = g.reduceScatter(one, 0, sumF32, {"x"});
        g.into = one;
        Tensor three = g.allGather(two, 0, 20, {"x"});
        Tensor four = g.elementwise("add", three, b, three);
        Tensor five = g.allToAll(four, 0, 1, {"x"});
        g.into = four;
        Tensor six = g.allReduce(b, sumF32, {"x"});
        g.result(six);
        g.result(g.permute(five, "shift 3", {"x"}));
        g.result(g.allReduce(six, "max accumulate f32 order any", {"x"}));
        g.result(two);
        g.result(a); // an argument, handed through
        g.result(two);
      },
      {{"x", 4}});
}

// Uneven shards all the way: what a scatter leaves open, a gather does not read.
TEST(EquivalenceGraph, PaddingStaysPadding) {
  expectBoth(
      [](GraphText &g) {
        Tensor a = g.argument({11, 3}, "f32");
        Tensor shard = g.reduceScatter(a, 0, sumF32, {"x"});
        Tensor doubled = g.elementwise("add", shard, shard);
        g.result(doubled);
        g.result(g.allGather(doubled, 0, 11, {"x"}));
        Tensor few = g.reduceScatter(g.argument({2, 3}, "f32"), 0, sumF32, {"x"});
        g.result(g.allGather(few, 0, 2, {"x"}));
      },
      {{"x", 4}});
}

// Two in flight beside a product; one handed to the other's input; results crossing.
TEST(EquivalenceGraph, InFlightBesideCompute) {
  expectBoth(
      [](GraphText &g) {
        Tensor x = g.argument({6, 16}, "f32"), w = g.argument({16, 8}, "f32");
        g.async = true;
        Tensor f = g.allGather(x, 0, 22, {"x"});
        g.async = true;
        Tensor r = g.reduceScatter(w, 0, sumF32, {"x"});
        Tensor y = g.matmul(x, w);
        g.async = true;
        Tensor p = g.permute(y, "shift 1", {"x"});
        Tensor sync = g.allReduce(y, sumF32, {"x"});
        Tensor gathered = g.await(f), scattered = g.await(r);
        Tensor z = g.matmul(gathered, w);
        g.async = true;
        Tensor t = g.allToAll(scattered, 1, 0, {"x"});
        Tensor q = g.elementwise("add", y, sync, sync);
        g.result(g.await(t));
        g.result(g.await(p));
        g.result(z);
        g.result(q);
        g.result(gathered);
      },
      {{"x", 4}});
}

// Started into a buffer that was read before, while its input's buffer is reused behind the await.
TEST(EquivalenceGraph, InFlightIntoBuffersInUse) {
  expectBoth(
      [](GraphText &g) {
        Tensor a = g.argument({9, 4}, "f32");
        Tensor b = g.elementwise("add", a, a), c = g.elementwise("mul", a, b);
        Tensor d = g.elementwise("add", b, c);
        g.into = c;
        g.async = true;
        Tensor f = g.permute(b, "shift 2", {"x"});
        Tensor e = g.elementwise("sub", d, a, d);
        Tensor got = g.await(f);
        Tensor h = g.elementwise("mul", got, e, b); // over the input
        g.into = h;
        g.async = true;
        Tensor k = g.allReduce(h, sumF32, {"x"}); // in place, in flight
        Tensor m = g.elementwise("add", got, e, e);
        g.result(g.elementwise("max", g.await(k), m));
        g.result(got);
      },
      {{"x", 3}});
}

// Chunks in any order, one twice, and the whole last; both kinds that have chunks.
TEST(EquivalenceGraph, Chunks) {
  GraphText g({{"x", 2}, {"y", 3}});
  Tensor a = g.argument({4, 5}, "f32"), w = g.argument({5, 5}, "f32");
  g.async = true;
  Tensor f = g.allGather(a, 0, 24, {"y", "x"});
  for (int64_t i : {3, 0, 5, 3, 1})
    g.result(g.matmul(g.chunk(f, i, 0), w));
  g.async = true;
  Tensor t = g.allToAll(g.argument({6, 5}, "f32"), 0, 1, {"y"});
  g.result(g.elementwise("add", g.chunk(t, 2, 1), g.chunk(t, 0, 1)));
  g.result(g.await(f));
  g.result(g.elementwise("mul", g.chunk(t, 1, 1), g.chunk(t, 1, 1)));
  g.result(g.await(t));
  expectEqual(g);
}

TEST(EquivalenceGraph, Calls) {
  expectBoth(
      [](GraphText &g) {
        g.beside(
            R"(func.func private @kernel(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %e = tensor.empty() : tensor<8x4xf32>
  %s = linalg.add ins(%a, %b : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  %p = linalg.mul ins(%s, %b : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %s, %p : tensor<8x4xf32>, tensor<8x4xf32>
}
func.func private @first(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %s, %p = func.call @kernel(%a, %b) : (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  return %s : tensor<8x4xf32>
}
)");
        Tensor a = g.argument({8, 4}, "f32");
        g.async = true;
        Tensor f = g.permute(a, "shift 1", {"x"});
        std::string type = "(tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>";
        auto call = [&](const Tensor &x, const Tensor &y) {
          return g.op("ncclx.call @first(" + x.name + ", " + y.name +
                          ") {flops = 64, bytes = 384, sms = 1} : " + type,
                      {8, 4}, "f32");
        };
        Tensor s = call(a, a), got = g.await(f);
        Tensor both = call(got, s);
        g.result(g.allReduce(both, sumF32, {"x"}));
        g.result(g.reduceScatter(call(g.slice(g.allGather(a, 0, 24, {"x"}), 0, 3, 8), both), 0,
                                 sumF32, {"x"}));
      },
      {{"x", 3}});
}

// Branches are chosen anew in each run, in turn and inside each other, with futures that cross
// them.
TEST(EquivalenceBranches, ChosenInEachRun) {
  for (const Grid &grid : {Grid{{"x", 2}, {"y", 2}}, Grid{{"x", 3}}}) {
    GraphText g(grid);
    Tensor a = g.argument({6, 4}, "f32"), flags = g.uniformArgument({3}, "i32");
    std::string first = g.condition(flags, 0), second = g.condition(flags, 1);
    Tensor r = g.branch(
        first,
        [&] {
          return g.branch(
              second, [&] { return g.allReduce(a, sumF32, {"x"}); },
              [&] { return g.permute(a, "shift 1", {"x"}); });
        },
        [&] { return a; });
    g.async = true;
    Tensor future = g.allGather(r, 1, 4 * g.groupSize({"x"}), {"x"});
    Tensor s = g.branch(
        second, [&] { return g.broadcast(r, 1, {"x"}); },
        [&] {
          return g.branch(
              g.condition(flags, 2), [&] { return g.elementwise("add", r, a); },
              [&] { return g.allReduce(r, "max accumulate f32 order any", {"x"}); });
        });
    g.result(g.await(future));
    g.result(g.elementwise("add", r, s));
    expectEqual(g, {.runs = 12});
  }
}

// A switch, and branches in a loop, some of which are decided when it is unrolled.
TEST(EquivalenceBranches, SwitchesAndLoops) {
  GraphText g({{"x", 3}});
  Tensor a = g.argument({6}, "f32"), flags = g.uniformArgument({2}, "i32");
  std::string set = g.condition(flags, 0), type = a.type();
  auto scalar = [&](const std::string &words) { return g.op(words, {}, "").name; };
  std::string lower = scalar("arith.constant 0 : index"),
              upper = scalar("arith.constant 3 : index"), step = scalar("arith.constant 1 : index"),
              three = scalar("arith.constant 3 : i32");
  std::string flag = scalar("tensor.extract " + flags.name + "[" + step + "] : " + flags.type());
  std::string low = scalar("arith.andi " + flag + ", " + three + " : i32");
  std::string which = scalar("arith.index_castui " + low + " : i32 to index");
  // Blocks that yield what moves `from` by `shift`, or `from` itself.
  auto moved = [&](const std::string &from, int64_t shift) {
    std::string move = "%m = ncclx.permute " + from + " shift " + std::to_string(shift) +
                       " over @g[\"x\"] : " + type + " -> " + type;
    return "{\n" + (shift ? move + "\n" : "") + "scf.yield " + (shift ? "%m" : from) + " : " +
           type + "\n}";
  };
  g.result(
      g.op("scf.for %i = " + lower + " to " + upper + " step " + step +
               " iter_args(%x = " + a.name + ") -> " + type + " {\n%first = arith.cmpi eq, %i, " +
               lower + " : index\n%y = scf.if %first -> " + type + " " + moved("%x", 1) +
               " else {\n%z = scf.if " + set + " -> " + type + " " + moved("%x", 1) + " else " +
               moved("%x", 0) + "\nscf.yield %z : " + type + "\n}\nscf.yield %y : " + type + "\n}",
           a.shape, a.element));
  g.result(g.op("scf.index_switch " + which + " -> " + type + " case 1 " + moved(a.name, 1) +
                    " case 3 " + moved(a.name, 2) + " default " + moved(a.name, 0),
                a.shape, a.element));
  inspect(g, "shm", [](mlir::ncclx::Compilation &c) { EXPECT_EQ(c.branches().size(), 6u); });
  expectEqual(g, {.runs = 10});
}

// Two schedules that share a buffer: what one gathers the other reduces, with no copy between them.
TEST(EquivalencePlans, ShareABuffer) {
  for (const char *algorithm : {"direct", "ring"}) {
    GraphText first({{"x", 3}}), second({{"x", 3}});
    first.algorithm = second.algorithm = algorithm;
    first.result(first.allGather(first.argument({5, 301}, "f32"), 0, 14, {"x"}));
    Tensor a = second.argument({14, 301}, "f32"), b = second.argument({14, 301}, "f32");
    second.result(second.allReduce(a, sumF32, {"x"}));
    second.result(second.elementwise("add", a, b));
    for (const char *transport : {"shm", "tcp"})
      EXPECT_EQ(checkChain(first, second, transport), "") << algorithm << " over " << transport;
  }
}

// What is not there says so.
TEST(EquivalenceRefusal, SaysWhy) {
  auto graph = [](const std::string &grid, const std::string &body) {
    return "ncclx.grid @g [" + grid +
           "]\nfunc.func @f(%a: tensor<12xf32>, %p: i1 {ncclx.uniform}) -> "
           "tensor<12xf32> {\n" +
           body + "\n  return %r : tensor<12xf32>\n}\n";
  };
  const char *two = R"("x" = 2, "y" = 3)";
  struct Case {
    std::string text, says;
  } cases[] = {
      {graph(
           two,
           R"(%r = ncclx.permute %a shift 1 over @g groups [[0, 1, 3], [2, 4], [5]] algorithm hierarchical : tensor<12xf32> -> tensor<12xf32>)"),
       "no axes span its groups"},
      {graph(
           two,
           R"(%r = ncclx.permute %a pairs [0 -> 1] over @g["x"] algorithm ring : tensor<12xf32> -> tensor<12xf32>)"),
       "a ring carries a shift and not listed pairs"},
      {graph(
           two,
           R"(%r = ncclx.all_reduce %a sum accumulate f64 order any over @g["x"] algorithm ring : tensor<12xf32> -> tensor<12xf32>)"),
       "a ring accumulates in the element type"},
      {graph(
           two,
           R"(%r = ncclx.all_reduce %a sum accumulate f64 order ring over @g["x", "y"] : tensor<12xf32> -> tensor<12xf32>)"),
       "no algorithm that can carry it"},
      {graph(two, R"(%r = scf.if %p -> tensor<12xf32> {
  %s = ncclx.permute %a shift 1 over @g["x"] : tensor<12xf32> -> tensor<12xf32>
  scf.yield %s : tensor<12xf32>
} else {
  scf.yield %a : tensor<12xf32>
})"),
       "buffer of type 'i1', expected a memref"},
      {graph(two, R"(%n = arith.index_castui %p : i1 to index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
  ncclx.barrier over @g["x"]
}
  %r = ncclx.permute %a shift 1 over @g["x"] : tensor<12xf32> -> tensor<12xf32>)"),
       "takes 'i1' as argument #1; a function that is split into stages takes tensors"},
      {graph("\"x\" = 65",
             R"(%r = ncclx.permute %a shift 1 over @g["x"] : tensor<12xf32> -> tensor<12xf32>)"),
       "runs on 65 ranks, but the topology"},
  };
  for (const Case &c : cases)
    for (const char *transport : {"shm", "tcp"})
      EXPECT_NE(refusal(c.text, transport).find(c.says), std::string::npos)
          << refusal(c.text, transport) << "of\n"
          << c.text;
}

} // namespace
