//===- NCCLXInterfaces.td - What all collectives have in common -----------===//

#ifndef NCCLX_NCCLX_NCCLXINTERFACES_TD
#define NCCLX_NCCLX_NCCLXINTERFACES_TD

include "mlir/IR/OpBase.td"

def NCCLX_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::mlir::ncclx";
  let description = [{
    A collective over one group of ranks: all ranks of `grid` that agree on the axes which are not listed.
    Its members are numbered row-major over the listed axes, in the order listed. Or the groups themselves
    are listed.
  }];
  let methods = [
    InterfaceMethod<"The grid's symbol.", "::mlir::FlatSymbolRefAttr", "getGridAttr">,
    InterfaceMethod<"The names of the axes that span the group.", "::mlir::ArrayAttr", "getAxes">,
    InterfaceMethod<"The groups, where they are listed; then there are no axes.", "::mlir::ArrayAttr",
                    "getGroupsAttr">,
    InterfaceMethod<"What this rank contributes.", "::mlir::Value", "getInput">,
    InterfaceMethod<"How many rows go to each member, where that is known at run time only; else null.",
                    "::mlir::Value", "getSizes", (ins), "", "return {};">,
    InterfaceMethod<"The destination; null if there is none (tensor form only).", "::mlir::Value", "getDest">,
    InterfaceMethod<"The destination's operand range of size 0 or 1.", "::mlir::MutableOperandRange",
                    "getDestMutable">,
    InterfaceMethod<"The tensor result; null in memref form.", "::mlir::Value", "getResult">,
    InterfaceMethod<"The token; null unless the op only starts the collective.", "::mlir::Value", "getToken">,
    InterfaceMethod<"The algorithm asked for, or nothing.", "::std::optional<::mlir::ncclx::Algorithm>",
                    "getAlgorithm">,
    InterfaceMethod<"Asks for an algorithm.", "void", "setAlgorithm", (ins "::mlir::ncclx::Algorithm":$a),
      [{ $_op.setAlgorithmAttr(::mlir::ncclx::AlgorithmAttr::get($_op.getContext(), a)); }]>,
    InterfaceMethod<"Who sends which box of its input to whom.", "::mlir::ncclx::Dataflow", "getDataflow">,
  ];
  let extraSharedClassDeclaration = [{
    /// The type of what this rank contributes.
    ::mlir::ShapedType getInputType() {
      return ::mlir::cast<::mlir::ShapedType>($_op.getInput().getType());
    }
    /// The type of what this rank receives: the result's, or in memref form the destination's.
    ::mlir::ShapedType getOutputType() {
      ::mlir::Value v = $_op.getResult() ? ::mlir::Value($_op.getResult()) : ::mlir::Value($_op.getDest());
      return ::mlir::cast<::mlir::ShapedType>(v.getType());
    }
    /// Whether elements of different ranks are combined.
    bool isReduction() { return $_op.getDataflow().combines; }
    /// The dimension in which member i's contribution is a slice of every member's result, or
    /// nothing: the collective can then not be awaited by chunk.
    ::std::optional<int64_t> getChunkDim() { return $_op.getDataflow().getChunkDim(); }
    ::mlir::Type getElementType() { return getInputType().getElementType(); }
    /// Whether the op works on memrefs.
    bool isBufferForm() { return ::mlir::isa<::mlir::BaseMemRefType>($_op.getInput().getType()); }
    /// Whether the op only starts the collective.
    bool isAsync() { return static_cast<bool>($_op.getToken()); }
    /// Bytes of the larger of what a rank contributes and what it receives.
    int64_t getPayloadBytes() {
      return ::mlir::ncclx::getPayloadBytes(getInputType(), getOutputType());
    }
  }];
}

#endif // NCCLX_NCCLX_NCCLXINTERFACES_TD
