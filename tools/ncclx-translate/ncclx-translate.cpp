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

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/SourceMgr.h"

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
  auto importBy = [&](Import read) {
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
  TranslateToMLIRRegistration importMscclXml(
      "import-msccl-xml", "Read an MSCCL XML file as a ctran program",
      importBy(ncclx::importMscclXml), ncclx::registerImportDialects);
  TranslateToMLIRRegistration importMscclppJson(
      "import-mscclpp-json", "Read an MSCCL++ execution plan as a ctran program",
      importBy(ncclx::importMscclppJson), ncclx::registerImportDialects);
  TranslateToMLIRRegistration importHlo(
      "import-hlo", "Read XLA's HLO text as a graph",
      [](llvm::SourceMgr &sources, MLIRContext *context) -> OwningOpRef<Operation *> {
        const llvm::MemoryBuffer *file = sources.getMemoryBuffer(sources.getMainFileID());
        return ncclx::importHlo(file->getBuffer(), file->getBufferIdentifier(), context);
      },
      ncclx::registerHloImportDialects);
  TranslateToMLIRRegistration importStableHlo(
      "import-stablehlo", "Read StableHLO in generic form as a graph",
      [](llvm::SourceMgr &sources, MLIRContext *context) -> OwningOpRef<Operation *> {
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
  return failed(
      mlirTranslateMain(argc, argv, "ncclx-translate: read or write a graph in another format\n"));
}
