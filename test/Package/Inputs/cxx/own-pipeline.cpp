// A C++ program on MLIR with a pass pipeline of its own: one of its own passes counts collectives,
// then the project's passes make and prove the schedule.
#include "ncclx/CTran/CTran.h"
#include "ncclx/Conversion/Passes.h"
#include "ncclx/NCCLX/NCCLX.h"
#include "ncclx/Schedule/Passes.h"
#include "ncclx/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"
#ifdef WITH_C_LIBRARY
#include "ncclx-c/ncclx.h"
#include "llvm/Support/MemoryBuffer.h"
#endif

using namespace mlir;

namespace {
struct CountCollectives : PassWrapper<CountCollectives, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CountCollectives)
  void runOnOperation() override {
    unsigned count = 0;
    getOperation().walk([&](ncclx::CollectiveOpInterface) { ++count; });
    llvm::outs() << "collectives: " << count << "\n";
  }
};
} // namespace

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  DialectRegistry registry;
  registerAllDialects(registry);
  registry.insert<ncclx::NCCLXDialect, ctran::CTranDialect>();
  MLIRContext context(registry);
  auto compile = [&] {
    OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(argv[1], &context);
    if (!module)
      return false;
    PassManager pm(&context);
    pm.addPass(std::make_unique<CountCollectives>());
    ncclx::buildBufferizePipeline(pm);
    pm.addPass(ncclx::createConvertNCCLXToCTran());
    if (failed(pm.run(*module)))
      return false;
    module->walk([](ctran::ProgramOp program) {
      llvm::outs() << "program @" << program.getSymName() << "\n";
    });
    return true;
  };
  if (!compile())
    return 1;
#ifdef WITH_C_LIBRARY
  // The library's MLIR is another one; ours goes on working beside it.
  auto graph = llvm::MemoryBuffer::getFile(argv[1]),
       topology = llvm::MemoryBuffer::getFile(argv[2]);
  ncclxCompileOptions_t options = NCCLX_COMPILE_OPTIONS_INIT;
  options.topology = (*topology)->getBufferStart();
  options.topology_bytes = (*topology)->getBufferSize();
  for (int i = 0; i < 2; ++i) {
    ncclxProgram_t program;
    ncclxResult_t result =
        ncclxCompile(&options, (*graph)->getBufferStart(), (*graph)->getBufferSize(), &program);
    llvm::outs() << "library: result " << int(result) << ", " << ncclxProgramRanks(program)
                 << " ranks\n";
    ncclxProgramDestroy(program);
    if (!compile())
      return 1;
  }
#endif
}
