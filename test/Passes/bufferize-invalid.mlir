// RUN: ncclx-opt %s --ncclx-bufferize --split-input-file --verify-diagnostics

ncclx.grid @g ["tp" = 4]

// Two buffers that take turns: to copy one would race with the collective, so it is refused.
func.func @taking_turns(%a: tensor<4xf32>, %n: index {ncclx.uniform}) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  %g = scf.for %i = %c0 to %n step %c1 iter_args(%h = %f) -> !ncclx.future<tensor<4xf32>> {
    %k = ncclx.start {
      %r = ncclx.permute %a shift 2 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
      ncclx.yield %r : tensor<4xf32>
    } : !ncclx.future<tensor<4xf32>>
    %v = ncclx.await %h : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
    // expected-error @+1 {{Yield operand #0 is not equivalent to the corresponding iter bbArg}}
    scf.yield %k : !ncclx.future<tensor<4xf32>>
  }
  %v = ncclx.await %g : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return %v : tensor<4xf32>
}
