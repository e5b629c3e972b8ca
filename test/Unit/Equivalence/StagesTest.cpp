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

// More turns than one stage takes, and what is left of them: the next gather is in flight while
// this turn works on the last one, whole and by chunks. In the stage of several turns they overlap.
void flyFromTurnToTurn(const char *algorithm) {
  GraphText g({{"x", 2}, {"y", 2}});
  g.algorithm = algorithm;
  Tensor a = g.argument({3, 4}, "f32"), flags = g.uniformArgument({3}, "i32");
  Axes axes = {"x"};
  g.async = true;
  Tensor f = g.allGather(a, 0, 6, axes);
  g.async = true;
  Tensor h = g.allReduce(a, sumF32, {"y"});
  Carried r = g.loop(g.count(flags, 0, 11), {f, h, a}, [&](const std::string &, const Carried &x) {
    Tensor part = g.chunk(x[0], 1, 0);
    Tensor whole = g.await(x[0]);
    Tensor next = g.elementwise("add", part, g.slice(whole, 0, 0, 3));
    g.async = true;
    Tensor gathered = g.allGather(next, 0, 6, axes);
    Tensor summed = g.await(x[1]);
    g.async = true;
    Tensor again = g.allReduce(g.elementwise("sub", summed, next), sumF32, {"y"});
    return Carried{gathered, again, g.elementwise("max", x[2], summed)};
  });
  g.result(g.await(r[0]));
  g.result(g.await(r[1]));
  g.result(r[2]);
  expectEqual(g, {.runs = 6});
  EXPECT_EQ(inspect(g, "shm",
                    [](mlir::ncclx::Compilation &c) {
                      size_t most = 0;
                      for (const mlir::ncclx::GraphBranch &branch : c.branches())
                        most = std::max(most, branch.machine->collectives.size());
                      EXPECT_EQ(most, 8u); // two of each of four turns
                    }),
            "");
}
TEST(EquivalenceStages, FuturesInFlightFromTurnToTurn) {
  flyFromTurnToTurn("direct");
  flyFromTurnToTurn("ring"); // which brings its chunks together
}

// Turns by another step and of another type, from below 0; in each other.
TEST(EquivalenceStages, FuturesInLoopsOfAnyBounds) {
  for (const char *type : {"index", "i32", "i8"}) {
    GraphText g({{"x", 3}});
    Tensor a = g.argument({3, 4}, "f32"), flags = g.uniformArgument({2}, "i32");
    auto scalar = [&](const std::string &words) { return g.op(words, {}, "").name; };
    std::string of = type, turns = g.count(flags, 0, 13), by = g.count(flags, 1, 2);
    auto number = [&](int64_t value) {
      return scalar("arith.constant " + std::to_string(value) + " : " + of);
    };
    auto cast = [&](const std::string &value) {
      return of == "index" ? value : scalar("arith.index_cast " + value + " : index to " + of);
    };
    std::string lower = number(-2), upper = cast(turns);
    std::string step = scalar("arith.addi " + cast(by) + ", " + number(1) + " : " + of);
    g.async = true;
    Tensor f = g.permute(a, "shift 1", {"x"});
    Carried r = g.loop(lower, upper, step, of, {f, a}, [&](const std::string &, const Carried &x) {
      Tensor here = g.await(x[0]);
      g.async = true;
      Tensor next = g.permute(here, "shift 1", {"x"});
      return Carried{next, g.elementwise("add", x[1], here)};
    });
    g.result(g.await(r[0]));
    g.result(r[1]);
    SCOPED_TRACE(type);
    expectEqual(g, {.runs = 8});
  }
}

// A window of before the loop: a halo in each turn, a signal that is waited for in the next stage,
// and a read behind. Once with as many turns as are known, once as long as the ranks say.
TEST(EquivalenceStages, WindowsThroughStages) {
  for (bool isWhile : {false, true}) {
    GraphText g({{"x", 3}, {"y", 2}});
    Axes axes = {"x"};
    Tensor a = g.argument({3, 4}, "f32"), own = g.argument({3}, "i32");
    Tensor flags = g.uniformArgument({2}, "i32");
    Tensor w = g.window({5, 4}, "f32", axes, g.argument({5, 4}, "f32"));
    g.put(a, w, {1, 0}, "");
    auto turn = [&](const std::string &i, const Carried &x) {
      g.put(g.slice(x[0], 0, 2, 1), w, {0, 0}, "shift 1");
      g.signal(w, "shift 1");
      g.put(g.slice(x[0], 0, 0, 1), w, {4, 0}, "shift -1");
      g.signal(w, "shift -1");
      // An edge between the signal and its wait.
      Tensor other = g.branch(
          g.condition(summed(g, own, {"x", "y"}), 1),
          [&] { return g.permute(x[0], "shift 1", {"y"}); }, [&] { return x[0]; });
      g.wait(w, "shift 1");
      g.wait(w, "shift -1");
      Tensor all = g.get(w, {0, 0}, {5, 4});
      Tensor next = g.elementwise("max", g.slice(all, 0, 0, 3), g.slice(all, 0, 2, 3));
      for (const char *shift : {"shift -1", "shift 1"})
        g.signal(w, shift);
      for (const char *shift : {"shift -1", "shift 1"})
        g.wait(w, shift);
      g.put(next, w, {1, 0}, "");
      return Carried{g.elementwise("sub", next, other)};
    };
    Carried r =
        isWhile
            ? g.whileLoop(
                  g.count(flags, 0, 3), {a},
                  [&](const std::string &i) { return g.condition(summed(g, own, {"y", "x"}), i); },
                  turn)
            : g.loop(g.count(flags, 0, 3), {a}, turn);
    g.result(r[0]);
    g.result(g.get(w, {0, 0}, {5, 4}));
    g.result(g.get(w, {1, 1}, {3, 2}, "shift 1"));
    expectEqual(g, {.runs = 6});
  }
}

