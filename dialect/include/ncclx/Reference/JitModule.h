//===- JitModule.h - LLVM dialect to code in this process ----------*- C++ -*-===//
#ifndef NCCLX_REFERENCE_JITMODULE_H
#define NCCLX_REFERENCE_JITMODULE_H

#include "ncclx/Reference/ObjectCode.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm::orc {
class LLJIT;
}

namespace mlir::ncclx {

/// A function that compiled code may call, by the name of its declaration.
struct JitSymbol {
  std::string name;
  void *address = nullptr;
};

/// Machine code of one module. Movable between threads; lookup() and the code itself may be used by
/// any number of threads at once. The code lives as long as the object.
class JitModule {
public:
  /// Compiles `module`, which must hold the LLVM dialect only, for this machine's CPU. `symbols`
  /// come before the process's own; every declaration that neither knows is named in the error.
  /// All code is compiled before this returns.
  static llvm::Expected<std::unique_ptr<JitModule>>
  create(ModuleOp module, ArrayRef<JitSymbol> symbols = {}, const NativeOptions &options = {});

  /// The address of a function the module defines.
  llvm::Expected<void *> lookup(StringRef name) const;

  /// The same with its type: `(*jit->lookupAs<void(void *, void *)>("f"))(a, b)`.
  template <typename Function> llvm::Expected<Function *> lookupAs(StringRef name) const {
    llvm::Expected<void *> address = lookup(name);
    if (!address)
      return address.takeError();
    return reinterpret_cast<Function *>(*address);
  }

  ~JitModule();

private:
  JitModule();
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace mlir::ncclx
#endif // NCCLX_REFERENCE_JITMODULE_H
