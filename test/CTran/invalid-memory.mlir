// RUN: ncclx-opt %s --split-input-file --verify-diagnostics
// Coordinates, windows, slots, views and boxes: see the constraints of SPEC.md.

// expected-note @below {{the grid is declared here}}
ctran.program @coord_c1_axis grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{names axis "z", which the grid does not have}}
  %z = ctran.coord "z"
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @coord_c2_type grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{on axis "x" has type '!ctran.coord<"y">'}}
  %z = "ctran.coord"() <{axis = "x"}> : () -> !ctran.coord<"y">
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @table_c1_values grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  // expected-error @below {{needs one value for each of the 4 coordinates on axis "x", found 2}}
  %t = ctran.table %x [1, 2] : !ctran.coord<"x">
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @window_c1_dynamic grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs a static memref with identity layout and no memory space, found 'memref<?xf32>'}}
  %w = ctran.window "w" scratch : memref<?xf32>
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @window_c1_strided grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs a static memref with identity layout and no memory space, found 'memref<4xf32, strided<[2]>>'}}
  %w = ctran.window "w" scratch : memref<4xf32, strided<[2]>>
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @window_c1_space grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs a static memref with identity layout and no memory space, found 'memref<4xf32, 1>'}}
  %w = ctran.window "w" scratch : memref<4xf32, 1>
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @window_c2_bits grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs elements of whole bytes, found 'i1'}}
  %w = ctran.window "w" scratch : memref<4xi1>
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @window_c2_index grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs elements of whole bytes, found 'index'}}
  %w = ctran.window "w" scratch : memref<4xindex>
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @window_c3_size grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs a size below 2^63 bytes}}
  %w = ctran.window "w" scratch : memref<4000000000x4000000000xf32>
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @window_c4_generations grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs at least 1 generation, found 0}}
  %w = ctran.window "w" scratch generations 0 : memref<4xf32>
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @window_c5_missing grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{input needs the caller's position, found none}}
  %w = ctran.window "w" input : memref<4xf32>
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @window_c5_scratch grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{scratch has no position of the caller's, found one}}
  %w = ctran.window "w" scratch 0 : memref<4xf32>
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @window_c5_large grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs a position below 2^31, found -1}}
  %w = ctran.window "w" input -1 : memref<4xf32>
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @window_c6_generations grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{is the caller's memory and has 1 generation, found 2}}
  %w = ctran.window "w" input 0 generations 2 : memref<4xf32>
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @window_top_level grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %yes = arith.constant true
  scf.if %yes {
    // expected-error @below {{expects parent op 'ctran.program'}}
    %w = ctran.window "w" scratch : memref<4xf32>
  }
  ctran.return %entry : !ctran.token
}

// -----

// expected-note @below {{the grid is declared here}}
ctran.program @dims_c1_axis grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>

  // expected-error @below {{binds dimension 1 to axis "z", which the grid does not have}}
  %r = ctran.reindex %w [2, "z" = 4]
  ctran.return %entry : !ctran.token
}

// -----

