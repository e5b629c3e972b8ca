//===- JitModule.cpp - LLVM dialect to code in this process ---------------===//
#include "ncclx/Reference/JitModule.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <cstdlib>
#include <mutex>

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

void optimize(llvm::Module &module, llvm::TargetMachine &machine, unsigned level) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = level > 1;
  tuning.SLPVectorization = level > 1;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  const llvm::OptimizationLevel levels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1, llvm::OptimizationLevel::O2,
      llvm::OptimizationLevel::O3};
  llvm::ModulePassManager passes =
      level == 0 ? builder.buildO0DefaultPipeline(llvm::OptimizationLevel::O0)
                 : builder.buildPerModuleDefaultPipeline(levels[std::min(level, 3u)]);
  passes.run(module, modules);
}

} // namespace

JitModule::JitModule() = default;
JitModule::~JitModule() = default;

Expected<std::unique_ptr<JitModule>> JitModule::create(ModuleOp module, ArrayRef<JitSymbol> symbols,
                                                       const JitOptions &options) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });

  // Not translation's to find: it would stop at the first op it does not know, without its name.
  Operation *foreign = nullptr;
  module->walk([&](Operation *op) {
    if (op != module && !isa_and_nonnull<LLVM::LLVMDialect>(op->getDialect())) {
      foreign = op;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (foreign)
    return jitError("the JIT compiles the llvm dialect only, found '" +
                    foreign->getName().getStringRef() + "'");

  auto context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, *context);
  if (!code)
    return jitError("translation to LLVM IR failed");

  auto target = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!target)
    return target.takeError();
  // Strict: even llvm.fmuladd, which may be fused or not, is not fused.
  target->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  target->setCodeGenOptLevel(static_cast<llvm::CodeGenOptLevel>(std::min(options.optLevel, 3u)));
  auto machine = target->createTargetMachine();
  if (!machine)
    return machine.takeError();
  code->setTargetTriple((*machine)->getTargetTriple());
  code->setDataLayout((*machine)->createDataLayout());
  optimize(*code, **machine, options.optLevel);

  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(*target)).create();
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
