// What is not taken says why, and stays as it is.
// RUN: ncclx-opt %s --split-input-file --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-overlap --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.err

ncclx.grid @g ["tp" = 8]
// WHY: OverlapRefused{{.*}}a future is never awaited
// CHECK-LABEL: @forgotten
// CHECK: ncclx.start
func.func @forgotten(%a: tensor<4x8xf32>) {
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<32x8xf32>
    ncclx.yield %r : tensor<32x8xf32>
  } : !ncclx.future<tensor<32x8xf32>>
  return
}

// -----

ncclx.grid @g ["tp" = 8]
// WHY: OverlapRefused{{.*}}the body is not one block
func.func @blocks(%a: tensor<4x8xf32>) -> tensor<32x8xf32> {
  %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<32x8xf32>
  cf.br ^end
^end:
  return %r : tensor<32x8xf32>
}

// -----

ncclx.grid @g ["tp" = 8]
// WHY: OverlapRefused{{.*}}a collective is on memrefs or is async
func.func @memrefs(%a: memref<4x8xf32>, %b: memref<32x8xf32>) {
  ncclx.all_gather %a dim 0 over @g["tp"] into(%b : memref<32x8xf32>) : memref<4x8xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 8]
// WHY: OverlapRefused{{.*}}it cannot stay as it is: 'func.call' starts before 'all_gather of 1024 bytes', which it needs, is complete
func.func private @unknown()
func.func @across(%a: tensor<4x8xf32>) -> tensor<32x8xf32> {
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<32x8xf32>
    ncclx.yield %r : tensor<32x8xf32>
  } : !ncclx.future<tensor<32x8xf32>>
  func.call @unknown() : () -> ()
  %y = ncclx.await %f : !ncclx.future<tensor<32x8xf32>> -> tensor<32x8xf32>
  return %y : tensor<32x8xf32>
}
