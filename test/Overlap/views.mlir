// What stands between a gather and its product (row O12 of test/CASES.md): each form that cuts the two says which rule keeps them whole, and
// leaves the graph as it was; the first graph, with nothing between, is the control that is cut.
// RUN: ncclx-opt %s --ncclx-split-exchanges=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-split-exchanges --remark-policy=all 2>%t.split.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.split.err
// RUN: ncclx-opt %s --ncclx-ring-exchanges=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-ring-exchanges --remark-policy=all 2>%t.ring.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.ring.err
// RUN: ncclx-opt %s --ncclx-direct-exchanges=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-direct-exchanges --remark-policy=all 2>%t.direct.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.direct.err
// RUN: ncclx-opt %s --ncclx-double-exchanges=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-double-exchanges --remark-policy=all 2>%t.double.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.double.err

ncclx.grid @g ["tp" = 8]

// WHY: Function=plain | Remark="all_gather of 134217728 bytes and linalg.matmul {{.*}} are cut: {{.*}} us in {{.*}} us one after the other"
// CHECK-LABEL: @plain(
// CHECK-NOT: linalg.matmul{{.*}}tensor<8192x8192xbf16>, tensor<8192x14336xbf16>)
func.func @plain(%a: tensor<1024x8192xbf16>, %w: tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16> {
  %e = tensor.empty() : tensor<8192x14336xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<8192x8192xbf16>, tensor<8192x14336xbf16>) outs(%e : tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16>
  return %c : tensor<8192x14336xbf16>
}

// WHY: Function=reshaped | Reason="its user is no product of two matrices", Remark="all_gather of 134217728 bytes stays whole"
// CHECK-LABEL: @reshaped(
// CHECK: ncclx.all_gather {{.*}} : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
// CHECK: linalg.matmul ins({{.*}} : tensor<8192x8192xbf16>, tensor<8192x14336xbf16>)
func.func @reshaped(%a: tensor<1024x8192xbf16>, %w: tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16> {
  %e = tensor.empty() : tensor<8192x14336xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
  %flat = tensor.collapse_shape %full [[0, 1]] : tensor<8192x8192xbf16> into tensor<67108864xbf16>
  %again = tensor.expand_shape %flat [[0, 1]] output_shape [8192, 8192] : tensor<67108864xbf16> into tensor<8192x8192xbf16>
  %c = linalg.matmul ins(%again, %w : tensor<8192x8192xbf16>, tensor<8192x14336xbf16>) outs(%e : tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16>
  return %c : tensor<8192x14336xbf16>
}

// WHY: Function=transposed | Reason="its user is no product of two matrices", Remark="all_gather of 134217728 bytes stays whole"
// CHECK-LABEL: @transposed(
// CHECK: ncclx.all_gather {{.*}} : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
// CHECK: linalg.matmul ins({{.*}} : tensor<8192x8192xbf16>, tensor<8192x14336xbf16>)
func.func @transposed(%a: tensor<1024x8192xbf16>, %w: tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16> {
  %e = tensor.empty() : tensor<8192x14336xbf16>
  %t = tensor.empty() : tensor<8192x8192xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
  %turned = linalg.transpose ins(%full : tensor<8192x8192xbf16>) outs(%t : tensor<8192x8192xbf16>) permutation = [1, 0]
  %c = linalg.matmul ins(%turned, %w : tensor<8192x8192xbf16>, tensor<8192x14336xbf16>) outs(%e : tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16>
  return %c : tensor<8192x14336xbf16>
}

// WHY: Function=scaled | Reason="its user is no product of two matrices", Remark="all_gather of 134217728 bytes stays whole"
// CHECK-LABEL: @scaled(
// CHECK: ncclx.all_gather {{.*}} : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
// CHECK: linalg.matmul ins({{.*}} : tensor<8192x8192xbf16>, tensor<8192x14336xbf16>)
func.func @scaled(%a: tensor<1024x8192xbf16>, %s: tensor<8192x8192xbf16>, %w: tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16> {
  %e = tensor.empty() : tensor<8192x14336xbf16>
  %t = tensor.empty() : tensor<8192x8192xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
  %times = linalg.mul ins(%full, %s : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) outs(%t : tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  %c = linalg.matmul ins(%times, %w : tensor<8192x8192xbf16>, tensor<8192x14336xbf16>) outs(%e : tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16>
  return %c : tensor<8192x14336xbf16>
}

// WHY: Function=second_user | Reason="it has 2 users, and one product is cut with it", Remark="all_gather of 134217728 bytes stays whole"
// CHECK-LABEL: @second_user(
// CHECK: ncclx.all_gather {{.*}} : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
// CHECK: linalg.matmul ins({{.*}} : tensor<8192x8192xbf16>, tensor<8192x14336xbf16>)
func.func @second_user(%a: tensor<1024x8192xbf16>, %w: tensor<8192x14336xbf16>) -> (tensor<8192x14336xbf16>, tensor<8192x8192xbf16>) {
  %e = tensor.empty() : tensor<8192x14336xbf16>
  %full = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<1024x8192xbf16> -> tensor<8192x8192xbf16>
  %c = linalg.matmul ins(%full, %w : tensor<8192x8192xbf16>, tensor<8192x14336xbf16>) outs(%e : tensor<8192x14336xbf16>) -> tensor<8192x14336xbf16>
  return %c, %full : tensor<8192x14336xbf16>, tensor<8192x8192xbf16>
}
