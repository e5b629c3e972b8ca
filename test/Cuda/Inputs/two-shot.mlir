// Two-shot all_reduce of 2 ranks in one kernel of 32 blocks; see test/CTran/Schedules/two-shot.mlir.
ctran.program @two_shot grid ["x" = 2] collectives [#ctran.collective<"r", "all_reduce", "two-shot", ["x"], 4000012>] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %x = ctran.coord "x"
  %p1 = ctran.shift %x by %c1 : !ctran.coord<"x">
  %inw = ctran.window "in" input 0 peers load_store : memref<1000003xf32>
  %outw = ctran.window "out" output 0 peers load_store : memref<1000003xf32>
  %in = ctran.reindex %inw ["x" = 2, 32]
  %out = ctran.reindex %outw ["x" = 2, 32]
  %sin = ctran.slots "in.ready" ["x" = 2, 32] per_run 1
  %sdone = ctran.slots "done" ["x" = 2, 32] per_run 1
  %in1 = ctran.peer_view %in at (%p1 : "x") : !ctran.window
  %out1 = ctran.peer_view %out at (%p1 : "x") : !ctran.window
  %allin = ctran.range %in
  %have = ctran.source %allin holds "r" summed ["x"] after %entry on host {of = "r"}
  %ends = scf.for %blk = %c0 to %c32 step %c1 iter_args(%end = %have) -> (!ctran.token) {
    %at = ctran.peer_view %sin at (%p1 : "x") : !ctran.slots
    %ready = ctran.slot %at[%x : "x", %blk]
    %t0 = ctran.signal %ready after %have on sm[%blk] {of = "r", note = "in"}
    %awaited = ctran.slot %sin[%p1 : "x", %blk]
    %t1 = ctran.wait %awaited >= %c1 after %t0 on sm[%blk] {of = "r", note = "wait in"}
    %i0 = ctran.range %in[%x : "x", %blk]
    %i1 = ctran.range %in1[%x : "x", %blk]
    %o0 = ctran.range %out[%x : "x", %blk]
    %t2 = ctran.reduce sum accumulate f32 %i0, %i1 into %o0 after %t1 on sm[%blk] {of = "r", note = "pull"}
    %o1 = ctran.range %out1[%x : "x", %blk]
    %t3 = ctran.copy %o0 to %o1 after %t2 on sm[%blk] {of = "r", note = "push"}
    %there = ctran.peer_view %sdone at (%p1 : "x") : !ctran.slots
    %done = ctran.slot %there[%x : "x", %blk]
    %t4 = ctran.signal %done after %t3 on sm[%blk] {of = "r", note = "done"}
    %last = ctran.slot %sdone[%p1 : "x", %blk]
    %t5 = ctran.wait %last >= %c1 after %end, %t4 on sm[%blk] {of = "r", note = "wait done"}
    scf.yield %t5 : !ctran.token
  }
  %all = ctran.range %out
  %fin = ctran.sink %all holds "r" summed ["x"] after %ends on host {of = "r"}
  ctran.return %fin : !ctran.token
}
