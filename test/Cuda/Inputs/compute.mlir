// A product, and a kernel of the user's with two operations, around a collective.
ncclx.grid @g ["tp" = 2]
func.func private @norm(%a: tensor<6x5xf32>) -> tensor<6x5xf32> {
  %e = tensor.empty() : tensor<6x5xf32>
  %x = linalg.add ins(%a, %a : tensor<6x5xf32>, tensor<6x5xf32>) outs(%e : tensor<6x5xf32>) -> tensor<6x5xf32>
  %y = linalg.mul ins(%x, %a : tensor<6x5xf32>, tensor<6x5xf32>) outs(%x : tensor<6x5xf32>) -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}
func.func @f(%a: tensor<6x7xbf16>, %b: tensor<7x5xbf16>, %c: tensor<6x5xf32>) -> tensor<6x5xf32> {
  %p = linalg.matmul ins(%a, %b : tensor<6x7xbf16>, tensor<7x5xbf16>) outs(%c : tensor<6x5xf32>) -> tensor<6x5xf32>
  %r = ncclx.all_reduce %p sum accumulate f32 order any over @g["tp"] : tensor<6x5xf32> -> tensor<6x5xf32>
  %n = ncclx.call @norm(%r) {flops = 60, bytes = 240, sms = 1} : (tensor<6x5xf32>) -> tensor<6x5xf32>
  return %n : tensor<6x5xf32>
}
