//===- CTran.h - The ctran dialect ------------------------------------*- C++ -*-===//
#ifndef NCCLX_CTRAN_CTRAN_H
#define NCCLX_CTRAN_CTRAN_H

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ncclx/CTran/CTranEnums.h.inc"

namespace mlir::ctran {

/// The order of a rank's lanes and signals: what keeps generic passes from moving a schedule's ops.
struct Order : SideEffects::Resource::Base<Order> {
  StringRef getName() override { return "ctran.Order"; }
};

/// A box (a value of type !ctran.range) and how it is used.
struct BoxAccess {
  Value range;
  bool write;
};

/// The version of the dialect in a bytecode file.
struct CTranVersion : DialectVersion {
  static constexpr uint64_t current = 1;
  explicit CTranVersion(uint64_t number) : number(number) {}
  uint64_t number;
};

} // namespace mlir::ctran

#include "ncclx/CTran/CTranDialect.h.inc"
#include "ncclx/CTran/CTranInterfaces.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ncclx/CTran/CTranTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ncclx/CTran/CTranAttrs.h.inc"

#define GET_OP_CLASSES
#include "ncclx/CTran/CTranOps.h.inc"

#endif // NCCLX_CTRAN_CTRAN_H
