//===- Passes.h - From graphs to schedules -------------------------------*- C++ -*-===//
#ifndef NCCLX_CONVERSION_PASSES_H
#define NCCLX_CONVERSION_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "ncclx/CTran/CTran.h"
#include "ncclx/NCCLX/NCCLX.h"

#include <optional>
#include <string>

namespace mlir::func {
class FuncDialect;
}
namespace mlir::linalg {
class LinalgDialect;
}
namespace mlir::memref {
class MemRefDialect;
}

namespace mlir::ncclx {

/// Why `algorithm` cannot carry `op`, whose groups have so many axes in its program (ProgramGrid; 0
/// where no axes span them), or nothing if it can.
std::optional<std::string> whyNot(CollectiveOpInterface op, Algorithm algorithm, size_t axes);

/// The program that a collective names by `ncclx.schedule`, or null.
ctran::ProgramOp getSchedule(CollectiveOpInterface op);

/// The order in which `algorithm` reduces.
ReductionOrder orderOf(Algorithm algorithm);

#define GEN_PASS_DECL
#include "ncclx/Conversion/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "ncclx/Conversion/Passes.h.inc"
} // namespace mlir::ncclx
#endif // NCCLX_CONVERSION_PASSES_H
