// All that is done through a switch, on 3 ranks: an all_gather, a reduce_scatter, an all_reduce in
// two shots and one in one, each between meetings of its own.
ctran.program @network grid ["x" = 3] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h1 = arith.constant 1 : index
  %h2 = arith.constant 2 : index
  %h3 = arith.constant 3 : index
  %h4 = arith.constant 4 : index
  %h5 = arith.constant 5 : index
  %h6 = arith.constant 6 : index
  %c3 = arith.constant 3 : index
  %x = ctran.coord "x"
  %piece = ctran.window "piece" input 0 peers load_store : memref<4xf32>
  %in = ctran.window "in" input 1 peers load_store : memref<12xf16>
  %whole = ctran.window "whole" output 0 peers load_store : memref<12xf32>
  %shard = ctran.window "shard" output 1 peers load_store : memref<4xf16>
  %sum = ctran.window "sum" output 2 peers load_store : memref<12xf16>
  %one = ctran.window "one" output 3 peers load_store : memref<12xf16>
  %parts = ctran.window "parts" scratch generations 2 peers load_store : memref<12xf16>
  %own = ctran.reindex %piece along 0 ["x" = 3 chunked granule 4] resident extent 12
  %wholes = ctran.reindex %whole along 0 ["x" = 3 chunked granule 4]
  %ins = ctran.reindex %in ["x" = 3 granule 4]
  %shards = ctran.reindex %shard along 0 ["x" = 3 chunked granule 4] resident extent 12
  %sums = ctran.reindex %sum ["x" = 3 granule 4]
  %free = ctran.slots "free" ["x" = 3] per_run 1
  %data = ctran.slots "data" ["x" = 3] per_run 1
  %home = ctran.slots "home" ["x" = 3] per_run 1
  %mine = ctran.range %own[%x : "x"]
  %all = ctran.range %in
  %g = ctran.source %mine holds "g"[%x : "x"] after %entry on host[%h1]
  %r = ctran.source %all holds "r" summed ["x"] after %entry on host[%h2]
  // What is one-shot is of copies.
  %copy = ctran.range %parts
  %copied = ctran.copy %all to %copy after %r on ce
  // All have come.
  %told = scf.for %d = %c0 to %c3 step %c1 iter_args(%t = %copied) -> (!ctran.token) {
    %p = ctran.shift %x by %d : !ctran.coord<"x">
    %v = ctran.peer_view %free at (%p : "x") : !ctran.slots
    %s = ctran.slot %v[%x : "x"]
    %u = ctran.signal %s after %g, %r, %t on ce
    scf.yield %u : !ctran.token
  }
  %frees = ctran.slot %free from %c0 size %c3
  %come = ctran.wait %frees >= %c1 after %told on ce
  // The gather.
  %wm = ctran.members %wholes along ["x"]
  %mineEverywhere = ctran.range %wm[%x : "x"]
  %sent = ctran.copy %mine to %mineEverywhere after %come on ce[%c1]
  // The scatter, the sum that is spread, and the one that all ask for.
  %im = ctran.members %ins along ["x"]
  %theirs = ctran.range %im[%x : "x"]
  %keep = ctran.range %shards[%x : "x"]
  %kept = ctran.reduce sum accumulate f32 %theirs into %keep after %come on sm[%c1]
  %sm = ctran.members %sums along ["x"]
  %spread = ctran.range %sm[%x : "x"]
  %spreads = ctran.reduce sum accumulate f16 %theirs into %spread after %come on sm
  %pm = ctran.members %parts along ["x"]
  %copies = ctran.range %pm
  %ones = ctran.range %one
  %oned = ctran.reduce sum accumulate f32 %copies into %ones after %come on sm
  // All have done it.
  %over = scf.for %d = %c0 to %c3 step %c1 iter_args(%t = %sent) -> (!ctran.token) {
    %p = ctran.shift %x by %d : !ctran.coord<"x">
    %v = ctran.peer_view %data at (%p : "x") : !ctran.slots
    %s = ctran.slot %v[%x : "x"]
    %u = ctran.signal %s after %sent, %kept, %spreads, %t on ce
    scf.yield %u : !ctran.token
  }
  %datas = ctran.slot %data from %c0 size %c3
  %done = ctran.wait %datas >= %c1 after %over on ce
  %wr = ctran.range %wholes
  %sr = ctran.range %sums
  %k0 = ctran.sink %wr holds "g" after %done on host[%h3]
  %k1 = ctran.sink %keep holds "r"[%x : "x"] summed ["x"] by sum after %kept on host[%h4]
  %k2 = ctran.sink %sr holds "r" summed ["x"] by sum after %done on host[%h5]
  %k3 = ctran.sink %ones holds "r" summed ["x"] by sum after %oned on host[%h6]
  ctran.return %done, %sent, %spreads, %oned, %kept, %k0, %k1, %k2, %k3 : !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token
}
