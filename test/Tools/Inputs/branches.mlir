// Four ways: what is done with %a depends on two numbers that all ranks have.
ncclx.grid @g ["x" = 4]
func.func @f(%a: tensor<8x6xf32>, %step: tensor<2xi32> {ncclx.uniform}) -> (tensor<8x6xf32>, tensor<2x6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %s0 = tensor.extract %step[%c0] : tensor<2xi32>
  %s1 = tensor.extract %step[%c1] : tensor<2xi32>
  %p0 = arith.cmpi sgt, %s0, %zero : i32
  %p1 = arith.cmpi sgt, %s1, %zero : i32
  %r = scf.if %p0 -> tensor<8x6xf32> {
    %q = scf.if %p1 -> tensor<8x6xf32> {
      %x = ncclx.all_reduce %a sum accumulate f32 order any over @g["x"] : tensor<8x6xf32> -> tensor<8x6xf32>
      scf.yield %x : tensor<8x6xf32>
    } else {
      %x = ncclx.permute %a shift 1 over @g["x"] : tensor<8x6xf32> -> tensor<8x6xf32>
      scf.yield %x : tensor<8x6xf32>
    }
    scf.yield %q : tensor<8x6xf32>
  } else {
    scf.yield %a : tensor<8x6xf32>
  }
  %e = tensor.empty() : tensor<8x6xf32>
  %t = linalg.add ins(%r, %a : tensor<8x6xf32>, tensor<8x6xf32>) outs(%e : tensor<8x6xf32>) -> tensor<8x6xf32>
  %u = scf.if %p1 -> tensor<2x6xf32> {
    %x = ncclx.reduce_scatter %t dim 0 sum accumulate f32 order any over @g["x"] : tensor<8x6xf32> -> tensor<2x6xf32>
    scf.yield %x : tensor<2x6xf32>
  } else {
    %x = tensor.extract_slice %t[0, 0] [2, 6] [1, 1] : tensor<8x6xf32> to tensor<2x6xf32>
    scf.yield %x : tensor<2x6xf32>
  }
  return %t, %u : tensor<8x6xf32>, tensor<2x6xf32>
}
