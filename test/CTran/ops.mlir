// Every op, once and in each form of its text: custom, generic, bytecode.
// RUN: ncclx-opt %s --verify-roundtrip | FileCheck %s
// RUN: ncclx-opt %s --mlir-print-op-generic | ncclx-opt | FileCheck %s
// RUN: ncclx-opt %s --emit-bytecode | ncclx-opt | FileCheck %s

func.func private @gemm(memref<8x8xf32>, memref<8x8xf32>)

// CHECK-LABEL: ctran.program @all grid ["x" = 4, "y" = 2] rx_visible
// CHECK-SAME:    collectives [#ctran.collective<"c0", "all_gather", "ring", ["x"], 256>]
ctran.program @all grid ["x" = 4, "y" = 2] rx_visible
    collectives [#ctran.collective<"c0", "all_gather", "ring", ["x"], 256>] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  // CHECK: %[[X:.+]] = ctran.coord "x"
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  // CHECK: %[[PX:.+]] = ctran.shift %[[X]] by %{{.+}} : <"x">
  %px = ctran.shift %x by %c1 : !ctran.coord<"x">
  // CHECK: ctran.coord_value %[[X]] : <"x">
  %n = ctran.coord_value %x : !ctran.coord<"x">
  // CHECK: ctran.table %[[X]] [1, 2, 3, 0] : <"x">
  %t = ctran.table %x [1, 2, 3, 0] : !ctran.coord<"x">
  // CHECK: %[[IN:.+]] = ctran.window "in" input 0 : memref<8x8xf32>
  %in = ctran.window "in" input 0 : memref<8x8xf32>
  // CHECK: %[[OUT:.+]] = ctran.window "out" output 0 peers load_store : memref<8x8xf32>
  %out = ctran.window "out" output 0 peers load_store : memref<8x8xf32>
  // CHECK: %[[TMP:.+]] = ctran.window "tmp" scratch generations 2 peers put {some.hint} : memref<4x16xf32>
  %tmp = ctran.window "tmp" scratch generations 2 peers put {some.hint} : memref<4x16xf32>
  %cnt = ctran.window "cnt" scratch : memref<1xi64>
  // CHECK: %[[O:.+]] = ctran.reindex %[[OUT]] along 0 ["x" = 4 chunked, 2 granule 2]
  %o = ctran.reindex %out along 0 ["x" = 4 chunked, 2 granule 2]
  // CHECK: %[[I:.+]] = ctran.reindex %[[IN]] along 0 ["x" = 4] resident extent 32
  %i = ctran.reindex %in along 0 ["x" = 4] resident extent 32
  // CHECK: %[[S:.+]] = ctran.reindex %[[TMP]] [4]
  %s = ctran.reindex %tmp [4]
  // CHECK: %[[D:.+]] = ctran.slots "data" ["x" = 4, 2] per_run 1
  %d = ctran.slots "data" ["x" = 4, 2] per_run 1
  // CHECK: ctran.slots "more" [] per_run 2 writers 3 generations 2 scope device realisation consume
  %more = ctran.slots "more" [] per_run 2 writers 3 generations 2 scope device realisation consume
  // CHECK: %[[OP:.+]] = ctran.peer_view %[[O]] at (%[[PX]] : "x", %{{.+}} : "y") : !ctran.window
  %op = ctran.peer_view %o at (%px : "x", %y : "y") : !ctran.window
  // CHECK: ctran.peer_view %[[O]] at rank %{{.+}} : !ctran.window
  %or = ctran.peer_view %o at rank %t : !ctran.window
  // CHECK: %[[DP:.+]] = ctran.peer_view %[[D]] at (%[[PX]] : "x", %{{.+}} : "y") : !ctran.slots
  %dp = ctran.peer_view %d at (%px : "x", %y : "y") : !ctran.slots
  // CHECK: ctran.range %[[OUT]]{{$}}
  %whole = ctran.range %out
  // CHECK: ctran.range %[[O]][%[[X]] : "x", %{{.+}}]
  %o_x = ctran.range %o[%x : "x", %c1]
  // CHECK: ctran.range %[[O]][%[[X]] : "x"]
  %o_xx = ctran.range %o[%x : "x"]
  %i_x = ctran.range %i[%x : "x"]
  // CHECK: ctran.range %[[OP]][%[[X]] : "x", %{{.+}}]
  %op_x = ctran.range %op[%x : "x", %c1]
  %or_x = ctran.range %or[%n, %c1]
  // CHECK: ctran.range %[[S]] from %{{.+}} size %{{.+}}
  %s_4 = ctran.range %s from %c0 size %c4
  %s_0 = ctran.range %s[%c0]
  // CHECK: ctran.range %[[O]] from %[[X]] : "x" size %{{.+}}
  %o_4 = ctran.range %o from %x : "x" size %c4
  // CHECK: ctran.slot %[[DP]][%[[X]] : "x", %{{.+}}]
  %dp_x = ctran.slot %dp[%x : "x", %c0]
  // CHECK: ctran.slot %[[D]] from %{{.+}} size %{{.+}}
  %d_all = ctran.slot %d from %c0 size %c4
  %m = ctran.slot %more
  // CHECK: %[[A:.+]] = ctran.source %{{.+}} holds "c0"[%[[X]] : "x"] after %{{.+}} on host
  %a = ctran.source %i_x holds "c0"[%x : "x"] after %entry on host
  // CHECK: ctran.source %{{.+}} holds "c1"[%{{.+}}, %[[X]] : "x"] summed ["y"] on host {note = "n"}
  %a1 = ctran.source %o_x holds "c1"[%c0, %x : "x"] summed ["y"] on host {note = "n"}
  // CHECK: ctran.source %{{.+}} holds "c2" shared ["x"] on host
  %a2 = ctran.source %o_x holds "c2" shared ["x"] on host
  // CHECK: ctran.copy %{{.+}} to %{{.+}} notify %{{.+}} after %[[A]], %{{.+}} on sm[%{{.+}}] {note = "put", of = "c0"}
  %p = ctran.copy %o_x to %op_x notify %dp_x after %a, %a1 on sm[%c2] {of = "c0", note = "put"}
  // CHECK: ctran.copy %{{.+}} to %{{.+}}, %{{.+}} on ce
  %p2 = ctran.copy %o_x to %op_x, %or_x on ce
  // CHECK: %[[W:.+]] = ctran.wait %{{.+}} >= %{{.+}} after %{{.+}}, %{{.+}} on host
  %w = ctran.wait %d_all >= %c1 after %p, %p2 on host
  // CHECK: %[[F:.+]] = ctran.flush after %[[W]] on host
  %f = ctran.flush after %w on host
  // CHECK: ctran.reduce sum accumulate f32 %{{.+}}, %{{.+}} into %{{.+}} after %[[F]], %{{.+}} on sm
  %r = ctran.reduce sum accumulate f32 %s_4, %o_xx into %s_0 after %f, %a2 on sm
  // CHECK: ctran.signal %{{.+}} after %{{.+}} on nic[%{{.+}}]
  %g = ctran.signal %m after %r on nic[%c1]
  %cn = ctran.range %cnt
  // CHECK: %[[SIZE:.+]], %{{.+}} = ctran.count %{{.+}} max 12 after %{{.+}} on host
  %size, %ct = ctran.count %cn max 12 after %g on host
  // CHECK: ctran.range %[[S]][%{{.+}}] sized %[[SIZE]]
  %part = ctran.range %s[%c0] sized %size
  %part1 = ctran.range %s[%c1] sized %size
  %pc = ctran.copy %part to %part1 after %ct on ce
  // CHECK: %[[K:.+]] = ctran.compute @gemm(%[[IN]], %[[OUT]]) reads %{{.+}} writes %{{.+}} after %{{.+}} on compute flops 1.000000e+09 bytes 4.000000e+06 sms 132
  %inr = ctran.range %in
  %k = ctran.compute @gemm(%in, %out) reads %inr writes %whole after %pc on compute
         flops 1.0e9 bytes 4.0e6 sms 132
  // CHECK: ctran.sink %{{.+}} holds "c3" summed ["x"] by sum scale 5.000000e-01 divide 8 shared ["y"] on host
  %e0 = ctran.sink %o_x holds "c3" summed ["x"] by sum scale 5.0e-01 divide 8 shared ["y"] on host
  // CHECK: ctran.sink %{{.+}} holds "c3" summed ["x", "y"] among [0, 5] by max on host
  %e1 = ctran.sink %o_x holds "c3" summed ["x", "y"] among [0, 5] by max on host
  // CHECK: ctran.sink %{{.+}} holds "c0" after %[[K]] on host
  %e = ctran.sink %o_x holds "c0" after %k on host
  // CHECK: ctran.return %{{.+}} : !ctran.token
  ctran.return %e, %e0, %e1 : !ctran.token, !ctran.token, !ctran.token
}

