// Gathers and products, products and reductions, taken round a ring or in doubling steps; each rule of legality refuses.
// RUN: ncclx-opt %s --ncclx-ring-exchanges=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-ring-exchanges --remark-policy=all 2>%t.ring | FileCheck %s --check-prefix=RING
// RUN: FileCheck %s --check-prefixes=WHY,RINGWHY < %t.ring
// RUN: ncclx-opt %s --ncclx-double-exchanges=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-double-exchanges --remark-policy=all 2>%t.double | FileCheck %s --check-prefix=DOUBLE
// RUN: FileCheck %s --check-prefixes=WHY,DOUBLEWHY < %t.double
// In a full mesh a permute gets the links to one peer, and the native collective all of them: nothing is cut.
// RUN: ncclx-opt %s --ncclx-ring-exchanges=machine=%ncclx_src/examples/machines/h100-mesh.json --ncclx-double-exchanges=machine=%ncclx_src/examples/machines/h100-mesh.json --remarks-filter=ncclx-double-exchanges --remark-policy=all 2>%t.mesh | FileCheck %s --check-prefix=MESH
// RUN: FileCheck %s --check-prefix=IDLE < %t.mesh
// IDLE: ExchangeWhole{{.*}}Function=gather{{.*}}would leave links idle: a permute gets 113 GB/s, the whole 340 GB/s
// MESH-NOT: ncclx.permute
// The scheduler puts each step beside the product of the one before.
// RUN: ncclx-opt %s --ncclx-double-exchanges=machine=%ncclx_src/examples/machines/h100-nvswitch.json --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json | FileCheck %s --check-prefix=PLACED
// RUN: not ncclx-opt %s --ncclx-ring-exchanges 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ncclx-opt %s --ncclx-double-exchanges="machine=%ncclx_src/examples/machines/h100-mesh.json margin=-1" 2>&1 | FileCheck %s --check-prefix=MARGIN
// NONE: error: ncclx-ring-exchanges needs machine=FILE
// MARGIN: error: ncclx-double-exchanges: margin is at least 0, found -1

ncclx.grid @g ["node" = 2, "tp" = 4]

// WHY: ExchangeSplit{{.*}}Function=gather{{.*}}are cut: {{.*}} us in {{.*}}steps of {{.*}}, {{.*}} us one after the other
// RING-LABEL: @gather
// RING: ncclx.reduce_scatter {{.*}} max {{.*}} over @g["tp"]
// RING-COUNT-3: ncclx.permute {{.*}} shift -1 over @g["tp"] : tensor<2048x8192xbf16>
// RING-NOT: ncclx.permute
// RING: linalg.generic
// DOUBLE-LABEL: @gather
// DOUBLE: ncclx.permute {{.*}} shift -1 over @g["tp"] : tensor<2048x8192xbf16>
// DOUBLE: linalg.matmul {{.*}} -> tensor<2048x14336xbf16>
// DOUBLE: ncclx.permute {{.*}} shift -2 over @g["tp"] : tensor<4096x8192xbf16>
// DOUBLE: linalg.matmul {{.*}} -> tensor<2048x14336xbf16>
// DOUBLE: linalg.matmul {{.*}} -> tensor<4096x14336xbf16>
// DOUBLE: linalg.generic
// PLACED-LABEL: @gather
// PLACED: ncclx.start
// PLACED: linalg.matmul
// PLACED: ncclx.await
func.func @gather(%a: tensor<2048x8192xbf16>, %w: tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16> {
  %e = tensor.empty() : tensor<8192x14336xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<2048x8192xbf16> -> tensor<8192x8192xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<8192x8192xbf16>, tensor<8192x14336xbf16>) outs(%e : tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16>
  return %c : tensor<8192x14336xbf16>
}

// Over two axes the shard of the other node is asked for first; the last axis doubles, once for each node.
// WHY: ExchangeSplit{{.*}}Function=two_axes
// DOUBLE-LABEL: @two_axes
// DOUBLE: ncclx.permute {{.*}} shift -1 over @g["node"] : tensor<2048x8192xbf16>
// DOUBLE: ncclx.permute {{.*}} shift -1 over @g["tp"]
// DOUBLE: linalg.matmul
// DOUBLE: ncclx.permute {{.*}} shift -2 over @g["tp"]
// DOUBLE: ncclx.permute {{.*}} shift -1 over @g["tp"]
// DOUBLE: ncclx.permute {{.*}} shift -2 over @g["tp"]
// RING-LABEL: @two_axes
// RING-COUNT-7: ncclx.permute {{.*}} shift -1 over @g["node", "tp"]
func.func @two_axes(%a: tensor<2048x8192xbf16>, %w: tensor<8192x14336xbf16>) -> tensor<16384x14336xbf16> {
  %e = tensor.empty() : tensor<16384x14336xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["node", "tp"] : tensor<2048x8192xbf16> -> tensor<16384x8192xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<16384x8192xbf16>, tensor<8192x14336xbf16>) outs(%e : tensor<16384x14336xbf16>) -> tensor<16384x14336xbf16>
  return %c : tensor<16384x14336xbf16>
}

