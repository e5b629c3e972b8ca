// RUN: ncclx-opt %s --ncclx-split-branches | FileCheck %s
// RUN: ncclx-opt %s --ncclx-split-branches --ncclx-bufferize --convert-ncclx-to-ctran --ctran-verify \
// RUN:   | FileCheck %s --check-prefix=PROGRAMS

ncclx.grid @g ["x" = 4]

// Two conditions, one of them met twice, and a branch in a branch: three ways, not eight.
// CHECK-LABEL: func.func @ways.0(
// CHECK-NOT:     scf.if
// CHECK:         ncclx.permute
// CHECK:         ncclx.all_reduce
// CHECK-LABEL: func.func @ways.1(
// CHECK:         ncclx.permute
// CHECK-NOT:     ncclx.
// CHECK-LABEL: func.func @ways.2(
// CHECK-NOT:     ncclx.permute
// CHECK:         return %arg0
// CHECK-LABEL: func.func @ways.choose(
// CHECK-SAME:    -> tensor<i64> attributes {ncclx.branches = [@ways.0, @ways.1, @ways.2]}
// CHECK:         %[[OUTER:.+]] = scf.if
// CHECK:           scf.if
// CHECK:         tensor.from_elements %[[OUTER]]
// PROGRAMS:     ctran.program @ways.0 grid ["x" = 4]
// PROGRAMS:     ctran.program @ways.1 grid ["x" = 4]
// A branch without collectives is a program, too, on the others' ranks.
// PROGRAMS:     ctran.program @ways.2 grid ["x" = 4]
// PROGRAMS:     func.func @ways.choose(%{{.*}}: memref<4xf32>, %{{.*}}: memref<2xi32>) -> memref<i64>
func.func @ways(%a: tensor<4xf32>, %flags: tensor<2xi32> {ncclx.uniform}) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %f0 = tensor.extract %flags[%c0] : tensor<2xi32>
  %p0 = arith.cmpi sgt, %f0, %zero : i32
  %r = scf.if %p0 -> tensor<4xf32> {
    %m = ncclx.permute %a shift 1 over @g["x"] : tensor<4xf32> -> tensor<4xf32>
    scf.yield %m : tensor<4xf32>
  } else {
    scf.yield %a : tensor<4xf32>
  }
  %again = tensor.extract %flags[%c0] : tensor<2xi32>
  %same = arith.cmpi sgt, %again, %zero : i32
  %s = scf.if %same -> tensor<4xf32> {
    %f1 = tensor.extract %flags[%c1] : tensor<2xi32>
    %p1 = arith.cmpi sgt, %f1, %zero : i32
    %t = scf.if %p1 -> tensor<4xf32> {
      %m = ncclx.all_reduce %r sum accumulate f32 order any over @g["x"] : tensor<4xf32> -> tensor<4xf32>
      scf.yield %m : tensor<4xf32>
    } else {
      scf.yield %r : tensor<4xf32>
    }
    scf.yield %t : tensor<4xf32>
  } else {
    scf.yield %r : tensor<4xf32>
  }
  return %s : tensor<4xf32>
}

// A constant decides: one function, of the old name.
// CHECK-LABEL: func.func @decided(
// CHECK-NOT:     scf.if
// CHECK:         ncclx.barrier
// CHECK-NOT:   @decided.
func.func @decided(%a: tensor<4xf32>) -> tensor<4xf32> {
  %true = arith.constant true
  scf.if %true {
    ncclx.barrier over @g["x"]
  }
  %m = ncclx.permute %a shift 1 over @g["x"] : tensor<4xf32> -> tensor<4xf32>
  return %m : tensor<4xf32>
}
