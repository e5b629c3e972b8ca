// What is not lowered is refused at the op, with the reason.
// RUN: ncclx-opt %s --split-input-file --convert-ncclx-to-ctran --verify-diagnostics

ncclx.grid @g ["tp" = 2]
func.func @tensors(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{works on tensors; run ncclx-bufferize first}}
  %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

ncclx.grid @g ["tp" = 2]
// expected-error @below {{has several blocks; a schedule is made of one}}
func.func @blocks(%a: memref<4xf32>) -> memref<4xf32> {
  %r = memref.alloc() : memref<4xf32>
  ncclx.permute %a shift 1 over @g["tp"] into(%r : memref<4xf32>) : memref<4xf32>
  cf.br ^bb1
^bb1:
  return %r : memref<4xf32>
}

// -----

ncclx.grid @g ["tp" = 2]
func.func @nested(%a: memref<4xf32>, %c: i1 {ncclx.uniform}) -> memref<4xf32> {
  %r = memref.alloc() : memref<4xf32>
  scf.if %c {
    // expected-error @below {{stands under scf.if; loops with constant bounds are unrolled and other control flow split into stages or branches before this pass}}
    ncclx.permute %a shift 1 over @g["tp"] into(%r : memref<4xf32>) : memref<4xf32>
  }
  return %r : memref<4xf32>
}

// -----

ncclx.grid @g ["tp" = 2]
func.func @assumed(%a: memref<4xf32>, %m: memref<i32>) -> memref<4xf32> {
  %r = memref.alloc() : memref<4xf32>
  ncclx.permute %a shift 1 over @g["tp"] into(%r : memref<4xf32>) : memref<4xf32>
  %n = memref.load %m[] : memref<i32>
  // expected-error @below {{is checked between stages; run ncclx-split-branches before this pass}}
  %u = ncclx.assume_uniform %n : i32
  return %r : memref<4xf32>
}

// -----

ncclx.grid @g ["tp" = 2]
ncclx.grid @h ["pp" = 3]
func.func @ranks(%a: memref<4xf32>) -> memref<4xf32> {
  %q = memref.alloc() : memref<4xf32>
  %r = memref.alloc() : memref<4xf32>
  // expected-note @below {{the other is here}}
  ncclx.permute %a shift 1 over @g["tp"] into(%q : memref<4xf32>) : memref<4xf32>
  // expected-error @below {{runs on 3 ranks, but another collective of this function on 2}}
  ncclx.permute %q shift 1 over @h["pp"] into(%r : memref<4xf32>) : memref<4xf32>
  return %r : memref<4xf32>
}

// -----

ncclx.grid @g ["tp" = 2]
func.func @scalar_result(%a: memref<4xf32>, %x: f32) -> f32 {
  %r = memref.alloc() : memref<4xf32>
  ncclx.permute %a shift 1 over @g["tp"] into(%r : memref<4xf32>) : memref<4xf32>
  // expected-error @below {{returns a 'f32'; a schedule returns memrefs of static shape}}
  return %x : f32
}

// -----

ncclx.grid @g ["tp" = 2]
// expected-error @below {{expected a memref of static shape and row-major layout}}
func.func @scalar_argument(%a: memref<4xf32>, %x: f32) -> memref<4xf32> {
  %r = memref.alloc() : memref<4xf32>
  ncclx.permute %a shift 1 over @g["tp"] into(%r : memref<4xf32>) : memref<4xf32>
  return %r : memref<4xf32>
}

// -----

ncclx.grid @g ["x" = 2, "y" = 3]
ncclx.grid @h ["u" = 3, "v" = 2]
func.func @grids_that_cross(%a: memref<4xf32>) -> memref<4xf32> {
  %q = memref.alloc() : memref<4xf32>
  %r = memref.alloc() : memref<4xf32>
  ncclx.permute %a shift 1 over @g["x"] into(%q : memref<4xf32>) : memref<4xf32>
  // expected-error @below {{asks for hierarchical, but no axes span its groups}}
  ncclx.permute %q shift 1 over @h["u"] algorithm hierarchical into(%r : memref<4xf32>) : memref<4xf32>
  return %r : memref<4xf32>
}

// -----

ncclx.grid @g ["tp" = 2]
func.func @ring_pairs(%a: memref<4xf32>) -> memref<4xf32> {
  %r = memref.alloc() : memref<4xf32>
  // expected-error @below {{asks for ring, but a ring carries a shift and not listed pairs}}
  ncclx.permute %a pairs [0 -> 1] over @g["tp"] algorithm ring into(%r : memref<4xf32>) : memref<4xf32>
  return %r : memref<4xf32>
}

// -----

ncclx.grid @g ["x" = 6]
func.func @tiers_without_axes(%a: memref<4xf32>) -> memref<12xf32> {
  %r = memref.alloc() : memref<12xf32>
  // expected-error @below {{asks for hierarchical, but no axes span its groups}}
  ncclx.all_gather %a dim 0 over @g groups [[4, 0, 1], [5, 2, 3]] algorithm hierarchical into(%r : memref<12xf32>) : memref<4xf32>
  return %r : memref<12xf32>
}

// -----

ncclx.grid @g ["tp" = 2]
func.func @ring_wide(%a: memref<4xbf16>) -> memref<4xbf16> {
  %r = memref.alloc() : memref<4xbf16>
  // expected-error @below {{asks for ring, but a ring accumulates in the element type}}
  ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] algorithm ring into(%r : memref<4xbf16>) : memref<4xbf16>
  return %r : memref<4xbf16>
}

