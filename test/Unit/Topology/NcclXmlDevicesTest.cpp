//===- NcclXmlDevicesTest.cpp - C2C, split GPUs, newer generations --------===//
#include "Rules.h"
#include "ncclx/Topology/Bounds.h"
#include "ncclx/Topology/IO.h"
#include "ncclx/Topology/Resources.h"
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace mlir::ncclx::topology;

namespace {
/// A <pci> of a GPU class at a bus number, around one or two <gpu>.
std::string device(unsigned bus, llvm::StringRef vendor, llvm::StringRef id,
                   llvm::StringRef inside) {
  return fmt::format(R"(<pci busid="0000:{:02x}:00.0" class="0x030200" vendor="{}" device="{}" )"
                     R"(link_speed="32.0 GT/s PCIe" link_width="16">)"
                     "\n{}</pci>\n",
                     bus, vendor.str(), id.str(), inside.str());
}

ReadResult read(const std::string &inside) {
  return readTopology("<system version=\"1\">\n<cpu numaid=\"0\" arch=\"arm64\">\n" + inside +
                          "</cpu></system>",
                      "t");
}

/// The rate of all wires of a kind that leave a rank.
Rational leaves(const Topology &topo, unsigned rank, LinkKind kind, Rate rate) {
  Rational sum = 0;
  for (const Link &link : topo.links)
    if (link.from == topo.ranks[rank] && link.kind == kind)
      sum += link.bandwidth(rate);
  return sum;
}
Rational giga(int64_t tenths) { return Rational(tenths) * Rational(100'000'000); }

const char fabric[] = R"(<nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>)";

TEST(NcclXmlDevices, CoherentLinksLeadToTheCpu) {
  std::string gpu =
      R"(<gpu dev="{0}" sm="103" rank="{0}" gdr="1">{1}<c2c bw="44712" count="5"/></gpu>)";
  ReadResult result =
      read(device(1, "0x10de", "0x31c2", fmt::format(fmt::runtime(gpu), 0, fabric)) +
           device(2, "0x10de", "0x31c2", fmt::format(fmt::runtime(gpu), 1, "")));
  ASSERT_TRUE(result.topology);
  const Topology &topo = *result.topology;
  // As on the tray whose second GPU lost its record: named, and not silently slow.
  EXPECT_EQ(rules(result), Rules{"fewer-links"});
  EXPECT_EQ(topo.models[topo.rankNode(0).model].name, "GB300");
  EXPECT_EQ(leaves(topo, 0, LinkKind::nvlink, Rate::raw), giga(9000));
  for (Rate rate : {Rate::raw, Rate::payload})
    EXPECT_EQ(leaves(topo, 1, LinkKind::c2c, rate), Rational(223'560'000'000));
  // Without NVLink the way is up to the CPU and down again, wider than PCI.
  ResourceModel routes(topo, Rate::raw);
  EXPECT_EQ(routes.reachability(0, 1), Reach::loadStore);
  EXPECT_EQ(routes.bandwidth(0, 1), Rational(223'560'000'000));
  ReadResult again = readTopology(writeJson(topo), "t");
  ASSERT_TRUE(again.topology);
  EXPECT_EQ(writeJson(*again.topology), writeJson(topo));
}

TEST(NcclXmlDevices, CoherentLinksWithoutFigures) {
  for (const char *c2c : {R"(<c2c count="5"/>)", R"(<c2c bw="44712"/>)", "<c2c/>"}) {
    ReadResult result = read(device(
        1, "0x10de", "0x2941", fmt::format(R"(<gpu dev="0" sm="100" rank="0">{}</gpu>)", c2c)));
    ASSERT_TRUE(result.topology);
    EXPECT_EQ(rules(result).front(), "missing-count") << c2c;
    EXPECT_TRUE(leaves(*result.topology, 0, LinkKind::c2c, Rate::raw).isZero());
  }
  for (const char *c2c :
       {R"(<c2c bw="-1" count="5"/>)", R"(<c2c bw="44.7" count="5"/>)",
        R"(<c2c bw="99999999999999999999" count="5"/>)", R"(<c2c bw="44712" count="0"/>)"}) {
    ReadResult result = read(device(
        1, "0x10de", "0x2941", fmt::format(R"(<gpu dev="0" sm="100" rank="0">{}</gpu>)", c2c)));
    EXPECT_FALSE(result.topology);
    EXPECT_EQ(rules(result), Rules{"number"}) << c2c;
  }
}

std::string half(unsigned part, unsigned rank, llvm::StringRef links) {
  return fmt::format(R"(<gpu dev="0" sm="100" mlopart="{}" rank="{}" gdr="1">{}</gpu>)"
                     "\n",
                     part, rank, links.str());
}

TEST(NcclXmlDevices, HalvesAreRanksThatShareTheirGpusLinks) {
  std::string links = fabric + std::string(R"(<c2c bw="44712" count="5"/>)");
  ReadResult result = read(device(1, "0x10de", "0x2941", half(0, 0, links) + half(1, 1, links)) +
                           device(2, "0x10de", "0x2941", half(0, 2, links) + half(1, 3, links)));
  ASSERT_TRUE(result.topology);
  const Topology &topo = *result.topology;
  EXPECT_EQ(rules(result), Rules());
  ASSERT_EQ(topo.numRanks(), 4u);
  EXPECT_EQ(topo.rankNode(1).name, "gpu0.1");
  EXPECT_EQ(topo.models[topo.rankNode(0).model].sms, 74u);
  EXPECT_EQ(leaves(topo, 0, LinkKind::nvlink, Rate::raw), giga(4500));
  EXPECT_EQ(leaves(topo, 0, LinkKind::die, Rate::payload), giga(26180));
  // One bridge to the CPU, as wide as one link, for both.
  int bridge = topo.findNode("c2c-0000:01:00.0");
  ASSERT_GE(bridge, 0);
  Rational up = 0;
  for (const Link &link : topo.links)
    if (link.from == unsigned(bridge) && topo.nodes[link.to].kind == NodeKind::cpu)
      up += link.bandwidth(Rate::raw);
  EXPECT_EQ(up, Rational(223'560'000'000));
  // Both halves' links cross between the two GPUs, each GPU's own half is near.
  unsigned group[] = {0, 1, 2, 3};
  BoundQuery query;
  query.group = group;
  query.bytes = 4'000'000'000;
  query.rate = Rate::raw;
  EXPECT_EQ(bound(topo, query).seconds, Rational(2'000'000'000) / giga(9000));
  for (const Node &node : topo.nodes)
    EXPECT_FALSE(node.reduces) << node.name;
}

TEST(NcclXmlDevices, HalvesOfNeighboursDivideTheLinksBetweenThem) {
  auto to = [](unsigned bus) {
    return fmt::format(R"(<nvlink target="0000:{:02x}:00.0" count="12" tclass="0x030200"/>)", bus);
  };
  ReadResult result = read(device(1, "0x10de", "0x2941", half(0, 0, to(2)) + half(1, 1, to(2))) +
                           device(2, "0x10de", "0x2941", half(0, 2, to(1)) + half(1, 3, to(1))));
  ASSERT_TRUE(result.topology);
  EXPECT_EQ(rules(result), Rules());
  ResourceModel routes(*result.topology, Rate::raw);
  EXPECT_EQ(routes.bandwidth(0, 3), giga(1500)); // a quarter of 12 x 50
}

TEST(NcclXmlDevices, TwoRecordsThatAreNoHalves) {
  std::string plain = R"(<gpu dev="0" sm="100" rank="1"/>)";
  for (const std::string &second : {plain, half(0, 1, ""), std::string()}) {
    ReadResult result =
        read(device(1, "0x10de", "0x2941", half(0, 0, "") + (second.empty() ? plain : second)));
    EXPECT_FALSE(result.topology);
    EXPECT_EQ(rules(result), Rules{"two-gpus"});
  }
  EXPECT_EQ(rules(read(device(1, "0x10de", "0x2941", plain + plain))), Rules{"two-gpus"});
  EXPECT_EQ(rules(read(device(1, "0x10de", "0x2941", half(2, 0, "")))), Rules{"number"});
}

TEST(NcclXmlDevices, ComputeUnitsAndCapabilities) {
  auto model = [](const char *id, const char *attributes) {
    ReadResult result =
        read(device(1, "0x1002", id, fmt::format(R"(<gpu dev="0" rank="0" {}/>)", attributes)));
    EXPECT_TRUE(result.topology);
    return result.topology ? result.topology->models[0] : GpuModel();
  };
  // RCCL once wrote the compute capability: 94 is not a count of compute units.
  EXPECT_EQ(model("0x74a1", R"(sm="94" gcn="gfx942")").sms, 304u);
  EXPECT_EQ(model("0x74a1", R"(sm="94" gcn="gfx942")").name, "MI300X");
  EXPECT_EQ(model("0x74a1", R"(sm="80" gcn="gfx942")").sms, 80u); // a partition
  EXPECT_EQ(model("0x75a0", R"(sm="256" gcn="gfx950")").name, "MI350X");
  EXPECT_EQ(model("0x740c", R"(sm="90" gcn="gfx90a")").sms, 104u);
}

TEST(NcclXmlDevices, GenerationsThatAreNotInTheTable) {
  struct Case {
    const char *attributes, *link;
    Rational raw, payload;
  };
  for (const Case &one : {Case{R"(sm="107")", "nvlink", giga(500), giga(401)},
                          {R"(sm="86")", "nvlink", giga(140), giga(120)},
                          {R"(sm="60")", "nvlink", giga(200), giga(180)},
                          {R"(sm="228" gcn="gfx940")", "xgmi", giga(640), giga(480)},
                          {R"(sm="64" gcn="gfx900")", "xgmi", giga(460), giga(240)}}) {
    std::string text;
    for (unsigned i = 0; i < 2; ++i)
      text += device(
          1 + i, "0xffff", "0xffff",
          fmt::format(R"(<gpu dev="{0}" rank="{0}" {1}><{2} target="0000:{3:02x}:00.0" count="1" )"
                      R"(tclass="0x030200"/></gpu>)",
                      i, one.attributes, one.link, 2 - i));
    ReadResult result = read(text);
    ASSERT_TRUE(result.topology) << one.attributes;
    LinkKind kind = *parseLinkKind(one.link);
    EXPECT_EQ(leaves(*result.topology, 0, kind, Rate::raw), one.raw) << one.attributes;
    EXPECT_EQ(leaves(*result.topology, 0, kind, Rate::payload), one.payload) << one.attributes;
  }
}
} // namespace
