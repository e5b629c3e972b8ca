// The body of a loop with communication is scheduled by itself, as often as it runs; the loop stays where it is.
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-overlap --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.err
// RUN: ncclx-opt %s > %t.plain
// RUN: ncclx-opt %s --ncclx-overlap="machine=%ncclx_src/examples/machines/h100-nvswitch.json memory-budget=0" | diff - %t.plain
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json | ncclx-opt --ncclx-verify-legality -o /dev/null

ncclx.grid @g ["tp" = 8]

// WHY: exposed 650.3 us of 2764.8 us before, 0.0 us of 2114.4 us after; memory peak
// WHY: runs beside linalg.matmul{{.*}} for 130.1 us of 130.1 us, 5 times
// WHY: Function=unknown{{.*}}exposed 130.1 us
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

// A loop whose length is not known is opaque: what is in it stays, and nothing crosses it.
// CHECK-LABEL: @unknown
// CHECK: ncclx.all_gather
// CHECK: scf.for
// CHECK-NOT: ncclx.start
// CHECK: return
func.func @unknown(%n: index {ncclx.uniform}, %a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %first = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> (tensor<4096x4096xbf16>) {
    %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    %d = linalg.matmul ins(%full, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%acc : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    scf.yield %d : tensor<4096x4096xbf16>
  }
  return %r, %first : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
}
