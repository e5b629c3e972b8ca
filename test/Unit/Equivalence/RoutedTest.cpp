//===- RoutedTest.cpp - From hand to hand, where not all are joined --------------------===//
#include "Equivalence.h"

#include <gtest/gtest.h>

using namespace equivalence;

namespace {

/// GPUs joined by slow links, so that small blocks go in many steps.
std::string machine(int64_t ranks, const std::vector<std::pair<int, int>> &links) {
  std::string nodes, edges;
  for (int64_t i = 0; i < ranks; ++i)
    nodes += (i ? ", " : "") + std::string("{name = \"gpu") + std::to_string(i) +
             "\", kind = \"gpu\", gpu = \"A100-SXM-80GB\", rank = " + std::to_string(i) + "}";
  for (auto [from, to] : links)
    edges += (edges.empty() ? "" : ", ") + std::string("{from = \"gpu") + std::to_string(from) +
             "\", to = \"gpu" + std::to_string(to) +
             "\", kind = \"nvlink\", count = 1, raw = \"100000 B/s\", payload = \"100000 B/s\", "
             "both_ways}";
  return "{nodes = [" + nodes + "], links = [" + edges + "]}";
}

std::vector<std::pair<int, int>> line(int n) {
  std::vector<std::pair<int, int>> links;
  for (int i = 0; i + 1 < n; ++i)
    links.push_back({i, i + 1});
  return links;
}

GraphText routed(Grid grid, const std::vector<std::pair<int, int>> &links) {
  GraphText g(std::move(grid));
  g.topology = machine(g.ranks(), links);
  g.algorithm = "routed";
  return g;
}

} // namespace

// Every size of a block, from none, in a line of 4 with its end joined to its middle: whole ones,
// pieces, and where the streams' last pieces are cut further.
TEST(Routed, AllToAllOfEverySize) {
  for (int64_t block : {0, 1, 3, 17, 100, 1031}) {
    GraphText g = routed({{"x", 4}}, {{0, 1}, {1, 2}, {2, 3}, {3, 1}});
    g.result(g.allToAll(g.argument({4 * block}, "bf16"), 0, 0, {"x"}));
    expectEqual(g, {}, {block % 2 ? "tcp" : "shm"});
  }
}

// Blocks that are no runs of elements, or are cut in two dimensions; a group along two axes.
TEST(Routed, AllToAllOfEveryShape) {
  for (auto [split, concat] : {std::pair(1, 1), {0, 1}, {1, 0}, {2, 2}})
    for (const Grid &grid : {Grid{{"x", 6}}, Grid{{"y", 2}, {"x", 3}}}) {
      GraphText g = routed(grid, {{0, 1}, {1, 2}, {3, 4}, {4, 5}, {0, 3}, {1, 4}, {2, 5}});
      Axes axes;
      for (const auto &axis : grid)
        axes.insert(axes.begin(), axis.first);
      g.result(g.allToAll(g.argument({12, 18, 6}, "i8"), split, concat, axes));
      expectEqual(g, {}, {grid.size() == 1 ? "shm" : "tcp"});
    }
}

// Counts with none, one and many rows, with rows that nobody sends, and output to its end.
TEST(Routed, AllToAllVByCounts) {
  const std::vector<std::vector<Shape>> all = {
      {{0, 1, 7, 40}, {2, 0, 0, 3}, {64, 5, 1, 0}, {0, 0, 0, 0}},
      {{8, 8, 8, 8}, {8, 8, 8, 8}, {8, 8, 8, 8}, {8, 8, 8, 8}},
      {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}},
      {{0, 0, 0, 96}, {0, 0, 0, 0}, {0, 0, 0, 0}, {96, 0, 0, 0}}};
  for (const std::vector<Shape> &counts : all) {
    GraphText g = routed({{"x", 4}}, line(4));
    int64_t most = 0;
    for (const Shape &row : counts)
      most = std::max(most, row[0] + row[1] + row[2] + row[3]);
    g.result(g.allToAllV(g.argument({most + (most == 32 ? 0 : 70), 3}, "f32"), 0, counts, {"x"}));
    expectEqual(g);
  }
}

// A permute by a shift, which may be none, and by pairs: a send to one that no way leads to.
TEST(Routed, Permutes) {
  for (const char *how :
       {"shift 2", "shift -1", "shift 0", "pairs [0 -> 4]", "pairs [0 -> 3, 3 -> 1, 2 -> 2]"})
    for (int64_t size : {1, 500}) {
      GraphText g = routed({{"x", 5}}, line(5));
      g.result(g.permute(g.argument({size}, "f64"), how, {"x"}));
      expectEqual(g, {}, {size == 1 ? "tcp" : "shm"});
    }
}

// Two at once, of which one's result is what the other sends, and started before it is awaited.
TEST(Routed, SeveralInOneGraph) {
  GraphText g = routed({{"x", 4}}, line(4));
  Tensor a = g.argument({400}, "i32"), b = g.argument({4}, "i32");
  g.async = true;
  Tensor first = g.allToAll(a, 0, 0, {"x"});
  g.async = true;
  Tensor second = g.allToAll(b, 0, 0, {"x"});
  Tensor back = g.allToAll(g.await(first), 0, 0, {"x"});
  g.result(back);
  g.result(g.await(second));
  expectEqual(g);
}

TEST(Routed, Refusals) {
  auto why = [](GraphText g) { return refusal(g.str(), "shm"); };
  GraphText apart = routed({{"x", 3}}, {{0, 1}});
  apart.result(apart.allToAll(apart.argument({3}, "f32"), 0, 0, {"x"}));
  EXPECT_NE(why(apart).find("some member has no way to another"), std::string::npos) << why(apart);
  GraphText small = routed({{"x", 3}}, line(3));
  small.topology = machine(2, line(2));
  small.result(small.allToAll(small.argument({3}, "f32"), 0, 0, {"x"}));
  EXPECT_NE(why(small).find("3 ranks, but the topology"), std::string::npos);
  GraphText part = routed({{"x", 2}, {"y", 2}}, line(4));
  part.result(part.allToAll(part.argument({4}, "f32"), 0, 0, {"x"}));
  EXPECT_NE(why(part).find("it is for groups of all ranks, not of 2 of 4"), std::string::npos);
  GraphText gather = routed({{"x", 2}}, line(2));
  gather.result(gather.allGather(gather.argument({2}, "f32"), 0, 4, {"x"}));
  EXPECT_NE(why(gather).find("there are no routes for all_gather"), std::string::npos);
}
