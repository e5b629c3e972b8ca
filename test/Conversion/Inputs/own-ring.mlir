ncclx.grid @g ["tp" = 8]
func.func @f(%a: tensor<16x8xf32>) -> tensor<128x8xf32> {
  %r = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.schedule = @ring} : tensor<16x8xf32> -> tensor<128x8xf32>
  return %r : tensor<128x8xf32>
}
