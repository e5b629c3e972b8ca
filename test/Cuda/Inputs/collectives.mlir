// Sizes that do not divide, narrow types, pieces with strides, roots: what streams must get right.
ncclx.grid @g ["tp" = 4]
func.func @f(%a: tensor<5xf32>, %b: tensor<6x3xbf16>, %c: tensor<8x5xi32>, %d: tensor<11xf16>)
    -> (tensor<17xf32>, tensor<6x9xbf16>, tensor<11xf16>, tensor<2x20xi32>, tensor<3xf16>, tensor<11xf16>, tensor<11xf16>, tensor<8x5xi32>) {
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<5xf32> -> tensor<17xf32>
  %1 = ncclx.all_gather %b dim 1 over @g["tp"] : tensor<6x3xbf16> -> tensor<6x9xbf16>
  %2 = ncclx.all_reduce %d sum accumulate f32 order rank over @g["tp"] : tensor<11xf16> -> tensor<11xf16>
  %3 = ncclx.all_to_all %c split 0 concat 1 over @g["tp"] : tensor<8x5xi32> -> tensor<2x20xi32>
  %4 = ncclx.reduce_scatter %d dim 0 max accumulate f32 order any over @g["tp"] : tensor<11xf16> -> tensor<3xf16>
  %5 = ncclx.all_reduce %d avg accumulate f32 order any over @g["tp"] : tensor<11xf16> -> tensor<11xf16>
  %6 = ncclx.broadcast %d root [2] over @g["tp"] : tensor<11xf16> -> tensor<11xf16>
  %7 = ncclx.all_reduce %c prod accumulate i32 order any over @g["tp"] : tensor<8x5xi32> -> tensor<8x5xi32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<17xf32>, tensor<6x9xbf16>, tensor<11xf16>, tensor<2x20xi32>, tensor<3xf16>, tensor<11xf16>, tensor<11xf16>, tensor<8x5xi32>
}
