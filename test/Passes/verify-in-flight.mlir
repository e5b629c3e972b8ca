// RUN: ncclx-opt %s --ncclx-verify-in-flight --split-input-file --verify-diagnostics

ncclx.grid @g ["tp" = 4]
func.func @in_flight_f1_never(%a: memref<4xf32>, %d: memref<16xf32>) {
  // expected-error @+1 {{this token is never finished}}
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16xf32>) async : memref<4xf32>
  return
}

// -----

// expected-error @+1 {{takes a token, which cannot enter or leave a function}}
func.func @in_flight_f1_argument(%t: !ncclx.token, %d: tensor<4xf32>) -> tensor<4xf32> {
  %v = ncclx.finish %t, %d : tensor<4xf32> -> tensor<4xf32>
  return %v : tensor<4xf32>
}

// -----

ncclx.grid @g ["tp" = 4]

// The wrong number of chunks; legality L9 says the rest.
func.func @in_flight_f1_chunks(%a: memref<4xf32>, %d: memref<16xf32>, %i: index) {
  // expected-note @+1 {{the collective}}
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16xf32>) async : memref<4xf32>
  // expected-error @+1 {{takes one of 2 chunks, but the group has 4 members}}
  %c = ncclx.finish_chunk %t, %d[%i] of 2 dim 0 : memref<16xf32> -> memref<8xf32, strided<[1], offset: ?>>
  ncclx.finish %t, %d keeping(%a : memref<4xf32>) : memref<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @in_flight_f1_other_buffer(%a: memref<4xf32>, %d: memref<16xf32>, %e: memref<16xf32>) {
  // expected-note @+1 {{the collective}}
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16xf32>) async : memref<4xf32>
  // expected-error @+1 {{names another value than its collective fills}}
  ncclx.finish %t, %e keeping(%a : memref<4xf32>) : memref<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @in_flight_f2_keeps_nothing(%a: memref<4xf32>, %d: memref<16xf32>) {
  // expected-note @+1 {{the collective}}
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16xf32>) async : memref<4xf32>
  // expected-error @+1 {{does not keep what its collective reads}}
  ncclx.finish %t, %d : memref<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @in_flight_f2_keeps_another(%a: tensor<4xf32>, %b: tensor<4xf32>, %d: tensor<16xf32>) -> tensor<16xf32> {
  // expected-note @+1 {{the collective}}
  %r, %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : tensor<16xf32>) async : tensor<4xf32> -> tensor<16xf32>
  // expected-error @+1 {{does not keep what its collective reads}}
  %v = ncclx.finish %t, %r keeping(%b : tensor<4xf32>) : tensor<16xf32> -> tensor<16xf32>
  return %v : tensor<16xf32>
}

// -----

ncclx.grid @g ["tp" = 4]

// This is what would bufferize silently into a load that races.
func.func @in_flight_f3_early_read(%a: tensor<4xf32>, %d: tensor<16xf32>, %i: index) -> (tensor<16xf32>, f32) {
  // expected-note @+1 {{it has only been started here}}
  %r, %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : tensor<16xf32>) async : tensor<4xf32> -> tensor<16xf32>
  // expected-error @+1 {{uses a tensor that is in flight}}
  %x = tensor.extract %r[%i] : tensor<16xf32>
  %v = ncclx.finish %t, %r keeping(%a : tensor<4xf32>) : tensor<16xf32> -> tensor<16xf32>
  return %v, %x : tensor<16xf32>, f32
}

// -----

ncclx.grid @g ["tp" = 4]

// Not even by being kept.
func.func @in_flight_f3_kept(%a: tensor<4xf32>, %d: tensor<4xf32>, %e: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-note @+1 {{it has only been started here}}
  %r, %t = ncclx.permute %a shift 1 over @g["tp"] into(%d : tensor<4xf32>) async : tensor<4xf32> -> tensor<4xf32>
  %s, %u = ncclx.permute %a shift 1 over @g["tp"] into(%e : tensor<4xf32>) async : tensor<4xf32> -> tensor<4xf32>
  // expected-error @+1 {{uses a tensor that is in flight}}
  %w = ncclx.finish %u, %s keeping(%a, %r : tensor<4xf32>, tensor<4xf32>) : tensor<4xf32> -> tensor<4xf32>
  %v = ncclx.finish %t, %r keeping(%a : tensor<4xf32>) : tensor<4xf32> -> tensor<4xf32>
  return %v, %w : tensor<4xf32>, tensor<4xf32>
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @in_flight_f4_read_destination(%a: memref<4xf32>, %d: memref<16xf32>, %i: index) -> f32 {
  // expected-note @+1 {{started here}}
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16xf32>) async : memref<4xf32>
  // expected-error @+1 {{may read the destination of a collective that is in flight}}
  %x = memref.load %d[%i] : memref<16xf32>
  ncclx.finish %t, %d keeping(%a : memref<4xf32>) : memref<16xf32>
  return %x : f32
}

