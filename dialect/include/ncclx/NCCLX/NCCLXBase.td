//===- NCCLXBase.td - The ncclx dialect, its types and attributes ---------===//

#ifndef NCCLX_NCCLX_NCCLXBASE_TD
#define NCCLX_NCCLX_NCCLXBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def NCCLX_Dialect : Dialect {
  let name = "ncclx";
  let cppNamespace = "::mlir::ncclx";
  let summary = "What is to be communicated: one program for all ranks";
  let description = [{
    A graph in which collectives and computation stand side by side. The program is one text that every
    rank of an `ncclx.grid` runs. Collectives have value semantics on tensors; after bufferization the same
    ops work on memrefs and have no tensor result. `ncclx.start` and `ncclx.await` split a collective in
    time. A collective is never pure: it reads and writes the resource `Communication`, so no generic pass
    moves, merges or deletes one.

    The numbered constraints that the verifiers cite (`all_gather C1`) are in `dialect/SPEC.md`.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect"
  ];
  let extraClassDeclaration = [{
    /// The version written to bytecode; a reader refuses a newer one.
    static constexpr uint64_t kBytecodeVersion = 1;

    /// Unit attribute of a function argument that has the same value on all ranks.
    static constexpr ::llvm::StringLiteral getUniformAttrName() { return "ncclx.uniform"; }

    /// Attribute of a collective: the `ctran.program` that carries it.
    static constexpr ::llvm::StringLiteral getScheduleAttrName() { return "ncclx.schedule"; }

    /// A module's #ncclx.topology: the machine it is for.
    static constexpr ::llvm::StringLiteral getTopologyAttrName() { return "ncclx.topology"; }
  }];
}

class NCCLX_Op<string mnemonic, list<Trait> traits = []> : Op<NCCLX_Dialect, mnemonic, traits>;

//===--- Attributes -------------------------------------------------------===//

def NCCLX_ReductionKind : I32EnumAttr<"ReductionKind", "How two elements become one", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Min", 1, "min">, I32EnumAttrCase<"Max", 2, "max">,
    I32EnumAttrCase<"Prod", 3, "prod">, I32EnumAttrCase<"Avg", 4, "avg">]> {
  let cppNamespace = "::mlir::ncclx";
  let genSpecializedAttr = 0;
}
def NCCLX_ReductionKindAttr : EnumAttr<NCCLX_Dialect, NCCLX_ReductionKind, "reduction">;

def NCCLX_ReductionOrder : I32EnumAttr<"ReductionOrder", "In which order the members are reduced", [
    I32EnumAttrCase<"Any", 0, "any">, I32EnumAttrCase<"Rank", 1, "rank">,
    I32EnumAttrCase<"Ring", 2, "ring">, I32EnumAttrCase<"Tree", 3, "tree">]> {
  let cppNamespace = "::mlir::ncclx";
  let genSpecializedAttr = 0;
}
def NCCLX_ReductionOrderAttr : EnumAttr<NCCLX_Dialect, NCCLX_ReductionOrder, "order">;

def NCCLX_Algorithm : I32EnumAttr<"Algorithm", "How a collective is carried out", [
    I32EnumAttrCase<"Direct", 0, "direct">, I32EnumAttrCase<"Ring", 1, "ring">,
    I32EnumAttrCase<"Bruck", 2, "bruck">, I32EnumAttrCase<"Binomial", 3, "binomial">,
    I32EnumAttrCase<"Eager", 4, "eager">, I32EnumAttrCase<"Trees", 5, "trees">,
    I32EnumAttrCase<"Routed", 6, "routed">, I32EnumAttrCase<"Hierarchical", 7, "hierarchical">,
    I32EnumAttrCase<"Switch", 8, "switch">]> {
  let cppNamespace = "::mlir::ncclx";
  let genSpecializedAttr = 0;
}
def NCCLX_AlgorithmAttr : EnumAttr<NCCLX_Dialect, NCCLX_Algorithm, "algorithm">;

def NCCLX_GroupsAttr : TypedArrayAttrBase<DenseI64ArrayAttr, "groups of ranks">;

def NCCLX_TopologyAttr : AttrDef<NCCLX_Dialect, "Topology"> {
  let mnemonic = "topology";
  let summary = "A machine: ranks, links and their rates";
  let description = [{
    The JSON of a topology (`dialect/lib/Topology/README.md`) as a dictionary: objects are dictionaries,
    whole numbers are i64, and `true` may be written as a unit attribute. `format` and `version` may be left
    out. `ncclx-topo convert --to=mlir` writes one. A pass that takes `topology=FILE` takes the module's
    attribute `ncclx.topology` where there is no file.

    ```mlir
    module attributes {ncclx.topology = #ncclx.topology<{
      nodes = [{name = "gpu0", kind = "gpu", rank = 0, gpu = "H200-SXM"},
               {name = "gpu1", kind = "gpu", rank = 1, gpu = "H200-SXM"} ],
      links = [{from = "gpu0", to = "gpu1", kind = "nvlink", count = 18, both_ways} ]}>} {}
    ```
  }];
  let parameters = (ins "::mlir::DictionaryAttr":$description);
  let assemblyFormat = "`<` $description `>`";
  let genVerifyDecl = 1;
}

//===--- Types ------------------------------------------------------------===//

def NCCLX_FutureType : TypeDef<NCCLX_Dialect, "Future"> {
  let mnemonic = "future";
  let summary = "The result of a collective that has been started";
  let description = [{
    `!ncclx.future<tensor<32x8xf32>>` is the promise of a tensor. Nothing can read the value but an
    `ncclx.await`. The second parameter is set by `ncclx-expand-futures` alone, where a future that a loop
    or a branch carries must carry the tensor it reads as well.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$value,
                        OptionalParameter<"::mlir::RankedTensorType">:$reads);
  let assemblyFormat = "`<` $value (`reads` $reads^)? `>`";
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$value), [{
    return $_get(value.getContext(), value, ::mlir::RankedTensorType());
  }]>];
}

// A constraint of its own, without a C++ class: the type is then printed with its full name.
def NCCLX_Future : Type<NCCLX_FutureType.predicate, "future">;

def NCCLX_WindowType : TypeDef<NCCLX_Dialect, "Window"> {
  let mnemonic = "window";
  let summary = "Memory of one shape on every member of a group, which the others may write";
  let description = [{
    `!ncclx.window<tensor<10x8xf32>>` names the memory and holds no value: what is in it is read by `ncclx.get`.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$value);
  let assemblyFormat = "`<` $value `>`";
  let genVerifyDecl = 1;
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$value), [{
    return $_get(value.getContext(), value);
  }]>];
}

def NCCLX_Window : Type<NCCLX_WindowType.predicate, "window">;

def NCCLX_TokenType : TypeDef<NCCLX_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "Stands for a collective in flight, below the level of futures";
}

def NCCLX_Data : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef]>;

#endif // NCCLX_NCCLX_NCCLXBASE_TD
