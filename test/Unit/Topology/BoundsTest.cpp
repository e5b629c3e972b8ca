//===- BoundsTest.cpp - The numbers of the literature, and their proofs ---===//
#include "ncclx/Topology/Bounds.h"
#include "ncclx/Topology/IO.h"
#include "ncclx/Topology/Make.h"
#include <gtest/gtest.h>
#include <numeric>

using namespace mlir::ncclx::topology;

namespace {
constexpr uint64_t size = uint64_t(1) << 30;

Topology example(const std::string &file) {
  ReadResult result = readTopologyFile(NCCLX_EXAMPLES "/" + file);
  EXPECT_TRUE(result.topology.has_value()) << file;
  return result.topology ? *result.topology : Topology();
}

struct Ask {
  Collective collective = Collective::all_gather;
  Rate rate = Rate::raw;
  bool inNetwork = false;
  std::vector<unsigned> group = {};
  bool relays = false;
};

struct Answer {
  std::vector<LowerBound> all;
  LowerBound best;
  double alg(const LowerBound &b) const { return double(size) / b.seconds.toDouble() / 1e9; }
  double alg() const { return alg(best); }
  double alg(llvm::StringRef argument) const {
    for (const LowerBound &b : all)
      if (b.argument == argument)
        return alg(b);
    ADD_FAILURE() << "no argument " << argument.str();
    return 0;
  }
};

Answer ask(const Topology &topo, Ask what) {
  std::vector<unsigned> group = what.group;
  if (group.empty()) {
    group.resize(topo.numRanks());
    std::iota(group.begin(), group.end(), 0u);
  }
  BoundQuery query;
  query.collective = what.collective;
  query.group = group;
  query.bytes = size;
  query.rate = what.rate;
  query.inNetwork = what.inNetwork;
  query.relays = what.relays;
  EXPECT_EQ(checkQuery(topo, query), "");
  return {bounds(topo, query), bound(topo, query)};
}

/// n GPUs in a ring, 25 GB/s a direction.
Topology ring(unsigned n) {
  Topology topo;
  topo.hosts.emplace_back();
  topo.hosts[0].name = "host0";
  for (unsigned i = 0; i < n; ++i) {
    Node node;
    node.name = "gpu" + std::to_string(i);
    topo.nodes.push_back(node);
    topo.ranks.push_back(i);
    Rates rates{25'000'000'000, 20'000'000'000};
    topo.links.push_back({i, (i + 1) % n, LinkKind::nvlink, 1, rates, 500, 0});
    topo.links.push_back({(i + 1) % n, i, LinkKind::nvlink, 1, rates, 500, 0});
  }
  return topo;
}

/// Takes `wires` of every link between two nodes, or the links themselves.
void cutLinks(Topology &topo, llvm::StringRef a, llvm::StringRef b, unsigned keep) {
  int first = topo.findNode(a), second = topo.findNode(b);
  ASSERT_GE(first, 0);
  ASSERT_GE(second, 0);
  std::erase_if(topo.links, [&](Link &l) {
    bool hit = (int(l.from) == first && int(l.to) == second) ||
               (int(l.from) == second && int(l.to) == first);
    if (hit)
      l.count = keep;
    return hit && keep == 0;
  });
}

struct Row {
  const char *name;
  const char *file;
  Rate rate;
  double alg;
  std::vector<unsigned> group = {};
};

/// peers.md 5.4, within 0.1 %: all_gather and reduce_scatter; all_reduce is half.
void expectRow(const Topology &topo, const Row &row) {
  for (Collective collective : {Collective::all_gather, Collective::reduce_scatter})
    EXPECT_NEAR(ask(topo, {collective, row.rate, false, row.group}).alg(), row.alg, row.alg * 1e-3);
  Answer reduce = ask(topo, {Collective::all_reduce, row.rate, false, row.group});
  EXPECT_NEAR(reduce.alg("reduce_scatter + all_gather"), row.alg / 2, row.alg * 1e-3);
  // What binds every schedule never exceeds what binds one form.
  EXPECT_GE(reduce.alg(), reduce.alg("reduce_scatter + all_gather") * (1 - 1e-12));
}

class Table : public testing::TestWithParam<Row> {};

TEST_P(Table, Reproduces) { expectRow(example(GetParam().file), GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Peers, Table,
    testing::Values(
        Row{"DgxA100", "dgx-a100.json", Rate::raw, 342.857},
        Row{"DgxH200", "h200x8-nvswitch.xml", Rate::raw, 514.286},
        Row{"DgxH200Json", "h200x8-nvswitch.json", Rate::raw, 514.286},
        Row{"DgxH200Payload", "h200x8-nvswitch.xml", Rate::payload, 423.771},
        Row{"TwoH200", "h200x2-nvswitch.json", Rate::raw, 900},
        Row{"Gb200x8", "gb200-nvl72.json", Rate::raw, 1028.571, {0, 1, 2, 3, 4, 5, 6, 7}},
        Row{"Gb200Nvl72", "gb200-nvl72.json", Rate::raw, 912.676},
        Row{"H100x4Mesh", "h100x4-mesh.json", Rate::raw, 600},
        Row{"Mi300xMesh", "mi300x8-mesh.json", Rate::raw, 512},
        Row{"Mi300xMeshPayload", "mi300x8-mesh.json", Rate::payload, 384},
        Row{"Dgx1V100", "dgx1-v100.json", Rate::raw, 171.429},
        Row{"Mi250x16", "mi250x16.json", Rate::raw, 342.857},
        Row{"DgxH100x2", "dgx-h100-2.json", Rate::raw, 533.333},
        Row{"DgxH100x16", "dgx-h100-16.json", Rate::raw, 426.667},
        Row{"Torus4x4", "torus-4x4.json", Rate::raw, 106.667}),
    [](const testing::TestParamInfo<Row> &info) { return info.param.name; });

TEST(Bounds, RingOfEight) {
  Topology topo = ring(8);
  EXPECT_NEAR(ask(topo, {}).alg(), 57.143, 0.01);
  // n S / (8 b) for all_to_all on an even ring.
  EXPECT_NEAR(ask(topo, {Collective::all_to_all}).alg(), 25.0, 0.01);
}

/// The table's other clusters: so many hosts of one, with a port of its own for each GPU.
void expectHosts(const std::string &file, unsigned hosts, int64_t gigabytes, double alg) {
  Topology base = example(file);
  Node net;
  net.name = "net";
  net.kind = NodeKind::net;
  unsigned netIndex = base.nodes.size();
  base.nodes.push_back(net);
  for (unsigned r = 0, ranks = base.numRanks(); r < ranks; ++r) {
    Node port;
    port.name = "nic" + std::to_string(r);
    port.kind = NodeKind::nic;
    unsigned index = base.nodes.size();
    base.nodes.push_back(port);
    Rational rate = Rational(gigabytes) * Rational(1'000'000'000);
    for (auto [a, b] : {std::pair(base.ranks[r], index), std::pair(index, netIndex)}) {
      base.links.push_back({a, b, LinkKind::nic, 1, {rate, rate}, 500, 0});
      base.links.push_back({b, a, LinkKind::nic, 1, {rate, rate}, 500, 0});
    }
  }
  std::string problem;
  std::optional<Topology> many = replicateHosts(base, {hosts, {}}, problem);
  ASSERT_TRUE(many.has_value()) << problem;
  ASSERT_FALSE(hasErrors(many->validate()));
  expectRow(*many, {"", "", Rate::raw, alg});
}

TEST(PeersTable, DgxH100x4) { expectHosts("h200x8-nvswitch.json", 4, 50, 516.129); }
TEST(PeersTable, DgxA100x2) { expectHosts("dgx-a100.json", 2, 25, 346.667); }
// The reference names no port rate for this one: 16 GB/s a die gives its value.
TEST(PeersTable, Mi250x2x16) { expectHosts("mi250x16.json", 2, 16, 354.133); }

TEST(PeersTable, RingOf8) { expectRow(ring(8), {"", "", Rate::raw, 57.143}); }

TEST(PeersTable, DgxH100InNetwork) {
  Topology topo = example("h200x8-nvswitch.xml");
  Answer answer = ask(topo, {Collective::all_reduce, Rate::raw, true});
  EXPECT_NEAR(answer.alg("in-network reduction"), 400, 0.1);
  // The volume argument does not hold where switches add.
  for (const LowerBound &b : answer.all)
    EXPECT_NE(b.argument, "volume");
}

TEST(PeersTable, DgxH100HalfTheLinksOfOneGpu) {
  Topology topo = example("h200x8-nvswitch.json");
  cutLinks(topo, "gpu0", "nvswitch", 9);
  Diagnostics found = topo.validate();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "fewer-links");
  EXPECT_NE(found[0].message.find("'gpu0' has 9"), std::string::npos);
  expectRow(topo, {"", "", Rate::raw, 257.143});
  // all_reduce: the volume argument gives 241, the cut 225; both bind every schedule.
  EXPECT_NEAR(ask(topo, {Collective::all_reduce}).alg(), 225, 0.1);
}

TEST(PeersTable, Mi300xMeshOneLinkDown) {
  Topology topo = example("mi300x8-mesh.json");
  cutLinks(topo, "gpu2", "gpu5", 0);
  expectRow(topo, {"", "", Rate::raw, 438.857});
}

TEST(Bounds, EveryCollectiveOnASwitch) {
  Topology topo = example("h200x8-nvswitch.json");
  EXPECT_NEAR(ask(topo, {Collective::all_to_all}).alg(), 514.286, 0.1);
  EXPECT_NEAR(ask(topo, {Collective::broadcast}).alg(), 450, 0.1);
  EXPECT_NEAR(ask(topo, {Collective::reduce}).alg(), 450, 0.1);
  EXPECT_NEAR(ask(topo, {Collective::scatter}).alg(), 514.286, 0.1);
  EXPECT_NEAR(ask(topo, {Collective::gather}).alg(), 514.286, 0.1);
  EXPECT_NEAR(ask(topo, {Collective::permute}).alg(), 450, 0.1);
}

TEST(Bounds, SubgroupsRelayOnlyIfAsked) {
  Topology topo = example("mi300x8-mesh.json");
  EXPECT_NEAR(ask(topo, {Collective::broadcast, Rate::raw, false, {1, 6}}).alg(), 64, 0.01);
  EXPECT_NEAR(ask(topo, {Collective::broadcast, Rate::raw, false, {1, 6}, true}).alg(), 448, 0.01);
  EXPECT_NEAR(ask(topo, {Collective::all_gather, Rate::raw, false, {6, 1, 3}}).alg(), 192, 0.01);
}

TEST(Bounds, PairsOfAPermute) {
  Topology topo = ring(6);
  std::vector<unsigned> group = {0, 1, 2, 3, 4, 5};
  std::vector<std::pair<unsigned, unsigned>> pairs;
  for (unsigned i = 0; i < 6; ++i)
    pairs.emplace_back(i, (i + 3) % 6);
  BoundQuery query;
  query.collective = Collective::permute;
  query.group = group;
  query.bytes = size;
  query.rate = Rate::raw;
  query.pairs = pairs;
  // Three links each, six buffers over twelve directed links: 18/12 buffers a link.
  LowerBound b = bound(topo, query);
  EXPECT_EQ(b.argument, "distance");
  EXPECT_EQ(b.seconds, Rational::make(Rational::Int(size) * 3, Rational::Int(2) * 25'000'000'000));
  pairs = {{0, 0}, {1, 1}};
  query.pairs = pairs;
  EXPECT_TRUE(bound(topo, query).seconds.isZero());
}

TEST(Bounds, OneRankOrNoBytesMoveNothing) {
  Topology topo = example("h200x8-nvswitch.json");
  EXPECT_TRUE(ask(topo, {Collective::all_reduce, Rate::raw, false, {3}}).best.seconds.isZero());
  std::vector<unsigned> group = {0, 1};
  BoundQuery query;
  query.group = group;
  EXPECT_TRUE(bound(topo, query).seconds.isZero());
  EXPECT_EQ(bound(topo, query).argument, "nothing moves");
  EXPECT_TRUE(algorithmBandwidth(query, bound(topo, query)).isZero());
}

TEST(Bounds, SmallMessagesAreBoundByLatency) {
  Topology topo = ring(8);
  std::vector<unsigned> group = {0, 1, 2, 3, 4, 5, 6, 7};
  BoundQuery query;
  query.group = group;
  query.bytes = 8;
  LowerBound b = bound(topo, query);
  EXPECT_EQ(b.argument, "latency");
  EXPECT_EQ(b.seconds, Rational::make(2000, 1'000'000'000)); // four links of 500 ns
}

TEST(Bounds, UnreachableRanksAreSaid) {
  Topology topo = ring(4);
  topo.links.clear();
  LowerBound b = ask(topo, {}).best;
  EXPECT_TRUE(b.unreachable);
  // One way only is not enough either.
  topo = ring(2);
  topo.links.resize(1);
  EXPECT_TRUE(ask(topo, {Collective::all_reduce}).best.unreachable);
}

TEST(Bounds, SharedMemoryIsTheLimitOfProcesses) {
  ProcessHost spec;
  spec.ranks = 8;
  spec.cores = 2;
  spec.memoryBytesPerSec = 8'000'000'000;
  spec.coreCopyBytesPerSec = 5'000'000'000;
  Topology topo = makeProcessHost(spec);
  Answer answer = ask(topo, {Collective::all_reduce});
  EXPECT_EQ(answer.best.argument, "shared node");
  EXPECT_EQ(answer.best.seconds,
            Rational::make(Rational::Int(size) * 14, Rational::Int(8'000'000'000)));
}

TEST(Bounds, QueriesAreChecked) {
  Topology topo = ring(4);
  BoundQuery query;
  EXPECT_NE(checkQuery(topo, query), "");
  std::vector<unsigned> group = {0, 4};
  query.group = group;
  EXPECT_NE(checkQuery(topo, query), "");
  group = {1, 1};
  EXPECT_NE(checkQuery(topo, query), "");
  group = {0, 1};
  query.root = 2;
  EXPECT_NE(checkQuery(topo, query), "");
}

TEST(Bounds, DomainCutsOfACluster) {
  Topology topo = example("cluster-131072-oversubscribed.json");
  std::vector<unsigned> group(topo.numRanks());
  std::iota(group.begin(), group.end(), 0u);
  BoundQuery query;
  query.group = group;
  query.bytes = size;
  query.rate = Rate::raw;
  LowerBound b = bound(topo, query);
  EXPECT_EQ(b.argument, "domain cut");
  EXPECT_EQ(b.links, LinkSet::scaleUpAndNics);
  // A host takes in all but its own eight shares over eight ports of 50 GB/s.
  EXPECT_EQ(b.seconds,
            Rational::make(Rational::Int(size) * 131064, 131072) / Rational(400'000'000'000));
  // all_to_all is held up by the data centres: 4 of them, 32,768 ranks each, oversubscribed twice.
  query.collective = Collective::all_to_all;
  b = bound(topo, query);
  EXPECT_NE(b.detail.find("data centre of 32768"), std::string::npos) << b.detail;
  Rational up = Rational(32768) * Rational(50'000'000'000) / Rational::make(196, 25);
  EXPECT_EQ(b.seconds, Rational::make(size, 131072) * Rational(32768) * Rational(98304) / up);
}

TEST(Bounds, DomainCutsAgreeWithFlows) {
  for (unsigned n : {256u, 257u}) {
    Answer answer = ask(ring(n), {});
    EXPECT_EQ(answer.best.argument, n == 256 ? "cut" : "domain cut");
    EXPECT_NEAR(answer.alg(), 50.0 * n / (n - 1), 1e-3);
  }
}

TEST(Bounds, DomainCutsOfAClusterWithoutOversubscription) {
  Topology topo = example("cluster-131072.json");
  std::vector<unsigned> group(topo.numRanks());
  std::iota(group.begin(), group.end(), 0u);
  BoundQuery query;
  query.collective = Collective::all_to_all;
  query.group = group;
  query.bytes = size;
  query.rate = Rate::raw;
  LowerBound b = bound(topo, query);
  EXPECT_EQ(b.argument, "domain cut");
  // Each host's eight ports of 50 GB/s; above the rack nothing is narrower.
  EXPECT_EQ(b.seconds, Rational::make(size, 131072) * Rational(131064) / Rational(50'000'000'000));
}

// peers.md row 52: capacities that are no whole numbers stay what they are.
TEST(PeersRow52, FractionalRatesAreExact) {
  Topology topo = ring(4);
  for (Link &link : topo.links)
    link.perWire = {Rational::make(370'800'000'000, 7),
                    Rational::make(206, 10) * Rational(1'000'000'000)};
  BoundQuery query;
  std::vector<unsigned> group = {0, 1, 2, 3};
  query.group = group;
  query.bytes = size;
  query.rate = Rate::raw;
  LowerBound b = bound(topo, query);
  EXPECT_EQ(b.seconds, Rational::make(Rational::Int(size) * 3, 4) /
                           (Rational::make(370'800'000'000, 7) * Rational(2)));
  query.rate = Rate::payload;
  EXPECT_EQ(bound(topo, query).seconds,
            Rational::make(Rational::Int(size) * 3, 4) / Rational(41'200'000'000));
}

// How long these take is test/Bench/topology_bench.cpp's business.
TEST(Bounds, SixtyFourRanks) {
  Topology topo = ring(64);
  for (Collective collective :
       {Collective::all_gather, Collective::all_reduce, Collective::all_to_all})
    EXPECT_GT(ask(topo, {collective}).alg(), 0);
}
} // namespace
