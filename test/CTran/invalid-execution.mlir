// RUN: ncclx-opt %s --split-input-file --verify-diagnostics
// Ops that lanes execute: see the constraints of SPEC.md.

ctran.program @lane_c1_index grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %cm = arith.constant -1 : index

  // expected-error @below {{needs a lane index of at least 0, found -1}}
  %t = ctran.flush after %entry on sm[%cm]
  ctran.return %t : !ctran.token
}

// -----

ctran.program @raise_c1_interval grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %some = ctran.slot %s from %c0 size %c2

  // expected-error @below {{raises one slot, found an interval}}
  %t = ctran.signal %some after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @raise_c1_prefix grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{raises one slot, found all slots below a prefix}}
  %t = ctran.signal %all after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @reach_c1_put_sm grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  // expected-note @below {{the window is declared here}}
  %put = ctran.window "put" scratch peers put : memref<16xf32>
  %pr = ctran.reindex %put ["x" = 4, 2]
  %pv = ctran.peer_view %pr at (%px : "x", %y : "y") : !ctran.window
  %pb = ctran.range %pv[%x : "x"]

  // expected-error @below {{on sm needs peers load_store of window "put", found put}}
  %t = ctran.copy %a to %pb after %entry on sm
  ctran.return %t : !ctran.token
}

// -----

ctran.program @reach_c1_put_ce grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  // expected-note @below {{the window is declared here}}
  %put = ctran.window "put" scratch peers put : memref<16xf32>
  %pr = ctran.reindex %put ["x" = 4, 2]
  %pv = ctran.peer_view %pr at (%px : "x", %y : "y") : !ctran.window
  %pb = ctran.range %pv[%x : "x"]

  // expected-error @below {{on ce needs peers load_store of window "put", found put}}
  %t = ctran.copy %a to %pb after %entry on ce
  ctran.return %t : !ctran.token
}

// -----

ctran.program @reach_c1_put_host grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  // expected-note @below {{the window is declared here}}
  %put = ctran.window "put" scratch peers put : memref<16xf32>
  %pr = ctran.reindex %put ["x" = 4, 2]
  %pv = ctran.peer_view %pr at (%px : "x", %y : "y") : !ctran.window
  %pb = ctran.range %pv[%x : "x"]

  // expected-error @below {{on host needs peers load_store of window "put", found put}}
  %t = ctran.copy %a to %pb after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @reach_c1_get grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  // expected-note @below {{the window is declared here}}
  %put = ctran.window "put" scratch peers put : memref<16xf32>
  %pr = ctran.reindex %put ["x" = 4, 2]
  %pv = ctran.peer_view %pr at (%px : "x", %y : "y") : !ctran.window
  %pb = ctran.range %pv[%x : "x"]

  // expected-error @below {{on ce needs peers load_store of window "put", found put}}
  %t = ctran.copy %pb to %a after %entry on ce
  ctran.return %t : !ctran.token
}

// -----

ctran.program @boxes_c1_type grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %i = ctran.window "i" scratch : memref<4xi32>
  %ib = ctran.range %i

  // expected-error @below {{needs boxes of one element type, found 'f32' and 'i32'}}
  %t = ctran.copy %a to %ib after %entry on ce
  ctran.return %t : !ctran.token
}

// -----

ctran.program @boxes_c2_equal grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" input 0 peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{needs boxes of equal size, found 4 elements of "w" and 2 of "w"}}
  %t = ctran.copy %a to %half after %entry on ce
  ctran.return %t : !ctran.token
}

// -----

ctran.program @boxes_c2_uneven grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" input 0 peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %u = ctran.window "u" input 1 : memref<10xf32>
  %ur = ctran.reindex %u ["x" = 4]
  %ub = ctran.range %ur[%x : "x"]

  // expected-error @below {{needs boxes of equal size, found 4 elements of "w" and 2 to 3 of "u"}}
  %t = ctran.copy %a to %ub after %entry on ce
  ctran.return %t : !ctran.token
}

