// A kernel of the user's that keeps a value for itself.
ncclx.grid @g ["tp" = 2]
func.func private @twice(%a: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %x = linalg.add ins(%a, %a : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %e2 = tensor.empty() : tensor<8xf32>
  %y = linalg.mul ins(%x, %a : tensor<8xf32>, tensor<8xf32>) outs(%e2 : tensor<8xf32>) -> tensor<8xf32>
  %e3 = tensor.empty() : tensor<8xf32>
  %z = linalg.add ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%e3 : tensor<8xf32>) -> tensor<8xf32>
  return %z : tensor<8xf32>
}
func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> {
  %r = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] : tensor<8xf32> -> tensor<8xf32>
  %n = ncclx.call @twice(%r) {flops = 1, bytes = 1, sms = 1} : (tensor<8xf32>) -> tensor<8xf32>
  return %n : tensor<8xf32>
}
