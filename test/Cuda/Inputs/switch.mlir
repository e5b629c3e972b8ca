// A sum that a switch could make.
ncclx.grid @g ["x" = 2]
func.func @f(%a: tensor<64xf32>) -> tensor<64xf32> {
  %r = ncclx.all_reduce %a sum accumulate f32 order any over @g["x"] algorithm direct : tensor<64xf32> -> tensor<64xf32>
  return %r : tensor<64xf32>
}
