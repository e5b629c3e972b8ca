//===- NativeCode.cpp - LLVM dialect to code for one CPU ------------------===//
#include "NativeCode.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;
using namespace mlir::ncclx;

static llvm::Error codeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine, unsigned level) {
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

static llvm::Expected<llvm::orc::JITTargetMachineBuilder> targetOf(const NativeOptions &options) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  auto target = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!target)
    return target.takeError();
  // Strict: even llvm.fmuladd, which may be fused or not, is not fused.
  target->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  target->setCodeGenOptLevel(static_cast<llvm::CodeGenOptLevel>(std::min(options.optLevel, 3u)));
  if (options.cpu.empty())
    return target;
  // A name that LLVM does not know would be a warning, and code for another CPU.
  auto machine = target->createTargetMachine();
  if (!machine)
    return machine.takeError();
  if (!(*machine)->getMCSubtargetInfo()->isCPUStringValid(options.cpu))
    return codeError("'" + options.cpu + "' is not a CPU of " + target->getTargetTriple().str());
  target->setCPU(options.cpu);
  target->getFeatures() = llvm::SubtargetFeatures();
  return target;
}

llvm::Expected<NativeCode> mlir::ncclx::makeNativeCode(ModuleOp module,
                                                       const NativeOptions &options) {
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
    return codeError("machine code is made of the llvm dialect only, found '" +
                     foreign->getName().getStringRef() + "'");

  auto target = targetOf(options);
  if (!target)
    return target.takeError();
  auto context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, *context);
  if (!code)
    return codeError("translation to LLVM IR failed");
  auto machine = target->createTargetMachine();
  if (!machine)
    return machine.takeError();
  code->setTargetTriple((*machine)->getTargetTriple());
  code->setDataLayout((*machine)->createDataLayout());
  optimize(*code, **machine, options.optLevel);
  return NativeCode{std::move(context), std::move(code), std::move(*target)};
}

llvm::Expected<std::string> mlir::ncclx::makeObject(ModuleOp module, const NativeOptions &options) {
  llvm::Expected<NativeCode> native = makeNativeCode(module, options);
  if (!native)
    return native.takeError();
  native->target.setRelocationModel(llvm::Reloc::PIC_);
  auto machine = native->target.createTargetMachine();
  if (!machine)
    return machine.takeError();
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::ObjectFile))
    return codeError("no object files can be written for " +
                     native->target.getTargetTriple().str());
  passes.run(*native->module);
  return std::string(bytes.data(), bytes.size());
}
