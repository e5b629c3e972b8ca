// RUN: ncclx-opt %s --split-input-file --verify-diagnostics
// What a program may hold: axis, dim, collective and program constraints of SPEC.md.

// expected-error @below {{an axis needs a name without quotes, found ''}}
ctran.program @axis_a1_no_name grid ["" = 4] {
^bb0(%entry: !ctran.token):
  ctran.return
}

// -----

// expected-error @below {{axis "x" needs a size from 1 to 2^31 - 1, found 0}}
ctran.program @axis_a2_size grid ["x" = 0] {
^bb0(%entry: !ctran.token):
  ctran.return
}

// -----

ctran.program @dim_d1_name grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{a dimension's axis must be a name without quotes, found 'a"b'}}
  %s = ctran.slots "s" ["a\22b" = 4] per_run 1
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @dim_d2_size grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{a dimension needs a size from 1 to 2^31 - 1, found 0}}
  %s = ctran.slots "s" [0] per_run 1
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @dim_d3_granule grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{a dimension needs a granule from 1 to 2^40, found 0}}
  %s = ctran.slots "s" [4 granule 0] per_run 1
  ctran.return %entry : !ctran.token
}

// -----

// expected-error @below {{a collective needs name, kind and algorithm without quotes, found ''}}
ctran.program @collective_l1_name grid ["x" = 4] collectives [#ctran.collective<"", "all_gather", "ring", ["x"], 4>] {
^bb0(%entry: !ctran.token):
  ctran.return
}

// -----

// expected-error @below {{collective "c0" needs bytes of at least 0, found -1}}
ctran.program @collective_l2_bytes grid ["x" = 4] collectives [#ctran.collective<"c0", "all_gather", "ring", ["x"], -1>] {
^bb0(%entry: !ctran.token):
  ctran.return
}

// -----

// expected-error @below {{has two axes named "x"}}
ctran.program @program_c1_axes grid ["x" = 4, "x" = 2] {
^bb0(%entry: !ctran.token):
  ctran.return
}

// -----

// expected-error @below {{needs fewer than 2^31 ranks}}
ctran.program @program_c2_ranks grid ["x" = 65536, "y" = 65536] {
^bb0(%entry: !ctran.token):
  ctran.return
}

// -----

// expected-error @below {{has two collectives named "c0"}}
ctran.program @program_c3_collectives grid ["x" = 4] collectives [#ctran.collective<"c0", "a", "b", [], 4>, #ctran.collective<"c0", "a", "b", [], 4>] {
^bb0(%entry: !ctran.token):
  ctran.return
}

// -----

// expected-error @below {{has collective "c0" over axis "z", which the grid does not have}}
ctran.program @program_c4_axis grid ["x" = 4] collectives [#ctran.collective<"c0", "a", "b", ["z"], 4>] {
^bb0(%entry: !ctran.token):
  ctran.return
}

// -----

// expected-error @below {{needs a body with one argument, the entry token}}
ctran.program @program_c5_entry grid ["x" = 4] {
  ctran.return
}

// -----

// expected-error @below {{needs a body that ends with ctran.return}}
ctran.program @program_c6_return grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  linalg.yield
}

// -----

ctran.program @program_c7_foreign grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{does not belong in a ctran.program: expected ctran ops, scf.for, scf.if and arithmetic on indices}}
  %m = memref.alloc() : memref<4xf32>
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @program_c7_arithmetic grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %f = arith.constant 1.0 : f32
  // expected-error @-1 {{does not belong in a ctran.program}}
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @program_c7_type grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c = ctran.slots "c" [] per_run 4
  %slot = ctran.slot %c
  // expected-error @below {{does not belong in a ctran.program}}
  %lo = arith.constant 0 : i32
  %t = scf.for %i = %lo to %lo step %lo iter_args(%a = %entry) -> (!ctran.token) : i32 {
    %b = ctran.signal %slot after %a on host
    scf.yield %b : !ctran.token
  }
  ctran.return %t : !ctran.token
}

// -----

ctran.program @program_c8_step_zero grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c = ctran.slots "c" [] per_run 4
  %slot = ctran.slot %c
  %lo = arith.constant 0 : index
  %step = arith.constant 0 : index
  // expected-error @below {{needs a constant step of at least 1, found 0}}
  %t = scf.for %i = %lo to %lo step %step iter_args(%a = %entry) -> (!ctran.token) {
    %b = ctran.signal %slot after %a on host
    scf.yield %b : !ctran.token
  }
  ctran.return %t : !ctran.token
}

// -----

ctran.program @program_c8_step_minus grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c = ctran.slots "c" [] per_run 4
  %slot = ctran.slot %c
  %lo = arith.constant 0 : index
  %step = arith.constant -1 : index
  // expected-error @below {{needs a constant step of at least 1, found -1}}
  %t = scf.for %i = %lo to %lo step %step iter_args(%a = %entry) -> (!ctran.token) {
    %b = ctran.signal %slot after %a on host
    scf.yield %b : !ctran.token
  }
  ctran.return %t : !ctran.token
}

// -----

