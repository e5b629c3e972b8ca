// What is neither proved nor refused is said, and is an error when asked for.
// RUN: ncclx-opt %s --ctran-verify=mode=class 2>&1 | FileCheck %s --check-prefixes=CLASS
// RUN: not ncclx-opt %s --ctran-verify="mode=class undecided=error" 2>&1 | FileCheck %s --check-prefixes=ERROR
// RUN: ncclx-opt %s --ctran-verify=budget=2 2>&1 | FileCheck %s --check-prefixes=BUDGET
// RUN: ncclx-opt %s --ctran-verify 2>&1 | FileCheck %s --check-prefix=PROVED
// CLASS: warning: program @p is undecided: {{.*}}the coordinate on axis "x" is used as a number
// ERROR: error: program @p is undecided: {{.*}}the coordinate on axis "x" is used as a number
// BUDGET: warning: program @p is undecided: {{.*}}budget
// PROVED-NOT: undecided
// PROVED: ctran.program @p
ctran.program @p grid ["x" = 3] {
^bb0(%entry: !ctran.token):
  %c0 = arith.constant 0 : index
  %x = ctran.coord "x"
  %v = ctran.coord_value %x : !ctran.coord<"x">
  %s = ctran.slots "s" [3] per_run 1 scope device
  %slot = ctran.slot %s[%v]
  %c1 = arith.constant 1 : index
  %t = ctran.signal %slot after %entry on host
  %w = ctran.wait %slot >= %c1 after %t on host
  ctran.return %w : !ctran.token
}
