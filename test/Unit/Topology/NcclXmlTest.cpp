//===- NcclXmlTest.cpp ----------------------------------------------------===//
#include "Rules.h"
#include "ncclx/Topology/Bounds.h"
#include "ncclx/Topology/IO.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace mlir::ncclx::topology;

namespace {
std::string gpuElement(unsigned i, llvm::StringRef links, llvm::StringRef device = "0x2335") {
  return fmt::format(
      R"(<pci busid="0000:{0:02x}:00.0" class="0x030200" vendor="0x10de" device="{2}")"
      R"( link_speed="32.0 GT/s PCIe" link_width="16">
<gpu dev="{1}" sm="90" rank="{1}" gdr="1">{3}</gpu></pci>
)",
      i + 16, i, device.str(), links.str());
}

std::string systemOf(llvm::StringRef inside) {
  return fmt::format(R"(<system version="1">
<cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
{}</cpu></system>)",
                     inside.str());
}

const char toSwitch[] = R"(<nvlink target="0000:F0:00.0" count="18" tclass="0x068000"/>)";

TEST(NcclXml, TellsH200FromH100ByDeviceId) {
  ReadResult result =
      readTopology(systemOf(gpuElement(0, toSwitch) + gpuElement(1, toSwitch, "0x2330")), "t");
  ASSERT_TRUE(result.topology.has_value());
  const Topology &t = *result.topology;
  EXPECT_EQ(t.models[t.rankNode(0).model].name, "H200-SXM");
  EXPECT_EQ(t.models[t.rankNode(1).model].name, "H100-SXM");
  EXPECT_EQ(rules(result), Rules());
}

TEST(NcclXml, SaysWhatItAssumedWithoutDeviceId) {
  ReadResult result = readTopology(
      systemOf(gpuElement(0, toSwitch, "0xffff") + gpuElement(1, toSwitch, "0xffff")), "t");
  ASSERT_TRUE(result.topology.has_value());
  EXPECT_EQ(rules(result), Rules{"assumed-model"});
  EXPECT_EQ(result.diagnostics[0].severity, Severity::note);
  EXPECT_NE(result.diagnostics[0].message.find("H100-SXM is assumed"), std::string::npos);
}

TEST(NcclXml, LinksToOneselfAreReportedAndLeftOut) {
  std::string self = R"(<nvlink target="0000:10:00.0" count="12" tclass="0x030200"/>)";
  ReadResult result = readTopology(systemOf(gpuElement(0, self) + gpuElement(1, "")), "t");
  ASSERT_TRUE(result.topology.has_value());
  EXPECT_EQ(rules(result), Rules{"self-link"});
  EXPECT_EQ(result.diagnostics[0].line, 4u);
  for (const Link &link : result.topology->links)
    EXPECT_NE(link.kind, LinkKind::nvlink);
}

TEST(NcclXml, OneSidedAndUnknownTargets) {
  std::string there = R"(<nvlink target="0000:11:00.0" count="2" tclass="0x030200"/>)";
  ReadResult result = readTopology(systemOf(gpuElement(0, there) + gpuElement(1, "")), "t");
  EXPECT_EQ(rules(result), (Rules{"one-sided-link", "fewer-links"}));
  std::string away = R"(<nvlink target="0000:99:00.0" count="2" tclass="0x030200"/>)";
  result = readTopology(systemOf(gpuElement(0, away) + gpuElement(1, "")), "t");
  EXPECT_EQ(rules(result), Rules{"unknown-target"});
}

