//===- Passes.h - Communication beside computation ----------------------*- C++ -*-===//
#ifndef NCCLX_OVERLAP_PASSES_H
#define NCCLX_OVERLAP_PASSES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::ncclx {

/// What a scheduled block's op carries, for ncclx-diagnose: its ops in the order of issue, each
/// with `name`, `kind` and `us` alone, and of a collective `hidden_us` and `beside`, the places in
/// the list of the kernels beside it. One that goes on from one iteration of a loop to the next is
/// two entries in the loop's list: that of the rest `resumes` the place of the start, and the
/// loop's value that is its future; the one before the loop is `handed_to` the number of the loop
/// in its block, and that value.
inline constexpr llvm::StringLiteral kContractAttrName = "ncclx.contract";

#define GEN_PASS_DECL
#include "ncclx/Overlap/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "ncclx/Overlap/Passes.h.inc"

} // namespace mlir::ncclx
#endif // NCCLX_OVERLAP_PASSES_H
