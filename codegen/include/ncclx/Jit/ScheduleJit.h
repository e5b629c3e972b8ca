//===- ScheduleJit.h - The in-process carrier ----------------------*- C++ -*-===//
#ifndef NCCLX_JIT_SCHEDULEJIT_H
#define NCCLX_JIT_SCHEDULEJIT_H

#include "ncclx/Reference/JitModule.h"

namespace mlir::ncclx {

/// Compiles a schedule for this process: functions over i64 and i32 (scf, arith, calls of the
/// runtime) and the compute they call (linalg and the rest, on static memrefs), in one module.
///
/// `runtime` is the whole of what the module may call from outside: a declaration that is not in it
/// is an error that names it, whatever the process may hold under that name. `module` is not
/// changed. What cannot be lowered is a diagnostic at its op, and an error here.
llvm::Expected<std::unique_ptr<JitModule>>
compileSchedule(ModuleOp module, ArrayRef<JitSymbol> runtime, const NativeOptions &options = {});

} // namespace mlir::ncclx
#endif // NCCLX_JIT_SCHEDULEJIT_H
