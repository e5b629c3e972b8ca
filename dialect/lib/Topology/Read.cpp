//===- Read.cpp - Files by their content ----------------------------------===//
#include "ncclx/Topology/IO.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <fmt/format.h>

using namespace mlir::ncclx::topology;
namespace topology = mlir::ncclx::topology;

/// Larger files are no topology; reading one must not take the machine down.
static constexpr uint64_t maxBytes = uint64_t(1) << 28;

ReadResult topology::readTopology(llvm::StringRef text, llvm::StringRef name) {
  if (text.size() > maxBytes) {
    ReadResult result;
    result.diagnostics.push_back(
        {Severity::error, "", 0, "file",
         fmt::format("has {} bytes; at most {} are read", text.size(), maxBytes)});
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

std::optional<std::string> topology::readBytes(llvm::StringRef path, std::string &problem) {
  auto fail = [&](std::string message) {
    problem = std::move(message);
    return std::nullopt;
  };
  bool piped = path == "-";
  llvm::sys::fs::file_status status;
  if (std::error_code ec = piped ? std::error_code() : llvm::sys::fs::status(path, status))
    return fail(fmt::format("cannot be read: {}", ec.message()));
  if (llvm::sys::fs::is_directory(status))
    return fail("is a directory");
  if (!piped && status.getSize() > maxBytes)
    return fail(fmt::format("has {} bytes; at most {} are read", status.getSize(), maxBytes));
  // Devices and pipes tell no size, and some have no end.
  int file = 0;
  if (std::error_code ec = piped ? std::error_code() : llvm::sys::fs::openFileForRead(path, file))
    return fail(fmt::format("cannot be read: {}", ec.message()));
  std::string text;
  std::vector<char> block(1 << 16);
  llvm::Expected<size_t> got = size_t(0);
  do {
    got = llvm::sys::fs::readNativeFile(llvm::sys::fs::convertFDToNativeFile(file), block);
    if (got)
      text.append(block.data(), *got);
  } while (got && *got > 0 && text.size() <= maxBytes);
  if (!piped)
    llvm::sys::Process::SafelyCloseFileDescriptor(file);
  if (!got)
    return fail(fmt::format("cannot be read: {}", llvm::toString(got.takeError())));
  if (text.size() > maxBytes)
    return fail(fmt::format("does not end; at most {} bytes are read", maxBytes));
  return text;
}

ReadResult topology::readTopologyFile(llvm::StringRef path) {
  std::string problem;
  if (std::optional<std::string> text = readBytes(path, problem))
    return readTopology(*text, path == "-" ? "stdin" : llvm::sys::path::stem(path));
  ReadResult result;
  result.diagnostics.push_back({Severity::error, "", 0, "file", std::move(problem)});
  return result;
}
