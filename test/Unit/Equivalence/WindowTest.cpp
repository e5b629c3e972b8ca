//===- WindowTest.cpp - One-sided operations, and what is no program of them ------------------===//
#include "Equivalence.h"

#include <gtest/gtest.h>

using namespace equivalence;

namespace {

Axes listed(std::vector<Shape> groups) {
  Axes axes;
  axes.groups = std::move(groups);
  return axes;
}

/// Steps of a stencil: rows go to both neighbours, and a neighbour says when it has read them.
void addHalo(GraphText &g, const Axes &axes, int64_t rows, int64_t columns, int64_t steps) {
  Tensor own = g.argument({rows, columns}, "f32");
  Tensor w = g.window({rows + 2, columns}, "f32", axes);
  for (int64_t step = 0; step < steps; ++step) {
    g.put(own, w, {1, 0}, "");
    g.put(g.slice(own, 0, rows - 1, 1), w, {0, 0}, "shift 1");
    g.signal(w, "shift 1");
    g.put(g.slice(own, 0, 0, 1), w, {rows + 1, 0}, "shift -1");
    g.signal(w, "shift -1");
    g.wait(w, "shift 1");
    g.wait(w, "shift -1");
    Tensor above = g.get(w, {0, 0}, {rows, columns}), below = g.get(w, {2, 0}, {rows, columns});
    own = g.elementwise("add", g.elementwise("max", above, below), own);
    if (step + 1 == steps)
      break;
    g.signal(w, "pairs [0 -> 0]"); // to oneself, for nothing
    g.wait(w, "pairs [0 -> 0]");
    for (const char *shift : {"shift -1", "shift 1"})
      g.signal(w, shift);
    for (const char *shift : {"shift -1", "shift 1"})
      g.wait(w, shift);
  }
  g.result(own);
}

TEST(EquivalenceWindow, Halo) {
  for (int64_t n : {1, 2, 3, 5, 8}) {
    GraphText g({{"x", n}});
    addHalo(g, {"x"}, 4, 7, n == 3 ? 3 : 2);
    expectEqual(g, {.runs = 2, .adversarial = 1});
  }
}

// Along one axis of several, along two at once, and in groups that no axes span.
TEST(EquivalenceWindow, Groups) {
  const std::pair<Grid, Axes> cases[] = {{{{"x", 2}, {"y", 3}}, {"y"}},
                                         {{{"x", 2}, {"y", 3}}, {"y", "x"}},
                                         {{{"x", 6}}, listed({{0, 2, 4}, {1, 3, 5}})},
                                         {{{"x", 6}}, listed({{3, 1}, {2}, {0, 5, 4}})}};
  for (auto &[grid, axes] : cases) {
    GraphText g(grid);
    addHalo(g, axes, 3, 2, 1);
    expectEqual(g, {.runs = 2, .adversarial = 1});
  }
}

// Every type; rank 0, sizes of 0, odd ones; what was there where nothing is put.
TEST(EquivalenceWindow, TypesAndShapes) {
  const std::pair<const char *, Shape> cases[] = {
      {"f64", {}},          {"f32", {0}},        {"f16", {3, 0, 2}}, {"bf16", {7}},
      {"f8E4M3FN", {3, 5}}, {"f8E5M2", {2, 1}},  {"i8", {1, 3, 1}},  {"i16", {5, 3, 2, 1}},
      {"i32", {33}},        {"i64", {2, 2}},     {"ui8", {129}},     {"ui16", {9}},
      {"ui32", {3, 3}},     {"ui64", {1, 1, 1}}, {"f32", {61, 37}}};
  for (const char *transport : {"shm", "tcp"}) {
    GraphText g({{"x", 3}});
    for (auto &[element, shape] : cases) {
      Tensor a = g.argument(shape, element), b = g.argument(shape, element);
      Tensor w = g.window(shape, element, {"x"}, a);
      Shape origin(shape.size(), 0);
      g.put(b, w, origin, "pairs [0 -> 2, 2 -> 1]");
      g.signal(w, "pairs [0 -> 2, 2 -> 1]");
      g.wait(w, "pairs [0 -> 2, 2 -> 1]");
      g.result(g.get(w, origin, shape));
    }
    expectEqual(g, {.runs = 2, .adversarial = 1}, {transport});
  }
}

// Boxes that meet, in every dimension: a window with edges and corners from eight neighbours of a
// torus, some written at home, got whole and in parts, from the own window and from others'.
TEST(EquivalenceWindow, Boxes) {
  GraphText g({{"x", 5}});
  Tensor a = g.argument({3, 4}, "f32"), row = g.argument({1, 4}, "f32"),
         column = g.argument({3, 1}, "f32"), corner = g.argument({1, 1}, "f32");
  Tensor w = g.window({5, 6}, "f32", {"x"}), other = g.window({2, 6}, "f32", {"x"});
  g.put(a, w, {1, 1}, "");
  g.put(row, w, {0, 1}, "shift 1");
  g.put(column, w, {1, 0}, "shift 1");
  g.put(corner, w, {0, 0}, "shift 1");
  g.signal(w, "shift 1");
  g.put(g.slice(a, 0, 1, 1), w, {4, 1}, "shift -1");
  g.put(g.slice(a, 1, 3, 1), w, {1, 5}, "shift -1");
  g.signal(w, "shift -1");
  for (const Shape &at : {Shape{0, 5}, Shape{4, 0}, Shape{4, 5}})
    g.put(corner, w, at, "shift 7");
  g.signal(w, "shift 7");
  g.put(g.slice(a, 0, 0, 2), other, {0, 2}, "shift 2");
  g.put(g.slice(g.slice(a, 0, 0, 2), 1, 2, 2), other, {0, 0}, ""); // beside it
  g.signal(other, "shift 2");
  g.wait(other, "shift 2");
  g.put(g.slice(a, 0, 1, 2), other, {0, 1}, ""); // over parts of both
  g.result(g.get(other, {0, 0}, {2, 6}));
  for (const char *shift : {"shift 1", "shift 7", "shift -1"})
    g.wait(w, shift);
  g.result(g.get(w, {0, 0}, {5, 6}));
  g.result(g.get(w, {1, 1}, {4, 5}, "shift 2"));
  g.result(g.get(w, {0, 3}, {5, 2}, "pairs [0 -> 3, 3 -> 0, 4 -> 4]"));
  expectEqual(g);
}

// Several puts for one signal, several signals for one wait, signals that stand for no put, and a
// window whose credit is another's signal.
TEST(EquivalenceWindow, Counts) {
  GraphText g({{"x", 3}});
  Tensor a = g.argument({2, 3}, "i32"), zero = g.argument({6, 3}, "i32");
  Tensor w = g.window({6, 3}, "i32", {"x"}, zero);
  for (int64_t i : {0, 2}) {
    g.put(a, w, {i, 0}, "shift 1");
    if (i)
      g.signal(w, "shift 1");
  }
  g.put(g.elementwise("add", a, a), w, {4, 0}, "shift 1");
  g.signal(w, "shift 1");
  g.signal(w, "shift 1");
  g.signal(w, "shift 2");          // never taken
  g.put(a, w, {1, 0}, "pairs []"); // nobody
  g.signal(w, "pairs []");
  g.wait(w, "pairs []");
  g.wait(w, "shift 1", 2);
  Tensor first = g.get(w, {0, 0}, {6, 3});
  g.wait(w, "shift 1");
  g.signal(w, "shift -1");
  g.wait(w, "shift -1");
  g.put(first, w, {0, 0}, "shift 1");
  g.signal(w, "shift 1");
  g.wait(w, "shift 1");
  g.result(g.get(w, {0, 0}, {6, 3}));
  g.result(first);
  expectEqual(g);
}

// In a loop, at places that depend on it: each step hands on what the one before has brought.
TEST(EquivalenceWindow, Loop) {
  GraphText g({{"x", 4}});
  Tensor a = g.argument({2, 3}, "f32");
  Tensor w = g.window({2, 12}, "f32", {"x"});
  g.put(a, w, {0, 0}, "");
  Tensor c[4];
  for (int i = 0; i < 4; ++i)
    c[i] = g.op("arith.constant " +
                    std::to_string(i == 2   ? 3
                                   : i == 3 ? 9
                                            : i) +
                    " : index",
                {}, "index");
  std::string window = "!ncclx.window<tensor<2x12xf32>>";
  g.op("scf.for %i = " + c[0].name + " to " + c[3].name + " step " + c[2].name +
           " iter_args(%t = " + a.name + ") -> tensor<2x3xf32> {\n    %j = arith.addi %i, " +
           c[2].name + " : index\n    ncclx.put %t into " + w.name +
           "[0, %j] shift 1 : tensor<2x3xf32> into " + window + "\n    ncclx.signal " + w.name +
           " shift 1 : " + window + "\n    ncclx.wait " + w.name + " shift 1 count 1 : " + window +
           "\n    %n = ncclx.get " + w.name + "[0, %j] : " + window +
           " -> tensor<2x3xf32>\n    scf.yield %n : tensor<2x3xf32>\n  }",
       {2, 3}, "f32");
  g.result(g.get(w, {0, 0}, {2, 12}));
  expectEqual(g);
}

/// What the prover says of a window program on three ranks, by both transports.
void expectRefused(const std::function<void(GraphText &, const Tensor &, const Tensor &)> &build,
                   const std::string &says) {
  GraphText g({{"x", 3}});
  Tensor a = g.argument({4}, "f32"), w = g.window({4}, "f32", {"x"}, a);
  build(g, a, w);
  for (const char *transport : {"shm", "tcp"}) {
    std::string wrong = inspect(g, transport);
    EXPECT_NE(wrong.find(says), std::string::npos) << transport << ": " << wrong << g.str();
  }
}

TEST(EquivalenceWindow, RacesAreRefused) {
  // Read before the wait.
  expectRefused(
      [](GraphText &g, const Tensor &a, const Tensor &w) {
        g.put(a, w, {0}, "shift 1");
        g.signal(w, "shift 1");
        g.result(g.get(w, {0}, {4}));
        g.wait(w, "shift 1");
      },
      "race");
  // Two members write one place.
  expectRefused(
      [](GraphText &g, const Tensor &a, const Tensor &w) {
        for (const char *shift : {"shift 1", "shift 2"}) {
          g.put(g.slice(a, 0, 0, 3), w, {shift[6] - '1'}, shift);
          g.signal(w, shift);
        }
        for (const char *shift : {"shift 1", "shift 2"})
          g.wait(w, shift);
        g.result(g.get(w, {0}, {4}));
      },
      "race");
  // The own member writes what a peer does.
  expectRefused(
      [](GraphText &g, const Tensor &a, const Tensor &w) {
        g.put(g.slice(a, 0, 0, 3), w, {1}, "shift 1");
        g.put(g.slice(a, 0, 0, 2), w, {0}, "");
        g.signal(w, "shift 1");
        g.wait(w, "shift 1");
        g.result(g.get(w, {0}, {1}));
      },
      "race");
  // Written again while it is read: nobody said that it has been.
  expectRefused(
      [](GraphText &g, const Tensor &a, const Tensor &w) {
        for (int i = 0; i < 2; ++i) {
          g.put(a, w, {0}, "shift 1");
          g.signal(w, "shift 1");
          g.wait(w, "shift 1");
          g.result(g.get(w, {0}, {4}));
        }
      },
      "race");
  // Never waited for: the next run makes the window while it arrives.
  expectRefused(
      [](GraphText &g, const Tensor &a, const Tensor &w) {
        g.put(a, w, {0}, "shift 1");
        g.result(g.get(w, {0}, {4}));
      },
      "race");
  // Never written.
  expectRefused(
      [](GraphText &g, const Tensor &a, const Tensor &) {
        Tensor w = g.window({4}, "f32", {"x"});
        g.put(g.slice(a, 0, 0, 2), w, {0}, "shift 1");
        g.signal(w, "shift 1");
        g.wait(w, "shift 1");
        g.result(g.get(w, {0}, {4}));
      },
      "undefined");
}

} // namespace