ctran.program @program_c9_bound grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c = ctran.slots "c" [] per_run 4
  %slot = ctran.slot %c
  %lo = arith.constant 0 : index
  %one = arith.constant 1 : index
  %x = ctran.coord "x"
  // expected-note @below {{this value differs between ranks}}
  %n = ctran.coord_value %x : !ctran.coord<"x">
  %hi = arith.addi %n, %one : index
  // expected-error @below {{needs bounds that are the same on every rank}}
  %t = scf.for %i = %lo to %hi step %one iter_args(%a = %entry) -> (!ctran.token) {
    %b = ctran.signal %slot after %a on host
    scf.yield %b : !ctran.token
  }
  ctran.return %t : !ctran.token
}

// -----

ctran.program @program_c9_through_branch grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c = ctran.slots "c" [] per_run 4
  %slot = ctran.slot %c
  %lo = arith.constant 0 : index
  %one = arith.constant 1 : index
  %x = ctran.coord "x"
  // expected-note @below {{this value differs between ranks}}
  %n = ctran.table %x [0, 1, 1, 0] : !ctran.coord<"x">
  %is = arith.cmpi eq, %n, %one : index
  %hi = scf.if %is -> index {
    scf.yield %one : index
  } else {
    scf.yield %lo : index
  }
  // expected-error @below {{needs bounds that are the same on every rank}}
  %t = scf.for %i = %lo to %hi step %one iter_args(%a = %entry) -> (!ctran.token) {
    %b = ctran.signal %slot after %a on host
    scf.yield %b : !ctran.token
  }
  ctran.return %t : !ctran.token
}

// -----

ctran.program @program_c10_empty grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %lo = arith.constant 0 : index
  %one = arith.constant 1 : index
  %hi = arith.constant 1000000000000000000 : index
  // expected-error @below {{holds no op of a lane}}
  scf.for %i = %lo to %hi step %one {
  }
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @program_c11_carried grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %one = arith.constant 1 : index
  %x = ctran.coord "x"
  %yes = arith.constant true
  // expected-error @below {{carries indices, conditions and tokens only, found '!ctran.coord<"x">'}}
  %y = scf.if %yes -> !ctran.coord<"x"> {
    scf.yield %x : !ctran.coord<"x">
  } else {
    scf.yield %x : !ctran.coord<"x">
  }
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @program_c12_token grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{'ctran.flush' op makes a token that nothing uses: let an op come after it, or return it}}
  %t = ctran.flush after %entry on host
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @program_c12_loop grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %lo = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error @below {{'scf.for' op makes a token that nothing uses}}
  %t = scf.for %i = %lo to %one step %one iter_args(%a = %entry) -> (!ctran.token) {
    %b = ctran.flush after %a on host
    scf.yield %b : !ctran.token
  }
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @program_c13_name grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-note @below {{which is declared here}}
  %a = ctran.window "w" scratch : memref<4xf32>
  // expected-error @below {{has the name "w" of another}}
  %b = ctran.slots "w" [] per_run 1
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @program_c14_dense grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{has position 1, but there are 1 inputs}}
  %a = ctran.window "w" input 1 : memref<4xf32>
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @program_c14_twice grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  // expected-note @below {{which is declared here}}
  %a = ctran.window "a" output 0 : memref<4xf32>
  // expected-error @below {{has position 0 of another output}}
  %b = ctran.window "b" output 0 : memref<4xf32>
  ctran.return %entry : !ctran.token
}

// -----

// expected-error @below {{must stand in a ctran.program}}
%x = "ctran.coord"() <{axis = "x"}> : () -> !ctran.coord<"x">

// -----

// Definitions in a circle end with the dominance error, not never.
ctran.program @circle grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %c1 = arith.constant 1 : index
  // expected-error @below {{operand #0 does not dominate this use}}
  %a = ctran.shift %b by %c1 : !ctran.coord<"x">
  // expected-note @below {{operand defined here}}
  %b = ctran.shift %a by %c1 : !ctran.coord<"x">
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @circle_in_index grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch : memref<4xf32>
  %r = ctran.reindex %w ["x" = 4]
  %c1 = arith.constant 1 : index
  %a = ctran.shift %b by %c1 : !ctran.coord<"x">
  %b = ctran.shift %a by %c1 : !ctran.coord<"x">
  // expected-error @below {{a coordinate must come from ctran ops of this program}}
  %v = ctran.range %r[%a : "x"]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @circle_of_windows grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  // expected-error @below {{needs a window that is not yet reindexed}}
  %a = ctran.reindex %b ["x" = 4]
  %b = ctran.reindex %a ["x" = 4]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @circle_of_numbers grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = arith.addi %b, %c1 : index
  // expected-error @-1 {{operand #0 does not dominate this use}}
  // expected-note @below {{operand defined here}}
  %b = arith.addi %a, %c1 : index
  %t = scf.for %i = %c0 to %a step %c1 iter_args(%u = %entry) -> (!ctran.token) {
    %f = ctran.flush after %u on host
    scf.yield %f : !ctran.token
  }
  ctran.return %t : !ctran.token
}
