// RUN: ncclx-opt %s --ncclx-bufferize --split-input-file | FileCheck %s
// The output is memrefs alone, and canonical.
// RUN: ncclx-opt %s --ncclx-bufferize --split-input-file --canonicalize --cse | FileCheck %s --implicit-check-not=tensor
// What is in flight stays untouched under passes that move and merge.
// RUN: ncclx-opt %s --ncclx-bufferize --split-input-file --loop-invariant-code-motion --buffer-loop-hoisting \
// RUN:   --buffer-hoisting --cse --control-flow-sink --canonicalize --ncclx-verify-in-flight --verify-roundtrip -o /dev/null

ncclx.grid @g ["tp" = 4]

// A collective without a destination gets a buffer of its own.
// CHECK-LABEL: @fresh(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>) -> memref<16xf32>
func.func @fresh(%a: tensor<4xf32>) -> tensor<16xf32> {
  // CHECK-NEXT: %[[D:.+]] = memref.alloc() {{.*}} : memref<16xf32>
  // CHECK-NEXT: ncclx.all_gather %[[A]] dim 0 over @g["tp"] into(%[[D]] : memref<16xf32>) : memref<4xf32>
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
  // CHECK-NEXT: return %[[D]]
  return %0 : tensor<16xf32>
}

// A slice of a writable argument is written in place.
// CHECK-LABEL: @into_slice(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>, %[[W:.+]]: memref<2x16xf32>)
func.func @into_slice(%a: tensor<4xf32>, %w: tensor<2x16xf32> {bufferization.writable = true}) -> tensor<2x16xf32> {
  // CHECK-NEXT: %[[V:.+]] = memref.subview %[[W]][1, 0] [1, 16] [1, 1]
  %d = tensor.extract_slice %w[1, 0] [1, 16] [1, 1] : tensor<2x16xf32> to tensor<16xf32>
  // CHECK-NEXT: ncclx.all_gather %[[A]] {{.*}} into(%[[V]] :
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : tensor<16xf32>) : tensor<4xf32> -> tensor<16xf32>
  %1 = tensor.insert_slice %0 into %w[1, 0] [1, 16] [1, 1] : tensor<16xf32> into tensor<2x16xf32>
  // CHECK-NEXT: return %[[W]]
  return %1 : tensor<2x16xf32>
}

// Almost: an argument that is not marked is not written; nor is its content, which is not needed, copied.
// CHECK-LABEL: @argument_is_read_only(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>, %[[W:.+]]: memref<16xf32>)
func.func @argument_is_read_only(%a: tensor<4xf32>, %w: tensor<16xf32>) -> tensor<16xf32> {
  // CHECK-NEXT: %[[D:.+]] = memref.alloc()
  // CHECK-NEXT: ncclx.all_gather %[[A]] {{.*}} into(%[[D]] :
  // CHECK-NEXT: return %[[D]]
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] into(%w : tensor<16xf32>) : tensor<4xf32> -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// Almost: a destination whose old content is needed later.
// CHECK-LABEL: @destination_needed_later(
func.func @destination_needed_later(%a: tensor<4xf32>, %w: tensor<16xf32> {bufferization.writable = true}) -> (tensor<16xf32>, tensor<16xf32>) {
  // CHECK: %[[D:.+]] = memref.alloc()
  // CHECK-NEXT: ncclx.all_gather {{.*}} into(%[[D]] :
  // CHECK-NEXT: return %[[D]], %{{.+}} : memref<16xf32>, memref<16xf32>
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] into(%w : tensor<16xf32>) : tensor<4xf32> -> tensor<16xf32>
  return %0, %w : tensor<16xf32>, tensor<16xf32>
}

// all_reduce works in place.
// CHECK-LABEL: @all_reduce_in_place(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>)
func.func @all_reduce_in_place(%a: tensor<4xf32> {bufferization.writable = true}) -> tensor<4xf32> {
  // CHECK-NEXT: ncclx.all_reduce %[[A]] {{.*}} into(%[[A]] :
  // CHECK-NEXT: return %[[A]]
  %0 = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] into(%a : tensor<4xf32>) : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Almost: no other collective does.
