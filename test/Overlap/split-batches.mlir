// A block's rows in two halves, where the model gains by it; each rule of legality refuses, or keeps an op whole.
// RUN: ncclx-opt %s --ncclx-split-batches="machine=%S/Inputs/free-steps.json margin=0 rows=6" --remarks-filter=ncclx-split-batches --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.err
// The scheduler has one half communicate while the other computes.
// RUN: ncclx-opt %s --ncclx-split-batches="machine=%S/Inputs/free-steps.json margin=0 rows=6" --ncclx-overlap="machine=%S/Inputs/free-steps.json margin=0" | FileCheck %s --check-prefix=PLACED
// Half of a prefill waits for memory twice: latency and waves decide.
// RUN: ncclx-opt %s --ncclx-split-batches=machine=%ncclx_src/examples/machines/h100-multimem.json --remarks-filter=ncclx-split-batches --remark-policy=all 2>&1 >/dev/null | FileCheck %s --check-prefix=SMALL
// RUN: not ncclx-opt %s --ncclx-split-batches 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: ncclx-split-batches needs machine=FILE
// RUN: not ncclx-opt %s --ncclx-split-batches="machine=%ncclx_src/examples/machines/h100-nvswitch.json rows=-1" 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: ncclx-split-batches: rows is at least 0, found -1
// SMALL: BatchWhole{{.*}}Function=layer{{.*}} us whole

ncclx.grid @g ["tp" = 4]

// WHY: BatchSplit{{.*}}Function=layer{{.*}}2 collectives are cut
// CHECK-LABEL: @layer
// CHECK: tensor.extract_slice %arg0[0, 0] [6, 16]
// CHECK: linalg.matmul {{.*}} -> tensor<6x32xf32>
// CHECK: tensor.extract_slice %arg0[6, 0] [5, 16]
// CHECK: linalg.matmul {{.*}} -> tensor<5x32xf32>
// CHECK: ncclx.all_reduce {{.*}} : tensor<6x32xf32>
// CHECK: ncclx.all_reduce {{.*}} : tensor<5x32xf32>
// CHECK: linalg.matmul {{.*}} -> tensor<6x16xf32>
// CHECK: linalg.matmul {{.*}} -> tensor<5x16xf32>
// CHECK: ncclx.all_reduce {{.*}} : tensor<6x16xf32>
// CHECK: ncclx.all_reduce {{.*}} : tensor<5x16xf32>
// CHECK: tensor.insert_slice
// PLACED-LABEL: @layer
// PLACED: %[[F:.+]] = ncclx.start
// PLACED-NEXT: ncclx.all_reduce
// PLACED: linalg.matmul
// PLACED: ncclx.await %[[F]]
func.func @layer(%x: tensor<11x16xf32>, %a: tensor<16x32xf32>, %b: tensor<32x16xf32>) -> tensor<11x16xf32> {
  %e = tensor.empty() : tensor<11x32xf32>
  %c = linalg.matmul ins(%x, %a : tensor<11x16xf32>, tensor<16x32xf32>) outs(%e : tensor<11x32xf32>) -> tensor<11x32xf32>
  %r = ncclx.all_reduce %c sum accumulate f32 order rank over @g["tp"] : tensor<11x32xf32> -> tensor<11x32xf32>
  %f = tensor.empty() : tensor<11x16xf32>
  %d = linalg.matmul ins(%r, %b : tensor<11x32xf32>, tensor<32x16xf32>) outs(%f : tensor<11x16xf32>) -> tensor<11x16xf32>
  %s = ncclx.all_reduce %d sum accumulate f32 order rank over @g["tp"] : tensor<11x16xf32> -> tensor<11x16xf32>
  return %s : tensor<11x16xf32>
}

// A sum over the rows, and a kernel that does not say how it may be cut, get all of them; the rest is in halves.
// CHECK-LABEL: @whole_ops
// CHECK-DAG: ncclx.all_reduce {{.*}} : tensor<6x32xf32>
// CHECK-DAG: ncclx.all_reduce {{.*}} : tensor<5x32xf32>
// CHECK: %[[W:.+]] = linalg.matmul {{.*}} -> tensor<32x32xf32>
// CHECK: ncclx.call @mixes(%{{.+}}) {{.*}} : (tensor<11x32xf32>) -> tensor<11x32xf32>
// CHECK: ncclx.call @norm.rows6(
// CHECK-SAME: (tensor<6x32xf32>) -> tensor<6x32xf32>
// CHECK: ncclx.call @norm.rows5(
// CHECK-DAG: ncclx.all_reduce {{.*}} : tensor<6x32xf32>
// CHECK-DAG: ncclx.all_reduce {{.*}} : tensor<5x32xf32>
func.func private @mixes(tensor<11x32xf32>) -> tensor<11x32xf32>
func.func private @norm(tensor<11x32xf32>) -> tensor<11x32xf32>
func.func @whole_ops(%x: tensor<11x16xf32>, %a: tensor<16x32xf32>, %t: tensor<32x11xf32>, %b: tensor<32x32xf32>) -> (tensor<11x32xf32>, tensor<32x32xf32>) {
  %e = tensor.empty() : tensor<11x32xf32>
  %c = linalg.matmul ins(%x, %a : tensor<11x16xf32>, tensor<16x32xf32>) outs(%e : tensor<11x32xf32>) -> tensor<11x32xf32>
  %r = ncclx.all_reduce %c sum accumulate f32 order rank over @g["tp"] : tensor<11x32xf32> -> tensor<11x32xf32>
  %f = tensor.empty() : tensor<32x32xf32>
  %w = linalg.matmul ins(%t, %r : tensor<32x11xf32>, tensor<11x32xf32>) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %m = ncclx.call @mixes(%r) {flops = 0, bytes = 0, sms = 0} : (tensor<11x32xf32>) -> tensor<11x32xf32>
  %n = ncclx.call @norm(%m) {flops = 0, bytes = 0, sms = 0, ncclx.cut = array<i64: 0, 0>} : (tensor<11x32xf32>) -> tensor<11x32xf32>
  %d = linalg.matmul ins(%n, %b : tensor<11x32xf32>, tensor<32x32xf32>) outs(%e : tensor<11x32xf32>) -> tensor<11x32xf32>
  %s = ncclx.all_reduce %d sum accumulate f32 order rank over @g["tp"] : tensor<11x32xf32> -> tensor<11x32xf32>
  return %s, %w : tensor<11x32xf32>, tensor<32x32xf32>
}

