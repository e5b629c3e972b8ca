ncclx.grid @g ["x" = 3]
func.func @f(%a: tensor<7x2xi32>, %b: tensor<7x2xf32>) -> (tensor<3x2xi32>, tensor<3x2xi32>, tensor<3x2xf32>, tensor<7x2xi32>) {
  %s = ncclx.reduce_scatter %a dim 0 sum accumulate i32 order any over @g["x"] : tensor<7x2xi32> -> tensor<3x2xi32>
  %e = tensor.empty() : tensor<3x2xi32>
  %m = linalg.max ins(%s, %s : tensor<3x2xi32>, tensor<3x2xi32>) outs(%e : tensor<3x2xi32>) -> tensor<3x2xi32>
  %t = ncclx.scatter %b dim 0 root [1] over @g["x"] : tensor<7x2xf32> -> tensor<3x2xf32>
  %w = ncclx.all_gather %m dim 0 over @g["x"] : tensor<3x2xi32> -> tensor<7x2xi32>
  return %s, %m, %t, %w : tensor<3x2xi32>, tensor<3x2xi32>, tensor<3x2xf32>, tensor<7x2xi32>
}
