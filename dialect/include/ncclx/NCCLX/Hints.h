//===- Hints.h - Attributes that change how something goes, not what ----*- C++ -*-===//
//
// Without them a graph means the same. NCCLXDialect::verifyOperationAttribute knows all their
// names: one that is misspelt is an error, and no hint that nobody reads.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_NCCLX_HINTS_H
#define NCCLX_NCCLX_HINTS_H

#include "mlir/IR/Operation.h"

#include <optional>

namespace mlir::ncclx {

/// Of a collective: in which pieces and lanes it goes, if trees carry it (SPEC.md, trees).
inline constexpr llvm::StringLiteral treesAttrName = "ncclx.trees";

/// Of a collective: how what carries it pipelines (SPEC.md, pipeline).
inline constexpr llvm::StringLiteral pipelineAttrName = "ncclx.pipeline";
struct Pipeline {
  /// That follow each other through the steps; nothing: what a model says.
  std::optional<int64_t> chunks = std::nullopt;
  /// Rounds under way together; 0: each waits for the whole of the one before.
  std::optional<int64_t> depth = std::nullopt;

  /// What a verified op asks for.
  static Pipeline of(Operation *op);
  NamedAttribute hint(MLIRContext *context) const;
};

/// Unit attribute of a product: factors of f32 may be rounded to tf32's 11 bits.
inline constexpr llvm::StringLiteral kAllowTf32AttrName = "ncclx.allow_tf32";
/// i64 attribute of a product: how many multiprocessors it is to take.
inline constexpr llvm::StringLiteral kSmsAttrName = "ncclx.sms";
/// Of a call of a kernel: in which dimension each input, then each result, may be cut (-1: it is
/// needed whole); and, of a grouped product, its groups, rows for each row of the first input,
/// columns and the size of what is summed over.
inline constexpr llvm::StringLiteral kCutAttrName = "ncclx.cut";
inline constexpr llvm::StringLiteral kProductAttrName = "ncclx.grouped_product";
/// A unit on a module, set by who compiles for GPUs: sizes known at run time lie in their memory,
/// where kernels read them. Without it what has such a size is put, into an output that has been
/// filled with zeros.
inline constexpr llvm::StringLiteral kDeviceSizesAttrName = "ncclx.device_sizes";
/// What a scheduled block's op carries, for ncclx-diagnose: its ops in the order of issue, each
/// with `name`, `kind` and `us` alone, and of a collective `hidden_us` and `beside`, the places in
/// the list of the kernels beside it. One that goes on from one iteration of a loop to the next is
/// two entries in the loop's list: that of the rest `resumes` the place of the start, and the
/// loop's value that is its future; the one before the loop is `handed_to` the number of the loop
/// in its block, and that value.
inline constexpr llvm::StringLiteral kContractAttrName = "ncclx.contract";

} // namespace mlir::ncclx
#endif // NCCLX_NCCLX_HINTS_H
