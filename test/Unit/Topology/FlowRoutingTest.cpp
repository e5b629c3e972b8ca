//===- FlowRoutingTest.cpp ------------------------------------------------===//
#include "ncclx/Topology/FlowRouting.h"
#include "ncclx/Topology/Bounds.h"
#include "ncclx/Topology/IO.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

using namespace mlir::ncclx::topology;

namespace {
Topology example(const char *file) {
  ReadResult result = readTopologyFile(std::string(NCCLX_EXAMPLES "/") + file);
  EXPECT_TRUE(result.topology.has_value()) << file;
  return result.topology ? *result.topology : Topology();
}

std::vector<unsigned> first(unsigned n) {
  std::vector<unsigned> group(n);
  std::iota(group.begin(), group.end(), 0u);
  return group;
}

/// Bytes beside which latencies do not count.
constexpr uint64_t large = 1'000'000'000'000;

std::vector<uint64_t> shifted(unsigned n, unsigned by) {
  std::vector<uint64_t> amounts(size_t(n) * n, 0);
  for (unsigned i = 0; i < n; ++i)
    amounts[i * n + (i + by) % n] = large;
  return amounts;
}

/// Every pair has all of its shares, on paths of routes that there are, and the busiest resource
/// takes as long as is said.
void check(ResourceModel &model, const std::vector<unsigned> &group,
           const std::vector<uint64_t> &amounts, const Routing &routing) {
  size_t n = group.size();
  std::vector<unsigned> shares(n * n, 0);
  std::vector<double> load(model.resources().size(), 0);
  for (const RoutedPath &path : routing.paths) {
    size_t pair = path.from() * n + path.to();
    EXPECT_EQ(path.first, shares[pair]);
    shares[pair] += path.share;
    EXPECT_LE(path.hops(), routing.depth);
    std::vector<unsigned> seen = path.members;
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
    for (unsigned hop = 0; hop < path.hops(); ++hop) {
      auto route = model.route(group[path.members[hop]], group[path.members[hop + 1]]);
      ASSERT_TRUE(route.has_value());
      for (unsigned resource : route->resources)
        load[resource] += double(amounts[pair]) * path.share / routing.shares /
                          model.resources()[resource].capacity.toDouble();
    }
  }
  for (size_t pair = 0; pair < n * n; ++pair)
    EXPECT_EQ(shares[pair], pair / n != pair % n && amounts[pair] ? routing.shares : 0u);
  EXPECT_NEAR(*std::max_element(load.begin(), load.end()), routing.seconds, routing.seconds * 1e-9);
}

/// The routing's time over the optimum that the bounds know.
double ratio(const char *file, unsigned n, unsigned shift = 0) {
  Topology topology = example(file);
  ResourceModel model(topology, Rate::payload);
  std::vector<unsigned> group = first(n);
  std::vector<uint64_t> amounts =
      shift ? shifted(n, shift) : std::vector<uint64_t>(size_t(n) * n, large);
  std::optional<Routing> routing = routeFlows(model, group, amounts);
  if (!routing) {
    ADD_FAILURE() << file;
    return 0;
  }
  check(model, group, amounts, *routing);
  BoundQuery query;
  query.collective = Collective::all_to_all_v;
  query.group = group;
  query.counts = amounts;
  query.bytes = largestTotal(amounts, n);
  double least = bound(topology, query).seconds.toDouble();
  EXPECT_LE(routing->leastSeconds, least * (1 + 1e-9));
  return routing->seconds / least;
}
} // namespace

TEST(FlowRouting, ComesNearToTheOptimum) {
  EXPECT_NEAR(ratio("h100x4-mesh.json", 4), 1, 1e-3);
  EXPECT_NEAR(ratio("torus-4x4.json", 16), 1, 1e-3);
  EXPECT_NEAR(ratio("mi250x16.json", 16), 1, 7e-3);
  for (unsigned n : {3, 5, 6, 7, 8})
    EXPECT_NEAR(ratio("dgx1-v100.json", n), 1, 7e-3) << n;
  EXPECT_NEAR(ratio("torus-4x4.json", 16, 1), 1, 7e-3);
  EXPECT_NEAR(ratio("dgx1-v100.json", 8, 1), 1, 7e-3);
}

TEST(FlowRouting, FewSharesWhereTheyDo) {
  Topology torus = example("torus-4x4.json");
  ResourceModel model(torus, Rate::payload);
  std::vector<uint64_t> amounts(256, 1000);
  std::optional<Routing> routing = routeFlows(model, first(16), amounts);
  ASSERT_TRUE(routing.has_value());
  EXPECT_EQ(routing->shares, 1u);
  EXPECT_EQ(routing->depth, 4u);
  std::optional<Routing> again = routeFlows(model, first(16), amounts);
  ASSERT_EQ(routing->paths.size(), again->paths.size());
  for (size_t i = 0; i < routing->paths.size(); ++i)
    EXPECT_EQ(routing->paths[i].members, again->paths[i].members);
}

TEST(FlowRouting, UnequalAmounts) {
  Topology machine = example("dgx1-v100.json");
  ResourceModel model(machine, Rate::payload);
  std::vector<uint64_t> amounts(64);
  for (size_t i = 0; i < amounts.size(); ++i)
    amounts[i] = i * i % 7 * 1000;
  std::optional<Routing> routing = routeFlows(model, first(8), amounts, 12);
  ASSERT_TRUE(routing.has_value());
  check(model, first(8), amounts, *routing);
  EXPECT_LE(routing->shares, 12u);
  EXPECT_TRUE(routeFlows(model, first(8), std::vector<uint64_t>(64, 0))->paths.empty());
}

TEST(FlowRouting, NoWay) {
  // Without GPU 4, GPUs 0 to 3 and 5 to 7 are joined; alone, 0 and 7 are not.
  Topology machine = example("dgx1-v100.json");
  ResourceModel model(machine, Rate::payload);
  std::vector<unsigned> two{0, 7};
  EXPECT_FALSE(routeFlows(model, two, {0, 1, 1, 0}).has_value());
  EXPECT_FALSE(routeFlows(model, {}, {}).has_value());
}