// -----

ncclx.grid @g ["tp" = 2]
func.func @ring_order(%a: memref<4xf32>) -> memref<4xf32> {
  %r = memref.alloc() : memref<4xf32>
  // expected-error @below {{asks for ring, but it reduces in ring order, not in rank order}}
  ncclx.all_reduce %a sum accumulate f32 order rank over @g["tp"] algorithm ring into(%r : memref<4xf32>) : memref<4xf32>
  return %r : memref<4xf32>
}

// -----

ncclx.grid @g ["tp" = 2]
func.func @direct_order(%a: memref<4xf32>) -> memref<4xf32> {
  %r = memref.alloc() : memref<4xf32>
  // expected-error @below {{asks for direct, but it reduces in rank order, not in ring order}}
  ncclx.all_reduce %a sum accumulate f32 order ring over @g["tp"] algorithm direct into(%r : memref<4xf32>) : memref<4xf32>
  return %r : memref<4xf32>
}

// -----

ncclx.grid @g ["tp" = 2]
memref.global "private" @state : memref<4xf32>
func.func @mutable_global(%a: memref<4xf32>) -> memref<4xf32> {
  %r = memref.alloc() : memref<4xf32>
  // expected-error @below {{uses global 'state', which is not constant}}
  %t = memref.get_global @state : memref<4xf32>
  ncclx.permute %a shift 1 over @g["tp"] into(%r : memref<4xf32>) : memref<4xf32>
  linalg.exp ins(%r : memref<4xf32>) outs(%t : memref<4xf32>)
  return %r : memref<4xf32>
}

// -----

ncclx.grid @g ["tp" = 2]
func.func @foreign_buffer(%a: memref<4xf32>) -> memref<4xf32> {
  %r = memref.alloc() : memref<4xf32>
  %q = memref.alloca() : memref<4xf32>
  ncclx.permute %a shift 1 over @g["tp"] into(%r : memref<4xf32>) : memref<4xf32>
  // expected-error @below {{uses a buffer of type 'memref<4xf32>' that is neither an argument nor allocated in this function}}
  linalg.exp ins(%r : memref<4xf32>) outs(%q : memref<4xf32>)
  return %r : memref<4xf32>
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @sized(%a: memref<8xf32>, %n: memref<4xi64>) -> memref<8xf32> {
  %r = memref.alloc() : memref<8xf32>
  // expected-error @below {{asks for eager, but all_to_all_v has no eager form}}
  ncclx.all_to_all_v %a dim 0 sizes %n : memref<4xi64> over @g["tp"] algorithm eager into(%r : memref<8xf32>) : memref<8xf32>
  return %r : memref<8xf32>
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @sized_round(%a: memref<8xf32>, %n: memref<4xi64>) -> memref<8xf32> {
  %r = memref.alloc() : memref<8xf32>
  // expected-error @below {{asks for ring, but a ring passes on rows of others, and sizes known at run time only are known to their senders alone}}
  ncclx.all_to_all_v %a dim 0 sizes %n : memref<4xi64> over @g["tp"] algorithm ring into(%r : memref<8xf32>) : memref<8xf32>
  return %r : memref<8xf32>
}

// -----

ncclx.grid @g ["x" = 3]
func.func @waits_for_more_than_there_are(%a: memref<4xf32>) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  ncclx.signal %w shift 1 : !ncclx.window<tensor<4xf32>>
  ncclx.signal %w shift 4 : !ncclx.window<tensor<4xf32>>
  ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{waits for ever: it takes 1 of these signals, but 1 have been made before it and 1 of them taken}}
  ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<4xf32>>
  ncclx.signal %w shift 1 : !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 3]
func.func @offset_at_run_time(%a: memref<2xf32>, %i: index) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{has an offset in dimension 0 that is not a constant, which is not lowered yet}}
  ncclx.put %a into %w[%i] shift 1 : memref<2xf32> into !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 3]
func.func @offset_behind_the_end(%a: memref<2xf32>) {
  %i = arith.constant 3 : index
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{has a box of 2 at 3 in dimension 0, but the window has 4}}
  ncclx.get %w[%i] into(%a : memref<2xf32>) : !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 3]
func.func @put_under_branch(%a: memref<4xf32>, %c: i1) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  scf.if %c {
    // expected-error @+1 {{stands under scf.if; loops with constant bounds are unrolled and other control flow split into stages or branches before this pass}}
    ncclx.put %a into %w[0] shift 1 : memref<4xf32> into !ncclx.window<tensor<4xf32>>
  }
  return
}

// -----

ncclx.grid @g ["x" = 3]
func.func @put_of_tensor(%a: tensor<4xf32>) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{works on tensors; run ncclx-bufferize first}}
  ncclx.put %a into %w[0] shift 1 : tensor<4xf32> into !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["tp" = 3]
func.func @nowhere(%a: memref<3xf32>) -> memref<3xf32> {
  %r = memref.alloc() : memref<3xf32>
  // expected-error @below {{asks for routed, which is for a topology: there is neither the pass's topology=FILE}}
  ncclx.all_to_all %a split 0 concat 0 over @g["tp"] algorithm routed into(%r : memref<3xf32>) : memref<3xf32>
  return %r : memref<3xf32>
}
