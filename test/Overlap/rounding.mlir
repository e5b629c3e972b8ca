// What rounds a product's result is done with it: it takes no time of its own, and no start or await comes between.
// What somebody else uses, too, is a kernel by itself.
// RUN: ncclx-opt %s --ncclx-overlap=machine=%ncclx_src/examples/machines/h200x2.json | FileCheck %s

ncclx.grid @g ["tp" = 2]

// CHECK: func.func @with({{.*}}ncclx.contract = [
// CHECK-SAME: {beside = array<i64: 1>, {{[^}]*}}kind = "collective", {{[^}]*}}}, {kind = "product", {{[^}]*}}}]
// CHECK: ncclx.start
// CHECK: linalg.matmul
// CHECK-NOT: ncclx.await
// CHECK: arith.truncf
// CHECK: ncclx.await
func.func @with(%s: tensor<4096x4096xbf16>, %a: tensor<8192x8192xbf16>, %b: tensor<8192x8192xbf16>) -> (tensor<8192x4096xbf16>, tensor<8192x8192xbf16>) {
  %zero = arith.constant 0.0 : f32
  %g = ncclx.all_gather %s dim 0 over @g["tp"] : tensor<4096x4096xbf16> -> tensor<8192x4096xbf16>
  %e = tensor.empty() : tensor<8192x8192xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %p = linalg.matmul ins(%a, %b : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) outs(%z : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %o = tensor.empty() : tensor<8192x8192xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8192x8192xf32>) outs(%o : tensor<8192x8192xbf16>) {
    ^bb0(%x: f32, %old: bf16):
      %n = arith.truncf %x : f32 to bf16
      linalg.yield %n : bf16
  } -> tensor<8192x8192xbf16>
  return %g, %r : tensor<8192x4096xbf16>, tensor<8192x8192xbf16>
}

// CHECK: func.func @shared({{.*}}ncclx.contract = [
// CHECK-SAME: kind = "kernel"
func.func @shared(%s: tensor<4096x4096xbf16>, %a: tensor<8192x8192xbf16>, %b: tensor<8192x8192xbf16>) -> (tensor<8192x4096xbf16>, tensor<8192x8192xbf16>, tensor<8192x8192xf32>) {
  %zero = arith.constant 0.0 : f32
  %g = ncclx.all_gather %s dim 0 over @g["tp"] : tensor<4096x4096xbf16> -> tensor<8192x4096xbf16>
  %e = tensor.empty() : tensor<8192x8192xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %p = linalg.matmul ins(%a, %b : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) outs(%z : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %o = tensor.empty() : tensor<8192x8192xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<8192x8192xf32>) outs(%o : tensor<8192x8192xbf16>) {
    ^bb0(%x: f32, %old: bf16):
      %n = arith.truncf %x : f32 to bf16
      linalg.yield %n : bf16
  } -> tensor<8192x8192xbf16>
  return %g, %r, %p : tensor<8192x4096xbf16>, tensor<8192x8192xbf16>, tensor<8192x8192xf32>
}
