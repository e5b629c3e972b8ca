// (g) Hierarchical all-reduce over four tiers, pipelined by pieces: one ring (see (b)) for each axis, on
// lanes of its own, in boxes that are prefixes of the index space. One text for every size of the tiers.
//
// RUN: sed 's/@M@/2/g; s/@E@/48/g; s/@A@/2/g; s/@KA@/2/g; s/@TA@/24/g; s/@B@/3/g; s/@KB@/4/g; s/@TB@/8/g; s/@C@/2/g; s/@KC@/2/g; s/@TC@/4/g; s/@D@/2/g; s/@KD@/2/g; s/@TD@/2/g' %s > %t.24
// RUN: ncclx-opt %t.24 --ctran-verify --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s --check-prefix=CLASS
// RUN: ncclx-opt %t.24 --ctran-verify=mode=all --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: sed 's/@M@/1/g; s/@E@/6/g; s/@A@/3/g; s/@KA@/2/g; s/@TA@/4/g; s/@B@/1/g; s/@KB@/0/g; s/@TB@/4/g; s/@C@/1/g; s/@KC@/0/g; s/@TC@/4/g; s/@D@/2/g; s/@KD@/1/g; s/@TD@/2/g' %s | ncclx-opt --ctran-verify=mode=all -o /dev/null
// RUN: sed 's/@M@/4/g; s/@E@/524288/g; s/@A@/8/g; s/@KA@/28/g; s/@TA@/32768/g; s/@B@/16/g; s/@KB@/60/g; s/@TB@/2048/g; s/@C@/32/g; s/@KC@/124/g; s/@TC@/64/g; s/@D@/32/g; s/@KD@/124/g; s/@TD@/2/g' %s \
// RUN:   | ncclx-opt --ctran-verify=mode=class --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s --check-prefix=CLASS
// CLASS: [Passed] Proof
// CLASS-SAME: Mode=class
// ALL: [Passed] Proof
// ALL-SAME: Mode=all
//
// Tier b's gather joins tier c's, but not tier d's: bytes that it forwards may be missing.
// RUN: sed '/MUT-JOIN/s/%%got.d, //' %t.24 | not ncclx-opt --ctran-verify=mode=all 2>&1 | FileCheck %s --check-prefix=JOIN
// JOIN: error: program @hierarchical is refused: race
// JOIN-SAME: gather b
// A tier's ring leaves out its last step.
// RUN: sed '/MUT-STEPS/s/%%n.b/%%c1/' %t.24 | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=STEPS
// STEPS: error: program @hierarchical is refused: deadlock
// STEPS-SAME: 'data a'
// The gather of one tier does not wait until the peer has done with its own puts.
// RUN: sed '/MUT-READY/s/>= %%j1/>= %%c0/' %t.24 | not ncclx-opt --ctran-verify=mode=all 2>&1 | FileCheck %s --check-prefix=READY
// READY: error: program @hierarchical is refused: race
// READY-SAME: 'gather a'
ctran.program @hierarchical grid ["a" = @A@, "b" = @B@, "c" = @C@, "d" = @D@] {
^bb0(%entry: !ctran.token):
  %cm2 = arith.constant -2 : index
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %slots = arith.constant 2 : index
  %pieces = arith.constant @M@ : index
  %size.a = arith.constant @A@ : index
  %n.a = arith.subi %size.a, %c1 : index
  %lane.a = arith.constant 0 : index
  %lane.ga = arith.constant 4 : index
  %size.b = arith.constant @B@ : index
  %n.b = arith.subi %size.b, %c1 : index
  %lane.b = arith.constant 1 : index
  %lane.gb = arith.constant 5 : index
  %size.c = arith.constant @C@ : index
  %n.c = arith.subi %size.c, %c1 : index
  %lane.c = arith.constant 2 : index
  %lane.gc = arith.constant 6 : index
  %size.d = arith.constant @D@ : index
  %n.d = arith.subi %size.d, %c1 : index
  %lane.d = arith.constant 3 : index
  %lane.gd = arith.constant 7 : index
  %x.a = ctran.coord "a"
  %x.b = ctran.coord "b"
  %x.c = ctran.coord "c"
  %x.d = ctran.coord "d"
  %left.a = ctran.shift %x.a by %cm1 : !ctran.coord<"a">
  %right.a = ctran.shift %x.a by %c1 : !ctran.coord<"a">
  %left.b = ctran.shift %x.b by %cm1 : !ctran.coord<"b">
  %right.b = ctran.shift %x.b by %c1 : !ctran.coord<"b">
  %left.c = ctran.shift %x.c by %cm1 : !ctran.coord<"c">
  %right.c = ctran.shift %x.c by %c1 : !ctran.coord<"c">
  %left.d = ctran.shift %x.d by %cm1 : !ctran.coord<"d">
  %right.d = ctran.shift %x.d by %c1 : !ctran.coord<"d">
  %win = ctran.window "buf" inout 0 peers put : memref<@E@xf32>
  %buf = ctran.reindex %win [@M@, "a" = @A@, "b" = @B@, "c" = @C@, "d" = @D@]
  %scratch.a = ctran.window "tmp.a" scratch peers put : memref<@TA@xf32>
  %tmp.a = ctran.reindex %scratch.a [2, "b" = @B@, "c" = @C@, "d" = @D@]
  %d.a = ctran.slots "d.a" [] per_run @KA@
  %own.d.a = ctran.slot %d.a
  %c.a = ctran.slots "c.a" [] per_run @KA@
  %own.c.a = ctran.slot %c.a
  %dg.a = ctran.slots "dg.a" [] per_run @KA@
  %own.dg.a = ctran.slot %dg.a
  %cg.a = ctran.slots "cg.a" [] per_run @M@
  %own.cg.a = ctran.slot %cg.a
  %buf.right.a = ctran.peer_view %buf at (%right.a : "a", %x.b : "b", %x.c : "c", %x.d : "d") : !ctran.window
  %tmp.right.a = ctran.peer_view %tmp.a at (%right.a : "a", %x.b : "b", %x.c : "c", %x.d : "d") : !ctran.window
  %view.d.a = ctran.peer_view %d.a at (%right.a : "a", %x.b : "b", %x.c : "c", %x.d : "d") : !ctran.slots
  %at.d.a = ctran.slot %view.d.a
  %view.dg.a = ctran.peer_view %dg.a at (%right.a : "a", %x.b : "b", %x.c : "c", %x.d : "d") : !ctran.slots
  %at.dg.a = ctran.slot %view.dg.a
  %view.c.a = ctran.peer_view %c.a at (%left.a : "a", %x.b : "b", %x.c : "c", %x.d : "d") : !ctran.slots
  %at.c.a = ctran.slot %view.c.a
  %view.cg.a = ctran.peer_view %cg.a at (%left.a : "a", %x.b : "b", %x.c : "c", %x.d : "d") : !ctran.slots
  %at.cg.a = ctran.slot %view.cg.a
  %scratch.b = ctran.window "tmp.b" scratch peers put : memref<@TB@xf32>
  %tmp.b = ctran.reindex %scratch.b [2, "c" = @C@, "d" = @D@]
  %d.b = ctran.slots "d.b" [] per_run @KB@
  %own.d.b = ctran.slot %d.b
  %c.b = ctran.slots "c.b" [] per_run @KB@
  %own.c.b = ctran.slot %c.b
  %dg.b = ctran.slots "dg.b" [] per_run @KB@
  %own.dg.b = ctran.slot %dg.b
  %cg.b = ctran.slots "cg.b" [] per_run @M@
  %own.cg.b = ctran.slot %cg.b
  %buf.right.b = ctran.peer_view %buf at (%x.a : "a", %right.b : "b", %x.c : "c", %x.d : "d") : !ctran.window
  %tmp.right.b = ctran.peer_view %tmp.b at (%x.a : "a", %right.b : "b", %x.c : "c", %x.d : "d") : !ctran.window
  %view.d.b = ctran.peer_view %d.b at (%x.a : "a", %right.b : "b", %x.c : "c", %x.d : "d") : !ctran.slots
  %at.d.b = ctran.slot %view.d.b
  %view.dg.b = ctran.peer_view %dg.b at (%x.a : "a", %right.b : "b", %x.c : "c", %x.d : "d") : !ctran.slots
  %at.dg.b = ctran.slot %view.dg.b
  %view.c.b = ctran.peer_view %c.b at (%x.a : "a", %left.b : "b", %x.c : "c", %x.d : "d") : !ctran.slots
  %at.c.b = ctran.slot %view.c.b
  %view.cg.b = ctran.peer_view %cg.b at (%x.a : "a", %left.b : "b", %x.c : "c", %x.d : "d") : !ctran.slots
  %at.cg.b = ctran.slot %view.cg.b
  %scratch.c = ctran.window "tmp.c" scratch peers put : memref<@TC@xf32>
  %tmp.c = ctran.reindex %scratch.c [2, "d" = @D@]
  %d.c = ctran.slots "d.c" [] per_run @KC@
  %own.d.c = ctran.slot %d.c
  %c.c = ctran.slots "c.c" [] per_run @KC@
  %own.c.c = ctran.slot %c.c
  %dg.c = ctran.slots "dg.c" [] per_run @KC@
  %own.dg.c = ctran.slot %dg.c
  %cg.c = ctran.slots "cg.c" [] per_run @M@
  %own.cg.c = ctran.slot %cg.c
  %buf.right.c = ctran.peer_view %buf at (%x.a : "a", %x.b : "b", %right.c : "c", %x.d : "d") : !ctran.window
  %tmp.right.c = ctran.peer_view %tmp.c at (%x.a : "a", %x.b : "b", %right.c : "c", %x.d : "d") : !ctran.window
  %view.d.c = ctran.peer_view %d.c at (%x.a : "a", %x.b : "b", %right.c : "c", %x.d : "d") : !ctran.slots
  %at.d.c = ctran.slot %view.d.c
  %view.dg.c = ctran.peer_view %dg.c at (%x.a : "a", %x.b : "b", %right.c : "c", %x.d : "d") : !ctran.slots
  %at.dg.c = ctran.slot %view.dg.c
  %view.c.c = ctran.peer_view %c.c at (%x.a : "a", %x.b : "b", %left.c : "c", %x.d : "d") : !ctran.slots
  %at.c.c = ctran.slot %view.c.c
  %view.cg.c = ctran.peer_view %cg.c at (%x.a : "a", %x.b : "b", %left.c : "c", %x.d : "d") : !ctran.slots
  %at.cg.c = ctran.slot %view.cg.c
  %scratch.d = ctran.window "tmp.d" scratch peers put : memref<@TD@xf32>
  %tmp.d = ctran.reindex %scratch.d [2]
  %d.d = ctran.slots "d.d" [] per_run @KD@
  %own.d.d = ctran.slot %d.d
  %c.d = ctran.slots "c.d" [] per_run @KD@
  %own.c.d = ctran.slot %c.d
  %dg.d = ctran.slots "dg.d" [] per_run @KD@
  %own.dg.d = ctran.slot %dg.d
  %cg.d = ctran.slots "cg.d" [] per_run @M@
  %own.cg.d = ctran.slot %cg.d
  %buf.right.d = ctran.peer_view %buf at (%x.a : "a", %x.b : "b", %x.c : "c", %right.d : "d") : !ctran.window
  %tmp.right.d = ctran.peer_view %tmp.d at (%x.a : "a", %x.b : "b", %x.c : "c", %right.d : "d") : !ctran.window
  %view.d.d = ctran.peer_view %d.d at (%x.a : "a", %x.b : "b", %x.c : "c", %right.d : "d") : !ctran.slots
  %at.d.d = ctran.slot %view.d.d
  %view.dg.d = ctran.peer_view %dg.d at (%x.a : "a", %x.b : "b", %x.c : "c", %right.d : "d") : !ctran.slots
  %at.dg.d = ctran.slot %view.dg.d
  %view.c.d = ctran.peer_view %c.d at (%x.a : "a", %x.b : "b", %x.c : "c", %left.d : "d") : !ctran.slots
  %at.c.d = ctran.slot %view.c.d
  %view.cg.d = ctran.peer_view %cg.d at (%x.a : "a", %x.b : "b", %x.c : "c", %left.d : "d") : !ctran.slots
  %at.cg.d = ctran.slot %view.cg.d
  %all = ctran.range %buf
  %have0 = ctran.source %all holds "r" summed ["a", "b", "c", "d"] after %entry on host
  %ends:17 = scf.for %j = %c0 to %pieces step %c1 iter_args(%e0 = %have0, %e1 = %have0, %e2 = %have0, %e3 = %have0, %e4 = %have0, %e5 = %have0, %e6 = %have0, %e7 = %have0, %e8 = %have0, %e9 = %have0, %e10 = %have0, %e11 = %have0, %e12 = %have0, %e13 = %have0, %e14 = %have0, %e15 = %have0, %e16 = %have0)
      -> (!ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token) {
    %j1 = arith.addi %j, %c1 : index
    // Reduce-scatter along a.
    %base.a = arith.muli %j, %n.a : index
    %h.a, %p.a = scf.for %s = %c0 to %n.a step %c1 iter_args(%have = %have0, %last = %have0) -> (!ctran.token, !ctran.token) {
      %k0 = arith.addi %base.a, %s : index
      %k = arith.addi %k0, %c1 : index
      %credit = arith.subi %k, %slots : index
      %t = arith.remsi %k0, %slots : index
      %by = arith.subi %cm1, %s : index
      %from = ctran.shift %x.a by %by : !ctran.coord<"a">
      %src = ctran.range %buf[%j, %from : "a"]
      %dst = ctran.range %tmp.right.a[%t]
      %wc = ctran.wait %own.c.a >= %credit on nic[%lane.a] {note = "credit a"}
      %put = ctran.copy %src to %dst notify %at.d.a after %have, %wc on nic[%lane.a] {note = "put a"}
      %wd = ctran.wait %own.d.a >= %k on sm[%lane.a] {note = "data a"}
      %f = ctran.flush after %wd on sm[%lane.a]
      %by2 = arith.subi %cm2, %s : index
      %to = ctran.shift %x.a by %by2 : !ctran.coord<"a">
      %own = ctran.range %buf[%j, %to : "a"]
      %in = ctran.range %tmp.a[%t]
      %r = ctran.reduce sum accumulate f32 %own, %in into %own after %f, %have on sm[%lane.a] {note = "add a"}
      %g = ctran.signal %at.c.a after %r on sm[%lane.a] {note = "free a"}
      scf.yield %g, %put : !ctran.token, !ctran.token
    }
    %q.a = ctran.signal %at.cg.a after %p.a on sm[%lane.a] {note = "ready a"}
    // Reduce-scatter along b.
    %base.b = arith.muli %j, %n.b : index
    %h.b, %p.b = scf.for %s = %c0 to %n.b step %c1 iter_args(%have = %h.a, %last = %have0) -> (!ctran.token, !ctran.token) { // MUT-STEPS
      %k0 = arith.addi %base.b, %s : index
      %k = arith.addi %k0, %c1 : index
      %credit = arith.subi %k, %slots : index
      %t = arith.remsi %k0, %slots : index
      %by = arith.subi %cm1, %s : index
      %from = ctran.shift %x.b by %by : !ctran.coord<"b">
      %src = ctran.range %buf[%j, %x.a : "a", %from : "b"]
      %dst = ctran.range %tmp.right.b[%t]
      %wc = ctran.wait %own.c.b >= %credit on nic[%lane.b] {note = "credit b"}
      %put = ctran.copy %src to %dst notify %at.d.b after %have, %wc on nic[%lane.b] {note = "put b"}
      %wd = ctran.wait %own.d.b >= %k on sm[%lane.b] {note = "data b"}
      %f = ctran.flush after %wd on sm[%lane.b]
      %by2 = arith.subi %cm2, %s : index
      %to = ctran.shift %x.b by %by2 : !ctran.coord<"b">
      %own = ctran.range %buf[%j, %x.a : "a", %to : "b"]
      %in = ctran.range %tmp.b[%t]
      %r = ctran.reduce sum accumulate f32 %own, %in into %own after %f, %have on sm[%lane.b] {note = "add b"}
      %g = ctran.signal %at.c.b after %r on sm[%lane.b] {note = "free b"}
      scf.yield %g, %put : !ctran.token, !ctran.token
    }
    %q.b = ctran.signal %at.cg.b after %p.b on sm[%lane.b] {note = "ready b"}
    // Reduce-scatter along c.
    %base.c = arith.muli %j, %n.c : index
    %h.c, %p.c = scf.for %s = %c0 to %n.c step %c1 iter_args(%have = %h.b, %last = %have0) -> (!ctran.token, !ctran.token) {
      %k0 = arith.addi %base.c, %s : index
      %k = arith.addi %k0, %c1 : index
      %credit = arith.subi %k, %slots : index
      %t = arith.remsi %k0, %slots : index
      %by = arith.subi %cm1, %s : index
      %from = ctran.shift %x.c by %by : !ctran.coord<"c">
      %src = ctran.range %buf[%j, %x.a : "a", %x.b : "b", %from : "c"]
      %dst = ctran.range %tmp.right.c[%t]
      %wc = ctran.wait %own.c.c >= %credit on nic[%lane.c] {note = "credit c"}
      %put = ctran.copy %src to %dst notify %at.d.c after %have, %wc on nic[%lane.c] {note = "put c"}
      %wd = ctran.wait %own.d.c >= %k on sm[%lane.c] {note = "data c"}
      %f = ctran.flush after %wd on sm[%lane.c]
      %by2 = arith.subi %cm2, %s : index
      %to = ctran.shift %x.c by %by2 : !ctran.coord<"c">
      %own = ctran.range %buf[%j, %x.a : "a", %x.b : "b", %to : "c"]
      %in = ctran.range %tmp.c[%t]
      %r = ctran.reduce sum accumulate f32 %own, %in into %own after %f, %have on sm[%lane.c] {note = "add c"}
      %g = ctran.signal %at.c.c after %r on sm[%lane.c] {note = "free c"}
      scf.yield %g, %put : !ctran.token, !ctran.token
    }
    %q.c = ctran.signal %at.cg.c after %p.c on sm[%lane.c] {note = "ready c"}
    // Reduce-scatter along d.
    %base.d = arith.muli %j, %n.d : index
    %h.d, %p.d = scf.for %s = %c0 to %n.d step %c1 iter_args(%have = %h.c, %last = %have0) -> (!ctran.token, !ctran.token) {
      %k0 = arith.addi %base.d, %s : index
      %k = arith.addi %k0, %c1 : index
      %credit = arith.subi %k, %slots : index
      %t = arith.remsi %k0, %slots : index
      %by = arith.subi %cm1, %s : index
      %from = ctran.shift %x.d by %by : !ctran.coord<"d">
      %src = ctran.range %buf[%j, %x.a : "a", %x.b : "b", %x.c : "c", %from : "d"]
      %dst = ctran.range %tmp.right.d[%t]
      %wc = ctran.wait %own.c.d >= %credit on nic[%lane.d] {note = "credit d"}
      %put = ctran.copy %src to %dst notify %at.d.d after %have, %wc on nic[%lane.d] {note = "put d"}
      %wd = ctran.wait %own.d.d >= %k on sm[%lane.d] {note = "data d"}
      %f = ctran.flush after %wd on sm[%lane.d]
      %by2 = arith.subi %cm2, %s : index
      %to = ctran.shift %x.d by %by2 : !ctran.coord<"d">
      %own = ctran.range %buf[%j, %x.a : "a", %x.b : "b", %x.c : "c", %to : "d"]
      %in = ctran.range %tmp.d[%t]
      %r = ctran.reduce sum accumulate f32 %own, %in into %own after %f, %have on sm[%lane.d] {note = "add d"}
      %g = ctran.signal %at.c.d after %r on sm[%lane.d] {note = "free d"}
      scf.yield %g, %put : !ctran.token, !ctran.token
    }
    %q.d = ctran.signal %at.cg.d after %p.d on sm[%lane.d] {note = "ready d"}
    // All-gather along d, once every lane that brought bytes of the box has been joined.
    %wg.d = ctran.wait %own.cg.d >= %j1 after %h.d on nic[%lane.gd] {note = "wait ready d"}
    %gp.d, %got.d = scf.for %s = %c0 to %n.d step %c1 iter_args(%last = %wg.d, %got = %wg.d) -> (!ctran.token, !ctran.token) {
      %k0 = arith.addi %base.d, %s : index
      %k = arith.addi %k0, %c1 : index
      %by = arith.subi %c0, %s : index
      %at = ctran.shift %x.d by %by : !ctran.coord<"d">
      %src = ctran.range %buf[%j, %x.a : "a", %x.b : "b", %x.c : "c", %at : "d"]
      %dst = ctran.range %buf.right.d[%j, %x.a : "a", %x.b : "b", %x.c : "c", %at : "d"]
      %put = ctran.copy %src to %dst notify %at.dg.d after %got on nic[%lane.gd] {note = "gather d"}
      %wd = ctran.wait %own.dg.d >= %k on sm[%lane.gd] {note = "gathered d"}
      %f = ctran.flush after %wd on sm[%lane.gd]
      scf.yield %put, %f : !ctran.token, !ctran.token
    }
    // All-gather along c, once every lane that brought bytes of the box has been joined.
    %wg.c = ctran.wait %own.cg.c >= %j1 after %h.d, %got.d on nic[%lane.gc] {note = "wait ready c"}
    %gp.c, %got.c = scf.for %s = %c0 to %n.c step %c1 iter_args(%last = %wg.c, %got = %wg.c) -> (!ctran.token, !ctran.token) {
      %k0 = arith.addi %base.c, %s : index
      %k = arith.addi %k0, %c1 : index
      %by = arith.subi %c0, %s : index
      %at = ctran.shift %x.c by %by : !ctran.coord<"c">
      %src = ctran.range %buf[%j, %x.a : "a", %x.b : "b", %at : "c"]
      %dst = ctran.range %buf.right.c[%j, %x.a : "a", %x.b : "b", %at : "c"]
      %put = ctran.copy %src to %dst notify %at.dg.c after %got on nic[%lane.gc] {note = "gather c"}
      %wd = ctran.wait %own.dg.c >= %k on sm[%lane.gc] {note = "gathered c"}
      %f = ctran.flush after %wd on sm[%lane.gc]
      scf.yield %put, %f : !ctran.token, !ctran.token
    }
    // All-gather along b, once every lane that brought bytes of the box has been joined.
    %wg.b = ctran.wait %own.cg.b >= %j1 after %h.d, %got.d, %got.c on nic[%lane.gb] {note = "wait ready b"} // MUT-JOIN
    %gp.b, %got.b = scf.for %s = %c0 to %n.b step %c1 iter_args(%last = %wg.b, %got = %wg.b) -> (!ctran.token, !ctran.token) {
      %k0 = arith.addi %base.b, %s : index
      %k = arith.addi %k0, %c1 : index
      %by = arith.subi %c0, %s : index
      %at = ctran.shift %x.b by %by : !ctran.coord<"b">
      %src = ctran.range %buf[%j, %x.a : "a", %at : "b"]
      %dst = ctran.range %buf.right.b[%j, %x.a : "a", %at : "b"]
      %put = ctran.copy %src to %dst notify %at.dg.b after %got on nic[%lane.gb] {note = "gather b"}
      %wd = ctran.wait %own.dg.b >= %k on sm[%lane.gb] {note = "gathered b"}
      %f = ctran.flush after %wd on sm[%lane.gb]
      scf.yield %put, %f : !ctran.token, !ctran.token
    }
    // All-gather along a, once every lane that brought bytes of the box has been joined.
    %wg.a = ctran.wait %own.cg.a >= %j1 after %h.d, %got.d, %got.c, %got.b on nic[%lane.ga] {note = "wait ready a"} // MUT-READY
    %gp.a, %got.a = scf.for %s = %c0 to %n.a step %c1 iter_args(%last = %wg.a, %got = %wg.a) -> (!ctran.token, !ctran.token) {
      %k0 = arith.addi %base.a, %s : index
      %k = arith.addi %k0, %c1 : index
      %by = arith.subi %c0, %s : index
      %at = ctran.shift %x.a by %by : !ctran.coord<"a">
      %src = ctran.range %buf[%j, %at : "a"]
      %dst = ctran.range %buf.right.a[%j, %at : "a"]
      %put = ctran.copy %src to %dst notify %at.dg.a after %got on nic[%lane.ga] {note = "gather a"}
      %wd = ctran.wait %own.dg.a >= %k on sm[%lane.ga] {note = "gathered a"}
      %f = ctran.flush after %wd on sm[%lane.ga]
      scf.yield %put, %f : !ctran.token, !ctran.token
    }
    scf.yield %p.a, %q.a, %p.b, %q.b, %p.c, %q.c, %p.d, %q.d, %h.d, %gp.d, %got.d, %gp.c, %got.c, %gp.b, %got.b, %gp.a, %got.a : !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token, !ctran.token
  }
  %end = ctran.sink %all holds "r" summed ["a", "b", "c", "d"] after %ends#0, %ends#1, %ends#2, %ends#3, %ends#4, %ends#5, %ends#6, %ends#7, %ends#8, %ends#9, %ends#10, %ends#11, %ends#12, %ends#13, %ends#14, %ends#15, %ends#16 on host
  ctran.return %end : !ctran.token
}
