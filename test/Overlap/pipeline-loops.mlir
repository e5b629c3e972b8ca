// Collectives of a loop, issued in the iteration before or awaited in the next; each rule refuses.
// RUN: ncclx-opt %s --ncclx-pipeline-loops=machine=%ncclx_src/examples/machines/h100-nvswitch.json --remarks-filter=ncclx-pipeline-loops --remark-policy=all 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WHY < %t.err
// What comes out is legal, and the general scheduler takes it: the loops' collectives stay in flight.
// RUN: ncclx-opt %s --ncclx-pipeline-loops=machine=%ncclx_src/examples/machines/h100-nvswitch.json --ncclx-overlap=machine=%ncclx_src/examples/machines/h100-nvswitch.json --ncclx-verify-legality --remarks-filter=ncclx-overlap --remark-policy=all 2>%t.overlap | FileCheck %s --check-prefix=PLACED
// RUN: FileCheck %s --check-prefix=NEXT < %t.overlap
// Nothing moves in no memory.
// RUN: ncclx-opt %s > %t.plain
// RUN: ncclx-opt %s --ncclx-pipeline-loops="machine=%ncclx_src/examples/machines/h100-nvswitch.json memory-budget=0" | diff - %t.plain
// RUN: not ncclx-opt %s --ncclx-pipeline-loops="machine=%ncclx_src/examples/machines/h100-nvswitch.json memory-budget=-1" 2>&1 | FileCheck %s --check-prefix=BUDGET
// BUDGET: error: ncclx-pipeline-loops: memory-budget is at least 0, found -1
// One byte less than a gather takes: it stays.
// RUN: ncclx-opt %s --ncclx-pipeline-loops="machine=%ncclx_src/examples/machines/h100-nvswitch.json memory-budget=33554431" --remarks-filter=ncclx-pipeline-loops --remark-policy=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=TIGHT
// TIGHT: LoopNotPipelined{{.*}}Function=ahead{{.*}}ahead: 33554432 bytes more in flight, and the budget leaves 33554431

ncclx.grid @g ["tp" = 8]

// The weights of the next layer are gathered while this one computes; the last iteration stands behind the loop.
// WHY: LoopPipelined{{.*}}Function=ahead{{.*}}all_gather of 33554432 bytes is issued an iteration ahead: 33554432 bytes more in flight
// NEXT: Function=ahead{{.*}}exposed {{.*}} us of {{.*}} us before, {{.*}} us of
// CHECK-LABEL: @ahead
// CHECK: %[[F0:.+]] = ncclx.start {
// CHECK: scf.for %{{.+}} iter_args(%{{.+}} = %arg1, %[[F:.+]] = %[[F0]])
// CHECK: tensor.extract_slice
// CHECK: ncclx.start {
// CHECK: ncclx.await %[[F]]
// CHECK: linalg.matmul
// CHECK: scf.yield
// CHECK: ncclx.await
// CHECK: linalg.matmul
// CHECK: return
// PLACED-LABEL: @ahead
// PLACED: scf.for
// PLACED: ncclx.start
// PLACED: linalg.matmul
// PLACED: scf.yield
func.func @ahead(%shards: tensor<6x512x4096xbf16>, %x: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%h = %x) -> tensor<4096x4096xbf16> {
    %shard = tensor.extract_slice %shards[%i, 0, 0] [1, 512, 4096] [1, 1, 1] : tensor<6x512x4096xbf16> to tensor<512x4096xbf16>
    %w = ncclx.all_gather %shard dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    %c = linalg.matmul ins(%h, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    scf.yield %c : tensor<4096x4096xbf16>
  }
  return %r : tensor<4096x4096xbf16>
}

// Gradients are reduced while the next iteration computes; their sum is an iteration late, and nothing else sees it.
// WHY: LoopPipelined{{.*}}Function=behind{{.*}}reduce_scatter of 33554432 bytes is awaited an iteration later
// CHECK-LABEL: @behind
// CHECK: linalg.matmul
// CHECK: %[[F0:.+]] = ncclx.start {
// CHECK: scf.for %{{.+}} iter_args({{.*}} = %arg2, %[[F:.+]] = %[[F0]])
// CHECK: linalg.matmul
// CHECK: ncclx.await %[[F]]
// CHECK: linalg.add
// CHECK: ncclx.start {
// CHECK: scf.yield
// CHECK: ncclx.await
// CHECK: linalg.add
// CHECK: return
// PLACED-LABEL: @behind
func.func @behind(%xs: tensor<6x4096x4096xbf16>, %y: tensor<4096x4096xbf16>, %zero: tensor<512x4096xbf16>) -> tensor<512x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %s = tensor.empty() : tensor<512x4096xbf16>
  %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%sum = %zero) -> tensor<512x4096xbf16> {
    %x = tensor.extract_slice %xs[%i, 0, 0] [1, 4096, 4096] [1, 1, 1] : tensor<6x4096x4096xbf16> to tensor<4096x4096xbf16>
    %c = linalg.matmul ins(%x, %y : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    %g = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order ring over @g["tp"] : tensor<4096x4096xbf16> -> tensor<512x4096xbf16>
    %a = linalg.add ins(%sum, %g : tensor<512x4096xbf16>, tensor<512x4096xbf16>) outs(%s : tensor<512x4096xbf16>) -> tensor<512x4096xbf16>
    scf.yield %a : tensor<512x4096xbf16>
  }
  return %r : tensor<512x4096xbf16>
}

