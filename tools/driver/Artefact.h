//===- Artefact.h - The files that a compiled schedule is --------------------*- C++ -*-===//
#ifndef NCCLX_TOOLS_DRIVER_ARTEFACT_H
#define NCCLX_TOOLS_DRIVER_ARTEFACT_H

#include "Driver.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mlir::ncclx {

/// NAME.h, NAME.cpp and so on in one folder, written together. Equal texts give equal bytes.
class Artefact {
public:
  Artefact(StringRef directory, StringRef name) : directory(directory), name(name) {}

  std::string pathOf(StringRef suffix) const;
  void add(StringRef suffix, std::string text) { files.push_back({suffix.str(), text}); }
  /// The text of NAME.json, what a build or a caller may want to know
  /// (tools/ncclx-compile/README.md has the schema): of files that end with `suffixes`; `more` adds
  /// what one backend has.
  std::string manifest(const Compilation &compilation, ArrayRef<StringRef> suffixes,
                       uint64_t scratchBytes,
                       llvm::function_ref<void(llvm::json::OStream &)> more) const;
  /// Makes the folder if it is not there.
  llvm::Error write() const;

private:
  struct File {
    std::string suffix, text;
  };
  std::string directory, name;
  std::vector<File> files;
};

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_DRIVER_ARTEFACT_H
