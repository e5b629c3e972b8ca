// A gather awaited shard by shard: each product runs as soon as its rows are there; each rule refuses.
// RUN: ncclx-opt %s --ncclx-direct-exchanges=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-direct-exchanges --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.err
// The general scheduler takes futures that are awaited by chunk: what else there is goes in front of the chunk that is late.
// RUN: ncclx-opt %s --ncclx-direct-exchanges=machine=%ncclx_src/examples/machines/h100-nvswitch.json --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json --ncclx-verify-legality --remarks-filter=ncclx-overlap --remark-policy=all 2>%t.overlap | FileCheck %s --check-prefix=PLACED
// RUN: FileCheck %s --check-prefix=BESIDE < %t.overlap

ncclx.grid @g ["tp" = 4]

// WHY: ExchangeSplit{{.*}}Function=chunks{{.*}}are cut: {{.*}} us in 4 chunks of one gather, {{.*}} us one after the other
// CHECK-LABEL: @chunks
// CHECK: %[[F:.+]] = ncclx.start {
// CHECK-NEXT: ncclx.all_gather
// CHECK: %[[C0:.+]] = ncclx.await %[[F]] chunk %{{.+}} of 4 dim 0
// CHECK: linalg.matmul ins(%[[C0]], %arg1
// CHECK-COUNT-3: linalg.matmul
// CHECK: tensor.insert_slice
// CHECK: ncclx.await %[[F]] : !ncclx.future<tensor<4096x4096xbf16>>
// CHECK: return
// BESIDE: Function=chunks{{.*}}exposed {{.*}} us of {{.*}} us before
// PLACED-LABEL: @chunks
// PLACED: ncclx.start
// PLACED: linalg.matmul ins(%arg2, %arg1
// PLACED: ncclx.await {{.*}} chunk
func.func @chunks(%a: tensor<1024x4096xbf16>, %w: tensor<4096x4096xbf16>, %other: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<1024x4096xbf16> -> tensor<4096x4096xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %d = linalg.matmul ins(%other, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %c, %d : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
}

// WHY: ExchangeWhole{{.*}}Function=reduction{{.*}}chunks of a reduction are not there one by one
func.func @reduction(%x: tensor<4096x4096xbf16>) -> tensor<1024x4096xbf16> {
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %c = linalg.matmul ins(%x, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %r = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order ring over @g["tp"] : tensor<4096x4096xbf16> -> tensor<1024x4096xbf16>
  return %r : tensor<1024x4096xbf16>
}

// WHY: ExchangeWhole{{.*}}Function=ring{{.*}}an algorithm is asked for in which chunks have no signals of their own
func.func @ring(%a: tensor<1024x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] algorithm ring : tensor<1024x4096xbf16> -> tensor<4096x4096xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %c : tensor<4096x4096xbf16>
}

// WHY: ExchangeWhole{{.*}}Function=listed{{.*}}its groups are listed
func.func @listed(%a: tensor<2048x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %full = ncclx.all_gather %a dim 0 over @g groups [[0, 3], [1, 2]] : tensor<2048x4096xbf16> -> tensor<4096x4096xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %c : tensor<4096x4096xbf16>
}

// Small products: a launch for each chunk costs more than they hide.
// WHY: ExchangeWhole{{.*}}Function=small{{.*}}us in 4 chunks of one gather
func.func @small(%a: tensor<4x16xbf16>, %w: tensor<16x4096xbf16>) -> tensor<16x4096xbf16> {
  %e = tensor.empty() : tensor<16x4096xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x16xbf16> -> tensor<16x16xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<16x16xbf16>, tensor<16x4096xbf16>) outs(%e : tensor<16x4096xbf16>) -> tensor<16x4096xbf16>
  return %c : tensor<16x4096xbf16>
}
