// (a) Direct all-gather on a copy engine: ready-to-receive, then one put to each peer.
//
// RUN: sed 's/@N@/5/g; s/@E@/20/g' %s | ncclx-opt --ctran-verify --remarks-filter=ctran-verify --remark-policy=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CLASS
// RUN: sed 's/@N@/5/g; s/@E@/20/g' %s | ncclx-opt --ctran-verify=mode=all --remarks-filter=ctran-verify --remark-policy=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ALL
// RUN: sed 's/@N@/1/g; s/@E@/3/g' %s | ncclx-opt --ctran-verify=mode=all -o /dev/null
// RUN: sed 's/@N@/24/g; s/@E@/7/g' %s | ncclx-opt --ctran-verify -o /dev/null
//
// CLASS: [Passed] Proof | Category:ctran-verify | Function=direct_all_gather
// CLASS-SAME: Leads="rtr 1, dat 1", Mode=class
// CLASS-SAME: Remark="proved
// ALL: [Passed] Proof | Category:ctran-verify | Function=direct_all_gather
// ALL-SAME: Mode=all
//
// The put does not wait until the peer's output is free: the second run's put meets the owner's read.
// RUN: sed 's/@N@/4/g; s/@E@/16/g; /MUT-RTR/s/>= %%c1/>= %%c0/' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=RTR
// RTR: error: program @direct_all_gather is refused: race
// RTR-SAME: 'all_gather c0: put'
// One signal more is awaited than is ever sent.
// RUN: sed 's/@N@/4/g; s/@E@/16/g; /MUT-DATA/s/>= %%c1/>= %%c2/' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: error: program @direct_all_gather is refused: deadlock
// MORE-SAME: 'all_gather c0: wait data'
// The last wait is gone: the result is returned before it has arrived.
// RUN: sed 's/@N@/4/g; s/@E@/16/g; /MUT-DATA/s/>= %%c1/>= %%c0/' %s | not ncclx-opt --ctran-verify=mode=all 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: program @direct_all_gather is refused: result
// EARLY-SAME: 'all_gather c0: sink'
// The bytes go where the neighbour's belong.
// RUN: sed 's/@N@/4/g; s/@E@/16/g; /MUT-PLACE/s/%%x : "x"/%%p : "x"/' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=PLACE
// PLACE: error: program @direct_all_gather is refused: race
// PLACE-SAME: 'all_gather c0: put'
// Data is signalled before it is copied.
// RUN: sed 's/@N@/4/g; s/@E@/16/g; /MUT-ORDER/s/on ce/on ce[%%c1]/; /MUT-SIGNAL/s/after %%put on ce/on ce/; /MUT-END/s/%%sig/%%put/; /MUT-SIGNAL/s/%%sig = /%%unused = /' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=UNUSED
// UNUSED: error: 'ctran.signal' op makes a token that nothing uses
ctran.program @direct_all_gather grid ["x" = @N@] collectives [#ctran.collective<"c0", "all_gather", "direct", ["x"], @E@>] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant @N@ : index
  %x = ctran.coord "x"
  %out = ctran.window "out" inout 0 peers load_store : memref<@E@xf32>
  %o = ctran.reindex %out ["x" = @N@]
  %rtr = ctran.slots "rtr" ["x" = @N@] per_run 1 realisation consume
  %dat = ctran.slots "dat" ["x" = @N@] per_run 1 realisation consume
  %mine = ctran.range %o[%x : "x"]
  %have = ctran.source %mine holds "c0" after %entry on ce {of = "c0"}
  %ready = scf.for %d = %c1 to %n step %c1 iter_args(%t = %entry) -> (!ctran.token) {
    %p = ctran.shift %x by %d : !ctran.coord<"x">
    %at = ctran.peer_view %rtr at (%p : "x") : !ctran.slots
    %slot = ctran.slot %at[%x : "x"]
    %sig = ctran.signal %slot after %t on ce {of = "c0", note = "ready"}
    scf.yield %sig : !ctran.token
  }
  %sent = scf.for %d = %c1 to %n step %c1 iter_args(%t = %have) -> (!ctran.token) {
    %p = ctran.shift %x by %d : !ctran.coord<"x">
    %free = ctran.slot %rtr[%p : "x"]
    %ok = ctran.wait %free >= %c1 after %t on ce {of = "c0", note = "wait ready"} // MUT-RTR
    %there = ctran.peer_view %o at (%p : "x") : !ctran.window
    %to = ctran.range %there[%x : "x"] // MUT-PLACE
    %put = ctran.copy %mine to %to after %ok on ce {of = "c0", note = "put"} // MUT-ORDER
    %at = ctran.peer_view %dat at (%p : "x") : !ctran.slots
    %slot = ctran.slot %at[%x : "x"]
    %sig = ctran.signal %slot after %put on ce {of = "c0", note = "data"} // MUT-SIGNAL
    scf.yield %sig : !ctran.token // MUT-END
  }
  %got = scf.for %d = %c1 to %n step %c1 iter_args(%t = %sent) -> (!ctran.token) {
    %p = ctran.shift %x by %d : !ctran.coord<"x">
    %slot = ctran.slot %dat[%p : "x"]
    %ok = ctran.wait %slot >= %c1 after %t on ce {of = "c0", note = "wait data"} // MUT-DATA
    scf.yield %ok : !ctran.token
  }
  %all = ctran.range %o
  %end = ctran.sink %all holds "c0" after %got, %ready on ce {of = "c0"}
  ctran.return %end : !ctran.token
}
