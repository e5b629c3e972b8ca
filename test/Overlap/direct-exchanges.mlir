// A gather awaited shard by shard: each product runs as soon as its rows are there; each rule refuses.
// RUN: ncclx-opt %s --ncclx-direct-exchanges=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-direct-exchanges --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.err
// The general scheduler takes futures that are awaited by chunk: what else there is goes in front of the chunk that is late.
// RUN: ncclx-opt %s --ncclx-direct-exchanges=machine=%ncclx_src/examples/machines/h100-nvswitch.json --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json --ncclx-verify-legality --remarks-filter=ncclx-overlap --remark-policy=all 2>%t.overlap | FileCheck %s --check-prefix=PLACED
// RUN: FileCheck %s --check-prefix=BESIDE < %t.overlap
// In a full mesh a block to one member uses a third of the links.
// RUN: ncclx-opt %s --ncclx-direct-exchanges=machine=%ncclx_src/examples/machines/h100-mesh.json --remarks-filter=ncclx-direct-exchanges --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=MESH
// MESH: ExchangeSplit{{.*}}Function=chunks
// MESH: ExchangeWhole{{.*}}Function=reduction{{.*}}its steps would leave links idle: a permute gets 113 GB/s, the whole 340 GB/s

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

// A product and its reduction: each block goes straight to whom it is for, the farthest first, who adds all at once.
// WHY: ExchangeSplit{{.*}}Function=reduction{{.*}}are cut: {{.*}} us in 3 steps of one block, straight to whom it is for, {{.*}} us one after the other
// CHECK-LABEL: @reduction
// CHECK: linalg.matmul {{.*}} -> tensor<4096x8192xbf16>
// CHECK: ncclx.permute %{{.+}} shift 3
// CHECK: ncclx.permute %{{.+}} shift 2
// CHECK: ncclx.permute %{{.+}} shift 1
// CHECK: linalg.matmul {{.*}} -> tensor<4096x8192xbf16>
// CHECK-COUNT-3: arith.addf
// CHECK-NOT: ncclx.reduce_scatter
// CHECK: return
func.func @reduction(%x: tensor<16384x8192xbf16>, %y: tensor<8192x8192xbf16>) -> tensor<4096x8192xbf16> {
  %e = tensor.empty() : tensor<16384x8192xbf16>
  %c = linalg.matmul ins(%x, %y : tensor<16384x8192xbf16>, tensor<8192x8192xbf16>) outs(%e : tensor<16384x8192xbf16>) -> tensor<16384x8192xbf16>
  %r = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order any over @g["tp"] : tensor<16384x8192xbf16> -> tensor<4096x8192xbf16>
  return %r : tensor<4096x8192xbf16>
}

// WHY: ExchangeWhole{{.*}}Function=other_order{{.*}}its order is ring, and this form adds in that of the rank
func.func @other_order(%x: tensor<4096x4096xbf16>) -> tensor<1024x4096xbf16> {
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %c = linalg.matmul ins(%x, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %r = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order ring over @g["tp"] : tensor<4096x4096xbf16> -> tensor<1024x4096xbf16>
  return %r : tensor<1024x4096xbf16>
}

// WHY: ExchangeWhole{{.*}}Function=average{{.*}}it scales or averages
func.func @average(%x: tensor<4096x4096xbf16>) -> tensor<1024x4096xbf16> {
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %c = linalg.matmul ins(%x, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %r = ncclx.reduce_scatter %c dim 0 avg accumulate bf16 order any over @g["tp"] : tensor<4096x4096xbf16> -> tensor<1024x4096xbf16>
  return %r : tensor<1024x4096xbf16>
}

// WHY: ExchangeWhole{{.*}}Function=adds{{.*}}the product adds to a tensor whose rows would have to be put apart
func.func @adds(%x: tensor<4096x4096xbf16>) -> tensor<1024x4096xbf16> {
  %c = linalg.matmul ins(%x, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%x : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %r = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order any over @g["tp"] : tensor<4096x4096xbf16> -> tensor<1024x4096xbf16>
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
