//===- MutationTest.cpp - Damaged files never crash a reader --------------===//
#include "ncclx/Topology/Bounds.h"
#include "ncclx/Topology/IO.h"
#include "ncclx/Topology/Resources.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir::ncclx::topology;

namespace {
/// What any text must give: a topology that answers every query, or an error that says why.
void digest(llvm::StringRef text) {
  ReadResult result = readTopology(text, "mutant");
  ASSERT_EQ(result.topology.has_value(), !hasErrors(result.diagnostics)) << text.str();
  for (const Diagnostic &d : result.diagnostics) {
    EXPECT_FALSE(d.rule.empty());
    EXPECT_FALSE(d.message.empty());
  }
  if (!result.topology || result.topology->numRanks() > 32)
    return;
  const Topology &topo = *result.topology;
  ResourceModel model(topo, Rate::payload);
  std::vector<unsigned> group;
  for (unsigned r = 0; r < topo.numRanks(); ++r) {
    group.push_back(r);
    model.route(0, r);
  }
  BoundQuery query;
  query.group = group;
  query.bytes = 1 << 20;
  for (Collective collective :
       {Collective::all_gather, Collective::all_reduce, Collective::all_to_all}) {
    query.collective = collective;
    EXPECT_FALSE(bounds(topo, query).empty());
  }
  // Written and read again, it is the same.
  std::string once = writeJson(topo);
  ReadResult again = readTopology(once, "mutant");
  ASSERT_TRUE(again.topology.has_value()) << once;
  EXPECT_EQ(writeJson(*again.topology), once);
}

void mutate(const char *file) {
  auto buffer = llvm::MemoryBuffer::getFile(std::string(NCCLX_EXAMPLES "/") + file);
  ASSERT_TRUE(bool(buffer)) << file;
  const std::string original = (*buffer)->getBuffer().str();
  const llvm::StringRef tokens[] = {"-1",   "0",      "1e99", "99999999999999999999",
                                    "nan",  "\"",     "{",    "]",
                                    "<",    "</pci>", "null", "1/0",
                                    "gpu0", "count",  "\xff", "0000:c4:00.0"};
  std::mt19937 random(20240607);
  auto upTo = [&](size_t limit) { return random() % limit; };
  for (unsigned round = 0; round < 1500; ++round) {
    std::string text = original;
    for (size_t edits = 1 + upTo(3); edits > 0; --edits) {
      size_t at = upTo(text.size());
      switch (upTo(4)) {
      case 0:
        text[at] = char(upTo(256));
        break;
      case 1:
        text.erase(at, 1 + upTo(40));
        break;
      case 2:
        text.insert(at, tokens[upTo(std::size(tokens))].str());
        break;
      case 3:
        text.insert(at, original.substr(upTo(original.size()), upTo(200)));
        break;
      }
      if (text.empty())
        text = " ";
    }
    digest(text);
  }
}

TEST(Mutation, Xml) { mutate("h200x8-nvswitch.xml"); }
TEST(Mutation, Json) { mutate("h100x4-mesh.json"); }
TEST(Mutation, ReplicatedJson) { mutate("dgx-h100-2.json"); }
} // namespace