// CHECK-LABEL: @permute_not_in_place(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>)
func.func @permute_not_in_place(%a: tensor<4xf32> {bufferization.writable = true}) -> tensor<4xf32> {
  // CHECK-NEXT: %[[D:.+]] = memref.alloc()
  // CHECK-NEXT: ncclx.permute %[[A]] {{.*}} into(%[[D]] :
  %0 = ncclx.permute %a shift 1 over @g["tp"] into(%a : tensor<4xf32>) : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Sizes of zero.
// CHECK-LABEL: @empty(
func.func @empty(%a: tensor<0x8xf32>) -> tensor<0x8xf32> {
  // CHECK: ncclx.all_gather {{.*}} : memref<0x8xf32>
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<0x8xf32> -> tensor<0x8xf32>
  return %0 : tensor<0x8xf32>
}

// -----

ncclx.grid @g ["tp" = 4]

// The input is overwritten while it is in flight: in a fresh buffer, though the argument is writable.
// CHECK-LABEL: @overwrite_input(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>)
func.func @overwrite_input(%a: tensor<4xf32> {bufferization.writable = true}) -> (tensor<16xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[T:.+]] = ncclx.all_gather %[[A]] {{.*}} into(%[[D:.+]] : memref<16xf32>) async
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
    ncclx.yield %r : tensor<16xf32>
  } : !ncclx.future<tensor<16xf32>>
  // CHECK-NEXT: %[[B:.+]] = memref.alloc()
  // CHECK-NEXT: linalg.fill {{.*}} outs(%[[B]] :
  %b = linalg.fill ins(%zero : f32) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: ncclx.finish %[[T]], %[[D]] keeping(%[[A]] : memref<4xf32>)
  %v = ncclx.await %f : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
  return %v, %b : tensor<16xf32>, tensor<4xf32>
}

// An all_reduce in flight whose destination is its input: both are in use, so there are two buffers.
// CHECK-LABEL: @all_reduce_in_flight(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>)
func.func @all_reduce_in_flight(%a: tensor<4xf32> {bufferization.writable = true}) -> tensor<4xf32> {
  // CHECK: %[[D:.+]] = memref.alloc()
  // CHECK-NEXT: %[[T:.+]] = ncclx.all_reduce %[[A]] {{.*}} into(%[[D]] : memref<4xf32>) async
  // CHECK-NEXT: ncclx.finish %[[T]], %[[D]] keeping(%[[A]] : memref<4xf32>)
  %f = ncclx.start {
    %r = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] into(%a : tensor<4xf32>) : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  %v = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return %v : tensor<4xf32>
}

// The input is a slice of the destination: copied, as the collective would overwrite what it reads.
// CHECK-LABEL: @input_in_destination(
// CHECK-SAME: %[[W:.+]]: memref<16xf32>)
func.func @input_in_destination(%w: tensor<16xf32> {bufferization.writable = true}) -> tensor<16xf32> {
  // CHECK: %[[V:.+]] = memref.subview %[[W]][4] [4] [1]
  // CHECK: %[[C:.+]] = memref.alloc() {{.*}} : memref<4xf32>
  // CHECK-NEXT: memref.copy %[[V]], %[[C]]
  // CHECK-NEXT: ncclx.all_gather %[[C]] {{.*}} into(%[[W]] : memref<16xf32>)
  // CHECK-NEXT: return %[[W]]
  %a = tensor.extract_slice %w[4] [4] [1] : tensor<16xf32> to tensor<4xf32>
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] into(%w : tensor<16xf32>) : tensor<4xf32> -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// Almost: after the await it is written in place.
// CHECK-LABEL: @overwrite_input_later(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>)
func.func @overwrite_input_later(%a: tensor<4xf32> {bufferization.writable = true}) -> (tensor<16xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
    ncclx.yield %r : tensor<16xf32>
  } : !ncclx.future<tensor<16xf32>>
  // CHECK: ncclx.finish
  %v = ncclx.await %f : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
  // CHECK-NEXT: linalg.fill {{.*}} outs(%[[A]] :
  %b = linalg.fill ins(%zero : f32) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  return %v, %b : tensor<16xf32>, tensor<4xf32>
}

