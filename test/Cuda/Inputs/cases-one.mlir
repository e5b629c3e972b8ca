// Every collective of one rank.
ncclx.grid @g ["r" = 1]
func.func @f(%a0: tensor<7xf32>, %a1: tensor<7xf32>, %a2: tensor<7xf32>, %a3: tensor<7xf32>, %a4: tensor<7xf32>, %a5: tensor<7xf32>, %a6: tensor<1xf32>, %a7: tensor<1xf32>, %a8: tensor<1xf32>, %a9: tensor<1xf32>, %a10: tensor<1xf32>, %a11: tensor<1xf32>)
    -> (tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) {
  %r0 = ncclx.all_gather %a0 dim 0 over @g["r"] : tensor<7xf32> -> tensor<7xf32>
  %r1 = ncclx.reduce_scatter %a1 dim 0 sum accumulate f32 order rank over @g["r"] : tensor<7xf32> -> tensor<7xf32>
  %r2 = ncclx.all_reduce %a2 avg accumulate f32 order rank over @g["r"] : tensor<7xf32> -> tensor<7xf32>
  %r3 = ncclx.all_to_all %a3 split 0 concat 0 over @g["r"] : tensor<7xf32> -> tensor<7xf32>
  %r4 = ncclx.broadcast %a4 root [0] over @g["r"] : tensor<7xf32> -> tensor<7xf32>
  %r5 = ncclx.permute %a5 shift 1 over @g["r"] : tensor<7xf32> -> tensor<7xf32>
  %r6 = ncclx.all_gather %a6 dim 0 over @g["r"] : tensor<1xf32> -> tensor<1xf32>
  %r7 = ncclx.reduce_scatter %a7 dim 0 sum accumulate f32 order rank over @g["r"] : tensor<1xf32> -> tensor<1xf32>
  %r8 = ncclx.all_reduce %a8 avg accumulate f32 order rank over @g["r"] : tensor<1xf32> -> tensor<1xf32>
  %r9 = ncclx.all_to_all %a9 split 0 concat 0 over @g["r"] : tensor<1xf32> -> tensor<1xf32>
  %r10 = ncclx.broadcast %a10 root [0] over @g["r"] : tensor<1xf32> -> tensor<1xf32>
  %r11 = ncclx.permute %a11 shift 1 over @g["r"] : tensor<1xf32> -> tensor<1xf32>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11 : tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
}
