//===- Passes.h - From schedules to host code ---------------------------*- C++ -*-===//
#ifndef NCCLX_HOST_PASSES_H
#define NCCLX_HOST_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::arith {
class ArithDialect;
}
namespace mlir::func {
class FuncDialect;
}
namespace mlir::scf {
class SCFDialect;
}

namespace mlir::ncclx {
#define GEN_PASS_DECL
#include "ncclx/Host/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "ncclx/Host/Passes.h.inc"
} // namespace mlir::ncclx
#endif // NCCLX_HOST_PASSES_H
