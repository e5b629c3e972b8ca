// Collectives stay where they are, as many as they are, under passes that know nothing of them.
// RUN: ncclx-opt %s --canonicalize --cse --loop-invariant-code-motion --loop-invariant-subset-hoisting \
// RUN:   --control-flow-sink --sccp --remove-dead-values --symbol-dce --canonicalize --cse | FileCheck %s
// RUN: ncclx-opt %s --inline --cse --canonicalize | FileCheck %s --check-prefix=INLINE

// CHECK: ncclx.grid @g
ncclx.grid @g ["dp" = 2, "tp" = 4]

// Two that are equal, none of which is used.
// CHECK-LABEL: @equal_and_unused
func.func @equal_and_unused(%a: tensor<4xf32>) {
  // CHECK-COUNT-2: ncclx.all_gather
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
  %1 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
  // CHECK-NOT: ncclx.
  // CHECK: return
  return
}

// Invariant in a loop that may run zero times.
// CHECK-LABEL: @invariant
func.func @invariant(%a: tensor<4xf32>, %n: index {ncclx.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c1 {
    // CHECK: ncclx.all_reduce
    %0 = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    // CHECK-NEXT: }
  }
  return
}

// A check is made where it stands, as often as it stands there.
// CHECK-LABEL: @checks
func.func @checks(%n: index {ncclx.uniform}, %p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK-COUNT-2: ncclx.assume_uniform
  %0 = ncclx.assume_uniform %p : i1
  %1 = ncclx.assume_uniform %p : i1
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c1 {
    // CHECK-NEXT: ncclx.assume_uniform
    %2 = ncclx.assume_uniform %p : i1
    // CHECK-NEXT: }
  }
  return
}

// Used in one branch only.
// CHECK-LABEL: @one_branch
func.func @one_branch(%a: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  // CHECK: ncclx.permute
  // CHECK: scf.if
  %0 = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  %1 = scf.if %c -> tensor<4xf32> {
    %2 = arith.addf %0, %a : tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  } else {
    scf.yield %a : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

// Ops on windows, equal, invariant and of no use: all stay, in order.
// CHECK-LABEL: @windows
func.func @windows(%a: tensor<4xf32>, %n: index {ncclx.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK-COUNT-2: ncclx.window
  %w = ncclx.window over @g["tp"] : !ncclx.window<tensor<4xf32>>
  %v = ncclx.window over @g["tp"] : !ncclx.window<tensor<4xf32>>
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c1 {
    // CHECK-NEXT: ncclx.put
    // CHECK-NEXT: ncclx.signal
    // CHECK-NEXT: ncclx.signal
    // CHECK-NEXT: ncclx.wait
    // CHECK-NEXT: ncclx.wait
    // CHECK-NEXT: ncclx.get
    // CHECK-NEXT: ncclx.get
    // CHECK-NEXT: }
    ncclx.put %a into %w[0] shift 1 : tensor<4xf32> into !ncclx.window<tensor<4xf32>>
    ncclx.signal %w shift 1 : !ncclx.window<tensor<4xf32>>
    ncclx.signal %w shift 1 : !ncclx.window<tensor<4xf32>>
    ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<4xf32>>
    ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<4xf32>>
    %0 = ncclx.get %w[0] : !ncclx.window<tensor<4xf32>> -> tensor<4xf32>
    %1 = ncclx.get %w[0] : !ncclx.window<tensor<4xf32>> -> tensor<4xf32>
  }
  return
}

// CHECK-LABEL: @start_and_await
func.func @start_and_await(%a: tensor<4xf32>, %n: index {ncclx.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c1 {
    // CHECK-NEXT: ncclx.start
    // CHECK-NEXT: ncclx.all_to_all
    // CHECK: ncclx.await
    // CHECK-NEXT: ncclx.start
    // CHECK-NEXT: ncclx.all_to_all
    // CHECK: ncclx.await
    %f = ncclx.start {
      %r = ncclx.all_to_all %a split 0 concat 0 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
      ncclx.yield %r : tensor<4xf32>
    } : !ncclx.future<tensor<4xf32>>
    %v = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
    %f2 = ncclx.start {
      %r = ncclx.all_to_all %a split 0 concat 0 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
      ncclx.yield %r : tensor<4xf32>
    } : !ncclx.future<tensor<4xf32>>
    %v2 = ncclx.await %f2 : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  }
  return
}

// A load before and one after are not the same, and the order of accesses stays.
// CHECK-LABEL: @memrefs
func.func @memrefs(%a: memref<4xf32>, %d: memref<16xf32>, %i: index) -> (f32, f32) {
  // CHECK: %[[BEFORE:.+]] = memref.load
  %0 = memref.load %d[%i] : memref<16xf32>
  // CHECK-NEXT: %[[T:.+]] = ncclx.all_gather
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16xf32>) async : memref<4xf32>
  // CHECK-NEXT: ncclx.finish %[[T]]
  ncclx.finish %t, %d keeping(%a : memref<4xf32>) : memref<16xf32>
  // CHECK-NEXT: %[[AFTER:.+]] = memref.load
  %1 = memref.load %d[%i] : memref<16xf32>
  // CHECK-NEXT: return %[[BEFORE]], %[[AFTER]]
  return %0, %1 : f32, f32
}

func.func private @kernel(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// A kernel on tensors is a function of its operands: equal calls are one, unused ones none. Almost: one whose cost
// is declared otherwise is another call.
// CHECK-LABEL: @kernels
func.func @kernels(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-COUNT-2: ncclx.call
  // CHECK-NOT: ncclx.call
  %0 = ncclx.call @kernel(%a) {flops = 1, bytes = 1, sms = 1} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ncclx.call @kernel(%a) {flops = 1, bytes = 1, sms = 1} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = ncclx.call @kernel(%a) {flops = 2, bytes = 1, sms = 1} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = ncclx.call @kernel(%a) {flops = 3, bytes = 1, sms = 1} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func private @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  %f = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  %v = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return %v : tensor<4xf32>
}

// INLINE-LABEL: @inlined
func.func @inlined(%a: tensor<4xf32>) -> tensor<4xf32> {
  // INLINE-COUNT-2: ncclx.permute
  // INLINE-NOT: call @step
  %0 = func.call @step(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @step(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
