// What a kernel gives depends on where its input lies: no two runs agree.
ncclx.grid @g ["x" = 4]
func.func private @address(%a: tensor<2xi64>) -> tensor<2xi64> {
  %m = bufferization.to_buffer %a : tensor<2xi64> to memref<2xi64>
  %p = memref.extract_aligned_pointer_as_index %m : memref<2xi64> -> index
  %v = arith.index_cast %p : index to i64
  %r = tensor.splat %v : tensor<2xi64>
  return %r : tensor<2xi64>
}
func.func @f(%a: tensor<2xi64>) -> tensor<2xi64> {
  %0 = ncclx.call @address(%a) {flops = 1, bytes = 32, sms = 1} : (tensor<2xi64>) -> tensor<2xi64>
  %1 = ncclx.permute %0 shift 1 over @g["x"] : tensor<2xi64> -> tensor<2xi64>
  return %1 : tensor<2xi64>
}
