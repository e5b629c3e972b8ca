//===- ResourcesTest.cpp --------------------------------------------------===//
#include "ncclx/Topology/Resources.h"
#include "ncclx/Topology/IO.h"
#include "ncclx/Topology/Make.h"
#include <gtest/gtest.h>

using namespace mlir::ncclx::topology;

namespace {
Topology example(const char *file) {
  ReadResult result = readTopologyFile(std::string(NCCLX_EXAMPLES "/") + file);
  EXPECT_TRUE(result.topology.has_value()) << file;
  return result.topology ? *result.topology : Topology();
}

std::vector<std::string> names(const ResourceModel &model, const Route &route) {
  std::vector<std::string> list;
  for (unsigned r : route.resources)
    list.push_back(model.name(r));
  return list;
}
using Names = std::vector<std::string>;

TEST(Resources, SwitchPlanesAreOneResource) {
  Topology topo = example("h200x8-nvswitch.xml");
  ResourceModel model(topo, Rate::payload);
  std::optional<Route> route = model.route(1, 6);
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(names(model, *route),
            (Names{"gpu1.hbm", "gpu1->nvswitch", "nvswitch->gpu6", "gpu6.hbm"}));
  EXPECT_EQ(route->cap, Rational(370'800'000'000));
  EXPECT_EQ(route->latencyNs, Rational(1000));
  EXPECT_EQ(model.resources()[route->resources[1]].capacity, Rational(370'800'000'000));
  EXPECT_EQ(model.reachability(1, 6), Reach::loadStore);
  EXPECT_EQ(ResourceModel(topo, Rate::raw).bandwidth(0, 7), Rational(450'000'000'000));
}

TEST(Resources, CommonSwitch) {
  Topology topo = example("h200x8-nvswitch.xml");
  std::optional<CommonSwitch> found = ResourceModel(topo, Rate::payload).commonSwitch({5, 2, 7});
  ASSERT_TRUE(found.has_value());
  ResourceModel model(topo, Rate::payload);
  Names ways;
  for (unsigned i = 0; i < 3; ++i)
    for (const std::vector<unsigned> *way : {&found->up, &found->down})
      ways.push_back(model.name((*way)[i]));
  EXPECT_EQ(ways, (Names{"gpu5->nvswitch", "nvswitch->gpu5", "gpu2->nvswitch", "nvswitch->gpu2",
                         "gpu7->nvswitch", "nvswitch->gpu7"}));
  EXPECT_EQ(found->cap, Rational(370'800'000'000));
  EXPECT_EQ(found->latencyNs, Rational(1000));
  // One plane that cannot, and the bundle cannot.
  topo.nodes[topo.findNode("nvswitch-0000:c4:00.0")].reduces = false;
  EXPECT_FALSE(ResourceModel(topo, Rate::payload).commonSwitch({0, 1}).has_value());
  // On two hosts there are two switches.
  Topology hosts = example("dgx-h100-2.json");
  ResourceModel both(hosts, Rate::payload);
  EXPECT_TRUE(both.commonSwitch({8, 15}).has_value());
  EXPECT_FALSE(both.commonSwitch({7, 8}).has_value());
  EXPECT_FALSE(ResourceModel(example("dgx-a100.json"), Rate::raw).commonSwitch({0, 1}).has_value());
  EXPECT_FALSE(ResourceModel(example("h100x4-mesh.json"), Rate::raw).commonSwitch({0}).has_value());
}

TEST(Resources, UnequalPlanesLimitOneTransfer) {
  Topology topo = example("h200x8-nvswitch.xml");
  // GPU 0 has two more links on one plane and two fewer on another: both sums stay 18.
  int first = topo.findNode("nvswitch-0000:c4:00.0"),
      second = topo.findNode("nvswitch-0000:c5:00.0");
  int gpu = topo.findNode("gpu0");
  for (Link &link : topo.links)
    if (int(link.from) == gpu || int(link.to) == gpu) {
      int other = int(link.from) == gpu ? int(link.to) : int(link.from);
      link.count += other == first ? 2 : 0;
      link.count -= other == second ? 2 : 0;
    }
  ResourceModel model(topo, Rate::raw);
  EXPECT_EQ(model.bandwidth(0, 1), Rational(400'000'000'000)); // 5 + 3 + 4 + 4 wires
  EXPECT_EQ(model.bandwidth(1, 2), Rational(450'000'000'000));
}

TEST(Resources, NeverThroughAnotherRank) {
  // In the cube mesh GPUs 0 and 5 are not neighbours, and there is no PCI in that description.
  Topology topo = example("dgx1-v100.json");
  ResourceModel model(topo, Rate::raw);
  EXPECT_EQ(model.reachability(0, 5), Reach::none);
  EXPECT_FALSE(model.route(0, 5).has_value());
  EXPECT_TRUE(model.bandwidth(0, 5).isZero());
  EXPECT_EQ(model.bandwidth(0, 4), Rational(50'000'000'000));
}

// Of ways of as many links the widest wins, wherever the searches from both ends meet; what is
// wider and longer does not.
TEST(Resources, TheWidestOfTheShortestWays) {
  auto link = [](const char *from, const char *to, int rate) {
    return std::string(R"(  {"from": ")") + from + R"(", "to": ")" + to +
           R"(", "kind": "net", "count": 1, "raw": ")" + std::to_string(rate) +
           R"( GB/s", "latency_ns": 1, "both_ways": true},)";
  };
  for (int wide : {0, 1}) {
    std::string text = R"({"format": "ncclx-topology", "version": 1, "name": "two ways", "nodes": [
  {"name": "gpu0", "kind": "gpu", "rank": 0, "gpu": "H100-SXM"},
  {"name": "gpu1", "kind": "gpu", "rank": 1, "gpu": "H100-SXM"},
  {"name": "nic0", "kind": "nic"}, {"name": "nic1", "kind": "nic"},
  {"name": "a0", "kind": "net"}, {"name": "a1", "kind": "net"}, {"name": "b0", "kind": "net"},
  {"name": "b1", "kind": "net"}, {"name": "c", "kind": "net"}, {"name": "end", "kind": "net"}],
 "links": [)";
    text += link("nic0", "a0", wide ? 10 : 30) + link("a0", "a1", 30) + link("a1", "end", 30);
    text += link("nic0", "b0", 40) + link("b0", "b1", wide ? 20 : 5) + link("b1", "end", 40);
    text += link("nic0", "c", 50) + link("c", "a0", 50) + link("end", "nic1", 50);
    text += R"(
  {"from": "gpu0", "to": "nic0", "kind": "nic", "count": 1, "raw": "50 GB/s", "latency_ns": 1, "both_ways": true},
  {"from": "gpu1", "to": "nic1", "kind": "nic", "count": 1, "raw": "50 GB/s", "latency_ns": 1, "both_ways": true}]})";
    ReadResult read = readJson(text, "two-ways.json");
    ASSERT_TRUE(read.topology.has_value());
    ResourceModel model(*read.topology, Rate::raw);
    for (auto [from, to] : {std::pair(0u, 1u), {1u, 0u}}) {
      std::optional<Route> route = model.route(from, to);
      ASSERT_TRUE(route.has_value());
      EXPECT_EQ(route->cap, Rational(wide ? 20'000'000'000 : 30'000'000'000));
      EXPECT_EQ(route->latencyNs, Rational(6));
    }
  }
}

TEST(Resources, Eccentricity) {
  auto of = [](const Topology &topo, std::vector<unsigned> group) {
    ResourceModel model(topo, Rate::payload);
    return eccentricity(model, group);
  };
  Topology torus = example("torus-4x4.json");
  EXPECT_EQ(of(torus, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}), 4u);
  EXPECT_EQ(of(torus, {0, 1, 2, 3}), 2u); // a row is a ring
  EXPECT_EQ(of(torus, {0, 5}), std::nullopt);
  EXPECT_EQ(of(example("dgx1-v100.json"), {0, 1, 2, 3, 4, 5, 6, 7}), 2u);
  EXPECT_EQ(of(example("dgx-h100-2.json"), {0, 7, 8, 15}), 1u);
  EXPECT_EQ(of(torus, {3}), 0u);
}

TEST(Resources, HostsReachEachOtherByNic) {
  Topology topo = example("dgx-h100-2.json");
  ResourceModel model(topo, Rate::raw);
  EXPECT_EQ(model.reachability(0, 7), Reach::loadStore);
  EXPECT_EQ(model.reachability(0, 8), Reach::put);
  std::optional<Route> route = model.route(0, 9);
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(names(model, *route), (Names{"h0.gpu0.hbm", "h0.gpu0->h0.nic0", "h0.nic0->net",
                                         "net->h1.nic1", "h1.nic1->h1.gpu1", "h1.gpu1.hbm"}));
  EXPECT_EQ(route->cap, Rational(50'000'000'000));
  EXPECT_EQ(route->latencyNs, Rational(2000));
}

TEST(Resources, ProcessesWithSockets) {
  ProcessHost spec;
  spec.ranks = 3;
  spec.memoryBytesPerSec = 10'000'000'000;
  spec.coreCopyBytesPerSec = 4'000'000'000;
  spec.socketBytesPerSec = 2'000'000'000;
  spec.latencyNs = 15'000;
  Topology topo = makeProcessHost(spec);
  EXPECT_TRUE(topo.validate().empty());
  ResourceModel model(topo, Rate::payload);
  EXPECT_EQ(model.reachability(0, 2), Reach::hostOnly); // no loads and stores
  std::optional<Route> route = model.route(0, 2);
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(names(model, *route), (Names{"memory", "process0->memory", "memory->process2"}));
  EXPECT_EQ(route->cap, Rational(2'000'000'000));
  EXPECT_EQ(route->latencyNs, Rational(15'000));
  // What stays with a rank goes through no socket.
  route = model.route(1, 1);
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(names(model, *route), (Names{"memory"}));
  EXPECT_EQ(route->cap, Rational(10'000'000'000));
}

TEST(Resources, ProcessesShareMemoryAndCores) {
  ProcessHost spec;
  spec.ranks = 8;
  spec.cores = 2;
  spec.memoryBytesPerSec = 10'000'000'000;
  spec.coreCopyBytesPerSec = 4'000'000'000;
  spec.coreF32Flops = 9'000'000'000;
  Topology topo = makeProcessHost(spec);
  ResourceModel model(topo, Rate::payload);
  std::optional<Route> route = model.route(0, 7);
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(names(model, *route), (Names{"memory", "process0->memory", "memory->process7"}));
  EXPECT_EQ(route->cap, Rational(4'000'000'000));
  EXPECT_EQ(route->latencyNs, Rational(200));
  EXPECT_EQ(model.reachability(3, 4), Reach::loadStore);
  EXPECT_EQ(model.rank(0).compute, model.rank(7).compute);
  EXPECT_EQ(model.resources()[model.rank(0).compute].capacity, Rational(2));
  EXPECT_EQ(model.rank(0).units, Rational(1));
  EXPECT_EQ(model.rank(0).f32PerUnit, Rational(9'000'000'000));
  EXPECT_EQ(model.rank(0).memory, model.rank(7).memory);
  EXPECT_TRUE(model.rank(0).copyEngines.empty());
}

TEST(Resources, GpusHaveTheirOwn) {
  Topology topo = example("h200x2-nvswitch.json");
  ResourceModel model(topo, Rate::raw);
  EXPECT_NE(model.rank(0).compute, model.rank(1).compute);
  EXPECT_EQ(model.rank(0).units, Rational(132));
  EXPECT_EQ(model.rank(0).bf16PerUnit * Rational(132), Rational(989'400'000'000'000));
  EXPECT_EQ(model.rank(0).copyEngines.size(), 3u);
  EXPECT_EQ(model.rank(0).powerCapWatts, 700u);
  // A copy within HBM reads and writes.
  EXPECT_EQ(model.bandwidth(0, 0), Rational(2'400'000'000'000));
  EXPECT_EQ(model.reachability(1, 1), Reach::self);
}

// Tiers: NVLink domain, rack, zone, data centre and beyond, at 1, 7, 15 and 30 times 2 us.
TEST(Resources, DomainLatenciesOfACluster) {
  Topology topo = example("cluster-131072.json");
  ResourceModel model(topo, Rate::raw);
  for (auto [rank, ns] : {std::pair(7u, 1000),
                          {8u, 2000},
                          {16u, 14000},
                          {4096u, 30000},
                          {32768u, 60000},
                          {131071u, 60000}})
    EXPECT_EQ(model.latencyNs(0, rank).value_or(0), Rational(ns)) << rank;
  EXPECT_EQ(model.reachability(0, 7), Reach::loadStore);
  EXPECT_EQ(model.reachability(0, 8), Reach::put);
}

TEST(Resources, RailsAreTheNearestPorts) {
  Topology two = example("dgx-h100-2.json");
  std::vector<NearestPort> ports = nearestPorts(two);
  for (unsigned r = 0; r < 16; ++r) {
    ASSERT_GE(ports[r].node, 0);
    EXPECT_EQ(ports[r].rail, int(r % 8));
    EXPECT_EQ(two.nodes[ports[r].node].host, r / 8);
  }
  // In NCCL's file a port hangs below the same PCI switch as its GPU.
  Topology one = example("h200x8-nvswitch.xml");
  ports = nearestPorts(one);
  EXPECT_EQ(one.nodes[ports[5].node].name, "mlx5_5");
  EXPECT_EQ(ports[5].rail, 5);
  EXPECT_EQ(nearestPorts(example("dgx1-v100.json"))[0].rail, -1);
}
} // namespace
