// RUN: ncclx-opt %s --ncclx-specialize-sizes=sizes=n=5,m=3 --split-input-file | FileCheck %s
// What holds without open sizes holds of the graph for given ones.
// RUN: ncclx-opt %s --ncclx-specialize-sizes=sizes=n=5,m=3 --split-input-file --ncclx-verify-legality -o /dev/null

ncclx.grid @g ["tp" = 4]

// Every collective: what follows of the input's size follows, and a destination says the rest.
// CHECK-LABEL: func.func @collectives
// CHECK-SAME: (%{{.*}}: tensor<5x8xf32>, %{{.*}}: tensor<3x8xf32>) -> tensor<8x20xf32>
// CHECK-NOT: ncclx.sizes
func.func @collectives(%a: tensor<?x8xf32> {ncclx.dims = ["n"]}, %b: tensor<?x8xf32> {ncclx.dims = ["m"]})
    -> tensor<8x?xf32> attributes {ncclx.sizes = {m = [1, 7], n = [0, 64]}} {
  // CHECK: all_gather {{.*}} : tensor<5x8xf32> -> tensor<20x8xf32>
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: reduce_scatter {{.*}} : tensor<5x8xf32> -> tensor<2x8xf32>
  %1 = ncclx.reduce_scatter %a dim 0 sum accumulate f32 order any over @g["tp"] : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: %[[E:.*]] = tensor.empty() : tensor<5x8xf32>
  // CHECK: all_gather {{.*}} into(%[[E]] : tensor<5x8xf32>) : tensor<2x8xf32> -> tensor<5x8xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %2 = ncclx.all_gather %1 dim 0 over @g["tp"] into(%e : tensor<?x8xf32>) : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: all_reduce {{.*}} : tensor<3x8xf32> -> tensor<3x8xf32>
  %3 = ncclx.all_reduce %b sum accumulate f32 order any over @g["tp"] : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: all_to_all {{.*}} : tensor<5x8xf32> -> tensor<20x2xf32>
  %4 = ncclx.all_to_all %a split 1 concat 0 over @g["tp"] : tensor<?x8xf32> -> tensor<?x2xf32>
  // CHECK: all_to_all {{.*}} : tensor<20x2xf32> -> tensor<20x2xf32>
  %5 = ncclx.all_to_all %4 split 0 concat 0 over @g["tp"] : tensor<?x2xf32> -> tensor<?x2xf32>
  // CHECK: all_to_all {{.*}} : tensor<20x2xf32> -> tensor<5x8xf32>
  %6 = ncclx.all_to_all %5 split 0 concat 1 over @g["tp"] : tensor<?x2xf32> -> tensor<?x8xf32>
  // CHECK: broadcast {{.*}} : tensor<5x8xf32> -> tensor<5x8xf32>
  %7 = ncclx.broadcast %6 root [1] over @g["tp"] : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: scatter {{.*}} : tensor<5x8xf32> -> tensor<2x8xf32>
  %8 = ncclx.scatter %7 dim 0 root [1] over @g["tp"] : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: gather {{.*}} : tensor<2x8xf32> -> tensor<8x8xf32>
  %9 = ncclx.gather %8 dim 0 root [1] over @g["tp"] : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: permute {{.*}} : tensor<8x8xf32> -> tensor<8x8xf32>
  %10 = ncclx.permute %9 shift 1 over @g["tp"] : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: all_to_all_v {{.*}} : tensor<5x8xf32> -> tensor<5x8xf32>
  %11 = ncclx.all_to_all_v %a dim 0 counts dense<1> : tensor<4x4xi64> over @g["tp"] into(%e : tensor<?x8xf32>)
      : tensor<?x8xf32> -> tensor<?x8xf32>
  // CHECK: linalg.transpose ins({{.*}} : tensor<20x8xf32>) outs({{.*}} : tensor<8x20xf32>)
  %c4 = arith.constant 4 : index
  %n4 = arith.muli %n, %c4 : index
  %t = tensor.empty(%n4) : tensor<8x?xf32>
  %12 = linalg.transpose ins(%0 : tensor<?x8xf32>) outs(%t : tensor<8x?xf32>) permutation = [1, 0]
  return %12 : tensor<8x?xf32>
}

// -----

ncclx.grid @g ["tp" = 2]

