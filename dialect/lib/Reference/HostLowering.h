//===- HostLowering.h - The steps of lowerComputeToLLVM ------------*- C++ -*-===//
#ifndef NCCLX_LIB_REFERENCE_HOSTLOWERING_H
#define NCCLX_LIB_REFERENCE_HOSTLOWERING_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::ncclx {

/// linalg on memrefs and memref.copy become scf loops, in one order (see LinalgLoops.cpp).
LogicalResult lowerLinalgToLoops(ModuleOp module);

/// Drops fastmath and overflow flags, gives bf16 and f16 ops their f32 form, and expands the math
/// functions that have no exact instruction.
LogicalResult legalizeFloats(ModuleOp module);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_REFERENCE_HOSTLOWERING_H
