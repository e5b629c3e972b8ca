// What gets rows learns how many, too: one kernel of packets and of copies.
ncclx.grid @g ["x" = 4]
func.func @f(%a: tensor<20x5xf32>, %n: tensor<4xi64>) -> (tensor<20x5xf32>, tensor<4xi64>) {
  %m = ncclx.all_to_all %n split 0 concat 0 over @g["x"] : tensor<4xi64> -> tensor<4xi64>
  %r = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<4xi64> over @g["x"] : tensor<20x5xf32> -> tensor<20x5xf32>
  return %r, %m : tensor<20x5xf32>, tensor<4xi64>
}
