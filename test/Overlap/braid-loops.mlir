// Micro-batches, forward and backward, each a chain of products and exchanges: the forward of one runs beside the backward of
// the one before (DualPipe); each rule refuses.
// RUN: ncclx-opt %s --ncclx-braid-loops=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-braid-loops --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.err
// The scheduler hides the exchanges of either behind the products of the other.
// RUN: ncclx-opt %s --ncclx-braid-loops=machine=%ncclx_src/examples/machines/h100-nvswitch.json --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json --ncclx-verify-legality --remarks-filter=ncclx-overlap --remark-policy=all 2>%t.overlap >/dev/null
// RUN: FileCheck %s --check-prefix=BESIDE < %t.overlap
// RUN: ncclx-opt %s > %t.plain
// RUN: ncclx-opt %s --ncclx-braid-loops="machine=%ncclx_src/examples/machines/h100-nvswitch.json memory-budget=0" | diff - %t.plain
// RUN: not ncclx-opt %s --ncclx-braid-loops="machine=%ncclx_src/examples/machines/h100-nvswitch.json memory-budget=-1" 2>&1 | FileCheck %s --check-prefix=BUDGET
// BUDGET: error: ncclx-braid-loops: memory-budget is at least 0, found -1

ncclx.grid @g ["ep" = 8]

// WHY: LoopBraided{{.*}}Function=micro{{.*}}ops run an iteration ahead: {{.*}} us an iteration, {{.*}} us as it is; {{.*}} bytes are handed on; {{.*}} us at least: compute
// BESIDE: Function=micro{{.*}}all_to_all of 67108864 bytes runs beside linalg.matmul
// CHECK-LABEL: @micro
// CHECK: linalg.matmul
// CHECK: ncclx.all_to_all
// CHECK: scf.for
// CHECK: ncclx.all_to_all
// CHECK: linalg.matmul
// CHECK: arith.addi
// CHECK: tensor.extract_slice
// CHECK: linalg.matmul
// CHECK: scf.yield
// CHECK: linalg.matmul
// CHECK: return
func.func @micro(%xs: tensor<6x8192x4096xbf16>, %w: tensor<4096x4096xbf16>, %zero: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %e = tensor.empty() : tensor<8192x4096xbf16>
  %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%grad = %zero) -> tensor<4096x4096xbf16> {
    %x = tensor.extract_slice %xs[%i, 0, 0] [1, 8192, 4096] [1, 1, 1] : tensor<6x8192x4096xbf16> to tensor<8192x4096xbf16>
    %f0 = linalg.matmul ins(%x, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
    %f1 = ncclx.all_to_all %f0 split 0 concat 0 over @g["ep"] : tensor<8192x4096xbf16> -> tensor<8192x4096xbf16>
    %f2 = linalg.matmul ins(%f1, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
    %b1 = ncclx.all_to_all %f2 split 0 concat 0 over @g["ep"] : tensor<8192x4096xbf16> -> tensor<8192x4096xbf16>
    %b2 = linalg.matmul ins(%b1, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
    %next = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%b2, %x : tensor<8192x4096xbf16>, tensor<8192x4096xbf16>) outs(%grad : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    scf.yield %next : tensor<4096x4096xbf16>
  }
  return %r : tensor<4096x4096xbf16>
}

// Each iteration is a chain that begins with what the one before has ended with.
// WHY: LoopNotBraided{{.*}}Function=chain{{.*}}no cut of an iteration in two is faster
// CHECK-LABEL: @chain
func.func @chain(%x: tensor<8192x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %e = tensor.empty() : tensor<8192x4096xbf16>
  %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%h = %x) -> tensor<8192x4096xbf16> {
    %f0 = linalg.matmul ins(%h, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
    %f1 = ncclx.all_to_all %f0 split 0 concat 0 over @g["ep"] : tensor<8192x4096xbf16> -> tensor<8192x4096xbf16>
    scf.yield %f1 : tensor<8192x4096xbf16>
  }
  return %r : tensor<8192x4096xbf16>
}

// WHY: LoopNotBraided{{.*}}Function=once{{.*}}it runs 1 times
func.func @once(%x: tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%h = %x) -> tensor<8192x4096xbf16> {
    %f1 = ncclx.all_to_all %h split 0 concat 0 over @g["ep"] : tensor<8192x4096xbf16> -> tensor<8192x4096xbf16>
    scf.yield %f1 : tensor<8192x4096xbf16>
  }
  return %r : tensor<8192x4096xbf16>
}

// WHY: LoopNotBraided{{.*}}Function=fence{{.*}}func.call may communicate
func.func private @elsewhere()
func.func @fence(%x: tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%h = %x) -> tensor<8192x4096xbf16> {
    func.call @elsewhere() : () -> ()
    %f1 = ncclx.all_to_all %h split 0 concat 0 over @g["ep"] : tensor<8192x4096xbf16> -> tensor<8192x4096xbf16>
    scf.yield %f1 : tensor<8192x4096xbf16>
  }
  return %r : tensor<8192x4096xbf16>
}

// What the front alone makes and the loop only yields is handed on, not made again: three exchanges stay three.
// WHY: LoopBraided{{.*}}Function=yielded
// CHECK-LABEL: @yielded
// CHECK-COUNT-2: ncclx.all_to_all
// CHECK-NOT: ncclx.all_to_all
// CHECK: scf.for
// CHECK-COUNT-3: ncclx.all_to_all
// CHECK-NOT: ncclx.all_to_all
// CHECK: scf.yield
// CHECK-COUNT-1: ncclx.all_to_all
// CHECK-NOT: ncclx.all_to_all
// CHECK: return
func.func @yielded(%xs: tensor<6x8192x4096xbf16>, %w: tensor<4096x4096xbf16>, %zero: tensor<4096x4096xbf16>, %o: tensor<8192x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<8192x4096xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %e = tensor.empty() : tensor<8192x4096xbf16>
  %r:2 = scf.for %i = %c0 to %c6 step %c1 iter_args(%grad = %zero, %last = %o) -> (tensor<4096x4096xbf16>, tensor<8192x4096xbf16>) {
    %x = tensor.extract_slice %xs[%i, 0, 0] [1, 8192, 4096] [1, 1, 1] : tensor<6x8192x4096xbf16> to tensor<8192x4096xbf16>
    %s = ncclx.all_to_all %x split 0 concat 0 over @g["ep"] : tensor<8192x4096xbf16> -> tensor<8192x4096xbf16>
    %f0 = linalg.matmul ins(%x, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
    %f1 = ncclx.all_to_all %f0 split 0 concat 0 over @g["ep"] : tensor<8192x4096xbf16> -> tensor<8192x4096xbf16>
    %f2 = linalg.matmul ins(%f1, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
    %b1 = ncclx.all_to_all %f2 split 0 concat 0 over @g["ep"] : tensor<8192x4096xbf16> -> tensor<8192x4096xbf16>
    %b2 = linalg.matmul ins(%b1, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
    %next = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%b2, %x : tensor<8192x4096xbf16>, tensor<8192x4096xbf16>) outs(%grad : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    scf.yield %next, %s : tensor<4096x4096xbf16>, tensor<8192x4096xbf16>
  }
  return %r#0, %r#1 : tensor<4096x4096xbf16>, tensor<8192x4096xbf16>
}
