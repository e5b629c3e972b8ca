//===- Artefact.cpp - The files that a compiled schedule is -----------------------------===//
#include "Artefact.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::ncclx;

std::string Artefact::pathOf(StringRef suffix) const {
  SmallString<128> path(directory);
  llvm::sys::path::append(path, name + suffix);
  return path.str().str();
}

static std::string printed(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string Artefact::manifest(const Compilation &compilation, ArrayRef<StringRef> suffixes,
                               uint64_t scratchBytes,
                               llvm::function_ref<void(llvm::json::OStream &)> more) const {
  const HostPlan &plan = compilation.plan();
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  auto windows = [&](StringRef key, ArrayRef<size_t> positions) {
    json.attributeArray(key, [&] {
      for (size_t w : positions)
        json.object([&] {
          const HostPlan::Window &window = plan.windows[w];
          json.attribute("type", printed(window.type));
          json.attribute("bytes", int64_t(window.bytes));
          if (window.role == ctran::WindowRole::InOut)
            json.attribute("in_place", true);
        });
    });
  };
  json.object([&] {
    json.attribute("schema", "ncclx-compile/1");
    json.attribute("name", name);
    json.attribute("function", plan.name);
    json.attribute("hash", "0x" + llvm::utohexstr(plan.hash, /*LowerCase=*/true, /*Width=*/16));
    json.attribute("ranks", plan.ranks);
    json.attribute("abi_version", NCCLXRT_ABI_VERSION);
    json.attributeArray("files", [&] {
      for (StringRef suffix : suffixes)
        json.value(name + suffix.str());
    });
    if (!plan.sizes.empty())
      json.attributeObject("sizes", [&] {
        for (const HostPlan::Size &size : plan.sizes)
          json.attribute(size.name, size.value);
      });
    windows("inputs", plan.inputs());
    windows("outputs", plan.outputs());
    json.attribute("scratch_bytes", int64_t(scratchBytes));
    more(json);
    json.attributeArray("collectives", [&] {
      for (const GraphCollective &c : compilation.collectives())
        json.object([&] {
          json.attribute("name", c.name);
          json.attribute("kind", c.kind);
          json.attribute("algorithm", c.algorithm);
          json.attribute("bytes", c.bytes);
          json.attribute("group_size", int64_t(c.group.size()));
          json.attribute("predicted_us", c.aloneSeconds * 1e6);
        });
    });
    json.attribute("proof", compilation.proof().str());
  });
  os << "\n";
  return text;
}

llvm::Error Artefact::write() const {
  if (std::error_code code = llvm::sys::fs::create_directories(directory))
    return llvm::createStringError(code,
                                   "cannot make the folder " + directory + ": " + code.message());
  for (const File &file : files) {
    std::string path = pathOf(file.suffix);
    std::error_code code;
    llvm::raw_fd_ostream os(path, code);
    if (!code) {
      os << file.text;
      os.close();
      code = os.error();
      os.clear_error();
    }
    if (code)
      return llvm::createStringError(code, "cannot write " + path + ": " + code.message());
  }
  return llvm::Error::success();
}
