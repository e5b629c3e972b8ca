//===- CppSource.h - The ahead-of-time carrier: a schedule as C++ ---------*- C++ -*-===//
#ifndef NCCLX_CPP_CPPSOURCE_H
#define NCCLX_CPP_CPPSOURCE_H

#include "ncclx/Host/HostPlan.h"

#include <string>

namespace mlir {
class DialectRegistry;
}

namespace mlir::ncclx {

/// A schedule as a C interface and the C++ that implements it; kernels are elsewhere.
struct CppSource {
  std::string header; ///< NAME.h
  std::string source; ///< NAME.cpp, which includes "NAME.h"
};

/// Adds what makeCppSource needs.
void registerCppDialects(DialectRegistry &registry);

/// `text` as a C identifier: what cannot stand in one becomes `_`, and so does a leading digit.
std::string toIdentifier(llvm::StringRef text);

/// Gives every function of `kernels` a name that a linker takes and no other schedule has, there,
/// in `host` and in `plan`: "f.k0.exp" becomes "NAME_f_k0_exp".
LogicalResult nameKernels(llvm::StringRef name, ModuleOp kernels, ModuleOp host, HostPlan &plan);

/// Prints the function that lowerToHost made in `host`, and the plan's tables, as the C interface
/// `name`_prepare, _input, _output, _run, _destroy (what each does is said in the header it
/// prints). The same plan gives the same text. `name` is a C identifier. Fails, with an error, for
/// what EmitC cannot print.
FailureOr<CppSource> makeCppSource(llvm::StringRef name, const HostPlan &plan, ModuleOp host);

} // namespace mlir::ncclx
#endif // NCCLX_CPP_CPPSOURCE_H