// Chunks of a ring's order are counted over the whole tensor: a half has others.
// WHY: BatchWhole{{.*}}Function=ring_order{{.*}}no collective treats rows of its tensor alike
func.func @ring_order(%x: tensor<11x16xf32>, %a: tensor<16x32xf32>) -> tensor<11x32xf32> {
  %e = tensor.empty() : tensor<11x32xf32>
  %c = linalg.matmul ins(%x, %a : tensor<11x16xf32>, tensor<16x32xf32>) outs(%e : tensor<11x32xf32>) -> tensor<11x32xf32>
  %r = ncclx.all_reduce %c sum accumulate f32 order ring over @g["tp"] : tensor<11x32xf32> -> tensor<11x32xf32>
  return %r : tensor<11x32xf32>
}

// Nothing to hide one half behind: an op that counts its rows stays whole.
// WHY: BatchWhole{{.*}}Function=counts{{.*}}{{us whole|nothing that makes its rows}}
func.func @counts(%x: tensor<11x32xf32>) -> tensor<11x32xf32> {
  %e = tensor.empty() : tensor<11x32xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<11x32xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i32
    %v = arith.sitofp %k : i32 to f32
    linalg.yield %v : f32
  } -> tensor<11x32xf32>
  %r = ncclx.all_reduce %c sum accumulate f32 order rank over @g["tp"] : tensor<11x32xf32> -> tensor<11x32xf32>
  return %r : tensor<11x32xf32>
}

// WHY: BatchWhole{{.*}}Function=started{{.*}}it has no collective that is not started already
func.func @started(%x: tensor<11x32xf32>) -> tensor<11x32xf32> {
  %f = ncclx.start {
    %r = ncclx.all_reduce %x sum accumulate f32 order rank over @g["tp"] : tensor<11x32xf32> -> tensor<11x32xf32>
    ncclx.yield %r : tensor<11x32xf32>
  } : !ncclx.future<tensor<11x32xf32>>
  %r = ncclx.await %f : !ncclx.future<tensor<11x32xf32>> -> tensor<11x32xf32>
  return %r : tensor<11x32xf32>
}

// Sequence parallelism: collectives that gather and scatter the rows themselves. A half of what is gathered has the same rows
// of every shard; who needs all of them gets them in their order.
// WHY: BatchSplit{{.*}}Function=shards{{.*}}3 collectives are cut: {{.*}} us as 6 and 5 of 11 rows
// CHECK-LABEL: @shards
// CHECK: ncclx.all_gather {{.*}} : tensor<6x16xf32> -> tensor<24x16xf32>
// CHECK: ncclx.all_gather {{.*}} : tensor<5x16xf32> -> tensor<20x16xf32>
// CHECK: ncclx.reduce_scatter {{.*}} : tensor<24x16xf32> -> tensor<6x16xf32>
// CHECK: ncclx.reduce_scatter {{.*}} : tensor<20x16xf32> -> tensor<5x16xf32>
// CHECK: tensor.expand_shape {{.*}} tensor<24x16xf32> into tensor<4x6x16xf32>
// CHECK: tensor.insert_slice {{.*}}[0, 0, 0] [4, 6, 16]
// CHECK: tensor.insert_slice {{.*}}[0, 6, 0] [4, 5, 16]
// CHECK: tensor.collapse_shape {{.*}} into tensor<44x16xf32>
func.func @shards(%x: tensor<11x16xf32>, %w: tensor<16x16xf32>) -> tensor<44x16xf32> {
  %e = tensor.empty() : tensor<44x16xf32>
  %full = ncclx.all_gather %x dim 0 over @g["tp"] : tensor<11x16xf32> -> tensor<44x16xf32>
  %c = linalg.matmul ins(%full, %w : tensor<44x16xf32>, tensor<16x16xf32>) outs(%e : tensor<44x16xf32>) -> tensor<44x16xf32>
  %d = linalg.matmul ins(%c, %w : tensor<44x16xf32>, tensor<16x16xf32>) outs(%e : tensor<44x16xf32>) -> tensor<44x16xf32>
  %mine = ncclx.reduce_scatter %d dim 0 sum accumulate f32 order ring over @g["tp"] : tensor<44x16xf32> -> tensor<11x16xf32>
  %all = ncclx.all_gather %mine dim 0 over @g["tp"] : tensor<11x16xf32> -> tensor<44x16xf32>
  %f = linalg.matmul ins(%all, %w : tensor<44x16xf32>, tensor<16x16xf32>) outs(%e : tensor<44x16xf32>) -> tensor<44x16xf32>
  return %f : tensor<44x16xf32>
}
