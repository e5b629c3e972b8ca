// (e) Two-shot all-reduce in one kernel of 2 blocks: every block pulls its share of the own part from
// all peers, adds, and pushes the sum to all peers at once.
//
// RUN: ncclx-opt %s --ctran-verify --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s --check-prefix=CLASS
// RUN: ncclx-opt %s --ctran-verify=mode=all --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s --check-prefix=ALL
// CLASS: [Passed] Proof
// CLASS-SAME: Mode=class
// ALL: [Passed] Proof
// ALL-SAME: Mode=all
//
// A block pushes what the other block adds.
// RUN: sed '/MUT-OWNER/s/%%blk/%%other/' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=OWNER
// OWNER: error: program @two_shot is refused: undefined
// OWNER-SAME: 'all_reduce r: push'
// Another part is pulled from one peer.
// RUN: sed '/MUT-SRC/s/%%x : "x"/%%p1 : "x"/' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=SRC
// SRC: error: program @two_shot is refused: result
// SRC-SAME: 'all_reduce r: pull'
// Inputs are read before their owners wrote them.
// RUN: sed '/MUT-IN/s/>= %%c1/>= %%c0/' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=IN
// IN: error: program @two_shot is refused: race
// IN-SAME: 'all_reduce r: pull'
// The third peer's sum is not awaited.
// RUN: sed '/MUT-DONE/s/%%c4/%%c3/' %s | not ncclx-opt --ctran-verify=mode=all 2>&1 | FileCheck %s --check-prefix=DONE
// DONE: error: program @two_shot is refused: race
// DONE-SAME: 'all_reduce r: sink'
ctran.program @two_shot grid ["x" = 4] collectives [#ctran.collective<"r", "all_reduce", "two_shot", ["x"], 256>] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %x = ctran.coord "x"
  %p1 = ctran.shift %x by %c1 : !ctran.coord<"x">
  %p2 = ctran.shift %x by %c2 : !ctran.coord<"x">
  %p3 = ctran.shift %x by %c3 : !ctran.coord<"x">
  %inw = ctran.window "in" input 0 peers load_store : memref<64xf32>
  %outw = ctran.window "out" output 0 peers load_store : memref<64xf32>
  %in = ctran.reindex %inw ["x" = 4, 2]
  %out = ctran.reindex %outw ["x" = 4, 2]
  %sin = ctran.slots "in.ready" ["x" = 4, 2] per_run 1
  %sdone = ctran.slots "done" ["x" = 4, 2] per_run 1
  %in1 = ctran.peer_view %in at (%p1 : "x") : !ctran.window
  %in2 = ctran.peer_view %in at (%p2 : "x") : !ctran.window
  %in3 = ctran.peer_view %in at (%p3 : "x") : !ctran.window
  %out1 = ctran.peer_view %out at (%p1 : "x") : !ctran.window
  %out2 = ctran.peer_view %out at (%p2 : "x") : !ctran.window
  %out3 = ctran.peer_view %out at (%p3 : "x") : !ctran.window
  %allin = ctran.range %in
  %have = ctran.source %allin holds "r" summed ["x"] after %entry on host {of = "r"}
  %ends = scf.for %blk = %c0 to %c2 step %c1 iter_args(%end = %have) -> (!ctran.token) {
    %other = arith.subi %c1, %blk : index
    %t0 = scf.for %d = %c1 to %c4 step %c1 iter_args(%t = %have) -> (!ctran.token) {
      %p = ctran.shift %x by %d : !ctran.coord<"x">
      %at = ctran.peer_view %sin at (%p : "x") : !ctran.slots
      %slot = ctran.slot %at[%x : "x", %blk]
      %sig = ctran.signal %slot after %t on sm[%blk] {of = "r", note = "in"}
      scf.yield %sig : !ctran.token
    }
    %t1 = scf.for %d = %c1 to %c4 step %c1 iter_args(%t = %t0) -> (!ctran.token) {
      %p = ctran.shift %x by %d : !ctran.coord<"x">
      %slot = ctran.slot %sin[%p : "x", %blk]
      %w = ctran.wait %slot >= %c1 after %t on sm[%blk] {of = "r", note = "wait in"} // MUT-IN
      scf.yield %w : !ctran.token
    }
    %i0 = ctran.range %in[%x : "x", %blk]
    %i1 = ctran.range %in1[%x : "x", %blk] // MUT-SRC
    %i2 = ctran.range %in2[%x : "x", %blk]
    %i3 = ctran.range %in3[%x : "x", %blk]
    %o0 = ctran.range %out[%x : "x", %blk]
    %t2 = ctran.reduce sum accumulate f32 %i0, %i1, %i2, %i3 into %o0 after %t1 on sm[%blk] {of = "r", note = "pull"}
    %push = ctran.range %out[%x : "x", %blk] // MUT-OWNER
    %o1 = ctran.range %out1[%x : "x", %blk] // MUT-OWNER
    %o2 = ctran.range %out2[%x : "x", %blk] // MUT-OWNER
    %o3 = ctran.range %out3[%x : "x", %blk] // MUT-OWNER
    %t3 = ctran.copy %push to %o1, %o2, %o3 after %t2 on sm[%blk] {of = "r", note = "push"}
    %t4 = scf.for %d = %c1 to %c4 step %c1 iter_args(%t = %t3) -> (!ctran.token) {
      %p = ctran.shift %x by %d : !ctran.coord<"x">
      %at = ctran.peer_view %sdone at (%p : "x") : !ctran.slots
      %slot = ctran.slot %at[%x : "x", %blk]
      %sig = ctran.signal %slot after %t on sm[%blk] {of = "r", note = "done"}
      scf.yield %sig : !ctran.token
    }
    // Blocks are lanes of their own: each end joins the one before.
    %t5 = scf.for %d = %c1 to %c4 step %c1 iter_args(%t = %end) -> (!ctran.token) { // MUT-DONE
      %p = ctran.shift %x by %d : !ctran.coord<"x">
      %slot = ctran.slot %sdone[%p : "x", %blk]
      %w = ctran.wait %slot >= %c1 after %t, %t4 on sm[%blk] {of = "r", note = "wait done"}
      scf.yield %w : !ctran.token
    }
    scf.yield %t5 : !ctran.token
  }
  %all = ctran.range %out
  %fin = ctran.sink %all holds "r" summed ["x"] after %ends on host {of = "r"}
  ctran.return %fin : !ctran.token
}
