// RUN: ncclx-opt %s --ncclx-split-branches --split-input-file | FileCheck %s
// RUN: ncclx-opt %s --ncclx-split-branches --ncclx-bufferize --convert-ncclx-to-ctran \
// RUN:   --ctran-verify --split-input-file | FileCheck %s --check-prefix=PROGRAMS
// RUN: ncclx-opt %s --ncclx-split-branches -o /dev/null --split-input-file --remarks-filter=ncclx-split-branches --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK

ncclx.grid @g ["x" = 4]

// Before the loop, its condition with the all_reduce, its body, and what is behind: the vector goes round, and so does
// the sum that the condition is of, which is read behind, too.
// CHECK-LABEL: func.func @iterate.0(%{{.*}}: tensor<4xf32>) -> (tensor<4xf32>, tensor<i64>)
// CHECK-LABEL: func.func @iterate.1(
// CHECK-SAME:    tensor<4xf32>) -> (tensor<4xf32>, tensor<i64>)
// CHECK:         ncclx.all_reduce
// CHECK:         %[[GO:.+]] = arith.cmpf
// CHECK:         %[[NEXT:.+]] = arith.select %[[GO]], %{{.*}}, %{{.*}} : i64
// CHECK:         %[[BOXED:.+]] = tensor.from_elements %[[NEXT]]
// CHECK:         return %{{.*}}, %[[BOXED]]
// CHECK-LABEL: func.func @iterate.2(
// CHECK:         linalg.mul
// CHECK-LABEL: func.func @iterate.3(
// CHECK:         return %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xf32>
// CHECK-LABEL: func.func @iterate.choose(%{{.*}}: tensor<4xf32>) -> tensor<i64>
// CHECK-SAME:    ncclx.branches = [@iterate.0, @iterate.1, @iterate.2, @iterate.3]
// CHECK-SAME:    ncclx.stages = [{
// PROGRAMS-COUNT-4: ctran.program @iterate.
func.func @iterate(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %b = linalg.add ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r:2 = scf.while (%x = %b) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %s = ncclx.all_reduce %x max accumulate f32 order any over @g["x"] : tensor<4xf32> -> tensor<4xf32>
    %m = tensor.extract %s[%c0] : tensor<4xf32>
    %go = arith.cmpf ogt, %m, %one : f32
    scf.condition(%go) %x, %s : tensor<4xf32>, tensor<4xf32>
  } do {
  ^bb0(%x: tensor<4xf32>, %s: tensor<4xf32>):
    %y = linalg.mul ins(%x, %a : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

ncclx.grid @g ["x" = 4]

// A bound known at run time; two values change places each turn; a future that is carried: four turns are one stage, in
// which it is in flight from turn to turn, and what is left of them is turns as before, each a stage.
// CHECK-LABEL: func.func @counted.0(
// CHECK:         %[[F:.+]] = ncclx.start
// CHECK:         ncclx.await %[[F]]
// CHECK-LABEL: func.func @counted.1(
// CHECK:         arith.cmpi slt
// CHECK-LABEL: func.func @counted.2(
// CHECK:         ncclx.start
// CHECK:         ncclx.await
// CHECK-NEXT:    ncclx.start
// CHECK:         ncclx.await
// CHECK-NEXT:    ncclx.start
// CHECK:         ncclx.await
// CHECK-NEXT:    ncclx.start
// CHECK:         ncclx.await
// CHECK-NOT:     ncclx.start
// CHECK-LABEL: func.func @counted.4(
// CHECK:         arith.cmpi slt
// CHECK-LABEL: func.func @counted.5(
// CHECK:         ncclx.start
// CHECK-NOT:     ncclx.start
// CHECK-LABEL: func.func @counted.6(
// REMARK:      remark: [Passed] TurnsJoined {{.*}}Turns=4
// PROGRAMS-COUNT-7: ctran.program @counted.
func.func @counted(%a: tensor<4xf32>, %n: tensor<1xi32> {ncclx.uniform}) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = tensor.extract %n[%c0] : tensor<1xi32>
  %turns = arith.index_cast %i : i32 to index
  %f = ncclx.start {
    %p = ncclx.permute %a shift 1 over @g["x"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %p : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  %r:3 = scf.for %k = %c0 to %turns step %c1 iter_args(%x = %a, %y = %a, %g = %f)
      -> (tensor<4xf32>, tensor<4xf32>, !ncclx.future<tensor<4xf32>>) {
    %v = ncclx.await %g : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
    %h = ncclx.start {
      %p = ncclx.permute %v shift 1 over @g["x"] : tensor<4xf32> -> tensor<4xf32>
      ncclx.yield %p : tensor<4xf32>
    } : !ncclx.future<tensor<4xf32>>
    scf.yield %y, %v, %h : tensor<4xf32>, tensor<4xf32>, !ncclx.future<tensor<4xf32>>
  }
  %v = ncclx.await %r#2 : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return %r#0, %v : tensor<4xf32>, tensor<4xf32>
}

// -----

ncclx.grid @g ["x" = 4]

// What leaves its stage is in flight up to the end of it, beside what is awaited there; a while has no turns that are known
// to follow each other, so each of them is a stage.
// CHECK-LABEL: func.func @beside.0(
// CHECK:         ncclx.start
// CHECK:         ncclx.await
// CHECK-LABEL: func.func @beside.2(
// CHECK:         %[[L:.+]] = ncclx.start
// CHECK-NEXT:      ncclx.all_gather
// CHECK:         %[[H:.+]] = ncclx.start
// CHECK-NEXT:      ncclx.permute
// CHECK:         ncclx.await %[[L]]
// CHECK:         linalg.add
// CHECK:         ncclx.await %[[H]]
// CHECK-NOT:     linalg.add
// CHECK-LABEL: func.func @beside.3(
// REMARK:      split-stages.mlir:[[# @LINE + 10]]:8: remark: [Missed] FutureAwaited {{.*}}it would be in flight between stages: it is awaited where its own ends
// REMARK-NOT:  FutureAwaited
// REMARK:      split-stages.mlir:[[# @LINE + 23]]:10: remark: [Missed] FutureAwaited
// REMARK-NOT:  FutureAwaited
func.func @beside(%a: tensor<4xf32>, %n: tensor<1xi32> {ncclx.uniform}) -> (tensor<4xf32>, tensor<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = tensor.extract %n[%c0] : tensor<1xi32>
  %turns = arith.index_cast %i : i32 to index
  %z = tensor.empty() : tensor<16xf32>
  %f = ncclx.start {
    %p = ncclx.permute %a shift 1 over @g["x"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %p : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  %r:3 = scf.while (%k = %c0, %x = %z, %g = %f)
      : (index, tensor<16xf32>, !ncclx.future<tensor<4xf32>>) -> (index, tensor<16xf32>, !ncclx.future<tensor<4xf32>>) {
    %go = arith.cmpi slt, %k, %turns : index
    scf.condition(%go) %k, %x, %g : index, tensor<16xf32>, !ncclx.future<tensor<4xf32>>
  } do {
  ^bb0(%k: index, %x: tensor<16xf32>, %g: !ncclx.future<tensor<4xf32>>):
    %v = ncclx.await %g : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
    %l = ncclx.start {
      %p = ncclx.all_gather %v dim 0 over @g["x"] : tensor<4xf32> -> tensor<16xf32>
      ncclx.yield %p : tensor<16xf32>
    } : !ncclx.future<tensor<16xf32>>
    %h = ncclx.start {
      %p = ncclx.permute %v shift 1 over @g["x"] : tensor<4xf32> -> tensor<4xf32>
      ncclx.yield %p : tensor<4xf32>
    } : !ncclx.future<tensor<4xf32>>
    %w = ncclx.await %l : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
    %y = linalg.add ins(%w, %x : tensor<16xf32>, tensor<16xf32>) outs(%z : tensor<16xf32>) -> tensor<16xf32>
    %k1 = arith.addi %k, %c1 : index
    scf.yield %k1, %y, %h : index, tensor<16xf32>, !ncclx.future<tensor<4xf32>>
  }
  %v = ncclx.await %r#2 : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return %v, %r#1 : tensor<4xf32>, tensor<16xf32>
}

// -----

ncclx.grid @g ["x" = 4]

// A check ends a stage; nothing else does here.
// CHECK-LABEL: func.func @checked.0(
// CHECK-NOT:     ncclx.assume_uniform
// CHECK-LABEL: func.func @checked.1(
// CHECK:         ncclx.permute
// CHECK-NOT:   func.func @checked.2(
// CHECK:       func.func @checked.choose
// CHECK-SAME:    agree = [[S:[0-9]+]] : i64, at = "{{.*}}split-stages.mlir:{{[0-9]+}}:{{[0-9]+}}"
// CHECK-SAME:    writes = array<i64: [[S]]>
func.func @checked(%a: tensor<4xf32>, %n: tensor<1xi32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %i = tensor.extract %n[%c0] : tensor<1xi32>
  %p = arith.trunci %i : i32 to i1
  %u = ncclx.assume_uniform %p : i1
  %f = arith.uitofp %u : i1 to f32
  %m = ncclx.permute %a shift 1 over @g["x"] : tensor<4xf32> -> tensor<4xf32>
  %r = tensor.insert %f into %m[%c0] : tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

ncclx.grid @g ["x" = 4]

// Almost: branches that can be decided at the start are ways; in the loop nothing communicates.
// CHECK-LABEL: func.func @known.0(
// CHECK:         ncclx.permute
// CHECK:         scf.while
// CHECK-LABEL: func.func @known.1(
// CHECK:         scf.while
// CHECK-LABEL: func.func @known.choose(
// CHECK-SAME:    attributes {ncclx.branches = [@known.0, @known.1]}
// PROGRAMS-COUNT-2: ctran.program @known.
func.func @known(%a: tensor<4xf32>, %n: tensor<1xi32> {ncclx.uniform}) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0 : i32
  %i = tensor.extract %n[%c0] : tensor<1xi32>
  %c = arith.cmpi sgt, %i, %none : i32
  %m = scf.if %c -> tensor<4xf32> {
    %x = ncclx.permute %a shift 1 over @g["x"] : tensor<4xf32> -> tensor<4xf32>
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %a : tensor<4xf32>
  }
  %one = arith.constant 1 : i32
  %x0 = tensor.extract %m[%c0] : tensor<4xf32>
  %k0 = arith.fptosi %x0 : f32 to i32
  %w = scf.while (%k = %k0) : (i32) -> i32 {
    %far = arith.cmpi sgt, %k, %none : i32
    scf.condition(%far) %k : i32
  } do {
  ^bb0(%k: i32):
    %k1 = arith.subi %k, %one : i32
    scf.yield %k1 : i32
  }
  %y = arith.sitofp %w : i32 to f32
  %r = tensor.insert %y into %m[%c0] : tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

ncclx.grid @g ["x" = 4]

// A window of before the loop: each stage that uses it makes it of what is handed on, waits for what its text waits for
// later, and tells of a put that only a later stage tells of. Where it is not used, it goes by.
// CHECK-LABEL: func.func @windows.0(
// CHECK:         ncclx.window over @g["x"] init(
// CHECK-NOT:     ncclx.get
// CHECK-LABEL: func.func @windows.2(
// CHECK:         %[[W:.+]] = ncclx.window over @g["x"] init(%arg{{[0-9]}} : tensor<4xf32>)
// CHECK:         ncclx.put %{{.*}} into %[[W]][0] shift 1
// CHECK:         ncclx.signal %[[W]] shift 1
// CHECK:         ncclx.put %{{.*}} into %[[W]][1] shift 2
// CHECK:         ncclx.signal %[[W]] shift 2
// CHECK-DAG:     ncclx.wait %[[W]] shift 2 count 1
// CHECK-DAG:     ncclx.wait %[[W]] shift 1 count 1
// CHECK:         ncclx.get %[[W]][0] : !ncclx.window<tensor<4xf32>> -> tensor<4xf32>
// CHECK-LABEL: func.func @windows.3(
// CHECK-NOT:     ncclx.wait %{{.*}} shift 1
// CHECK-LABEL: func.func @windows.4(
// REMARK:      remark: [Missed] WindowCarried {{.*}}several stages use it
// PROGRAMS-COUNT-5: ctran.program @windows.
func.func @windows(%a: tensor<1xf32>, %n: tensor<1xi32> {ncclx.uniform}) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = tensor.extract %n[%c0] : tensor<1xi32>
  %turns = arith.index_cast %i : i32 to index
  %odd = arith.trunci %i : i32 to i1
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  scf.for %k = %c0 to %turns step %c1 {
    ncclx.put %a into %w[0] shift 1 : tensor<1xf32> into !ncclx.window<tensor<4xf32>>
    ncclx.signal %w shift 1 : !ncclx.window<tensor<4xf32>>
    ncclx.put %a into %w[1] shift 2 : tensor<1xf32> into !ncclx.window<tensor<4xf32>>
    %u = ncclx.assume_uniform %odd : i1
    ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<4xf32>>
  }
  %r = ncclx.get %w[0] : !ncclx.window<tensor<4xf32>> -> tensor<4xf32>
  return %r : tensor<4xf32>
}
