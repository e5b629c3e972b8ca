//===- ScheduleJit.cpp - The in-process carrier ---------------------------===//
#include "ncclx/Jit/ScheduleJit.h"

#include "ncclx/Reference/HostCompute.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::ncclx;

llvm::Expected<std::unique_ptr<JitModule>>
mlir::ncclx::compileSchedule(ModuleOp module, ArrayRef<JitSymbol> runtime,
                             const NativeOptions &options) {
  std::string unknown;
  for (auto function : module.getOps<FunctionOpInterface>()) {
    bool known = llvm::any_of(
        runtime, [&](const JitSymbol &symbol) { return symbol.name == function.getName(); });
    if (function.isExternal() && !known)
      unknown += (unknown.empty() ? "'" : ", '") + function.getName().str() + "'";
  }
  auto error = [](const llvm::Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
  };
  if (!unknown.empty())
    return error("the schedule calls what the runtime does not have: " + unknown);
  OwningOpRef<ModuleOp> lowered = module.clone();
  if (failed(lowerComputeToLLVM(*lowered)))
    return error("the schedule could not be lowered to LLVM");
  return JitModule::create(*lowered, runtime, options);
}
