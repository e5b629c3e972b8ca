// Three ranks, sizes that do not divide.
ncclx.grid @g ["r" = 3]
func.func @f(%a: tensor<6xf32>) -> tensor<17xf32> {
  %g = ncclx.all_gather %a dim 0 over @g["r"] : tensor<6xf32> -> tensor<17xf32>
  %r = ncclx.all_reduce %g sum accumulate f32 order any over @g["r"] : tensor<17xf32> -> tensor<17xf32>
  return %r : tensor<17xf32>
}
