// Host code is integers and calls: one status runs through all calls in the order of issue, a wait
// counts from the start of the run, and a kernel is called with addresses unless something has failed.
// RUN: ncclx-opt %s --ncclx-bufferize --convert-ncclx-to-ctran --convert-ctran-to-host \
// RUN:   | FileCheck %s --implicit-check-not=f32 --implicit-check-not=memref --implicit-check-not=index --implicit-check-not=ctran. --implicit-check-not=ncclx. --implicit-check-not=tensor
// RUN: ncclx-opt %s --ncclx-bufferize --convert-ncclx-to-ctran=load-store=false --convert-ctran-to-host \
// RUN:   | FileCheck %s --check-prefix=PUT

// CHECK-DAG: func.func private @ncclxrt_copy(i32, i64
// CHECK-DAG: func.func private @f.k0.exp(i64, i64)
// CHECK-LABEL: func.func @f(%arg0: i64) -> i32
// CHECK: %[[EPOCH:.+]] = call @ncclxrt_run(%arg0)
// CHECK: scf.for {{.*}} iter_args(%[[S:.+]] = %{{.+}}) -> (i32)  : i64 {
// CHECK: %[[S1:.+]] = func.call @ncclxrt_signal(%[[S]], %arg0
// CHECK-NEXT: scf.yield %[[S1]] : i32
// CHECK: %[[K:.+]] = arith.addi %[[EPOCH]], %{{.+}} : i64
// CHECK: %[[GO:.+]] = func.call @ncclxrt_wait(%{{.+}}, %arg0, {{.*}}, %[[K]])
// CHECK: %[[COPY:.+]] = func.call @ncclxrt_copy(%[[GO]], %arg0
// CHECK: func.call @ncclxrt_signal(%[[COPY]], %arg0
// CHECK: %[[B:.+]] = call @ncclxrt_compute_begin(
// CHECK: %[[OK:.+]] = arith.cmpi eq, %[[B]], %{{.+}} : i32
// CHECK: scf.if %[[OK]] {
// CHECK: func.call @f.k0.exp(
// CHECK: %[[E:.+]] = call @ncclxrt_compute_end(%[[B]]
// CHECK: return %[[E]] : i32

// A put is complete later: the exit waits for the lane that carried it.
// PUT-LABEL: func.func @f(
// PUT: @ncclxrt_flush(
// PUT: %[[DONE:.+]] = call @ncclxrt_complete(
// PUT-NEXT: return %[[DONE]] : i32
ncclx.grid @g ["tp" = 4]
func.func @f(%a: tensor<5xf32>) -> (tensor<17xf32>, tensor<17xf32>) {
  %g = ncclx.all_gather %a dim 0 over @g["tp"] algorithm direct : tensor<5xf32> -> tensor<17xf32>
  %e = tensor.empty() : tensor<17xf32>
  %x = linalg.exp ins(%g : tensor<17xf32>) outs(%e : tensor<17xf32>) -> tensor<17xf32>
  return %g, %x : tensor<17xf32>, tensor<17xf32>
}
