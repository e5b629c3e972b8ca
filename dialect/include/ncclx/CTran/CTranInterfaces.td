//===- CTranInterfaces.td - What an op of a schedule touches -------------------===//
#ifndef NCCLX_CTRAN_INTERFACES
#define NCCLX_CTRAN_INTERFACES

include "mlir/IR/OpBase.td"

def CTran_ScheduleOpInterface : OpInterface<"ScheduleOpInterface"> {
  let cppNamespace = "::mlir::ctran";
  let description = [{
    An op that a lane executes. It names the boxes that it reads and writes, the slots that it
    touches, the tokens it waits for and the lane it runs on: all that ordering, the prover and the
    lowering need to know of it.
  }];
  let methods = [
    InterfaceMethod<"The boxes read and written (values of type !ctran.range).",
      "void", "getAccesses", (ins "::llvm::SmallVectorImpl<::mlir::ctran::BoxAccess> &":$accesses)>,
    InterfaceMethod<"The slot raised or awaited, or null.",
      "::mlir::Value", "getTouchedSlot", (ins)>,
    InterfaceMethod<"The tokens that must be complete before this op starts.",
      "::mlir::OperandRange", "getAfterTokens", (ins)>,
    InterfaceMethod<"Completion of this op.",
      "::mlir::Value", "getDoneToken", (ins)>,
    InterfaceMethod<"The kind of lane.",
      "::mlir::ctran::LaneKind", "getLaneKind", (ins)>,
    InterfaceMethod<"Which lane of that kind: an index value, or null for lane 0.",
      "::mlir::Value", "getLaneIndexValue", (ins)>
  ];
}
#endif
