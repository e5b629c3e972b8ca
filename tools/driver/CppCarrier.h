//===- CppCarrier.h - A compilation as files, and back into this process ---*- C++ -*-===//
#ifndef NCCLX_TOOLS_DRIVER_CPPCARRIER_H
#define NCCLX_TOOLS_DRIVER_CPPCARRIER_H

#include "Driver.h"

namespace mlir::ncclx {

/// How files are made.
struct CppOptions {
  std::string directory; ///< made if it is not there
  std::string name;      ///< a C identifier: prefix of files and symbols
  std::string cpu;       ///< of the kernels' object; empty: this machine's
};

/// Lowers a proved compilation for the host and writes NAME.h, NAME.cpp, NAME.o (its kernels) and
/// NAME.json (the manifest). Equal inputs give equal bytes.
LogicalResult writeCpp(Compilation &compilation, const CppOptions &options);

/// Files that were written as C++ and an object, compiled by `compiler` and loaded into this
/// process.
class LoadedCpp {
public:
  static llvm::Expected<std::unique_ptr<LoadedCpp>> create(const CppOptions &options,
                                                           llvm::StringRef compiler);
  ~LoadedCpp();
  /// The function NAME_what; null if there is none.
  void *find(llvm::StringRef what) const;
  ncclxrtProgram_t program() const { return reinterpret_cast<ncclxrtProgram_t>(find("program")); }

private:
  std::string name;
  void *library = nullptr;
};

} // namespace mlir::ncclx
#endif // NCCLX_TOOLS_DRIVER_CPPCARRIER_H
