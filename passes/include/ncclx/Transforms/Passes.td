//===- Passes.td - Passes on the ncclx dialect ----------------------------===//

#ifndef NCCLX_TRANSFORMS_PASSES_TD
#define NCCLX_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ImportShard : Pass<"ncclx-import-shard", "ModuleOp"> {
  let summary = "Make a graph of a module of upstream's shard dialect, behind its shard-partition";
  let description = [{
    Collectives over axes of a `shard.grid` become those of `ncclx` over a grid of the same name, whose axes are called
    x0, x1, ...; those over no axes become their operands. What is accumulated in a wider type is converted first, as
    shard says; an `all_slice` takes this rank's part by its number. First of all passes: shard's collectives are Pure,
    and may be merged and moved. What has no counterpart (shardings that are not partitioned yet, send, recv, halos,
    roots known at run time, memrefs) is an error.

    Before: `shard.grid @g(shape = 2x4)  %r = shard.all_gather %a on @g grid_axes = [1] gather_axis = 0`
    After: `ncclx.grid @g ["x0" = 2, "x1" = 4]  %r = ncclx.all_gather %a dim 0 over @g["x1"]`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::shard::ShardDialect", "::mlir::ncclx::NCCLXDialect"];
}

def VerifyLegality : Pass<"ncclx-verify-legality", "ModuleOp"> {
  let summary = "Refuse collectives that some rank may not reach, and futures not awaited exactly once";
  let description = [{
    A collective must be reached by all ranks alike: the conditions and bounds of the control flow around it
    must be uniform (constants, arguments marked `{ncclx.uniform}`, and what is computed from these alone).
    Otherwise the error prints the chain from the condition to what differs.

    Every future is awaited whole exactly once on every path, its chunks before that, and stays inside its
    function. SPEC.md lists the rules (legality L1 to L9).

    ```mlir
    scf.if %cond {   // error: %cond is an argument that is not marked {ncclx.uniform}
      %r = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    }
    ```
  }];
}

def SpecializeSizes : Pass<"ncclx-specialize-sizes", "ModuleOp"> {
  let summary = "Make each graph with open sizes (`ncclx.sizes`) one for given sizes";
  let description = [{
    Sizes outside their ranges are refused. The static shapes go from the arguments through the whole function, through
    control flow and calls (of a callee with open sizes a copy for its sizes is made), and so do the numbers that
    are computed of them. A collective whose shape does not follow is an error, and so is a graph that is wrong at
    these sizes.

    Before (with `sizes=n=5`):
    ```mlir
    func.func @f(%a: tensor<?x8xf32> {ncclx.dims = ["n"]}) -> tensor<?x8xf32> attributes {ncclx.sizes = {n = [0, 64]}} {
      %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<?x8xf32> -> tensor<?x8xf32>
    ```
    After:
    ```mlir
    func.func @f(%a: tensor<5x8xf32>) -> tensor<20x8xf32> {
      %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<5x8xf32> -> tensor<20x8xf32>
    ```
  }];
  let options = [
    ListOption<"sizes", "sizes", "std::string", "NAME=VALUE for each open size of the module">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def SimplifyCollectives : Pass<"ncclx-simplify-collectives", "ModuleOp"> {
  let summary = "Replace collectives by cheaper ones that mean the same, bit for bit";
  let description = [{
    On tensors, outside `ncclx.start`:
    - over a group of one, the result is the input (unless elements are scaled, or some get zeros);
    - what moves a splat constant gives a splat constant;
    - reduce_scatter then all_gather, and reduce then broadcast, are an all_reduce, where the order of the
      reduction does not depend on who holds what (`any`, `rank`);
    - scatter then all_gather is a broadcast; shifts add up.

    Before:
    ```mlir
    %s = ncclx.reduce_scatter %a dim 0 sum accumulate f32 order any over @g["tp"] : tensor<8xf32> -> tensor<2xf32>
    %r = ncclx.all_gather %s dim 0 over @g["tp"] : tensor<2xf32> -> tensor<8xf32>
    ```
    After:
    ```mlir
    %r = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] : tensor<8xf32> -> tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def AnswerGets : Pass<"ncclx-answer-gets", "ModuleOp"> {
  let summary = "Have peers whose window is read send what they hold";
  let description = [{
    Every rank knows who reads whose window, so none needs to be asked. Before:
    ```mlir
    %r = ncclx.get %w[9, 0] shift 1 : !ncclx.window<tensor<10x8xf32>> -> tensor<1x8xf32>
    ```
    After:
    ```mlir
    %h = ncclx.get %w[9, 0] : !ncclx.window<tensor<10x8xf32>> -> tensor<1x8xf32>
    %r = ncclx.permute %h shift -1 over @g["x"] : tensor<1x8xf32> -> tensor<1x8xf32>
    ```
  }];
}

def MaterializeDestinations : Pass<"ncclx-materialize-destinations", "ModuleOp"> {
  let summary = "Give every collective and get on tensors an explicit destination";
  let description = [{
    Before:
    ```mlir
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ```
    After:
    ```mlir
    %d = tensor.empty() : tensor<4xf32>
    %r = ncclx.permute %a shift 1 over @g["tp"] into(%d : tensor<4xf32>) : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def ExpandFutures : Pass<"ncclx-expand-futures", "ModuleOp"> {
  let summary = "Turn each future into the tensor in flight and a token";
  let description = [{
    Bufferization knows order and not time. So each finish names what its collective reads (`keeping`); where
    a loop or a branch carries the future, what it reads is carried as well.

    Before:
    ```mlir
    %f = ncclx.start {
      %r = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : tensor<16xf32>) : tensor<4xf32> -> tensor<16xf32>
      ncclx.yield %r : tensor<16xf32>
    } : !ncclx.future<tensor<16xf32>>
    %v = ncclx.await %f : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
    ```
    After:
    ```mlir
    %r, %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : tensor<16xf32>) async
             : tensor<4xf32> -> tensor<16xf32>
    %v = ncclx.finish %t, %r keeping(%a : tensor<4xf32>) : tensor<16xf32> -> tensor<16xf32>
    ```
  }];
}

def OneShotBufferizeModule : Pass<"ncclx-one-shot-bufferize", "ModuleOp"> {
  let summary = "Bufferize the module, kernels of ncclx.call included";
  let description = [{
    Upstream's one-shot-bufferize with function boundaries and identity layouts. Arguments of public
    functions, of functions that communicate and of kernels are not written unless they are marked
    `{bufferization.writable = true}`. A kernel's results become arguments behind the others:

    ```mlir
    func.func private @kernel(%a: tensor<8xf32>) -> tensor<8xf32>    // before
    func.func private @kernel(%a: memref<8xf32>, %r: memref<8xf32>)  // after
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect", "::mlir::memref::MemRefDialect"];
}

def VerifyInFlight : Pass<"ncclx-verify-in-flight", "ModuleOp"> {
  let summary = "Refuse accesses to a buffer while a collective uses it";
  let description = [{
    Checks collectives that are `async`. Every token is finished exactly once, its chunks before that
    (in flight F1); each finish keeps what its collective reads (F2); on tensors the result in flight has no
    other user (F3); on memrefs nothing writes the input, and nothing reads or writes the destination, before
    the finish, but reads of a chunk through its finish_chunk (F4). Distinct function arguments are taken not
    to alias.
  }];
}

def GroupProducts : Pass<"ncclx-group-products", "ModuleOp"> {
  let summary = "Put a product of matrices with what only prepares or finishes it into one kernel";
  let description = [{
    For carriers that do all of it in one call of a library (cuBLASLt). Works on memrefs, in functions that communicate. What
    belongs to a product are its neighbours that have nothing between them that touches memory: zeros or a copy in what
    it adds to, factors that are extended and scaled for it alone, and its result scaled and rounded, where nobody else
    reads it before. The group becomes an `scf.execute_region`, which `convert-ncclx-to-ctran` makes one kernel; its buffers
    that nobody else uses go with it.

    Before:
    ```mlir
    linalg.fill ins(%zero : f32) outs(%p : memref<4x4xf32>)
    linalg.matmul ins(%a, %b : memref<4x8xbf16>, memref<8x4xbf16>) outs(%p : memref<4x4xf32>)
    linalg.generic {...} ins(%p : memref<4x4xf32>) outs(%d : memref<4x4xbf16>) { /* arith.truncf */ }
    ```
    After: the same, and the allocation of `%p`, in `scf.execute_region { ... }`.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def UnrollCommunication : Pass<"ncclx-unroll-communication", "ModuleOp"> {
  let summary = "Unroll loops with constant bounds that communicate";
  let description = [{
    A schedule is a straight line of collectives, so a loop around one is written out, inner loops first. A
    loop whose bounds are not constants stays, with a remark, for `ncclx-split-branches`.

    Before: `scf.for %i = %c0 to %c2 step %c1 { ncclx.all_reduce ... }`
    After: the body twice.
  }];
  let options = [
    Option<"maxIterations", "max-iterations", "int64_t", "1024",
           "Loops that run more often are refused: their schedule would be too long to be useful">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def SplitBranches : Pass<"ncclx-split-branches", "ModuleOp"> {
  let summary = "Make one straight function of each way through the branches that communicate";
  let description = [{
    A schedule is a straight line of collectives, so a function in which some stand under `scf.if` or
    `scf.index_switch` becomes several: one for each way through these branches, in which they are gone, and
    one that computes, from the uniform values that the conditions depend on, the number of the way to take
    (SPEC.md, branches). A condition that decides several branches is decided once.

    Where the way is not known when a run starts (loops around collectives that have not been unrolled, `scf.while`,
    branches on what has been communicated, `ncclx.assume_uniform`) the functions are stages instead, straight lines
    between which the ranks agree on the next one (SPEC.md, stages). What a stage hands to others are its results, boxed
    where they are scalars; the last result of a stage that others follow is the number of the next. A future
    that would be in flight between stages is awaited where the stage ends in which it was started; several turns of an
    `scf.for` that carries one become one stage. A window that several stages use is made anew in each, of what the one
    before has left.

    Before:
    ```mlir
    func.func @f(%a: tensor<4xf32>, %flag: i1 {ncclx.uniform}) -> tensor<4xf32> {
      %r = scf.if %flag -> tensor<4xf32> { %s = ncclx.all_reduce %a ... yield %s } else { yield %a }
      return %r
    }
    ```
    After:
    ```mlir
    func.func @f.0(%a, %flag) { %s = ncclx.all_reduce %a ... return %s }
    func.func @f.1(%a, %flag) { return %a }
    func.func @f.choose(%a, %flag) -> tensor<i64> attributes {ncclx.branches = [@f.0, @f.1]}
    ```
    In stages:
    ```mlir
    %r = scf.while (%x = %a) { ... ncclx.all_reduce ... scf.condition(%go) %x } do { ... }    // before

    func.func @f.0(%a) -> (tensor<4xf32>, tensor<i64>)     // what is before the loop; 1
    func.func @f.1(%x) -> tensor<i64>                      // the all_reduce; 2 or 3
    func.func @f.2(%x) -> (tensor<4xf32>, tensor<i64>)     // the body; 1
    func.func @f.3(%x) -> tensor<4xf32>                    // what is behind
    func.func @f.choose(%a) -> tensor<i64> attributes {ncclx.branches = [@f.0, @f.1, @f.2, @f.3], ncclx.stages = [...]}
    ```
  }];
  let options = [
    Option<"maxBranches", "max-branches", "int64_t", "64",
           "Functions with more ways through them are refused: each is a schedule of its own">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"]; // and cf (SplitBranches.cpp)
}

#endif // NCCLX_TRANSFORMS_PASSES_TD