// -----

ncclx.grid @g ["tp" = 4]

// Through a view, and inside a loop.
func.func @in_flight_f4_write_destination(%a: memref<4xf32>, %d: memref<16xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = memref.subview %d[4] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: 4>>
  // expected-note @+1 {{started here}}
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16xf32>) async : memref<4xf32>
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @+1 {{may write the destination of a collective that is in flight}}
    memref.store %x, %v[%i] : memref<4xf32, strided<[1], offset: 4>>
  }
  ncclx.finish %t, %d keeping(%a : memref<4xf32>) : memref<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @in_flight_f4_write_input(%a: memref<4xf32>, %d: memref<16xf32>, %x: f32) {
  // expected-note @+1 {{started here}}
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16xf32>) async : memref<4xf32>
  // expected-error @+1 {{may write the input of a collective that is in flight}}
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  ncclx.finish %t, %d keeping(%a : memref<4xf32>) : memref<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @in_flight_f4_freed(%d: memref<16xf32>) {
  %a = memref.alloc() : memref<4xf32>
  // expected-note @+1 {{started here}}
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16xf32>) async : memref<4xf32>
  // expected-error @+1 {{may write the input of a collective that is in flight}}
  memref.dealloc %a : memref<4xf32>
  ncclx.finish %t, %d keeping(%a : memref<4xf32>) : memref<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// A call may do anything to what it is given.
func.func private @unknown(memref<4xf32>)
func.func @in_flight_f4_call(%a: memref<4xf32>, %d: memref<16xf32>, %x: f32) {
  // expected-note @+1 {{started here}}
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16xf32>) async : memref<4xf32>
  // expected-error @+1 {{may write the input of a collective that is in flight}}
  func.call @unknown(%a) : (memref<4xf32>) -> ()
  ncclx.finish %t, %d keeping(%a : memref<4xf32>) : memref<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// In the part of a branch before the finish, and the branch that does not come to it first.
