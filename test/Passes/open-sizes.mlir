// What must know sizes says so of a graph that leaves some open; what holds for all sizes is done.
// RUN: not ncclx-opt %s --ncclx-bufferize 2>&1 | FileCheck %s
// RUN: not ncclx-opt %s --ncclx-choose-algorithm=topology=%ncclx_src/examples/topologies/h200x8-nvswitch.json 2>&1 | FileCheck %s
// RUN: not ncclx-opt %s --ncclx-explain=topology=%ncclx_src/examples/topologies/h200x8-nvswitch.json 2>&1 | FileCheck %s
// RUN: not ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json 2>&1 | FileCheck %s
// RUN: not ncclx-opt %s --ncclx-split-exchanges=machine=%ncclx_src/examples/machines/h100-nvswitch.json 2>&1 | FileCheck %s
// CHECK: error: 'ncclx.reduce_scatter' op has a size that is not known yet in 'tensor<?xf32>'; ncclx-specialize-sizes makes the graph for given sizes
// RUN: ncclx-opt %s --ncclx-simplify-collectives | FileCheck %s --check-prefix=SAME
// RUN: ncclx-opt %s --ncclx-specialize-sizes=sizes=n=8 --ncclx-simplify-collectives | FileCheck %s --check-prefix=EVEN
// RUN: ncclx-opt %s --ncclx-specialize-sizes=sizes=n=7 --ncclx-simplify-collectives | FileCheck %s --check-prefix=UNEVEN
// RUN: sed 's/0, 64/0, 9223372036854775807/' %s | not ncclx-opt --ncclx-specialize-sizes=sizes=n=9223372036854775807 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: sed 's/0, 64/0, 9223372036854775807/' %s | not ncclx-opt --ncclx-specialize-sizes=sizes=n=4611686018427387904 2>&1 | FileCheck %s --check-prefix=BYTES
// ROWS: error: 'ncclx.all_gather' op gathers more than 2^63 rows
// BYTES: error: 'ncclx.reduce_scatter' op needs less than 2^63 bytes

ncclx.grid @g ["x" = 4]
// Four times the rows of a shard are as many as there were only where four divides them.
// SAME-LABEL: func.func @f
// SAME: reduce_scatter
// SAME: all_gather
// EVEN-LABEL: func.func @f
// EVEN: all_reduce {{.*}} : tensor<8xf32> -> tensor<8xf32>
// UNEVEN-LABEL: func.func @f
// UNEVEN: reduce_scatter {{.*}} : tensor<7xf32> -> tensor<2xf32>
// UNEVEN: all_gather {{.*}} : tensor<2xf32> -> tensor<8xf32>
func.func @f(%a: tensor<?xf32> {ncclx.dims = ["n"]}) -> tensor<?xf32> attributes {ncclx.sizes = {n = [0, 64]}} {
  %s = ncclx.reduce_scatter %a dim 0 sum accumulate f32 order any over @g["x"] : tensor<?xf32> -> tensor<?xf32>
  %r = ncclx.all_gather %s dim 0 over @g["x"] : tensor<?xf32> -> tensor<?xf32>
  return %r : tensor<?xf32>
}
