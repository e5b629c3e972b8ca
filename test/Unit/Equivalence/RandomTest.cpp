//===- RandomTest.cpp - Graphs from a seed ---------------------------------===//
#include "Equivalence.h"
#include "RandomGraph.h"

#include <gtest/gtest.h>

using namespace equivalence;

namespace {

/// NCCLX_TEST_SEED runs one seed alone, over all of the transports.
void expectSeeds(uint64_t from, uint64_t to, Options options = {}, bool inTurn = false) {
  if (const char *one = getenv("NCCLX_TEST_SEED"))
    from = strtoull(one, nullptr, 10), to = from + 1, inTurn = false;
  for (uint64_t seed = from; seed < to; ++seed) {
    options.seed = seed;
    auto run = [&](const GraphText &graph) {
      for (const char *transport : {"shm", "tcp"})
        if (!inTurn || (seed % 2 == 0) == (*transport == 's'))
          if (std::string wrong = check(graph, transport, options); !wrong.empty())
            return wrong + "over " + transport + "\n";
      return std::string();
    };
    if (std::string wrong = failureOf(seed, run); !wrong.empty())
      ADD_FAILURE() << wrong;
  }
}

TEST(EquivalenceRandom, Graphs) { expectSeeds(1, 7); }
TEST(SlowEquivalenceRandom, Graphs) { expectSeeds(9, 34, {}, /*inTurn=*/true); }

// Every gain is taken, so that much moves; GEMMs of these sizes hide nothing under a margin.
Options overlap(const std::string &pass) {
  return {.pipeline = pass + "{machine=" NCCLX_MACHINES "/h100-nvswitch.json margin=0}"};
}
TEST(EquivalenceRandom, Overlapped) { expectSeeds(101, 105, overlap("ncclx-overlap")); }
TEST(SlowEquivalenceRandom, Overlapped) {
  expectSeeds(105, 121, overlap("ncclx-overlap"), /*inTurn=*/true);
}
TEST(SlowEquivalenceRandom, NamedOverlaps) {
  for (const char *pass :
       {"ncclx-pair-bulk", "ncclx-reschedule-ag-wgrad", "ncclx-hoist-collectives"})
    expectSeeds(121, 127, overlap(pass), /*inTurn=*/true);
}

int64_t count(const std::string &text, const std::string &word) {
  int64_t n = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size())
    ++n;
  return n;
}

// The generator makes all that the language has, and each seed the same graph again.
TEST(RandomGraph, HasAllWords) {
  std::map<std::string, int64_t> seen;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Choices choices(seed), again(seed);
    std::string text = makeGraph(choices).str();
    ASSERT_EQ(text, makeGraph(again).str()) << seed;
    Choices played(choices.list());
    ASSERT_EQ(text, makeGraph(played).str()) << seed;
    for (const char *word : {"ncclx.all_gather",
                             "ncclx.reduce_scatter",
                             "ncclx.all_reduce",
                             "ncclx.all_to_all ",
                             "ncclx.all_to_all_v",
                             "counts",
                             "sizes",
                             "ncclx.permute",
                             "pairs",
                             "ncclx.broadcast",
                             "ncclx.reduce ",
                             "ncclx.gather",
                             "ncclx.scatter",
                             "ncclx.barrier",
                             "ncclx.window",
                             "ncclx.put",
                             "ncclx.get",
                             "chunk",
                             "into(",
                             "groups",
                             "@h",
                             "scf.for",
                             "scf.if",
                             "scf.while",
                             "ncclx.assume_uniform",
                             "linalg.matmul",
                             "algorithm ring",
                             "algorithm bruck",
                             "algorithm binomial"})
      seen[word] += text.find(word) != std::string::npos;
    // Loops and branches in each other, and futures that both carry.
    auto holds = [&](const std::string &outer, const std::string &inner) {
      for (size_t at = 0; (at = text.find(outer, at)) != std::string::npos; ++at) {
        size_t open = text.find('{', at), end = open;
        for (int64_t left = 1; left && ++end < text.size();)
          left += text[end] == '{' ? 1 : text[end] == '}' ? -1 : 0;
        if (text.substr(open, end - open).find(inner) != std::string::npos)
          return true;
      }
      return false;
    };
    for (const char *outer : {"= scf.for", "= scf.if"})
      for (const char *inner : {"= scf.for", "= scf.if", "ncclx.", "!ncclx.future", "ncclx.window"})
        seen[std::string(inner) + " in " + outer] += holds(outer, inner);
    // A window of before a loop or branch that is used in it.
    for (size_t at = 0; (at = text.find(" = ncclx.window", at)) != std::string::npos; ++at) {
      std::string name = text.substr(text.rfind('%', at), at - text.rfind('%', at));
      for (const char *outer : {"= scf.for", "= scf.if"})
        if (size_t loop = text.find(outer, at); loop != std::string::npos)
          seen[std::string("a window goes into ") + outer] +=
              holds(outer, "into " + name + "[") &&
              text.find("into " + name + "[", loop) != text.npos;
    }
    seen["a loop carries a future"] +=
        text.find("!ncclx.future", text.find("iter_args")) < text.find("{", text.find("iter_args"));
  }
  for (auto &[what, times] : seen)
    EXPECT_GE(times, 5) << what;
}