// One rank, no window, no op.
// CHECK: ctran.program @empty grid []
ctran.program @empty grid [] {
^bb0(%entry: !ctran.token):
  ctran.return
}

// Discardable attributes stay where they are.
// CHECK: ctran.program @hint grid ["x" = 1] attributes {plan.hash = 7 : i64}
ctran.program @hint grid ["x" = 1] attributes {plan.hash = 7 : i64} {
^bb0(%entry: !ctran.token):
  // CHECK: ctran.return %{{.+}} : !ctran.token
  ctran.return %entry : !ctran.token
}

// What the constraints let through: a scratch slot larger than what it takes (boxes C2), the own
// piece of a space resident in two dimensions (reindex C6, range C1), and a label whose index and
// sum name one axis (label C3).
// CHECK-LABEL: ctran.program @allowed
ctran.program @allowed grid ["x" = 4, "y" = 2] {
^bb0(%entry: !ctran.token):
  %x = ctran.coord "x"
  %y = ctran.coord "y"
  %c0 = arith.constant 0 : index
  %in = ctran.window "in" input 0 : memref<10xf32>
  %cut = ctran.reindex %in ["x" = 4]
  %tmp = ctran.window "tmp" scratch : memref<20xf32>
  %slots = ctran.reindex %tmp [4]
  %piece = ctran.range %cut[%x : "x"]
  %slot = ctran.range %slots[%c0]
  // CHECK: ctran.copy
  %a = ctran.copy %piece to %slot after %entry on ce
  // CHECK: ctran.reindex %{{.+}} along 0 ["x" = 4 chunked granule 3, "y" = 2 chunked] resident extent 17
  %shard = ctran.window "shard" input 1 : memref<3x2xf32>
  %own = ctran.reindex %shard along 0 ["x" = 4 chunked granule 3, "y" = 2 chunked] resident extent 17
  %mine = ctran.range %own[%x : "x", %y : "y"]
  // CHECK: ctran.source %{{.+}} holds "v"[%{{.+}} : "x"] summed ["x"] shared ["y"]
  %b = ctran.source %mine holds "v"[%x : "x"] summed ["x"] shared ["y"] after %a on host
  ctran.return %b : !ctran.token
}
