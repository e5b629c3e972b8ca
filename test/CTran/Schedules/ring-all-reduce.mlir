// (b) Ring all-reduce of 2 pieces through 2 scratch slots: a reduce-scatter ring on nic and sm, an
// all-gather ring on lanes of its own. The text for 131,072 ranks differs in its numbers only.
//
// RUN: sed 's/@N@/8/g; s/@N1@/7/g; s/@E@/64/g; s/@K@/14/g' %s > %t.8
// RUN: ncclx-opt %t.8 --ctran-verify --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s --check-prefix=CLASS
// RUN: ncclx-opt %t.8 --ctran-verify=mode=all --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: sed 's/@N@/131072/g; s/@N1@/131071/g; s/@E@/1048576/g; s/@K@/262142/g' %s \
// RUN:   | ncclx-opt --ctran-verify=mode=class --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: sed 's/@N@/1/g; s/@N1@/0/g; s/@E@/8/g; s/@K@/0/g' %s | ncclx-opt --ctran-verify=mode=all -o /dev/null
// The same after every pass that may touch it.
// RUN: ncclx-opt %t.8 --canonicalize --cse --loop-invariant-code-motion --int-range-optimizations --canonicalize \
// RUN:   --ctran-verify --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s --check-prefix=CLASS
// RUN: ncclx-opt %t.8 --ctran-verify="mode=all depth=1" -o /dev/null
//
// CLASS: [Passed] Proof | Category:ctran-verify | Function=ring_all_reduce
// CLASS-SAME: Mode=class
// ALL: [Passed] Proof
// ALL-SAME: Mode=all
// LARGE: [Passed] Proof
// LARGE-SAME: Mode=class
//
// The wait for data is gone.
// RUN: sed '/MUT-DATA/s/>= %%k/>= %%c0/' %t.8 | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=DATA
// DATA: error: program @ring_all_reduce is refused: race
// DATA-SAME: all_reduce r: add
// A put does not notify.
// RUN: sed '/MUT-AGPUT/s/notify %%dgr//' %t.8 | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=NOTIFY
// NOTIFY: error: program @ring_all_reduce is refused: deadlock
// NOTIFY-SAME: 'all_reduce r: wait data'
// The credit goes to the wrong neighbour.
// RUN: sed '/MUT-CREDIT/s/%%cl /%%cr /' %t.8 | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=CREDIT
// CREDIT: error: program @ring_all_reduce is refused: race
// CREDIT-SAME: 'all_reduce r: put'
// One credit too many is taken for granted.
// RUN: sed '/MUT-AHEAD/s/%%slots/%%c3/' %t.8 | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=AHEAD
// AHEAD: error: program @ring_all_reduce is refused: race
// AHEAD-SAME: all_reduce r: put
// The next piece of the ring is sent.
// RUN: sed '/MUT-SRC/s/%%cm1/%%cm2/' %t.8 | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=SRC
// SRC: error: program @ring_all_reduce is refused: result
// SRC-SAME: 'all_reduce r: add'
// The peer may overwrite what an own put still reads.
// RUN: sed '/MUT-RTR/s/after %%p /after %%h /' %t.8 | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=RTR
// RTR: error: program @ring_all_reduce is refused: race
// RTR-SAME: 'all_reduce r: forward'
// Bytes are forwarded before they arrived.
// RUN: sed '/MUT-AGPUT/s/after %%got/after %%h/' %t.8 | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=FORWARD
// FORWARD: error: program @ring_all_reduce is refused: race
// FORWARD-SAME: all_reduce r: forward
// Arrived bytes are not made visible.
// RUN: sed '/MUT-FLUSH/s/ctran.flush after %%wd/ctran.wait %%d0 >= %%c0 after %%wd/' %t.8 | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=FLUSH
// FLUSH: error: program @ring_all_reduce is refused: race
// FLUSH-SAME: 'all_reduce r: add'
// What is received replaces what is there.
// RUN: sed '/MUT-ADD/s/%%own, %%in into/%%in into/' %t.8 | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=ADD
// ADD: error: program @ring_all_reduce is refused: result
// ADD-SAME: 'all_reduce r: sink'
// What is received is added twice.
// RUN: sed '/MUT-ADD/s/%%own, %%in into/%%own, %%in, %%in into/' %t.8 | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: program @ring_all_reduce is refused: result
// TWICE-SAME: 'all_reduce r: add'
// The sources are given back before the puts have read them.
// RUN: sed '/MUT-END/s/%%ends#1, //' %t.8 | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=END
// END: error: 'scf.for' op makes a token that nothing uses
// One more signal a run is declared than is sent.
// RUN: sed '/MUT-PERRUN/s/per_run 14/per_run 15/' %t.8 | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=KDECL
// KDECL: error: program @ring_all_reduce is refused: deadlock
// KDECL-SAME: 'all_reduce r: wait data'
ctran.program @ring_all_reduce grid ["x" = @N@] collectives [#ctran.collective<"r", "all_reduce", "ring", ["x"], @E@>] {
^bb0(%entry: !ctran.token):
  %cm2 = arith.constant -2 : index
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %pieces = arith.constant 2 : index
  %slots = arith.constant 2 : index
  %n1 = arith.constant @N1@ : index
  %x = ctran.coord "x"
  %left = ctran.shift %x by %cm1 : !ctran.coord<"x">
  %right = ctran.shift %x by %c1 : !ctran.coord<"x">
  %win = ctran.window "buf" inout 0 peers put : memref<@E@xf32>
  %buf = ctran.reindex %win [2, "x" = @N@]
  %scratch = ctran.window "tmp" scratch peers put : memref<8xf32>
  %tmp = ctran.reindex %scratch [2]
  %d = ctran.slots "d" [] per_run @K@ // MUT-PERRUN
  %c = ctran.slots "c" [] per_run @K@
  %dg = ctran.slots "dg" [] per_run @K@
  %cg = ctran.slots "cg" [] per_run 2
  %bufRight = ctran.peer_view %buf at (%right : "x") : !ctran.window
  %tmpRight = ctran.peer_view %tmp at (%right : "x") : !ctran.window
  %dRight = ctran.peer_view %d at (%right : "x") : !ctran.slots
  %dgRight = ctran.peer_view %dg at (%right : "x") : !ctran.slots
  %cLeft = ctran.peer_view %c at (%left : "x") : !ctran.slots
  %cRight = ctran.peer_view %c at (%right : "x") : !ctran.slots
  %cgLeft = ctran.peer_view %cg at (%left : "x") : !ctran.slots
  %d0 = ctran.slot %d
  %c0s = ctran.slot %c
  %dg0 = ctran.slot %dg
  %cg0 = ctran.slot %cg
  %dr = ctran.slot %dRight
  %dgr = ctran.slot %dgRight
  %cl = ctran.slot %cLeft
  %cr = ctran.slot %cRight
  %cgl = ctran.slot %cgLeft
  %all = ctran.range %buf
  %have0 = ctran.source %all holds "r" summed ["x"] after %entry on host {of = "r"}
  %ends:5 = scf.for %j = %c0 to %pieces step %c1 iter_args(%e0 = %have0, %e1 = %have0, %e2 = %have0, %e3 = %have0, %e4 = %have0) -> (!ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token) {
    %base = arith.muli %j, %n1 : index
    %h, %p = scf.for %s = %c0 to %n1 step %c1 iter_args(%have = %have0, %last = %have0) -> (!ctran.token, !ctran.token) {
      %k0 = arith.addi %base, %s : index
      %k = arith.addi %k0, %c1 : index
      %credit = arith.subi %k, %slots : index // MUT-AHEAD
      %t = arith.remsi %k0, %slots : index
      %by = arith.subi %cm1, %s : index // MUT-SRC
      %from = ctran.shift %x by %by : !ctran.coord<"x">
      %src = ctran.range %buf[%j, %from : "x"]
      %dst = ctran.range %tmpRight[%t]
      %wc = ctran.wait %c0s >= %credit on nic {of = "r", note = "wait credit"}
      %put = ctran.copy %src to %dst notify %dr after %have, %wc on nic {of = "r", note = "put"}
      %wd = ctran.wait %d0 >= %k on sm {of = "r", note = "wait data"} // MUT-DATA
      %f = ctran.flush after %wd on sm {of = "r"} // MUT-FLUSH
      %by2 = arith.subi %cm2, %s : index
      %at = ctran.shift %x by %by2 : !ctran.coord<"x">
      %own = ctran.range %buf[%j, %at : "x"]
      %in = ctran.range %tmp[%t]
      %r = ctran.reduce sum accumulate f32 %own, %in into %own after %f, %have on sm {of = "r", note = "add"} // MUT-ADD
      %g = ctran.signal %cl after %r on sm {of = "r", note = "credit"} // MUT-CREDIT
      scf.yield %g, %put : !ctran.token, !ctran.token
    }
    %q = ctran.signal %cgl after %p on sm {of = "r", note = "ready"} // MUT-RTR
    %j1 = arith.addi %j, %c1 : index
    %wg = ctran.wait %cg0 >= %j1 after %h on nic[%c1] {of = "r", note = "wait ready"}
    %last, %got0 = scf.for %s = %c0 to %n1 step %c1 iter_args(%put0 = %wg, %got = %wg) -> (!ctran.token, !ctran.token) {
      %k0 = arith.addi %base, %s : index
      %k = arith.addi %k0, %c1 : index
      %by = arith.subi %c0, %s : index
      %at = ctran.shift %x by %by : !ctran.coord<"x">
      %src = ctran.range %buf[%j, %at : "x"]
      %dst = ctran.range %bufRight[%j, %at : "x"]
      %put = ctran.copy %src to %dst notify %dgr after %got on nic[%c1] {of = "r", note = "forward"} // MUT-AGPUT
      %wd = ctran.wait %dg0 >= %k on sm[%c1] {of = "r", note = "wait gathered"}
      %f = ctran.flush after %wd on sm[%c1] {of = "r"}
      scf.yield %put, %f : !ctran.token, !ctran.token
    }
    scf.yield %h, %p, %q, %last, %got0 : !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token
  }
  %end = ctran.sink %all holds "r" summed ["x"] after %ends#0, %ends#1, %ends#2, %ends#3, %ends#4 on host {of = "r"} // MUT-END
  ctran.return %end : !ctran.token
}
