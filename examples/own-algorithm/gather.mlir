// A collective of the compiler's own ring: 14 rows on 5 ranks, of which the last has two.
ncclx.grid @g ["x" = 5]
func.func @gather(%a: tensor<3x7xf32>) -> tensor<14x7xf32> {
  %r = ncclx.all_gather %a dim 0 over @g["x"] algorithm ring : tensor<3x7xf32> -> tensor<14x7xf32>
  return %r : tensor<14x7xf32>
}
