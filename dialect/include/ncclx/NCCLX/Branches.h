//===- Branches.h - A graph as one straight function for each way through it -*- C++ -*-===//
#ifndef NCCLX_NCCLX_BRANCHES_H
#define NCCLX_NCCLX_BRANCHES_H

#include "mlir/IR/BuiltinAttributes.h"

namespace mlir::ncclx {

/// Attribute of a function, and after bufferization of a kernel, that chooses: the names of the
/// functions, or programs, of which its result is a number (SPEC.md, branches).
constexpr llvm::StringLiteral branchesAttrName = "ncclx.branches";

/// The name of the function that chooses for `function`.
inline std::string getChooserName(StringRef function) { return (function + ".choose").str(); }

} // namespace mlir::ncclx
#endif // NCCLX_NCCLX_BRANCHES_H
