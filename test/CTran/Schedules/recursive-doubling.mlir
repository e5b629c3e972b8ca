// (c) Recursive doubling all-gather of 8 ranks, farthest first: three axes of size 2, on which a
// shift by 1 is the xor of a rank's bit. The box held before step a is the prefix of axes 0 to a.
//
// RUN: ncclx-opt %s --ctran-verify --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s --check-prefix=CLASS
// RUN: ncclx-opt %s --ctran-verify=mode=all --remarks-filter=ctran-verify --remark-policy=all 2>&1 | FileCheck %s --check-prefix=ALL
// CLASS: [Passed] Proof
// CLASS-SAME: Mode=class
// ALL: [Passed] Proof
// ALL-SAME: Mode=all
//
// What landed is forwarded before it is visible.
// RUN: sed '/MUT-FLUSH/s/ctran.flush after %%w2/ctran.wait %%d2 >= %%c0 after %%w2/' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=FLUSH
// FLUSH: error: program @recursive_doubling is refused: race
// FLUSH-SAME: put 1
// The peer's output may not be free.
// RUN: sed '/MUT-RTR/s/>= %%c1/>= %%c0/' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=RTR
// RTR: error: program @recursive_doubling is refused: race
// RTR-SAME: 'put 2'
// The wrong half is sent: the box that the peer already has, which is not even as large.
// RUN: sed '/MUT-SRC/s/%%have1/%%here1/' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=SRC
// SRC: error: program @recursive_doubling is refused: invalid
// SRC-SAME: 'put 1'{{.*}}moves 26 bytes of 'out' into 24
// A put notifies at another peer than it lands at.
// RUN: sed '/MUT-NOTIFY/s/notify %%r0/notify %%r1/' %s | not ncclx-opt --ctran-verify 2>&1 | FileCheck %s --check-prefix=NOTIFY
// NOTIFY: error: 'ctran.copy' op notifies a slot at a peer where no destination lands
ctran.program @recursive_doubling grid ["a" = 2, "b" = 2, "c" = 2] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = ctran.coord "a"
  %b = ctran.coord "b"
  %c = ctran.coord "c"
  %pa = ctran.shift %a by %c1 : !ctran.coord<"a">
  %pb = ctran.shift %b by %c1 : !ctran.coord<"b">
  %pc = ctran.shift %c by %c1 : !ctran.coord<"c">
  %win = ctran.window "out" inout 0 peers put : memref<50xbf16>
  %out = ctran.reindex %win ["a" = 2, "b" = 2, "c" = 2]
  %rtr = ctran.slots "rtr" [3] per_run 1
  %d = ctran.slots "d" [3] per_run 1
  %rtra = ctran.peer_view %rtr at (%pa : "a", %b : "b", %c : "c") : !ctran.slots
  %rtrb = ctran.peer_view %rtr at (%a : "a", %pb : "b", %c : "c") : !ctran.slots
  %rtrc = ctran.peer_view %rtr at (%a : "a", %b : "b", %pc : "c") : !ctran.slots
  %da = ctran.peer_view %d at (%pa : "a", %b : "b", %c : "c") : !ctran.slots
  %db = ctran.peer_view %d at (%a : "a", %pb : "b", %c : "c") : !ctran.slots
  %dc = ctran.peer_view %d at (%a : "a", %b : "b", %pc : "c") : !ctran.slots
  %outa = ctran.peer_view %out at (%pa : "a", %b : "b", %c : "c") : !ctran.window
  %outb = ctran.peer_view %out at (%a : "a", %pb : "b", %c : "c") : !ctran.window
  %outc = ctran.peer_view %out at (%a : "a", %b : "b", %pc : "c") : !ctran.window
  %mine = ctran.range %out[%a : "a", %b : "b", %c : "c"]
  %have = ctran.source %mine holds "c0" after %entry on host

  %sa = ctran.slot %rtra[%c0]
  %sb = ctran.slot %rtrb[%c1]
  %sc = ctran.slot %rtrc[%c2]
  %ta = ctran.signal %sa after %entry on host
  %tb = ctran.signal %sb after %ta on host
  %tc = ctran.signal %sc after %tb on host

  // Axis c: one block.
  %rtr2 = ctran.slot %rtr[%c2]
  %d2 = ctran.slot %d[%c2]
  %r2 = ctran.slot %dc[%c2]
  %to2 = ctran.range %outc[%a : "a", %b : "b", %c : "c"]
  %ok2 = ctran.wait %rtr2 >= %c1 on nic {note = "ready 2"} // MUT-RTR
  %p2 = ctran.copy %mine to %to2 notify %r2 after %have, %ok2 on nic {note = "put 2"}
  %w2 = ctran.wait %d2 >= %c1 after %tc on host
  %f2 = ctran.flush after %w2 on host // MUT-FLUSH

  // Axis b: the two blocks below (a, b).
  %rtr1 = ctran.slot %rtr[%c1]
  %d1 = ctran.slot %d[%c1]
  %r1 = ctran.slot %db[%c1]
  %have1 = ctran.range %out[%a : "a", %b : "b"]
  %here1 = ctran.range %out[%a : "a", %pb : "b"]
  %to1 = ctran.range %outb[%a : "a", %b : "b"]
  %ok1 = ctran.wait %rtr1 >= %c1 on nic {note = "ready 1"}
  %p1 = ctran.copy %have1 to %to1 notify %r1 after %f2, %ok1 on nic {note = "put 1"} // MUT-SRC
  %w1 = ctran.wait %d1 >= %c1 on host
  %f1 = ctran.flush after %w1 on host

  // Axis a: the four blocks below (a).
  %rtr0 = ctran.slot %rtr[%c0]
  %d0 = ctran.slot %d[%c0]
  %r0 = ctran.slot %da[%c0]
  %have0 = ctran.range %out[%a : "a"]
  %to0 = ctran.range %outa[%a : "a"]
  %ok0 = ctran.wait %rtr0 >= %c1 on nic {note = "ready 0"}
  %p0 = ctran.copy %have0 to %to0 notify %r0 after %f1, %ok0 on nic {note = "put 0"} // MUT-NOTIFY
  %w0 = ctran.wait %d0 >= %c1 on host
  %f0 = ctran.flush after %w0 on host

  %all = ctran.range %out
  %end = ctran.sink %all holds "c0" after %p0, %p1, %p2, %f0 on host
  ctran.return %end : !ctran.token
}
