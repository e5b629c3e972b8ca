//===- Passes.h - Communication beside computation ----------------------*- C++ -*-===//
#ifndef NCCLX_OVERLAP_PASSES_H
#define NCCLX_OVERLAP_PASSES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::ncclx {

#define GEN_PASS_DECL
#include "ncclx/Overlap/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "ncclx/Overlap/Passes.h.inc"

} // namespace mlir::ncclx
#endif // NCCLX_OVERLAP_PASSES_H
