//===- Chunks.h - In how many chunks a collective goes ----------*- C++ -*-===//
#ifndef NCCLX_NCCLX_CHUNKS_H
#define NCCLX_NCCLX_CHUNKS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::ncclx {

/// Attribute of a collective: in so many chunks, or about, an algorithm that goes along tiers
/// carries it. A hint (chunks S1).
inline constexpr llvm::StringLiteral chunksAttrName = "ncclx.chunks";

} // namespace mlir::ncclx
#endif // NCCLX_NCCLX_CHUNKS_H
