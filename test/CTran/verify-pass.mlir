// What ctran-verify says: at the op that breaks the rule, with the other end of it.
// RUN: ncclx-opt %s --ctran-verify --split-input-file --verify-diagnostics --remarks-filter=ctran-verify --remark-policy=all

// Nothing to prove is proved.
// expected-remark @below {{[Passed] Proof | Category:ctran-verify | Function=empty}}
ctran.program @empty grid ["x" = 3] {
^bb0(%entry: !ctran.token):
  ctran.return %entry : !ctran.token
}

// -----

// A race names both ops.
ctran.program @race grid ["x" = 3] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch : memref<4xf32>
  %v = ctran.window "v" input 0 : memref<4xf32>
  %r = ctran.range %w
  %i = ctran.range %v
  // expected-note @below {{the other is}}
  %a = ctran.copy %i to %r after %entry on host
  // expected-error @below {{program @race is refused: race}}
  %b = ctran.copy %i to %r after %entry on ce
  ctran.return %a, %b : !ctran.token, !ctran.token
}

// -----

// A deadlock names the chain.
// expected-note @below {{waits for s[] >= 1, which has 0}}
// expected-note @below {{(a cycle)}}
ctran.program @deadlock grid ["x" = 3] {
^bb0(%entry: !ctran.token):
  %c1 = arith.constant 1 : index
  %x = ctran.coord "x"
  %p = ctran.shift %x by %c1 : !ctran.coord<"x">
  %s = ctran.slots "s" [] per_run 1
  %v = ctran.peer_view %s at (%p : "x") : !ctran.slots
  %own = ctran.slot %s
  %theirs = ctran.slot %v
  // expected-error @below {{program @deadlock is refused: deadlock}}
  %w = ctran.wait %own >= %c1 after %entry on host
  %g = ctran.signal %theirs after %w on host
  ctran.return %g : !ctran.token
}

// -----

// A read of what nobody wrote.
ctran.program @undefined grid ["x" = 3] {
^bb0(%entry: !ctran.token):
  %a = ctran.window "a" scratch : memref<4xf32>
  %b = ctran.window "b" scratch : memref<4xf32>
  %ra = ctran.range %a
  %rb = ctran.range %b
  // expected-error @below {{program @undefined is refused: undefined}}
  %t = ctran.copy %ra to %rb after %entry on ce
  ctran.return %t : !ctran.token
}

// -----

// The wrong value.
ctran.program @result grid ["x" = 3] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" input 0 : memref<4xf32>
  %r = ctran.range %w
  %a = ctran.source %r holds "a" after %entry on host
  // expected-error @below {{program @result is refused: result}}
  %b = ctran.sink %r holds "b" after %a on host
  ctran.return %b : !ctran.token
}

// -----

// Two writers on a slot that is declared for one.
ctran.program @writers grid ["x" = 3] {
^bb0(%entry: !ctran.token):
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = ctran.coord "x"
  %p = ctran.shift %x by %c1 : !ctran.coord<"x">
  %q = ctran.shift %x by %c2 : !ctran.coord<"x">
  %s = ctran.slots "s" [] per_run 2
  %vp = ctran.peer_view %s at (%p : "x") : !ctran.slots
  %vq = ctran.peer_view %s at (%q : "x") : !ctran.slots
  %sp = ctran.slot %vp
  %sq = ctran.slot %vq
  %own = ctran.slot %s
  // expected-note @below {{the other is}}
  %a = ctran.signal %sp after %entry on host
  // expected-error @below {{program @writers is refused: signal}}
  %b = ctran.signal %sq after %a on host
  %w = ctran.wait %own >= %c2 after %b on host
  ctran.return %w : !ctran.token
}

// -----

