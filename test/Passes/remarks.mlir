// RUN: ncclx-opt %s --ncclx-materialize-destinations --remarks-filter='ncclx.*' -o /dev/null 2>&1 | FileCheck %s

ncclx.grid @g ["tp" = 4]
func.func @f(%a: tensor<4xf32>, %d: tensor<4xf32>) {
  // CHECK: remarks.mlir:[[@LINE+1]]:{{.*}} [Passed] DestinationMaterialized | Category:ncclx-buffers | Bytes=64
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
  // CHECK-NOT: DestinationMaterialized
  %1 = ncclx.permute %a shift 1 over @g["tp"] into(%d : tensor<4xf32>) : tensor<4xf32> -> tensor<4xf32>
  return
}
