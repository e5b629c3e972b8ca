// Parts of unequal size (3 and 2 rows of each shard, 4 and 3 columns) give every bit of the whole.
// RUN: ncclx-opt %s --ncclx-split-exchanges="machine=%S/Inputs/small-tiles.json parts=2 margin=0" -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: ncclx-run %t.mlir --topology=%ncclx_src/examples/topologies/h200x8-nvswitch.xml --ranks=4 | FileCheck %s --check-prefix=OK
// CHECK-COUNT-2: ncclx.all_gather
// CHECK-COUNT-2: ncclx.reduce_scatter
// OK: ok:
ncclx.grid @g ["tp" = 4]
func.func @f(%a: tensor<5x12000xf32>, %w: tensor<12000x7xf32>, %v: tensor<7x7xf32>) -> (tensor<20x7xf32>, tensor<5x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<20x7xf32>) -> tensor<20x7xf32>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<5x12000xf32> -> tensor<20x12000xf32>
  %c = linalg.matmul ins(%full, %w : tensor<20x12000xf32>, tensor<12000x7xf32>) outs(%z : tensor<20x7xf32>) -> tensor<20x7xf32>
  %d = linalg.matmul ins(%c, %v : tensor<20x7xf32>, tensor<7x7xf32>) outs(%z : tensor<20x7xf32>) -> tensor<20x7xf32>
  %r = ncclx.reduce_scatter %d dim 0 sum accumulate f32 order ring over @g["tp"] : tensor<20x7xf32> -> tensor<5x7xf32>
  return %c, %r : tensor<20x7xf32>, tensor<5x7xf32>
}
