//===- topology_fuzz.cpp - Any text gives a sound topology or an error ----===//
#include "Digest.h"
#include <cstdio>
#include <cstdlib>

using namespace mlir::ncclx::topology;

/// Does the text ask for more than 99 copies of a host? Those are refused or made by the million,
/// which takes the fuzzer's time and finds nothing.
static bool asksForMany(llvm::StringRef text) {
  while (true) {
    text = text.split("\"hosts\"").second;
    if (text.empty())
      return false;
    llvm::StringRef number = text.ltrim(" \t\r\n:");
    if (number.take_while([](char c) { return c >= '0' && c <= '9'; }).size() > 2)
      return true;
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  if (asksForMany(text))
    return -1;
  if (std::string problem = digest(NCCLX_FUZZ_READER(text, "fuzz")); !problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  digest(readTopology(text, "fuzz")); // the way by content
  return 0;
}
