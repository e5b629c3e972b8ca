//===- Read.cpp - Files by their content ----------------------------------===//
#include "ncclx/Support/ReadFile.h"
#include "ncclx/Topology/IO.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include <fmt/format.h>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

ReadResult topology::readTopology(llvm::StringRef text, llvm::StringRef name) {
  if (text.size() > maxFileBytes) {
    ReadResult result;
    result.diagnostics.push_back(
        {Severity::error, "", 0, "file",
         fmt::format("has {} bytes; at most {} are read", text.size(), maxFileBytes)});
    return result;
  }
  if (size_t at = 0; !llvm::json::isUTF8(text, &at)) {
    ReadResult result;
    unsigned line = 1 + text.take_front(at).count('\n');
    result.diagnostics.push_back(
        {Severity::error, "", line, "encoding",
         fmt::format("byte {} is not UTF-8, in which topologies are written", at)});
    return result;
  }
  llvm::StringRef start = text;
  start.consume_front("\xef\xbb\xbf");
  start = start.ltrim();
  if (start.starts_with("<"))
    return readNcclXml(text, name);
  if (start.starts_with("{") || start.starts_with("["))
    return readJson(start.data() == text.data() ? text : text.drop_front(text.find(start[0])),
                    name);
  ReadResult result;
  result.diagnostics.push_back(
      {Severity::error, "", 0, "format",
       start.empty() ? "the file is empty"
                     : "neither XML (NCCL's or RCCL's <system>) nor JSON: it starts with neither "
                       "'<' nor '{'"});
  return result;
}

ReadResult topology::readTopologyFile(llvm::StringRef path) {
  std::string problem;
  if (std::optional<std::string> text = readFile(path, problem))
    return readTopology(*text, path == "-" ? "stdin" : llvm::sys::path::stem(path));
  ReadResult result;
  result.diagnostics.push_back({Severity::error, "", 0, "file", std::move(problem)});
  return result;
}
