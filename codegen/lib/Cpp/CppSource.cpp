//===- CppSource.cpp - A schedule as a C interface and C++ ------------------------===//
//
// EmitC prints the one function that lowerToHost made; the tables and the interface around it are
// text of this file.
//
//===----------------------------------------------------------------------===//
#include "ncclx/Cpp/CppSource.h"

#include "mlir/Conversion/ArithToEmitC/ArithToEmitC.h"
#include "mlir/Conversion/ConvertToEmitC/ConvertToEmitCPass.h"
#include "mlir/Conversion/FuncToEmitC/FuncToEmitC.h"
#include "mlir/Conversion/SCFToEmitC/SCFToEmitC.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/Cpp/CppEmitter.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

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

//===--- the function -----------------------------------------------------------------------===//

/// C++ of every function in `host`: those of the runtime and the kernels as declarations.
static FailureOr<std::string> printFunctions(StringRef program, ModuleOp host) {
  OwningOpRef<ModuleOp> code = host.clone();
  PassManager pm(host.getContext());
  pm.addNestedPass<func::FuncOp>(arith::createArithExpandOpsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createConvertToEmitC());
  if (failed(pm.run(*code)))
    return failure();
  // The conversion leaves what it does not know, and succeeds.
  WalkResult left = code->walk([&](Operation *op) {
    if (isa<ModuleOp>(op) || isa<emitc::EmitCDialect>(op->getDialect()))
      return WalkResult::advance();
    op->emitOpError("has no form in C++");
    return WalkResult::interrupt();
  });
  if (left.wasInterrupted())
    return failure();
  for (auto function : code->getOps<emitc::FuncOp>()) {
    if (function.isExternal())
      function.setSpecifiersAttr(
          ArrayAttr::get(host.getContext(), StringAttr::get(host.getContext(), "extern \"C\"")));
    else
      function.setSymName(program);
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  if (failed(emitc::translateToCpp(*code, os)))
    return failure();
  return text;
}

//===--- tables and interface ---------------------------------------------------------------===//

static std::string literal(StringRef text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', char(c)};
    else if (c >= 0x20 && c < 0x7f)
      out += char(c);
    else
      out += llvm::formatv("\\{0}{1}{2}", c >> 6, (c >> 3) & 7, c & 7);
  }
  return out + "\"";
}

static StringRef roleName(ctran::WindowRole role) {
  switch (role) {
  case ctran::WindowRole::Input:
  case ctran::WindowRole::InOut:
    return "ncclxrtRoleInput";
  case ctran::WindowRole::Output:
    return "ncclxrtRoleOutput";
  case ctran::WindowRole::Scratch:
    return "ncclxrtRoleScratch";
  }
  llvm_unreachable("all roles are handled");
}

static StringRef laneName(ctran::LaneKind kind) {
  switch (kind) {
  case ctran::LaneKind::CE:
    return "ncclxrtLaneCe";
  case ctran::LaneKind::Compute:
    return "ncclxrtLaneCompute";
  case ctran::LaneKind::SM:
    return "ncclxrtLaneSm";
  case ctran::LaneKind::Host:
    return "ncclxrtLaneHost";
  case ctran::LaneKind::NIC:
    return "ncclxrtLaneNic";
  }
  llvm_unreachable("all kinds are handled");
}

/// The parameters of NAME_prepare that are the graph's open sizes.
static std::string sizeParameters(const HostPlan &plan) {
  std::string text;
  for (const HostPlan::Size &size : plan.sizes)
    text += "int64_t size_" + toIdentifier(size.name) + ", ";
  return text;
}

