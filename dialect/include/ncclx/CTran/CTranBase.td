//===- CTranBase.td - The ctran dialect: types, attributes, enums ---------------===//
#ifndef NCCLX_CTRAN_BASE
#define NCCLX_CTRAN_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

def CTran_Dialect : Dialect {
  let name = "ctran";
  let cppNamespace = "::mlir::ctran";
  let summary = "Who communicates, when, with what: schedules that can be proved";
  let description = [{
    One `ctran.program` is one text for all ranks on a grid of cyclic axes. Its words are few: `copy`,
    `reduce`, `compute`, `signal`, `wait`, `flush`, `count`; memory is `window`s seen through index
    spaces; order is lanes, tokens and slots. The rules S1 to S35 are in `dialect/SPEC.md`.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

//===--- enums ------------------------------------------------------------------===//

def CTran_LaneKind : I32EnumAttr<"LaneKind", "kind of lane (S9)", [
    I32EnumAttrCase<"CE", 0, "ce">, I32EnumAttrCase<"Compute", 1, "compute">,
    I32EnumAttrCase<"SM", 2, "sm">, I32EnumAttrCase<"Host", 3, "host">,
    I32EnumAttrCase<"NIC", 4, "nic">]> {
  let cppNamespace = "::mlir::ctran";
  let genSpecializedAttr = 0;
}
def CTran_LaneKindAttr : EnumAttr<CTran_Dialect, CTran_LaneKind, "lane_kind">;

def CTran_Role : I32EnumAttr<"WindowRole", "what the caller does with a window (S22)", [
    I32EnumAttrCase<"Input", 0, "input">, I32EnumAttrCase<"Output", 1, "output">,
    I32EnumAttrCase<"Scratch", 2, "scratch">, I32EnumAttrCase<"InOut", 3, "inout">]> {
  let cppNamespace = "::mlir::ctran";
  let genSpecializedAttr = 0;
}
def CTran_RoleAttr : EnumAttr<CTran_Dialect, CTran_Role, "role">;

def CTran_PeerAccess : I32EnumAttr<"PeerAccess", "how peers reach a window (S5, S7)", [
    I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Put", 1, "put">,
    I32EnumAttrCase<"LoadStore", 2, "load_store">]> {
  let cppNamespace = "::mlir::ctran";
  let genSpecializedAttr = 0;
}
def CTran_PeerAccessAttr : EnumAttr<CTran_Dialect, CTran_PeerAccess, "peers">;

def CTran_Scope : I32EnumAttr<"SlotScope", "how far a signal is seen (S14)", [
    I32EnumAttrCase<"Block", 0, "block">, I32EnumAttrCase<"Device", 1, "device">,
    I32EnumAttrCase<"System", 2, "system">]> {
  let cppNamespace = "::mlir::ctran";
  let genSpecializedAttr = 0;
}
def CTran_ScopeAttr : EnumAttr<CTran_Dialect, CTran_Scope, "scope">;

def CTran_Realisation : I32EnumAttr<"Realisation", "how slots are made (S31 to S34)", [
    I32EnumAttrCase<"Counter", 0, "counter">, I32EnumAttrCase<"Inband", 1, "inband">,
    I32EnumAttrCase<"Consume", 2, "consume">, I32EnumAttrCase<"Event", 3, "event">]> {
  let cppNamespace = "::mlir::ctran";
  let genSpecializedAttr = 0;
}
def CTran_RealisationAttr : EnumAttr<CTran_Dialect, CTran_Realisation, "realisation">;

def CTran_Cut : I32EnumAttr<"Cut", "how a dimension cuts an extent (machine::Partition)", [
    I32EnumAttrCase<"Balanced", 0, "balanced">, I32EnumAttrCase<"Chunked", 1, "chunked">]> {
  let cppNamespace = "::mlir::ctran";
  let genSpecializedAttr = 0;
}
def CTran_CutAttr : EnumAttr<CTran_Dialect, CTran_Cut, "cut">;

def CTran_ReduceKind : I32EnumAttr<"ReduceKind", "how boxes are combined", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Min", 1, "min">,
    I32EnumAttrCase<"Max", 2, "max">, I32EnumAttrCase<"Prod", 3, "prod">]> {
  let cppNamespace = "::mlir::ctran";
  let genSpecializedAttr = 0;
}
def CTran_ReduceKindAttr : EnumAttr<CTran_Dialect, CTran_ReduceKind, "reduce_kind">;

//===--- types ------------------------------------------------------------------===//

class CTran_Type<string name, string mnemo> : TypeDef<CTran_Dialect, name> { let mnemonic = mnemo; }

def CTran_TokenType : CTran_Type<"Token", "token"> {
  let summary = "Local completion of an op, and nothing else (S10)";
}
def CTran_CoordType : CTran_Type<"Coord", "coord"> {
  let summary = "A coordinate of a rank on a cyclic axis (S1, S2)";
  let parameters = (ins StringRefParameter<"axis of the program's grid">:$axis);
  let assemblyFormat = "`<` $axis `>`";
}
def CTran_WindowType : CTran_Type<"Window", "window"> {
  let summary = "A window, seen through an index space, here or at a peer (S5, S7)";
}
def CTran_SlotsType : CTran_Type<"Slots", "slots"> { let summary = "An array of counters (S14)"; }
def CTran_RangeType : CTran_Type<"Range", "range"> { let summary = "A box of a window (S6)"; }
def CTran_SlotType : CTran_Type<"Slot", "slot"> { let summary = "One slot, or an interval of them"; }
def CTran_SizeType : CTran_Type<"Size", "size"> {
  let summary = "A number of elements known at run time (S25)";
}

//===--- attributes ---------------------------------------------------------------===//

class CTran_Attr<string name, string mnemo> : AttrDef<CTran_Dialect, name> { let mnemonic = mnemo; }

def CTran_DimAttr : CTran_Attr<"Dim", "dim"> {
  let summary = "A dimension of an index space";
  let description = [{
    Bound to a grid axis (`axis` names it, `size` is the axis's size) or free (`axis = ""`). `cut`
    says how the dimension divides the piece of the dimension before it, in multiples of `granule`
    units: see `machine::Partition`. In a list of dimensions it is written short: the axis and `=`
    when bound, the size, the cut when not `balanced`, the granule when not 1.

    ```mlir
    #ctran.dim<axis = "tp", size = 8, cut = chunked, granule = 1>   // alone
    ["tp" = 8 chunked, 4 granule 16]                                // in a list
    ```
  }];
  let parameters = (ins StringRefParameter<"axis, or empty">:$axis, "int64_t":$size,
                        "::mlir::ctran::Cut":$cut, "int64_t":$granule);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}
def CTran_DimArrayAttr : TypedArrayAttrBase<CTran_DimAttr, "array of index dimensions">;

def CTran_GridAxisAttr : CTran_Attr<"GridAxis", "axis"> {
  let summary = "A cyclic axis of a program's grid";
  let parameters = (ins StringRefParameter<"name">:$name, "int64_t":$size);
  let assemblyFormat = "`<` $name `=` $size `>`";
  let genVerifyDecl = 1;
}
def CTran_GridAttr : TypedArrayAttrBase<CTran_GridAxisAttr, "axes of the grid, the last fastest">;

def CTran_CollectiveAttr : CTran_Attr<"Collective", "collective"> {
  let summary = "A collective of the graph that this program carries out, for reports";
  let parameters = (ins StringRefParameter<"name">:$name, StringRefParameter<"kind">:$kind,
                        StringRefParameter<"algorithm">:$algorithm,
                        ArrayRefParameter<"::mlir::StringAttr", "axes">:$axes,
                        "int64_t":$bytes);
  let assemblyFormat = "`<` $name `,` $kind `,` $algorithm `,` custom<Axes>($axes) `,` $bytes `>`";
  let genVerifyDecl = 1;
}
def CTran_CollectiveArrayAttr : TypedArrayAttrBase<CTran_CollectiveAttr, "collectives">;

#endif
