//===- ncclx-translate.cpp - Graphs to and from other formats -------------===//
//
// Each import or export is a translation that is registered before mlirTranslateMain
// and so gets an option of its own.
//
//===----------------------------------------------------------------------===//

#include "../HideLLVMOptions.h"
#include "ncclx/CTran/CTran.h"
#include "ncclx/Cuda/CudaEmitter.h"
#include "ncclx/Import/Hlo.h"
#include "ncclx/Import/Msccl.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Support/ReadFile.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/ToolUtilities.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

static void registerGraphDialects(DialectRegistry &registry) {
  registry
      .insert<ncclx::NCCLXDialect, arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
              math::MathDialect, memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect>();
}

static void registerScheduleDialects(DialectRegistry &registry) {
  registerGraphDialects(registry); // kernels, and the grid
  registry.insert<ctran::CTranDialect>();
}

/// The one program of a file that is to be written as `what`.
static FailureOr<ctran::ProgramOp> onlyProgram(Operation *op, llvm::StringRef what) {
  SmallVector<ctran::ProgramOp> programs;
  op->walk([&](ctran::ProgramOp program) { programs.push_back(program); });
  if (programs.size() == 1)
    return programs.front();
  return op->emitError("a file holds one program to be written as ")
         << what << ", found " << programs.size();
}

using Importer = std::function<OwningOpRef<Operation *>(llvm::SourceMgr &, MLIRContext *)>;

/// As TranslateToMLIRRegistration, which verifies twice what it prints.
static void registerImport(llvm::StringRef name, llvm::StringRef description,
                           const Importer &import, void (*addDialects)(DialectRegistry &)) {
  TranslateRegistration(name, description,
                        [=](const std::shared_ptr<llvm::SourceMgr> &sources,
                            llvm::raw_ostream &output, MLIRContext *context) -> LogicalResult {
                          DialectRegistry registry;
                          addDialects(registry);
                          context->appendDialectRegistry(registry);
                          OwningOpRef<Operation *> op = import(*sources, context);
                          if (!op || failed(verify(*op)))
                            return failure();
                          op->print(output, OpPrintingFlags().assumeVerified());
                          return success();
                        });
}