static void printHeader(StringRef name, const HostPlan &plan, raw_ostream &os) {
  std::string guard = "NCCLX_SCHEDULE_" + StringRef(name).upper() + "_H";
  SmallVector<size_t> inputs = plan.inputs(), outputs = plan.outputs();
  os << "/* " << name << ".h - the schedule '" << plan.name << "' for " << plan.ranks
     << " ranks. Made by ncclx-compile.\n *\n";
  auto list = [&](StringRef what, ArrayRef<size_t> windows) {
    for (auto [i, w] : llvm::enumerate(windows)) {
      const HostPlan::Window &window = plan.windows[w];
      os << " * " << what << ' ' << i << ": " << window.type << ", " << window.bytes << " bytes"
         << (window.role == ctran::WindowRole::InOut ? ", changed in place" : "") << '\n';
    }
  };
  list("input", inputs);
  list("output", outputs);
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
     << "enum { " << name << "_ranks = " << plan.ranks << ", " << name
     << "_inputs = " << inputs.size() << ", " << name << "_outputs = " << outputs.size()
     << " };\n\n"
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
     << "/** This rank's memory of an input or output, valid until destroy. */\n"
     << "ncclxrtResult_t " << name
     << "_input(ncclxrtPlan_t plan, int index, void **data, size_t *bytes);\n"
     << "ncclxrtResult_t " << name
     << "_output(ncclxrtPlan_t plan, int index, void **data, size_t *bytes);\n\n"
     << "/** Runs the schedule once. Collective. */\n"
     << "ncclxrtResult_t " << name << "_run(ncclxrtPlan_t plan);\n\n"
     << "/** Gives the memory back. Local. */\n"
     << "ncclxrtResult_t " << name << "_destroy(ncclxrtPlan_t plan);\n\n"
     << "/** The program itself, for ncclxrtPlanRun. */\n"
     << "int32_t " << name << "_program(int64_t exec);\n\n"
     << "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

/// `static const TYPE NAME[] = {...};`, or nothing to point at where there are no rows.
static void printTable(raw_ostream &os, StringRef type, StringRef name,
                       ArrayRef<std::string> rows) {
  if (rows.empty())
    return;
  os << "const " << type << ' ' << name << "[] = {\n";
  for (const std::string &row : rows)
    os << "    {" << row << "},\n";
  os << "};\n";
}

static void printTables(StringRef name, const HostPlan &plan, raw_ostream &os) {
  os << "namespace {\n";
  SmallVector<std::string> windows, slots, lanes, ops, sizes;
  for (const HostPlan::Window &w : plan.windows)
    windows.push_back(llvm::formatv("{0}, {1}u, {2}, {3}", literal(w.name), w.bytes, w.generations,
                                    roleName(w.role)));
  for (const HostPlan::Slots &s : plan.slots)
    slots.push_back(
        llvm::formatv("{0}, {1}, {2}, {3}", literal(s.name), s.count, s.generations, s.writers));
  for (const HostPlan::Lane &l : plan.lanes)
    lanes.push_back(llvm::formatv("{0}, {1}, {2}", literal(l.name), laneName(l.kind), l.index));
  for (const HostPlan::Op &o : plan.ops)
    ops.push_back(llvm::formatv("{0}, {1}", literal(o.name),
                                o.location.empty() ? "nullptr" : literal(o.location)));
  for (const HostPlan::Size &s : plan.sizes) // these files are for one
    sizes.push_back(
        llvm::formatv("{0}, {1}, {2}, {2}, 1, {2}", literal(s.name), literal(s.place), s.value));
  printTable(os, "ncclxrtSizeDesc_t", "sizes", sizes);
  printTable(os, "ncclxrtWindowDesc_t", "windows", windows);
  printTable(os, "ncclxrtSlotsDesc_t", "slots", slots);
  printTable(os, "ncclxrtLaneDesc_t", "lanes", lanes);
  printTable(os, "ncclxrtOpDesc_t", "ops", ops);
  auto positions = [&](StringRef table, ArrayRef<size_t> found) {
    if (found.empty())
      return;
    os << "const size_t " << table << "[] = {";
    llvm::interleaveComma(found, os);
    os << "};\n";
  };
  positions("inputs", plan.inputs());
  positions("outputs", plan.outputs());
  os << "} // namespace\n\n";
}

static void printInterface(StringRef name, const HostPlan &plan, raw_ostream &os) {
  auto table = [](StringRef what, bool empty) { return empty ? StringRef("nullptr") : what; };
  os << "size_t " << name << "_workspace_bytes(void) { return " << plan.scratchBytes() << "u; }\n\n"
     << "ncclxrtPlanDesc_t " << name << "_describe(size_t trace_capacity) {\n"
     << "  ncclxrtPlanDesc_t desc = NCCLXRT_PLAN_DESC_INIT;\n"
     << "  desc.name = " << literal(plan.name) << ";\n"
     << "  desc.hash = " << plan.hash << "u;\n"
     << "  desc.windows = " << table("windows", plan.windows.empty()) << ";\n"
     << "  desc.num_windows = " << plan.windows.size() << ";\n"
     << "  desc.slots = " << table("slots", plan.slots.empty()) << ";\n"
     << "  desc.num_slots = " << plan.slots.size() << ";\n"
     << "  desc.lanes = " << table("lanes", plan.lanes.empty()) << ";\n"
     << "  desc.num_lanes = " << plan.lanes.size() << ";\n"
     << "  desc.ops = " << table("ops", plan.ops.empty()) << ";\n"
     << "  desc.num_ops = " << plan.ops.size() << ";\n"
     << "  desc.trace_capacity = trace_capacity;\n"
     << "  desc.sizes = " << table("sizes", plan.sizes.empty()) << ";\n"
     << "  desc.num_sizes = " << plan.sizes.size() << ";\n"
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
  auto buffer = [&](StringRef what, StringRef positions, size_t count) {
    os << "ncclxrtResult_t " << name << '_' << what
       << "(ncclxrtPlan_t plan, int index, void **data, size_t *bytes) {\n";
    if (count)
      os << "  if (index >= 0 && index < " << count << ")\n"
         << "    return ncclxrtPlanBuffer(plan, " << positions << "[index], 0, data, bytes);\n";
    os << "  return ncclxrtInvalidArgument;\n}\n\n";
  };
  buffer("input", "inputs", plan.inputs().size());
  buffer("output", "outputs", plan.outputs().size());
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
  printTables(name, plan, source);
  printInterface(name, plan, source);
  return out;
}