// Signals before a loop, of which a turn of another takes none; puts that one signal behind the
// loop tells of.
TEST(EquivalenceStages, WindowsToldLater) {
  GraphText g({{"x", 4}});
  Axes axes;
  axes.groups = {{2, 0}, {3, 1}};
  Tensor a = g.argument({2, 3}, "i32"), flags = g.uniformArgument({1}, "i32");
  Tensor w = g.window({2, 3}, "i32", axes, a), v = g.window({2, 3}, "i32", axes, a);
  g.put(g.slice(a, 0, 1, 1), v, {0, 0}, "shift 1");
  for (int64_t i = 0; i < 3; ++i)
    g.signal(v, "shift 1");
  g.wait(v, "shift 1");
  Carried r = g.loop(g.count(flags, 0, 3), {a}, [&](const std::string &, const Carried &x) {
    g.put(g.slice(x[0], 0, 0, 1), w, {1, 0}, "pairs [0 -> 1]");
    return Carried{g.permute(x[0], "shift 1", {"x"})};
  });
  g.signal(w, "pairs [0 -> 1]");
  g.wait(w, "pairs [0 -> 1]");
  g.wait(v, "shift 1", 2);
  g.result(g.get(w, {0, 0}, {2, 3}));
  g.result(g.elementwise("add", g.get(v, {0, 0}, {2, 3}), r[0]));
  expectEqual(g, {.runs = 5});
}

// Elements of every kind: what is not defined at first, and is where it is read.
TEST(EquivalenceStages, WindowsOfAnyType) {
  GraphText g({{"x", 2}});
  Tensor flags = g.uniformArgument({1}, "i32");
  std::vector<std::pair<Tensor, Tensor>> all;
  for (const char *element : {"f64", "f32", "f16", "bf16", "f8E4M3FN", "f8E5M2", "i8", "i64"}) {
    Tensor a = g.argument({3}, element);
    all.emplace_back(g.window({4}, element, {"x"}), a);
    g.put(g.slice(a, 0, 0, 1), all.back().first, {0}, "");
  }
  Tensor u = g.argument({3}, "ui32");
  all.emplace_back(g.window({4}, "ui32", {"x"}, g.argument({4}, "ui32")), u);
  g.loop(g.count(flags, 0, 2), {u}, [&](const std::string &, const Carried &x) {
    for (auto &[w, a] : all)
      g.put(a, w, {0}, "shift 1");
    return Carried{g.permute(x[0], "shift 1", {"x"})};
  });
  for (auto &[w, a] : all)
    g.result(g.get(w, {0}, {1}));
  expectEqual(g, {.runs = 4});
}

// Two plans of stages in turn without a barrier, the second on what the first has left, each
// destroyed before the other: futures that fly from turn to turn, and a window of before the loop,
// by as many turns as each run's flags say.
TEST(EquivalenceStages, PlansInTurn) {
  auto graph = [](bool windows) {
    GraphText g({{"x", 3}});
    Tensor a = g.argument({2, 4}, "f32"), flags = g.uniformArgument({2}, "i32");
    Tensor w = g.window({2, 4}, "f32", {"x"}, a);
    g.async = true;
    Tensor f = g.permute(a, "shift 1", {"x"});
    Carried r =
        g.loop(g.count(flags, windows, 6), {f, a}, [&](const std::string &, const Carried &x) {
          Tensor here = g.await(x[0]);
          g.async = true;
          Tensor next = g.permute(here, "shift -1", {"x"});
          if (!windows)
            return Carried{next, g.elementwise("add", x[1], here)};
          g.put(g.slice(x[1], 0, 0, 1), w, {1, 0}, "shift 1");
          g.signal(w, "shift 1");
          g.wait(w, "shift 1");
          Tensor come = g.get(w, {0, 0}, {2, 4});
          g.signal(w, "shift -1");
          g.wait(w, "shift -1");
          return Carried{next, g.elementwise("sub", come, here)};
        });
    g.result(g.elementwise("max", r[1], g.await(r[0])));
    if (windows)
      g.result(g.get(w, {0, 0}, {2, 4}));
    return g;
  };
  for (bool windowsFirst : {false, true}) {
    GraphText first = graph(windowsFirst), second = graph(!windowsFirst);
    for (const char *transport : {"shm", "tcp"})
      EXPECT_EQ(checkChain(first, second, transport, {.runs = 5}), "") << transport;
  }
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