// Computation: elementwise ops, structured ops, slices, shapes, kernels, loops, branches.
// CHECK-LABEL: func.func private @kernel_0
// CHECK-SAME: (%{{.*}}: tensor<5x4xf32>, %{{.*}}: index) -> tensor<5x4xf32>
// CHECK: tensor.empty() : tensor<5x4xf32>
func.func private @kernel(%a: tensor<?x4xf32>, %rows: index) -> tensor<?x4xf32> {
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %0 = linalg.exp ins(%a : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @computation
// CHECK-SAME: -> (tensor<20xf32>, tensor<7x4xf32>, tensor<2x4xf32>, tensor<8x4xf32>)
func.func @computation(%a: tensor<?x4xf32> {ncclx.dims = ["n"]}, %b: tensor<?x?xf32> {ncclx.dims = ["m", "n"]})
    -> (tensor<?xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>)
    attributes {ncclx.sizes = {m = [1, 7], n = [0, 64]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?x4xf32>
  // CHECK: arith.addf {{.*}} : tensor<5x4xf32>
  %0 = arith.addf %a, %a : tensor<?x4xf32>
  // CHECK: ncclx.call @kernel_0
  %1 = ncclx.call @kernel(%0, %n) {flops = 1, bytes = 1, sms = 1} : (tensor<?x4xf32>, index) -> tensor<?x4xf32>
  // A loop as often as there are rows, which carries a tensor.
  // CHECK: scf.for {{.*}} to %c5{{.*}} step {{.*}} -> (tensor<5x4xf32>)
  %2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %1) -> tensor<?x4xf32> {
    %y = ncclx.all_reduce %x max accumulate f32 order any over @g["tp"] : tensor<?x4xf32> -> tensor<?x4xf32>
    scf.yield %y : tensor<?x4xf32>
  }
  // A branch on a size is taken; one on data has both sides.
  // CHECK-NOT: scf.if
  // CHECK: arith.mulf {{.*}} : tensor<5x4xf32>
  %many = arith.cmpi sgt, %n, %c2 : index
  %3 = scf.if %many -> tensor<?x4xf32> {
    %y = arith.mulf %2, %2 : tensor<?x4xf32>
    scf.yield %y : tensor<?x4xf32>
  } else {
    scf.yield %2 : tensor<?x4xf32>
  }
  // CHECK: tensor.collapse_shape {{.*}} : tensor<5x4xf32> into tensor<20xf32>
  %4 = tensor.collapse_shape %3 [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  // CHECK: tensor.pad
  // CHECK: : tensor<5x4xf32> to tensor<7x4xf32>
  %5 = tensor.pad %3 low[0, 0] high[%c2, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x4xf32> to tensor<?x4xf32>
  // CHECK: tensor.extract_slice {{.*}}[0, 0] [2, 4] [1, 1] : tensor<5x4xf32> to tensor<2x4xf32>
  %half = arith.divui %n, %c2 : index
  %6 = tensor.extract_slice %3[0, 0] [%half, 4] [1, 1] : tensor<?x4xf32> to tensor<?x4xf32>
  // CHECK: tensor.insert_slice {{.*}}[0, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<5x4xf32>
  %7 = tensor.insert_slice %6 into %3[0, 0] [%half, 4] [1, 1] : tensor<?x4xf32> into tensor<?x4xf32>
  // CHECK: linalg.matmul ins({{.*}} : tensor<3x5xf32>, tensor<5x4xf32>) outs({{.*}} : tensor<3x4xf32>)
  %m = tensor.dim %b, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %8 = linalg.matmul ins(%b, %7 : tensor<?x?xf32>, tensor<?x4xf32>) outs(%f : tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: tensor.concat dim(0) {{.*}} : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<8x4xf32>
  %9 = tensor.concat dim(0) %8, %7 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %4, %5, %6, %9 : tensor<?xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

ncclx.grid @g ["tp" = 2]

// In flight: futures, chunks, functions that communicate.
// CHECK-LABEL: func.func private @inner_0
// CHECK: all_gather {{.*}} : tensor<5xi32> -> tensor<10xi32>
func.func private @inner(%a: tensor<?xi32>) -> tensor<?xi32> {
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<?xi32> -> tensor<?xi32>
    ncclx.yield %r : tensor<?xi32>
  } : !ncclx.future<tensor<?xi32>>
  // CHECK: ncclx.await {{.*}} : !ncclx.future<tensor<10xi32>> -> tensor<5xi32>
  %c0 = arith.constant 0 : index
  %c = ncclx.await %f chunk %c0 of 2 dim 0 : !ncclx.future<tensor<?xi32>> -> tensor<?xi32>
  // CHECK: ncclx.await {{.*}} : !ncclx.future<tensor<10xi32>> -> tensor<10xi32>
  %v = ncclx.await %f : !ncclx.future<tensor<?xi32>> -> tensor<?xi32>
  return %c : tensor<?xi32>
}
// CHECK-LABEL: func.func @outer(
// CHECK-SAME: -> tensor<5xi32>
// CHECK: call @inner_0
// CHECK: call @inner_0
func.func @outer(%a: tensor<?xi32> {ncclx.dims = ["n"]}, %b: tensor<?xi32> {ncclx.dims = ["m"]}) -> tensor<?xi32>
    attributes {ncclx.sizes = {n = [5, 5], m = [3, 3]}} {
  %0 = call @inner(%a) : (tensor<?xi32>) -> tensor<?xi32>
  %1 = call @inner(%0) : (tensor<?xi32>) -> tensor<?xi32>
  return %1 : tensor<?xi32>
}

// -----

// Every way that control flow carries a tensor; a callee that stands last.
ncclx.grid @g ["tp" = 2]
// CHECK-LABEL: func.func @ways
// CHECK-SAME: -> tensor<5xf32>
func.func @ways(%a: tensor<?xf32> {ncclx.dims = ["n"]}, %i: index {ncclx.uniform}, %b: tensor<?xf32> {ncclx.dims = ["m"]}) -> tensor<?xf32> attributes {ncclx.sizes = {m = [3, 3], n = [0, 64]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.while {{.*}} : (tensor<5xf32>, index) -> (tensor<5xf32>, index)
  %r:2 = scf.while (%x = %a, %k = %c0) : (tensor<?xf32>, index) -> (tensor<?xf32>, index) {
    %c = arith.cmpi slt, %k, %i : index
    scf.condition(%c) %x, %k : tensor<?xf32>, index
  } do {
  ^bb0(%x: tensor<?xf32>, %k: index):
    %y = ncclx.all_reduce %x max accumulate f32 order any over @g["tp"] : tensor<?xf32> -> tensor<?xf32>
    %k1 = arith.addi %k, %c1 : index
    scf.yield %y, %k1 : tensor<?xf32>, index
  }
  // CHECK: scf.index_switch {{.*}} -> tensor<5xf32>
  %s = scf.index_switch %i -> tensor<?xf32>
  case 2 { scf.yield %r#0 : tensor<?xf32> }
  default { %q = arith.negf %a : tensor<?xf32> scf.yield %q : tensor<?xf32> }
  // CHECK: scf.execute_region -> tensor<5xf32>
  %e = scf.execute_region -> tensor<?xf32> { %q = math.exp %s : tensor<?xf32> scf.yield %q : tensor<?xf32> }
  %cmp = arith.cmpf ogt, %e, %a : tensor<?xf32>
  // CHECK: arith.select {{.*}} : tensor<5xi1>, tensor<5xf32>
  %sel = arith.select %cmp, %e, %a : tensor<?xi1>, tensor<?xf32>
  %l = func.call @last(%sel) : (tensor<?xf32>) -> tensor<?xf32>
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  // CHECK: tensor.expand_shape {{.*}} output_shape [5, 1] : tensor<5xf32> into tensor<5x1xf32>
  %ex = tensor.expand_shape %l [[0, 1]] output_shape [%n, 1] : tensor<?xf32> into tensor<?x1xf32>
  %f = tensor.collapse_shape %ex [[0, 1]] : tensor<?x1xf32> into tensor<?xf32>
  %emp = tensor.empty(%n) : tensor<?xf32>
  // CHECK: scf.forall {{.*}} -> (tensor<5xf32>)
  %fa = scf.forall (%t) in (%n) shared_outs(%o = %emp) -> (tensor<?xf32>) {
    %sl = tensor.extract_slice %f[%t] [1] [1] : tensor<?xf32> to tensor<1xf32>
    scf.forall.in_parallel { tensor.parallel_insert_slice %sl into %o[%t] [1] [1] : tensor<1xf32> into tensor<?xf32> }
  }
  return %fa : tensor<?xf32>
}
// CHECK: func.func private @last_0(%{{.*}}: tensor<5xf32>) -> tensor<5xf32>
// CHECK-NOT: @last(
func.func private @last(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }
