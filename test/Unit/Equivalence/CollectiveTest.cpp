//===- CollectiveTest.cpp - Every collective, every size, both transports -===//
//
// One graph holds the cases of a kind, so that they also share slots, lanes and order. The tests
// named Slow hold what takes long: --quick leaves them out.
//
//===----------------------------------------------------------------------===//
#include "Equivalence.h"

#include <gtest/gtest.h>

using namespace equivalence;

namespace {

enum class Kind {
  AllGather,
  ReduceScatter,
  AllReduce,
  AllToAll,
  PermuteShift,
  PermutePairs,
  AllToAllV,
  Broadcast,
  Reduce,
  Gather,
  Scatter
};

/// Whether the algorithm carries this kind of collective; what it does not is refused.
bool carries(const std::string &algorithm, Kind kind) {
  bool rooted = kind >= Kind::Broadcast;
  if (algorithm == "ring")
    return kind != Kind::PermutePairs;
  if (algorithm == "bruck")
    return kind <= Kind::AllToAll;
  if (algorithm == "eager")
    return kind <= Kind::AllToAll || rooted;
  if (algorithm == "hierarchical")
    return kind <= Kind::AllToAll || kind == Kind::Broadcast;
  return algorithm != "binomial" || rooted;
}

std::string sum(const std::string &accumulate, const std::string &order = "any") {
  return "sum accumulate " + accumulate + " order " + order;
}

/// A gather's result or a scatter's input: the sizes that are hard for n members.
struct Sizes {
  const char *element;
  Shape shape;
  int64_t dim;
};
std::vector<Sizes> cutSizes(int64_t n) {
  return {{"f32", {0, 3}, 0},        {"f64", {1}, 0},        {"bf16", {2, 2 * n + 1, 3}, 1},
          {"f16", {2, 3, 3 * n}, 2}, {"i32", {n + 1, 5}, 0}, {"i64", {3, 4 * n - 1}, 1},
          {"f32", {277, 131}, 0}};
}

/// Reductions over the dims of `axes`; whatever carries partial results accumulates in the element
/// type.
std::string reductionOf(int64_t i, const std::string &element, bool partial,
                        bool anyOrder = false) {
  if (anyOrder && element[0] != 'i' && element[0] != 'u') // floats: what has one result
    return std::string(i % 2 ? "max" : "min") + " accumulate " + element + " order any";
  static const char *kinds[] = {"sum", "max", "avg", "min", "prod"};
  std::string accumulate = element;
  if (!partial && (element == "bf16" || element == "f16" || element[1] == '8'))
    accumulate = i % 2 ? "f64" : "f32";
  return std::string(kinds[i % 5]) + " accumulate " + accumulate + " order any";
}

void addCases(GraphText &g, Kind kind, const Axes &axes, const std::string &algorithm) {
  int64_t n = g.groupSize(axes), i = 0;
  bool partial = algorithm != "direct" && !algorithm.empty();
  bool anyOrder = algorithm == "hierarchical";
  switch (kind) {
  case Kind::AllGather:
    for (const Sizes &s : cutSizes(n)) {
      Shape in = s.shape;
      in[s.dim] = ceilDiv(s.shape[s.dim], n);
      g.result(g.allGather(g.argument(in, s.element), s.dim, s.shape[s.dim], axes));
    }
    return;
  case Kind::ReduceScatter:
    for (const Sizes &s : cutSizes(n))
      g.result(g.reduceScatter(g.argument(s.shape, s.element), s.dim,
                               reductionOf(i++, s.element, partial, anyOrder), axes));
    return;
  case Kind::AllReduce:
    for (auto &[element, shape] : std::vector<std::pair<std::string, Shape>>{{"f32", {0}},
                                                                             {"f64", {}},
                                                                             {"bf16", {1}},
                                                                             {"f16", {3, 7}},
                                                                             {"i32", {13}},
                                                                             {"i64", {2, 8 * n}},
                                                                             {"f32", {4 * n + 1}},
                                                                             {"f32", {20'011}},
                                                                             {"bf16", {257}}})
      g.result(g.allReduce(g.argument(shape, element), reductionOf(i++, element, partial, anyOrder),
                           axes));
    return;
  case Kind::AllToAll:
    g.result(g.allToAll(g.argument({2 * n, 3}, "f32"), 0, 1, axes));
    g.result(g.allToAll(g.argument({3, n}, "f64"), 1, 0, axes));
    g.result(g.allToAll(g.argument({3 * n}, "bf16"), 0, 0, axes));
    g.result(g.allToAll(g.argument({2, 3, 2 * n}, "f16"), 2, 1, axes));
    g.result(g.allToAll(g.argument({n, 0}, "i32"), 0, 1, axes));
    g.result(g.allToAll(g.argument({0, 2}, "i64"), 0, 1, axes));
    g.result(g.allToAll(g.argument({5, 7 * n, 3}, "i64"), 1, 1, axes));
    g.result(g.allToAll(g.argument({n * ceilDiv(300, n), 67}, "f32"), 0, 0, axes));
    return;
  case Kind::PermuteShift:
    for (int64_t shift : {int64_t(0), int64_t(1), int64_t(-1), int64_t(2), n / 2, n, -n - 1})
      g.result(g.permute(g.argument({i++ * 3, 5}, "f32"), "shift " + std::to_string(shift), axes));
    g.result(g.permute(g.argument({150, 133}, "f64"), "shift -2", axes));
    g.result(g.permute(g.argument({}, "bf16"), "shift 1", axes));
    return;
  case Kind::PermutePairs: {
    std::string reversed, shifted, odd;
    for (int64_t j = 0; j < n; ++j) {
      std::string comma = j ? ", " : "", from = std::to_string(j) + " -> ";
      reversed += comma + from + std::to_string(n - 1 - j);
      shifted += comma + from + std::to_string((j + 2) % n);
      if (j % 2)
        odd += (j > 1 ? ", " : "") + from + std::to_string(j - 1);
    }
    g.result(g.permute(g.argument({3, 5}, "f32"), "pairs [" + reversed + "]", axes));
    g.result(g.permute(g.argument({70, 133}, "f64"), "pairs [" + shifted + "]", axes));
    g.result(g.permute(g.argument({7}, "i32"), "pairs [" + odd + "]", axes));
    g.result(g.permute(g.argument({1}, "f16"), "pairs [0 -> " + std::to_string(n - 1) + "]", axes));
    g.result(g.permute(g.argument({0}, "bf16"), "pairs [" + reversed + "]", axes));
    g.result(g.permute(g.argument({2}, "i64"), "pairs []", axes));
    g.result(g.permute(g.argument({3}, "f8E4M3FN"), "pairs [0 -> 0]", axes));
    g.result(g.permute(g.argument({5}, "ui16"), "pairs []", axes));
    return;
  }
  case Kind::AllToAllV: { // uniform, varied, some zero, all zero, one sender alone (ctran 4.2 16)
    std::vector<Shape> even(n, Shape(n, 2)), varied = even, some = even, none = even, one = even;
    for (int64_t from = 0; from < n; ++from)
      for (int64_t to = 0; to < n; ++to) {
        varied[from][to] = (from * 5 + to * 3) % 7;
        some[from][to] = (from + to) % 2 ? 0 : 3;
        none[from][to] = 0;
        one[from][to] = from == n - 1 ? 4 * to : 0;
      }
    auto rows = [&](const std::vector<Shape> &counts) {
      int64_t most = 0;
      for (const Shape &row : counts) {
        int64_t sum = 0;
        for (int64_t count : row)
          sum += count;
        most = std::max(most, sum);
      }
      return most;
    };
    g.result(g.allToAllV(g.argument({rows(even), 3}, "f32"), 0, even, axes));
    g.result(g.allToAllV(g.argument({2, rows(varied) + 1}, "i16"), 1, varied, axes));
    g.result(g.allToAllV(g.argument({rows(some)}, "f8E5M2"), 0, some, axes));
    g.result(g.allToAllV(g.argument({rows(none), 4}, "f64"), 0, none, axes));
    g.result(g.allToAllV(g.argument({rows(one), 70}, "ui32"), 0, one, axes));
    return;
  }
  case Kind::Broadcast:
    for (int64_t root = 0; root < n; ++root)
      g.result(g.broadcast(g.argument({root * 3, 5}, "f32"), root, axes));
    g.result(g.broadcast(g.argument({}, "bf16"), n - 1, axes));
    g.result(g.broadcast(g.argument({150, 133}, "i8"), n / 2, axes));
    return;
  case Kind::Reduce:
    for (int64_t root = 0; root < n; ++root)
      g.result(
          g.reduce(g.argument({root * 3, 5}, "f32"), root, reductionOf(i++, "f32", partial), axes));
    for (const char *element : {"f16", "f8E4M3FN", "ui8", "i64"})
      g.result(
          g.reduce(g.argument({67}, element), n / 2, reductionOf(i++, element, partial), axes));
    g.result(g.reduce(g.argument({20'011}, "f32"), n - 1, reductionOf(0, "f32", partial), axes));
    return;
  case Kind::Gather:
    for (const Sizes &s : cutSizes(n)) {
      Shape in = s.shape;
      in[s.dim] = ceilDiv(s.shape[s.dim], n);
      g.result(g.gather(g.argument(in, s.element), s.dim, s.shape[s.dim], i++ % n, axes));
    }
    return;
  case Kind::Scatter:
    for (const Sizes &s : cutSizes(n))
      g.result(g.scatter(g.argument(s.shape, s.element), s.dim, i++ % n, axes));
    return;
  }
}

const Kind allKinds[] = {Kind::AllGather,    Kind::ReduceScatter, Kind::AllReduce, Kind::AllToAll,
                         Kind::PermuteShift, Kind::PermutePairs,  Kind::AllToAllV, Kind::Broadcast,
                         Kind::Reduce,       Kind::Gather,        Kind::Scatter};

void expectKind(Kind kind, int64_t n, const std::string &algorithm, const Options &options = {},
                const std::vector<std::string> &transports = {"shm", "tcp"}) {
  if (!carries(algorithm, kind))
    return; // refused: test/Unit/Equivalence/GraphTest.cpp
  GraphText g({{"x", n}});
  g.algorithm = algorithm;
  addCases(g, kind, {"x"}, algorithm);
  SCOPED_TRACE("kind " + std::to_string(int(kind)) + " n " + std::to_string(n) + " " + algorithm);
  expectEqual(g, options, transports);
}

void expectAlgorithm(const std::string &algorithm, const std::vector<int64_t> &sizes) {
  for (Kind kind : allKinds)
    for (int64_t n : sizes)
      expectKind(kind, n, algorithm);
}

TEST(Equivalence, Direct) { expectAlgorithm("direct", {1, 3}); }
TEST(Equivalence, Ring) { expectAlgorithm("ring", {1, 2, 5}); }
TEST(Equivalence, Bruck) { expectAlgorithm("bruck", {1, 3}); }
// Rings from and to a root, in any number of chunks: fewer elements than chunks, one member
// between, scaled, divided, in place.
void expectChain(int64_t n, int64_t chunks, const Options &options = {},
                 const std::vector<std::string> &transports = {"shm", "tcp"}) {
  for (Kind kind : {Kind::Broadcast, Kind::Reduce}) {
    GraphText g({{"x", n}});
    g.algorithm = "ring";
    g.pipeline = "chunks = " + std::to_string(chunks);
    addCases(g, kind, {"x"}, "ring");
    if (kind == Kind::Reduce)
      for (const char *how : {"sum scale 0.3", "avg"}) {
        std::string reduction = std::string(how) + " accumulate f32 order ring";
        g.result(g.reduce(g.argument({67, n}, "f32"), n - 1, reduction, {"x"}));
        Tensor a = g.argument({41, 5}, "f32"), twice = g.elementwise("add", a, a);
        g.into = twice;
        g.result(g.reduce(twice, 0, reduction, {"x"}));
      }
    SCOPED_TRACE(g.pipeline + " kind " + std::to_string(int(kind)) + " n " + std::to_string(n));
    expectEqual(g, options, transports);
  }
}
TEST(Equivalence, Chain) {
  expectChain(2, 3);
  expectChain(4, 5, {.runs = 3, .adversarial = 2}, {"shm"});
}
TEST(SlowEquivalence, Chain) {
  for (int64_t n : {3, 5, 8})
    for (int64_t chunks : {2, 7})
      expectChain(n, chunks, {.runs = 2, .adversarial = 1}, {n % 2 ? "tcp" : "shm"});
}

// Rounds that stream, in any number of chunks and at any depth, of any number of members: shards
// that are cut unevenly, fewer rows than chunks, in place, along several axes and in listed groups.
void expectStreamed(int64_t n, int64_t chunks, int64_t depth, const Options &options = {},
                    const std::vector<std::string> &transports = {"shm", "tcp"}) {
  for (Kind kind : {Kind::AllGather, Kind::ReduceScatter, Kind::AllReduce, Kind::AllToAll}) {
    GraphText g({{"x", n}});
    g.algorithm = "bruck";
    g.pipeline = "chunks = " + std::to_string(chunks) + ", depth = " + std::to_string(depth);
    addCases(g, kind, {"x"}, "bruck");
    if (kind == Kind::AllReduce) { // scaled, divided, in place
      for (const char *how : {"sum scale 0.3", "avg"})
        g.result(g.allReduce(g.argument({67, n}, "f32"),
                             std::string(how) + " accumulate f32 order tree", {"x"}));
      Tensor a = g.argument({41, 5}, "f32"), twice = g.elementwise("add", a, a);
      g.into = twice;
      g.result(g.allReduce(twice, sum("f32", "tree"), {"x"}));
    }
    SCOPED_TRACE(g.pipeline + " kind " + std::to_string(int(kind)) + " n " + std::to_string(n));
    expectEqual(g, options, transports);
  }
}
TEST(Equivalence, StreamedRounds) {
  expectStreamed(3, 4, 1);
  expectStreamed(4, 3, 2, {.runs = 2, .adversarial = 1}, {"shm"});
}
TEST(SlowEquivalence, StreamedRounds) {
  for (int64_t n : {2, 5, 8})
    for (auto [chunks, depth] : {std::pair(2, 0), {5, 1}, {3, 9}})
      expectStreamed(n, chunks, depth, {.runs = 2, .adversarial = 1}, {n % 2 ? "tcp" : "shm"});
}

TEST(Equivalence, Binomial) { expectAlgorithm("binomial", {1, 5}); }
TEST(Equivalence, Eager) { expectAlgorithm("eager", {1, 3}); }
TEST(SlowEquivalence, Eager) { expectAlgorithm("eager", {2, 5, 7, 8}); }
TEST(SlowEquivalence, Bruck) { expectAlgorithm("bruck", {2, 5, 7, 8}); }
TEST(SlowEquivalence, Binomial) { expectAlgorithm("binomial", {2, 3, 7, 8}); }
TEST(SlowEquivalence, Direct) { expectAlgorithm("direct", {2, 5, 7, 8}); }
TEST(SlowEquivalence, Ring) { expectAlgorithm("ring", {3, 7, 8}); }
TEST(SlowEquivalence, Chosen) { expectAlgorithm("", {2, 7}); }
TEST(SlowEquivalence, TwentyFourMembers) {
  for (const char *algorithm : {"direct", "ring"})
    for (Kind kind : allKinds)
      expectKind(kind, 24, algorithm, {.runs = 2, .adversarial = 1},
                 {(int(kind) + (*algorithm == 'd')) % 2 ? "shm" : "tcp"}); // it takes long
}

// Hosts of as many ranks each; shards that are cut unevenly, and what goes in many chunks.
void expectHosts(int64_t hosts, int64_t members, const Options &given,
                 const std::vector<std::string> &transports) {
  Options options = given;
  options.hosts = hosts;
  for (Kind kind : allKinds)
    expectKind(kind, hosts * members, "hierarchical", options, transports);
}
TEST(Equivalence, Hierarchical) {
  expectHosts(2, 2, {}, {"shm", "tcp"});
  expectHosts(3, 2, {.runs = 2, .adversarial = 1}, {"shm"});
}
TEST(SlowEquivalence, Hierarchical) {
  expectHosts(2, 4, {}, {"shm"});
  expectHosts(4, 2, {}, {"tcp"});
}
TEST(Equivalence, HierarchicalSpecialValues) {
  GraphText g({{"x", 4}});
  g.algorithm = "hierarchical";
  for (const char *element : {"f32", "f64", "bf16", "f16", "f8E4M3FN", "f8E5M2"})
    for (const char *kind : {"min", "max"})
      g.result(g.allReduce(g.argument({67}, element),
                           std::string(kind) + " accumulate " + element + " order any", {"x"}));
  expectEqual(g, {.specials = true, .hosts = 2});
}

// NaN, infinities and zeros of both signs, in every kind of reduction and type.
TEST(Equivalence, SpecialValues) {
  for (const char *algorithm : {"direct", "ring", "bruck", "eager"}) {
    GraphText g({{"x", 4}});
    g.algorithm = algorithm;
    for (const char *element : {"f32", "f64", "bf16", "f16", "f8E4M3FN", "f8E5M2"})
      for (const char *kind : {"sum", "prod", "min", "max", "avg", "sum scale 0.3"})
        g.result(g.allReduce(g.argument({67}, element),
                             std::string(kind) + " accumulate " + element + " order any", {"x"}));
    expectEqual(g, {.specials = true});
  }
}

// A type that is wider than the element, exact and rounded once; both orders spelled out.
TEST(Equivalence, AccumulationTypesAndOrders) {
  GraphText g({{"x", 5}});
  for (auto [element, accumulate] : {std::pair("bf16", "f32"),
                                     {"bf16", "f64"},
                                     {"f16", "f32"},
                                     {"f16", "f64"},
                                     {"f32", "f64"},
                                     {"i32", "i64"}})
    for (const char *kind : {"sum", "min", "max"}) {
      std::string words = std::string(kind) + " accumulate " + accumulate + " order rank";
      g.result(g.allReduce(g.argument({37}, element), words, {"x"}));
      g.result(g.reduceScatter(g.argument({13, 2}, element), 0, words, {"x"}));
    }
  g.result(g.allReduce(g.argument({300}, "f32"), sum("f32", "ring"), {"x"}));
  g.result(g.reduceScatter(g.argument({3, 23}, "bf16"), 1, sum("bf16", "ring"), {"x"}));
  expectEqual(g);
}

// Of nine, in types so narrow that another order gives other bits.
TEST(Equivalence, OrdersOfManyInNarrowTypes) {
  GraphText g({{"x", 9}});
  for (const char *element : {"f16", "bf16", "f8E4M3FN", "f8E5M2"})
    for (const char *order : {"rank", "ring", "tree"})
      g.result(g.allReduce(g.argument({40}, element), sum(element, order), {"x"}));
  expectEqual(g, {.runs = 1, .adversarial = 0}, {"shm"});
}

// Groups over some of a grid's axes, in any order.
void expectGrid(const Grid &grid, const std::vector<Axes> &groups, const std::string &algorithm) {
  for (const Axes &axes : groups)
    for (Kind kind : allKinds) {
      if (!carries(algorithm, kind))
        continue;
      GraphText g(grid);
      g.algorithm = algorithm;
      addCases(g, kind, axes, algorithm);
      SCOPED_TRACE("kind " + std::to_string(int(kind)) + " " + algorithm);
      expectEqual(g, {.runs = 2, .adversarial = 1},
                  {(int(kind) + axes.size()) % 2 ? "shm" : "tcp"});
    }
}
TEST(Equivalence, TwoAxesSwapped) { expectGrid({{"x", 2}, {"y", 3}}, {{"y", "x"}}, "direct"); }
TEST(Equivalence, TwoAxesEager) { expectGrid({{"x", 2}, {"y", 3}}, {{"y", "x"}, {"y"}}, "eager"); }
// Round all members: along one axis of the program where none of these is named apart, else by
// numbers.
TEST(Equivalence, TwoAxesRound) {
  expectGrid({{"x", 2}, {"y", 3}}, {{"y", "x"}}, "ring");
  expectGrid({{"x", 3}, {"y", 2}}, {{"x", "y"}}, "bruck");
  // Of so many elements, chunks by number are not those of one axis after the other.
  GraphText g({{"x", 3}, {"y", 2}});
  for (const char *algorithm : {"ring", "bruck"}) {
    g.algorithm = algorithm;
    for (const char *kind : {"avg", "sum scale 0.3"})
      g.result(g.allReduce(g.argument({996}, "f8E4M3FN"),
                           std::string(kind) + " accumulate f8E4M3FN order any", {"y", "x"}));
  }
  expectEqual(g, {.runs = 2});
}
TEST(SlowEquivalence, TwoAxes) {
  expectGrid({{"x", 3}, {"y", 2}}, {{"x"}, {"x", "y"}}, "direct");
  expectGrid({{"x", 2}, {"y", 3}}, {{"x"}, {"y"}}, "ring");
}
TEST(SlowEquivalence, ThreeAxes) {
  expectGrid({{"x", 2}, {"y", 3}, {"z", 2}}, {{"z", "x"}, {"y"}, {"z", "y", "x"}}, "direct");
  expectGrid({{"x", 2}, {"y", 3}, {"z", 2}}, {{"y"}}, "ring");
  expectGrid({{"x", 2}, {"y", 1}, {"z", 2}}, {{"x", "y"}}, "");
  expectGrid({{"x", 2}, {"y", 3}, {"z", 2}}, {{"z", "y"}}, "binomial");
  expectGrid({{"x", 2}, {"y", 5}}, {{"y"}}, "bruck");
  expectGrid({{"x", 2}, {"y", 3}, {"z", 2}}, {{"z", "x"}}, "bruck");
  expectGrid({{"x", 2}, {"y", 1}, {"z", 4}}, {{"x", "y", "z"}, {"z", "x"}}, "ring");
}

Axes listed(std::vector<Shape> groups) {
  Axes axes;
  axes.groups = std::move(groups);
  return axes;
}

// Groups listed by rank that axes span, in orders of their own.
TEST(Equivalence, ListedGroupsWithAxes) {
  expectGrid({{"x", 6}}, {listed({{0, 2, 4}, {1, 3, 5}})}, "direct");
  expectGrid({{"x", 2}, {"y", 2}}, {listed({{0, 2}, {1, 3}})}, "ring");
}
TEST(SlowEquivalence, ListedGroupsWithAxes) {
  expectGrid({{"x", 6}}, {listed({{0, 3, 1, 4, 2, 5}}), listed({{0}, {1}, {2}, {3}, {4}, {5}})},
             "direct");
  expectGrid({{"x", 8}}, {listed({{0, 4, 1, 5}, {2, 6, 3, 7}})}, "binomial");
  expectGrid({{"x", 6}}, {listed({{0, 2, 4}, {1, 3, 5}})}, "bruck");
}

// Groups that no axes span, of one size and of several, which may cut a size unevenly.
TEST(Equivalence, ListedGroupsWithoutAxes) {
  const Axes even = listed({{4, 0, 1}, {5, 2, 3}}), uneven = listed({{3, 1}, {2}, {0, 5, 4}});
  for (const Grid &grid : {Grid{{"x", 6}}, Grid{{"x", 2}, {"y", 3}}}) {
    GraphText g(grid);
    Tensor a = g.argument({6, 5}, "f32");
    g.result(g.allGather(a, 1, 15, even));
    g.result(g.reduceScatter(a, 0, sum("f64"), even));
    g.result(g.allToAll(a, 0, 1, even));
    g.result(g.gather(a, 0, 18, 1, even));
    g.result(g.scatter(a, 0, 2, even));
    for (const char *kind : {"sum", "prod", "min", "max", "avg", "sum scale 0.3"})
      g.result(g.allReduce(a, std::string(kind) + " accumulate f32 order any", uneven));
    g.result(g.reduce(a, 0, "avg accumulate f32 order any", uneven));
    g.barrier(uneven);
    g.async = true;
    Tensor future = g.broadcast(a, 0, uneven);
    g.result(g.permute(a, "shift 1", uneven));
    g.result(g.permute(a, "shift -5", uneven));
    g.result(g.permute(a, "pairs [2 -> 0, 0 -> 1]", even));
    g.result(g.await(future));
    Tensor twice = g.elementwise("add", a, a);
    g.into = twice;
    g.result(g.allReduce(twice, sum("f32"), uneven)); // in place
    g.result(g.broadcast(g.argument({0, 3}, "i8"), 0, uneven));
    expectEqual(g);
  }
}

// Their shards: one that is short, members without any, and nothing at all; of groups of two sizes
// that cut a size into as many rows. What a scatter leaves open, a gather does not read.
TEST(Equivalence, UnevenShardsOfListedGroups) {
  const Axes even = listed({{4, 0, 1}, {5, 2, 3}}), uneven = listed({{3, 1}, {2, 0, 5, 4}});
  GraphText g({{"x", 6}});
  for (auto [axes, element, rows] : {std::tuple(even, "f32", 7),
                                     {even, "i8", 2},
                                     {even, "bf16", 0},
                                     {uneven, "f64", 1},
                                     {uneven, "f16", 0}}) {
    int64_t n = g.groupSize(axes), each = ceilDiv(rows, n);
    Tensor whole = g.argument({3, rows, 2}, element), shard = g.argument({3, each, 2}, element);
    Tensor sum =
        g.reduceScatter(whole, 1, std::string("max accumulate ") + element + " order any", axes);
    g.result(g.allGather(shard, 1, rows, axes));
    g.result(g.gather(shard, 1, rows, 1, axes));
    g.result(sum);
    g.result(g.allGather(sum, 1, rows, axes));
    g.result(g.gather(g.scatter(whole, 1, 1, axes), 1, rows, 0, axes));
  }
  expectEqual(g, {.runs = 2, .adversarial = 1});
}

// Fewer rows than members, in groups of two sizes: what is gathered is read as a whole.
TEST(Equivalence, FewRowsOfListedGroups) {
  GraphText g({{"x", 2}, {"y", 2}, {"z", 2}});
  for (const Axes &axes :
       {listed({{0, 1, 2, 3, 4, 5}, {6, 7}}), listed({{1, 0, 2}, {3, 4}, {5, 6, 7}})})
    g.result(g.allReduce(g.allGather(g.argument({1, 1}, "f32"), 0, 2, axes), sum("f32"), {"x"}));
  expectEqual(g, {.runs = 2, .adversarial = 1});
}

// The same by rings, rounds and trees, which pass data on from place to place in the group: of
// listed groups that no axes span, in all their cases.
void expectListed(const Axes &axes, const std::string &algorithm, const std::string &rounds = "") {
  int64_t ranks = 0;
  for (const Shape &group : axes.groups)
    ranks += int64_t(group.size());
  for (Kind kind : allKinds) {
    if (!carries(algorithm, kind))
      continue;
    GraphText g({{"x", ranks}});
    g.algorithm = algorithm;
    g.pipeline = rounds;
    addCases(g, kind, axes, algorithm);
    SCOPED_TRACE("kind " + std::to_string(int(kind)) + " " + algorithm);
    expectEqual(g, {.runs = 2, .adversarial = 1}, {int(kind) % 2 ? "shm" : "tcp"});
  }
}
TEST(Equivalence, ListedGroupsByPlace) {
  const Axes axes = listed({{4, 0, 1}, {5, 2, 3}});
  for (const char *algorithm : {"ring", "bruck", "binomial", "eager"})
    expectListed(axes, algorithm);
}
TEST(SlowEquivalence, ListedGroupsByPlace) {
  for (const Axes &axes : {listed({{3, 0, 4, 1, 2}}), listed({{0, 3}, {2, 1}, {5, 4}})})
    for (const char *algorithm : {"ring", "bruck", "binomial", "eager"})
      expectListed(axes, algorithm);
  expectListed(listed({{4, 0, 1, 7}, {5, 2, 6, 3}}), "bruck", "chunks = 3, depth = 2");
}

// Counts, known before and at run time, of listed groups and along axes in any order.
TEST(Equivalence, CountsOfAnyGroups) {
  Axes groups = listed({{4, 0, 1}, {5, 2, 3}});
  const std::vector<Shape> counts = {{0, 2, 1}, {3, 0, 0}, {1, 1, 4}};
  GraphText g({{"x", 2}, {"y", 3}});
  Tensor a = g.argument({6, 5}, "f32");
  g.result(g.allToAllV(a, 0, counts, groups));
  g.result(g.allToAllSized(a, 0, g.sizes(3, 2, "i64"), groups));
  std::vector<Shape> all(6, Shape(6));
  for (int64_t from = 0; from < 6; ++from)
    for (int64_t to = 0; to < 6; ++to)
      all[from][to] = (from * 5 + to * 3) % 4 / 2;
  g.result(g.allToAllV(a, 0, all, {"y", "x"}));
  expectEqual(g);
}

// Several grids of the same ranks, one of which crosses the others, and groups that overlap:
// tensor, data, expert and pipeline parallelism in one graph, in one order of collectives.
TEST(Equivalence, SeveralGrids) {
  GraphText g({{"pp", 2}, {"dp", 2}, {"tp", 2}});
  g.addGrid("h", {{"ep", 4}, {"etp", 2}});
  g.addGrid("flat", {{"rank", 8}});
  Axes expert{"ep"}, flat{"rank"};
  expert.grid = "h";
  flat.grid = "flat";
  Tensor a = g.argument({8, 4}, "f32");
  Tensor gathered = g.allGather(a, 0, 16, {"tp"});
  g.async = true;
  Tensor future = g.allToAll(gathered, 0, 0, expert);
  Tensor reduced = g.allReduce(a, sum("f32"), {"dp"});
  Tensor sent = g.permute(reduced, "shift 1", {"pp"});
  Tensor exchanged = g.await(future);
  g.result(g.allReduce(exchanged, "max accumulate f32 order any", {"pp", "dp"}));
  g.result(g.reduceScatter(sent, 0, sum("f32"), flat));
  g.result(g.allReduce(sent, sum("f32"), listed({{0, 7, 3}, {1, 2}, {6, 4, 5}})));
  g.barrier(flat);
  g.result(g.broadcast(exchanged, 5, flat));
  expectEqual(g);
  GraphText crossing({{"x", 2}, {"y", 3}});
  crossing.addGrid("h", {{"u", 3}, {"v", 2}});
  Axes other{"u"};
  other.grid = "h";
  Tensor b = crossing.argument({6}, "f32");
  Tensor c = crossing.allReduce(b, sum("f32"), {"x"});
  crossing.result(crossing.allGather(c, 0, 18, other));
  crossing.result(crossing.allReduce(c, sum("f32"), {"y"}));
  expectEqual(crossing);
}

// Every kind of reduction on every type, in the element type and, where there is one, in a wider
// one (peers 17c; ctran 4.2 14, 53).
TEST(Equivalence, EveryKindOnEveryType) {
  const std::pair<const char *, const char *> types[] = {
      {"f64", "f64"},    {"f32", "f64"},   {"f16", "f32"},   {"bf16", "f32"}, {"f8E4M3FN", "f32"},
      {"f8E5M2", "f16"}, {"i8", "i32"},    {"i16", "i64"},   {"i32", "i64"},  {"i64", "i64"},
      {"ui8", "ui16"},   {"ui16", "ui32"}, {"ui32", "ui64"}, {"ui64", "ui64"}};
  for (const char *algorithm : {"direct", "ring", "bruck", "eager"}) {
    GraphText g({{"x", 3}});
    g.algorithm = algorithm;
    for (auto [element, wide] : types)
      for (const char *kind : {"sum", "prod", "min", "max", "avg", "sum scale 0.3"}) {
        if (std::string(kind).find("scale") != std::string::npos && element[0] != 'f' &&
            element[0] != 'b')
          continue; // refused: test/NCCLX/invalid.mlir
        std::string accumulate = g.algorithm == "direct" || g.algorithm == "eager" ? wide : element;
        g.result(g.allReduce(g.argument({19}, element),
                             std::string(kind) + " accumulate " + accumulate + " order any",
                             {"x"}));
      }
    expectEqual(g, {.runs = 2, .adversarial = 1}, {g.algorithm == "ring" ? "tcp" : "shm"});
  }
}

// A result that counts fill to the last row is whole for what comes behind.
TEST(Equivalence, CountsThenAnother) {
  GraphText g({{"x", 2}, {"z", 3}});
  Tensor a = g.argument({4, 2}, "i8");
  Tensor filled = g.allToAllV(a, 1, {{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}, {"z"});
  g.algorithm = "binomial";
  g.result(g.gather(filled, 0, 24, 0, {"z", "x"}));
  expectEqual(g, {.runs = 2, .adversarial = 1});
}

// Round three axes in any order: what has been added up on the way fills no box of ranks.
TEST(Equivalence, RingsOfThreeAxesInAnyOrder) {
  GraphText g({{"x", 2}, {"y", 2}, {"z", 2}});
  g.algorithm = "ring";
  Axes axes{"x", "y", "z"};
  Tensor a = g.argument({5}, "i32");
  do {
    g.result(g.allReduce(a, sum("i32", "ring"), axes));
    g.result(g.reduce(a, 0, sum("i32", "ring"), axes));
  } while (std::next_permutation(axes.begin(), axes.end()));
  expectEqual(g, {.runs = 2, .adversarial = 1}, {"shm"});
}

// Of more than a few members, in rounds: no power of two, along one axis and several.
TEST(Equivalence, BarrierInRounds) {
  for (const Grid &grid : {Grid{{"x", 11}}, Grid{{"x", 3}, {"y", 4}, {"z", 1}}}) {
    GraphText g(grid);
    Axes all;
    for (auto &[axis, extent] : grid)
      all.push_back(axis);
    Tensor a = g.argument({5}, "f32");
    Tensor moved = g.permute(a, "shift 1", {"x"});
    g.barrier(all);
    g.result(g.permute(moved, "shift -1", {"x"}));
    g.barrier(all);
    expectEqual(g, {.runs = 3, .adversarial = 2});
  }
}

// A barrier between two collectives, and beside one in flight.
TEST(Equivalence, Barrier) {
  GraphText g({{"x", 3}, {"y", 2}});
  Tensor a = g.argument({12}, "f32");
  g.async = true;
  Tensor future = g.allGather(a, 0, 36, {"x"});
  g.barrier({"y"});
  Tensor b = g.broadcast(a, 1, {"y"});
  g.barrier({"x", "y"});
  g.result(g.await(future));
  g.result(g.allReduce(b, sum("f32"), {"x"}));
  expectEqual(g);

  // Whose group is no other member waits for nobody, and what it sends is still its own to finish.
  GraphText alone({{"x", 3}});
  Tensor c = alone.argument({4}, "f32");
  Tensor sum = alone.elementwise("add", c, c);
  alone.result(sum);
  alone.async = true;
  future = alone.allGather(sum, 0, 12, {"x"});
  alone.barrier(listed({{0, 1}, {2}}));
  alone.result(alone.await(future));
  expectEqual(alone);
}

} // namespace
