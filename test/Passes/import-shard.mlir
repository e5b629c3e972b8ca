// Collectives of upstream's shard dialect become those of ncclx, in the order of the axes that they list.
// RUN: ncclx-opt %s --ncclx-import-shard | FileCheck %s
// What they mean is what the schedule does, on 4 ranks.
// RUN: ncclx-opt %s --ncclx-import-shard -o %t.mlir
// RUN: ncclx-run %t.mlir --topology=%ncclx_src/examples/topologies/h200x8-nvswitch.xml --ranks=4 | FileCheck %s --check-prefix=OK
// OK: ok:

// CHECK: ncclx.grid @grid ["x0" = 2, "x1" = 2]
// CHECK-NOT: shard
shard.grid @grid(shape = 2x2)

// CHECK-LABEL: @f
// CHECK: %[[ME:.+]] = ncclx.reduce_scatter %{{.+}} dim 0 max accumulate i64 order any over @grid["x1"] : tensor<2xi64> -> tensor<1xi64>
func.func @f(%a: tensor<4x8xf32>, %h: tensor<4x8xbf16>) -> (tensor<8x8xf32>, tensor<4x8xf32>, tensor<2x8xf32>, tensor<16x2xf32>, tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: ncclx.all_gather %arg0 dim 0 over @grid["x1"] : tensor<4x8xf32> -> tensor<8x8xf32>
  %0 = shard.all_gather %a on @grid grid_axes = [1] gather_axis = 0 : tensor<4x8xf32> -> tensor<8x8xf32>
  // A wider result is what is accumulated in.
  // CHECK: %[[W:.+]] = arith.extf %arg1 : tensor<4x8xbf16> to tensor<4x8xf32>
  // CHECK: ncclx.all_reduce %[[W]] max accumulate f32 order any over @grid["x1", "x0"]
  %1 = shard.all_reduce %h on @grid grid_axes = [1, 0] reduction = max : tensor<4x8xbf16> -> tensor<4x8xf32>
  // CHECK: ncclx.reduce_scatter %arg0 dim 0 min accumulate f32 order any over @grid["x0"]
  %2 = shard.reduce_scatter %a on @grid grid_axes = [0] reduction = min scatter_axis = 0 : tensor<4x8xf32> -> tensor<2x8xf32>
  // CHECK: ncclx.all_to_all %arg0 split 1 concat 0 over @grid["x0", "x1"]
  %3 = shard.all_to_all %a on @grid grid_axes = [0, 1] split_axis = 1 concat_axis = 0 : tensor<4x8xf32> -> tensor<16x2xf32>
  // CHECK: linalg.generic
  // CHECK: tensor.extract %[[ME]]
  // CHECK: tensor.extract %arg0
  %4 = shard.all_slice %a on @grid grid_axes = [1] slice_axis = 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  // CHECK: ncclx.permute %arg0 shift 1 over @grid["x0"]
  %5 = shard.shift %a on @grid grid_axes = [0, 1] shift_axis = 0 offset = 1 rotate : tensor<4x8xf32> -> tensor<4x8xf32>
  // CHECK: ncclx.permute %arg0 pairs [0 -> 1] over @grid["x1"]
  %6 = shard.shift %a on @grid grid_axes = [1] shift_axis = 1 offset = 1 : tensor<4x8xf32> -> tensor<4x8xf32>
  // CHECK: ncclx.broadcast %arg0 root [1, 0] over @grid["x0", "x1"]
  %7 = shard.broadcast %a on @grid grid_axes = [0, 1] root = [1, 0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // Over no axes a rank is alone.
  // CHECK: return {{.*}}, %arg0 : 
  %8 = shard.all_reduce %a on @grid : tensor<4x8xf32> -> tensor<4x8xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<8x8xf32>, tensor<4x8xf32>, tensor<2x8xf32>, tensor<16x2xf32>, tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
