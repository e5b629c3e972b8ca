// Each pass alone, on what it fires on and on what it almost does.
// RUN: ncclx-opt %s --ncclx-pair-bulk=machine=%ncclx_src/examples/machines/h100-nvswitch.json | FileCheck %s --check-prefix=BULK
// RUN: ncclx-opt %s --ncclx-reschedule-ag-wgrad=machine=%ncclx_src/examples/machines/h100-nvswitch.json | FileCheck %s --check-prefix=SINK
// RUN: ncclx-opt %s --ncclx-hoist-collectives=machine=%ncclx_src/examples/machines/h100-nvswitch.json | FileCheck %s --check-prefix=HOIST
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json | FileCheck %s --check-prefix=FREE
// Memory is hard: with no budget nothing changes, with too little the sink stays.
// RUN: ncclx-opt %s > %t.plain
// RUN: ncclx-opt %s --ncclx-overlap="machine=%ncclx_src/examples/machines/h100-nvswitch.json memory-budget=0" | diff - %t.plain
// RUN: ncclx-opt %s --ncclx-reschedule-ag-wgrad="machine=%ncclx_src/examples/machines/h100-nvswitch.json memory-budget=0" | diff - %t.plain
// RUN: ncclx-opt %s --ncclx-reschedule-ag-wgrad="machine=%ncclx_src/examples/machines/h100-nvswitch.json memory-budget=33554431" | FileCheck %s --check-prefix=TIGHT
// A margin above all gains leaves all as it is.
// RUN: ncclx-opt %s --ncclx-overlap="machine=%ncclx_src/examples/machines/h100-nvswitch.json margin=1.5" | diff - %t.plain

ncclx.grid @g ["tp" = 8]

// BULK-LABEL: @ready
// BULK: ncclx.start
// BULK-NEXT: ncclx.all_gather
// BULK: linalg.matmul ins(%arg1
// BULK: %[[FULL:.+]] = ncclx.await
// BULK: linalg.matmul ins(%[[FULL]]
// SINK-LABEL: @ready
// SINK-NOT: ncclx.start
// HOIST-LABEL: @ready
// HOIST: ncclx.start
// HOIST: linalg.matmul ins(%arg1
// HOIST: ncclx.await
// FREE-LABEL: @ready
// FREE: ncclx.start
// FREE: linalg.matmul ins(%arg1
// FREE: ncclx.await
func.func @ready(%a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %c = linalg.matmul ins(%x, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %d = linalg.matmul ins(%full, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %c, %d : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
}

// The gradient of the weight is returned only: it goes beside the second gather, which stays whole.
// BULK-LABEL: @sink
// BULK-NOT: ncclx.start
// SINK-LABEL: @sink
// SINK: %[[DY:.+]] = ncclx.all_gather %arg0
// SINK: %[[DGRAD:.+]] = linalg.matmul ins(%[[DY]], %arg2
// SINK: ncclx.start
// SINK: linalg.matmul ins(%arg1, %[[DY]]
// SINK: %[[D1:.+]] = ncclx.await
// SINK: linalg.matmul ins(%[[D1]], %arg2
// TIGHT-LABEL: @sink
// TIGHT-NOT: ncclx.start
// FREE-LABEL: @sink
// FREE: ncclx.start
// FREE: linalg.matmul ins(%arg1
// FREE: ncclx.await
func.func @sink(%dy: tensor<512x4096xbf16>, %act: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
  %dy.full = ncclx.all_gather %dy dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %wgrad = linalg.matmul ins(%act, %dy.full : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %dgrad = linalg.matmul ins(%dy.full, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %d1 = tensor.extract_slice %dgrad[0, 0] [512, 4096] [1, 1] : tensor<4096x4096xbf16> to tensor<512x4096xbf16>
  %d1.full = ncclx.all_gather %d1 dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %next = linalg.matmul ins(%d1.full, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %wgrad, %next : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
}

// Its result is used before the end: no sink.
// SINK-LABEL: @used
// SINK-NOT: ncclx.start
// BULK-LABEL: @used
// TIGHT-LABEL: @used
func.func @used(%dy: tensor<512x4096xbf16>, %act: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %dy.full = ncclx.all_gather %dy dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %wgrad = linalg.matmul ins(%act, %dy.full : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %d1 = tensor.extract_slice %dy.full[0, 0] [512, 4096] [1, 1] : tensor<4096x4096xbf16> to tensor<512x4096xbf16>
  %d1.full = ncclx.all_gather %d1 dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  %next = linalg.matmul ins(%d1.full, %wgrad : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %next : tensor<4096x4096xbf16>
}

// Nothing moves across what may communicate.
// BULK-LABEL: @opaque
// BULK-NOT: ncclx.start
// SINK-LABEL: @opaque
// FREE-LABEL: @opaque
// FREE-NOT: ncclx.start
// FREE: ncclx.all_gather
// FREE: call @unknown
// FREE: linalg.matmul
func.func private @unknown()
func.func @opaque(%a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
  func.call @unknown() : () -> ()
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %c = linalg.matmul ins(%x, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %c, %full : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
}

// A start and an await that are there move as well.
// BULK-LABEL: @given
// FREE-LABEL: @given
// FREE: ncclx.start
// FREE: linalg.matmul
// FREE: ncclx.await
// FREE-NOT: ncclx.start
func.func @given(%a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) {
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    ncclx.yield %r : tensor<4096x4096xbf16>
  } : !ncclx.future<tensor<4096x4096xbf16>>
  %full = ncclx.await %f : !ncclx.future<tensor<4096x4096xbf16>> -> tensor<4096x4096xbf16>
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %c = linalg.matmul ins(%x, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  return %c, %full : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>
}
