// No generic pass moves, merges or drops an op of a lane, a window or slots; pure ops are theirs.
// RUN: ncclx-opt %s --pass-pipeline='builtin.module(canonicalize,cse,loop-invariant-code-motion,control-flow-sink,canonicalize,cse,symbol-dce,remove-dead-values)' \
// RUN:   | FileCheck %s
// RUN: ncclx-opt %s --pass-pipeline='builtin.module(loop-invariant-subset-hoisting,sroa,mem2reg,int-range-optimizations,fold-memref-alias-ops,sccp,inline)' \
// RUN:   | FileCheck %s --check-prefix=OTHER

// CHECK-LABEL: ctran.program @order
// OTHER-LABEL: ctran.program @order
ctran.program @order grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %x = ctran.coord "x"
  // CHECK-DAG: ctran.window "used"
  // CHECK-DAG: ctran.window "unused" input 0
  // CHECK-DAG: ctran.slots "none"
  // CHECK-DAG: ctran.slots "s"
  %w = ctran.window "used" scratch : memref<16xf32>
  %u = ctran.window "unused" input 0 : memref<16xf32>
  %none = ctran.slots "none" [] per_run 0
  %s = ctran.slots "s" [] per_run 2
  // Equal pure ops become one, and leave the loop.
  // CHECK: ctran.reindex
  // CHECK-NOT: ctran.reindex
  // CHECK: ctran.range
  // CHECK: ctran.range
  %r = ctran.reindex %w [4]
  %slot = ctran.slot %s
  %last = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %entry) -> (!ctran.token) {
    // CHECK-NOT: ctran.range
    %again = ctran.reindex %w [4]
    %a = ctran.range %again[%c0]
    %b = ctran.range %r[%c1]
    // CHECK: scf.for
    // CHECK-NEXT: ctran.signal
    // CHECK-NEXT: ctran.signal
    // CHECK-NEXT: ctran.wait
    // CHECK-NEXT: ctran.wait
    // CHECK-NEXT: ctran.flush
    // CHECK-NEXT: ctran.copy
    // CHECK-NEXT: ctran.copy
    // CHECK-NEXT: ctran.reduce
    // CHECK-NEXT: ctran.source
    // CHECK-NEXT: ctran.sink
    // CHECK-NEXT: ctran.signal
    // CHECK-NEXT: scf.yield
    // OTHER: scf.for
    // OTHER: ctran.signal
    // OTHER-NEXT: ctran.signal
    // OTHER-NEXT: ctran.wait
    // OTHER-NEXT: ctran.wait
    // OTHER-NEXT: ctran.flush
    // OTHER-NEXT: ctran.copy
    // OTHER-NEXT: ctran.copy
    // OTHER-NEXT: ctran.reduce
    // OTHER-NEXT: ctran.source
    // OTHER-NEXT: ctran.sink
    // OTHER-NEXT: ctran.signal
    // OTHER-NEXT: scf.yield
    %g0 = ctran.signal %slot after %entry on host
    %g1 = ctran.signal %slot after %entry on host
    %w0 = ctran.wait %slot >= %c1 after %entry on host
    %w1 = ctran.wait %slot >= %c1 after %entry on host
    %f = ctran.flush after %entry on host
    %p0 = ctran.copy %a to %b after %entry on ce
    %p1 = ctran.copy %a to %b after %entry on ce
    %d = ctran.reduce sum accumulate f32 %a, %b into %a after %entry on sm
    %o = ctran.source %a holds "v" after %entry on host
    %k = ctran.sink %a holds "v" after %entry on host
    %g = ctran.signal %slot after %g0, %g1, %w0, %w1, %f, %p0, %p1, %d, %o, %k, %t on host
    scf.yield %g : !ctran.token
  }
  ctran.return %last : !ctran.token
}

// CHECK-LABEL: ctran.program @shifts
ctran.program @shifts grid ["x" = 4, "y" = 3] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  // CHECK-DAG: %[[X:.+]] = ctran.coord "x"
  // CHECK-DAG: %[[Y:.+]] = ctran.coord "y"
  // CHECK-DAG: %[[THREE:.+]] = arith.constant 3 : index
  // CHECK: %[[X3:.+]] = ctran.shift %[[X]] by %[[THREE]]
  // CHECK-NOT: ctran.shift
  // CHECK: ctran.peer_view %{{.+}} at (%[[X3]] : "x", %[[Y]] : "y")
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %x1 = ctran.shift %x by %c1 : !ctran.coord<"x">
  %x3 = ctran.shift %x1 by %c2 : !ctran.coord<"x">
  %y0 = ctran.shift %y by %c0 : !ctran.coord<"y">
  %s = ctran.slots "s" [] per_run 1
  %v = ctran.peer_view %s at (%x3 : "x", %y0 : "y") : !ctran.slots
  %slot = ctran.slot %v
  %t = ctran.signal %slot after %entry on host
  ctran.return %t : !ctran.token
}
