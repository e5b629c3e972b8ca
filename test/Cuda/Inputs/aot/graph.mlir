// A gather of uneven shards, and a sum of what every order of additions gives exactly.
ncclx.grid @g ["tp" = 3]
func.func @f(%shard: tensor<5xi32>, %part: tensor<7xf32>) -> (tensor<13xi32>, tensor<7xf32>) {
  %all = ncclx.all_gather %shard dim 0 over @g["tp"] : tensor<5xi32> -> tensor<13xi32>
  %sum = ncclx.all_reduce %part sum accumulate f32 order any over @g["tp"] : tensor<7xf32> -> tensor<7xf32>
  return %all, %sum : tensor<13xi32>, tensor<7xf32>
}
