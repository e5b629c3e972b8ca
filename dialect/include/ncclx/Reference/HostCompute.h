//===- HostCompute.h - Compute on the host: one lowering, one meaning -*- C++ -*-===//
//
// linalg, arith, math, memref, scf and func on memrefs become LLVM's dialect here, for the
// reference interpreter and for compiled schedules alike, so that both give the same bits.
//
// What a float op means:
//  * strict IEEE 754, round to nearest even; fastmath and overflow flags are dropped, nothing is
//    contracted, f32 and f64 have denormals;
//  * bf16 and f16 ops are done in f32 and rounded after every op, bf16 by integer code;
//  * sqrt, abs, floor, ceil, trunc, round, roundeven, copysign and fma are exact; rsqrt is 1/sqrt;
//    exp, log, tanh, sin and their like are MLIR's polynomials over f32 (add, multiply, fma), the
//    same bits on every machine; on f64 they are refused, as libm's differ between machines;
//  * an op's reductions run in the order of its iterators, from 0 up.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_REFERENCE_HOSTCOMPUTE_H
#define NCCLX_REFERENCE_HOSTCOMPUTE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

namespace mlir {
class DialectRegistry;
}

namespace mlir::ncclx {

/// Adds the dialects that lowerComputeToLLVM reads and writes, and their translations to LLVM IR.
void registerHostComputeDialects(DialectRegistry &registry);

/// Lowers every function of `module` to the LLVM dialect, in place. A function over static memrefs
/// takes plain addresses of the first element, in argument order: `void f(void *, void *, ...)`;
/// integers and floats go by value; a function without a body is an external symbol of that
/// signature. Buffers that the code allocates come from `_mlir_memref_to_llvm_aligned_alloc(align,
/// bytes)` and `_mlir_memref_to_llvm_alloc(bytes)` and go to `_mlir_memref_to_llvm_free(address)`.
/// On failure a diagnostic names the op, and the module is half lowered: lower a clone.
LogicalResult lowerComputeToLLVM(ModuleOp module);

} // namespace mlir::ncclx
#endif // NCCLX_REFERENCE_HOSTCOMPUTE_H