// A fault that stands for one of the compiler: what is left of the graph is what the fault needs.
struct Fault {
  const char *what;
  std::function<bool(const GraphText &)> isThere;
  /// What the smallest graph has.
  int64_t ranks, collectives;
};

TEST(RandomGraph, ShrinksToWhatAFaultNeeds) {
  auto has = [](const GraphText &g, const std::string &word) {
    return g.str().find(word) != std::string::npos;
  };
  const Fault faults[] = {
      {"every graph", [](const GraphText &) { return true; }, 1, 1},
      {"a scatter with padding",
       [](const GraphText &g) {
         return std::any_of(g.outputs().begin(), g.outputs().end(),
                            [](const Tensor &t) { return t.padding.has_value(); });
       },
       2, 1},
      {"a maximum of bf16 on three ranks",
       [&](const GraphText &g) { return g.ranks() >= 3 && has(g, " max accumulate bf16"); }, 3, 1},
      {"a permute in a loop", // beside the collective that every graph has outside of loops
       [&](const GraphText &g) {
         std::string text = g.str();
         size_t loop = text.find("scf.for");
         return loop != std::string::npos &&
                text.find("ncclx.permute", loop) < text.find("}", loop);
       },
       1, 2},
  };
  for (const Fault &fault : faults) {
    int64_t found = 0, smallest = 0;
    for (uint64_t seed = 1; seed <= 800 && found < 5; ++seed) {
      GraphText least({{"x", 1}});
      auto run = [&](const GraphText &g) {
        if (!fault.isThere(g))
          return std::string();
        least = g; // the last one that is tried is the one that is told
        return std::string("injected: ") + fault.what + "\n";
      };
      std::string failure = failureOf(seed, run, 5000);
      if (failure.empty())
        continue;
      ++found;
      std::string text = least.str();
      EXPECT_NE(failure.find("seed " + std::to_string(seed) + ": injected"), std::string::npos);
      EXPECT_NE(failure.find(text), std::string::npos) << failure;
      smallest += least.ranks() == fault.ranks && count(text, " over @") == fault.collectives;
      EXPECT_LE(count(text, "\n"), 16) << fault.what << ", seed " << seed << "\n" << text;
      EXPECT_EQ(least.outputs().size(), 1u) << fault.what << ", seed " << seed << "\n" << text;
    }
    EXPECT_EQ(found, 5) << fault.what;
    EXPECT_GE(smallest, 4) << fault.what; // once in a while it stops before
  }
}
// What cuts ops, one behind the other, and placed.
TEST(SlowEquivalenceRandom, Cut) {
  std::string pipeline;
  for (const char *pass : {"split-halos", "direct-exchanges", "split-exchanges", "split-batches",
                           "split-sinks", "pipeline-loops", "braid-loops", "overlap"})
    pipeline += (pipeline.empty() ? "ncclx-" : ",ncclx-") + std::string(pass) +
                "{machine=" NCCLX_MACHINES "/../../test/Overlap/Inputs/free-steps.json" +
                (std::string(pass) == "split-sinks" ? "}" : " margin=0}");
  expectSeeds(121, 133, {.pipeline = pipeline});
}

} // namespace
