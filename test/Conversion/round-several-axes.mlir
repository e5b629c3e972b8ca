// Rings and rounds along several axes: one axis of the program, and one representative, where the axes lie beside each
// other and nothing names them apart; else members by number, and a proof on all ranks.
// RUN: ncclx-opt %s --ncclx-bufferize --convert-ncclx-to-ctran --ctran-verify --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s
// RUN: ncclx-opt %s --ncclx-bufferize --convert-ncclx-to-ctran=load-store=false --ctran-verify --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s

ncclx.grid @g ["x" = 2, "y" = 3, "z" = 2]

// CHECK-DAG: Function=beside | {{.*}}Mode=class
func.func @beside(%a: tensor<5xf32>, %b: tensor<7xi32>) -> (tensor<29xf32>, tensor<7xi32>) {
  %r = ncclx.all_gather %a dim 0 over @g["y", "z"] algorithm ring : tensor<5xf32> -> tensor<29xf32>
  %s = ncclx.all_reduce %b sum accumulate i32 order any over @g["y", "z"] algorithm bruck : tensor<7xi32> -> tensor<7xi32>
  return %r, %s : tensor<29xf32>, tensor<7xi32>
}

// CHECK-DAG: Function=apart | {{.*}}Mode=all
func.func @apart(%a: tensor<5xf32>, %b: tensor<7xi32>) -> (tensor<29xf32>, tensor<7xi32>) {
  %r = ncclx.all_gather %a dim 0 over @g["y", "z"] algorithm ring : tensor<5xf32> -> tensor<29xf32>
  %s = ncclx.all_reduce %b sum accumulate i32 order any over @g["z"] algorithm bruck : tensor<7xi32> -> tensor<7xi32>
  return %r, %s : tensor<29xf32>, tensor<7xi32>
}

// CHECK-DAG: Function=swapped | {{.*}}Mode=all
func.func @swapped(%a: tensor<24xf32>) -> (tensor<24xf32>, tensor<24xf32>) {
  %r = ncclx.permute %a shift 5 over @g["z", "y", "x"] algorithm ring : tensor<24xf32> -> tensor<24xf32>
  %s = ncclx.all_to_all %a split 0 concat 0 over @g["z", "x"] algorithm bruck : tensor<24xf32> -> tensor<24xf32>
  return %r, %s : tensor<24xf32>, tensor<24xf32>
}
// CHECK: ctran.program @beside grid ["x" = 2, "ranks by 1" = 6]
// CHECK: ctran.program @apart grid ["x" = 2, "y" = 3, "z" = 2]
// CHECK: ctran.program @swapped grid ["x" = 2, "y" = 3, "z" = 2]
