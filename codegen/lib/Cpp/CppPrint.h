//===- CppPrint.h - What the C++ of hosts and of GPUs has in common -----*- C++ -*-===//
#ifndef NCCLX_LIB_CPP_CPPPRINT_H
#define NCCLX_LIB_CPP_CPPPRINT_H

#include "ncclx/Host/HostPlan.h"

namespace mlir::ncclx {

/// C++ of every function in `host`: the one with a body as `program`, the others as declarations.
FailureOr<std::string> printFunctions(StringRef program, ModuleOp host);

/// A string of C.
std::string literal(StringRef text);

/// `const TYPE NAME[] = {...};`, or nothing to point at where there are no rows.
void printTable(raw_ostream &os, StringRef type, StringRef name, ArrayRef<std::string> rows);
/// The same of numbers.
void printNumbers(raw_ostream &os, StringRef type, StringRef name, ArrayRef<uint64_t> numbers);
/// The plan's tables: windows, slots, lanes, ops, open sizes.
void printTables(const HostPlan &plan, raw_ostream &os);
/// Positions of inputs and outputs among the windows.
void printPositions(const HostPlan &plan, raw_ostream &os);
/// Statements that fill a ncclxrtPlanDesc_t `desc` from those tables.
std::string planFields(const HostPlan &plan);

/// Lines of a comment: the types of inputs and outputs.
void printArguments(const HostPlan &plan, raw_ostream &os);
/// The enum with how many ranks, inputs and outputs there are.
std::string sizesOf(StringRef name, const HostPlan &plan);
/// NAME_input and NAME_output of plans of type PLAN_t.
std::string bufferDeclarations(StringRef name, StringRef plan);
void printBuffers(StringRef name, StringRef planType, const HostPlan &plan, raw_ostream &os);

} // namespace mlir::ncclx
#endif // NCCLX_LIB_CPP_CPPPRINT_H
