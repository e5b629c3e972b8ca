//===- Rounds.h - A hint to algorithms that go in rounds ------------*- C++ -*-===//
#ifndef NCCLX_NCCLX_ROUNDS_H
#define NCCLX_NCCLX_ROUNDS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::ncclx {

/// Attribute of a collective: how its rounds stream, if rounds carry it (SPEC.md, rounds).
constexpr llvm::StringLiteral roundsAttrName = "ncclx.rounds";

} // namespace mlir::ncclx
#endif // NCCLX_NCCLX_ROUNDS_H