// -----

ctran.program @boxes_c2_scratch grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" input 0 peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %u = ctran.window "u" scratch : memref<10xf32>
  %ur = ctran.reindex %u ["x" = 4]
  %ub = ctran.range %ur[%x : "x"]

  // Scratch memory may be larger than what it takes, but not smaller.
  // expected-error @below {{needs boxes of equal size, found 4 elements of "w" and 2 to 3 of "u"}}
  %t = ctran.copy %a to %ub after %entry on ce
  ctran.return %t : !ctran.token
}

// -----

// An interval stands for the boxes of the last dimension in it, not for those of its own.
ctran.program @boxes_c2_reduce_below grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %w = ctran.window "w" scratch : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %all = ctran.range %r from %c0 size %c4
  %o = ctran.window "o" output 0 : memref<4xf32>
  %out = ctran.range %o
  // expected-error @below {{needs boxes of equal size, found 2 elements of "w" and 4 of "o"}}
  %t = ctran.reduce sum accumulate f32 %all into %out after %entry on sm
  ctran.return %t : !ctran.token
}

// -----

ctran.program @boxes_c2_reduce grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" input 0 peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %two = ctran.range %r[%x : "x"] from %c0 size %c2

  // expected-error @below {{needs boxes of equal size, found 2 elements of "w" and 4 of "w"}}
  %t = ctran.reduce sum accumulate f32 %a, %two into %b after %entry on sm
  ctran.return %t : !ctran.token
}

// -----

ctran.program @notify_c1_local grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{notifies, but has no destination at a peer}}
  %t = ctran.copy %a to %b notify %slot after %entry on ce
  ctran.return %t : !ctran.token
}

// -----

ctran.program @notify_c2_own grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{notifies a slot at its own rank where no destination lands}}
  %t = ctran.copy %a to %p notify %slot after %entry on ce
  ctran.return %t : !ctran.token
}

// -----

ctran.program @notify_c2_other grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %px2 = ctran.shift %x by %c2 : !ctran.coord<"x">
  %vs2 = ctran.peer_view %s at (%px2 : "x", %y : "y") : !ctran.slots
  %up2 = ctran.slot %vs2[%x : "x"]

  // expected-error @below {{notifies a slot at a peer where no destination lands}}
  %t = ctran.copy %a to %p notify %up2 after %entry on ce
  ctran.return %t : !ctran.token
}

// -----

ctran.program @notify_c3_inband grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %is = ctran.slots "is" ["x" = 4] per_run 1 realisation inband
  %iv = ctran.peer_view %is at (%px : "x", %y : "y") : !ctran.slots
  %iu = ctran.slot %iv[%x : "x"]

  // expected-error @below {{notifies inband slots, which needs lane sm, found ce}}
  %t = ctran.copy %a to %p notify %iu after %entry on ce
  ctran.return %t : !ctran.token
}

// -----

ctran.program @copy_c1_no_dest grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{needs at least one destination}}
  %t = "ctran.copy"(%a, %entry) <{lane = #ctran<lane_kind ce>, operandSegmentSizes = array<i32: 1, 0, 0, 1, 0>}> : (!ctran.range, !ctran.token) -> !ctran.token
  ctran.return %t : !ctran.token
}

// -----

ctran.program @copy_c2_peers grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %q = ctran.range %v[%px : "x"]

  // expected-error @below {{moves bytes from one peer to another: one end must be the own memory}}
  %t = ctran.copy %q to %p after %entry on ce
  ctran.return %t : !ctran.token
}

// -----

ctran.program @copy_c3_sized grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %n = ctran.window "n" scratch : memref<1xi64>
  %nr = ctran.range %n
  %k, %t = ctran.count %nr max 4 after %entry on host
  %as = ctran.range %r[%x : "x"] sized %k

  // expected-error @below {{needs the same run-time size at both ends}}
  %u = ctran.copy %as to %b after %t on ce
  ctran.return %u : !ctran.token
}

// -----

