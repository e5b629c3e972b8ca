//===- CTranOps.td - The words of a schedule --------------------------------------===//
#ifndef NCCLX_CTRAN_OPS
#define NCCLX_CTRAN_OPS

include "ncclx/CTran/CTranBase.td"
include "ncclx/CTran/CTranInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def CTran_Order : Resource<"::mlir::ctran::Order">;

class CTran_Op<string mnemonic, list<Trait> traits = []> : Op<CTran_Dialect, mnemonic, traits>;

//===--- structure ------------------------------------------------------------------===//

def CTran_ProgramOp : CTran_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "Hold one text that every rank of a grid executes";
  let description = [{
    The block's only argument is the entry token (S22); `ctran.return` takes the exit tokens.

    ```mlir
    ctran.program @ag grid ["x" = 8] {
    ^bb0(%entry: !ctran.token):
      ...
      ctran.return %done : !ctran.token
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$sym_visibility,
    CTran_GridAttr:$grid,
    DefaultValuedAttr<CTran_CollectiveArrayAttr, "{}">:$collectives,
    UnitAttr:$rx_visible);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `grid` custom<Grid>($grid) (`rx_visible` $rx_visible^)? (`collectives` $collectives^)?
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getEntry() { return getBody().front().getArgument(0); }
    /// Number of ranks: the product of the axes.
    int64_t getNumRanks();
    /// Position of `axis` in the grid, or nothing.
    std::optional<unsigned> getAxisIndex(::llvm::StringRef axis);
    int64_t getAxisSize(unsigned axis);
  }];
}

def CTran_ReturnOp : CTran_Op<"return", [Terminator, HasParent<"ProgramOp">]> {
  let summary = "End the program: results are ready and sources reusable after these tokens";
  let arguments = (ins Variadic<CTran_TokenType>:$exits);
  let assemblyFormat = "($exits^ `:` type($exits))? attr-dict";
}

def CTran_CoordOp : CTran_Op<"coord", [Pure,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Take the own coordinate on an axis";
  let description = [{
    ```mlir
    %x = ctran.coord "x"
    ```
  }];
  let arguments = (ins StrAttr:$axis);
  let results = (outs CTran_CoordType:$result);
  let assemblyFormat = "$axis attr-dict";
  let hasVerifier = 1;
}

def CTran_ShiftOp : CTran_Op<"shift", [Pure, AllTypesMatch<["coord", "result"]>]> {
  let summary = "Move along a cyclic axis: the only symmetric use of a coordinate (S2)";
  let description = [{
    The amount is taken modulo the size of the axis and may be negative.

    ```mlir
    %right = ctran.shift %x by %c1 : !ctran.coord<"x">
    ```
  }];
  let arguments = (ins CTran_CoordType:$coord, Index:$amount);
  let results = (outs CTran_CoordType:$result);
  let assemblyFormat = "$coord `by` $amount attr-dict `:` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def CTran_CoordValueOp : CTran_Op<"coord_value", [Pure]> {
  let summary = "Read a coordinate as a number, which makes the program asymmetric (S2)";
  let arguments = (ins CTran_CoordType:$coord);
  let results = (outs Index:$result);
  let assemblyFormat = "$coord attr-dict `:` type($coord)";
}

def CTran_TableOp : CTran_Op<"table", [Pure]> {
  let summary = "Look a number up by coordinate, which makes the program asymmetric";
  let arguments = (ins CTran_CoordType:$coord, DenseI64ArrayAttr:$values);
  let results = (outs Index:$result);
  let assemblyFormat = "$coord $values attr-dict `:` type($coord)";
  let hasVerifier = 1;
}

//===--- memory ---------------------------------------------------------------------===//

def CTran_WindowOp : CTran_Op<"window", [HasParent<"ProgramOp">,
    MemoryEffects<[MemWrite<CTran_Order>]>]> {
  let summary = "Declare memory that every rank has (S5)";
  let description = [{
    `type` is the static memref that the memory holds, row-major. An input or output has the
    caller's position in `index`; an `inout`, which the caller writes before the run and reads after
    it, is numbered among the inputs. `generations` copies of it rotate by run number.

    ```mlir
    %in = ctran.window "x" input 0 : memref<4x8xf32>
    %tmp = ctran.window "c0.tmp" scratch generations 2 peers put : memref<128xf32>
    ```
  }];
  let arguments = (ins StrAttr:$sym, CTran_RoleAttr:$role, OptionalAttr<I64Attr>:$index,
    DefaultValuedAttr<I64Attr, "1">:$generations,
    DefaultValuedAttr<CTran_PeerAccessAttr, "::mlir::ctran::PeerAccess::None">:$peers,
    TypeAttrOf<AnyMemRef>:$type);
  let results = (outs CTran_WindowType:$result);
  let assemblyFormat = [{
    $sym `` $role ($index^)? (`generations` $generations^)? (`peers` `` $peers^)? attr-dict `:` $type
  }];
  let hasVerifier = 1;
}

def CTran_ReindexOp : CTran_Op<"reindex", [Pure]> {
  let summary = "See a window through another index space";
  let description = [{
    `dims` cut the tensor dimension `along` of the window's type, or without `along` its elements in
    row-major order. `resident`: only the own piece of the first dimension is stored, at the start of
    the window (the shard of a tensor that a group holds together), and `extent` is the full size
    of the dimension that is cut; without `resident`, `extent` is the window's own.

    ```mlir
    %o = ctran.reindex %out along 0 ["x" = 8 chunked]
    ```
  }];
  let arguments = (ins CTran_WindowType:$window, OptionalAttr<I64Attr>:$along,
    CTran_DimArrayAttr:$dims, UnitAttr:$resident, OptionalAttr<I64Attr>:$extent);
  let results = (outs CTran_WindowType:$result);
  let assemblyFormat = [{
    $window (`along` $along^)? custom<Dims>($dims) (`resident` $resident^)? (`extent` $extent^)? attr-dict
  }];
  let hasVerifier = 1;
}

def CTran_SlotsOp : CTran_Op<"slots", [HasParent<"ProgramOp">,
    MemoryEffects<[MemWrite<CTran_Order>]>]> {
  let summary = "Declare monotone 64-bit counters (S14)";
  let description = [{
    `dims` is the index space (empty: one counter); `per_run` is K, the number of signals each slot
    receives in one run, which every wait value counts in (S15); the prover checks it. `credits` makes
    a queue of them: a wait for k holds when all but the last `credits` of the first k signals of this
    run are there, so that as many may be on their way.

    ```mlir
    %data = ctran.slots "c0.data" ["x" = 8] per_run 1
    ```
  }];
  let arguments = (ins StrAttr:$sym, CTran_DimArrayAttr:$dims, I64Attr:$per_run,
    DefaultValuedAttr<I64Attr, "1">:$writers,
    DefaultValuedAttr<I64Attr, "1">:$generations,
    DefaultValuedAttr<I64Attr, "0">:$credits,
    DefaultValuedAttr<CTran_ScopeAttr, "::mlir::ctran::SlotScope::System">:$scope,
    DefaultValuedAttr<CTran_RealisationAttr, "::mlir::ctran::Realisation::Counter">:$realisation);
  let results = (outs CTran_SlotsType:$result);
  let assemblyFormat = [{
    $sym custom<Dims>($dims) `per_run` $per_run (`writers` $writers^)? (`generations` $generations^)?
    (`credits` $credits^)? (`scope` `` $scope^)? (`realisation` `` $realisation^)? attr-dict
  }];
  let hasVerifier = 1;
}

def CTran_PeerViewOp : CTran_Op<"peer_view", [Pure, AttrSizedOperandSegments,
    AllTypesMatch<["memory", "result"]>]> {
  let summary = "See a window or slots in another rank's memory (S7)";
  let description = [{
    Either one coordinate for each axis of the grid, in its order, or `rank` with a rank number,
    which makes the program asymmetric.

    ```mlir
    %w = ctran.peer_view %out at (%px : "x", %y : "y") : !ctran.window
    %r = ctran.peer_view %out at rank %n : !ctran.window
    ```
  }];
  let arguments = (ins AnyTypeOf<[CTran_WindowType, CTran_SlotsType]>:$memory,
    Variadic<CTran_CoordType>:$point, Optional<Index>:$rank);
  let results = (outs AnyTypeOf<[CTran_WindowType, CTran_SlotsType]>:$result);
  let assemblyFormat = [{
    $memory `at` custom<Point>($point, type($point), $rank) attr-dict `:` type($memory)
  }];
  let hasVerifier = 1;
}

def CTran_MembersOp : CTran_Op<"members", [Pure, AllTypesMatch<["window", "result"]>]> {
  let summary = "See a window in the memory of all members of a group at once, through a switch";
  let description = [{
    The members are the ranks that agree on all axes but these, the own one among them. A box of such
    a view is the same place in the memory of each. A copy to it is a multicast, and a reduction of
    it combines the members' boxes on their way (S35); nothing else takes one.

    ```mlir
    %all = ctran.members %in along ["x"]
    %mine = ctran.range %all[%x : "x"]
    %t = ctran.reduce sum accumulate f32 %mine into %own after %ready on sm
    ```
  }];
  let arguments = (ins CTran_WindowType:$window, StrArrayAttr:$axes);
  let results = (outs CTran_WindowType:$result);
  let assemblyFormat = "$window `along` $axes attr-dict";
  let hasVerifier = 1;
}

def CTran_RangeOp : CTran_Op<"range", [Pure, AttrSizedOperandSegments]> {
  let summary = "Name a box of a window: a prefix of its index space, or an interval (S6)";
  let description = [{
    ```mlir
    %all = ctran.range %out
    %mine = ctran.range %out[%x : "x", %j]
    %some = ctran.range %tmp from %lo size %n
    %part = ctran.range %out[%x : "x"] sized %count
    ```
    A coordinate names its axis; a number stands alone. An interval that starts at a coordinate is
    one place, or the whole axis.
  }];
  let arguments = (ins CTran_WindowType:$window,
    Variadic<AnyTypeOf<[Index, CTran_CoordType]>>:$indices,
    Optional<AnyTypeOf<[Index, CTran_CoordType]>>:$first, Optional<Index>:$count,
    Optional<CTran_SizeType>:$size);
  let results = (outs CTran_RangeType:$result);
  let assemblyFormat = [{
    $window `` custom<Indices>($indices, type($indices))
    `` custom<Interval>($first, type($first), $count) (`sized` $size^)? attr-dict
  }];
  let hasVerifier = 1;
}

def CTran_SlotOp : CTran_Op<"slot", [Pure, AttrSizedOperandSegments]> {
  let summary = "Name one slot, or an interval of slots for a wait";
  let description = [{
    ```mlir
    %s = ctran.slot %data[%x : "x"]
    %all = ctran.slot %data from %zero size %n
    ```
    Fewer indices than dimensions name all slots below, for a wait.
  }];
  let arguments = (ins CTran_SlotsType:$slots,
    Variadic<AnyTypeOf<[Index, CTran_CoordType]>>:$indices,
    Optional<AnyTypeOf<[Index, CTran_CoordType]>>:$first, Optional<Index>:$count);
  let results = (outs CTran_SlotType:$result);
  let assemblyFormat = [{
    $slots `` custom<Indices>($indices, type($indices))
    `` custom<Interval>($first, type($first), $count) attr-dict
  }];
  let hasVerifier = 1;
}

//===--- execution -------------------------------------------------------------------===//

/// An op that a lane executes. `of` names the collective that it belongs to, `note` says in a word
/// what it is for; both are for people (witnesses, traces, reports).
class CTran_LaneOp<string mnemonic, list<Trait> traits = []> : CTran_Op<mnemonic, traits # [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<CTran_ScheduleOpInterface, ["getAccesses", "getTouchedSlot",
      "getAfterTokens", "getDoneToken", "getLaneKind", "getLaneIndexValue"]>]> {
  let results = (outs CTran_TokenType:$done);
  let hasVerifier = 1;
}

def CTran_CopyOp : CTran_LaneOp<"copy"> {
  let summary = "Copy a box to one or several places, and notify where it lands";
  let description = [{
    A destination in a peer's view makes a put, a source in one makes a get. `notify` raises a slot
    when this copy has landed (S18).

    ```mlir
    %t = ctran.copy %src to %dst notify %slot after %a, %b on nic {of = "c0", note = "put"}
    ```
  }];
  let arguments = (ins CTran_RangeType:$source, Variadic<CTran_RangeType>:$dests,
    Optional<CTran_SlotType>:$notify, Variadic<CTran_TokenType>:$after,
    CTran_LaneKindAttr:$lane, Optional<Index>:$lane_index,
    OptionalAttr<StrAttr>:$of, OptionalAttr<StrAttr>:$note);
  let assemblyFormat = [{
    $source `to` $dests (`notify` $notify^)? (`after` $after^)? `on` `` $lane (`` `[` $lane_index^ `]`)? attr-dict
  }];
}

def CTran_ReduceOp : CTran_LaneOp<"reduce"> {
  let summary = "Combine boxes, in the order given, into one or several places";
  let description = [{
    An interval as a source stands for the boxes of the last dimension in it, in ascending order.
    Operands are converted to `accumulate` once, multiplied by `scale` (if any; rounded), combined
    from left to right, divided by `divide` (if any; rounded, integers towards zero), and rounded to
    the element type once at the end. A destination may be one of the sources.

    ```mlir
    %t = ctran.reduce sum accumulate f32 %a, %b into %a after %w on sm
    %u = ctran.reduce sum scale 5.000000e-01 divide 8 accumulate f32 %a into %b after %w on sm
    ```
  }];
  let arguments = (ins CTran_ReduceKindAttr:$kind, OptionalAttr<F64Attr>:$scale, // reduce C4
    OptionalAttr<I64Attr>:$divide, TypeAttr:$accumulate,                         // reduce C5
    Variadic<CTran_RangeType>:$sources, Variadic<CTran_RangeType>:$dests,
    Optional<CTran_SlotType>:$notify, Variadic<CTran_TokenType>:$after,
    CTran_LaneKindAttr:$lane, Optional<Index>:$lane_index,
    OptionalAttr<StrAttr>:$of, OptionalAttr<StrAttr>:$note);
  let assemblyFormat = [{
    `` $kind (`scale` $scale^)? (`divide` $divide^)? `accumulate` $accumulate $sources `into` $dests (`notify` $notify^)? (`after` $after^)?
    `on` `` $lane (`` `[` $lane_index^ `]`)? attr-dict
  }];
}

def CTran_ComputeOp : CTran_LaneOp<"compute", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Call a kernel on windows, with what it reads, writes and costs declared";
  let description = [{
    `callee` is a function of this module over static memrefs, one for each window of `args`.

    ```mlir
    %t = ctran.compute @gemm0(%a, %w, %c) reads %ra, %rw writes %rc after %g on compute
           flops 1.0e9 bytes 4.0e6 sms 132
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<CTran_WindowType>:$args,
    Variadic<CTran_RangeType>:$reads, Variadic<CTran_RangeType>:$writes,
    Variadic<CTran_TokenType>:$after, CTran_LaneKindAttr:$lane, Optional<Index>:$lane_index,
    F64Attr:$flops, F64Attr:$bytes, I64Attr:$sms,
    OptionalAttr<StrAttr>:$of, OptionalAttr<StrAttr>:$note);
  let assemblyFormat = [{
    $callee `` `(` $args `)` (`reads` $reads^)? (`writes` $writes^)? (`after` $after^)?
    `on` `` $lane (`` `[` $lane_index^ `]`)? `flops` $flops `bytes` $bytes `sms` $sms attr-dict
  }];
}

