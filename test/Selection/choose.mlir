// Each choice is a remark with the times of the algorithms, or why one is refused; an order that is
// left open becomes that of the algorithm.
// RUN: ncclx-opt %s --ncclx-choose-algorithm=topology=%ncclx_src/examples/topologies/h200x8-nvswitch.json --remarks-filter=ncclx-choose-algorithm --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.err
// RUN: not ncclx-opt %s --ncclx-choose-algorithm 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ncclx-opt %s --ncclx-choose-algorithm=topology=%t.nowhere 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not ncclx-opt %s --ncclx-choose-algorithm=topology=%ncclx_src/examples/topologies/h100x4-mesh.json 2>&1 | FileCheck %s --check-prefix=SMALL
// NONE: error: ncclx-choose-algorithm needs topology=FILE
// NOWHERE: error: {{.*}}nowhere
// SMALL: error: 'ncclx.all_reduce' op runs on 8 ranks, but the topology 'h100x4-mesh' has 4

ncclx.grid @g ["tp" = 8]
func.func @f(%a: tensor<8xf32>, %b: tensor<8xbf16>) -> (tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  // A small one is fastest in one step.
  // REMARK: AlgorithmChosen
  // REMARK-SAME: eager for all_reduce, fastest by prediction; direct refused: it takes more than {{[0-9.]+}} us; ring refused: it takes at least {{[0-9.]+}} us, eager {{[0-9.]+}} us; bruck refused: it takes more than {{[0-9.]+}} us; binomial refused: all_reduce has no root; eager {{[0-9.]+}} us; trees refused: trees are not considered; routed refused: there are no routes for all_reduce; hierarchical refused: tiers are not considered; switch refused: what switches do is not asked for (in-network); bound {{[0-9.]+}} us by latency, ratio {{[0-9.]+}}
  // CHECK: ncclx.all_reduce %{{.+}} sum accumulate f32 order rank over @g["tp"] algorithm eager
  %r = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] : tensor<8xf32> -> tensor<8xf32>
  // REMARK: eager for all_reduce, fastest by prediction; direct refused: it takes more than {{[0-9.]+}} us; ring refused: a ring accumulates in the element type
  // CHECK: ncclx.all_reduce {{.*}} order rank over @g["tp"] algorithm eager
  %s = ncclx.all_reduce %b sum accumulate f32 order any over @g["tp"] : tensor<8xbf16> -> tensor<8xbf16>
  // REMARK: ring for all_reduce, fastest by prediction; direct refused: it reduces in rank order, not in ring order; ring {{[0-9.]+}} us
  // CHECK: ncclx.all_reduce {{.*}} order ring over @g["tp"] algorithm ring
  %t = ncclx.all_reduce %a sum accumulate f32 order ring over @g["tp"] : tensor<8xf32> -> tensor<8xf32>
  // What names an algorithm keeps it, and gets its order.
  // CHECK: ncclx.all_reduce {{.*}} order ring over @g["tp"] algorithm ring
  // REMARK-NOT: ring for all_reduce
  %u = ncclx.all_reduce %a max accumulate f32 order any over @g["tp"] algorithm ring : tensor<8xf32> -> tensor<8xf32>
  // REMARK: direct for permute, fastest by prediction; direct {{[0-9.]+}} us; ring refused: a ring carries a shift and not listed pairs
  // CHECK: ncclx.permute {{.*}} algorithm direct
  %v = ncclx.permute %a pairs [0 -> 1] over @g["tp"] : tensor<8xf32> -> tensor<8xf32>
  return %r, %s, %t, %u, %v : tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
