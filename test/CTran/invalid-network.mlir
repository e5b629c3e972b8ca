// What is done through a switch: each of these programs breaks one constraint of dialect/SPEC.md, by whose name it goes.
// RUN: ncclx-opt %s --split-input-file --verify-diagnostics

ctran.program @members_c1_axis grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{names axis "z", which the grid does not have}}
  %b = ctran.members %w along ["z"]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @members_c1_twice grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{names axis "x" twice}}
  %b = ctran.members %w along ["x", "x"]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @members_c1_none grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{needs an axis along which its members are, found none}}
  %b = ctran.members %w along []
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @members_c3_members grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{needs a window that is not yet a view of other memory}}
  %b = ctran.members %m along ["y"]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @members_c3_peer grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  %p = ctran.peer_view %w at (%x : "x", %y : "y") : !ctran.window
  // expected-error @below {{needs a window that is not yet a view of other memory}}
  %b = ctran.members %p along ["y"]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @peer_view_c5_members grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{needs a window that is not yet a peer's view}}
  %p = ctran.peer_view %m at (%x : "x", %y : "y") : !ctran.window
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @members_c4 grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-note @below {{declared with peers put}}
  %p = ctran.window "p" scratch peers put : memref<16xf32>
  // expected-error @below {{sees window "p" that members do not reach by load and store}}
  %b = ctran.members %p along ["x"]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @range_c5 grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  %p = ctran.reindex %w ["x" = 4] resident extent 64
  %b = ctran.members %p along ["x"]
  // expected-error @below {{takes a box of a resident space in the memory of all members}}
  %a = ctran.range %b[%x : "x"]
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n1_copy grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{copies from the memory of all members; only a reduction reads it}}
  %t = ctran.copy %all to %own after %entry on ce
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n1_reduce grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{reduces own memory into that of all members}}
  %t = ctran.reduce sum accumulate f32 %own into %all after %entry on sm
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n1_label grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{speaks of one whole box of its own memory}}
  %t = ctran.sink %all holds "a" after %entry on host
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n2_dests grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{through a switch has one source and one destination, found 1 and 2}}
  %t = ctran.copy %own to %all, %other after %entry on ce
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n2_sources grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{through a switch has one source and one destination, found 2 and 1}}
  %t = ctran.reduce sum accumulate f32 %all, %own into %other after %entry on sm
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n3_interval grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  %a = ctran.range %m[%x : "x"] from %c0 size %c2
  // expected-error @below {{through a switch takes boxes of own memory or of all members', and no interval}}
  %t = ctran.copy %own to %a after %entry on ce
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n3_peer grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  %p = ctran.peer_view %q at (%x : "x", %y : "y") : !ctran.window
  %a = ctran.range %p[%x : "x"]
  // expected-error @below {{through a switch takes boxes of own memory or of all members'}}
  %t = ctran.copy %a to %all after %entry on ce
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n4 grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  %b = ctran.members %q along ["y"]
  %a = ctran.range %b[%x : "x"]
  // expected-error @below {{reduces over members along ["x"] into those along ["y"]}}
  %t = ctran.reduce sum accumulate f32 %all into %a after %entry on sm
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n5_copy grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{through a switch stands on lane sm or ce, found host}}
  %t = ctran.copy %own to %all after %entry on host
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n5_nic grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{through a switch stands on lane sm or ce, found nic}}
  %t = ctran.copy %own to %all after %entry on nic
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n5_reduce grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{through a switch stands on lane sm, found ce}}
  %t = ctran.reduce sum accumulate f32 %all into %own after %entry on ce
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n6_kind grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{through a switch: a switch has no prod of f32 accumulated in f32}}
  %t = ctran.reduce prod accumulate f32 %all into %own after %entry on sm
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n6_max grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{through a switch: a switch has no max of f32 accumulated in f32}}
  %t = ctran.reduce max accumulate f32 %all into %own after %entry on sm
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n6_accumulate grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{through a switch: a switch has no sum of f32 accumulated in f64}}
  %t = ctran.reduce sum accumulate f64 %all into %own after %entry on sm
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n6_scale grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{through a switch neither scales nor divides}}
  %t = ctran.reduce sum scale 0.5 accumulate f32 %all into %own after %entry on sm
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n6_divide grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  // expected-error @below {{through a switch neither scales nor divides}}
  %t = ctran.reduce sum divide 4 accumulate f32 %all into %every after %entry on sm
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @network_n7 grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  %h = ctran.window "h" scratch peers load_store : memref<12xf16>
  %g = ctran.reindex %h ["x" = 4]
  %b = ctran.members %g along ["x"]
  %a = ctran.range %b[%x : "x"]
  %o = ctran.range %g[%x : "x"]
  // expected-error @below {{reaches boxes of "h" at multiples of 2 bytes; through a switch they begin at multiples of 4}}
  %t = ctran.copy %o to %a after %entry on ce
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @notify_c2_members grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %v = ctran.window "v" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %q = ctran.reindex %v ["x" = 4, 2]
  %m = ctran.members %r along ["x"]
  %n = ctran.members %q along ["x"]
  %own = ctran.range %q[%x : "x"]
  %other = ctran.range %r[%x : "x"]
  %all = ctran.range %m[%x : "x"]
  %every = ctran.range %n[%x : "x"]
  %s = ctran.slots "s" [] per_run 1
  %p = ctran.peer_view %s at (%x : "x", %y : "y") : !ctran.slots
  %a = ctran.slot %p
  // expected-error @below {{notifies, but has no destination at a peer}}
  %t = ctran.copy %own to %all notify %a after %entry on ce
  ctran.return %entry : !ctran.token
}

// -----

ctran.program @members_c2 grid ["x" = 1025] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  // expected-error @below {{needs at most 1024 members}}
  %m = ctran.members %w along ["x"]
  ctran.return %entry : !ctran.token
}
