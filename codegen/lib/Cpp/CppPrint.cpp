//===- CppPrint.cpp - What the C++ of hosts and of GPUs has in common ---------------===//
//
// EmitC prints the function that lowerToHost made, and its parts; tables are text of this file.
//
//===----------------------------------------------------------------------===//
#include "CppPrint.h"

#include "mlir/Conversion/ConvertToEmitC/ConvertToEmitCPass.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/Cpp/CppEmitter.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx;

FailureOr<std::string> mlir::ncclx::printFunctions(StringRef program, ModuleOp host) {
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
  Builder b(host.getContext());
  SymbolTable symbols(*code);
  int64_t parts = 0;
  for (auto function : code->getOps<emitc::FuncOp>()) {
    if (function.isExternal())
      function.setSpecifiersAttr(b.getStrArrayAttr({"extern \"C\""}));
    else if (!function.isPrivate())
      function.setSymName(program);
    else { // a part of it
      function.setSpecifiersAttr(b.getStrArrayAttr({"static", "__attribute__((noinline))"}));
      std::string name = llvm::formatv("{0}_part{1}", program, parts++);
      if (function.getSymName() != name && failed(symbols.rename(function, name)))
        return failure();
    }
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  if (failed(emitc::translateToCpp(*code, os)))
    return failure();
  return text;
}

//===--- tables -----------------------------------------------------------------------------===//

std::string mlir::ncclx::literal(StringRef text) {
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

void mlir::ncclx::printTable(raw_ostream &os, StringRef type, StringRef name,
                             ArrayRef<std::string> rows) {
  if (rows.empty())
    return;
  os << "const " << type << ' ' << name << "[] = {\n";
  for (const std::string &row : rows)
    os << "    {" << row << "},\n";
  os << "};\n";
}

void mlir::ncclx::printTables(const HostPlan &plan, raw_ostream &os) {
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
  for (const HostPlan::Size &s : plan.sizes) // what is printed is for one
    sizes.push_back(
        llvm::formatv("{0}, {1}, {2}, {2}, 1, {2}", literal(s.name), literal(s.place), s.value));
  printTable(os, "ncclxrtSizeDesc_t", "sizes", sizes);
  printTable(os, "ncclxrtWindowDesc_t", "windows", windows);
  printTable(os, "ncclxrtSlotsDesc_t", "slots", slots);
  printTable(os, "ncclxrtLaneDesc_t", "lanes", lanes);
  printTable(os, "ncclxrtOpDesc_t", "ops", ops);
}

void mlir::ncclx::printNumbers(raw_ostream &os, StringRef type, StringRef name,
                               ArrayRef<uint64_t> numbers) {
  if (numbers.empty())
    return;
  os << "const " << type << ' ' << name << "[] = {";
  llvm::interleaveComma(numbers, os);
  os << "};\n";
}

void mlir::ncclx::printPositions(const HostPlan &plan, raw_ostream &os) {
  printNumbers(os, "size_t", "inputs", SmallVector<uint64_t>(plan.inputs()));
  printNumbers(os, "size_t", "outputs", SmallVector<uint64_t>(plan.outputs()));
}

std::string mlir::ncclx::planFields(const HostPlan &plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "  ncclxrtPlanDesc_t desc = NCCLXRT_PLAN_DESC_INIT;\n"
     << "  desc.name = " << literal(plan.name) << ";\n"
     << "  desc.hash = " << plan.hash << "u;\n";
  auto table = [&](StringRef name, size_t rows) {
    if (rows)
      os << "  desc." << name << " = " << name << ";\n  desc.num_" << name << " = " << rows
         << ";\n";
  };
  table("windows", plan.windows.size());
  table("slots", plan.slots.size());
  table("lanes", plan.lanes.size());
  table("ops", plan.ops.size());
  table("sizes", plan.sizes.size());
  return text;
}

//===--- the caller's buffers ----------------------------------------------------------------===//

void mlir::ncclx::printArguments(const HostPlan &plan, raw_ostream &os) {
  auto list = [&](StringRef what, ArrayRef<size_t> windows) {
    for (auto [i, w] : llvm::enumerate(windows)) {
      const HostPlan::Window &window = plan.windows[w];
      os << " * " << what << ' ' << i << ": " << window.type << ", " << window.bytes << " bytes"
         << (window.role == ctran::WindowRole::InOut ? ", changed in place" : "") << '\n';
    }
  };
  list("input", plan.inputs());
  list("output", plan.outputs());
}

std::string mlir::ncclx::sizesOf(StringRef name, const HostPlan &plan) {
  return llvm::formatv("enum {{ {0}_ranks = {1}, {0}_inputs = {2}, {0}_outputs = {3} };\n", name,
                       plan.ranks, plan.inputs().size(), plan.outputs().size());
}

std::string mlir::ncclx::bufferDeclarations(StringRef name, StringRef plan) {
  return llvm::formatv(
      "/** This rank's memory of an input or output, valid until destroy. */\n"
      "ncclxrtResult_t {0}_input({1}_t plan, int index, void **data, size_t *bytes);\n"
      "ncclxrtResult_t {0}_output({1}_t plan, int index, void **data, size_t *bytes);\n",
      name, plan);
}

void mlir::ncclx::printBuffers(StringRef name, StringRef planType, const HostPlan &plan,
                               raw_ostream &os) {
  auto buffer = [&](StringRef what, size_t count) {
    os << "ncclxrtResult_t " << name << '_' << what << '(' << planType
       << "_t plan, int index, void **data, size_t *bytes) {\n";
    if (count)
      os << "  if (index >= 0 && index < " << count << ")\n    return " << planType
         << "Buffer(plan, " << what << "s[index], 0, data, bytes);\n";
    os << "  return ncclxrtInvalidArgument;\n}\n\n";
  };
  buffer("input", plan.inputs().size());
  buffer("output", plan.outputs().size());
}