def CTran_SignalOp : CTran_LaneOp<"signal"> {
  let summary = "Raise a slot by one";
  let arguments = (ins CTran_SlotType:$slot, Variadic<CTran_TokenType>:$after,
    CTran_LaneKindAttr:$lane, Optional<Index>:$lane_index,
    OptionalAttr<StrAttr>:$of, OptionalAttr<StrAttr>:$note);
  let assemblyFormat = "$slot (`after` $after^)? `on` `` $lane (`` `[` $lane_index^ `]`)? attr-dict";
}

def CTran_WaitOp : CTran_LaneOp<"wait"> {
  let summary = "Wait until a slot, or every slot of an interval, has reached a value";
  let description = [{
    `value` counts from the start of this run; a value of 0 or less holds at once (S14, S15). A wait
    for k acquires exactly the first k signals (S16).
  }];
  let arguments = (ins CTran_SlotType:$slot, Index:$value, Variadic<CTran_TokenType>:$after,
    CTran_LaneKindAttr:$lane, Optional<Index>:$lane_index,
    OptionalAttr<StrAttr>:$of, OptionalAttr<StrAttr>:$note);
  let assemblyFormat = [{
    $slot ` ` `>` `` `=` $value (`after` $after^)? `on` `` $lane (`` `[` $lane_index^ `]`)? attr-dict
  }];
}