// WHY: ExchangeSplit{{.*}}Function=reduction
// RING-LABEL: @reduction
// RING-COUNT-3: ncclx.permute {{.*}} shift 1 over @g["tp"] : tensor<4096x8192xbf16>
// DOUBLE-LABEL: @reduction
// DOUBLE: ncclx.permute {{.*}} shift 2 over @g["tp"] : tensor<8192x8192xbf16>
// DOUBLE: ncclx.permute {{.*}} shift 1 over @g["tp"] : tensor<4096x8192xbf16>
func.func @reduction(%a: tensor<16384x14336xbf16>, %w: tensor<14336x8192xbf16>) -> tensor<4096x8192xbf16> {
  %e = tensor.empty() : tensor<16384x8192xbf16>
  %c = linalg.matmul ins(%a, %w : tensor<16384x14336xbf16>, tensor<14336x8192xbf16>) outs(%e : tensor<16384x8192xbf16>) -> tensor<16384x8192xbf16>
  %r = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order any over @g["tp"] : tensor<16384x8192xbf16> -> tensor<4096x8192xbf16>
  return %r : tensor<4096x8192xbf16>
}

// The order in which members are added is part of the meaning.
// RINGWHY: ExchangeSplit{{.*}}Function=ring_order
// DOUBLEWHY: ExchangeWhole{{.*}}Function=ring_order{{.*}}its order is ring, and this form adds in that of a tree
func.func @ring_order(%a: tensor<16384x14336xbf16>, %w: tensor<14336x8192xbf16>) -> tensor<4096x8192xbf16> {
  %e = tensor.empty() : tensor<16384x8192xbf16>
  %c = linalg.matmul ins(%a, %w : tensor<16384x14336xbf16>, tensor<14336x8192xbf16>) outs(%e : tensor<16384x8192xbf16>) -> tensor<16384x8192xbf16>
  %r = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order ring over @g["tp"] : tensor<16384x8192xbf16> -> tensor<4096x8192xbf16>
  return %r : tensor<4096x8192xbf16>
}
// RINGWHY: ExchangeWhole{{.*}}Function=tree_order{{.*}}its order is tree, and this form adds in that of a ring
// DOUBLEWHY: ExchangeSplit{{.*}}Function=tree_order
func.func @tree_order(%a: tensor<16384x14336xbf16>, %w: tensor<14336x8192xbf16>) -> tensor<4096x8192xbf16> {
  %e = tensor.empty() : tensor<16384x8192xbf16>
  %c = linalg.matmul ins(%a, %w : tensor<16384x14336xbf16>, tensor<14336x8192xbf16>) outs(%e : tensor<16384x8192xbf16>) -> tensor<16384x8192xbf16>
  %r = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order tree over @g["tp"] : tensor<16384x8192xbf16> -> tensor<4096x8192xbf16>
  return %r : tensor<4096x8192xbf16>
}
// WHY: ExchangeWhole{{.*}}Function=rank_order{{.*}}its order is rank
func.func @rank_order(%a: tensor<16384x14336xbf16>, %w: tensor<14336x8192xbf16>) -> tensor<4096x8192xbf16> {
  %e = tensor.empty() : tensor<16384x8192xbf16>
  %c = linalg.matmul ins(%a, %w : tensor<16384x14336xbf16>, tensor<14336x8192xbf16>) outs(%e : tensor<16384x8192xbf16>) -> tensor<16384x8192xbf16>
  %r = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order rank over @g["tp"] : tensor<16384x8192xbf16> -> tensor<4096x8192xbf16>
  return %r : tensor<4096x8192xbf16>
}
// WHY: ExchangeWhole{{.*}}Function=average{{.*}}it scales or averages
func.func @average(%a: tensor<16384x14336xbf16>, %w: tensor<14336x8192xbf16>) -> tensor<4096x8192xbf16> {
  %e = tensor.empty() : tensor<16384x8192xbf16>
  %c = linalg.matmul ins(%a, %w : tensor<16384x14336xbf16>, tensor<14336x8192xbf16>) outs(%e : tensor<16384x8192xbf16>) -> tensor<16384x8192xbf16>
  %r = ncclx.reduce_scatter %c dim 0 avg accumulate bf16 order any over @g["tp"] : tensor<16384x8192xbf16> -> tensor<4096x8192xbf16>
  return %r : tensor<4096x8192xbf16>
}
// WHY: ExchangeWhole{{.*}}Function=adds{{.*}}the product adds to a tensor
func.func @adds(%a: tensor<16384x14336xbf16>, %w: tensor<14336x8192xbf16>, %to: tensor<16384x8192xbf16>) -> tensor<4096x8192xbf16> {
  %c = linalg.matmul ins(%a, %w : tensor<16384x14336xbf16>, tensor<14336x8192xbf16>) outs(%to : tensor<16384x8192xbf16>) -> tensor<16384x8192xbf16>
  %r = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order any over @g["tp"] : tensor<16384x8192xbf16> -> tensor<4096x8192xbf16>
  return %r : tensor<4096x8192xbf16>
}
// WHY: ExchangeWhole{{.*}}Function=asked{{.*}}an algorithm is asked for
func.func @asked(%a: tensor<2048x8192xbf16>, %w: tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16> {
  %e = tensor.empty() : tensor<8192x14336xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] algorithm direct : tensor<2048x8192xbf16> -> tensor<8192x8192xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<8192x8192xbf16>, tensor<8192x14336xbf16>) outs(%e : tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16>
  return %c : tensor<8192x14336xbf16>
}
// WHY: ExchangeWhole{{.*}}Function=alone{{.*}}its group has 1 members
func.func @alone(%a: tensor<2048x8192xbf16>, %w: tensor<8192x14336xbf16>) -> tensor<2048x14336xbf16> {
  %e = tensor.empty() : tensor<2048x14336xbf16>
  %full = ncclx.all_gather %a dim 0 over @g groups [[0], [1], [2], [3], [4], [5], [6], [7]] : tensor<2048x8192xbf16> -> tensor<2048x8192xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<2048x8192xbf16>, tensor<8192x14336xbf16>) outs(%e : tensor<2048x14336xbf16>) -> tensor<2048x14336xbf16>
  return %c : tensor<2048x14336xbf16>
}
// Latency decides.
// WHY: ExchangeWhole{{.*}}Function=small{{.*}} us one after the other
func.func @small(%a: tensor<16x512xbf16>, %w: tensor<512x512xbf16>) -> tensor<64x512xbf16> {
  %e = tensor.empty() : tensor<64x512xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<16x512xbf16> -> tensor<64x512xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<64x512xbf16>, tensor<512x512xbf16>) outs(%e : tensor<64x512xbf16>) -> tensor<64x512xbf16>
  return %c : tensor<64x512xbf16>
}
