// all_gather of 3 ranks with one counter that two peers raise: what a stream cannot write, a kernel adds.
ctran.program @several grid ["x" = 3] collectives [#ctran.collective<"g", "all_gather", "one counter", ["x"], 96>] {
^bb0(%entry: !ctran.token):
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %x = ctran.coord "x"
  %in = ctran.window "in" input 0 : memref<8xf32>
  %outw = ctran.window "out" output 0 peers load_store : memref<24xf32>
  %out = ctran.reindex %outw ["x" = 3]
  %ready = ctran.slots "ready" ["x" = 3] per_run 1
  %came = ctran.slots "came" [] per_run 2 writers 2
  %mine = ctran.range %in
  %have = ctran.source %mine holds "g"[%x : "x"] after %entry on host
  %told = scf.for %d = %c1 to %c3 step %c1 iter_args(%t = %entry) -> (!ctran.token) {
    %p = ctran.shift %x by %d : !ctran.coord<"x">
    %there = ctran.peer_view %ready at (%p : "x") : !ctran.slots
    %slot = ctran.slot %there[%x : "x"]
    %s = ctran.signal %slot after %entry on ce {of = "g", note = "you may write"}
    scf.yield %s : !ctran.token
  }
  %sent = scf.for %d = %c1 to %c3 step %c1 iter_args(%t = %told) -> (!ctran.token) {
    %p = ctran.shift %x by %d : !ctran.coord<"x">
    %may = ctran.slot %ready[%p : "x"]
    %w = ctran.wait %may >= %c1 on ce {of = "g", note = "may I write"}
    %view = ctran.peer_view %out at (%p : "x") : !ctran.window
    %place = ctran.range %view[%x : "x"]
    %arrived = ctran.peer_view %came at (%p : "x") : !ctran.slots
    %slot = ctran.slot %arrived
    %put = ctran.copy %mine to %place notify %slot after %have, %w on ce {of = "g", note = "put"}
    scf.yield %put : !ctran.token
  }
  %own = ctran.range %out[%x : "x"]
  %kept = ctran.copy %mine to %own after %have, %entry on ce {of = "g", note = "keep own"}
  %all = ctran.slot %came
  %got = ctran.wait %all >= %c2 on ce {of = "g", note = "await both"}
  %whole = ctran.range %out
  %end = ctran.sink %whole holds "g" after %got, %kept on host
  ctran.return %end, %sent, %kept : !ctran.token, !ctran.token, !ctran.token
}
