// Two collectives that are under way together take turns on the links: what is awaited later is sent behind what is
// awaited first, its peers asked meanwhile. Where what starts later is awaited first, they share. Short ones do not wait.
// RUN: split-file %s %t
// RUN: ncclx-opt %t/first.mlir --ncclx-bufferize --convert-ncclx-to-ctran=topology=%ncclx_src/examples/topologies/h200x2-nvswitch.json --ctran-verify="mode=all undecided=error" | FileCheck %t/first.mlir
// RUN: ncclx-opt %t/last.mlir --ncclx-bufferize --convert-ncclx-to-ctran=topology=%ncclx_src/examples/topologies/h200x2-nvswitch.json --ctran-verify="mode=all undecided=error" | FileCheck %s --check-prefix=SHARED
// RUN: sed s/4194304/512/g\;s/8388608/1024/g %t/first.mlir > %t/short.mlir
// RUN: ncclx-opt %t/short.mlir --ncclx-bufferize --convert-ncclx-to-ctran=topology=%ncclx_src/examples/topologies/h200x2-nvswitch.json --ctran-verify="mode=all undecided=error" | FileCheck %s --check-prefix=SHARED
// SHARED: ctran.copy %{{.+}} to %{{.+}} after %[[START:[^,]+]], %[[READY:[^,]+]] on ce[%{{.+}}] {note = "put", of = "all_gather.0"}
// SHARED: ctran.copy %{{.+}} to %{{.+}} after %[[START:[^,]+]], %[[READY:[^,]+]] on ce[%{{.+}}] {note = "put", of = "all_gather.1"}

// Of two members the own piece of a sum stays where it is; of one awaited behind a kernel all is summed at once.
// RUN: ncclx-opt %t/sum.mlir --ncclx-bufferize --convert-ncclx-to-ctran=topology=%ncclx_src/examples/topologies/h200x2-nvswitch.json --ctran-verify="mode=all undecided=error" | FileCheck %t/sum.mlir --implicit-check-not="keep own"

//--- first.mlir
// CHECK: note = "ready", of = "all_gather.0"
// CHECK: %[[SENT:.+]] = scf.for
// CHECK: ctran.copy %{{.+}} to %{{.+}} after %[[START:[^,]+]], %[[READY:[^,]+]] on ce[%{{.+}}] {note = "put", of = "all_gather.0"}
// CHECK: ctran.signal %{{.+}} after %{{[^,]+}} on ce[%{{.+}}] {note = "ready", of = "all_gather.1"}
// CHECK: ctran.copy %{{.+}} to %{{.+}} after %{{[^,]+}}, %[[SENT]], %{{[^,]+}} on ce[%{{.+}}] {note = "put", of = "all_gather.1"}
ncclx.grid @g ["tp" = 2]
func.func @f(%a: tensor<4194304xf32>, %b: tensor<4194304xf32>) -> (tensor<8388608xf32>, tensor<8388608xf32>) {
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4194304xf32> -> tensor<8388608xf32>
    ncclx.yield %r : tensor<8388608xf32>
  } : !ncclx.future<tensor<8388608xf32>>
  %h = ncclx.start {
    %r = ncclx.all_gather %b dim 0 over @g["tp"] : tensor<4194304xf32> -> tensor<8388608xf32>
    ncclx.yield %r : tensor<8388608xf32>
  } : !ncclx.future<tensor<8388608xf32>>
  %v = ncclx.await %f : !ncclx.future<tensor<8388608xf32>> -> tensor<8388608xf32>
  %w = ncclx.await %h : !ncclx.future<tensor<8388608xf32>> -> tensor<8388608xf32>
  return %v, %w : tensor<8388608xf32>, tensor<8388608xf32>
}

//--- last.mlir
ncclx.grid @g ["tp" = 2]
func.func @f(%a: tensor<4194304xf32>, %b: tensor<4194304xf32>) -> (tensor<8388608xf32>, tensor<8388608xf32>) {
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4194304xf32> -> tensor<8388608xf32>
    ncclx.yield %r : tensor<8388608xf32>
  } : !ncclx.future<tensor<8388608xf32>>
  %h = ncclx.start {
    %r = ncclx.all_gather %b dim 0 over @g["tp"] : tensor<4194304xf32> -> tensor<8388608xf32>
    ncclx.yield %r : tensor<8388608xf32>
  } : !ncclx.future<tensor<8388608xf32>>
  %w = ncclx.await %h : !ncclx.future<tensor<8388608xf32>> -> tensor<8388608xf32>
  %v = ncclx.await %f : !ncclx.future<tensor<8388608xf32>> -> tensor<8388608xf32>
  return %v, %w : tensor<8388608xf32>, tensor<8388608xf32>
}

//--- sum.mlir
// Alone it is summed in chunks, beside a kernel once.
// CHECK-COUNT-3: ctran.reduce sum accumulate f32 %{{.+}}, %{{.+}} into %{{.+}} after {{.*}} on sm {note = "reduce", of = "reduce_scatter.0"}
// CHECK: of = "reduce_scatter.1"
// CHECK-COUNT-1: ctran.reduce sum accumulate f32 %{{.+}}, %{{.+}} into %{{.+}} after {{.*}} on sm[%{{.+}}] {note = "reduce", of = "reduce_scatter.1"}
// CHECK-NOT: ctran.reduce
ncclx.grid @g ["tp" = 2]
func.func @f(%a: tensor<8192x4096xbf16>, %b: tensor<8192x4096xbf16>, %c: tensor<64xf32>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>, tensor<64xf32>) {
  %r = ncclx.reduce_scatter %a dim 0 sum accumulate f32 order any over @g["tp"] : tensor<8192x4096xbf16> -> tensor<4096x4096xbf16>
  %f = ncclx.start {
    %s = ncclx.reduce_scatter %b dim 0 sum accumulate f32 order any over @g["tp"] : tensor<8192x4096xbf16> -> tensor<4096x4096xbf16>
    ncclx.yield %s : tensor<4096x4096xbf16>
  } : !ncclx.future<tensor<4096x4096xbf16>>
  %e = tensor.empty() : tensor<64xf32>
  %k = linalg.exp ins(%c : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %s = ncclx.await %f : !ncclx.future<tensor<4096x4096xbf16>> -> tensor<4096x4096xbf16>
  return %r, %s, %k : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>, tensor<64xf32>
}
