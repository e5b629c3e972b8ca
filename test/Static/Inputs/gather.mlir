ncclx.grid @g ["tp" = 8]
func.func @gather(%a: tensor<4x6xf32>) -> tensor<32x6xf32> {
  %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x6xf32> -> tensor<32x6xf32>
  return %r : tensor<32x6xf32>
}
