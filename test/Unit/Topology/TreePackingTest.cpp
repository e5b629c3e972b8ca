//===- TreePackingTest.cpp ------------------------------------------------===//
#include "ncclx/Topology/TreePacking.h"
#include "ncclx/Topology/Bounds.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace mlir::ncclx::topology;

namespace {
/// GPUs in a ring of links of several wires, and some more links across; every link both ways.
Topology randomGraph(unsigned n, std::mt19937 &random) {
  Topology topo;
  topo.hosts.emplace_back();
  topo.hosts[0].name = "host0";
  auto join = [&](unsigned a, unsigned b) {
    Rates rates{25'000'000'000, 20'000'000'000};
    unsigned wires = 1 + random() % 3;
    topo.links.push_back({a, b, LinkKind::nvlink, wires, rates, 500, 0});
    topo.links.push_back({b, a, LinkKind::nvlink, wires, rates, 500, 0});
  };
  for (unsigned i = 0; i < n; ++i) {
    Node node;
    node.name = "gpu" + std::to_string(i);
    topo.nodes.push_back(node);
    topo.ranks.push_back(i);
  }
  for (unsigned a = 0; a < n; ++a)
    for (unsigned b = a + 1; b < n; ++b)
      if (b == a + 1 || (a == 0 && b == n - 1) || random() % 3 == 0)
        join(a, b);
  return topo;
}

/// Every member is reached from the root, over routes; their loads are added.
void follow(ResourceModel &model, unsigned root, const std::vector<unsigned> &parent, bool sums,
            std::vector<double> &load) {
  ASSERT_EQ(parent[root], root);
  for (unsigned v = 0; v < parent.size(); ++v) {
    if (v == root)
      continue;
    unsigned u = v, steps = 0;
    for (; u != root && steps < parent.size(); ++steps)
      u = parent[u];
    EXPECT_EQ(u, root) << "member " << v << " is not reached";
    auto route = sums ? model.route(v, parent[v]) : model.route(parent[v], v);
    ASSERT_TRUE(route.has_value());
    for (unsigned resource : route->resources)
      load[resource] += 1 / model.resources()[resource].capacity.toDouble();
  }
}

void check(const Topology &topology, TreeFlow flow, Collective collective) {
  unsigned n = topology.numRanks();
  ResourceModel model(topology, Rate::payload);
  std::vector<unsigned> group(n);
  std::iota(group.begin(), group.end(), 0u);
  std::optional<TreePacking> packing = packTrees(model, group, flow);
  ASSERT_TRUE(packing.has_value());
  bool up = flow != TreeFlow::spread, down = flow != TreeFlow::sum, all = up && down;
  std::vector<double> load(model.resources().size(), 0);
  std::vector<unsigned> shares(n, 0);
  for (const PackedTree &tree : packing->trees) {
    ++shares[tree.root];
    ASSERT_EQ(tree.in.size(), up ? n : 0);
    ASSERT_EQ(tree.out.size(), down ? n : 0);
    if (up)
      follow(model, tree.root, tree.in, true, load);
    if (down)
      follow(model, tree.root, tree.out, false, load);
  }
  if (all)
    EXPECT_EQ(packing->trees.size(), packing->shares);
  else
    EXPECT_EQ(shares, std::vector<unsigned>(n, packing->shares));
  EXPECT_NEAR(*std::max_element(load.begin(), load.end()) / packing->shares,
              packing->secondsPerByte, packing->secondsPerByte * 1e-9);

  // The linear program comes to the narrowest cut, and the shares come near to that.
  BoundQuery query;
  query.collective = collective;
  query.group = group;
  query.bytes = 1'000'000'000'000;
  double bytes = double(query.bytes) / (all ? 1 : n);
  double least = bound(topology, query).seconds.toDouble();
  EXPECT_GE(packing->secondsPerByte, packing->leastSecondsPerByte * (1 - 1e-9));
  EXPECT_LE(packing->secondsPerByte * bytes, least * 1.02);
  EXPECT_LE(packing->leastSecondsPerByte * bytes, packing->secondsPerByte * bytes * (1 + 1e-9));
  EXPECT_GE(packing->secondsPerByte * bytes, least * (1 - 1e-9));
  if (!all)
    EXPECT_NEAR(packing->leastSecondsPerByte * bytes, least, least * 1e-3);
}
} // namespace

TEST(TreePacking, RandomGraphsAtTheirCuts) {
  std::mt19937 random(1);
  for (unsigned n : {2, 3, 4, 5, 6, 7, 8})
    for (unsigned turn = 0; turn < 3; ++turn) {
      SCOPED_TRACE(testing::Message() << n << " members, " << turn);
      Topology topology = randomGraph(n, random);
      check(topology, TreeFlow::spread, Collective::all_gather);
      check(topology, TreeFlow::sum, Collective::reduce_scatter);
      check(topology, TreeFlow::sumAndSpread, Collective::all_reduce);
    }
}

TEST(TreePacking, NoTrees) {
  Topology apart;
  std::mt19937 random(1);
  apart = randomGraph(4, random);
  std::erase_if(apart.links, [](const Link &link) { return link.from == 3 || link.to == 3; });
  ResourceModel model(apart, Rate::payload);
  std::vector<unsigned> all{0, 1, 2, 3}, one{0};
  EXPECT_FALSE(packTrees(model, all, TreeFlow::spread).has_value());
  EXPECT_FALSE(packTrees(model, one, TreeFlow::spread).has_value());
}
