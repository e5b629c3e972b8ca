//===- Passes.td - Passes on the ncclx dialect ----------------------------===//

#ifndef NCCLX_TRANSFORMS_PASSES_TD
#define NCCLX_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

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

def UnrollCommunication : Pass<"ncclx-unroll-communication", "ModuleOp"> {
  let summary = "Unroll loops with constant bounds that communicate";
  let description = [{
    A schedule is a straight line of collectives, so a loop around one is written out, inner loops first. A
    loop whose bounds are not constants stays, with a remark; the lowering refuses it.

    Before: `scf.for %i = %c0 to %c2 step %c1 { ncclx.all_reduce ... }`
    After: the body twice.
  }];
  let options = [
    Option<"maxIterations", "max-iterations", "int64_t", "1024",
           "Loops that run more often are refused: their schedule would be too long to be useful">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // NCCLX_TRANSFORMS_PASSES_TD
