// More than 2^32 rows of a block.
ncclx.grid @g ["x" = 4]
func.func @f(%a: tensor<18446744072xf32>, %n: tensor<4xi64>) -> tensor<18446744072xf32> {
  %r = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<4xi64> over @g["x"] : tensor<18446744072xf32> -> tensor<18446744072xf32>
  return %r : tensor<18446744072xf32>
}
