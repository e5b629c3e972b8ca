ncclx.grid @g ["tp" = 4]
func.func @f(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %h = arith.constant dense<0.5> : tensor<8xf32>
  %f0 = ncclx.start {
    %r = ncclx.all_reduce %a max accumulate f32 order any over @g["tp"] : tensor<8xf32> -> tensor<8xf32>
    ncclx.yield %r : tensor<8xf32>
  } : !ncclx.future<tensor<8xf32>>
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a, %f = %f0) -> (tensor<8xf32>, !ncclx.future<tensor<8xf32>>) {
    %v = ncclx.await %f : !ncclx.future<tensor<8xf32>> -> tensor<8xf32>
    %s = ncclx.all_reduce %x sum accumulate f32 order any over @g["tp"] : tensor<8xf32> -> tensor<8xf32>
    %m = arith.mulf %s, %h : tensor<8xf32>
    %n = arith.addf %m, %v : tensor<8xf32>
    %g = ncclx.start {
      %q = ncclx.permute %n shift 1 over @g["tp"] : tensor<8xf32> -> tensor<8xf32>
      ncclx.yield %q : tensor<8xf32>
    } : !ncclx.future<tensor<8xf32>>
    scf.yield %n, %g : tensor<8xf32>, !ncclx.future<tensor<8xf32>>
  }
  %l = ncclx.await %r#1 : !ncclx.future<tensor<8xf32>> -> tensor<8xf32>
  return %r#0, %l : tensor<8xf32>, tensor<8xf32>
}
