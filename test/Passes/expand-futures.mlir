// RUN: ncclx-opt %s --ncclx-materialize-destinations --ncclx-expand-futures --ncclx-verify-in-flight --split-input-file | FileCheck %s

ncclx.grid @g ["tp" = 4]

// CHECK-LABEL: @straight(
// CHECK-SAME: %[[A:.+]]: tensor<4xf32>, %[[I:.+]]: index
func.func @straight(%a: tensor<4xf32>, %i: index) -> tensor<16xf32> {
  // CHECK: %[[D:.+]] = tensor.empty() : tensor<16xf32>
  // CHECK: %[[R:.+]], %[[T:.+]] = ncclx.all_gather %[[A]] dim 0 over @g["tp"] algorithm direct into(%[[D]] : tensor<16xf32>) async {keep}
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] algorithm direct {keep} : tensor<4xf32> -> tensor<16xf32>
    ncclx.yield %r : tensor<16xf32>
  } : !ncclx.future<tensor<16xf32>>
  // CHECK: ncclx.finish_chunk %[[T]], %[[R]][%[[I]]] of 4 dim 0
  %c = ncclx.await %f chunk %i of 4 dim 0 : !ncclx.future<tensor<16xf32>> -> tensor<4xf32>
  // CHECK: ncclx.finish %[[T]], %[[R]] keeping(%[[A]] : tensor<4xf32>)
  %v = ncclx.await %f : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
  return %v : tensor<16xf32>
}

// What the user keeps stays kept, once.
// CHECK-LABEL: @keeping(
// CHECK-SAME: %[[A:.+]]: tensor<4xf32>, %[[B:.+]]: tensor<2xf32>
func.func @keeping(%a: tensor<4xf32>, %b: tensor<2xf32>) -> tensor<4xf32> {
  %f = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  // CHECK: ncclx.finish %{{.+}}, %{{.+}} keeping(%[[B]], %[[A]] : tensor<2xf32>, tensor<4xf32>)
  %v = ncclx.await %f keeping(%b, %a : tensor<2xf32>, tensor<4xf32>) : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return %v : tensor<4xf32>
}

// A loop carries the future; each round reads another tensor, which is carried too.
// CHECK-LABEL: @carried(
// CHECK-SAME: %[[A:.+]]: tensor<4xf32>
func.func @carried(%a: tensor<4xf32>, %n: index {ncclx.uniform}) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: %[[R:.+]], %[[T:.+]] = ncclx.all_gather %[[A]]
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
    ncclx.yield %r : tensor<16xf32>
  } : !ncclx.future<tensor<16xf32>>
  // CHECK: %[[L:.+]]:3 = scf.for {{.*}} iter_args(%[[R1:.+]] = %[[R]], %[[T1:.+]] = %[[T]], %[[A1:.+]] = %[[A]]) -> (tensor<16xf32>, !ncclx.token, tensor<4xf32>)
  %g = scf.for %i = %c0 to %n step %c1 iter_args(%h = %f) -> !ncclx.future<tensor<16xf32>> {
    // CHECK: %[[V:.+]] = ncclx.finish %[[T1]], %[[R1]] keeping(%[[A1]] : tensor<4xf32>)
    %v = ncclx.await %h : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
    // CHECK: %[[B:.+]] = tensor.extract_slice %[[V]]
    %b = tensor.extract_slice %v[0] [4] [1] : tensor<16xf32> to tensor<4xf32>
    // CHECK: %[[R2:.+]], %[[T2:.+]] = ncclx.all_gather %[[B]]
    %k = ncclx.start {
      %r = ncclx.all_gather %b dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
      ncclx.yield %r : tensor<16xf32>
    } : !ncclx.future<tensor<16xf32>>
    // CHECK: scf.yield %[[R2]], %[[T2]], %[[B]]
    scf.yield %k : !ncclx.future<tensor<16xf32>>
  }
  // CHECK: ncclx.finish %[[L]]#1, %[[L]]#0 keeping(%[[L]]#2 : tensor<4xf32>)
  %v = ncclx.await %g : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
  return %v : tensor<16xf32>
}

