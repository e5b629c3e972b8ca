// (f) One-shot all-reduce with packets: the flag travels with the data, nobody asks first, and two
// generations of scratch protect a run from the next but one.
//
// RUN: ncclx-opt %s --ctran-verify --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s --check-prefix=CLASS
// RUN: ncclx-opt %s --ctran-verify=mode=all --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s --check-prefix=ALL
// CLASS: [Passed] Proof
// CLASS-SAME: Mode=class
// CLASS-SAME: Runs=3
// ALL: [Passed] Proof
// ALL-SAME: Mode=all
//
// With one generation the next run's packets overwrite what is still read.
// RUN: sed 's/generations 2//' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=GEN
// GEN: error: program @one_shot is refused: race
// GEN-SAME: 'packet'
// One peer's packet is read before it has come.
// RUN: sed '/MUT-WAIT/s/%%c4/%%c3/' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=WAIT
// WAIT: error: program @one_shot is refused: race
// WAIT-SAME: 'reduce'
// One peer's packet is added twice, another's never.
// RUN: sed '/MUT-SUM/s/%%s3 into/%%s2 into/' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=SUM
// SUM: error: program @one_shot is refused: result
// SUM-SAME: 'reduce'
// Packets are a kernel's.
// RUN: sed '/MUT-LANE/s/on sm/on ce/' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=LANE
// LANE: error: 'ctran.copy' op notifies inband slots, which needs lane sm, found ce
ctran.program @one_shot grid ["x" = 4] {
^bb0(%entry: !ctran.token):
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %x = ctran.coord "x"
  %p1 = ctran.shift %x by %c1 : !ctran.coord<"x">
  %p2 = ctran.shift %x by %c2 : !ctran.coord<"x">
  %p3 = ctran.shift %x by %c3 : !ctran.coord<"x">
  %in = ctran.window "in" input 0 : memref<8xf16>
  %out = ctran.window "out" output 0 : memref<8xf16>
  %scrw = ctran.window "scr" scratch generations 2 peers load_store : memref<4x8xf16>
  %scr = ctran.reindex %scrw along 0 ["x" = 4]
  %pkt = ctran.slots "pkt" ["x" = 4] per_run 1 generations 2 realisation inband
  %mine = ctran.range %in
  %sum = ctran.range %out
  %have = ctran.source %mine holds "r" summed ["x"] after %entry on sm
  %sent = scf.for %d = %c1 to %c4 step %c1 iter_args(%t = %have) -> (!ctran.token) {
    %p = ctran.shift %x by %d : !ctran.coord<"x">
    %there = ctran.peer_view %scr at (%p : "x") : !ctran.window
    %to = ctran.range %there[%x : "x"]
    %flags = ctran.peer_view %pkt at (%p : "x") : !ctran.slots
    %flag = ctran.slot %flags[%x : "x"]
    %put = ctran.copy %mine to %to notify %flag after %t on sm {note = "packet"} // MUT-LANE
    scf.yield %put : !ctran.token
  }
  %got = scf.for %d = %c1 to %c4 step %c1 iter_args(%t = %sent) -> (!ctran.token) { // MUT-WAIT
    %p = ctran.shift %x by %d : !ctran.coord<"x">
    %flag = ctran.slot %pkt[%p : "x"]
    %w = ctran.wait %flag >= %c1 after %t on sm {note = "poll"}
    scf.yield %w : !ctran.token
  }
  %s1 = ctran.range %scr[%p1 : "x"]
  %s2 = ctran.range %scr[%p2 : "x"]
  %s3 = ctran.range %scr[%p3 : "x"]
  %r = ctran.reduce sum accumulate f32 %mine, %s1, %s2, %s3 into %sum after %got on sm // MUT-SUM
  %end = ctran.sink %sum holds "r" summed ["x"] after %r on sm
  ctran.return %end : !ctran.token
}
