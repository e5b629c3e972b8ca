//===- HideLLVMOptions.h - A --help that shows the tool's options -*- C++ -*-===//

#ifndef NCCLX_TOOLS_HIDELLVMOPTIONS_H
#define NCCLX_TOOLS_HIDELLVMOPTIONS_H

#include "llvm/Support/CommandLine.h"

namespace mlir::ncclx {

/// Hides what libLLVM registered before main: a thousand options of code generators. They still
/// work, and --help-hidden shows them. Call it first in main, before the tool registers its own.
inline void hideLLVMOptions() {
  for (auto &entry : llvm::cl::getRegisteredOptions())
    if (!entry.first.starts_with("help") && entry.first != "version")
      entry.second->setHiddenFlag(llvm::cl::Hidden);
}

} // namespace mlir::ncclx

#endif // NCCLX_TOOLS_HIDELLVMOPTIONS_H
