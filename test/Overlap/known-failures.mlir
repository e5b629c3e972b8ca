// What went wrong elsewhere: rows of test/CASES.md.
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-overlap --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.err
// Overlap 22: what is asynchronous stays so under the generic passes that follow.
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json --canonicalize --cse --canonicalize | FileCheck %s
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json | grep -c "ncclx.start" > %t.started
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json --canonicalize --cse --canonicalize | grep -c "ncclx.start" | diff - %t.started
// Overlap 9: whatever passes are combined, in whatever order, each collective stands once.
// RUN: %python %S/Inputs/combine.py ncclx-opt %s %ncclx_src/examples/machines/h100-nvswitch.json | FileCheck %s --check-prefix=ONCE
// ONCE: 8 orders, 7 collectives each

ncclx.grid @g ["dp" = 2, "tp" = 8]

// Overlap 12, 11 and peers 43: views, a transposed copy and a second user between a gather and its product.
// The scheduler sees through none of them and needs none: the gather is started in front of the product that is free of it, and awaited
// behind that one, in front of its first view. views.mlir has what the passes that cut say of each.
// WHY-LABEL: Function=overlap_12_views
// WHY: Function=overlap_12_views{{.*}}all_gather of 33554432 bytes runs beside linalg.matmul -> tensor<4096x4096xbf16> for [[US:[0-9.]+]] us of [[US]] us
// CHECK-LABEL: @overlap_12_views
// CHECK: %[[F:.+]] = ncclx.start
// CHECK-NOT: ncclx.await
// CHECK: linalg.matmul
// CHECK: %[[FULL:.+]] = ncclx.await %[[F]]
// CHECK-NEXT: tensor.collapse_shape %[[FULL]]
// CHECK: linalg.transpose
// CHECK: linalg.matmul
func.func @overlap_12_views(%a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>, tensor<16777216xbf16>) {
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %before = linalg.matmul ins(%x, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %flat = tensor.collapse_shape %full [[0, 1]] : tensor<4096x4096xbf16> into tensor<16777216xbf16>
  %again = tensor.expand_shape %flat [[0, 1]] output_shape [4096, 4096] : tensor<16777216xbf16> into tensor<4096x4096xbf16>
  %turned = linalg.transpose ins(%again : tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) permutation = [1, 0]
  %c = linalg.matmul ins(%turned, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %before, %c, %flat : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>, tensor<16777216xbf16>
}

// Overlap 3: an op that may communicate in ways unknown is between two collectives; neither crosses it.
// CHECK-LABEL: @overlap_03_opaque
// CHECK: ncclx.permute
// CHECK: call @send
// CHECK: ncclx.permute
func.func private @send()
func.func @overlap_03_opaque(%a: tensor<4096x4096xbf16>, %x: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %p = ncclx.permute %a shift 1 over @g["dp"] : tensor<4096x4096xbf16> -> tensor<4096x4096xbf16>
  func.call @send() : () -> ()
  %q = ncclx.permute %p shift 1 over @g["dp"] : tensor<4096x4096xbf16> -> tensor<4096x4096xbf16>
  %c = linalg.matmul ins(%x, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %p, %q, %c : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
}

// Overlap 14: a gather of weights stays behind the step that makes them, though a product could hide it earlier.
// CHECK-LABEL: @overlap_14_fresh_weights
// CHECK: %[[NEW:.+]] = linalg.add
// CHECK: all_gather %[[NEW]]
func.func @overlap_14_fresh_weights(%w: tensor<512x4096xbf16>, %g: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %c = linalg.matmul ins(%x, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %s = tensor.empty() : tensor<512x4096xbf16>
  %new = linalg.add ins(%w, %g : tensor<512x4096xbf16>, tensor<512x4096xbf16>) outs(%s : tensor<512x4096xbf16>) -> tensor<512x4096xbf16>
  %full = ncclx.all_gather %new dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %d = linalg.matmul ins(%full, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %c, %d : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
}

// Peers 40 and 12: a loop with accumulators that are carried, a branch in it, and collectives over two groups.
// CHECK-LABEL: @peers_40_accumulators
// CHECK: scf.for
// CHECK: ncclx.start
// CHECK: ncclx.await
func.func @peers_40_accumulators(%a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>, %which: i1) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %x, %sum = %x) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
    %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    %w = linalg.matmul ins(%x, %acc : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%sum : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    %b = scf.if %which -> (tensor<4096x4096xbf16>) {
      %n = linalg.add ins(%acc, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
      scf.yield %n : tensor<4096x4096xbf16>
    } else {
      scf.yield %acc : tensor<4096x4096xbf16>
    }
    %d = linalg.matmul ins(%full, %b : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    %all = ncclx.all_reduce %w sum accumulate bf16 order any over @g["dp"] : tensor<4096x4096xbf16> -> tensor<4096x4096xbf16>
    scf.yield %d, %all : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
  }
  %last = ncclx.all_reduce %r#1 sum accumulate bf16 order any over @g["tp"] : tensor<4096x4096xbf16> -> tensor<4096x4096xbf16>
  return %r#0, %last : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
}