// The destination is written, or its old content read, while it is in flight.
// CHECK-LABEL: @overwrite_destination(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>, %[[W:.+]]: memref<16xf32>, %[[I:.+]]: index)
func.func @overwrite_destination(%a: tensor<4xf32>, %w: tensor<16xf32> {bufferization.writable = true}, %i: index) -> (tensor<16xf32>, tensor<16xf32>, f32) {
  %zero = arith.constant 0.0 : f32
  // CHECK: ncclx.all_gather %[[A]] {{.*}} into(%[[D:.+]] : memref<16xf32>) async
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] into(%w : tensor<16xf32>) : tensor<4xf32> -> tensor<16xf32>
    ncclx.yield %r : tensor<16xf32>
  } : !ncclx.future<tensor<16xf32>>
  // CHECK-NOT: (%[[D]]
  // CHECK-NOT: %[[D]][
  // CHECK: memref.load %[[W]][%[[I]]]
  // CHECK: linalg.fill
  // CHECK: ncclx.finish
  %x = tensor.extract %w[%i] : tensor<16xf32>
  %b = linalg.fill ins(%zero : f32) outs(%w : tensor<16xf32>) -> tensor<16xf32>
  %v = ncclx.await %f : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
  return %v, %b, %x : tensor<16xf32>, tensor<16xf32>, f32
}

// What the user keeps is not overwritten either.
// CHECK-LABEL: @keeping(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>, %[[B:.+]]: memref<4xf32>)
func.func @keeping(%a: tensor<4xf32>, %b: tensor<4xf32> {bufferization.writable = true}) -> (tensor<16xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
    ncclx.yield %r : tensor<16xf32>
  } : !ncclx.future<tensor<16xf32>>
  // CHECK-NOT: outs(%[[B]]
  %c = linalg.fill ins(%zero : f32) outs(%b : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: ncclx.finish {{.*}} keeping(%[[B]], %[[A]] : memref<4xf32>, memref<4xf32>)
  %v = ncclx.await %f keeping(%b : tensor<4xf32>) : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
  return %v, %c : tensor<16xf32>, tensor<4xf32>
}

// Chunks are views, read in a loop; only a chunk that is written gets a buffer of its own.
// CHECK-LABEL: @chunks(
func.func @chunks(%a: tensor<4x8xf32>, %sum: tensor<4x8xf32>) -> (tensor<16x8xf32>, tensor<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // CHECK: %[[T:.+]] = ncclx.all_gather {{.*}} into(%[[D:.+]] : memref<16x8xf32>) async
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x8xf32>
    ncclx.yield %r : tensor<16x8xf32>
  } : !ncclx.future<tensor<16x8xf32>>
  // CHECK: scf.for %[[I:.+]] =
  %s = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %sum) -> tensor<4x8xf32> {
    // CHECK-NEXT: %[[C:.+]] = ncclx.finish_chunk %[[T]], %[[D]][%[[I]]] of 4 dim 0 : memref<16x8xf32> -> memref<4x8xf32, strided<[8, 1], offset: ?>>
    // CHECK-NEXT: linalg.add ins(%[[S:.+]], %[[C]] : {{.*}} outs(%[[S]] :
    // CHECK-NEXT: }
    %c = ncclx.await %f chunk %i of 4 dim 0 : !ncclx.future<tensor<16x8xf32>> -> tensor<4x8xf32>
    %y = linalg.add ins(%x, %c : tensor<4x8xf32>, tensor<4x8xf32>) outs(%x : tensor<4x8xf32>) -> tensor<4x8xf32>
    scf.yield %y : tensor<4x8xf32>
  }
  // CHECK: ncclx.finish %[[T]], %[[D]]
  %v = ncclx.await %f : !ncclx.future<tensor<16x8xf32>> -> tensor<16x8xf32>
  return %v, %s : tensor<16x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: @written_chunk(
func.func @written_chunk(%a: tensor<4x8xf32>, %i: index) -> (tensor<16x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x8xf32>
    ncclx.yield %r : tensor<16x8xf32>
  } : !ncclx.future<tensor<16x8xf32>>
  %c = ncclx.await %f chunk %i of 4 dim 0 : !ncclx.future<tensor<16x8xf32>> -> tensor<4x8xf32>
  // CHECK: %[[B:.+]] = memref.alloc() {{.*}} : memref<4x8xf32>
  // CHECK-NEXT: linalg.fill {{.*}} outs(%[[B]] : memref<4x8xf32>)
  %z = linalg.fill ins(%zero : f32) outs(%c : tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = ncclx.await %f : !ncclx.future<tensor<16x8xf32>> -> tensor<16x8xf32>
  return %v, %z : tensor<16x8xf32>, tensor<4x8xf32>
}

// A chunk of an uneven gather: its size is known at run time.
// CHECK-LABEL: @uneven_chunk(
func.func @uneven_chunk(%a: tensor<3x8xf32>, %i: index) -> tensor<10x8xf32> {
  %c0 = arith.constant 0 : index
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<3x8xf32> -> tensor<10x8xf32>
    ncclx.yield %r : tensor<10x8xf32>
  } : !ncclx.future<tensor<10x8xf32>>
  // CHECK: ncclx.finish_chunk {{.*}} : memref<10x8xf32> -> memref<?x8xf32, strided<[8, 1], offset: ?>>
  %c = ncclx.await %f chunk %i of 4 dim 0 : !ncclx.future<tensor<10x8xf32>> -> tensor<?x8xf32>
  %n = tensor.dim %c, %c0 : tensor<?x8xf32>
  %v = ncclx.await %f : !ncclx.future<tensor<10x8xf32>> -> tensor<10x8xf32>
  return %v : tensor<10x8xf32>
}