ctran.program @reduce_c1_no_source grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{needs at least one source and one destination}}
  %t = "ctran.reduce"(%a, %entry) <{kind = #ctran<reduce_kind sum>, accumulate = f32, lane = #ctran<lane_kind sm>, operandSegmentSizes = array<i32: 0, 1, 0, 1, 0>}> : (!ctran.range, !ctran.token) -> !ctran.token
  ctran.return %t : !ctran.token
}

// -----

ctran.program @reduce_c2_kind grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{of 'f32' needs an accumulation type of its kind and at least its width, found 'i32'}}
  %t = ctran.reduce sum accumulate i32 %a, %b into %a after %entry on sm
  ctran.return %t : !ctran.token
}

// -----

ctran.program @reduce_c2_width grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{of 'f32' needs an accumulation type of its kind and at least its width, found 'f16'}}
  %t = ctran.reduce sum accumulate f16 %a, %b into %a after %entry on sm
  ctran.return %t : !ctran.token
}

// -----

ctran.program @reduce_c3_interval grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %two = ctran.range %r[%x : "x"] from %c0 size %c2

  // expected-error @below {{needs a box as a destination, found an interval}}
  %t = ctran.reduce sum accumulate f32 %half into %two after %entry on sm
  ctran.return %t : !ctran.token
}

// -----

func.func private @f(memref<16xf32>)
ctran.program @compute_c1_view grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{takes windows as declared, found a view}}
  %t = ctran.compute @f(%r) reads %a after %entry on compute flops 1.0 bytes 1.0 sms 1
  ctran.return %t : !ctran.token
}

// -----

func.func private @f(memref<16xf32>)
ctran.program @compute_c2_peer grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{reads and writes own memory only, found a box of "w" at a peer}}
  %t = ctran.compute @f(%w) reads %p after %entry on compute flops 1.0 bytes 1.0 sms 1
  ctran.return %t : !ctran.token
}

// -----

func.func private @f(memref<16xf32>)
ctran.program @compute_c3_argument grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %o = ctran.window "o" scratch : memref<16xf32>

  // expected-error @below {{reads or writes window "w", which is not among its arguments}}
  %t = ctran.compute @f(%o) writes %a after %entry on compute flops 1.0 bytes 1.0 sms 1
  ctran.return %t : !ctran.token
}

// -----

func.func private @f(memref<16xf32>)
ctran.program @compute_c4_flops grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{needs finite flops and bytes of at least 0}}
  %t = ctran.compute @f(%w) reads %a after %entry on compute flops -1.0 bytes 1.0 sms 1
  ctran.return %t : !ctran.token
}

// -----

func.func private @f(memref<16xf32>)
ctran.program @compute_c4_bytes grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{needs finite flops and bytes of at least 0}}
  %t = ctran.compute @f(%w) reads %a after %entry on compute flops 1.0 bytes 0x7FF0000000000000 sms 1
  ctran.return %t : !ctran.token
}

// -----

func.func private @f(memref<16xf32>)
ctran.program @compute_c5_sms grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{needs sms of at least 0, found -1}}
  %t = ctran.compute @f(%w) reads %a after %entry on compute flops 1.0 bytes 1.0 sms -1
  ctran.return %t : !ctran.token
}

// -----

func.func private @f(memref<16xf32>)
ctran.program @compute_c6_callee grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{calls @g, which is not a function of the module}}
  %t = ctran.compute @g(%w) reads %a after %entry on compute flops 1.0 bytes 1.0 sms 1
  ctran.return %t : !ctran.token
}

// -----

// expected-note @below {{which has type}}
func.func private @f(memref<8xf32>)
ctran.program @compute_c7_type grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{passes windows of types ('memref<16xf32>') to a function of another type}}
  %t = ctran.compute @f(%w) reads %a after %entry on compute flops 1.0 bytes 1.0 sms 1
  ctran.return %t : !ctran.token
}

// -----

