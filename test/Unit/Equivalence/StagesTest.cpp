//===- StagesTest.cpp - Loops and branches decided on the way --------------===//
#include "Equivalence.h"

#include <gtest/gtest.h>

using namespace equivalence;
using Carried = GraphText::Carried;

namespace {

const char *sumF32 = "sum accumulate f32 order any", *sumI32 = "sum accumulate i32 order any";

/// A flag of each rank's own, summed over all.
Tensor summed(GraphText &g, const Tensor &flags, const Axes &all) {
  return g.allReduce(flags, sumI32, all);
}

// Turns known when a run begins, none among them; in each other; what goes round is swapped, too.
TEST(EquivalenceStages, LoopsOfUnknownLength) {
  for (const char *algorithm : {"direct", "ring"}) {
    GraphText g({{"x", 3}});
    g.algorithm = algorithm;
    Tensor a = g.argument({6, 5}, "f32"), b = g.argument({6, 5}, "f32");
    Tensor flags = g.uniformArgument({4}, "i32");
    Carried r = g.loop(g.count(flags, 0, 3), {a, b}, [&](const std::string &, const Carried &x) {
      Carried inner =
          g.loop(g.count(flags, 1, 2), {x[1]}, [&](const std::string &, const Carried &y) {
            return Carried{g.allReduce(y[0], "max accumulate f32 order any", {"x"})};
          });
      return Carried{inner[0], g.elementwise("sub", x[0], x[1])};
    });
    g.result(r[0]);
    g.result(g.permute(r[1], "shift 1", {"x"}));
    g.result(g.loop(g.count(flags, 2, 1), {a, b}, [&](const std::string &, const Carried &x) {
      return Carried{x[1], g.permute(x[0], "shift 1", {"x"})};
    })[0]);
    SCOPED_TRACE(algorithm);
    expectEqual(g, {.runs = 6});
  }
}

// What the ranks sum says whether there is another turn, and which way is taken behind; a value
// from before the loop is read in it and behind it; a turn in which nobody communicates.
TEST(EquivalenceStages, CommunicatedValuesDecide) {
  GraphText g({{"x", 2}, {"y", 2}});
  Tensor a = g.argument({4, 3}, "f32"), own = g.argument({3}, "i32");
  Tensor flags = g.uniformArgument({2}, "i32");
  Tensor before = g.elementwise("add", a, a);
  Carried r = g.whileLoop(
      g.count(flags, 0, 4), {a},
      [&](const std::string &i) { return g.condition(summed(g, own, {"x", "y"}), i); },
      [&](const std::string &i, const Carried &x) {
        return Carried{g.branch(
            g.condition(flags, i), [&] { return g.allReduce(x[0], sumF32, {"y"}); },
            [&] { return g.elementwise("sub", x[0], before); })};
      });
  g.result(g.branch(
      g.condition(summed(g, own, {"y", "x"}), 1), [&] { return g.permute(r[0], "shift 1", {"x"}); },
      [&] { return r[0]; }));
  g.result(g.elementwise("max", before, r[0]));
  expectEqual(g, {.runs = 8});
}

// Started before the loop, awaited and started again in each turn, awaited behind it.
TEST(EquivalenceStages, FuturesGoRound) {
  GraphText g({{"x", 3}});
  Tensor a = g.argument({3, 4}, "f32"), flags = g.uniformArgument({1}, "i32");
  g.async = true;
  Tensor f = g.permute(a, "shift 1", {"x"});
  Carried r = g.loop(g.count(flags, 0, 3), {f, a}, [&](const std::string &, const Carried &x) {
    Tensor here = g.await(x[0]);
    g.async = true;
    return Carried{g.permute(here, "shift 1", {"x"}), g.elementwise("add", x[1], here)};
  });
  g.result(g.await(r[0]));
  g.result(r[1]);
  expectEqual(g, {.runs = 5});
}

// One that is awaited in its own stage is in flight there, beside one that goes round.
TEST(EquivalenceStages, FuturesInAStage) {
  GraphText g({{"x", 3}});
  Tensor a = g.argument({3, 4}, "f32"), flags = g.uniformArgument({1}, "i32");
  g.async = true;
  Tensor f = g.permute(a, "shift 1", {"x"});
  Carried r = g.loop(g.count(flags, 0, 3), {f, a}, [&](const std::string &, const Carried &x) {
    Tensor here = g.await(x[0]);
    g.async = true;
    Tensor sums = g.allReduce(x[1], sumF32, {"x"});
    Tensor beside = g.elementwise("add", x[1], here);
    g.async = true;
    Tensor next = g.permute(here, "shift 1", {"x"});
    return Carried{next, g.elementwise("sub", beside, g.await(sums))};
  });
  g.result(g.await(r[0]));
  g.result(r[1]);
  expectEqual(g, {.runs = 5});
}

// Scalars of several types between stages: an index, a flag, an f32, an i8 and a bf16.
TEST(EquivalenceStages, ScalarsAreHandedOn) {
  GraphText g({{"x", 2}});
  Tensor a = g.argument({4}, "f32"), flags = g.uniformArgument({3}, "i32");
  std::string isSet = g.condition(flags, 0), turns = g.count(flags, 1, 3);
  auto scalar = [&](const std::string &words) { return g.op(words, {}, "").name; };
  std::string first = scalar("tensor.extract " + a.name + "[" + turns + "] : " + a.type());
  std::string small = scalar("arith.truncf " + first + " : f32 to bf16");
  std::string byte = scalar("arith.extui " + isSet + " : i1 to i8");
  Carried r = g.loop(turns, {a}, [&](const std::string &i, const Carried &x) {
    std::string at = scalar("tensor.extract " + x[0].name + "[" + i + "] : " + a.type());
    std::string wide = scalar("arith.extf " + small + " : bf16 to f32");
    std::string more = scalar("arith.sitofp " + byte + " : i8 to f32");
    std::string some = scalar("arith.select " + isSet + ", " + wide + ", " + more + " : f32");
    std::string sum = scalar("arith.addf " + at + ", " + some + " : f32");
    std::string all = scalar("arith.addf " + sum + ", " + first + " : f32");
    Tensor next = g.op("tensor.insert " + all + " into " + x[0].name + "[" + i + "] : " + a.type(),
                       a.shape, a.element);
    return Carried{g.allReduce(next, sumF32, {"x"})};
  });
  g.result(r[0]);
  expectEqual(g, {.runs = 6});
}

// A true assumption changes nothing; a false one ends the run, wherever it is made.
TEST(EquivalenceStages, Assumptions) {
  for (bool isTrue : {true, false}) {
    GraphText g({{"x", 3}});
    Tensor a = g.argument({4}, "f32"), own = g.argument({2}, "i32");
    Tensor flags = isTrue ? g.uniformArgument({2}, "i32") : own;
    std::string turns = g.assumed(g.count(flags, 1, 1000), "index");
    std::string most = g.count(g.uniformArgument({1}, "i32"), 0, 3);
    std::string lower = g.op("arith.minsi " + turns + ", " + most + " : index", {}, "").name;
    g.result(g.loop(lower, {a}, [&](const std::string &, const Carried &x) {
      return Carried{g.allReduce(x[0], sumF32, {"x"})};
    })[0]);
    if (isTrue) {
      expectEqual(g, {.runs = 4});
      continue;
    }
    for (bool onHost : {false, true})
      for (const char *transport : {"shm", "tcp"}) {
        std::string wrong = check(g, transport, {.runs = 1, .withoutReference = onHost});
        for (const char *says : {"assume_uniform", "rank 0 has ", ", rank 1 has ",
                                 "not the same on all ranks, as the graph assumes"})
          EXPECT_NE(wrong.find(says), std::string::npos) << onHost << wrong;
        EXPECT_EQ(wrong.find("deadline"), std::string::npos) << wrong;
      }
  }
}

// Each stage is proved, and none runs away: the proof of a turn is of any number of them.
TEST(EquivalenceStages, EachIsProved) {
  GraphText g({{"x", 3}});
  Tensor a = g.argument({4}, "f32"), flags = g.uniformArgument({1}, "i32");
  g.result(g.loop(g.count(flags, 0, 60), {a}, [&](const std::string &, const Carried &x) {
    return Carried{g.permute(x[0], "shift 1", {"x"})};
  })[0]);
  EXPECT_EQ(inspect(g, "shm",
                    [](mlir::ncclx::Compilation &c) {
                      EXPECT_EQ(c.branches().size(), 4u); // before, bound, body, behind
                      int64_t exchanges = 0;
                      for (const mlir::ncclx::GraphBranch &branch : c.branches())
                        exchanges += !branch.machine->collectives.empty();
                      EXPECT_EQ(exchanges, 1);
                    }),
            "");
  expectEqual(g, {.runs = 2, .adversarial = 8}); // up to 60 turns
}

} // namespace
