//===- OverlapTest.cpp - What overlap passes make of graphs written for them ---------------===//
#include "Equivalence.h"
#include "RandomGraph.h"

#include <gtest/gtest.h>
#include <limits>

using namespace equivalence;

namespace {

const std::string host = "machine=" NCCLX_MACHINES "/../stencil-3d/machine.json";
const std::string steps =
    "margin=0 machine=" NCCLX_MACHINES "/../../test/Overlap/Inputs/free-steps.json}";

/// Expects that the passes make another graph of it, which means the same to the last bit.
void expectChanged(const GraphText &g, const Options &options) {
  EXPECT_NE(passed(g.str(), options.pipeline), passed(g.str(), ""));
  expectEqual(g, options, {"shm"});
}

/// A field with `width` layers of either neighbour along each axis, in turn: what comes along one
/// goes with what is sent along the next, so that corners come, too.
Tensor withHalo(GraphText &g, const Tensor &field, const std::vector<std::string> &axes,
                int64_t width) {
  Shape shape = field.shape;
  for (size_t i = 0; i < axes.size(); ++i)
    shape[i] += 2 * width;
  Tensor all = field;
  for (int64_t i = 0, n = axes.size(); i < n; ++i) {
    int64_t rows = field.shape[i];
    Tensor last = g.slice(all, i, rows - width, width), first = g.slice(all, i, 0, width);
    Shape next = all.shape;
    next[i] += 2 * width;
    Tensor into = g.insert(all, g.empty(next, field.element), i, width);
    into = g.insert(g.permute(last, "shift 1", {axes[i]}), into, i, 0);
    all = g.insert(g.permute(first, "shift -1", {axes[i]}), into, i, rows + width);
  }
  return all;
}

/// A window over a field in two dimensions: a sum of products.
Tensor window(GraphText &g, const Tensor &in, const Tensor &weights, const Tensor &into) {
  return g.op(
      "linalg.generic {indexing_maps = [affine_map<(i, j, m, n) -> (i + m, j + n)>, "
      "affine_map<(i, j, m, n) -> (m, n)>, affine_map<(i, j, m, n) -> (i, j)>], iterator_types = "
      "[\"parallel\", \"parallel\", \"reduction\", \"reduction\"]} ins(" +
          in.name + ", " + weights.name + " : " + in.type() + ", " + weights.type() + ") outs(" +
          into.name + " : " + into.type() +
          ") { ^bb0(%x: f32, %y: f32, %z: f32):\n    %p = arith.mulf %x, %y : f32\n    %q = "
          "arith.addf %z, %p : f32\n    linalg.yield %q : f32 } -> " +
          into.type(),
      into.shape, into.element);
}

// Stencils in an interior and slabs, placed and not: two steps, with corners; sizes that no group
// divides, one or two layers, along one axis or two.
TEST(EquivalenceOverlap, Halos) {
  for (int64_t width : {1, 2})
    for (const std::vector<std::string> &axes :
         {std::vector<std::string>{"x"}, std::vector<std::string>{"y", "x"}}) {
      SCOPED_TRACE(std::to_string(width) + " layers along " + std::to_string(axes.size()));
      GraphText g({{"y", 2}, {"x", 3}});
      Tensor f = g.argument({5 + 5 * width, 7 + 6 * width}, "f32");
      Tensor weights =
          g.argument({1 + 2 * width, axes.size() > 1 ? 1 + 2 * width : int64_t(1)}, "f32");
      for (int step = 0; step < 2; ++step) {
        Tensor padded = withHalo(g, f, axes, width);
        Tensor next = window(g, padded, weights, g.elementwise("mul", f, f));
        f = g.elementwise("sub", next, f);
      }
      g.result(f);
      std::string pass = "ncclx-split-halos{margin=0 " + host + "}";
      if (width == 1)
        pass += ",ncclx-overlap{margin=0 " + host + "}";
      expectChanged(g, {.runs = 1, .adversarial = 1, .pipeline = pass, .specials = true});
    }
}

// Passes that cut ops: a gather and its product, a product and its reduction in its declared order,
// and a product that nobody needs; each in parts of unequal size.
TEST(EquivalenceOverlap, InParts) {
  const std::string machine =
      "machine=" NCCLX_MACHINES "/../../test/Overlap/Inputs/small-tiles.json";
  for (int64_t n : {2, 3})
    for (const std::string &pass : {"ncclx-split-exchanges{parts=3 margin=0 " + machine + "}",
                                    "ncclx-split-sinks{piece-us=0.002 " + machine + "}"}) {
      SCOPED_TRACE(pass + " on " + std::to_string(n));
      GraphText g({{"x", n}});
      Tensor a = g.argument({5, 16}, "f32"), w = g.argument({16, 9}, "f32");
      Tensor c = g.matmul(g.allGather(a, 0, 5 * n, {"x"}), w);
      Tensor d = g.matmul(c, g.argument({9, 7}, "f32"));
      g.result(g.reduceScatter(d, 0, "sum accumulate f32 order ring", {"x"}));
      g.result(g.matmul(g.argument({20, 16}, "f32"), w));
      expectEqual(g, {.pipeline = pass});
    }
}

// The same in steps: rings and doubling steps, of any number of members, over axes and listed
// groups; in the declared order, in wider types too. NaN, infinities and -0 among the inputs.
TEST(EquivalenceOverlap, InSteps) {
  const std::string machine =
      "margin=0 machine=" NCCLX_MACHINES "/../../test/Overlap/Inputs/free-steps.json";
  struct Case {
    Grid grid;
    Axes axes;
    int64_t members;
  };
  Axes listed;
  listed.groups = {{4, 0, 2}, {1, 3, 5}};
  std::vector<Case> cases = {{{{"x", 5}}, {"x"}, 5},
                             {{{"x", 6}}, listed, 3},
                             {{{"x", 2}, {"y", 4}}, {"x", "y"}, 8},
                             {{{"x", 3}, {"y", 2}}, {"y", "x"}, 6}};
  auto reduced = [](GraphText &g, const Axes &axes, int64_t n, const std::string &reduction,
                    const std::string &type) {
    Tensor product = g.matmul(g.argument({3 * n, 4}, type), g.argument({4, 5}, type));
    g.result(g.reduceScatter(product, 0, reduction, axes));
  };
  for (Case &c : cases)
    for (bool ring : {true, false}) {
      std::string order = ring ? "ring" : "tree";
      SCOPED_TRACE(order + " of " + std::to_string(c.members));
      GraphText g(c.grid);
      Tensor w = g.argument({16, 9}, "f32");
      g.result(g.matmul(g.allGather(g.argument({5, 16}, "f32"), 0, 5 * c.members, c.axes), w));
      Tensor left = g.argument({4, 9}, "f32");
      g.result(g.matmul(left, g.allGather(g.argument({9, 2}, "f32"), 1, 2 * c.members, c.axes)));
      // What no algorithm can carry whole in that order is left to what is exact in any.
      if (c.axes.size() == 1)
        reduced(g, c.axes, c.members, "sum accumulate f32 order " + order, "f32");
      reduced(g, c.axes, c.members, "sum accumulate i64 order any", "i32");
      reduced(g, c.axes, c.members, "max accumulate f32 order any", "bf16");
      reduced(g, c.axes, c.members, "prod accumulate i64 order any", "i32");
      expectEqual(
          g,
          {.runs = 1,
           .adversarial = 1,
           .pipeline = (ring ? "ncclx-ring-exchanges{" : "ncclx-double-exchanges{") + machine + "}",
           .specials = true},
          {"shm"});
    }
}

// Rows in two halves, uneven, with ops that need all of them in between; also once they are placed.
TEST(EquivalenceOverlap, InHalves) {
  const std::string machine =
      "margin=0 machine=" NCCLX_MACHINES "/../../test/Overlap/Inputs/free-steps.json}";
  for (const std::string &pipeline :
       {"ncclx-split-batches{" + machine, "ncclx-split-batches{rows=3 " + machine,
        "ncclx-split-batches{" + machine + ",ncclx-overlap{" + machine}) {
    SCOPED_TRACE(pipeline);
    GraphText g({{"x", 3}});
    Tensor w = g.argument({16, 12}, "f32"), v = g.argument({12, 16}, "f32");
    Tensor a = g.argument({11, 16}, "f32");
    Tensor c = g.allReduce(g.matmul(a, w), "sum accumulate f32 order rank", {"x"});
    Tensor scores = g.matmul(c, g.argument({12, 11}, "f32"));
    Tensor mixed = g.matmul(scores, c); // a sum over the rows
    Tensor moved = g.permute(g.elementwise("add", mixed, c), "shift 1", {"x"});
    Tensor d = g.reduceScatter(g.matmul(moved, v), 1, "sum accumulate f32 order ring", {"x"});
    g.result(g.allGather(d, 1, 16, {"x"}));
    g.result(
        g.allReduce(g.matmul(d, g.argument({6, 5}, "f32")), "max accumulate f32 order any", {"x"}));
    expectEqual(g, {.runs = 1, .adversarial = 1, .pipeline = pipeline, .specials = true}, {"shm"});
  }
}

// Rows that collectives gather and scatter themselves: halves of every shard, uneven, with ops that
// need all rows, in their order, in between.
TEST(EquivalenceOverlap, ShardsInHalves) {
  for (const std::string &pipeline : {"ncclx-split-batches{rows=2 " + steps,
                                      "ncclx-split-batches{" + steps + ",ncclx-overlap{" + steps}) {
    SCOPED_TRACE(pipeline);
    GraphText g({{"x", 3}});
    Tensor w = g.argument({16, 12}, "f32"), v = g.argument({12, 16}, "f32");
    Tensor x = g.argument({5, 16}, "f32");
    for (int layer = 0; layer < 2; ++layer) {
      Tensor norm = g.elementwise("mul", x, x);
      Tensor full = g.allGather(norm, 0, 15, {"x"});
      Tensor inner = g.matmul(full, w);
      Tensor mixed = g.matmul(g.matmul(inner, g.argument({12, 15}, "f32")), inner); // all rows
      Tensor part = g.matmul(g.elementwise("add", mixed, inner), v);
      Tensor mine = g.reduceScatter(part, 0, "sum accumulate f32 order rank", {"x"});
      x = g.elementwise("add", mine, x);
    }
    g.result(x);
    g.result(g.allGather(x, 0, 15, {"x"}));
    expectChanged(g, {.runs = 1, .adversarial = 1, .pipeline = pipeline, .specials = true});
  }
}

// Products of the chunks of one gather, placed and not.
TEST(EquivalenceOverlap, ByChunk) {
  for (const std::string &pipeline :
       {"ncclx-direct-exchanges{" + steps,
        "ncclx-direct-exchanges{" + steps + ",ncclx-overlap{" + steps}) {
    SCOPED_TRACE(pipeline);
    GraphText g({{"x", 2}, {"y", 3}});
    Tensor w = g.argument({16, 9}, "f32"), left = g.argument({4, 9}, "f32");
    g.result(g.matmul(g.allGather(g.argument({5, 16}, "f32"), 0, 15, {"y"}), w));
    g.result(g.matmul(left, g.allGather(g.argument({9, 2}, "f32"), 1, 12, {"y", "x"})));
    g.result(g.matmul(left, w = g.argument({9, 7}, "f32")));
    expectChanged(g, {.runs = 1, .adversarial = 1, .pipeline = pipeline});
  }
}

/// A loop with a gather of what the next iteration needs, which its own slice or this iteration
/// gives, and a sum that may be an iteration late. It runs `trips` times, or from 0 to 3 times as
/// the data says.
GraphText loopGraph(std::optional<int64_t> trips) {
  GraphText g({{"x", 3}});
  const int64_t most = trips.value_or(3);
  Tensor shards = g.argument({most + 2, 4, 12}, "f32"), h = g.argument({12, 12}, "f32");
  Tensor w = g.argument({12, 12}, "f32"), sum = g.argument({4, 12}, "f32");
  Tensor from = g.op("arith.constant 1 : index", {}, "f32");
  Tensor step = g.op("arith.constant 1 : index", {}, "f32");
  Tensor to = g.op("arith.constant " + std::to_string(most + 1) + " : index", {}, "f32");
  if (!trips) {
    Tensor data = g.uniformArgument({1}, "i32");
    Tensor zero = g.op("arith.constant 0 : index", {}, "f32");
    Tensor three = g.op("arith.constant 3 : i32", {}, "f32");
    Tensor any =
        g.op("tensor.extract " + data.name + "[" + zero.name + "] : tensor<1xi32>", {}, "f32");
    Tensor few = g.op("arith.andi " + any.name + ", " + three.name + " : i32", {}, "f32");
    Tensor count = g.op("arith.index_cast " + few.name + " : i32 to index", {}, "f32");
    to = g.op("arith.addi " + from.name + ", " + count.name + " : index", {}, "f32");
  }
  Tensor into = g.argument({12, 12}, "f32"), small = g.empty({4, 12}, "f32");
  std::string big = "tensor<12x12xf32>", little = "tensor<4x12xf32>";
  auto matmul = [&](const std::string &name, const std::string &a, const std::string &b,
                    const std::string &out) {
    return "    " + name + " = linalg.matmul ins(" + a + ", " + b + " : " + big + ", " + big +
           ") outs(" + out + " : " + big + ") -> " + big + "\n";
  };
  std::string loop = g.op("tensor.empty() : tensor<1xf32>", {1}, "f32").name + "_loop";
  g.op("tensor.empty() : tensor<1xf32>\n  " + loop + ":3 = scf.for %i = " + from.name + " to " +
           to.name + " step " + step.name + " iter_args(%h = " + h.name + ", %sum = " + sum.name +
           ", %mine = " + sum.name + ") -> (" + big + ", " + little + ", " + little +
           ") {\n    %s = tensor.extract_slice " + shards.name +
           "[%i, 0, 0] [1, 4, 12] [1, 1, 1] : " + shards.type() + " to " + little +
           "\n    %w = ncclx.all_gather %s dim 0 over @g[\"x\"] : " + little + " -> " + big +
           "\n    %m = ncclx.all_gather %mine dim 0 over @g[\"x\"] : " + little + " -> " + big +
           "\n" + matmul("%a", "%h", "%w", into.name) + matmul("%b", "%a", w.name, "%m") +
           "    %g = ncclx.reduce_scatter %b dim 0 sum accumulate f32 order ring over "
           "@g[\"x\"] : " +
           big + " -> " + little + "\n    %t = linalg.add ins(%sum, %g : " + little + ", " +
           little + ") outs(" + small.name + " : " + little + ") -> " + little +
           "\n    %next = tensor.extract_slice %a[2, 0] [4, 12] [1, 1] : " + big + " to " + little +
           "\n    scf.yield %b, %t, %next : " + big + ", " + little + ", " + little + "\n  }",
       {1}, "f32");
  for (int i = 0; i < 3; ++i)
    g.result({loop + "#" + std::to_string(i), i ? Shape{4, 12} : Shape{12, 12}, "f32", {}, 0});
  return g;
}

TEST(EquivalenceOverlap, PipelinedLoops) {
  for (const std::string &pipeline : {"ncclx-pipeline-loops{" + steps,
                                      "ncclx-pipeline-loops{" + steps + ",ncclx-overlap{" + steps,
                                      "ncclx-braid-loops{" + steps + ",ncclx-overlap{" + steps})
    for (std::optional<int64_t> trips : {std::optional<int64_t>(2), {5}, {}}) {
      SCOPED_TRACE(pipeline + " of " + std::to_string(trips.value_or(-1)));
      Options options{.runs = trips ? 1 : 6, .adversarial = 1, .pipeline = pipeline};
      options.interpretOnly = !trips; // no schedule is made of such a loop
      expectChanged(loopGraph(trips), options);
    }
}

// Halos that neighbours put into windows, in loops too: the interior is made in front of the wait.
TEST(EquivalenceOverlap, PutHalos) {
  for (bool placed : {false, true}) {
    GraphText g({{"x", 3}});
    Tensor f = g.argument({7, 5}, "f32");
    Tensor w = g.window({9, 5}, "f32", {"x"});
    f = g.loop(0, 3, 1, {f}, [&](const std::string &, const GraphText::Carried &held) {
           const Tensor &field = held[0];
           g.put(field, w, {1, 0}, "");
           g.put(g.slice(field, 0, 6, 1), w, {0, 0}, "shift 1");
           g.signal(w, "shift 1");
           g.put(g.slice(field, 0, 0, 1), w, {8, 0}, "shift -1");
           g.signal(w, "shift -1");
           g.wait(w, "shift 1");
           g.wait(w, "shift -1");
           Tensor above = g.get(w, {0, 0}, {7, 5}), below = g.get(w, {2, 0}, {7, 5});
           g.signal(w, "shift -1");
           g.signal(w, "shift 1");
           g.wait(w, "shift -1");
           g.wait(w, "shift 1");
           return GraphText::Carried{
               g.elementwise("sub", g.elementwise("add", above, below), field)};
         }).front();
    g.result(f);
    std::string pass = "ncclx-split-halos{margin=0 " + host + "}";
    if (placed)
      pass += ",ncclx-overlap{margin=0 " + host + "}";
    expectChanged(g, {.runs = 2, .adversarial = 2, .pipeline = pass, .specials = true});
  }
}

// Each block of a product goes straight to whom it is for: any order, and the members', in wider
// types too.
TEST(EquivalenceOverlap, DirectReductions) {
  for (const std::string &reduction :
       {"sum accumulate f32 order rank", "sum accumulate f64 order rank",
        "min accumulate f32 order any"}) {
    GraphText g({{"x", 3}, {"y", 2}});
    Tensor left = g.argument({12, 16}, "f32"), right = g.argument({16, 5}, "f32");
    g.result(g.reduceScatter(g.matmul(left, right), 0, reduction, {"x"}));
    g.result(g.reduceScatter(g.matmul(g.argument({5, 16}, "f32"), g.argument({16, 12}, "f32")), 1,
                             reduction, {"y", "x"}));
    expectChanged(g, {.runs = 1,
                      .adversarial = 1,
                      .pipeline = "ncclx-direct-exchanges{" + steps,
                      .specials = true});
  }
}

// Weights that are updated in place: what was gathered of the old ones, and is still in flight, and
// what is gathered of the new ones.
TEST(EquivalenceOverlap, FreshWeights) {
  for (const char *pass : {"ncclx-hoist-collectives{", "ncclx-pair-bulk{", "ncclx-overlap{"}) {
    SCOPED_TRACE(pass);
    GraphText g({{"x", 3}});
    Tensor w = g.argument({4, 12}, "f32", /*mayChange=*/true), d = g.argument({4, 12}, "f32");
    Tensor x = g.argument({12, 12}, "f32");
    Tensor before = g.allGather(w, 0, 12, {"x"});
    Tensor p = g.matmul(x, x);
    Tensor updated = g.elementwise("add", w, d, w);
    Tensor after = g.allGather(updated, 0, 12, {"x"});
    Tensor q = g.matmul(x, p);
    g.result(g.matmul(before, q));
    g.result(g.matmul(after, q));
    g.result(updated);
    expectChanged(g, {.runs = 3, .adversarial = 2, .pipeline = pass + steps});
  }
}

/// A pass, told that every kind of collective has an engine, and that steps and memory cost
/// nothing: what is legal is done.
std::string everythingPays(const std::string &pass) {
  return "ncclx-" + pass + "{machine=" NCCLX_MACHINES "/../../test/Overlap/Inputs/free-all.json" +
         (pass == "split-sinks" ? " piece-us=0.001}" : " margin=0}");
}

/// A pass over graphs from seeds, which hold what passes look for among all else: the same bits.
/// What fails is shrunk. Of those that it changes at most `most` are checked; how many there are.
int64_t runSeeds(const std::string &pass, uint64_t from, uint64_t to, Options options,
                 int64_t most = std::numeric_limits<int64_t>::max()) {
  int64_t changed = 0;
  options.pipeline = everythingPays(pass);
  for (uint64_t seed = from; seed < to && changed < most; ++seed) {
    options.seed = seed;
    bool counts = true; // not those that are tried while it shrinks
    auto run = [&](const GraphText &graph) {
      bool isSeeds = std::exchange(counts, false);
      bool isMoved = isSeeds && moves(graph.str(), options.pipeline);
      changed += isMoved;
      if (isSeeds && !isMoved && !options.interpretOnly)
        return std::string(); // the compiler's own tests run those that stay as they are
      return check(graph, "shm", options);
    };
    if (std::string wrong = failureOf(seed, run, 300, /*overlaps=*/true); !wrong.empty())
      ADD_FAILURE() << options.pipeline << "\n" << wrong;
  }
  return changed;
}

/// Expects it to change one graph in ten, and says how many it has.
void interpretSeeds(const std::string &pass, uint64_t from, uint64_t to) {
  int64_t changed = runSeeds(pass, from, to, {.runs = 1, .adversarial = 0, .interpretOnly = true});
  printf("%-20s changes %lld of %lld graphs\n", pass.c_str(), (long long)changed,
         (long long)(to - from));
  fflush(stdout);
  EXPECT_GE(changed * 10, int64_t(to - from)) << pass;
}

const char *const allPasses[] = {"pair-bulk",        "reschedule-ag-wgrad", "hoist-collectives",
                                 "overlap",          "split-sinks",         "split-exchanges",
                                 "direct-exchanges", "ring-exchanges",      "double-exchanges",
                                 "split-batches",    "split-halos",         "pipeline-loops",
                                 "braid-loops"};

/// Those that look at more than a collective and its neighbours: rows, stencils, loops.
bool isOfRegions(const std::string &pass) {
  return pass == "split-batches" || pass == "split-halos" || pass == "pipeline-loops" ||
         pass == "braid-loops";
}

TEST(SlowEquivalenceOverlap, EachPassOnRandomGraphs) {
  for (const char *pass : allPasses)
    if (!isOfRegions(pass))
      interpretSeeds(pass, 1, 21);
}
TEST(SlowEquivalenceOverlap, HalvesAndLoopsOnRandomGraphs) {
  for (const char *pass : allPasses)
    if (isOfRegions(pass))
      interpretSeeds(pass, 1, 21);
}

/// NCCLX_TEST_WHOLE=1: as many graphs on threads as the interpreter has.
bool isWhole() { return getenv("NCCLX_TEST_WHOLE"); }

// What the interpreter says is so of processes, too: graphs that a pass has changed are compiled,
// proved and run on threads.
TEST(SlowEquivalenceOverlap, EachPassOnTheHost) {
  for (const char *pass : allPasses) {
    int64_t ran = isWhole() ? runSeeds(pass, 1, 21, {.runs = 2, .adversarial = 1})
                            : runSeeds(pass, 1, 21, {.runs = 2, .adversarial = 1}, 2);
    printf("%-20s runs %lld changed graphs\n", pass, (long long)ran);
    fflush(stdout);
    EXPECT_GE(ran, 2) << pass;
  }
}

/// Four of them, one behind the other, in any order.
void inAnyOrder(uint64_t to, Options options) {
  for (uint64_t seed = 1; seed < to; ++seed) {
    Choices order(1000 + seed);
    std::vector<const char *> passes(std::begin(allPasses), std::end(allPasses));
    order.shuffle(passes);
    options.seed = seed;
    options.pipeline.clear();
    for (int i = 0; i < 4; ++i)
      options.pipeline += (i ? "," : "") + everythingPays(passes[i]);
    auto run = [&](const GraphText &graph) { return check(graph, "shm", options); };
    if (std::string wrong = failureOf(seed, run, 300, /*overlaps=*/true); !wrong.empty())
      ADD_FAILURE() << options.pipeline << "\n" << wrong;
  }
}
TEST(SlowEquivalenceOverlap, PassesInAnyOrder) {
  inAnyOrder(31, {.runs = 1, .adversarial = 0, .interpretOnly = true});
}
TEST(SlowEquivalenceOverlap, PassesInAnyOrderOnTheHost) {
  inAnyOrder(isWhole() ? 31 : 7, {.runs = 2, .adversarial = 1});
}

} // namespace
