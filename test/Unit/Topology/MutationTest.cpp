//===- MutationTest.cpp - Damaged files never crash a reader --------------===//
#include "Digest.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir::ncclx::topology;

namespace {
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
    EXPECT_EQ(digest(readTopology(text, "mutant")), "") << text;
  }
}

TEST(Mutation, Xml) { mutate("h200x8-nvswitch.xml"); }
TEST(Mutation, Json) { mutate("h100x4-mesh.json"); }
TEST(Mutation, ReplicatedJson) { mutate("dgx-h100-2.json"); }
} // namespace