// A chain from one iteration to the next: its operand is computed in it, and it is computed with.
// WHY: LoopNotPipelined{{.*}}Function=chain{{.*}}ahead: its operand is computed in the iteration that it stands in; behind: the iteration that it stands in computes with its result
func.func @chain(%x: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%h = %x) -> tensor<4096x4096xbf16> {
    %c = linalg.matmul ins(%h, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    %s = ncclx.all_reduce %c sum accumulate bf16 order any over @g["tp"] : tensor<4096x4096xbf16> -> tensor<4096x4096xbf16>
    %d = linalg.matmul ins(%s, %x : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    scf.yield %d : tensor<4096x4096xbf16>
  }
  return %r : tensor<4096x4096xbf16>
}

// What the next iteration starts with is ready before the weight gradient of this one.
// WHY: LoopPipelined{{.*}}Function=early{{.*}}all_gather of 33554432 bytes is issued an iteration ahead
// CHECK-LABEL: @early
// CHECK: scf.for
// CHECK: ncclx.await
// CHECK: linalg.matmul {{.*}} -> tensor<512x4096xbf16>
// CHECK: ncclx.start {
// CHECK: linalg.matmul {{.*}} -> tensor<4096x4096xbf16>
// CHECK: scf.yield
func.func @early(%x: tensor<512x4096xbf16>, %y: tensor<4096x4096xbf16>, %q: tensor<512x4096xbf16>) -> (tensor<512x4096xbf16>, tensor<4096x4096xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %e = tensor.empty() : tensor<512x4096xbf16>
  %r:2 = scf.for %i = %c0 to %c6 step %c1 iter_args(%h = %x, %sum = %y) -> (tensor<512x4096xbf16>, tensor<4096x4096xbf16>) {
    %w = ncclx.all_gather %h dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    %c = linalg.matmul ins(%q, %w : tensor<512x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<512x4096xbf16>) -> tensor<512x4096xbf16>
    %d = linalg.matmul ins(%w, %y : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%sum : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    scf.yield %c, %d : tensor<512x4096xbf16>, tensor<4096x4096xbf16>
  }
  return %r#0, %r#1 : tensor<512x4096xbf16>, tensor<4096x4096xbf16>
}

// WHY: LoopNotPipelined{{.*}}Function=once{{.*}}it runs 1 times
func.func @once(%a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%h = %x) -> tensor<4096x4096xbf16> {
    %w = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    %c = linalg.matmul ins(%h, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    scf.yield %c : tensor<4096x4096xbf16>
  }
  return %r : tensor<4096x4096xbf16>
}
// How often it runs is not known: all of it stands behind the question whether it does.
// WHY: LoopPipelined{{.*}}Function=unknown{{.*}}all_gather of 33554432 bytes is issued an iteration ahead
// CHECK-LABEL: @unknown
// CHECK: %[[RUNS:.+]] = arith.cmpi slt, %{{.+}}, %arg0 : index
// CHECK: scf.if %[[RUNS]]
// CHECK: %[[STEPS:.+]] = arith.divui
// CHECK: %[[LAST:.+]] = arith.addi %{{.+}}, %{{.+}} : index
// CHECK: %[[F0:.+]] = ncclx.start {
// CHECK: scf.for %{{.+}} = %{{.+}} to %[[LAST]] step %{{.+}} iter_args(%{{.+}} = %arg2, %[[F:.+]] = %[[F0]])
// CHECK: ncclx.start {
// CHECK: ncclx.await %[[F]]
// CHECK: scf.yield
// CHECK: ncclx.await
// CHECK: linalg.matmul
// CHECK: scf.yield
// CHECK: else
// CHECK-NEXT: scf.yield %arg2
// PLACED-LABEL: @unknown
// PLACED: scf.if
// PLACED: scf.for
// PLACED: ncclx.start
// PLACED: linalg.matmul
func.func @unknown(%n: index {ncclx.uniform}, %a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> tensor<4096x4096xbf16> {
    %w = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    %c = linalg.matmul ins(%h, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    scf.yield %c : tensor<4096x4096xbf16>
  }
  return %r : tensor<4096x4096xbf16>
}
// Something of unknown effects: nothing crosses it.
// WHY: LoopNotPipelined{{.*}}Function=fence{{.*}}func.call may communicate
func.func private @elsewhere()
func.func @fence(%a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%h = %x) -> tensor<4096x4096xbf16> {
    func.call @elsewhere() : () -> ()
    %w = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    %c = linalg.matmul ins(%h, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    scf.yield %c : tensor<4096x4096xbf16>
  }
  return %r : tensor<4096x4096xbf16>
}
// The iteration computes with the sum of those before: it may not be late.
// WHY: LoopNotPipelined{{.*}}Function=needed{{.*}}behind: the iteration needs the sum of those before
func.func @needed(%y: tensor<4096x4096xbf16>, %zero: tensor<512x4096xbf16>) -> (tensor<512x4096xbf16>, tensor<512x4096xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %s = tensor.empty() : tensor<512x4096xbf16>
  %r:2 = scf.for %i = %c0 to %c6 step %c1 iter_args(%sum = %zero, %h = %zero) -> (tensor<512x4096xbf16>, tensor<512x4096xbf16>) {
    %c = linalg.matmul ins(%y, %y : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    %g = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order ring over @g["tp"] : tensor<4096x4096xbf16> -> tensor<512x4096xbf16>
    %a = linalg.add ins(%sum, %g : tensor<512x4096xbf16>, tensor<512x4096xbf16>) outs(%s : tensor<512x4096xbf16>) -> tensor<512x4096xbf16>
    %d = linalg.matmul ins(%sum, %y : tensor<512x4096xbf16>, tensor<4096x4096xbf16>) outs(%s : tensor<512x4096xbf16>) -> tensor<512x4096xbf16>
    scf.yield %a, %d : tensor<512x4096xbf16>, tensor<512x4096xbf16>
  }
  return %r#0, %r#1 : tensor<512x4096xbf16>, tensor<512x4096xbf16>
}

// Sums that are an iteration late, of a loop of unknown length, counted down from above 2^31.
// WHY: LoopPipelined{{.*}}Function=unknown_behind{{.*}}reduce_scatter of 33554432 bytes is awaited an iteration later
// CHECK-LABEL: @unknown_behind
// CHECK: arith.cmpi ult
// CHECK: scf.if
// CHECK: arith.divui
// CHECK: %[[F0:.+]] = ncclx.start {
// CHECK: scf.for unsigned {{.*}} iter_args({{.*}} = %[[F0]])
// CHECK: ncclx.await
// CHECK: scf.yield
// CHECK: ncclx.await
// CHECK: linalg.add
// CHECK: else
func.func @unknown_behind(%n: i32 {ncclx.uniform}, %y: tensor<4096x4096xbf16>, %zero: tensor<512x4096xbf16>) -> tensor<512x4096xbf16> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %s = tensor.empty() : tensor<512x4096xbf16>
  %r:2 = scf.for unsigned %i = %c0 to %n step %c1 iter_args(%sum = %zero, %h = %y) -> (tensor<512x4096xbf16>, tensor<4096x4096xbf16>) : i32 {
    %c = linalg.matmul ins(%h, %y : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    %g = ncclx.reduce_scatter %c dim 0 sum accumulate bf16 order ring over @g["tp"] : tensor<4096x4096xbf16> -> tensor<512x4096xbf16>
    %a = linalg.add ins(%sum, %g : tensor<512x4096xbf16>, tensor<512x4096xbf16>) outs(%s : tensor<512x4096xbf16>) -> tensor<512x4096xbf16>
    scf.yield %a, %c : tensor<512x4096xbf16>, tensor<4096x4096xbf16>
  }
  return %r#0 : tensor<512x4096xbf16>
}

// A while loop that counts is a loop like others.
// WHY: LoopPipelined{{.*}}Function=counting_while{{.*}}all_gather of 33554432 bytes is issued an iteration ahead
// CHECK-LABEL: @counting_while
// CHECK: scf.if
// CHECK: ncclx.start {
// CHECK: scf.for
// CHECK: ncclx.start {
func.func @counting_while(%n: index {ncclx.uniform}, %shards: tensor<6x512x4096xbf16>, %x: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %r:2 = scf.while (%i = %c0, %h = %x) : (index, tensor<4096x4096xbf16>) -> (index, tensor<4096x4096xbf16>) {
    %go = arith.cmpi slt, %i, %n : index
    scf.condition(%go) %i, %h : index, tensor<4096x4096xbf16>
  } do {
  ^bb0(%i: index, %h: tensor<4096x4096xbf16>):
    %shard = tensor.extract_slice %shards[%i, 0, 0] [1, 512, 4096] [1, 1, 1] : tensor<6x512x4096xbf16> to tensor<512x4096xbf16>
    %w = ncclx.all_gather %shard dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    %c = linalg.matmul ins(%h, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    %next = arith.addi %i, %c1 : index
    scf.yield %next, %c : index, tensor<4096x4096xbf16>
  }
  return %r#1 : tensor<4096x4096xbf16>
}

// One that goes on until its data say so: whether there is a next iteration is not known in this one.
// WHY: LoopNotPipelined{{.*}}Function=converging{{.*}}whether it goes on is decided by more than a count
// CHECK-LABEL: @converging
// CHECK: scf.while
func.func @converging(%a: tensor<512x4096xbf16>, %x: tensor<4096x4096xbf16>, %left: tensor<1xi32> {ncclx.uniform}) -> tensor<4096x4096xbf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %r:2 = scf.while (%t = %left, %h = %x) : (tensor<1xi32>, tensor<4096x4096xbf16>) -> (tensor<1xi32>, tensor<4096x4096xbf16>) {
    %n = tensor.extract %t[%c0] : tensor<1xi32>
    %go = arith.cmpi sgt, %n, %zero : i32
    scf.condition(%go) %t, %h : tensor<1xi32>, tensor<4096x4096xbf16>
  } do {
  ^bb0(%t: tensor<1xi32>, %h: tensor<4096x4096xbf16>):
    %w = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<512x4096xbf16> -> tensor<4096x4096xbf16>
    %c = linalg.matmul ins(%h, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    %less = arith.subi %t, %t : tensor<1xi32>
    scf.yield %less, %c : tensor<1xi32>, tensor<4096x4096xbf16>
  }
  return %r#1 : tensor<4096x4096xbf16>
}

// What comes back is handed on as it is, with no sum between: it cannot be an iteration late.
// WHY: LoopNotPipelined{{.*}}Function=handed_on{{.*}}behind: the next iteration, or what follows the loop, needs it as it is
func.func @handed_on(%y: tensor<4096x4096xbf16>, %zero: tensor<512x4096xbf16>) -> (tensor<512x4096xbf16>, tensor<4096x4096xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %r:2 = scf.for %i = %c0 to %c6 step %c1 iter_args(%last = %zero, %x = %y) -> (tensor<512x4096xbf16>, tensor<4096x4096xbf16>) {
    %p = linalg.matmul ins(%x, %y : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    %g = ncclx.reduce_scatter %p dim 0 sum accumulate bf16 order any over @g["tp"] : tensor<4096x4096xbf16> -> tensor<512x4096xbf16>
    scf.yield %g, %p : tensor<512x4096xbf16>, tensor<4096x4096xbf16>
  }
  return %r#0, %r#1 : tensor<512x4096xbf16>, tensor<4096x4096xbf16>
}

// The sum scales by what this iteration computes, which is gone in the next.
// WHY: LoopNotPipelined{{.*}}Function=scaled{{.*}}behind: its sums need what the iteration computes
func.func @scaled(%y: tensor<4096x4096xbf16>, %zero: tensor<512x4096xbf16>) -> (tensor<512x4096xbf16>, tensor<4096x4096xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %s = tensor.empty() : tensor<512x4096xbf16>
  %r:2 = scf.for %i = %c0 to %c6 step %c1 iter_args(%sum = %zero, %x = %y) -> (tensor<512x4096xbf16>, tensor<4096x4096xbf16>) {
    %p = linalg.matmul ins(%x, %y : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    %g = ncclx.reduce_scatter %p dim 0 sum accumulate bf16 order any over @g["tp"] : tensor<4096x4096xbf16> -> tensor<512x4096xbf16>
    %own = tensor.extract_slice %p[0, 0] [512, 4096] [1, 1] : tensor<4096x4096xbf16> to tensor<512x4096xbf16>
    %m = linalg.mul ins(%g, %own : tensor<512x4096xbf16>, tensor<512x4096xbf16>) outs(%s : tensor<512x4096xbf16>) -> tensor<512x4096xbf16>
    %t = linalg.add ins(%sum, %m : tensor<512x4096xbf16>, tensor<512x4096xbf16>) outs(%s : tensor<512x4096xbf16>) -> tensor<512x4096xbf16>
    scf.yield %t, %p : tensor<512x4096xbf16>, tensor<4096x4096xbf16>
  }
  return %r#0, %r#1 : tensor<512x4096xbf16>, tensor<4096x4096xbf16>
}
