// A root does other things than the others.
ncclx.grid @g ["x" = 2]
func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> {
  %r = ncclx.broadcast %a root [0] over @g["x"] : tensor<8xf32> -> tensor<8xf32>
  return %r : tensor<8xf32>
}
