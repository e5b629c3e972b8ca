// A chunk is awaited by one slot, and what uses it does not wait for the whole.
// RUN: split-file %s %t
// RUN: ncclx-opt %t/direct.mlir --ncclx-bufferize --convert-ncclx-to-ctran --cse --ctran-verify=undecided=error | FileCheck %s
// RUN: ncclx-opt %t/direct.mlir --ncclx-bufferize --convert-ncclx-to-ctran=load-store=false --ctran-verify=undecided=error -o /dev/null
// RUN: ncclx-opt %t/invalid.mlir --split-input-file --ncclx-bufferize --convert-ncclx-to-ctran --verify-diagnostics

// CHECK: %[[DATA:.+]] = ctran.slots "all_gather.0.data"
// CHECK: %[[ONE:.+]] = ctran.slot %[[DATA]][%c2]
// CHECK-NEXT: %[[CHUNK:.+]] = ctran.wait %[[ONE]] >= %{{.+}} on ce[%{{.+}}]
// CHECK: ctran.compute {{.*}} after %[[CHUNK]], %arg0 on compute
// CHECK: ctran.slot %[[DATA]] from
// CHECK: ctran.wait {{.*}}note = "await data"

//--- direct.mlir
ncclx.grid @g ["tp" = 4]
func.func @f(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<16xf32>) {
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] algorithm direct : tensor<4xf32> -> tensor<16xf32>
    ncclx.yield %r : tensor<16xf32>
  } : !ncclx.future<tensor<16xf32>>
  %two = arith.constant 2 : index
  %c = ncclx.await %f chunk %two of 4 dim 0 : !ncclx.future<tensor<16xf32>> -> tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %s = linalg.exp ins(%c : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %v = ncclx.await %f : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
  return %s, %v : tensor<4xf32>, tensor<16xf32>
}

//--- invalid.mlir
ncclx.grid @g ["tp" = 4]
func.func @ring(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<16xf32>) {
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] algorithm ring : tensor<4xf32> -> tensor<16xf32>
    ncclx.yield %r : tensor<16xf32>
  } : !ncclx.future<tensor<16xf32>>
  %two = arith.constant 2 : index
  // expected-error @below {{waits for a chunk that arrives with the whole; `direct` brings each chunk by itself}}
  %c = ncclx.await %f chunk %two of 4 dim 0 : !ncclx.future<tensor<16xf32>> -> tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %s = linalg.exp ins(%c : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %v = ncclx.await %f : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
  return %s, %v : tensor<4xf32>, tensor<16xf32>
}
