ncclx.grid @g ["x" = 4]
func.func @f(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<32xf32>, tensor<8xf32>, tensor<8xf32>) {
  %b = ncclx.broadcast %a root [3] over @g["x"] : tensor<8xf32> -> tensor<8xf32>
  %c = ncclx.gather %a dim 0 root [1] over @g["x"] : tensor<8xf32> -> tensor<32xf32>
  %d = ncclx.permute %a shift 1 over @g["x"] : tensor<8xf32> -> tensor<8xf32>
  %e = ncclx.all_to_all_v %a dim 0 counts dense<2> : tensor<4x4xi64> over @g["x"] : tensor<8xf32> -> tensor<8xf32>
  return %b, %c, %d, %e : tensor<8xf32>, tensor<32xf32>, tensor<8xf32>, tensor<8xf32>
}