TEST(NcclXml, EachMistakeIsOneError) {
  auto errors = [](const std::string &text) {
    ReadResult result = readTopology(text, "t");
    EXPECT_FALSE(result.topology.has_value());
    Rules list;
    for (const Diagnostic &d : result.diagnostics)
      if (d.severity == Severity::error)
        list.push_back(d.rule);
    return list;
  };
  auto withCount = [](llvm::StringRef count) {
    return systemOf(
        gpuElement(0, fmt::format(R"(<nvlink target="0000:f0:00.0" count="{}" tclass="0x068000"/>)",
                                  count.str())));
  };
  for (llvm::StringRef count : {"-1", "0", "nan", "1e3", "99999999999999999999", "", "4.5", "1025"})
    EXPECT_EQ(errors(withCount(count)), Rules{"number"}) << count.str();
  EXPECT_EQ(errors(systemOf(gpuElement(0, "") + gpuElement(0, ""))), Rules{"duplicate-bus-id"});
  EXPECT_EQ(errors(systemOf("")), Rules{"no-gpu-records"});
  EXPECT_EQ(errors("<graphs version=\"1\"/>"), Rules{"not-a-system"});
  EXPECT_EQ(errors("<html/>"), Rules{"not-a-system"});
  EXPECT_EQ(errors("<!-- nothing -->"), Rules{"xml"});
  std::string deep;
  for (unsigned i = 0; i < 100'000; ++i)
    deep += "<pci busid=\"" + std::to_string(i) + "\" class=\"0x060400\">";
  for (unsigned i = 0; i < 100'000; ++i)
    deep += "</pci>";
  EXPECT_EQ(errors(systemOf(deep)), Rules{"depth"});
}

TEST(NcclXml, EveryPrefixIsRefusedOnce) {
  std::string text = systemOf(gpuElement(0, toSwitch) + gpuElement(1, toSwitch));
  for (size_t length = 1; length < text.size(); ++length) {
    ReadResult result = readTopology(llvm::StringRef(text).take_front(length), "t");
    EXPECT_FALSE(result.topology.has_value());
    EXPECT_EQ(rules(result), Rules{"xml"}) << length;
  }
}

TEST(NcclXml, PortSpeedInTheWrongUnit) {
  auto withSpeed = [](llvm::StringRef speed) {
    return readTopology(
        systemOf(gpuElement(0, "") +
                 fmt::format(R"(<nic><net name="n" speed="{}"/></nic>)", speed.str())),
        "t");
  };
  ReadResult result = withSpeed("200000000");
  ASSERT_TRUE(result.topology.has_value());
  EXPECT_EQ(rules(result), (Rules{"unit", "no-scale-up-links"}));
  EXPECT_EQ(result.topology->links.back().bandwidth(Rate::raw), Rational(25'000'000'000));
  EXPECT_FALSE(withSpeed("9000000000000000000").topology.has_value());
  EXPECT_FALSE(withSpeed("-1").topology.has_value());
  EXPECT_FALSE(withSpeed("fast").topology.has_value());
  EXPECT_EQ(rules(withSpeed("0")), (Rules{"missing-speed", "no-scale-up-links"}));
}

TEST(NcclXml, UnknownElementsAreWarnedOfAndKept) {
  ReadResult result = readTopology(
      systemOf(gpuElement(0, "<optic bw=\"1\"/>") + "<fpga size=\"3\"><slot/></fpga>"), "t");
  ASSERT_TRUE(result.topology.has_value());
  EXPECT_EQ(rules(result), (Rules{"unknown-element", "unknown-element", "no-scale-up-links"}));
  EXPECT_EQ(result.diagnostics[1].path, "system/cpu[0]/fpga");
  EXPECT_EQ(result.diagnostics[1].line, 5u);
  const std::vector<Extra> kept = {
      {"system/cpu[0]/pci[0000:10:00.0]/gpu/optic", "<optic bw=\"1\"/>"},
      {"system/cpu[0]/fpga", "<fpga size=\"3\"><slot/></fpga>"}};
  EXPECT_EQ(result.topology->extras, kept);
  ReadResult again = readTopology(writeJson(*result.topology), "t");
  ASSERT_TRUE(again.topology.has_value());
  EXPECT_EQ(again.topology->extras, kept);
}

TEST(NcclXml, MisplacedElementsSayWhereTheyBelong) {
  ReadResult result =
      readTopology("<system>\n<gpu dev=\"0\" sm=\"90\"/>\n<cpu><net/></cpu></system>", "by hand");
  ASSERT_FALSE(result.topology.has_value());
  EXPECT_EQ(rules(result), (Rules{"misplaced-element", "misplaced-element", "no-gpu-records"}));
  EXPECT_NE(result.diagnostics[0].message.find("<gpu> belongs inside a <pci>"), std::string::npos);
  EXPECT_EQ(result.diagnostics[0].line, 2u);
}

TEST(NcclXml, BridgesOfOneBusIdAreTwo) {
  auto tree = [](unsigned gpu) {
    return "<pci busid=\"0000:80:00.0\" class=\"0x060400\" link_speed=\"16 GT/s\" "
           "link_width=\"16\">" +
           gpuElement(gpu, toSwitch) + "</pci>";
  };
  ReadResult result = readTopology(systemOf(tree(0) + tree(1)), "t");
  ASSERT_TRUE(result.topology.has_value());
  EXPECT_EQ(rules(result), Rules{"duplicate-bus-id"});
  EXPECT_EQ(result.diagnostics[0].severity, Severity::warning);
  EXPECT_EQ(result.topology->numRanks(), 2u);
}

/// The element, the line and the rule of each thing a file may have wrong.
TEST(NcclXml, FindingsNameElementLineAndRule) {
  struct Case {
    const char *rule;
    Severity severity;
    std::string path;
    unsigned line;
    std::string text;
  };
  const std::string self = R"(<nvlink target="0000:10:00.0" count="12" tclass="0x030200"/>)",
                    there = R"(<nvlink target="0000:11:00.0" count="2" tclass="0x030200"/>)",
                    few = R"(<nvlink target="0000:f0:00.0" count="9" tclass="0x068000"/>)";
  const std::string gpu0 = "system/cpu[0]/pci[0000:10:00.0]/gpu";
  const Case cases[] = {
      {"no-gpu-records", Severity::error, "system", 1, systemOf("")},
      {"unit", Severity::warning, "system/cpu[0]/nic/net[n]", 5,
       systemOf(gpuElement(0, "") + R"(<nic><net name="n" speed="200000000"/></nic>)")},
      {"self-link", Severity::warning, gpu0 + "/nvlink[0000:10:00.0]", 4,
       systemOf(gpuElement(0, self))},
      {"one-sided-link", Severity::warning, "'gpu0'", 4,
       systemOf(gpuElement(0, there) + gpuElement(1, ""))},
      {"fewer-links", Severity::warning, "'gpu1'", 6,
       systemOf(gpuElement(0, toSwitch) + gpuElement(1, few))},
      {"not-a-system", Severity::error, "", 2, "<!-- NCCL -->\n<graphs version=\"1\"/>"},
      {"missing-class", Severity::warning, "system/cpu[0]/pci[0000:99:00.0]", 5,
       systemOf(gpuElement(0, toSwitch) + "<pci busid=\"0000:99:00.0\"/>")},
      {"unknown-element", Severity::warning, "system/cpu[0]/fpga", 6,
       systemOf(gpuElement(0, toSwitch) + "\n<fpga/>")},
  };
  for (const Case &c : cases) {
    ReadResult result = readTopology(c.text, "t");
    auto it = std::find_if(result.diagnostics.begin(), result.diagnostics.end(),
                           [&](const Diagnostic &d) { return d.rule == c.rule; });
    ASSERT_NE(it, result.diagnostics.end()) << c.rule;
    EXPECT_EQ(it->severity, c.severity) << c.rule;
    EXPECT_EQ(it->path, c.path) << c.rule;
    EXPECT_EQ(it->line, c.line) << c.rule;
    // What can go on goes on.
    EXPECT_EQ(result.topology.has_value(), c.severity != Severity::error) << c.rule;
  }
}

// Hosts number their devices alike. A fabric across hosts has no bus id; NCCL writes ones for it.
TEST(NcclXml, BusIdsAreOfOneHost) {
  auto hosts = [](llvm::StringRef target) {
    std::string text = "<system>";
    for (llvm::StringRef host : {"0x1", "0x2"})
      text += fmt::format("<cpu host_hash=\"{}\" numaid=\"-1\">{}</cpu>", host.str(),
                          gpuElement(0, fmt::format("<nvlink target=\"{}\" count=\"18\" "
                                                    "tclass=\"0x068000\"/>",
                                                    target.str())));
    return readTopology(text + "</system>", "t");
  };
  ReadResult apart = hosts("0000:f0:00.0"), joined = hosts("fffffff:ff:ff.0");
  ASSERT_TRUE(apart.topology.has_value() && joined.topology.has_value());
  EXPECT_EQ(apart.topology->hosts.size(), 2u);
  auto switches = [](const Topology &topo) {
    return std::count_if(topo.nodes.begin(), topo.nodes.end(),
                         [](const Node &n) { return n.kind == NodeKind::nvswitch; });
  };
  EXPECT_EQ(switches(*apart.topology), 2);
  EXPECT_EQ(switches(*joined.topology), 1);
}

// What is square in some count is refused before it takes the machine.
TEST(NcclXml, HugeCountsAreRefused) {
  std::string many = "<system>";
  for (unsigned i = 0; i < 5000; ++i)
    many += "<cpu/>";
  ReadResult result = readTopology(many + "</system>", "t");
  ASSERT_FALSE(result.topology.has_value());
  EXPECT_EQ(result.diagnostics.front().rule, "count");
  EXPECT_EQ(result.diagnostics.size(), 1001u); // a thousand are listed, the rest counted
  EXPECT_EQ(result.diagnostics.back().rule, "more");
  std::string kinds;
  for (unsigned i = 0; i < 300; ++i)
    kinds += fmt::format("<pci busid=\"{0:04x}:00:00.0\" class=\"0x03\" link_speed=\"16 GT/s\" "
                         "link_width=\"16\"><gpu dev=\"{0}\" sm=\"{1}\"/></pci>",
                         i, i + 1000);
  result = readTopology(systemOf(kinds), "t");
  ASSERT_FALSE(result.topology.has_value());
  std::string attribute(size_t(70) << 20, 'x');
  EXPECT_EQ(rules(readTopology("<system a=\"" + attribute + "\"/>", "t")), Rules{"file"});
}

// A <graphs> file, and graph files that are none.
TEST(NcclXml, GraphsThatAreNone) {
  ReadResult two = readTopology(systemOf(gpuElement(0, toSwitch) + gpuElement(1, toSwitch)), "duo");
  ASSERT_TRUE(two.topology.has_value());
  for (llvm::StringRef text : {"", "<graphs", "{}", "<graphs><graph/></graphs>x<"}) {
    Diagnostics found = checkGraphs(text, *two.topology);
    ASSERT_EQ(found.size(), 1u) << text.str();
    EXPECT_EQ(found[0].rule, "not-graphs");
  }
}

TEST(NcclXml, WhatIsNotUtf8IsSaid) {
  ReadResult raw = readTopology("<system>\n<cpu arch=\"\xff\"/></system>", "t");
  ASSERT_FALSE(raw.topology.has_value());
  EXPECT_EQ(rules(raw), (Rules{"encoding"}));
  EXPECT_EQ(raw.diagnostics[0].line, 2u);
}

// peers.md row 45 (nccl 2160): a limit of 256 nodes.
TEST(PeersRow45, AThousandNodesTwelveDeep) {
  std::string inside, tail;
  unsigned bus = 0;
  auto bridge = [&] {
    ++bus;
    return fmt::format(R"(<pci busid="{:04x}:00:00.0" class="0x060400" link_speed="16 GT/s")"
                       R"( link_width="16">)",
                       bus);
  };
  for (unsigned tree = 0; tree < 91; ++tree) {
    for (unsigned depth = 0; depth < 10; ++depth)
      inside += bridge();
    inside += fmt::format("<pci busid=\"{:04x}:01:00.0\" class=\"0x030200\" vendor=\"0x10de\" "
                          "device=\"0x2335\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
                          "<gpu dev=\"{}\" sm=\"90\" rank=\"{}\">{}</gpu></pci>",
                          bus, tree, tree, toSwitch);
    for (unsigned depth = 0; depth < 10; ++depth)
      inside += "</pci>";
  }
  ReadResult result = readTopology(systemOf(inside), "t");
  ASSERT_TRUE(result.topology.has_value());
  EXPECT_GE(result.topology->nodes.size(), 1000u);
  EXPECT_EQ(result.topology->numRanks(), 91u);
}

// peers.md row 51 (nccl 2186): a crash from 44 ranks on.
TEST(PeersRow51, RankCountsAroundOldLimits) {
  for (unsigned n : {43u, 44u, 45u, 64u, 72u, 127u, 128u}) {
    std::string inside;
    for (unsigned i = 0; i < n; ++i)
      inside += gpuElement(i, toSwitch);
    ReadResult result = readTopology(systemOf(inside), "t");
    ASSERT_TRUE(result.topology.has_value()) << n;
    std::vector<unsigned> group(n);
    for (unsigned i = 0; i < n; ++i)
      group[i] = i;
    BoundQuery query;
    query.group = group;
    query.bytes = 1000;
    query.rate = Rate::raw;
    LowerBound b = bound(*result.topology, query);
    EXPECT_EQ(b.seconds,
              std::max(Rational::make(1000 * (n - 1), int64_t(n)) / Rational(450'000'000'000),
                       Rational::make(1, 1'000'000),
                       [](const Rational &a, const Rational &c) { return a < c; }))
        << n;
  }
}

// peers.md row 47 (nccl 1008): a graph file for more GPUs than there are.
TEST(PeersRow47, GraphFileNamesTheMissingDevice) {
  ReadResult two = readTopology(systemOf(gpuElement(0, toSwitch) + gpuElement(1, toSwitch)), "duo");
  ASSERT_TRUE(two.topology.has_value());
  const char graphs[] = "<graphs version=\"1\">\n<graph id=\"0\"><channel><gpu dev=\"0\"/>\n"
                        "<gpu dev=\"2\"/><gpu dev=\"3\"/></channel></graph></graphs>";
  Diagnostics found = checkGraphs(graphs, *two.topology);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 3u);
  EXPECT_NE(found[0].message.find("dev 2, but 'duo' has 2"), std::string::npos);
  EXPECT_EQ(checkGraphs("<system/>", *two.topology).size(), 1u);
  EXPECT_EQ(checkGraphs("<graphs version=\"1\"><graph id=\"0\"><channel><gpu dev=\"1\"/>"
                        "</channel></graph></graphs>",
                        *two.topology)
                .size(),
            0u);
}

std::string exampleText() {
  auto buffer = llvm::MemoryBuffer::getFile(NCCLX_EXAMPLES "/h200x8-nvswitch.xml");
  EXPECT_TRUE(bool(buffer));
  return buffer ? (*buffer)->getBuffer().str() : "";
}

Rational gatherBound(const Topology &topo) {
  std::vector<unsigned> group(topo.numRanks());
  for (unsigned i = 0; i < group.size(); ++i)
    group[i] = i;
  BoundQuery query;
  query.group = group;
  query.bytes = 1 << 30;
  query.rate = Rate::raw;
  return bound(topo, query).seconds;
}

// peers.md row 46: one record of one GPU is lost. It is named, and the bound falls to its cut.
TEST(PeersRow46, ALostRecordIsNamed) {
  std::string text = exampleText();
  size_t gpu = text.find("<gpu dev=\"3\""), at = text.find("<nvlink", gpu);
  ASSERT_NE(at, std::string::npos);
  text.erase(at, text.find("/>", at) + 2 - at);
  ReadResult result = readTopology(text, "lame");
  ASSERT_TRUE(result.topology.has_value());
  EXPECT_EQ(rules(result), Rules{"fewer-links"});
  EXPECT_NE(result.diagnostics[0].message.find("'gpu3' has 13"), std::string::npos);
  EXPECT_EQ(gatherBound(*result.topology),
            Rational::make(Rational::Int(1) << 30, 8) * Rational(7) / Rational(325'000'000'000));
}

// peers.md row 48: a virtual machine hides the PCI switches; a skeleton says nothing about links.
TEST(PeersRow48, HiddenSwitchesAndSkeletons) {
  ReadResult whole = readTopology(exampleText(), "whole");
  ASSERT_TRUE(whole.topology.has_value());
  std::string text, skeleton;
  llvm::SmallVector<llvm::StringRef> lines;
  std::string original = exampleText();
  llvm::StringRef(original).split(lines, '\n');
  bool inGpu = false;
  for (llvm::StringRef line : lines) {
    if (line.contains("class=\"0x060400\"") || line == "    </pci>")
      continue;
    text += line.str() + "\n";
    inGpu = inGpu || line.contains("<gpu");
    if (!inGpu && !line.contains("nic>") && !line.contains("<net"))
      skeleton += line.str() + "\n";
    inGpu = inGpu && !line.contains("</gpu>");
  }
  ReadResult hidden = readTopology(text, "hidden");
  ASSERT_TRUE(hidden.topology.has_value());
  EXPECT_LT(hidden.topology->nodes.size(), whole.topology->nodes.size());
  EXPECT_EQ(gatherBound(*hidden.topology), gatherBound(*whole.topology));
  ReadResult bare = readTopology(skeleton, "bare");
  ASSERT_FALSE(bare.topology.has_value());
  EXPECT_EQ(rules(bare), Rules{"no-gpu-records"});
  EXPECT_NE(bare.diagnostics[0].message.find("8 GPU-class, 8 network-class"), std::string::npos);
}
} // namespace
