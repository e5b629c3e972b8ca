//===- InterpreterLowering.h - ncclx to memrefs and calls ----------*- C++ -*-===//
#ifndef NCCLX_LIB_REFERENCE_INTERPRETERLOWERING_H
#define NCCLX_LIB_REFERENCE_INTERPRETERLOWERING_H

#include "Rendezvous.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::ncclx::reference {

/// The names of what lowered code calls: collective(i64 site, i64 in, i64 out) and
/// checkChunk(i64 place, i64 index, i64 count).
inline constexpr llvm::StringLiteral collectiveFunction = "ncclx_reference_collective";
inline constexpr llvm::StringLiteral chunkFunction = "ncclx_reference_check_chunk";
/// The function that run() calls: void(void **buffers).
inline constexpr llvm::StringLiteral entryFunction = "ncclx_reference_entry";

struct LoweredProgram {
  std::vector<Site> sites;
  /// What is said of an index {0} that is not below {1}, by place.
  std::vector<std::string> chunks;
  std::vector<Type> types; ///< arguments, then results, as the function was written
  size_t numInputs = 0;
};

/// Lowers the ops on windows, whose types are memrefs already. `check` stops the run where the
/// index is not in [0, count); `meet` has the members meet at a put of one buffer into another.
void lowerWindows(
    ModuleOp module,
    llvm::function_ref<void(ImplicitLocOpBuilder &, Operation *, Value index, int64_t count)> check,
    llvm::function_ref<void(ImplicitLocOpBuilder &, Operation *, Value from, Value to)> meet);

/// Lowers `function` of `module`, and all it calls, to the LLVM dialect, in place; everything else
/// leaves the module.
FailureOr<LoweredProgram> lowerForInterpreter(ModuleOp module, StringRef function, int64_t ranks);

} // namespace mlir::ncclx::reference
#endif // NCCLX_LIB_REFERENCE_INTERPRETERLOWERING_H
