// Every collective through double-buffered scratch: runs alternate between its generations.
ncclx.grid @g ["x" = 4]
func.func @f(%a: tensor<1000xf32>, %b: tensor<4x77xbf16>) -> (tensor<1000xf32>, tensor<16x77xbf16>, tensor<1x77xbf16>, tensor<4x77xbf16>, tensor<1000xf32>) {
  %o = ncclx.all_reduce %a sum accumulate f32 order rank over @g["x"] algorithm eager : tensor<1000xf32> -> tensor<1000xf32>
  %g = ncclx.all_gather %b dim 0 over @g["x"] algorithm eager : tensor<4x77xbf16> -> tensor<16x77xbf16>
  %r = ncclx.reduce_scatter %b dim 0 sum accumulate f32 order rank over @g["x"] algorithm eager : tensor<4x77xbf16> -> tensor<1x77xbf16>
  %t = ncclx.all_to_all %b split 0 concat 0 over @g["x"] algorithm eager : tensor<4x77xbf16> -> tensor<4x77xbf16>
  %c = ncclx.broadcast %a root [2] over @g["x"] algorithm eager : tensor<1000xf32> -> tensor<1000xf32>
  return %o, %g, %r, %t, %c : tensor<1000xf32>, tensor<16x77xbf16>, tensor<1x77xbf16>, tensor<4x77xbf16>, tensor<1000xf32>
}
