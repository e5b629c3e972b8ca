// Member 1 sends 3, 4 and 1 rows of 20 bytes, the others none.
ncclx.grid @g ["x" = 3]
func.func @f(%a: tensor<12x5xf32>) -> tensor<12x5xf32> {
  %many = arith.constant dense<[3, 4, 1]> : tensor<3xi64>
  %n = ncclx.permute %many pairs [0 -> 1] over @g["x"] : tensor<3xi64> -> tensor<3xi64>
  %r = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<3xi64> over @g["x"] : tensor<12x5xf32> -> tensor<12x5xf32>
  return %r : tensor<12x5xf32>
}
