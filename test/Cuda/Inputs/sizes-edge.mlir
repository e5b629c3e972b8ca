// Started and awaited, and then sent on by the same sizes.
ncclx.grid @g ["x" = 7]
func.func @f(%a: tensor<21x3xf32>, %n: tensor<7xi32>) -> tensor<21x3xf32> {
  %f = ncclx.start {
    %c = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<7xi32> over @g["x"] : tensor<21x3xf32> -> tensor<21x3xf32>
    ncclx.yield %c : tensor<21x3xf32>
  } : !ncclx.future<tensor<21x3xf32>>
  %r = ncclx.await %f : !ncclx.future<tensor<21x3xf32>> -> tensor<21x3xf32>
  %s = ncclx.all_to_all_v %r dim 0 sizes %n : tensor<7xi32> over @g["x"] : tensor<21x3xf32> -> tensor<21x3xf32>
  return %s : tensor<21x3xf32>
}
