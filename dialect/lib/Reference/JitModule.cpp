//===- JitModule.cpp - LLVM dialect to code in this process ---------------===//
#include "ncclx/Reference/JitModule.h"

#include "NativeCode.h"

#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

#include <cstdlib>

using namespace mlir;
using namespace mlir::ncclx;
using llvm::Error;
using llvm::Expected;

namespace {

// Half conversions, for CPUs without F16C: LLVM calls libgcc's names, which a program that links
// libgcc statically does not export. The ABI passes a half in an SSE register.
float extendHalf(_Float16 x) { return x; }
_Float16 truncateToHalf(float x) { return static_cast<_Float16>(x); }
_Float16 truncateDoubleToHalf(double x) { return static_cast<_Float16>(x); }

void *alignedAllocate(uint64_t alignment, uint64_t bytes) {
  return std::aligned_alloc(alignment, bytes);
}

const JitSymbol builtins[] = {
    {"__extendhfsf2", reinterpret_cast<void *>(&extendHalf)},
    {"__truncsfhf2", reinterpret_cast<void *>(&truncateToHalf)},
    {"__truncdfhf2", reinterpret_cast<void *>(&truncateDoubleToHalf)},
    {"_mlir_memref_to_llvm_alloc", reinterpret_cast<void *>(&std::malloc)},
    {"_mlir_memref_to_llvm_aligned_alloc", reinterpret_cast<void *>(&alignedAllocate)},
    {"_mlir_memref_to_llvm_free", reinterpret_cast<void *>(&std::free)},
};

Error jitError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

} // namespace

JitModule::JitModule() = default;
JitModule::~JitModule() = default;

Expected<std::unique_ptr<JitModule>> JitModule::create(ModuleOp module, ArrayRef<JitSymbol> symbols,
                                                       const NativeOptions &options) {
  llvm::Expected<NativeCode> native = makeNativeCode(module, options);
  if (!native)
    return native.takeError();
  std::unique_ptr<llvm::LLVMContext> context = std::move(native->context);
  std::unique_ptr<llvm::Module> code = std::move(native->module);

  auto jit =
      llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(native->target)).create();
  if (!jit)
    return jit.takeError();
  llvm::orc::LLJIT &engine = **jit;
  // ORC would print to stderr, and hand back less than it printed.
  std::string complaints;
  engine.getExecutionSession().setErrorReporter([&complaints](Error error) {
    complaints += (complaints.empty() ? "" : "; ") + llvm::toString(std::move(error));
  });

  llvm::orc::SymbolMap table;
  auto add = [&](const JitSymbol &symbol) {
    table.try_emplace(engine.mangleAndIntern(symbol.name),
                      llvm::orc::ExecutorAddr::fromPtr(symbol.address),
                      llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable);
  };
  std::vector<std::string> defined;
  for (llvm::Function &function : *code)
    if (!function.isDeclaration() && function.hasExternalLinkage())
      defined.push_back(function.getName().str());
  llvm::for_each(symbols, add);
  llvm::for_each(builtins, add);
  for (const std::string &name : defined)
    if (table.contains(engine.mangleAndIntern(name)))
      return jitError("'" + name + "' is defined by the module and given as a symbol too");
  if (Error error = engine.getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(table))))
    return error;
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      engine.getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  engine.getMainJITDylib().addGenerator(std::move(*process));
  if (Error error =
          engine.addIRModule(llvm::orc::ThreadSafeModule(std::move(code), std::move(context))))
    return error;
  // Compile now: errors belong to create(), and no thread that runs code waits for the compiler.
  for (const std::string &name : defined)
    if (auto address = engine.lookup(name); !address) {
      std::string reason = llvm::toString(address.takeError());
      engine.getExecutionSession().setErrorReporter(llvm::consumeError);
      return jitError(complaints.empty() ? reason : complaints);
    }
  engine.getExecutionSession().setErrorReporter(
      [](Error error) { llvm::consumeError(std::move(error)); });

  std::unique_ptr<JitModule> result(new JitModule());
  result->jit = std::move(*jit);
  return result;
}

Expected<void *> JitModule::lookup(StringRef name) const {
  auto address = jit->lookup(name);
  if (!address)
    return jitError("no function '" + name + "': " + llvm::toString(address.takeError()));
  return address->toPtr<void *>();
}
