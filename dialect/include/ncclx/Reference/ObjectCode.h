//===- ObjectCode.h - LLVM dialect to an object file --------------*- C++ -*-===//
#ifndef NCCLX_REFERENCE_OBJECTCODE_H
#define NCCLX_REFERENCE_OBJECTCODE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mlir::ncclx {

/// What machine code is made for.
struct NativeOptions {
  /// 0 to 3, as clang's -O.
  unsigned optLevel = 3;
  /// LLVM's name of a CPU of this machine's architecture, "x86-64-v3"; empty: this machine's own.
  std::string cpu;
};

/// Compiles `module`, which must hold the LLVM dialect only, to an object file that may be linked
/// anywhere. Floats are as strict as in a JitModule, and equal modules give equal bytes.
llvm::Expected<std::string> makeObject(ModuleOp module, const NativeOptions &options = {});

} // namespace mlir::ncclx
#endif // NCCLX_REFERENCE_OBJECTCODE_H
