ncclx.grid @g ["x" = 3]
func.func @f(%a: tensor<63x129xbf16>, %n: tensor<3xi32>) -> tensor<63x129xbf16> {
  %r = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<3xi32> over @g["x"] : tensor<63x129xbf16> -> tensor<63x129xbf16>
  return %r : tensor<63x129xbf16>
}
