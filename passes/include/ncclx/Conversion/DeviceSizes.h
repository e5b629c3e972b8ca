//===- DeviceSizes.h - Where sizes known at run time lie --------------------*- C++ -*-===//
#ifndef NCCLX_CONVERSION_DEVICESIZES_H
#define NCCLX_CONVERSION_DEVICESIZES_H

#include "llvm/ADT/StringRef.h"

namespace mlir::ctran {

/// A unit on a module, set by who compiles for GPUs: sizes known at run time lie in their memory,
/// where kernels read them. A hint: without it what has such a size is put, into an output that has
/// been filled with zeros.
inline constexpr llvm::StringLiteral deviceSizesAttrName = "ncclx.device_sizes";

} // namespace mlir::ctran
#endif // NCCLX_CONVERSION_DEVICESIZES_H
