// One all_gather, which streams or a kernel may carry.
ncclx.grid @g ["r" = 2]
func.func @f(%a: tensor<1000xf32>) -> tensor<2000xf32> {
  %r = ncclx.all_gather %a dim 0 over @g["r"] : tensor<1000xf32> -> tensor<2000xf32>
  return %r : tensor<2000xf32>
}
