// Weight gradients in pieces: at whole tiles, in a dimension of the result, where there is enough to cut.
// RUN: ncclx-opt %s --ncclx-split-sinks="machine=%ncclx_src/examples/machines/h100-nvswitch.json piece-us=200" --remarks-filter=ncclx-split-sinks --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.err
// The pieces find their places one by one: two gathers are hidden by one weight gradient.
// RUN: ncclx-opt %s --ncclx-split-sinks="machine=%ncclx_src/examples/machines/h100-nvswitch.json piece-us=200" --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json | FileCheck %s --check-prefix=PLACED
// RUN: not ncclx-opt %s --ncclx-split-sinks 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ncclx-opt %s --ncclx-split-sinks="machine=%ncclx_src/examples/machines/h100-nvswitch.json piece-us=0" 2>&1 | FileCheck %s --check-prefix=ZERO
// NONE: error: ncclx-split-sinks needs machine=FILE
// ZERO: error: ncclx-split-sinks: piece-us is above 0, found 0

ncclx.grid @g ["tp" = 8]

// WHY: SinkSplit{{.*}}Function=sink{{.*}}linalg.matmul -> tensor<14336x4096xbf16> is cut into 3 pieces of 4864 in loop 0 of 14336
// CHECK-LABEL: @sink
// CHECK-DAG: %[[A0:.+]] = tensor.extract_slice %arg1[0, 0] [4864, 4096]
// CHECK-DAG: %[[A2:.+]] = tensor.extract_slice %arg1[9728, 0] [4608, 4096]
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<4608x4096xbf16>, tensor<4096x4096xbf16>)
// CHECK: tensor.insert_slice {{.*}}[9728, 0] [4608, 4096]
// PLACED-LABEL: @sink
// PLACED: ncclx.start
// PLACED: linalg.matmul ins({{.*}} tensor<4{{...}}x4096xbf16>
// PLACED: ncclx.await
// PLACED: ncclx.start
// PLACED: linalg.matmul ins({{.*}} tensor<4{{...}}x4096xbf16>
// PLACED: ncclx.await
func.func @sink(%dy: tensor<512x4096xbf16>, %act: tensor<14336x4096xbf16>, %w: tensor<4096x4096xbf16>) -> (tensor<14336x4096xbf16>, tensor<4096x4096xbf16>) {
  %zero = arith.constant 0.0 : bf16
  %dy.full = ncclx.all_gather %dy dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %e = tensor.empty() : tensor<14336x4096xbf16>
  %z = linalg.fill ins(%zero : bf16) outs(%e : tensor<14336x4096xbf16>) -> tensor<14336x4096xbf16>
  %wgrad = linalg.matmul ins(%act, %dy.full : tensor<14336x4096xbf16>, tensor<4096x4096xbf16>) outs(%z : tensor<14336x4096xbf16>) -> tensor<14336x4096xbf16>
  %small = tensor.empty() : tensor<4096x4096xbf16>
  %dgrad = linalg.matmul ins(%dy.full, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%small : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %d1 = tensor.extract_slice %dgrad[0, 0] [512, 4096] [1, 1] : tensor<4096x4096xbf16> to tensor<512x4096xbf16>
  %d1.full = ncclx.all_gather %d1 dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %next = linalg.matmul ins(%d1.full, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%small : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %d2 = tensor.extract_slice %next[0, 0] [512, 4096] [1, 1] : tensor<4096x4096xbf16> to tensor<512x4096xbf16>
  %d2.full = ncclx.all_gather %d2 dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %last = linalg.matmul ins(%d2.full, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%small : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %wgrad, %last : tensor<14336x4096xbf16>, tensor<4096x4096xbf16>
}

// Somebody needs the gradient; one is too short; one has rows and columns for a single tile, and is not cut in its sum.
// WHY-NOT: Function=used
// CHECK-LABEL: @used
// CHECK-NOT: tensor.insert_slice
func.func @used(%dy: tensor<512x4096xbf16>, %act: tensor<14336x4096xbf16>) -> tensor<14336x4096xbf16> {
  %dy.full = ncclx.all_gather %dy dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %e = tensor.empty() : tensor<14336x4096xbf16>
  %wgrad = linalg.matmul ins(%act, %dy.full : tensor<14336x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<14336x4096xbf16>) -> tensor<14336x4096xbf16>
  %all = ncclx.all_reduce %wgrad sum accumulate bf16 order any over @g["tp"] : tensor<14336x4096xbf16> -> tensor<14336x4096xbf16>
  return %all : tensor<14336x4096xbf16>
}
// WHY: SinkWhole{{.*}}Function=short{{.*}}it takes {{.*}} us, and a piece 200.0 us
func.func @short(%dy: tensor<64x512xbf16>, %act: tensor<512x512xbf16>) -> tensor<512x512xbf16> {
  %dy.full = ncclx.all_gather %dy dim 0 over @g["tp"] : tensor<64x512xbf16> -> tensor<512x512xbf16>
  %e = tensor.empty() : tensor<512x512xbf16>
  %wgrad = linalg.matmul ins(%act, %dy.full : tensor<512x512xbf16>, tensor<512x512xbf16>) outs(%e : tensor<512x512xbf16>) -> tensor<512x512xbf16>
  return %wgrad : tensor<512x512xbf16>
}
// WHY: SinkWhole{{.*}}Function=thin{{.*}}no dimension of its result has two tiles of 128 x 256
func.func @thin(%dy: tensor<524288x256xbf16>, %act: tensor<128x4194304xbf16>) -> tensor<128x256xbf16> {
  %dy.full = ncclx.all_gather %dy dim 0 over @g["tp"] : tensor<524288x256xbf16> -> tensor<4194304x256xbf16>
  %e = tensor.empty() : tensor<128x256xbf16>
  %wgrad = linalg.matmul ins(%act, %dy.full : tensor<128x4194304xbf16>, tensor<4194304x256xbf16>) outs(%e : tensor<128x256xbf16>) -> tensor<128x256xbf16>
  return %wgrad : tensor<128x256xbf16>
}
