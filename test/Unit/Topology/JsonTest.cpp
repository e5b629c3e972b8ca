//===- JsonTest.cpp -------------------------------------------------------===//
#include "ncclx/Topology/IO.h"
#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>

using namespace mlir::ncclx::topology;

namespace {
/// A document of two GPUs; `node` and `link` go into the second node and the only link.
std::string document(llvm::StringRef node = "", llvm::StringRef link = "") {
  return (R"({"format": "ncclx-topology", "version": 1, "name": "pair",
 "nodes": [
  {"name": "gpu0", "kind": "gpu", "rank": 0, "gpu": "H200-SXM"},
  {"name": "gpu1", "kind": "gpu", "rank": 1, "gpu": "H200-SXM")" +
          node + R"(}],
 "links": [
  {"from": "gpu0", "to": "gpu1", "kind": "nvlink", "both_ways": true)" +
          link + "}]}")
      .str();
}

/// "RULE PATH" of the errors.
std::vector<std::string> errors(llvm::StringRef text) {
  std::vector<std::string> list;
  ReadResult result = readTopology(text, "test");
  for (const Diagnostic &d : result.diagnostics)
    if (d.severity == Severity::error)
      list.push_back(d.rule + " " + d.path);
  EXPECT_EQ(list.empty(), result.topology.has_value());
  return list;
}
using Errors = std::vector<std::string>;

TEST(Json, TakesRatesFromTheGpuTable) {
  ReadResult result = readTopology(document(), "test");
  ASSERT_TRUE(result.topology.has_value());
  EXPECT_EQ(result.format, "json");
  const Topology &t = *result.topology;
  EXPECT_EQ(t.name, "pair");
  ASSERT_EQ(t.links.size(), 2u);
  EXPECT_EQ(t.links[0].perWire.payload, Rational(20'600'000'000));
  EXPECT_EQ(t.models[0].sms, 132u);
}

TEST(Json, RatesAreExactRationals) {
  ReadResult result = readTopology(
      document("", R"(, "raw": "370.8/7 GB/s", "payload": "20.6 GB/s", "latency_ns": "1/3")"),
      "test");
  ASSERT_TRUE(result.topology.has_value());
  EXPECT_EQ(result.topology->links[0].perWire.raw, Rational::make(370'800'000'000, 7));
  EXPECT_EQ(result.topology->links[0].latencyNs, Rational::make(1, 3));
}

TEST(Json, RoundTripsEverything) {
  ReadResult first = readTopology(
      document(
          R"(, "bus_id": "0000:01:00.0", "bundle": "b")",
          R"(, "raw": "370.8/7 GB/s", "payload": 20600000000, "count": 3, "latency_ns": "5/3")"),
      "test");
  ASSERT_TRUE(first.topology.has_value());
  first.topology->hosts[0].rack = "r";
  first.topology->hosts[0].cores = 3;
  first.topology->hosts[0].coreF32Flops = Rational::make(1, 3);
  first.topology->links.pop_back(); // one direction alone
  std::string text = writeJson(*first.topology);
  ReadResult second = readTopology(text, "test");
  ASSERT_TRUE(second.topology.has_value());
  EXPECT_EQ(writeJson(*second.topology), text);
  EXPECT_EQ(second.topology->links.size(), 1u);
  EXPECT_EQ(second.topology->links[0].perWire, first.topology->links[0].perWire);
  EXPECT_EQ(second.topology->hosts, first.topology->hosts);
  EXPECT_EQ(second.topology->models, first.topology->models);
  EXPECT_EQ(second.topology->nodes[1].bundle, "b");
}

TEST(Json, EachMistakeIsOneError) {
  EXPECT_EQ(errors(document("", R"(, "count": -1)")), Errors{"type links[0]"});
  EXPECT_EQ(errors(document("", R"(, "count": 1.5)")), Errors{"type links[0]"});
  EXPECT_EQ(errors(document("", R"(, "count": "many")")), Errors{"type links[0]"});
  EXPECT_EQ(errors(document("", R"(, "raw": -5)")), Errors{"type links[0]"});
  EXPECT_EQ(errors(document("", R"(, "raw": "NaN")")), Errors{"type links[0]"});
  EXPECT_EQ(errors(document("", R"(, "raw": "1e300 B/s")")), Errors{"type links[0]"});
  EXPECT_EQ(errors(document("", R"(, "raw": "5 GB")")), Errors{"type links[0]"});
  EXPECT_EQ(errors(document("", R"(, "raw": true)")), Errors{"type links[0]"});
  EXPECT_EQ(errors(document("", R"(, "both_ways": 1)")), Errors{"type links[0]"});
  EXPECT_EQ(errors(document(R"(, "rank": 1.5)")), Errors{"type nodes[1]"});
  EXPECT_EQ(errors(document(R"(, "rank": 0)")), Errors{"ranks nodes[1]"});
  EXPECT_EQ(errors(document(R"(, "throughput": [])")), Errors{"type nodes[1]"});
  EXPECT_EQ(errors(document(R"(, "multicast": "yes")")), Errors{"type nodes[1]"});
  EXPECT_EQ(errors(document(R"(, "host": "nowhere")")), Errors{"unknown-name nodes[1]"});
}

TEST(Json, NamesUnknownThings) {
  std::string text = document();
  size_t at = text.find("\"to\": \"gpu1\"");
  EXPECT_EQ(errors(text.substr(0, at) + "\"to\": \"gpu9\"" + text.substr(at + 12)),
            Errors{"unknown-name links[0]"});
  at = text.find("\"kind\": \"nvlink\"");
  EXPECT_EQ(errors(text.substr(0, at) + "\"kind\": \"string\"" + text.substr(at + 16)),
            Errors{"link-kind links[0]"});
  // A kind whose rate no table knows needs "raw".
  EXPECT_EQ(errors(text.substr(0, at) + "\"kind\": \"pci\"" + text.substr(at + 16)),
            Errors{"missing-key links[0]"});
  at = text.find("\"rank\": 1");
  EXPECT_EQ(errors(text.substr(0, at) + "\"rank\": 2" + text.substr(at + 9)),
            Errors{"ranks nodes[1]"});
}

TEST(Json, UnknownKeysAreWarnedOfWithTheirLine) {
  ReadResult result = readTopology(document(R"(, "colour": "red")"), "test");
  ASSERT_TRUE(result.topology.has_value());
  ASSERT_EQ(result.diagnostics.size(), 1u);
  EXPECT_EQ(result.diagnostics[0].rule, "unknown-key");
  EXPECT_EQ(result.diagnostics[0].path, "nodes[1]");
  EXPECT_EQ(result.diagnostics[0].line, 4u);
}

TEST(Json, EveryPrefixIsRefusedOnce) {
  std::string text = document();
  for (size_t length = 0; length + 1 < text.size(); ++length)
    EXPECT_EQ(errors(llvm::StringRef(text).take_front(length)).size(), 1u) << length;
}

TEST(Json, WrongDocuments) {
  EXPECT_EQ(errors("[1, 2]"), Errors{"type "});
  EXPECT_EQ(errors("{}"), Errors({"missing-key ", "version "}));
  EXPECT_EQ(errors(R"({"format": "other", "version": 1})"), Errors{"format "});
  EXPECT_EQ(errors(R"({"format": "ncclx-topology", "version": 2})"), Errors{"version "});
  EXPECT_EQ(errors(R"({"format": "ncclx-topology", "version": 1})"), Errors{"no-ranks ranks"});
  EXPECT_EQ(errors(R"({"format": "ncclx-topology", "version": 1, "nodes": {}})"),
            Errors{"type nodes"});
  EXPECT_EQ(errors(R"({"format": "ncclx-topology", "version": 1, "nodes": [7]})"),
            Errors{"type nodes[0]"});
  EXPECT_EQ(errors("nothing"), Errors{"format "});
  EXPECT_EQ(errors(""), Errors{"format "});
}

TEST(Json, DeepNestingIsRefusedBeforeParsing) {
  EXPECT_EQ(errors(std::string(1'000'000, '[')), Errors{"depth "});
}
} // namespace
