// A forward of one micro-batch and a backward of another in one block (DualPipe, 1F1B with expert parallelism): the scheduler
// braids them, so that each one's exchanges run beside the other's products, with no pattern named.
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-overlap --remark-policy=all 2>&1 >/dev/null | FileCheck %s
// CHECK: exposed {{[0-9]+}}.{{[0-9]}} us of {{.*}} us before, 0.0 us of {{.*}} us after
// CHECK-COUNT-4: all_to_all of 67108864 bytes runs beside linalg.matmul
ncclx.grid @g ["ep" = 8]
func.func @braid(%x: tensor<8192x4096xbf16>, %dy: tensor<8192x4096xbf16>, %w: tensor<4096x4096xbf16>) -> (tensor<8192x4096xbf16>, tensor<8192x4096xbf16>) {
  %e = tensor.empty() : tensor<8192x4096xbf16>
  %f0 = linalg.matmul ins(%x, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
  %f1 = ncclx.all_to_all %f0 split 0 concat 0 over @g["ep"] : tensor<8192x4096xbf16> -> tensor<8192x4096xbf16>
  %f2 = linalg.matmul ins(%f1, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
  %f3 = ncclx.all_to_all %f2 split 0 concat 0 over @g["ep"] : tensor<8192x4096xbf16> -> tensor<8192x4096xbf16>
  %f4 = linalg.matmul ins(%f3, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
  %b0 = linalg.matmul ins(%dy, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
  %b1 = ncclx.all_to_all %b0 split 0 concat 0 over @g["ep"] : tensor<8192x4096xbf16> -> tensor<8192x4096xbf16>
  %b2 = linalg.matmul ins(%b1, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
  %b3 = ncclx.all_to_all %b2 split 0 concat 0 over @g["ep"] : tensor<8192x4096xbf16> -> tensor<8192x4096xbf16>
  %b4 = linalg.matmul ins(%b3, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
  return %f4, %b4 : tensor<8192x4096xbf16>, tensor<8192x4096xbf16>
}
