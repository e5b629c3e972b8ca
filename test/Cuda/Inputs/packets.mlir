// Collectives that become one kernel of packets; the second one's shards are unequal.
ncclx.grid @g ["x" = 3]
func.func @f(%a: tensor<25001xf32>, %b: tensor<10xbf16>) -> (tensor<25001xf32>, tensor<29xbf16>) {
  %r = ncclx.all_reduce %a sum accumulate f32 order any over @g["x"] : tensor<25001xf32> -> tensor<25001xf32>
  %s = ncclx.all_gather %b dim 0 over @g["x"] : tensor<10xbf16> -> tensor<29xbf16>
  return %r, %s : tensor<25001xf32>, tensor<29xbf16>
}
