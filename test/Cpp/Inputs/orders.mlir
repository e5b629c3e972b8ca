// Two gathers that do not need each other: their order is the scheduler's to choose, on all ranks alike.
ncclx.grid @g ["x" = 2]
func.func @f(%a: tensor<65x64xf32>, %b: tensor<128x64xf32>) -> (tensor<130x64xf32>, tensor<256x64xf32>) {
  %p = ncclx.all_gather %a dim 0 over @g["x"] : tensor<65x64xf32> -> tensor<130x64xf32>
  %q = ncclx.all_gather %b dim 0 over @g["x"] : tensor<128x64xf32> -> tensor<256x64xf32>
  return %p, %q : tensor<130x64xf32>, tensor<256x64xf32>
}
