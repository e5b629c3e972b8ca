// A loop has as many iterations as there are numbers from its lower bound by steps below its upper one, also where the
// next number wraps or the difference of the bounds does.
// RUN: ncclx-opt %s --ncclx-unroll-communication --split-input-file -o /dev/null --remarks-filter=ncclx-unroll-communication --remark-policy=all 2>&1 | FileCheck %s
// RUN: ncclx-opt %s --ncclx-unroll-communication --split-input-file | FileCheck %s --check-prefix=PLAIN

ncclx.grid @g ["x" = 2]
// CHECK: LoopUnrolled {{.*}}Iterations=3
func.func @unsigned_wraps_behind_its_last(%a: tensor<4xf32>) -> tensor<4xf32> {
  %l = arith.constant 0 : i8
  %u = arith.constant 250 : i8
  %s = arith.constant 100 : i8
  %r = scf.for unsigned %i = %l to %u step %s iter_args(%x = %a) -> tensor<4xf32> : i8 {
    %y = ncclx.all_reduce %x sum accumulate f32 order any over @g["x"] : tensor<4xf32> -> tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

ncclx.grid @g ["x" = 2]
// CHECK: LoopUnrolled {{.*}}Iterations=2
func.func @signed_wraps_behind_its_last(%a: tensor<4xf32>) -> tensor<4xf32> {
  %l = arith.constant 0 : i8
  %u = arith.constant 120 : i8
  %s = arith.constant 100 : i8
  %r = scf.for %i = %l to %u step %s iter_args(%x = %a) -> tensor<4xf32> : i8 {
    %y = ncclx.all_reduce %x sum accumulate f32 order any over @g["x"] : tensor<4xf32> -> tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

ncclx.grid @g ["x" = 2]
// CHECK: LoopUnrolled {{.*}}Iterations=255
func.func @difference_wraps(%a: tensor<4xf32>) -> tensor<4xf32> {
  %l = arith.constant -128 : i8
  %u = arith.constant 127 : i8
  %s = arith.constant 1 : i8
  %r = scf.for %i = %l to %u step %s iter_args(%x = %a) -> tensor<4xf32> : i8 {
    %y = ncclx.all_reduce %x sum accumulate f32 order any over @g["x"] : tensor<4xf32> -> tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

ncclx.grid @g ["x" = 2]
// CHECK: LoopUnrolled {{.*}}Iterations=3
func.func @of_all_numbers(%a: tensor<4xf32>) -> tensor<4xf32> {
  %l = arith.constant -9223372036854775808 : index
  %u = arith.constant 9223372036854775807 : index
  %s = arith.constant 9223372036854775807 : index
  %r = scf.for %i = %l to %u step %s iter_args(%x = %a) -> tensor<4xf32> {
    %y = ncclx.all_reduce %x sum accumulate f32 order any over @g["x"] : tensor<4xf32> -> tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// A step that is not positive has no iterations: known at run time alone, and refused where it is a constant.
// Loops that wrap nowhere stay.
// PLAIN-LABEL: func.func @plain
// PLAIN: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args({{.*}}) -> (tensor<4xf32>) : i8 {
func.func @plain(%a: tensor<4xf32>, %u: i8) -> tensor<4xf32> {
  %l = arith.constant 0 : i8
  %s = arith.constant 1 : i8
  %r = scf.for %i = %l to %u step %s iter_args(%x = %a) -> tensor<4xf32> : i8 {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
// PLAIN-LABEL: func.func @just_not_plain
// PLAIN-NOT: scf.for{{.*}}: i8
func.func @just_not_plain(%a: tensor<4xf32>) -> tensor<4xf32> {
  %l = arith.constant 0 : i8
  %u = arith.constant 126 : i8
  %s = arith.constant 3 : i8
  %r = scf.for %i = %l to %u step %s iter_args(%x = %a) -> tensor<4xf32> : i8 {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
// PLAIN-LABEL: func.func @just_plain
// PLAIN: scf.for{{.*}}: i8
func.func @just_plain(%a: tensor<4xf32>) -> tensor<4xf32> {
  %l = arith.constant 0 : i8
  %u = arith.constant 125 : i8
  %s = arith.constant 3 : i8
  %r = scf.for %i = %l to %u step %s iter_args(%x = %a) -> tensor<4xf32> : i8 {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
