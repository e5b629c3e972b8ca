//===- Kernels.h - Computation becomes functions with declared costs ------*- C++ -*-===//
#ifndef NCCLX_LIB_CONVERSION_KERNELS_H
#define NCCLX_LIB_CONVERSION_KERNELS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::ncclx {

/// The buffer behind a memref value: an allocation, a function argument or a global.
Value rootOf(Value memref);

/// Operations of a function's block that become one kernel.
struct Kernel {
  SmallVector<Operation *> ops;
  SmallVector<Value> args;            ///< roots, the kernel's arguments in order
  llvm::SetVector<Value> reads;       ///< memrefs read: roots, or the views through which they are
  llvm::SetVector<Value> writes;      ///< roots written
  llvm::SmallPtrSet<Value, 4> filled; ///< roots that it has written all of before it reads them
  double flops = 0, bytes = 0;        ///< of one execution
  int64_t sms = 0;                    ///< that it is to take; 0: not said
  std::string what;                   ///< the main op's name without its dialect
};

/// Does this op neither touch memory nor order: is it copied into the kernels that use it?
bool isScaffold(Operation *op);

/// The kernel that starts at `first`, with the ops behind it that use its scalar results.
/// Fails where these would reach across an op for which `isBarrier` holds.
FailureOr<Kernel> collectKernel(Operation *first, llvm::function_ref<bool(Operation *)> isBarrier);

/// Makes the function `name` that executes `kernel` on its arguments.
func::FuncOp outlineKernel(OpBuilder &builder, const Kernel &kernel, StringRef name);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_CONVERSION_KERNELS_H
