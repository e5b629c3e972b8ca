//===- CppSource.cpp - A schedule as a C interface and C++ ------------------------===//
//
// The interface of the host. Functions and tables: CppPrint.cpp.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Cpp/CppSource.h"
#include "CppPrint.h"

#include "mlir/Conversion/ArithToEmitC/ArithToEmitC.h"
#include "mlir/Conversion/FuncToEmitC/FuncToEmitC.h"
#include "mlir/Conversion/SCFToEmitC/SCFToEmitC.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::ncclx;

void mlir::ncclx::registerCppDialects(DialectRegistry &registry) {
  registry.insert<emitc::EmitCDialect>();
  registerConvertArithToEmitCInterface(registry);
  registerConvertFuncToEmitCInterface(registry);
  registerConvertSCFToEmitCInterface(registry);
}

std::string mlir::ncclx::toIdentifier(StringRef text) {
  std::string out;
  for (char c : text)
    out += llvm::isAlnum(c) ? c : '_';
  if (out.empty() || llvm::isDigit(out[0]))
    out.insert(out.begin(), '_');
  return out;
}

//===--- kernels ----------------------------------------------------------------------------===//

LogicalResult mlir::ncclx::nameKernels(StringRef name, ModuleOp kernels, ModuleOp host,
                                       HostPlan &plan) {
  SymbolTable inKernels(kernels), inHost(host);
  SmallVector<FunctionOpInterface> functions;
  for (auto function : kernels.getOps<FunctionOpInterface>())
    if (!function.isExternal())
      functions.push_back(function);
  llvm::StringMap<unsigned> taken;
  for (FunctionOpInterface function : functions) {
    std::string before = function.getName().str();
    std::string wanted = (name + "_" + toIdentifier(before)).str();
    if (unsigned again = taken[wanted]++)
      wanted += "_" + std::to_string(again);
    Operation *declared = inHost.lookup(before);
    if (failed(inKernels.rename(function, wanted)) ||
        (declared && failed(inHost.rename(declared, wanted))))
      return function.emitError("kernel '") << before << "' cannot be named '" << wanted << "'";
    llvm::replace(plan.kernels, before, wanted);
  }
  return success();
}

//===--- interface ---------------------------------------------------------------===//

/// The parameters of NAME_prepare that are the graph's open sizes.
static std::string sizeParameters(const HostPlan &plan) {
  std::string text;
  for (const HostPlan::Size &size : plan.sizes)
    text += "int64_t size_" + toIdentifier(size.name) + ", ";
  return text;
}

