//===- Hints.h - Attributes that change how a collective goes, not what -*- C++ -*-===//
#ifndef NCCLX_NCCLX_HINTS_H
#define NCCLX_NCCLX_HINTS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::ncclx {

/// Of a collective: in so many chunks, or about, an algorithm that goes along tiers carries it
/// (SPEC.md, chunks).
inline constexpr llvm::StringLiteral chunksAttrName = "ncclx.chunks";
/// Of a collective: how its rounds stream, if rounds carry it (SPEC.md, rounds).
inline constexpr llvm::StringLiteral roundsAttrName = "ncclx.rounds";
/// Of a collective: in which pieces and lanes it goes, if trees carry it (SPEC.md, trees).
inline constexpr llvm::StringLiteral treesAttrName = "ncclx.trees";

} // namespace mlir::ncclx
#endif // NCCLX_NCCLX_HINTS_H