// expected-note @below {{the grid is declared here}}
ctran.program @dims_c2_size grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{binds dimension 0 of size 3 to axis "x" of size 4}}
  %s = ctran.slots "s" ["x" = 3] per_run 1
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @dims_c3_places grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs at most 2147483647 places}}
  %s = ctran.slots "s" [65536, 65536] per_run 1
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @reindex_c1_twice grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>

  %r = ctran.reindex %w [2]
  // expected-error @below {{needs a window that is not yet reindexed}}
  %q = ctran.reindex %r [4]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @reindex_c2_along grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>

  // expected-error @below {{cuts along dimension 2 of a window of rank 2}}
  %r = ctran.reindex %w along 2 [2]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @reindex_c3_extent grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>

  // expected-error @below {{needs an extent exactly when it is resident, found an extent}}
  %r = ctran.reindex %w along 0 ["x" = 4] extent 8
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @reindex_c3_resident grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>

  // expected-error @below {{needs an extent exactly when it is resident, found none}}
  %r = ctran.reindex %w along 0 ["x" = 4] resident
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @reindex_c4_extent grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>

  // expected-error @below {{needs an extent of at least 0, found -8}}
  %r = ctran.reindex %w along 0 ["x" = 4] resident extent -8
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @reindex_c5_free grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>

  // expected-error @below {{is resident, so its dimensions must be bound to axes}}
  %r = ctran.reindex %w along 0 [4] resident extent 32
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @reindex_c5_inner grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>

  // expected-error @below {{is resident, so its dimensions must be bound to axes}}
  %r = ctran.reindex %w along 0 ["x" = 4, 2] resident extent 32
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @reindex_c6_room grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>

  // expected-error @below {{is resident and needs room for the largest piece, 9, found 8}}
  %r = ctran.reindex %w along 0 ["x" = 4 chunked] resident extent 33
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @slots_c1_per_run grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs per_run of at least 0, found -1}}
  %s = ctran.slots "s" [] per_run -1
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @slots_c5_credits grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs credits of at least 0, found -2}}
  %s = ctran.slots "s" [] per_run 1 credits -2
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @slots_c2_writers grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs at least 1 writer, found 0}}
  %s = ctran.slots "s" [] per_run 1 writers 0
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @slots_c3_generations grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs at least 1 generation, found -2}}
  %s = ctran.slots "s" [] per_run 1 generations -2
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @slots_c4_inband grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{cannot be inband with scope block}}
  %s = ctran.slots "s" [] per_run 1 scope block realisation inband
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @peer_view_c1_both grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index

  // expected-error @below {{needs a point or a rank, found both}}
  %v = "ctran.peer_view"(%w, %x, %y, %c9) <{operandSegmentSizes = array<i32: 1, 2, 1>}> : (!ctran.window, !ctran.coord<"x">, !ctran.coord<"y">, index) -> !ctran.window
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @peer_view_c2_rank grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index

  // expected-error @below {{needs a rank below 8, found 9}}
  %v = ctran.peer_view %w at rank %c9 : !ctran.window
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @peer_view_c3_axes grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index

  // expected-error @below {{needs one coordinate for each of the 2 axes, found 1}}
  %v = ctran.peer_view %w at (%x : "x") : !ctran.window
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @peer_view_c4_order grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index

  // expected-error @below {{needs a coordinate on axis "x" at position 0, found '!ctran.coord<"y">'}}
  %v = ctran.peer_view %w at (%y : "y", %x : "x") : !ctran.window
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @peer_view_c5_twice grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index

  %v = ctran.peer_view %w at (%x : "x", %y : "y") : !ctran.window
  // expected-error @below {{needs a window that is not yet a peer's view}}
  %u = ctran.peer_view %v at (%x : "x", %y : "y") : !ctran.window
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @peer_view_c5_slots grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index

  %s = ctran.slots "s" [] per_run 1
  %v = ctran.peer_view %s at (%x : "x", %y : "y") : !ctran.slots
  // expected-error @below {{needs slots that are not yet a peer's view}}
  %u = ctran.peer_view %v at (%x : "x", %y : "y") : !ctran.slots
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @peer_view_c6_scope grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index

  // expected-note @below {{scope device, realisation counter}}
  %s = ctran.slots "s" [] per_run 1 scope device
  // expected-error @below {{sees slots "s" that no peer can reach}}
  %v = ctran.peer_view %s at (%x : "x", %y : "y") : !ctran.slots
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @peer_view_c6_event grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index

  // expected-note @below {{scope system, realisation event}}
  %s = ctran.slots "s" [] per_run 1 realisation event
  // expected-error @below {{sees slots "s" that no peer can reach}}
  %v = ctran.peer_view %s at (%x : "x", %y : "y") : !ctran.slots
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @peer_view_c7_none grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index

  // expected-note @below {{declared with peers none}}
  %l = ctran.window "l" scratch : memref<4xf32>
  // expected-error @below {{sees window "l" that no peer may view}}
  %v = ctran.peer_view %l at (%x : "x", %y : "y") : !ctran.window
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @index_c1_free grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index

  // expected-error @below {{indexes dimension 1, which is free, with a coordinate on axis "x"}}
  %b = ctran.range %r[%x : "x", %x : "x"]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @index_c2_axis grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index

  // expected-error @below {{indexes dimension 0, which is bound to axis "x", with a coordinate on axis "y"}}
  %b = ctran.range %r[%y : "y"]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @index_c3_high grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index

  // expected-error @below {{indexes dimension 1 of size 3 with 3}}
  %b = ctran.range %r[%x : "x", %c3]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @index_c3_low grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index

  // expected-error @below {{indexes dimension 1 of size 3 with -1}}
  %b = ctran.range %r[%x : "x", %cm]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @index_c4_count grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index

  // expected-error @below {{needs at most 2 indices, found 3}}
  %b = ctran.range %r[%x : "x", %c1, %c1]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @index_c5_half grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index

  // expected-error @below {{needs both ends of an interval or none, found one}}
  %b = "ctran.range"(%r, %c1) <{operandSegmentSizes = array<i32: 1, 0, 1, 0, 0>}> : (!ctran.window, index) -> !ctran.range
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @index_c6_depth grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index

  // expected-error @below {{takes an interval of dimension 2, but has 2 dimensions}}
  %b = ctran.range %r[%x : "x", %c1] from %c1 size %c1
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @index_c7_count grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index

  // expected-error @below {{takes 4 places of dimension 1, which has 3}}
  %b = ctran.range %r[%x : "x"] from %c1 size %c4
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @index_c7_end grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index

  // expected-error @below {{takes 3 places of dimension 1 from 1 on, but there are 3}}
  %b = ctran.range %r[%x : "x"] from %c1 size %c3
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @index_c7_first grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index

  // expected-error @below {{takes 1 places of dimension 1 from -1 on, but there are 3}}
  %b = ctran.range %r[%x : "x"] from %cm size %c1
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @index_c8_wraps grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index

  // expected-error @below {{takes an interval from a coordinate on, which must be 1 place or all 4 of the axis}}
  %b = ctran.range %r from %x : "x" size %c2
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @index_c3_slot grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index

  %s = ctran.slots "s" [2] per_run 1
  // expected-error @below {{indexes dimension 0 of size 2 with 2}}
  %b = ctran.slot %s[%c2]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @range_c1_shifted grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index
  %n = ctran.reindex %w along 0 ["x" = 4] resident extent 32
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">

  // expected-error @below {{takes a piece of a resident space that its rank does not store}}
  %b = ctran.range %n[%px : "x"]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @range_c1_prefix grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index
  %n = ctran.reindex %w along 0 ["x" = 4, "y" = 2] resident extent 64
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">

  // expected-error @below {{takes a piece of a resident space that its rank does not store}}
  %b = ctran.range %n[%x : "x"]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @range_c1_peer grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index
  %n = ctran.reindex %w along 0 ["x" = 4] resident extent 32
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">

  %v = ctran.peer_view %n at (%px : "x", %y : "y") : !ctran.window
  %fine = ctran.range %v[%px : "x"]
  // expected-error @below {{takes a piece of a resident space that its rank does not store}}
  %b = ctran.range %v[%x : "x"]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @range_c1_interval grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index
  %n = ctran.reindex %w along 0 ["x" = 4] resident extent 32
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">

  // expected-error @below {{takes an interval of pieces of a resident space, which stores one}}
  %b = ctran.range %n from %x : "x" size %c4
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @range_c2_size grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index
  %n = ctran.reindex %w along 0 ["x" = 4] resident extent 32
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">

  %k = builtin.unrealized_conversion_cast %c1 : index to !ctran.size
  // expected-error @below {{needs a size that comes from ctran.count}}
  %b = ctran.range %r[%x : "x"] sized %k
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @range_c3_capacity grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<8x6xf32>
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c9 = arith.constant 9 : index
  %r = ctran.reindex %w ["x" = 4, 3]
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %cm = arith.constant -1 : index
  %n = ctran.reindex %w along 0 ["x" = 4] resident extent 32
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">

  %counts = ctran.window "n" scratch : memref<1xi32>
  %cr = ctran.range %counts
  // expected-note @below {{the size is bounded here}}
  %k, %t = ctran.count %cr max 13 after %entry on host
  // expected-error @below {{needs a box of at least 13 elements, found 12}}
  %b = ctran.range %r[%x : "x"] sized %k
  ctran.return %t : !ctran.token
}

// -----

// Cut along a dimension, a box counts by rows.
ctran.program @range_c3_rows grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers put : memref<2x8x6xf32>
  %x = ctran.coord "x"
  %r = ctran.reindex %w along 1 ["x" = 4]
  %counts = ctran.window "n" scratch : memref<1xi32>
  %cr = ctran.range %counts
  // expected-note @below {{the size is bounded here}}
  %k, %t = ctran.count %cr max 3 after %entry on host
  // expected-error @below {{needs a box of at least 3 rows, found 2}}
  %b = ctran.range %r[%x : "x"] sized %k
  ctran.return %t : !ctran.token
}
