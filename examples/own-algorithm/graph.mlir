// A layer whose weights are gathered by the ring of ring.mlir: both texts together are one module.
ncclx.grid @g ["tp" = 8]
func.func @layer(%x: tensor<4x16xf32>, %w: tensor<2x64xf32>) -> (tensor<4x64xf32>, tensor<4x64xf32>) {
  %weights = ncclx.all_gather %w dim 0 over @g["tp"] {ncclx.schedule = @ring} : tensor<2x64xf32> -> tensor<16x64xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x64xf32>) -> tensor<4x64xf32>
  %y = linalg.matmul ins(%x, %weights : tensor<4x16xf32>, tensor<16x64xf32>) outs(%start : tensor<4x64xf32>) -> tensor<4x64xf32>
  %sum = ncclx.all_reduce %y sum accumulate f32 order any over @g["tp"] : tensor<4x64xf32> -> tensor<4x64xf32>
  return %y, %sum : tensor<4x64xf32>, tensor<4x64xf32>
}
