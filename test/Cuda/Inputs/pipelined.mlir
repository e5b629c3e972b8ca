// all_reduce of 2 ranks on copy engines, in 4 chunks: one lane brings the peer's part of each chunk,
// few SMs add what has come, and a second lane sends the sums while the first still brings.
ctran.program @pipelined grid ["x" = 2] collectives [#ctran.collective<"r", "all_reduce", "copy engines, 4 chunks", ["x"], 4096>] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = ctran.coord "x"
  %p = ctran.shift %x by %c1 : !ctran.coord<"x">
  %inw = ctran.window "in" input 0 : memref<1024xf32>
  %outw = ctran.window "out" output 0 peers load_store : memref<1024xf32>
  %partsw = ctran.window "parts" scratch peers load_store : memref<1024xf32>
  %in = ctran.reindex %inw ["x" = 2, 4]
  %out = ctran.reindex %outw ["x" = 2, 4]
  %parts = ctran.reindex %partsw ["x" = 2, 4]
  %ready = ctran.slots "ready" ["x" = 2] per_run 1
  %came = ctran.slots "came" ["x" = 2, 4] per_run 1
  %done = ctran.slots "done" ["x" = 2, 4] per_run 1
  %outThere = ctran.peer_view %out at (%p : "x") : !ctran.window
  %partsThere = ctran.peer_view %parts at (%p : "x") : !ctran.window
  %readyThere = ctran.peer_view %ready at (%p : "x") : !ctran.slots
  %cameThere = ctran.peer_view %came at (%p : "x") : !ctran.slots
  %doneThere = ctran.peer_view %done at (%p : "x") : !ctran.slots
  %all = ctran.range %in
  %have = ctran.source %all holds "r" summed ["x"] after %entry on host
  %free = ctran.slot %readyThere[%x : "x"]
  %told = ctran.signal %free after %entry on ce {of = "r", note = "you may write"}
  %may = ctran.slot %ready[%p : "x"]
  %granted = ctran.wait %may >= %c1 after %told on ce {of = "r", note = "may I write"}
  %brought, %added, %sent = scf.for %c = %c0 to %c4 step %c1 iter_args(%b = %granted, %a = %have, %s = %granted) -> (!ctran.token, !ctran.token, !ctran.token) {
    %theirs = ctran.range %in[%p : "x", %c]
    %place = ctran.range %partsThere[%x : "x", %c]
    %arrived = ctran.slot %cameThere[%x : "x", %c]
    %b1 = ctran.copy %theirs to %place notify %arrived after %have, %granted on ce {of = "r", note = "bring"}
    %mine = ctran.range %in[%x : "x", %c]
    %part = ctran.range %parts[%p : "x", %c]
    %sum = ctran.range %out[%x : "x", %c]
    %here = ctran.slot %came[%p : "x", %c]
    %w = ctran.wait %here >= %c1 on sm {of = "r", note = "await part"}
    %a1 = ctran.reduce sum accumulate f32 %mine, %part into %sum after %w, %have, %entry on sm {of = "r", note = "add"}
    %sumThere = ctran.range %outThere[%x : "x", %c]
    %finished = ctran.slot %doneThere[%x : "x", %c]
    %s1 = ctran.copy %sum to %sumThere notify %finished after %a1, %granted on ce[%c1] {of = "r", note = "send sum"}
    scf.yield %b1, %a1, %s1 : !ctran.token, !ctran.token, !ctran.token
  }
  %last = scf.for %c = %c0 to %c4 step %c1 iter_args(%t = %sent) -> (!ctran.token) {
    %slot = ctran.slot %done[%p : "x", %c]
    %w = ctran.wait %slot >= %c1 on ce[%c1] {of = "r", note = "await sum"}
    scf.yield %w : !ctran.token
  }
  %whole = ctran.range %out
  %end = ctran.sink %whole holds "r" summed ["x"] after %added, %last on host
  ctran.return %end, %brought, %sent, %told : !ctran.token, !ctran.token, !ctran.token, !ctran.token
}
