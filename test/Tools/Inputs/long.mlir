// Two ranks that compute for seconds before they exchange: time enough to lose one.
ncclx.grid @g ["tp" = 2]
func.func private @spin(%a: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 1000000000 : index
  %x = tensor.extract %a[%zero] : tensor<4xf32>
  %s = scf.for %i = %zero to %many step %one iter_args(%y = %x) -> f32 {
    %z = arith.addf %y, %x : f32
    scf.yield %z : f32
  }
  %r = tensor.insert %s into %a[%zero] : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %b = ncclx.call @spin(%a) {flops = 1000000000, bytes = 32, sms = 1} : (tensor<4xf32>) -> tensor<4xf32>
  %r = ncclx.all_reduce %b sum accumulate f32 order any over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return %r : tensor<4xf32>
}