// Almost: every round reads the same tensor, which need not be carried.
// CHECK-LABEL: @carried_same_input(
// CHECK-SAME: %[[A:.+]]: tensor<4xf32>
func.func @carried_same_input(%a: tensor<4xf32>, %p: i1) -> tensor<16xf32> {
  // CHECK: %[[I:.+]]:2 = scf.if %{{.+}} -> (tensor<16xf32>, !ncclx.token)
  %f = scf.if %p -> !ncclx.future<tensor<16xf32>> {
    %f = ncclx.start {
      %r = ncclx.all_gather %a dim 0 over @g["tp"] algorithm direct : tensor<4xf32> -> tensor<16xf32>
      ncclx.yield %r : tensor<16xf32>
    } : !ncclx.future<tensor<16xf32>>
    scf.yield %f : !ncclx.future<tensor<16xf32>>
  } else {
    %f = ncclx.start {
      %r = ncclx.all_gather %a dim 0 over @g["tp"] algorithm ring : tensor<4xf32> -> tensor<16xf32>
      ncclx.yield %r : tensor<16xf32>
    } : !ncclx.future<tensor<16xf32>>
    scf.yield %f : !ncclx.future<tensor<16xf32>>
  }
  // CHECK: ncclx.finish %[[I]]#1, %[[I]]#0 keeping(%[[A]] : tensor<4xf32>)
  %v = ncclx.await %f : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
  return %v : tensor<16xf32>
}

// One tensor, but it is not to be seen from the await: carried.
// CHECK-LABEL: @not_visible(
func.func @not_visible(%a: tensor<4xf32>, %p: index {ncclx.uniform}) -> tensor<16xf32> {
  // CHECK: %[[E:.+]]:3 = scf.index_switch %{{.+}} -> tensor<16xf32>, !ncclx.token, tensor<4xf32>
  %f = scf.index_switch %p -> !ncclx.future<tensor<16xf32>>
  default {
    %b = arith.addf %a, %a : tensor<4xf32>
    %f = ncclx.start {
      %r = ncclx.all_gather %b dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
      ncclx.yield %r : tensor<16xf32>
    } : !ncclx.future<tensor<16xf32>>
    scf.yield %f : !ncclx.future<tensor<16xf32>>
  }
  // CHECK: ncclx.finish %[[E]]#1, %[[E]]#0 keeping(%[[E]]#2 : tensor<4xf32>)
  %v = ncclx.await %f : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
  return %v : tensor<16xf32>
}

// Futures inside a while loop.
// CHECK-LABEL: @while(
func.func @while(%a: tensor<4xf32>, %n: i32 {ncclx.uniform}) -> tensor<4xf32> {
  %f = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  %one = arith.constant 1 : i32
  // CHECK: scf.while (%{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}) : (i32, tensor<4xf32>, !ncclx.token, tensor<4xf32>)
  %w:2 = scf.while (%k = %n, %g = %f) : (i32, !ncclx.future<tensor<4xf32>>) -> (i32, !ncclx.future<tensor<4xf32>>) {
    %p = arith.cmpi sgt, %k, %one : i32
    scf.condition(%p) %k, %g : i32, !ncclx.future<tensor<4xf32>>
  } do {
  ^bb0(%k: i32, %g: !ncclx.future<tensor<4xf32>>):
    // CHECK: ncclx.finish
    %v = ncclx.await %g : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
    // CHECK: ncclx.permute
    %h = ncclx.start {
      %r = ncclx.permute %v shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
      ncclx.yield %r : tensor<4xf32>
    } : !ncclx.future<tensor<4xf32>>
    %l = arith.subi %k, %one : i32
    scf.yield %l, %h : i32, !ncclx.future<tensor<4xf32>>
  }
  // CHECK: ncclx.finish
  %v = ncclx.await %w#1 : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return %v : tensor<4xf32>
}
