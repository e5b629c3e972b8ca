// RUN: ncclx-opt %s --ncclx-split-branches | FileCheck %s

ncclx.grid @g ["x" = 4]

// Nothing communicates under this branch.
// CHECK-LABEL: func.func @quiet(
// CHECK:         scf.if
func.func @quiet(%a: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  %m = ncclx.permute %a shift 1 over @g["x"] : tensor<4xf32> -> tensor<4xf32>
  %r = scf.if %p -> tensor<4xf32> {
    scf.yield %m : tensor<4xf32>
  } else {
    scf.yield %a : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