static void printHeader(StringRef name, const HostPlan &plan, raw_ostream &os) {
  std::string guard = "NCCLX_SCHEDULE_" + StringRef(name).upper() + "_H";
  os << "/* " << name << ".h - the schedule '" << plan.name << "' for " << plan.ranks
     << " ranks. Made by ncclx-compile.\n *\n";
  printArguments(plan, os);
  os << " *\n"
     << " * Link with the object of its kernels and with the ncclx runtime. Each rank calls, in "
        "this\n"
     << " * order: prepare; then, as often as it likes: fill the inputs, run, read the outputs; "
        "then\n"
     << " * destroy. prepare and run are collective: every rank calls them, in the same order. "
        "Results\n"
     << " * and their sentences are those of ncclxrt/abi.h.\n"
     << " */\n"
     << "#ifndef " << guard << "\n#define " << guard << "\n\n"
     << "#include \"ncclxrt/abi.h\"\n\n"
     << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
     << sizesOf(name, plan) << "\n"
     << "/** Bytes that a rank's plan takes beside its inputs and outputs. */\n"
     << "size_t " << name << "_workspace_bytes(void);\n\n"
     << "/** What the schedule needs, to prepare it by ncclxrtPlanPrepare with a trace. */\n"
     << "ncclxrtPlanDesc_t " << name << "_describe(size_t trace_capacity);\n\n"
     << "/** Makes the windows and slots. Collective. On failure *plan is NULL.";
  for (const HostPlan::Size &size : plan.sizes)
    os << "\n *  The size '" << size.name << "' (" << size.place << ") must be " << size.value
       << ": any other is an error on every rank.";
  os << " */\n"
     << "ncclxrtResult_t " << name << "_prepare(ncclxrtComm_t comm, " << sizeParameters(plan)
     << "ncclxrtPlan_t *plan);\n\n"
     << bufferDeclarations(name, "ncclxrtPlan") << "\n"
     << "/** Runs the schedule once. Collective. */\n"
     << "ncclxrtResult_t " << name << "_run(ncclxrtPlan_t plan);\n\n"
     << "/** Gives the memory back. Local. */\n"
     << "ncclxrtResult_t " << name << "_destroy(ncclxrtPlan_t plan);\n\n"
     << "/** The program itself, for ncclxrtPlanRun. */\n"
     << "int32_t " << name << "_program(int64_t exec);\n\n"
     << "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

static void printInterface(StringRef name, const HostPlan &plan, raw_ostream &os) {
  os << "size_t " << name << "_workspace_bytes(void) { return " << plan.scratchBytes() << "u; }\n\n"
     << "ncclxrtPlanDesc_t " << name << "_describe(size_t trace_capacity) {\n"
     << planFields(plan) << "  desc.trace_capacity = trace_capacity;\n"
     << "  return desc;\n}\n\n"
     << "ncclxrtResult_t " << name << "_prepare(ncclxrtComm_t comm, " << sizeParameters(plan)
     << "ncclxrtPlan_t *plan) {\n"
     << "  ncclxrtPlanDesc_t desc = " << name << "_describe(0);\n";
  if (!plan.sizes.empty()) {
    os << "  ncclxrtSizeDesc_t given[" << plan.sizes.size() << "];\n";
    for (auto [i, size] : llvm::enumerate(plan.sizes))
      os << "  given[" << i << "] = sizes[" << i << "];\n"
         << "  given[" << i << "].value = size_" << toIdentifier(size.name) << ";\n";
    os << "  desc.sizes = given;\n";
  }
  os << "  return ncclxrtPlanPrepare(comm, &desc, plan);\n}\n\n";
  printBuffers(name, "ncclxrtPlan", plan, os);
  os << "ncclxrtResult_t " << name << "_run(ncclxrtPlan_t plan) {\n"
     << "  return ncclxrtPlanRun(plan, " << name << "_program);\n}\n\n"
     << "ncclxrtResult_t " << name << "_destroy(ncclxrtPlan_t plan) {\n"
     << "  return ncclxrtPlanDestroy(plan);\n}\n";
}

FailureOr<CppSource> mlir::ncclx::makeCppSource(StringRef name, const HostPlan &plan,
                                                ModuleOp host) {
  FailureOr<std::string> functions = printFunctions((name + "_program").str(), host);
  if (failed(functions))
    return failure();
  CppSource out;
  llvm::raw_string_ostream header(out.header), source(out.source);
  printHeader(name, plan, header);
  source
      << "// " << name << ".cpp - the host side of the schedule '" << plan.name << "' for "
      << plan.ranks << " ranks. Made by ncclx-compile.\n"
      << "#include \"" << name << ".h\"\n\n"
      << "#include <cstdint>\n#include <cstdlib>\n\n"
      << "// What kernels allocate buffers by. Every schedule brings the same.\n"
      << "extern \"C\" {\n"
      << "__attribute__((weak)) void *_mlir_memref_to_llvm_alloc(uint64_t bytes) {\n"
      << "  return std::malloc(bytes);\n}\n"
      << "__attribute__((weak)) void *_mlir_memref_to_llvm_aligned_alloc(uint64_t alignment,\n"
      << "                                                               uint64_t bytes) {\n"
      << "  return std::aligned_alloc(alignment, bytes);\n}\n"
      << "__attribute__((weak)) void _mlir_memref_to_llvm_free(void *data) { std::free(data); }\n"
      << "}\n\n"
      << *functions << "\n";
  source << "namespace {\n";
  printTables(plan, source);
  printPositions(plan, source);
  source << "} // namespace\n\n";
  printInterface(name, plan, source);
  return out;
}
