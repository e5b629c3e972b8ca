// RUN: ncclx-opt %s --ncclx-verify-legality --split-input-file --verify-diagnostics

ncclx.grid @g ["tp" = 4]
func.func @legality_l7_never(%a: tensor<4xf32>) {
  // expected-error @+1 {{this future is never awaited}}
  %f = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @legality_l7_chunks_only(%a: tensor<4xf32>, %i: index) {
  // expected-error @+1 {{this future is never awaited}}
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
    ncclx.yield %r : tensor<16xf32>
  } : !ncclx.future<tensor<16xf32>>
  %c = ncclx.await %f chunk %i of 4 dim 0 : !ncclx.future<tensor<16xf32>> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @legality_l7_twice(%a: tensor<4xf32>) {
  %f = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  // expected-note @+1 {{here}}
  %0 = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  // expected-error @+1 {{uses a future that has been awaited or handed on before}}
  %1 = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @legality_l7_chunk_after_whole(%a: tensor<4xf32>, %i: index) {
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
    ncclx.yield %r : tensor<16xf32>
  } : !ncclx.future<tensor<16xf32>>
  // expected-note @+1 {{here}}
  %v = ncclx.await %f : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
  // expected-error @+1 {{uses a future that has been awaited or handed on before}}
  %c = ncclx.await %f chunk %i of 4 dim 0 : !ncclx.future<tensor<16xf32>> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @legality_l7_one_path(%a: tensor<4xf32>, %p: i1) {
  // expected-note @+1 {{the future comes from here}}
  %f = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  // expected-error @+1 {{leaves a path on which a future is not awaited}}
  scf.if %p {
    // expected-note @+1 {{awaited or handed on here}}
    %0 = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @legality_l7_in_loop(%a: tensor<4xf32>, %n: index {ncclx.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @+1 {{the future comes from here}}
  %f = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  // expected-error @+1 {{may repeat or skip: a future from outside it is awaited or handed on in it}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-note @+1 {{awaited or handed on here}}
    %0 = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  }
  return
}

// -----

ncclx.grid @g ["tp" = 4]

// Almost: chunks in a loop, the whole after it; carried by a loop; on both paths; handed out of a branch.
func.func @legal(%a: tensor<4xf32>, %p: i1, %n: index {ncclx.uniform}) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
    ncclx.yield %r : tensor<16xf32>
  } : !ncclx.future<tensor<16xf32>>
  scf.for %i = %c0 to %c4 step %c1 {
    %c = ncclx.await %f chunk %i of 4 dim 0 : !ncclx.future<tensor<16xf32>> -> tensor<4xf32>
  }
  %g = scf.for %i = %c0 to %n step %c1 iter_args(%h = %f) -> !ncclx.future<tensor<16xf32>> {
    %v = ncclx.await %h : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
    %k = ncclx.start {
      %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
      ncclx.yield %r : tensor<16xf32>
    } : !ncclx.future<tensor<16xf32>>
    scf.yield %k : !ncclx.future<tensor<16xf32>>
  }
  %q = scf.if %p -> !ncclx.future<tensor<16xf32>> {
    %c = ncclx.await %g chunk %c1 of 4 dim 0 : !ncclx.future<tensor<16xf32>> -> tensor<4xf32>
    scf.yield %g : !ncclx.future<tensor<16xf32>>
  } else {
    scf.yield %g : !ncclx.future<tensor<16xf32>>
  }
  %w = scf.while (%x = %q) : (!ncclx.future<tensor<16xf32>>) -> !ncclx.future<tensor<16xf32>> {
    %t = arith.constant false
    scf.condition(%t) %x : !ncclx.future<tensor<16xf32>>
  } do {
  ^bb0(%x: !ncclx.future<tensor<16xf32>>):
    scf.yield %x : !ncclx.future<tensor<16xf32>>
  }
  %v = ncclx.await %w : !ncclx.future<tensor<16xf32>> -> tensor<16xf32>
  return %v : tensor<16xf32>
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @legality_l7_lost_in_loop(%a: tensor<4xf32>, %n: index {ncclx.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  // expected-error @+1 {{this future is never awaited}}
  %g = scf.for %i = %c0 to %n step %c1 iter_args(%h = %f) -> !ncclx.future<tensor<4xf32>> {
    %k = ncclx.start {
      %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
      ncclx.yield %r : tensor<4xf32>
    } : !ncclx.future<tensor<4xf32>>
    scf.yield %k : !ncclx.future<tensor<4xf32>>
  }
  %v = ncclx.await %g : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @legality_l7_select(%a: tensor<4xf32>, %p: i1) {
  %f = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  %g = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  // expected-error @+2 {{cannot use a future: it can only be awaited or carried by structured control flow}}
  // expected-error @+1 {{gives a future, but only ncclx.start, scf.if, index_switch, for and while may}}
  %h = arith.select %p, %f, %g : !ncclx.future<tensor<4xf32>>
  %v = ncclx.await %h : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{takes a future, which cannot leave the function it was started in}}
func.func @legality_l8_argument(%f: !ncclx.future<tensor<4xf32>>) {
  %v = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @legality_l8_returned(%a: tensor<4xf32>) -> !ncclx.future<tensor<4xf32>> {
  %f = ncclx.start {
    %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  // expected-error @+1 {{cannot use a future: it can only be awaited or carried by structured control flow}}
  return %f : !ncclx.future<tensor<4xf32>>
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @legality_l9_all_reduce(%a: tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %f = ncclx.start {
    // expected-note @+1 {{the collective}}
    %r = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %r : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  // expected-error @+1 {{takes a chunk of 'ncclx.all_reduce', whose result is not made of its members' slices}}
  %c = ncclx.await %f chunk %c0 of 4 dim 0 : !ncclx.future<tensor<4xf32>> -> tensor<1xf32>
  %v = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @legality_l9_count(%a: tensor<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %f = ncclx.start {
    // expected-note @+1 {{the collective}}
    %r = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x8xf32>
    ncclx.yield %r : tensor<16x8xf32>
  } : !ncclx.future<tensor<16x8xf32>>
  // expected-error @+1 {{takes one of 8 chunks, but the group has 4 members}}
  %c = ncclx.await %f chunk %c0 of 8 dim 0 : !ncclx.future<tensor<16x8xf32>> -> tensor<2x8xf32>
  %v = ncclx.await %f : !ncclx.future<tensor<16x8xf32>> -> tensor<16x8xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @legality_l9_dim(%a: tensor<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %f = ncclx.start {
    // expected-note @+1 {{the collective}}
    %r = ncclx.all_to_all %a split 1 concat 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x2xf32>
    ncclx.yield %r : tensor<16x2xf32>
  } : !ncclx.future<tensor<16x2xf32>>
  // expected-error @+1 {{takes chunks of dimension 1, but the collective puts them together in dimension 0}}
  %c = ncclx.await %f chunk %c0 of 4 dim 1 : !ncclx.future<tensor<16x2xf32>> -> tensor<16x?xf32>
  %v = ncclx.await %f : !ncclx.future<tensor<16x2xf32>> -> tensor<16x2xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @legality_l8_execute_region(%a: tensor<4xf32>) {
  // expected-error @+1 {{gives a future, but only ncclx.start, scf.if, index_switch, for and while may}}
  %f = scf.execute_region -> !ncclx.future<tensor<4xf32>> {
    %f = ncclx.start {
      %r = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
      ncclx.yield %r : tensor<4xf32>
    } : !ncclx.future<tensor<4xf32>>
    scf.yield %f : !ncclx.future<tensor<4xf32>>
  }
  %v = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return
}
