// A put and its notification name one peer, over any number of axes in any order.
// RUN: ncclx-opt %s --ncclx-bufferize --convert-ncclx-to-ctran=load-store=false --ctran-verify=undecided=error -o /dev/null
// RUN: sed 's/algorithm binomial/algorithm direct/' %s | ncclx-opt --ncclx-bufferize --convert-ncclx-to-ctran=load-store=false --ctran-verify=undecided=error -o /dev/null
ncclx.grid @g ["x" = 2, "y" = 2, "z" = 2]
func.func @f(%a: tensor<8x2xi8>) -> (tensor<8x2xi8>, tensor<8x2xi8>, tensor<64x2xi8>, tensor<1x2xi8>, tensor<8x2xi8>) {
  %b = ncclx.broadcast %a root [1, 1, 0] over @g["y", "x", "z"] algorithm binomial : tensor<8x2xi8> -> tensor<8x2xi8>
  %r = ncclx.reduce %a root [0, 1, 1] sum accumulate i8 order any over @g["z", "y", "x"] algorithm binomial : tensor<8x2xi8> -> tensor<8x2xi8>
  %h = ncclx.gather %a dim 0 root [1, 0, 1] over @g["y", "x", "z"] algorithm binomial : tensor<8x2xi8> -> tensor<64x2xi8>
  %s = ncclx.scatter %a dim 0 root [0, 1, 0] over @g["z", "x", "y"] algorithm binomial : tensor<8x2xi8> -> tensor<1x2xi8>
  %p = ncclx.permute %a pairs [0 -> 5, 1 -> 1, 2 -> 7, 5 -> 0] over @g["y", "z", "x"] algorithm direct : tensor<8x2xi8> -> tensor<8x2xi8>
  return %b, %r, %h, %s, %p : tensor<8x2xi8>, tensor<8x2xi8>, tensor<64x2xi8>, tensor<1x2xi8>, tensor<8x2xi8>
}
