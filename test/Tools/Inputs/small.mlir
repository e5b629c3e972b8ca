// Four ranks, sizes that do not divide, two collectives and a kernel.
ncclx.grid @g ["tp" = 4]
func.func @f(%a: tensor<5xf32>) -> (tensor<17xf32>, tensor<17xf32>) {
  %g = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<5xf32> -> tensor<17xf32>
  %r = ncclx.all_reduce %g sum accumulate f32 order any over @g["tp"] : tensor<17xf32> -> tensor<17xf32>
  %e = tensor.empty() : tensor<17xf32>
  %x = linalg.exp ins(%r : tensor<17xf32>) outs(%e : tensor<17xf32>) -> tensor<17xf32>
  return %g, %x : tensor<17xf32>, tensor<17xf32>
}
