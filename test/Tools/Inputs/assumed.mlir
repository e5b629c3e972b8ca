// Each rank has a number of its own, and says that all have the same.
ncclx.grid @g ["x" = 4]
func.func @f(%a: tensor<8xf32>, %n: tensor<1xi32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %three = arith.constant 3 : i32
  %m = tensor.extract %n[%c0] : tensor<1xi32>
  %k = arith.remui %m, %three : i32
  %u = ncclx.assume_uniform %k : i32
  %turns = arith.index_cast %u : i32 to index
  %r = scf.for %i = %c0 to %turns step %c1 iter_args(%x = %a) -> tensor<8xf32> {
    %y = ncclx.permute %x shift 1 over @g["x"] : tensor<8xf32> -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