func.func @in_flight_f4_branch(%a: memref<4xf32>, %d: memref<16xf32>, %x: f32, %p: i1) {
  // expected-note @+1 {{started here}}
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16xf32>) async : memref<4xf32>
  scf.if %p {
    ncclx.finish %t, %d keeping(%a : memref<4xf32>) : memref<16xf32>
    linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  } else {
    // expected-error @+1 {{may write the input of a collective that is in flight}}
    linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
    ncclx.finish %t, %d keeping(%a : memref<4xf32>) : memref<16xf32>
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// Started in one round, finished in the next: the end of the round and the head of the next are in between.
func.func @in_flight_f4_carried(%a: memref<4xf32>, %d: memref<4xf32>, %x: f32, %n: index {ncclx.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = ncclx.permute %a shift 1 over @g["tp"] into(%d : memref<4xf32>) async : memref<4xf32>
  %u = scf.for %i = %c0 to %n step %c1 iter_args(%s = %t) -> (!ncclx.token) {
    ncclx.finish %s, %d keeping(%a : memref<4xf32>) : memref<4xf32>
    linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
    // expected-note @+1 {{started here}}
    %k = ncclx.permute %a shift 2 over @g["tp"] into(%d : memref<4xf32>) async : memref<4xf32>
    // expected-error @+1 {{may write the input of a collective that is in flight}}
    memref.store %x, %a[%c0] : memref<4xf32>
    scf.yield %k : !ncclx.token
  }
  ncclx.finish %u, %d keeping(%a : memref<4xf32>) : memref<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @in_flight_f4_after_loop(%a: memref<4xf32>, %d: memref<4xf32>, %x: f32, %n: index {ncclx.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @+1 {{started here}}
  %t = ncclx.permute %a shift 1 over @g["tp"] into(%d : memref<4xf32>) async : memref<4xf32>
  %u = scf.for %i = %c0 to %n step %c1 iter_args(%s = %t) -> (!ncclx.token) {
    ncclx.finish %s, %d keeping(%a : memref<4xf32>) : memref<4xf32>
    // expected-note @+1 {{started here}}
    %k = ncclx.permute %a shift 2 over @g["tp"] into(%d : memref<4xf32>) async : memref<4xf32>
    scf.yield %k : !ncclx.token
  }
  // expected-error @+2 {{may write the input of a collective that is in flight}}
  // Twice: for the start before the loop, which may not run, and for the one in it.
  memref.store %x, %a[%c0] : memref<4xf32>
  ncclx.finish %u, %d keeping(%a : memref<4xf32>) : memref<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// A second collective into the same destination.
func.func @in_flight_f4_same_destination(%a: memref<4xf32>, %b: memref<4xf32>, %d: memref<4xf32>) {
  // expected-note @+1 {{started here}}
  %t = ncclx.permute %a shift 1 over @g["tp"] into(%d : memref<4xf32>) async : memref<4xf32>
  // expected-error @+1 {{may write the destination of a collective that is in flight}}
  %u = ncclx.permute %b shift 1 over @g["tp"] into(%d : memref<4xf32>) async : memref<4xf32>
  ncclx.finish %t, %d keeping(%a : memref<4xf32>) : memref<4xf32>
  ncclx.finish %u, %d keeping(%b : memref<4xf32>) : memref<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// A chunk is not to be written, nor read before its own finish_chunk.
func.func @in_flight_f4_write_chunk(%a: memref<4xf32>, %d: memref<16xf32>, %x: f32, %i: index) {
  // expected-note @+1 {{started here}}
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%d : memref<16xf32>) async : memref<4xf32>
  %c = ncclx.finish_chunk %t, %d[%i] of 4 dim 0 : memref<16xf32> -> memref<4xf32, strided<[1], offset: ?>>
  // expected-error @+1 {{may write the destination of a collective that is in flight}}
  memref.store %x, %c[%i] : memref<4xf32, strided<[1], offset: ?>>
  ncclx.finish %t, %d keeping(%a : memref<4xf32>) : memref<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// Almost: reads of the input and of finished chunks; two collectives that read one input; disjoint slices of one
// buffer; other buffers; everything again after the finish; all_reduce in place.
func.func @legal(%a: memref<4xf32>, %d: memref<16xf32>, %w: memref<32xf32>, %x: f32, %i: index) {
  %w0 = memref.subview %w[0] [16] [1] : memref<32xf32> to memref<16xf32, strided<[1]>>
  %w1 = memref.subview %w[16] [16] [1] : memref<32xf32> to memref<16xf32, strided<[1], offset: 16>>
  %b = memref.alloc() : memref<4xf32>
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%w0 : memref<16xf32, strided<[1]>>) async : memref<4xf32>
  %u = ncclx.all_gather %a dim 0 over @g["tp"] into(%w1 : memref<16xf32, strided<[1], offset: 16>>) async : memref<4xf32>
  %0 = memref.load %a[%i] : memref<4xf32>
  memref.store %x, %b[%i] : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%d : memref<16xf32>)
  %c = ncclx.finish_chunk %t, %w0[%i] of 4 dim 0 : memref<16xf32, strided<[1]>> -> memref<4xf32, strided<[1], offset: ?>>
  %1 = memref.load %c[%i] : memref<4xf32, strided<[1], offset: ?>>
  ncclx.finish %t, %w0 keeping(%a : memref<4xf32>) : memref<16xf32, strided<[1]>>
  linalg.fill ins(%x : f32) outs(%w0 : memref<16xf32, strided<[1]>>)
  ncclx.finish %u, %w1 keeping(%a : memref<4xf32>) : memref<16xf32, strided<[1], offset: 16>>
  linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
  memref.dealloc %b : memref<4xf32>
  %v = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] into(%a : memref<4xf32>) async : memref<4xf32>
  ncclx.finish %v, %a keeping(%a : memref<4xf32>) : memref<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// Almost: slices that overlap in one row.
func.func @in_flight_f4_overlapping_slices(%a: memref<4xf32>, %w: memref<32xf32>, %x: f32) {
  %w0 = memref.subview %w[0] [16] [1] : memref<32xf32> to memref<16xf32, strided<[1]>>
  %w1 = memref.subview %w[15] [16] [1] : memref<32xf32> to memref<16xf32, strided<[1], offset: 15>>
  // expected-note @+1 {{started here}}
  %t = ncclx.all_gather %a dim 0 over @g["tp"] into(%w0 : memref<16xf32, strided<[1]>>) async : memref<4xf32>
  // expected-error @+1 {{may write the destination of a collective that is in flight}}
  linalg.fill ins(%x : f32) outs(%w1 : memref<16xf32, strided<[1], offset: 15>>)
  ncclx.finish %t, %w0 keeping(%a : memref<4xf32>) : memref<16xf32, strided<[1]>>
  return
}
