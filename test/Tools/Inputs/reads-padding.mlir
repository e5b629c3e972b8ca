// Member 2 has one row of its shard and one of padding, member 3 has padding alone; exp reads all.
ncclx.grid @g ["tp" = 4]
func.func @f(%a: tensor<5xf32>) -> tensor<2xf32> {
  %r = ncclx.reduce_scatter %a dim 0 sum accumulate f32 order any over @g["tp"] : tensor<5xf32> -> tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %x = linalg.exp ins(%r : tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  return %x : tensor<2xf32>
}
