ncclx.grid @g ["tp" = 3]
func.func @gather(%a: tensor<5xi32>) -> (tensor<13xi32>, tensor<13xf32>) {
  %g = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<5xi32> -> tensor<13xi32>
  %e = tensor.empty() : tensor<13xf32>
  %x = linalg.map ins(%g : tensor<13xi32>) outs(%e : tensor<13xf32>) (%in: i32, %out: f32) {
    %f = arith.sitofp %in : i32 to f32
    %h = arith.constant 0.5 : f32
    %y = arith.mulf %f, %h : f32
    linalg.yield %y : f32
  }
  return %g, %x : tensor<13xi32>, tensor<13xf32>
}
