// A gather beside an opaque kernel whose cost a test fills in.
ncclx.grid @g ["r" = 8]
func.func private @busy(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func @f(%a: tensor<1048576xf32>, %x: tensor<8xf32>) -> (tensor<8388608xf32>, tensor<8xf32>) {
  %f = ncclx.start {
    %g = ncclx.all_gather %a dim 0 over @g["r"] : tensor<1048576xf32> -> tensor<8388608xf32>
    ncclx.yield %g : tensor<8388608xf32>
  } : !ncclx.future<tensor<8388608xf32>>
  %y = ncclx.call @busy(%x) {flops = FLOPS : i64, bytes = BYTES : i64, sms = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  %r = ncclx.await %f : !ncclx.future<tensor<8388608xf32>> -> tensor<8388608xf32>
  return %r, %y : tensor<8388608xf32>, tensor<8xf32>
}
