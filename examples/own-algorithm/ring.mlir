// An all_gather by a ring: in each step a rank passes to its right what came from its left. One text for
// all 8 ranks; coordinates are moved by `shift` alone, so that one rank can stand for all in the proof.
ctran.program @ring grid ["x" = 8] collectives [#ctran.collective<"all_gather", "all_gather", "own ring", ["x"], 4096>] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  // Who: this rank and its two neighbours.
  %me = ctran.coord "x"
  %cm1 = arith.constant -1 : index
  %left = ctran.shift %me by %cm1 : !ctran.coord<"x">
  %right = ctran.shift %me by %c1 : !ctran.coord<"x">
  // What: an input of 128 elements, an output of 8 pieces of as many, and two counters on each rank.
  %in = ctran.window "in" input 0 : memref<128xf32>
  %whole = ctran.window "out" output 0 peers load_store : memref<1024xf32>
  %out = ctran.reindex %whole ["x" = 8]
  %free = ctran.slots "free" [] per_run 1
  %came = ctran.slots "came" [] per_run 7
  // The same on a neighbour.
  %outRight = ctran.peer_view %out at (%right : "x") : !ctran.window
  %cameRight = ctran.peer_view %came at (%right : "x") : !ctran.slots
  %freeLeft = ctran.peer_view %free at (%left : "x") : !ctran.slots
  // Before: the input holds this rank's piece of the value "all_gather".
  %mine = ctran.range %in
  %given = ctran.source %mine holds "all_gather"[%me : "x"] after %entry on host
  // The left neighbour may write here; the own piece goes into the own output.
  %fl = ctran.slot %freeLeft
  %told = ctran.signal %fl after %entry on sm {of = "all_gather", note = "you may write"}
  %place = ctran.range %out[%me : "x"]
  %kept = ctran.copy %mine to %place after %given, %entry on sm {of = "all_gather", note = "keep own"}
  %f = ctran.slot %free
  %may = ctran.wait %f >= %c1 on sm {of = "all_gather", note = "may I write"}
  // Seven steps: pass on the piece that came last, then wait for the next.
  %c = ctran.slot %came
  %cr = ctran.slot %cameRight
  %all = scf.for %s = %c0 to %c7 step %c1 iter_args(%have = %kept) -> (!ctran.token) {
    %back = arith.subi %c0, %s : index
    %whose = ctran.shift %me by %back : !ctran.coord<"x">
    %piece = ctran.range %out[%whose : "x"]
    %there = ctran.range %outRight[%whose : "x"]
    %sent = ctran.copy %piece to %there after %have, %may on sm {of = "all_gather", note = "pass on"}
    %said = ctran.signal %cr after %sent on sm {of = "all_gather", note = "it came"}
    %k = arith.addi %s, %c1 : index
    %got = ctran.wait %c >= %k after %said on sm {of = "all_gather", note = "wait for the next"}
    scf.yield %got : !ctran.token
  }
  // After: the output holds all of it.
  %box = ctran.range %out
  %end = ctran.sink %box holds "all_gather" after %all, %told on host
  ctran.return %end : !ctran.token
}