// A coordinate as a number: all ranks are proved, and the remark says why.
// expected-remark @below {{Mode=all}}
ctran.program @chain grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %x = ctran.coord "x"
  // expected-remark @below {{Remark="the coordinate on axis "x" is used as a number"}}
  %i = ctran.coord_value %x : !ctran.coord<"x">
  %right = ctran.shift %x by %c1 : !ctran.coord<"x">
  %w = ctran.window "w" inout 0 peers put : memref<4xf32>
  %v = ctran.peer_view %w at (%right : "x") : !ctran.window
  %data = ctran.slots "data" [] per_run 1
  %dv = ctran.peer_view %data at (%right : "x") : !ctran.slots
  %free = ctran.slots "free" [] per_run 1
  %left = ctran.shift %x by %c3 : !ctran.coord<"x">
  %fv = ctran.peer_view %free at (%left : "x") : !ctran.slots
  %all = ctran.range %w
  %there = ctran.range %v
  %up = ctran.slot %dv
  %own = ctran.slot %data
  %back = ctran.slot %fv
  %ok = ctran.slot %free
  // Rank 0 has the value; every rank sends it on, but the last.
  %first = arith.cmpi eq, %i, %c0 : index
  %have = scf.if %first -> !ctran.token {
    %a = ctran.source %all holds "c" shared ["x"] after %entry on host
    scf.yield %a : !ctran.token
  } else {
    %r = ctran.signal %back after %entry on host
    %a = ctran.wait %own >= %c1 after %r on host
    %f = ctran.flush after %a on host
    scf.yield %f : !ctran.token
  }
  %last = arith.cmpi slt, %i, %c3 : index
  %done = scf.if %last -> !ctran.token {
    %a = ctran.wait %ok >= %c1 after %have on nic
    %b = ctran.copy %all to %there notify %up after %a on nic
    scf.yield %b : !ctran.token
  } else {
    scf.yield %have : !ctran.token
  }
  %end = ctran.sink %all holds "c" shared ["x"] after %done, %have on host
  ctran.return %end : !ctran.token
}

// -----

// A put that the peer is never told of is lost in one class and on all ranks alike.
ctran.program @untold grid ["x" = 3] {
^bb0(%entry: !ctran.token):
  %c1 = arith.constant 1 : index
  %x = ctran.coord "x"
  %p = ctran.shift %x by %c1 : !ctran.coord<"x">
  %i = ctran.window "i" input 0 : memref<3xf32>
  %w = ctran.window "w" scratch peers put : memref<3xf32>
  %v = ctran.peer_view %w at (%p : "x") : !ctran.window
  %from = ctran.range %i
  %to = ctran.range %v
  %here = ctran.range %w
  %a = ctran.source %from holds "a" after %entry on host
  // expected-note @below {{the other is}}
  %b = ctran.copy %from to %to after %a on nic
  // expected-error @below {{program @untold is refused: race}}
  %k = ctran.sink %here holds "a" after %b on host
  ctran.return %k : !ctran.token
}

// -----

// Two collectives may read one box: each has its own name for it, and neither waits for the other.
// expected-remark @below {{Remark="proved}}
ctran.program @two_names grid ["x" = 3] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" input 0 : memref<4xf32>
  %r = ctran.range %w
  %x = ctran.coord "x"
  %a = ctran.source %r holds "a"[%x : "x"] after %entry on host
  %b = ctran.source %r holds "b"[%x : "x"] after %entry on ce
  %c = ctran.sink %r holds "a"[%x : "x"] after %a, %b on host
  %d = ctran.sink %r holds "b"[%x : "x"] after %a, %b on ce
  ctran.return %c, %d : !ctran.token, !ctran.token
}

// -----

// A name is given to what is there: nothing is not.
ctran.program @nothing grid ["x" = 3] {
^bb0(%entry: !ctran.token):
  %w = ctran.window "w" scratch : memref<4xf32>
  %r = ctran.range %w
  // expected-error @below {{program @nothing is refused: undefined}}
  %a = ctran.source %r holds "a" after %entry on host
  ctran.return %a : !ctran.token
}
