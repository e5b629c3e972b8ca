// RUN: ncclx-opt %s | ncclx-opt | FileCheck %s
// RUN: ncclx-opt %s --emit-bytecode | ncclx-opt --ncclx-verify-legality | FileCheck %s

ncclx.grid @g ["tp" = 4]

// CHECK: func.func @sizes(%{{.*}}: tensor<?x8x?xf32> {ncclx.dims = ["n", "m"]}, %{{.*}}: tensor<4xf32>, %{{.*}}: tensor<?xf32> {ncclx.dims = ["n"]})
// CHECK: ncclx.sizes = {m = [0, 0], n = [1, 64]}
func.func @sizes(%a: tensor<?x8x?xf32> {ncclx.dims = ["n", "m"]}, %b: tensor<4xf32>, %c: tensor<?xf32> {ncclx.dims = ["n"]})
    -> tensor<?xf32> attributes {ncclx.sizes = {m = [0, 0], n = [1, 64]}} {
  // A loop as long as an argument is wide runs equally often on all ranks.
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %c, %c0 : tensor<?xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c) -> tensor<?xf32> {
    %y = ncclx.all_reduce %x sum accumulate f32 order any over @g["tp"] : tensor<?xf32> -> tensor<?xf32>
    scf.yield %y : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