ctran.program @signal_c1_inband grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %is = ctran.slots "is" [] per_run 1 realisation inband
  %i = ctran.slot %is

  // expected-error @below {{raises slots "is", which are inband: only a copy's notify raises them}}
  %t = ctran.signal %i after %entry on sm
  ctran.return %t : !ctran.token
}

// -----

ctran.program @wait_c1_peer grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{waits for its own slots only, found a peer's}}
  %t = ctran.wait %up >= %c1 after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @wait_c2_inband grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %is = ctran.slots "is" [] per_run 1 realisation inband
  %i = ctran.slot %is

  // expected-error @below {{waits for inband slots, which needs lane sm, found host}}
  %t = ctran.wait %i >= %c1 after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @count_c1_peer grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{reads own memory only, found a peer's}}
  %k, %t = ctran.count %p max 1 after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @count_c2_type grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{needs i32 or i64, found 'f32'}}
  %k, %t = ctran.count %a max 1 after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @count_c3_one grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %n = ctran.window "n" scratch : memref<2xi64>
  %nr = ctran.range %n
  %n2 = ctran.reindex %n [2]
  %n0 = ctran.range %n2[%c0]

  // expected-error @below {{needs a box of one element}}
  %k, %t = ctran.count %nr max 1 after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @count_c4_max grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %n = ctran.window "n" scratch : memref<2xi64>
  %nr = ctran.range %n
  %n2 = ctran.reindex %n [2]
  %n0 = ctran.range %n2[%c0]

  // expected-error @below {{needs a maximum of at least 0, found -1}}
  %k, %t = ctran.count %n0 max -1 after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @label_c1_peer grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{speaks of one whole box of its own memory}}
  %t = ctran.source %p holds "v" after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @label_c1_interval grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]
  %two = ctran.range %r[%x : "x"] from %c0 size %c2

  // expected-error @below {{speaks of one whole box of its own memory}}
  %t = ctran.sink %two holds "v" after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @label_c2_axis grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{speaks of axis "z", which the grid does not have}}
  %t = ctran.sink %a holds "v" summed ["z"] after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @label_c3_twice grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{speaks of axis "x" twice}}
  %t = ctran.sink %a holds "v"[%x : "x"] summed ["x", "x"] after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @label_c3_both grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" scratch peers load_store : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4, 2]
  %v = ctran.peer_view %r at (%px : "x", %y : "y") : !ctran.window
  %s = ctran.slots "s" ["x" = 4] per_run 1
  %vs = ctran.peer_view %s at (%px : "x", %y : "y") : !ctran.slots
  %a = ctran.range %r[%x : "x"]
  %b = ctran.range %r[%px : "x"]
  %half = ctran.range %r[%x : "x", %c0]
  %p = ctran.range %v[%x : "x"]
  %slot = ctran.slot %s[%x : "x"]
  %all = ctran.slot %s
  %up = ctran.slot %vs[%x : "x"]

  // expected-error @below {{speaks of axis "x" twice}}
  %t = ctran.sink %a holds "v"[%x : "x"] summed ["x"] shared ["x"] after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @reduce_c4_kind grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %w = ctran.window "w" scratch : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4]
  %a = ctran.range %r[%x : "x"]
  // expected-error @below {{scales the operands of a sum of floats only, found max of 'f32'}}
  %t = ctran.reduce max scale 5.0e-01 accumulate f32 %a into %a after %entry on sm
  ctran.return %t : !ctran.token
}

// -----

ctran.program @reduce_c4_integers grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %w = ctran.window "w" scratch : memref<16xi32>
  %r = ctran.reindex %w ["x" = 4]
  %a = ctran.range %r[%x : "x"]
  // expected-error @below {{scales the operands of a sum of floats only, found sum of 'i32'}}
  %t = ctran.reduce sum scale 5.0e-01 accumulate i32 %a into %a after %entry on sm
  ctran.return %t : !ctran.token
}

// -----