// -----

ncclx.grid @g ["tp" = 4]

// A loop carries what is in flight: the buffers stay, the loop carries the token alone.
// CHECK-LABEL: @loop(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>
func.func @loop(%a: tensor<4xf32>, %n: index {ncclx.uniform}) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: %[[T:.+]] = ncclx.permute %[[A]] {{.*}} into(%[[D:.+]] : memref<4xf32>) async
  %f = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  // CHECK: scf.for {{.*}} iter_args(%[[T1:.+]] = %[[T]]) -> (!ncclx.token)
  %g = scf.for %i = %c0 to %n step %c1 iter_args(%h = %f) -> !ncclx.future<tensor<4xf32>> {
    // CHECK-NEXT: ncclx.finish %[[T1]], %[[D]] keeping(%[[A]] : memref<4xf32>)
    %v = ncclx.await %h : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
    // CHECK-NEXT: %[[T2:.+]] = ncclx.permute %[[A]] {{.*}} into(%[[D]] :
    %k = ncclx.start {
      %r = ncclx.permute %a shift 2 over @g["tp"] into(%v : tensor<4xf32>) : tensor<4xf32> -> tensor<4xf32>
      ncclx.yield %r : tensor<4xf32>
    } : !ncclx.future<tensor<4xf32>>
    // CHECK-NEXT: scf.yield %[[T2]] : !ncclx.token
    scf.yield %k : !ncclx.future<tensor<4xf32>>
  }
  // CHECK: ncclx.finish
  %v = ncclx.await %g : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return %v : tensor<4xf32>
}

// Started in a branch, awaited after it.
// CHECK-LABEL: @branch(
func.func @branch(%a: tensor<4xf32>, %p: i1 {ncclx.uniform}) -> tensor<4xf32> {
  %d = tensor.empty() : tensor<4xf32>
  // CHECK: %[[D:.+]] = memref.alloc()
  // CHECK: %[[T:.+]] = scf.if %{{.+}} -> (!ncclx.token)
  %f = scf.if %p -> !ncclx.future<tensor<4xf32>> {
    // CHECK-NEXT: ncclx.permute %{{.+}} shift 1 {{.*}} into(%[[D]] :
    %f = ncclx.start {
      %r = ncclx.permute %a shift 1 over @g["tp"] into(%d : tensor<4xf32>) : tensor<4xf32> -> tensor<4xf32>
      ncclx.yield %r : tensor<4xf32>
    } : !ncclx.future<tensor<4xf32>>
    scf.yield %f : !ncclx.future<tensor<4xf32>>
  } else {
    // CHECK: ncclx.permute %{{.+}} shift 2 {{.*}} into(%[[D]] :
    %f = ncclx.start {
      %r = ncclx.permute %a shift 2 over @g["tp"] into(%d : tensor<4xf32>) : tensor<4xf32> -> tensor<4xf32>
      ncclx.yield %r : tensor<4xf32>
    } : !ncclx.future<tensor<4xf32>>
    scf.yield %f : !ncclx.future<tensor<4xf32>>
  }
  // CHECK: ncclx.finish %[[T]], %[[D]] keeping
  %v = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return %v : tensor<4xf32>
}

