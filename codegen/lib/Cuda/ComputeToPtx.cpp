//===- ComputeToPtx.cpp - Computation on memrefs as GPU kernels -----------------------===//
#include "ncclx/Cuda/ComputeToPtx.h"

#include "SpreadLoops.h"
#include "ncclx/Reference/HostCompute.h"

#include "ncclx/Analysis/Products.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <mutex>

using namespace mlir;
using namespace mlir::ncclx;

// llvm/Support/TargetSelect.h would name every target of Debian's LLVM.
extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

static std::unique_ptr<llvm::TargetMachine> machineOf(int architecture) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string why;
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, why);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // as on the host
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, "sm_" + std::to_string(architecture), "", options, llvm::Reloc::PIC_));
}

/// An entry for `work`, which takes addresses, then those of its scratch memory, the thread's
/// number and the number of threads; the entry takes one address for all scratch, if there is any.
static void addEntry(llvm::Module &module, llvm::Function &work, const std::string &name,
                     ArrayRef<int64_t> scratch) {
  llvm::LLVMContext &context = module.getContext();
  unsigned addresses = work.arg_size() - 2 - scratch.size();
  SmallVector<llvm::Type *> types(work.getFunctionType()->params().take_front(addresses));
  if (!scratch.empty())
    types.push_back(llvm::PointerType::get(context, 0));
  auto *entry =
      llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false),
                             llvm::GlobalValue::ExternalLinkage, name, module);
  entry->setCallingConv(llvm::CallingConv::PTX_Kernel);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "", entry));
  auto read = [&](llvm::Intrinsic::ID id) {
    return b.CreateZExt(b.CreateIntrinsic(id, ArrayRef<llvm::Type *>(), {}), b.getInt64Ty());
  };
  llvm::Value *width = read(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  llvm::Value *thread =
      b.CreateAdd(b.CreateMul(read(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x), width),
                  read(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x));
  llvm::Value *threads = b.CreateMul(read(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x), width);
  SmallVector<llvm::Value *> arguments;
  for (unsigned i = 0; i < addresses; ++i)
    arguments.push_back(entry->getArg(i));
  for (int64_t offset : scratch)
    arguments.push_back(b.CreateGEP(b.getInt8Ty(), entry->getArg(addresses), b.getInt64(offset)));
  arguments.append({thread, threads});
  b.CreateCall(&work, arguments);
  b.CreateRetVoid();
}

/// Gives the function that stands for a barrier of the block its meaning.
static void defineBarrier(llvm::Module &module) {
  llvm::Function *barrier = module.getFunction(kBlockBarrier);
  if (!barrier)
    return;
  barrier->addFnAttr(llvm::Attribute::Convergent);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "", barrier));
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, ArrayRef<llvm::Type *>(),
                    {b.getInt32(0)});
  b.CreateRetVoid();
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

/// Whether `function` is left to cuBLASLt.
static bool takeGemm(func::FuncOp function, ComputeKernel &kernel) {
  bool multiplies = false;
  function.walk([&](linalg::LinalgOp op) { multiplies |= isProduct(op); });
  if (!multiplies)
    return false;
  kernel.gemm = findGemm(function, kernel.refused);
  auto as = [](StringRef name) { return remark::RemarkOpts::name(name).category("ncclx-gemm"); };
  if (!kernel.gemm) {
    remark::missed(function.getLoc(), as("Generated"))
        << remark::add("a product is a generated kernel: {0}", kernel.refused);
    return false;
  }
  kernel.scratchBytes = kGemmWorkspace;
  remark::passed(function.getLoc(), as("CublasLt"))
      << remark::add("a product of {0} x {1} x {2}, {3} times, is left to cuBLASLt", kernel.gemm->m,
                     kernel.gemm->n, kernel.gemm->k, kernel.gemm->batch);
  return true;
}

LogicalResult mlir::ncclx::computeToPtx(ModuleOp module, ArrayRef<std::string> names,
                                        int architecture, bool cublasLt, std::string &ptx,
                                        std::vector<ComputeKernel> &kernels) {
  SmallVector<SpreadKernel> shapes;
  for (auto [i, name] : llvm::enumerate(names)) {
    auto function = module.lookupSymbol<func::FuncOp>(name);
    if (!function || function.isExternal())
      return module.emitError("has no kernel '") << name << "' with a body";
    ComputeKernel kernel;
    // A name of the graph may hold what PTX takes in no name.
    kernel.name = "ncclx_kernel_" + std::to_string(i);
    kernel.arguments = function.getNumArguments();
    SpreadKernel &spread = shapes.emplace_back();
    if (cublasLt && takeGemm(function, kernel)) {
      if (SymbolTable::symbolKnownUseEmpty(function, module))
        function.erase();
      kernels.push_back(kernel);
      continue;
    }
    if (failed(spreadLoops(function, spread)))
      return failure();
    kernel.blocks = spread.blocks, kernel.threads = spread.threads;
    kernel.scratchBytes = spread.scratchBytes;
    kernels.push_back(kernel);
  }
  ptx.clear();
  if (llvm::all_of(kernels, [](const ComputeKernel &kernel) { return kernel.gemm.has_value(); }))
    return success();
  if (failed(lowerComputeToLLVM(module)))
    return failure();
  std::unique_ptr<llvm::TargetMachine> machine = machineOf(architecture);
  if (!machine)
    return module.emitError("cannot become PTX: this LLVM has no NVPTX backend");
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context);
  if (!code)
    return module.emitError("could not be translated to LLVM IR");
  code->setTargetTriple(machine->getTargetTriple());
  code->setDataLayout(machine->createDataLayout());
  for (auto [name, kernel, shape] : llvm::zip(names, kernels, shapes))
    if (!kernel.gemm)
      addEntry(*code, *code->getFunction(name), kernel.name, shape.scratchOffsets);
  defineBarrier(*code);
  for (llvm::Function &function : *code)
    if (!function.isDeclaration() && function.getCallingConv() != llvm::CallingConv::PTX_Kernel) {
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
      function.addFnAttr(llvm::Attribute::AlwaysInline);
    }
  optimize(*code, *machine);
  for (llvm::Function &function : *code)
    if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty())
      return module.emitError("calls '") << function.getName() << "', which no GPU has";
  SmallVector<char, 0> text;
  llvm::raw_svector_ostream os(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return module.emitError("cannot become PTX: this LLVM writes none");
  passes.run(*code);
  ptx.assign(text.data(), text.size());
  return success();
}
