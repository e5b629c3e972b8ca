// What groups that no axes span, of two sizes, and collectives with a root are carried by: all forms are timed.
// RUN: ncclx-opt %s --ncclx-choose-algorithm=topology=%ncclx_src/examples/topologies/h200x8-nvswitch.json --remarks-filter=ncclx-choose-algorithm --remark-policy=all -o %t.chosen 2>&1 | FileCheck %s
// RUN: ncclx-opt %t.chosen --ncclx-bufferize --convert-ncclx-to-ctran --ctran-verify=undecided=error -o /dev/null
// RUN: sed '/^func.func @small/,/^}/d; /^func.func @round/,/^}/d' %s | ncclx-opt --ncclx-choose-algorithm=topology=%ncclx_src/examples/topologies/torus-4x4.json --remarks-filter=ncclx-choose-algorithm --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=TORUS
ncclx.grid @g ["x" = 8]
ncclx.grid @k ["x" = 4]

// CHECK: eager for all_reduce, fastest by prediction;{{.*}} ring refused: it takes {{.*}} us; bruck refused: it takes
func.func @small(%a: tensor<80xf32>) -> tensor<80xf32> {
  %0 = ncclx.all_reduce %a sum accumulate f32 order any over @g groups [[3, 1, 6], [2, 0, 4, 5, 7]] : tensor<80xf32> -> tensor<80xf32>
  return %0 : tensor<80xf32>
}

// In ring order a ring alone.
// CHECK: ring for all_reduce,{{.*}} direct refused: it reduces in rank order{{.*}} ring {{[0-9.]+}} us
func.func @round(%a: tensor<80xf32>) -> tensor<80xf32> {
  %0 = ncclx.all_reduce %a sum accumulate f32 order ring over @g groups [[3, 1, 6], [2, 0, 4, 5, 7]] : tensor<80xf32> -> tensor<80xf32>
  return %0 : tensor<80xf32>
}

// Links that join neighbours: what has a root goes from hand to hand.
// CHECK: direct for gather, fastest by prediction
// TORUS: ring for gather, fastest by prediction; direct refused: it moves something {{.*}} and nothing leads there; ring
// TORUS: ring for scatter, fastest by prediction; direct refused: it moves something {{.*}} and nothing leads there; ring
func.func @rooted(%a: tensor<8xf32>) -> (tensor<32xf32>, tensor<2xf32>) {
  %0 = ncclx.gather %a dim 0 root [2] over @k["x"] : tensor<8xf32> -> tensor<32xf32>
  %1 = ncclx.scatter %a dim 0 root [2] over @k["x"] : tensor<8xf32> -> tensor<2xf32>
  return %0, %1 : tensor<32xf32>, tensor<2xf32>
}
