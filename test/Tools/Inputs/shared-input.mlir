ncclx.grid @g ["tp" = 4]
func.func @f(%x: tensor<8xf32>) -> (tensor<32xf32>, tensor<8xf32>) {
  %a = arith.addf %x, %x : tensor<8xf32>
  %f0 = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<8xf32> -> tensor<32xf32>
    ncclx.yield %r : tensor<32xf32>
  } : !ncclx.future<tensor<32xf32>>
  %b = arith.mulf %a, %a : tensor<8xf32>
  %l = ncclx.await %f0 : !ncclx.future<tensor<32xf32>> -> tensor<32xf32>
  return %l, %b : tensor<32xf32>, tensor<8xf32>
}
