//===- ValidateTest.cpp ---------------------------------------------------===//
#include "ncclx/Topology/Make.h"
#include <gtest/gtest.h>

using namespace mlir::ncclx::topology;

namespace {
/// Two GPUs of a table model, one NVLink each way.
Topology pair() {
  Topology topo;
  topo.models.push_back(findGpu("H100-SXM")->model);
  topo.hosts.emplace_back();
  topo.hosts[0].name = "host0";
  for (unsigned i = 0; i < 2; ++i) {
    Node node;
    node.name = "gpu" + std::to_string(i);
    node.model = 0;
    topo.nodes.push_back(node);
    topo.ranks.push_back(i);
  }
  Rates rates{25'000'000'000, 20'600'000'000};
  topo.links.push_back({0, 1, LinkKind::nvlink, 1, rates, 500, 0});
  topo.links.push_back({1, 0, LinkKind::nvlink, 1, rates, 500, 0});
  return topo;
}

/// The rules that validate() cites, in order.
std::vector<std::string> rules(const Topology &topo) {
  std::vector<std::string> list;
  for (const Diagnostic &d : topo.validate())
    list.push_back(d.rule);
  return list;
}
using Rules = std::vector<std::string>;

TEST(Validate, AcceptsASoundTopology) { EXPECT_EQ(rules(pair()), Rules()); }

TEST(Validate, EachRuleFires) {
  Topology t = pair();
  t.links[0].to = 0;
  EXPECT_EQ(rules(t), Rules{"self-link"});
  t = pair();
  t.links[0].to = 9;
  EXPECT_EQ(rules(t), Rules{"link-end"});
  t = pair();
  t.links[0].count = 0;
  EXPECT_EQ(rules(t), Rules{"count"});
  t = pair();
  t.links[0].perWire.raw = Rational::invalid();
  EXPECT_EQ(rules(t), Rules{"rate"});
  t = pair();
  t.links[0].perWire.payload = Rational(-1);
  EXPECT_EQ(rules(t), Rules{"rate"});
  t = pair();
  t.links[0].perWire.payload = Rational(26'000'000'000);
  EXPECT_EQ(rules(t), Rules{"payload-above-raw"});
  t = pair();
  t.links[0].latencyNs = Rational(-1);
  EXPECT_EQ(rules(t), Rules{"latency"});
  t = pair();
  t.nodes[1].name = "gpu0";
  EXPECT_EQ(rules(t), Rules{"duplicate-name"});
  t = pair();
  t.nodes[1].host = 3;
  EXPECT_EQ(rules(t), Rules{"host"});
  t = pair();
  t.nodes[1].model = 3;
  EXPECT_EQ(rules(t), Rules{"model"});
  t = pair();
  t.nodes[0].busId = t.nodes[1].busId = "0000:01:00.0";
  EXPECT_EQ(rules(t), Rules{"duplicate-bus-id"});
  t = pair();
  t.ranks = {0, 0};
  EXPECT_EQ(rules(t), Rules{"rank"});
  t = pair();
  t.ranks = {0, 7};
  EXPECT_EQ(rules(t), Rules{"rank"});
  t = pair();
  t.ranks.clear();
  EXPECT_EQ(rules(t), Rules{"no-ranks"});
  t = pair();
  t.nodes[1].kind = NodeKind::nvswitch;
  t.nodes[1].model = -1;
  EXPECT_EQ(rules(t), Rules{"rank"});
}

TEST(Validate, OneSidedLinksAndFewerLinksAreWarnings) {
  Topology t = pair();
  t.links.pop_back();
  EXPECT_EQ(rules(t), (Rules{"one-sided-link", "fewer-links"}));
  EXPECT_FALSE(hasErrors(t.validate()));
  // The GPU that lost its record is the one named.
  EXPECT_NE(t.validate()[1].message.find("'gpu1' has 0"), std::string::npos);
}

TEST(Validate, ProcessesAreRanksToo) {
  ProcessHost spec;
  spec.ranks = 8;
  spec.cores = 2;
  spec.memoryBytesPerSec = 10'000'000'000;
  spec.coreCopyBytesPerSec = 4'000'000'000;
  Topology t = makeProcessHost(spec);
  EXPECT_EQ(rules(t), Rules());
  EXPECT_EQ(t.numRanks(), 8u);
  spec.coreCopyBytesPerSec = 0;
  EXPECT_FALSE(makeProcessHost(spec).validate().empty());
}

TEST(Replicate, MakesRanksInOrderAndTiers) {
  Topology base = pair();
  Node nic, net;
  nic.name = "nic";
  nic.kind = NodeKind::nic;
  net.name = "net";
  net.kind = NodeKind::net;
  base.nodes.push_back(nic);
  base.nodes.push_back(net);
  Rates port{50'000'000'000, 50'000'000'000};
  for (auto [a, b] : {std::pair(0u, 2u), std::pair(1u, 2u), std::pair(2u, 3u)}) {
    base.links.push_back({a, b, LinkKind::net, 1, port, 500, 0});
    base.links.push_back({b, a, LinkKind::net, 1, port, 500, 0});
  }
  Replication spec;
  spec.hosts = 5;
  spec.network = {{"rack", 2, 2, 100}};
  std::string problem;
  std::optional<Topology> t = replicateHosts(base, spec, problem);
  ASSERT_TRUE(t.has_value()) << problem;
  EXPECT_EQ(rules(*t), Rules());
  EXPECT_EQ(t->numRanks(), 10u);
  EXPECT_EQ(t->rankNode(7).name, "h3.gpu1");
  EXPECT_EQ(t->hosts[3].rack, "rack1");
  ASSERT_GE(t->findNode("rack2"), 0); // the fifth host has a rack of its own
  for (const Link &link : t->links)
    if (t->nodes[link.to].name == "core") {
      bool last = t->nodes[link.from].name == "rack2";
      EXPECT_EQ(link.bandwidth(Rate::raw), Rational(last ? 25'000'000'000 : 50'000'000'000));
    }
  spec.network.push_back({"zone", 3, 1, 0});
  EXPECT_FALSE(replicateHosts(base, spec, problem).has_value());
  EXPECT_NE(problem.find("no multiple"), std::string::npos);
  spec.hosts = 4'000'000;
  EXPECT_FALSE(replicateHosts(base, spec, problem).has_value());
}
} // namespace
