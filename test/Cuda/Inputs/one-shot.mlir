// One-shot all_reduce of 2 ranks with packets; see test/CTran/Schedules/one-shot-packets.mlir.
ctran.program @one_shot grid ["x" = 2] collectives [#ctran.collective<"r", "all_reduce", "one-shot", ["x"], 8192>] {
^bb0(%entry: !ctran.token):
  %c1 = arith.constant 1 : index
  %x = ctran.coord "x"
  %p1 = ctran.shift %x by %c1 : !ctran.coord<"x">
  %in = ctran.window "in" input 0 : memref<4096xbf16>
  %out = ctran.window "out" output 0 : memref<4096xbf16>
  %scrw = ctran.window "scr" scratch generations 2 peers load_store : memref<2x4096xbf16>
  %scr = ctran.reindex %scrw along 0 ["x" = 2]
  %pkt = ctran.slots "pkt" ["x" = 2] per_run 1 generations 2 realisation inband
  %mine = ctran.range %in
  %sum = ctran.range %out
  %have = ctran.source %mine holds "r" summed ["x"] after %entry on sm
  %there = ctran.peer_view %scr at (%p1 : "x") : !ctran.window
  %to = ctran.range %there[%x : "x"]
  %flags = ctran.peer_view %pkt at (%p1 : "x") : !ctran.slots
  %flag = ctran.slot %flags[%x : "x"]
  %put = ctran.copy %mine to %to notify %flag after %have on sm {of = "r", note = "packet"}
  %arrived = ctran.slot %pkt[%p1 : "x"]
  %got = ctran.wait %arrived >= %c1 after %put on sm {of = "r", note = "poll"}
  %s1 = ctran.range %scr[%p1 : "x"]
  %r = ctran.reduce sum accumulate f32 %mine, %s1 into %sum after %got on sm {of = "r"}
  %end = ctran.sink %sum holds "r" summed ["x"] after %r on sm
  ctran.return %end : !ctran.token
}