int main(int argc, char **argv) {
  ncclx::hideLLVMOptions();
  TranslateFromMLIRRegistration toBytecode(
      "ncclx-to-bytecode", "Write a graph as MLIR bytecode, with the dialect's version",
      [](Operation *op, llvm::raw_ostream &output) { return writeBytecodeToFile(op, output); },
      registerGraphDialects);
  static llvm::cl::opt<int64_t> threads("cuda-threads", llvm::cl::init(512),
                                        llvm::cl::desc("Threads of a block (--ctran-to-cuda)"));
  static llvm::cl::opt<int64_t> blocks(
      "cuda-blocks", llvm::cl::init(32),
      llvm::cl::desc("Blocks of a kernel whose ops name none and may share them"));
  TranslateFromMLIRRegistration toCuda(
      "ctran-to-cuda", "Write a schedule's sm lanes as CUDA C++",
      [](Operation *op, llvm::raw_ostream &output) -> LogicalResult {
        FailureOr<ctran::ProgramOp> program = onlyProgram(op, "CUDA");
        return failed(program) ? failure() : ncclx::emitCuda(*program, output, {threads, blocks});
      },
      registerScheduleDialects);
  TranslateFromMLIRRegistration toMscclXml(
      "export-msccl-xml", "Write a schedule of one collective as an MSCCL XML file",
      [](Operation *op, llvm::raw_ostream &output) -> LogicalResult {
        FailureOr<ctran::ProgramOp> program = onlyProgram(op, "an MSCCL file");
        return failed(program) ? failure() : ncclx::exportMscclXml(*program, output);
      },
      registerScheduleDialects);
  llvm::cl::opt<int64_t> chunkElements(
      "chunk-elements", llvm::cl::init(ncclx::MscclOptions().chunkElements),
      llvm::cl::value_desc("N"),
      llvm::cl::desc("--import-*: elements of a chunk, of f32 (default 64)"));
  llvm::cl::opt<int64_t> fifoSlots(
      "fifo-slots", llvm::cl::init(ncclx::MscclOptions().fifoSlots), llvm::cl::value_desc("N"),
      llvm::cl::desc("--import-msccl-xml: places of each FIFO (default 8)"));
  using Import = decltype(&ncclx::importMscclXml);
  auto importBy = [&](Import read) -> Importer {
    return [&, read](llvm::SourceMgr &sources, MLIRContext *context) -> OwningOpRef<Operation *> {
      const llvm::MemoryBuffer *file = sources.getMemoryBuffer(sources.getMainFileID());
      if (chunkElements < 1 || fifoSlots < 1) {
        emitError(UnknownLoc::get(context), "--chunk-elements and --fifo-slots are at least 1");
        return nullptr;
      }
      ncclx::MscclOptions options;
      options.chunkElements = chunkElements;
      options.fifoSlots = fifoSlots;
      return read(file->getBuffer(), file->getBufferIdentifier(), context, options);
    };
  };
  registerImport("import-msccl-xml", "Read an MSCCL XML file as a ctran program",
                 importBy(ncclx::importMscclXml), ncclx::registerImportDialects);
  registerImport("import-mscclpp-json", "Read an MSCCL++ execution plan as a ctran program",
                 importBy(ncclx::importMscclppJson), ncclx::registerImportDialects);
  registerImport(
      "import-hlo", "Read XLA's HLO text as a graph",
      [](llvm::SourceMgr &sources, MLIRContext *context) {
        const llvm::MemoryBuffer *file = sources.getMemoryBuffer(sources.getMainFileID());
        return ncclx::importHlo(file->getBuffer(), file->getBufferIdentifier(), context);
      },
      ncclx::registerHloImportDialects);
  registerImport(
      "import-stablehlo", "Read StableHLO in generic form as a graph",
      [](llvm::SourceMgr &sources, MLIRContext *context) {
        const llvm::MemoryBuffer *file = sources.getMemoryBuffer(sources.getMainFileID());
        return ncclx::importStableHlo(file->getBuffer(), file->getBufferIdentifier(), context);
      },
      ncclx::registerHloImportDialects);
  static llvm::cl::extrahelp help("\nUSE:\n"
                                  "  ncclx-translate --<translation> [INPUT] [-o OUTPUT]\n\n"
                                  "  INPUT and OUTPUT default to the standard streams. Prove what "
                                  "has been imported by\n"
                                  "  ncclx-opt --ctran-verify; with fewer FIFO places by "
                                  "--ctran-verify=\"fifo-slots=1\".\n");
  // MLIR's own main would read files without end.
  static llvm::cl::opt<std::string> input(llvm::cl::Positional, llvm::cl::desc("INPUT"),
                                          llvm::cl::init("-"));
  static llvm::cl::opt<std::string> output("o", llvm::cl::desc("Where to write (default: -)"),
                                           llvm::cl::value_desc("FILE"), llvm::cl::init("-"));
  static llvm::cl::opt<bool> split("split-input-file",
                                   llvm::cl::desc("Translate what stands between lines of "
                                                  "\"// -----\" one by one"));
  static llvm::cl::opt<const Translation *, false, TranslationParser> translation(
      "", llvm::cl::desc("Translation to perform"), llvm::cl::Required);
  llvm::InitLLVM guard(argc, argv);
  registerAsmPrinterCLOptions();
  registerMLIRContextCLOptions();
  llvm::cl::ParseCommandLineOptions(argc, argv,
                                    "ncclx-translate: read or write a graph in another format\n");
  std::string problem;
  std::optional<std::string> text = ncclx::readFile(input, problem);
  if (!text) {
    llvm::errs() << input << ": error: " << problem << "\n";
    return 1;
  }
  auto file = openOutputFile(output, &problem);
  if (!file) {
    llvm::errs() << problem << "\n";
    return 1;
  }
  auto translateOne = [&](std::unique_ptr<llvm::MemoryBuffer> buffer,
                          llvm::raw_ostream &os) -> LogicalResult {
    auto sources = std::make_shared<llvm::SourceMgr>();
    sources->AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
    MLIRContext context;
    SourceMgrDiagnosticHandler handler(*sources, &context);
    return (*translation)(sources, os, &context);
  };
  if (failed(splitAndProcessBuffer(
          llvm::MemoryBuffer::getMemBuffer(*text, input == "-" ? "<stdin>" : input.c_str()),
          translateOne, file->os(), split ? kDefaultSplitMarker : "")))
    return 1;
  file->keep();
}
