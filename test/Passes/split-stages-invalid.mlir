// RUN: ncclx-opt %s --ncclx-split-branches --split-input-file --verify-diagnostics

ncclx.grid @g ["x" = 4]
// expected-error @below {{takes 'index' as argument #1; a function that is split into stages takes tensors}}
func.func @scalar(%a: tensor<4xf32>, %n: index {ncclx.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    ncclx.barrier over @g["x"]
  }
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @signals(%a: tensor<4xf32>, %n: tensor<index> {ncclx.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %turns = tensor.extract %n[] : tensor<index>
  // expected-error @below {{has signals by shift 1 that have not been waited for: 0 on one way to a stage, 1 on another; expected as many on every way: wait for them in the branch or the turn that makes them}}
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  scf.for %i = %c0 to %turns step %c1 {
    ncclx.put %a into %w[0] shift 1 : tensor<4xf32> into !ncclx.window<tensor<4xf32>>
    // expected-note @below {{made here}}
    ncclx.signal %w shift 1 : !ncclx.window<tensor<4xf32>>
  }
  ncclx.wait %w shift 1 count 1 : !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @unsigned(%a: tensor<4xui8>, %n: tensor<index> {ncclx.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %turns = tensor.extract %n[] : tensor<index>
  // expected-error @below {{is used in several stages, and has elements of type 'ui8', of which there are no constants: give it an init}}
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xui8>>
  scf.for %i = %c0 to %turns step %c1 {
    ncclx.put %a into %w[0] shift 1 : tensor<4xui8> into !ncclx.window<tensor<4xui8>>
  }
  return
}

// -----

// Sizes that are open are given first.
ncclx.grid @g ["x" = 4]
func.func @open(%a: tensor<?xf32> {ncclx.dims = ["n"]}, %n: tensor<index> {ncclx.uniform}) -> tensor<?xf32>
    attributes {ncclx.sizes = {n = [0, 8]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %turns = tensor.extract %n[] : tensor<index>
  // expected-error @below {{this 'tensor<?xf32>' is handed from one stage of 'open' to another; expected a scalar or a tensor of static shape, of elements that collectives work on (sizes that are open are given before, by ncclx-specialize-sizes)}}
  %r = scf.for %i = %c0 to %turns step %c1 iter_args(%x = %a) -> tensor<?xf32> {
    %p = ncclx.permute %x shift 1 over @g["x"] : tensor<?xf32> -> tensor<?xf32>
    scf.yield %p : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

ncclx.grid @g ["x" = 4]
func.func @shape(%a: tensor<4xf32>, %n: tensor<1xi32> {ncclx.uniform}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %i = tensor.extract %n[%c0] : tensor<1xi32>
  %k = arith.index_cast %i : i32 to index
  // expected-error @below {{this 'tensor<?xf32>' is handed from one stage of 'shape' to another}}
  %s = tensor.extract_slice %a[0] [%k] [1] : tensor<4xf32> to tensor<?xf32>
  %p = arith.trunci %i : i32 to i1
  %u = ncclx.assume_uniform %p : i1
  return %s : tensor<?xf32>
}

// -----

ncclx.grid @g ["x" = 4]
func.func @chunk(%a: tensor<3xf32>, %n: tensor<1xi32> {ncclx.uniform}) -> tensor<10xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = tensor.extract %n[%c0] : tensor<1xi32>
  %k = arith.index_cast %i : i32 to index
  %f = ncclx.start {
    %r = ncclx.all_gather %a dim 0 over @g["x"] : tensor<3xf32> -> tensor<10xf32>
    ncclx.yield %r : tensor<10xf32>
  } : !ncclx.future<tensor<10xf32>>
  scf.for %j = %c0 to %k step %c1 {
    // expected-error @below {{takes one of 4 chunks of 10 rows, where the whole is awaited first: they must be of one size}}
    %c = ncclx.await %f chunk %c1 of 4 dim 0 : !ncclx.future<tensor<10xf32>> -> tensor<?xf32>
    ncclx.barrier over @g["x"]
  }
  %v = ncclx.await %f : !ncclx.future<tensor<10xf32>> -> tensor<10xf32>
  return %v : tensor<10xf32>
}

// -----

ncclx.grid @g ["x" = 4]
func.func private @taken.1()
// expected-error @below {{one of which is to be 'taken.1', but the module has another of that name}}
func.func @taken(%a: tensor<i1>) {
  %p = tensor.extract %a[] : tensor<i1>
  %u = ncclx.assume_uniform %p : i1
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @parallel(%a: tensor<i1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = tensor.extract %a[] : tensor<i1>
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
    // expected-error @below {{stands under scf.parallel, which no stage can be cut out of}}
    %u = ncclx.assume_uniform %p : i1
  }
  return
}

// -----

// expected-error @below {{has ncclx.stages, but only functions with ncclx.branches may}}
func.func private @stages_g1_alone() attributes {ncclx.stages = []}

// -----

// expected-error @below {{expected a dictionary for each of 2 branches}}
func.func private @stages_g2_few() attributes {ncclx.branches = [@a, @b], ncclx.stages = [{}]}

// -----

// expected-error @below {{has stage 0 without 'reads', a list of states}}
func.func private @stages_g3_number() attributes {ncclx.branches = [@a, @b], ncclx.stages = [1, 2]}

// -----

// expected-error @below {{has stage 0 without 'writes', a list of states}}
func.func private @stages_g3_negative() attributes {ncclx.branches = [@a, @b],
  ncclx.stages = [{reads = array<i64: 0>, writes = array<i64: -1>, next = []}, {}]}

// -----

// expected-error @below {{has stage 0 without 'next', a list of lists of numbers}}
func.func private @stages_g3_next() attributes {ncclx.branches = [@a, @b],
  ncclx.stages = [{reads = array<i64: 0>, writes = array<i64: 1>, next = [1]}, {}]}

// -----

// expected-error @below {{has stage 0 that writes states, but that nothing follows}}
func.func private @stages_g3_last() attributes {ncclx.branches = [@a, @b],
  ncclx.stages = [{reads = array<i64: 0>, writes = array<i64: 1>, next = []}, {}]}

// -----

// expected-error @below {{has stage 0 with the edge array<i64: 2>, expected another stage below 2 and pairs of states}}
func.func private @stages_g4_target() attributes {ncclx.branches = [@a, @b],
  ncclx.stages = [{reads = array<i64: 0>, writes = array<i64>, next = [array<i64: 2>]}, {}]}

// -----

// expected-error @below {{has stage 0 with the edge array<i64: 1, 0>, expected another stage below 2 and pairs of states}}
func.func private @stages_g4_half_a_pair() attributes {ncclx.branches = [@a, @b],
  ncclx.stages = [{reads = array<i64: 0>, writes = array<i64>, next = [array<i64: 1, 0>]}, {}]}

// -----

// expected-error @below {{has stage 0 with the edge array<i64: 1>}}
func.func private @stages_g4_twice() attributes {ncclx.branches = [@a, @b],
  ncclx.stages = [{reads = array<i64: 0>, writes = array<i64>, next = [array<i64: 1>, array<i64: 1>]}, {}]}

// -----

// expected-error @below {{has stage 0 that agrees on what it does not write, or says not where}}
func.func private @stages_g5_state() attributes {ncclx.branches = [@a, @b],
  ncclx.stages = [{agree = 3, at = "here", reads = array<i64: 0>, writes = array<i64: 1>, next = [array<i64: 1>]}, {}]}
