// Each rule fires once, and once almost.
// RUN: ncclx-opt %s --ncclx-simplify-collectives --remarks-filter=ncclx-simplify-collectives --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.err
// REMARK: over a group of one is its input

ncclx.grid @g ["x" = 4, "one" = 1]
ncclx.grid @h ["y" = 2, "z" = 2]

// CHECK-LABEL: @group_of_one
func.func @group_of_one(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NOT: all_reduce
  %r = ncclx.all_reduce %a avg accumulate f64 order any over @g["one"] : tensor<4xf32> -> tensor<4xf32>
  // CHECK-NOT: gather
  %s = ncclx.gather %r dim 0 root [0] over @g["one"] : tensor<4xf32> -> tensor<4xf32>
  // Almost: elements are scaled; nobody sends; the group has four members.
  // CHECK: %[[T:.+]] = ncclx.all_reduce %{{.*}} sum scale
  %t = ncclx.all_reduce %a sum scale 5.0e-01 accumulate f32 order any over @g["one"] : tensor<4xf32> -> tensor<4xf32>
  // CHECK: %[[U:.+]] = ncclx.permute
  %u = ncclx.permute %a pairs [] over @g["one"] : tensor<4xf32> -> tensor<4xf32>
  // CHECK: %[[V:.+]] = ncclx.all_reduce
  %v = ncclx.all_reduce %a max accumulate f32 order any over @g["x"] : tensor<4xf32> -> tensor<4xf32>
  // CHECK: return %arg0, %[[T]], %[[U]], %[[V]]
  return %s, %t, %u, %v : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @group_of_one_counted
func.func @group_of_one_counted(%a: tensor<4xf32>, %n: tensor<1xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NOT: counts dense<4>
  %r = ncclx.all_to_all_v %a dim 0 counts dense<4> : tensor<1x1xi64> over @g["one"] : tensor<4xf32> -> tensor<4xf32>
  // Almost: the last row is zero; the sizes are known at run time only.
  // CHECK: %[[S:.+]] = ncclx.all_to_all_v %arg0 dim 0 counts dense<3>
  %s = ncclx.all_to_all_v %a dim 0 counts dense<3> : tensor<1x1xi64> over @g["one"] : tensor<4xf32> -> tensor<4xf32>
  // CHECK: %[[T:.+]] = ncclx.all_to_all_v %arg0 dim 0 sizes
  %t = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<1xi32> over @g["one"] : tensor<4xf32> -> tensor<4xf32>
  // CHECK: return %arg0, %[[S]], %[[T]]
  return %r, %s, %t : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @splat_counted
func.func @splat_counted() -> (tensor<3xf32>, tensor<3xf32>) {
  %c = arith.constant dense<2.0> : tensor<3xf32>
  // CHECK-NOT: {{\[\[}}1, 2], [2, 1]]
  %r = ncclx.all_to_all_v %c dim 0 counts dense<[[1, 2], [2, 1]]> : tensor<2x2xi64> over @h["y"] : tensor<3xf32> -> tensor<3xf32>
  // Almost: one member receives two rows, and then a zero.
  // CHECK: ncclx.all_to_all_v %{{.*}} dim 0 counts dense<{{\[\[}}1, 2], [1, 1]]>
  %s = ncclx.all_to_all_v %c dim 0 counts dense<[[1, 2], [1, 1]]> : tensor<2x2xi64> over @h["y"] : tensor<3xf32> -> tensor<3xf32>
  return %r, %s : tensor<3xf32>, tensor<3xf32>
}

// CHECK-LABEL: @splat
func.func @splat() -> (tensor<8xf32>, tensor<2xf32>, tensor<2xf32>, tensor<8xf32>) {
  // CHECK-DAG: arith.constant dense<2.000000e+00> : tensor<8xf32>
  %c = arith.constant dense<2.0> : tensor<2xf32>
  %r = ncclx.all_gather %c dim 0 over @g["x"] : tensor<2xf32> -> tensor<8xf32>
  // CHECK-NOT: broadcast
  %s = ncclx.broadcast %c root [1] over @g["x"] : tensor<2xf32> -> tensor<2xf32>
  // Almost: some get zeros; the constant is no splat.
  // CHECK: ncclx.permute
  %t = ncclx.permute %c pairs [0 -> 1] over @g["x"] : tensor<2xf32> -> tensor<2xf32>
  // CHECK: ncclx.all_gather
  %d = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %u = ncclx.all_gather %d dim 0 over @g["x"] : tensor<2xf32> -> tensor<8xf32>
  return %r, %s, %t, %u : tensor<8xf32>, tensor<2xf32>, tensor<2xf32>, tensor<8xf32>
}

// CHECK-LABEL: @pairs
func.func @pairs(%a: tensor<10xf32>) -> (tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>) {
  // CHECK-NEXT: %[[R:.+]] = ncclx.all_reduce %arg0 max accumulate f32 order rank over @g["x"]
  %0 = ncclx.reduce_scatter %a dim 0 max accumulate f32 order rank over @g["x"] : tensor<10xf32> -> tensor<3xf32>
  %r = ncclx.all_gather %0 dim 0 over @g["x"] : tensor<3xf32> -> tensor<10xf32>
  // CHECK-NEXT: %[[S:.+]] = ncclx.all_reduce %[[R]] sum scale 2.000000e+00 accumulate f64 order any over @g["x"]
  %1 = ncclx.reduce %r root [2] sum scale 2.0 accumulate f64 order any over @g["x"] : tensor<10xf32> -> tensor<10xf32>
  %s = ncclx.broadcast %1 root [2] over @g["x"] : tensor<10xf32> -> tensor<10xf32>
  // CHECK-NEXT: %[[T:.+]] = ncclx.broadcast %[[S]] root [1] over @g["x"]
  %2 = ncclx.scatter %s dim 0 root [1] over @g["x"] : tensor<10xf32> -> tensor<3xf32>
  %t = ncclx.all_gather %2 dim 0 over @g["x"] : tensor<3xf32> -> tensor<10xf32>
  // CHECK-NEXT: %[[U:.+]] = ncclx.permute %[[T]] shift 1 over @g["x"]
  %3 = ncclx.permute %t shift 2 over @g["x"] : tensor<10xf32> -> tensor<10xf32>
  %u = ncclx.permute %3 shift 3 over @g["x"] : tensor<10xf32> -> tensor<10xf32>
  // CHECK-NEXT: return %[[R]], %[[S]], %[[T]], %[[U]]
  return %r, %s, %t, %u : tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>
}

// CHECK-LABEL: @almost_pairs
func.func @almost_pairs(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<2xf32>, tensor<8xf32>, tensor<8xf32>, tensor<7xf32>, tensor<8xf32>) {
  // A ring's order says who holds what.
  // CHECK-NEXT: reduce_scatter
  // CHECK-NEXT: all_gather
  %0 = ncclx.reduce_scatter %a dim 0 sum accumulate f32 order ring over @g["x"] : tensor<8xf32> -> tensor<2xf32>
  %r = ncclx.all_gather %0 dim 0 over @g["x"] : tensor<2xf32> -> tensor<8xf32>
  // The shard has another use.
  // CHECK-NEXT: reduce_scatter
  // CHECK-NEXT: all_gather
  %1 = ncclx.reduce_scatter %a dim 0 sum accumulate f32 order any over @g["x"] : tensor<8xf32> -> tensor<2xf32>
  %s = ncclx.all_gather %1 dim 0 over @g["x"] : tensor<2xf32> -> tensor<8xf32>
  // Another root.
  // CHECK-NEXT: reduce
  // CHECK-NEXT: broadcast
  %2 = ncclx.reduce %a root [0] sum accumulate f32 order any over @g["x"] : tensor<8xf32> -> tensor<8xf32>
  %t = ncclx.broadcast %2 root [1] over @g["x"] : tensor<8xf32> -> tensor<8xf32>
  // Less is gathered than was scattered.
  // CHECK-NEXT: reduce_scatter
  // CHECK-NEXT: all_gather
  %3 = ncclx.reduce_scatter %a dim 0 sum accumulate f32 order any over @g["x"] : tensor<8xf32> -> tensor<2xf32>
  %u = ncclx.all_gather %3 dim 0 over @g["x"] : tensor<2xf32> -> tensor<7xf32>
  // An algorithm is asked for.
  // CHECK-NEXT: permute
  // CHECK-NEXT: permute
  %4 = ncclx.permute %a shift 1 over @g["x"] algorithm ring : tensor<8xf32> -> tensor<8xf32>
  %v = ncclx.permute %4 shift 1 over @g["x"] : tensor<8xf32> -> tensor<8xf32>
  return %r, %1, %s, %t, %u, %v : tensor<8xf32>, tensor<2xf32>, tensor<8xf32>, tensor<8xf32>, tensor<7xf32>, tensor<8xf32>
}