// -----

ncclx.grid @g ["tp" = 4]

// A kernel takes its result as an argument. One that is called by func.call too keeps its callers in step.
// CHECK-LABEL: func.func private @kernel(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>, %[[S:.+]]: f32, %[[R:.+]]: memref<4xf32>) {
func.func private @kernel(%a: tensor<4xf32> {bufferization.writable = true}, %s: f32) -> tensor<4xf32> {
  // Its operands are only read: the fill is not in place, whatever the mark says.
  // CHECK-NOT: outs(%[[A]]
  // CHECK: linalg.fill ins(%[[S]] : f32) outs(%[[R]] : memref<4xf32>)
  // CHECK-NEXT: return{{$}}
  %r = linalg.fill ins(%s : f32) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// Results that are an argument, and twice the same buffer.
// CHECK-LABEL: func.func private @odd_kernel(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>, %[[R0:.+]]: memref<4xf32>, %[[R1:.+]]: memref<4xf32>, %[[R2:.+]]: memref<4xf32>) {
func.func private @odd_kernel(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.fill ins(%one : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: memref.copy %[[A]], %[[R0]]
  // CHECK: memref.copy %[[F:.+]], %[[R1]]
  // CHECK: memref.copy %[[F]], %[[R2]]
  return %a, %r, %r : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @calls(
// CHECK-SAME: %[[A:.+]]: memref<4xf32>, %[[S:.+]]: f32) -> memref<4xf32> {
func.func @calls(%a: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  // CHECK: %[[R:.+]] = memref.alloc()
  // CHECK-NEXT: ncclx.call @kernel(%[[A]], %[[S]]) outs(%[[R]] : memref<4xf32>) {bytes = 32 : i64, flops = 4 : i64, sms = 2 : i64} : (memref<4xf32>, f32) -> ()
  %0 = ncclx.call @kernel(%a, %s) {flops = 4, bytes = 32, sms = 2} : (tensor<4xf32>, f32) -> tensor<4xf32>
  // CHECK: ncclx.call @odd_kernel(%[[R]]) outs(%{{.+}}, %{{.+}}, %{{.+}} : memref<4xf32>, memref<4xf32>, memref<4xf32>)
  %1:3 = ncclx.call @odd_kernel(%0) {flops = 4, bytes = 32, sms = 2} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: call @kernel(%{{.+}}, %[[S]], %{{.+}}) : (memref<4xf32>, f32, memref<4xf32>) -> ()
  %2 = func.call @kernel(%1#2, %s) : (tensor<4xf32>, f32) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// The kernel wants a plain buffer: a slice is copied.
// CHECK-LABEL: func.func @calls_with_slice(
func.func @calls_with_slice(%a: tensor<2x8xf32>, %s: f32) -> tensor<4xf32> {
  // CHECK: %[[V:.+]] = memref.subview
  // CHECK: %[[C:.+]] = memref.alloc()
  // CHECK: memref.copy %[[V]], %[[C]]
  // CHECK: ncclx.call @kernel(%[[C]],
  %x = tensor.extract_slice %a[1, 2] [1, 4] [1, 1] : tensor<2x8xf32> to tensor<4xf32>
  %0 = ncclx.call @kernel(%x, %s) {flops = 4, bytes = 32, sms = 2} : (tensor<4xf32>, f32) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
