// The body of a loop with communication is scheduled by itself, as often as it runs; the loop stays where it is.
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-overlap --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.err
// RUN: ncclx-opt %s > %t.plain
// RUN: ncclx-opt %s --ncclx-overlap="machine=%ncclx_src/examples/machines/h100-nvswitch.json memory-budget=0" | diff - %t.plain
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json | ncclx-opt --ncclx-verify-legality -o /dev/null

ncclx.grid @g ["tp" = 8]

// WHY: exposed 650.3 us of 2764.8 us before, 0.0 us of 2114.4 us after; memory peak
// WHY: runs beside linalg.matmul{{.*}} for 130.1 us of 130.1 us, 5 times
// WHY: Function=unknown{{.*}}exposed 260.1 us of {{.*}} us before, 130.1 us of
// WHY: Function=branches{{.*}}exposed 130.1 us of {{.*}} us before, 0.0 us of
// CHECK-LABEL: @loop
// CHECK: scf.for
// CHECK: ncclx.start
// CHECK-NEXT: ncclx.all_gather
// CHECK: linalg.matmul ins(%arg1
// CHECK: ncclx.await
// CHECK: scf.yield
func.func @loop(%a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %x) -> (tensor<4096x4096xbf16>) {
    %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    %c = linalg.matmul ins(%x, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    %d = linalg.matmul ins(%full, %c : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%acc : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    scf.yield %d : tensor<4096x4096xbf16>
  }
  return %r : tensor<4096x4096xbf16>
}

// A loop whose length is not known is counted once. What is in it is placed in it, and nothing crosses it.
// CHECK-LABEL: @unknown
// CHECK-NOT: ncclx.start
// CHECK: ncclx.all_gather
// CHECK: scf.for
// CHECK: ncclx.start
// CHECK: linalg.matmul ins(%arg2
// CHECK: ncclx.await
// CHECK: return
func.func @unknown(%n: index {ncclx.uniform}, %a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %first = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> (tensor<4096x4096xbf16>) {
    %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    %c = linalg.matmul ins(%x, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    %d = linalg.matmul ins(%full, %c : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%acc : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    scf.yield %d : tensor<4096x4096xbf16>
  }
  return %r, %first : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
}

// Branches, and what a while loop does, are blocks of their own: the longest way counts.
// CHECK-LABEL: @branches
// CHECK: scf.while
// CHECK: scf.if
// CHECK: ncclx.start
// CHECK: linalg.matmul
// CHECK: ncclx.await
// CHECK: else
func.func @branches(%n: index {ncclx.uniform}, %a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %r:2 = scf.while (%i = %n, %h = %x) : (index, tensor<4096x4096xbf16>) -> (index, tensor<4096x4096xbf16>) {
    %odd = arith.remui %i, %c3 : index
    %go = arith.cmpi ne, %odd, %c0 : index
    scf.condition(%go) %i, %h : index, tensor<4096x4096xbf16>
  } do {
  ^bb0(%i: index, %h: tensor<4096x4096xbf16>):
    %half = arith.divui %i, %c3 : index
    %big = arith.cmpi ult, %half, %c3 : index
    %next = scf.if %big -> tensor<4096x4096xbf16> {
      %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
      %c = linalg.matmul ins(%h, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
      %d = linalg.matmul ins(%full, %c : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
      scf.yield %d : tensor<4096x4096xbf16>
    } else {
      scf.yield %h : tensor<4096x4096xbf16>
    }
    scf.yield %half, %next : index, tensor<4096x4096xbf16>
  }
  return %r#1 : tensor<4096x4096xbf16>
}
