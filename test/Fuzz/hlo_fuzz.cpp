//===- hlo_fuzz.cpp - Any text gives a graph that verifies, or one error with its place ------===//
#include "ncclx/Import/Hlo.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

#include <cstdio>
#include <cstdlib>

using namespace mlir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static MLIRContext context;
  int errors = 0, withoutPlace = 0;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return;
    ++errors;
    withoutPlace += !isa<FileLineColLoc>(diagnostic.getLocation());
  });
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  OwningOpRef<ModuleOp> module = ncclx::importHlo(text, "fuzz", &context);
  bool good = module ? errors == 0 && succeeded(verify(*module)) : errors == 1 && withoutPlace == 0;
  if (!good) {
    std::fprintf(stderr, "%s, with %d errors, %d of them without a place\n",
                 module ? "a module" : "no module", errors, withoutPlace);
    std::abort();
  }
  return 0;
}