ctran.program @reduce_c5_kind grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %w = ctran.window "w" scratch : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4]
  %a = ctran.range %r[%x : "x"]
  // expected-error @below {{divides a sum by at least 1, found prod divided by 2}}
  %t = ctran.reduce prod divide 2 accumulate f32 %a into %a after %entry on sm
  ctran.return %t : !ctran.token
}

// -----

ctran.program @reduce_c5_zero grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %w = ctran.window "w" scratch : memref<16xf32>
  %r = ctran.reindex %w ["x" = 4]
  %a = ctran.range %r[%x : "x"]
  // expected-error @below {{divides a sum by at least 1, found sum divided by 0}}
  %t = ctran.reduce sum divide 0 accumulate f32 %a into %a after %entry on sm
  ctran.return %t : !ctran.token
}

// -----

ctran.program @label_c4_kind grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch : memref<16xf32>
  %a = ctran.range %w
  // expected-error @below {{says how a reduction is made: `by` a kind along summed axes}}
  %t = ctran.sink %a holds "v" by sum after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @label_c4_scale grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch : memref<16xf32>
  %a = ctran.range %w
  // expected-error @below {{of a sum its scale and a divisor of at least 1}}
  %t = ctran.sink %a holds "v" summed ["x"] by max scale 2.0 after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @label_c4_divide grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch : memref<16xf32>
  %a = ctran.range %w
  // expected-error @below {{of a sum its scale and a divisor of at least 1}}
  %t = ctran.sink %a holds "v" summed ["x"] by sum divide 0 after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @label_c5_not_all_axes grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch : memref<16xf32>
  %a = ctran.range %w
  // expected-error @below {{names contributors `among` ranks of the grid, each once, of what is summed along all axes}}
  %t = ctran.sink %a holds "v" summed ["x"] among [0, 1] by sum after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @label_c5_twice grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch : memref<16xf32>
  %a = ctran.range %w
  // expected-error @below {{names contributors `among` ranks of the grid, each once}}
  %t = ctran.sink %a holds "v" summed ["x"] among [0, 3, 0] by sum after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @label_c5_no_rank grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch : memref<16xf32>
  %a = ctran.range %w
  // expected-error @below {{names contributors `among` ranks of the grid, each once}}
  %t = ctran.sink %a holds "v" summed ["x"] among [0, 4] after %entry on host
  ctran.return %t : !ctran.token
}

// -----

ctran.program @range_c4_reduce grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %w = ctran.window "w" scratch : memref<4xi32>
  %r = ctran.reindex %w ["x" = 4]
  %b = ctran.range %r[%x : "x"]
  %k, %t = ctran.count %b max 1 after %entry on host
  %as = ctran.range %r[%x : "x"] sized %k
  // expected-error @below {{takes a box of a size known at run time, which only ctran.copy does}}
  %u = ctran.reduce sum accumulate i32 %as into %b after %t on sm
  ctran.return %u : !ctran.token
}

// -----

ctran.program @range_c4_count grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %w = ctran.window "w" scratch : memref<4xi32>
  %r = ctran.reindex %w ["x" = 4]
  %b = ctran.range %r[%x : "x"]
  %k, %t = ctran.count %b max 1 after %entry on host
  %as = ctran.range %r[%x : "x"] sized %k
  // expected-error @below {{takes a box of a size known at run time, which only ctran.copy does}}
  %l, %u = ctran.count %as max 4 after %t on host
  ctran.return %u : !ctran.token
}

// -----

func.func private @sized(memref<4xi32>)
ctran.program @range_c4_compute grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %w = ctran.window "w" scratch : memref<4xi32>
  %r = ctran.reindex %w ["x" = 4]
  %b = ctran.range %r[%x : "x"]
  %k, %t = ctran.count %b max 1 after %entry on host
  %as = ctran.range %r[%x : "x"] sized %k
  // expected-error @below {{takes a box of a size known at run time, which only ctran.copy does}}
  %u = ctran.compute @sized(%w) reads %as after %t on compute flops 0.0 bytes 0.0 sms 0
  ctran.return %u : !ctran.token
}
