// What is placed, what stays exposed and why, in figures; require-overlap makes the latter an error.
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-overlap --remark-policy=all 2>&1 >/dev/null | FileCheck %s
// RUN: not ncclx-opt %s --ncclx-overlap="machine=%ncclx_src/examples/machines/h100-nvswitch.json require-overlap" 2>&1 | FileCheck %s --check-prefix=REQUIRED
// RUN: not ncclx-opt %s --ncclx-overlap 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ncclx-opt %s --ncclx-pair-bulk=machine=%t.nowhere 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not ncclx-opt %s --ncclx-overlap="machine=%ncclx_src/examples/machines/h100-nvswitch.json memory-budget=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not ncclx-opt %s --ncclx-overlap="machine=%ncclx_src/examples/machines/h100-multimem.json require-overlap" 2>&1 | FileCheck %s --check-prefix=ENGINE
// NONE: error: ncclx-overlap needs machine=FILE
// NOWHERE: error: {{.*}}nowhere: cannot be read: No such file
// NEGATIVE: error: ncclx-overlap: memory-budget is at least 0, found -1
// ENGINE: error: cannot be scheduled: no engine of machine 'h100-multimem' carries all_gather

ncclx.grid @g ["tp" = 8]

// 4096 x 4096 bf16 over 8: 29.4 MB to receive at 300 GB/s, and 32.2 us: 130.1 us.
// CHECK: Overlap
// CHECK-SAME: exposed 260.1 us
// CHECK-SAME: memory peak
// CHECK: all_gather of 33554432 bytes runs beside linalg.matmul
// CHECK-SAME: for 130.1 us of 130.1 us
// CHECK: OverlapExposed
// CHECK-SAME: stays exposed for 130.1 us of 130.1 us: dependency
// CHECK-SAME: cut it, or a neighbour, into chunks
// REQUIRED: error: 'ncclx.all_gather' op must overlap, but stays exposed for 130.1 us of 130.1 us: dependency
// REQUIRED: note: what would lift it: every kernel precedes it or needs it
func.func @f(%dy: tensor<512x4096xbf16>, %act: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
  %dy.full = ncclx.all_gather %dy dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %wgrad = linalg.matmul ins(%act, %dy.full : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %dgrad = linalg.matmul ins(%dy.full, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %d1 = tensor.extract_slice %dgrad[0, 0] [512, 4096] [1, 1] : tensor<4096x4096xbf16> to tensor<512x4096xbf16>
  %d1.full = ncclx.all_gather %d1 dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %next = linalg.matmul ins(%d1.full, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %wgrad, %next : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
}
