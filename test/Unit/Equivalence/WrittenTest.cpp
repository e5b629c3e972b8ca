//===- WrittenTest.cpp - Collectives that a user's own schedule carries ---===//
#include "Written.h"
#include "Equivalence.h"

#include <gtest/gtest.h>

using namespace equivalence;

namespace {

const char *sumF32 = "sum accumulate f32 order rank";

/// Adds the schedule to the graph, and names it for the next collective.
void use(GraphText &g, const Written &written) {
  g.beside(written.str());
  g.schedule = written.name;
}

// Beside built-in ones, in groups of a larger grid, on tensors of several dimensions.
TEST(EquivalenceWritten, EveryKind) {
  GraphText g({{"x", 2}, {"y", 3}});
  Tensor a = g.argument({4, 5}, "f32"), b = g.argument({6, 5}, "f32");
  Tensor twice = g.elementwise("add", a, a);
  use(g, {"gather", "all_gather", 3, 20});
  Tensor gathered = g.allGather(twice, 0, 12, {"y"});
  g.result(gathered);
  use(g, {"exchange", "all_to_all", 2, 15});
  g.result(g.allToAll(b, 0, 0, {"x"}));
  use(g, {"scatter", "reduce_scatter", 3, 10});
  g.result(g.reduceScatter(b, 0, sumF32, {"y"}));
  use(g, {"reduce", "all_reduce", 2, 60, "f32", "max accumulate f32"});
  g.result(g.allReduce(gathered, "max accumulate f32 order any", {"x"}));
  use(g, {"average", "all_reduce", 3, 20, "f32", "sum scale 5.000000e-01 accumulate f32"});
  g.result(g.allReduce(a, "sum scale 0.5 accumulate f32 order rank", {"y"}));
  g.result(g.allReduce(a, sumF32, {"x", "y"}));
  expectEqual(g);
}

// One schedule twice, once in flight beside another collective; in place and not, from one that
// works in place and from one that does not.
TEST(EquivalenceWritten, InFlightAndInPlace) {
  GraphText g({{"x", 3}});
  Tensor a = g.argument({7}, "f32");
  use(g, {"gather", "all_gather", 3, 7});
  g.async = true;
  Tensor f = g.allGather(a, 0, 21, {"x"});
  Tensor sum = g.allReduce(a, sumF32, {"x"});
  g.schedule = "gather";
  Tensor other = g.allGather(sum, 0, 21, {"x"});
  g.result(g.await(f));
  g.result(other);
  for (bool inPlace : {false, true}) {
    Tensor t = g.elementwise("mul", a, sum);
    use(g,
        {inPlace ? "within" : "apart", "all_reduce", 3, 7, "f32", "sum accumulate f32", inPlace});
    g.into = t;
    t = g.allReduce(t, sumF32, {"x"}); // the destination is the input
    g.schedule = inPlace ? "within" : "apart";
    Tensor u = g.allReduce(t, sumF32, {"x"});
    g.result(g.elementwise("add", t, u));
  }
  expectEqual(g);
}

// A schedule that does something else than its collective is not run.
TEST(EquivalenceWritten, TheProofIsOfTheCollective) {
  auto refused = [](const Written &written, auto collective) {
    GraphText g({{"x", 3}});
    use(g, written);
    g.result(collective(g));
    for (const char *transport : {"shm", "tcp"})
      EXPECT_EQ(inspect(g, transport).substr(0, 14), "prove: result:")
          << inspect(g, transport) << g.str();
  };
  refused({"w", "all_reduce", 3, 6, "f32", "min accumulate f32"}, [](GraphText &g) {
    return g.allReduce(g.argument({6}, "f32"), "max accumulate f32 order any", {"x"});
  });
  refused({"w", "all_reduce", 3, 6, "f32", "sum divide 3 accumulate f32"},
          [](GraphText &g) { return g.allReduce(g.argument({6}, "f32"), sumF32, {"x"}); });
  Written wrong{"w", "all_gather", 3, 6};
  std::string text = wrong.str();
  for (auto [what, with] : {std::pair("notify %flag ", ""),
                            {"%may = ctran.wait %slot >= %c1", "%may = ctran.wait %slot >= %c0"}}) {
    GraphText g({{"x", 3}});
    std::string broken = text;
    broken.replace(broken.find(what), std::string(what).size(), with);
    if (!*with) // then nobody waits either
      broken.replace(broken.find("%got = ctran.wait %slot >= %c1"), 30,
                     "%got = ctran.wait %slot >= %c0");
    g.beside(broken);
    g.schedule = "w";
    g.result(g.allGather(g.argument({6}, "f32"), 0, 18, {"x"}));
    std::string says = inspect(g, "tcp");
    EXPECT_EQ(says.substr(0, 6), "prove:") << says << g.str();
  }
}

} // namespace