def CTran_FlushOp : CTran_LaneOp<"flush"> {
  let summary = "Make the landings this lane has awaited visible to every agent of the rank (S21)";
  let arguments = (ins Variadic<CTran_TokenType>:$after, CTran_LaneKindAttr:$lane,
    Optional<Index>:$lane_index, OptionalAttr<StrAttr>:$of, OptionalAttr<StrAttr>:$note);
  let assemblyFormat = "(`after` $after^)? `on` `` $lane (`` `[` $lane_index^ `]`)? attr-dict";
}

def CTran_CountOp : CTran_LaneOp<"count"> {
  let summary = "Read a size known at run time (S25)";
  let arguments = (ins CTran_RangeType:$source, I64Attr:$max, Variadic<CTran_TokenType>:$after,
    CTran_LaneKindAttr:$lane, Optional<Index>:$lane_index,
    OptionalAttr<StrAttr>:$of, OptionalAttr<StrAttr>:$note);
  let results = (outs CTran_SizeType:$size, CTran_TokenType:$done);
  let assemblyFormat = "$source `max` $max (`after` $after^)? `on` `` $lane (`` `[` $lane_index^ `]`)? attr-dict";
}

//===--- what a box is said to hold (proof only) ---------------------------------------===//

class CTran_LabelOp<string mnemonic, dag how, string words> : CTran_LaneOp<mnemonic> {
  let arguments = !con((ins StrAttr:$value, Variadic<AnyTypeOf<[Index, CTran_CoordType]>>:$indices,
    DefaultValuedAttr<StrArrayAttr, "{}">:$summed), how,
    (ins DefaultValuedAttr<StrArrayAttr, "{}">:$shared, CTran_RangeType:$range,
    Variadic<CTran_TokenType>:$after, CTran_LaneKindAttr:$lane, Optional<Index>:$lane_index,
    OptionalAttr<StrAttr>:$of, OptionalAttr<StrAttr>:$note));
  let assemblyFormat = [{
    $range `holds` $value `` custom<Indices>($indices, type($indices)) (`summed` $summed^)?
  }] # words # [{ (`shared` $shared^)?
    (`after` $after^)? `on` `` $lane (`` `[` $lane_index^ `]`)? attr-dict
  }];
}
def CTran_SourceOp : CTran_LabelOp<"source", (ins), ""> {
  let summary = "Say what a box holds from here on (proof only; no code)";
  let description = [{
    The box holds `value[indices]`, a piece of a global array whose leading dimensions are the axes
    that nothing of `indices`, `summed`, `shared` and the box's inner dimensions mentions, at the own
    coordinates. With `summed` it is this rank's contribution to a sum over those axes; along the
    `shared` axes every rank means the same value (S8).

    ```mlir
    %t = ctran.source %mine holds "c0"[%x : "x"] after %entry on host
    ```
  }];
}
def CTran_SinkOp : CTran_LabelOp<"sink", (ins OptionalAttr<DenseI64ArrayAttr>:$among, // label C5
    OptionalAttr<CTran_ReduceKindAttr>:$kind,                                           // label C4
    OptionalAttr<F64Attr>:$scale, OptionalAttr<I64Attr>:$divide),                       // label C4
    "(`among` $among^)? (`by` `` $kind^)? (`scale` $scale^)? (`divide` $divide^)?"> {
  let summary = "Demand that a box holds a value (proof only; no code)";
  let description = [{
    The prover refuses the program unless the box holds `value[indices]` here, with the contribution
    of each rank along the `summed` axes exactly once (S8), or, where these are all axes, of each rank
    `among` those listed; combined `by` the kind given, each
    scaled and the whole divided as it says; without `by`, in any one way.

    ```mlir
    %t = ctran.sink %out holds "c0" summed ["x"] by sum divide 8 after %done on host
    ```
  }];
}

#endif
