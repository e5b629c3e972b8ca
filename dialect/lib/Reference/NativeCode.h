//===- NativeCode.h - What a JIT and an object file share -----------*- C++ -*-===//
//
// Strict floats and the same optimizations, so that both give the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef NCCLX_LIB_REFERENCE_NATIVECODE_H
#define NCCLX_LIB_REFERENCE_NATIVECODE_H

#include "ncclx/Reference/ObjectCode.h"

#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <memory>

namespace mlir::ncclx {

/// Optimized LLVM IR, and the machine that it is for.
struct NativeCode {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  llvm::orc::JITTargetMachineBuilder target;
};

/// Translates `module`, which must hold the LLVM dialect only, and optimizes it.
llvm::Expected<NativeCode> makeNativeCode(ModuleOp module, const NativeOptions &options);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_REFERENCE_NATIVECODE_H
