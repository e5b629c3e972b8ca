// Sizes are arguments, so other ones in each replay. 4 blocks, of which ranks get some rows.
ncclx.grid @g ["h" = 2, "x" = 2]
func.func @f(%a: tensor<20x5xf32>, %b: tensor<3x8x2xbf16>, %c: tensor<6xi8>,
             %n: tensor<4xi32>, %m: tensor<4xi64>, %k: tensor<2xi32>)
    -> (tensor<20x5xf32>, tensor<3x8x2xbf16>, tensor<6xi8>) {
  %r = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<4xi32> over @g["h", "x"] : tensor<20x5xf32> -> tensor<20x5xf32>
  %s = ncclx.all_to_all_v %b dim 1 sizes %m : tensor<4xi64> over @g["x", "h"] : tensor<3x8x2xbf16> -> tensor<3x8x2xbf16>
  %t = ncclx.all_to_all_v %c dim 0 sizes %k : tensor<2xi32> over @g["x"] : tensor<6xi8> -> tensor<6xi8>
  return %r, %s, %t : tensor<20x5xf32>, tensor<3x8x2xbf16>, tensor<6xi8>
}
