//===- NCCLXOps.td - The ops of the ncclx dialect -------------------------===//

#ifndef NCCLX_NCCLX_NCCLXOPS_TD
#define NCCLX_NCCLX_NCCLXOPS_TD

include "ncclx/NCCLX/NCCLXBase.td"
include "ncclx/NCCLX/NCCLXInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ViewLikeInterface.td"

def NCCLX_Effects : DeclareOpInterfaceMethods<MemoryEffectsOpInterface>;
def NCCLX_SymbolUser : DeclareOpInterfaceMethods<SymbolUserOpInterface>;

//===--- Grid -------------------------------------------------------------===//

def NCCLX_GridOp : NCCLX_Op<"grid", [Symbol]> {
  let summary = "Name the ranks by their coordinates on named axes";
  let description = [{
    Ranks are numbered row-major over the axes: on `["dp" = 2, "tp" = 4]` rank 5 is dp 1, tp 1.

    ```mlir
    ncclx.grid @g ["dp" = 2, "tp" = 4]
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    StrArrayAttr:$axes,          // grid C1, C2
    DenseI64ArrayAttr:$sizes,    // grid C3, C4, C5
    OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = "$sym_name custom<GridAxes>($axes, $sizes) attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The number of ranks: the product of all axes.
    int64_t getNumRanks();
    /// The size of the axis, or nothing if the grid has no such axis.
    std::optional<int64_t> getAxisSize(::llvm::StringRef axis);
    /// The number of members of a group over `axes`, which the grid must have.
    int64_t getGroupSize(::mlir::ArrayAttr axes);
    /// The ranks of the group that `rank` belongs to, in member order: the one over `axes`, or,
    /// where there are `groups`, the one of these.
    ::llvm::SmallVector<int64_t> getGroup(::mlir::ArrayAttr axes, int64_t rank,
                                          ::mlir::ArrayAttr groups = {});
    /// Each group, once.
    ::llvm::SmallVector<::llvm::SmallVector<int64_t>> getGroups(::mlir::ArrayAttr axes,
                                                                ::mlir::ArrayAttr groups = {});
  }];
}

//===--- Collectives ------------------------------------------------------===//

// The collectives differ in `params`, in `words`, the middle of their syntax, and in their dataflow,
// from which their rules, their meaning and their lowering follow.
class NCCLX_CollectiveOp<string mnemonic, dag params, string words, list<Trait> traits = []>
    : NCCLX_Op<mnemonic, traits # [AttrSizedResultSegments, NCCLX_Effects, NCCLX_SymbolUser,
        DeclareOpInterfaceMethods<NCCLX_CollectiveOpInterface>]> {
  let arguments = !con((ins NCCLX_Data:$input), params, // collective C1, C2
    (ins FlatSymbolRefAttr:$grid,                       // collective C7
         StrArrayAttr:$axes,                            // collective C6, C7
         OptionalAttr<NCCLX_GroupsAttr>:$groups,        // collective C9
         Optional<NCCLX_Data>:$dest,                    // collective C3, C4, C8
         OptionalAttr<NCCLX_AlgorithmAttr>:$algorithm));
  let results = (outs Optional<AnyRankedTensor>:$result, Optional<NCCLX_TokenType>:$token); // collective C3, C5
  let assemblyFormat = "$input " # words # [{
    `over` $grid `` custom<Group>($axes, $groups) (`algorithm` `` $algorithm^)?
    (`into` `(` $dest^ `:` type($dest) `)`)?
    `` custom<Async>(type($token)) attr-dict `:` type($input) (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDefinition = [{
    void $cppClass::getEffects(
        ::llvm::SmallVectorImpl<::mlir::MemoryEffects::EffectInstance> &effects) {
      getCollectiveEffects(*this, effects);
    }
    ::llvm::LogicalResult $cppClass::verify() { return verifyCollective(*this); }
    ::llvm::LogicalResult $cppClass::verifySymbolUses(::mlir::SymbolTableCollection &tables) {
      return verifyCollectiveSymbols(*this, tables);
    }
  }];
}

// Kind, accumulation type and order are always written: there is no default. (An enum attribute prints a space
// before itself: hence the empty literals.)
defvar NCCLX_reductionParams = (ins
  NCCLX_ReductionKindAttr:$kind, OptionalAttr<F64Attr>:$scale,       // reduction C2
  TypeAttr:$accumulate, NCCLX_ReductionOrderAttr:$order);            // reduction C1
defvar NCCLX_reductionWords = "`` $kind (`scale` $scale^)? `accumulate` $accumulate `order` `` $order ";
// The root's coordinates on the listed axes; of listed groups the member's number.
defvar NCCLX_rootParams = (ins DenseI64ArrayAttr:$root);             // root C1
defvar NCCLX_rootWords = "`root` $root ";

def NCCLX_AllGatherOp : NCCLX_CollectiveOp<"all_gather", (ins I64Attr:$dim), "`dim` $dim "> {
  let summary = "Gather the slices of all members on every member";
  let description = [{
    The slices stand one after the other in `dim`, in member order.

    ```mlir
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<32x8xf32>
    ```
    ```
    member 0: [a]             [a b c]
    member 1: [b]      ->     [a b c]
    member 2: [c]             [a b c]
    ```
    The size N need not be a multiple of the n members: each contributes c = ceil(N/n) rows, of which member
    r's are rows [r*c, min((r+1)*c, N)) of the result; rows behind those are padding and not read.
  }];
}

def NCCLX_ReduceScatterOp : NCCLX_CollectiveOp<"reduce_scatter",
    !con((ins I64Attr:$dim), NCCLX_reductionParams), !strconcat("`dim` $dim ", NCCLX_reductionWords)> {
  let summary = "Reduce the inputs of all members and give each member a slice";
  let description = [{
    ```mlir
    %r = ncclx.reduce_scatter %a dim 0 sum accumulate f32 order any over @g["tp"]
         : tensor<32x8xbf16> -> tensor<4x8xbf16>
    ```
    ```
    member 0: [a0 a1 a2]             [a0+b0+c0]
    member 1: [b0 b1 b2]      ->     [a1+b1+c1]
    member 2: [c0 c1 c2]             [a2+b2+c2]
    ```
    Uneven sizes are cut as in `all_gather`; padding rows of the result are unspecified. The order of
    reduction is part of the meaning: see `order` in SPEC.md.
  }];
}

def NCCLX_AllReduceOp : NCCLX_CollectiveOp<"all_reduce", NCCLX_reductionParams, NCCLX_reductionWords> {
  let summary = "Reduce the inputs of all members on every member";
  let description = [{
    ```mlir
    %r = ncclx.all_reduce %a sum accumulate f32 order rank over @g["dp"] : tensor<7xf32> -> tensor<7xf32>
    ```
    ```
    member 0: [a]             [a+b+c]
    member 1: [b]      ->     [a+b+c]
    member 2: [c]             [a+b+c]
    ```
    The destination may be the input itself. All members get the same bits.
  }];
}

def NCCLX_AllToAllOp : NCCLX_CollectiveOp<"all_to_all", (ins I64Attr:$split, I64Attr:$concat),
    "`split` $split `concat` $concat "> {
  let summary = "Send a different slice to each member";
  let description = [{
    The input is cut into n equal slices in dimension `split`; member i's slice j goes to member j, which
    puts it at place i in dimension `concat`.

    ```mlir
    %r = ncclx.all_to_all %a split 1 concat 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x2xf32>
    ```
    ```
    member 0: [a0 a1 a2]             [a0 b0 c0]
    member 1: [b0 b1 b2]      ->     [a1 b1 c1]
    member 2: [c0 c1 c2]             [a2 b2 c2]
    ```
  }];
}

def NCCLX_PermuteOp : NCCLX_CollectiveOp<"permute",
    (ins OptionalAttr<I64Attr>:$shift,               // permute C1
         OptionalAttr<DenseI64ArrayAttr>:$pairs),    // permute C1, C2, C3
    "custom<PermuteMap>($shift, $pairs) "> {
  let summary = "Send the whole input to one other member";
  let description = [{
    `shift k`: member i sends to member (i + k) mod n. `pairs`: the sends are listed as source -> target; a
    member that is no source sends nothing, one that is no target receives zeros.

    ```mlir
    %r = ncclx.permute %a shift -1 over @g["pp"] : tensor<4xf32> -> tensor<4xf32>
    %s = ncclx.permute %a pairs [0 -> 1, 1 -> 2] over @g["pp"] : tensor<4xf32> -> tensor<4xf32>
    ```
    ```
    member 0: [a]                                [0]
    member 1: [b]      pairs [0 -> 1, 1 -> 2]    [a]
    member 2: [c]                                [b]
    ```
  }];
  let extraClassDeclaration = [{
    /// The member that `member` receives from in a group of `numMembers`, or nothing (it gets zeros).
    std::optional<int64_t> getSource(int64_t member, int64_t numMembers);
    /// The member that `member` sends to in a group of `numMembers`, or nothing.
    std::optional<int64_t> getTarget(int64_t member, int64_t numMembers);
  }];
}

def NCCLX_AllToAllVOp : NCCLX_CollectiveOp<"all_to_all_v",
    (ins I64Attr:$dim, OptionalAttr<I64ElementsAttr>:$counts, // all_to_all_v C1, C2, C5
         Optional<NCCLX_Data>:$sizes),                        // all_to_all_v C5, C6
    "`dim` $dim (`counts` $counts^)? (`sizes` $sizes^ `:` type($sizes))? ", [AttrSizedOperandSegments]> {
  let summary = "Send a different number of rows to each member";
  let description = [{
    Member i sends `counts[i][j]` rows of `dim` to member j. In the input they stand in the order of the
    receivers, in the result in the order of the senders, without gaps. Rows behind the last are not read in an
    input, and zeros in a result.

    ```mlir
    %r = ncclx.all_to_all_v %a dim 0 counts dense<[[1, 0], [2, 3]]> : tensor<2x2xi64> over @g["ep"]
         : tensor<5x8xf32> -> tensor<3x8xf32>
    ```
    ```
    member 0: [a0 . . . .]              [a0 b0 b1]
    member 1: [b0 b1 b2 b3 b4]    ->    [b2 b3 b4]
    ```
    With `sizes` the counts are known at run time only: `sizes[j]` rows go to member j. Their maximum is declared by
    the shapes: input and result are cut into n blocks of N/n rows. Rows for member j are the first of block j of
    the input, rows from member i the first of block i of the result. What a member receives from each is the
    `all_to_all` of the sizes. A size below 0 or above N/n is an error at run time, on every rank.

    ```mlir
    %s = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<2xi64> over @g["ep"] : tensor<4x8xf32> -> tensor<4x8xf32>
    ```
    ```
    member 0: [a0 . | a1 a2]   sizes [1, 2]          [a0 0 | b0 0]
    member 1: [b0 . | . .  ]   sizes [1, 0]    ->    [a1 a2 | 0 0]
    ```
  }];
}

def NCCLX_BroadcastOp : NCCLX_CollectiveOp<"broadcast", NCCLX_rootParams, NCCLX_rootWords> {
  let summary = "Send the root's input to every member";
  let description = [{
    The root is named by its coordinates on the listed axes. The inputs of the others go nowhere.

    ```mlir
    %r = ncclx.broadcast %a root [1] over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ```
    ```
    member 0: [a]             [b]
    member 1: [b]      ->     [b]
    member 2: [c]             [b]
    ```
  }];
}

def NCCLX_ReduceOp : NCCLX_CollectiveOp<"reduce", !con(NCCLX_rootParams, NCCLX_reductionParams),
    !strconcat(NCCLX_rootWords, NCCLX_reductionWords)> {
  let summary = "Reduce the inputs of all members on the root";
  let description = [{
    The others get zeros.

    ```mlir
    %r = ncclx.reduce %a root [1] sum accumulate f32 order any over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ```
    ```
    member 0: [a]             [0]
    member 1: [b]      ->     [a+b+c]
    member 2: [c]             [0]
    ```
  }];
}

def NCCLX_GatherOp : NCCLX_CollectiveOp<"gather", !con((ins I64Attr:$dim), NCCLX_rootParams),
    !strconcat("`dim` $dim ", NCCLX_rootWords)> {
  let summary = "Gather the slices of all members on the root";
  let description = [{
    The slices are those of `all_gather`; the others get zeros.

    ```mlir
    %r = ncclx.gather %a dim 0 root [1] over @g["tp"] : tensor<4x8xf32> -> tensor<12x8xf32>
    ```
    ```
    member 0: [a]             [0 0 0]
    member 1: [b]      ->     [a b c]
    member 2: [c]             [0 0 0]
    ```
  }];
}

def NCCLX_ScatterOp : NCCLX_CollectiveOp<"scatter", !con((ins I64Attr:$dim), NCCLX_rootParams),
    !strconcat("`dim` $dim ", NCCLX_rootWords)> {
  let summary = "Give each member its slice of the root's input";
  let description = [{
    The slices are those of `reduce_scatter`. The inputs of the others go nowhere.

    ```mlir
    %r = ncclx.scatter %a dim 0 root [1] over @g["tp"] : tensor<12x8xf32> -> tensor<4x8xf32>
    ```
    ```
    member 0: [a0 a1 a2]             [b0]
    member 1: [b0 b1 b2]      ->     [b1]
    member 2: [c0 c1 c2]             [b2]
    ```
  }];
}

def NCCLX_BarrierOp : NCCLX_Op<"barrier", [NCCLX_Effects, NCCLX_SymbolUser]> {
  let summary = "Wait until every member has come here";
  let description = [{
    No data moves. What a member did before it has happened before anything that another does behind it.

    ```mlir
    ncclx.barrier over @g["tp"]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$grid, StrArrayAttr:$axes,
    OptionalAttr<NCCLX_GroupsAttr>:$groups); // barrier C1
  let assemblyFormat = "`over` $grid `` custom<Group>($axes, $groups) attr-dict";
  let hasVerifier = 1;
}

//===--- What is the same on all ranks -------------------------------------===//

def NCCLX_AssumeUniformOp : NCCLX_Op<"assume_uniform", [NCCLX_Effects, AllTypesMatch<["value", "result"]>]> {
  let summary = "Take a value for the same on all ranks, and check that when it is run";
  let description = [{
    The result is the operand, and uniform. All ranks of the run meet and compare their bits; where two differ the job
    ends with an error that names the ranks, this op and the values.

    ```mlir
    %n = ncclx.assume_uniform %m : index
    ```
  }];
  let arguments = (ins AnyType:$value); // assume_uniform C1
  let results = (outs AnyType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

//===--- One-sided, on windows ----------------------------------------------===//

def NCCLX_WindowOp : NCCLX_Op<"window", [NCCLX_Effects, NCCLX_SymbolUser]> {
  let summary = "Make memory that the members of a group write into and read";
  let description = [{
    Every member has memory of the type's shape, which holds `init` or nothing defined. The window may be written by
    others as soon as they have come here, too.

    ```mlir
    %w = ncclx.window over @g["x"] init(%a : tensor<10x8xf32>) : !ncclx.window<tensor<10x8xf32>>
    ```
  }];
  let arguments = (ins
    FlatSymbolRefAttr:$grid, StrArrayAttr:$axes,
    OptionalAttr<NCCLX_GroupsAttr>:$groups, // window C2
    Optional<NCCLX_Data>:$init);            // window C3
  let results = (outs NCCLX_Window:$window);
  let assemblyFormat = [{
    `over` $grid `` custom<Group>($axes, $groups) (`init` `(` $init^ `:` type($init) `)`)? attr-dict
    `:` type($window)
  }];
  let hasVerifier = 1;
}

// What the ops on a window name: the peer of each member, and where the box begins.
defvar NCCLX_peerParams = (ins OptionalAttr<I64Attr>:$shift, // peer C1
  OptionalAttr<DenseI64ArrayAttr>:$pairs);                   // peer C1, C2, C3
defvar NCCLX_boxParams = (ins Variadic<Index>:$offsets, DenseI64ArrayAttr:$static_offsets); // box C1, C2

def NCCLX_PutOp : NCCLX_Op<"put", [NCCLX_Effects]> {
  let summary = "Write a tensor into a box of a peer's window";
  let description = [{
    The peer of member i is (i + k) mod n by `shift k`, or its partner in `pairs [i -> peer]`; a member without one
    writes nothing. Without either it is the own window that is written. The box begins at the offsets and has the shape of
    the source. The peer may read it behind a wait for a signal that came after the put.

    ```mlir
    ncclx.put %row into %w[9, 0] shift -1 : tensor<1x8xf32> into !ncclx.window<tensor<10x8xf32>>
    ```
  }];
  let arguments = !con((ins NCCLX_Data:$source, NCCLX_Window:$window), NCCLX_boxParams, NCCLX_peerParams);
  let assemblyFormat = [{
    $source `into` $window `` custom<DynamicIndexList>($offsets, $static_offsets)
    `` custom<PeerMap>($shift, $pairs) attr-dict `:` type($source) `into` type($window)
  }];
  let hasVerifier = 1;
}

def NCCLX_GetOp : NCCLX_Op<"get", [AttrSizedOperandSegments, NCCLX_Effects]> {
  let summary = "Read a box of the own window, or of a peer's";
  let description = [{
    The box begins at the offsets and has the shape of the result. Peers are named as in `ncclx.put`; a member without one
    gets zeros. What a peer's window holds is what the peer itself would read at this place: it answers with a permute
    (`ncclx-answer-gets`).

    ```mlir
    %r = ncclx.get %w[9, 0] : !ncclx.window<tensor<10x8xf32>> -> tensor<1x8xf32>
    %s = ncclx.get %w[9, 0] shift 1 : !ncclx.window<tensor<10x8xf32>> -> tensor<1x8xf32>
    ```
  }];
  let arguments = !con((ins NCCLX_Window:$window), NCCLX_boxParams, NCCLX_peerParams,
    (ins Optional<NCCLX_Data>:$dest));              // get C1, C2
  let results = (outs Optional<AnyRankedTensor>:$result); // get C1
  let assemblyFormat = [{
    $window `` custom<DynamicIndexList>($offsets, $static_offsets) `` custom<PeerMap>($shift, $pairs)
    (`into` `(` $dest^ `:` type($dest) `)`)? attr-dict `:` type($window) (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The type of what is read.
    ::mlir::ShapedType getBoxType() {
      return ::mlir::cast<::mlir::ShapedType>((getResult() ? getResult() : getDest()).getType());
    }
  }];
}

def NCCLX_SignalOp : NCCLX_Op<"signal", [NCCLX_Effects]> {
  let summary = "Tell a peer that all is done that this member did to the window so far";
  let description = [{
    Peers are named as in `ncclx.put`. What was put by the same `shift` or `pairs` has arrived, and what was read of the own
    window has been read, before the peer has taken the signal by an `ncclx.wait`.

    ```mlir
    ncclx.signal %w shift -1 : !ncclx.window<tensor<10x8xf32>>
    ```
  }];
  let arguments = !con((ins NCCLX_Window:$window), NCCLX_peerParams);
  let assemblyFormat = "$window `` custom<PeerMap>($shift, $pairs) attr-dict `:` type($window)";
  let hasVerifier = 1;
}

def NCCLX_WaitOp : NCCLX_Op<"wait", [NCCLX_Effects]> {
  let summary = "Wait for signals that have not been waited for";
  let description = [{
    The signals are those made with the same `shift` or `pairs`, of this window: a wait by `shift 1` is for the member
    before this one. It takes the next `count` of them; members to whom none come do not wait. What this member does to the
    window behind it happens after what the signals tell of.

    ```mlir
    ncclx.wait %w shift -1 count 1 : !ncclx.window<tensor<10x8xf32>>
    ```
  }];
  let arguments = !con((ins NCCLX_Window:$window), NCCLX_peerParams, (ins I64Attr:$count)); // wait C1
  let assemblyFormat = "$window `` custom<PeerMap>($shift, $pairs) `count` $count attr-dict `:` type($window)";
  let hasVerifier = 1;
}

//===--- Asynchrony, on tensors -------------------------------------------===//

def NCCLX_StartOp : NCCLX_Op<"start", [RecursiveMemoryEffects, SingleBlock]> {
  let summary = "Start one collective";
  let description = [{
    The region holds one collective and yields its result.

    ```mlir
    %f = ncclx.start {
      %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<32x8xf32>
      ncclx.yield %r : tensor<32x8xf32>
    } : !ncclx.future<tensor<32x8xf32>>
    ```
  }];
  let results = (outs NCCLX_Future:$future); // start C2
  let regions = (region SizedRegion<1>:$body);   // start C1
  let assemblyFormat = "$body attr-dict `:` type($future)";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The one collective. Valid once the op is verified.
    CollectiveOpInterface getCollective();
  }];
}

def NCCLX_YieldOp : NCCLX_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"StartOp">]> {
  let summary = "End the region of a start";
  let description = "See `ncclx.start`.";
  let arguments = (ins AnyRankedTensor:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def NCCLX_AwaitOp : NCCLX_Op<"await", [AttrSizedOperandSegments, NCCLX_Effects]> {
  let summary = "Wait for a started collective, or for one member's chunk of it";
  let description = [{
    A future is awaited whole exactly once on every path, and any number of times by chunk before that.
    Chunk i is the slice of the result that group member i contributed (all_gather, all_to_all); `of` is the
    number of members and `dim` the dimension of the cut. Where the slices are not all of one size, the chunk
    has a dynamic size in `dim`.

    `keeping` names tensors that are in flight, so that bufferization does not write into their buffers
    before the await. `ncclx-expand-futures` adds what is missing.

    ```mlir
    %c = ncclx.await %f chunk %i of 8 dim 0 : !ncclx.future<tensor<32x8xf32>> -> tensor<4x8xf32>
    %v = ncclx.await %f keeping(%a : tensor<4x8xf32>) : !ncclx.future<tensor<32x8xf32>> -> tensor<32x8xf32>
    ```
  }];
  let arguments = (ins
    NCCLX_Future:$future,
    Optional<Index>:$chunk,        // chunk C1, C2
    OptionalAttr<I64Attr>:$count,  // chunk C3
    OptionalAttr<I64Attr>:$dim,    // chunk C4
    Variadic<AnyRankedTensor>:$keeping);
  let results = (outs AnyRankedTensor:$result); // await C1, chunk C5
  let assemblyFormat = [{
    $future (`chunk` $chunk^ `of` $count `dim` $dim)?
    (`keeping` `(` $keeping^ `:` type($keeping) `)`)? attr-dict `:` type($future) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===--- Asynchrony, below futures ----------------------------------------===//

def NCCLX_FinishOp : NCCLX_Op<"finish", [NCCLX_Effects]> {
  let summary = "Wait for a collective in flight";
  let description = [{
    Below the level of futures an asynchronous collective is the collective itself with a token (`async`): its
    result is the tensor in flight, and `finish` takes both. In memref form there is no result, and the
    destination's memory is defined from here on.

    ```mlir
    %r, %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : tensor<32x8xf32>) async
             : tensor<4x8xf32> -> tensor<32x8xf32>
    %v = ncclx.finish %t, %r keeping(%a : tensor<4x8xf32>) : tensor<32x8xf32> -> tensor<32x8xf32>

    %u = ncclx.all_gather %m dim 0 over @g["tp"] into(%w : memref<32x8xf32>) async : memref<4x8xf32>
    ncclx.finish %u, %w keeping(%m : memref<4x8xf32>) : memref<32x8xf32>
    ```
  }];
  let arguments = (ins NCCLX_TokenType:$token, NCCLX_Data:$in_flight, Variadic<NCCLX_Data>:$keeping);
  let results = (outs Optional<AnyRankedTensor>:$result); // finish C1, C2
  let assemblyFormat = [{
    $token `,` $in_flight (`keeping` `(` $keeping^ `:` type($keeping) `)`)? attr-dict
    `:` type($in_flight) (`->` type($result)^)?
  }];
  let hasVerifier = 1;
}

def NCCLX_FinishChunkOp : NCCLX_Op<"finish_chunk", [NCCLX_Effects,
    DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "Wait for one member's chunk of a collective in flight";
  let description = [{
    The result is the chunk: a tensor, or in memref form a view of the destination, and the only one through
    which the destination may be read before the `finish`.

    ```mlir
    %c = ncclx.finish_chunk %t, %r[%i] of 8 dim 0 : tensor<32x8xf32> -> tensor<4x8xf32>
    %v = ncclx.finish_chunk %u, %w[%i] of 8 dim 0
         : memref<32x8xf32> -> memref<4x8xf32, strided<[8, 1], offset: ?>>
    ```
  }];
  let arguments = (ins
    NCCLX_TokenType:$token, NCCLX_Data:$in_flight,
    Index:$chunk,      // chunk C2
    I64Attr:$count,    // chunk C3
    I64Attr:$dim);     // chunk C4
  let results = (outs NCCLX_Data:$result); // chunk C5
  let assemblyFormat = [{
    $token `,` $in_flight `[` $chunk `]` `of` $count `dim` $dim attr-dict
    `:` type($in_flight) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===--- Computation ------------------------------------------------------===//

def NCCLX_CallOp : NCCLX_Op<"call", [AttrSizedOperandSegments, NCCLX_Effects, NCCLX_SymbolUser]> {
  let summary = "Run an opaque kernel whose cost is declared";
  let description = [{
    `callee` is a function of this module: the body that the host backend and the interpreter run. Passes
    treat the call as opaque and believe the declared cost (floating-point operations, bytes moved to and
    from memory, SMs occupied; 0 SMs means as many as there are). On tensors it is a function of its operands
    alone. In memref form the operands are read and `outs` is written; the callee then takes both.

    ```mlir
    %o = ncclx.call @attention(%q, %k) {flops = 4096, bytes = 512, sms = 16}
         : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    ncclx.call @attention(%q, %k) outs(%o : memref<8x8xf32>) {flops = 4096, bytes = 512, sms = 16}
         : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    ```
  }];
  let arguments = (ins
    FlatSymbolRefAttr:$callee,                          // call C1, C2
    Variadic<AnyType>:$inputs, Variadic<AnyStridedMemRef>:$outs, // call C3
    I64Attr:$flops, I64Attr:$bytes, I64Attr:$sms);      // call C4
  let results = (outs Variadic<AnyRankedTensor>:$results); // call C3
  let assemblyFormat = [{
    $callee `(` $inputs `)` (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict
    `:` functional-type($inputs, $results)
  }];
  let hasVerifier = 1;
}

#endif // NCCLX_NCCLX_NCCLXOPS_TD
