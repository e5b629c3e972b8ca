// Pieces of unequal size (8, 8 and 4 rows) give every bit of the whole, beside the collectives that they are placed with.
// RUN: ncclx-opt %s --ncclx-split-sinks="machine=%S/Inputs/small-tiles.json piece-us=0.02" --ncclx-overlap=machine=%S/Inputs/small-tiles.json -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: ncclx-run %t.mlir --topology=%ncclx_src/examples/topologies/h200x8-nvswitch.xml --ranks=4 | FileCheck %s --check-prefix=OK
// CHECK: tensor.insert_slice {{.*}}[16, 0] [4, 12]
// OK: ok:
ncclx.grid @g ["tp" = 4]
func.func @f(%dy: tensor<4x12xf32>, %act: tensor<20x16xf32>, %w: tensor<12x12xf32>) -> (tensor<20x12xf32>, tensor<16x12xf32>) {
  %zero = arith.constant 0.0 : f32
  %full = ncclx.all_gather %dy dim 0 over @g["tp"] : tensor<4x12xf32> -> tensor<16x12xf32>
  %e = tensor.empty() : tensor<20x12xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<20x12xf32>) -> tensor<20x12xf32>
  %wgrad = linalg.matmul ins(%act, %full : tensor<20x16xf32>, tensor<16x12xf32>) outs(%z : tensor<20x12xf32>) -> tensor<20x12xf32>
  %d = tensor.empty() : tensor<16x12xf32>
  %dz = linalg.fill ins(%zero : f32) outs(%d : tensor<16x12xf32>) -> tensor<16x12xf32>
  %dgrad = linalg.matmul ins(%full, %w : tensor<16x12xf32>, tensor<12x12xf32>) outs(%dz : tensor<16x12xf32>) -> tensor<16x12xf32>
  %part = ncclx.reduce_scatter %dgrad dim 0 sum accumulate f32 order rank over @g["tp"] : tensor<16x12xf32> -> tensor<4x12xf32>
  %again = ncclx.all_gather %part dim 0 over @g["tp"] : tensor<4x12xf32> -> tensor<16x12xf32>
  return %wgrad, %again : tensor<20x12xf32>, tensor<16x12xf32>
}
