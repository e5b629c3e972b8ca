//===- AllToAllTest.cpp - Concurrent flow, proved from both sides ---------===//
#include "ncclx/Topology/Bounds.h"
#include "ncclx/Topology/IO.h"
#include "ncclx/Topology/Make.h"
#include <gtest/gtest.h>
#include <numeric>

using namespace mlir::ncclx::topology;

namespace {
Topology example(const std::string &file) {
  ReadResult result = readTopologyFile(NCCLX_EXAMPLES "/" + file);
  EXPECT_TRUE(result.topology.has_value()) << file;
  return result.topology ? *result.topology : Topology();
}

/// GPUs joined by wires of 25 GB/s each way; as many as the greatest number among the edges.
Topology graph(const std::vector<std::pair<unsigned, unsigned>> &edges) {
  Topology topo;
  topo.hosts.emplace_back();
  topo.hosts[0].name = "host0";
  unsigned most = 0;
  for (auto [a, b] : edges)
    most = std::max({most, a, b});
  for (unsigned i = 0; i <= most; ++i) {
    Node node;
    node.name = "gpu" + std::to_string(i);
    topo.nodes.push_back(node);
    topo.ranks.push_back(i);
  }
  Rates rates{25'000'000'000, 20'000'000'000};
  for (auto [a, b] : edges) {
    topo.links.push_back({a, b, LinkKind::nvlink, 1, rates, 500, 0});
    topo.links.push_back({b, a, LinkKind::nvlink, 1, rates, 500, 0});
  }
  return topo;
}

Topology torus(unsigned side) {
  std::vector<std::pair<unsigned, unsigned>> edges;
  for (unsigned x = 0; x < side; ++x)
    for (unsigned y = 0; y < side; ++y) {
      edges.emplace_back(x * side + y, (x + 1) % side * side + y);
      edges.emplace_back(x * side + y, x * side + (y + 1) % side);
    }
  return graph(edges);
}

Topology ring(unsigned n) {
  std::vector<std::pair<unsigned, unsigned>> edges;
  for (unsigned i = 0; i < n; ++i)
    edges.emplace_back(i, (i + 1) % n);
  return graph(edges);
}

std::vector<unsigned> everyone(const Topology &topo) {
  std::vector<unsigned> group(topo.numRanks());
  std::iota(group.begin(), group.end(), 0u);
  return group;
}

/// The bound by concurrent flow of an all_to_all of one byte for each pair.
LowerBound ofOneByte(const Topology &topo) {
  std::vector<unsigned> group = everyone(topo);
  BoundQuery query;
  query.collective = Collective::all_to_all;
  query.group = group;
  query.bytes = group.size();
  query.rate = Rate::raw;
  for (const LowerBound &b : bounds(topo, query))
    if (b.argument == "concurrent flow")
      return b;
  ADD_FAILURE() << "no bound by concurrent flow";
  return {};
}

bool isOptimum(const LowerBound &bound) {
  return bound.detail.find("this is the optimum") != std::string::npos;
}

struct Machine {
  const char *name;
  Topology topo;
};

TEST(AllToAll, TheProgramMeetsItsProof) {
  Topology lameMesh = example("mi300x8-mesh.json"), lameCube = example("dgx1-v100.json");
  std::erase_if(lameMesh.links, [](const Link &l) {
    return std::pair(l.from, l.to) == std::pair(2u, 5u) ||
           std::pair(l.from, l.to) == std::pair(5u, 2u);
  });
  lameCube.links.erase(lameCube.links.begin() + 4, lameCube.links.begin() + 6);
  for (const Machine &machine : {Machine{"cube mesh", example("dgx1-v100.json")},
                                 {"cube mesh less a link", lameCube},
                                 {"mesh", example("mi300x8-mesh.json")},
                                 {"mesh less a link", lameMesh},
                                 {"H200 planes", example("h200x8-nvswitch.xml")},
                                 {"two hosts", example("dgx-h100-2.json")},
                                 {"MI250", example("mi250x16.json")},
                                 {"4x4 torus", example("torus-4x4.json")},
                                 {"ring of 7", ring(7)},
                                 {"8x8 torus", torus(8)}}) {
    LowerBound bound = ofOneByte(machine.topo);
    EXPECT_TRUE(isOptimum(bound)) << machine.name << ": " << bound.detail;
  }
}

TEST(AllToAll, ValuesThatAreKnown) {
  Rational wire(25'000'000'000);
  // A ring of n = 2m + 1: each member's bytes go 1 + 1 + ... + m + m links, over 2n links in all.
  EXPECT_EQ(ofOneByte(ring(7)).seconds, Rational(6) / wire);
  // Of n = 2m: (m-1)m + m links over 2.
  EXPECT_EQ(ofOneByte(ring(8)).seconds, Rational(8) / wire);
  // A torus of side a: a S / (8 b), S = a * a bytes.
  EXPECT_EQ(ofOneByte(torus(4)).seconds, Rational(8) / wire);
  EXPECT_EQ(ofOneByte(torus(8)).seconds, Rational(64) / wire);
  // Three in a row: the middle relays nothing, the ends' two bytes each pass both wires.
  EXPECT_EQ(ofOneByte(graph({{0, 1}, {1, 2}})).seconds, Rational(2) / wire);
}

/// A ring with chords of no pattern.
Topology chords(unsigned n) {
  std::vector<std::pair<unsigned, unsigned>> edges;
  for (unsigned i = 0; i < n; ++i)
    edges.emplace_back(i, (i + 1) % n);
  for (auto [a, b] : {std::pair(0u, 7u), {3u, 19u}, {5u, 11u}, {2u, 16u}, {13u, 21u}, {9u, 22u}})
    edges.emplace_back(a, b);
  return graph(edges);
}

/// How much longer the routing found takes than the bound, in per cent, from a bound's text.
double gapOf(const LowerBound &bound) {
  if (isOptimum(bound))
    return 0;
  size_t at = bound.detail.find("is known, ");
  return at == std::string::npos ? 100 : std::stod(bound.detail.substr(at + 10));
}

TEST(AllToAll, WithoutSymmetryAProgramOrAGap) {
  EXPECT_TRUE(isOptimum(ofOneByte(chords(24)))) << ofOneByte(chords(24)).detail;
  // Too large for the simplex: an interior point, and a gap of rounding.
  for (unsigned n : {48, 64}) {
    LowerBound bound = ofOneByte(chords(n));
    EXPECT_LT(gapOf(bound), 1e-6) << bound.detail;
    EXPECT_FALSE(isOptimum(bound)) << "another machine is needed here";
  }
  Topology lame = torus(8);
  lame.links.erase(lame.links.begin() + 40, lame.links.begin() + 42);
  LowerBound bound = ofOneByte(lame);
  EXPECT_LT(gapOf(bound), 1e-6) << bound.detail;
  EXPECT_GT(bound.seconds, ofOneByte(torus(8)).seconds);
}

TEST(AllToAll, AValueThatIsKnownWithoutSymmetry) {
  // Sixty in a row, each wire of its own width: the one where most bytes meet least width decides.
  std::vector<std::pair<unsigned, unsigned>> edges;
  for (unsigned i = 0; i + 1 < 60; ++i)
    edges.emplace_back(i, i + 1);
  Topology topo = graph(edges);
  Rational slowest = 0;
  for (unsigned i = 0; i + 1 < 60; ++i) {
    topo.links[2 * i].count = topo.links[2 * i + 1].count = 1 + i * i % 13;
    Rational time = Rational((i + 1) * (59 - i)) / topo.links[2 * i].bandwidth(Rate::raw);
    slowest = time > slowest ? time : slowest;
  }
  LowerBound bound = ofOneByte(topo);
  EXPECT_LE(bound.seconds, slowest);
  EXPECT_GT(bound.seconds, slowest * Rational::make(999'999'999, 1'000'000'000));
  EXPECT_LT(gapOf(bound), 1e-6) << bound.detail;
}

/// A full mesh without the pairs that `lost` names.
template <typename F> Topology mesh(unsigned n, F lost) {
  std::vector<std::pair<unsigned, unsigned>> edges;
  for (unsigned i = 0; i < n; ++i)
    for (unsigned j = 0; j < i; ++j)
      if (!lost(i, j))
        edges.emplace_back(i, j);
  return graph(edges);
}

TEST(AllToAll, ALargeMeshLessALinkFolds) {
  LowerBound bound = ofOneByte(mesh(64, [](unsigned i, unsigned j) { return i == 1 && j == 0; }));
  EXPECT_TRUE(isOptimum(bound)) << bound.detail;
  EXPECT_EQ(bound.seconds, Rational::make(63, 62) / Rational(25'000'000'000));
}

TEST(AllToAll, DenseWithoutSymmetry) {
  LowerBound bound =
      ofOneByte(mesh(40, [](unsigned i, unsigned j) { return (i * 7 + j * 3) % 11 == 0; }));
  EXPECT_FALSE(isOptimum(bound)) << "another machine is needed here";
  EXPECT_LT(gapOf(bound), 0.1) << bound.detail;
}

TEST(AllToAll, AHundredWithoutSymmetry) {
  Topology lame = torus(10);
  lame.links.erase(lame.links.begin() + 40, lame.links.begin() + 42);
  LowerBound bound = ofOneByte(lame);
  EXPECT_LT(gapOf(bound), 0.1) << bound.detail;
}

/// Links of rates between `least` and `least` times 2^`doublings`, each direction by itself; pairs
/// that a number of 0..99 puts below `lost` have none but in a ring.
Topology uneven(unsigned n, unsigned doublings, unsigned lost, bool oneWay) {
  uint64_t state = 12345;
  auto random = [&] { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; };
  Topology topo = graph({{0, n - 1}});
  topo.links.clear();
  for (unsigned i = 0; i < n; ++i)
    for (unsigned j = 0; j < n; ++j) {
      bool inRing = (i + 1) % n == j || (!oneWay && (j + 1) % n == i);
      uint64_t chance = random() % 100, rate = random() % 1'000'000;
      rate = (rate + 1'000'000) << random() % (doublings + 1);
      if (i != j && (inRing || chance >= lost))
        topo.links.push_back({i, j, LinkKind::nvlink, 1, {int64_t(rate), int64_t(rate)}, 500, 0});
    }
  return topo;
}

TEST(AllToAll, DenseAndOfAllRates) {
  for (const Machine &machine : {Machine{"64, all pairs", uneven(64, 3, 0, false)},
                                 {"64, rates of 1 to 10^5", uneven(64, 17, 0, false)},
                                 {"61, two pairs of five", uneven(61, 5, 60, false)},
                                 {"50, one way only", uneven(50, 3, 50, true)}}) {
    LowerBound bound = ofOneByte(machine.topo);
    EXPECT_LT(gapOf(bound), 0.2) << machine.name << ": " << bound.detail;
    EXPECT_FALSE(isOptimum(bound)) << machine.name << ": another machine is needed here";
  }
}

TEST(AllToAll, TheThinPortOfADenseMachine) {
  // What must leave rank 7 decides; the program does not know, and must find it.
  Topology topo = uneven(64, 3, 0, false);
  Rational port = 0;
  for (Link &link : topo.links)
    if (link.from == 7) {
      link.perWire = {Rational(100'000), Rational(100'000)};
      port += link.perWire.raw;
    }
  LowerBound bound = ofOneByte(topo);
  Rational least = Rational(63) / port;
  EXPECT_LE(bound.seconds, least);
  EXPECT_GT(bound.seconds, least * Rational::make(999, 1000));
  EXPECT_LT(gapOf(bound), 0.2) << bound.detail;
}

std::vector<LowerBound> unequal(const Topology &topo, llvm::ArrayRef<uint64_t> counts) {
  std::vector<unsigned> group = everyone(topo);
  BoundQuery query;
  query.collective = Collective::all_to_all_v;
  query.group = group;
  query.counts = counts;
  query.bytes = largestTotal(counts, group.size());
  query.rate = Rate::raw;
  EXPECT_EQ(checkQuery(topo, query), "");
  return bounds(topo, query);
}

TEST(AllToAllV, EqualCountsAreAnAllToAll) {
  Topology topo = example("dgx1-v100.json");
  std::vector<uint64_t> counts(64, 12345);
  for (const LowerBound &b : unequal(topo, counts))
    if (b.argument == "concurrent flow") {
      EXPECT_EQ(b.seconds, ofOneByte(topo).seconds * Rational(12345));
      EXPECT_TRUE(isOptimum(b)) << b.detail;
    }
}

TEST(AllToAllV, TheFullestPortOfASwitch) {
  Topology topo = example("h200x8-nvswitch.json");
  std::vector<uint64_t> counts(64, 0);
  counts[0 * 8 + 3] = 450'000;
  counts[5 * 8 + 3] = 900'000;
  counts[3 * 8 + 3] = 1'000'000'000; // stays where it is
  std::vector<LowerBound> all = unequal(topo, counts);
  EXPECT_EQ(all.front().seconds, Rational::make(3, 1'000'000)); // 1.35 MB into rank 3
  for (const LowerBound &b : all)
    if (b.argument == "concurrent flow") {
      EXPECT_EQ(b.seconds, Rational::make(3, 1'000'000));
      EXPECT_TRUE(isOptimum(b)) << b.detail;
    }
  EXPECT_EQ(largestTotal(counts, 8), 1'350'000u);
}

TEST(AllToAllV, OddCountsOnACubeMesh) {
  Topology topo = example("dgx1-v100.json");
  std::vector<uint64_t> counts;
  for (unsigned i = 0; i < 64; ++i)
    counts.push_back(1'000 + i * i * 37 % 991);
  bool seen = false;
  for (const LowerBound &b : unequal(topo, counts))
    if (b.argument == "concurrent flow") {
      seen = true;
      EXPECT_LT(gapOf(b), 1e-5) << b.detail;
    }
  EXPECT_TRUE(seen);
}

TEST(AllToAllV, SixtyFourWithoutSymmetry) {
  // Eight hosts, of which one has lost a NIC: what a NIC passes on, it passes on alone.
  Topology hosts = example("dgx-h100-16.json");
  hosts.links.erase(std::find_if(hosts.links.begin(), hosts.links.end(),
                                 [](const Link &l) { return l.kind == LinkKind::nic; }));
  std::vector<unsigned> group(64);
  std::iota(group.begin(), group.end(), 0u);
  Topology lame = torus(8);
  lame.links.erase(lame.links.begin(), lame.links.begin() + 2);
  for (const Topology *topo : {&hosts, &lame})
    for (unsigned every : {1, 10}) { // pair has bytes, or every tenth
      std::vector<uint64_t> counts;
      for (unsigned i = 0; i < 64 * 64; ++i)
        counts.push_back(i * 37 % 101 % every == 0 ? 1'000'000 + uint64_t(i) * i * 7919 % 999'983
                                                   : 0);
      BoundQuery query;
      query.collective = Collective::all_to_all_v;
      query.group = group;
      query.counts = counts;
      query.bytes = largestTotal(counts, 64);
      query.rate = Rate::raw;
      bool seen = false;
      for (const LowerBound &b : bounds(*topo, query))
        if (b.argument == "concurrent flow") {
          seen = true;
          EXPECT_LT(gapOf(b), 1e-3) << b.detail;
        }
      EXPECT_TRUE(seen);
    }
}

TEST(AllToAllV, ALargeMeshLessALink) {
  Topology topo = mesh(64, [](unsigned i, unsigned j) { return i == 1 && j == 0; });
  std::vector<uint64_t> counts;
  for (uint64_t i = 0; i < 64 * 64; ++i)
    counts.push_back((i / 64) * (i % 64) * 7919 % 99'991 * 1000);
  bool seen = false;
  for (const LowerBound &b : unequal(topo, counts))
    if (b.argument == "concurrent flow") {
      seen = true;
      EXPECT_LT(gapOf(b), 0.1) << b.detail;
    }
  EXPECT_TRUE(seen);
}

TEST(AllToAllV, DenseAndOfAllAmounts) {
  std::vector<uint64_t> counts;
  for (uint64_t i = 0; i < 64 * 64; ++i)
    counts.push_back(i % 5 == 0 ? 0 : uint64_t(1000) << i * 7919 % 13);
  bool seen = false;
  for (const LowerBound &b : unequal(uneven(64, 3, 0, false), counts))
    if (b.argument == "concurrent flow") {
      seen = true;
      EXPECT_LT(gapOf(b), 0.2) << b.detail;
    }
  EXPECT_TRUE(seen);
}

TEST(AllToAllV, NothingAndTooMuch) {
  Topology topo = ring(3);
  std::vector<uint64_t> counts(9, 0);
  EXPECT_EQ(unequal(topo, counts).front().argument, "nothing moves");
  counts[4] = 7; // to itself
  EXPECT_EQ(unequal(topo, counts).front().argument, "nothing moves");
  std::vector<unsigned> group = everyone(topo);
  BoundQuery query;
  query.collective = Collective::all_to_all_v;
  query.group = group;
  EXPECT_NE(checkQuery(topo, query).find("3 x 3 counts, found 0"), std::string::npos);
  counts.assign(9, uint64_t(1) << 62);
  query.counts = counts;
  EXPECT_NE(checkQuery(topo, query).find("2^63"), std::string::npos);
  counts.assign(9, uint64_t(1) << 59);
  EXPECT_FALSE(unequal(topo, counts).empty());
}

TEST(AllToAllV, ManyRanksByDomains) {
  std::vector<uint64_t> counts(size_t(300) * 300, 0);
  counts[7 * 300 + 8] = 25'000;
  counts[9 * 300 + 8] = 25'000;
  Topology topo = ring(300);
  std::vector<LowerBound> all = unequal(topo, counts);
  EXPECT_EQ(all.front().argument, "domain cut");
  EXPECT_EQ(all.front().seconds, Rational::make(1, 1'000'000)); // 50 kB over two wires into rank 8
}
} // namespace
