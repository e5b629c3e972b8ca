// RUN: ncclx-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// expected-error @+1 {{needs at least one axis}}
ncclx.grid @grid_c1_no_axis []

// -----

// expected-error @+1 {{has an axis without a name}}
ncclx.grid @grid_c2_empty_name ["" = 2]

// -----

// expected-error @+1 {{names axis "tp" twice}}
ncclx.grid @grid_c2_twice ["tp" = 2, "tp" = 4]

// -----

// expected-error @+1 {{needs one size for each axis, but has 1 axes and 2 sizes}}
"ncclx.grid"() <{sym_name = "grid_c3_sizes", axes = ["tp"], sizes = array<i64: 2, 4>}> : () -> ()

// -----

// expected-error @+1 {{needs sizes of at least 1, but axis "tp" has 0}}
ncclx.grid @grid_c4_zero ["dp" = 2, "tp" = 0]

// -----

// expected-error @+1 {{has more than 2^31 ranks}}
ncclx.grid @grid_c5_overflow ["dp" = 4294967296, "tp" = 4294967296]

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c1_element_type(%a: tensor<4xi4>) {
  // expected-error @+1 {{works on floats (f64, f32, f16, bf16, f8E4M3FN, f8E5M2) and on i8 to i64 and ui8 to ui64, but the elements are 'i4'}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xi4> -> tensor<16xi4>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c2_dynamic(%a: memref<?xf32>, %b: memref<16xf32>) {
  // expected-error @+1 {{on memrefs needs static shapes, but found 'memref<?xf32>'}}
  ncclx.all_gather %a dim 0 over @g["tp"] into(%b : memref<16xf32>) : memref<?xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c2_open_on_one_side(%a: tensor<?xf32>) {
  // expected-error @+1 {{has a size of dimension 0 that is open on one side alone: ? in the input, 16 in the output}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<?xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c2_open_split(%a: tensor<?x8xf32>) {
  // expected-error @+1 {{has a size of dimension 0 that is open on one side alone: ? in the input, 2 in the output}}
  %0 = ncclx.all_to_all %a split 0 concat 1 over @g["tp"] : tensor<?x8xf32> -> tensor<2x32xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_c4_beside_open(%a: tensor<?x8xf32>) {
  // expected-error @+1 {{with 4 members gives dimension 1 the size 32, but the output has 31}}
  %0 = ncclx.all_to_all %a split 0 concat 1 over @g["tp"] : tensor<?x8xf32> -> tensor<?x31xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_reduce_c1_open(%a: tensor<?x8xf32>) {
  // expected-error @+1 {{keeps the size of dimension 0, expected ?, but the output has 4}}
  %0 = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] : tensor<?x8xf32> -> tensor<4x8xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c7_open(%a: tensor<?xf32>, %n: tensor<4xi32>) {
  // expected-error @+1 {{with sizes cuts dimension 0 of input and result into 4 blocks of one size, but found ? and 8 rows}}
  %0 = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<4xi32> over @g["tp"] : tensor<?xf32> -> tensor<8xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c2_too_large(%a: tensor<4294967296x536870912x0xf32>) {
  // expected-error @+1 {{needs less than 2^63 bytes, but found 'tensor<4294967296x536870912x0xf32>'}}
  %0 = ncclx.permute %a shift 1 over @g["tp"] : tensor<4294967296x536870912x0xf32> -> tensor<4294967296x536870912x0xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c3_no_result(%a: tensor<4xf32>) {
  // expected-error @+1 {{on tensors needs a result}}
  ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c3_no_destination(%a: memref<4xf32>) {
  // expected-error @+1 {{on memrefs needs a destination}}
  ncclx.permute %a shift 1 over @g["tp"] : memref<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c3_result_on_memrefs(%a: memref<4xf32>, %d: memref<4xf32>) {
  // expected-error @+1 {{on memrefs writes its destination and has no result}}
  %0 = ncclx.permute %a shift 1 over @g["tp"] into(%d : memref<4xf32>) : memref<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c3_mixed(%a: tensor<4xf32>, %d: memref<4xf32>) {
  // expected-error @+1 {{has a tensor as input, but a memref as destination}}
  %0 = ncclx.permute %a shift 1 over @g["tp"] into(%d : memref<4xf32>) : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c4_element_type_changes(%a: tensor<4xf32>) {
  // expected-error @+1 {{keeps the element type 'f32', but the output has 'f64'}}
  %0 = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf64>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c4_destination_type(%a: tensor<4xf32>, %d: tensor<8xf32>) {
  // expected-error @+1 {{has a result of type 'tensor<4xf32>', but a destination of type 'tensor<8xf32>'}}
  %0 = ncclx.permute %a shift 1 over @g["tp"] into(%d : tensor<8xf32>) : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c5_async_without_destination(%a: tensor<4xf32>) {
  // expected-error @+1 {{that is async needs a destination}}
  %0, %t = ncclx.permute %a shift 1 over @g["tp"] async : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c6_no_axis(%a: tensor<4xf32>) {
  // expected-error @+1 {{needs at least one axis}}
  %0 = ncclx.permute %a shift 1 over @g[] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c6_axis_twice(%a: tensor<4xf32>) {
  // expected-error @+1 {{lists axis "tp" twice}}
  %0 = ncclx.permute %a shift 1 over @g["tp", "tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @collective_c7_undefined_grid(%a: tensor<4xf32>) {
  // expected-error @+1 {{grid @g is not defined}}
  %0 = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// expected-note @+1 {{defined here}}
func.func private @g()
func.func @collective_c7_not_a_grid(%a: tensor<4xf32>) {
  // expected-error @+1 {{needs an ncclx.grid, but @g is a 'func.func'}}
  %0 = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// expected-note @+1 {{the grid's axes are ["dp", "tp"]}}
ncclx.grid @g ["dp" = 2, "tp" = 4]
func.func @collective_c7_unknown_axis(%a: tensor<4xf32>) {
  // expected-error @+1 {{grid @g has no axis "ep"}}
  %0 = ncclx.permute %a shift 1 over @g["ep"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c8_in_place(%a: memref<4xf32>) {
  // expected-error @+1 {{cannot work in place: its destination is its input}}
  ncclx.permute %a shift 1 over @g["tp"] into(%a : memref<4xf32>) : memref<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @reduction_c1_narrower(%a: tensor<4xf32>) {
  // expected-error @+1 {{accumulates elements of type 'f32', expected that type or a wider supported one of its kind, but found 'bf16'}}
  %0 = ncclx.all_reduce %a sum accumulate bf16 order any over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @reduction_c1_other_kind(%a: tensor<4xi32>) {
  // expected-error @+1 {{accumulates elements of type 'i32', expected that type or a wider supported one of its kind, but found 'f64'}}
  %0 = ncclx.reduce_scatter %a dim 0 sum accumulate f64 order any over @g["tp"] : tensor<4xi32> -> tensor<1xi32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @reduction_c1_same_width(%a: tensor<4xbf16>) {
  // expected-error @+1 {{but found 'f16'}}
  %0 = ncclx.all_reduce %a sum accumulate f16 order any over @g["tp"] : tensor<4xbf16> -> tensor<4xbf16>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_gather_c1_dim_out_of_range(%a: tensor<4xf32>) {
  // expected-error @+1 {{gathers along dimension 1, but the operand has rank 1}}
  %0 = ncclx.all_gather %a dim 1 over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_gather_c1_scalar(%a: tensor<f32>) {
  // expected-error @+1 {{gathers along dimension 0, but the operand has rank 0}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<f32> -> tensor<f32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_gather_c2_other_dimension(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{keeps the size of dimension 1, expected 8, but the output has 4}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16x4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_gather_c2_rank(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{keeps the rank 2, but the output has rank 1}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4x8xf32> -> tensor<16xf32>
  return
}

// -----

// expected-note @+1 {{group size comes from this grid}}
ncclx.grid @g ["tp" = 4]
func.func @all_gather_c3_rows(%a: tensor<4xf32>) {
  // expected-error @+1 {{cuts dimension 0 of size 12 among 4 members, expected 3 rows each, but found 4}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<12xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @reduce_scatter_c1_negative_dim(%a: tensor<16xf32>) {
  // expected-error @+1 {{scatters along dimension -1, but the operand has rank 1}}
  %0 = ncclx.reduce_scatter %a dim -1 sum accumulate f32 order any over @g["tp"] : tensor<16xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @reduce_scatter_c2_other_dimension(%a: tensor<16x8xf32>) {
  // expected-error @+1 {{keeps the size of dimension 1, expected 8, but the output has 2}}
  %0 = ncclx.reduce_scatter %a dim 0 sum accumulate f32 order any over @g["tp"] : tensor<16x8xf32> -> tensor<4x2xf32>
  return
}

// -----

// expected-note @+1 {{group size comes from this grid}}
ncclx.grid @g ["tp" = 4]
func.func @reduce_scatter_c3_rows(%a: tensor<17xf32>) {
  // expected-error @+1 {{cuts dimension 0 of size 17 among 4 members, expected 5 rows each, but found 4}}
  %0 = ncclx.reduce_scatter %a dim 0 sum accumulate f32 order any over @g["tp"] : tensor<17xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_reduce_c1_shape(%a: tensor<4xf32>) {
  // expected-error @+1 {{keeps the size of dimension 0, expected 4, but the output has 5}}
  %0 = ncclx.all_reduce %a sum accumulate f32 order any over @g["tp"] : tensor<4xf32> -> tensor<5xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_c1_split(%a: tensor<4xf32>) {
  // expected-error @+1 {{splits dimension 2, but the operand has rank 1}}
  %0 = ncclx.all_to_all %a split 2 concat 0 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_c1_concat(%a: tensor<4xf32>) {
  // expected-error @+1 {{concatenates dimension 1, but the operand has rank 1}}
  %0 = ncclx.all_to_all %a split 0 concat 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_c2_other_dimension(%a: tensor<4x4x4xf32>) {
  // expected-error @+1 {{keeps the size of dimension 2, expected 4, but the output has 5}}
  %0 = ncclx.all_to_all %a split 0 concat 1 over @g["tp"] : tensor<4x4x4xf32> -> tensor<1x16x5xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_c3_does_not_divide(%a: tensor<6x4xf32>) {
  // expected-error @+1 {{splits dimension 0 of size 6 among 4 members, which does not divide}}
  %0 = ncclx.all_to_all %a split 0 concat 1 over @g["tp"] : tensor<6x4xf32> -> tensor<2x16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_c4_size(%a: tensor<8x4xf32>) {
  // expected-error @+1 {{with 4 members gives dimension 1 the size 16, but the output has 8}}
  %0 = ncclx.all_to_all %a split 0 concat 1 over @g["tp"] : tensor<8x4xf32> -> tensor<2x8xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @permute_c1_both(%a: tensor<4xf32>) {
  // expected-error @+1 {{needs either a shift or pairs, but has both}}
  %0 = "ncclx.permute"(%a) <{shift = 1 : i64, pairs = array<i64: 0, 1>, grid = @g, axes = ["tp"],
    resultSegmentSizes = array<i32: 1, 0>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @permute_c1_neither(%a: tensor<4xf32>) {
  // expected-error @+1 {{needs either a shift or pairs, but has neither}}
  %0 = "ncclx.permute"(%a) <{grid = @g, axes = ["tp"], resultSegmentSizes = array<i32: 1, 0>}>
    : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @permute_c2_odd(%a: tensor<4xf32>) {
  // expected-error @+1 {{needs a target for each source, but has 1 numbers in pairs}}
  %0 = "ncclx.permute"(%a) <{pairs = array<i64: 0>, grid = @g, axes = ["tp"],
    resultSegmentSizes = array<i32: 1, 0>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @permute_c2_source_twice(%a: tensor<4xf32>) {
  // expected-error @+1 {{names member 0 twice as a source}}
  %0 = ncclx.permute %a pairs [0 -> 1, 0 -> 2] over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @permute_c2_target_twice(%a: tensor<4xf32>) {
  // expected-error @+1 {{names member 2 twice as a target}}
  %0 = ncclx.permute %a pairs [0 -> 2, 1 -> 2] over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @permute_c3_no_member(%a: tensor<4xf32>) {
  // expected-error @+1 {{names member 4, but the group has 4 members}}
  %0 = ncclx.permute %a pairs [0 -> 4] over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @permute_c4_shape(%a: tensor<4xf32>) {
  // expected-error @+1 {{keeps the size of dimension 0, expected 4, but the output has 3}}
  %0 = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<3xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @start_c1_two_collectives(%a: tensor<4xf32>) {
  // expected-error @+1 {{must hold one collective and a yield of its result, nothing else}}
  %f = ncclx.start {
    %0 = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    %1 = ncclx.permute %0 shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %1 : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  return
}

// -----

func.func @start_c1_no_collective(%a: tensor<4xf32>) {
  // expected-error @+1 {{must hold one collective and a yield of its result, nothing else}}
  %f = ncclx.start {
    ncclx.yield %a : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @start_c1_yields_another(%a: tensor<4xf32>) {
  // expected-error @+1 {{must hold one collective and a yield of its result, nothing else}}
  %f = ncclx.start {
    %0 = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %a : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @start_c1_async(%a: tensor<4xf32>, %d: tensor<4xf32>) {
  // expected-error @+1 {{starts a collective that is already async}}
  %f = ncclx.start {
    %0, %t = ncclx.permute %a shift 1 over @g["tp"] into(%d : tensor<4xf32>) async : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %0 : tensor<4xf32>
  } : !ncclx.future<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @start_c2_future_type(%a: tensor<4xf32>) {
  // expected-error @+1 {{has a future of 'tensor<5xf32>', but the collective's result is 'tensor<4xf32>'}}
  %f = ncclx.start {
    %0 = ncclx.permute %a shift 1 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
    ncclx.yield %0 : tensor<4xf32>
  } : !ncclx.future<tensor<5xf32>>
  return
}

// -----

func.func @await_c1_type(%f: !ncclx.future<tensor<4xf32>>) {
  // expected-error @+1 {{awaits a value of type 'tensor<4xf32>', but the result is 'tensor<5xf32>'}}
  %0 = ncclx.await %f : !ncclx.future<tensor<4xf32>> -> tensor<5xf32>
  return
}

// -----

func.func @chunk_c1_no_count(%f: !ncclx.future<tensor<4xf32>>, %i: index) {
  // expected-error @+1 {{of a chunk needs the number of chunks and their dimension}}
  %0 = "ncclx.await"(%f, %i) <{operandSegmentSizes = array<i32: 1, 1, 0>}>
    : (!ncclx.future<tensor<4xf32>>, index) -> tensor<1xf32>
  return
}

// -----

func.func @chunk_c1_no_chunk(%f: !ncclx.future<tensor<4xf32>>) {
  // expected-error @+1 {{gives the number of chunks or their dimension, but no chunk}}
  %0 = "ncclx.await"(%f) <{count = 4 : i64, dim = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0>}>
    : (!ncclx.future<tensor<4xf32>>) -> tensor<4xf32>
  return
}

// -----

func.func @chunk_c2_out_of_range(%f: !ncclx.future<tensor<4xf32>>) {
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{takes chunk 4, but there are 4}}
  %0 = ncclx.await %f chunk %c4 of 4 dim 0 : !ncclx.future<tensor<4xf32>> -> tensor<1xf32>
  return
}

// -----

func.func @chunk_c2_negative(%f: !ncclx.future<tensor<4xf32>>) {
  %c = arith.constant -1 : index
  // expected-error @+1 {{takes chunk -1, but there are 4}}
  %0 = ncclx.await %f chunk %c of 4 dim 0 : !ncclx.future<tensor<4xf32>> -> tensor<1xf32>
  return
}

// -----

func.func @chunk_c3_none(%f: !ncclx.future<tensor<4xf32>>, %i: index) {
  // expected-error @+1 {{needs at least 1 chunk, but has 0}}
  %0 = ncclx.await %f chunk %i of 0 dim 0 : !ncclx.future<tensor<4xf32>> -> tensor<4xf32>
  return
}

// -----

func.func @chunk_c4_dim(%f: !ncclx.future<tensor<4xf32>>, %i: index) {
  // expected-error @+1 {{takes chunks of dimension 1, but the operand has rank 1}}
  %0 = ncclx.await %f chunk %i of 4 dim 1 : !ncclx.future<tensor<4xf32>> -> tensor<1xf32>
  return
}

// -----

func.func @chunk_c5_even(%f: !ncclx.future<tensor<8xf32>>, %i: index) {
  // expected-error @+1 {{takes a chunk of type 'tensor<2xf32>', but the result is 'tensor<?xf32>'}}
  %0 = ncclx.await %f chunk %i of 4 dim 0 : !ncclx.future<tensor<8xf32>> -> tensor<?xf32>
  return
}

// -----

func.func @chunk_c5_uneven(%f: !ncclx.future<tensor<7xf32>>, %i: index) {
  // expected-error @+1 {{takes a chunk of type 'tensor<?xf32>', but the result is 'tensor<2xf32>'}}
  %0 = ncclx.await %f chunk %i of 4 dim 0 : !ncclx.future<tensor<7xf32>> -> tensor<2xf32>
  return
}

// -----

func.func @chunk_c5_view(%t: !ncclx.token, %m: memref<8xf32>, %i: index) {
  // expected-error @+1 {{takes a chunk of type 'memref<2xf32, strided<[1], offset: ?>>', but the result is 'memref<2xf32>'}}
  %0 = ncclx.finish_chunk %t, %m[%i] of 4 dim 0 : memref<8xf32> -> memref<2xf32>
  return
}

// -----

func.func @chunk_c6_dynamic(%t: !ncclx.token, %m: memref<?xf32>, %i: index) {
  // expected-error @+1 {{on memrefs needs a static shape to cut, but found 'memref<?xf32>'}}
  %0 = ncclx.finish_chunk %t, %m[%i] of 4 dim 0 : memref<?xf32> -> memref<?xf32, strided<[1], offset: ?>>
  return
}

// -----

func.func @finish_c1_tensor(%t: !ncclx.token, %r: tensor<4xf32>) {
  // expected-error @+1 {{needs a result of type 'tensor<4xf32>'}}
  ncclx.finish %t, %r : tensor<4xf32>
  return
}

// -----

func.func @finish_c1_memref(%t: !ncclx.token, %r: memref<4xf32>) {
  // expected-error @+1 {{on memrefs has no result, but found one of type 'tensor<4xf32>'}}
  %0 = ncclx.finish %t, %r : memref<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @finish_c2_mixed(%t: !ncclx.token, %r: memref<4xf32>, %k: tensor<4xf32>) {
  // expected-error @+1 {{keeps 'tensor<4xf32>' beside 'memref<4xf32>': expected all tensors or all memrefs}}
  ncclx.finish %t, %r keeping(%k : tensor<4xf32>) : memref<4xf32>
  return
}

// -----

func.func @call_c1_undefined(%a: tensor<4xf32>) {
  // expected-error @+1 {{callee @kernel is not defined}}
  %0 = ncclx.call @kernel(%a) {flops = 1, bytes = 1, sms = 1} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-note @+1 {{defined here}}
ncclx.grid @kernel ["tp" = 2]
func.func @call_c1_no_function(%a: tensor<4xf32>) {
  // expected-error @+1 {{needs a func.func, but @kernel is another op}}
  %0 = ncclx.call @kernel(%a) {flops = 1, bytes = 1, sms = 1} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-note @+1 {{defined here}}
func.func private @kernel(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }
func.func @call_c2_type(%a: tensor<5xf32>) {
  // expected-error @+1 {{calls a function of type '(tensor<5xf32>) -> tensor<5xf32>', but @kernel has type '(tensor<4xf32>) -> tensor<4xf32>'}}
  %0 = ncclx.call @kernel(%a) {flops = 1, bytes = 1, sms = 1} : (tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func private @kernel(%a: tensor<4xf32>) { return }
func.func @call_c3_nothing(%a: tensor<4xf32>) {
  // expected-error @+1 {{needs results (on tensors) or outs (on memrefs)}}
  ncclx.call @kernel(%a) {flops = 1, bytes = 1, sms = 1} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func private @kernel(%a: tensor<4xf32>, %m: memref<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }
func.func @call_c3_both(%a: tensor<4xf32>, %m: memref<4xf32>) {
  // expected-error @+1 {{has results and outs, expected one of them}}
  %0 = ncclx.call @kernel(%a) outs(%m : memref<4xf32>) {flops = 1, bytes = 1, sms = 1} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @kernel(%a: memref<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  return %e : tensor<4xf32>
}
func.func @call_c3_mixed(%m: memref<4xf32>) {
  // expected-error @+1 {{takes scalars and tensors, but found 'memref<4xf32>'}}
  %0 = ncclx.call @kernel(%m) {flops = 1, bytes = 1, sms = 1} : (memref<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @kernel(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }
func.func @call_c4_negative(%a: tensor<4xf32>) {
  // expected-error @+1 {{declares sms = -1, expected at least 0}}
  %0 = ncclx.call @kernel(%a) {flops = 1, bytes = 1, sms = -1} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{argument #0: "ncclx.uniform" must be a unit attribute, but is 1 : i64}}
func.func private @uniform_value(%a: i1 {ncclx.uniform = 1})

// -----

// expected-error @+1 {{argument #0 has the unknown attribute "ncclx.unifrom"}}
func.func private @uniform_typo(%a: i1 {ncclx.unifrom})

// -----

ncclx.grid @g ["tp" = 4]
func.func @reduction_c2_scaled_max(%a: tensor<4xf32>) {
  // expected-error @+1 {{scales the operands of a sum only, but it is a max}}
  %0 = ncclx.all_reduce %a max scale 5.0e-01 accumulate f32 order any over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @reduction_c3_scaled_integers(%a: tensor<4xi32>) {
  // expected-error @+1 {{scales floats only, but the elements are 'i32'}}
  %0 = ncclx.all_reduce %a sum scale 5.0e-01 accumulate i32 order any over @g["tp"] : tensor<4xi32> -> tensor<4xi32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @reduction_c1_signed_from_unsigned(%a: tensor<4xui8>) {
  // expected-error @+1 {{accumulates elements of type 'ui8', expected that type or a wider supported one of its kind, but found 'i32'}}
  %0 = ncclx.all_reduce %a sum accumulate i32 order any over @g["tp"] : tensor<4xui8> -> tensor<4xui8>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c1_dim(%a: tensor<4xf32>) {
  // expected-error @+1 {{splits dimension 1, but the operand has rank 1}}
  %0 = ncclx.all_to_all_v %a dim 1 counts dense<1> : tensor<4x4xi64> over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c2_matrix(%a: tensor<4xf32>) {
  // expected-error @+1 {{needs counts of 4x4 members, but found 'tensor<2x8xi64>'}}
  %0 = ncclx.all_to_all_v %a dim 0 counts dense<1> : tensor<2x8xi64> over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c3_negative(%a: tensor<4xf32>) {
  // expected-error @+1 {{sends -1 rows from member 0 to member 0, expected at least 0}}
  %0 = ncclx.all_to_all_v %a dim 0 counts dense<-1> : tensor<4x4xi64> over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c4_sends(%a: tensor<3xf32>) {
  // expected-error @+1 {{sends 4 rows at member 0, but there are 3 in 'tensor<3xf32>'}}
  %0 = ncclx.all_to_all_v %a dim 0 counts dense<1> : tensor<4x4xi64> over @g["tp"] : tensor<3xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c4_receives(%a: tensor<4xf32>) {
  // expected-error @+1 {{receives 4 rows at member 0, but there are 2 in 'tensor<2xf32>'}}
  %0 = ncclx.all_to_all_v %a dim 0 counts dense<1> : tensor<4x4xi64> over @g["tp"] : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c5_neither(%a: tensor<4xf32>) {
  // expected-error @+1 {{needs either counts or sizes, but has neither}}
  %0 = ncclx.all_to_all_v %a dim 0 over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c5_both(%a: tensor<4xf32>, %n: tensor<4xi64>) {
  // expected-error @+1 {{needs either counts or sizes, but has both}}
  %0 = ncclx.all_to_all_v %a dim 0 counts dense<0> : tensor<4x4xi64> sizes %n : tensor<4xi64> over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c6_element(%a: tensor<4xf32>, %n: tensor<4xi16>) {
  // expected-error @+1 {{needs sizes in a tensor of one dimension, of i32 or i64, but found 'tensor<4xi16>'}}
  %0 = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<4xi16> over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c6_rank(%a: tensor<4xf32>, %n: tensor<2x2xi64>) {
  // expected-error @+1 {{needs sizes in a tensor of one dimension, of i32 or i64, but found 'tensor<2x2xi64>'}}
  %0 = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<2x2xi64> over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c6_form(%a: memref<4xf32>, %r: memref<4xf32>, %n: tensor<4xi64>) {
  // expected-error @+1 {{needs sizes in a memref of one dimension, of i32 or i64, but found 'tensor<4xi64>'}}
  ncclx.all_to_all_v %a dim 0 sizes %n : tensor<4xi64> over @g["tp"] into(%r : memref<4xf32>) : memref<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c6_members(%a: tensor<4xf32>, %n: tensor<3xi64>) {
  // expected-error @+1 {{needs one size for each of 4 members, but found 'tensor<3xi64>'}}
  %0 = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<3xi64> over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c7_blocks(%a: tensor<6xf32>, %n: tensor<4xi64>) {
  // expected-error @+1 {{with sizes cuts dimension 0 of input and result into 4 blocks of one size, but found 6 and 6 rows}}
  %0 = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<4xi64> over @g["tp"] : tensor<6xf32> -> tensor<6xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @all_to_all_v_c7_result(%a: tensor<8xf32>, %n: tensor<4xi64>) {
  // expected-error @+1 {{with sizes cuts dimension 0 of input and result into 4 blocks of one size, but found 8 and 4 rows}}
  %0 = ncclx.all_to_all_v %a dim 0 sizes %n : tensor<4xi64> over @g["tp"] : tensor<8xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c8_sizes(%a: memref<4xi64>, %n: memref<4xi64>) {
  // expected-error @+1 {{cannot work in place: its destination is its sizes}}
  ncclx.all_to_all_v %a dim 0 sizes %n : memref<4xi64> over @g["tp"] into(%n : memref<4xi64>) : memref<4xi64>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @broadcast_c1_shape(%a: tensor<4xf32>) {
  // expected-error @+1 {{keeps the size of dimension 0, expected 4, but the output has 5}}
  %0 = ncclx.broadcast %a root [0] over @g["tp"] : tensor<4xf32> -> tensor<5xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @reduce_c1_shape(%a: tensor<4xf32>) {
  // expected-error @+1 {{keeps the rank 1, but the output has rank 2}}
  %0 = ncclx.reduce %a root [0] sum accumulate f32 order any over @g["tp"] : tensor<4xf32> -> tensor<4x1xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @gather_c1_dim(%a: tensor<4xf32>) {
  // expected-error @+1 {{gathers along dimension 2, but the operand has rank 1}}
  %0 = ncclx.gather %a dim 2 root [0] over @g["tp"] : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @scatter_c2_other_size(%a: tensor<4x2xf32>) {
  // expected-error @+1 {{keeps the size of dimension 1, expected 2, but the output has 3}}
  %0 = ncclx.scatter %a dim 0 root [0] over @g["tp"] : tensor<4x2xf32> -> tensor<1x3xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @root_c1_coordinates(%a: tensor<4xf32>) {
  // expected-error @+1 {{needs a root with one coordinate for each of 1 axes, but found 2}}
  %0 = ncclx.broadcast %a root [0, 1] over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// expected-note @+1 {{the size comes from this grid}}
ncclx.grid @g ["tp" = 4]
func.func @root_c2_outside(%a: tensor<4xf32>) {
  // expected-error @+1 {{has its root at 4 on axis "tp", which has size 4}}
  %0 = ncclx.broadcast %a root [4] over @g["tp"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// expected-note @+1 {{group size comes from this grid}}
ncclx.grid @g ["tp" = 4]
func.func @gather_c3_shard(%a: tensor<4xf32>) {
  // expected-error @+1 {{cuts dimension 0 of size 20 among 4 members, expected 5 rows each, but found 4}}
  %0 = ncclx.gather %a dim 0 root [0] over @g["tp"] : tensor<4xf32> -> tensor<20xf32>
  return
}

// -----

// expected-note @+1 {{group size comes from this grid}}
ncclx.grid @g ["tp" = 4]
func.func @scatter_c3_shard(%a: tensor<4xf32>) {
  // expected-error @+1 {{cuts dimension 0 of size 4 among 4 members, expected 1 rows each, but found 2}}
  %0 = ncclx.scatter %a dim 0 root [0] over @g["tp"] : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @barrier_c1_no_axis() {
  // expected-error @+1 {{needs at least one axis}}
  ncclx.barrier over @g[]
  return
}

// -----

// expected-note @+1 {{the grid's axes are ["tp"]}}
ncclx.grid @g ["tp" = 4]
func.func @barrier_c1_unknown_axis() {
  // expected-error @+1 {{grid @g has no axis "dp"}}
  ncclx.barrier over @g["dp"]
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c9_groups_and_axes(%a: tensor<4xf32>) {
  // expected-error @+1 {{lists groups and axes, expected one of them}}
  %0 = "ncclx.permute"(%a) <{grid = @g, axes = ["tp"], groups = [array<i64: 0, 1, 2, 3>], shift = 1 : i64, resultSegmentSizes = array<i32: 1, 0>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-note @+1 {{the grid has 4 ranks}}
ncclx.grid @g ["tp" = 4]
func.func @collective_c9_no_rank(%a: tensor<4xf32>) {
  // expected-error @+1 {{lists rank 4, which is none}}
  %0 = ncclx.permute %a shift 1 over @g groups [[0, 1], [2, 3, 4]] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// expected-note @+1 {{the grid has 4 ranks}}
ncclx.grid @g ["tp" = 4]
func.func @collective_c9_rank_twice(%a: tensor<4xf32>) {
  // expected-error @+1 {{lists rank 1 twice}}
  %0 = ncclx.permute %a shift 1 over @g groups [[0, 1], [2, 1, 3]] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// expected-note @+1 {{the grid has 4 ranks}}
ncclx.grid @g ["tp" = 4]
func.func @collective_c9_rank_missing(%a: tensor<4xf32>) {
  // expected-error @+1 {{lists no group for rank 2, expected every rank in one}}
  %0 = ncclx.permute %a shift 1 over @g groups [[0, 1], [3]] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @collective_c9_empty_group() {
  // expected-error @+1 {{lists a group without ranks}}
  ncclx.barrier over @g groups [[0, 1, 2, 3], []]
  return
}

// -----

// expected-note @+1 {{group size comes from this grid}}
ncclx.grid @g ["tp" = 4]
func.func @collective_c9_sizes_that_differ(%a: tensor<4xf32>) {
  // expected-error @+1 {{cuts dimension 0 of size 12 among 1 members, expected 12 rows each, but found 4}}
  %0 = ncclx.all_gather %a dim 0 over @g groups [[0, 1, 3], [2]] : tensor<4xf32> -> tensor<12xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @root_c2_not_in_every_group(%a: tensor<4xf32>) {
  // expected-error @+1 {{has member 2 as its root, but a group has 1 members}}
  %0 = ncclx.broadcast %a root [2] over @g groups [[0, 1, 3], [2]] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{names a schedule, but only collectives may}}
func.func @schedule_s1_on_a_function() attributes {ncclx.schedule = @ring} {
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @schedule_s1_no_symbol(%a: tensor<4xf32>) {
  // expected-error @+1 {{names a schedule by "ring", expected a symbol}}
  %0 = ncclx.permute %a shift 1 over @g["tp"] {ncclx.schedule = "ring"} : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @schedule_s1_and_algorithm(%a: tensor<4xf32>) {
  // expected-error @+1 {{names a schedule and an algorithm, expected one of them}}
  %0 = ncclx.permute %a shift 1 over @g["tp"] algorithm ring {ncclx.schedule = @ring} : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{has ncclx.pipeline, but only collectives may}}
func.func @pipeline_p1_on_a_function() attributes {ncclx.pipeline = {chunks = 2}} {
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @pipeline_p2_no_dictionary(%a: tensor<4xf32>) {
  // expected-error @+1 {{has ncclx.pipeline = 4 : i64, expected chunks, an i64 of at least 1, depth, an i64 of at least 0, or some of them}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.pipeline = 4} : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @pipeline_p2_no_word(%a: tensor<4xf32>) {
  // expected-error @+1 {{has ncclx.pipeline = {}, expected chunks, an i64 of at least 1, depth, an i64 of at least 0, or some of them}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.pipeline = {}} : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @pipeline_p2_no_chunk(%a: tensor<4xf32>) {
  // expected-error @+1 {{has ncclx.pipeline with chunks = 0 : i64, expected an i64 of at least 1}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.pipeline = {chunks = 0}} : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @pipeline_p2_negative_depth(%a: tensor<4xf32>) {
  // expected-error @+1 {{has ncclx.pipeline with depth = -1 : i64, expected an i64 of at least 0}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.pipeline = {chunks = 2, depth = -1}} : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @pipeline_p2_narrow_number(%a: tensor<4xf32>) {
  // expected-error @+1 {{has ncclx.pipeline with chunks = 2 : i32, expected an i64 of at least 1}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.pipeline = {chunks = 2 : i32}} : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @pipeline_p2_other_words(%a: tensor<4xf32>) {
  // expected-error @+1 {{has ncclx.pipeline with the unknown word 'chunk', expected chunks, an i64 of at least 1, depth, an i64 of at least 0, or some of them}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.pipeline = {chunk = 2}} : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @attributes_unknown(%a: tensor<4xf32>) {
  // expected-error @+1 {{has the unknown attribute "ncclx.chunks", expected one of ncclx.schedule, ncclx.pipeline, ncclx.trees,}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.chunks = 4} : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @attributes_tf32_unit(%a: tensor<4xf32>) {
  // expected-error @+1 {{has ncclx.allow_tf32 = true, expected a unit attribute}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.allow_tf32 = true} : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @attributes_sms_number(%a: tensor<4xf32>) {
  // expected-error @+1 {{has ncclx.sms = 0 : i64, expected an i64 of at least 1: multiprocessors}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.sms = 0} : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @attributes_cut_on_a_call(%a: tensor<4xf32>) {
  // expected-error @+1 {{has ncclx.cut, but only calls of kernels may}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.cut = array<i64: 0, 0>} : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @attributes_product_on_a_call(%a: tensor<4xf32>) {
  // expected-error @+1 {{has ncclx.grouped_product, but only calls of kernels may}}
  %0 = ncclx.all_gather %a dim 0 over @g["tp"] {ncclx.grouped_product = array<i64: 1, 1, 1, 1>} : tensor<4xf32> -> tensor<16xf32>
  return
}

// -----

ncclx.grid @g ["tp" = 4]
func.func @schedule_s2_no_program(%a: tensor<4xf32>) {
  // expected-error @+1 {{names the schedule @g, which is no ctran.program of this module}}
  %0 = ncclx.permute %a shift 1 over @g["tp"] {ncclx.schedule = @g} : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{a window holds floats, i8 to i64 or ui8 to ui64, but found 'i4'}}
func.func private @window_c1_element_type() -> !ncclx.window<tensor<4xi4>>

// -----

// expected-error @+1 {{a window needs a static shape, but found 'tensor<?xf32>'}}
func.func private @window_c1_dynamic() -> !ncclx.window<tensor<?xf32>>

// -----

// expected-error @+1 {{a window needs less than 2^63 bytes, but found 'tensor<4294967296x536870912xf64>'}}
func.func private @window_c1_too_large() -> !ncclx.window<tensor<4294967296x536870912xf64>>

// -----

ncclx.grid @g ["x" = 4]
func.func @window_c2_no_axis() {
  // expected-error @+1 {{needs at least one axis}}
  %w = ncclx.window over @g[] : !ncclx.window<tensor<4xf32>>
  return
}

// -----

// expected-note @+1 {{the grid's axes are}}
ncclx.grid @g ["x" = 4]
func.func @window_c2_unknown_axis() {
  // expected-error @+1 {{grid @g has no axis "y"}}
  %w = ncclx.window over @g["y"] : !ncclx.window<tensor<4xf32>>
  return
}

// -----

// expected-note @+1 {{the grid has 4 ranks}}
ncclx.grid @g ["x" = 4]
func.func @window_c2_missing_rank() {
  // expected-error @+1 {{lists no group for rank 1, expected every rank in one}}
  %w = ncclx.window over @g groups [[0, 2], [3]] : !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @window_c3_init(%a: tensor<5xf32>) {
  // expected-error @+1 {{holds 'tensor<4xf32>', but its initial content is 'tensor<5xf32>'}}
  %w = ncclx.window over @g["x"] init(%a : tensor<5xf32>) : !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @peer_c1_both(%a: tensor<4xf32>) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{needs either a shift or pairs, but has both}}
  "ncclx.put"(%a, %w) <{shift = 1 : i64, pairs = array<i64: 0, 1>, static_offsets = array<i64: 0>}> : (tensor<4xf32>, !ncclx.window<tensor<4xf32>>) -> ()
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @peer_c1_signal_neither() {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{needs either a shift or pairs, but has neither}}
  ncclx.signal %w : !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @peer_c1_wait_neither() {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{needs either a shift or pairs, but has neither}}
  ncclx.wait %w count 1 : !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @peer_c2_target_twice() {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{names member 2 twice as a target}}
  ncclx.signal %w pairs [0 -> 2, 1 -> 2] : !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @peer_c2_odd() {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{needs a target for each source, but has 1 numbers in pairs}}
  "ncclx.signal"(%w) <{pairs = array<i64: 0>}> : (!ncclx.window<tensor<4xf32>>) -> ()
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @peer_c3_no_member() {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{names member 4, but the group has 4 members}}
  %r = ncclx.get %w[0] pairs [0 -> 4] : !ncclx.window<tensor<4xf32>> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @peer_c3_smaller_group() {
  %w = ncclx.window over @g groups [[0, 1, 2], [3]] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{names member 1, but the group has 1 members}}
  ncclx.signal %w pairs [0 -> 1] : !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @box_c1_element_type(%a: tensor<2xf64>) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{moves elements of type 'f64', but the window holds 'tensor<4xf32>'}}
  ncclx.put %a into %w[0] shift 1 : tensor<2xf64> into !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @box_c1_dynamic(%a: tensor<?xf32>) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{needs a box of static shape, but found 'tensor<?xf32>'}}
  ncclx.put %a into %w[0] shift 1 : tensor<?xf32> into !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @box_c1_rank(%a: tensor<2xf32>) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4x4xf32>>
  // expected-error @+1 {{needs an offset and a size for each of 2 dimensions, but has 1 offsets and 'tensor<2xf32>'}}
  ncclx.put %a into %w[0] shift 1 : tensor<2xf32> into !ncclx.window<tensor<4x4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @box_c2_behind_the_end(%a: tensor<2xf32>) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{has a box of 2 at 3 in dimension 0, but the window has 4}}
  ncclx.put %a into %w[3] shift 1 : tensor<2xf32> into !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @box_c2_too_large(%i: index) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{has a box of 5 at 0 in dimension 0, but the window has 4}}
  %r = ncclx.get %w[%i] : !ncclx.window<tensor<4xf32>> -> tensor<5xf32>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @box_c2_negative() {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{has a box of 1 at -1 in dimension 0, but the window has 4}}
  %r = ncclx.get %w[-1] : !ncclx.window<tensor<4xf32>> -> tensor<1xf32>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @get_c1_nothing() {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{needs a result (on tensors) or a destination (on memrefs)}}
  ncclx.get %w[0] : !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @get_c1_mixed(%d: memref<4xf32>) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{has a result, but a memref as destination}}
  %r = ncclx.get %w[0] into(%d : memref<4xf32>) : !ncclx.window<tensor<4xf32>> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @get_c1_dest_type(%d: tensor<3xf32>) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{has a result of type 'tensor<4xf32>', but a destination of type 'tensor<3xf32>'}}
  %r = ncclx.get %w[0] into(%d : tensor<3xf32>) : !ncclx.window<tensor<4xf32>> -> tensor<4xf32>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @get_c2_peer(%d: memref<4xf32>) {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{on memrefs reads the own window: run ncclx-answer-gets before}}
  ncclx.get %w[0] shift 1 into(%d : memref<4xf32>) : !ncclx.window<tensor<4xf32>>
  return
}

// -----

ncclx.grid @g ["x" = 4]
func.func @wait_c1_count() {
  %w = ncclx.window over @g["x"] : !ncclx.window<tensor<4xf32>>
  // expected-error @+1 {{waits for 0 signals, expected at least 1}}
  ncclx.wait %w shift 1 count 0 : !ncclx.window<tensor<4xf32>>
  return
}

// -----

func.func @assume_uniform_c1_tensor(%a: tensor<4xf32>) {
  // expected-error @+1 {{compares 'tensor<4xf32>', expected an index, i1, i8 to i64, f16, bf16, f32 or f64}}
  %0 = ncclx.assume_uniform %a : tensor<4xf32>
  return
}

// -----

func.func @assume_uniform_c1_narrow(%a: f8E5M2) {
  // expected-error @+1 {{compares 'f8E5M2'}}
  %0 = ncclx.assume_uniform %a : f8E5M2
  return
}

// -----

func.func @assume_uniform_c1_unsigned(%a: ui32) {
  // expected-error @+1 {{compares 'ui32'}}
  %0 = ncclx.assume_uniform %a : ui32
  return
}

// -----

func.func @assume_uniform_c1_odd(%a: i7) {
  // expected-error @+1 {{compares 'i7'}}
  %0 = ncclx.assume_uniform %a : i7
  return
}
